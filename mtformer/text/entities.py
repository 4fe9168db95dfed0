"""Numbers, dates and codes in texts, which a translation keeps, and how another language writes the numbers."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from mtformer.text.clocks import find_clocks
from mtformer.text.codes import CODES, CURRENCY, GAP, LATIN, PLACEHOLDER, SMALL_DIGITS
from mtformer.text.dates import find_dates, write_date, writes_date
from mtformer.text.languages import (
    UNDETERMINED,
    base_language,
    decimal_and_group,
    has_latin_units,
    has_signs_behind,
    has_spaced_groups,
)
from mtformer.text.number_words import large_plurals, large_words
from mtformer.text.numbers import (
    GROUPS,
    MYRIADS,
    PLAIN,
    POINT,
    RANGE,
    SHORT_MYRIADS,
    UNCLEAR_MYRIADS,
    Number,
    has_myriads,
    value_of,
)
from mtformer.text.spelled_numbers import PERCENT_OF, find_spelled_numbers, has_spelled_numbers
from mtformer.text.spoken_times import find_spoken_times
from mtformer.text.unit_words import find_unit_word, has_unit_word, may_have_unit_word, unit_of, write_unit
from mtformer.text.words import WORD

# The kinds of what is found. Numbers of two to four decline otherwise in Slavic languages.
MANY, FEW, NAME = "many", "few", "names"
SLOT = re.compile("[\ue000-\ue00f]")  # what stands for them in the texts of a model; see mtformer.text.slots

_DATE = (  # also 3/14, 24/7 and 978-3-16-148410-0
    r"\d+(?:-\d+){2,}|\d{4}(?P<dot>[/.])\d{1,2}(?P=dot)\d{1,2}"
    r"|\d{1,2}(?P<stroke>[/.])\d{1,2}(?P=stroke)(?:\d{4}|\d{2})|\d{1,4}/\d{1,4}(?!/)"
)
_PHONE = (  # +49 170 1234567, (030) 123-4567, +49 (0)30 1234-5678, 0171/123 45 67
    r"\+\d{1,3}(?:[ ()/-]{1,2}\d{2,}){2,}"
    r"|(?:\+\d{1,3} ?)?\((?:0|0?\d{2,4})\)[ /-]?\d{2,}(?:[ /-]\d{2,}|-\d){1,4}(?![\d:])"
    r"|(?<![\d.,:/-])0\d{2,4}[ /-]\d{2,}(?:[ -]\d{2,}|-\d){0,4}(?!\d|[.,:/-]\d)"
)
_TIME = r"\d{1,2}[:：]\d{2}(?:[:：]\d{2})?"
# Not within 1,000.5 where the 1 belongs to something else, as in v1,000.5.
_NUMBER_START = rf"(?:(?<![A-Za-z_\d])|(?<=(?<![{LATIN}])(?:{CURRENCY})))(?<!\d[.,])"
SHARING = re.compile(  # before 4 million, which may also go with the 2 of 2 to 4 million
    r"\d ?(?:[-–—&]|to|till|until|and|or|bis|und|oder|à|et|ou|a|y|o|e|tot|en|of|och|eller|až|do|nebo|i|lub|до|и|или)"
    r" ?[$€£¥]?$"
)
_LONGEST_SHARING = 9  # characters: "2 until $"
_ENGLISH = "en"
_CHINESE_LANGUAGES = ("zh", "yue")
_WITH_MYRIADS = (*_CHINESE_LANGUAGES, "ja")
IP_ADDRESS = re.compile(r"(?:(?:1?\d{1,2}|2[0-4]\d|25[0-5])(?:\.|$)){4}")
_AS_ASCII = str.maketrans(
    dict(zip("０１２３４５６７８９，．：～％￥℃℉", [*"0123456789,.:-%¥", "°C", "°F"], strict=True))  # also units
)
_MONTH = "月"
FOUND = re.compile(
    rf"(?P<slot>{SLOT.pattern})|(?P<code>{CODES})|(?P<phone>{_PHONE})"
    rf"|(?<![\d.,:/-])(?P<date>{_DATE})(?![\d:/]|[.,]\d)|{_NUMBER_START}(?P<range>{RANGE})"
    rf"|(?<![\d.,:/-])(?P<time>{_TIME})(?![\d:/])|(?P<groups>{GROUPS})"
    rf"|(?:{_NUMBER_START}|(?<=\dx))"
    r"(?:(?P<fraction>\d*[¼-¾⅐-⅞]|\d{1,2} [1-9]/(?:[2-9]|16)(?![\d/]))"
    rf"|(?P<short>{SHORT_MYRIADS})|(?P<number>{MYRIADS})|(?P<unclear>{UNCLEAR_MYRIADS})|(?P<plain>{PLAIN}))"
)
_MAY_BE_FOUND = re.compile(  # in what FOUND matches
    rf"\d|{SLOT.pattern}|[¼-¾⅐-⅞{SMALL_DIGITS}@%{{_]|[IVX]{{2}}|://|www\.|WWW\.|\.[A-Za-z]"
)
_RANGE = re.compile(RANGE)
_FEW_VALUES = ("2", "3", "4")
_SIGN, _DOLLAR = "[$€£¥￥₹₽]", r"[A-Z]{1,2}\$"  # US$
_SIGNS_BEFORE = "-−–+±~≈<>≤≥"
IN_FRONT = re.compile(rf"^(?P<before>[{_SIGNS_BEFORE}]?)(?P<sign>{_DOLLAR}|{_SIGN}){GAP}(?P<amount>[^{_SIGN[1:]}+)$")
BEHIND = re.compile(  # not 5 M€
    rf"^(?P<before>[{_SIGNS_BEFORE}]?)(?P<amount>[^{_SIGN[1:]}*(?:\d|[a-z]{{4}})){GAP}(?P<sign>{_DOLLAR}|{_SIGN})$"
)
BEFORE = re.compile(rf"(?<![{LATIN}])(?:{_DOLLAR}|{_SIGN}|{CURRENCY}){GAP}$")
OF_MONEY = re.compile(rf"{BEFORE.pattern}|{_SIGN}[\d.,]+[a-z]{{1,2}}[-–]$")  # $5, $5m-
_LONGEST_OF_MONEY = 15  # characters: "$1,000.50bn-"
ATTACHED = re.compile(  # 5k, £2.5k, $100K, 4.5M people, 100+, 3 × €5
    rf"[kKMBT](?![{LATIN}$€£'’&]|-[A-Za-z]|\.[A-Za-z0-9])|\+(?![\w+(])|{GAP}[x×](?={GAP}{_SIGN}?\d)"
)
_UNITS_OF_TIME = ("h", "min", "s")
_ORDINAL_SIGN = "第"  # 第五公里 is the fifth kilometer
_TO = ("to", "bis", "到", "至")  # between two numbers in words
_FRACTIONS = str.maketrans({"¼": ".25", "½": ".5", "¾": ".75"})  # of a million
_MOST_DIGITS_BEFORE_LARGE = 3  # before "million": 2010 is a year
LONG = re.compile(r"^\d{5,}$")  # a number that is written with separators or "million"; four digits may be a year
_ZEROS = 3  # that each of the words stands for more than the one before
_LONGEST_BEFORE_NUMBER = 5  # characters: " EUR ", " US$ "
SIGN_BEFORE = re.compile(rf"(?:^|(?<=[\s(\[]))[{_SIGNS_BEFORE}]$")  # of -5, -€5, ±5, but not of 3-5 and A-5
_MINUS_SIGNS, _HYPHEN, _EN_DASH = "[−–]", "-", "–"
# A word for it before degrees: minus 20 degrees, moins 5 °C, 零下二十度. Elsewhere it may be that of "ten minus three".
_MINUS = "[Mm](?:inus|oins|enos?)[ \u00a0]|零下"
MINUS, MINUS_BEFORE = re.compile(f"^(?:{_MINUS})"), re.compile(f"(?<![{LATIN}])(?:{_MINUS})$")
DEGREES = re.compile(f"{GAP}(?:[°度℃℉]|[Dd]egr|[Gg]ra[dou]|stup|stop|摄氏|华氏)")
_LONGEST_MINUS = 7  # characters: " minus ", with the one before
NO_PLAIN_SPACE = re.compile("[\u00a0\u2009\u202f]| 0")
PRICE = re.compile(rf"[x×].*\d{GAP}(?:{_SIGN}|(?:{CURRENCY})(?![{LATIN}]))")  # 3 × 4.99 €, whose 3 is apart
DASH = re.compile(r",[-–—]{1,2}(?!\w)")  # 25,- € is 25 €
ALONE = re.compile(r"(?:[,:;!?)\]，：；！？）]|[.。]?$)(?!\d)")  # what follows a 1 that is no article
_UNIT = (
    "[cdkmµμ]?m[²³]?|[kmµμ]?g|[cm]?l|t|km/h|m/s|mph|kph|ft|lbs|oz|min|ms|[kMG]?Hz|[kMGT]B|[kM]?Wh?|[kM]?V|mAh|dB|px|Kč|zł"
    "|[hkM]Pa|mbar|ppm|fps|rpm|hp|m?mol"
)
_AFTER_DECIMALS = r"(?<=[.,]\d)|(?<=[.,]\d[ \d])|(?<=[.,]\d\d )"  # 9.58s, unlike the 1990s and 18 h
_PER = "/(?:kg|g|l|[cm]?m[²³]?|km|h|min|s|d)"
AFTER = re.compile(  # not the start of what comes next: 2010 $5, 5 ${items}, 5 °Celsius, 5 t-shirts, 5 l'autre
    rf"{GAP}(?!{PLACEHOLDER})(?:(?:{_DOLLAR}|(?:[kM]|Md)?{_SIGN}|(?:{CURRENCY})(?![{LATIN}]))(?:{_PER})?(?!{GAP}\d)"
    rf"|[%％‰℃℉]|°[CF]?(?![{LATIN}])|(?:{_UNIT}|(?:{_AFTER_DECIMALS})[hs])(?:{_PER})?(?!['’-]?[{LATIN}]|/))"
)
FALSE_UNITS = {  # words of other meanings: 2010 m. is a year, 5 t may be hours
    **{"lt": ("m",), "sv": ("min",)},
    **dict.fromkeys(("da", "nb", "nn", "no"), ("min", "t")),
}
# Numbers that are no quantities keep their points: those of sections and figures, which follow words such as these, and
# those of versions, which follow names: PyTorch 2.13, HTTP/1.1 and, inside of a sentence, Ubuntu 22.04.
_NUMBERED = "|".join(
    f"[{word[0].upper()}{word[0]}]{word[1:]}s?"
    for word in "appendix article chapter clause equation exercise figure level paragraph release rule section step "
    "table version android java linux python ubuntu windows".split()
)
_NO_NAMES = "AUD|BRL|CAD|DKK|HKD|HUF|INR|KRW|MXN|NOK|NZD|RUB|SEK|SGD|THB|TRY|ZAR|pH "  # but quantities
_NAMED = (
    rf"(?<![{LATIN}])(?:"
    rf"(?:{_NUMBERED}|(?:[Aa]pp|[Aa]rt|[Cc]h|[Ee]qs?|[Ff]igs?|[Nn]o|[Ss]ec|[Tt]ab|[Vv]er)\.)[ \u00a0]\(?"  # Eq. (3.2)
    r"|(?:[A-Z]{2,5}|(?=[A-Z]*[a-z])[A-Za-z]+[A-Z][A-Za-z]*|(?<=[\w,;)] )[A-Z][a-z]{2,})[ \u00a0]|[A-Za-z]{2,}/)"
)
POINTED = r"\d{1,4}\.\d{1,3}(?:[-–]\d{1,4}\.\d{1,3})?"
NAMED = re.compile(  # also the second of Sections 3.2 and 3.4
    rf"(?:(?!{_NO_NAMES}|{CURRENCY}){_NAMED}|(?:[第图表版圖]|版本) ?)"
    rf"(?:{POINTED}\)?(?:,? (?:and|or|to) \(?|, ?\(?|[和、及]))*$"
)
_LONGEST_NAMED = 60  # characters
LATIN_UNIT = re.compile("(?<!°)[A-Za-z]")
_SPELLED_OUT = {
    language: {word: value for value, word in enumerate(words, 2)}
    for language, *words in map(
        str.split,
        (
            "en two three four five six seven eight nine ten eleven twelve",
            "de zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
            "fr deux trois quatre cinq six sept huit neuf dix onze douze",
            "es dos tres cuatro cinco seis siete ocho nueve diez once doce",
            "it due tre quattro cinque sei sette otto nove dieci undici dodici",
            "pt dois três quatro cinco seis sete oito nove dez onze doze",
            "nl twee drie vier vijf zes zeven acht negen tien elf twaalf",
            "sv två tre fyra fem sex sju åtta nio tio elva tolv",
            "cs dva tři čtyři pět šest sedm osm devět deset jedenáct dvanáct",
            "pl dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć jedenaście dwanaście",
            "ru два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать",
        ),
    )
}


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
        in_digits: whether other languages get its value, as of a time of day, or of twenty-one.
        unit: the sign of its unit, if that is a word: € for 5 euros.
    """

    start: int
    text: str
    value: str
    kind: str
    number: str = ""
    has_month: bool = False
    in_digits: bool = False
    unit: str = ""

    @property
    def end(self) -> int:
        """Where it ends, in characters."""
        return self.start + len(self.text)

    def written_for(self, src_lang: str, tgt_lang: str) -> str:
        """Return it as another language writes it: 3.500 € for €3,500."""
        if self.has_month:
            return write_date(self.value, tgt_lang)
        if self.in_digits:
            if base_language(src_lang) == base_language(tgt_lang):
                return self.text
            digits = self.number or self.value
            unit = write_unit(self.unit, digits, tgt_lang) if self.unit else ""
            return LONG.sub(lambda value: _in_short(value[0], tgt_lang), digits) + unit
        number = written_for(self.number, src_lang, tgt_lang)
        if self.unit:
            sign, _, _ = self.text.partition(self.number)
            return MINUS.sub(_HYPHEN, sign) + number + write_unit(self.unit, self.number, tgt_lang)
        written = MINUS.sub(_HYPHEN, self.text.replace(self.number, number))
        if not self.number or base_language(tgt_lang) in _WITH_MYRIADS:
            return written
        written = DASH.sub("", written.translate(_AS_ASCII))
        if has_signs_behind(tgt_lang):
            return IN_FRONT.sub("\\g<before>\\g<amount>\u00a0\\g<sign>", written)
        if base_language(tgt_lang) == _ENGLISH:
            return BEHIND.sub("\\g<before>\\g<sign>\\g<amount>", written)
        return written

    def with_slot(self, slot: str) -> str:
        """Return a slot as it stands for this in a text: apart from the next word for French "2 millions d'"."""
        return f"{slot} " if self.number.endswith(("'", "’")) else slot

    def suits(self, language: str) -> bool:
        """Tell whether a language has the same unit or month: no unit in Latin letters if it is written in others."""
        if self.has_month:
            return writes_date(self.value, language)
        if self.unit:
            return has_unit_word(self.unit, language)
        unit = MINUS.sub("", self.text.replace(self.number, "")) if self.number else ""
        return has_latin_units(language) or not LATIN_UNIT.search(unit)


