"""Draw the meanings of sentences, so that they make sense, from the tables of the lexicon."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from mtformer.phrasebook.lexicon import LEXICON, Adjective, Noun, Reasons, Verb, is_ambiguous
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
from mtformer.phrasebook.phrases import HUMAN, SPEAKERS, Phrases, adjectives_of, heads, nouns, pronoun_for, weight

_IMPERATIVE = ("activity", "act", "go", "stay", "skill")

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


class Grammar(Phrases):
    """Draws the meanings of sentences."""

    def draw(self) -> Meaning:
        """Draw the meaning of a sentence."""
        return self._weighted(_KINDS)(self)

    # Clauses.

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
            options = [noun for noun in LEXICON.nouns.values() if adjective.describes(noun)]
            return self._quality(self._known(self._choice(options)), adjective)
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
            first_person = heads(subject)[0] in (Pronoun.I, Pronoun.WE) and not self._chance(0.3)
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

    def _located(self) -> Clause:
        location = self._choice(LEXICON.locations)
        noun = self._choice(nouns(location.subject))
        is_person = "person" in location.subject and self._chance(0.7)
        subject = self._person(("person",)) if is_person else self._known(noun)
        place = self._place_of(location.relation, location.places)
        return Clause(subject, place=place, negated=self._chance(0.15))

    # Sentences.

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
        """Draw *Can you …, please?*"""
        verb = self._verb([v for v in verbs_of("activity", "act") if not HUMAN.isdisjoint(v.subject)])
        clause = self._deed(NounPhrase(Pronoun.YOU), verb, 0.0)
        return Sentence(replace(clause, modal=Modal.CAN, asked=Asked.TRUTH, polite=True), Mood.QUESTION)

    def _order(self) -> Meaning:
        """Draw what a guest wants, *a coffee*, or thanks for something."""
        if self._chance(0.4):
            noun = self._choice(nouns(("goods", "drink", "sweet", "flower", "fruit")))
            thing = NounPhrase(noun, Det.THE, noun.number == "plural" or (not noun.number and self._chance(0.3)))
            return Sentence(Clause(None, object=thing), Mood.THANKS)
        noun = self._choice([noun for noun in nouns(("drink", "dish", "fruit")) if not noun.number or "drink" in noun.kinds])
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
        """Draw *Yes, I do.* or *No, she cannot.*"""
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
    Grammar._order: 2,
    Grammar._answer: 5,
    Grammar._short_answer: 1,
    Grammar._phrase: 4,
}


def _plain(clause: Clause) -> Tense:
    """Return the tense of a clause after removing its modal verb."""
    if clause.modal:
        return Tense.FUTURE
    return Tense.PAST if clause.tense is Tense.PERFECT else clause.tense


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
