"""Numbers as words: which of them a text may have, in the languages whose words are known here."""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import zip_longest

from mtformer.text.languages import base_language, is_written_with_spaces

CARDINALS = {  # from one on; in Chinese up to the last hour of a day
    language: words
    for language, *words in map(
        str.split,
        (
            "en one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen",
            "de eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
            "siebzehn achtzehn neunzehn",
            "fr un deux trois quatre cinq six sept huit neuf dix onze douze",
            "es uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
            "it uno due tre quattro cinque sei sette otto nove dieci undici dodici",
            "pt um dois três quatro cinco seis sete oito nove dez onze doze",
            "nl een twee drie vier vijf zes zeven acht negen tien elf twaalf",
            "sv en två tre fyra fem sex sju åtta nio tio elva tolv",
            "cs jeden dva tři čtyři pět šest sedm osm devět deset jedenáct dvanáct",
            "pl jeden dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć jedenaście dwanaście",
            "ru один два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать",
            "zh 一 二 三 四 五 六 七 八 九 十 十一 十二 十三 十四 十五 十六 十七 十八 十九 二十 二十一 二十二 二十三",
        ),
    )
}
TENS = {  # from twenty on
    "en": "twenty thirty forty fifty sixty seventy eighty ninety".split(),
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split(),
}
LARGEST_SMALL = 12  # numbers up to it may become words, also such as "both" and "a dozen"
_YEARS = range(1_100, 2_100)  # nineteen eighty
_COMPOUNDS = range(21, 100)
_POWERS = {10**n for n in range(1, 10)}
# What words for numbers start with, and some others that stand for one. Larger numbers are made of these.
_ENGLISH = {
    **{1: "an?(?![a-z])|one|once|first|single", 2: "two|second|both|twice|doubl|couple|pair|twin"},
    **{3: "three|third|thrice|tripl|trio", 4: "four|quart", 5: "five|fif", 6: "six", 7: "seven|week", 8: "eight"},
    **{9: "nin", 10: "ten|decade", 11: "eleven", 12: "twel|dozen|noon|midnight|midday", 13: "thirteen"},
    **{14: "fourteen|fortnight|(?:two|2) weeks", 15: "fifteen", 16: "sixteen", 17: "seventeen", 18: "eighteen"},
    **{19: "nineteen", 20: "twent|score", 30: "thirt(?:y|ie)", 40: "fort(?:y|ie)", 50: "fift(?:y|ie)"},
    **{60: "sixt(?:y|ie)", 70: "sevent(?:y|ie)", 80: "eight(?:y|ie)", 90: "ninet(?:y|ie)"},
    **{100: "hundred|centur", 1_000: "thousand|millen|grand(?![a-z])"},
}
_GERMAN = {
    **{1: "ein|erst|je(?![a-zäöüß])", 3: "drei|dritt", 4: "vier"},
    **{2: "zwei|zwo|beid|doppel|verdoppel|paar|zwilling|halb|hälft|vierzehn tag"},
    **{5: "fünf", 6: "sechs", 7: "sieb|woche", 8: "acht", 9: "neun", 10: "zehn|jahrzehnt", 11: "elf"},
    **{12: "zwölf|dutzend|mittag|mitternacht", 13: "dreizehn", 14: "vierzehn|(?:zwei|2) wochen", 15: "fünfzehn"},
    **{16: "sechzehn", 17: "siebzehn", 18: "achtzehn", 19: "neunzehn", 20: "zwanzig", 30: "drei(?:ß|ss)ig"},
    **{40: "vierzig", 50: "fünfzig", 60: "sechzig", 70: "siebzig", 80: "achtzig", 90: "neunzig"},
    **{100: "hundert", 1_000: "tausend"},
}
_CHINESE = {
    **dict(enumerate("[一壹首半单] [二两兩俩双雙贰] [三叁] 四 五 六 [七周期] 八 九 十".split(), 1)),
    **{0: "[〇零○]", 100: "百|全", 1_000: "千", 10_000: "[万萬]", 10**8: "[亿億]"},
}
STEMS = {
    "en": _ENGLISH | {10**6: "million", 10**9: "billion"},
    "de": _GERMAN | {10**6: "million", 10**9: "milliarde"},
    "zh": _CHINESE,
}
_NO_HALF = "".join(f"(?<!{word})" for word in ("des", "wes", "inner", "außer", "ober", "unter"))  # deshalb
PARTS = {  # of an hour or of another unit
    **{"en": "(?<![a-z])(?:half|quarter)|[¼½¾]", "de": f"{_NO_HALF}halb|hälfte|viertel|[¼½¾]", "zh": "[半刻¼½¾]"},
    **{"fr": "moitié|demi|quart|[¼½¾]", "cs": "polovin|půl|čtvrt|[¼½¾]"},
}

