"""How a language writes numbers: separators, digits and words such as "million"."""

import re
from functools import lru_cache

from mtformer.text.languages import UNDETERMINED, base_language, decimal_and_group
from mtformer.text.number_words import MYRIADS, large_units, large_words
from mtformer.text.numbers import PLAIN, POINT, RANGE, has_myriads, value_of

WITH_MYRIADS = tuple(MYRIADS)
IP_ADDRESS = re.compile(r"(?:(?:1?\d{1,2}|2[0-4]\d|25[0-5])(?:\.|$)){4}")
AS_ASCII = str.maketrans(
    dict(zip("０１２３４５６７８９，．：～％￥℃℉", [*"0123456789,.:-%¥", "°C", "°F"], strict=True))  # also units
)
_FRACTIONS = str.maketrans({"¼": ".25", "½": ".5", "¾": ".75"})  # of a million
_MOST_DIGITS_BEFORE_LARGE = 3  # before "million": 2010 is a year
LONG = re.compile(r"^\d{5,}$")  # a number that is written with separators or "million"; four digits may be a year
_MOST_DIGITS = 15  # of what may be read as one number
_ZEROS = 3  # that each of the words stands for more than the one before


@lru_cache
def large_word(language: str, *, of_money: bool) -> re.Pattern[str]:
    """Return the pattern of a word such as "million" after a number, or after a slot for one."""
    words = large_words(language, of_money=of_money) or "(?!)"
    return re.compile(rf"(?<=[\d¼-¾\ue000-\ue00f])(?:{words})(?:(?<=['’])|(?!\w))", re.IGNORECASE)


def before_large(number: str, language: str) -> str:
    """Return the value of a number before such a word, whose point may be followed by three digits: 1.235 billion."""
    whole, point, part = number.partition(decimal_and_group(language)[0])
    if point and len(whole) <= _MOST_DIGITS_BEFORE_LARGE and re.fullmatch(r"\d{3}", part):
        return f"{whole}{POINT}{part}"
    return value_of(number.translate(_FRACTIONS))


def in_full(number: str, word: re.Match[str], language: str) -> str:
    """Return the digits of 1.5 or 1½ million; none if the number is too long before such a word, as a year may be."""
    (whole, *decimals), zeros = before_large(number, language).split(POINT), zeros_of(word)
    part = POINT.join(decimals)
    is_year = number.isdigit() and len(whole) > _MOST_DIGITS_BEFORE_LARGE  # unlike 1,375 million
    if is_year or len(whole) > _MOST_DIGITS or len(part) > zeros or len(decimals) > 1:
        return ""
    return str(int(whole + part.ljust(zeros, "0")))


def written_for(text: str, src_lang: str, tgt_lang: str) -> str:
    """Write a number with the separators of another language; anything ambiguous stays as it is.

    ``1,250.5`` in English is ``1.250,5`` in German; dates and versions such as ``1.2.3`` are kept. Chinese and Japanese
    keep full-width digits, and numbers in 万 and 亿, and write ``1.5 million`` in them; languages in which that word
    declines write its digits.
    """
    in_myriads = base_language(tgt_lang) in WITH_MYRIADS
    word = large_word(src_lang, of_money=True).search(f"{text} ")  # 2 mld. is no end of a sentence
    if word is not None:
        number, large = text[: word.start()], dict(large_units(tgt_lang)).get(zeros_of(word))
        if large and number != "1" and not in_myriads:
            return written_for(number, src_lang, tgt_lang) + large
        number = number.translate(_FRACTIONS)
        return re.sub(PLAIN, lambda each: in_short(in_full(each[0], word, src_lang), tgt_lang), number)
    if re.fullmatch(RANGE, text):
        return re.sub(PLAIN, lambda number: written_for(number[0], src_lang, tgt_lang), text)
    if not in_myriads:
        if has_myriads(text):
            return in_short(value_of(text), tgt_lang)
        text = text.translate(AS_ASCII)
    (src_point, src_group), (tgt_point, tgt_group) = decimal_and_group(src_lang), decimal_and_group(tgt_lang)
    text = re.sub(r"^[-–]?(?=[.,]\d)", "0", text)  # .5
    group = rf"[{re.escape(src_group)} \u00a0\u2009\u202f]"
    grouped, rounded = rf"\d{{1,3}}(?:{group}\d{{3}})+", rf"\d{{1,3}}(?:{group}\d{{3}})*{group}[05]00"
    whole = rf"{grouped}|1:{rounded}|{rounded}:1|(?:\d+:)*\d+"  # of scales, round numbers: 1:43.210 is a time
    match = re.fullmatch(rf"(?P<whole>{whole})(?P<decimals>{re.escape(src_point)}\d+)?", text)
    if match is None or base_language(src_lang) == UNDETERMINED or IP_ADDRESS.fullmatch(text):
        return text
    return re.sub(r"[^\d:]", tgt_group, match["whole"]) + (match["decimals"] or "").replace(src_point, tgt_point)


def in_short(value: str, language: str) -> str:
    """Return 35 million or 3500万 for such numbers, where the word has one form, and all digits of others."""
    in_myriads = base_language(language) in WITH_MYRIADS
    for zeros, word in reversed(large_units(language)):
        whole, decimals = value[:-zeros], value[-zeros:].rstrip("0")
        is_one = whole + decimals == "1"  # of which "million" has another form
        if 1 <= len(whole) <= (4 if in_myriads else 3) and len(decimals) <= 1 and (in_myriads or not is_one):
            return f"{whole}{decimal_and_group(language)[0] if decimals else ''}{decimals}{word}"
    return _in_digits(value, language)


def zeros_of(large: re.Match[str]) -> int:
    """Return the zeros that a match of :func:`large_word` stands for."""
    return _ZEROS * (large.lastindex or 0)


def _in_digits(value: str, language: str) -> str:
    return f"{int(value):,}".replace(",", decimal_and_group(language)[1])
