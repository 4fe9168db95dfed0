"""Beam search whose translations contain given phrases.

As in dynamic beam allocation (Post and Vilar 2018), beams compete within banks: those that contain as many of the
phrases. Here the likeliest K beams always go on, as in plain beam search, and each bank has places besides, so that a
translation that contains the phrases anyway is found as without them. A beam that opens a phrase moves to the next bank
at once, and reads it token by token, unless its other continuations are likelier.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from mtformer.config import SearchOptions
from mtformer.search.beam import Beams, beam_search
from mtformer.search.constraints import Constraint
from mtformer.search.decoder import Decoder
from mtformer.search.hypothesis import Hypothesis
from mtformer.search.observer import Candidates, SearchObserver
from mtformer.search.processors import Prefixes, Processor
from mtformer.text.tokenizer import EOS_ID, PAD_ID


def constrained_width(beam_size: int, n_phrases: int) -> int:
    """Return how many beams a search needs for a sentence whose translation must contain ``n_phrases``."""
    return beam_size + max(beam_size, n_phrases) if n_phrases else beam_size


def constrained_search(
    decoder: Decoder,
    constraints: Sequence[Constraint],
    prefix_lengths: Sequence[int],
    limits: Sequence[int],
    options: SearchOptions,
    processors: Sequence[Processor],
    observer: SearchObserver | None = None,
) -> list[list[Hypothesis]]:
    """Search as :func:`beam_search` does for hypotheses that meet the constraints of their sentences.

    Args:
        decoder: at its start, with B sentences.
        constraints: of each sentence.
        prefix_lengths: how many tokens each translation starts with that ``processors`` force; no phrase is opened
            among them.
        limits: the maximum length of each sentence's hypotheses in tokens, EOS not counted; there must be room for the
            forced prefix and the constraint's ``max_tokens``.
        options: beam size, length penalty and how many hypotheses to find.
        processors: applied to each step in order; they must enforce ``limits``. Other tokens than those of phrases
            that are opened obey them.
        observer: called with each step.

    Returns:
        For each sentence its finished hypotheses, best first: at least one, at most ``options.n_best``.

    Raises:
        MtformerError: the model predicts NaN, or no hypothesis is possible.
    """
    selection = ConstrainedSelection(constraints, prefix_lengths, limits, options.beam_size)
    return beam_search(decoder, limits, options, [selection, *processors], observer, selection)


class _Continuation(NamedTuple):
    """A candidate of a sentence.

    Attributes:
        log_prob: of the whole prefix.
        beam: the beam that it continues.
        token: the token that it appends.
        token_log_prob: the log probability of that token.
        state: that of the constraint after the token; None for the one that :meth:`Constraint.advance` gives.
    """

    log_prob: float
    beam: int
    token: int
    token_log_prob: float
    state: int | None = None


_NONE = _Continuation(float("-inf"), 0, PAD_ID, float("-inf"))


@dataclass
class _Sentence:
    """A sentence and its beams.

    Attributes:
        constraint: what its translations must contain.
        prefix_length: how many tokens they start with that are given.
        limit: their maximum length, EOS not counted.
        states: those of the constraint, of each beam.
        keys: for each beam a hash of its tokens.
    """

    constraint: Constraint
    prefix_length: int
    limit: int
    states: list[int]
    keys: list[int]

    def continuations(
        self, totals: list[float], values: list[list[float]], tokens: list[list[int]], forced: list[_Continuation]
    ) -> tuple[list[_Continuation], list[_Continuation]]:
        """Return the candidates of one step, best first, and those that end.

        Args:
            totals: the log probabilities of K beams.
            values: (K, C) the log probabilities of the likeliest next tokens of each.
            tokens: (K, C) these tokens.
            forced: candidates that open or continue a phrase.
        """
        candidates = [c._replace(log_prob=totals[c.beam] + c.token_log_prob) for c in forced]
        ended = []
        for beam, state in enumerate(self.states):
            for value, token in zip(values[beam], tokens[beam], strict=True):
                continuation = _Continuation(totals[beam] + value, beam, token, value)
                if token != EOS_ID:
                    candidates.append(continuation)
                elif self.constraint.is_met(state):
                    ended.append(continuation)
        possible = [c for c in candidates if c.log_prob > _NONE.log_prob]
        return sorted(possible, key=lambda c: (-c.log_prob, c.state is None, c.beam, c.token)), ended

    def choose(self, candidates: list[_Continuation], k: int, width: int, n_left: int) -> list[_Continuation]:
        """Choose the next beams, at most ``width``, and continue with them.

        The first ``k`` are chosen, and besides an equal share for each number of phrases. Those are left out that could
        not contain all phrases within ``n_left`` more tokens, and those that have the same tokens as one before.

        Args:
            candidates: best first; at equal probability, those that open or continue a phrase first.
            k: how many to choose whatever they contain.
            width: how many to choose.
            n_left: how many tokens may follow.
        """
        share, more = divmod(width - k, self.constraint.n_phrases)
        places = {n_missing: share + (more if n_missing == 0 else 0) for n_missing in range(self.constraint.n_phrases)}
        chosen: list[tuple[_Continuation, int, int]] = []
        spare: list[tuple[_Continuation, int, int]] = []
        seen: set[tuple[int, int]] = set()  # keys and states
        taken: set[int] = set()  # keys; what opens or continues a phrase also stands for what does not
        for candidate in candidates:
            if len(chosen) == width:
                break
            key, state = hash((self.keys[candidate.beam], candidate.token)), candidate.state
            if state is None:
                if key in taken:
                    continue
                state = self.constraint.advance(self.states[candidate.beam], candidate.token)
            if (key, state) in seen or self.constraint.n_needed(state) > n_left:
                continue
            seen.add((key, state))
            n_missing = self.constraint.n_missing(state)
            if places.get(n_missing):
                places[n_missing] -= 1
            elif k:
                k -= 1
            else:
                spare.append((candidate, state, key))
                continue
            taken.add(key)
            chosen.append((candidate, state, key))
        chosen += spare[: width - len(chosen)]
        self.states, self.keys = [state for _, state, _ in chosen], [key for *_, key in chosen]
        return [candidate for candidate, *_ in chosen]


class ConstrainedSelection:
    """A :class:`Selection` that keeps beams for every number of phrases, and allows EOS when all are there.

    It is a :class:`Processor` too, the first of a search: the tokens of phrases keep the model's probabilities,
    whatever other rules forbid.
    """

    def __init__(
        self, constraints: Sequence[Constraint], prefix_lengths: Sequence[int], limits: Sequence[int], beam_size: int
    ) -> None:
        """Start with one beam for each of B sentences; see :func:`constrained_search`."""
        self._k = beam_size
        self.beam_size = max(constrained_width(beam_size, constraint.n_phrases) for constraint in constraints)
        of_sentences = zip(constraints, prefix_lengths, limits, strict=True)
        self._sentences = [_Sentence(*values, states=[0], keys=[0]) for values in of_sentences]
        self._forced: list[list[_Continuation]] = []  # of each sentence of the step, before the log probabilities

    def __call__(self, prefixes: Prefixes, log_probs: Tensor) -> Tensor:
        """Note the probabilities of what each beam can open or continue."""
        places: list[tuple[int, int, int]] = []  # sentence of the step, beam, token
        states: list[int] = []  # after the token
        for n, sentence in enumerate(self._of(prefixes)):
            if prefixes.length >= sentence.prefix_length:
                for beam, state in enumerate(sentence.states):
                    for token, after in sentence.constraint.forced(state):
                        places.append((n, beam, token))
                        states.append(after)
        self._forced = [[] for _ in prefixes.sentences]
        if places:
            found = log_probs[torch.tensor(places, device=log_probs.device).unbind(dim=1)].tolist()
            for (n, beam, token), state, log_prob in zip(places, states, found, strict=True):
                self._forced[n].append(_Continuation(log_prob, beam, token, log_prob, state))
        return log_probs

    def select(self, beams: Beams, log_probs: Tensor) -> tuple[Candidates, Tensor]:
        """Choose among the likeliest continuations of each beam and those that open or continue a phrase."""
        likeliest = log_probs.topk(min(self._k + 1, log_probs.size(2)))  # one of them may be EOS
        of_sentences = zip(
            self._of(beams.prefixes),
            beams.log_probs.tolist(),
            likeliest.values.tolist(),
            likeliest.indices.tolist(),
            self._forced,
            strict=True,
        )
        rows = []
        for sentence, *found in of_sentences:
            candidates, ended = sentence.continuations(*found)
            n_left = sentence.limit - beams.prefixes.length - 1
            chosen = sentence.choose(candidates, self._k, self.beam_size, n_left)
            rows.append(_padded(chosen, self.beam_size) + _padded(ended, self.beam_size))
        order = torch.arange(self.beam_size, device=log_probs.device).expand(len(rows), -1)
        return _as_tensors(rows, log_probs.device), order

    def _of(self, prefixes: Prefixes) -> list[_Sentence]:
        """Return the sentences of a step."""
        return [self._sentences[i] for i in prefixes.sentences.tolist()]


def _padded(continuations: list[_Continuation], n: int) -> list[_Continuation]:
    return [*continuations, *[_NONE] * (n - len(continuations))]


def _as_tensors(rows: list[list[_Continuation]], device: torch.device) -> Candidates:
    """Turn candidates (n, C) into tensors."""
    ids = torch.tensor([[(c.beam, c.token) for c in row] for row in rows], device=device)  # (n, C, 2)
    log_probs = torch.tensor([[(c.log_prob, c.token_log_prob) for c in row] for row in rows], device=device)
    return Candidates(log_probs[..., 0], ids[..., 0], ids[..., 1], log_probs[..., 1])
