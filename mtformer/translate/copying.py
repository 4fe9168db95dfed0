"""Copying: what the model cannot translate is passed through."""

import unicodedata
from collections.abc import Callable

from mtformer.text.tokenizer.tokenizer import on_one_line
from mtformer.translate.plan import Prepared
from mtformer.translate.translation import FLAG, Translation

_JOINERS = "\u200d\ufe0e\ufe0f"  # zero-width joiner and variation selectors: parts of emoji


class CopyUnknown:
    """Copies texts without letters, and texts of which the model knows no letter."""

    def __init__(self, can_write: Callable[[str], bool], *, is_noted: bool = False) -> None:
        """Decide what to copy.

        Args:
            can_write: tells whether the model knows a form of a character.
            is_noted: whether unknown letters are noted elsewhere.
        """
        self._can_write = can_write
        self._is_noted = is_noted

    def __call__(self, text: str) -> Prepared | None:
        """Prepare texts that need no model; the empty text is one of the model's own."""
        letters = filter(str.isalpha, text)
        first = next(letters, None)
        if not text.strip() or (first and (self._can_write(first) or any(map(self._can_write, letters)))):
            return None
        notes = (f"{FLAG}not translated: the model knows none of its letters",) if first and not self._is_noted else ()
        copy = Translation(on_one_line(text), 0.0, 0.0, notes=notes)
        return Prepared((), lambda _parts: copy)


def is_symbol(character: str) -> bool:
    """Tell whether a character is an emoji, another symbol, or a part of an emoji."""
    return character in _JOINERS or unicodedata.category(character) in ("So", "Sk")
