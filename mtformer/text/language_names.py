"""What tables and translation memories call a language: codes of several standards, variants, names."""

import re
from functools import lru_cache

from mtformer.text.languages import base_language

# ISO 639-1, ISO 639-2 and 639-3, English, and for the most frequent ones the language itself.
_TABLE = """
af afr afrikaans
ar ara arb arabic العربية
be bel belarusian
bg bul bulgarian
bn ben bengali
ca cat catalan
cs ces cze czech čeština
cy cym wel welsh
da dan danish dansk
de deu ger german deutsch
el ell gre greek ελληνικά
en eng english
es spa spanish español
et est estonian
eu eus baq basque
fa fas per farsi persian
fi fin finnish suomi
fr fra fre french français
ga gle irish
gl glg galician
he heb hebrew
hi hin hindi
hr hrv croatian
hu hun hungarian magyar
hy hye arm armenian
id ind indonesian
is isl ice icelandic
it ita italian italiano
ja jpn japanese 日本語
ka kat geo georgian
kk kaz kazakh
km khm khmer
ko kor korean 한국어
lt lit lithuanian
lv lav latvian
mk mkd mac macedonian
mn mon mongolian
mr mar marathi
ms msa may malay
mt mlt maltese
nb nob
ne nep nepali
nl nld dut dutch nederlands
nn nno
no nor norwegian norsk
pl pol polish polski
ps pus pashto
pt por portuguese português
ro ron rum romanian română
ru rus russian русский
sk slk slo slovak
sl slv slovenian
sq sqi alb albanian
sr srp serbian
sv swe swedish svenska
sw swa swahili
ta tam tamil
te tel telugu
th tha thai
tr tur turkish türkçe
uk ukr ukrainian українська
ur urd urdu
uz uzb uzbek
vi vie vietnamese
yue cantonese
zh zho chi cmn chinese mandarin 中文
"""
_CODES = {name: row.split()[0] for row in _TABLE.strip().splitlines() for name in row.split()}
_SUBTAG = re.compile(r"[a-z]{4}|[a-z]{2}|\d{3}")  # a script or a region, as in zh-hant-tw

EXACT, VARIANT = 2, 1


@lru_cache(1_000)  # a translation memory asks for each of its texts
def matches_language(name: str, code: str) -> int:
    """Tell how well ``name`` names the language ``code``: ``EXACT``, ``VARIANT``, or 0 if it names another or none.

    A variant is the same language with or without a region or script, or under a name of another standard.
    """
    name, code = _normalized(name), _normalized(code)
    if name == code:
        return EXACT
    if not is_language(name):
        return 0
    same = _base(name) == _base(code)
    return VARIANT if same and ("-" not in name or "-" not in code) else 0


def is_language(name: str) -> bool:
    """Tell whether ``name`` is a code or a name of a known language."""
    base, *rest = _normalized(name).split("-")
    return base in _CODES and all(_SUBTAG.fullmatch(part) for part in rest)


def _base(name: str) -> str:
    base = base_language(name)
    return _CODES.get(base, base)


def _normalized(name: str) -> str:
    return name.strip().lower().replace("_", "-")
