"""German: from meaning to words. The finite verb is second, first or last; the rest of the verb closes the clause."""

from dataclasses import replace
from typing import NamedTuple

from mtformer.phrasebook.english import finish
from mtformer.phrasebook.german_words import GENDERS, IT, PRONOUNS, THE, determiner_of, imperative, noun_form, present
from mtformer.phrasebook.lexicon import Name, Noun, Phrase, Verb
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
    Pair,
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

_MODALS = {Modal.CAN: "können", Modal.MUST: "müssen", Modal.WANT: "wollen"}
_CONTRACTIONS = {
    "in dem ": "im ",
    "in das ": "ins ",
    "an dem ": "am ",
    "an das ": "ans ",
    "zu dem ": "zum ",
    "zu der ": "zur ",
}
_LINKS = {Link.BECAUSE: "weil", Link.ALTHOUGH: "obwohl", Link.IF: "wenn", Link.THAT: "dass", Link.ASKING: ""}
_WHERE = {"to": "wohin", "onto": "wohin", "from": "woher"}
_ASKING = {Asked.TIME: "wann", Asked.REASON: "warum"}


class _VerbGroup(NamedTuple):
    """The parts of the predicate: the finite verb, its separable prefix, and the end of the clause."""

    finite: str
    prefix: str = ""
    closing: str = ""


def sentence(meaning: Meaning) -> str:
    """Express ``meaning`` in German."""
    if isinstance(meaning, Phrase):
        return meaning.german
    words = {None: "", True: "ja, ", False: "nein, "}[meaning.answer] + _words(meaning)
    return finish(words, "?" if meaning.is_question else "!" if meaning.mood is Mood.COMMAND else ".")


def _words(meaning: Sentence) -> str:
    main = meaning.main
    match meaning.mood:
        case Mood.QUESTION if main.asked is Asked.TRUTH:
            first = _verb_first(main)
        case Mood.COMMAND:
            first = _verb_first(main, _imperative(main))
        case Mood.REQUEST:
            first = f"bitte {_verb_first(main, _imperative(main))}"
        case Mood.EXISTENCE:
            first = _existence(main)
        case Mood.ANSWER:
            first = _short_answer(main)
        case Mood.ORDER:
            first = f"{_phrase(main.object, 'acc')}, bitte"
        case Mood.THANKS:
            first = f"danke für {_phrase(main.object, 'acc')}"
        case _ if meaning.second_first:
            first = _verb_first(main)
        case _:
            first = _verb_second(main)
    if meaning.link is None or meaning.second is None:
        return first
    if conjunction := {Link.AND: " und", Link.BUT: ", aber"}.get(meaning.link):
        return f"{first}{conjunction} {_verb_second(meaning.second)}"
    dependent = f"{_LINKS[meaning.link]} {_verb_last(meaning.second)}"
    return f"{dependent}, {first}" if meaning.second_first else f"{first}, {dependent}"


def _existence(clause: Clause) -> str:
    """Build existence: *Im Garten ist ein Hund*, but *im Dorf gibt es ein Hotel* for permanent things."""
    assert isinstance(clause.subject, NounPhrase)
    head = clause.subject.head
    is_permanent = isinstance(head, Noun) and "landmark" in head.kinds
    verb = "gibt es" if is_permanent else _verb_group(clause).finite
    what = _noun_phrase(clause.subject, "acc" if is_permanent else "nom", negated=clause.negated)
    place = _place(clause.place)
    return f"{verb} {place} {what}" if clause.asked else f"{place} {verb} {what}"


def _short_answer(clause: Clause) -> str:
    """Build *das kann ich (nicht)*; nothing after *ja* and *nein* for *I do*."""
    if clause.verb:
        return ""
    subject = _phrase(clause.subject, "nom")
    return f"das {_verb_group(clause).finite} {subject} {'nicht' if clause.negated else ''}"


def _verb_second(clause: Clause) -> str:
    """Build a main clause: one constituent, then the finite verb."""
    group, front = _verb_group(clause), _front(clause)
    subject = "" if clause.asked is Asked.SUBJECT else _phrase(clause.subject, "nom")
    return f"{front or subject} {group.finite} {subject if front else ''} {_rest(clause, group)}"


def _verb_first(clause: Clause, group: _VerbGroup | None = None) -> str:
    """Build a yes/no question, a command, or a main clause after its subordinate clause."""
    group = group or _verb_group(clause)
    return f"{group.finite} {_phrase(clause.subject, 'nom')} {_rest(clause, group)}"


