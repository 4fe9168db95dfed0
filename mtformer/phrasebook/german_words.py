"""The words of German: articles, pronouns, verbs and nouns in their forms."""

import re
from functools import cache

from mtformer.phrasebook.lexicon import Name, Noun, Verb
from mtformer.phrasebook.meaning import Det, NounPhrase, Pronoun
from mtformer.phrasebook.numerals import form

# Articles and endings by case for m, f, n and plural.
THE = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem den"}
EIN_ENDINGS = {"nom": "- e - e", "acc": "en e - e", "dat": "em er em en"}  # ein, kein, mein
_WEAK = {"nom": "e e e en", "acc": "en e e en", "dat": "en en en en"}  # adjectives after der
_MIXED = {"nom": "er e es en", "acc": "en e es en", "dat": "en en en en"}  # after ein
STRONG = {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en"}  # after nothing, and those of dieser, welcher
GENDERS = ("m", "f", "n", "pl")

PRONOUNS = {
    "nom": dict(zip(Pronoun, "ich du er sie es wir sie wer was".split(), strict=True)),
    "acc": dict(zip(Pronoun, "mich dich ihn sie es uns sie wen was".split(), strict=True)),
    "dat": dict(zip(Pronoun, "mir dir ihm ihr ihm uns ihnen wem was".split(), strict=True)),
}
POSSESSIVES = dict(zip(Pronoun, "mein dein sein ihr sein unser ihr wessen -".split(), strict=True))
IT = {"m": "er", "f": "sie", "n": "es"}

# Present tense: ich, du, er, and the plural of wir and sie; and the past of sein.
_IRREGULAR = {
    "sein": ("bin", "bist", "ist", "sind"),
    "haben": ("habe", "hast", "hat", "haben"),
    "werden": ("werde", "wirst", "wird", "werden"),
    "können": ("kann", "kannst", "kann", "können"),
    "müssen": ("muss", "musst", "muss", "müssen"),
    "wollen": ("will", "willst", "will", "wollen"),
    "möchten": ("möchte", "möchtest", "möchte", "möchten"),
    "mögen": ("mag", "magst", "mag", "mögen"),
    "wissen": ("weiß", "weißt", "weiß", "wissen"),
    "war": ("war", "warst", "war", "waren"),
}


@cache
def present(infinitive: str, person: int, plural: bool, third: str = "") -> str:
    """Return the present tense; ``third`` is the third person singular, which shows vowel changes: *fährt*, *liest*."""
    if infinitive in _IRREGULAR:
        return _IRREGULAR[infinitive][3 if plural else person - 1]
    if plural:
        return infinitive
    if person == 3:
        return third
    if person == 1:
        if infinitive.endswith("eln"):
            return infinitive.removesuffix("eln") + "le"
        return infinitive.removesuffix("n") + ("e" if infinitive.endswith("ern") else "")
    if infinitive.endswith("ten") and not third.endswith("et"):  # braten, er brät: du brätst
        return f"{third}st"
    stem = third.removesuffix("t")
    return f"{stem}t" if stem.endswith(("s", "ß", "z", "x")) else f"{stem}st"


@cache
def imperative(verb: Verb) -> str:
    """Return the informal imperative: *komm*, *warte*, *lies*, *fahr*."""
    if verb.imperative:
        return verb.imperative
    stem = verb.german.removesuffix("n").removesuffix("e")
    changed = verb.german_third.removesuffix("t")
    if "e" in stem and changed.count("i") > stem.count("i"):  # essen, isst: iss
        return changed
    return f"{stem}e" if re.search(r"([td]|[aeiouäöü]?er|[fdgt]n|chn)$", stem) else stem


def determiner_of(phrase: NounPhrase, case: str, gender: int, *, negated: bool) -> tuple[str, dict[str, str]]:
    """Return the determiner and the adjective endings that follow it."""
    ein_ending = EIN_ENDINGS[case].split()[gender].strip("-")
    der_ending = STRONG[case].split()[gender]
    if negated:
        return f"kein{ein_ending}", _MIXED
    if isinstance(phrase.owner, Name):
        name = phrase.owner.german
        return f"{name}'" if name.endswith(("s", "x", "z")) else f"{name}s", STRONG
    if phrase.owner:
        return f"{POSSESSIVES[phrase.owner]}{ein_ending}", _MIXED
    if phrase.count:
        return form(phrase.count, "de", digits=phrase.digits), STRONG
    determiners = {
        Det.A: (f"ein{ein_ending}", _MIXED),
        Det.THE: (THE[case].split()[gender], _WEAK),
        Det.THIS: (f"dies{der_ending}", _WEAK),
        Det.WHICH: (f"welch{der_ending}", _WEAK),
        Det.HOW_MANY: ("wie viele", STRONG),
    }
    return determiners.get(phrase.det, ("", STRONG))


def noun_form(noun: Noun, case: str, *, plural: bool) -> str:
    """Return a noun in a case."""
    if plural:
        if not noun.german_plural:  # zwei Kaffee
            return noun.german
        return noun.german_plural + ("n" if case == "dat" and not noun.german_plural.endswith(("n", "s")) else "")
    return noun.german_plural if noun.weak and case != "nom" else noun.german
