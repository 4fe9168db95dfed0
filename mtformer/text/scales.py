"""Numbers before words for large numbers: 2.5 million, 3 bn, 5千, 8折."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from mtformer.text.beside_numbers import is_of_money
from mtformer.text.entities import DISCOUNT, SLOT
from mtformer.text.notation import before_large, large_word, zeros_of
from mtformer.text.number_words import large_words
from mtformer.text.numbers import POINT, Number, find_numbers

_SCALES = {  # zeros
    **{"thousand": 3, "grand": 3, "tausend": 3, "million": 6, "mio": 6},
    **{"milliard": 9, "miliard": 9, "mrd": 9},
    **{"billionen": 12, "billion": 9, "trillion": 12},
    **{"百": 2, "千": 3},
}
_ABBREVIATED = {  # which may be something else: 5 m
    **{"k": 3, "tsd": 3, "teur": 3, "m": 6, "mn": 6, "mln": 6, "mill": 6},
    **{"b": 9, "bn": 9, "bln": 9, "md": 9, "mia": 9, "tn": 12, "trn": 12},
}
_ZEROS = _SCALES | _ABBREVIATED
_OF_UNIT = "[米克瓦卡赫分伏帕焦兆]|字节"  # 千米 is a kilometer
_NO_GRAND = "(?<=grand)(?:[a-z]| piano| slam| prix)"  # 5 grandchildren
SCALE = re.compile(rf"[ \u00a0-]?({'|'.join(_SCALES)})(?!{_OF_UNIT}|{_NO_GRAND})", re.IGNORECASE)
ANY_SCALE = re.compile(rf"{SCALE.pattern}|[ \u00a0]?({'|'.join(_ABBREVIATED)})\b", re.IGNORECASE)
LARGE = re.compile(
    r"illi|thousand|tausend|grand(?![a-z])|hundred|hundert|[百千万萬亿億]"
    rf"|(?:\d|{SLOT.pattern}) ?(?:mil|mio|mrd|{'|'.join(_ABBREVIATED)})\b"
)  # any scale


def values_in_full(text: str, language: str) -> Iterator[str]:
    """Yield the values of the numbers before "million", m, 折 or the like."""
    return (value for number in find_numbers(text) if (value := scaled_value(number, text, language)) is not None)


def scaled_value(number: Number, text: str, language: str) -> str | None:
    """Return the value of a number with "million", m, 折 or the like after it; None if there is none."""
    match = ANY_SCALE.match(text, number.end)
    word = None if match else large_word(language, of_money=False).match(text, number.end)
    whole, _, decimals = _value_before_large(number, language).partition(POINT)
    if text.startswith(DISCOUNT, number.end) and len(whole + decimals) <= 2:
        return str(100 - int((whole + decimals).ljust(2, "0")))
    if match is None and word is None:
        return None
    zeros = _ZEROS[(match[1] or match[2]).lower()] if match else zeros_of(word) if word else 0
    if len(decimals) > zeros:
        return None
    return (whole + decimals.ljust(zeros, "0")).lstrip("0") or "0"  # of 0.5 million


def _value_before_large(number: Number, language: str) -> str:
    return before_large(number.text, language) if number.text[0].isdigit() else number.value


def scales_of_slots(text: str, languages: Sequence[str]) -> Iterator[Number]:
    """Yield the words such as "million" after slots, as in 2 or 3 million."""
    for word in large_word(languages[0], of_money=False).finditer(text):
        if SLOT.match(text, word.start() - 1):
            yield Number(word.start(), word[0].strip(" -\u00a0\u202f"), f"1{'000' * (word.lastindex or 0)}")


def with_other_zeros(
    numbers: Sequence[Number], text: str, counterpart: str, languages: Sequence[str]
) -> Iterator[Number]:
    """Yield numbers before words such as "billion" that the counterpart has before others: German *Billionen*."""
    there = defaultdict[str, set[int]](set)
    scaled = [(number, *scale) for number in numbers if (scale := _zeros_after(number, text, languages[0]))[0]]
    for number in find_numbers(counterpart) if scaled else ():
        there[_value_before_large(number, languages[1])].add(_zeros_after(number, counterpart, languages[1])[0])
    for number, zeros, word in scaled:
        of_same = there[_value_before_large(number, languages[0])]
        if of_same and not {0, zeros} & of_same:
            yield number._replace(text=number.text + word)


def _zeros_after(number: Number, text: str, language: str) -> tuple[int, str]:
    """Return the zeros that a word such as "million" after a number stands for, and the word; 0 without a clear one."""
    word = large_word(language, of_money=is_of_money(text, number.start)).match(text, number.end)
    is_clear = word and not re.compile(large_words(language, of_money=False)).match(text, word.end())  # mille milliards
    return (zeros_of(word), word[0]) if word and is_clear else (0, "")
