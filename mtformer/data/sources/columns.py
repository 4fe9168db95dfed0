"""Which columns of a table, or keys of an object, contain the two texts."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from mtformer.support.errors import UserError
from mtformer.text.languages import EXACT, VARIANT, is_language, matches_language
from mtformer.text.pairs import ROLES, core_name, is_column_name, is_other_name


class Wanted(NamedTuple):
    """What is known of the columns before the table is.

    Attributes:
        given: the columns of source and target that the user names, by name or number; None if left open.
        languages: the source and the target language.
    """

    given: tuple[str | None, str | None]
    languages: tuple[str, str]


class Layout(NamedTuple):
    """How to read a table: the positions of source and target, from 0, and whether the first row is a header."""

    src: int
    tgt: int
    has_header: bool


def find_layout(rows: Sequence[Sequence[str]], wanted: Wanted, header: bool | str) -> Layout:
    """Choose the columns by the first rows of a table.

    Args:
        rows: the cells of the first row, and of the second if there is one.
        wanted: what to look for.
        header: whether the first row is a header; ``auto`` if it has to be decided.

    Raises:
        UserError: the columns do not exist or cannot be told; the message lists those that there are.
    """
    row = _without_empty_end(rows[0])
    has_header = _is_header(row, rows[1:], wanted) if header == "auto" else bool(header)
    found = [_given(row, column, has_header) for column in wanted.given]
    if has_header:
        found = [_named(row, wanted, side) if column is None else column for side, column in enumerate(found)]
    found = _rest_of_two(row, found, has_header)
    if None in found:
        raise UserError(_open_message(row, wanted, found, has_header))
    src, tgt = found
    assert src is not None
    assert tgt is not None
    if src == tgt:
        raise UserError(f"source and target are both column {src + 1}; {_listing(row, has_header)}")
    return Layout(src, tgt, has_header)


def find_key(names: Sequence[str], wanted: Wanted, side: int) -> str:
    """Return the key of one side among ``names``, or the code of the language if no key names it.

    Raises:
        UserError: several keys name it.
    """
    given = wanted.given[side]
    if given is not None:
        return given
    place = _named(names, wanted, side)
    return wanted.languages[side] if place is None else names[place]


def _is_header(row: Sequence[str], below: Sequence[Sequence[str]], wanted: Wanted) -> bool:
    """Decide whether the first row names columns instead of containing a pair."""
    if any(given is not None and not given.isdecimal() for given in wanted.given):
        return True
    if all(any(_match(cell, wanted, side) for cell in row) for side in (0, 1)):
        return True
    # Names of other columns and languages: a header as well, which lacks what is wanted.
    if len(row) > 1 and all(is_column_name(cell) for cell in row) and any(is_language(core_name(cell)) for cell in row):
        return True
    others = [place for place in range(len(row)) if str(place + 1) not in wanted.given]
    # A header without the names that are needed is an error; if none are needed, it must not be taken for one lightly.
    is_name = _is_word if None in wanted.given else is_other_name
    return len(row) > 2 and any(
        place < len(cells) and _is_number(cells[place]) and is_name(row[place]) for cells in below for place in others
    )


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _is_word(cell: str) -> bool:
    return bool(cell.strip()) and not _is_number(cell)


def _given(row: Sequence[str], column: str | None, has_header: bool) -> int | None:
    """Return the position of a column that the user names."""
    if column is None:
        return None
    cells = [cell.strip() for cell in row]
    if has_header and column in cells:
        return cells.index(column)
    if column.isdecimal() and 1 <= int(column) <= len(row):
        return int(column) - 1
    what = f"number {column}" if column.isdecimal() else repr(column)
    raise UserError(f"there is no column {what}; {_listing(row, has_header)}")


def _named(row: Sequence[str], wanted: Wanted, side: int) -> int | None:
    """Return the position of the name that fits one side best; None if none does."""
    matches = [_match(name, wanted, side) for name in row]
    best = max(matches, default=0)
    places = [place for place, match in enumerate(matches) if match == best]
    if not best:
        return None
    if len(places) > 1:
        shown = " or ".join(repr(row[place]) for place in places)
        raise UserError(f"the column of the {_side(side)} may be {shown}: set {_key(side)}")
    return places[0]


def _match(name: str, wanted: Wanted, side: int) -> int:
    """Tell how well a name fits a side: as its language (2 and 3), or as ``source`` or ``target`` (1)."""
    if match := matches_language(core_name(name), wanted.languages[side]):
        exact = match == EXACT and matches_language(name, wanted.languages[side]) == EXACT
        return EXACT + 1 if exact else VARIANT + 1
    return int(core_name(name) in ROLES[side])


def _rest_of_two(row: Sequence[str], found: Sequence[int | None], has_header: bool) -> list[int | None]:
    """Fill in what is left of two columns, unless the header says that it is in another language."""
    if len(row) != 2 or None not in found:
        return list(found)
    known = [column for column in found if column is not None]
    rest = [place for place in (0, 1) if place not in known]
    if has_header and any(is_language(core_name(row[place])) for place in rest):
        return list(found)
    return [rest.pop(0) if column is None else column for column in found]


def _open_message(row: Sequence[str], wanted: Wanted, found: Sequence[int | None], has_header: bool) -> str:
    sides = [side for side in (0, 1) if found[side] is None]
    keys = " and ".join(_key(side) for side in sides)
    if has_header:
        texts = " and ".join(f"the {_side(side)} ({wanted.languages[side]})" for side in sides)
        problem = f"the header does not name {texts}; {_listing(row, has_header)}"
        return f"{problem}: set {keys}; if the first row is a pair, set header: false"
    return f"it is not clear which columns contain the texts; {_listing(row, has_header)}: set {keys}"


def _listing(row: Sequence[str], has_header: bool) -> str:
    columns = ", ".join(f"{number} {cell.strip()[:30]!r}" for number, cell in enumerate(row, 1))
    return f"the columns are {columns}" if has_header else f"the first row is {columns}"


def _side(side: int) -> str:
    return ("source", "target")[side]


def _key(side: int) -> str:
    return ("src_column", "tgt_column")[side]


def _without_empty_end(row: Sequence[str]) -> Sequence[str]:
    n = len(row)
    while n > 2 and not row[n - 1].strip():
        n -= 1
    return row[:n]
