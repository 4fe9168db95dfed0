"""Draw the clauses of sentences: who does what to whom, when and where; and what someone or something is."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from mtformer.phrasebook.lexicon import LEXICON, Adjective, Noun, Verb, is_ambiguous
from mtformer.phrasebook.meaning import Clause, Det, Modal, NounPhrase, Phrasal, Pronoun, Quality, Tense
from mtformer.phrasebook.phrases import HUMAN, Phrases, nouns, pronoun_for, weight

# The aspects in the verb table: the tenses that make sense for each, with their weights.
_TENSES: dict[str, dict[str, int]] = {
    "activity": {"progressive": 6, "habitual": 3, "simple": 4, "past": 6, "future": 3, "perfect": 1, "modal": 3},
    "behavior": {"progressive": 4, "habitual": 2, "past": 4},
    "skill": {"progressive": 4, "habitual": 4, "simple": 3, "past": 4, "future": 2, "modal": 6},
    "act": {"past": 10, "future": 4, "perfect": 2, "modal": 4},
    "event": {"past": 1},
    "state": {"present": 1},
    "price": {"present": 1},
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
        is_simple = kind == "simple"  # I eat meat, without a time: most often, one does not
        tense = Tense.PRESENT if modal or is_simple else Tense(kind)
        if negated is None:
            negated = self._chance(0.6 if is_simple else 0.2)
        if modal is Modal.MUST or verb.aspect == "price":
            negated = False
        time = self._time_for(tense)
        if modal is not Modal.CAN and modal and self._chance(0.3):
            time = self._time("plan")
        share = 0.0 if (negated or is_simple) and verb.object else 0.25
        clause = self._deed(subject, verb, share, habitual=is_simple, negated=negated, tense=tense)
        time_first = time is not None and "frequency" not in time.tenses and self._chance(0.45)
        return replace(clause, time=time, time_first=time_first, modal=modal)

    def _deed(
        self,
        subject: Phrasal,
        verb: Verb,
        share: float = 0.25,
        *,
        habitual: bool = False,
        negated: bool = False,
        tense: Tense = Tense.PRESENT,
    ) -> Clause:
        """Draw the object, the recipient and the place of a verb; ``share`` is the chance of an optional place."""
        return Clause(
            subject,
            verb,
            object=self._object(verb, subject, habitual=habitual, negated=negated) if verb.object else None,
            recipient=self._other_person(self._choice(nouns(verb.recipient)), subject) if verb.recipient else None,
            place=self._place_for(verb, share),
            tense=tense,
            negated=negated,
        )

    def _habit(self, verb: Verb, subject: Phrasal) -> Clause:
        time = self._time(self._choice(("habitual", "frequency")))
        clause = self._deed(subject, verb, habitual=True)
        return replace(clause, time=time, time_first="habitual" in time.tenses and self._chance(0.3))

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
            return self._quality(self._known(self._choice(nouns(adjective.kinds))), adjective)
        subject = self._person(("person",))
        feelings = [a for a in LEXICON.adjectives.values() if "person" in a.kinds]
        clause = self._quality(subject, self._choice(feelings))
        if can_be_past and self._chance(0.4):
            time = self._time("past") if self._chance(0.7) else None
            return replace(clause, tense=Tense.PAST, time=time, time_first=time is not None and self._chance(0.4))
        return clause

    def _quality(self, subject: Phrasal, adjective: Adjective) -> Clause:
        if isinstance(subject, NounPhrase):
            subject = replace(subject, adjective=None)
        negated = self._chance(0.25)
        degrees = {"": 6, "very": 2, "too": 0 if {"person", "machine"} & adjective.kinds else 1}
        plain = negated or adjective.chinese_predicate.startswith("是")
        return Clause(subject, quality=Quality(adjective, "" if plain else self._weighted(degrees)), negated=negated)

    def _profession(self) -> Clause:
        """Draw the profession of someone; German has feminine nouns for women, so *she* takes only those."""
        subject = self._anyone() if self._chance(0.7) else self._relation_of(self._speaker())
        gender = {Pronoun.HE: "m", Pronoun.SHE: "f"}.get(pronoun_for(subject))
        professions = [noun for noun in nouns(("profession",)) if gender in (None, noun.gender)]
        return Clause(subject, profession=self._choice(professions), negated=self._chance(0.15))

    def _age(self) -> Clause:
        """Draw how old someone is."""
        subject = self._relation_of(self._speaker()) if self._chance(0.2) else self._anyone()
        years = self._number()
        years = years if years < 100 else self._choice(range(2, 100))
        return Clause(subject, quality=Quality(LEXICON.adjectives["old.person"], "", years, self._chance(0.5)))

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
        return replace(phrase, relative=self._deed(phrase, verb, 0.0, tense=tense), relative_role="subject")

    def _located(self) -> Clause:
        location = self._choice(LEXICON.locations)
        noun = self._choice(nouns(location.subject))
        is_person = "person" in location.subject and self._chance(0.7)
        subject = self._person(("person",)) if is_person else self._known(noun)
        place = self._place_of(location.relation, location.places)
        return Clause(subject, place=place, negated=self._chance(0.15))
