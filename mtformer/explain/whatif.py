"""Why a word was not chosen, and what changes between two sentences."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import numpy as np

from mtformer.explain.record import Explainer
from mtformer.explain.tokens import target_tokens
from mtformer.explain.trace import Kind, Node, Token, Trace, WhyNot, WhyNotStep
from mtformer.search import Hypothesis
from mtformer.text.languages import is_written_with_spaces

_N_STEPS = 10  # that an answer lists


def with_why_not(explainer: Explainer, trace: Trace, words: Sequence[str]) -> Trace:
    """Return ``trace`` with an answer for each of ``words`` of the target language.

    Raises:
        UserError: a word is empty.
    """
    return replace(trace, why_not=tuple(_why_not(explainer, trace, word) for word in words))


def _why_not(explainer: Explainer, trace: Trace, word: str) -> WhyNot:
    forms = [explainer.encode_word(word, first=first) for first in (True, False)]  # at the beginning, and later
    chosen = [token.id for token in trace.target.tokens]
    found_at = [t for t in range(len(chosen)) if _stands_at(chosen, t, forms[t > 0])]
    steps = _steps(explainer, trace, forms, chosen, found_at)
    dropped = max(_dropped(trace, forms), key=lambda node: node.step, default=None)
    sentences = [f"The translation contains “{word}”, at step {found_at[0] + 1}."] if found_at else []
    text = score = None
    if steps:
        src = [token.id for token in trace.source.tokens]
        begun = [[*chosen[: step.step - 1], *forms[step.step > 1]] for step in steps]
        alpha = explainer.options.length_penalty
        others = zip(steps, explainer.search(src, begun), strict=True)
        best, other = max(
            ((step, found[0]) for step, found in others),
            key=lambda pair: (_has_word(explainer, pair[1], word), pair[1].score(alpha)),
        )
        text, score = explainer.tokenizer.decode(other.ids), other.score(alpha)
        sentences.append(_best_place(trace, best, text, score, is_found=bool(found_at)))
    if not found_at:
        sentences.append(_fate(dropped))
    return WhyNot(
        word=word,
        tokens=target_tokens(explainer.tokenizer, forms[1]),
        found=bool(found_at),
        message=" ".join(sentences),
        steps=tuple(steps),
        pruned_at=dropped.step if dropped and dropped.fate == "pruned" else None,
        text=text,
        score=score,
    )


def _has_word(explainer: Explainer, hypothesis: Hypothesis, word: str) -> bool:
    """Tell whether a translation has the word, and not only as the beginning of a longer one."""
    text = explainer.tokenizer.decode(hypothesis.ids)
    boundary = r"\b" if is_written_with_spaces(explainer.tgt_lang) else ""
    return re.search(f"{boundary}{re.escape(word.strip())}{boundary}", text) is not None


def _stands_at(ids: Sequence[int], place: int, word: Sequence[int]) -> bool:
    return list(ids[place : place + len(word)]) == list(word)


def _steps(
    explainer: Explainer, trace: Trace, forms: list[list[int]], chosen: list[int], found_at: list[int]
) -> list[WhyNotStep]:
    """Return how the word's first token stood at the steps that chose another, likeliest first."""
    nodes = {node.step: node for node in _best_path(trace)}
    considered = {(node.parent, node.token.id): node.id for node in trace.tree.nodes}
    steps = []
    for t, log_probs in enumerate(explainer.log_probs(trace)):
        token = forms[t > 0][0]
        if t in found_at:
            continue
        log_prob = float(log_probs[token])
        rank = 1 + int((log_probs > log_prob).sum())
        gap = float(log_probs[chosen[t]]) - log_prob
        parent = nodes[t].id if t else 0
        steps.append(WhyNotStep(t + 1, rank, log_prob, gap, considered.get((parent, token))))
    return sorted(steps, key=lambda step: -step.log_prob)[:_N_STEPS]


def _best_path(trace: Trace) -> list[Node]:
    return trace.tree.path(trace.tree.nodes[trace.tree.finished[0].node])


