"""Times of day as people say them: half past eight, German halb neun, Chinese 八点半."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from mtformer.text.clocks import HALF
from mtformer.text.codes import LATIN
from mtformer.text.languages import base_language
from mtformer.text.number_words import CARDINALS, numbered
from mtformer.text.numbers import Number

_HALF_DAY = 12 * 60  # minutes


class _Words(NamedTuple):
    """The words of a language: first those that certainly are a time, then those that may be something else.

    Attributes:
        hours: for the hours from one to twelve.
        before: what is said before an hour, and how many minutes it adds.
        after: what is said after an hour.
        maybe_before: such as "ten to" nine, which may be a range.
        maybe_after: such as nine "thirty", which may be two numbers.
        maybe_hours: such as noon, and those of a clock of 24 hours.
        joiner: what stands between an hour and these words.
        article: what may stand before all of it, and is left out where the time is in digits.
        end: what may stand behind it, and is left out as well.
        half: what may stand behind it, and says which half of the day it is in, with a group of this name.
        goes_on: what follows a number that is no hour, as in ten minutes to one hour.
        signs: what certainly is a time has one of them; a text without any is not searched.
    """

    hours: Mapping[str, int]
    before: Mapping[str, int] = {}
    after: Mapping[str, int] = {}
    maybe_before: Mapping[str, int] = {}
    maybe_after: Mapping[str, int] = {}
    maybe_hours: Mapping[str, int] = {}
    joiner: str = " "
    article: str = "(?!)"
    end: str = "(?!)"
    half: str = "(?P<half>(?!))"
    goes_on: str = "(?!)"
    signs: tuple[str, ...] = ()


_MINUTES = (5, 10, 20, 25)
_ENGLISH_MINUTES = {"five": 5, "ten": 10, "twenty": 20, "twenty-five": 25}
_GERMAN_MINUTES = {"fünf": 5, "zehn": 10, "zwanzig": 20, "fünfundzwanzig": 25}
_CHINESE_MINUTES = {
    **numbered("零五 十 十五 二十 二十五 三十 三十五 四十 四十五 五十 五十五".split(), 5, 5),
    **{f"{n:02}": n for n in range(5, 60, 5)},
    "五": 5,
}
_WORDS = {
    "en": _Words(
        numbered(CARDINALS["en"][:12]),
        before={
            **{"half past": 30, "half-past": 30, "quarter past": 15, "quarter after": 15},
            **{"quarter to": -15, "quarter till": -15},
            **{f"{word}{unit} past": n for word, n in _ENGLISH_MINUTES.items() for unit in ("", " minutes")},
            **{f"{word} minutes to": -n for word, n in _ENGLISH_MINUTES.items()},
        },
        maybe_before={
            **{"half": 30, "quarter of": -15, "quarter before": -15},
            **{f"{word}{unit} after": n for word, n in _ENGLISH_MINUTES.items() for unit in ("", " minutes")},
            **{f"{word} {to}": -n for word, n in _ENGLISH_MINUTES.items() for to in ("to", "till", "of", "before")},
            **{f"{word} minutes {to}": -n for word, n in _ENGLISH_MINUTES.items() for to in ("till", "of", "before")},
            **{f"{n}{unit} past": n for n in _MINUTES for unit in ("", " minutes")},
            **{f"{n}{unit} to": -n for n in _MINUTES for unit in ("", " minutes")},
        },
        maybe_after=numbered(
            "oh-five ten fifteen twenty twenty-five thirty thirty-five forty forty-five fifty fifty-five".split(), 5, 5
        ),
        maybe_hours={"noon": 12, "midnight": 12},
        joiner="[ -]",
        article="an? ",
        half=HALF,
        goes_on=" (?:hundred|thousand|[mb]illion|seconds?|minutes?|hours?|days?|weeks?|months?|years?|per ?cent"
        "|dollars?|euros?|cents?|of|half|thirds)",
        signs=("past", "quarter", "minutes"),
    ),
    "de": _Words(
        numbered(CARDINALS["de"][:12]),
        before={
            **{"halb": -30, "viertel nach": 15, "viertel vor": -15, "dreiviertel": -15, "drei viertel": -15},
            **{f"{word}{unit} nach": n for word, n in _GERMAN_MINUTES.items() for unit in ("", " minuten")},
            **{f"{word}{unit} vor": -n for word, n in _GERMAN_MINUTES.items() for unit in ("", " minuten")},
            **{f"{word} nach halb": n - 30 for word, n in _GERMAN_MINUTES.items()},
            **{f"{word} vor halb": -n - 30 for word, n in _GERMAN_MINUTES.items()},
        },
        maybe_before={
            "viertel": -45,
            **{f"{n}{unit} nach": n for n in _MINUTES for unit in ("", " minuten")},
            **{f"{n}{unit} vor": -n for n in _MINUTES for unit in ("", " minuten")},
        },
        maybe_after={
            **{"uhr fünf": 5, "uhr zehn": 10, "uhr fünfzehn": 15, "uhr zwanzig": 20, "uhr fünfundzwanzig": 25},
            **{"uhr dreißig": 30, "uhr vierzig": 40, "uhr fünfundvierzig": 45, "uhr fünfzig": 50},
        },
        maybe_hours={"ein": 1}
        | numbered(CARDINALS["de"][12:], 13)
        | numbered("zwanzig einundzwanzig zweiundzwanzig dreiundzwanzig".split(), 20),
        end=" uhr",
        goes_on=" (?:hundert|tausend|million|milliarde|sekunde|minute|stunde|tag|woche|monat|jahr|prozent|euro|dollar"
        "|meter|kilo|liter|person|viertel)(?:e?[ns]?)",
        signs=("halb", "viertel", " vor ", " nach "),
    ),
    "zh": _Words(
        numbered(["一", "两", *CARDINALS["zh"][2:12]]) | {"二": 2, "兩": 2},
        after={
            **{"点半": 30, "点一刻": 15, "点三刻": 45, "点十五分": 15, "点三十分": 30, "点四十五分": 45},
            **{f"点{minutes}分": n for n in range(60) for minutes in (str(n), f"{n:02}")},
        },
        maybe_before={"差一刻": -15, "差五分": -5, "差十分": -10, "差二十分": -20},
        maybe_after={
            **{"时半": 30, "时一刻": 15, "时三刻": 45, "点过一刻": 15},
            **{f"{of}{word}{unit}": n for word, n in _CHINESE_MINUTES.items() for of in "点时" for unit in ("", "分")},
        },
        maybe_hours={"零": 12} | numbered(CARDINALS["zh"][12:], 13),
        joiner="",
        end="[点點]",
        goes_on="[点點]|之[一二三四五六七八九十]",
        signs=("点", "點"),
    ),
}
_NUMERALS = "一二三四五六七八九十百"


@lru_cache
def describe_spoken_times(language: str) -> dict[str, Any] | None:
    """Return the patterns of certain and of possible times, and the minutes that their words mean.

    None for a language whose words are not known here.
    """
    words = _WORDS.get(base_language(language))
    if words is None:
        return None
    hours = {**words.hours, **words.maybe_hours}
    before, after = {**words.before, **words.maybe_before}, {**words.after, **words.maybe_after}
    return {
        "certain": _pattern(words, words.hours, words.before, words.after),
        "possible": _pattern(words, hours, before, after),
        "offsets": {**before, **after},
        "hours": hours,
    }


def _pattern(words: _Words, hours: Mapping[str, int], before: Mapping[str, int], after: Mapping[str, int]) -> str:
    hour = rf"1[0-9]|2[0-4]|[1-9]|{_any_of(hours)}"
    first = rf"(?:{words.article})?(?P<before>{_any_of(before)}){words.joiner and ' '}(?P<hour>{hour})"
    second = rf"(?P<said>{hour}){words.joiner}(?P<after>{_any_of(after)})"
    start = rf"(?<![{LATIN}0-9.,:{_NUMERALS}-])" if words.joiner else rf"(?<![0-9.,:{_NUMERALS}])"
    end = rf"(?!['’]?[{LATIN}0-9]|-[{LATIN}0-9]|[.,:/][0-9])" if words.joiner else ""
    goes_on = rf"(?!(?:{words.goes_on})(?![{LATIN}]))" if words.joiner else f"(?!{words.goes_on})"
    return rf"{start}(?:{first}(?::00)?(?:{words.end})?|{second})(?:{words.half})?{end}{goes_on}"


def _any_of(words: Mapping[str, int]) -> str:
    written = (word.replace("点", "[点點]").replace("时", "[时時]") for word in words)
    alternatives = sorted(written, key=len, reverse=True)
    return "|".join(alternatives) or "(?!)"


@lru_cache
def _patterns(language: str) -> dict[str, re.Pattern[str]]:
    described = describe_spoken_times(language) or {}
    return {name: re.compile(described[name], re.IGNORECASE) for name in ("certain", "possible") if described}


def find_spoken_times(text: str, language: str, *, possible: bool = False) -> Iterator[Number]:
    """Yield the times of a text that are said in words, also those that may be something else if ``possible``.

    Their values are in digits: 8:30. None in a language whose words are not known here.
    """
    described = describe_spoken_times(language)
    if described is None:
        return
    if not possible and not any(map(text.lower().__contains__, _WORDS[base_language(language)].signs)):
        return
    hours, offsets = described["hours"], described["offsets"]
    for match in _patterns(language)["possible" if possible else "certain"].finditer(text):
        named, said = (match["hour"] or match["said"]).lower(), match["before"] or match["after"]
        number = int(named) if named.isdecimal() else hours.get(named)
        offset = offsets.get(said.lower().replace("點", "点").replace("時", "时"))
        if number is None or offset is None:  # ſ and ı, which match s and i
            continue
        minutes = 60 * number + offset
        if match["half"]:
            minutes = minutes % _HALF_DAY + _HALF_DAY * (match["half"] in "pP")
        hour = minutes // 60 if match["half"] else (minutes // 60 or 12) % 24
        yield Number(match.start(), match[0], f"{hour}:{minutes % 60:02}")


def has_spoken_times(language: str) -> bool:
    """Tell whether the words of a language are known here."""
    return base_language(language) in _WORDS


def minutes_of(hour: str, minute: str) -> int:
    """Return the minutes of a time since midnight or noon."""
    return (60 * int(hour) + int(minute)) % _HALF_DAY
