"""Why the translation lacks a word."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from mtformer.explain.record import Explainer
from mtformer.explain.tokens import Spelling
from mtformer.explain.trace import Node, Sentence, Token, Trace, WhyNot, WhyNotStep
from mtformer.support.terminal import fixed
from mtformer.text.languages import is_written_with_spaces

_N_STEPS = 10  # that an answer lists


class _Place(NamedTuple):
    """A place for the word in the translation.

    Attributes:
        at: the first step that has to choose another token for it.
        chosen: the token that the translation has instead.
        prefix: the translation up to there, followed by the word.
        n_tokens: of the word.
    """

    at: WhyNotStep
    chosen: Token
    prefix: list[int]
    n_tokens: int


class _Alternative(NamedTuple):
    """The best translation that begins with a place's ``prefix``."""

    place: _Place
    text: str
    score: float


def with_why_not(explainer: Explainer, trace: Trace, words: Sequence[str]) -> Trace:
    """Return ``trace`` with an answer for each of ``words`` of the target language.

    Raises:
        UserError: a word is empty, or has more tokens than the translation may have.
    """
    return replace(trace, why_not=tuple(_why_not(explainer, trace, word) for word in words))


def _why_not(explainer: Explainer, trace: Trace, word: str) -> WhyNot:
    spelling = explainer.spelling(trace.source.text)
    # At the beginning of the translation, and later.
    forms = [explainer.encode_word(spelling, word, first=first) for first in (True, False)]
    for form in forms:
        explainer.require_room(form, "word", len(trace.source.tokens))
    pattern = _pattern(explainer.tokenizer.tgt.normalize(word), explainer.tgt_lang)
    answer = WhyNot(word, spelling.tgt_tokens(forms[1]), False, message="", sentences=(), steps=())
    if match := pattern.search(trace.target.text):
        step = _step_at(spelling, trace, match.start())
        values: dict[str, str | int] = {"word": word, "step": step}
        return _saying(answer, [Sentence("The translation contains “{word}”, at step {step}.", values)], found=True)
    places = _places(explainer, trace, forms)
    n_forced = sum(step.choice.forced for step in trace.steps)
    free = [place for place in places if place.at.step > n_forced][:_N_STEPS]
    sentences = []
    if places and places[0].at.step <= n_forced:
        standing, values = _standing(word, places[0])
        sentences.append(Sentence(f"The prefix excludes it at step {{step}}, where {standing}.", values))
    best = _best_translation(explainer, trace, pattern, free)
    if best is not None:
        has_word = pattern.search(best.text) is not None
        sentences += _alternative(word, best, trace.target.score, has_word=has_word)
        if has_word:
            answer = replace(answer, text=best.text, score=best.score)
    fate, pruned_at = _fate(spelling, trace, pattern, answer.text)
    return _saying(answer, [*sentences, fate], steps=tuple(place.at for place in free), pruned_at=pruned_at)


def _saying(answer: WhyNot, sentences: Sequence[Sentence], **others: Any) -> WhyNot:
    return replace(answer, message=" ".join(map(str, sentences)), sentences=tuple(sentences), **others)


def _pattern(word: str, language: str) -> re.Pattern[str]:
    """Return the pattern of the normalized word, which no part of a longer one matches if the language separates words.

    A side that is punctuation needs no boundary: a letter may follow “müde.” as well as a space.
    """
    has_boundaries = is_written_with_spaces(language)
    before = r"(?<!\w)" if has_boundaries and re.match(r"\w", word) else ""
    after = r"(?!\w)" if has_boundaries and re.search(r"\w$", word) else ""
    return re.compile(before + re.escape(word) + after)


def _step_at(spelling: Spelling, trace: Trace, character: int) -> int:
    """Return the step whose token spells a character of the translation."""
    ids = [token.id for token in trace.target.tokens]
    starts = [len(spelling.decode(ids[:t])) for t in range(len(ids))]
    return 1 + max(t for t, start in enumerate(starts) if start <= character)


def _places(explainer: Explainer, trace: Trace, forms: Sequence[list[int]]) -> list[_Place]:
    """Return the places for the word in the translation, the likeliest first."""
    chosen = [token.id for token in trace.target.tokens]
    most = explainer.max_target(len(trace.source.tokens))
    spelling, all_log_probs = explainer.spelling(trace.source.text), explainer.log_probs(trace)
    nodes = {node.step: node.id for node in trace.tree.path(trace.tree.nodes[trace.tree.finished[0].node])} | {0: 0}
    considered = {(node.parent, node.token.id): node.id for node in trace.tree.nodes}
    places: dict[tuple[int, ...], _Place] = {}  # by what they begin with
    for t in range(len(chosen)):
        form = forms[t > 0]
        n_common = next((k for k, token in enumerate(form) if chosen[t + k] != token), len(form))
        prefix = [*chosen[:t], *form]
        if n_common == len(form) or len(prefix) > most:
            continue
        step, i = t + n_common, form[n_common]
        log_probs = all_log_probs[step]
        log_prob = float(log_probs[i])
        rank = 1 + int((log_probs > log_prob).sum())
        gap = float(log_probs[chosen[step]]) - log_prob
        [token] = spelling.tgt_tokens([i])
        standing = WhyNotStep(step + 1, token, rank, log_prob, gap, considered.get((nodes.get(step), i)))
        places[tuple(prefix)] = _Place(standing, trace.target.tokens[step], prefix, len(form))
    return sorted(places.values(), key=lambda place: -place.at.log_prob)


