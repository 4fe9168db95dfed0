"""Larger numbers, halves and decimals as words: twenty-one, two and a half, German zwei Komma fünf, Chinese 二十一."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from mtformer.text.codes import LATIN
from mtformer.text.languages import base_language
from mtformer.text.number_words import CARDINALS, LARGEST_SMALL, MYRIAD_VALUES, TENS, numbered
from mtformer.text.numbers import POINT, Number

PERCENT_OF = "百分之"  # what percents begin with in Chinese
_MOST_DECIMALS = 6


class _Words(NamedTuple):
    """The words of a language.

    Attributes:
        values: of the words that a number is made of, but for those that multiply; 0.5 for a half.
        factors: of the words that multiply what stands before them.
        points: the words after which decimals stand, digit by digit.
        group: the smallest factor that multiplies hundreds as well: a thousand, or 万.
        pattern: of numbers, in small letters.
        signs: each number from 13 on, with a half or with decimals has one of them; a text without any is not searched.
    """

    values: Mapping[str, float]
    factors: dict[str, int]
    points: tuple[str, ...]
    group: int
    pattern: str
    signs: tuple[str, ...]


def _english() -> _Words:
    cardinals = CARDINALS["en"]
    units, teens, tens = numbered(cardinals[:9]), numbered(cardinals[9:], 10), numbered(TENS["en"], 20, 10)
    unit, teen, ten = map("|".join, (units, teens, tens))
    half = "and a half"
    below_100 = rf"(?:{ten})(?:[ -](?:{unit}))?|{teen}|{unit}"
    below_1000 = rf"(?:(?:{below_100}|an?) )?hundred(?:(?: and)? (?:{below_100}))?|{below_100}"
    year = rf"(?:eighteen|nineteen|twenty)[ -](?:(?:{ten})(?:[ -](?:{unit}))?|{teen})"
    whole = rf"{year}|(?:(?:{below_1000}|an?) )?thousand(?:(?: and)? (?:{below_1000}))?|{below_1000}"
    large, of_large = {"million": 10**6, "billion": 10**9, "trillion": 10**12}, {"half a ": 0.5, "a ": 1}
    whole += f"|(?:half )?a(?= (?:{'|'.join(large)}))"
    factors = {**large, "thousand": 1000, "hundred": 100}
    zeros = {"zero": 0, "oh": 0}
    digit = "|".join((*zeros, unit))
    whole += "|zero(?= point )"
    decimals = rf" point (?:{digit})(?:[ -](?:{digit})){{0,{_MOST_DECIMALS - 1}}}(?![ -](?:{digit}))"
    ending = rf"(?:{decimals}| {half})?(?:[ -](?:{'|'.join(large)})(?: (?:{below_1000}) thousand)?)?"
    another = f"first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|{'|'.join(factors)}|point (?:{digit})"
    compound = "-(?!year|month|week|day|hour|minute|page)"  # but a twenty-year-old
    no_decimals = "".join(rf"(?<!{word} )" for word in ("that", "this", "the", "some"))  # at that point twenty men came
    start = rf"(?<![{LATIN}-])(?<!{no_decimals}point )(?<!few )(?<!several )(?!(?<=at )one point )"
    pattern = rf"{start}(?:{whole}){ending}(?!['’]?[{LATIN}]|{compound}[{LATIN}]| (?:{another}))"
    signs = (*tens, "teen", "hundred", "thousand", "illion", half)
    values = {**zeros, **units, **teens, **tens, **of_large, half: 0.5}
    return _Words(values, factors, ("point",), 1000, pattern, (*signs, " point "))


def _german() -> _Words:
    cardinals = CARDINALS["de"]
    units = numbered(["ein", *cardinals[1:9]]) | {"eins": 1, "zwo": 2}
    teens, tens = numbered(cardinals[9:], 10), numbered(TENS["de"], 20, 10) | {"dreissig": 30}
    halves = {"einhalb": 0.5, "anderthalb": 1.5}
    unit, teen, ten = map("|".join, (units, teens, tens))
    below_100 = rf"(?:(?:{unit})und)?(?:{ten})|{teen}|{unit}"
    below_1000 = rf"(?:{teen}|{unit})?hundert(?:und)?(?:{below_100})?|{below_100}"
    whole = rf"(?:(?:{below_1000})?tausend(?:und)?(?:{below_1000})?|{below_1000})(?:einhalb)?|anderthalb"
    large = {"million": 10**6, "milliarde": 10**9, "billion": 10**12}
    factors = {**large, **{f"{word.removesuffix('e')}en": value for word, value in large.items()}, "tausend": 1000}
    ending = rf"(?:s?te[mnrs]?|jährig(?:e[mnrs]?)?|mal)(?![{LATIN}])"  # einundzwanzigsten
    another = "|".join(sorted(factors, reverse=True))  # the longest first
    of_large = {"eine ": 1, "einer ": 1, "eine halbe ": 0.5, "einer halben ": 0.5}
    whole += f"|(?:eine(?: halbe)?|einer(?: halben)?)(?= (?:{another}))"
    thousands = rf"(?:{below_1000})tausend(?:{below_1000})?"
    whole += "|null(?= komma )"
    digit = f"null|{unit}"
    decimals = rf" komma (?:{digit})(?: (?:{digit})){{0,{_MOST_DECIMALS - 1}}}(?! (?:{digit}))"
    end = rf"(?!(?!{ending})[{LATIN}]|-[{LATIN}]| (?:{another}|komma (?:{digit})))"
    start = rf"(?<![{LATIN}-])(?<!komma )(?<!paar )(?<!mehrere )(?<!einige )"
    pattern = rf"{start}(?:{whole})(?:{decimals})?(?: (?:{another})(?: {thousands})?)?{end}"
    signs = (*tens, "zehn", "hundert", "tausend", "illi", *halves, " komma ")
    values = {"null": 0, **units, **of_large, **teens, **tens, **halves}
    return _Words(values, {**factors, "hundert": 100}, ("komma",), 1000, pattern, signs)


def _chinese() -> _Words:
    digits = numbered(["零", *CARDINALS["zh"][:9]], 0) | {"〇": 0, "两": 2, "兩": 2}
    trillions = {"万亿": 10**12, "萬億": 10**12}
    numerals = "一二两兩三四五六七八九十百千万萬亿億零〇"
    digit = "[一二两兩三四五六七八九]"
    below_100 = rf"{digit}?十{digit}?"
    below_1000 = rf"{digit}百(?:{digit}十{digit}?|零{digit})?|{below_100}"
    below_10000 = rf"{digit}千(?:零(?:{below_100}|{digit})|{below_1000})?|{below_1000}"
    part = f"(?:{below_10000}|{digit})"
    large = f"(?:{part}[亿億]零?(?:{part}[万萬])?|{part}[万萬])(?:零?(?:{below_10000})|零{digit})?"
    year = "[一二三四五六七八九][一二三四五六七八九零〇]{3}(?=年)"
    # 八点五 alone may be the time 8:05. It is a decimal before a factor or a unit, as in 八点五公里, and from 25 on,
    # but not after a time of day: 晚上八点五万人 is 50,000 people at eight.
    decimals = f"[点點][零〇一二三四五六七八九]{{1,{_MOST_DECIMALS}}}"
    unit = "[倍度吨噸斤升级級寸]|[米克](?![饭粒兰拉])|公[里斤分升吨顷]|[毫厘][米克升]|平[方米]|立方"
    unit += "|英[里尺寸镑磅亩]|海里|[美欧]元|元(?!旦)"
    no_time = "(?<![点點午晚晨])(?<![早晚]上)"
    with_decimals = (
        rf"{no_time}(?:{part}|零){decimals}(?:{'|'.join(trillions)}|[万萬亿億]|(?={unit}))"
        rf"|(?<![点點])(?:[三四五六七八九]十{digit}?|(?=[{numerals}]*[百千])(?:{below_10000})){decimals}"
        rf"|{PERCENT_OF}(?:{part}|零){decimals}"
    )
    pattern = (
        rf"(?<![{numerals}几幾数數])(?:{with_decimals}|(?<![点點]){large}|{below_10000}|{PERCENT_OF}{part}|{year}"
        rf"|(?<![第点點]){digit}(?:[个個]半(?![天夜球圆圓径徑岛島成决決]))?)"  # 两个半球 is two hemispheres
        rf"(?<!千(?=[米克瓦卡赫]))"  # 两千米 is two kilometers
        rf"(?![{numerals}几幾点點]|分之)"  # 二十几, 二十点五, 二十分之一
    )
    values = {**digits, PERCENT_OF: 0, "个半": 0.5, "個半": 0.5}
    signs = ("十", "百", "千", *MYRIAD_VALUES, "年", "半", "点", "點")
    factors = {"千": 1000, "百": 100, "十": 10, **MYRIAD_VALUES, **trillions}
    return _Words(values, factors, ("点", "點"), 10**4, pattern, signs)


@lru_cache
def _words(language: str) -> tuple[_Words, re.Pattern[str], re.Pattern[str]] | None:
    make = {"en": _english, "de": _german, "zh": _chinese}.get(base_language(language))
    if make is None:
        return None
    words = make()
    parts = "|".join(sorted([*words.values, *words.factors, *words.points], key=len, reverse=True))
    return words, re.compile(words.pattern), re.compile(parts)


def describe_spelled_numbers(language: str) -> dict[str, object] | None:
    """Return the words of a language, and the pattern of numbers; None for one whose words are not known here."""
    found = _words(language)
    return None if found is None else found[0]._asdict()


def has_spelled_numbers(language: str) -> bool:
    """Tell whether the words of a language are known here."""
    return _words(language) is not None


def find_spelled_numbers(text: str, language: str, *, small: bool = False) -> Iterator[Number]:
    """Yield the numbers in words from 13 on, and those with a half or decimals, or with ``small`` all numbers.

    Smaller ones, "a hundred" and "a million" often are no exact numbers. None in a language whose words are not known
    here.
    """
    found = _words(language)
    if found is None:
        return
    words, pattern, parts = found
    lowered = text.replace("İ", "I").lower()  # as long as the text
    if not small and not any(map(lowered.__contains__, words.signs)):
        return
    for match in pattern.finditer(lowered):
        of_number = parts.findall(match[0])
        value = _value(of_number, words)
        is_clear = value > LARGEST_SMALL or value % 1
        is_vague = of_number[-1] in words.factors and of_number[:-1] in ([], ["a "], ["eine "], ["einer "])
        if small or (is_clear and not is_vague):
            written = text[match.start() : match.end()]
            digits = f"{value:.{_MOST_DECIMALS}f}".rstrip("0").rstrip(".")
            yield Number(match.start(), written, digits.replace(".", POINT))


def _value(parts: list[str], words: _Words) -> float:
    """Return the value of a number by the words that it is made of.

    Nineteen, eighty and four make a year, and so do 二, 〇, 二 and 六.
    """
    total: float = 0
    section: float = 0
    last: float = 0
    before: float | None = None  # the value of the word before, unless that multiplies
    place: float = 0  # of the next decimal
    for part in parts:
        if part in words.points:
            place = 0.1
            continue
        factor = words.factors.get(part)
        if factor is None:
            value = words.values[part]
            if place:
                last, place = last + value * place, place / 10
                continue
            if before is not None and value % 1 == 0 and (before < 10) == (value < 10):
                last *= 100 if value >= 10 else 10
            last, before = last + value, value
            continue
        before, place = None, 0
        if factor >= words.group:
            total, section, last = total + (section + last or 1) * factor, 0, 0
        else:
            section, last = section + (last or 1) * factor, 0
    return round(total + section + last, _MOST_DECIMALS)  # 4.35 × 10**8 is no 434999999.99999994
