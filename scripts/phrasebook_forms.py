"""The forms that a word of the phrasebook may have in a sentence, by which measures find it there."""

import re

from mtformer.phrasebook.chinese import PRONOUNS as CHINESE_PRONOUNS
from mtformer.phrasebook.english import OBJECTS, POSSESSIVES, SUBJECTS, progressive, third_person
from mtformer.phrasebook.german_words import EIN_ENDINGS, STRONG, imperative, noun_form, present
from mtformer.phrasebook.german_words import POSSESSIVES as GERMAN_POSSESSIVES
from mtformer.phrasebook.german_words import PRONOUNS as GERMAN_PRONOUNS
from mtformer.phrasebook.lexicon import Adjective, Entry, Invariable, Noun, Verb
from mtformer.phrasebook.meaning import Pronoun


def forms(entry: Entry, language: str) -> set[str]:
    """Return the forms of a noun, verb, adjective, name or time in ``en``, ``de`` or ``zh``."""
    if isinstance(entry, Invariable):
        return {{"en": entry.id, "de": entry.german, "zh": entry.chinese}[language]}
    return {"en": _english, "de": _german, "zh": _chinese}[language](entry)


def _english(entry: Entry) -> set[str]:
    """Return the forms without the particle of verbs such as *pick up*."""
    match entry:
        case Noun():
            return {entry.word, entry.english_plural} - {""}
        case Adjective():
            return {entry.word}
        case Verb():
            verb = entry.word.split()[0]
            return {verb, third_person(verb), progressive(verb), entry.english_past, entry.english_participle}
    return set()


def _german(entry: Entry) -> set[str]:
    match entry:
        case Noun():
            return {entry.german, entry.german_plural, noun_form(entry, "dat", plural=True)} - {""}
        case Adjective():
            endings = {ending for case in STRONG.values() for ending in case.split()}
            return {entry.german, *(entry.german_stem + ending for ending in endings)}
        case Verb():
            singular = (present(entry.german, person, False, entry.german_third) for person in (1, 2, 3))
            finite = {*singular, entry.german, imperative(entry)}
            return finite | {entry.prefix + form for form in finite} | {entry.german_participle}
    return set()


def _chinese(entry: Entry) -> set[str]:
    match entry:
        case Noun():
            return {entry.chinese}
        case Adjective():
            return {entry.chinese, entry.chinese_predicate}
        case Verb():
            patterns = [entry.chinese, entry.chinese_past, entry.chinese_progressive, entry.chinese_cannot]
            patterns += [pattern.replace("去", "回") for pattern in patterns]  # home
            return {part for pattern in patterns for part in re.split("[~#@了]", pattern)} - {"", "给", "把"}
    return set()


def pronoun_forms(pronoun: Pronoun, language: str) -> set[str]:
    """Return the forms of a personal pronoun, the possessive included."""
    if language == "en":
        return {SUBJECTS[pronoun], OBJECTS[pronoun], POSSESSIVES[pronoun]}
    if language == "zh":
        return {CHINESE_PRONOUNS[pronoun]}
    endings = {ending for case in EIN_ENDINGS.values() for ending in case.replace("-", "").split()} | {""}
    possessives = {GERMAN_POSSESSIVES[pronoun] + ending for ending in endings}
    return {words[pronoun] for words in GERMAN_PRONOUNS.values()} | possessives
