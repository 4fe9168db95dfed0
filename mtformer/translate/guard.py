"""The guard: problems of a translation, seen from the two texts alone; repairs, and the options of a second attempt."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

from mtformer.config import SearchOptions
from mtformer.text.dates import lost_dates
from mtformer.text.entities import SLOT
from mtformer.text.glossary import Term
from mtformer.text.languages import DENSITY, base_language, is_written_with_spaces, letters_of
from mtformer.text.lost_names import finds_lost_names, lost_names
from mtformer.text.lost_numbers import lost_numbers, made_up_numbers
from mtformer.text.repetition import FEWEST_REPEATS, MOST_TIMES_AS_OFTEN, doubles_words, n_repeats, without_loops
from mtformer.text.slots import Slotted, known_slots
from mtformer.text.spelled_amounts import lost_units
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.vocabulary import on_one_line
from mtformer.translate.translation import FLAG, Translation

SLOTS_ADDED = "numbers or names put back: "
REPEATED_SLOTS = "repeated numbers or names removed"
MADE_UP_SLOTS = "made-up numbers or names removed"
LOST_NUMBERS = "numbers lost: "
LOST_NAMES = "names lost: "  # and codes, where slots cannot keep them
LOOP, DOUBLED, EMPTY, SHORT = "repeats itself", "doubles words", "empty", "too short"
REPEATED_SOURCE = "repeats itself as its source does"  # which another search would not change
REPEATED_MORE = "repeats itself more than its source does"  # as it may: a word may become two
SOURCE_REPEATS = {REPEATED_SOURCE, REPEATED_MORE}

_FEWEST_DOUBTFUL_REPEATS = 10  # in a source, which is hardly text
_LONGEST, _SHORTEST, _SLACK = 3.0, 0.25, 20  # of the length of a translation over that of its source, in characters
_FEWEST_COPIED_WORDS = 4
_CONFIDENT = 0.65  # on Multi30k and Tatoeba, 4 to 11 % of the texts have less, and of those in the other language 89 %
_FIRST_MASK = 0xF0000  # for private use: part of no text, word or number
_WIDEST_BEAM = 16  # of a second attempt

TermNotes = Callable[[Sequence[Term], str], Sequence[str]]  # a note on each term that a translation lacks


class Guard:
    """Finds problems of translations: loops, lost numbers, other scripts and others. Cheap if there are none."""

    def __init__(self, tokenizer: Tokenizer, src_lang: str, tgt_lang: str) -> None:
        """Take the tokenizer, whose target vocabulary defines the expected characters, and the languages."""
        self._expected = tokenizer.tgt.characters
        self._languages = (src_lang, tgt_lang)
        self._tokenizer = tokenizer if finds_lost_names(tokenizer, src_lang, tgt_lang) else None
        self._same_language = base_language(src_lang) == base_language(tgt_lang)
        self._src_is_spaced, self._tgt_is_spaced = map(is_written_with_spaces, (src_lang, tgt_lang))
        density = {True: 1, False: DENSITY}
        self._ratio = density[self._src_is_spaced] / density[self._tgt_is_spaced]
        self._slack = _SLACK / density[self._tgt_is_spaced]
        letters = letters_of(tgt_lang)
        self._other_words = re.compile(rf"(?:(?![{letters}])[^\W\d_])+") if letters else None

    def problems(self, source: str, translation: str, terms: Sequence[Term] = ()) -> tuple[str, ...]:
        """Return the problems of a translation; none if it seems right.

        ``terms`` are those of a glossary in ``source``, whose translations are as they should be.
        """
        if not translation.strip():
            return (EMPTY,) if source.strip() else ()
        problems = []
        masked = self._mask(source, translation, terms)
        if loop := self._loop(source, masked.translation):
            problems.append(loop)
        expected = self._ratio * len(masked.source)  # characters
        if len(masked.translation) > _LONGEST * expected + self._slack:
            problems.append("too long")
        elif len(masked.translation) + self._slack < _SHORTEST * expected:
            problems.append(SHORT)
        if translation == source and self._is_prose(source) and not self._same_language:
            problems.append("not translated")
        if lost := lost_numbers(masked.source, masked.translation, self._languages):
            problems.append(f"{LOST_NUMBERS}{' '.join(lost)}")
        elif made_up := made_up_numbers(masked.source, masked.translation, self._languages):
            problems.append(f"numbers made up: {' '.join(made_up)}")
        if self._expected is not None and not self._expected.issuperset(masked.translation):
            stray = (
                set("".join(masked.translation.split())) - self._expected - set(source) - set(map(chr, masked.hidden))
            )
            if stray:
                problems.append(f"stray characters: {''.join(sorted(stray))}")
        if self._is_other_script(source, masked.translation):
            problems.append("another script")
        return tuple(problems)

    def _loop(self, source: str, translation: str) -> str | None:
        """Return the problem of a translation that repeats itself; None if it does not, or its source does, too."""
        n = n_repeats(translation, self._tgt_is_spaced)
        if n < FEWEST_REPEATS:
            return DOUBLED if doubles_words(source, translation, *self._languages) else None
        n_in_source = n_repeats(source, self._src_is_spaced)
        if n_in_source < FEWEST_REPEATS or n > MOST_TIMES_AS_OFTEN * n_in_source:
            return LOOP
        if n_in_source >= _FEWEST_DOUBTFUL_REPEATS:
            return REPEATED_SOURCE
        return REPEATED_MORE if n > n_in_source else None

    def checked(self, source: str, translation: Translation, missing: TermNotes) -> Translation:
        """Repair a translation as far as possible without the model, and note the remaining problems."""
        problems = self.problems(source, translation.text, translation.terms)
        repaired, repairs = self._repaired(source, translation, problems) if problems else (translation.text, ())
        if repairs:
            problems = (*repairs, *self.problems(source, repaired, translation.terms))
        if names := self.lost_names(source, repaired, translation.terms):
            problems = (*problems, f"{LOST_NAMES}{' '.join(names)}")
        if amounts := self._lost_amounts(source, repaired, translation.terms, problems):
            problems = (*problems, f"{LOST_NUMBERS}{', '.join(amounts)}")
        if not problems:
            return translation
        lost = missing(translation.terms, repaired) if repairs else ()
        notes = (*translation.notes, *(FLAG + problem for problem in problems), *lost)
        return replace(translation, text=repaired, notes=tuple(dict.fromkeys(notes)))

    def lost_names(self, source: str, translation: str, terms: Sequence[Term] = ()) -> list[str]:
        """Return the names that a translation lacks; another search would not recover them."""
        if self._tokenizer is None:
            return []
        masked = self._mask(source, translation, terms)
        return lost_names(masked.source, masked.translation, self._tokenizer)

    def _lost_amounts(self, source: str, translation: str, terms: Sequence[Term], problems: Sequence[str]) -> list[str]:
        """Return the amounts of which a translation lacks the unit, and the dates of which it lacks the month.

        Another search would not recover them.
        """
        if any(problem.startswith(LOST_NUMBERS) for problem in problems):
            return []
        masked = self._mask(source, translation, terms)
        texts = masked.source, masked.translation, *self._languages
        return [*lost_units(*texts, loose=False), *lost_dates(*texts)]

    def _repaired(self, source: str, translation: Translation, problems: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """Return the repaired text and the repairs, if any."""
        if EMPTY in problems:
            return on_one_line(source), ("not translated",)
        if LOOP not in problems:
            return translation.text, ()
        masked = self._mask(source, translation.text, translation.terms)
        text = without_loops(masked.translation, self._tgt_is_spaced)
        if any(slot not in text for slot in SLOT.findall(masked.translation)):  # no repair may lose a number
            return translation.text, ()
        return text.translate(masked.hidden), ("repetition removed",)

    def _mask(self, source: str, translation: str, terms: Sequence[Term]) -> "_Masked":
        """Mask each term with a character of no script, once for each occurrence in the source."""
        hidden = {}
        for mask, term in enumerate(sorted(terms, key=lambda term: -len(term.tgt)), _FIRST_MASK):
            source, _ = _hide(source, term.src, chr(mask), self._src_is_spaced)
            translation, hidden[mask] = _hide(translation, term.tgt, chr(mask), self._tgt_is_spaced)
        return _Masked(source, translation, hidden)

    def _is_prose(self, text: str) -> bool:
        """Tell whether a text has more words than names."""
        if not self._src_is_spaced:
            return len(text) >= DENSITY * _FEWEST_COPIED_WORDS // 2
        return sum(word.isalpha() and word.islower() for word in text.split()) >= _FEWEST_COPIED_WORDS

    def _is_other_script(self, source: str, translation: str) -> bool:
        """Tell whether most letters are neither in the target language's script nor from the source."""
        if self._other_words is None:
            return False
        n_other = sum(len(word) for word in self._other_words.findall(translation) if word not in source)
        return bool(n_other) and 2 * n_other > sum(map(str.isalpha, translation))


