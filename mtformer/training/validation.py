"""Validation: loss and perplexity by teacher forcing, BLEU by greedy search."""

import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch

from mtformer.bundle.header import AlignmentHead
from mtformer.config import LanguagePair, Precision, ResolvedConfig
from mtformer.data.batches import BatchPlan, PlannedBatch, fill_buckets, make_batch
from mtformer.data.tokens import Corpus, Encoder, Prefixed
from mtformer.engines.torch import TorchEngine
from mtformer.evaluate.metrics import bleu, bleu_tokenize, chrf, ter
from mtformer.model.lora import merged
from mtformer.model.transformer import Transformer
from mtformer.search.alignment import choose_heads
from mtformer.search.engine import AlignRequest, SearchRequest, fill_batches, longest_first, results_of
from mtformer.support.errors import UserError
from mtformer.support.hardware import autocast
from mtformer.support.processes.ranks import ALONE, Ranks
from mtformer.support.processes.threads import Threads
from mtformer.support.progress import expected_seconds
from mtformer.text.pairs import SentencePair
from mtformer.text.tags import prefix_tokens
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.training.update import summed_loss
from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)

_ALIGNED_PAIRS = 1_000  # for choosing the heads that align
_N_MEASURED = 4  # batches of each kind, for the expected time


class Sample(NamedTuple):
    """A translation of a validation sentence.

    Attributes:
        src: the source.
        ref: its reference.
        hyp: the translation.
        direction: as in ``en-de``; empty for a model of one direction.
    """

    src: str
    ref: str
    hyp: str
    direction: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return the object that ``samples.jsonl`` records."""
        shown = self._asdict()
        return shown if self.direction else {key: shown[key] for key in ("src", "ref", "hyp")}


@dataclass(frozen=True)
class Validation:
    """Scores of a model.

    Attributes:
        scores: ``loss``, the cross entropy per target token in nats, without label smoothing; ``bleu`` of greedy
            translations, from 0 to 100; and the metric of early stopping, if it is another. Of several directions, the
            mean of their scores.
        samples: some sentences of each direction.
        by_direction: of several directions, the scores of each.
        general: the scores on general text, if there is any.
    """

    scores: dict[str, float]
    samples: list[Sample]
    by_direction: dict[str, dict[str, float]] = field(default_factory=dict)
    general: dict[str, float] = field(default_factory=dict)

    @property
    def loss(self) -> float:
        """The loss among the scores."""
        return self.scores["loss"]

    @property
    def perplexity(self) -> float:
        """The exponential of the loss: the number of equally likely tokens with the same uncertainty."""
        return math.exp(min(self.loss, 700.0))

    @property
    def all_scores(self) -> dict[str, float]:
        """The scores, those of each direction under names such as ``bleu_en-de``, and ``general_bleu`` and the like."""
        general = {f"general_{name}": value for name, value in self.general.items()}
        of_each = {f"{name}_{key}": value for key, of in self.by_direction.items() for name, value in of.items()}
        return general | self.scores | of_each


@dataclass(frozen=True)
class _ValidSet:
    """The validation pairs of a direction.

    Attributes:
        languages: the direction.
        pairs: the text.
        corpus: the ids of those pairs that have a loss.
        tokenizer: the model's, toward the target language.
        tokenize: BLEU's tokenization.
    """

    languages: LanguagePair
    pairs: Sequence[SentencePair]
    corpus: Corpus
    tokenizer: Tokenizer
    tokenize: str


class Validator:
    """Scores models on all validation pairs, those of each direction and the general ones by themselves."""

    def __init__(
        self,
        config: ResolvedConfig,
        tokenizer: Tokenizer,
        pairs: Mapping[LanguagePair, Sequence[SentencePair]],
        general_pairs: Mapping[LanguagePair, Sequence[SentencePair]] = MappingProxyType({}),
        *,
        in_threads: bool = True,
    ) -> None:
        """Encode the pairs of each direction; those with an empty or overlong side count for BLEU only.

        Args:
            config: with the search, the metrics and the number of threads.
            tokenizer: the model's.
            pairs: of each direction.
            general_pairs: those that show what fine-tuning forgets, of each direction.
            in_threads: whether threads may compute side by side; see :func:`.computes_in_threads`.

        Raises:
            UserError: all pairs are like that, or there are none.
        """
        self._config = config
        self._search = config.search.updated(beam_size=1)
        self._threads = Threads(config.training.threads if in_threads else 1)
        self._sets = [self._encoded(tokenizer, *item) for item in pairs.items()]
        self._general = [self._encoded(tokenizer, *item) for item in general_pairs.items()]
        if missing := [str(languages) for languages in config.data.language_pairs if languages not in pairs]:
            log.warning("no validation text for %s: the best model is chosen without it", ", ".join(missing))

    def _encoded(self, tokenizer: Tokenizer, languages: LanguagePair, pairs: Sequence[SentencePair]) -> _ValidSet:
        data = self._config.data
        if not pairs:
            raise UserError(f"there are no validation pairs from {languages.src_lang} to {languages.tgt_lang}")
        tokens = prefix_tokens(data, languages)
        view = tokenizer.with_prefixes(tokenizer.prefixes_of(tokens.src, tokens.tgt))
        max_length = data.max_length - max(map(len, view.prefixes))
        corpus = Encoder(tokenizer, max_length, max_ratio=math.inf).corpus(pairs)
        for reason, count in corpus.dropped.items():
            log.warning("the validation loss excludes %d of %d pairs: %s", count, len(pairs), reason)
        if not len(corpus):
            raise UserError("every validation pair has an empty or overlong side (data.max_length)")
        of_row = np.zeros(len(corpus), dtype=np.int64)
        src, tgt = view.prefixes
        corpus = corpus.with_sides(Prefixed(corpus.src, [src], of_row), Prefixed(corpus.tgt, [tgt], of_row))
        # Without MeCab: which model is the best must not depend on what happens to be installed.
        tokenize = bleu_tokenize(self._config.eval.bleu_tokenize, languages.tgt_lang, with_mecab=False)
        return _ValidSet(languages, pairs, corpus, view, tokenize)

    @property
    def n_pairs(self) -> int:
        """The validation pairs."""
        return sum(len(valid.pairs) for valid in self._sets)

    def validate(self, model: Transformer, ranks: Ranks = ALONE) -> Validation:
        """Score ``model`` and leave it in evaluation mode; each rank does a share of the work and gets all scores."""
        model.eval()
        engine = TorchEngine(merged(model), n_threads=self._threads.n)
        results = {str(valid.languages): self._score(valid, model, engine, ranks) for valid in self._sets}
        general = _means([self._score(valid, model, engine, ranks)[0] for valid in self._general])
        if len(results) == 1:
            return Validation(*results.popitem()[1], general=general)
        by_direction = {direction: scores for direction, (scores, _) in results.items()}
        samples = [
            sample._replace(direction=direction) for direction, (_, samples) in results.items() for sample in samples
        ]
        return Validation(_means(list(by_direction.values())), samples, by_direction, general)

    def _score(
        self, valid: _ValidSet, model: Transformer, engine: TorchEngine, ranks: Ranks
    ) -> tuple[dict[str, float], list[Sample]]:
        """Score the model on the pairs of a direction."""
        loss = self._loss(valid, model, ranks)
        with autocast(model.device, self._search_precision(model.device)):
            hypotheses = ranks.unshare(self._translate(valid, engine, ranks.share(valid.pairs)))
        references = [pair.tgt for pair in valid.pairs]
        scores = {"loss": loss, "bleu": bleu(hypotheses, references, valid.tokenize).value}
        match self._config.training.early_stopping_metric:
            case "chrf":
                scores["chrf"] = chrf(hypotheses, references).value
            case "ter":
                scores["ter"] = ter(hypotheses, references, valid.languages.tgt_lang).value
        n_samples = self._config.eval.n_samples
        places = range(0, len(references), max(1, len(references) // max(1, n_samples)))[:n_samples]
        return scores, [Sample(*valid.pairs[i], hypotheses[i]) for i in places]

    def expected_seconds(self, model: Transformer) -> float:
        """Estimate the duration of a validation of a model that has learned to end its translations.

        A part of it is measured. Since a model that has learned nothing translates up to the limits, the search is
        forced along the references, which have about as many tokens as the translations of a trained model.
        """
        model.eval()
        started = time.monotonic()
        all_sets = [*self._sets, *self._general]
        for valid in all_sets:
            references = [pair.tgt for pair in valid.pairs]
            bleu(references, references, valid.tokenize)
        scoring = time.monotonic() - started
        return scoring + sum(
            self._expected_loss(valid, model) + self._expected_search(valid, model) for valid in all_sets
        )

    def _expected_loss(self, valid: _ValidSet, model: Transformer) -> float:
        return expected_seconds(
            self._plan(valid),
            lambda plan: list(self._threads.map(partial(self._summed_loss, valid, model), plan)),
            lambda planned: len(planned.indices) * (planned.src_length + planned.tgt_length),
            _N_MEASURED,
        )

    def _expected_search(self, valid: _ValidSet, model: Transformer) -> float:
        references = [valid.corpus.tgt[i][:-1].tolist() for i in range(len(valid.corpus))]
        requests = [
            SearchRequest(valid.corpus.src[i].tolist(), self._search, len(row), row) for i, row in enumerate(references)
        ]
        lengths = valid.corpus.src.lengths.tolist()
        batches = fill_batches(longest_first(lengths), lengths, self._search.batch_tokens)
        engine = TorchEngine(merged(model), n_threads=1)

        def search(batch: Sequence[int]) -> None:
            results_of(engine, [requests[i] for i in batch])

        with autocast(model.device, self._search_precision(model.device)):
            return expected_seconds(
                batches,
                lambda batches: list(self._threads.map(search, batches)),
                lambda batch: len(batch) * max(len(references[i]) for i in batch),
                _N_MEASURED,
            )

    def alignment_heads(self, model: Transformer) -> list[AlignmentHead]:
        """Choose the heads that align the validation pairs best, in all directions; see :func:`choose_heads`."""
        n_each = _ALIGNED_PAIRS // len(self._sets)
        places = [(valid.corpus, i) for i in range(n_each) for valid in self._sets if i < len(valid.corpus)]
        pairs = [AlignRequest(corpus.src[i].tolist(), corpus.tgt[i][:-1].tolist()) for corpus, i in places]
        return choose_heads(model, pairs)

    def _plan(self, valid: _ValidSet) -> BatchPlan:
        return fill_buckets(valid.corpus, np.arange(len(valid.corpus)), self._config.training.max_tokens)

    def _search_precision(self, device: torch.device) -> Precision:
        """Return the precision of training, but ``fp32`` on a CPU.

        The rows of a search change at every step, and oneDNN would generate bfloat16 kernels for each number of them.
        """
        return "fp32" if device.type == "cpu" else self._config.training.precision

    def _loss(self, valid: _ValidSet, model: Transformer, ranks: Ranks) -> float:
        total, n_tokens = 0.0, 0.0
        compute = partial(self._summed_loss, valid, model)
        for loss, n in self._threads.map(compute, ranks.share(self._plan(valid))):
            total, n_tokens = total + loss, n_tokens + n
        total, n_tokens = ranks.sum(total, n_tokens)
        return total / max(1, n_tokens)

    @torch.inference_mode()
    def _summed_loss(self, valid: _ValidSet, model: Transformer, planned: PlannedBatch) -> tuple[float, int]:
        """Return the loss of a batch and how many tokens it is the sum of."""
        batch = make_batch(valid.corpus, *planned).to(model.device)
        with autocast(model.device, self._config.training.precision):
            return summed_loss(model, batch, label_smoothing=0.0).cross_entropy.item(), batch.n_tokens

    def _translate(self, valid: _ValidSet, engine: TorchEngine, pairs: Sequence[SentencePair]) -> list[str]:
        tgt_lang, max_length = valid.languages.tgt_lang, self._config.data.max_length
        translator = Translator(engine, valid.tokenizer, self._search, tgt_lang=tgt_lang, max_length=max_length)
        translations = translator.translate([pair.src for pair in pairs], numbers=())  # without a warning each time
        return [best.text for (best, *_) in translations]


def _means(of_sets: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each score; none of no sets."""
    names = of_sets[0] if of_sets else ()
    return {name: fmean(scores[name] for scores in of_sets) for name in names}