def _verb_last(clause: Clause, relative: str = "") -> str:
    """Build a subordinate clause; ``relative`` is the pronoun that starts a relative clause."""
    group = _verb_group(clause)
    front = relative or ("ob" if clause.asked is Asked.TRUTH else _front(clause) if clause.asked else "")
    subject = "" if clause.asked is Asked.SUBJECT else _phrase(clause.subject, "nom")
    return f"{front} {subject} {_middle(clause)} {group.closing} {group.prefix}{group.finite}"


def _front(clause: Clause) -> str:
    """Return the words before the finite verb if it is not the subject that precedes it, otherwise ""."""
    match clause.asked:
        case Asked.SUBJECT:
            return _phrase(clause.subject, "nom")
        case Asked.OBJECT if clause.verb:
            return _object(clause, clause.verb)
        case Asked.PLACE:
            return _WHERE.get(clause.verb.relation, "wo") if clause.verb else "wo"
        case Asked.TIME | Asked.REASON as asked:
            return _ASKING[asked]
    return clause.time.german if clause.time and clause.time_first else ""


def _rest(clause: Clause, group: _VerbGroup) -> str:
    """Build everything after the finite verb and the subject; a relative clause of the object comes last."""
    obj = clause.object
    relative = _relative(obj) if isinstance(obj, NounPhrase) else ""
    return f"{_middle(clause)} {group.prefix} {group.closing}{relative}"


def _middle(clause: Clause) -> str:
    """Build the middle field: pronouns, time, known objects, place, *nicht*, new objects."""
    recipient = _phrase(clause.recipient, "dat")
    obj = _object(clause, clause.verb) if clause.verb and clause.asked is not Asked.OBJECT else ""
    shape = _object_shape(clause)
    place, is_goal = _place(clause.place), _belongs_to_verb(clause)
    not_, obj = _negation(clause, obj)
    schon = clause.tense is Tense.PERFECT and not clause.negated
    time = clause.time.german if clause.time and not clause.time_first else ""
    is_frequency = clause.time is not None and "frequency" in clause.time.tenses
    recipient_is_early = _is_brief(clause.recipient)
    words = [
        obj if shape == "brief" else "",
        recipient if recipient_is_early else "",
        "bitte" if clause.polite else "",
        "" if is_frequency else time,
        "" if recipient_is_early else recipient,
        obj if shape == "known" else "",
        time if is_frequency else "",
        "schon" if schon else "",
        "" if is_goal else place,
        not_,
        obj if shape in ("new", "prepositional", "generic") else "",
        place if is_goal else "",
        _quality(clause.quality),
        _profession(clause),
    ]
    return " ".join(filter(None, words))


def _object_shape(clause: Clause) -> str:
    """Classify how the object behaves in the middle field."""
    if clause.object is None or clause.verb is None:
        return ""
    if clause.verb.preposition:
        return "prepositional"
    if isinstance(clause.object, Pair):
        return "new" if clause.object.first.is_indefinite else "known"
    if _is_brief(clause.object):
        return "brief"
    if clause.object.det is Det.GENERIC:
        return "generic"
    return "new" if clause.object.is_indefinite or clause.object.count else "known"


def _negation(clause: Clause, obj: str) -> tuple[str, str]:
    """Return *nicht* or "", and the object, which takes *kein* if it is new, as a profession does."""
    if not clause.negated or clause.profession:
        return "", obj
    yet = "noch " if clause.tense is Tense.PERFECT else ""
    phrase = clause.object
    if isinstance(phrase, NounPhrase) and phrase.is_indefinite and clause.verb and not clause.verb.preposition:
        return "", f"{yet}{_noun_phrase(phrase, clause.verb.case, negated=True)}"
    return f"{yet}nicht", obj


def _belongs_to_verb(clause: Clause) -> bool:
    """Return whether the place completes the verb (*nach Berlin fahren*) and so comes near the end."""
    return clause.verb is None or not clause.verb.object or clause.verb.relation == "onto"


def _is_brief(phrase: Phrasal | None) -> bool:
    """Return whether the phrase is a pronoun or a name; those come early."""
    return isinstance(phrase, NounPhrase) and isinstance(phrase.head, Pronoun | Name)


def _object(clause: Clause, verb: Verb) -> str:
    if clause.object is None:
        return ""
    obj = replace(clause.object, relative=None) if isinstance(clause.object, NounPhrase) else clause.object
    return f"{verb.preposition} {_phrase(obj, verb.case)}".strip()


