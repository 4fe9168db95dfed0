"""Draw what a sentence says: meanings that make sense, from the tables of the lexicon."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

from mtformer.text.phrasebook.lexicon import Adjective, Entry, Name, Noun, Reasons, Time, Verb, lexicon
from mtformer.text.phrasebook.meaning import (
    Asked,
    Clause,
    Det,
    Home,
    Link,
    Meaning,
    Modal,
    Mood,
    NounPhrase,
    Pair,
    Phrasal,
    Place,
    Pronoun,
    Quality,
    Sentence,
    Tense,
)

T = TypeVar("T")

# What a verb of each aspect may be in, and how often. A name of a modal stands for the present with it.
_TENSES: dict[str, dict[str, int]] = {
    "activity": {"progressive": 6, "habitual": 3, "past": 6, "future": 3, "perfect": 1, "modal": 3},
    "behavior": {"progressive": 4, "habitual": 2, "past": 4},
    "skill": {"progressive": 4, "habitual": 4, "past": 4, "future": 2, "modal": 6},
    "act": {"past": 10, "future": 4, "perfect": 2, "modal": 4},
    "event": {"past": 1},
    "state": {"present": 1},
    "go": {"past": 8, "future": 5, "habitual": 3, "modal": 4},
    "stay": {"past": 4, "future": 4, "modal": 2},
    "posture": {"progressive": 1},
    "wear": {"progressive": 1},
    "running": {"progressive": 1},
}
_TIME_SHARE = {Tense.PROGRESSIVE: 0.2, Tense.PAST: 0.55, Tense.FUTURE: 0.9}
_HUMAN = {"person", "adult", "engineer"}
_SPEAKERS = (Pronoun.I, Pronoun.YOU, Pronoun.HE, Pronoun.SHE, Pronoun.WE, Pronoun.THEY)
_OWNERS = (Pronoun.I, Pronoun.YOU, Pronoun.HE, Pronoun.SHE, Pronoun.WE, Pronoun.THEY)
_IMPERATIVE = ("activity", "act", "go", "stay", "skill")
_ONE_AT_A_TIME = ("wear", "put on", "take off", "lose", "forget", "reach", "turn on", "turn off", "show", "hide")
_LASTING = {
    "washed",
    "closed",
    "switched",
    "room",
    "pet",
    "farm",
    "readable",
    "container",
    "known",
    "transit",
    "growing",
}
_UNOWNED = {
    "public",
    "climbed",
    "crossed",
    "goal",
    "landmark",
    "sight",
    "hurdle",
    "bathing",
    "lifter",
    "known",
    "built",
}
_BARE_WITH = ("like", "love", "hate")
_NEW_WITH = ("have", "need", "want")


@cache
def nouns(selectors: tuple[str, ...]) -> tuple[Noun, ...]:
    """The nouns of any of these kinds, in the order of the table."""
    return tuple(noun for noun in lexicon().nouns.values() if not noun.kinds.isdisjoint(selectors))


@cache
def _objects(verb: Verb) -> tuple[Noun, ...]:
    """What the verb may have as its object."""
    return tuple(noun for noun in nouns(verb.object) for _ in range(_weight(noun)))


@cache
def _adjectives() -> tuple[Adjective, ...]:
    return tuple(adjective for adjective in lexicon().adjectives.values() for _ in range(_weight(adjective)))


def _weight(entry: Entry) -> int:
    """Words of several meanings come more often: they need more examples."""
    return 4 if len(lexicon().senses(entry)) > 1 else 1


@cache
def adjectives_of(noun: Noun) -> tuple[Adjective, ...]:
    """The adjectives that may stand before ``noun``."""
    return tuple(a for a in lexicon().adjectives.values() if a.attributive and a.describes(noun))


@cache
def _names(kind: str) -> tuple[Name, ...]:
    return tuple(name for name in lexicon().names if kind in (name.kind, "person" * (name.kind != "city")))


@cache
def _verbs(*aspects: str) -> tuple[Verb, ...]:
    return tuple(verb for verb in lexicon().verbs.values() if verb.aspect in aspects)


@cache
def _times(tense: str) -> tuple[tuple[Time, ...], ...]:
    return tuple(group for group in lexicon().times if tense in group[0].tenses)


_venues = cache(lambda: lexicon().venues())
_reasons = cache(lambda: lexicon().reasons())
_motives = cache(lambda: lexicon().motives())
_locations = cache(lambda: lexicon().locations())


class Grammar:
    """Draws meanings, one after the other, from a random generator of its own."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def draw(self) -> Meaning:
        """Draw the meaning of a sentence."""
        kinds = tuple(_KINDS)
        kind = self._random.choices(kinds, weights=[_KINDS[kind] for kind in kinds])[0]
        return kind(self)

    # Choices.

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _choice(self, options: Sequence[T]) -> T:
        return options[int(self._random.random() * len(options))]

    def _weighted(self, weights: dict[T, int]) -> T:
        return self._random.choices(tuple(weights), weights=tuple(weights.values()))[0]

    # Noun phrases.

    def _subject(self, verb: Verb) -> Phrasal:
        if verb.aspect == "weather":
            return NounPhrase(Pronoun.IT)
        if _HUMAN.isdisjoint(verb.subject):
            noun = self._choice(nouns(verb.subject))
            return self._known(noun, can_be_plural=verb.aspect != "event" or "person" not in noun.kinds)
        return self._person(verb.subject)

    def _person(self, selectors: tuple[str, ...]) -> Phrasal:
        """Someone, as the subject."""
        kind = self._weighted({"pronoun": 6, "name": 5, "noun": 7, "family": 2, "pair": 1})
        if kind == "pronoun":
            return NounPhrase(self._choice(_SPEAKERS))
        if kind == "name":
            return NounPhrase(self._choice(_names("person")))
        if kind == "family":
            return self._relation_of(self._choice(_OWNERS))
        if kind == "pair":
            first, second = self._random.sample(_names("person"), 2)
            return Pair(NounPhrase(first), NounPhrase(second))
        noun = self._choice(nouns(tuple(s for s in selectors if s != "family")))
        return self._known(noun)

    def _relation_of(self, owner: Pronoun) -> NounPhrase:
        return NounPhrase(self._choice(nouns(("family",))), owner=owner)

    def _known(self, noun: Noun, *, can_be_plural: bool = True) -> NounPhrase:
        """Someone or something that the listener knows: the, this, my."""
        if "family" in noun.kinds:
            return NounPhrase(noun, owner=self._choice(_OWNERS))
        plural = noun.number == "plural" or (can_be_plural and not noun.number and self._chance(0.15))
        adjective = self._adjective(noun, 0.2)
        if {"pet", "goods", "luggage"} & noun.kinds and self._chance(0.25):
            return NounPhrase(noun, plural=plural, adjective=adjective, owner=self._choice(_OWNERS))
        det = Det.THIS if self._chance(0.1) else Det.THE
        return NounPhrase(noun, det, plural, adjective=adjective)

    def _adjective(self, noun: Noun, share: float) -> Adjective | None:
        options = adjectives_of(noun)
        return self._choice(options) if options and self._chance(share) else None

    def _object(self, verb: Verb, subject: Phrasal, *, habitual: bool = False, negated: bool = False) -> Phrasal:
        noun = self._choice(_objects(verb))
        if {"person", "family"} & noun.kinds and verb.id not in _NEW_WITH:
            return self._other_person(noun, subject)
        if "body" in noun.kinds:
            return NounPhrase(noun, plural=True, owner=pronoun_for(subject))
        if verb.id.startswith("play."):
            return NounPhrase(noun, Det.GENERIC)
        if "language" in noun.kinds:
            return NounPhrase(noun)
        if verb.id in _BARE_WITH:
            return self._in_general(noun)
        one = verb.word in _ONE_AT_A_TIME
        phrase = self._thing(noun, habitual=habitual, negated=negated, new=verb.id in _NEW_WITH, one=one)
        if isinstance(phrase.owner, Name) and phrase.owner in _heads(subject):
            phrase = replace(phrase, owner=pronoun_for(subject))
        is_plain = not phrase.owner and phrase.det is Det.NONE and not phrase.count and not phrase.adjective
        if is_plain and not negated and self._chance(0.15):
            kind = next(selector for selector in verb.object if selector in noun.kinds)
            others = [other for other in nouns((kind,)) if other.number == noun.number and other is not noun]
            if others:
                return Pair(phrase, replace(phrase, head=self._choice(others)))
        return phrase

    def _in_general(self, noun: Noun) -> NounPhrase:
        """All of a kind: *apples*, *music*; or the one that is meant."""
        if noun.number in ("", "plural", "mass") and self._chance(0.6):
            return NounPhrase(noun, plural=noun.number != "mass")
        return self._known(noun)

    def _thing(
        self, noun: Noun, *, habitual: bool = False, negated: bool = False, new: bool = False, one: bool = False
    ) -> NounPhrase:
        """Something, as an object: known or new, one or several."""
        adjective = self._adjective(noun, 0.22)
        kinds = {"the": 4, "owner": 2, "this": 1, "some": 4, "several": 2, "a": 5, "the several": 1}
        if one:
            kinds |= {"some": 0, "several": 0}
        if habitual:
            is_lasting = not _LASTING.isdisjoint(noun.kinds)
            kinds |= {"a": 0, "several": 0, "this": 0, "some": 7, "the": 4 * is_lasting, "owner": 2 * is_lasting}
            kinds |= {"the several": 0} if not is_lasting else {}
        if not _UNOWNED.isdisjoint(noun.kinds) and "homes" not in noun.kinds:
            kinds["owner"] = 0
        if negated:
            kinds["several"] = 0
        if new:
            kinds |= {"the": 0, "this": 0, "owner": 0, "the several": 0}
        if noun.number in ("pair", "singular"):
            kinds |= {"some": 0, "several": 0, "the several": 0}
        if noun.number == "pair" or "known" in noun.kinds or "person" in noun.kinds:
            kinds |= {"a": 0, "some": 0, "several": 0, "the": 4}
        if {"closed", "room", "hurdle", "climbed"} & noun.kinds:
            kinds |= {"some": 0, "several": 0}
        if noun.number in ("mass", "plural"):
            kinds |= {"a": 0, "several": 0, "the several": 0}
        if not any(kinds.values()):
            kinds["the"] = 1
        kind = self._weighted(kinds)
        plural = noun.number == "plural" or (noun.number == "" and kind in ("some", "several", "the several"))
        if kind == "owner":
            return NounPhrase(noun, plural=plural, owner=self._owner(), adjective=adjective)
        if kind == "several":
            count = self._choice((2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 20))
            return NounPhrase(noun, plural=plural, count=count, adjective=adjective)
        det = {"the": Det.THE, "the several": Det.THE, "this": Det.THIS, "a": Det.A, "some": Det.NONE}[kind]
        return NounPhrase(noun, det, plural, adjective=adjective)

    def _owner(self) -> Pronoun | Name:
        return self._choice(_names("person")) if self._chance(0.15) else self._choice(_OWNERS)

    def _other_person(self, noun: Noun, subject: Phrasal) -> NounPhrase:
        """Someone who is not the subject."""
        who = subject.head if isinstance(subject, NounPhrase) else None
        kind = self._weighted({"pronoun": 4, "name": 4, "noun": 8})
        if kind == "pronoun":
            own = {Pronoun.I, Pronoun.WE} if who in (Pronoun.I, Pronoun.WE) else {who}
            return NounPhrase(self._choice([one for one in _SPEAKERS if one not in own]))
        if kind == "name" and "person" in noun.kinds:
            used = {who} if isinstance(subject, NounPhrase) else {subject.first.head, subject.second.head}
            return NounPhrase(self._choice([name for name in _names("person") if name not in used]))
        return self._known(noun)

    # Places and times.

    def _place(self, verb: Verb) -> Place | None:
        return self._place_of(verb.relation, verb.places) if verb.places else None

    def _place_of(self, relation: str, selectors: tuple[str, ...]) -> Place:
        goal = relation == "to"
        options: list[Noun | Name | Home] = [*nouns(selectors)]
        if "home" in selectors:
            options += [Home(), Home()]
        if "city" in selectors:
            options += _names("city") if options == [] else [self._choice(_names("city")) for _ in range(3)]
        where = self._choice(options)
        if not isinstance(where, Noun):
            return Place(where, goal=goal)
        if relation in ("at", "to"):
            return Place(_venues()[where.id], goal=goal)
        phrase = NounPhrase(where, Det.THE, adjective=self._adjective(where, 0.2))
        return Place(phrase, lexicon().relations[relation])

    def _place_for(self, verb: Verb, share: float = 0.25) -> Place | None:
        """A place where the verb needs one, and sometimes where it does not."""
        needed = verb.relation in ("to", "onto") or verb.aspect in ("stay", "posture") or verb.id == "live"
        likely = needed or (not verb.object and self._chance(0.6)) or self._chance(share)
        return self._place(verb) if likely else None

    def _time(self, tense: str) -> Time:
        return self._choice(self._choice(_times(tense)))

    def _time_for(self, tense: Tense) -> Time | None:
        return self._time(tense.value) if self._chance(_TIME_SHARE.get(tense, 0)) else None

    # Clauses.

    def _clause(self, verb: Verb, subject: Phrasal | None = None, *, negated: bool | None = None) -> Clause:
        """A clause about ``subject``, or any that fits, in a tense that fits the verb."""
        subject = subject or self._subject(verb)
        if verb.aspect == "weather":
            return self._weather(verb)
        kind = self._weighted(_TENSES[verb.aspect])
        if kind == "habitual":
            return self._habit(verb, subject)
        is_human = not _HUMAN.isdisjoint(verb.subject)
        modals = {Modal.CAN: 1, Modal.MUST: int(is_human), Modal.WANT: int(is_human)}
        modal = self._weighted(modals) if kind == "modal" else None
        tense = Tense.PRESENT if modal else Tense(kind)
        if negated is None:
            negated = self._chance(0.15)
        if modal is Modal.MUST:
            negated = False
        time = self._time_for(tense)
        if modal is not Modal.CAN and modal and self._chance(0.3):
            time = self._time("plan")
        return Clause(
            subject=subject,
            verb=verb,
            object=self._object(verb, subject, negated=negated) if verb.object else None,
            recipient=self._recipient(verb, subject),
            place=self._place_for(verb, 0.0 if negated and verb.object else 0.25),
            time=time,
            time_first=time is not None and "frequency" not in time.tenses and self._chance(0.45),
            tense=tense,
            modal=modal,
            negated=negated,
        )

    def _recipient(self, verb: Verb, subject: Phrasal) -> NounPhrase | None:
        return self._other_person(self._choice(nouns(verb.recipient)), subject) if verb.recipient else None

    def _habit(self, verb: Verb, subject: Phrasal) -> Clause:
        time = self._time(self._choice(("habitual", "frequency")))
        return Clause(
            subject=subject,
            verb=verb,
            object=self._object(verb, subject, habitual=True) if verb.object else None,
            recipient=self._recipient(verb, subject),
            place=self._place_for(verb),
            time=time,
            time_first="habitual" in time.tenses and self._chance(0.3),
        )

    def _weather(self, verb: Verb) -> Clause:
        tense = self._choice((Tense.PROGRESSIVE, Tense.PAST, Tense.FUTURE))
        time = self._time(tense.value) if tense is not Tense.PROGRESSIVE else None
        first = time is not None and self._chance(0.4)
        return Clause(NounPhrase(Pronoun.IT), verb, time=time, time_first=first, tense=tense)

    def _any_verb(self) -> Verb:
        return self._choice(_verbs(*_TENSES))

    def _feeling(self, *, can_be_past: bool = True) -> Clause:
        """What someone is like, or something."""
        if self._chance(0.6):
            adjective = self._choice(_adjectives())
            options = [noun for noun in lexicon().nouns.values() if adjective.describes(noun)]
            return self._quality(self._known(self._choice(options)), adjective)
        subject = self._person(("person",))
        feelings = [a for a in lexicon().adjectives.values() if "person" in a.kinds]
        clause = self._quality(subject, self._choice(feelings))
        if can_be_past and self._chance(0.4):
            time = self._time("past")
            return replace(clause, tense=Tense.PAST, time=time, time_first=self._chance(0.4))
        return clause

    def _quality(self, subject: Phrasal, adjective: Adjective) -> Clause:
        if isinstance(subject, NounPhrase):
            subject = replace(subject, adjective=None)
        negated = self._chance(0.15)
        degrees = {"": 6, "very": 2, "too": 0 if {"person", "machine"} & adjective.kinds else 1}
        plain = negated or adjective.chinese_predicate.startswith("是")
        return Clause(subject, quality=Quality(adjective, "" if plain else self._weighted(degrees)), negated=negated)

    # Kinds of sentences.

    def _statement(self) -> Meaning:
        clause = self._clause(self._any_verb())
        return Sentence(self._with_relative(clause) if self._chance(0.12) else clause)

    def _with_relative(self, clause: Clause) -> Clause:
        """Describe the subject, or the object, by a clause of its own."""
        subject, obj = clause.subject, clause.object
        if clause.time_first or clause.verb is None:
            return clause
        is_past = clause.tense is Tense.PAST
        if isinstance(subject, NounPhrase) and isinstance(subject.head, Noun) and "person" in subject.head.kinds:
            if subject.det is Det.THE:
                phrase = replace(subject, adjective=None)
                return replace(clause, subject=self._who(phrase, is_past=is_past))
            return clause
        is_thing = isinstance(obj, NounPhrase) and isinstance(obj.head, Noun) and "goods" in obj.head.kinds
        ends = not clause.time and not clause.place  # nothing may follow that could belong to the other clause
        if is_thing and ends and isinstance(obj, NounPhrase) and obj.det is Det.THE and clause.verb.id != "buy":
            return replace(clause, object=self._which(replace(obj, adjective=None)))
        return clause

    def _which(self, phrase: NounPhrase) -> NounPhrase:
        """The thing that someone bought or sold."""
        verb = lexicon().verbs[self._choice(("buy", "sell"))]
        anyone: tuple[Pronoun | Name, ...] = (*_SPEAKERS, *_names("person"))
        clause = Clause(NounPhrase(self._choice(anyone)), verb, tense=Tense.PAST, time=self._time_for(Tense.PAST))
        return replace(phrase, relative=clause, relative_role="object")

    def _who(self, phrase: NounPhrase, *, is_past: bool) -> NounPhrase:
        """The person who does something, or did it if the sentence is about the past."""
        aspects = ("act", "state") if is_past else ("activity", "act", "state")
        verb = self._choice([v for v in _verbs(*aspects) if "person" in v.subject])
        tense = {"state": Tense.PRESENT, "activity": Tense.PROGRESSIVE, "act": Tense.PAST}[verb.aspect]
        clause = Clause(
            phrase,
            verb,
            object=self._object(verb, phrase) if verb.object else None,
            recipient=self._recipient(verb, phrase),
            place=self._place_for(verb, 0.0),
            tense=tense,
        )
        return replace(phrase, relative=clause, relative_role="subject")

    def _description(self) -> Meaning:
        return Sentence(self._feeling())

    def _question(self) -> Meaning:
        return Sentence(self._asking(), Mood.QUESTION)

    def _asking(self) -> Clause:
        """A clause that asks."""
        kinds = {self._ask_truth: 9, self._ask_object: 5, self._ask_subject: 3, self._ask_place: 3}
        return self._weighted({**kinds, self._ask_when: 2, self._ask_why: 2, self._ask_quality: 2})()

    def _simple(self, verb: Verb) -> Clause:
        """A clause to ask about: nothing negated, nothing in front, no time or only one that is plain."""
        for _ in range(100):
            clause = self._clause(verb, negated=False)
            subject = clause.subject
            first_person = isinstance(subject, NounPhrase) and subject.head in (Pronoun.I, Pronoun.WE)
            is_habit = clause.time is not None and clause.tense is Tense.PRESENT and not clause.modal
            if not first_person and not is_habit and not isinstance(clause.object, Pair):
                return replace(clause, time_first=False)
        raise AssertionError(f"no plain clause for {verb.id}")

    def _ask_truth(self) -> Clause:
        return replace(self._simple(self._any_verb()), asked=Asked.TRUTH)

    def _ask_quality(self) -> Clause:
        clause = self._feeling(can_be_past=False)
        degree = Quality(clause.quality.adjective) if clause.quality else None
        return replace(clause, quality=degree, negated=False, asked=Asked.TRUTH)

    def _ask_object(self) -> Clause:
        unambiguous = [v for v in _verbs("activity", "act", "state", "event") if v.object and "." not in v.id]
        verb = self._choice(unambiguous)
        clause = self._simple(verb)
        noun = self._choice(nouns(verb.object))
        is_person = bool({"person", "family"} & noun.kinds)
        if self._chance(0.4) and not noun.number and "family" not in noun.kinds:
            several = self._chance(0.4) and not is_person and verb.aspect != "state"
            wanted = NounPhrase(noun, Det.HOW_MANY if several else Det.WHICH, plural=several)
        elif is_person:
            wanted = NounPhrase(Pronoun.WHO)
        elif verb.preposition or verb.id == "answer":
            return self._ask_object()
        else:
            wanted = NounPhrase(Pronoun.WHAT)
        return replace(clause, object=wanted, modal=None, tense=_plain(clause), asked=Asked.OBJECT)

    def _ask_subject(self) -> Clause:
        verb = self._choice(
            [v for v in _verbs("activity", "act", "state", "event", "skill", "go") if "person" in v.subject]
        )
        clause = self._clause(verb, NounPhrase(Pronoun.WHO), negated=False)
        is_habit = clause.time is not None and clause.tense is Tense.PRESENT
        return replace(
            clause,
            time_first=False,
            asked=Asked.SUBJECT,
            time=None if is_habit else clause.time,
            modal=None,
            tense=_plain(clause),
        )

    def _ask_place(self) -> Clause:
        if self._chance(0.35):
            return replace(self._located(), asked=Asked.PLACE, place=None, negated=False)
        verb = self._choice(
            [v for v in _verbs("activity", "act", "event", "go", "skill") if v.places] + [lexicon().verbs["live"]] * 3
        )
        clause = self._simple(verb)
        return replace(clause, place=None, modal=None, tense=_plain(clause), asked=Asked.PLACE)

    def _ask_when(self) -> Clause:
        clause = self._simple(self._choice(_verbs("activity", "act", "go")))
        tense = self._choice((Tense.PAST, Tense.FUTURE))
        return replace(clause, time=None, modal=None, tense=tense, asked=Asked.TIME)

    def _ask_why(self) -> Clause:
        clause = self._simple(self._choice(_verbs("activity", "act", "go", "event")))
        return replace(clause, modal=None, tense=_plain(clause), asked=Asked.REASON)

    def _command(self) -> Meaning:
        verb = self._choice([v for v in _verbs(*_IMPERATIVE) if not _HUMAN.isdisjoint(v.subject)])
        negated = self._chance(0.25)
        you = NounPhrase(Pronoun.YOU)
        clause = Clause(
            None,
            verb,
            object=self._object(verb, you, negated=negated) if verb.object else None,
            recipient=self._recipient(verb, you),
            place=self._place_for(verb, 0.0 if negated and verb.object else 0.1),
            negated=negated,
        )
        if negated and isinstance(clause.object, NounPhrase) and clause.object.det is Det.A:
            clause = replace(clause, object=replace(clause.object, det=Det.THE))
        return Sentence(clause, Mood.REQUEST if self._chance(0.4) else Mood.COMMAND)

    def _located(self) -> Clause:
        location = self._choice(_locations())
        subject = self._known(self._choice(nouns(location.subject)))
        place = self._place_of(location.relation, location.places)
        return Clause(subject, place=place, negated=self._chance(0.1))

    def _location(self) -> Meaning:
        clause = self._located()
        if self._chance(0.2):
            return Sentence(replace(clause, asked=Asked.TRUTH, negated=False), Mood.QUESTION)
        return Sentence(clause)

    def _existence(self) -> Meaning:
        clause = self._located()
        head = clause.subject.head if isinstance(clause.subject, NounPhrase) else None
        if not isinstance(head, Noun) or head.number:
            return self._existence()
        count = self._choice((0, 0, 2, 3, 4, 5))
        adjective = self._adjective(head, 0.2)
        subject = NounPhrase(head, Det.NONE if count else Det.A, bool(count), count=count, adjective=adjective)
        return Sentence(replace(clause, subject=subject, negated=False), Mood.EXISTENCE)

    def _coordination(self) -> Meaning:
        link = self._choice((Link.AND, Link.BUT))
        while True:
            first = self._clause(self._any_verb(), negated=False)
            second = self._clause(self._any_verb(), negated=link is Link.BUT)
            same_time = (second.tense, second.modal) == (first.tense, first.modal)
            if same_time and second.negated is (link is Link.BUT) and second.subject != first.subject:
                break
        if second.time and "frequency" not in second.time.tenses:
            second = replace(second, time=None, time_first=False)
        return Sentence(first, link=link, second=second)

    def _content(self) -> Meaning:
        """Someone thinks, knows, hopes or says that something is so."""
        verb = self._choice(_verbs("opinion"))
        subject = self._person(("person",))
        while True:
            second = self._clause(self._any_verb())
            is_hoped = second.tense is Tense.FUTURE or verb.id != "hope"
            if is_hoped and not _overlap(subject, second.subject):
                break
        return Sentence(Clause(subject, verb), link=Link.THAT, second=replace(second, time_first=False))

    def _unknown(self) -> Meaning:
        """Someone does not know, or is asked."""
        know = lexicon().verbs["know.fact"]
        asked = self._chance(0.4)
        subject = NounPhrase(Pronoun.YOU) if asked else self._person(("person",))
        while True:
            second = self._asking()
            if not _overlap(subject, second.subject):
                break
        if asked:
            return Sentence(Clause(subject, know, asked=Asked.TRUTH), Mood.QUESTION, Link.ASKING, second)
        return Sentence(Clause(subject, know, negated=True), link=Link.ASKING, second=second)

    def _because(self) -> Meaning:
        """A feeling and what it leads to, in either order; *although* when it leads to the contrary; or *if*."""
        motive = self._choice(_motives())
        negated = bool(motive.negated_verbs) and (not motive.verbs or self._chance(0.5))
        verb = self._choice(motive.negated_verbs if negated else motive.verbs)
        who = self._person_with_pronoun()
        link = self._weighted({Link.BECAUSE: 6, Link.ALTHOUGH: 2, Link.IF: 2})
        future = link is Link.IF
        if link is Link.ALTHOUGH:
            if not motive.negated_verbs:
                return self._because()
            verb, negated = self._choice(motive.negated_verbs), False
        second_first = link is not Link.BECAUSE or self._chance(0.4)
        tense = Tense.FUTURE if future else Tense.PAST
        state = Clause(who, quality=Quality(motive.adjective), tense=Tense.PRESENT if future else Tense.PAST)
        deed = Clause(
            who,
            verb,
            object=self._object(verb, who, negated=negated) if verb.object else None,
            place=self._place_for(verb, 0.0),
            tense=tense,
            negated=negated,
        )
        again = NounPhrase(pronoun_for(who))
        if second_first:
            return Sentence(replace(deed, subject=again), link=link, second=state, second_first=True)
        return Sentence(deed, link=link, second=replace(state, subject=again))

    def _person_with_pronoun(self) -> Phrasal:
        """Someone of whom English and German say *he* or *she* alike; no adjective, the sentence has one."""
        while True:
            who = self._person(("person",))
            if isinstance(who, Pair) or not isinstance(who.head, Noun):
                return who
            if who.plural or who.head.gender != "n" or who.head.id == "girl":
                return replace(who, adjective=None)

    def _if_weather(self) -> Meaning:
        """If it rains tomorrow …, or because it is raining."""
        weather = self._choice(_verbs("weather"))
        verb = self._choice(_verbs("go", "stay", "activity", "skill"))
        who = self._person(("person",)) if "person" in verb.subject else self._subject(verb)
        deed = Clause(
            who,
            verb,
            object=self._object(verb, who, negated=True) if verb.object else None,
            recipient=self._recipient(verb, who),
            place=self._place_for(verb, 0.0),
            tense=Tense.FUTURE,
            negated=verb.aspect != "stay" and self._chance(0.5),
        )
        time = self._time("day")
        condition = Clause(NounPhrase(Pronoun.IT), weather, time=time)
        return Sentence(deed, link=Link.IF, second=condition, second_first=True)

    def _it(self) -> Meaning:
        """It did not happen, because *it* was too …: which of the two nouns it is, only the adjective tells."""
        reasons = self._choice(_reasons())
        verb = reasons.verb
        subject, obj = self._unlike_nouns(reasons)
        speaks_of_subject = self._chance(0.5)
        antecedent, other = (subject, obj) if speaks_of_subject else (obj, subject)
        adjective = self._choice(telling(reasons, antecedent, other, of_subject=speaks_of_subject))
        kind = (
            self._weighted({"past": 3, "future": 1, "can": 1})
            if verb.aspect != "fit"
            else self._choice(("past", "present"))
        )
        tense = {"past": Tense.PAST, "future": Tense.FUTURE}.get(kind, Tense.PRESENT)
        time = self._time_for(tense) if self._chance(0.6) else None
        main = Clause(
            self._candidate(subject, reasons),
            verb,
            object=self._candidate(obj, reasons),
            time=time,
            time_first=time is not None and self._chance(0.5),
            tense=tense,
            modal=Modal.CAN if kind == "can" else None,
            negated=True,
        )
        it = NounPhrase(Pronoun.IT, antecedent=antecedent)
        reason = Clause(
            it, quality=Quality(adjective, "too"), tense=Tense.PAST if tense is Tense.PAST else Tense.PRESENT
        )
        return Sentence(main, link=Link.BECAUSE, second=reason)

    def _candidate(self, noun: Noun, reasons: Reasons) -> NounPhrase:
        """One that *it* may stand for; what is said of it here must not be a reason."""
        det = Det.THIS if self._chance(0.15) else Det.THE
        words = {adjective.word for adjective in (*reasons.of_subject, *reasons.of_object)}
        options = [adjective for adjective in adjectives_of(noun) if adjective.word not in words]
        return NounPhrase(noun, det, adjective=self._choice(options) if options and self._chance(0.3) else None)

    def _unlike_nouns(self, reasons: Reasons) -> tuple[Noun, Noun]:
        """A subject and an object of different gender in German, of which something can be said."""
        while True:
            subject, obj = self._choice(nouns(reasons.verb.subject)), self._choice(nouns(reasons.verb.object))
            both = telling(reasons, subject, obj, of_subject=True) and telling(reasons, obj, subject, of_subject=False)
            if subject.gender != obj.gender and both:
                return subject, obj

    def _phrase(self) -> Meaning:
        return self._choice(lexicon().phrases)


