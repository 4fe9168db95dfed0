"""Translation memories in TMX (https://www.gala-global.org/tmx-14b)."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from mtformer.support.errors import UserError
from mtformer.support.terminal import counted
from mtformer.text.languages import matches_language
from mtformer.text.lines import input_name, open_input
from mtformer.text.pairs import Drops, Example

_CHUNK = 1 << 16  # bytes parsed at once
_NATIVE_CODE = ("bpt", "ept", "ph", "it", "ut")  # elements with markup of the original document; <hi> contains text


class _Variant(NamedTuple):
    language: str
    text: str


class _Unit(NamedTuple):
    line: int
    variants: list[_Variant]


def read_tmx(path: Path, src_lang: str, tgt_lang: str, drops: Drops) -> Iterator[Example]:
    """Yield the pairs of a translation memory as it is parsed; units without both languages are counted in ``drops``.

    Raises:
        UserError: it is not TMX, or not one unit has both languages; the message names those that there are.
    """
    languages: Counter[str] = Counter()
    n_pairs = 0
    for unit in _units(path):
        languages.update(variant.language for variant in unit.variants)
        src, tgt = (_matching(unit.variants, language) for language in (src_lang, tgt_lang))
        pairs = ((match + other, a.text, b.text) for (match, a), (other, b) in product(src, tgt) if a is not b)
        if best := max(pairs, key=itemgetter(0), default=None):  # of equals, the first
            n_pairs += 1
            yield Example(best[1], best[2], unit.line)
        else:
            drops.add(f"without {tgt_lang if src else src_lang}", unit.line)
    if languages and not n_pairs:
        listed = ", ".join(
            f"{language or 'none'} ({counted(count, 'segment')})" for language, count in languages.most_common(20)
        )
        raise UserError(f"{input_name(path)}: no unit has both {src_lang} and {tgt_lang}; the languages are: {listed}")


def _matching(variants: list[_Variant], language: str) -> list[tuple[int, _Variant]]:
    """Return the variants in a language, each with how well it matches."""
    ranked = ((matches_language(variant.language, language), variant) for variant in variants)
    return [(match, variant) for match, variant in ranked if match]


def _units(path: Path) -> Iterator[_Unit]:
    name = input_name(path)
    handler = _Handler(name)
    with open_input(path) as file:
        try:
            while chunk := file.read(_CHUNK):
                handler.parser.Parse(chunk, False)
                yield from handler.take()
            handler.parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise UserError(f"{name}:{error.lineno}: this is not valid XML: {expat.ErrorString(error.code)}") from None
        except (LookupError, ValueError):  # Python gives expat only encodings of one byte a character
            raise UserError(
                f"{name}: the encoding that its first line names cannot be read: convert it to UTF-8, that line too"
            ) from None
    yield from handler.take()


class _Handler:
    """Collects the units of a memory while expat parses it; only the current unit is kept in memory.

    Entities that the file declares are refused: a few of them can stand for gigabytes of text ("billion laughs").
    """

    def __init__(self, name: str) -> None:
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._entity
        self.parser.SkippedEntityHandler = self._undeclared
        self.parser.buffer_text = True
        self._name = name
        self._root = ""
        self._done: list[_Unit] = []
        self._open: _Unit | None = None
        self._language = ""
        self._text: list[str] | None = None  # of the segment that is open
        self._depth = 0  # of native code in it

    def take(self) -> list[_Unit]:
        """Return the units that have been completed since the last call."""
        done, self._done = self._done, []
        return done

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        if not self._root:
            self._root = element
            if element != "tmx":
                raise UserError(f"{self._name}: this is not TMX: its root element is <{element}>")
        if element == "tu":
            self._open = _Unit(self.parser.CurrentLineNumber, [])
        elif element == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang", "")
        elif element == "seg":
            self._text, self._depth = [], 0
        elif element in _NATIVE_CODE:
            self._depth += 1

    def _end(self, element: str) -> None:
        if element == "tu" and self._open is not None:
            self._done.append(self._open)
            self._open = None
        elif element == "seg" and self._text is not None:
            text = re.sub(r"[ \t\r\n]+", " ", "".join(self._text)).strip(" ")
            if self._open is not None:
                self._open.variants.append(_Variant(self._language, text))
            self._text = None
        elif element in _NATIVE_CODE:
            self._depth -= 1

    def _characters(self, text: str) -> None:
        if self._text is not None and not self._depth:
            self._text.append(text)

    def _entity(self, name: str, *_: object) -> None:
        line = self.parser.CurrentLineNumber
        raise UserError(f"{self._name}:{line}: this file declares the entity {name!r}, which is refused: remove it")

    def _undeclared(self, name: str, *_: object) -> None:
        """Refuse an entity in a text that a DTD, which is not read, may declare: the text would lack it."""
        if self._text is not None and not self._depth:
            line = self.parser.CurrentLineNumber
            raise UserError(
                f"{self._name}:{line}: this file does not declare the entity {name!r}: replace it with its character"
            )
