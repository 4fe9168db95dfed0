"""What a sentence says, before any language says it."""

from dataclasses import dataclass
from enum import Enum, auto

from mtformer.phrasebook.lexicon import Adjective, Name, Noun, Phrase, Relation, Time, Venue, Verb


class Pronoun(Enum):
    """Who or what, without a name; ``YOU`` is one person whom the speaker knows well."""

    I = auto()  # noqa: E741 (that is the word)
    YOU = auto()
    HE = auto()
    SHE = auto()
    IT = auto()
    WE = auto()
    THEY = auto()
    WHO = auto()
    WHAT = auto()


class Det(Enum):
    """The determiner of a noun phrase that has neither owner nor number."""

    NONE = auto()
    A = auto()
    THE = auto()
    THIS = auto()
    WHICH = auto()
    HOW_MANY = auto()
    GENERIC = auto()  # the piano that one plays: an article in English only


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """Someone or something.

    Attributes:
        owner: whose it is, in place of a determiner.
        count: how many, in place of a determiner; 0 if it is not said.
        antecedent: the noun that ``Pronoun.IT`` stands for.
        relative: a clause that describes it; the phrase itself is missing there.
        relative_role: as what: ``subject`` or ``object``.
    """

    head: "Noun | Name | Pronoun"
    det: Det = Det.NONE
    plural: bool = False
    owner: "Pronoun | Name | None" = None
    count: int = 0
    adjective: Adjective | None = None
    antecedent: Noun | None = None
    relative: "Clause | None" = None
    relative_role: str = ""

    @property
    def is_indefinite(self) -> bool:
        """Something new to the listener: what German negates with *kein*, and Chinese leaves without a measure word."""
        return isinstance(self.head, Noun) and not self.owner and not self.count and self.det in (Det.NONE, Det.A)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two noun phrases joined by *and*."""

    first: NounPhrase
    second: NounPhrase


Phrasal = NounPhrase | Pair


class Tense(Enum):
    """When, and how English shows it."""

    PRESENT = "present"
    PROGRESSIVE = "progressive"
    PAST = "past"
    PERFECT = "perfect"  # with already, or not yet
    FUTURE = "future"


class Modal(Enum):
    """A verb that another verb depends on."""

    CAN = auto()
    MUST = auto()
    WANT = auto()


@dataclass(frozen=True, slots=True)
class Home:
    """At home, or home: no article, and a preposition of its own in German."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where or where to.

    Attributes:
        where: a place with its habits, a city, home, or any noun phrase.
        relation: how, for a noun phrase.
        goal: where to, for the others.
    """

    where: "Venue | Name | Home | NounPhrase"
    relation: Relation | None = None
    goal: bool = False


@dataclass(frozen=True, slots=True)
class Quality:
    """An adjective that is said of the subject; ``too`` much of it, ``very``, or neither ("")."""

    adjective: Adjective
    degree: str = ""


class Asked(Enum):
    """What a question asks for."""

    TRUTH = auto()
    SUBJECT = auto()
    OBJECT = auto()
    PLACE = auto()
    TIME = auto()
    REASON = auto()


@dataclass(frozen=True, slots=True)
class Clause:
    """One thing that is so, or not so, or asked, or asked for.

    Attributes:
        subject: None in an imperative.
        verb: or ``quality``, or neither for *to be* at ``place``.
        time_first: the sentence begins with the time.
        asked: in a question; a subject or object that is asked for stands in its place as an interrogative.
    """

    subject: "Phrasal | None"
    verb: Verb | None = None
    quality: Quality | None = None
    object: "Phrasal | None" = None
    recipient: "Phrasal | None" = None
    place: Place | None = None
    time: Time | None = None
    time_first: bool = False
    tense: Tense = Tense.PRESENT
    modal: Modal | None = None
    negated: bool = False
    asked: Asked | None = None


class Mood(Enum):
    """What the speaker does with it."""

    STATEMENT = auto()
    QUESTION = auto()
    COMMAND = auto()
    REQUEST = auto()  # with please
    EXISTENCE = auto()  # there is …


class Link(Enum):
    """How a second clause hangs on the first."""

    AND = auto()
    BUT = auto()
    BECAUSE = auto()
    ALTHOUGH = auto()
    IF = auto()
    THAT = auto()
    ASKING = auto()  # I do not know where …


@dataclass(frozen=True, slots=True)
class Sentence:
    """A main clause, or two.

    Attributes:
        second_first: the second clause, a subordinate one, stands before the main clause.
    """

    main: Clause
    mood: Mood = Mood.STATEMENT
    link: Link | None = None
    second: Clause | None = None
    second_first: bool = False


Meaning = Sentence | Phrase


def agreement(phrase: "Phrasal | None") -> tuple[int, bool]:
    """Person (1 to 3) and whether it is plural, as the verb agrees with them; a command speaks to *you*."""
    if phrase is None:
        return 2, False
    if isinstance(phrase, Pair):
        return 3, True
    persons = {Pronoun.I: (1, False), Pronoun.YOU: (2, False), Pronoun.WE: (1, True), Pronoun.THEY: (3, True)}
    return persons.get(phrase.head, (3, phrase.plural)) if isinstance(phrase.head, Pronoun) else (3, phrase.plural)
