"""Copying: what the model cannot translate is passed through."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace

from mtformer.pipeline.preparation import Prepared
from mtformer.pipeline.translation import FLAG, Translation
from mtformer.text.tokenizer import on_one_line

_JOINERS = "\u200d\ufe0e\ufe0f"  # zero-width joiner and variation selectors: parts of emoji
_CLOSING = ".!?,;:。！？，；："


class CopyUnknown:
    """Copies texts without letters, and texts of which the model knows no letter."""

    def __init__(self, can_write: Callable[[str], bool]) -> None:
        """Take what tells whether the model knows a form of a character."""
        self._can_write = can_write

    def __call__(self, text: str) -> Prepared | None:
        """Prepare texts that need no model; the empty text is one of the model's own."""
        letters = filter(str.isalpha, text)
        first = next(letters, None)
        if not text.strip() or (first and (self._can_write(first) or any(map(self._can_write, letters)))):
            return None
        notes = (f"{FLAG}not translated: the model knows none of its letters",) if first else ()
        copy = Translation(on_one_line(text), 0.0, 0.0, notes=notes)
        return Prepared((), lambda _parts: copy)


class KeepEdges:
    """Takes emoji and other symbols that the model does not know from the start and the end, and puts them back.

    A full stop after a symbol ends the text that the model translates, and stays after the symbol.
    """

    def __init__(self, known: frozenset[str]) -> None:
        """Take the characters that the model has tokens for."""
        self._known = known

    def __call__(self, text: str) -> Prepared | None:
        """Prepare texts that start or end with an unknown symbol."""
        if text.isascii():
            return None
        stripped = text.rstrip(_CLOSING)
        mark = text[len(stripped) :]
        start, end = self._length_of_edge(stripped), len(stripped) - self._length_of_edge(stripped[::-1])
        if start >= end or (start == 0 and end == len(stripped)):
            return None
        first, last = text[:start], text[end : len(stripped)]
        if not last:
            return Prepared([text[start:]], lambda parts: replace(parts[0], text=first + parts[0].text))
        if not mark:
            return Prepared([text[start:end]], lambda parts: replace(parts[0], text=first + parts[0].text + last))

        def restore(parts: Sequence[Translation]) -> Translation:
            body = parts[0].text.rstrip(_CLOSING)
            return replace(parts[0], text=first + body + last + (parts[0].text[len(body) :] or mark))

        return Prepared([text[start:end] + mark], restore)

    def _length_of_edge(self, text: str) -> int:
        """Return the length of the longest start, with the spaces after it, that consists of symbols and spaces."""
        length = 0
        for place, character in enumerate(text):
            if self._is_symbol(character):
                length = place + 1
            elif not character.isspace():
                break
        rest = text[length:]
        return length + len(rest) - len(rest.lstrip()) if length else 0

    def _is_symbol(self, character: str) -> bool:
        return is_symbol(character) and character not in self._known


def is_symbol(character: str) -> bool:
    """Tell whether a character is an emoji, another symbol, or a part of an emoji."""
    return character in _JOINERS or unicodedata.category(character) in ("So", "Sk")
