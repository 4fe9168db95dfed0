"""Times of day, and how other languages write them, on 24 hours: 21:00 for 9 pm, and 17:00 for 17 Uhr."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

from mtformer.text.codes import GAP, LATIN
from mtformer.text.dates import END
from mtformer.text.languages import base_language

_HOUR, _HOUR_OF_HALF = "(?P<hour>1[0-9]|2[0-4]|0?[0-9])", "(?P<hour>1[0-2]|0?[0-9])"
_MINUTES = "(?P<minutes>[0-5][0-9])"
HALF = rf"{GAP}(?P<half>[AaPp])(?:[Mm](?![{LATIN}])|\.[Mm](?:\.(?!{END}))?)"  # pm, p.m.
_READ = {  # a time, what follows the last one of several, and what stands between them
    "en": (  # 10:45 pm, 9 a.m., whose last full stop may end the sentence
        rf"{_HOUR_OF_HALF}(?:[:.]{_MINUTES})?",
        HALF,
        "to|till|until|and|or|&",
    ),
    "de": (  # 8 Uhr 30, but not "8 Uhr 30 Leute"; 5 h and 5:15 h may be durations
        rf"{_HOUR}(?:[:.]{_MINUTES})?",
        rf"(?:{GAP}[Uu][Hh][Rr](?![{LATIN}])(?: (?P<past>[0-5][0-9])"
        rf"(?![{LATIN}%-]|[.,:/]?[0-9]| (?:[A-ZÄÖÜ%€$]|(?:[ck]?m|k?g|l)(?![{LATIN}]))))?"
        rf"|(?<=\.[0-5][0-9]){GAP}h(?![{LATIN}]))",
        "bis|und|oder",
    ),
    "fr": (rf"{_HOUR}{GAP}h{GAP}{_MINUTES}(?![{LATIN}])", "", "à|et|ou"),
}
_START = rf"(?<![{LATIN}$€£¥])(?<![0-9][.,:/–-])"
_DASHES = ("-", "–", "—")
_NOON, _DAY = 12 * 60, 24 * 60  # minutes


def describe_clocks(language: str) -> dict[str, str] | None:
    """Return the patterns of times, such as 7 to 9 pm, and of each of them, with groups for hour, minutes and half.

    None for a language whose times of day are written alike in all, or not known here.
    """
    if base_language(language) not in _READ:
        return None
    time, end, words = _READ[base_language(language)]
    between = rf" ?[–—-] ?|,? (?:{words}) |, (?=[0-9:., ]{{1,12}}(?:{words}) )"  # 7, 8, and 9 pm
    times = rf"{_START}(?:{time}(?:{end})?(?:{between})){{0,3}}{time}{end}"
    return {"times": re.sub(r"\(\?P<\w+>", "(?:", times), "time": f"{time}(?:{end})?"}


@cache
def _patterns(language: str) -> dict[str, re.Pattern[str]]:
    return {name: re.compile(pattern) for name, pattern in (describe_clocks(language) or {}).items()}


def find_clocks(text: str, language: str) -> Iterator[tuple[int, str, str]]:
    """Yield the times of day of a text, each with its place, and its value: 21:00 for 9 pm.

    Two with a dash between them come once more together: 19:00–21:00 for 7-9 pm. German 8 Uhr is left out: it may be
    8 o'clock or 8 pm.
    """
    patterns = _patterns(language)
    for match in patterns["times"].finditer(text) if patterns else ():
        times = [*patterns["time"].finditer(match[0])]
        ends = [*(time.end() for time in times[:-1]), len(match[0])]  # of the last one, with its full stop
        found = [(time.start(), end, value) for time, end, value in zip(times, ends, _on_24_hours(times), strict=False)]
        found += [
            (first[0], second[1], f"{first[2]}–{second[2]}")
            for first, second in pairwise(found)
            if match[0][first[1] : second[0]].strip() in _DASHES
        ]
        yield from ((match.start() + start, match[0][start:end], value) for start, end, value in found)


def _on_24_hours(times: Sequence[re.Match[str]]) -> list[str]:
    """Write times that belong together; none if each may be in the morning or the evening, as in 8 bis 9 Uhr."""
    values: list[int] = []
    is_clear = False
    for time in reversed(times):
        hour, minutes, past, half = map(time.groupdict().get, ("hour", "minutes", "past", "half"))
        value = 60 * int(hour or 0) + int(minutes or past or 0)
        is_clear |= bool(minutes or past or half) or not 60 <= value <= _NOON
        if half:
            value = value % _NOON + _NOON * (half in "pP")
        elif "half" in time.re.groupindex:  # 10 to 2 pm is 10:00 to 14:00
            value = (values[-1] - 1 - (values[-1] - 1 - value) % _NOON) % _DAY
        values.append(value)
    return [f"{value // 60}:{value % 60:02}" for value in reversed(values)] if is_clear else []
