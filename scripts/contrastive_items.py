"""Contrastive items: a source, its translation, and translations that are wrong in a single point.

Those of the phrasebook change the meaning of a sentence in one point and say that in the target language. Those of
other text, English and German, change a word of the reference, where a rule can be sure that this makes it wrong.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from mtformer.phrasebook.lexicon import LEXICON, Noun
from mtformer.phrasebook.meaning import Det, Mood, NounPhrase, Pronoun, Sentence, Tense
from mtformer.phrasebook.splits import LANGUAGES, Saying, antecedent, held_out, phrases_of
from mtformer.text.pairs import SentencePair


class Item(NamedTuple):
    """A translation and others that are wrong in one point.

    Attributes:
        point: ``pronoun``, ``number``, ``agreement``, ``tense``; or ``previous``, a pronoun whose noun is in the
            previous sentence.
        src: the source.
        right: its translation.
        wrong: one to four others.
    """

    point: str
    src: str
    right: str
    wrong: tuple[str, ...]


# The phrasebook: one point of the meaning changes.

_OTHER_TENSES = {  # German may express the future by the present
    Tense.PRESENT: (Tense.PAST,),
    Tense.PROGRESSIVE: (Tense.PAST,),
    Tense.FUTURE: (Tense.PAST,),
    Tense.PAST: (Tense.PRESENT, Tense.FUTURE),
}
_NOUN_OF_GENDER = {noun.gender: noun for noun in LEXICON.nouns.values()}


def phrasebook_items(src_lang: str, tgt_lang: str) -> list[Item]:
    """Return the items of a direction from English or German: of ``pronouns``, ``test`` and ``compositional``.

    The items of ``previous`` are the clauses of ``pronouns`` as sentences of their own; only in German is it
    sure which pronoun they need. Chinese need not express the past or the plural, so that it is an error only to
    express what is not meant.
    """
    items = [_pronoun(saying, src_lang, tgt_lang) for saying in held_out("pronouns")]
    if (src_lang, tgt_lang) == ("en", "de"):
        items += map(_previous, held_out("pronouns"))
    for saying in (*held_out("test"), *held_out("compositional")):
        if isinstance(saying.meaning, Sentence) and antecedent(saying.meaning) is None:
            items.append(_number(saying, saying.meaning, src_lang, tgt_lang))
            items.append(_agreement(saying, saying.meaning, src_lang, tgt_lang))
            items.append(_tense(saying, saying.meaning, src_lang, tgt_lang))
    return [item for item in items if item is not None]


def _item(point: str, saying: Saying, others: Iterable[Sentence], src_lang: str, tgt_lang: str) -> Item | None:
    """Return an item with the other meanings that both languages tell from that of the sentence; None without any."""
    src, right = saying.text(src_lang), saying.text(tgt_lang)
    texts = [(LANGUAGES[src_lang].sentence(other), LANGUAGES[tgt_lang].sentence(other)) for other in others]
    wrong = dict.fromkeys(text for other_src, text in texts if other_src != src and text != right)
    return Item(point, src, right, tuple(wrong)) if wrong else None


def _pronoun(saying: Saying, src_lang: str, tgt_lang: str) -> Item | None:
    """Let *it* be another noun: in German of each other gender, in Chinese the other candidate; in English a person."""
    meaning = saying.meaning
    assert isinstance(meaning, Sentence)
    it = antecedent(meaning)
    assert it is not None and it.antecedent is not None and meaning.second is not None
    if tgt_lang == "en":
        is_thing = "animal" not in it.antecedent.kinds  # a dog may be a he
        others = [NounPhrase(pronoun) for pronoun in (Pronoun.HE, Pronoun.SHE) if is_thing]
    else:
        candidates = [phrase.head for phrase in phrases_of(meaning.main) if isinstance(phrase.head, Noun)]
        nouns = candidates if tgt_lang == "zh" else _NOUN_OF_GENDER.values()
        others = [replace(it, antecedent=noun) for noun in nouns]
    right, language = saying.text(tgt_lang), LANGUAGES[tgt_lang]
    texts = [language.sentence(replace(meaning, second=replace(meaning.second, subject=other))) for other in others]
    wrong = tuple(dict.fromkeys(text for text in texts if text != right))
    return Item("pronoun", saying.text(src_lang), right, wrong) if wrong else None


def _previous(saying: Saying) -> Item:
    """Say it in two sentences: *The cat did not eat. It was too ill.* for *… because it was too ill*."""
    before, alone = apart(saying)
    pronoun, rest = alone.de.split(maxsplit=1)
    wrong = tuple(f"{before.de} {other} {rest}" for other in ("Er", "Sie", "Es") if other != pronoun)
    return Item("previous", f"{before.en} {alone.en}", f"{before.de} {alone.de}", wrong)


def apart(saying: Saying) -> list[Saying]:
    """Return the two clauses of a sentence with *it* and its noun as sentences of their own."""
    meaning = saying.meaning
    assert isinstance(meaning, Sentence)
    alone = [Sentence(clause) for clause in (meaning.main, meaning.second) if clause is not None]
    return [Saying(each, *(language.sentence(each) for language in LANGUAGES.values())) for each in alone]


def _number(saying: Saying, meaning: Sentence, src_lang: str, tgt_lang: str) -> Item | None:
    """Make a known subject or object one or several: *the cat sleeps*, *the cats sleep*."""
    main = meaning.main
    clauses = []
    if (subject := _other_number(main.subject)) is not None and (subject.plural or tgt_lang != "zh"):
        clauses.append(replace(main, subject=subject))
    if (obj := _other_number(main.object)) is not None and (obj.plural or tgt_lang != "zh"):
        clauses.append(replace(main, object=obj))
    others = [replace(meaning, main=clause) for clause in clauses]
    return _item("number", saying, others, src_lang, tgt_lang)


def _other_number(phrase: object) -> NounPhrase | None:
    """Return a noun phrase in the other number; None if the noun has none, or the phrase says more about it."""
    if not isinstance(phrase, NounPhrase) or not isinstance(phrase.head, Noun) or phrase.head.number:
        return None
    is_known = phrase.det in (Det.THE, Det.THIS) or phrase.owner is not None
    return replace(phrase, plural=not phrase.plural) if is_known and not phrase.count and not phrase.relative else None


def _agreement(saying: Saying, meaning: Sentence, src_lang: str, tgt_lang: str) -> Item | None:
    """Give the finite verb the other number than its subject; Chinese verbs have none."""
    main = meaning.main
    if _other_number(main.subject) is None or tgt_lang == "zh":
        return None
    he, they = (
        re.findall(r"\w+", LANGUAGES[tgt_lang].sentence(replace(meaning, main=replace(main, subject=NounPhrase(who)))))
        for who in (Pronoun.HE, Pronoun.THEY)
    )
    pronouns = {"he", "they", "er", "sie"}
    forms = [(a, b) for a, b in zip(he, they, strict=False) if a != b and not pronouns & {a.lower(), b.lower()}]
    if len(he) != len(they) or len(forms) != 1:  # such as the past in English, which has one form
        return None
    [(singular, plural)] = forms
    assert isinstance(main.subject, NounPhrase)
    old, new = (plural, singular) if main.subject.plural else (singular, plural)
    right = saying.text(tgt_lang)
    return _with_word("agreement", SentencePair(saying.text(src_lang), right), old, new)


def _tense(saying: Saying, meaning: Sentence, src_lang: str, tgt_lang: str) -> Item | None:
    """Move the main clause from or to the past."""
    main = meaning.main
    if main.modal or meaning.mood is not Mood.STATEMENT:
        return None
    others = [
        replace(meaning, main=replace(main, tense=tense))
        for tense in _OTHER_TENSES.get(main.tense, ())
        if tense is not Tense.PRESENT or tgt_lang != "zh"
    ]
    return _item("tense", saying, others, src_lang, tgt_lang)


# English and German text: one word of the reference changes.

# The present and the past of a verb in English and in German.
_TENSES = (
    (("is", "was"), ("ist", "war")),
    (("are", "were"), ("sind", "waren")),
    (("is", "was"), ("wird", "wurde")),
    (("are", "were"), ("werden", "wurden")),
    (("has", "had"), ("hat", "hatte")),
    (("have", "had"), ("haben", "hatten")),
)
_OF_TENSE = [{form for row in _TENSES for form in row[side]} for side in (0, 1)]  # all forms in English, in German
# "has" with a participle is not the German "hat" of the same tense, and "is going to" may be a future.
_UNSURE_TENSE = re.compile(r"\b(?:going|(?:has|have|had) (?!(?:an?|no|the|two|three|my|his|her|our|their) ))|'(?!t\b)")
# The singular and the plural of finite verbs, which change either way; and those whose plural is an infinitive, too.
_NUMBERS = {
    "de": ("ist sind|war waren|wurde wurden|hatte hatten", "hat haben|wird werden|kann können|muss müssen"),
    "en": ("is are|was were|isn't aren't|wasn't weren't", "has have|does do|doesn't don't"),
}
_UNSURE_NUMBER = {
    "de": r"und|oder|wer|welche|was|alles|hälfte|menge|teil|reihe|anzahl|paar|mehrheit|prozent|keine[rs]?|es|das|dies"
    r"|sie|familie",
    "en": r"and|or|nor|who|which|what|there|here|if|wish\w*|though|would|you|half|lots?|family|team|police|none|each"
    r"|all|any|some|more|most|number|data|couple|majority|percent|news|fish|sheep|neither|either|every\w*|rest",
}
# Pronouns of things: those of the other genders, and the persons that they may also stand for.
_PRONOUNS = {
    "er": (("sie", "es"), {"he"}),
    "ihn": (("sie", "es"), {"him", "himself"}),
    "sie": (("er", "ihn", "es"), {"she", "her", "they", "them"}),
}
_DETERMINER = re.compile(
    r"\b(?:(?:d|dies)(?:er|ie|as|es?|en|em)|(?:k?|[mds])ein(?:e[rsnm]?)?|(?:ihr|unser)e?[rsnm]?)\b"
)
_MASCULINE, _FEMININE = (
    r"de[rnm]|diese[rnm]|\w*ein(?:e[nm])?|(?:ihr|unser)(?:e[nm])?",
    r"die|diese|der|\w*(?:ein|ihr|unser)e",
)


def text_items(pairs: Iterable[SentencePair], src_lang: str, tgt_lang: str) -> list[Item]:
    """Return the items of pairs of English and German sentences, in either direction."""
    items = []
    for pair in pairs:
        english, german = (pair.src, pair.tgt) if src_lang == "en" else (pair.tgt, pair.src)
        items += [
            _other_gender(pair, english, german, tgt_lang),
            _other_agreement(pair, tgt_lang),
            _other_tense(pair, english, german, tgt_lang),
        ]
    return [item for item in items if item is not None]


def _with_word(point: str, pair: SentencePair, old: str, *new: str) -> Item | None:
    """Return an item whose wrong translations have other words in place of one; None unless it occurs just once."""
    matches = list(re.finditer(rf"(?<![\w'-]){re.escape(old)}(?![\w'-])", pair.tgt, re.IGNORECASE))
    if len(matches) != 1:
        return None
    start, end = matches[0].span()
    words = [word.capitalize() if pair.tgt[start].isupper() else word for word in new]
    return Item(point, pair.src, pair.tgt, tuple(pair.tgt[:start] + word + pair.tgt[end:] for word in words))


def _words(text: str) -> list[str]:
    return re.findall(r"[\w'-]+", text.lower())


def _other_tense(pair: SentencePair, english: str, german: str, tgt_lang: str) -> Item | None:
    """Move the only verb of a sentence of one clause from or to the past."""
    en, de = _words(english), _words(german)
    verbs = [[word for word in words if word in forms] for words, forms in zip((en, de), _OF_TENSE, strict=True)]
    if "," in german or "ich" in de or _UNSURE_TENSE.search(english.lower()) or list(map(len, verbs)) != [1, 1]:
        return None
    [of_en], [of_de] = verbs
    for row in _TENSES:
        for here, there in ((0, 1), (1, 0)):
            if (of_en, of_de) == (row[0][here], row[1][here]):
                forms = row[0 if tgt_lang == "en" else 1]
                return _with_word("tense", pair, forms[here], forms[there])
    return None


def _other_agreement(pair: SentencePair, tgt_lang: str) -> Item | None:
    """Give the only finite verb of a table the other number."""
    words = _words(pair.tgt)
    if any(re.fullmatch(_UNSURE_NUMBER[tgt_lang], word) for word in words):
        return None
    both, from_singular = ([row.split() for row in rows.split("|")] for rows in _NUMBERS[tgt_lang])
    others = dict([*both, *([plural, singular] for singular, plural in both), *from_singular])
    found = [word for word in words if word in others]
    return _with_word("agreement", pair, found[0], others[found[0]]) if len(found) == 1 else None


def _other_gender(pair: SentencePair, english: str, german: str, tgt_lang: str) -> Item | None:
    """Replace the pronoun of what English calls *it*, if all nouns before it may have its gender, and no other."""
    for pronoun, (others, persons) in _PRONOUNS.items():
        before, *after = re.split(rf"\b{pronoun}\b", german)
        words = _words(english)
        if len(after) != 1 or words.count("it") != 1 or persons & {*words}:
            continue
        determiners = _DETERMINER.findall(before.lower())
        pattern = _FEMININE if pronoun == "sie" else _MASCULINE
        if determiners and all(re.fullmatch(pattern, determiner) for determiner in determiners):
            if tgt_lang == "de":
                return _with_word("pronoun", pair, pronoun, *others)
            return _with_word("pronoun", pair, "it", "he", "she", "him", "her")
    return None
