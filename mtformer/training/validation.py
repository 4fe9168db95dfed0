"""Validation: loss and perplexity by teacher forcing, BLEU by greedy search."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from mtformer.config import ResolvedConfig
from mtformer.data.batches import fill_buckets, make_batch
from mtformer.data.corpus import encode_corpus
from mtformer.errors import UserError
from mtformer.evaluate.metrics import bleu, bleu_tokenize, chrf, ter
from mtformer.hardware import autocast
from mtformer.header import AlignmentHead
from mtformer.model.transformer import Transformer
from mtformer.search.alignment_heads import choose_heads
from mtformer.search.torch_engine import TorchEngine
from mtformer.text.sources import SentencePair
from mtformer.text.tokenizer import Tokenizer
from mtformer.training.loss import summed_loss
from mtformer.training.ranks import ALONE, Ranks
from mtformer.translator import Translator

log = logging.getLogger(__name__)

_ALIGNED_PAIRS = 1_000  # for choosing the heads that align


@dataclass(frozen=True)
class Validation:
    """Scores of a model.

    Attributes:
        scores: ``loss``, the cross entropy per target token in nats, without label smoothing; ``bleu`` of greedy
            translations, from 0 to 100; and the metric of early stopping, if it is another.
        samples: (source, reference, hypothesis) of some sentences.
    """

    scores: dict[str, float]
    samples: list[tuple[str, str, str]]

    @property
    def loss(self) -> float:
        """The loss among the scores."""
        return self.scores["loss"]

    @property
    def perplexity(self) -> float:
        """The exponential of the loss: the number of equally likely tokens with the same uncertainty."""
        return math.exp(min(self.loss, 700.0))


class Validator:
    """Scores models on all validation pairs."""

    def __init__(self, config: ResolvedConfig, tokenizer: Tokenizer, pairs: Sequence[SentencePair]) -> None:
        """Encode ``pairs``; those with an empty or overlong side count for BLEU only.

        Raises:
            UserError: all pairs are like that.
        """
        self._config = config
        self._search = config.search.updated(beam_size=1)
        self._tokenizer = tokenizer
        self._pairs = pairs
        self._corpus = encode_corpus(pairs, tokenizer, max_length=config.data.max_length, max_ratio=math.inf)
        for reason, count in self._corpus.dropped.items():
            log.warning("the validation loss excludes %d of %d pairs: %s", count, len(pairs), reason)
        if not len(self._corpus):
            raise UserError("every validation pair has an empty or overlong side (data.max_length)")
        # Without MeCab: which model is the best must not depend on what happens to be installed.
        self._tokenize = bleu_tokenize(config.eval.bleu_tokenize, config.data.tgt_lang, with_mecab=False)
        every = max(1, len(pairs) // max(1, config.eval.n_samples))
        self._sample_places = range(0, len(pairs), every)[: config.eval.n_samples]

    @property
    def n_pairs(self) -> int:
        """The validation pairs."""
        return len(self._pairs)

    def validate(self, model: Transformer, ranks: Ranks = ALONE) -> Validation:
        """Score ``model`` and leave it in evaluation mode; each rank does a share of the work and gets all scores."""
        model.eval()
        device = next(model.parameters()).device
        precision = self._config.training.precision
        with autocast(device, precision):
            loss = self._loss(model, ranks)
        # The rows of a search change at every step, and oneDNN would generate bfloat16 kernels for each number of them.
        with autocast(device, "fp32" if device.type == "cpu" else precision):
            hypotheses = ranks.unshare(self._translate(model, ranks.share(self._pairs)))
        references = [pair.tgt for pair in self._pairs]
        samples = [(self._pairs[i].src, references[i], hypotheses[i]) for i in self._sample_places]
        scores = {"loss": loss, "bleu": bleu(hypotheses, references, self._tokenize).value}
        match self._config.training.early_stopping_metric:
            case "chrf":
                scores["chrf"] = chrf(hypotheses, references).value
            case "ter":
                scores["ter"] = ter(hypotheses, references, self._config.data.tgt_lang).value
        return Validation(scores, samples)

    def alignment_heads(self, model: Transformer) -> list[AlignmentHead]:
        """Choose the heads that align the validation pairs best; see :func:`choose_heads`."""
        places = range(min(len(self._corpus), _ALIGNED_PAIRS))
        sources = [self._corpus.src[place].tolist() for place in places]
        return choose_heads(model, sources, [self._corpus.tgt[place][:-1].tolist() for place in places])

    @torch.inference_mode()
    def _loss(self, model: Transformer, ranks: Ranks) -> float:
        total, n_tokens = 0.0, 0.0
        plan = fill_buckets(self._corpus, np.arange(len(self._corpus)), self._config.training.max_tokens)
        for planned in ranks.share(plan):
            batch = make_batch(self._corpus, *planned).to(next(model.parameters()).device)
            total += summed_loss(model, batch, label_smoothing=0.0).cross_entropy.item()
            n_tokens += batch.n_tokens
        total, n_tokens = ranks.sum(total, n_tokens)
        return total / max(1, n_tokens)

    def _translate(self, model: Transformer, pairs: Sequence[SentencePair]) -> list[str]:
        translator = Translator(
            TorchEngine(model),
            self._tokenizer,
            self._search,
            tgt_lang=self._config.data.tgt_lang,
            max_length=self._config.data.max_length,
        )
        translations = translator.translate([pair.src for pair in pairs])
        return [best.text for (best, *_) in translations]