def _dropped(trace: Trace, forms: list[list[int]]) -> Iterator[Node]:
    """Yield the ends of all branches that contain the word where the translation does not."""
    best = {node.id for node in _best_path(trace)}
    for node in trace.tree.nodes:
        if node.fate == "expanded":
            continue
        path = trace.tree.path(node)
        ids = [other.token.id for other in path]
        if any(_stands_at(ids, t, forms[t > 0]) and path[t].id not in best for t in range(len(ids))):
            yield node


def _best_place(trace: Trace, best: WhyNotStep, text: str, score: float, *, is_found: bool) -> str:
    """Describe the step at which the word leads to the best translation, ``text``."""
    chosen = trace.target.tokens[best.step - 1].text
    if score < trace.target.score:
        verdict = "which is lower"
    else:
        verdict = "which the search missed: a larger --beam-size may find it"
    place = f"Its best {'other ' * is_found}place is step {best.step}, instead of “{chosen}”"
    gap = f"{abs(best.gap):.2f} {'below' if best.gap > 0 else 'above'} “{chosen}”"
    return (
        f"{place}: there it ranks {best.rank} with log probability {best.log_prob:.2f}, {gap}. The best translation "
        f"that continues with it is “{text}”, with score {score:.3f} instead of {trace.target.score:.3f}, {verdict}."
    )


def _fate(dropped: Node | None) -> str:
    """Say what became of the last beam that contained the word."""
    if dropped is None:
        return "No beam contained it: at every step, the search found likelier candidates."
    where = f"at step {dropped.step}"
    if dropped.fate == "pruned":
        return (
            f"The last beam with it was pruned {where}: it ranked {dropped.rank}, log probability {dropped.total:.2f}."
        )
    if dropped.fate == "finished":
        return f"A translation with it was finished {where}, with score {dropped.score or 0.0:.3f}."
    return f"A beam with it was left when the search stopped {where}, since it could no longer win."


@dataclass(frozen=True)
class AttentionChange:
    """How much one head's weights differ: the mean absolute difference over the tokens that both sentences have."""

    kind: Kind
    layer: int
    head: int
    difference: float


@dataclass(frozen=True)
class Changes:
    """What changes between two traces.

    Attributes:
        source: operations that turn the tokens of the first source into those of the second, as
            :meth:`difflib.SequenceMatcher.get_opcodes` returns them.
        target: those of the translations.
        attention: of every head, the largest first.
    """

    source: tuple[tuple[str, int, int, int, int], ...]
    target: tuple[tuple[str, int, int, int, int], ...]
    attention: tuple[AttentionChange, ...]


def compare(a: Trace, b: Trace) -> Changes:
    """Compare the traces of two sentences by the same model."""
    source = _aligned(a.source.tokens, b.source.tokens)
    target = _aligned(a.decoder_input, b.decoder_input)
    axes = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
    found = []
    for ours, theirs in zip(a.attentions, b.attentions, strict=True):
        (rows_a, rows_b), (columns_a, columns_b) = axes[ours.kind]
        weights_a = ours.weights[:, rows_a][:, :, columns_a]  # (H, n, m)
        weights_b = theirs.weights[:, rows_b][:, :, columns_b]
        differences = np.abs(weights_a - weights_b).mean(axis=(1, 2))
        heads = enumerate(differences.tolist(), 1)
        found += [AttentionChange(ours.kind, ours.layer, head, difference) for head, difference in heads]
    return Changes(
        source=_opcodes(a.source.tokens, b.source.tokens),
        target=_opcodes(a.target.tokens, b.target.tokens),
        attention=tuple(sorted(found, key=lambda change: -change.difference)),
    )


def _opcodes(a: Sequence[Token], b: Sequence[Token]) -> tuple[tuple[str, int, int, int, int], ...]:
    matcher = SequenceMatcher(None, [token.id for token in a], [token.id for token in b], autojunk=False)
    return tuple(matcher.get_opcodes())


def _aligned(a: Sequence[Token], b: Sequence[Token]) -> tuple[list[int], list[int]]:
    """Return the places in ``a`` and in ``b`` of tokens that are equal, or replaced one by one."""
    places: tuple[list[int], list[int]] = [], []
    for _, a0, a1, b0, b1 in _opcodes(a, b):
        if a1 - a0 == b1 - b0:
            places[0].extend(range(a0, a1))
            places[1].extend(range(b0, b1))
    return places
