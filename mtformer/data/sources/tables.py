"""Tables and objects with named columns: tsv, csv, lines of JSON, and the rows of data sets."""

import csv
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from mtformer.config import CsvFile, JsonlFile, TsvFile
from mtformer.support.errors import UserError
from mtformer.text.languages import base_language, english_name, is_language, matches_language
from mtformer.text.lines import input_name, is_utf8, read_lines, without_escapes
from mtformer.text.pairs import BLANK, ROLES, Drops, Example, SentencePair, is_column_name, one_line

Row = tuple[int, list[str]]  # the number of its first line, its cells

_SIDES = ("source", "target")


class Columns(NamedTuple):
    """The columns of the two texts: those that the user names, or else those named by the languages.

    Attributes:
        given: the columns of source and target, by name or number; None if left open.
        languages: the source and the target language.
        settings: the keys of a config that name them.
    """

    given: tuple[str | None, str | None]
    languages: tuple[str, str]
    settings: tuple[str, str] = ("src_column", "tgt_column")

    def named(self, names: Sequence[str], side: int) -> int | None:
        """Return the position of the name that fits one side best: as its language, or as source or target.

        Raises:
            UserError: several names fit equally well.
        """
        ranks = self._ranks(names, side)
        best = max(ranks, default=0)
        places = [place for place, rank in enumerate(ranks) if rank == best]
        if best and len(places) > 1:
            shown = " or ".join(repr(names[place]) for place in places)
            raise UserError(f"the column of the {_SIDES[side]} may be {shown}: set {self.settings[side]}")
        return places[0] if best else None

    def in_table(self, row: Sequence[str], header: bool | str) -> tuple[int, int, bool]:
        """Find the columns by the first row of a table.

        Args:
            row: the cells.
            header: whether they are a header; ``auto`` if that has to be decided.

        Returns:
            the positions of source and target, from 0, and whether the row is a header.

        Raises:
            UserError: the columns do not exist or are not clear; the message lists those that there are.
        """
        while len(row) > 2 and not row[-1].strip():
            row = row[:-1]
        has_header = self._is_header(row) if header == "auto" else bool(header)
        places = [self._place(row, side, has_header) for side in (0, 1)]
        free = [place for place in range(len(row)) if place not in places]
        if len(row) == 2 and not (has_header and any(is_language(row[place]) for place in free)):
            places = [free.pop(0) if place is None else place for place in places]
        src, tgt = places
        if src is None or tgt is None:
            raise UserError(self._open_message(row, places, has_header))
        if src == tgt:
            raise UserError(f"source and target are both column {src + 1}; {_listing(row, has_header)}")
        return src, tgt, has_header

    def _is_header(self, row: Sequence[str]) -> bool:
        """Tell whether a row names the languages, columns that the user names, or other languages only."""
        by_name = any(given is not None and not given.isdecimal() for given in self.given)
        names_both = all(any(self._ranks(row, side)) for side in (0, 1))
        return by_name or names_both or (len(row) > 1 and all(map(is_column_name, row)))

    def _ranks(self, names: Sequence[str], side: int) -> list[int]:
        """Return how well each name fits a side; 0 if it does not."""
        code = self.languages[side]
        by_name = dict.fromkeys(ROLES[side], 1) | {english_name(base_language(code)).lower(): 2}
        return [2 * matches_language(name, code) or by_name.get(name.strip().lower(), 0) for name in names]

    def _place(self, row: Sequence[str], side: int, has_header: bool) -> int | None:
        column, names = self.given[side], [cell.strip() for cell in row]
        if column is None:
            return self.named(names, side) if has_header else None
        if has_header and column in names:
            return names.index(column)
        if column.isdecimal() and 1 <= int(column) <= len(row):
            return int(column) - 1
        what = f"number {column}" if column.isdecimal() else repr(column)
        raise UserError(f"there is no column {what}; {_listing(row, has_header)}")

    def _open_message(self, row: Sequence[str], places: Sequence[int | None], has_header: bool) -> str:
        sides = [side for side in (0, 1) if places[side] is None]
        keys = " and ".join(self.settings[side] for side in sides)
        if not has_header:
            return f"it is not clear which columns contain the texts; {_listing(row, has_header)}: set {keys}"
        texts = " and ".join(f"the {_SIDES[side]} ({self.languages[side]})" for side in sides)
        return (
            f"the header does not name {texts}; {_listing(row, has_header)}: set {keys}; if the first row is a pair, "
            "set header: false"
        )


def read_table(
    source: TsvFile | CsvFile, src_lang: str, tgt_lang: str, drops: Drops, *, escape: bool = False
) -> Iterator[Example]:
    """Yield the pairs of a table; blank lines are skipped and counted in ``drops``, ``escape`` as in `read_lines`.

    Raises:
        UserError: naming the line that cannot be read, or the columns if those of the texts are not found.
    """
    name = input_name(source.tsv if isinstance(source, TsvFile) else source.csv)
    rows = _rows_with_text(source, drops, escape)
    for line, first in islice(rows, 1):
        _require_two(first, source, f"{name}:{line}")
        columns = Columns((source.src_column, source.tgt_column), (src_lang, tgt_lang))
        try:
            src, tgt, has_header = columns.in_table(first, source.header)
        except UserError as error:
            raise UserError(f"{name}: {error}") from None
        if source.languages and not has_header and None in columns.given:
            raise UserError(
                f"{name}: no header says which column is in which language, and the model has several directions: "
                "set src_column, tgt_column and directions"
            )
        for number, cells in rows if has_header else chain([(line, first)], rows):
            if len(cells) <= max(src, tgt) or any(cells[len(first) :]):
                _require_two(cells, source, f"{name}:{number}")
                counts = f"this line has {len(cells)} columns, and the first has {len(first)}"
                raise UserError(f"{name}:{number}: {counts}{_hint(cells, source)}")
            yield Example(one_line(cells[src]), one_line(cells[tgt]), number)


