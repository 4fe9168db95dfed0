"""Rows with named columns: JSON objects, and the rows of data sets."""

import json
from collections.abc import Iterator
from typing import Any

from mtformer.config import JsonlFile
from mtformer.data.drops import BLANK, Drops
from mtformer.data.sources.columns import Wanted, find_key
from mtformer.support.errors import UserError
from mtformer.text.lines import input_name, is_utf8, read_lines
from mtformer.text.pairs import Example, SentencePair, one_line


def read_jsonl(source: JsonlFile, src_lang: str, tgt_lang: str, drops: Drops) -> Iterator[Example]:
    """Yield the pairs of a file with a JSON object on each line; blank lines are skipped and counted in ``drops``.

    Raises:
        UserError: naming the line that is not JSON or lacks a text.
    """
    name = input_name(source.jsonl)
    rows = RowReader(Wanted((source.src_key, source.tgt_key), (src_lang, tgt_lang)))
    for number, line in enumerate(read_lines(source.jsonl), 1):
        if not line or line.isspace():
            drops.add(BLANK, number)
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise UserError(f"{name}:{number}: this line is not JSON: {line[:80]!r}") from None
        yield Example(*rows.pair(row, f"{name}:{number}"), number)


class RowReader:
    """Extracts pairs from rows that all have the keys of the first."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._keys: tuple[str, str] | None = None

    def pair(self, row: Any, where: str) -> SentencePair:
        """Extract a pair from a row, where it may be under ``translation``, as in translation data sets of the hub."""
        if isinstance(row, dict) and isinstance(row.get("translation"), dict):
            row = row["translation"]
        if not isinstance(row, dict):
            src_lang, tgt_lang = self._wanted.languages
            raise UserError(f"{where}: this is not an object with the keys {src_lang!r} and {tgt_lang!r}")
        if self._keys is None:
            self._keys = self._find(row, where)
        src, tgt = (_text(row, key, where) for key in self._keys)
        return SentencePair(src, tgt)

    def _find(self, row: dict[str, Any], where: str) -> tuple[str, str]:
        names = [name for name, value in row.items() if isinstance(value, str)]
        try:
            return find_key(names, self._wanted, 0), find_key(names, self._wanted, 1)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None


def _text(row: dict[str, Any], key: str, where: str) -> str:
    text = row.get(key)
    if key in row and text is None:
        raise UserError(f"{where}: the value under {key!r} is null, not text")
    if not isinstance(text, str):
        found = ", ".join(map(str, row)) or "none"
        raise UserError(f"{where}: there is no text under {key!r}; the keys are: {found}")
    if not is_utf8(text):
        raise UserError(f"{where}: the text under {key!r} contains half a character (a lone surrogate)")
    return one_line(text)
