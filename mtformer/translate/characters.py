"""Characters: those that the tokenizer has no token for are replaced by forms that it knows."""

import re
import unicodedata
from dataclasses import replace

from mtformer.text.tokenizer.tokenizer import on_one_line
from mtformer.translate.copying import is_symbol
from mtformer.translate.plan import Prepared
from mtformer.translate.translation import FLAG

# What looks or means the same, for what Unicode's compatibility mapping (NFKC) leaves as it is.
_ALIKE = {
    character: form
    for form, characters in {
        "'": "‘’‚‛′ʼ`´",
        '"': "“”„‟″«»",
        "-": "‐‑‒–—―−",
        "...": "…",
        "/": "⁄",
        "ß": "ẞ",
        "ss": "ß",
        ",": "，、",
        ".": "。",
        "，": ",",
        "。": ".",
        "？": "?",
        "！": "!",
    }.items()
    for character in characters
}


_ESCAPE = re.compile("\x1b\\[[0-9;]*[A-Za-z]")  # colours of a terminal


class KnownCharacters:
    """Replaces characters that the model does not know: ligatures, full-width forms, curly quotes, accents.

    A character without a token is replaced by the first form of which every character has one: Unicode's
    compatibility mapping (NFKC), what looks the same, the letter without its accents. Invisible characters are dropped,
    except inside an emoji. Where there is no such form, the character stays, with a note.
    """

    def __init__(self, known: frozenset[str] | None, *, composes: bool = True) -> None:
        """Take the characters that the model has tokens for, None for all.

        Args:
            known: the characters.
            composes: whether the tokenizer composes letters with their accents (NFC). If not, they may stand apart.
        """
        self._known, self._composes = known, composes

    def __call__(self, text: str) -> Prepared | None:
        """Prepare texts with unknown characters."""
        if self._knows(text):
            return None
        composed = unicodedata.normalize("NFC", on_one_line(_ESCAPE.sub("", text)))
        known = "".join(map(self._form, " " + composed, composed))
        unknown = dict.fromkeys(c for c in known if c.isalpha() and not self.can_write(c))
        if known == text and not unknown:
            return None
        notes = (f"{FLAG}unknown characters: {''.join(unknown)}",) if unknown else ()
        return Prepared([known], lambda parts: replace(parts[0], notes=(*parts[0].notes, *notes)))

    def can_write(self, character: str) -> bool:
        """Tell whether the model knows a form of a character, or its small letter."""
        return self._knows(self._form(" ", character)) or self._knows(character.lower())

    def _knows(self, text: str) -> bool:
        if self._known is None:
            return not any(unicodedata.category(character) == "Cc" for character in text)
        return self._known.issuperset(text)

    def _form(self, before: str, character: str) -> str:
        """Return the known form of a character that follows ``before``."""
        if self._knows(character):
            return character
        if is_symbol(character) and is_symbol(before):  # a joiner in an emoji
            return character
        if character.isspace():
            return " "
        category = unicodedata.category(character)
        if category in ("Cf", "Cc") or (category in ("Mn", "Me") and self._knows(before)):
            return ""
        compatible = unicodedata.normalize("NFKC", character)
        bare = "".join(c for c in unicodedata.normalize("NFKD", character) if not unicodedata.combining(c))
        alike = "".join(_ALIKE.get(c, c) for c in compatible)
        apart = "" if self._composes else unicodedata.normalize("NFD", character)
        for form in (apart, compatible, alike, bare):
            if form and self._knows(form):
                return form
        return character
