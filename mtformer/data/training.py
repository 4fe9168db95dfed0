"""The training pairs of a run, encoded for each epoch."""

from collections.abc import Iterable, Iterator

import numpy as np

from mtformer.config import Config
from mtformer.data.augment import Augmenter
from mtformer.data.corpus import Corpus, encode_corpus
from mtformer.data.mixing import Prefixed, epoch_order, mixing_weights
from mtformer.data.terms import TermSampler
from mtformer.progress import watched
from mtformer.seeds import derive_seed
from mtformer.text.glossary import Glossary
from mtformer.text.sources import ParallelText, SentencePair, source_name
from mtformer.text.tags import tags_of_source
from mtformer.text.tokenizer import Sampling, Tokenizer


class TrainingData:
    """The training pairs, encoded once, or anew for each epoch if it draws other tokens, terms or variations.

    Attributes:
        corpus: the encoded pairs of the current epoch.
        n_pairs: the number of pairs in each source, dropped ones included.
    """

    def __init__(self, config: Config, pairs: ParallelText, tokenizer: Tokenizer) -> None:
        """Read and encode ``pairs`` with the most likely tokens.

        Raises:
            UserError: the text or the glossary cannot be used.
        """
        self._config = config
        self._pairs = pairs
        self._tokenizer = tokenizer
        self.n_pairs: list[int] = []
        self._terms = self._sampler()
        shares = config.data.augment
        self._augmenter = Augmenter(shares, seed=config.training.seed) if shares else None
        self._prefixes = [tokenizer.tag_ids(tags_of_source(config.data, source)) for source in config.data.train]
        self.corpus = self._encode(0)

    def begin(self, epoch: int) -> None:
        """Encode the pairs for an epoch; the result depends on its number alone, not on the epochs before."""
        alpha, seed = self._config.tokenizer.sampling, self._config.training.seed
        if alpha or self._terms or self._augmenter:
            self.corpus = self._encode(epoch, Sampling(alpha, derive_seed(seed, epoch)) if alpha else None)

    def order(self, epoch: int) -> np.ndarray:
        """Return which pairs of the corpus occur in an epoch, and how often; see :func:`epoch_order`."""
        seed = self._config.training.seed
        return epoch_order(self.corpus.sources, self.weights(), seed=seed, epoch=epoch)

    def weights(self) -> list[float]:
        """Return how often a pair of each source occurs in an epoch, on average."""
        sizes = np.bincount(self.corpus.sources, minlength=len(self.n_pairs))
        return mixing_weights(self._config.data, sizes.tolist())

    def mixture(self) -> list[str]:
        """Describe how often the pairs of each source occur in an epoch, if not all occur once."""
        weights = self.weights()
        if set(weights) == {1.0}:
            return []
        sizes = np.bincount(self.corpus.sources, minlength=len(weights)).tolist()
        sources = self._config.data.train
        names = [" ".join([source_name(source), *source.directions]) for source in sources]
        return [
            f"{round(size * weight):,} pairs an epoch from {name}, which has {size:,}"
            for name, size, weight in zip(names, sizes, weights, strict=True)
        ]

    def places(self, indices: Iterable[int]) -> list[str]:
        """Return file and line of pairs of the corpus; this reads the text again."""
        return self._pairs.places(self.corpus.numbers[index] for index in indices)

    def _sampler(self) -> TermSampler | None:
        data = self._config.data
        if data.terms is None:
            return None
        return TermSampler(
            Glossary.read(data.terms),
            self._tokenizer,
            src_lang=data.src_lang,
            tgt_lang=data.tgt_lang,
            share=data.terms_share,
            seed=self._config.training.seed,
        )

    def _encode(self, epoch: int, sampling: Sampling | None = None) -> Corpus:
        limits = self._config.data
        pairs = watched(self._read(), "encoding the text", "pairs")
        corpus = encode_corpus(
            pairs,
            self._tokenizer,
            max_length=limits.max_length - max(map(len, self._prefixes)),
            max_ratio=limits.max_ratio,
            sampling=sampling,
            terms=self._terms,
            augmenter=self._augmenter,
            epoch=epoch,
        )
        corpus.sources = np.searchsorted(np.cumsum(self.n_pairs), corpus.numbers, side="right")
        if any(self._prefixes):
            corpus.src = Prefixed(corpus.src, self._prefixes, corpus.sources)
        return corpus

    def _read(self) -> Iterator[SentencePair]:
        """Yield the pairs of all sources, and count those of each."""
        self.n_pairs = [0] * len(self._pairs.sources)
        for number, part in enumerate(self._pairs.parts()):
            for pair in part:
                self.n_pairs[number] += 1
                yield pair
