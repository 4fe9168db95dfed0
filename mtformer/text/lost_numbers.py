"""Which numbers of a text its translation lacks.

A translation may write 3,500 as 3.500, twelve in digits, 10:45 pm as 22.45 Uhr, 2:30 as halb drei, 0.5 million as
500,000, 8折 as 20 % off and the 1800s as the 19th century. What may be the same is taken for the same.
"""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence

from mtformer.text.beside_numbers import is_of_money
from mtformer.text.clocks import find_clocks
from mtformer.text.languages import has_full_stops_in_ordinals
from mtformer.text.number_words import LARGEST_SMALL, number_words
from mtformer.text.numbers import GROUPS, POINT, Number, find_numbers, value_of
from mtformer.text.scales import (
    ANY_SCALE,
    LARGE,
    SCALE,
    scaled_value,
    scales_of_slots,
    values_in_full,
    with_other_zeros,
)
from mtformer.text.spelled_amounts import lost_units
from mtformer.text.spelled_numbers import find_spelled_numbers
from mtformer.text.spoken_times import find_spoken_times, has_spoken_times, minutes_of

_SPACED = re.compile(GROUPS)
CLOCK = re.compile(
    r"\d ?(?:[ap]\.?m\b|uhr|o['’]clock|h\b|[:：点點时時])|\b(?:uhr|o['’]clock|noon|midnight)\b", re.IGNORECASE
)
DECADE = re.compile(r"['’]?s\b|ern?\b|年代|\. ?l[eé]t(?:a|ech)?\b|-?talet\b|-[еых]+\b")
DECADE_BEFORE = re.compile(r"(?:années|años|anos|anni|jaren|lata(?:ch)?)[ \u00a0]['’]?$")
DECADE_OF_CENTURY = re.compile(r"世[纪紀](\d0)年代")
CENTURY = re.compile(r"00(?:-?tal|-?lu[kv]u|s\b)")  # the 1800s, på 1800-talet: the 19th century
DATE = re.compile(r"(?<!\d)\d{1,2}\.\d{1,2}\.(?!\d)")
_MINUTES = ("15", "30", "45", "90")  # parts of an hour
PERCENT, _HALF = re.compile(r" ?[%％]"), "50"
AND_A_HALF = re.compile(r"and[ -]a[ -]half|einhalb|anderthalb|und ein\w* halb|[½半]")
_HALVES_AND_QUARTERS = ("5", "50", "25", "75", "15", "30", "45")
_ONES = {"": 0, "I": 1, "II": 2, "III": 3, "IV": 4, "V": 5, "VI": 6, "VII": 7, "VIII": 8, "IX": 9}
_HOURS, _LAST_MINUTE, _DAYS, _MONTHS = 24, 59, 31, 12
_LONGEST_OF_DECADE = 10  # characters: "années '"
_MOST_DIGITS = 15  # of a number that is written otherwise
_MOST_MISSING = 40  # numbers that are looked for as words; text has fewer
ATTACHED_BEFORE = re.compile(r"[A-Za-z_]-?$|/$|\d[.-]$")
ATTACHED_AFTER = re.compile(r"[A-Z/月]|x\d|-[A-Z]|[.-]\d")
SMALL_RANGE = re.compile(r"(?<![\w.,:/-])(?!9-11|7-11|24-7|10-4)\d{1,2}-\d{1,2}(?![\w:/-]|[.,]\d)")
MONTH_IN_DIGITS = re.compile(r"(?<=\d\. )\d{1,2}(?=\. [12]\d{3}(?!\d))")  # 5. 6. 1990
ROMAN = re.compile(r"(?<!\w)(?=[IVX]{2}|[VX]e siècle)(X{0,3})(IX|IV|V?I{0,3})(?:e|ème|th)?(?!\w)")