class _Masked(NamedTuple):
    """A source and its translation without the terms of a glossary.

    Attributes:
        source: with a mask in place of each term.
        translation: with the same masks.
        hidden: what each mask, by its code point, stands for in the translation, as ``str.translate`` takes it.
    """

    source: str
    translation: str
    hidden: dict[int, str]


def _hide(text: str, phrase: str, mask: str, is_spaced: bool) -> tuple[str, str]:
    """Replace the first ``phrase`` in ``text`` by ``mask``; return the text and the replaced characters."""
    around = (r"(?<!\w)", r"(?!\w)") if is_spaced else ("", "")
    match = re.search(re.escape(phrase).join(around), text, re.IGNORECASE)
    return (text, "") if match is None else (text[: match.start()] + mask + text[match.end() :], match[0])


def stricter(options: SearchOptions, text: str, problems: Sequence[str]) -> SearchOptions:
    """Return options for a second attempt: a wider beam, less repetition, a length close to the source's.

    It returns all hypotheses of the beam.
    """
    is_wider = not options.sample and 2 * options.beam_size <= _WIDEST_BEAM
    beam_size = options.beam_size * (2 if is_wider else 1)
    ngram_size = 2 if LOOP in problems else 3
    shorter = min(options.max_length_factor, 1.5), min(options.max_length_offset, 10)
    min_length = len(text.split()) // 2 if {EMPTY, SHORT} & set(problems) else 1
    return options.model_copy(
        update={
            "beam_size": beam_size,
            "n_best": options.n_best if options.sample or options.mbr else beam_size,
            "no_repeat_ngram_size": min(options.no_repeat_ngram_size or ngram_size, ngram_size),
            "repetition_penalty": max(options.repetition_penalty, 1.1),
            **({} if options.min_length else {"max_length_factor": shorter[0], "max_length_offset": shorter[1]}),
            "min_length": max(options.min_length, min_length, 1),
        }
    )