def _quality(quality: Quality | None) -> str:
    if quality is None:
        return ""
    if quality.years:
        return f"{form(quality.years, 'de', digits=quality.digits)} Jahre alt"
    degree = {"too": "zu ", "very": "sehr "}.get(quality.degree, "")
    return degree + quality.adjective.german


def _profession(clause: Clause) -> str:
    """Build the profession of the subject, without an article: *ich bin Student*."""
    if clause.profession is None:
        return ""
    _, plural = agreement(clause.subject)
    return _noun_phrase(NounPhrase(clause.profession, plural=plural), "nom", negated=clause.negated)


def _verb_group(clause: Clause) -> _VerbGroup:
    person, plural = agreement(clause.subject)
    verb = clause.verb
    infinitive = f"{verb.prefix}{verb.german}" if verb else "sein"
    if clause.modal:
        return _VerbGroup(present(_MODALS[clause.modal], person, plural), closing=infinitive)
    if clause.tense is Tense.FUTURE:
        return _VerbGroup(present("werden", person, plural), closing=infinitive)
    if verb is None:
        return _VerbGroup(present("war" if clause.tense is Tense.PAST else "sein", person, plural))
    if clause.tense in (Tense.PAST, Tense.PERFECT):
        return _VerbGroup(present(verb.auxiliary, person, plural), closing=verb.german_participle)
    return _VerbGroup(present(verb.german, person, plural, verb.german_third), prefix=verb.prefix)


def _imperative(clause: Clause) -> _VerbGroup:
    if clause.verb is None:
        return _VerbGroup("sei")
    return _VerbGroup(imperative(clause.verb), prefix=clause.verb.prefix)


def _place(place: Place | None) -> str:
    if place is None:
        return ""
    match place.where:
        case Home():
            return "nach Hause" if place.goal else "zu Hause"
        case Name() as name:
            return _at_city(place, name.german)
        case NounPhrase() as phrase:
            preposition, _, case = place.relation.german.partition("+") if place.relation else ("", "", "dat")
            return _contract(f"{preposition} {_noun_phrase(phrase, case)}")
        case venue:
            preposition, _, case = (venue.german_to if place.goal else f"{venue.german_at}+dat").partition("+")
            return _contract(f"{preposition} {_noun_phrase(NounPhrase(venue.noun, Det.THE), case)}")


def _at_city(place: Place, name: str) -> str:
    """Build the place for a city or a country: *in Rom, nach Rom, aus Rom*, but *in der Schweiz, in die Schweiz*."""
    article, _, land = name.rpartition(" ")
    if article != "die":
        return f"{'aus' if place.relation else 'nach' if place.goal else 'in'} {name}"
    return f"{'aus' if place.relation else 'in'} {'die' if place.goal else 'der'} {land}"


def _contract(words: str) -> str:
    for full, short in _CONTRACTIONS.items():
        if words.startswith(full):
            return short + words.removeprefix(full)
    return words


def _phrase(phrase: Phrasal | None, case: str) -> str:
    return " und ".join(_noun_phrase(part, case) for part in parts(phrase))


def _noun_phrase(phrase: NounPhrase, case: str, *, negated: bool = False) -> str:
    match phrase.head:
        case Pronoun.IT if phrase.antecedent:
            return pronoun(phrase)
        case Pronoun():
            return PRONOUNS[case][phrase.head]
        case Name():
            return phrase.head.german
    if phrase.det is Det.HOW_MUCH:
        return "wie viel"
    noun = phrase.head
    gender = GENDERS.index("pl" if phrase.plural else noun.gender)
    determiner, endings = determiner_of(phrase, case, gender, negated=negated)
    adjective = phrase.adjective.german_stem + endings[case].split()[gender] if phrase.adjective else ""
    words = f"{determiner} {adjective} {noun_form(noun, case, plural=phrase.plural)}"
    return " ".join(words.split()) + _relative(phrase)


def pronoun(it: NounPhrase) -> str:
    """Return the pronoun for a noun, by its gender."""
    return IT[it.antecedent.gender if it.antecedent else "n"]


def _relative(phrase: NounPhrase) -> str:
    clause = phrase.relative
    if clause is None or clause.verb is None or not isinstance(phrase.head, Noun):
        return ""
    gender = GENDERS.index("pl" if phrase.plural else phrase.head.gender)
    case = "nom" if phrase.relative_role == "subject" else clause.verb.case
    pronoun = THE[case].split()[gender] if (case, gender) != ("dat", 3) else "denen"
    missing = replace(clause, asked=Asked.SUBJECT) if phrase.relative_role == "subject" else clause
    return f", {_verb_last(missing, pronoun)},"
