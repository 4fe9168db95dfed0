"""The words: tables in ``tables/``, with one entry per row.

A word with several senses has several entries, with a suffix each: ``chip.snack``, ``chip.token``. The kinds of a noun
decide what can be said about it: a verb lists the kinds (or single nouns) of its subjects and objects, and an adjective
those that it can describe. So every sentence makes sense, and context always disambiguates words.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

from mtformer.phrasebook.numerals import form

FOLDER = Path(__file__).parent / "tables"
_HOURS = range(2, 13)
_NUMBERS_OF_DAYS = (*range(2, 13), 15, 20, 25, 30, 50, 100)
Row = dict[str, str]


@dataclass(frozen=True, eq=False)
class Entry:
    """A row of a table, with a name that is unique in the table."""

    id: str

    @property
    def word(self) -> str:
        """The English word; several entries may share it."""
        return self.id.partition(".")[0]


@dataclass(frozen=True, eq=False)
class Noun(Entry):
    """A noun.

    Attributes:
        number: ``mass`` (no plural), ``singular`` or ``plural`` (no other), ``pair`` (a plural in English only), or "".
        gender: of the German noun: ``m``, ``f`` or ``n``.
        weak: the German noun ends in -(e)n in all cases but the nominative.
        measure: the Chinese measure word.
        kinds: the categories that verbs and adjectives select it by.
    """

    english_plural: str
    number: str
    german: str
    german_plural: str
    gender: str
    weak: bool
    chinese: str
    measure: str
    kinds: frozenset[str]

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """Parse a row of ``nouns.tsv``; the German noun is written as in a dictionary: ``der Bär, Bären, weak``."""
        singular, plural, *weak = [*row["german"].split(", "), ""][:3]
        article, _, german = singular.partition(" ")
        word = row["noun"].partition(".")[0]
        return cls(
            id=row["noun"],
            english_plural=row["plural"] or english_plural(word),
            number=row["number"],
            german=german,
            german_plural=plural,
            gender={"der": "m", "die": "f", "das": "n"}[article],
            weak=weak == ["weak"],
            chinese=row["chinese"],
            measure=row["measure"],
            kinds=frozenset([row["noun"].replace(" ", "_"), *row["kinds"].split()]),
        )


@dataclass(frozen=True, eq=False)
class Adjective(Entry):
    """An adjective.

    Attributes:
        german: the predicative form; ``german_stem`` takes the endings.
        chinese: the form before a noun; ``chinese_predicate`` follows 很, unless it starts with 是.
        attributive: whether it can precede a noun.
        kinds: the kinds of nouns that it can describe.
    """

    german: str
    german_stem: str
    chinese: str
    chinese_predicate: str
    attributive: bool
    kinds: frozenset[str]

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """Parse a row of ``adjectives.tsv``: ``teuer, teur-`` gives the stem, ``红色的, 是红色的`` the predicate."""
        german, _, stem = row["german"].partition(", ")
        chinese, _, predicate = row["chinese"].partition(", ")
        return cls(
            id=row["adjective"],
            german=german,
            german_stem=stem.rstrip("-") or german.removesuffix("e"),
            chinese=chinese,
            chinese_predicate=predicate or chinese.removesuffix("的"),
            attributive=row["use"] == "both",
            kinds=frozenset(row["kinds"].split()),
        )

    def describes(self, noun: Noun) -> bool:
        """Return whether it can describe ``noun``."""
        return not self.kinds.isdisjoint(noun.kinds)


@dataclass(frozen=True, eq=False)
class Verb(Entry):
    """A verb with its arguments.

    Attributes:
        prefix: the separable prefix of the German verb, or "".
        german: the infinitive without the prefix.
        german_third: the third person singular of the present.
        auxiliary: ``haben`` or ``sein``, for the perfect.
        preposition: the preposition of the German object, or "".
        case: the case of the German object: ``acc`` or ``dat``.
        chinese: the bare form, in which ~ is the object, # the recipient and @ the place.
        imperative: the German imperative, or "" if it is regular.
        aspect: which tenses make sense, see :mod:`mtformer.phrasebook.clauses`.
        subject, object, recipient: the kinds of nouns in these roles.
        object_as: the form of the object: a kind (``any``), something ``new``, a single one (``one``), without an
            article (``generic``), or any form ("").
        relation: the relation to the place, see ``relations.tsv``; ``at`` and ``to`` depend on the place.
        places: the kinds of places that fit.
    """

    english_past: str
    english_participle: str
    prefix: str
    german: str
    german_third: str
    german_participle: str
    imperative: str
    auxiliary: str
    preposition: str
    case: str
    chinese: str
    chinese_past: str
    chinese_progressive: str
    chinese_negative: str
    chinese_cannot: str
    aspect: str
    subject: tuple[str, ...]
    object: tuple[str, ...]
    object_as: str
    recipient: tuple[str, ...]
    relation: str
    places: tuple[str, ...]

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """Parse a row of ``verbs.tsv``.

        The German verb is written as in a dictionary, ``an·rufen`` with ``ruft, hat gerufen``, then an irregular
        imperative, and with its object: ``warten auf+acc``. The Chinese forms are: bare; past; progressive; negated;
        not able to. Omitted forms are regular.
        """
        word = row["verb"].partition(".")[0]
        infinitive, _, marker = row["german"].partition(" ")
        prefix, _, german = infinitive.rpartition("·")
        preposition, _, case = marker.partition("+")
        third, perfect, imperative = [*row["forms"].split(", "), ""][:3]
        auxiliary, _, participle = perfect.partition(" ")
        bare, past, progressive, negative, cannot, *_ = [*map(str.strip, row["chinese"].split(";")), "", "", "", ""]
        relation, *places = row["place"].split() or [""]
        return cls(
            id=row["verb"],
            english_past=row["past"] or english_past(word.split()[0]),
            english_participle=row["participle"] or row["past"] or english_past(word.split()[0]),
            prefix=prefix,
            german=german,
            german_third=third,
            german_participle=prefix + participle,
            imperative=imperative,
            auxiliary={"hat": "haben", "ist": "sein"}[auxiliary],
            preposition=preposition,
            case=case or "acc",
            chinese=bare,
            chinese_past=past or f"{bare}了",
            chinese_progressive=progressive,
            chinese_negative=negative,
            chinese_cannot=cannot,
            aspect=row["aspect"],
            subject=tuple(row["subject"].split()),
            object=tuple(row["object"].split()),
            object_as=row["as"],
            recipient=tuple(row["recipient"].split()),
            relation=relation,
            places=tuple(places),
        )


@dataclass(frozen=True, eq=False)
class Invariable(Entry):
    """A word or a phrase that has one form in each language; the English one is its ``id``."""

    german: str
    chinese: str


@dataclass(frozen=True, eq=False)
class Name(Invariable):
    """The name of a man, a woman, a city or a country; a German one may have an article: *die Schweiz*."""

    kind: str


@dataclass(frozen=True, eq=False)
class Time(Invariable):
    """A time or a frequency.

    Attributes:
        tenses: the tenses that fit, or ``habitual``; ``frequency`` is an adverb next to the verb.
    """

    tenses: frozenset[str]


@dataclass(frozen=True, eq=False)
class Phrase(Invariable):
    """A fixed phrase."""


@dataclass(frozen=True, eq=False)
class Venue(Entry):
    """How to say that something is at a place or goes there, as in *at the station*, *zum Bahnhof*.

    Attributes:
        noun: the place.
        english_at, english_to: with the article, if there is one.
        german_at: a preposition that takes the dative.
        german_to: a preposition and its case, ``zu+dat``.
        chinese: the localizer, or "".
    """

    noun: Noun
    english_at: str
    german_at: str
    chinese: str
    english_to: str
    german_to: str


@dataclass(frozen=True, eq=False)
class Relation(Entry):
    """A preposition of place for any noun, as in *under the table*."""

    english: str
    german: str
    chinese: str


@dataclass(frozen=True, eq=False)
class Reasons:
    """Why an event failed: adjectives that describe the subject of the verb, and those that describe its object."""

    verb: Verb
    of_subject: tuple[Adjective, ...]
    of_object: tuple[Adjective, ...]


@dataclass(frozen=True, eq=False)
class Location:
    """Where things can be: kinds of nouns, a relation, and kinds of places."""

    subject: tuple[str, ...]
    relation: str
    places: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Motive:
    """A state of a person, and the actions that it leads to or prevents."""

    adjective: Adjective
    verbs: tuple[Verb, ...]
    negated_verbs: tuple[Verb, ...]


def _rows(table: str) -> Iterator[Row]:
    with (FOLDER / f"{table}.tsv").open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE, restval="")


class Lexicon:
    """All tables; those that other tables refer to map names to entries."""

    def __init__(self) -> None:
        """Read the tables."""
        self.nouns = {row["noun"]: Noun.from_row(row) for row in _rows("nouns")}
        self.adjectives = {row["adjective"]: Adjective.from_row(row) for row in _rows("adjectives")}
        self.verbs = {row["verb"]: Verb.from_row(row) for row in _rows("verbs")}
        self.names = [Name(*row.values()) for row in _rows("names")]
        self.times = list(map(self._times, _rows("times")))
        self.phrases = list(map(self._phrases, _rows("phrases")))
        self.visitors = {row["english"]: row for row in _rows("visitors")}
        self.relations = {row["relation"]: Relation(*row.values()) for row in _rows("relations")}
        self.venues = {
            place: Venue(place, self.nouns[place], *forms) for place, *forms in map(dict.values, _rows("places"))
        }
        self.locations = [
            Location(tuple(subject.split()), relation, tuple(places.split()))
            for subject, relation, places in map(dict.values, _rows("locations"))
        ]
        self.motives = [
            Motive(self.adjectives[adjective], self._verbs(verbs), self._verbs(negated))
            for adjective, verbs, negated in map(dict.values, _rows("motives"))
        ]
        self.reasons = [
            Reasons(self.verbs[verb], self._adjectives(of_subject), self._adjectives(of_object))
            for verb, of_subject, of_object in map(dict.values, _rows("because"))
        ]

    def _verbs(self, names: str) -> tuple[Verb, ...]:
        return tuple(self.verbs[name.replace("_", " ")] for name in names.split())

    def _adjectives(self, names: str) -> tuple[Adjective, ...]:
        return tuple(self.adjectives[name] for name in names.split())

    def _times(self, row: Row) -> list[Time]:
        """Return the times of a row: one, or in place of ``{n}`` one for each number from two, spelled or in digits."""
        *columns, tenses = row.values()
        numbers = _HOURS if "o'clock" in row["english"] else _NUMBERS_OF_DAYS
        numerals = [[form(n, code, digits=digits) for code in ("en", "de", "zh")] for n in numbers for digits in (0, 1)]
        filled = _filled(columns, "{n}", numerals)
        return [Time(english, german, chinese, frozenset(tenses.split())) for english, german, chinese in filled]

    def _phrases(self, row: Row) -> list[Phrase]:
        """Return the phrases of a row: one, or in place of ``{name}`` one for each person."""
        people = [[name.id, name.german, name.chinese] for name in self.names if name.kind in ("man", "woman")]
        return [Phrase(*words) for words in _filled(list(row.values()), "{name}", people)]


def _filled(columns: list[str], slot: str, words: list[list[str]]) -> Iterator[list[str]]:
    """Yield a row's text in each language once for each of ``words`` in place of ``slot``, or once if it has none."""
    for each in words if slot in columns[0] else [[""] * len(columns)]:
        yield [column.replace(slot, word) for column, word in zip(columns, each, strict=True)]


def english_plural(word: str) -> str:
    """Return the regular plural, or the third person of a verb: *boxes*, *babies*, *keys*."""
    if word.endswith(("s", "x", "z", "ch", "sh")) or word in ("go", "do"):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def english_past(word: str) -> str:
    """Return the regular past: *baked*, *tried*, *opened*, *robbed*."""
    if word.endswith("e"):
        return word + "d"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ied"
    return doubled(word) + "ed"


def doubled(word: str) -> str:
    """Return the stem before -ed and -ing: in words of one syllable, a consonant after a single vowel is doubled."""
    return word + word[-1] if re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", word) else word


LEXICON = Lexicon()


@cache
def senses(entry: Entry) -> tuple[Entry, ...]:
    """Return the entries of the same English word and part of speech, including ``entry``."""
    tables: dict[type[Entry], dict[str, Any]]
    tables = {Verb: LEXICON.verbs, Noun: LEXICON.nouns, Adjective: LEXICON.adjectives}
    return tuple(sense for sense in tables[type(entry)].values() if sense.word == entry.word)


@cache
def is_ambiguous(entry: Entry) -> bool:
    """Return whether the English word has several senses."""
    return len(senses(entry)) > 1
