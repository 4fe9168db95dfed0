"""Casing: ALL CAPS and Title Case are undone for the model, and redone in the translation.

Single words in capitals are undone as well, and their translations stay in small letters: they may be several words.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from mtformer.text.languages import base_language
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.translate.plan import Prepared

_WORD = re.compile(r"(?:[^\W\d_]\.){2,}|[^\W\d_]+(?:['’][^\W\d_]+)*")  # the U.S. are one
_FIRST_LETTER = re.compile(r"(?<!\S)[^\w\s]*[^\W\d_]")  # of a word, with the quotes and brackets before it
_MOSTLY = 0.8  # the share of capitals in ALL CAPS: a word of several may be an iPhone
_FEWEST_TITLE_WORDS = 3
_LONGEST_SMALL_WORD = 3  # letters: titles leave longer words capitalized
_TWINS = 0.01  # the share of words in both forms in a vocabulary of sentences that start with a capital


class Casing:
    """Translates texts in ALL CAPS and in Title Case, and WORDS in capitals, as if they were written as usual.

    Each word is written as the tokenizer knows it best: in the casing that takes the fewest tokens, of equal ones in
    small letters. So names, acronyms and German nouns keep their capitals.
    """

    def __init__(self, tokenizer: Tokenizer, src_lang: str) -> None:
        """Take the tokenizer that the model was trained with, and the language of the texts."""
        self._tokenizer = tokenizer
        self._n_tokens = tokenizer.n_src_tokens
        self._language = base_language(src_lang)

    def __call__(self, text: str) -> Prepared | None:
        """Prepare texts with words in ALL CAPS, unless that takes more tokens, and others if it takes fewer."""
        if sum(map(str.isupper, text)) < 2:
            return None
        restore = self._restore(text)
        usual = self._true_cased(text, self._undone if restore is None else self._usual)
        # A model trained with data.augment has tokens for capitals, yet knows the usual ones better.
        fewest_saved = 0 if restore is str.upper else 1
        if usual == text or self._n_tokens(text) - self._n_tokens(usual) < fewest_saved:
            return None
        if restore is None:
            return Prepared([usual], lambda parts: parts[0])
        return Prepared([usual], lambda parts: replace(parts[0], text=restore(parts[0].text)))

    def _restore(self, text: str) -> Callable[[str], str] | None:
        """Return what writes a translation like ``text``; None if that is written as usual."""
        n_upper = sum(map(str.isupper, text))
        if n_upper >= (_MOSTLY if " " in text else 1) * (n_upper + sum(map(str.islower, text))):
            return str.upper
        words = _WORD.findall(text)
        if len(words) < _FEWEST_TITLE_WORDS:
            return None
        long = [word for word in words if len(word) > _LONGEST_SMALL_WORD]
        capitalized = [word for word in words[1:] if word[0].isupper()]
        if not all(word[0].isupper() for word in long) or 2 * len(capitalized) < len(words) - 1:
            return None
        n_unusual = sum(self._usual(word) != word for word in capitalized)
        return _title_cased if 2 * n_unusual >= len(capitalized) else None

    def _true_cased(self, text: str, usual_form: Callable[[str], str]) -> str:
        """Write the words of ``text`` in their usual forms, and start it as the model knows sentences."""
        usual = _WORD.sub(lambda word: usual_form(word[0]), text)
        first = _FIRST_LETTER.search(usual) if usual != text and self._starts_with_capital else None
        return usual if first is None else usual[: first.end()].upper() + usual[first.end() :]

    @cached_property
    def _starts_with_capital(self) -> bool:
        """Whether sentences start with a capital, so that the vocabulary has words in both forms."""
        vocabulary = set(self._tokenizer.src_vocabulary())
        words = [token[1:] for token in vocabulary if token[:1] == "▁" and token[1:].isalpha()]
        n_twins = sum(word[0].isupper() and f"▁{word.lower()}" in vocabulary for word in words)
        return n_twins > _TWINS * len(words)

    def _undone(self, word: str) -> str:
        """Return a word in capitals in its usual casing if that takes fewer tokens; others as they are."""
        if len(word) < 2 or not word.isupper():
            return word
        usual = self._usual(word)
        return usual if self._n_tokens(usual) < self._n_tokens(word) else word

    def _usual(self, word: str) -> str:
        """Return a word in the casing that takes the fewest tokens; initials stay."""
        if word.islower() or "." in word:
            return word
        small = word.lower()
        capitalized = small[:1].upper() + small[1:]
        if self._language == "en" and re.fullmatch(r"i(['’].*)?", small):
            return capitalized  # the pronoun
        n_small, n_capitalized, n_given = map(self._n_tokens, (small, capitalized, word))
        is_noun = self._language == "de" and n_capitalized > 1  # likely, as rare words mostly are
        if n_given < min(n_small, n_capitalized):
            return word
        return capitalized if n_capitalized < n_small or (is_noun and n_capitalized == n_small) else small


def _title_cased(text: str) -> str:
    return _FIRST_LETTER.sub(lambda found: found[0].upper(), text)
