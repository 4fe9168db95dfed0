"""The preparations of a text for a model.

What has no letter that the model knows is copied. In other texts unknown characters are replaced, and then each
sentence is translated alone, in the casing that the model knows.
"""

import html
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from mtformer.text.entities import with_numbers_for
from mtformer.text.known_words import unknown_words
from mtformer.text.languages import separator_of
from mtformer.text.sentences import split_sentences
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.vocabulary import on_one_line
from mtformer.translate.casing import Casing
from mtformer.translate.characters import Places, known_characters, places_of_slots
from mtformer.translate.replacement import Preparation, Replacement
from mtformer.translate.translation import FLAG, Translation, joined

_MARKS_IN_A_ROW = re.compile("[!?！？]+")
_ENTITY = re.compile("&(?:amp|lt|gt|quot|apos|#39);", re.IGNORECASE)


def copy_unknown(
    text: str, can_write: Callable[[str], bool], *, with_numbers: Callable[[str], str] = str, is_noted: bool = False
) -> Replacement | None:
    """Copy texts without letters, and texts whose letters are all unknown to the model; not the empty text.

    Args:
        text: the text.
        can_write: tells whether the model knows a form of a character.
        with_numbers: writes a text without letters with the numbers of the target language.
        is_noted: whether unknown letters are noted elsewhere.
    """
    text = on_one_line(text)
    letters = filter(str.isalpha, text)
    first = next(letters, None)
    if not text.strip() or (first and (can_write(first) or any(map(can_write, letters)))):
        return None
    notes = (f"{FLAG}not translated: the model knows none of its letters",) if first and not is_noted else ()
    copy = Translation(text if first else with_numbers(text), notes=notes)
    return Replacement((), lambda _parts: copy)


def by_sentences(text: str, src_lang: str, tgt_lang: str) -> Replacement | None:
    """Split a line of several sentences, and join their translations."""
    sentences = split_sentences(text, src_lang)
    return Replacement(sentences, lambda parts: joined(parts, separator_of(tgt_lang))) if len(sentences) > 1 else None


def single_marks(text: str) -> Replacement | None:
    """Write !!!! and ??? as one mark, since models repeat them without end, and as many in the translation."""
    of_text = _MARKS_IN_A_ROW.findall(text)

    def restored(parts: Sequence[Translation]) -> Translation:
        left = iter(of_text)

        def as_many(found: re.Match[str]) -> str:
            mark, marks = found[0][0], next(left, "!")
            return marks if mark in marks else mark * len(marks)

        return replace(parts[0], text=_MARKS_IN_A_ROW.sub(as_many, parts[0].text))

    return Replacement([_MARKS_IN_A_ROW.sub(lambda marks: max(marks[0]), text)], restored) if of_text else None


def without_entities(text: str) -> Replacement | None:
    """Write &amp; in the translation of a text without entities as &: a model may have learned it from web pages."""
    if _ENTITY.search(text):
        return None

    def restored(parts: Sequence[Translation]) -> Translation:
        return replace(parts[0], text=_ENTITY.sub(lambda entity: html.unescape(entity[0].lower()), parts[0].text))

    return Replacement([text], restored)


def note_unknown_words(text: str, words: frozenset[str], kept: Places | None) -> Replacement | None:
    """Note the words that are new to a model, and keep the text.

    Args:
        text: the text.
        words: those that the model knows, in small letters.
        kept: as for :class:`.KnownCharacters`.
    """
    places = kept(text) if kept else ()
    unknown = unknown_words("".join(" " if i in places else c for i, c in enumerate(text)), words)
    note = f"{FLAG}unknown: {', '.join(unknown)}"
    return Replacement([text], lambda parts: parts[0].noted(note)) if unknown else None


def standard_preparations(
    tokenizer: Tokenizer, src_lang: str, tgt_lang: str, words: Iterable[str] = ()
) -> tuple[Preparation, ...]:
    """Return the preparations for a model, in order; ``words`` are those that it knows, or none."""
    characters = known_characters(tokenizer, src_lang)
    in_target = partial(with_numbers_for, src_lang=src_lang, tgt_lang=tgt_lang)
    with_numbers = in_target if tokenizer.has_slots else str
    copy = partial(copy_unknown, can_write=characters.can_write, with_numbers=with_numbers)
    noted = partial(note_unknown_words, words=frozenset(words), kept=places_of_slots(tokenizer, src_lang))
    return (
        copy,  # first, so that copies are exact
        characters,
        partial(by_sentences, src_lang=src_lang, tgt_lang=tgt_lang),
        partial(copy, is_noted=not tokenizer.has_slots),
        *([noted] if words else []),
        single_marks,
        without_entities,
        Casing(tokenizer, src_lang),
    )