def lost_numbers(source: str, translation: str, languages: Sequence[str]) -> list[str]:
    """Return the numbers of ``source`` that ``translation`` lacks.

    It may spell them out. Small numbers count as lost if the words of the target language are known here, or if the
    translation has another number instead. A 1, which may go with a singular, counts only if the translation spells out
    another number.
    """
    lost = _missing_in(translation, source, languages)
    uncounted = [number for number in lost if number.may_be_a_word]
    if uncounted and (number_words(languages[1]) or _missing_in(source, translation, languages[::-1])):
        counts_ones = _spells_out_another(source, translation, languages)
        small = set(_counted(source, uncounted, counts_ones=counts_ones))
        uncounted = [number for number in uncounted if number not in small]
    starts = {number.start for number in uncounted}
    counted = [number for number in lost if number.start not in starts]
    return [number.text for number in sorted([*counted, *_missing_times(source, translation, languages)])]


def lost_words(source: str, translation: str, src_lang: str, tgt_lang: str) -> list[str]:
    """Return the amounts with units that are words, and the larger numbers in words, that a translation lacks."""
    spelled = [number.text for number in find_spelled_numbers(source, src_lang)]
    lost = lost_numbers(source, translation, (src_lang, tgt_lang)) if spelled else ()
    return [*lost_units(source, translation, src_lang, tgt_lang), *(text for text in spelled if text in lost)]


def _missing_times(text: str, counterpart: str, languages: Sequence[str]) -> list[Number]:
    """Return the times that ``text`` has in words and ``counterpart`` lacks; none if its language is unknown."""
    said = list(find_spoken_times(text, languages[0])) if has_spoken_times(languages[1]) else []
    there = _times_of(counterpart, languages[1]) if said else ()
    return [time for time in said if minutes_of(*time.value.split(":")) not in there]


def _times_of(text: str, language: str) -> set[int]:
    """Return all possible times of day in a text, as minutes since midnight or noon."""
    times = [time.value.split(":") for time in find_spoken_times(text, language, possible=True)]
    times += [time.split(":") for _, _, value in find_clocks(text, language) for time in value.split("–")]
    times += [parts for number in find_numbers(text) if _is_time(parts := number.value.split(POINT))]
    return {minutes_of(*time) for time in times}


def _is_time(parts: Sequence[str]) -> bool:
    return len(parts) == 2 and len(parts[1]) == 2 and int(parts[0]) <= _HOURS and int(parts[1]) <= _LAST_MINUTE


def made_up_numbers(source: str, translation: str, languages: Sequence[str]) -> list[str]:
    """Return the numbers of ``translation`` that ``source`` lacks; none if the words of its language are not known."""
    return lost_numbers(translation, source, languages[::-1]) if number_words(languages[0]) else []


def _spells_out_another(source: str, translation: str, languages: Sequence[str]) -> bool:
    """Tell whether a translation has a word for a number from 2 to 12 that its source lacks."""
    of_src, of_tgt = map(number_words, languages)
    values = {number.value for number in find_numbers(source)}
    is_clear = bool(of_src) and not LARGE.search(translation.lower())  # 十亿 is a billion
    return is_clear and any(
        of_tgt.may_be_in(translation.lower(), n) and str(n) not in values and not of_src.may_be_in(source.lower(), n)
        for n in range(2, LARGEST_SMALL + 1)
    )


def _counted(text: str, numbers: Iterable[Number], *, counts_ones: bool) -> Iterator[Number]:
    """Yield those of small numbers that are more than articles, and no parts of a date, a code or a fraction: 24/7."""
    in_ranges = {place for range_ in SMALL_RANGE.finditer(text) for place in range(*range_.span())}
    months = {month.start() for month in MONTH_IN_DIGITS.finditer(text)}
    for number in numbers:
        is_many = int(number.value) > 1 or counts_ones or not number.text.isdigit()  # as in 1 million
        before = text[max(0, number.start - 2) : number.start]
        is_apart = not ATTACHED_BEFORE.search(before) and not ATTACHED_AFTER.match(text, number.end)
        if is_many and number.start not in months and (is_apart or number.start in in_ranges):
            yield number


