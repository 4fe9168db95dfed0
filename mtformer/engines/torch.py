"""The engine that computes with torch."""

from collections.abc import Callable, Iterator, Sequence
from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray

from mtformer.bundle.header import AlignmentHead
from mtformer.config import SearchOptions, SearchPrecision
from mtformer.data.batches import pad
from mtformer.data.filling import fill_batches, longest_first
from mtformer.model.inference import InferenceModel
from mtformer.model.transformer import Transformer
from mtformer.search.alignment import all_heads, soft_alignments
from mtformer.search.beam import beam_search
from mtformer.search.constrained import constrained_search, constrained_width
from mtformer.search.decoder import Decoder, EnsembleDecoder, TransformerDecoder, mean_log_probs
from mtformer.search.diverse import diverse_search
from mtformer.search.engine import Request
from mtformer.search.greedy import greedy_search
from mtformer.search.hypothesis import Hypothesis
from mtformer.search.observer import SearchObserver
from mtformer.search.processors import EndAtLimits, ForcePrefixes, NeverChoose, Processor, refuse_nan, rules_of
from mtformer.search.sampling import sample
from mtformer.support.hardware import require_precision
from mtformer.text.tokenizer.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID

_SCORING_TOKENS = 4096  # the token budget of a batch
_BEAMS_IN_BUDGET = 4  # more beams take tokens from the budget of a batch, so that they need no more memory
_LOGITS_PER_TOKEN = 1024  # a sentence counts as at least one token for so many of its logits, which are K·V


