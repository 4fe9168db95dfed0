"""What stands beside numbers: currencies, units, signs, and the names of what they number."""

import re

from mtformer.text.codes import CURRENCY, GAP, LATIN, PLACEHOLDER
from mtformer.text.languages import decimal_and_group

# Currencies.
_SIGN, _DOLLAR = "[$€£¥￥₹₽₩₺₴₪₿₫₱]", r"[A-Z]{1,2}\$"  # US$
_ATTACHED_SIGNS, _OPERATORS = "-−–+±~≈<>≤≥", "±≈<>≤≥=≠"  # the second ones, also with a space
SIGNS = f"{_ATTACHED_SIGNS}{_OPERATORS}!"
_ANY_SIGN = rf"(?:[{_ATTACHED_SIGNS}]|(?:[<>!=]=|[{_OPERATORS}]) )"
IN_FRONT = re.compile(rf"^(?P<before>{_ANY_SIGN}?)(?P<sign>{_DOLLAR}|{_SIGN}){GAP}(?P<amount>[^{_SIGN[1:]}+)$")
BEHIND = re.compile(  # not 5 M€
    rf"^(?P<before>{_ANY_SIGN}?)(?P<amount>[^{_SIGN[1:]}*(?:\d|[a-z]{{4}})){GAP}(?P<sign>{_DOLLAR}|{_SIGN})$"
)
BEFORE = re.compile(rf"(?<![{LATIN}])(?P<currency>{_DOLLAR}|{_SIGN}|{CURRENCY}){GAP}(?P<minus>[-−]?)$")  # also $-5
OF_MONEY = re.compile(rf"{BEFORE.pattern}|{_SIGN}[\d.,]+[a-z]{{1,2}}[-–]$")  # $5, $5m-
_LONGEST_OF_MONEY = 15  # characters: "$1,000.50bn-"
_LONGEST_BEFORE_NUMBER = 5  # characters: " EUR ", " US$ "
BEFORE_PERCENT = re.compile(rf"(?<=\d){GAP}(?=%)")  # a space in French, none in English
UNIT_INSIDE = re.compile(rf"[%°]|{_SIGN}")  # of 5%-10 and 5-$10
PRICE = re.compile(rf"[x×].*\d{GAP}(?:{_SIGN}|(?:{CURRENCY})(?![{LATIN}]))")  # 3 × 4.99 €, whose 3 is apart
DASH = re.compile(r",[-–—]{1,2}(?!\w)")  # 25,- € is 25 €

# Signs.
SIGN_BEFORE = re.compile(  # of -5, -€5, ±5, x = 5 and 最高-5, but not of 3-5 and A-5, or > 5 at the start of a line
    rf"(?<![^\s(\[\u4e00-\u9fff])(?<![一二三四五六七八九十百千万亿萬億日月年号点])[{_ATTACHED_SIGNS}]$"
    rf"|(?<=\S )(?:[<>!=]=|[{_OPERATORS}]) $"
)
_LONGEST_SIGN = 5  # characters: " >= ", with the one before
MINUS_SIGNS, HYPHEN = "[−–]", "-"
# A word for it before degrees: minus 20 degrees, moins 5 °C, 零下二十度. Elsewhere it may be that of "ten minus three".
_MINUS = "[Mm](?:inus|oins|enos?)[ \u00a0]|零下"
MINUS, MINUS_BEFORE = re.compile(f"^(?:{_MINUS})"), re.compile(f"(?<![{LATIN}])(?:{_MINUS})$")
DEGREES = re.compile(f"{GAP}(?:[°度℃℉]|[Dd]egr|[Gg]ra[dou]|stup|stop|摄氏|华氏)")
_LONGEST_MINUS = 7  # characters: " minus ", with the one before

