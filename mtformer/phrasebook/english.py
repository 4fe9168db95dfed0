"""English: from meaning to words."""

import re
from functools import cache

from mtformer.phrasebook.lexicon import Name, Noun, Phrase, doubled, english_plural
from mtformer.phrasebook.meaning import (
    Asked,
    Clause,
    Det,
    Home,
    Link,
    Meaning,
    Modal,
    Mood,
    NounPhrase,
    Phrasal,
    Place,
    Pronoun,
    Quality,
    Sentence,
    Tense,
    agreement,
    parts,
)
from mtformer.phrasebook.numerals import form

SUBJECTS = dict(zip(Pronoun, "I you he she it we they who what".split(), strict=True))
OBJECTS = dict(zip(Pronoun, "me you him her it us them who what".split(), strict=True))
POSSESSIVES = dict(zip(Pronoun, "my your his her its our their whose -".split(), strict=True))
_ASKING: dict[Asked | None, str] = {Asked.PLACE: "where", Asked.TIME: "when", Asked.REASON: "why"}
_PARTICLES = "up|on|off|away|out|along"  # these follow a pronoun; along follows any object
_LINKS = {
    Link.AND: "and",
    Link.BUT: ", but",
    Link.BECAUSE: "because",
    Link.ALTHOUGH: "although",
    Link.IF: "if",
    Link.THAT: "that",
    Link.ASKING: "",
}


def sentence(meaning: Meaning) -> str:
    """Express ``meaning`` in English."""
    if isinstance(meaning, Phrase):
        return meaning.id
    words = {None: "", True: "yes, ", False: "no, "}[meaning.answer] + _words(meaning)
    return finish(words, "?" if meaning.is_question else "!" if meaning.mood is Mood.COMMAND else ".")


def finish(words: str, end: str) -> str:
    """Attach punctuation to the preceding word, merge repeated marks, and capitalize the first letter."""
    words = re.sub(r" +", " ", words).strip(" ,").replace(" ,", ",").replace(",,", ",")
    return words[0].upper() + words[1:] + end


def _words(meaning: Sentence) -> str:
    main = meaning.main
    match meaning.mood:
        case Mood.QUESTION:
            first = _question(main)
        case Mood.COMMAND | Mood.REQUEST:
            please = "please" if meaning.mood is Mood.REQUEST else ""
            first = f"{please} {'do not' if main.negated else ''} {_predicate(main, _base(main))}"
        case Mood.EXISTENCE:
            there = f"{_be(main)} there" if main.asked else f"there {_be(main)}"
            first = f"{there} {'no' if main.negated else ''} {_phrase(main.subject)} {_place(main.place)}"
        case Mood.ANSWER:
            auxiliary, _ = _verb_group(main, inverted=True)
            first = f"{_phrase(main.subject, as_subject=True)} {_negated(auxiliary) if main.negated else auxiliary}"
        case Mood.ORDER:
            first = f"{_phrase(main.object)}, please"
        case Mood.THANKS:
            first = f"thank you for {_phrase(main.object)}"
        case _:
            first = _statement(main)
    if meaning.link is None or meaning.second is None:
        return first
    second = f"{_LINKS[meaning.link]} {_embedded(meaning.second)}"
    return f"{second}, {first}" if meaning.second_first else f"{first} {second}"


def _statement(clause: Clause) -> str:
    auxiliary, main_verb = _verb_group(clause)
    if clause.negated:
        auxiliary = _negated(auxiliary)
    front = f"{clause.time.id}" if clause.time and clause.time_first else ""
    subject = _phrase(clause.subject, as_subject=True)
    return f"{front} {subject} {auxiliary} {_adverb(clause)} {_predicate(clause, main_verb)}"


def _negated(auxiliary: str) -> str:
    return "cannot" if auxiliary == "can" else f"{auxiliary} not"


def _embedded(clause: Clause) -> str:
    """Build a subordinate clause: statement order, also after a question word."""
    if clause.asked is Asked.TRUTH:
        return f"whether {_statement(clause)}"
    wanted = _phrase(clause.object) if clause.asked is Asked.OBJECT else _ASKING.get(clause.asked, "")
    return f"{wanted} {_statement(clause)}"


def _question(clause: Clause) -> str:
    if clause.asked is Asked.SUBJECT:
        return _statement(clause)
    auxiliary, main_verb = _verb_group(clause, inverted=True)
    subject = _phrase(clause.subject, as_subject=True)
    wanted = _phrase(clause.object) if clause.asked is Asked.OBJECT else _ASKING.get(clause.asked, "")
    negation = "not" if clause.negated else ""
    please = ", please" if clause.polite else ""
    return f"{wanted} {auxiliary} {subject} {negation} {_adverb(clause)} {_predicate(clause, main_verb)}{please}"


def _predicate(clause: Clause, verb: str) -> str:
    """Build the verb and everything after it."""
    particle = ""
    if isinstance(clause.object, NounPhrase) and (isinstance(clause.object.head, Pronoun) or verb.endswith("along")):
        verb, _, particle = re.sub(rf" ({_PARTICLES})\b", r"\t\1", verb).partition("\t")  # pick her up
    quality = _quality(clause.quality) if clause.quality else ""
    _, plural = agreement(clause.subject)
    det = Det.NONE if plural else Det.A
    profession = NounPhrase(clause.profession, det, plural) if clause.profession else None
    obj = None if clause.asked is Asked.OBJECT else clause.object
    time = clause.time if not clause.time_first and clause.time and "frequency" not in clause.time.tenses else None
    yet = "yet" if clause.tense is Tense.PERFECT and (clause.negated or clause.asked) else ""
    asks_origin = clause.asked is Asked.PLACE and clause.verb is not None and clause.verb.relation == "from"
    place = "from" if asks_origin else _place(clause.place)
    phrases = f"{_phrase(profession)} {_phrase(clause.recipient)} {_phrase(obj)} {particle} {place}"
    return f"{verb} {quality} {phrases} {time.id if time else ''} {yet}"


