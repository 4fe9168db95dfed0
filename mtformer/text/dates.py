"""Dates with the name of a month, and how other languages write them: 24. Dezember 2025 for December 24, 2025."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

from mtformer.text.languages import base_language
from mtformer.text.number_words import CARDINALS
from mtformer.text.words import folded

_MONTHS = {  # as they are written in a date
    language: names
    for language, *names in map(
        str.split,
        (
            "en January February March April May June July August September October November December",
            "de Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
            "fr janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
            "es enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
            "it gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
            "pt janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
            "nl januari februari maart april mei juni juli augustus september oktober november december",
            "cs ledna února března dubna května června července srpna září října listopadu prosince",
            "pl stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
            "ru января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
            "zh 1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月",
        ),
    )
}
_DECLINING = ("cs", "pl", "ru")  # in which a month without a day has other forms than those above
_IN_SHORT = {  # months that are not shortened to three letters, or declined in them
    **{"nl": {3: "maa|mrt"}, "de": {3: "mar|mrz"}, "es": {9: "sep|set"}, "fr": {6: "juin", 7: "juil"}},
    "cs": {6: "cerv(?:en(?!e?c)|n)", 7: "cervene?c"},
    **{"ru": {5: "(?<![а-я])ма(?:[ияюе]|ем)(?![а-я])"}, "zh": {1: "[元一]月", 12: "[腊臘]月"}},
}
IN_DIGITS = re.compile(  # 2025-12-24, 24.12.2025, 12/24/2025
    r"(?<![\d./-])(?:[12]\d{3}(?P<dash>[./-])\d{1,2}(?P=dash)\d{1,2}"
    r"|\d{1,2}(?P<dot>[./-])\d{1,2}(?P=dot)[12]\d{3})(?![\d/-]|\.\d)"
)
_ROMAN = "I II III IV V VI VII VIII IX X XI XII".split()
_ENGLISH_VERBS = {"march", "may"}
_NO_VERB = "(?!M(?:ay|AY|arch|ARCH) [A-Z])"  # not "iPhone 15 May Cost More"
_NO_MODAL = "(?! (?:be|have|help|not|well)(?![a-z]))"  # not "by 10 may be too late"
_LETTER = r"A-Za-z0-9_\u00c0-\u024f\u0370-\u052f"  # also digits; Chinese follows without a space
_ORDINAL = "(?:st|nd|rd|th|ST|ND|RD|TH)"
_DAYS_OF_MONTH = "3[01]|[12][0-9]|0?[1-9]"
_TO = " (?:[-–]|to|bis(?: zum)?|au|al|a|tot|až|do|по) |[-–—~～至到]|(?<=[.])/"
_DAY = (  # or several days: 24-26 December, 24.-26. Dezember, 1er au 3 mai, 12月24日至26日
    rf"(?<![0-9][.,:/-])(?<![0-9])(?P<day>{_DAYS_OF_MONTH})"
    rf"(?:(?:{_ORDINAL}|er|[.日号])?(?:{_TO})(?P<last>{_DAYS_OF_MONTH}))?"
)
_DAY_END = rf"(?![{_LETTER}]|[.,:/-][0-9])"
_MONTH, _SHORT_MONTH, _ANY_MONTH = (  # the last one is also march and may
    rf"(?<![{_LETTER}])(?P<month>{names})(?![{_LETTER}])" for names in ("MONTHS", "SHORT", "ANY|SHORT")
)
_YEAR = rf"(?P<year>[12][0-9]{{3}})(?![{_LETTER}]|[.,:/-][0-9])"
END = "[\"'”’“»)]*$"  # the full stop before it is also that of the sentence
_IN, _ON, _OF = "In in", "On on By by Till till Until until Since since Before before After after From from", "to of"
_AFTER_IN, _AFTER_ON, _AFTER_OF = (
    "(?:" + "|".join(rf"(?<=(?<![{_LETTER}]){word} )" for word in words.split()) + ")" for words in (_IN, _ON, _OF)
)
_AFTER_DAY = "|".join(f"(?<=[0-9]{between})" for between in (", ", " and ", " or ", " to "))
_READ = {
    "en": (
        rf"{_DAY}{_ORDINAL}?(?: of)? {_NO_VERB}{_MONTH}",
        rf"{_DAY}{_ORDINAL}?(?: of)? {_ANY_MONTH},? {_YEAR}",
        rf"{_AFTER_ON}{_DAY}{_ORDINAL}?(?: of)? {_ANY_MONTH}{_NO_MODAL}",
        rf"{_ANY_MONTH} {_DAY}{_ORDINAL}?,? {_YEAR}",
        rf"{_ANY_MONTH} {_DAY}{_ORDINAL}(?![{_LETTER}])",
        rf"{_AFTER_ON}{_ANY_MONTH} {_DAY}{_DAY_END}",
        rf"(?:{_AFTER_OF}|{_AFTER_DAY}){_MONTH} {_DAY}{_DAY_END}",
        rf"(?!{_AFTER_IN}){_MONTH} {_DAY}{_DAY_END}(?=[,.;:!?)]|$| (?:and|or|to) )",  # not "In May 5 people came."
        rf"(?:{_AFTER_IN}|{_AFTER_ON}){_ANY_MONTH} {_YEAR}",
    ),
    "fr": (rf"{_DAY}(?:er)? {_MONTH}(?: {_YEAR})?",),
    "zh": (
        rf"(?:(?<![0-9])(?P<year>[12][0-9]{{3}})年)?(?<![0-9])(?P<month>MONTHS){_DAY}(?:日|号(?![线楼]))",
        "(?<![0-9])(?P<year>[12][0-9]{3})年(?P<month>MONTHS)(?![0-9])份?",
    ),
    "de": (
        rf"{_DAY}\. ?{_MONTH}(?: {_YEAR})?",
        rf"{_DAY}\. ?{_SHORT_MONTH} {_YEAR}",
        rf"{_DAY}\. ?{_SHORT_MONTH}(?:(?<=\.)|(?=\.))",
    ),
    "cs": (rf"{_DAY}\. ?{_MONTH}(?: {_YEAR})?",),
    **dict.fromkeys(("es", "pt"), (rf"{_DAY} de {_MONTH}(?: de {_YEAR})?",)),
}
_USUALLY_READ = (rf"{_DAY} {_MONTH}(?: {_YEAR})?",)
_WITHOUT_DAY = rf"(?<![^0-9][-–/]){_MONTH}(?: de)? {_YEAR}"
_WRITTEN = {  # in brackets, what is left out without a day or a year
    "zh": "[{year}年]{month}[{day}日]",
    **dict.fromkeys(("de", "cs"), "[{day}. ]{month}[ {year}]"),
    **dict.fromkeys(("es", "pt"), "[{day} de ]{month}[ de {year}]"),
}
_USUALLY_WRITTEN = "[{day} ]{month}[ {year}]"
_IN_BRACKETS = re.compile(r"\[([^{]*\{(\w+)\}[^]]*)\]")


@cache
def describe_dates(language: str) -> dict[str, Any] | None:
    """Return the names of months, patterns with groups for day, month and year, and how a date is written.

    Also what shows each month in a text in small letters without accents: shortened, in digits and in Roman numerals.

    None for a language whose dates are not known here.
    """
    base = base_language(language)
    months = _MONTHS.get(base)
    if months is None:
        return None
    forms = {case(name) for name in months for case in (str.capitalize, str.upper, str.lower)}
    short = {case(name[:3]) for name in months if len(name) > 3 for case in (str.capitalize, str.lower)}  # not May
    names = {
        "MONTHS": "|".join(sorted(forms - _ENGLISH_VERBS, reverse=True)),
        "ANY": "|".join(sorted(forms, reverse=True)),
        "SHORT": rf"(?:{'|'.join(sorted({*short, 'Sept', 'sept'}, reverse=True))})(?:\.(?!{END}))?",
    }
    patterns = (*_READ.get(base, _USUALLY_READ), *(() if base in _DECLINING else (_WITHOUT_DAY,)))
    return {
        "months": months,
        "patterns": [re.sub("MONTHS|SHORT|ANY", lambda place: names[place[0]], pattern) for pattern in patterns],
        "shown": [_shown(base, number, name) for number, name in enumerate(months, 1)],
        "written": _WRITTEN.get(base, _USUALLY_WRITTEN),
        "declines": base in _DECLINING,
    }


def _shown(language: str, number: int, name: str) -> str:
    short = _IN_SHORT.get(language, {}).get(number, folded(name)[:3])
    in_digits = rf"(?<!\d)0?{number}(?!\d)|{CARDINALS['zh'][number - 1]}月|\d\.? ?{_ROMAN[number - 1].lower()}(?![a-z])"
    return f"{short}|{in_digits}"


@cache
def _patterns(language: str) -> list[re.Pattern[str]]:
    described = describe_dates(language)
    return [re.compile(pattern) for pattern in described["patterns"]] if described else []


def find_dates(text: str, language: str) -> Iterator[tuple[int, str, str]]:
    """Yield the dates of a text, each with its place, and its value: 2025-12-24, -12-24 without a year.

    Several days are 2025-12-24–26, and a month without a day is 2025-12-.
    """
    for pattern in _patterns(language):
        for date in pattern.finditer(text):
            parts = date.groupdict() | {"month": date["month"].lower().rstrip(".")}
            month = [name.lower().startswith(parts["month"]) for name in _MONTHS[base_language(language)]].index(True)
            days = "–".join(str(int(day)) for day in (parts.get("day"), parts.get("last")) if day)
            yield date.start(), date[0], f"{parts.get('year') or ''}-{month + 1}-{days}"


def writes_date(value: str, language: str) -> bool:
    """Tell whether :func:`write_date` knows how a language writes a date."""
    base = base_language(language)
    return base in _MONTHS and not (value.endswith("-") and base in _DECLINING)


def lost_dates(source: str, translation: str, src_lang: str, tgt_lang: str) -> list[str]:
    """Return the dates whose month a translation lacks, also shortened, without accents, and in digits.

    A date in digits is lost if the translation has another one of its year instead.
    """
    in_digits, described = list(_dates_in_digits(source)), describe_dates(tgt_lang)
    dates = list(find_dates(source, src_lang)) if described else []
    if not dates and not in_digits:
        return []
    there = [date[1:] for date in (*_dates_in_digits(translation), *_full_dates(translation, tgt_lang))]
    of_year = Counter(year for year, _ in there)
    of_year.subtract(year for _, year, _ in in_digits)  # December 24 and 31, 2023 has only one
    lost = [date for date, year, days in in_digits if of_year[year] >= 0 and (year, days) not in there]
    shown, written = described["shown"] if described else (), folded(translation)
    lost += [date for _, date, value in dates if not re.search(shown[int(value.split("-")[1]) - 1], written)]
    distinct = dict.fromkeys(lost)
    return [date for date in distinct if not any(date != other and date in other for other in distinct)]


def _dates_in_digits(text: str) -> Iterator[tuple[str, str, list[int]]]:
    """Yield the dates in digits with a year: as written, the year, and the day and the month in numerical order."""
    for date in IN_DIGITS.finditer(text):
        parts = re.findall(r"\d+", date[0])
        year = max(parts, key=len)
        yield date[0], year, sorted(int(part) for part in parts if part != year)


def _full_dates(text: str, language: str) -> Iterator[tuple[str, str, list[int]]]:
    """Yield the dates with the name of a month, a day and a year, as :func:`_dates_in_digits` yields others."""
    for _, date, value in find_dates(text, language):
        year, month, day = value.split("-")
        if year and day.isdigit():
            yield date, year, sorted((int(month), int(day)))


def write_date(value: str, language: str) -> str:
    """Write the value of a date, as :func:`find_dates` yields it, in a language."""
    year, month, days = value.split("-")
    base = base_language(language)
    form = _WRITTEN.get(base, _USUALLY_WRITTEN)
    between = ".–" if "{day}." in form else "–"
    day = between.join("1er" if base == "fr" and day == "1" else day for day in days.split("–"))
    parts = {"year": year, "month": _MONTHS[base][int(month) - 1], "day": day}
    return _IN_BRACKETS.sub(lambda part: part[1] if parts[part[2]] else "", form).format(**parts)