def _missing_in(counterpart: str, text: str, languages: Sequence[str]) -> list[Number]:
    """Return the numbers of ``text`` that ``counterpart`` lacks; the first of those that it has, but not as often.

    ``languages`` are those of ``text`` and ``counterpart``.
    """
    is_known = bool(number_words(languages[1]))
    numbers = _numbers_of(text, languages[0]) if is_known else list(find_numbers(text))
    scales = list(scales_of_slots(text, languages))
    if not numbers and not scales:
        return []
    there = Counter(number.value for number in _numbers_of(counterpart, languages[1]))
    there.update(value_of(match[0]) for match in _SPACED.finditer(counterpart))
    inside = _parts_of_spaced(text, there, set(values_in_full(counterpart, languages[1])))
    inside |= _places(find_spoken_times(text, languages[0]))
    numbers = [number for number in numbers if number.start not in inside]
    unmatched = _unmatched(numbers, there)
    if len(unmatched) > _MOST_MISSING:
        return unmatched
    lost: list[Number] = []
    if unmatched:
        other = _Counterpart(text, counterpart, +there, *languages)
        lost += (number for number in unmatched if not other.has_otherwise(number))
    if is_known and not LARGE.search(counterpart.lower()):  # 2千 is not 2
        lost += [*_with_lost_scale(numbers, text, languages[0], there), *scales]
    lost += with_other_zeros(numbers, text, counterpart, languages)
    return sorted({number.start: number for number in lost}.values())


def _parts_of_spaced(text: str, there: Counter[str], in_full: Container[str]) -> set[int]:
    """Return where parts of numbers with spaces may start, as in 12 000, and take these numbers from ``there``.

    They may also be ``in_full`` in the counterpart.
    """
    parts = set[int]()
    for match in _SPACED.finditer(text):
        value = value_of(match[0])
        if there[value]:
            there[value] -= 1
        elif value not in in_full:  # it is several numbers
            continue
        parts.update(range(*match.span()))
    return parts


def _unmatched(numbers: Sequence[Number], there: Counter[str]) -> list[Number]:
    """Take numbers from ``there``, the last ones first, and return those that it lacks."""
    unmatched = []
    for number in reversed(numbers):
        if there[number.value]:
            there[number.value] -= 1
        else:
            unmatched.append(number)
    return unmatched[::-1]


def _with_lost_scale(numbers: Iterable[Number], text: str, language: str, there: Iterable[str]) -> Iterator[Number]:
    """Yield the numbers before "million" and the like, with that word, whose digits in full are not ``there``."""
    values = {None, *there, *map(_plain, there)}
    for number in numbers:
        pattern = ANY_SCALE if is_of_money(text, number.start) else SCALE
        if (scale := pattern.match(text, number.end)) and scaled_value(number, text, language) not in values:
            yield number._replace(text=number.text + scale[0])


def _places(times: Iterable[Number]) -> set[int]:
    """Return the indices of all characters of times, as of the 9 in "halb 9"."""
    return {place for time in times for place in range(time.start, time.end)}


def _numbers_of(text: str, language: str) -> list[Number]:
    """Return the numbers of a text, in digits and in words, in order; none of the words of a time: eight thirty."""
    spelled = list(find_spelled_numbers(text, language))
    times = list(find_spoken_times(text, language, possible=True)) if spelled else []
    in_times = _places(times)
    return sorted([*find_numbers(text), *(number for number in spelled if number.start not in in_times)])