def find_entities(text: str, language: str) -> Iterable[Entity]:
    """Return the numbers and codes of a text, in order; those with a unit or currency first with it, then alone.

    A range comes before its two numbers, a date before its day, and a number with "million" or "pm" before itself. The
    number 1 alone is left out where it may go with a singular. So is that of a month in Chinese or Japanese, which has
    a name in other languages, and what is unclear, as 3万50 and 3-5万. Chinese 3万5 is 35,000.
    """
    clocks = [Entity(*time, MANY, in_digits=True) for time in find_spoken_times(text, language)]
    if not _MAY_BE_FOUND.search(text):
        return clocks
    found = _numbers_and_codes(text, language)
    dates = [Entity(*date, MANY, has_month=True) for date in dict.fromkeys(find_dates(text, language))]
    clocks += [Entity(*time, MANY, in_digits=True) for time in find_clocks(text, language)]
    if not dates and not clocks:
        return found
    known = {(each.start, each.value) for each in clocks}  # the 18:30 of "18:30 Uhr"
    others = (each for each in found if (each.start, each.value) not in known)
    return sorted([*dates, *clocks, *others], key=lambda each: (each.start, -each.end))


def _numbers_and_codes(text: str, language: str) -> Iterator[Entity]:
    is_chinese = base_language(language) in _CHINESE_LANGUAGES
    for match in FOUND.finditer(text):
        kind = match.lastgroup
        is_month = kind in ("plain", "range") and text[match.end() : match.end() + 1] == _MONTH
        if is_month or kind == "unclear" or (kind == "short" and not is_chinese):
            continue
        are_several = kind == "groups" and not _is_one_number(text, match, language)
        numbers = [*re.finditer(PLAIN, match[0])] if kind == "range" or are_several else []
        parts = [number[0] for number in numbers] or [match[0]]
        is_apart = not SHARING.search(text[max(0, match.start() - _LONGEST_SHARING) : match.start()])
        before = text[max(0, match.start() - _LONGEST_OF_MONEY) : match.start()]
        word = large_word(language, of_money=bool(OF_MONEY.search(before))).match(text, match.end())
        if word and is_apart and kind in ("plain", "range", "fraction"):
            values = [_in_full(part, word) for part in parts]
            if all(values):
                yield from _amounts(text, match.start(), match[0] + word[0], "-".join(values), language)
        is_price = kind == "range" and PRICE.search(match[0] + text[match.end() : match.end() + _LONGEST_BEFORE_NUMBER])
        if kind in ("short", "number", "plain", "groups", "range") and not are_several and not is_price:
            sign = "x" if re.search("[x×]", match[0]) else "-"
            yield from _amounts(text, match.start(), match[0], sign.join(map(value_of, parts)), language)
        for number in numbers:
            yield from _amounts(text, match.start() + number.start(), number[0], value_of(number[0]), language)
        if kind in ("code", "slot"):
            yield Entity(match.start(), match[0], match[0], NAME)
        elif kind == "fraction":
            yield from _amounts(text, match.start(), match[0], match[0], language)
        elif kind in ("date", "phone", "time"):
            yield Entity(match.start(), match[0], match[0], MANY, match[0])


