"""Dates with the name of a month, and how other languages write them: 24. Dezember 2025 for December 24, 2025."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from mtformer.text.languages import base_language

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
_ENGLISH_VERBS = {"march", "may"}
_NO_VERB = "(?!M(?:ay|AY|arch|ARCH) [A-Z])"  # not "iPhone 15 May Cost More"
_LETTER = r"A-Za-z0-9_\u00c0-\u024f\u0370-\u052f"  # also digits; Chinese follows without a space
_DAY = r"(?<![0-9][.,:/-])(?<![0-9])(?P<day>3[01]|[12][0-9]|0?[1-9])"
_MONTH = rf"(?<![{_LETTER}])(?P<month>MONTHS)(?![{_LETTER}])"
_SHORT_MONTH = rf"(?<![{_LETTER}])(?P<month>SHORT|Sept)\.?"
_YEAR = rf"(?P<year>[12][0-9]{{3}})(?![{_LETTER}]|[.,:/-][0-9])"
_ORDINAL = "(?:st|nd|rd|th)"
_ON = ("[Oo]n", "by", "to", "till", "until", "since", "from", "of", "before", "after")
_PREPOSITION = "|".join(rf"(?<=(?<![{_LETTER}]){word} )" for word in _ON)
_READ = {
    "en": (
        rf"{_DAY}{_ORDINAL}?(?: of)? {_NO_VERB}{_MONTH}(?:,? {_YEAR})?",
        rf"{_MONTH} {_DAY}{_ORDINAL}?,? {_YEAR}",
        rf"{_DAY}{_ORDINAL}? {_SHORT_MONTH},? {_YEAR}",
        rf"{_SHORT_MONTH} {_DAY}{_ORDINAL}?,? {_YEAR}",
        rf"{_MONTH} {_DAY}{_ORDINAL}(?![{_LETTER}])",
        rf"(?:{_PREPOSITION}){_MONTH} {_DAY}(?![{_LETTER}]|[.,:/-][0-9])",  # not "In May 5 people came."
    ),
    "fr": (rf"{_DAY}(?:er)? {_MONTH}(?: {_YEAR})?",),
    "zh": ("(?:(?<![0-9])(?P<year>[12][0-9]{3})年)?(?<![0-9])(?P<month>MONTHS)(?P<day>[0-9]{1,2})(?:日|号(?![线楼]))",),
    "de": (rf"{_DAY}\. ?{_MONTH}(?: {_YEAR})?", rf"{_DAY}\. ?{_SHORT_MONTH} {_YEAR}"),
    "cs": (rf"{_DAY}\. ?{_MONTH}(?: {_YEAR})?",),
    **dict.fromkeys(("es", "pt"), (rf"{_DAY} de {_MONTH}(?: de {_YEAR})?",)),
}
_USUALLY_READ = (rf"{_DAY} {_MONTH}(?: {_YEAR})?",)
_WRITTEN = {  # in brackets, what is left out without a year
    "zh": "[{year}年]{month}{day}日",
    **dict.fromkeys(("de", "cs"), "{day}. {month}[ {year}]"),
    **dict.fromkeys(("es", "pt"), "{day} de {month}[ de {year}]"),
}
_USUALLY_WRITTEN = "{day} {month}[ {year}]"
_IN_BRACKETS = re.compile(r"\[(.*)\]")


def describe_dates(language: str) -> dict[str, Any] | None:
    """Return the names of months, patterns with groups for day, month and year, and how a date is written.

    None for a language whose dates are not known here.
    """
    base = base_language(language)
    months = _MONTHS.get(base)
    if months is None:
        return None
    forms = {case(name) for name in months for case in (str.capitalize, str.upper, str.lower)} - _ENGLISH_VERBS
    shortened = [name[:3] for name in months if len(name) > 3]  # not May
    names = {"MONTHS": "|".join(sorted(forms, reverse=True)), "SHORT": "|".join(shortened)}
    patterns = [
        re.sub("MONTHS|SHORT", lambda place: names[place[0]], pattern) for pattern in _READ.get(base, _USUALLY_READ)
    ]
    return {"months": months, "patterns": patterns, "written": _WRITTEN.get(base, _USUALLY_WRITTEN)}


@cache
def _patterns(language: str) -> list[re.Pattern[str]]:
    described = describe_dates(language)
    return [re.compile(pattern) for pattern in described["patterns"]] if described else []


def find_dates(text: str, language: str) -> Iterator[tuple[int, str, str]]:
    """Yield the dates of a text, each with its place, and its value: 2025-12-24, or 12-24 without a year."""
    for pattern in _patterns(language):
        for date in pattern.finditer(text):
            parts = date.groupdict("")
            starts = [name.lower().startswith(parts["month"].lower()) for name in _MONTHS[base_language(language)]]
            value = f"{starts.index(True) + 1:02}-{int(parts['day']):02}"
            yield date.start(), date[0], f"{parts['year']}-{value}" if parts.get("year") else value


def writes_dates(language: str) -> bool:
    """Tell whether :func:`write_date` knows how a language writes dates."""
    return base_language(language) in _MONTHS


def write_date(value: str, language: str) -> str:
    """Write the value of a date, as :func:`find_dates` yields it, in a language."""
    *year, month, day = value.split("-")
    base = base_language(language)
    form = _IN_BRACKETS.sub(r"\1" if year else "", _WRITTEN.get(base, _USUALLY_WRITTEN))
    first = base == "fr" and day == "01"
    return form.format(day="1er" if first else int(day), month=_MONTHS[base][int(month) - 1], year="".join(year))
