"""Translate again what has problems, and keep what has fewer."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from mtformer.config import SearchOptions
from mtformer.text.numbers import lost_numbers, numbers_to_keep
from mtformer.translate.guard.checks import ADDED, EMPTY, LOOP, SHORT, Guard, TermNotes
from mtformer.translate.translation import FLAG, Translation

_WIDEST_BEAM = 16  # of a second attempt
_MOST_KEPT_DIGITS = 40  # of the numbers of a text that a search is made to keep, which takes longer with each


def guarded(
    guard: Guard,
    texts: Sequence[str],
    found: Sequence[list[Translation]],
    options: SearchOptions,
    translate: Callable[[Sequence[str], SearchOptions], list[list[Translation]]],
    missing: TermNotes,
    keep_numbers: Callable[[Sequence[str]], list[list[Translation]]] | None = None,
) -> list[list[Translation]]:
    """Translate again, more strictly, what has problems in its best translation, and keep what has fewer problems.

    Then each translation is repaired where that is possible without the model, and gets notes on the problems left. If
    it still lacks numbers, the search is made to keep them; the result is taken if it has fewer problems and is not
    damaged otherwise.

    Args:
        guard: finds the problems.
        texts: what was translated.
        found: the translations of each text, best first.
        options: how they were searched for.
        translate: translates texts.
        missing: notes the terms that a repaired translation lacks.
        keep_numbers: translates texts so that their numbers are in the translations; None if the search cannot.
    """
    results = list(found)
    problems = [guard.problems(text, best.text, best.terms) for text, (best, *_) in zip(texts, found, strict=True)]
    groups: dict[SearchOptions, list[int]] = {}  # of places, by the options of the second attempt
    for place, (text, ones) in enumerate(zip(texts, problems, strict=True)):
        if ones:
            groups.setdefault(stricter(options, text, ones), []).append(place)
    for strict, places in groups.items():
        again = translate([texts[place] for place in places], strict)
        for place, translations in zip(places, again, strict=True):
            best = translations[0]
            if len(guard.problems(texts[place], best.text, best.terms)) < len(problems[place]):
                results[place] = translations
    checked = [[guard.checked(text, one, missing) for one in ones] for text, ones in zip(texts, results, strict=True)]
    return checked if keep_numbers is None else _with_numbers(guard, texts, checked, missing, keep_numbers)


def _with_numbers(
    guard: Guard,
    texts: Sequence[str],
    found: Sequence[list[Translation]],
    missing: TermNotes,
    keep_numbers: Callable[[Sequence[str]], list[list[Translation]]],
) -> list[list[Translation]]:
    """Translate again what lacks numbers in its best translation, and keep what is better."""
    results = list(found)
    places = [
        place
        for place, (text, (best, *_)) in enumerate(zip(texts, found, strict=True))
        if lost_numbers(text, best.text) and sum(map(len, numbers_to_keep(text))) <= _MOST_KEPT_DIGITS
    ]
    again = keep_numbers([texts[place] for place in places]) if places else []
    for place, translations in zip(places, again, strict=True):
        text = texts[place]
        before, after = (guard.problems(text, best.text) for best, *_ in (found[place], translations))
        if len(after) < len(before) and not guard.is_damaged(translations[0], found[place][0]):
            noted = (replace(one, notes=(*one.notes, FLAG + ADDED)) for one in translations)
            results[place] = [guard.checked(text, one, missing) for one in noted]
    return results


def stricter(options: SearchOptions, text: str, problems: Sequence[str]) -> SearchOptions:
    """Return options for a second attempt: a wider beam, less repetition, a length close to that of the source."""
    is_wider = not options.sample and 2 * options.beam_size <= _WIDEST_BEAM
    ngram_size = 2 if LOOP in problems else 3
    min_length = len(text.split()) // 2 if {EMPTY, SHORT} & set(problems) else 1
    return options.model_copy(
        update={
            "beam_size": options.beam_size * (2 if is_wider else 1),
            "no_repeat_ngram_size": min(options.no_repeat_ngram_size or ngram_size, ngram_size),
            "repetition_penalty": max(options.repetition_penalty, 1.1),
            "max_length_factor": min(options.max_length_factor, 1.5),
            "max_length_offset": min(options.max_length_offset, 10),
            "min_length": max(options.min_length, min_length, 1),
        }
    )
