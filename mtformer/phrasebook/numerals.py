"""Numbers to a thousand, spelled out in English, German and Chinese."""

from functools import cache

MOST = 1_000

_ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_ENGLISH_TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
_GERMAN = (
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn"
).split()
_GERMAN_TENS = "- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
_CHINESE = "零一二三四五六七八九"


@cache
def spelled(number: int, language: str) -> str:
    """Spell out a number from 1 to 1,000 in ``en``, ``de`` or ``zh``, as it stands before a noun: *zwei*, 两."""
    return {"en": _english, "de": _german, "zh": _chinese}[language](number)


def form(number: int, language: str, *, digits: bool | int) -> str:
    """Return the number in digits, or spelled out."""
    return str(number) if digits else spelled(number, language)


def _english(number: int) -> str:
    if number == MOST:
        return "one thousand"
    hundreds, rest = divmod(number, 100)
    if hundreds:
        return f"{_ENGLISH[hundreds]} hundred" + (f" and {_english(rest)}" if rest else "")
    if number < len(_ENGLISH):
        return _ENGLISH[number]
    tens, ones = divmod(number, 10)
    return _ENGLISH_TENS[tens] + (f"-{_ENGLISH[ones]}" if ones else "")


def _german(number: int) -> str:
    if number == MOST:
        return "eintausend"
    hundreds, rest = divmod(number, 100)
    if hundreds:
        return f"{_GERMAN[hundreds]}hundert" + (_german(rest) if rest else "") + ("s" if rest == 1 else "")
    if number < len(_GERMAN):
        return _GERMAN[number]
    tens, ones = divmod(number, 10)
    return (f"{_GERMAN[ones]}und" if ones else "") + _GERMAN_TENS[tens]


def _chinese(number: int) -> str:
    """Two is 两 before a measure word or 百, but 二 within a number: 两个, 两百, 十二, 二十."""
    return "两" if number == 2 else _chinese_part(number).replace("二百", "两百")


def _chinese_part(number: int, *, within: bool = False) -> str:
    if number == MOST:
        return "一千"
    hundreds, rest = divmod(number, 100)
    if hundreds:
        zero = "零" if 0 < rest < 10 else ""
        return f"{_CHINESE[hundreds]}百{zero}" + (_chinese_part(rest, within=True) if rest else "")
    tens, ones = divmod(number, 10)
    ten = "" if not tens else "十" if tens == 1 and not within else f"{_CHINESE[tens]}十"
    return ten + (_CHINESE[ones] if ones else "")
