"""Numbers and amounts in words, such as twenty-one and five kilometers."""

from collections.abc import Iterator

from mtformer.text.beside_numbers import HYPHEN, minus_before
from mtformer.text.entities import FEW, FEW_VALUES, MANY, Entity, find_entities
from mtformer.text.languages import base_language, is_written_with_spaces
from mtformer.text.number_words import CARDINALS, LARGEST_SMALL, number_words, numbered
from mtformer.text.numbers import POINT
from mtformer.text.spelled_numbers import PERCENT_OF, find_spelled_numbers, has_spelled_numbers
from mtformer.text.unit_words import LOOSE_UNITS, find_unit_word, may_have_unit_word, split_compounds, unit_of
from mtformer.text.words import WORD

_EN_DASH = "–"
_CURRENCIES = {"US$": "$", "USD": "$", "EUR": "€", "¥": "JPY"}
_PARTS_OF_HOURS = ("15", "30", "45", "90", "1.5", "1,5")  # half an hour
_UNITS_OF_TIME = ("h", "min", "s")
_ORDINAL_SIGN = "第"  # 第五公里 is the fifth kilometer
_TO = ("to", "bis", "到", "至")  # between two numbers in words
_SPELLED_OUT = {
    language: numbered(words[1:LARGEST_SMALL], 2)
    for language, words in CARDINALS.items()
    if is_written_with_spaces(language)
}


def lost_units(source: str, translation: str, src_lang: str, tgt_lang: str, *, loose: bool = True) -> list[str]:
    """Return the amounts of a text whose units are words, as 5 kilometers, that its translation lacks.

    Of those with numbers in words, one, as in an hour, and times, which may be half an hour, do not count; of a range,
    its second number does. A translation may write a unit as the sign of a currency, or in a compound: 20-minute.
    Without ``loose``, units do not count that it may write otherwise: 8 o'clock as 8 pm.
    """
    amounts = [entity for entity in find_entities(source, src_lang) if entity.unit]
    if has_spelled_numbers(tgt_lang):
        in_words = (each for each in spelled_amounts(source, src_lang) if each.unit not in _UNITS_OF_TIME)
        amounts += (each for each in in_words if each.number != "1" and _EN_DASH not in each.number)
    amounts = [each for each in amounts if each.suits(tgt_lang) and (loose or each.unit not in LOOSE_UNITS)]
    if not amounts:
        return []
    translation = split_compounds(translation, tgt_lang)
    of_translation = (*find_entities(translation, tgt_lang), *spelled_amounts(translation, tgt_lang))
    there = {_plain(entity.value) for entity in of_translation}
    numbers = {value.partition(" ")[0] for value in there}
    has_parts = number_words(tgt_lang).has_parts(translation.lower())
    return [
        amount.text
        for amount in amounts
        if _plain(amount.value) not in there
        and not (has_parts and _may_be_part_of_an_hour(amount) and amount.value.partition(" ")[0] not in numbers)
    ]


def _plain(value: str) -> str:
    """Return the value of an amount, the same for all signs of a currency."""
    number, _, unit = value.replace("½", f"{POINT}5").partition(" ")
    return f"{number} {_CURRENCIES.get(unit, unit)}"


def _may_be_part_of_an_hour(amount: Entity) -> bool:
    return amount.unit in _UNITS_OF_TIME and amount.number in _PARTS_OF_HOURS


def spelled_amounts(text: str, language: str) -> Iterator[Entity]:
    """Yield the amounts of a text whose numbers are words, as five kilometers; they are as in digits.

    A range, as five to ten kilometers, comes before its second number.
    """
    if PERCENT_OF not in text and not may_have_unit_word(text, language):  # which is faster
        return
    before = None
    for number in find_spelled_numbers(text, language, small=True):
        word = find_unit_word(text, number.end, language)
        unit = "%" if number.text.startswith(PERCENT_OF) else unit_of(word[0].strip(), language) if word else ""
        if unit and unit not in LOOSE_UNITS and text[number.start - 1 : number.start] != _ORDINAL_SIGN:
            minus = minus_before(text, number.start, number.end)
            end, kind = word.end() if word else number.end, FEW if number.value in FEW_VALUES else MANY
            digits = HYPHEN * bool(minus) + number.value
            value = f"{digits} {unit}"
            if before and text[before.end : number.start].strip().lower() in _TO:
                start, range_ = before.start, f"{before.value}{_EN_DASH}{digits}"
                yield Entity(start, text[start:end], f"{before.value}-{value}", kind, range_, in_digits=True, unit=unit)
            start = number.start - len(minus)
            yield Entity(start, text[start:end], value, kind, digits, in_digits=True, unit=unit)
        before = number


def larger_spelled_out(text: str, language: str) -> Iterator[Entity]:
    """Yield the spelled-out numbers from 13 on, and those with a half or decimals; they are as in digits."""
    for number in find_spelled_numbers(text, language):
        minus = minus_before(text, number.start, number.end)
        digits, start = HYPHEN * bool(minus) + number.value, number.start - len(minus)
        yield Entity(start, minus + number.text, digits, MANY, in_digits=True)


def spelled_out(text: str, language: str) -> Iterator[Entity]:
    """Yield the numbers from two to twelve that a text spells out."""
    values = _SPELLED_OUT.get(base_language(language), {})
    for word in WORD.finditer(text) if values else ():
        value = values.get(word[0].lower())
        if value is not None:
            yield Entity(word.start(), word[0], f"word {value}", FEW if str(value) in FEW_VALUES else MANY)
