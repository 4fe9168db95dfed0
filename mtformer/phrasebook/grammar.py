"""Draw the meanings of sentences, so that they make sense, from the tables of the lexicon."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from mtformer.phrasebook.clauses import verbs_of
from mtformer.phrasebook.lexicon import LEXICON, Adjective, Noun, Reasons
from mtformer.phrasebook.meaning import (
    Asked,
    Clause,
    Det,
    Link,
    Meaning,
    Modal,
    Mood,
    NounPhrase,
    Pair,
    Phrasal,
    Pronoun,
    Quality,
    Sentence,
    Tense,
)
from mtformer.phrasebook.phrases import HUMAN, SPEAKERS, adjectives_of, heads, nouns, pronoun_for
from mtformer.phrasebook.questions import Questions

_IMPERATIVE = ("activity", "act", "go", "stay", "skill")


class Grammar(Questions):
    """Draws the meanings of sentences."""

    def draw(self) -> Meaning:
        """Draw the meaning of a sentence."""
        return self._weighted(_KINDS)(self)

    def _statement(self) -> Meaning:
        clause = self._clause(self._any_verb())
        return Sentence(self._with_relative(clause) if self._chance(0.12) else clause)

    def _description(self) -> Meaning:
        return Sentence(self._feeling())

    def _being_a(self) -> Meaning:
        """Draw a statement of the profession or the age of someone, or a question about it."""
        clause = self._age() if self._chance(0.4) else self._profession()
        if heads(clause.subject)[0] not in (Pronoun.I, Pronoun.WE) and self._chance(0.25):
            return Sentence(replace(clause, negated=False, asked=Asked.TRUTH), Mood.QUESTION)
        return Sentence(clause)

    def _question(self) -> Meaning:
        return Sentence(self._asking(), Mood.QUESTION)

    def _favour(self) -> Meaning:
        """Draw a question for a favour: *Can you …, please?* is one."""
        verb = self._verb([v for v in verbs_of("activity", "act") if not HUMAN.isdisjoint(v.subject)])
        clause = self._deed(NounPhrase(Pronoun.YOU), verb, 0.0)
        return Sentence(replace(clause, modal=Modal.CAN, asked=Asked.TRUTH, polite=True), Mood.QUESTION)

    def _order(self) -> Meaning:
        """Draw what a guest wants, *a coffee*, or thanks for something."""
        if self._chance(0.4):
            noun = self._choice(nouns(("goods", "drink", "sweet", "flower", "fruit")))
            thing = NounPhrase(noun, Det.THE, noun.number == "plural" or (not noun.number and self._chance(0.3)))
            return Sentence(Clause(None, object=thing), Mood.THANKS)
        noun = self._choice(
            [noun for noun in nouns(("drink", "dish", "fruit")) if not noun.number or "drink" in noun.kinds]
        )
        if self._chance(0.5):
            return Sentence(Clause(None, object=NounPhrase(noun, Det.A)), Mood.ORDER)
        several = NounPhrase(noun, plural=True, count=self._choice(range(2, 13)), digits=self._chance(0.3))
        return Sentence(Clause(None, object=several), Mood.ORDER)

    def _answer(self) -> Meaning:
        """Draw *yes* or *no* and a statement."""
        yes = self._chance(0.5)
        while True:
            kind = self._weighted({"deed": 6, "feeling": 2, "being": 1, "place": 1})
            if kind == "deed":
                clause = self._clause(self._any_verb(), negated=not yes)
            else:
                draw = {"feeling": self._feeling, "being": self._profession, "place": self._located}[kind]
                clause = replace(draw(), negated=not yes)
            if clause.negated is not yes:
                break
        quality = clause.quality and replace(clause.quality, degree="" if clause.negated else clause.quality.degree)
        return Sentence(replace(clause, quality=quality, time_first=False), answer=yes)

    def _short_answer(self) -> Meaning:
        """Draw an answer of a few words, such as *Yes, I do* or *No, she cannot*."""
        yes = self._chance(0.5)
        subject = NounPhrase(self._choice(SPEAKERS))
        kind = self._choice(("do", "did", "can", "will", "is"))
        verb = LEXICON.verbs["do"] if kind in ("do", "did") else None
        tense = {"did": Tense.PAST, "will": Tense.FUTURE}.get(kind, Tense.PRESENT)
        modal = Modal.CAN if kind == "can" else None
        return Sentence(Clause(subject, verb, tense=tense, modal=modal, negated=not yes), Mood.ANSWER, answer=yes)

    def _command(self) -> Meaning:
        verb = self._verb([v for v in verbs_of(*_IMPERATIVE) if not HUMAN.isdisjoint(v.subject)])
        negated = self._chance(0.25)
        share = 0.0 if negated and verb.object else 0.1
        clause = replace(self._deed(NounPhrase(Pronoun.YOU), verb, share, negated=negated), subject=None)
        if negated and isinstance(clause.object, NounPhrase) and clause.object.det is Det.A:
            clause = replace(clause, object=replace(clause.object, det=Det.THE))
        return Sentence(clause, Mood.REQUEST if self._chance(0.4) else Mood.COMMAND)

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
        adjective = self._adjective(head, 0.2)
        kind = self._weighted({"one": 3, "several": 5, "none": 2, "asked": 1})
        several = self._choice(range(2, 13)) if "landmark" in head.kinds else self._number()
        count = several if kind == "several" else 0
        det = Det.A if kind in ("one", "asked") else Det.NONE
        plural = bool(count) or (kind == "none" and self._chance(0.5))
        subject = NounPhrase(head, det, plural, count=count, digits=self._chance(0.5), adjective=adjective)
        asked = Asked.TRUTH if kind == "asked" else None
        return Sentence(replace(clause, subject=subject, negated=kind == "none", asked=asked), Mood.EXISTENCE)

    def _coordination(self) -> Meaning:
        link = self._choice((Link.AND, Link.BUT))
        if self._chance(0.15):
            return self._two_feelings(link)
        while True:
            first = self._clause(self._any_verb(), negated=False)
            second = self._clause(self._any_verb(), negated=link is Link.BUT)
            same_time = (second.tense, second.modal) == (first.tense, first.modal)
            if same_time and second.negated is (link is Link.BUT) and second.subject != first.subject:
                break
        if second.time and "frequency" not in second.time.tenses:
            second = replace(second, time=None, time_first=False)
        return Sentence(first, link=link, second=second)

    def _two_feelings(self, link: Link) -> Meaning:
        """Draw *I am not hungry, but I am thirsty*."""
        feelings = [a for a in LEXICON.adjectives.values() if "person" in a.kinds]
        first, second = self._random.sample(feelings, 2)
        who = self._person(("person",))
        other = NounPhrase(pronoun_for(who)) if self._chance(0.5) else self._person(("person",))
        one_is_not = self._chance(0.5)
        clauses = [
            Clause(subject, quality=Quality(adjective), negated=link is Link.BUT and negated)
            for subject, adjective, negated in ((who, first, one_is_not), (other, second, not one_is_not))
        ]
        return Sentence(clauses[0], link=link, second=clauses[1])

    def _content(self) -> Meaning:
        """Draw a sentence in which someone thinks, knows, hopes or says something."""
        verb = self._choice(verbs_of("opinion"))
        subject = self._person(("person",))
        while True:
            second = self._clause(self._any_verb())
            is_hoped = second.tense is Tense.FUTURE or verb.id != "hope"
            if is_hoped and not _overlap(subject, second.subject):
                break
        return Sentence(Clause(subject, verb), link=Link.THAT, second=replace(second, time_first=False))

    def _unknown(self) -> Meaning:
        """Draw an indirect question: someone does not know, or is asked."""
        know = LEXICON.verbs["know.fact"]
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
        """Draw a state and its consequence, in either order; *although* when it leads to the opposite; or *if*."""
        motive = self._choice(LEXICON.motives)
        negated = not motive.verbs or self._chance(0.5)
        verb = self._choice(motive.negated_verbs if negated else motive.verbs)
        who = self._person_with_pronoun()
        link = self._weighted({Link.BECAUSE: 6, Link.ALTHOUGH: 2, Link.IF: 2})
        future = link is Link.IF
        if link is Link.ALTHOUGH:
            verb, negated = self._choice(motive.negated_verbs), False
        second_first = link is not Link.BECAUSE or self._chance(0.4)
        tense = Tense.FUTURE if future else Tense.PAST
        state = Clause(who, quality=Quality(motive.adjective), tense=Tense.PRESENT if future else Tense.PAST)
        deed = self._deed(who, verb, 0.0, negated=negated, tense=tense)
        again = NounPhrase(pronoun_for(who))
        if second_first:
            return Sentence(replace(deed, subject=again), link=link, second=state, second_first=True)
        return Sentence(deed, link=link, second=replace(state, subject=again))

    def _person_with_pronoun(self) -> Phrasal:
        """Draw a person, without adjective, whom English and German refer to by the same pronoun."""
        while True:
            who = self._person(("person",))
            if isinstance(who, Pair) or not isinstance(who.head, Noun):
                return who
            if who.plural or who.head.gender != "n" or "female" in who.head.kinds:
                return replace(who, adjective=None)

    def _if_weather(self) -> Meaning:
        """Draw a plan of someone for the case that it rains tomorrow."""
        weather = self._choice(verbs_of("weather"))
        verb = self._choice(verbs_of("go", "stay", "activity", "skill"))
        who = self._person(("person",)) if "person" in verb.subject else self._subject(verb)
        deed = self._deed(who, verb, 0.0, negated=True, tense=Tense.FUTURE)
        deed = replace(deed, negated=verb.aspect != "stay" and self._chance(0.5))
        time = self._time("day")
        condition = Clause(NounPhrase(Pronoun.IT), weather, time=time)
        return Sentence(deed, link=Link.IF, second=condition, second_first=True)

    def _it(self) -> Meaning:
        """Draw an event that failed because *it* was too …: only the adjective decides which noun *it* is."""
        reasons = self._choice(LEXICON.reasons)
        verb = reasons.verb
        subject, obj = self._unlike_nouns(reasons)
        speaks_of_subject = self._chance(0.5)
        antecedent, candidate = (subject, obj) if speaks_of_subject else (obj, subject)
        adjective = self._choice(telling(reasons, antecedent, candidate, of_subject=speaks_of_subject))
        if verb.aspect == "fit":
            kind = self._choice(("past", "present"))
        else:
            kind = self._weighted({"past": 3, "future": 1, "can": 1})
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
        """Draw a candidate for *it*; an adjective before the noun must not be one of the reasons."""
        det = Det.THIS if self._chance(0.15) else Det.THE
        words = {adjective.word for adjective in (*reasons.of_subject, *reasons.of_object)}
        options = [adjective for adjective in adjectives_of(noun) if adjective.word not in words]
        return NounPhrase(noun, det, adjective=self._choice(options) if options and self._chance(0.3) else None)

    def _unlike_nouns(self, reasons: Reasons) -> tuple[Noun, Noun]:
        """Draw a subject and an object of different German gender, each with a reason that fits only it."""
        while True:
            subject, obj = self._choice(nouns(reasons.verb.subject)), self._choice(nouns(reasons.verb.object))
            both = telling(reasons, subject, obj, of_subject=True) and telling(reasons, obj, subject, of_subject=False)
            if subject.gender != obj.gender and both:
                return subject, obj

    def _phrase(self) -> Meaning:
        return self._choice(self._choice(LEXICON.phrases))


_KINDS: dict[Callable[[Grammar], Meaning], int] = {
    Grammar._statement: 34,
    Grammar._question: 20,
    Grammar._description: 8,
    Grammar._being_a: 4,
    Grammar._command: 9,
    Grammar._location: 4,
    Grammar._existence: 3,
    Grammar._coordination: 6,
    Grammar._content: 5,
    Grammar._unknown: 4,
    Grammar._because: 6,
    Grammar._if_weather: 3,
    Grammar._it: 10,
    Grammar._favour: 2,
    Grammar._order: 3,
    Grammar._answer: 5,
    Grammar._short_answer: 2,
    Grammar._phrase: 5,
}


def _overlap(left: Phrasal | None, right: Phrasal | None) -> bool:
    """Return whether both phrases may include the same person."""
    speaker = {Pronoun.I, Pronoun.WE}
    first, second = set(heads(left)), set(heads(right))
    return bool(first & second) or bool(first & speaker and second & speaker)


@cache
def telling(reasons: Reasons, antecedent: Noun, candidate: Noun, *, of_subject: bool) -> tuple[Adjective, ...]:
    """Return the reasons that can apply to ``antecedent`` only."""
    own, its = (reasons.of_subject, reasons.of_object) if of_subject else (reasons.of_object, reasons.of_subject)
    rival = {adjective.word for adjective in its if adjective.describes(candidate)}
    return tuple(a for a in own if a.describes(antecedent) and a.word not in rival)