class TorchEngine:
    """The Transformer, with torch; or an ensemble of several, whose probabilities are averaged.

    Attributes:
        models: one or more, of one vocabulary.
        model: the first of them.
    """

    has_constraints = True

    def __init__(self, *models: Transformer, alignment_heads: Sequence[Sequence[AlignmentHead]] = ()) -> None:
        """Wrap models as they are, on the device that they are to run on; put them in evaluation mode before use.

        Args:
            models: one or more.
            alignment_heads: of each model the heads whose mean aligns; where there are none, all heads.
        """
        self.models = models
        self.model = models[0]
        chosen = alignment_heads or [()] * len(models)
        self._alignment_heads = [heads or all_heads(model) for model, heads in zip(models, chosen, strict=True)]
        self._device = next(models[0].parameters()).device
        self._prepared: dict[SearchPrecision, list[InferenceModel]] = {}
        self._recording = Lock()  # attention has one observer at a time

    def translate(
        self,
        requests: Sequence[Request],
        options: SearchOptions,
        *,
        on_batch: Callable[[Sequence[int]], object] | None = None,
        observer: SearchObserver | None = None,
    ) -> list[list[Hypothesis]]:
        """Search in batches of sentences of similar length; see :class:`Engine`.

        Args:
            requests: the sentences.
            options: how to search.
            on_batch: called with the indices of requests that have been translated.
            observer: called with each step of the search in each batch.

        Raises:
            UserError: this device cannot compute in ``options.precision``.
            MtformerError: the model predicts NaN.
        """
        found: list[list[Hypothesis]] = [[] for _ in requests]
        for batch in self._batches(requests, options):
            results = self._search([requests[i] for i in batch], options, observer)
            for i, hypotheses in zip(batch, results, strict=True):
                found[i] = hypotheses
            if on_batch is not None:
                on_batch(batch)
        return found

    def _batches(self, requests: Sequence[Request], options: SearchOptions) -> Iterator[list[int]]:
        """Yield the indices of requests of the same width, longest first: memory runs out early or never."""
        lengths = [len(request.src) for request in requests]
        order = longest_first(lengths)
        widths = [_width(request, options) for request in requests]
        for width in sorted(set(widths)):
            n_logits = min(_BEAMS_IN_BUDGET, width) * self.model.output.out_features
            sizes = [max(length, n_logits // _LOGITS_PER_TOKEN) for length in lengths]
            budget = options.batch_tokens * _BEAMS_IN_BUDGET // max(_BEAMS_IN_BUDGET, width)
            yield from fill_batches([i for i in order if widths[i] == width], sizes, budget)

    def require_supported(self, options: SearchOptions) -> None:
        """Refuse a precision that this device cannot compute in; see :class:`Engine`."""
        require_precision(options.precision, self._device)

    def _inference(self, precision: SearchPrecision) -> list[InferenceModel]:
        """Return the models prepared for a precision, which is done once."""
        if precision not in self._prepared:
            require_precision(precision, self._device)
            self._prepared[precision] = [InferenceModel(model, precision) for model in self.models]
        return self._prepared[precision]

    @torch.inference_mode()
    def _search(
        self, requests: Sequence[Request], options: SearchOptions, observer: SearchObserver | None
    ) -> list[list[Hypothesis]]:
        """Translate one batch."""
        n_copies = options.n_best if options.sample else options.beam_groups
        src = pad([request.src for request in requests]).to(self._device)  # (B, S)
        decoders = [
            TransformerDecoder(model, src, src != PAD_ID, n_copies) for model in self._inference(options.precision)
        ]
        decoder: Decoder = decoders[0] if len(decoders) == 1 else EnsembleDecoder(decoders)
        requests = [request for request in requests for _ in range(n_copies)]
        limits = [_limit(request) for request in requests]
        processors = self._processors(requests, limits, options)
        constraints = [request.constraint for request in requests if request.constraint is not None]
        if constraints:  # of all requests or none: they are of the same width
            prefix_lengths = [len(request.prefix) for request in requests]
            return constrained_search(decoder, constraints, prefix_lengths, limits, options, processors, observer)
        if options.sample:
            return sample(decoder, requests, limits, options, processors)
        if options.beam_groups > 1:
            return diverse_search(decoder, limits, options, processors)
        if options.beam_size == 1:
            return [[hypothesis] for hypothesis in greedy_search(decoder, len(requests), processors, observer)]
        return beam_search(decoder, limits, options, processors, observer)

    def _processors(
        self, requests: Sequence[Request], limits: Sequence[int], options: SearchOptions
    ) -> list[Processor]:
        """Return the rules of a search, in order."""
        processors: list[Processor] = [NeverChoose([PAD_ID, UNK_ID, BOS_ID], self._device)]
        if any(request.prefix for request in requests):
            processors.append(ForcePrefixes([request.prefix for request in requests], self._device))
        return [*processors, EndAtLimits(limits, EOS_ID, self._device), *rules_of(options)]

    @torch.inference_mode()
    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """Score by teacher forcing; see :class:`Engine`."""
        lengths = [max(len(src), len(tgt) + 1) for src, tgt in zip(sources, targets, strict=True)]
        scores: list[list[float]] = [[] for _ in sources]
        for batch in fill_batches(longest_first(lengths), lengths, _SCORING_TOKENS):
            src = pad([sources[i] for i in batch]).to(self._device)  # (B, S)
            tgt_in = pad([[BOS_ID, *targets[i]] for i in batch]).to(self._device)  # (B, T)
            hidden = [model(src, src != PAD_ID, tgt_in) for model in self.models]
            for i, *rows in zip(batch, *hidden, strict=True):
                tgt_out = torch.tensor([*targets[i], EOS_ID], device=self._device)
                log_probs = [
                    model.project(row[: len(tgt_out)]).float().log_softmax(dim=-1)  # (T, V) of one row
                    for model, row in zip(self.models, rows, strict=True)
                ]
                for one in log_probs:
                    refuse_nan(one)
                chosen = torch.stack([one.gather(1, tgt_out[:, None])[:, 0] for one in log_probs])  # (M, T)
                scores[i] = mean_log_probs(chosen).tolist()
        return scores

    def align(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[NDArray[np.float32]]:
        """Align by the cross-attention of all models, one thread at a time; see :class:`Engine`."""
        with self._recording:
            models = zip(self.models, self._alignment_heads, strict=True)
            found = [soft_alignments(model, sources, targets, heads) for model, heads in models]
        return [np.mean(weights, axis=0) for weights in zip(*found, strict=True)]


def _width(request: Request, options: SearchOptions) -> int:
    """Return how many hypotheses the search works on; more for a request with a constraint than without."""
    return options.n_rows if request.constraint is None else constrained_width(options.beam_size, request.constraint)


def _limit(request: Request) -> int:
    """Return the maximum length of the hypotheses, which have room for the prefix and for the constraint."""
    n_needed = 0 if request.constraint is None else request.constraint.max_tokens
    return max(request.limit, len(request.prefix) + n_needed)
