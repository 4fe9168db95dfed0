"""Draw clauses: actions, states and questions about them."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from mtformer.phrasebook.lexicon import LEXICON, Adjective, Noun, Verb, is_ambiguous
from mtformer.phrasebook.meaning import Asked, Clause, Det, Modal, NounPhrase, Pair, Phrasal, Pronoun, Quality, Tense
from mtformer.phrasebook.phrases import HUMAN, SPEAKERS, Phrases, nouns, pronoun_for, weight

# The aspects in the verb table: the tenses that make sense for each, with their weights.
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
    "weather": {"progressive": 1, "past": 1, "future": 1},
}

_TRADE = ("buy", "sell")


@cache
def _adjectives() -> tuple[Adjective, ...]:
    return tuple(adjective for adjective in LEXICON.adjectives.values() for _ in range(weight(adjective)))


@cache
def verbs_of(*aspects: str) -> tuple[Verb, ...]:
    """Return the verbs with any of these aspects, in the order of the table."""
    return tuple(verb for verb in LEXICON.verbs.values() if verb.aspect in aspects)


class Clauses(Phrases):
    """Draws clauses."""

    def _clause(self, verb: Verb, subject: Phrasal | None = None, *, negated: bool | None = None) -> Clause:
        """Draw a clause about ``subject``, or a subject that fits, in a tense that fits the verb."""
        subject = subject or self._subject(verb)
        kind = self._weighted(_TENSES[verb.aspect])
        if kind == "habitual":
            return self._habit(verb, subject)
        is_human = not HUMAN.isdisjoint(verb.subject)
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

    def _any_verb(self) -> Verb:
        return self._verb(verbs_of(*_TENSES))

    def _verb(self, verbs: Sequence[Verb]) -> Verb:
        """Choose a verb; ambiguous ones are twice as likely."""
        verb = self._choice(verbs)
        return verb if is_ambiguous(verb) else self._choice(verbs)

    def _feeling(self, *, can_be_past: bool = True) -> Clause:
        """Draw a description of someone or something."""
        if self._chance(0.6):
            adjective = self._choice(_adjectives())
            options = [noun for noun in LEXICON.nouns.values() if adjective.describes(noun)]
            return self._quality(self._known(self._choice(options)), adjective)
        subject = self._person(("person",))
        feelings = [a for a in LEXICON.adjectives.values() if "person" in a.kinds]
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

    def _profession(self) -> Clause:
        """Draw what someone is by profession; German has feminine nouns for women, so *she* takes only those."""
        subject = self._anyone() if self._chance(0.7) else self._relation_of(self._choice(SPEAKERS))
        gender = {Pronoun.HE: "m", Pronoun.SHE: "f"}.get(pronoun_for(subject))
        professions = [noun for noun in nouns(("profession",)) if gender in (None, noun.gender)]
        return Clause(subject, profession=self._choice(professions), negated=self._chance(0.15))

    # Relative clauses.

    def _with_relative(self, clause: Clause) -> Clause:
        """Add a relative clause to the subject or the object."""
        subject, obj = clause.subject, clause.object
        if clause.time_first or clause.verb is None:
            return clause
        is_past = clause.tense is Tense.PAST
        if isinstance(subject, NounPhrase) and isinstance(subject.head, Noun) and "person" in subject.head.kinds:
            if subject.det is Det.THE:
                phrase = replace(subject, adjective=None)
                return replace(clause, subject=self._who(phrase, is_past=is_past))
            return clause
        ends = not clause.time and not clause.place  # anything after the object could attach to either clause
        if not (isinstance(obj, NounPhrase) and isinstance(obj.head, Noun) and ends and clause.verb.id not in _TRADE):
            return clause
        if "goods" in obj.head.kinds and obj.det is Det.THE:
            return replace(clause, object=self._which(replace(obj, adjective=None)))
        return clause

    def _which(self, phrase: NounPhrase) -> NounPhrase:
        """Describe a thing that someone bought or sold."""
        verb = LEXICON.verbs[self._choice(_TRADE)]
        clause = Clause(self._anyone(), verb, tense=Tense.PAST, time=self._time_for(Tense.PAST))
        return replace(phrase, relative=clause, relative_role="object")

    def _who(self, phrase: NounPhrase, *, is_past: bool) -> NounPhrase:
        """Describe a person who does something, or did it if the sentence is about the past."""
        aspects = ("act", "state") if is_past else ("activity", "act", "state")
        verb = self._choice([v for v in verbs_of(*aspects) if "person" in v.subject])
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

    # Questions.

    def _asking(self) -> Clause:
        """Draw a question."""
        kinds = {self._ask_truth: 9, self._ask_object: 5, self._ask_subject: 3, self._ask_place: 3}
        return self._weighted({**kinds, self._ask_when: 2, self._ask_why: 2, self._ask_quality: 2})()

    def _simple(self, verb: Verb) -> Clause:
        """Draw a clause to ask about: not negated, with the subject first, and without a habitual time."""
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
        verbs = [v for v in verbs_of("activity", "act", "state", "event") if len(nouns(v.object)) > 1]
        verb = self._choice([v for v in verbs if not is_ambiguous(v)])
        clause = self._simple(verb)
        noun = self._choice(nouns(verb.object))
        is_person = bool({"person", "family"} & noun.kinds)
        if self._chance(0.4) and not noun.number and "family" not in noun.kinds:
            several = self._chance(0.4) and not is_person and verb.aspect != "state"
            wanted = NounPhrase(noun, Det.HOW_MANY if several else Det.WHICH, plural=several)
        elif is_person:
            wanted = NounPhrase(Pronoun.WHO)
        elif verb.preposition:
            return self._ask_object()
        else:
            wanted = NounPhrase(Pronoun.WHAT)
        return replace(clause, object=wanted, modal=None, tense=_plain(clause), asked=Asked.OBJECT)

    def _ask_subject(self) -> Clause:
        verb = self._choice(
            [v for v in verbs_of("activity", "act", "state", "event", "skill", "go") if "person" in v.subject]
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
            [v for v in verbs_of("activity", "act", "event", "go", "skill") if v.places] + [LEXICON.verbs["live"]] * 3
        )
        clause = self._simple(verb)
        return replace(clause, place=None, modal=None, tense=_plain(clause), asked=Asked.PLACE)

    def _ask_when(self) -> Clause:
        clause = self._simple(self._choice(verbs_of("activity", "act", "go")))
        tense = self._choice((Tense.PAST, Tense.FUTURE))
        return replace(clause, time=None, modal=None, tense=tense, asked=Asked.TIME)

    def _ask_why(self) -> Clause:
        clause = self._simple(self._choice(verbs_of("activity", "act", "go", "event")))
        return replace(clause, modal=None, tense=_plain(clause), asked=Asked.REASON)

    def _located(self) -> Clause:
        location = self._choice(LEXICON.locations)
        subject = self._known(self._choice(nouns(location.subject)))
        place = self._place_of(location.relation, location.places)
        return Clause(subject, place=place, negated=self._chance(0.1))


def _plain(clause: Clause) -> Tense:
    """Return the tense of a clause after removing its modal verb."""
    if clause.modal:
        return Tense.FUTURE
    return Tense.PAST if clause.tense is Tense.PERFECT else clause.tense