def read_jsonl(
    source: JsonlFile, src_lang: str, tgt_lang: str, drops: Drops, *, escape: bool = False
) -> Iterator[Example]:
    """Yield the pairs of a file with a JSON object on each line; blank lines and ``escape`` as in :func:`read_table`.

    Raises:
        UserError: naming the line that is not JSON or lacks a text.
    """
    name = input_name(source.jsonl)
    rows = RowReader(Columns((source.src_key, source.tgt_key), (src_lang, tgt_lang), ("src_key", "tgt_key")))
    for number, line in enumerate(read_lines(source.jsonl, escape=escape), 1):
        if not line or line.isspace():
            drops.add(BLANK, number)
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            text = without_escapes(line)  # in other encodings, a byte of a character may be a backslash
            problem = "JSON by itself" if text == line else "UTF-8; convert the file first"
            raise UserError(f"{name}:{number}: this line is not {problem}: {text[:80]!r}") from None
        yield Example(*rows.pair(row, f"{name}:{number}"), number)


class RowReader:
    """Extracts pairs from rows that all have the keys of the first."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._keys: list[str] = []

    def pair(self, row: Any, where: str) -> SentencePair:
        """Extract a pair from a row, where it may be under ``translation``, as in translation data sets of the hub."""
        try:
            return self._pair(row)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None

    def _pair(self, row: Any) -> SentencePair:
        if isinstance(row, dict) and isinstance(row.get("translation"), dict):
            row = row["translation"]
        if not isinstance(row, dict):
            src_lang, tgt_lang = self._columns.languages
            raise UserError(f"this is not an object with the keys {src_lang!r} and {tgt_lang!r}")
        if not self._keys:
            self._keys = [self._key(row, side) for side in (0, 1)]
            if len(set(self._keys)) == 1:
                raise UserError(f"source and target are both under {self._keys[0]!r}; {_listing_of_keys(row)}")
        return SentencePair(*(self._text(row, side) for side in (0, 1)))

    def _key(self, row: dict[str, Any], side: int) -> str:
        """Return the key of one side; if no key names it, the code of the language, which is then reported."""
        names = [name for name, value in row.items() if isinstance(value, str)]
        given = self._columns.given[side]
        if given is not None:
            return given
        place = self._columns.named(names, side)
        return self._columns.languages[side] if place is None else names[place]

    def _text(self, row: dict[str, Any], side: int) -> str:
        key = self._keys[side]
        if key not in row:
            setting = self._columns.settings[side]
            raise UserError(f"there is no text under {key!r}; {_listing_of_keys(row)}; set {setting}")
        text = row[key]
        if not isinstance(text, str):
            raise UserError(f"the value under {key!r} is {json.dumps(text, default=str)[:80]}, not text")
        if not is_utf8(text):
            raise UserError(f"the text under {key!r} contains half a character (a lone surrogate)")
        return one_line(text)


def _listing_of_keys(row: dict[str, Any]) -> str:
    return f"the keys are: {', '.join(map(str, row)) or 'none'}"


def _rows_with_text(source: TsvFile | CsvFile, drops: Drops, escape: bool) -> Iterator[Row]:
    if isinstance(source, CsvFile):
        rows = _quoted(read_lines(source.csv, escape=escape), input_name(source.csv), source.delimiter)
    elif source.quotes:
        rows = _quoted(read_lines(source.tsv, escape=escape), input_name(source.tsv), "\t")
    else:
        rows = ((number, line.split("\t")) for number, line in enumerate(read_lines(source.tsv, escape=escape), 1))
    for line, cells in rows:
        if any(cell and not cell.isspace() for cell in cells):
            yield line, cells
        else:
            drops.add(BLANK, line)


def _quoted(lines: Iterator[str], name: str, delimiter: str) -> Iterator[Row]:
    head = list(islice(lines, 1))
    for_excel = re.fullmatch('"?sep=([^"])"?', "".join(head))
    delimiter = for_excel[1] if for_excel else delimiter
    reader = csv.reader((line + "\n" for line in chain(head, lines)), delimiter=delimiter, strict=True)
    if for_excel:
        next(reader)
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
            raise UserError(f"{name}:{first}: this row cannot be read: {reason}") from None
        yield first, cells


def _listing(row: Sequence[str], has_header: bool) -> str:
    columns = ", ".join(f"{number} {cell.strip()[:30]!r}" for number, cell in enumerate(row, 1))
    return f"the columns are {columns}" if has_header else f"the first row is {columns}"


def _require_two(cells: list[str], source: TsvFile | CsvFile, where: str) -> None:
    if len(cells) < 2:
        separator = "tab" if isinstance(source, TsvFile) else repr(source.delimiter)
        raise UserError(f"{where}: this line has no {separator}: {cells[0][:80]!r}{_hint(cells, source)}")


def _hint(cells: list[str], source: TsvFile | CsvFile) -> str:
    """Return advice on a row with another number of columns."""
    if isinstance(source, CsvFile):
        if sign := next((sign for sign in ";|" if len(cells) == 1 and sign in cells[0]), ""):
            named = shlex.quote(f"csv:{input_name(source.csv)},delimiter:{sign}")
            return f'; if {sign!r} separates the columns, set delimiter: "{sign}", as in {named} on the command line'
        return "; set delimiter, or put quotes around text that contains it"
    is_quoted = not source.quotes and any(cell.startswith('"') for cell in cells)
    return "; set quotes: true if the fields are quoted" if is_quoted else ""
