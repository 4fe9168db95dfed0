"""Texts in capitals, which models know less well."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from mtformer.text.codes import outside_codes
from mtformer.text.languages import base_language
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.words import FIRST_LETTER
from mtformer.translate.replacement import Replacement
from mtformer.translate.translation import Translation

# Without digits, as those of WH660; the U.S. are one.
_WORD = re.compile(r"(?:[^\W\d_]\.){2,}|(?<![^\W_])[^\W\d_]+(?:['’][^\W\d_]+)*(?![^\W_])")
_MOSTLY = 0.8  # the share of capitals in ALL CAPS: a word of several may be an iPhone
_FEWEST_TITLE_WORDS = 3
_FEWEST_LETTERS_A_TOKEN = 2.5  # of a word that the model knows, unlike an acronym in small letters
_LONGEST_SMALL_WORD = 3  # letters: titles leave longer words capitalized; a German sentence of nouns has others
_TWINS = 0.01  # the share of words in both forms in a vocabulary of sentences that start with a capital


class Casing:
    """Translates texts in ALL CAPS and in Title Case, and WORDS in capitals, as if they were written as usual.

    Each word is written as the tokenizer knows it best: in the casing that takes the fewest tokens, of equal ones in
    small letters. So names, acronyms and German nouns keep their capitals. Codes and names of files stay as they are.
    """

    def __init__(self, tokenizer: Tokenizer, src_lang: str) -> None:
        """Take the tokenizer that the model was trained with, and the language of the texts."""
        self._tokenizer = tokenizer
        self._n_tokens = tokenizer.n_src_tokens
        self._language = base_language(src_lang)

    def __call__(self, text: str) -> Replacement | None:
        """Prepare texts with words in ALL CAPS, unless that takes more tokens, and others if it takes fewer."""
        if sum(map(str.isupper, text)) < 2:
            return None
        restore = self._restore(text)
        usual = self._true_cased(text, restore)
        # A model trained with data.augment has tokens for capitals, yet knows the usual ones better.
        fewest_saved = 0 if restore is str.upper else 1
        if usual == text or self._n_tokens(text) - self._n_tokens(usual) < fewest_saved:
            return None
        given = dict(zip(_WORD.findall(usual), _WORD.findall(text), strict=False))

        def restored(parts: Sequence[Translation]) -> Translation:
            notes = tuple(_with_words(note, given) for note in parts[0].notes)
            text = outside_codes(restore, parts[0].text) if restore else parts[0].text
            return replace(parts[0], text=text, notes=notes)

        return Replacement([usual], restored)

    def _restore(self, text: str) -> Callable[[str], str] | None:
        """Return the function that gives a translation the capitals of ``text``; None if it has the usual ones."""
        n_upper = sum(map(str.isupper, text))
        if n_upper >= (_MOSTLY if " " in text else 1) * (n_upper + sum(map(str.islower, text))):
            return str.upper
        words = [word for word in _WORD.findall(text) if word.islower() or word[1:].islower()]  # no acronyms
        if len(words) < _FEWEST_TITLE_WORDS:
            return None
        long = [word for word in words if self._language == "de" or len(word) > _LONGEST_SMALL_WORD]
        capitalized = [word for word in words[1:] if word[0].isupper()]
        if not all(word[0].isupper() for word in long) or 2 * len(capitalized) < len(words) - 1:
            return None
        n_small = sum(self._n_tokens(word.lower()) == 1 for word in capitalized)  # words that are not names
        return _title_cased if 2 * n_small >= len(capitalized) else None

    def _true_cased(self, text: str, restore: Callable[[str], str] | None) -> str:
        """Write a text whose capitals ``restore`` makes as the model reads it, and start it as it knows sentences."""

        def usual_form(word: re.Match[str]) -> str:
            is_titled = len(word[0]) == 1 or word[0][1:].islower()
            is_usual = restore is str.upper or (restore is _title_cased and is_titled)
            return self._usual(word[0]) if is_usual else self._undone(word[0])

        usual = outside_codes(lambda part: _WORD.sub(usual_form, part), text)
        first = FIRST_LETTER.search(usual) if usual != text and self._starts_with_capital else None
        return usual if first is None else usual[: first.end()].upper() + usual[first.end() :]

    @cached_property
    def _starts_with_capital(self) -> bool:
        """Whether sentences start with a capital, so that the vocabulary has words in both forms."""
        vocabulary = set(self._tokenizer.src_tokens(range(self._tokenizer.src_vocab_size)))
        words = [token[1:] for token in vocabulary if token[:1] == "▁" and token[1:].isalpha()]
        n_twins = sum(word[0].isupper() and f"▁{word.lower()}" in vocabulary for word in words)
        return n_twins > _TWINS * len(words)

    def _undone(self, word: str) -> str:
        """Return a word in capitals in its usual casing if the model knows it so; others, such as US, as they are."""
        if len(word) < 3 or not word.isupper():
            return word
        usual = self._usual(word)
        n_tokens = self._n_tokens(usual)
        is_known = n_tokens < self._n_tokens(word) and len(word) >= _FEWEST_LETTERS_A_TOKEN * n_tokens
        return usual if is_known else word

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


def _with_words(note: str, given: Mapping[str, str]) -> str:
    """Write the words that a note names, as in "check: names lost: Uuid", as they are ``given``."""
    flag, *problem = note.split(": ", 2)
    if len(problem) < 2:
        return note
    return f"{flag}: {problem[0]}: {_WORD.sub(lambda word: given.get(word[0], word[0]), problem[1])}"


def _title_cased(text: str) -> str:
    return FIRST_LETTER.sub(lambda match: match[0].upper(), text)