def _is_one_number(text: str, groups: re.Match[str], language: str) -> bool:
    """Tell whether 12 500 are no two numbers: by the language, the kind of space, or the unit or currency beside it."""
    return bool(
        has_spaced_groups(language)
        or NO_PLAIN_SPACE.search(groups[0])
        or BEFORE.search(text[max(0, groups.start() - _LONGEST_BEFORE_NUMBER) : groups.start()])
        or AFTER.match(text, groups.end())
        or find_unit_word(text, groups.end(), language)
    )


@lru_cache
def large_word(language: str, *, of_money: bool) -> re.Pattern[str]:
    """Return the pattern of a word such as "million" after a number, or after a slot for one."""
    words = large_words(language, of_money=of_money) or "(?!)"
    return re.compile(rf"(?<=[\d¼-¾\ue000-\ue00f])(?:{words})(?:(?<=['’])|(?!\w))", re.IGNORECASE)


def _in_full(number: str, word: re.Match[str]) -> str:
    """Return the digits of 1.5 or 1½ million; none if the number is too long before such a word, as a year may be."""
    (whole, *decimals), zeros = value_of(number.translate(_FRACTIONS)).split(POINT), _ZEROS * (word.lastindex or 0)
    part = POINT.join(decimals)
    if len(whole) > _MOST_DIGITS_BEFORE_LARGE or len(part) > zeros or len(decimals) > 1:
        return ""
    return str(int(whole + part.ljust(zeros, "0")))


