"""Beam search whose translations contain given phrases.

As in dynamic beam allocation (Post and Vilar 2018), beams compete within banks: those that contain as many of the
phrases. Here the likeliest K beams always go on, as in plain beam search, and each bank has places besides, so that a
translation that contains the phrases anyway is found as without them. A beam that opens a phrase moves to the next bank
at once, and reads it token by token, unless its other continuations are likelier.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from mtformer.config import SearchOptions
from mtformer.search.beam import Beams, beam_search
from mtformer.search.constraints import Constraint
from mtformer.search.decoder import Decoder
from mtformer.search.hypothesis import Hypothesis, length_penalty
from mtformer.search.observer import Candidates, SearchObserver
from mtformer.search.processors import Prefixes, Processor
from mtformer.search.topk import likeliest
from mtformer.text.tokenizer import EOS_ID, PAD_ID


def constrained_width(beam_size: int, constraint: Constraint) -> int:
    """Return how many beams a sentence has: K, and one for each phrase, rounded up to an even number of them."""
    return beam_size + 2 * -(-constraint.n_phrases // 2)


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
    selection = ConstrainedSelection(constraints, prefix_lengths, limits, options)
    return beam_search(decoder, limits, options, [selection, *processors], observer, selection)


class _Forced(NamedTuple):
    """A token that a beam can open or continue a phrase with, its log probability, and the state after it."""

    beam: int
    token: int
    log_prob: float
    state: int


class _Continuation(NamedTuple):
    """A candidate of a sentence; sorting puts the best first.

    Attributes:
        cost: the negative log probability of the whole prefix.
        is_free: whether it neither opens nor continues a phrase.
        beam: the beam that it continues.
        token: the token that it appends.
        token_log_prob: the log probability of that token.
        state: that of the constraint after the token; -1 for the one that :meth:`Constraint.advance` gives.
    """

    cost: float
    is_free: bool
    beam: int
    token: int
    token_log_prob: float
    state: int = -1


_INFINITE = float("inf")
_NONE = _Continuation(_INFINITE, True, 0, PAD_ID, -_INFINITE)


@dataclass
class _Sentence:
    """A sentence and its beams.

    Attributes:
        constraint: what its translations must contain.
        prefix_length: how many tokens they start with that are given.
        limit: their maximum length, EOS not counted.
        options: how to search.
        states: those of the constraint, of each beam.
        keys: for each beam a hash of its tokens.
        scores: those of the ``n_best`` best finished hypotheses.
    """

    constraint: Constraint
    prefix_length: int
    limit: int
    options: SearchOptions
    states: list[int] = field(default_factory=lambda: [0])
    keys: list[int] = field(default_factory=lambda: [0])
    scores: list[float] = field(default_factory=list)

    def continuations(
        self,
        totals: list[float],
        values: list[list[float]],
        tokens: list[list[int]],
        eos: list[float],
        forced: list[_Forced],
    ) -> tuple[list[_Continuation], list[_Continuation]]:
        """Return the candidates of one step, best first, and those that end.

        Args:
            totals: the log probabilities of K beams.
            values: (K, C) the log probabilities of the likeliest next tokens of each, in descending order.
            tokens: (K, C) these tokens.
            eos: (K,) the log probabilities of EOS.
            forced: what else may follow.
        """
        found = [_Continuation(-totals[f.beam] - f.log_prob, False, *f) for f in forced if f.log_prob > -_INFINITE]
        for beam in range(len(self.states)):
            total = totals[beam]
            for value, token in zip(values[beam], tokens[beam], strict=True):
                if value == -_INFINITE:
                    break
                if token != EOS_ID:
                    found.append(_Continuation(-total - value, True, beam, token, value))
        ended = [
            _Continuation(-totals[beam] - eos[beam], True, beam, EOS_ID, eos[beam])
            for beam, state in enumerate(self.states)
            if self.constraint.is_met(state)
        ]
        return sorted(found), ended

    def finish(self, ended: list[_Continuation], length: int) -> None:
        """Note the scores of hypotheses of ``length`` tokens, EOS included."""
        scores = [-c.cost / length_penalty(length, self.options.length_penalty) for c in ended]
        self.scores = sorted([*self.scores, *scores], reverse=True)[: self.options.n_best]

    def choose(self, candidates: list[_Continuation], length: int) -> list[_Continuation]:
        """Choose the next beams and continue with them.

        The best K are chosen, and besides the best in each bank, which is one number of missing phrases. Those are left
        out that have the same tokens as one before, and those from which no hypothesis can be reached.

        Args:
            candidates: best first; at equal probability, those that open or continue a phrase first.
            length: theirs, in tokens.
        """
        n_free, n_phrases = self.options.beam_size, self.constraint.n_phrases
        width = constrained_width(n_free, self.constraint)
        share, more = divmod(width - n_free, n_phrases)
        places = [share + more, *[share] * (n_phrases - 1), 0]  # of each bank; all phrases are missing in the last
        chosen: list[tuple[_Continuation, int, int]] = []
        spare: list[tuple[_Continuation, int, int]] = []
        seen: set[tuple[int, int]] = set()  # keys and states
        taken: set[int] = set()  # keys; what opens or continues a phrase also stands for what does not
        for candidate in candidates:
            if len(chosen) == width:
                break
            key, state = hash((self.keys[candidate.beam], candidate.token)), candidate.state
            if candidate.is_free:
                if key in taken:
                    continue
                state = self.constraint.advance(self.states[candidate.beam], candidate.token)
            if (key, state) in seen or not self._is_promising(candidate.cost, state, length):
                continue
            seen.add((key, state))
            n_missing = self.constraint.n_missing(state)
            if places[n_missing]:
                places[n_missing] -= 1
            elif n_free:
                n_free -= 1
            else:
                spare.append((candidate, state, key))
                continue
            taken.add(key)
            chosen.append((candidate, state, key))
        chosen += spare[: width - len(chosen)]
        self.states, self.keys = [state for _, state, _ in chosen], [key for *_, key in chosen]
        return [candidate for candidate, *_ in chosen]

    def _is_promising(self, cost: float, state: int, length: int) -> bool:
        """Tell whether all phrases fit in the limit, and can do so with a score that is among the best.

        It is the score of the hypothesis that ends with the last phrase, if nothing more had to be paid. A longer one
        might have a better score, in theory, since the length penalty favours it.
        """
        length += self.constraint.n_needed(state)
        if length > self.limit:
            return False
        if len(self.scores) < self.options.n_best:
            return True
        return -cost / length_penalty(length + 1, self.options.length_penalty) > self.scores[-1]


class ConstrainedSelection:
    """A :class:`Selection` that keeps beams for every number of phrases, and allows EOS when all are there.

    It is a :class:`Processor` too, the first of a search: the tokens of phrases keep the model's probabilities,
    whatever other rules forbid.
    """

    def __init__(
        self,
        constraints: Sequence[Constraint],
        prefix_lengths: Sequence[int],
        limits: Sequence[int],
        options: SearchOptions,
    ) -> None:
        """Start with one beam for each of B sentences; see :func:`constrained_search`."""
        self._n_candidates = options.beam_size + 1  # of each beam; one of them may be EOS
        self.beam_size = max(constrained_width(options.beam_size, constraint) for constraint in constraints)
        of_sentences = zip(constraints, prefix_lengths, limits, strict=True)
        self._sentences = [_Sentence(*values, options) for values in of_sentences]
        self._forced: list[list[_Forced]] = []  # of each sentence of the step

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
                self._forced[n].append(_Forced(beam, token, log_prob, state))
        return log_probs

    def select(self, beams: Beams, log_probs: Tensor) -> tuple[Candidates, Tensor]:
        """Choose among the likeliest continuations of each beam and those that open or continue a phrase."""
        rows_of_one = log_probs.flatten(0, 1)[:, None]  # (n·K, 1, V)
        n_candidates = min(self._n_candidates, log_probs.size(2))
        values, _, tokens = likeliest(rows_of_one, log_probs.new_zeros(len(rows_of_one), 1), n_candidates)  # (n·K, C)
        of_sentences = zip(
            self._of(beams.prefixes),
            beams.log_probs.tolist(),
            values.view(*log_probs.shape[:2], -1).tolist(),
            tokens.view(*log_probs.shape[:2], -1).tolist(),
            log_probs[:, :, EOS_ID].tolist(),
            self._forced,
            strict=True,
        )
        rows, length = [], beams.prefixes.length + 1
        for sentence, *found in of_sentences:
            candidates, ended = sentence.continuations(*found)
            sentence.finish(ended, length)
            chosen = sentence.choose(candidates, length)
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
    log_probs = torch.tensor([[(-c.cost, c.token_log_prob) for c in row] for row in rows], device=device)
    return Candidates(log_probs[..., 0], ids[..., 0], ids[..., 1], log_probs[..., 1])
