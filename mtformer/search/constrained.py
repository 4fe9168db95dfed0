"""Beam search whose translations contain given phrases.

As in dynamic beam allocation (Post and Vilar 2018), the beams with the same number of missing phrases form a bank, and
every bank keeps a beam. Unlike there, the likeliest K beams always stay, as in plain beam search, so that a translation
which contains the phrases anyway is found as without constraints; each bank that none of them is in keeps its likeliest
beam besides. A beam that opens a phrase moves to the next bank at once. It then spells the phrase token by token,
unless its other continuations are likelier.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from mtformer.config import SearchOptions
from mtformer.search.beam import Beams, beam_search
from mtformer.search.constraints import Constraint, Way
from mtformer.search.decoder import Decoder
from mtformer.search.hypothesis import Hypothesis, length_penalty
from mtformer.search.observer import Candidates, SearchObserver
from mtformer.search.processors import Prefixes, Processor
from mtformer.search.topk import likeliest


def constrained_width(beam_size: int, constraint: Constraint) -> int:
    """Return how many beams a sentence has at most: K, and one for each phrase, rounded up to an even number."""
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
        For each sentence its finished hypotheses, best first: at least one, at most ``options.n_candidates``.

    Raises:
        MtformerError: the model predicts NaN, or no hypothesis is possible.
    """
    selection = ConstrainedSelection(constraints, prefix_lengths, limits, options, decoder.special_ids.eos)
    return beam_search(decoder, limits, options, [selection, *processors], observer, selection)