def _amounts(text: str, start: int, number: str, value: str, language: str) -> Iterator[Entity]:
    """Yield a number of a text, and its sign, with its unit or currency, and alone unless it is a 1 before a noun."""
    end, kind = start + len(number), FEW if re.split("[-x]", value)[-1] in _FEW_VALUES else MANY
    before = BEFORE.search(text[max(0, start - _LONGEST_BEFORE_NUMBER) : start])
    dash = DASH.match(text, end)
    past = dash.end() if dash else end
    after = ATTACHED.match(text, end) or (None if before else AFTER.match(text, past))
    word = None if before or after else find_unit_word(text, past, language)
    if after and after[0].strip() in FALSE_UNITS.get(base_language(language), ()):
        after = None
    first = start - len(before[0]) if before else start
    if SIGN_BEFORE.search(text[max(0, first - 2) : first]):
        first, start = first - 1, start if before else start - 1
        value = f"{re.sub(_MINUS_SIGNS, _HYPHEN, text[first])}{value}"
    elif minus := _minus_before(text, start, end):
        first, start, value = start - len(minus), start - len(minus), f"{_HYPHEN}{value}"
    if word:
        unit = unit_of(word[0].strip(), language)
        yield Entity(first, text[first : word.end()], f"{value} {unit}", kind, number, unit=unit)
    elif before or after:
        unit = "".join(part[0].strip() for part in (before, after) if part).translate(_AS_ASCII)
        yield Entity(first, text[first : after.end() if after else past], f"{value} {unit}", kind, number)
    if value != "1" or ALONE.match(text, end):
        is_amount = before or after or word or large_word(language, of_money=False).match(text, end)
        keeps_point = not is_amount and _is_named(text, start, number, language)
        yield Entity(start, text[start:past], value, kind, "" if keeps_point else number)


