"""Where a phrase stands in a text as whole words."""

import re
import unicodedata
from collections.abc import Callable

from mtformer.text.languages import is_written_with_spaces

WordRule = Callable[[str], bool]


def word_rule(language: str) -> WordRule:
    """Return what tells whether a character is part of a word, so that a phrase must not begin or end beside it.

    Where no spaces separate words, only ASCII letters and digits are: a Chinese phrase may stand between any others.
    """
    return _is_word_character if is_written_with_spaces(language) else _is_ascii_word_character


def find_words(text: str, phrase: str, is_word: WordRule) -> list[int]:
    """Return where ``phrase`` stands in ``text`` as whole words, from left to right."""
    places = (found.start() for found in re.finditer(f"(?={re.escape(phrase)})", text))
    return [start for start in places if stands_alone(text, start, start + len(phrase), is_word)]


def stands_alone(text: str, start: int, end: int, is_word: WordRule) -> bool:
    """Tell whether ``text[start:end]`` neither begins nor ends within a word."""
    begins_inside = start > 0 and is_word(text[start - 1]) and is_word(text[start])
    ends_inside = end < len(text) and is_word(text[end - 1]) and is_word(text[end])
    return not begins_inside and not ends_inside


def _is_word_character(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")


def _is_ascii_word_character(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")
