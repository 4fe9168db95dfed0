"""Translate lines with numbers, dates, amounts, addresses, codes and names, and print how many of these are kept.

The lines are made of sentences in faithful_suite.tsv, with values drawn for each of 27 kinds, nine for each kind and
language; with --several, they have two or three values each, and are in English or German. A value is kept if it is in
the translation as often as in the source, in the source's or in the target's way of writing it, and no digit of the
translation belongs to anything else. With --language, nothing is translated: a value is kept if slots stand for it in a
text of that language, by the model's tokenizer.
"""

import argparse
import csv
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

from program import run_program

from mtformer.runs.finding import find_model
from mtformer.support.errors import UserError
from mtformer.text.dates import write_date
from mtformer.text.entities import with_numbers_for
from mtformer.text.slots import with_slots
from mtformer.text.spelled_amounts import lost_units
from mtformer.text.unit_words import write_unit
from mtformer.translate.translator import Translator

SUITE = Path(__file__).with_name("faithful_suite.tsv")
_N_LINES = 9  # of each kind and language
_N_OF_SEVERAL = 4  # of each sentence with several values
_CURRENCIES = {"en": "${}", "de": "{} €", "fr": "{} €", "cs": "{} Kč", "zh": "{}元"}
_UNITS = ("km", "m", "kg", "°C", "GB")
_UNIT_WORDS = ("km", "m", "kg", "l", "°C", "min")
_SYLLABLES = ("Kwa", "Zor", "Mba", "Ti", "Lun", "Vek", "Sza", "Ou", "Brin", "Yel", "Dro", "Fen")
_FULL_WIDTH = {ord(digit): ord("０") + int(digit) for digit in "0123456789"}
_GROUP = {"en": ",", "de": ".", "fr": "\u202f", "cs": "\u00a0", "zh": ","}


with SUITE.open(encoding="utf-8", newline="") as _file:  # sentences by what they suit and their language
    CARRIERS = {(row[0], row[1]): row[2:] for row in csv.reader(_file, delimiter="\t", quoting=csv.QUOTE_NONE)}


def _number(rng: Random, digits: int) -> str:
    return str(rng.randrange(10 ** (digits - 1), 10**digits))


def _four_digits(rng: Random, language: str) -> str:
    """Draw a number, for Chinese one of full-width digits in half of the cases."""
    digits = _number(rng, 4)
    return digits.translate(_FULL_WIDTH) if language == "zh" and rng.random() < 0.5 else digits


def _grouped(rng: Random, language: str) -> str:
    """Draw a number with separators of thousands, for Chinese one in 万 or 亿 in half of the cases."""
    if language == "zh" and rng.random() < 0.5:
        return f"{rng.randrange(12, 990) / 10:g}{rng.choice('万亿')}"
    return f"{rng.randrange(1_000, 9_999_999):,}".replace(",", _GROUP[language])


def _decimal(rng: Random, language: str) -> str:
    return f"{rng.randrange(2, 400)}{'.' if language in ('en', 'zh') else ','}{rng.randrange(1, 100):02}"


def _with_unit_word(rng: Random, language: str) -> str:
    number = str(rng.randrange(2, 900))
    return number + write_unit(rng.choice(_UNIT_WORDS), number, language)


def _written_date(rng: Random, language: str, *, has_year: bool) -> str:
    """Draw a date with the name of a month, for English with the month first in half of the cases."""
    year = rng.randrange(1950, 2030) if has_year else ""
    date = write_date(f"{year}-{rng.randrange(1, 13)}-{rng.randrange(1, 29)}", language)
    if language == "en" and rng.random() < 0.5:
        day, month, *of_year = date.split()
        return f"{month} {day}, {of_year[0]}" if of_year else f"{month} {day}"
    return date


def unknown_word(rng: Random) -> str:
    """Make up a name."""
    return rng.choice(_SYLLABLES) + "".join(rng.choice(_SYLLABLES).lower() for _ in range(rng.randrange(1, 3)))


def _letters(rng: Random, n: int) -> str:
    return "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(n))