def _minus_before(text: str, start: int, end: int) -> str:
    """Return the word for a minus sign before the number of degrees at a place; an empty string if there is none."""
    found = MINUS_BEFORE.search(text[max(0, start - _LONGEST_MINUS) : start])
    return found[0] if found and DEGREES.match(text, end) else ""


def _is_named(text: str, start: int, number: str, language: str) -> bool:
    """Tell whether a number with a decimal point numbers a section or version."""
    return bool(
        re.fullmatch(POINTED, number)
        and decimal_and_group(language)[0] == "."
        and NAMED.search(text[max(0, start - _LONGEST_NAMED) : start])
    )


def written_for(text: str, src_lang: str, tgt_lang: str) -> str:
    """Write a number with the separators of another language; anything ambiguous stays as it is.

    ``1,250.5`` in English is ``1.250,5`` in German; dates and versions such as ``1.2.3`` are kept. Chinese and Japanese
    keep full-width digits, and numbers in 万 and 亿. ``1.5 million`` is in digits where the word declines.
    """
    word = large_word(src_lang, of_money=True).search(f"{text} ")  # 2 mld. is no end of a sentence
    if word is not None:
        number, rank = text[: word.start()], word.lastindex or 0
        plurals = large_plurals(tgt_lang)
        if plurals and rank > 1 and number != "1":
            return f"{written_for(number, src_lang, tgt_lang)} {plurals[rank - 2]}"
        number = number.translate(_FRACTIONS)
        return re.sub(PLAIN, lambda each: _in_digits(_in_full(each[0], word), tgt_lang), number)
    if _RANGE.fullmatch(text):
        return re.sub(PLAIN, lambda number: written_for(number[0], src_lang, tgt_lang), text)
    if base_language(tgt_lang) not in _WITH_MYRIADS:
        if has_myriads(text):
            return _in_digits(value_of(text), tgt_lang)
        text = text.translate(_AS_ASCII)
    (src_point, src_group), (tgt_point, tgt_group) = decimal_and_group(src_lang), decimal_and_group(tgt_lang)
    text = re.sub(r"^[-–]?(?=[.,]\d)", "0", text)  # .5
    grouped = rf"\d{{1,3}}(?:[{re.escape(src_group)} \u00a0\u2009\u202f]\d{{3}})+"
    match = re.fullmatch(rf"(?P<whole>{grouped}|\d+)(?P<decimals>{re.escape(src_point)}\d+)?", text)
    if match is None or base_language(src_lang) == UNDETERMINED or IP_ADDRESS.fullmatch(text):
        return text
    return re.sub(r"\D", tgt_group, match["whole"]) + (match["decimals"] or "").replace(src_point, tgt_point)