def _best_translation(
    explainer: Explainer, trace: Trace, pattern: re.Pattern[str], places: Sequence[_Place]
) -> _Alternative | None:
    """Continue at each place with the word, and return the best translation that has it, or else the best of all."""
    src = [token.id for token in trace.source.tokens]
    spelling, penalty = explainer.spelling(trace.source.text), explainer.options.penalty
    candidates = [
        _Alternative(place, spelling.decode(hypothesis.ids), hypothesis.score(penalty))
        for place, hypotheses in zip(places, explainer.search(src, [place.prefix for place in places]), strict=True)
        for hypothesis in hypotheses
    ]
    return max(candidates, key=lambda each: (pattern.search(each.text) is not None, each.score), default=None)


def _standing(word: str, place: _Place) -> tuple[str, dict[str, str | int]]:
    """Return a template for how likely a word was at a place, one of its tokens or itself, and the values."""
    at = place.at
    number = at.step - len(place.prefix) + place.n_tokens
    values: dict[str, str | int] = {
        "step": at.step,
        "word": word,
        "token": at.token.label,
        "number": number,
        "number_th": _ordinal(number),
        "n_tokens": place.n_tokens,
        "rank": at.rank,
        "rank_th": _ordinal(at.rank),
    }
    which = "“{word}”" if at.token.label == word else "“{token}”, the {number_th} of its {n_tokens} tokens,"
    return f"{which} was " + ("the likeliest" if at.rank == 1 else "the {rank_th} likeliest"), values


def _alternative(word: str, best: _Alternative, score: float, *, has_word: bool) -> list[Sentence]:
    """Describe the place at which the word leads to the best translation, and that translation."""
    at = best.place.at
    how_likely, values = _standing(word, best.place)
    if at.gap < 0:
        gap = "{gap} nats likelier than “{chosen}”, which the search chose"
    else:
        gap = "{gap} nats less likely than “{chosen}”"
    values |= {"gap": f"{abs(at.gap):.2f}", "chosen": best.place.chosen.label}
    standing = Sentence(f"At step {{step}} {how_likely}: {gap}.", values)
    scores: dict[str, str | int]
    scores = {"text": best.text, "score": fixed(best.score, 3), "chosen_score": fixed(score, 3)}
    if not has_word:
        outcome = "The best translation that continues with its tokens, “{text}”, does not contain it as a word."
    elif best.score < score:
        outcome = "The best translation with it, “{text}”, has score {score} instead of {chosen_score}."
    else:
        outcome = (
            "The best translation with it, “{text}”, has score {score}, better than {chosen_score}: the search missed "
            "it, and a larger --beam-size may find it."
        )
    return [standing, Sentence(outcome, scores)]


def _fate(spelling: Spelling, trace: Trace, pattern: re.Pattern[str], best: str | None) -> tuple[Sentence, int | None]:
    """Describe how far the word came in the search, and return the step at which its last beam was pruned.

    Args:
        spelling: that of the sentence.
        trace: of a translation without the word.
        pattern: finds it.
        best: the best translation with it, which has been mentioned.
    """

    def has_word(node: Node) -> bool:
        ids = [step.token.id for step in trace.tree.path(node)]
        return pattern.search(spelling.decode(ids)) is not None

    def sentence(template: str, step: int, rank: int, text: str = "") -> Sentence:
        return Sentence(template, {"step": step, "rank": rank, "rank_th": _ordinal(rank), "text": text})

    finished = next((ended for ended in trace.tree.finished if pattern.search(ended.text)), None)
    if finished is not None:
        which = "it" if finished.text == best else "“{text}”"
        template = f"The search finished {which} at step {{step}}; by score it ranked {{rank_th}}."
        return sentence(template, finished.length, finished.rank, finished.text), None
    leaves = [node for node in trace.tree.nodes if node.fate in ("pruned", "stopped") and has_word(node)]
    left = next((node for node in leaves if node.fate == "stopped"), None)
    if left is not None:
        template = "A beam with it was left when the search stopped at step {step}: others scored better."
        return sentence(template, left.step, left.rank), None
    pruned = [node for node in leaves if has_word(trace.tree.nodes[node.parent or 0])]
    if pruned:
        last = max(pruned, key=lambda node: (node.step, -node.rank))
        template = "The last beam with it was pruned at step {step}: its best continuation ranked {rank_th}."
        return sentence(template, last.step, last.rank), last.step
    if leaves:
        nearest = min(leaves, key=lambda node: (node.rank, node.step))
        template = "It was a candidate at step {step}, ranked {rank_th}, but never in a beam."
        return sentence(template, nearest.step, nearest.rank), None
    return Sentence("No candidate of the search contained it.", {}), None


def _ordinal(number: int) -> str:
    last = 0 if number % 100 in (11, 12, 13) else number % 10
    return f"{number:,}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"