_Forced = tuple[int, Way]  # a beam, and what it can open or continue
_Candidate = tuple[float, int, int, int]  # log probability of the prefix, number, beam, token
_INFINITE = float("inf")


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
        scores: those of the ``n_candidates`` best finished hypotheses.
    """

    constraint: Constraint
    prefix_length: int
    limit: int
    options: SearchOptions
    states: list[int] = field(default_factory=lambda: [0])
    keys: list[int] = field(default_factory=lambda: [0])
    scores: list[float] = field(default_factory=list)

    def forced(self, length: int) -> list[_Forced]:
        """Return what beams of ``length`` tokens can open or continue."""
        if length < self.prefix_length:
            return []
        forced = self.constraint.forced
        return [(beam, way) for beam, state in enumerate(self.states) for way in forced(state)]

    def finish(self, log_probs: Sequence[float], length: int) -> list[int]:
        """Return the beams that are complete translations, and note their scores.

        Args:
            log_probs: those of the beams with EOS.
            length: the number of tokens, EOS included.
        """
        finished = [beam for beam, state in enumerate(self.states) if self.constraint.is_met(state)]
        if finished:
            penalty = length_penalty(length, self.options.length_penalty)
            scores = [log_probs[beam] / penalty for beam in finished]
            self.scores = sorted([*self.scores, *scores], reverse=True)[: self.options.n_candidates]
        return finished

    def choose(self, candidates: Iterable[_Candidate], forced: Sequence[_Forced], length: int) -> list[int]:
        """Choose the next beams and continue with them.

        The best K are chosen, then the best in each bank that none of them is in; a bank is one number of missing
        phrases, and in the last all are missing, which needs no beam of its own. Those are left out that have the same
        tokens as one before, and those from which no hypothesis can be reached.

        Args:
            candidates: best first; at equal probability, those that open or continue a phrase first.
            forced: what the first of all numbers stand for; the others neither open nor continue a phrase.
            length: that of the candidates, in tokens.

        Returns:
            The places of those chosen among ``candidates``.
        """
        n_free, n_missing = self.options.beam_size, self.constraint.n_missing
        banks = [n_missing(state) for state in self.states]
        empty = {*banks, *(bank - 1 for bank in banks if bank)} - {self.constraint.n_phrases}  # those within reach
        chosen, states, keys = list[int](), list[int](), list[int]()
        seen: set[tuple[int, int]] = set()  # keys and states
        taken: set[int] = set()  # keys: the same tokens need no second beam outside of a phrase
        for place, (log_prob, number, beam, token) in enumerate(candidates):
            if log_prob == -_INFINITE or not (n_free or empty):
                break
            is_forced = number < len(forced)
            if not (n_free or banks[beam] in empty or (is_forced and banks[beam] - 1 in empty)):
                continue  # it would have to find a phrase by chance
            key = hash((self.keys[beam], token))
            if is_forced:
                state = self.constraint.force(self.states[beam], forced[number][1])
            elif key not in taken:
                state = self.constraint.advance(self.states[beam], token)
            else:
                continue
            bank = n_missing(state)
            is_wanted = n_free or bank in empty
            if not is_wanted or (key, state) in seen or not self._is_promising(log_prob, state, length):
                continue
            n_free -= n_free > 0
            empty.discard(bank)
            seen.add((key, state))
            taken.add(key)
            chosen.append(place)
            states.append(state)
            keys.append(key)
        self.states, self.keys = states, keys
        return chosen

    def _is_promising(self, log_prob: float, state: int, length: int) -> bool:
        """Tell whether all phrases fit in the limit, and can do so with a score that is among the best.

        It is the score of the hypothesis that ends with the last phrase, if nothing more had to be paid. A longer one
        might have a better score, in theory, since the length penalty favours it.
        """
        length += self.constraint.n_needed(state)
        if length > self.limit:
            return False
        if len(self.scores) < self.options.n_candidates:
            return True
        return log_prob / length_penalty(length + 1, self.options.length_penalty) > self.scores[-1]


class ConstrainedSelection:
    """A :class:`.Selection` that keeps beams for every number of phrases, and allows EOS when all are there.

    It is a :class:`Processor` too, the first of a search: the tokens of phrases keep the model's probabilities,
    whatever other rules forbid.
    """

    beam_size = 1  # at the start; each step goes on with as many as its sentences need

    def __init__(
        self,
        constraints: Sequence[Constraint],
        prefix_lengths: Sequence[int],
        limits: Sequence[int],
        options: SearchOptions,
        eos: int,
    ) -> None:
        """Start with one beam for each of B sentences; see :func:`constrained_search`."""
        self._eos = eos
        self._n_candidates = options.beam_size + 1  # of each beam; one of them may be EOS
        of_sentences = zip(constraints, prefix_lengths, limits, strict=True)
        self._sentences = [_Sentence(*values, options) for values in of_sentences]
        self._forced: list[list[_Forced]] = []  # of each sentence of the step
        self._opened: list[Tensor] = []  # (n, F) each: the log probability, beam and token of each of these

    def __call__(self, prefixes: Prefixes, log_probs: Tensor) -> Tensor:
        """Note the probabilities of what each beam can open or continue."""
        self._forced = [sentence.forced(prefixes.length) for sentence in self._of(prefixes)]
        vocab_size = log_probs.size(2)
        ids = _padded([[beam * vocab_size + way.ids[0] for beam, way in of] for of in self._forced], log_probs.device)
        found = log_probs.flatten(1).gather(1, ids.clamp(min=0)).masked_fill_(ids < 0, -_INFINITE)
        self._opened = [found, ids.clamp(min=0) // vocab_size, ids.clamp(min=0) % vocab_size]
        return log_probs

    def select(self, beams: Beams, log_probs: Tensor) -> tuple[Candidates, Tensor]:
        """Choose among the likeliest continuations of each beam and those that open or continue a phrase."""
        found, order = self._continuations(beams, log_probs)  # (n, C)
        ended = _ended(beams, log_probs, self._eos)  # (n, K)
        of_sentences = zip(
            self._of(beams.prefixes),
            self._forced,
            ended.log_probs.tolist(),
            *(values.tolist() for values in (found.log_probs, order, found.beams, found.tokens)),
            strict=True,
        )
        chosen, finished, length = list[list[int]](), list[list[int]](), beams.prefixes.length + 1
        for sentence, forced, with_eos, *candidates in of_sentences:
            finished.append(sentence.finish(with_eos, length))
            chosen.append(sentence.choose(zip(*candidates, strict=True), forced, length))
        going_on = _picked(found, chosen)  # (n, K')
        both = zip(going_on, _picked(ended, finished), strict=True)
        next_beams = torch.arange(going_on.beams.size(1), device=log_probs.device).expand_as(going_on.beams)
        return Candidates(*(torch.cat(values, dim=1) for values in both)), next_beams

    def _continuations(self, beams: Beams, log_probs: Tensor) -> tuple[Candidates, Tensor]:
        """Return what does not end, best first, and the numbers of these candidates; those of phrases come first."""
        n, k, vocab_size = log_probs.shape
        count = min(self._n_candidates, vocab_size)
        values, _, tokens = likeliest(log_probs.flatten(0, 1)[:, None], log_probs.new_zeros(n * k, 1), count)
        values = values.masked_fill(tokens == self._eos, -_INFINITE)  # (n·K, C)
        parents = torch.arange(k, device=log_probs.device).repeat_interleave(count).expand(n, -1)
        free = values.view(n, -1), parents, tokens.view(n, -1)
        of_tokens, parents, tokens = (torch.cat(both, dim=1) for both in zip(self._opened, free, strict=True))
        totals, order = (beams.log_probs.gather(1, parents) + of_tokens).sort(dim=1, descending=True, stable=True)
        return Candidates(totals, *(values.gather(1, order) for values in (parents, tokens, of_tokens))), order

    def _of(self, prefixes: Prefixes) -> list[_Sentence]:
        """Return the sentences of a step."""
        return [self._sentences[i] for i in prefixes.sentences.tolist()]


def _ended(beams: Beams, log_probs: Tensor, eos: int) -> Candidates:
    """Return the candidates (n, K) that end each beam."""
    of_eos = log_probs[:, :, eos]  # (n, K)
    parents = torch.arange(of_eos.size(1), device=of_eos.device).expand_as(of_eos)
    return Candidates(beams.log_probs + of_eos, parents, torch.full_like(parents, eos), of_eos)


def _picked(candidates: Candidates, places: Sequence[Sequence[int]]) -> Candidates:
    """Return the candidates at the places given for each sentence, and impossible ones where others have more."""
    padded = _padded(places, candidates.tokens.device)
    picked = Candidates(*(values.gather(1, padded.clamp(min=0)) for values in candidates))
    return picked._replace(log_probs=picked.log_probs.masked_fill(padded < 0, -_INFINITE))


def _padded(rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Make a tensor of rows of numbers, filled up with -1; it has one column at least."""
    width = max(1, *map(len, rows))
    return torch.tensor([[*row, *[-1] * (width - len(row))] for row in rows], device=device)