_KINDS: dict[Callable[[Grammar], Meaning], float] = {
    Grammar._statement: 34,
    Grammar._question: 20,
    Grammar._description: 8,
    Grammar._command: 7,
    Grammar._location: 4,
    Grammar._existence: 3,
    Grammar._coordination: 6,
    Grammar._content: 5,
    Grammar._unknown: 4,
    Grammar._because: 6,
    Grammar._if_weather: 3,
    Grammar._it: 10,
    Grammar._phrase: 0.5,
}


def _plain(clause: Clause) -> Tense:
    """The tense of a clause that loses its modal verb."""
    if clause.modal:
        return Tense.FUTURE
    return Tense.PAST if clause.tense is Tense.PERFECT else clause.tense


def _heads(phrase: Phrasal | None) -> tuple[object, ...]:
    if phrase is None:
        return ()
    return (phrase.first.head, phrase.second.head) if isinstance(phrase, Pair) else (phrase.head,)


def _overlap(one: Phrasal | None, other: Phrasal | None) -> bool:
    """Tell whether the same person may be among both."""
    speaker = {Pronoun.I, Pronoun.WE}
    first, second = set(_heads(one)), set(_heads(other))
    return bool(first & second) or bool(first & speaker and second & speaker)


@cache
def telling(reasons: Reasons, antecedent: Noun, other: Noun, *, of_subject: bool) -> tuple[Adjective, ...]:
    """The reasons that can be meant of ``antecedent`` only."""
    own, its = (reasons.of_subject, reasons.of_object) if of_subject else (reasons.of_object, reasons.of_subject)
    rival = {adjective.word for adjective in its if adjective.describes(other)}
    return tuple(a for a in own if a.describes(antecedent) and a.word not in rival)


def pronoun_for(phrase: Phrasal) -> Pronoun:
    """The pronoun that takes up a person."""
    if isinstance(phrase, Pair):
        both = (phrase.first.head, phrase.second.head)
        return Pronoun.WE if {Pronoun.I, Pronoun.WE} & set(both) else Pronoun.THEY
    match phrase.head:
        case Pronoun():
            return phrase.head
        case Name(kind=kind):
            return Pronoun.SHE if kind == "woman" else Pronoun.HE
    if phrase.plural:
        return Pronoun.THEY
    return Pronoun.SHE if phrase.head.gender == "f" or phrase.head.id == "girl" else Pronoun.HE
