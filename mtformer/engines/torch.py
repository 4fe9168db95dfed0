"""The engine that computes with torch."""

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mtformer.bundle.header import AlignmentHead, last_heads
from mtformer.config import SearchOptions, SearchPrecision
from mtformer.data.batches import pad, send
from mtformer.engines.batched import BatchedEngine
from mtformer.model.inference import InferenceModel
from mtformer.model.packing import Packer, Precision
from mtformer.model.transformer import Transformer
from mtformer.model.weights import count_parameters
from mtformer.search.alignment import soft_alignments
from mtformer.search.beam import beam_search
from mtformer.search.candidates import SearchObserver
from mtformer.search.constrained import ConstrainedSelection, constrained_width
from mtformer.search.decoder import Decoder, EnsembleDecoder, TransformerDecoder, mean_log_probs
from mtformer.search.engine import (
    AlignRequest,
    Example,
    PairRequest,
    Request,
    ScoreRequest,
    SearchRequest,
    fill_batches,
    longest_first,
)
from mtformer.search.greedy import greedy_search
from mtformer.search.hypothesis import PREDICTS_NAN, Hypothesis
from mtformer.search.nearest import Datastore, NearestDecoder
from mtformer.search.processors import EndAtLimits, ForcePrefixes, NeverChoose, Processor, refuse_nan, rules_of
from mtformer.search.sampling import sample
from mtformer.support.errors import MtformerError
from mtformer.support.hardware import require_precision
from mtformer.support.processes.threads import Threads, one_core_per_operation

_SMALL = 2**25  # weights; up to so many, the cores gain next to nothing by sharing an operation
_FORCED_TOKENS = 4096  # of a batch that is scored or aligned by teacher forcing
_BEAMS_IN_BUDGET = 4  # more beams take tokens from the budget of a batch, so that they need no more memory
_LOGITS_PER_TOKEN = 1024  # a sentence counts as at least one token for so many of its logits, which are K·V