class _Counterpart:
    """Looks for the numbers of a text in a counterpart that writes them as words, on a clock or in millions."""

    def __init__(self, text: str, counterpart: str, values: Iterable[str], lang: str, counterpart_lang: str) -> None:
        """Take both texts, the values in the counterpart that belong to no other number, and the languages."""
        self._text, self._lang, self._counterpart = text, lang, counterpart.lower()
        self._words = number_words(counterpart_lang)
        spelled = {number.value for number in find_spelled_numbers(counterpart, counterpart_lang)}
        self._has_others = not spelled.issubset(number.value for number in _numbers_of(text, lang))
        said = find_spoken_times(counterpart, counterpart_lang, possible=True)
        self._times_said = {minutes_of(*time.value.split(":")) for time in said}
        self._has_dates = has_full_stops_in_ordinals(lang)
        self._has_clock = any(map(CLOCK.search, (text, counterpart)))
        self._has_centuries = any(map(CENTURY.search, (text, counterpart)))
        self._values = {*map(_plain, values), *values_in_full(counterpart, counterpart_lang)}
        self._values |= {value.lstrip("0") for value in values if len(value) == 2}  # 06/05/2024
        self._values |= set(_roman_numbers(counterpart)).difference(_roman_numbers(text))
        if self._has_clock or (has_full_stops_in_ordinals(counterpart_lang) and DATE.search(counterpart)):
            parts = {part for value in values for part in value.split(POINT)[:2] if len(part) <= 2}
            scores = (number.value for number in find_numbers(counterpart) if ":" in number.text)
            self._values |= {str(int(part)) for part in parts.union(*(score.split(POINT) for score in scores))}

    def has_otherwise(self, number: Number) -> bool:
        """Tell whether the counterpart has a number that it lacks as it is written."""
        if len(number.value) > _MOST_DIGITS or number.value.startswith("00") or number.value.count(POINT) > 1:
            return False
        if {_plain(number.value), scaled_value(number, self._text, self._lang)} & self._values:
            return True
        whole, *parts = number.value.split(POINT)
        n = int(whole)
        if parts:
            return self._has_both(number, n, parts[0])
        is_half = whole == _HALF and PERCENT.match(self._text, number.end) is not None
        if (is_half or whole in _MINUTES) and self._words.has_parts(self._counterpart):  # half an hour
            return True
        return any(map(self._has, self._hours(n) | self._of_decade(number, n) | self._of_century(number, n)))

    def _of_decade(self, number: Number, n: int) -> set[int]:
        """Return the same decade with its century, or without: 1990 for the 90s."""
        before = self._text[max(0, number.start - _LONGEST_OF_DECADE) : number.start]
        is_decade = DECADE.match(self._text, number.end) or DECADE_BEFORE.search(before)
        return {n % 100 if n >= 100 else 1900 + n} if is_decade else set()

    def _of_century(self, number: Number, n: int) -> set[int]:
        """Return the first year of the n-th century, the century of a year, and the decade of 20世纪90年代."""
        decade = DECADE_OF_CENTURY.match(self._text, number.end)
        if decade or self._has_centuries:
            return {n // 100 + 1 if n >= 100 else 100 * (n - 1) + int(decade[1] if decade else 0)}
        return set()

    def _has_both(self, number: Number, whole: int, part: str) -> bool:
        """Tell whether the counterpart has both parts of a price, a time, a date or a decimal number.

        As two numbers in digits only a time or a date is written, or what may be one: 312.25 is not 312 and 25.
        """
        if whole > _DAYS and str(whole) in self._values and ":" not in number.text:  # unlike a score
            return False
        if _is_time((str(whole), part)) and minutes_of(str(whole), part) in self._times_said:
            return True
        hours = self._hours(whole)
        if any(_plain(f"{hour}{POINT}{part}") in self._values for hour in hours):
            return True
        may_have_parts = part in _HALVES_AND_QUARTERS and not self._times_said  # else they are those
        has_parts = may_have_parts and self._words.has_parts(self._counterpart)
        if not any(map(self._has, {*hours, *(hour + 1 for hour in hours if has_parts)})):  # halb drei is 2:30
            return False
        if number.text[-1].isalpha():
            return AND_A_HALF.search(self._counterpart) is not None
        if has_parts or self._has(int(part)) or all(map(self._has, map(int, part.rstrip("0")))):
            return True
        is_date = "." in number.text and self._text.startswith(".", number.end)
        return self._has_dates and int(part) <= _MONTHS and is_date

    def _hours(self, number: int) -> set[int]:
        """Return a number, and the same hour on a clock of 12 or 24 hours."""
        is_hour = self._has_clock and number <= _HOURS
        return {number, *({(number + 12) % 24, number % 12} if is_hour else ())}

    def _has(self, number: int) -> bool:
        if str(number) in self._values:
            return True
        is_another = self._has_others and number > LARGEST_SMALL  # thirty-five, of which 53 has all the words
        return not is_another and self._words.may_be_in(self._counterpart, number)


def _plain(value: str) -> str:
    """Return a value without zeros that say nothing: 8·3 for 08:30, and 2 for 2.00; 007 is not 7."""
    whole, _, part = value.partition(POINT)
    if not part:
        return value
    return f"{whole.lstrip('0') or '0'}{POINT}{part.rstrip('0')}".rstrip(POINT)


def _roman_numbers(text: str) -> Iterator[str]:
    """Yield the values of Roman numerals, as in World War II."""
    return (str(10 * len(tens) + _ONES[ones]) for tens, ones in ROMAN.findall(text))
