"""Tables: tsv and csv."""

import csv
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from mtformer.config import CsvFile, TsvFile
from mtformer.data.drops import BLANK, Drops
from mtformer.data.sources.columns import Layout, Wanted, find_layout
from mtformer.support.errors import UserError
from mtformer.text.lines import input_name, read_lines
from mtformer.text.pairs import Example, one_line

Row = tuple[int, list[str]]  # the number of its first line, its cells


def read_table(source: TsvFile | CsvFile, src_lang: str, tgt_lang: str, drops: Drops) -> Iterator[Example]:
    """Yield the pairs of a table; blank lines are skipped and counted in ``drops``.

    Raises:
        UserError: naming the line that cannot be read, or the columns if those of the texts are not found.
    """
    path = source.tsv if isinstance(source, TsvFile) else source.csv
    name = input_name(path)
    rows = _rows_with_text(source, drops)
    start = list(islice(rows, 2))
    if not start:
        return
    layout = _layout(source, start, name, (src_lang, tgt_lang))
    n_columns = len(start[0][1])
    for line, cells in chain(start[1:] if layout.has_header else start, rows):
        if len(cells) <= max(layout.src, layout.tgt) or any(cells[n_columns:]):
            _require_two(cells, source, f"{name}:{line}")
            counts = f"this line has {len(cells)} columns, and the first has {n_columns}"
            raise UserError(f"{name}:{line}: {counts}{_hint(cells, source)}")
        yield Example(one_line(cells[layout.src]), one_line(cells[layout.tgt]), line)


def _layout(source: TsvFile | CsvFile, start: list[Row], name: str, languages: tuple[str, str]) -> Layout:
    line, cells = start[0]
    _require_two(cells, source, f"{name}:{line}")
    wanted = Wanted((source.src_column, source.tgt_column), languages)
    try:
        layout = find_layout([cells for _, cells in start], wanted, source.header)
    except UserError as error:
        raise UserError(f"{name}: {error}") from None
    if source.languages and not layout.has_header and None in wanted.given:
        raise UserError(
            f"{name}: no header says which column is in which language, and the model has several directions: "
            "set src_column, tgt_column and directions"
        )
    return layout


def _rows_with_text(source: TsvFile | CsvFile, drops: Drops) -> Iterator[Row]:
    for line, cells in _rows(source):
        if any(cell and not cell.isspace() for cell in cells):
            yield line, cells
        else:
            drops.add(BLANK, line)


def _rows(source: TsvFile | CsvFile) -> Iterator[Row]:
    if isinstance(source, CsvFile):
        return _quoted(source.csv, source.delimiter)
    if source.quotes:
        return _quoted(source.tsv, "\t")
    return ((number, line.split("\t")) for number, line in enumerate(read_lines(source.tsv), 1))


def _quoted(path: Path, delimiter: str) -> Iterator[Row]:
    reader = csv.reader((line + "\n" for line in read_lines(path)), delimiter=delimiter, strict=True)
    while True:
        first = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = str(error)
            if reader.line_num > first or "end of data" in reason:
                reason = "its quotes are not closed"
            elif "new-line" in reason:  # Python gives advice on opening files
                reason = "it contains a carriage return outside quotes"
            elif "expected after" in reason and delimiter != "\t":
                reason += "; set delimiter, or double the quotes inside quoted text"
            raise UserError(f"{input_name(path)}:{first}: this row cannot be read: {reason}") from None
        yield first, cells


def _require_two(cells: list[str], source: TsvFile | CsvFile, where: str) -> None:
    if len(cells) < 2:
        separator = "tab" if isinstance(source, TsvFile) else repr(source.delimiter)
        raise UserError(f"{where}: this line has no {separator}: {cells[0][:80]!r}{_hint(cells, source)}")


def _hint(cells: list[str], source: TsvFile | CsvFile) -> str:
    """Say what to do about a row with another number of columns."""
    if isinstance(source, CsvFile):
        return "; set delimiter, or put quotes around text that contains it"
    is_quoted = not source.quotes and any(cell.startswith('"') for cell in cells)
    return "; set quotes: true if the fields are quoted" if is_quoted else ""
