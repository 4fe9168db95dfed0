"""Beam search: at each step, continue the K likeliest prefixes of every sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from mtformer.config import SearchOptions
from mtformer.search.candidates import Candidates, SearchObserver, SearchStep, likeliest
from mtformer.search.decoder import Decoder
from mtformer.search.hypothesis import NO_HYPOTHESIS, Hypothesis, ranked
from mtformer.search.processors import Prefixes, Processor, next_log_probs, without_nan
from mtformer.support.errors import MtformerError


def beam_search(
    decoder: Decoder,
    limits: Sequence[int],
    options: SearchOptions,
    processors: Sequence[Processor],
    observer: SearchObserver | None = None,
    selection: "Selection | None" = None,
) -> list[list[Hypothesis]]:
    """Decode B sentences side by side, each with K beams.

    Each step selects continuations of a sentence's beams: some that end in EOS are finished, and K others are the next
    beams. A sentence ends, and leaves the batch, when no beam can still lead to one of its best hypotheses; or, as in
    transformers, when K are finished and no beam at its present length has a better score than the worst of these.

    Args:
        decoder: at its start, with B sentences.
        limits: the maximum length of each sentence's hypotheses in tokens, EOS not counted.
        options: beam size, length penalty and how many hypotheses to find.
        processors: applied to each step in order; they must enforce ``limits``.
        observer: called with each step.
        selection: chooses the continuations; by default :class:`Likeliest`, with K = ``options.beam_size``.

    Returns:
        For each sentence its finished hypotheses, best first: at least one, at most ``options.n_candidates``.

    Raises:
        MtformerError: the model predicts NaN, or no hypothesis is possible.
    """
    finished = _Finished(limits, options, decoder)
    selection = selection or Likeliest(options.beam_size, decoder.special_ids.eos)
    beams = _start(decoder, len(limits), selection.beam_size)
    while len(beams.prefixes.sentences):
        log_probs, own = next_log_probs(decoder, beams.prefixes, [without_nan, *processors])  # (n, K, V)
        candidates, ended, chosen = selection.select(beams, log_probs)
        if own is not log_probs:
            candidates = _with_own(candidates, own)
        finished.collect(beams, candidates, ended, penalized=own is not log_probs)
        if observer is not None:
            observer(SearchStep(beams.prefixes, candidates, chosen, ended))
        beams = _continue(decoder, beams, candidates, chosen, finished.least(beams.prefixes.length + 1))
    return finished.hypotheses()


@dataclass(frozen=True)
class Beams:
    """The state of the n sentences that have not ended.

    Attributes:
        prefixes: of the K beams.
        token_log_probs: (n, K, t - 1) of the tokens after the start.
        log_probs: (n, K) their sums, less penalties; -inf where a sentence has fewer prefixes than beams.
    """

    prefixes: Prefixes
    token_log_probs: Tensor
    log_probs: Tensor


class Selection(Protocol):
    """The choice of the beams to continue.

    Attributes:
        beam_size: K at the start of the search.
    """

    beam_size: int

    def select(self, beams: Beams, log_probs: Tensor) -> tuple[Candidates, Tensor, Tensor]:
        """Choose continuations by the log probabilities (n, K, V) of the next token.

        Returns:
            Candidates (n, C); which of them (n, C), all with EOS, are finished; and (n, K'), which of them are the next
            beams; K' may be another number in each step. A beam whose candidate ends in EOS or has the log probability
            -inf is not continued.
        """
        ...


class Likeliest:
    """The usual selection: of the 2K likeliest continuations, the first K without EOS are kept.

    EOS ends a translation if it is among the K likeliest, as in transformers, fairseq and CTranslate2.
    """

    def __init__(self, beam_size: int, eos: int) -> None:
        self.beam_size, self._eos = beam_size, eos

    def select(self, beams: Beams, log_probs: Tensor) -> tuple[Candidates, Tensor, Tensor]:
        """Choose the best; of equal ones, any."""
        k, vocab_size = log_probs.shape[1:]
        totals, parents, tokens = likeliest(log_probs, beams.log_probs, 2 * k)
        token_log_probs = log_probs.flatten(1).gather(1, parents * vocab_size + tokens)
        is_eos = tokens == self._eos
        ended = is_eos & (torch.arange(2 * k, device=tokens.device) < k)
        chosen = is_eos.byte().argsort(dim=1, stable=True)[:, :k]
        return Candidates(totals, parents, tokens, token_log_probs), ended, chosen


class _Finished:
    """The K best finished hypotheses of B sentences."""

    def __init__(self, limits: Sequence[int], options: SearchOptions, decoder: Decoder) -> None:
        self._k, self._n_best, self._penalty = options.beam_size, options.n_candidates, options.penalty
        self._best: list[list[Hypothesis]] = [[] for _ in limits]
        self._of_longest = torch.tensor([self._penalty(limit + 1) for limit in limits], device=decoder.device)  # (B,)
        self._last = torch.full_like(self._of_longest, float("-inf"))  # (B,) the score of the last of the n_candidates
        self._worst = self._last.clone()  # (B,) that of the last of K; -inf while there are fewer

    def collect(self, beams: Beams, candidates: Candidates, ended: Tensor, *, penalized: bool) -> None:
        """Add the candidates that have ended (n, C) and are among the best."""
        sentences, ids = beams.prefixes.sentences, beams.prefixes.ids
        scores = candidates.log_probs / self._penalty(ids.size(2))  # ids hold the start instead of EOS
        rows, columns = (ended & (scores > self._worst[sentences, None])).nonzero(as_tuple=True)
        if not len(rows):
            return
        parents = candidates.beams[rows, columns]
        last = candidates.token_log_probs[rows, columns]
        token_log_probs = torch.cat([beams.token_log_probs[rows, parents], last[:, None]], dim=1)
        totals = token_log_probs.sum(dim=1)
        penalties = totals - candidates.log_probs[rows, columns] if penalized else torch.zeros_like(totals)
        hypotheses = map(Hypothesis, ids[rows, parents, 1:].tolist(), token_log_probs.tolist(), penalties.tolist())
        for sentence, hypothesis in zip(sentences[rows].tolist(), hypotheses, strict=True):
            best = self._best[sentence] = ranked([*self._best[sentence], hypothesis], self._penalty)[: self._k]
            if len(best) >= self._n_best:
                self._last[sentence] = best[self._n_best - 1].score(self._penalty)
            if len(best) == self._k:
                self._worst[sentence] = best[-1].score(self._penalty)

    def least(self, length: int) -> Tensor:
        """Return the log probability (B,) that a beam of ``length`` tokens must exceed for its sentence to go on.

        What a beam leads to is not likelier than the beam itself and not longer than the limit, so that its score is
        at most the beam's log probability over the penalty of that length.
        """
        return torch.maximum(self._last * self._of_longest, self._worst * self._penalty(length))

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Return the ``n_candidates`` best hypotheses of each sentence, best first.

        Raises:
            MtformerError: a sentence has none, since every continuation has probability 0.
        """
        if not all(self._best):
            raise MtformerError(NO_HYPOTHESIS)
        return [best[: self._n_best] for best in self._best]


def _with_own(candidates: Candidates, own: Tensor) -> Candidates:
    """Return the candidates with the model's own log probabilities (n, K, V) of their tokens."""
    places = candidates.beams * own.size(2) + candidates.tokens
    return candidates._replace(token_log_probs=own.flatten(1).gather(1, places))


def _start(decoder: Decoder, n_sentences: int, k: int) -> Beams:
    """Give each sentence K beams. All start alike, so that only the first counts."""
    sentences = torch.arange(n_sentences, device=decoder.device)
    decoder.select(sentences, sentences.new_zeros(n_sentences, k))
    ids = sentences.new_full((n_sentences, k, 1), decoder.special_ids.start)
    log_probs = torch.full((n_sentences, k), float("-inf"), device=decoder.device)
    log_probs[:, 0] = 0.0
    token_log_probs = torch.empty(n_sentences, k, 0, device=decoder.device)
    return Beams(Prefixes(ids, sentences), token_log_probs, log_probs)


def _continue(decoder: Decoder, beams: Beams, candidates: Candidates, order: Tensor, least: Tensor) -> Beams:
    """Return the next beams of the sentences whose likeliest beam exceeds the log probability ``least`` (B,)."""
    k = beams.log_probs.size(1)
    chosen = Candidates(*(values.gather(1, order) for values in candidates))  # (n, K) each
    log_probs = chosen.log_probs.masked_fill(chosen.tokens == decoder.special_ids.eos, float("-inf"))
    sentences, ids = beams.prefixes.sentences, beams.prefixes.ids
    kept = (log_probs.max(dim=1).values > least[sentences]).nonzero()[:, 0]  # (n',)
    rows = kept[:, None] * k + chosen.beams[kept]  # (n', K)
    decoder.select(kept, chosen.beams[kept])
    return Beams(
        Prefixes(torch.cat([ids.flatten(0, 1)[rows], chosen.tokens[kept, :, None]], dim=2), sentences[kept]),
        torch.cat([beams.token_log_probs.flatten(0, 1)[rows], chosen.token_log_probs[kept, :, None]], dim=2),
        log_probs[kept],
    )