# Units.
_UNIT = (
    "[cdkmµμ]?m[²³]?|[kmµμ]?g|[cm]?l|t|km/h|m/s|mph|kph|ft|lbs|oz|min|ms|[kMG]?Hz|[kMGT]B|[kM]?Wh?|[kM]?V|mAh|dB|px|Kč|zł"
    "|[hkM]Pa|mbar|ppm|fps|rpm|hp|m?mol|kcal|mmHg|psi|Ah|bpm|dpi|Nm|kN|mcg|lb|dl"
)
_AFTER_DECIMALS = r"(?<=[.,]\d)|(?<=[.,]\d[ \d])|(?<=[.,]\d\d )"  # 9.58s, unlike the 1990s and 18 h
_PER = "/(?:kg|g|[dm]?l|[cm]?m[²³]?|km|h|min|s|d)"
AFTER = re.compile(  # not the start of what comes next: 2010 $5, 5 ${items}, 5 °Celsius, 5 t-shirts, 5 l'autre
    rf"{GAP}(?!{PLACEHOLDER})(?:(?:{_DOLLAR}|(?:[kM]|Md)?{_SIGN}|(?:{CURRENCY})(?![{LATIN}]))(?:{_PER})?(?!{GAP}\d)"
    rf"|%%|[%％‰℃℉¢]|°[CF]?(?![{LATIN}])|(?:{_UNIT}|(?:{_AFTER_DECIMALS})[hs]|(?<=\d)h)(?:{_PER})?(?!['’-]?[{LATIN}]|/))"
)
LATIN_UNIT = re.compile("(?<!°)[A-Za-z]")
FALSE_UNITS = {  # words of other meanings: 2010 m. is a year, 5 t may be hours
    **{"lt": ("m",), "sv": ("min",)},
    **dict.fromkeys(("ca", "es", "fr", "it", "pt", "ro"), ("h",)),  # 8h is 8 o'clock
    **dict.fromkeys(("da", "nb", "nn", "no"), ("min", "t")),
}

# What else decides whether a number is one.
SHARING = re.compile(  # before 4 million, which may also go with the 2 of 2 to 4 million
    r"\d ?(?:[-–—&]|to|till|until|and|or|bis|und|oder|à|et|ou|a|y|o|e|tot|en|of|och|eller|až|do|nebo|i|lub|до|и|или)"
    r" ?[$€£¥]?$"
)
_LONGEST_SHARING = 9  # characters: "2 until $"
ATTACHED = re.compile(  # 5k, £2.5k, $100K, 4.5M people, 100+, 3 × €5
    rf"[kKMBT](?![{LATIN}$€£'’&]|-[A-Za-z]|\.[A-Za-z0-9])|\+(?![\w+(])|{GAP}[x×](?={GAP}{_SIGN}?\d)"
)
NO_PLAIN_SPACE = re.compile("[\u00a0\u2009\u202f]| 0")
ALONE = re.compile(  # what follows a 1 that is no article; also 1 in 10
    rf"(?:[,:;!?)\]，：；！？）]|[.。]?$| (?:of|in|out|to|von|aus|auf|bis)(?![{LATIN}]))(?!\d)"
)

# Numbers that are no quantities keep their points: those of sections and figures, which follow words such as these, and
# those of versions, which follow names: PyTorch 2.13, HTTP/1.1 and, inside of a sentence, Ubuntu 22.04.
_NUMBERED = "|".join(
    f"[{word[0].upper()}{word[0]}]{word[1:]}s?"
    for word in "appendix article chapter clause equation exercise figure level paragraph release rule section step "
    "table version android java linux python ubuntu windows".split()
)
_NO_NAMES = (  # but quantities, and days
    "HKD|MXN|SGD|THB|TRY|(?:pH|BMI|CI|CRP|EPS|GPA|RR|TSH) |(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day "
)
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


def currency_before(text: str, start: int) -> re.Match[str] | None:
    """Return the currency before the number at a place."""
    return BEFORE.search(text[max(0, start - _LONGEST_BEFORE_NUMBER) : start])


def is_of_money(text: str, start: int) -> bool:
    """Tell whether a currency stands before a number, or before the other number of a range."""
    return bool(OF_MONEY.search(text[max(0, start - _LONGEST_OF_MONEY) : start]))


def shares_word(text: str, start: int) -> bool:
    """Tell whether the word after a number, such as million, may also go with the number before."""
    return bool(SHARING.search(text[max(0, start - _LONGEST_SHARING) : start]))


def is_price(text: str, start: int, end: int) -> bool:
    """Tell whether the second number of a product is an amount of money, as in 3 x 5 €."""
    return bool(PRICE.search(text[start : end + _LONGEST_BEFORE_NUMBER]))


def minus_before(text: str, start: int, end: int) -> str:
    """Return the word for a minus sign before the number of degrees at a place; an empty string if there is none."""
    found = MINUS_BEFORE.search(text[max(0, start - _LONGEST_MINUS) : start])
    return found[0] if found and DEGREES.match(text, end) else ""


def sign_before(text: str, start: int) -> str:
    """Return the sign before the number or the amount at a place, with a space behind it; an empty string if none."""
    found = SIGN_BEFORE.search(text[max(0, start - _LONGEST_SIGN) : start])
    return found[0] if found else ""


def is_named(text: str, start: int, number: str, language: str) -> bool:
    """Tell whether a number with a decimal point numbers a section or version."""
    return bool(
        re.fullmatch(POINTED, number)
        and decimal_and_group(language)[0] == "."
        and NAMED.search(text[max(0, start - _LONGEST_NAMED) : start])
    )
