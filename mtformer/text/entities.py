"""Numbers, dates and codes in texts, which a translation keeps."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mtformer.text.beside_numbers import (
    AFTER,
    ALONE,
    ATTACHED,
    BEFORE_PERCENT,
    BEHIND,
    DASH,
    FALSE_UNITS,
    HYPHEN,
    IN_FRONT,
    LATIN_UNIT,
    MINUS,
    MINUS_SIGNS,
    NO_PLAIN_SPACE,
    SIGNS,
    UNIT_INSIDE,
    currency_before,
    is_named,
    is_of_money,
    is_price,
    minus_before,
    shares_word,
    sign_before,
)
from mtformer.text.clocks import find_clocks
from mtformer.text.codes import CODES, CURRENCY, LATIN, SMALL_DIGITS
from mtformer.text.dates import find_dates, write_date, writes_date
from mtformer.text.languages import (
    CHINESE_LANGUAGES,
    base_language,
    decimal_and_group,
    has_latin_units,
    has_signs_behind,
    has_spaced_groups,
)
from mtformer.text.notation import (
    AS_ASCII,
    LONG,
    WITH_MYRIADS,
    in_full,
    in_short,
    large_word,
    written_for,
)
from mtformer.text.numbers import GROUPS, MYRIADS, PLAIN, POINT, RANGE, SHORT_MYRIADS, UNCLEAR_MYRIADS, value_of
from mtformer.text.ordinals import find_ordinals, write_ordinal, writes_ordinal
from mtformer.text.spoken_times import find_spoken_times
from mtformer.text.unit_words import find_unit_word, has_unit_word, unit_of, write_unit

# The kinds of what is found. Numbers of two to four decline otherwise in Slavic languages.
MANY, FEW, NAME = "many", "few", "names"
SLOT = re.compile("[\ue000-\ue00f]")  # what stands for them in the texts of a model; see mtformer.text.slots
_DATE = (  # also 3/14, 24/7 and 978-3-16-148410-0
    r"\d+(?:-\d+){2,}|\d{1,2}\. \d{1,2}\. [12]\d{3}|\d{4}(?P<dot>[/.])\d{1,2}(?P=dot)\d{1,2}"
    r"|\d{1,2}(?P<stroke>[/.])\d{1,2}(?P=stroke)(?:\d{4}|\d{2})|\d{1,4}/\d{1,4}(?!/)"
)
_PHONE = (  # +49 170 1234567, (030) 123-4567, +49 (0)30 1234-5678, 0171/123 45 67
    r"\+\d{1,3}(?:[ ()/-]{1,2}\d{2,}){2,}(?:-\d(?!\d))?"
    r"|(?:\+\d{1,3} ?)?\((?:0|0?\d{2,4})\)[ /-]?\d{2,}(?:[ /-]\d{2,}|-\d){1,4}(?![\d:])"
    r"|(?<![\d.,:/-])0\d{2,4}[ /-]\d{2,}(?:[ -]\d{2,}|-\d){0,4}(?!\d|[.,:/-]\d)"
    r"|(?:\+\d{1,3} ?|(?<![\d.,:/-])(?<!\d[ .])0)[1-9](?:[ .]\d{2}){4}(?!\d|[ .,:/-]\d)"  # 06 12 34 56 78
)
_ROUND = r"\d{1,3}(?:[.,]\d{3})*[.,][05]00"  # unlike the 1:43.210 of a race
_SCALE = rf"1[:：]{_ROUND}|{_ROUND}[:：]1"
_TIME = r"\d{1,2}[:：]\d{2}(?:[:：]\d{2}(?:[.,]\d{1,3})?|\.\d{1,3})?"  # also 1:43.21, but not John 3:16,17
# Not within 1,000.5 where the 1 belongs to something else, as in v1,000.5.
_NUMBER_START = rf"(?:(?<![A-Za-z_\d])|(?<=(?<![{LATIN}])(?:{CURRENCY})))(?<!\d[.,])"
_ENGLISH, _FRENCH = "en", "fr"
_MONTH, DISCOUNT = "月", "折"  # 8折 is 20% off
FOUND = re.compile(
    rf"(?P<slot>{SLOT.pattern})|(?P<code>{CODES})|(?P<phone>{_PHONE})"
    rf"|(?<![\d.,:/-])(?P<date>{_DATE})(?![\d:/]|[.,]\d)|{_NUMBER_START}(?P<range>{RANGE})"
    rf"|(?<![\d.,:/-])(?:(?P<scale>{_SCALE})|(?P<time>{_TIME}))(?![\d:/])|(?P<groups>{GROUPS})"
    rf"|(?:{_NUMBER_START}|(?<=\dx))"
    r"(?:(?P<fraction>\d*[¼-¾⅐-⅞]|\d{1,2} [1-9]/(?:[2-9]|16)(?![\d/]))"
    rf"|(?P<short>{SHORT_MYRIADS})|(?P<number>{MYRIADS})|(?P<unclear>{UNCLEAR_MYRIADS})|(?P<plain>{PLAIN}))"
)
_MAY_BE_FOUND = re.compile(  # in what FOUND matches
    rf"\d|{SLOT.pattern}|[¼-¾⅐-⅞{SMALL_DIGITS}@#%{{_]|[IVX]{{2}}|[/+][A-Za-z.]|--[a-z]|://|www\.|WWW\.|\.[A-Za-z]"
)
FEW_VALUES = ("2", "3", "4")


class Entity(NamedTuple):
    """A number, an amount, a date, a time or a code in a text.

    Attributes:
        start: where it starts, in characters.
        text: as it is written.
        value: what is the same for 3,500 and 3.500, for 3万 and 30,000, for 1.5 million and 1,500,000, for 9 pm and
            21:00, for 5 km and 5 kilometers, and for May 3 and 5月3日.
        kind: ``MANY``, ``FEW`` or ``NAME``.
        number: what of it follows the conventions of a language: the 3,500 of €3,500, but nothing of Section 3.5.
        has_month: whether it is a date with the name of a month.
        is_ordinal: whether it is an ordinal number in digits, or a decade.
        in_digits: whether other languages get its value, as of a time of day, or of twenty-one.
        unit: the sign of its unit, if that is a word: € for 5 euros.
    """

    start: int
    text: str
    value: str
    kind: str
    number: str = ""
    has_month: bool = False
    is_ordinal: bool = False
    in_digits: bool = False
    unit: str = ""

    @property
    def end(self) -> int:
        """Where it ends, in characters."""
        return self.start + len(self.text)

    @property
    def bare(self) -> "Entity":
        """The number alone, without its unit or currency; what has a minus sign, a date, a time or a code as it is.

        So is a range that has a unit or currency twice.
        """
        has_signs = self.value[0] in SIGNS or UNIT_INSIDE.search(self.number)
        if not self.number or self.has_month or self.in_digits or has_signs:
            return self
        start = self.start + self.text.index(self.number)
        return self._replace(start=start, text=self.number, unit="")

    def written_for(self, src_lang: str, tgt_lang: str) -> str:
        """Return it as another language writes it: 3.500 € for €3,500."""
        if self.has_month:
            return write_date(self.value, tgt_lang)
        if self.is_ordinal:
            return write_ordinal(self.value, tgt_lang)
        if self.in_digits:
            if base_language(src_lang) == base_language(tgt_lang):
                return self.text
            digits = self.number or self.value
            unit = write_unit(self.unit, digits, tgt_lang) if self.unit else ""
            digits = digits.replace(POINT, decimal_and_group(tgt_lang)[0])
            return LONG.sub(lambda value: in_short(value[0], tgt_lang), digits) + unit
        number = written_for(self.number, src_lang, tgt_lang)
        if self.unit:
            sign, _, _ = self.text.partition(self.number)
            return MINUS.sub(HYPHEN, sign) + number + write_unit(self.unit, self.number, tgt_lang)
        written = MINUS.sub(HYPHEN, self.text.replace(self.number, number))
        if not self.number or base_language(tgt_lang) in WITH_MYRIADS:
            return written
        written = DASH.sub("", written.translate(AS_ASCII))
        if base_language(tgt_lang) == _FRENCH:
            written = BEFORE_PERCENT.sub("\u00a0", written)
        if has_signs_behind(tgt_lang):
            return IN_FRONT.sub("\\g<before>\\g<amount>\u00a0\\g<sign>", written)
        if base_language(tgt_lang) == _ENGLISH:
            return BEHIND.sub("\\g<before>\\g<sign>\\g<amount>", BEFORE_PERCENT.sub("", written))
        return written

    def with_slot(self, slot: str) -> str:
        """Return a slot as it stands for this in a text: apart from the next word for French "2 millions d'"."""
        return f"{slot} " if self.number.endswith(("'", "’")) else slot

    def suits(self, language: str) -> bool:
        """Tell whether a language has the same unit or month: no unit in Latin letters if it is written in others."""
        if self.has_month:
            return writes_date(self.value, language)
        if self.is_ordinal:
            return writes_ordinal(self.value, language)
        if self.unit:
            return has_unit_word(self.unit, language)
        unit = MINUS.sub("", self.text.replace(self.number, "")) if self.number else ""
        return has_latin_units(language) or not LATIN_UNIT.search(unit)


def find_entities(text: str, language: str) -> Iterable[Entity]:
    """Return the numbers and codes of a text, in order; those with a unit or currency first with it, then alone.

    A range comes before its two numbers, a date before its day, an ordinal number and one with "million" or "pm" before
    the number alone. The number 1 alone is left out where it may go with a singular. So is that of a month in Chinese
    or Japanese, which has a name in other languages, that of 8折, which is 20% off, and what is unclear, as 3万50 and
    3-5万. Chinese 3万5 is 35,000.
    """
    clocks = [Entity(*time, MANY, in_digits=True) for time in find_spoken_times(text, language)]
    if not _MAY_BE_FOUND.search(text):
        return clocks
    found = _numbers_and_codes(text, language)
    dates = [Entity(*date, MANY, has_month=True) for date in dict.fromkeys(find_dates(text, language))]
    clocks += [Entity(*time, MANY, in_digits=True) for time in find_clocks(text, language)]
    ordinals = [
        Entity(start, written, value, MANY, number, is_ordinal=True)
        for start, written, value, number in find_ordinals(text, language)
    ]
    if not dates and not clocks and not ordinals:
        return found
    known = {(each.start, each.value) for each in clocks}  # the 18:30 of "18:30 Uhr"
    others = (each for each in found if (each.start, each.value) not in known)
    return sorted([*dates, *clocks, *ordinals, *others], key=lambda each: (each.start, -each.end))


def _numbers_and_codes(text: str, language: str) -> Iterator[Entity]:
    is_chinese = base_language(language) in CHINESE_LANGUAGES
    for match in FOUND.finditer(text):
        kind = match.lastgroup
        is_other = kind in ("plain", "range") and text[match.end() : match.end() + 1] in (_MONTH, DISCOUNT)
        if is_other or kind == "unclear" or (kind == "short" and not is_chinese):
            continue
        are_several = kind == "groups" and not _is_one_number(text, match, language)
        numbers = [*re.finditer(PLAIN, match[0])] if kind == "range" or are_several else []
        parts = [number[0] for number in numbers] or [match[0]]
        word = large_word(language, of_money=is_of_money(text, match.start())).match(text, match.end())
        if word and not shares_word(text, match.start()) and kind in ("plain", "range", "fraction"):
            values = [in_full(part, word, language) for part in parts]
            if all(values):
                yield from _amounts(text, match.start(), match[0] + word[0], "-".join(values), language)
        is_product = kind == "range" and is_price(text, *match.span())
        if kind in ("short", "number", "plain", "groups", "range") and not are_several and not is_product:
            sign = "x" if re.search("[x×]", match[0]) else "-"
            yield from _amounts(text, match.start(), match[0], sign.join(map(value_of, parts)), language)
        for number in numbers:
            yield from _amounts(text, match.start() + number.start(), number[0], value_of(number[0]), language)
        if kind in ("code", "slot"):
            yield Entity(match.start(), match[0], match[0], NAME)
        elif kind == "fraction":
            yield from _amounts(text, match.start(), match[0], match[0], language)
        elif kind in ("date", "phone", "scale", "time"):
            yield Entity(match.start(), match[0], match[0], MANY, match[0])


def _is_one_number(text: str, groups: re.Match[str], language: str) -> bool:
    """Tell whether 12 500 are no two numbers: by the language, the kind of space, or the unit or currency beside it."""
    return bool(
        has_spaced_groups(language)
        or NO_PLAIN_SPACE.search(groups[0])
        or currency_before(text, groups.start())
        or AFTER.match(text, groups.end())
        or find_unit_word(text, groups.end(), language)
    )


def _amounts(text: str, start: int, number: str, value: str, language: str) -> Iterator[Entity]:
    """Yield a number of a text, and its sign, with its unit or currency, and alone unless it is a 1 before a noun."""
    end, kind = start + len(number), FEW if re.split("[-x]", value)[-1] in FEW_VALUES else MANY
    before = currency_before(text, start)
    dash = DASH.match(text, end)
    past = dash.end() if dash else end
    after = ATTACHED.match(text, end) or (None if before else AFTER.match(text, past))
    word = None if before or after else find_unit_word(text, past, language)
    if after and number.isdigit() and after[0].strip() in FALSE_UNITS.get(base_language(language), ()):
        after = None
    first = start - len(before[0]) if before else start
    if before and before["minus"]:
        value = f"{HYPHEN}{value}"
    if sign := sign_before(text, first):
        first, start = first - len(sign), start if before else start - len(sign)
        value = f"{re.sub(MINUS_SIGNS, HYPHEN, sign.strip())}{value}"
    elif minus := minus_before(text, start, end):
        first, start, value = start - len(minus), start - len(minus), f"{HYPHEN}{value}"
    if word:
        unit = unit_of(word[0].strip(), language)
        yield Entity(first, text[first : word.end()], f"{value} {unit}", kind, number, unit=unit)
    elif before or after:
        unit = f"{before['currency'] if before else ''}{after[0].strip() if after else ''}".translate(AS_ASCII)
        yield Entity(first, text[first : after.end() if after else past], f"{value} {unit}", kind, number)
    if value != "1" or ALONE.match(text, end):
        is_amount = before or after or word or large_word(language, of_money=False).match(text, end)
        keeps_point = not is_amount and is_named(text, start, number, language)
        yield Entity(start, text[start:past], value, kind, "" if keeps_point else number)


def with_numbers_for(text: str, src_lang: str, tgt_lang: str) -> str:
    """Write the numbers of a text as another language does; all else stays as it is."""
    parts, place = [], 0
    for entity in find_entities(text, src_lang):
        if entity.start >= place and entity.suits(tgt_lang):
            parts += [text[place : entity.start], entity.written_for(src_lang, tgt_lang)]
            place = entity.end
    return "".join([*parts, text[place:]])
