"""Numbers in texts, and which of them a translation lacks."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

_POINT = "·"  # between the parts of a value, whatever the text has there
SEPARATORS = frozenset(".,'’")  # of thousands and decimals, which differ between languages
_LARGEST_SPELLED_OUT = 12  # numbers up to it may become words
_NUMBER = re.compile(r"\d+(?:[.,:'’]\d+)*")
_SPACED = re.compile(r"(?<![\d.,])\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?![\d.,])")  # thousands, or several numbers
_DIGITS = re.compile(r"\d+")


class Number(NamedTuple):
    """A number in a text.

    Attributes:
        start: where it starts, in characters.
        text: as it is written.
        value: what is the same for 3,500 and 3.500, for 10:45 and 10.45, and for digits of all scripts.
    """

    start: int
    text: str
    value: str

    @property
    def may_be_a_word(self) -> bool:
        """Whether a translation may spell it out: a small integer."""
        return len(self.value) <= len(str(_LARGEST_SPELLED_OUT)) and int(self.value) <= _LARGEST_SPELLED_OUT

    @property
    def end(self) -> int:
        """Where it ends, in characters."""
        return self.start + len(self.text)


def find_numbers(text: str) -> Iterator[Number]:
    """Yield the numbers of a text in order; day, month and year of a date are three."""
    for found in _NUMBER.finditer(text):
        parts = [(part.start(), part[0]) for part in _DIGITS.finditer(text, *found.span())]
        if len(parts) == 3 and sorted(len(digits) for _, digits in parts)[1:] in ([1, 4], [2, 4]):
            yield from (Number(start, digits, _ascii(digits)) for start, digits in parts)
        else:
            yield Number(found.start(), found[0], _value([_ascii(digits) for _, digits in parts]))


def _value(parts: list[str]) -> str:
    """Join thousands; other parts, such as hours and minutes, stay apart."""
    whole, *rest = parts
    while rest and len(rest[0]) == 3:
        whole += rest.pop(0)
    return _POINT.join([whole, *rest])


def _ascii(digits: str) -> str:
    return digits if digits.isascii() else "".join(str(unicodedata.digit(digit)) for digit in digits)


def numbers_to_keep(text: str) -> list[str]:
    """Return the numbers of a text that a translation must have, as they are written: those that are no words."""
    return [number.text for number in find_numbers(text) if not number.may_be_a_word]


def lost_numbers(source: str, translation: str) -> list[str]:
    """Return the numbers of ``source`` that ``translation`` lacks, unless it may spell them out."""
    return [number.text for number in _lost(source, translation)]


def with_right_numbers(source: str, translation: str) -> str | None:
    """Replace numbers that are not in ``source`` by those of it that ``translation`` lacks.

    Returns:
        None if there is nothing to replace, or if what is lost and what is wrong differ in how many there are, or in
        how many parts they have: then a number may stand for something else.
    """
    lost = _lost(source, translation)
    wrong = _missing_in(source, translation) if lost else []
    if not lost or [_n_parts(number) for number in lost] != [_n_parts(number) for number in wrong]:
        return None
    for right, number in reversed(list(zip(lost, wrong, strict=True))):
        translation = translation[: number.start] + right.text + translation[number.end :]
    return translation


def _lost(source: str, translation: str) -> list[Number]:
    return [number for number in _missing_in(translation, source) if not number.may_be_a_word]


def _missing_in(other: str, text: str) -> list[Number]:
    """Return the numbers of ``text`` that ``other`` does not have; the first of those that it has, but not as often."""
    numbers = list(find_numbers(text))
    if not numbers:
        return []
    there = Counter(number.value for number in find_numbers(other))
    there.update(_value(_DIGITS.findall(found[0])) for found in _SPACED.finditer(other))
    for found in _SPACED.finditer(text):
        value = _value(_DIGITS.findall(found[0]))
        if there[value]:  # else it is several numbers
            there[value] -= 1
            numbers = [number for number in numbers if not found.start() <= number.start < found.end()]
    missing = []
    for number in reversed(numbers):
        if there[number.value]:
            there[number.value] -= 1
        else:
            missing.append(number)
    return missing[::-1]


def _n_parts(number: Number) -> int:
    return number.value.count(_POINT)
