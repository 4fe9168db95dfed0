"""Replacements for characters that a model does not know: those that look or mean the same."""

import unicodedata
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

from mtformer.text.slots import places_for_slots
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.vocabulary import on_one_line
from mtformer.translate.replacement import Replacement
from mtformer.translate.translation import FLAG

Places = Callable[[str], Collection[int]]  # of characters in a text
_JOINERS = "\u200d\ufe0e\ufe0f"  # zero-width joiner and variation selectors: parts of emoji
_SOFT_HYPHEN = "\u00ad"  # which models may have a token for, but which tears words apart
# What looks or means the same, for what Unicode's compatibility mapping (NFKC) leaves as it is.
_ALIKE = {
    **dict.fromkeys("‘’‚‛′ʼ`´", "'"),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    **{"…": "...", "⁄": "/", "ẞ": "ß", "ß": "ss", "，": ",", "、": ",", "。": "."},
    **{",": "，", ".": "。", "?": "？", "!": "！"},
}


def is_symbol(character: str) -> bool:
    """Tell whether a character is an emoji, another symbol, or a part of an emoji."""
    return character in _JOINERS or unicodedata.category(character) in ("So", "Sk")


@dataclass(frozen=True)
class KnownCharacters:
    """Replaces characters that the model does not know: ligatures, full-width forms, curly quotes, accents.

    A character without a token is replaced by the first form of which every character has one: Unicode's
    compatibility mapping (NFKC), what looks the same, the letter without its accents. Invisible characters are dropped,
    except inside an emoji, and so are soft hyphens that the model knows. Where there is no such form, the character
    stays, with a note if it is a letter or a digit.

    Attributes:
        known: the characters that the model has tokens for; None for all.
        composes: whether the tokenizer composes letters with their accents (NFC). If not, they may stand apart.
        kept: returns the places in a text of what slots will stand for: it stays, and nothing is noted, since it is not
            known yet what the model reads.
    """

    known: frozenset[str] | None
    composes: bool = True
    kept: Places | None = None

    def __call__(self, text: str) -> Replacement | None:
        """Prepare texts with unknown characters."""
        if self._knows(text):
            return None
        composed = unicodedata.normalize("NFC", on_one_line(text))
        kept = self.kept(composed) if self.kept else ()
        forms = (c if i in kept else self._form(composed[i - 1 : i] or " ", c) for i, c in enumerate(composed))
        known = "".join(forms)
        unknown = dict.fromkeys(c for c in known if c.isalnum() and not self.can_write(c) and not self.kept)
        if known == text and not unknown:
            return None
        notes = (f"{FLAG}unknown characters: {''.join(unknown)}",) if unknown else ()
        return Replacement([known], lambda parts: parts[0].noted(*notes))

    def can_write(self, character: str) -> bool:
        """Tell whether the model knows a form of a character, or its small letter."""
        return self._knows(self._form(" ", character)) or self._knows(character.lower())

    def _knows(self, text: str) -> bool:
        if _SOFT_HYPHEN in text:
            return False
        if self.known is None:
            return not any(unicodedata.category(character) == "Cc" for character in text)
        return self.known.issuperset(text)

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
        if category == "No" and compatible.isdecimal() and not before.isalpha():
            return character  # 10⁶ is not 106
        bare = "".join(c for c in unicodedata.normalize("NFKD", character) if not unicodedata.combining(c))
        alike = "".join(_ALIKE.get(c, c) for c in compatible)
        apart = "" if self.composes else unicodedata.normalize("NFD", character)
        for form in (apart, compatible, alike, bare):
            if form and self._knows(form):
                return form
        return character


def known_characters(tokenizer: Tokenizer, language: str | None = None) -> KnownCharacters:
    """Return the preparation for unknown source characters; with a language, text for slots stays unchanged."""
    vocabulary, kept = tokenizer.src, None if language is None else places_of_slots(tokenizer, language)
    return KnownCharacters(vocabulary.characters, composes=vocabulary.form != "identity", kept=kept)


def places_of_slots(tokenizer: Tokenizer, language: str) -> Places | None:
    """Return a function that finds the places in a text that get slots; None without slots."""
    find = partial(places_for_slots, language=language, n_tokens=tokenizer.n_src_tokens)
    return find if tokenizer.has_slots else None
