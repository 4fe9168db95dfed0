"""Draw questions: whether, who, what, which, how many, how much, where, when and why."""

from dataclasses import replace

from mtformer.phrasebook.clauses import Clauses, verbs_of
from mtformer.phrasebook.lexicon import LEXICON, Verb, is_ambiguous
from mtformer.phrasebook.meaning import Asked, Clause, Det, NounPhrase, Pair, Pronoun, Quality, Tense
from mtformer.phrasebook.phrases import heads, nouns


class Questions(Clauses):
    """Draws questions."""

    def _asking(self) -> Clause:
        """Draw a question."""
        kinds = {self._ask_truth: 9, self._ask_object: 5, self._ask_subject: 3, self._ask_place: 3}
        return self._weighted({**kinds, self._ask_when: 2, self._ask_why: 2, self._ask_quality: 2})()

    def _simple(self, verb: Verb) -> Clause:
        """Draw a clause to ask about: not negated, with the subject first, and without a habitual time."""
        for _ in range(100):
            clause = self._clause(verb, negated=False)
            subject = clause.subject
            first_person = heads(subject)[0] in (Pronoun.I, Pronoun.WE) and not self._chance(0.3)
            is_habit = clause.time is not None and clause.tense is Tense.PRESENT and not clause.modal
            if not first_person and not is_habit and not isinstance(clause.object, Pair):
                return replace(clause, time_first=False)
        raise AssertionError(f"no plain clause for {verb.id}")

    def _ask_truth(self) -> Clause:
        # *Do you know* mostly asks for facts.
        verb = LEXICON.verbs["know.person"] if self._chance(0.03) else self._any_verb()
        return replace(self._simple(verb), asked=Asked.TRUTH)

    def _ask_quality(self) -> Clause:
        clause = self._feeling(can_be_past=False)
        degree = Quality(clause.quality.adjective) if clause.quality else None
        return replace(clause, quality=degree, negated=False, asked=Asked.TRUTH)

    def _ask_object(self) -> Clause:
        if self._chance(0.05):
            clause = self._clause(LEXICON.verbs["cost"])
            assert isinstance(clause.object, NounPhrase)
            return replace(clause, object=replace(clause.object, det=Det.HOW_MUCH, count=0), asked=Asked.OBJECT)
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
        verbs = [v for v in verbs_of("activity", "act", "event", "go", "skill") if v.places]
        verb = self._choice([*verbs, *[LEXICON.verbs["live"], LEXICON.verbs["come"]] * 3])
        clause = self._simple(verb)
        return replace(clause, place=None, modal=None, tense=_plain(clause), asked=Asked.PLACE)

    def _ask_when(self) -> Clause:
        clause = self._simple(self._choice(verbs_of("activity", "act", "go")))
        tense = self._choice((Tense.PAST, Tense.FUTURE))
        return replace(clause, time=None, modal=None, tense=tense, asked=Asked.TIME)

    def _ask_why(self) -> Clause:
        clause = self._simple(self._choice(verbs_of("activity", "act", "go", "event")))
        negated = self._chance(0.3) and not clause.place
        return replace(clause, modal=None, tense=_plain(clause), negated=negated, asked=Asked.REASON)


def _plain(clause: Clause) -> Tense:
    """Return the tense of a clause after removing its modal verb."""
    if clause.modal:
        return Tense.FUTURE
    return Tense.PAST if clause.tense is Tense.PERFECT else clause.tense
