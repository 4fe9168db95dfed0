"""The engine that computes with CTranslate2. Nothing here imports torch.

It searches with settings that make its hypotheses ours: no length penalty, so that its scores are sums of log
probabilities, and more finished hypotheses than asked for, of which our ranking takes the best. Their log probabilities
are then computed again by teacher forcing, over the whole vocabulary. A batch of searches goes this way (``_search``)::

    requests    ── _greedy or _beams ──>  candidates of each, as CTranslate2 returns them
    candidates  ── _corrected ─────────>  those of a sentence searched again alone, where they are too long or forbidden
    candidates  ── _best ──────────────>  hypotheses; most have no log probabilities of their tokens yet
    hypotheses  ── _scored ────────────>  hypotheses that all have them
    hypotheses  ── _ranked ────────────>  the best of each sentence, by our penalty of length
"""

import math
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from mtformer.config import SearchOptions
from mtformer.engines.batched import BatchedEngine
from mtformer.engines.ctranslate2 import require_supported
from mtformer.engines.ctranslate2.folder import ExportedModel
from mtformer.engines.ctranslate2.model import Model
from mtformer.search.engine import (
    AlignRequest,
    PairRequest,
    Request,
    ScoreRequest,
    SearchRequest,
    fill_batches,
    longest_first,
)
from mtformer.search.hypothesis import NO_HYPOTHESIS, PREDICTS_NAN, Hypothesis, ranked
from mtformer.support.errors import MtformerError, UserError
from mtformer.support.processes.workers import by_threads

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PATIENCE = 1.5  # a sentence ends when this many times the beam size of hypotheses are finished (docs/delivery.md)
_BATCH_TOKENS = 512  # larger batches leave the processor's cache
_MAPPED_SENTENCES = 32  # a batch takes the target tokens that any of its sentences may need
_SCORING_CELLS = 2**23  # of a batch's log probabilities: tokens times vocabulary, 32 MiB
_IMPOSSIBLE = -1e9  # CTranslate2's scores of hypotheses that do not start with the prefix are below


class _Candidate(NamedTuple):
    """A hypothesis as CTranslate2 returns it.

    Attributes:
        ids: its tokens, without EOS.
        score: the sum of their log probabilities and that of EOS.
        log_probs: each of these, where CTranslate2 says them.
        is_exact: whether these are the model's.
    """

    ids: list[int]
    score: float
    log_probs: list[float]
    is_exact: bool


_Decode = Callable[..., list[list[_Candidate]]]  # of requests: _greedy or _beams


