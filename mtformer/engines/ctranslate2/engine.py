"""The engine that computes with CTranslate2. Nothing here imports torch.

CTranslate2 searches with settings that make its hypotheses ours: no length penalty, so that its scores are sums of log
probabilities, and more finished hypotheses than asked for, of which our ranking takes the best. Their log probabilities
are then computed again by teacher forcing, over the whole vocabulary.
"""

import logging
import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import ctranslate2

from mtformer.config import SearchOptions
from mtformer.data.filling import fill_batches, longest_first
from mtformer.engines.ctranslate2.folder import VOCABULARY_MAP
from mtformer.engines.ctranslate2.support import n_threads, require_supported
from mtformer.search.engine import EngineError, Request
from mtformer.search.hypothesis import NO_HYPOTHESIS, PREDICTS_NAN, Hypothesis, length_penalty, ranked
from mtformer.support.errors import MtformerError, UserError
from mtformer.text.tokenizer.tokenizer import BOS_ID, PAD_ID, UNK_ID, Tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ctranslate2.set_log_level(logging.ERROR)  # its warnings do not look like ours

_PATIENCE = 1.5  # a sentence ends when this many times the beam size of hypotheses are finished (docs/delivery.md)
_BATCH_TOKENS = 2_048  # larger batches leave the processor's cache
_MAPPED_SENTENCES = 32  # a batch takes the target tokens that any of its sentences may need
_SCORING_CELLS = 2**23  # of a batch's log probabilities: tokens times vocabulary, 32 MiB
_IMPOSSIBLE = -1e9  # CTranslate2's scores of hypotheses that do not start with the prefix are below


class _Candidate(NamedTuple):
    """A hypothesis as CTranslate2 returns it.

    Attributes:
        tokens: its tokens, without EOS.
        score: the sum of their log probabilities and that of EOS.
        log_probs: each of these, where CTranslate2 says them.
    """

    tokens: list[str]
    score: float
    log_probs: list[float] | None


