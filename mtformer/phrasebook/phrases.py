"""Draw noun phrases, places and times."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

from mtformer.phrasebook.lexicon import LEXICON, Adjective, Entry, Name, Noun, Time, Verb, is_ambiguous
from mtformer.phrasebook.meaning import Det, Home, NounPhrase, Pair, Phrasal, Place, Pronoun, Tense, parts
from mtformer.phrasebook.numerals import MOST

T = TypeVar("T")

HUMAN = {"person", "adult", "engineer"}  # kinds that pronouns and names of people can replace
SPEAKERS = (Pronoun.I, Pronoun.YOU, Pronoun.HE, Pronoun.SHE, Pronoun.WE, Pronoun.THEY)
_ROUND_NUMBERS = (20, 30, 40, 50, 60, 70, 80, 90, 100, 200, 250, 300, 400, 500, MOST)
_TIME_SHARE = {Tense.PROGRESSIVE: 0.2, Tense.PAST: 0.55, Tense.FUTURE: 0.9}
# Kinds of nouns: those that last (one washes a car every week), and those that nobody owns.
_LASTING = set("washed closed switched room pet farm readable container known transit growing".split())
_UNOWNED = set("public climbed crossed goal landmark sight hurdle bathing lifter known built".split())


@cache
def nouns(selectors: tuple[str, ...] | frozenset[str]) -> tuple[Noun, ...]:
    """Return the nouns of any of these kinds, in the order of the table."""
    return tuple(noun for noun in LEXICON.nouns.values() if not noun.kinds.isdisjoint(selectors))


@cache
def _objects(verb: Verb) -> tuple[Noun, ...]:
    """Return the possible objects of the verb, repeated by weight."""
    return tuple(noun for noun in nouns(verb.object) for _ in range(weight(noun)))


def weight(entry: Entry) -> int:
    """Return how often to draw an entry: ambiguous words need more examples."""
    return 5 if is_ambiguous(entry) else 1


@cache
def adjectives_of(noun: Noun) -> tuple[Adjective, ...]:
    """Return the adjectives that can precede ``noun``."""
    return tuple(a for a in LEXICON.adjectives.values() if a.attributive and a.describes(noun))


@cache
def names_of(kind: str) -> tuple[Name, ...]:
    """Return the names of cities, countries, men or women; ``person`` means both men and women."""
    kinds = ("man", "woman") if kind == "person" else (kind,)
    return tuple(name for name in LEXICON.names if name.kind in kinds)


@cache
def times_of(tense: str) -> list[list[Time]]:
    """Return the groups of times that fit a tense."""
    return [group for group in LEXICON.times if tense in group[0].tenses]


class Phrases:
    """Draws phrases from its own random generator."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    # Choices.

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _choice(self, options: Sequence[T]) -> T:
        return options[int(self._random.random() * len(options))]

    def _weighted(self, weights: dict[T, int]) -> T:
        place = self._random.random() * sum(weights.values())
        for option, weight in weights.items():
            place -= weight
            if place < 0:
                return option
        return option

    # Noun phrases.

    def _subject(self, verb: Verb) -> Phrasal:
        if verb.aspect == "weather":
            return NounPhrase(Pronoun.IT)
        if verb.aspect == "price" and self._chance(0.2):
            return NounPhrase(Pronoun.IT)
        if HUMAN.isdisjoint(verb.subject):
            noun = self._choice(nouns(verb.subject))
            return self._known(noun, can_be_plural=verb.aspect != "event" or "person" not in noun.kinds)
        return self._person(verb.subject)

    def _person(self, selectors: tuple[str, ...]) -> Phrasal:
        """Draw a person as the subject."""
        kind = self._weighted({"pronoun": 6, "name": 5, "noun": 7, "family": 2, "pair": 1})
        if kind == "pronoun":
            return NounPhrase(self._speaker())
        if kind == "name":
            return NounPhrase(self._choice(names_of("person")))
        if kind == "family":
            return self._relation_of(self._choice(SPEAKERS))
        if kind == "pair":
            first, second = self._random.sample(names_of("person"), 2)
            return Pair(NounPhrase(first), NounPhrase(second))
        return self._known(self._choice(nouns(selectors)))

    def _anyone(self) -> NounPhrase:
        """Draw a pronoun or a name."""
        return NounPhrase(self._speaker() if self._chance(0.3) else self._choice(names_of("person")))

    def _speaker(self) -> Pronoun:
        """Draw a pronoun; one speaks of oneself the most."""
        return Pronoun.I if self._chance(0.2) else self._choice(SPEAKERS)

    def _relation_of(self, owner: Pronoun) -> NounPhrase:
        return NounPhrase(self._choice(nouns(("family",))), owner=owner)

    def _known(self, noun: Noun, *, can_be_plural: bool = True) -> NounPhrase:
        """Draw a phrase that the listener can identify: the, this, my."""
        if "family" in noun.kinds:
            return NounPhrase(noun, owner=self._choice(SPEAKERS))
        plural = noun.number == "plural" or (can_be_plural and not noun.number and self._chance(0.15))
        adjective = self._adjective(noun, 0.2)
        if {"pet", "goods", "luggage"} & noun.kinds and self._chance(0.25):
            return NounPhrase(noun, plural=plural, adjective=adjective, owner=self._choice(SPEAKERS))
        det = Det.THIS if self._chance(0.1) else Det.THE
        return NounPhrase(noun, det, plural, adjective=adjective)

    def _adjective(self, noun: Noun, share: float) -> Adjective | None:
        options = adjectives_of(noun)
        return self._choice(options) if options and self._chance(share) else None

    def _object(self, verb: Verb, subject: Phrasal, *, habitual: bool = False, negated: bool = False) -> Phrasal:
        noun = self._choice(_objects(verb))
        if {"person", "family"} & noun.kinds and verb.object_as != "new":
            return self._other_person(noun, subject)
        if "body" in noun.kinds:
            return NounPhrase(noun, plural=True, owner=pronoun_for(subject))
        if verb.object_as == "generic":
            return NounPhrase(noun, Det.GENERIC)
        if "language" in noun.kinds:
            return self._languages(noun, can_be_two=not negated)
        if verb.object_as == "price":
            return NounPhrase(noun, plural=True, count=self._number(), digits=self._chance(0.5))
        if verb.object_as == "any":
            return self._in_general(noun)
        phrase = self._thing(noun, _determiner_weights(noun, verb, habitual=habitual, negated=negated))
        if isinstance(phrase.owner, Name) and phrase.owner in heads(subject):
            phrase = replace(phrase, owner=pronoun_for(subject))
        is_plain = phrase.is_indefinite and not phrase.adjective
        if is_plain and not negated and self._chance(0.15):
            kind = next(selector for selector in verb.object if selector in noun.kinds)
            alike = [each for each in nouns((kind,)) if each.number == noun.number and each is not noun]
            if alike:
                return Pair(phrase, replace(phrase, head=self._choice(alike)))
        return phrase

    def _languages(self, noun: Noun, *, can_be_two: bool) -> Phrasal:
        """Draw a language, or two."""
        others = [other for other in nouns(("language",)) if other is not noun]
        is_pair = can_be_two and self._chance(0.2)
        return Pair(NounPhrase(noun), NounPhrase(self._choice(others))) if is_pair else NounPhrase(noun)

    def _number(self) -> int:
        """Draw a number from 2 to 1,000; most are small."""
        share = self._random.random()
        if share < 0.45:
            return self._choice(range(2, 13))
        if share < 0.55:
            return self._choice(_ROUND_NUMBERS)
        return self._choice(range(13, 100)) if share < 0.8 else self._choice(range(100, MOST + 1))

    def _in_general(self, noun: Noun) -> NounPhrase:
        """Draw a kind as a whole: *apples*, *music*; or a definite phrase."""
        if noun.number in ("", "plural", "mass") and self._chance(0.6):
            return NounPhrase(noun, plural=noun.number != "mass")
        return self._known(noun)

    def _thing(self, noun: Noun, weights: dict[str, int]) -> NounPhrase:
        """Draw an object: definite or indefinite, singular or plural."""
        adjective = self._adjective(noun, 0.22)
        kind = self._weighted(weights)
        plural = noun.number == "plural" or (noun.number == "" and kind in ("some", "several", "the several"))
        if kind == "owner":
            return NounPhrase(noun, plural=plural, owner=self._owner(), adjective=adjective)
        if kind == "several":
            digits = self._chance(0.4)
            return NounPhrase(noun, plural=plural, count=self._number(), digits=digits, adjective=adjective)
        det = {"the": Det.THE, "the several": Det.THE, "this": Det.THIS, "a": Det.A, "some": Det.NONE}[kind]
        return NounPhrase(noun, det, plural, adjective=adjective)

    def _owner(self) -> Pronoun | Name:
        return self._choice(names_of("person")) if self._chance(0.15) else self._choice(SPEAKERS)

    def _other_person(self, noun: Noun, subject: Phrasal) -> NounPhrase:
        """Draw a person other than the subject."""
        who = subject.head if isinstance(subject, NounPhrase) else None
        kind = self._weighted({"pronoun": 4, "name": 4, "noun": 8})
        if kind == "pronoun":
            own = {Pronoun.I, Pronoun.WE} if who in (Pronoun.I, Pronoun.WE) else {who}
            return NounPhrase(self._choice([speaker for speaker in SPEAKERS if speaker not in own]))
        if kind == "name" and "person" in noun.kinds:
            used = heads(subject)
            return NounPhrase(self._choice([name for name in names_of("person") if name not in used]))
        return self._known(noun)

    # Places and times.

    def _place_of(self, relation: str, selectors: tuple[str, ...]) -> Place:
        goal = relation == "to"
        options: list[Noun | Name | Home] = [*nouns(selectors)]
        if "home" in selectors:
            options += [Home(), Home()]
        if "city" in selectors:
            lands = names_of("country") if "country" in selectors else ()
            options += [self._choice(names_of("city")) for _ in range(3)] + [self._choice(lands) for _ in lands[:3]]
        where = self._choice(options)
        if relation == "from" and isinstance(where, Name):
            return Place(where, LEXICON.relations[relation])
        if not isinstance(where, Noun):
            return Place(where, goal=goal)
        if relation in ("at", "to"):
            return Place(LEXICON.venues[where.id], goal=goal)
        phrase = NounPhrase(where, Det.THE, adjective=self._adjective(where, 0.2))
        return Place(phrase, LEXICON.relations[relation])

    def _place_for(self, verb: Verb, share: float = 0.25) -> Place | None:
        """Draw a place if the verb needs one, and sometimes if it does not."""
        needed = "@" in verb.chinese  # the pattern has a slot for the place
        likely = needed or (not verb.object and self._chance(0.6)) or self._chance(share)
        return self._place_of(verb.relation, verb.places) if likely and verb.places else None

    def _time(self, tense: str) -> Time:
        return self._choice(self._choice(times_of(tense)))

    def _time_for(self, tense: Tense) -> Time | None:
        return self._time(tense.value) if self._chance(_TIME_SHARE.get(tense, 0)) else None


