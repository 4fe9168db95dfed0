"""The meaning of a sentence, independent of any language."""

from dataclasses import dataclass
from enum import Enum

from mtformer.phrasebook.lexicon import Adjective, Name, Noun, Phrase, Relation, Time, Venue, Verb

# Personal and interrogative; YOU is one person, addressed informally.
Pronoun = Enum("Pronoun", "I YOU HE SHE IT WE THEY WHO WHAT")
# The determiner of a noun phrase; GENERIC, as in "play the piano", is an article in English only.
Det = Enum("Det", "NONE A THE THIS WHICH HOW_MANY HOW_MUCH GENERIC")
Modal = Enum("Modal", "CAN MUST WANT")
# What a question asks for.
Asked = Enum("Asked", "TRUTH SUBJECT OBJECT PLACE TIME REASON")
# The kind of sentence: REQUEST has a "please", EXISTENCE is "there is …", ANSWER is "yes, I do", ORDER is "a coffee,
# please", THANKS is "thank you for …".
Mood = Enum("Mood", "STATEMENT QUESTION COMMAND REQUEST EXISTENCE ANSWER ORDER THANKS")
# How the second clause is connected to the first; ASKING as in "I do not know where …".
Link = Enum("Link", "AND BUT BECAUSE ALTHOUGH IF THAT ASKING")


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """A person or a thing.

    Attributes:
        owner: the possessor, instead of a determiner.
        count: the number, instead of a determiner; 0 for none.
        digits: whether the number is written in digits.
        antecedent: the noun that ``Pronoun.IT`` refers to.
        relative: a relative clause, in which the phrase itself is missing.
        relative_role: the role of the phrase in that clause: ``subject`` or ``object``.
    """

    head: "Noun | Name | Pronoun"
    det: Det = Det.NONE
    plural: bool = False
    owner: "Pronoun | Name | None" = None
    count: int = 0
    digits: bool = False
    adjective: Adjective | None = None
    antecedent: Noun | None = None
    relative: "Clause | None" = None
    relative_role: str = ""

    @property
    def is_indefinite(self) -> bool:
        """Whether it is new to the listener: German negates it with *kein*, Chinese can omit the measure word."""
        return isinstance(self.head, Noun) and not self.owner and not self.count and self.det in (Det.NONE, Det.A)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two noun phrases joined by *and*."""

    first: NounPhrase
    second: NounPhrase


Phrasal = NounPhrase | Pair


def parts(phrase: Phrasal | None) -> tuple[NounPhrase, ...]:
    """Return the noun phrases of a phrase: two for a pair, none for a command."""
    if phrase is None:
        return ()
    return (phrase.first, phrase.second) if isinstance(phrase, Pair) else (phrase,)


class Tense(Enum):
    """The tense, as English marks it."""

    PRESENT = "present"
    PROGRESSIVE = "progressive"
    PAST = "past"
    PERFECT = "perfect"  # with already, or not yet
    FUTURE = "future"


@dataclass(frozen=True, slots=True)
class Home:
    """*At home* or *home*: no article, and its own preposition in German."""


@dataclass(frozen=True, slots=True)
class Place:
    """A location or a destination.

    Attributes:
        where: a place with its own prepositions, a city, home, or any noun phrase.
        relation: the preposition, for a noun phrase.
        goal: whether it is a destination, for the others.
    """

    where: "Venue | Name | Home | NounPhrase"
    relation: Relation | None = None
    goal: bool = False


@dataclass(frozen=True, slots=True)
class Quality:
    """A predicative adjective and its degree: ``too``, ``very`` or neither (""); or an age in years.

    Attributes:
        years: how old the subject is, or 0.
        digits: whether the years are written in digits.
    """

    adjective: Adjective
    degree: str = ""
    years: int = 0
    digits: bool = False


@dataclass(frozen=True, slots=True)
class Clause:
    """A statement, a question or a command.

    Attributes:
        subject: None in an imperative.
        verb: the verb; without it, ``quality``, ``profession`` or, for *to be* somewhere, ``place`` is the predicate.
        profession: what the subject is, as in *I am a student*: with an article in English only.
        time_first: whether the sentence starts with the time.
        asked: what a question asks for; an interrogative takes the place of a subject or object.
        polite: whether a question for a favour has a *please*.
    """

    subject: "Phrasal | None"
    verb: Verb | None = None
    quality: Quality | None = None
    profession: Noun | None = None
    object: "Phrasal | None" = None
    recipient: "Phrasal | None" = None
    place: Place | None = None
    time: Time | None = None
    time_first: bool = False
    tense: Tense = Tense.PRESENT
    modal: Modal | None = None
    negated: bool = False
    asked: Asked | None = None
    polite: bool = False


@dataclass(frozen=True, slots=True)
class Sentence:
    """A main clause, or two.

    Attributes:
        second_first: whether the second clause, a subordinate one, precedes the main clause.
        answer: whether it starts with *yes* or with *no*, or with neither (None).
    """

    main: Clause
    mood: Mood = Mood.STATEMENT
    link: Link | None = None
    second: Clause | None = None
    second_first: bool = False
    answer: bool | None = None

    @property
    def is_question(self) -> bool:
        """Whether it ends with a question mark."""
        return self.mood is Mood.QUESTION or (self.mood is Mood.EXISTENCE and self.main.asked is Asked.TRUTH)


Meaning = Sentence | Phrase

_PERSONS = {Pronoun.I: (1, False), Pronoun.YOU: (2, False), Pronoun.WE: (1, True), Pronoun.THEY: (3, True)}


def agreement(phrase: "Phrasal | None") -> tuple[int, bool]:
    """Return person (1 to 3) and whether it is plural, for the agreement of the verb; a command addresses *you*."""
    if phrase is None:
        return 2, False
    if isinstance(phrase, Pair):
        return 3, True
    return _PERSONS.get(phrase.head, (3, phrase.plural)) if isinstance(phrase.head, Pronoun) else (3, phrase.plural)
