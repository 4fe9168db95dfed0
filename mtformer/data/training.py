"""The training pairs of a run, as tokens; in each epoch, the pairs of a source occur according to its weight."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import islice

import numpy as np
from pydantic import JsonValue

from mtformer.config import Config, DataConfig
from mtformer.data.augment import Augmenter, TermSampler
from mtformer.data.clean.language import N_TEXTS, language_warning
from mtformer.data.sources.parallel import source_name
from mtformer.data.store import StoredText
from mtformer.data.tokens import Corpus, Encoder, InContext, Prefixed, TokenStore, Variation
from mtformer.support.errors import UserError
from mtformer.support.reproducibility import derive_seed
from mtformer.text.glossary import Glossary
from mtformer.text.known_words import known_words
from mtformer.text.languages import is_written_with_spaces
from mtformer.text.pairs import Drops
from mtformer.text.tags import prefixes_of_sources
from mtformer.text.tokenizer.tokenizer import Tokenizer


class TrainingData:
    """The training pairs, encoded once, and again where an epoch draws other tokens or other terms, or varies the text.

    Attributes:
        corpus: the encoded pairs of the current epoch.
        n_pairs: the number of pairs in each source, dropped ones included.
        held_out: the pairs that are not trained on, but in ``valid`` or ``test``.
    """

    def __init__(
        self, config: Config, text: StoredText, tokenizer: Tokenizer, glossary: Glossary | None = None
    ) -> None:
        """Encode ``text`` with the most likely tokens.

        Args:
            config: what varies from epoch to epoch.
            text: the pairs.
            tokenizer: turns them into ids.
            glossary: the terms to annotate, those of ``data.terms``; None for none.

        Raises:
            UserError: there is a glossary, and the tokenizer has no tokens to mark terms with.
            MtformerError: the tokens cannot be written to the cache.
        """
        self._config = config
        self._text = text
        self._prefixes = [tokenizer.prefixes_of(tokens.src, tokens.tgt) for tokens in prefixes_of_sources(config.data)]
        max_length = config.data.max_length - max(len(ids) for prefixes in self._prefixes for ids in prefixes)
        self._encoder = Encoder(tokenizer, max_length, config.data.max_ratio)
        self._terms_digest = glossary.digest if glossary is not None else None
        self._terms = self._term_sampler(glossary, tokenizer) if glossary is not None else None
        shares, slots = config.data.augment, tokenizer.has_slots
        self._augmenter = (
            Augmenter(shares, seed=config.training.seed, languages=config.data.language_pairs, slots=slots)
            if shares or slots
            else None
        )
        self._context_end = tokenizer.context_end
        self._tokens = TokenStore(text, self._encoder)
        self.corpus = self._in_context(self._tagged(self._tokens.corpus), 0)  # as long as those of an epoch
        self.n_pairs = text.n_pairs
        self.held_out = text.held_out

    @cached_property
    def known_words(self) -> frozenset[str]:
        """The source words that the model knows, by :func:`.known_words`.

        Empty for fine-tuned models, and where no spaces separate words.
        """
        languages = {pair.src_lang for pair in self._config.data.language_pairs}
        if self._config.training.init_from is not None or not all(map(is_written_with_spaces, languages)):
            return frozenset()
        return known_words(pair.src for pair in self._text)

    def begin(self, epoch: int) -> None:
        """Vary the pairs for an epoch; the result depends on its number alone, not on the epochs before."""
        corpus = self._tokens.corpus
        variation = Variation(self._encoder, epoch, self._augmenter, self._terms)
        if variation:
            data = self._config.data
            varied = self._augmenter.identity if self._augmenter else None
            settings: JsonValue = [epoch, self._config.training.seed, varied, self._terms_digest, data.terms_share]
            corpus = self._tokens.varied(variation, settings)
        self.corpus = self._in_context(self._tagged(corpus), epoch)

    def end(self) -> None:
        """Remove the varied pairs of the last epoch from the cache, where a resumed run would have found them."""
        self._tokens.forget_epoch()

    def order(self, epoch: int) -> np.ndarray:
        """Return the pairs of an epoch, at least one, as indices into the corpus; see :func:`epoch_order`."""
        weights = self.weights()
        if set(weights) == {1.0}:  # as follows from the weights, in less memory
            return np.arange(len(self.corpus))
        return epoch_order(self.corpus.sources, weights, seed=self._config.training.seed, epoch=epoch)

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
            f"{f'{size * weight:,.1f}'.removesuffix('.0')} pairs an epoch from {name}, which has {size:,}"
            for name, size, weight in zip(names, sizes, weights, strict=True)
        ]

    def places(self, indices: Iterable[int]) -> list[str]:
        """Return file and line of pairs of the corpus, in order."""
        corpus = self.corpus
        return [f"{self._text.names[corpus.sources[i]]}:{corpus.lines[i]}" for i in sorted(indices)]

    def warnings(self) -> list[str]:
        """Return warnings of sources without pairs, with many that are not used, or with text in other languages."""
        empty = [
            f"{name} contains no sentence pairs"
            for name, n in zip(self._text.names, self.n_pairs, strict=True)
            if not n
        ]
        n_kept = np.bincount(self.corpus.sources, minlength=len(self._text.names)).tolist()
        dropped = map(Drops.warning, self.corpus.drops, self._text.names, n_kept)
        return [warning for warning in (*empty, *dropped, *self._language_warnings()) if warning]

    def _language_warnings(self) -> Iterator[str | None]:
        data = self._config.data
        for number, (source, name) in enumerate(zip(data.train, self._text.names, strict=True)):
            pairs = islice(self._text.of_source(number), N_TEXTS)
            yield language_warning(name, dict(zip(data.direction_of(source), zip(*pairs, strict=True), strict=False)))

    def _tagged(self, corpus: Corpus) -> Corpus:
        """Put the prefixes of each source in front of its texts."""
        if not any(map(any, self._prefixes)):
            return corpus
        src, tgt = zip(*self._prefixes, strict=True)
        return corpus.with_sides(Prefixed(corpus.src, src, corpus.sources), Prefixed(corpus.tgt, tgt, corpus.sources))

    def _in_context(self, corpus: Corpus, epoch: int) -> Corpus:
        """Put the source before, as it is without variations, in front of some sources, where both still fit."""
        if not self._config.data.context or self._context_end is None:
            return corpus
        before = self._tokens.corpus.src
        drawn = np.random.default_rng([self._config.training.seed, epoch, 2]).random(len(corpus), dtype=np.float32)
        chosen = drawn < self._config.data.context
        chosen[:1] = False
        chosen[1:] &= corpus.sources[1:] == corpus.sources[:-1]
        chosen[1:] &= corpus.lines[1:] == corpus.lines[:-1] + 1
        chosen[1:] &= corpus.src.lengths[1:] + before.lengths[:-1] <= self._config.data.max_length
        return corpus.with_sides(InContext(corpus.src, before, chosen, self._context_end), corpus.tgt)

    def _term_sampler(self, glossary: Glossary, tokenizer: Tokenizer) -> TermSampler:
        data, seed = self._config.data, self._config.training.seed
        languages = {"src_lang": data.src_lang, "tgt_lang": data.tgt_lang}
        return TermSampler(glossary, tokenizer, **languages, share=data.terms_share, seed=seed)


def mixing_weights(data: DataConfig, sizes: Sequence[int]) -> list[float]:
    """Return how often a pair of each source of training text occurs in an epoch, on average.

    Without ``data.temperature``, these are the weights of the sources; general ones share as many pairs as the others
    have. With a temperature T, a source of n pairs gets a share of the epoch proportional to n^(1/T) (Arivazhagan et
    al. 2019, section 3.2), and an epoch has as many pairs as all sources together.

    Args:
        data: the sources.
        sizes: the number of pairs of each, without those that were dropped.
    """
    if data.temperature is None:
        n_general = sum(size for source, size in zip(data.train, sizes, strict=True) if source.general)
        n_own = sum(size * source.weight for source, size in zip(data.train, sizes, strict=True) if not source.general)
        share = round(min(1.0, n_own / n_general), 9) if n_general else 1.0
        return [source.weight * share if source.general else source.weight for source in data.train]
    shares = np.array(sizes, dtype=np.float64) ** (1 / data.temperature)
    n_drawn = sum(sizes) * shares / shares.sum()
    weights = [drawn / size if size else 0.0 for drawn, size in zip(n_drawn.tolist(), sizes, strict=True)]
    return [round(weight, 9) for weight in weights]  # without errors of rounding, such as 0.9999999999999999


def epoch_order(source_of_pair: np.ndarray, weights: Sequence[float], *, seed: int, epoch: int) -> np.ndarray:
    """Return the pairs of an epoch, as indices into the corpus, source by source.

    Of a source with n pairs and weight w, each pair occurs ⌊w⌋ times. Another n (w - ⌊w⌋) places, rounded so that their
    sum over epochs is right, go to pairs that are drawn without replacement across epochs: all have had their turn
    before one gets a second. So an epoch has about Σ n·w pairs, and the result depends on the arguments alone.

    Args:
        source_of_pair: (N,) the index of the source of each pair.
        weights: how often a pair of each source occurs, on average.
        seed: that of the run.
        epoch: the number of the epoch, from 0.

    Raises:
        UserError: the weights are so small that there are epochs without pairs.
    """
    chosen = []
    has_pairs = False
    for number, weight in enumerate(weights):
        pairs = np.flatnonzero(source_of_pair == number)
        exact = Fraction(str(weight))  # 0.1 as it is written, so that ten epochs have all pairs
        has_pairs |= len(pairs) * exact >= 1
        whole, fraction = divmod(exact, 1)
        chosen.append(np.repeat(pairs, whole))
        first, last = (int(turn * len(pairs) * fraction) for turn in (epoch, epoch + 1))
        if first < last:
            chosen.append(pairs[_turns(len(pairs), first, last, derive_seed(seed, number))])
    if not has_pairs:
        raise UserError("no source has a pair in each epoch: raise the weights of the sources (data.train)")
    return np.concatenate(chosen)


def _turns(n: int, first: int, last: int, seed: int) -> np.ndarray:
    """Return items ``first`` to ``last`` (exclusive) of an endless sequence of permutations of ``range(n)``."""
    rounds = range(first // n, (last - 1) // n + 1)
    row = np.concatenate([np.random.default_rng([seed, number]).permutation(n) for number in rounds])
    start = rounds[0] * n
    return row[first - start : last - start]
