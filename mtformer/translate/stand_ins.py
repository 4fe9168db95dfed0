"""Stand-ins for the numbers that a model without slots loses: numbers that it knows.

A model that garbles 4,889 may well know 100, and translates "100 people" with the number in its place, where 4,889 is
put back. Which numbers a model knows cannot be asked, so some are tried.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mtformer.text.dates import lost_dates
from mtformer.text.entities import FEW
from mtformer.text.lost_numbers import lost_numbers
from mtformer.text.slots import OF_KIND, Slotted
from mtformer.text.words import folded
from mtformer.translate.translation import Translation

_MANY = ("100", "20", "15", "30", "3")  # in this order, models of three texts lost the fewest
_FEW = ("4", "2", "3")  # after which some languages decline nouns in another way
_DIGITS = re.compile(r"\d+")
_NUMERAL = re.compile("[IVX]+")  # Chapter IV may be Kapitel 4


def is_any_lost(slotted: Slotted, source: str, translation: str, languages: Sequence[str]) -> bool:
    """Tell whether a translation lacks a number, a code or the month of a date of its source."""
    found = _characters(translation)
    return bool(
        lost_numbers(source, translation, languages)
        or lost_dates(source, translation, *languages)
        or any(_characters(name) not in found for name in slotted.names if not _NUMERAL.fullmatch(name))
    )


def _characters(text: str) -> str:
    """Return the letters and digits of a text: of 3D those of 3-D-Film, and of COVID-19 those of Covid 19."""
    return re.sub(r"[\W_]", "", folded(text))


def stand_ins(slotted: Slotted) -> Iterator[Mapping[str, str]]:
    """Yield numbers to try in the slots of a text, a different one in each; nothing if there are too many slots.

    They are none of the numbers that stay in the text, as in a term of a glossary.
    """
    few = [slot for slot in slotted.fillings if slot in OF_KIND[FEW]]
    many = [slot for slot in slotted.fillings if slot not in few]
    taken = set(_DIGITS.findall(slotted.text))
    of_any = [number for number in _MANY if number not in taken]
    for n in range(len(of_any)):
        of_many = dict(zip(many, _rotated(of_any, n), strict=False))
        free = [number for number in _FEW if number not in taken and number not in of_many.values()]
        of_few = dict(zip(few, _rotated(free, n), strict=False))
        if not slotted.is_full and len(of_many) + len(of_few) == len(slotted.fillings):
            yield of_many | of_few


def _rotated(numbers: list[str], n: int) -> list[str]:
    place = n % max(1, len(numbers))
    return numbers[place:] + numbers[:place]


def with_stand_ins(slotted: Slotted, numbers: Mapping[str, str]) -> str:
    """Write numbers for the slots of a text, 100th for what was 1st."""
    return replace(slotted, fillings=numbers).filled([slotted.text])[0]


def without_stand_ins(translation: str, numbers: Mapping[str, str]) -> str:
    """Write slots again for those numbers that a translation has once."""
    for slot, number in numbers.items():
        places = list(re.finditer(rf"(?<!\d)(?<!\d[.,]){number}(?!\d|[.,]\d)", translation))
        if len(places) == 1:
            [place] = places
            translation = translation[: place.start()] + slot + translation[place.end() :]
    return translation


def fits(slotted: Slotted, translation: Translation) -> bool:
    """Tell whether a translation has each slot, and no number that neither its source nor a term has."""
    known = " ".join([slotted.text, *(term.tgt for term in translation.terms)])
    return slotted.fits(translation.text) and set(_DIGITS.findall(translation.text)) <= set(_DIGITS.findall(known))
