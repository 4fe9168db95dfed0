"""Which numbers of a text its translation lacks.

A translation may write 3,500 as 3.500, twelve in digits, 10:45 pm as 22.45 Uhr, 2:30 as halb drei, 0.5 million as
500,000, 8折 as 20 % off and the 1800s as the 19th century. What may be the same is taken for the same.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from mtformer.text.beside_numbers import is_of_money
from mtformer.text.clocks import find_clocks
from mtformer.text.entities import DISCOUNT, SLOT
from mtformer.text.languages import has_full_stops_in_ordinals
from mtformer.text.notation import large_word, zeros_of
from mtformer.text.number_words import LARGEST_SMALL, large_words, number_words
from mtformer.text.numbers import GROUPS, POINT, Number, find_numbers, value_of
from mtformer.text.spelled_amounts import lost_units
from mtformer.text.spelled_numbers import find_spelled_numbers
from mtformer.text.spoken_times import find_spoken_times, has_spoken_times, minutes_of

_SPACED = re.compile(GROUPS)
_SCALES = {  # zeros
    **{"thousand": 3, "grand": 3, "tausend": 3, "million": 6, "mio": 6},
    **{"milliard": 9, "miliard": 9, "mrd": 9},
    **{"billionen": 12, "billion": 9, "trillion": 12},
    **{"百": 2, "千": 3},
}
_ABBREVIATED = {  # which may be something else: 5 m
    **{"k": 3, "tsd": 3, "teur": 3, "m": 6, "mn": 6, "mln": 6, "mill": 6},
    **{"b": 9, "bn": 9, "bln": 9, "md": 9, "mia": 9, "tn": 12, "trn": 12},
}
_ZEROS = _SCALES | _ABBREVIATED
_OF_UNIT = "[米克瓦卡赫分伏帕焦兆]|字节"  # 千米 is a kilometer
_NO_GRAND = "(?<=grand)(?:[a-z]| piano| slam| prix)"  # 5 grandchildren
SCALE = re.compile(rf"[ \u00a0-]?({'|'.join(_SCALES)})(?!{_OF_UNIT}|{_NO_GRAND})", re.IGNORECASE)
ANY_SCALE = re.compile(rf"{SCALE.pattern}|[ \u00a0]?({'|'.join(_ABBREVIATED)})\b", re.IGNORECASE)
LARGE = re.compile(
    r"illi|thousand|tausend|grand(?![a-z])|hundred|hundert|[百千万萬亿億]"
    rf"|(?:\d|{SLOT.pattern}) ?(?:mil|mio|mrd|{'|'.join(_ABBREVIATED)})\b"
)  # any scale
CLOCK = re.compile(
    r"\d ?(?:[ap]\.?m\b|uhr|o['’]clock|h\b|[:：点點时時])|\b(?:uhr|o['’]clock|noon|midnight)\b", re.IGNORECASE
)
DECADE = re.compile(r"['’]?s\b|ern?\b|年代")
CENTURY = re.compile(r"00(?:-?tal|-?lu[kv]u|s\b)")  # the 1800s, på 1800-talet: the 19th century
DATE = re.compile(r"(?<!\d)\d{1,2}\.\d{1,2}\.(?!\d)")
_MINUTES = ("15", "30", "45", "90")  # parts of an hour
PERCENT, _HALF = re.compile(r" ?[%％]"), "50"
AND_A_HALF = re.compile(r"and[ -]a[ -]half|einhalb|anderthalb|und ein\w* halb|[½半]")
_HALVES_AND_QUARTERS = ("5", "50", "25", "75", "15", "30", "45")
_HOURS, _LAST_MINUTE, _DAYS, _MONTHS = 24, 59, 31, 12
_MOST_DIGITS = 15  # of a number that is written otherwise
_MOST_MISSING = 40  # numbers that are looked for as words; text has fewer
ATTACHED_BEFORE = re.compile(r"[A-Za-z_]-?$|/$|\d[.-]$")
ATTACHED_AFTER = re.compile(r"[A-Z/月]|x\d|-[A-Z]|[.-]\d")


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
        uncounted = [number for number in uncounted if not _is_counted(number, source, counts_ones=counts_ones)]
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
    return [Number(*time) for time in said if minutes_of(*time.value.split(":")) not in there]


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


def _is_counted(number: Number, text: str, *, counts_ones: bool) -> bool:
    """Tell whether a small number is more than an article, and no part of a code or a fraction, as in mp3 and 24/7."""
    is_apart = not ATTACHED_BEFORE.search(text[max(0, number.start - 2) : number.start]) and not ATTACHED_AFTER.match(
        text, number.end
    )
    return (int(number.value) > 1 or counts_ones or not number.text.isdigit()) and is_apart  # as in 1 million


def _missing_in(counterpart: str, text: str, languages: Sequence[str]) -> list[Number]:
    """Return the numbers of ``text`` that ``counterpart`` lacks; the first of those that it has, but not as often.

    ``languages`` are those of ``text`` and ``counterpart``.
    """
    is_known = bool(number_words(languages[1]))
    numbers = _numbers_of(text, languages[0]) if is_known else list(find_numbers(text))
    scales = list(_scales_of_slots(text, languages))
    if not numbers and not scales:
        return []
    there = Counter(number.value for number in _numbers_of(counterpart, languages[1]))
    there.update(value_of(match[0]) for match in _SPACED.finditer(counterpart))
    in_full = set(_in_full(counterpart))
    inside: set[int] = set()  # of numbers with spaces: where their parts may start
    for match in _SPACED.finditer(text):
        value = value_of(match[0])
        if there[value]:
            there[value] -= 1
        elif value not in in_full:  # it is several numbers
            continue
        inside.update(range(*match.span()))
    for time in find_spoken_times(text, languages[0]):  # the 9 of "halb 9"
        inside.update(range(time.start, time.start + len(time.text)))
    numbers = [number for number in numbers if number.start not in inside]
    values = {None, *there, *map(_plain, there)}
    missing = []
    for number in reversed(numbers):
        if there[number.value]:
            there[number.value] -= 1
        else:
            missing.append(number)
    if len(missing) > _MOST_MISSING:
        return missing[::-1]
    other = _Counterpart(text, counterpart, +there, *languages) if missing else None
    lost = {number.start: number for number in missing if other and not other.has_otherwise(number)}
    if is_known and not LARGE.search(counterpart.lower()):  # 2千 is not 2
        for number in numbers:
            pattern = ANY_SCALE if is_of_money(text, number.start) else SCALE
            if (scale := pattern.match(text, number.end)) and _scaled(number, text) not in values:
                lost[number.start] = number._replace(text=number.text + scale[0])
        lost |= {scale.start: scale for scale in scales}
    lost |= {number.start: number for number in _with_other_zeros(numbers, text, counterpart, languages)}
    return sorted(lost.values())


def _numbers_of(text: str, language: str) -> list[Number]:
    """Return the numbers of a text, in digits and in words, in order; none of the words of a time: eight thirty."""
    spelled = list(find_spelled_numbers(text, language))
    times = list(find_spoken_times(text, language, possible=True)) if spelled else []
    said = {place for time in times for place in range(time.start, time.start + len(time.text))}
    return sorted([*find_numbers(text), *(number for number in spelled if number.start not in said)])


def _scales_of_slots(text: str, languages: Sequence[str]) -> Iterator[Number]:
    """Yield the words such as "million" after slots, as in 2 or 3 million."""
    for word in large_word(languages[0], of_money=False).finditer(text):
        if SLOT.match(text, word.start() - 1):
            yield Number(word.start(), word[0].strip(" -\u00a0\u202f"), f"1{'000' * (word.lastindex or 0)}")


def _with_other_zeros(
    numbers: Sequence[Number], text: str, counterpart: str, languages: Sequence[str]
) -> Iterator[Number]:
    """Yield numbers before words such as "billion" that the counterpart has before others: German *Billionen*."""
    there = defaultdict[str, set[int]](set)
    scaled = [(number, *scale) for number in numbers if (scale := _zeros_after(number, text, languages[0]))[0]]
    for number in find_numbers(counterpart) if scaled else ():
        there[number.value].add(_zeros_after(number, counterpart, languages[1])[0])
    for number, zeros, word in scaled:
        if there[number.value] and not {0, zeros} & there[number.value]:
            yield number._replace(text=number.text + word)


def _zeros_after(number: Number, text: str, language: str) -> tuple[int, str]:
    """Return the zeros that a word such as "million" after a number stands for, and the word; 0 without a clear one."""
    word = large_word(language, of_money=is_of_money(text, number.start)).match(text, number.end)
    is_clear = word and not re.compile(large_words(language, of_money=False)).match(text, word.end())  # mille milliards
    return (zeros_of(word), word[0]) if word and is_clear else (0, "")


class _Counterpart:
    """Looks for the numbers of a text in a counterpart that writes them as words, on a clock or in millions."""

    def __init__(self, text: str, counterpart: str, values: Iterable[str], lang: str, counterpart_lang: str) -> None:
        """Take both texts, the values in the counterpart that belong to no other number, and the languages."""
        self._text, self._counterpart = text, counterpart.lower()
        self._words = number_words(counterpart_lang)
        spelled = {number.value for number in find_spelled_numbers(counterpart, counterpart_lang)}
        self._has_others = not spelled.issubset(number.value for number in _numbers_of(text, lang))
        said = find_spoken_times(counterpart, counterpart_lang, possible=True)
        self._times_said = {minutes_of(*time.value.split(":")) for time in said}
        self._has_dates = has_full_stops_in_ordinals(lang)
        self._has_clock = any(map(CLOCK.search, (text, counterpart)))
        self._has_centuries = any(map(CENTURY.search, (text, counterpart)))
        self._values = {*map(_plain, values), *_in_full(counterpart)}
        if self._has_clock or (has_full_stops_in_ordinals(counterpart_lang) and DATE.search(counterpart)):
            self._values |= {str(int(part)) for value in values for part in value.split(POINT)[:2] if len(part) <= 2}

    def has_otherwise(self, number: Number) -> bool:
        """Tell whether the counterpart has a number that it lacks as it is written."""
        if len(number.value) > _MOST_DIGITS or number.value.startswith("00") or number.value.count(POINT) > 1:
            return False
        if {_plain(number.value), _scaled(number, self._text)} & self._values:
            return True
        whole, *parts = number.value.split(POINT)
        n = int(whole)
        if parts:
            return self._has_both(number, n, parts[0])
        is_half = whole == _HALF and PERCENT.match(self._text, number.end) is not None
        if (is_half or whole in _MINUTES) and self._words.has_parts(self._counterpart):  # half an hour
            return True
        of_decade = {n % 100 if n >= 100 else 1900 + n} if DECADE.match(self._text, number.end) else set()
        of_century = {n // 100 + 1 if n >= 100 else 100 * (n - 1)} if self._has_centuries else set()
        return any(map(self._has, self._hours(n) | of_decade | of_century))

    def _has_both(self, number: Number, whole: int, part: str) -> bool:
        """Tell whether the counterpart has both parts of a price, a time, a date or a decimal number.

        As two numbers in digits only a time or a date is written, or what may be one: 312.25 is not 312 and 25.
        """
        if whole > _DAYS and str(whole) in self._values:
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
        return self._has_dates and int(part) <= _MONTHS and self._text.startswith(".", number.end)

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


def _in_full(text: str) -> Iterator[str]:
    """Yield the values of the numbers before "million", m, 折 or the like."""
    return (value for number in find_numbers(text) if (value := _scaled(number, text)) is not None)


def _scaled(number: Number, text: str) -> str | None:
    """Return the value of a number with "million", m, 折 or the like after it; None if there is none."""
    match = ANY_SCALE.match(text, number.end)
    whole, _, decimals = number.value.partition(POINT)
    if text.startswith(DISCOUNT, number.end) and len(whole + decimals) <= 2:
        return str(100 - int((whole + decimals).ljust(2, "0")))
    if match is None:
        return None
    zeros = _ZEROS[(match[1] or match[2]).lower()]
    if len(decimals) > zeros:
        return None
    return (whole + decimals.ljust(zeros, "0")).lstrip("0") or "0"  # of 0.5 million
