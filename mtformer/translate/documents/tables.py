"""Tables in CSV and TSV, of which the named columns are translated."""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from mtformer.support.errors import UserError
from mtformer.support.terminal import counted
from mtformer.translate.documents.blocks import Block
from mtformer.translate.documents.inline import Span
from mtformer.translate.documents.plain import plain_block, read_text
from mtformer.translate.documents.seam import DocumentSettings, TextDocument

log = logging.getLogger(__name__)

_FOR_EXCEL = re.compile(r'"?sep=([^"\r\n])"?(?:\r?\n|\r|\Z)')  # a first line, which names the separator
_Row = list[tuple[str, Span]]  # the cells, and where they stand


def read(content: bytes, settings: DocumentSettings) -> TextDocument:
    """Read a table; if it is to be bilingual, translations get a separate column.

    Raises:
        UserError: a column does not exist, or none is named.
    """
    text, encoding = read_text(content, settings)
    start = len(text) - len(text.removeprefix("\ufeff"))
    if for_excel := _FOR_EXCEL.match(text, start):
        start, delimiter = for_excel.end(), for_excel[1]
    elif settings.name.lower().endswith(".tsv"):
        delimiter = "\t"
    else:
        unquoted = re.sub('"[^"]*"', "", text.split("\n", 1)[0])
        delimiter = max("\t;,", key=unquoted.count)
    rows = list(_rows(text, start, delimiter))
    _warn(text, rows, settings.name)
    columns, has_header = _columns([cell for cell, _ in rows[0]] if rows else [], settings)
    blocks: list[Block] = []
    edits: list[tuple[Span, str]] = []
    for number, row in enumerate(rows):
        is_header = has_header and number == 0
        for value, span in (row[column] for column in columns if column < len(row)):
            written = text[slice(*span)]
            before = written + delimiter if settings.bilingual else ""
            finish = partial(_cell, delimiter=delimiter, written=written, is_quoted=value != written, before=before)
            found = [] if is_header else list(plain_block(span, value, finish, is_kept=not settings.bilingual))
            blocks += found
            if settings.bilingual and not found:
                edits.append((span, finish(f"{value} ({settings.tgt_lang})" if is_header else "")))
    return TextDocument(text, encoding, replace(settings, bilingual=False), blocks, edits, errors="strict")


def _warn(text: str, rows: Sequence[_Row], name: str) -> None:
    """Log the rows that have more cells than the first one, and those with a quote that is not closed."""
    long = (row for row in rows if any(value for value, _ in row[len(rows[0]) :]))
    unclosed = (row for row in rows if any(_is_unclosed(text[slice(*span)]) for _, span in row))
    for found, problem in (
        (list(long), "has more cells than the first one: put quotes around a text that contains the separator"),
        (list(unclosed), "has a quote that is not closed"),
    ):
        if found:
            _, (start, _) = found[0][0]
            others = f"; {counted(len(found) - 1, 'other row')} likewise" if len(found) > 1 else ""
            log.warning("%s:%d: the row %s%s", name, text.count("\n", 0, start) + 1, problem, others)


def _is_unclosed(written: str) -> bool:
    return written.startswith('"') and written.count('"') % 2 == 1


def _rows(text: str, position: int, delimiter: str) -> Iterator[_Row]:
    sign = re.escape(delimiter)
    end = rf"(?P<end>{sign}|\r?\n|\r|\Z)"
    cell = re.compile(rf'(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<bare>[^"{sign}\r\n][^{sign}\r\n]*|)){end}')
    bare = re.compile(rf"(?P<quoted>\b\B)?(?P<bare>[^{sign}\r\n]*){end}")
    row: _Row = []
    while position < len(text):
        match = cell.match(text, position) or bare.match(text, position)  # as in "a" b, where text follows the quote
        assert match is not None
        value = match["bare"] if match["quoted"] is None else match["quoted"].replace('""', '"')
        row.append((value, (position, match.start("end"))))
        if match["end"] != delimiter:
            yield row
            row = []
        position = match.end()
    if row:
        yield [*row, ("", (position, position))]


def _columns(header: Sequence[str], settings: DocumentSettings) -> tuple[list[int], bool]:
    """Return the columns to translate, from 0, and whether the first row has their names."""
    if not header:
        return [], False
    if not settings.columns:
        if len(header) == 1:
            return [0], False
        raise UserError(
            f"{settings.name} has {len(header)} columns, {', '.join(header)}: name those to translate with mtformer "
            "translate --column (mtformer serve translates tables of one column)"
        )
    found = []
    for name in settings.columns:
        if header.count(name) > 1:
            raise UserError(f"{settings.name} has several columns {name}: give the number of one, from 1 on")
        if name in header:
            found.append(header.index(name))
        elif name.isdecimal() and 1 <= int(name) <= len(header):
            found.append(int(name) - 1)
        else:
            raise UserError(f"{settings.name} has no column {name}; it has {', '.join(header)}")
    return sorted(set(found)), any(name in header for name in settings.columns)


def _cell(text: str, *, delimiter: str, written: str, is_quoted: bool, before: str) -> str:
    """Write a cell instead of a ``written`` one, after the text ``before``; quotes in bare text stay as they are."""
    if is_quoted or re.search(rf"[\r\n{re.escape(delimiter)}]", text) or ('"' in text and '"' not in written):
        text = '"' + text.replace('"', '""') + '"'
    return before + text