def _determiner_weights(noun: Noun, verb: Verb, *, habitual: bool, negated: bool) -> dict[str, int]:
    """Return the weights of *the, my, this, some, several, a* and plural *the*; 0 where it sounds wrong."""
    weights = {"the": 4, "owner": 2, "this": 1, "some": 4, "several": 2, "a": 5, "the several": 1}
    is_owned = _UNOWNED.isdisjoint(noun.kinds) or "homes" in noun.kinds
    is_known = noun.number == "pair" or not noun.kinds.isdisjoint(("known", "person"))
    changes = [
        (verb.object_as == "one", {"some": 0, "several": 0}),
        # One washes the car every week, but does not eat the apple every week.
        (habitual, {"a": 0, "several": 0, "this": 0, "some": 7}),
        (habitual and _LASTING.isdisjoint(noun.kinds), {"the": 0, "owner": 0, "the several": 0}),
        (not is_owned, {"owner": 0}),
        (negated, {"several": 0}),
        (verb.object_as == "new", {"the": 0, "this": 0, "owner": 0, "the several": 0}),
        (noun.number in ("pair", "singular"), {"some": 0, "several": 0, "the several": 0}),
        (is_known, {"a": 0, "some": 0, "several": 0, "the": 4}),
        (bool({"closed", "room", "hurdle", "climbed"} & noun.kinds), {"some": 0, "several": 0}),
        (noun.number in ("mass", "plural"), {"a": 0, "several": 0, "the several": 0}),
    ]
    for applies, changed in changes:
        weights |= changed if applies else {}
    return weights if any(weights.values()) else {"the": 1}


def heads(phrase: Phrasal | None) -> tuple[object, ...]:
    """Return the heads of a phrase: two for a pair, none for a command."""
    return tuple(part.head for part in parts(phrase))


def pronoun_for(phrase: Phrasal) -> Pronoun:
    """Return the pronoun that refers to a person."""
    if isinstance(phrase, Pair):
        return Pronoun.WE if {Pronoun.I, Pronoun.WE} & set(heads(phrase)) else Pronoun.THEY
    match phrase.head:
        case Pronoun():
            return phrase.head
        case Name(kind=kind):
            return Pronoun.SHE if kind == "woman" else Pronoun.HE
    if phrase.plural:
        return Pronoun.THEY
    return Pronoun.SHE if phrase.head.gender == "f" or "female" in phrase.head.kinds else Pronoun.HE