def _in_short(value: str, language: str) -> str:
    """Return 35 million or 1.5 million for such numbers where the word has one form, and all digits of others."""
    for rank, plural in reversed([*enumerate(large_plurals(language), 2)]):
        whole, decimals = value[: -_ZEROS * rank], value[-_ZEROS * rank :].rstrip("0")
        if 1 <= len(whole) <= _ZEROS and len(decimals) <= 1 and whole + decimals != "1":
            return f"{whole}{decimal_and_group(language)[0] if decimals else ''}{decimals} {plural}"
    return _in_digits(value, language)


def _in_digits(value: str, language: str) -> str:
    return f"{int(value):,}".replace(",", decimal_and_group(language)[1])


def with_numbers_for(text: str, src_lang: str, tgt_lang: str) -> str:
    """Write the numbers of a text as another language does; all else stays as it is."""
    parts, place = [], 0
    for entity in find_entities(text, src_lang):
        if entity.start >= place and entity.suits(tgt_lang):
            parts += [text[place : entity.start], entity.written_for(src_lang, tgt_lang)]
            place = entity.end
    return "".join([*parts, text[place:]])


def lost_units(source: str, translation: str, src_lang: str, tgt_lang: str) -> list[str]:
    """Return the amounts of a text whose units are words, as 5 kilometers, that its translation lacks.

    Of those with numbers in words, one, as in an hour, and times, which may be half an hour, do not count; of a range,
    its second number does.
    """
    amounts = [entity for entity in find_entities(source, src_lang) if entity.unit]
    if has_spelled_numbers(tgt_lang):
        in_words = (each for each in spelled_amounts(source, src_lang) if each.unit not in _UNITS_OF_TIME)
        amounts += (each for each in in_words if each.number != "1" and _EN_DASH not in each.number)
    amounts = [amount for amount in amounts if amount.suits(tgt_lang)]
    if not amounts:
        return []
    of_translation = (*find_entities(translation, tgt_lang), *spelled_amounts(translation, tgt_lang))
    there = {entity.value.replace("½", f"{POINT}5") for entity in of_translation}
    return [amount.text for amount in amounts if amount.value.replace("½", f"{POINT}5") not in there]