class TorchEngine(BatchedEngine):
    """The Transformer, with torch; or an ensemble of several, whose probabilities are averaged.

    Attributes:
        models: one or more, of one vocabulary.
        model: the first of them.
    """

    def __init__(
        self,
        *models: Transformer,
        alignment_heads: Sequence[Sequence[AlignmentHead]] = (),
        n_threads: int | None = None,
    ) -> None:
        """Wrap models as they are, on the device that they are to run on; put them in evaluation mode before use.

        Args:
            models: one or more.
            alignment_heads: of each model the heads whose mean aligns; where there are none, those of the last layer.
            n_threads: how many batches are computed at once on a CPU; when not given, as many as torch has threads.
        """
        self.models = models
        self.model = models[0]
        chosen = alignment_heads or [()] * len(models)
        self._alignment_heads = [
            heads or last_heads(model.architecture) for model, heads in zip(models, chosen, strict=True)
        ]
        self._device = models[0].device
        self._special_ids = self.model.architecture.special_ids
        self._prepared: dict[SearchPrecision, list[InferenceModel]] = {}
        self._packers = {precision: Packer(precision) for precision in get_args(Precision)}
        self._preparing = Lock()
        self._recording = Lock()  # attention has one observer at a time
        self._threads = Threads((n_threads or torch.get_num_threads()) if self._device.type == "cpu" else 1)
        self._is_small = count_parameters(self.model) <= _SMALL

    def for_twin(self, model: Transformer, alignment_heads: Sequence[AlignmentHead]) -> "TorchEngine":
        """Return an engine for a model that shares weights with this one's, and their packed copies."""
        engine = TorchEngine(model, alignment_heads=[alignment_heads], n_threads=self._threads.n)
        engine._packers = self._packers
        return engine

    def observe(self, request: SearchRequest, observer: SearchObserver) -> list[Hypothesis]:
        """Search for the translations of one sentence, and call ``observer`` with each step.

        Raises:
            UserError: this device cannot compute in the precision of the options.
            MtformerError: the model predicts NaN.
        """
        with self._cores():
            [hypotheses] = self._search([request], observer)
        return hypotheses

    def require_supported(self, options: SearchOptions) -> None:
        """Refuse a precision that this device cannot compute in; see :class:`.Engine`."""
        require_precision(options.precision, self._device)

    def _forced_batches(self, requests: Sequence[PairRequest[Any]]) -> list[list[int]]:
        """Divide requests into batches of similar length."""
        lengths = [max(len(request.src), len(request.tgt) + 1) for request in requests]
        return fill_batches(longest_first(lengths), lengths, _FORCED_TOKENS)

    def _search_batches(self, requests: Sequence[SearchRequest]) -> list[list[int]]:
        """Divide searches into batches of the same width, longest first: memory runs out early or never."""
        options = requests[0].options
        lengths = [len(request.src) for request in requests]
        order = longest_first(lengths)
        widths = list(map(_width, requests))
        batches: list[list[int]] = []
        for width in sorted(set(widths)):
            n_logits = min(_BEAMS_IN_BUDGET, width) * self.model.output.out_features
            sizes = [max(length, n_logits // _LOGITS_PER_TOKEN) for length in lengths]
            budget = options.batch_tokens * _BEAMS_IN_BUDGET // max(_BEAMS_IN_BUDGET, width)
            batches += fill_batches([i for i in order if widths[i] == width], sizes, budget)
        return batches

    def _inference(self, precision: SearchPrecision) -> list[InferenceModel]:
        """Return the models prepared for a precision, which is done once."""
        with self._preparing:
            if precision not in self._prepared:
                require_precision(precision, self._device)
                self._prepared[precision] = [InferenceModel(model, self._packers[precision]) for model in self.models]
            return self._prepared[precision]

    def _map(self, batches: Sequence[Sequence[Request[Any]]]) -> Generator[list[Any], None, None]:
        """Compute several batches at once, each on a core of its own."""
        with self._cores():
            yield from self._threads.map(self._run, batches)

    def _cores(self) -> AbstractContextManager[None]:
        """Return a context in which a lone batch is computed on one core, too, unless the model is large."""
        return one_core_per_operation() if self._is_small else nullcontext()

    @torch.inference_mode()
    def _search(
        self, requests: Sequence[SearchRequest], observer: SearchObserver | None = None
    ) -> list[list[Hypothesis]]:
        """Translate one batch; see :meth:`BatchedEngine._search`."""
        options = requests[0].options
        n_copies = options.n_best if options.sample else 1
        src = self._pad([request.src for request in requests])  # (B, S)
        src_mask = src != self._special_ids.pad
        decoders = self._decoders(requests, src, src_mask, n_copies)
        decoder: Decoder = decoders[0] if len(decoders) == 1 else EnsembleDecoder(decoders)
        requests = [request for request in requests for _ in range(n_copies)]
        limits = [request.effective_limit for request in requests]
        processors = self._processors(requests, limits)
        if requests[0].constraint is not None:  # as of all: they are of the same width
            selection = ConstrainedSelection(requests, self._special_ids.eos)
            return beam_search(decoder, limits, options, [selection, *processors], observer, selection)
        if options.sample:
            return sample(decoder, requests, processors)
        if options.beam_size == 1:
            return [[hypothesis] for hypothesis in greedy_search(decoder, len(requests), processors, observer)]
        return beam_search(decoder, limits, options, processors, observer)

    def _decoders(
        self, requests: Sequence[SearchRequest], src: Tensor, src_mask: Tensor, n_copies: int
    ) -> list[Decoder]:
        """Return the decoder of each model; it follows the examples of the requests, if there are any."""
        prepared = self._inference(requests[0].options.precision)
        decoders = [TransformerDecoder(model, src, src_mask, n_copies, requests[0].forced) for model in prepared]
        if not any(request.examples for request in requests):
            return list(decoders)
        return [
            NearestDecoder(decoder, [store for store in self._datastores(model, requests) for _ in range(n_copies)])
            for model, decoder in zip(self.models, decoders, strict=True)
        ]

    def _datastores(self, model: Transformer, requests: Sequence[SearchRequest]) -> list[Datastore]:
        """Return the examples of each request as a model sees them; each is read once, however many share it."""
        examples = list({example for request in requests for example in request.examples})
        start, pad_id = (self._special_ids.start, *requests[0].forced), self._special_ids.pad
        lengths = [max(len(src), len(tgt) + len(start)) for src, tgt in examples]
        read: dict[Example, tuple[Tensor, Tensor]] = {}
        for batch in fill_batches(longest_first(lengths), lengths, _FORCED_TOKENS):
            of_batch = [examples[i] for i in batch]
            src = self._pad([src for src, _ in of_batch])
            states = model(src, src != pad_id, self._pad([[*start, *tgt] for _, tgt in of_batch]))  # (B, T, D)
            for example, of_example in zip(of_batch, states, strict=True):
                values = torch.tensor([*example[1], self._special_ids.eos], device=self._device)
                read[example] = of_example[len(start) - 1 :][: len(values)], values
        return [
            Datastore.of([read[example] for example in request.examples], model.d_model, self._device)
            for request in requests
        ]

    def _pad(self, rows: Sequence[Sequence[int]]) -> Tensor:
        return send(pad(rows, self._special_ids.pad), self._device)

    def _processors(self, requests: Sequence[SearchRequest], limits: Sequence[int]) -> list[Processor]:
        """Return the rules of a search, in order."""
        eos = self._special_ids.eos
        processors: list[Processor] = [NeverChoose(self._special_ids.never, self._device)]
        if any(request.prefix for request in requests):
            processors.append(ForcePrefixes([request.prefix for request in requests], self._device))
        return [*processors, EndAtLimits(limits, eos, self._device), *rules_of(requests[0].options, eos)]

    @torch.inference_mode()
    def _score(self, requests: Sequence[ScoreRequest]) -> list[list[float]]:
        """Score one batch by teacher forcing."""
        src = self._pad([request.src for request in requests])  # (B, S)
        forced = requests[0].forced
        tgt_in = self._pad([[self._special_ids.start, *forced, *request.tgt] for request in requests])  # (B, T)
        hidden = [model(src, src != self._special_ids.pad, tgt_in) for model in self.models]
        scores: list[list[float]] = []
        for request, *rows in zip(requests, *hidden, strict=True):
            tgt_out = torch.tensor([*request.tgt, self._special_ids.eos], device=self._device)
            chosen = []
            for model, row in zip(self.models, rows, strict=True):
                row = row[len(forced) :][: len(tgt_out)]  # (T, D)
                log_probs = model.project(row).float().log_softmax(dim=-1)  # (T, V)
                refuse_nan(log_probs)
                chosen.append(log_probs.gather(1, tgt_out[:, None])[:, 0])
            scores.append(mean_log_probs(torch.stack(chosen)).tolist())
        return scores

    def _align(self, requests: Sequence[AlignRequest]) -> list[NDArray[np.float32]]:
        """Align one batch by the cross-attention of all models, one thread at a time."""
        with self._recording:
            models = zip(self.models, self._alignment_heads, strict=True)
            of_models = [soft_alignments(model, requests, heads) for model, heads in models]
        weights = [np.mean(of_pair, axis=0) for of_pair in zip(*of_models, strict=True)]
        if any(np.isnan(of_pair).any() for of_pair in weights):
            raise MtformerError(PREDICTS_NAN)
        return weights


def _width(request: SearchRequest) -> int:
    """Return the number of hypotheses that the search works on; more for a request with a constraint."""
    options, constraint = request.options, request.constraint
    return options.n_rows if constraint is None else constrained_width(options.beam_size, constraint)