def with_languages_noted(
    sources: Sequence[str], results: Sequence[list[Translation]], language: str
) -> list[list[Translation]]:
    """Note at translations of low confidence that their sources are in another language than expected, if they are."""
    noted = list(results)
    if not (unsure := [n for n, (best, *_) in enumerate(results) if best.confidence < _CONFIDENT]):
        return noted
    from mtformer.data.clean.language import LanguageTest  # which takes 0.5 s

    test = LanguageTest(language)
    wrong = test.wrong([sources[n] for n in unsure]) if test.is_possible else []
    for n in compress(unsure, wrong):
        noted[n] = [translation.noted(f"{FLAG}source not in {language}") for translation in results[n]]
    return noted


def without_made_up(source: str, translation: Translation) -> Translation:
    """Drop the slots that the source lacks from its translation: their content is unknown."""
    text = known_slots(translation.text, source)
    if text == translation.text:
        return translation
    tokens = tuple(known_slots(token, source) for token in translation.tokens)
    return replace(translation, text=text.strip(), tokens=tokens).noted(FLAG + MADE_UP_SLOTS)


def filled(slotted: Slotted, translation: Translation) -> Translation:
    """Fill in the slots of a translation, and of its tokens."""
    [text], tokens = map(slotted.filled, ([translation.text], translation.tokens))
    notes = (FLAG + REPEATED_SLOTS,) if slotted.repeats(translation.text) else ()
    return replace(translation, text=text, tokens=tuple(tokens)).noted(*notes)


def with_lost_names(slotted: Slotted, translation: Translation) -> Translation:
    """Return a translation with a note on the codes and names that it lacks."""
    lost = slotted.lost_names(translation.text)
    return translation.noted(f"{FLAG}{LOST_NAMES}{' '.join(lost)}") if lost else translation
