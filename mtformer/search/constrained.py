"""Beam search whose translations contain given phrases.

As in dynamic beam allocation (Post and Vilar 2018), the beams with the same number of missing phrases form a bank, and
every bank keeps a beam. Unlike there, the likeliest K beams always stay, as in plain beam search, so that a translation
which contains the phrases anyway is found as without constraints; each bank that none of them is in keeps its likeliest
beam besides. A beam that opens a phrase moves to the next bank at once. It then spells the phrase token by token,
unless its other continuations are likelier.

For example, a search with K = 2 translates "The dog sleeps." with the phrase *Köter*, whose tokens are ``▁Kö ter``. Its
beams are "Der" and "Ein", and the candidates of the next step, likeliest first:

    ===========  =========  ======  =================================================
    candidate    n_missing  chosen
    ===========  =========  ======  =================================================
    Der Hund     1          yes     the likeliest
    Ein Hund     1          yes     the second of K
    Der schläft  1          no      not among the K likeliest
    Der Kö       0          yes     opens the phrase, and is the likeliest of its bank
    Ein Kö       0          no      the bank has a beam
    ===========  =========  ======  =================================================

The next step has three beams. Only "Der Kö" can become a finished translation; the others may open the phrase later.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mtformer.data.batches import pad
from mtformer.search.beam import Beams
from mtformer.search.candidates import Candidates, likeliest
from mtformer.search.constraints import Constraint, State, Way
from mtformer.search.engine import SearchRequest
from mtformer.search.processors import Prefixes


def constrained_width(beam_size: int, constraint: Constraint) -> int:
    """Return the most beams that a sentence has: K, and one for each phrase, rounded up to an even number."""
    return beam_size + 2 * -(-constraint.n_phrases // 2)


_Opening = tuple[int, Way]  # a beam, and a phrase that it opens or continues
_Candidate = tuple[float, int, int, int]  # log probability of the prefix, number, beam, token
_INFINITE = float("inf")


class _Beam(NamedTuple):
    """A beam of a sentence.

    Attributes:
        text: a hash of its tokens.
        state: that of the constraint.
    """

    text: int
    state: State


class _Room:
    """The room for the next beams of a sentence: any K, and the likeliest in each bank within reach.

    A bank is within reach if a beam is in it or has one phrase more to go. The last bank, where all phrases are
    missing, needs no beam of its own.
    """

    def __init__(self, beam_size: int, beams: Iterable[_Beam], n_phrases: int) -> None:
        banks = {beam.state.n_missing for beam in beams}
        self._n_free = beam_size
        self._empty = {*banks, *(bank - 1 for bank in banks if bank)} - {n_phrases}

    def is_full(self) -> bool:
        """Tell whether no beam would be kept."""
        return not (self._n_free or self._empty)

    def takes(self, bank: int) -> bool:
        """Tell whether a beam in this bank would be kept."""
        return self._n_free > 0 or bank in self._empty

    def fill(self, bank: int) -> None:
        """Keep a beam in this bank."""
        self._n_free = max(0, self._n_free - 1)
        self._empty.discard(bank)


class _Sentence:
    """A sentence and its beams.

    Attributes:
        constraint: what its translations must contain.
        prefix_length: how many tokens they start with that are given.
        limit: their maximum length, EOS not counted.
        options: how to search.
        beams: its beams.
        scores: those of the ``n_candidates`` best finished hypotheses.
    """

    def __init__(self, request: SearchRequest) -> None:
        """Start with the empty translation."""
        assert request.constraint is not None
        self.constraint, self.options = request.constraint, request.options
        self.prefix_length, self.limit = len(request.prefix), request.effective_limit
        self.beams = [_Beam(0, self.constraint.start)]
        self.scores: list[float] = []

    def openings(self, length: int) -> list[_Opening]:
        """Return the phrases that beams of ``length`` tokens can open or continue."""
        if length < self.prefix_length:
            return []
        ways = self.constraint.ways
        return [(i, way) for i, beam in enumerate(self.beams) for way in ways(beam.state)]

    def finish(self, log_probs: Sequence[float], length: int) -> list[int]:
        """Return the beams that are complete translations, and note their scores.

        Args:
            log_probs: those of the beams with EOS.
            length: the number of tokens, EOS included.
        """
        finished = [i for i, beam in enumerate(self.beams) if beam.state.is_met]
        if finished:
            penalty = self.options.penalty(length)
            scores = [log_probs[i] / penalty for i in finished]
            self.scores = sorted([*self.scores, *scores], reverse=True)[: self.options.n_candidates]
        return finished

    def choose(self, candidates: Iterable[_Candidate], openings: Sequence[_Opening], length: int) -> list[int]:
        """Choose the next beams, the best that there is :class:`_Room` for, and continue with them.

        Those are left out that have the same tokens as one before, and those from which no hypothesis can be reached.

        Args:
            candidates: best first; at equal probability, those that open or continue a phrase first.
            openings: what the first of all numbers stand for; the others neither open nor continue a phrase.
            length: that of the candidates, in tokens.

        Returns:
            The places of those chosen among ``candidates``.
        """
        room = _Room(self.options.beam_size, self.beams, self.constraint.n_phrases)
        chosen: dict[_Beam, int] = {}  # and their places
        texts: set[int] = set()
        for place, (log_prob, number, parent, token) in enumerate(candidates):
            if log_prob == -_INFINITE or room.is_full():
                break
            way = openings[number][1] if number < len(openings) else None
            beam = self._continued(self.beams[parent], token, way, room, texts)
            if beam is None or beam in chosen or not room.takes(beam.state.n_missing):
                continue
            if self._is_promising(log_prob, beam.state, length):
                room.fill(beam.state.n_missing)
                chosen[beam] = place
                texts.add(beam.text)
        self.beams = list(chosen)
        return list(chosen.values())

    def _continued(self, beam: _Beam, token: int, way: Way | None, room: _Room, texts: set[int]) -> _Beam | None:
        """Return a beam with one more token; None if there is no room where it leads.

        Outside of a phrase, the same tokens need no second beam, and a beam would reach the next bank only by chance.
        """
        text, bank = hash((beam.text, token)), beam.state.n_missing
        if way is not None and (room.takes(bank) or room.takes(bank - 1)):
            return _Beam(text, self.constraint.force(beam.state, way))
        if way is None and room.takes(bank) and text not in texts:
            return _Beam(text, self.constraint.advance(beam.state, token))
        return None

    def _is_promising(self, log_prob: float, state: State, length: int) -> bool:
        """Tell whether all phrases fit in the limit, and can do so with a score that is among the best.

        It is the score of the hypothesis that ends with the last phrase, if nothing more had to be paid. A longer one
        might have a better score, in theory, since the length penalty favours it.
        """
        length += state.n_needed
        if length > self.limit:
            return False
        if len(self.scores) < self.options.n_candidates:
            return True
        return log_prob / self.options.penalty(length + 1) > self.scores[-1]


class ConstrainedSelection:
    """A :class:`.Selection` that keeps beams for every number of phrases, and allows EOS when all are there.

    It is a :class:`.Processor` too, the first of a search: the tokens of phrases keep the model's probabilities,
    whatever other rules forbid.
    """

    beam_size = 1  # at the start; each step goes on with as many as its sentences need

    def __init__(self, requests: Sequence[SearchRequest], eos: int) -> None:
        """Start with one beam for each of B sentences.

        Args:
            requests: the sentences, each with a constraint, all with the same options. Their prefixes are forced by
                another processor, and no phrase is opened among these tokens.
            eos: the id that ends translations.
        """
        self._eos = eos
        self._n_candidates = requests[0].options.beam_size + 1  # of each beam; one of them may be EOS
        self._sentences = list(map(_Sentence, requests))
        self._openings: list[list[_Opening]] = []  # of each sentence of the step
        self._opened: list[Tensor] = []  # (n, F) each: the log probability, beam and token of each of these

    def __call__(self, prefixes: Prefixes, log_probs: Tensor) -> Tensor:
        """Note the probabilities of the phrases that each beam can open or continue."""
        self._openings = [sentence.openings(prefixes.length) for sentence in self._of(prefixes)]
        vocab_size = log_probs.size(2)
        places = [[beam * vocab_size + way.ids[0] for beam, way in openings] for openings in self._openings]
        padded = pad(places, -1, 1).to(log_probs.device)  # (n, F) in the rows of (n, K·V)
        chosen = padded.clamp(min=0)
        of_tokens = log_probs.flatten(1).gather(1, chosen).masked_fill_(padded < 0, -_INFINITE)
        self._opened = [of_tokens, chosen // vocab_size, chosen % vocab_size]
        return log_probs

    def select(self, beams: Beams, log_probs: Tensor) -> tuple[Candidates, Tensor, Tensor]:
        """Choose among the likeliest continuations of each beam and those that open or continue a phrase."""
        continuations, numbers = self._continuations(beams, log_probs)  # (n, C)
        ended = _ended(beams, log_probs, self._eos)  # (n, K)
        columns = ended.log_probs, continuations.log_probs, numbers, continuations.beams, continuations.tokens
        rows = (column.tolist() for column in columns)
        of_sentences = zip(self._of(beams.prefixes), self._openings, *rows, strict=True)
        chosen, finished, length = list[list[int]](), list[list[int]](), beams.prefixes.length + 1
        for sentence, openings, with_eos, *candidates in of_sentences:
            finished.append(sentence.finish(with_eos, length))
            chosen.append(sentence.choose(zip(*candidates, strict=True), openings, length))
        going_on = _picked(continuations, chosen)  # (n, K')
        both = zip(going_on, _picked(ended, finished), strict=True)
        picked = Candidates(*(torch.cat(values, dim=1) for values in both))
        next_beams = torch.arange(going_on.beams.size(1), device=log_probs.device).expand_as(going_on.beams)
        return picked, picked.tokens == self._eos, next_beams

    def _continuations(self, beams: Beams, log_probs: Tensor) -> tuple[Candidates, Tensor]:
        """Return the candidates that do not end, best first, and their numbers; those of phrases come first."""
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
    padded = pad(places, -1, 1).to(candidates.tokens.device)
    picked = Candidates(*(values.gather(1, padded.clamp(min=0)) for values in candidates))
    return picked._replace(log_probs=picked.log_probs.masked_fill(padded < 0, -_INFINITE))
