"""Ordinal numbers in digits, and decades, as languages write them: German 2. for 2nd, and 1980er for 1980s."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Any

from mtformer.text.codes import LATIN
from mtformer.text.languages import base_language

_START, _END = rf"(?<![{LATIN}.,:/–-])", rf"(?![{LATIN}])"
_NUMBER, _DECADE = "(?P<ordinal>[0-9]{1,3})", "(?P<decade>(?:1[0-9]|20)?[1-9]0)"
# The full stop of German 2. may also end a sentence: it does not between these words and a noun, before small letters
# after others, and before some nouns.
_BEFORE_NOUN = (
    "der die das des ein eine einem einen einer jede jedem jeden jeder jedes sein seine seinem seinen seiner ihr ihre "
    "ihrem ihren ihrer mein meine meinem meinen meiner unser unsere unserem unseren"
).split()
_BEFORE = "dem den im am zum zur vom beim ins".split()
_AFTER = (
    "Jahrhundert|Jh|Klasse|Platz|Stock|Etage|Auflage|Spieltag|Minute|Woche|Runde|Kapitel|Weltkrieg|Lebensjahr|Semester"
    "|Quartal|Tag|Mal|Rang|Geburtstag|Bezirk"
)
_NO_NOUN = "Er|Sie|Es|Wir|Ich|Ihr|Der|Die|Das|Den|Dem|Dann|Da|Danach|Ein|Eine|Und|Aber|In|Im|Am|Auf|Zum|Von|Vom|Seit"
_OF_DECADES = [f"{word} " for word in "the The his her their early late mid".split()] + ["mid-"]  # unlike for 30s
_AFTER_DETERMINER, _AFTER_OTHERS = (
    "|".join(rf"(?<=(?<![{LATIN}]){word} )" for word in chain(words, map(str.capitalize, words)))
    for words in (_BEFORE_NOUN, _BEFORE)
)
_AFTER_THE = "|".join(rf"(?<=(?<![{LATIN}]){word})" for word in _OF_DECADES)
_BEFORE_SMALL = rf"{_START}{_NUMBER}\.(?= [a-zß-öø-ɏ])"  # in languages that capitalize no nouns
_READ = {
    "en": rf"{_START}{_NUMBER}(?:st|nd|rd|th|ST|ND|RD|TH){_END}"
    rf"|(?:{_START}(?:['’](?=[0-9]{{2}}['’]?s)|(?=[0-9]{{4}}))|(?:{_AFTER_THE})(?=[0-9])){_DECADE}['’]?s{_END}",
    "de": rf"(?=[0-9]){_START}(?:(?:{_AFTER_DETERMINER}){_NUMBER}\.(?= (?!(?:{_NO_NOUN})(?![a-zß-ü]))[A-Za-zÄÖÜäöü])"
    rf"|(?:{_AFTER_OTHERS}){_NUMBER.replace('ordinal', 'other')}\.(?= [a-zäöü])"
    rf"|{_NUMBER.replace('ordinal', 'clear')}\.(?= (?:{_AFTER})))"
    rf"|{_START}{_DECADE}er(?:n(?![{LATIN}-])|[ -]Jahren?(?![{LATIN}-])|(?![{LATIN}-]| [A-ZÄÖÜ]))",
    "fr": rf"{_START}{_NUMBER}(?:er|[eè]?re|i?[eè]me|e|nde?){_END}",
    "nl": rf"{_START}{_NUMBER}(?:e|ste|de){_END}",
    **dict.fromkeys(("cs", "da", "pl", "sk"), _BEFORE_SMALL),
}
_ENDINGS = {  # the first whose pattern is found in the number
    "en": [("(?<!1)1$", "st"), ("(?<!1)2$", "nd"), ("(?<!1)3$", "rd"), ("", "th")],
    "fr": [("", "e")],
    "nl": [("", "e")],
    **dict.fromkeys(("de", "cs", "da", "pl", "sk"), (("", "."),)),
}
_GENDERED = {"fr": ["1"]}  # 1er or 1re
_DECADES = {"en": "s", "de": "er"}
_IS_ORDINAL = "."  # at the end of a value


@cache
def describe_ordinals(language: str) -> dict[str, Any] | None:
    """Return the pattern of ordinal numbers and decades, and how they end; None if a language's are not known here."""
    base = base_language(language)
    if base not in _READ:
        return None
    gendered = _GENDERED.get(base, ())
    return {"pattern": _READ[base], "endings": _ENDINGS[base], "decade": _DECADES.get(base), "gendered": gendered}


@cache
def _pattern(language: str) -> re.Pattern[str]:
    return re.compile(_READ.get(base_language(language), "(?!)"))


def find_ordinals(text: str, language: str) -> Iterator[tuple[int, str, str, str]]:
    """Yield ordinal numbers and decades: the place, as written, the value, such as 2. or 1980s, and the number."""
    for match in _pattern(language).finditer(text):
        number = match[match.lastgroup or 0]
        ending = _DECADES["en"] if match.lastgroup == "decade" else _IS_ORDINAL
        yield match.start(), match[0], number + ending, number


def writes_ordinal(value: str, language: str) -> bool:
    """Tell whether :func:`write_ordinal` knows how a language writes a value."""
    if value.removesuffix(_IS_ORDINAL) in _GENDERED.get(base_language(language), ()):
        return False
    return base_language(language) in (_ENDINGS if value.endswith(_IS_ORDINAL) else _DECADES)


def write_ordinal(value: str, language: str) -> str:
    """Write the value of an ordinal number or a decade, as :func:`find_ordinals` yields it, in a language."""
    number, is_ordinal = value[:-1], value.endswith(_IS_ORDINAL)
    return number + (ordinal_ending(number, language) if is_ordinal else _DECADES[base_language(language)])


def ordinal_ending(number: str, language: str) -> str:
    """Return the ending of an ordinal number: st for 1 and 21 in English."""
    return next(ending for pattern, ending in _ENDINGS[base_language(language)] if re.search(pattern, number))
