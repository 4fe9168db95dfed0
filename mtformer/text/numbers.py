"""Numbers in texts, written in digits or with 万 and 亿, and their values."""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from mtformer.text.number_words import LARGEST_SMALL, MYRIAD_VALUES

POINT = "·"  # between the parts of a value, whatever the text has there
_NO_WHOLE = r"(?<![\w.,])\.|(?<!\w)[-–],"  # .5, German -,99
PLAIN = rf"[０-９]{{1,3}}(?:，[０-９]{{3}})+(?![０-９])|(?:{_NO_WHOLE})?\d+(?:[.,:'’．]\d+)*(?:[⁺⁻]?[⁰¹²³⁴-⁹]+)?"
_SPACE = "[ \u00a0\u2009\u202f]"
GROUPS = rf"(?<!\d)(?<!\d[.,])\d{{1,3}}(?:{_SPACE}\d{{3}})+(?:[.,]\d+)?(?![.,]?\d)"  # thousands, or several numbers
DIGITS = re.compile(r"\d+|[⁰¹²³⁴-⁹]+")

# Numbers of Chinese and Japanese in 万 and 亿
_SIGNS = "".join(MYRIAD_VALUES)
# Of these, as in 2万亿; 千 alone is also a kilo, as in 千米.
_MULTIPLES = {"": 1, "十": 10, "百": 100, "千": 1000, "万": 10**4, "萬": 10**4}
_MULTIPLE = "(?:[十百千]|[万萬](?=[亿億]))?"
_MYRIAD = rf"(?:\d{{1,3}}(?:,\d{{3}}){{1,4}}|\d{{1,15}})(?:[.．]\d{{1,15}})?{_MULTIPLE}[{_SIGNS}]"
_END = rf"(?![.,．]?\d|[十百千{_SIGNS}])"
MYRIADS = rf"(?:{_MYRIAD})+(?:\d{{3,4}}|(?:\d千)?(?:\d百)?(?:\d十)?){_END}"
SHORT_MYRIADS = rf"\d{{1,2}}[{_SIGNS}]\d{_END}(?![-~～〜–、]\d)"  # 3万5, which is 35,000 in Chinese
RANGE = (  # 10-20, $5-$10, 5%–10%, 10:45-11:15, 10x15, 2 x 3 x 4, also 1, 2, 3, 4
    rf"(?!0x)(?:{PLAIN})(?:[%°]?[-–~～][$€£¥￥₹₽]?(?:{PLAIN})|(?: ?[x×] ?(?:{PLAIN})){{1,2}}|(?:, (?:{PLAIN})){{3,}})"
    rf"(?![-–~～.,．:'’]?\d| ?[x×] ?\d| \d/\d|{_SPACE}\d{{3}}(?!\d)|[十百千{_SIGNS}])"
)
ABOUT = "[多余餘]"  # 20多万 is more than 200,000
UNCLEAR_MYRIADS = (  # also 3-5万, which is 30,000 to 50,000; tried after the others
    rf"(?:\d[\d.,．]{{0,20}}[-–~～至到或])?\d[\d.,．十百千]{{0,20}}{ABOUT}?[{_SIGNS}][\d.,．十百千{_SIGNS}]*"
)
ABOUT_MYRIADS = rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,15}})(?:[.．]\d{{1,15}})?[十百千]?{ABOUT}[{_SIGNS}]"
NUMBER = re.compile(rf"(?P<myriads>{SHORT_MYRIADS}|{MYRIADS})|(?P<unclear>{UNCLEAR_MYRIADS})|{PLAIN}")
IN_MYRIADS = re.compile(
    rf"(?P<whole>[\d,]+)(?:[.．](?P<decimals>\d+))?(?P<multiple>{_MULTIPLE})(?P<myriad>[{_SIGNS}]?)"
)


class Number(NamedTuple):
    """A number in a text.

    Attributes:
        start: where it starts, in characters.
        text: as it is written.
        value: what is the same for 3,500 and 3.500, for 10:45 and 10.45, and for digits of all scripts;
            that of 10⁶ has two parts, as well.
    """

    start: int
    text: str
    value: str

    @property
    def may_be_a_word(self) -> bool:
        """Whether a translation may spell it out: a small integer."""
        return len(self.value) <= len(str(LARGEST_SMALL)) and int(self.value) <= LARGEST_SMALL

    @property
    def end(self) -> int:
        """Where it ends, in characters."""
        return self.start + len(self.text)


def find_numbers(text: str) -> Iterator[Number]:
    """Yield the numbers of a text in order; day, month and year of a date are three, 3万50 and 3-5万 none."""
    for match in NUMBER.finditer(text):
        if match["unclear"]:
            if re.fullmatch(ABOUT_MYRIADS, match[0]):
                yield Number(match.start(), match[0], value_of(re.sub(ABOUT, "", match[0])))
            continue
        parts = [(part.start(), part[0]) for part in DIGITS.finditer(text, *match.span())]
        is_date = len(parts) == 3 and sorted(len(digits) for _, digits in parts)[1:] in ([1, 4], [2, 4])
        if is_date and not match["myriads"]:
            yield from (Number(start, digits, str(int(_ascii(digits)))) for start, digits in parts)
        else:
            yield Number(match.start(), match[0], value_of(match[0]))


def value_of(number: str) -> str:
    """Return the value of a number: thousands are joined; other parts, such as hours and minutes, stay apart."""
    if has_myriads(number):
        return str(value_of_myriads(number))
    first, _, last = re.sub("[:：]", ":", number if number[0].isdigit() else f"0{number}").partition(":")
    whole, *following = map(_ascii, DIGITS.findall(first))
    while following and len(following[0]) == 3:
        whole += following.pop(0)
    return POINT.join([whole, *following, *map(_ascii, DIGITS.findall(last))])


def _ascii(digits: str) -> str:
    return digits if digits.isascii() else "".join(str(unicodedata.digit(digit)) for digit in digits)


def has_myriads(text: str) -> bool:
    """Tell whether a number is written with 万 or 亿."""
    return not MYRIAD_VALUES.keys().isdisjoint(text)


def value_of_myriads(text: str) -> int:
    """Return the value of a number such as 3亿5000万, or 3万5; its digits and its decimal point are those of ASCII."""
    if re.fullmatch(SHORT_MYRIADS, text):
        return int(text[:-2] + text[-1]) * MYRIAD_VALUES[text[-2]] // 10
    return sum(map(_in_units, IN_MYRIADS.finditer(text)))


def _in_units(part: re.Match[str]) -> int:
    whole, decimals = part["whole"].replace(",", ""), part["decimals"] or ""
    factor = _MULTIPLES[part["multiple"]] * MYRIAD_VALUES.get(part["myriad"], 1)
    return int(whole + decimals) * factor // 10 ** len(decimals)
