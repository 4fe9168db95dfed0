"""Units and currencies as words after numbers, and how other languages write them: 480 Kilometer for 480 kilometers."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

from mtformer.text.codes import GAP
from mtformer.text.languages import base_language, is_written_with_spaces

_WITH_CAPITALIZED_NOUNS = "de"  # which careless text does not capitalize
# Those that a translation may write otherwise, as 8 pm or 24, and that are left to the model after numbers in words.
LOOSE_UNITS = ("clock", "doz")
_AFTER_ONE = "(?<=1)(?<![0-9.,]1)"
_NO_TIME = "(?<!(?<![0-9.,])[0-2][0-9][0-5][0-9](?= hours))"  # at 1800 hours
UNIT_IN_COMPOUND = re.compile("(?<=[0-9])-(?P<word>[A-Za-z]+)(?P<hyphen>-?)")  # a 20-minute walk
_NO_MILLION = rf"(?!{GAP}mil\.)"  # of Czech, also at the end of a sentence
# What does not follow, with and without spaces between words: 5 euro-zone, 1米8 and 两米八 (1.8 m, 2.8 m), 5米饭.
_END = {True: "(?![’'-]?[A-Za-z0-9_\u00c0-\u024f])", False: "(?![饭粒色兰拉朗隆级半0-9一二两三四五六七八九])"}


@cache
def _forms_of_units() -> Mapping[str, Mapping[str, list[str]]]:
    """Return the forms of each unit in each language: that after 1, that after other numbers, and those only read.

    A language lacks a unit whose words mean something else as well: French 8 heures is 8 o'clock.
    """
    table = resources.files("mtformer.text").joinpath("units.tsv").read_text(encoding="utf-8")
    (_, *languages), *rows = (line.split("\t") for line in table.splitlines())
    return {
        language: {unit: forms[column].split("|") for unit, *forms in rows if forms[column]}
        for column, language in enumerate(languages)
    }


@cache
def describe_units(language: str) -> dict[str, Any]:
    """Return a pattern of units' words after a number, the unit of each word, and the words after 1 and other numbers.

    The pattern matches nothing in a language whose words are not known here.
    """
    base, has_spaces = base_language(language), is_written_with_spaces(language)
    forms = _forms_of_units().get(base, {})
    units = {form: unit for unit, of_unit in forms.items() for form in of_unit if form != unit}
    units |= {form.lower(): unit for form, unit in units.items() if base == _WITH_CAPITALIZED_NOUNS}
    written = {unit: of_unit[:2] for unit, of_unit in forms.items()}
    after_one = {one for one, several in written.values() if one != several}
    several, one = map(_any_of, (units.keys() - after_one, after_one))
    return {
        "pattern": f"{_NO_TIME}{_NO_MILLION}(?:{GAP}(?:{several})|{_AFTER_ONE}{GAP}(?:{one})){_END[has_spaces]}",
        **{"units": units, "written": written, "gap": " " if has_spaces else ""},
    }


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern of words; at the end of a text, the full stop of an abbreviation belongs to the sentence."""
    return "|".join(word.replace(".", r"\.(?!$)") for word in sorted(words, reverse=True)) or "(?!)"


@cache
def _pattern(language: str) -> re.Pattern[str]:
    return re.compile(describe_units(language)["pattern"])


def find_unit_word(text: str, end: int, language: str) -> re.Match[str] | None:
    """Find the word of a unit, and the space before it, after a number that ends at a place in a text."""
    return _pattern(language).match(text, end)


def split_compounds(text: str, language: str) -> str:
    """Write units in compounds as after numbers: 20 minutes for 20-minute."""
    described = describe_units(language)

    def apart(compound: re.Match[str]) -> str:
        unit = described["units"].get(compound["word"])
        is_known = unit in described["written"]
        return write_unit(unit, "", language) + " " * len(compound["hyphen"]) if is_known else compound[0]

    return UNIT_IN_COMPOUND.sub(apart, text)


def may_have_unit_word(text: str, language: str) -> bool:
    """Tell whether a text has the letters of a unit's word somewhere."""
    return any(map(text.__contains__, describe_units(language)["units"]))


def unit_of(word: str, language: str) -> str:
    """Return the sign of the unit that a word means, which is the same for all languages: km for kilometers."""
    return str(describe_units(language)["units"][word])


def has_unit_word(unit: str, language: str) -> bool:
    """Tell whether :func:`write_unit` can write a unit in a language."""
    return unit in describe_units(language)["written"]


def write_unit(unit: str, number: str, language: str) -> str:
    """Write the unit of a number, and the space before it, in a language: as a word, or as a sign where it declines."""
    described = describe_units(language)
    one, several = described["written"][unit]
    return f"{described['gap']}{one if number == '1' else several}"