# Of each kind the sentences that it suits, and what is drawn for a language.
KINDS: dict[str, tuple[str, Callable[[Random, str], str]]] = {
    "small number": ("count", lambda rng, _: str(rng.randrange(2, 13))),
    "two digits": ("count", lambda rng, _: str(rng.randrange(13, 100))),
    "four digits": ("count", _four_digits),
    "seven digits": ("code", lambda rng, _: _number(rng, 7)),
    "thousands": ("count", _grouped),
    "decimal": ("measure", lambda rng, language: f"{_decimal(rng, language)} km"),
    "unit": ("measure", lambda rng, _: f"{rng.randrange(2, 900)} {rng.choice(_UNITS)}"),
    "unit word": ("measure", _with_unit_word),
    "percent": ("share", lambda rng, language: f"{rng.randrange(2, 90)}{'' if language in ('en', 'zh') else ' '}%"),
    "decimal percent": ("share", lambda rng, language: f"{_decimal(rng, language)} %"),
    "year": ("year", lambda rng, _: str(rng.randrange(1700, 2030))),
    "numeric date": (
        "date",
        lambda rng, _: f"{rng.randrange(1, 29)}.{rng.randrange(1, 13)}.{rng.randrange(1950, 2030)}",
    ),
    "ISO date": (
        "date",
        lambda rng, _: f"{rng.randrange(1950, 2030)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}",
    ),
    "written date": ("date", partial(_written_date, has_year=True)),
    "day and month": ("date", partial(_written_date, has_year=False)),
    "time": ("time", lambda rng, _: f"{rng.randrange(13, 24)}:{rng.randrange(10, 60)}"),
    "amount": ("amount", lambda rng, language: _CURRENCIES[language].format(rng.randrange(13, 9_999))),
    "exact amount": ("amount", lambda rng, language: _CURRENCIES[language].format(_decimal(rng, language))),
    "two numbers": ("pair", lambda rng, _: str(rng.randrange(13, 500))),
    "version": ("code", lambda rng, _: ".".join(str(rng.randrange(1, 30)) for _ in range(3))),
    "code": ("code", lambda rng, _: f"{_letters(rng, rng.randrange(1, 4))}{rng.choice(('', '-'))}{_number(rng, 3)}"),
    "file": (
        "code",
        lambda rng, _: f"{unknown_word(rng).lower()}_{_number(rng, 2)}.{rng.choice(('pdf', 'txt', 'jpg'))}",
    ),
    "URL": (
        "address",
        lambda rng, _: f"https://{unknown_word(rng).lower()}.org/{unknown_word(rng).lower()}/{_number(rng, 3)}",
    ),
    "e-mail": ("address", lambda rng, _: f"{unknown_word(rng).lower()}@{unknown_word(rng).lower()}.com"),
    "placeholder": ("name", lambda rng, _: rng.choice(("{name}", "{{user}}", "%s", "${first}", "%(n)s", "{0}"))),
    "name": ("name", lambda rng, _: unknown_word(rng)),
    "full name": ("name", lambda rng, _: f"{unknown_word(rng)} {unknown_word(rng)}"),
}


class Value(NamedTuple):
    """A value in a line, and its kind."""

    kind: str
    text: str


class Line(NamedTuple):
    """A line of the suite: what it is counted as, its text and the values in it."""

    kind: str
    text: str
    values: tuple[Value, ...]


def lines(language: str, seed: int) -> Iterator[Line]:
    """Yield the lines in a language."""
    _require("count", language)
    for kind, (carrier, draw) in KINDS.items():
        rng = Random(f"{seed} {kind} {language}")
        for number in range(_N_LINES):
            pattern = CARRIERS[carrier, language][number % 3]
            values = tuple(Value(kind, draw(rng, language)) for _ in range(pattern.count("{}")))
            yield Line(kind, pattern.format(*(value.text for value in values)), values)


def _require(carrier: str, language: str) -> None:
    """Check that there are sentences in a language.

    Raises:
        UserError: there are none.
    """
    if (carrier, language) not in CARRIERS:
        known = ", ".join(sorted(other for kind, other in CARRIERS if kind == carrier))
        raise UserError(f"there are no such lines in {language}, but in {known}")


