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

# Numbers of Chinese and Japanese in 万 and 亿
_MYRIADS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_MULTIPLES = {"": 1, "十": 10, "百": 100, "千": 1000}  # of these: 千 alone is also a kilo, as in 千米
_SIGNS = "".join(_MYRIADS)
_MYRIAD = rf"(?:\d{{1,3}}(?:,\d{{3}}){{1,4}}|\d{{1,15}})(?:[.．]\d{{1,15}})?[十百千]?[{_SIGNS}]"
_END = rf"(?![.,．]?\d|[十百千{_SIGNS}])"
MYRIADS = rf"(?:{_MYRIAD})+(?:\d{{3,4}}|(?:\d千)?(?:\d百)?(?:\d十)?){_END}"
SHORT_MYRIADS = rf"\d{{1,2}}[{_SIGNS}]\d{_END}(?![-~～〜–、]\d)"  # 3万5, which is 35,000 in Chinese
UNCLEAR_MYRIADS = rf"\d[\d.,．十百千]{{0,20}}[{_SIGNS}][\d.,．十百千{_SIGNS}]*"  # tried after the others
_IN_MYRIADS = re.compile(rf"(?P<whole>[\d,]+)(?:\.(?P<decimals>\d+))?(?P<multiple>[十百千]?)(?P<myriad>[{_SIGNS}]?)")


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
    for match in _NUMBER.finditer(text):
        parts = [(part.start(), part[0]) for part in _DIGITS.finditer(text, *match.span())]
        if len(parts) == 3 and sorted(len(digits) for _, digits in parts)[1:] in ([1, 4], [2, 4]):
            yield from (Number(start, digits, _ascii(digits)) for start, digits in parts)
        else:
            yield Number(match.start(), match[0], _value([_ascii(digits) for _, digits in parts]))


def _value(parts: list[str]) -> str:
    """Join thousands; other parts, such as hours and minutes, stay apart."""
    whole, *following = parts
    while following and len(following[0]) == 3:
        whole += following.pop(0)
    return _POINT.join([whole, *following])


def _ascii(digits: str) -> str:
    return digits if digits.isascii() else "".join(str(unicodedata.digit(digit)) for digit in digits)


def numbers_to_keep(text: str) -> list[str]:
    """Return the numbers of a text that a translation must have, as they are written: those that are no words."""
    return [number.text for number in find_numbers(text) if not number.may_be_a_word]


def lost_numbers(source: str, translation: str) -> list[str]:
    """Return the numbers of ``source`` that ``translation`` lacks, unless it may spell them out."""
    return [number.text for number in _missing_in(translation, source) if not number.may_be_a_word]


def with_right_number(source: str, translation: str) -> str | None:
    """Replace the one number that is not in ``source`` by the one that ``translation`` lacks.

    With a second number that is lost or wrong, nobody knows which belongs where: "3,400 von 11,000 Leuten" for "of
    12,000 people 3,500" would become a false statement that reads well.

    Returns:
        None if there is nothing to replace, if there is more than one candidate on a side, or if the two differ in how
        many parts they have, so that one may be a price and the other a time.
    """
    lost, wrong = _missing_in(translation, source), _missing_in(source, translation)
    if len(lost) != 1 or len(wrong) != 1 or lost[0].may_be_a_word:
        return None
    if sum(number.value == wrong[0].value for number in find_numbers(translation)) > 1:  # each may be the wrong one
        return None
    written = _written_like(wrong[0], lost[0])
    return None if written is None else translation[: wrong[0].start] + written + translation[wrong[0].end :]


def _written_like(model: Number, number: Number) -> str | None:
    """Write a number with the digits and separators of another; None if they have different numbers of parts.

    3,500 in the place of a wrong 2.300 is 3.500: with the comma of the source, it may mean three and a half.
    """
    if number.value.count(_POINT) != model.value.count(_POINT):
        return None
    digits, separators = _DIGITS.findall(number.text), _DIGITS.split(model.text)[1:-1]
    if model.text.isascii():
        digits = list(map(_ascii, digits))
    if len(separators) == len(digits) - 1:
        return "".join(digit + separator for digit, separator in zip(digits, [*separators, ""], strict=True))
    return "".join(digits) if _POINT not in number.value else None  # thousands need no separators


def _missing_in(counterpart: str, text: str) -> list[Number]:
    """Return the numbers of ``text`` that ``counterpart`` lacks; the first of those that it has, but not as often."""
    numbers = list(find_numbers(text))
    if not numbers:
        return []
    there = Counter(number.value for number in find_numbers(counterpart))
    there.update(_value(_DIGITS.findall(match[0])) for match in _SPACED.finditer(counterpart))
    for match in _SPACED.finditer(text):
        value = _value(_DIGITS.findall(match[0]))
        if there[value]:  # else it is several numbers
            there[value] -= 1
            numbers = [number for number in numbers if not match.start() <= number.start < match.end()]
    missing = []
    for number in reversed(numbers):
        if there[number.value]:
            there[number.value] -= 1
        else:
            missing.append(number)
    return missing[::-1]


def has_myriads(text: str) -> bool:
    """Tell whether a number is written with 万 or 亿."""
    return not _MYRIADS.keys().isdisjoint(text)


def value_of_myriads(text: str) -> int:
    """Return the value of a number such as 3亿5000万, or 3万5; its digits and its decimal point are those of ASCII."""
    if re.fullmatch(SHORT_MYRIADS, text):
        return int(text[:-2] + text[-1]) * _MYRIADS[text[-2]] // 10
    return sum(map(_in_units, _IN_MYRIADS.finditer(text)))


def _in_units(part: re.Match[str]) -> int:
    whole, decimals = part["whole"].replace(",", ""), part["decimals"] or ""
    factor = _MULTIPLES[part["multiple"]] * _MYRIADS.get(part["myriad"], 1)
    return int(whole + decimals) * factor // 10 ** len(decimals)