def spelled_amounts(text: str, language: str) -> Iterator[Entity]:
    """Yield the amounts of a text whose numbers are words, as five kilometers; they are as in digits.

    A range, as five to ten kilometers, comes before its second number.
    """
    if PERCENT_OF not in text and not may_have_unit_word(text, language):  # which is faster
        return
    before = None
    for number in find_spelled_numbers(text, language, small=True):
        word = find_unit_word(text, number.end, language)
        unit = "%" if number.text.startswith(PERCENT_OF) else unit_of(word[0].strip(), language) if word else ""
        if unit and text[number.start - 1 : number.start] != _ORDINAL_SIGN:
            minus = _minus_before(text, number.start, number.end)
            end, kind = word.end() if word else number.end, FEW if number.value in _FEW_VALUES else MANY
            value, digits = f"{_HYPHEN * bool(minus)}{number.value} {unit}", _digits_of(number, minus)
            if before and text[before.end : number.start].strip().lower() in _TO:
                start, range_ = before.start, f"{_digits_of(before)}{_EN_DASH}{digits}"
                yield Entity(start, text[start:end], f"{before.value}-{value}", kind, range_, in_digits=True, unit=unit)
            start = number.start - len(minus)
            yield Entity(start, text[start:end], value, kind, digits, in_digits=True, unit=unit)
        before = number


def larger_spelled_out(text: str, language: str) -> Iterator[Entity]:
    """Yield the numbers from 13 on, and with a half, that a text spells out; they are as in digits."""
    for number in find_spelled_numbers(text, language):
        minus = _minus_before(text, number.start, number.end)
        digits, start = _digits_of(number, minus), number.start - len(minus)
        yield Entity(start, minus + number.text, digits, MANY, in_digits=True)


def _digits_of(number: Number, minus: str = "") -> str:
    return _HYPHEN * bool(minus) + number.value.replace(f"{POINT}5", "½")


def spelled_out(text: str, language: str) -> Iterator[Entity]:
    """Yield the numbers from two to twelve that a text spells out."""
    values = _SPELLED_OUT.get(base_language(language), {})
    for word in WORD.finditer(text) if values else ():
        value = values.get(word[0].lower())
        if value is not None:
            yield Entity(word.start(), word[0], f"word {value}", FEW if str(value) in _FEW_VALUES else MANY)