def lines_with_several(language: str, seed: int) -> Iterator[Line]:
    """Yield the lines in a language that have several values, of kinds that their sentences name."""
    _require("several", language)
    for pattern in CARRIERS["several", language]:
        kinds = re.findall("{(.*?)}", pattern)
        for number in range(_N_OF_SEVERAL):
            rng = Random(f"{seed} {number} {pattern}")
            values = tuple(Value(kind, KINDS[kind][1](rng, language)) for kind in kinds)
            text = re.sub("{.*?}", "{}", pattern).format(*(value.text for value in values))
            yield Line(f"{len(values)} values", text, values)


def is_kept(line: Line, translation: str, src_lang: str, tgt_lang: str) -> bool:
    """Tell whether a translation has the values of a line, and no other digits."""
    rest = _plain(translation)
    for kind, value in sorted(line.values, key=lambda value: -len(value.text)):
        core = _core(kind, value)
        forms = tuple(map(_plain, (core, with_numbers_for(core, src_lang, tgt_lang))))
        form = next((form for form in forms if form in rest), None)
        if form is None and kind != "small number":
            return False
        if value not in translation and lost_units(value, translation, src_lang, tgt_lang):
            return False
        rest = rest.replace(form or "", "", 1)
    return not re.search(r"\d", rest)


def _core(kind: str, value: str) -> str:
    """Return the part of a value that has to be kept: units and currencies may be translated."""
    if kind in ("decimal", "unit", "unit word", "percent", "decimal percent", "amount", "exact amount"):
        return re.sub(r"^[^\d]*|[^\d]*$", "", value)
    return value


def _plain(text: str) -> str:
    return re.sub("[\u00a0\u202f ]", "", text)


def is_slotted(line: Line, language: str, n_tokens: Callable[[str], int]) -> bool:
    """Tell whether slots stand for the values of a line."""
    found = with_slots(line.text, language, "en", n_tokens=n_tokens)
    return (
        found is not None
        and not re.search(r"\d", found.text)
        and not any(value.text in found.text for value in line.values)
    )


def report(outcomes: Sequence[tuple[Line, str]]) -> None:
    """Print by kind how many lines have which outcome."""
    of_kinds: dict[str, Counter[str]] = {}
    for line, outcome in outcomes:
        of_kinds.setdefault(line.kind, Counter())[outcome] += 1
    for kind, of_kind in [*of_kinds.items(), ("all", sum(of_kinds.values(), Counter()))]:
        print(f"{kind:16} {of_kind['kept']:3} of {of_kind.total()}, lost with a note {of_kind['noted']}")


def main() -> None:
    """Translate the suite and print the share of kept values by kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="a run's folder or a model bundle")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--several", action="store_true", help="lines with two or three values each")
    parser.add_argument("--language", help="count what slots stand for in this language instead of translating")
    parser.add_argument("--beam-size", type=int)
    parser.add_argument("--engine", default="torch", help="torch (default) or ctranslate2")
    parser.add_argument("--raw", action="store_true", help="only the model, without preparations and guard")
    parser.add_argument("--show", action="store_true", help="print the lines whose values are not kept")
    asked = parser.parse_args()
    translator = Translator.load(find_model(asked.model), engine=asked.engine, raw=asked.raw, beam_size=asked.beam_size)
    src_lang, tgt_lang = asked.language or translator.src_lang, translator.tgt_lang
    suite = list((lines_with_several if asked.several else lines)(src_lang, asked.seed))
    if asked.language:
        n_tokens = translator.tokenizer.n_src_tokens
        report([(line, "kept" if is_slotted(line, src_lang, n_tokens) else "lost") for line in suite])
        return
    outcomes = []
    for line, [best, *_] in zip(suite, translator.translate([line.text for line in suite]), strict=True):
        is_right = is_kept(line, best.text, src_lang, tgt_lang)
        outcomes.append((line, "kept" if is_right else "noted" if best.flags else "lost"))
        if asked.show and not is_right:
            print(line.kind, line.text, best.text, *best.notes, sep="\t", file=sys.stderr)
    report(outcomes)


if __name__ == "__main__":
    run_program(main)
