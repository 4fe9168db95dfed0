"""What tables and translation memories call a language: codes of several standards, variants, English names."""

import re
from functools import lru_cache

from mtformer.text.languages import base_language

# ISO 639-1, ISO 639-2 and 639-3, English.
_TABLE = """
af afr afrikaans
ar ara arb arabic
be bel belarusian
bg bul bulgarian
bn ben bengali
ca cat catalan
cs ces cze czech
cy cym wel welsh
da dan danish
de deu ger german
el ell gre greek
en eng english
es spa spanish
et est estonian
eu eus baq basque
fa fas per farsi persian
fi fin finnish
fr fra fre french
ga gle irish
gl glg galician
he heb hebrew
hi hin hindi
hr hrv croatian
hu hun hungarian
hy hye arm armenian
id ind indonesian
is isl ice icelandic
it ita italian
ja jpn japanese
ka kat geo georgian
kk kaz kazakh
km khm khmer
ko kor korean
lt lit lithuanian
lv lav latvian
mk mkd mac macedonian
mn mon mongolian
mr mar marathi
ms msa may malay
mt mlt maltese
nb nob
ne nep nepali
nl nld dut dutch
nn nno
no nor norwegian
pl pol polish
ps pus pashto
pt por portuguese
ro ron rum romanian
ru rus russian
sk slk slo slovak
sl slv slovenian
sq sqi alb albanian
sr srp serbian
sv swe swedish
sw swa swahili
ta tam tamil
te tel telugu
th tha thai
tr tur turkish
uk ukr ukrainian
ur urd urdu
uz uzb uzbek
vi vie vietnamese
yue cantonese
zh zho chi cmn chinese mandarin
"""
_CODES = {name: row.split()[0] for row in _TABLE.strip().splitlines() for name in row.split()}
_VARIANT = re.compile(r"[a-z]{2,3}(-[a-z]{4})?(-([a-z]{2}|\d{3}))?")  # script and region, as in zh-hant-tw

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
    """Tell whether ``name`` is a code or an English name of a known language."""
    name = _normalized(name)
    return name in _CODES or (_VARIANT.fullmatch(name) is not None and base_language(name) in _CODES)


def _base(name: str) -> str:
    return _CODES.get(name) or _CODES.get(base_language(name), base_language(name))


def _normalized(name: str) -> str:
    return name.strip().lower().replace("_", "-")