class CTranslate2Engine:
    """A model exported for CTranslate2."""

    has_constraints = False

    def __init__(
        self,
        folder: Path,
        tokenizer: Tokenizer,
        *,
        device: str = "cpu",
        n_positions: int | None = None,
        aligns_reading: bool = False,
        precision: str = "fp32",
    ) -> None:
        """Load the model of an exported folder.

        Args:
            folder: where the model is.
            tokenizer: the one that it was trained with.
            device: ``cpu`` or ``cuda``.
            n_positions: the length of the model's tables of positions; None if it has none.
            aligns_reading: whether the heads that align do so in the step that reads a token; see
                :class:`mtformer.bundle.header.AlignmentHead`.
            precision: ``int8`` quantizes weights that are stored otherwise; ``fp32`` computes as they are stored.

        Raises:
            EngineError: CTranslate2 cannot load it.
        """
        self._tokenizer, self._n_positions, self._aligns_reading = tokenizer, n_positions, aligns_reading
        self._precision = precision
        self._n_workers = n_threads() if device == "cpu" else 1
        try:
            model = ctranslate2.Translator(
                str(folder),
                device=device,
                compute_type="int8" if precision == "int8" else "default",
                inter_threads=self._n_workers,
                intra_threads=1,
            )
        except (RuntimeError, ValueError) as error:
            raise EngineError(f"CTranslate2 cannot load {folder}: {error}") from error
        self._models = [model]
        weakref.finalize(self, self._models.clear)  # at exit too, while its threads can still release callbacks
        self._mapped = _mapped_tokens(folder / VOCABULARY_MAP)
        self._forbidden = frozenset(tokenizer.tgt_tokens([PAD_ID, UNK_ID, BOS_ID]))

    @property
    def _model(self) -> Any:
        """The model; the list that it is in ends with the engine or with the program, whichever is first."""
        return self._models[0]

    @property
    def compute_type(self) -> str:
        """CTranslate2's name for the types that it computes with, as in ``int8_float32``."""
        return str(self._model.compute_type)

    def translate(
        self,
        requests: Sequence[Request],
        options: SearchOptions,
        *,
        on_batch: Callable[[Sequence[int]], object] | None = None,
    ) -> list[list[Hypothesis]]:
        """Search in batches of sentences of similar length; see :class:`mtformer.search.engine.Engine`.

        Raises:
            UserError: CTranslate2 does not support an option or a constraint, or a text is longer than its tables of
                positions.
            MtformerError: the model predicts NaN.
        """
        self.require_supported(options)
        if any(request.constraint is not None for request in requests):
            raise UserError("CTranslate2 has no constraints: use --engine torch")
        self._require_positions(
            max((max(len(one.src), one.limit + 1, len(one.prefix) + 1) for one in requests), default=0)
        )
        found: list[list[Hypothesis]] = [[] for _ in requests]

        def search(batch: list[int]) -> list[list[Hypothesis]]:
            return self._search([requests[i] for i in batch], options)

        batches = self._batches(requests, options)
        with self._workers(len(batches)) as workers:
            try:
                for batch, results in zip(batches, (workers.map if workers else map)(search, batches), strict=True):
                    for i, hypotheses in zip(batch, results, strict=True):
                        found[i] = hypotheses
                    if on_batch is not None:
                        on_batch(batch)
            except BaseException:
                if workers:
                    workers.shutdown(wait=False, cancel_futures=True)
                raise
        return found

    def require_supported(self, options: SearchOptions) -> None:
        """Refuse options that CTranslate2 cannot do; see :class:`mtformer.search.engine.Engine`."""
        require_supported(options)
        if options.precision != self._precision:
            raise UserError(f"this model was loaded with precision = {self._precision}: load it again for another one")

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """Score by teacher forcing; see :class:`mtformer.search.engine.Engine`."""
        lengths = [max(len(src), len(tgt) + 1) for src, tgt in zip(sources, targets, strict=True)]
        self._require_positions(max(lengths, default=0))
        scores: list[list[float]] = [[] for _ in sources]
        for batch in fill_batches(
            longest_first(lengths), lengths, max(1, _SCORING_CELLS // self._tokenizer.tgt_vocab_size)
        ):
            results = self._model.score_batch(
                [self._tokenizer.src_tokens(sources[i]) for i in batch],
                [self._tokenizer.tgt_tokens(targets[i]) for i in batch],
                max_input_length=0,
            )
            for i, result in zip(batch, results, strict=True):
                scores[i] = list(result.log_probs)
                if any(map(math.isnan, scores[i])):
                    raise MtformerError(PREDICTS_NAN)
        return scores

    def align(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "list[NDArray[np.float32]]":
        """Align by the heads of one layer that were exported for it; see :class:`mtformer.search.engine.Engine`.

        CTranslate2 gives attention while it decodes, here with the whole target as the prefix.
        """
        import numpy as np  # only for this

        found = [np.empty((len(tgt), len(src)), np.float32) for src, tgt in zip(sources, targets, strict=True)]
        lengths = [len(src) + len(tgt) for src, tgt in zip(sources, targets, strict=True)]
        order = [i for i in longest_first(lengths) if len(targets[i])]
        for batch in fill_batches(order, lengths, _BATCH_TOKENS):
            results = self._model.translate_batch(
                [self._tokenizer.src_tokens(sources[i]) for i in batch],
                [self._tokenizer.tgt_tokens(targets[i]) for i in batch],
                beam_size=1,
                max_input_length=0,
                max_decoding_length=max(len(targets[i]) for i in batch) + 1,
                return_attention=True,
                return_end_token=True,
            )
            for i, result in zip(batch, results, strict=True):
                first = int(self._aligns_reading)
                rows = result.attention[0][first : first + len(targets[i])]
                found[i] = np.array(rows, dtype=np.float32)
        return found

    def _batches(self, requests: Sequence[Request], options: SearchOptions) -> list[list[int]]:
        """Divide the indices of ``requests`` into batches: sentences that the vocabulary map covers, and others.

        Which sentences share a batch with a map matters for their translations: it must not depend on the machine.
        """
        lengths = [len(request.src) for request in requests]
        order = longest_first(lengths)
        share = sum(lengths) // self._n_workers  # a batch for each worker at least
        budget = max(1, min(_BATCH_TOKENS, options.batch_tokens, share))
        is_mapped = [self._is_mapped(request, options) for request in requests]
        batches = fill_batches([i for i in order if not is_mapped[i]], lengths, budget)
        budget = min(_BATCH_TOKENS, options.batch_tokens)
        for batch in fill_batches([i for i in order if is_mapped[i]], lengths, budget):
            batches += [batch[i : i + _MAPPED_SENTENCES] for i in range(0, len(batch), _MAPPED_SENTENCES)]
        return batches

    def _is_mapped(self, request: Request, options: SearchOptions) -> bool:
        """Tell whether the vocabulary map knows every token of a source; it need not allow those of a prefix.

        Greedy search does not use it: scoring its hypotheses over the whole vocabulary would take longer than it saves.
        """
        return (
            self._mapped is not None
            and options.beam_size > 1
            and not request.prefix
            and self._mapped.issuperset(self._tokenizer.src_tokens(request.src))
        )

    def _search(self, requests: Sequence[Request], options: SearchOptions) -> list[list[Hypothesis]]:
        """Translate one batch, whose sentences are all mapped or all not."""
        limits = [max(request.limit, len(request.prefix)) for request in requests]
        decode = self._greedy if options.beam_size == 1 else self._beams
        candidates = decode(requests, limits, options)
        for i, (request, limit) in enumerate(zip(requests, limits, strict=True)):
            if limit == 0:  # CTranslate2 chooses one token at least
                candidates[i] = [_Candidate([], 0.0, None)]
            elif any(len(one.tokens) > limit for one in candidates[i]):
                [candidates[i]] = decode([request], [limit], options)
            if any(not self._forbidden.isdisjoint(one.tokens) for one in candidates[i]):
                [candidates[i]] = decode([request], [limit], options, suppress=True)
        return self._best(requests, limits, candidates, options)

    def _greedy(
        self, requests: Sequence[Request], limits: Sequence[int], options: SearchOptions, *, suppress: bool = False
    ) -> list[list[_Candidate]]:
        """Return one hypothesis for each sentence."""
        log_probs: list[list[float]] = [[] for _ in requests]

        def take(step: Any) -> bool:
            """Store the log probability of a token, and end the sentence at its limit."""
            log_probs[step.batch_id].append(step.log_prob)
            return len(log_probs[step.batch_id]) >= limits[step.batch_id]

        results = self._decode(requests, max(limits), options, suppress=suppress, callback=take)
        has_rules = options.repetition_penalty > 1 or options.no_repeat_ngram_size or options.min_length
        is_exact = not suppress and not has_rules
        return [
            [_Candidate(result.hypotheses[0][:limit], sum(found), found if is_exact else None)]
            for result, limit, found in zip(results, limits, log_probs, strict=True)
        ]

    def _beams(
        self, requests: Sequence[Request], limits: Sequence[int], options: SearchOptions, *, suppress: bool = False
    ) -> list[list[_Candidate]]:
        """Return the finished hypotheses of each sentence, which may be longer than its limit if another's is higher.

        A sentence whose hypotheses all keep to its limit would have had the same with that limit for all.
        """
        n_finished = round(_PATIENCE * options.beam_size)
        results = self._decode(
            requests,
            max(limits),
            options,
            suppress=suppress,
            beam_size=options.beam_size,
            num_hypotheses=n_finished,
            patience=n_finished / options.beam_size,
        )
        return [
            [
                _Candidate(tokens, score, None)
                for tokens, score in zip(result.hypotheses, result.scores, strict=True)
                if not score < _IMPOSSIBLE  # NaN is noticed when it is scored
            ]
            for result in results
        ]

    def _decode(
        self, requests: Sequence[Request], limit: int, options: SearchOptions, *, suppress: bool, **search: Any
    ) -> list[Any]:
        """Call CTranslate2.

        What is suppressed has probability 0 before the softmax, which changes the log probabilities of all others. The
        model rarely predicts it, so that searching again where it was chosen is better.
        """
        prefixes = [self._tokenizer.tgt_tokens(request.prefix) for request in requests]
        limit = max(1, limit)
        return self._model.translate_batch(
            [self._tokenizer.src_tokens(request.src) for request in requests],
            prefixes if any(prefixes) else None,
            suppress_sequences=[[token] for token in self._forbidden] if suppress else None,
            length_penalty=0,
            max_input_length=0,
            min_decoding_length=min(options.min_length, limit),
            max_decoding_length=limit,
            repetition_penalty=options.repetition_penalty,  # of logits, unlike ours
            no_repeat_ngram_size=options.no_repeat_ngram_size,
            return_scores=True,
            use_vmap=self._is_mapped(requests[0], options),
            **({"beam_size": 1} | search),
        )

    def _best(
        self,
        requests: Sequence[Request],
        limits: Sequence[int],
        candidates: Sequence[Sequence[_Candidate]],
        options: SearchOptions,
    ) -> list[list[Hypothesis]]:
        """Return the ``n_best`` best candidates of each sentence with the log probabilities of their tokens.

        CTranslate2's scores lack the tokens of prefixes, and EOS where the limit ended a hypothesis. Where that may
        change the order, all candidates are scored first.
        """
        alpha = options.length_penalty
        chosen: list[list[Hypothesis]] = []
        for request, limit, found in zip(requests, limits, candidates, strict=True):
            is_complete = not request.prefix and all(len(one.tokens) < limit for one in found)
            best = list(found)
            if is_complete:
                best.sort(key=lambda one: -one.score / length_penalty(len(one.tokens) + 1, alpha))
                best = best[: options.n_best]
            ids = [self._tokenizer.tgt_ids(one.tokens) for one in best]
            known = [(is_complete and one.log_probs) or [] for one in best]
            chosen.append(list(map(Hypothesis, ids, known)))
        return [_ranked(found, options) for found in self._scored(requests, chosen)]

    def _scored(self, requests: Sequence[Request], found: Sequence[Sequence[Hypothesis]]) -> Iterator[list[Hypothesis]]:
        """Yield the hypotheses of each sentence, and score those that have no log probabilities."""
        rows = [
            (request.src, one.ids)
            for request, hypotheses in zip(requests, found, strict=True)
            for one in hypotheses
            if not one.token_log_probs
        ]
        scores = iter(self.score([src for src, _ in rows], [ids for _, ids in rows]))
        for hypotheses in found:
            yield [one if one.token_log_probs else Hypothesis(one.ids, next(scores)) for one in hypotheses]

    def _require_positions(self, longest: int) -> None:
        """Refuse texts that need more positions than the model has tables for."""
        if self._n_positions is not None and longest > self._n_positions:
            raise UserError(
                f"a text may take {longest:,} tokens, but the exported model has {self._n_positions:,} positions: "
                "lower search.max_length_factor, or use --engine torch"
            )

    def _workers(self, n_batches: int) -> Any:
        n_workers = min(self._n_workers, n_batches)
        return ThreadPoolExecutor(n_workers) if n_workers > 1 else nullcontext()


def _ranked(found: Sequence[Hypothesis], options: SearchOptions) -> list[Hypothesis]:
    """Return the ``n_best`` best hypotheses.

    Raises:
        MtformerError: the model predicts NaN, or no hypothesis is possible.
    """
    if any(math.isnan(one.log_prob) for one in found):
        raise MtformerError(PREDICTS_NAN)
    best = ranked(found, options.length_penalty)[: options.n_best]
    if not best or best[0].log_prob == -math.inf:
        raise MtformerError(NO_HYPOTHESIS)
    return best


def _mapped_tokens(path: Path) -> frozenset[str] | None:
    """Return the source tokens that a vocabulary map has a line for; None if there is no map."""
    if not path.is_file():
        return None
    with path.open(encoding="utf-8", newline="\n") as file:
        return frozenset(line.partition("\t")[0] for line in file)