class CTranslate2Engine(BatchedEngine):
    """A model exported for CTranslate2.

    Attributes:
        compute_type: CTranslate2's name for the types that it computes with, as in ``int8_float32``.
    """

    def __init__(
        self, model: ExportedModel, *, device: str = "cpu", precision: str = "fp32", n_threads: int | None = None
    ) -> None:
        """Load the model of an exported folder.

        Args:
            model: the folder, and what it says of the model.
            device: ``cpu`` or ``cuda``.
            precision: ``int8`` quantizes weights that are stored otherwise; ``fp32`` computes as they are stored.
            n_threads: how many batches of one call a CPU computes at once; None for one on each core.

        Raises:
            EngineError: CTranslate2 cannot load it.
        """
        tokenizer = model.tokenizer
        self._model = Model(model.path, tokenizer, device, precision)
        self.compute_type = self._model.compute_type
        self._n_positions, self._precision = model.n_positions, precision
        self._aligns_reading = model.header.alignment_group[0].reading
        self._vocab_size, self._never = tokenizer.tgt_vocab_size, frozenset(tokenizer.special_ids.never)
        self._n_workers = min(self._model.n_workers, n_threads or self._model.n_workers)

    def require_supported(self, options: SearchOptions) -> None:
        """Refuse options that CTranslate2 cannot do; see :class:`mtformer.search.engine.Engine`."""
        require_supported(options)
        if options.precision != self._precision:
            raise UserError(f"this model was loaded with precision = {self._precision}: load it again for another one")

    def _require_possible(self, request: Request[Any]) -> None:
        """Refuse options and constraints, and a text that needs more positions than the model has tables for."""
        super()._require_possible(request)
        assert isinstance(request, SearchRequest | PairRequest)
        if not isinstance(request, SearchRequest):
            longest = max(len(request.src), len(request.tgt) + 1)
        elif request.constraint is None:
            longest = max(len(request.src), request.effective_limit + 1)
        else:
            raise UserError("CTranslate2 has no constraints: use --engine torch")
        longest += len(request.forced)
        if self._n_positions is not None and longest > self._n_positions:
            raise UserError(
                f"a text may take {longest:,} tokens, but the exported model has {self._n_positions:,} positions: "
                "lower search.max_length_factor, or use --engine torch"
            )

    def _forced_batches(self, requests: Sequence[PairRequest[Any]]) -> list[list[int]]:
        """Divide requests into batches of similar length."""
        if requests and isinstance(requests[0], AlignRequest):
            lengths = [len(request.src) + len(request.tgt) for request in requests]
            budget = _BATCH_TOKENS
        else:
            lengths = [max(len(request.src), len(request.tgt) + 1) for request in requests]
            budget = max(1, _SCORING_CELLS // self._vocab_size)
        return fill_batches(longest_first(lengths), lengths, budget)

    def _map(self, batches: Sequence[Sequence[Request[Any]]]) -> Generator[list[Any], None, None]:
        """Run batches side by side, one for each worker of the model, and yield their results in order."""
        n_workers = min(self._n_workers, len(batches))
        if n_workers <= 1:
            yield from map(self._run, batches)
            return
        workers = ThreadPoolExecutor(n_workers)
        try:
            yield from by_threads(workers, self._run, batches)
        finally:
            # Not joined: if another Ctrl-C interrupts a join, Python takes the thread for ended, shuts down while it
            # translates, and aborts.
            workers.shutdown(wait=False)

    def _score(self, requests: Sequence[ScoreRequest]) -> list[list[float]]:
        """Score one batch by teacher forcing."""
        return self._model.score(requests)

    def _align(self, requests: Sequence[AlignRequest]) -> "list[NDArray[np.float32]]":
        """Align one batch by the heads of one layer that were exported for it."""
        return self._model.align(requests, reading=self._aligns_reading)

    def _search_batches(self, requests: Sequence[SearchRequest]) -> list[list[int]]:
        """Divide searches into batches: sentences that the vocabulary map covers, and others.

        Which sentences share a batch with a map matters for their translations: it must not depend on the machine.
        """
        lengths = [len(request.src) for request in requests]
        order = longest_first(lengths)
        budget = min(_BATCH_TOKENS, requests[0].options.batch_tokens)
        share = sum(lengths) // self._n_workers  # a batch for each worker at least
        is_mapped = list(map(self._model.is_mapped, requests))
        batches = fill_batches([i for i in order if not is_mapped[i]], lengths, max(1, min(budget, share)))
        for batch in fill_batches([i for i in order if is_mapped[i]], lengths, budget):
            batches += [batch[i : i + _MAPPED_SENTENCES] for i in range(0, len(batch), _MAPPED_SENTENCES)]
        return batches

    def _search(self, requests: Sequence[SearchRequest]) -> list[list[Hypothesis]]:
        """Translate one batch, whose sentences are all mapped or all not."""
        decode = self._greedy if requests[0].options.beam_size == 1 else self._beams
        decoded = zip(requests, decode(requests), strict=True)
        candidates = [self._corrected(request, found, decode) for request, found in decoded]
        hypotheses = self._scored(requests, list(map(self._best, requests, candidates)))
        return list(map(_ranked, hypotheses, requests))

    def _corrected(self, request: SearchRequest, candidates: list[_Candidate], decode: _Decode) -> list[_Candidate]:
        """Return the candidates of one sentence, searched again where the others' limit or CTranslate2 spoiled them."""
        limit = request.effective_limit
        if limit == 0:  # CTranslate2 chooses one token at least
            candidates = [_Candidate([], 0.0, [], is_exact=False)]
        elif any(len(candidate.ids) > limit for candidate in candidates):
            [candidates] = decode([request])
        if any(not self._never.isdisjoint(candidate.ids) for candidate in candidates):
            [candidates] = decode([request], suppress=True)
        return candidates

    def _greedy(self, requests: Sequence[SearchRequest], *, suppress: bool = False) -> list[list[_Candidate]]:
        """Return one candidate for each sentence."""
        limits, n_forced = [request.effective_limit for request in requests], len(requests[0].forced)
        log_probs: list[list[float]] = [[] for _ in requests]

        def take(step: Any) -> bool:
            """Store the log probability of a token, and end the sentence at its limit."""
            log_probs[step.batch_id].append(step.log_prob)
            return len(log_probs[step.batch_id]) >= n_forced + limits[step.batch_id]

        results = self._model.search(requests, max(limits), suppress=suppress, callback=take)
        is_exact = _is_exact(requests[0].options, suppress=suppress)
        return [
            [_Candidate(ids[:limit], sum(of_tokens), of_tokens, is_exact)]
            for [(ids, _)], limit, of_tokens in zip(results, limits, log_probs, strict=True)
        ]

    def _beams(self, requests: Sequence[SearchRequest], *, suppress: bool = False) -> list[list[_Candidate]]:
        """Return the finished candidates of each sentence, which may be longer than its limit if another's is higher.

        A sentence whose candidates all keep to its limit would have had the same with that limit for all.
        """
        beam_size = requests[0].options.beam_size
        n_finished = round(_PATIENCE * beam_size)
        results = self._model.search(
            requests,
            max(request.effective_limit for request in requests),
            suppress=suppress,
            beam_size=beam_size,
            num_hypotheses=n_finished,
            patience=n_finished / beam_size,
        )
        is_exact = _is_exact(requests[0].options, suppress=suppress)
        return [
            [
                _Candidate(ids, score, [], is_exact)
                for ids, score in found
                if not score < _IMPOSSIBLE  # NaN is noticed when it is scored
            ]
            for found in results
        ]

    def _best(self, request: SearchRequest, candidates: Sequence[_Candidate]) -> list[Hypothesis]:
        """Return the best candidates of a sentence, with the model's log probabilities where CTranslate2 says them.

        CTranslate2's scores lack the tokens of prefixes, and EOS where the limit ended a candidate. Where that may
        change the order, all candidates are returned.
        """
        is_complete = not (request.prefix or request.forced)
        is_complete = is_complete and all(len(candidate.ids) < request.effective_limit for candidate in candidates)
        best = list(candidates)
        if is_complete:
            penalty = request.options.penalty
            best.sort(key=lambda candidate: -candidate.score / penalty(len(candidate.ids) + 1))
            best = best[: request.options.n_candidates]
        is_exact = is_complete and all(candidate.is_exact for candidate in best)
        does_without = is_exact and len(best) == 1 and not request.token_log_probs
        return [
            Hypothesis(
                candidate.ids,
                candidate.log_probs if is_exact else [],
                summed=candidate.score if does_without else None,
            )
            for candidate in best
        ]

    def _scored(self, requests: Sequence[SearchRequest], found: Sequence[list[Hypothesis]]) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence with the log probabilities of their tokens."""
        unscored = [
            ScoreRequest(request.src, hypothesis.ids, request.forced)
            for request, hypotheses in zip(requests, found, strict=True)
            for hypothesis in hypotheses
            if _needs_scores(hypothesis)
        ]
        scores: list[list[float]] = [[] for _ in unscored]
        for batch in self._forced_batches(unscored):
            for i, log_probs in zip(batch, self._score([unscored[i] for i in batch]), strict=True):
                scores[i] = log_probs
        remaining = iter(scores)
        return [
            [each._replace(token_log_probs=next(remaining)) if _needs_scores(each) else each for each in hypotheses]
            for hypotheses in found
        ]


def _needs_scores(hypothesis: Hypothesis) -> bool:
    return not hypothesis.token_log_probs and hypothesis.summed is None


def _is_exact(options: SearchOptions, *, suppress: bool) -> bool:
    """Tell whether CTranslate2's log probabilities are the model's: forbidding tokens changes those of all others."""
    has_rules = options.repetition_penalty > 1 or options.no_repeat_ngram_size or options.min_length
    return not (suppress or has_rules)


def _ranked(hypotheses: Sequence[Hypothesis], request: SearchRequest) -> list[Hypothesis]:
    """Return the ``n_candidates`` best hypotheses.

    Raises:
        MtformerError: the model predicts NaN, or no hypothesis is possible.
    """
    if any(math.isnan(hypothesis.log_prob) for hypothesis in hypotheses):
        raise MtformerError(PREDICTS_NAN)
    best = ranked(hypotheses, request.options.penalty)[: request.options.n_candidates]
    if not best or best[0].log_prob == -math.inf:
        raise MtformerError(NO_HYPOTHESIS)
    return best