_GAP = "[- \u00a0\u202f]?"
_STOP = r"(?:\.(?![\x22'”’“»)]*$))"  # that does not end the sentence
_LARGE = {  # the words for a thousand, a million, 10**9 and 10**12 after a number, with what follows before a noun
    language: [word.replace("_", " ") for word in words]
    for language, *words in map(
        str.split,
        (
            "en thousand million billion|bn trillion|tn",
            rf"de tausend|Tsd{_STOP}? Millionen|Million|Mio{_STOP}? Milliarden|Milliarde|Mrd{_STOP}? "
            rf"Billionen|Billion|Bio{_STOP}",
            r"fr mille millions?(?:_de|_d['’])? milliards?(?:_de|_d['’])? billions?(?:_de|_d['’])?",
            "es mil(?!_mill) mill(?:ón|ones)(?:_de)? mil_millones(?:_de)? bill(?:ón|ones)(?:_de)?",
            "it mila milion[ei](?:_di)? miliard[oi](?:_di)? bilion[ei](?:_di)?",
            "nl duizend miljoen miljard biljoen",
            "sv tusen miljoner|miljon miljarder|miljard biljoner|biljon",
            rf"cs tisíc[eů]?|tis{_STOP}? mili[oó]n[yůu]?|mil{_STOP} miliard[ay]?|mld{_STOP} bili[oó]n[yůu]?",
            rf"pl tysi(?:ąc[ea]?|ęcy)|tys{_STOP}? milion(?:y|ów|a)?|mln miliard(?:y|ów|a)?|mld bilion(?:y|ów|a)?",
            rf"ru тысяч[аи]?|тыс{_STOP}? миллион(?:а|ов)?|млн миллиард(?:а|ов)?|млрд триллион(?:а|ов)?",
        ),
    )
}
_END = "(?![&.'’]?[A-Za-z0-9]|-[A-Za-z])"
# After an amount of money: £1.5m, but not $5 m, $5m-deal or $5 B&B.
_SHORT = {"en": ("", "mn?", f"b|{_GAP}bn", "tn")}
# It is no unit of length before these words: 1.5m people.
_COUNTED = "people|inhabitants|residents|users|customers|subscribers|followers|visitors|passengers|views|copies|jobs"
_SHORT_BEFORE_COUNTED = {"en": ("", f"m(?= (?:{_COUNTED}))")}
MYRIAD_VALUES = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
MYRIADS = {"zh": "万 亿 万亿", "yue": "萬 億 萬億", "ja": "万 億 兆"}  # 10**4, 10**8 and 10**12 in a language
_TRADITIONAL = re.compile(r"[-_](?:Hant|TW|HK|MO)\b", re.IGNORECASE)
_NOT_DECLINED = ("en", "de", "nl", "sv")  # where these words have one form after all numbers but 1


def large_words(language: str, *, of_money: bool) -> str:
    """Return a pattern of words after a number, as in "5 million", with one more group for each three zeros.

    After an amount of money, or before words such as "people", it may be short: £1.5m.
    """
    base = base_language(language)
    words, short = _LARGE.get(base, ()), (_SHORT if of_money else _SHORT_BEFORE_COUNTED).get(base, ())
    return "|".join(
        f"({_GAP}(?:{word}){f'|(?:{also}){_END}' * bool(also)})"
        for word, also in zip_longest(words, short, fillvalue="")
    )


def large_units(language: str) -> list[tuple[int, str]]:
    """Return the zeros and the words of large numbers, as a language writes them after a number; none if unclear."""
    base = base_language(language)
    if base in MYRIADS:
        signs = MYRIADS["yue" if _TRADITIONAL.search(language) else base]
        return [*zip((4, 8, 12), signs.split(), strict=True)]
    words = _LARGE[base][1:] if base in _NOT_DECLINED else []
    return [(zeros, f" {word.split('|')[0]}") for zeros, word in zip((6, 9, 12), words, strict=False)]


def numbered(words: Iterable[str], start: int = 1, step: int = 1) -> dict[str, int]:
    """Return the values of words that follow each other."""
    return {word: start + step * place for place, word in enumerate(words)}


class NumberWords:
    """The words for numbers of a language; none if they are not known here."""

    def __init__(self, language: str) -> None:
        """Take the code of a language."""
        base = base_language(language)
        self._stems = STEMS.get(base, {})
        self._parts = re.compile(PARTS.get(base, "(?!)"))
        self._start = r"(?<!\w)" if is_written_with_spaces(language) else ""

    def __bool__(self) -> bool:
        return bool(self._stems)

    def may_be_in(self, text: str, number: int) -> bool:
        """Tell whether a text, in small letters, has all words that a number is made of."""
        start = self._start if number <= LARGEST_SMALL else ""  # German and Chinese write others together
        readings = [self._made_of(number)]
        if readings[0] and 0 not in self._stems and number in _COMPOUNDS and number % 10:
            ten, unit = readings[0]  # thirty-eight, not eight-thirty
            readings = [[rf"(?:{ten})y?[ -]?(?:and )?(?:{unit})|(?:{unit})(?:en)?(?:und| and )(?:{ten})"]]
        if number in _YEARS:
            readings.append(self._made_of(number // 100) + self._made_of(number % 100))
        if 0 in self._stems and number > 9:  # digit by digit: 一九九八
            readings.append(["".join(self._stems[int(digit)] for digit in str(number))])
            readings.append([f"{self._stems[number // 10]}成"] if number in range(10, 100, 10) else [])  # 八成 is 80 %
        return any(stems and all(re.search(f"{start}(?:{stem})", text) for stem in stems) for stems in readings)

    def has_parts(self, text: str) -> bool:
        """Tell whether a text, in small letters, has a word for a half or a quarter."""
        return self._parts.search(text) is not None

    def _made_of(self, number: int) -> list[str]:
        """Return the words that a number is made of: 325 of 3, 100, 20 and 5; none if there are none for it."""
        made_of: list[str] = []
        while number:
            base = max((value for value in self._stems if value <= number), default=0)
            if not base:
                return []
            n, number = divmod(number, base) if base in _POWERS else (1, number - base)
            made_of += [*(self._made_of(n) if n > 1 else []), self._stems[base]]
        return made_of


@lru_cache
def number_words(language: str) -> NumberWords:
    """Return the words for numbers of a language."""
    return NumberWords(language)