def _quality(quality: Quality) -> str:
    if quality.years:
        return f"{form(quality.years, 'en', digits=quality.digits)} years old"
    return f"{quality.degree} {quality.adjective.word}"


def _adverb(clause: Clause) -> str:
    if clause.tense is Tense.PERFECT and not clause.negated and not clause.asked:
        return "already"
    return clause.time.id if clause.time and "frequency" in clause.time.tenses else ""


def _base(clause: Clause) -> str:
    return clause.verb.word if clause.verb else "be"


def _verb_group(clause: Clause, *, inverted: bool = False) -> tuple[str, str]:
    """Return the auxiliary (or "") and the rest of the verb; negation and questions need an auxiliary."""
    is_third = _agreement(clause.subject) == (3, False)
    do = "does" if is_third else "do"
    needs_auxiliary = clause.negated or inverted
    if clause.modal is Modal.CAN:
        return "can", _base(clause)
    if clause.modal is Modal.MUST:
        return "must", _base(clause)
    if clause.modal is Modal.WANT:
        auxiliary, want = (do, "want") if needs_auxiliary else ("", "wants" if is_third else "want")
        return auxiliary, f"{want} to {_base(clause)}"
    if clause.tense is Tense.FUTURE:
        return "will", _base(clause)
    if clause.verb is None:
        return _be(clause), ""
    first, *particles = clause.verb.word.split(" ", 1)
    particle = "".join(particles)
    if clause.tense is Tense.PROGRESSIVE:
        return _be(clause), f"{progressive(first)} {particle}"
    if clause.tense is Tense.PERFECT:
        return "has" if is_third else "have", f"{clause.verb.english_participle} {particle}"
    if needs_auxiliary:
        return "did" if clause.tense is Tense.PAST else do, clause.verb.word
    if clause.tense is Tense.PAST:
        return "", f"{clause.verb.english_past} {particle}"
    return "", f"{third_person(first) if is_third else first} {particle}"


def _agreement(phrase: Phrasal | None) -> tuple[int, bool]:
    is_plural = isinstance(phrase, NounPhrase) and _is_pair(phrase.head)  # the pants are …
    return (3, True) if is_plural else agreement(phrase)


def _be(clause: Clause) -> str:
    person, plural = _agreement(clause.subject)
    if clause.tense is Tense.PAST:
        return "were" if plural or person == 2 else "was"
    return "are" if plural or person == 2 else ("am" if person == 1 else "is")


@cache
def third_person(verb: str) -> str:
    """Return the third person singular: *has*, *goes*, *carries*."""
    return "has" if verb == "have" else english_plural(verb)


@cache
def progressive(verb: str) -> str:
    """Return the progressive form: *baking*, *running*, *opening*."""
    if verb.endswith("ee"):
        return f"{verb}ing"
    stem = verb.removesuffix("e") if verb.endswith("e") else doubled(verb)
    return f"{stem}ing"


def _place(place: Place | None) -> str:
    if place is None:
        return ""
    match place.where:
        case Home():
            return "home" if place.goal else "at home"
        case Name(id=city):
            return f"{place.relation.english if place.relation else 'to' if place.goal else 'in'} {city}"
        case NounPhrase() as phrase:
            return f"{place.relation.english if place.relation else ''} {_phrase(phrase)}"
        case venue:
            return f"{venue.english_to if place.goal else venue.english_at} {venue.noun.word}"


def _phrase(phrase: Phrasal | None, *, as_subject: bool = False) -> str:
    return " and ".join(_noun_phrase(part, as_subject=as_subject) for part in parts(phrase))


def _noun_phrase(phrase: NounPhrase, *, as_subject: bool) -> str:
    match phrase.head:
        case Pronoun():
            return (SUBJECTS if as_subject else OBJECTS)[phrase.head]
        case Name():
            return phrase.head.id
    if phrase.det is Det.HOW_MUCH:
        return "how much"
    adjective = phrase.adjective.word if phrase.adjective else ""
    words = f"{adjective} {phrase.head.english_plural if phrase.plural else phrase.head.word}".strip()
    return f"{_determiner(phrase, words)} {words}{_relative(phrase)}".strip()


def _determiner(phrase: NounPhrase, next_word: str) -> str:
    if isinstance(phrase.owner, Name):
        return f"{phrase.owner.id}'s"
    if phrase.owner:
        return POSSESSIVES[phrase.owner]
    if phrase.count:
        return form(phrase.count, "en", digits=phrase.digits)
    determiners = {
        Det.A: "an" if next_word[0] in "aeiou" else "a",
        Det.THE: "the",
        Det.THIS: "these" if phrase.plural or _is_pair(phrase.head) else "this",
        Det.WHICH: "which",
        Det.HOW_MANY: "how many",
        Det.GENERIC: "the" if isinstance(phrase.head, Noun) and "instrument" in phrase.head.kinds else "",
    }
    return determiners.get(phrase.det, "")


def _is_pair(head: object) -> bool:
    """Return whether English treats one thing as a plural, as in *pants*."""
    return isinstance(head, Noun) and head.number == "pair"


def _relative(phrase: NounPhrase) -> str:
    clause = phrase.relative
    if clause is None:
        return ""
    auxiliary, main_verb = _verb_group(clause)
    if phrase.relative_role == "subject":
        return f" who {auxiliary} {_predicate(clause, main_verb)}"
    return f" that {_phrase(clause.subject, as_subject=True)} {auxiliary} {_predicate(clause, main_verb)}"
