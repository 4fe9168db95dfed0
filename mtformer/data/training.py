"""The training pairs of a run, encoded for each epoch."""

from collections.abc import Iterable, Iterator

from mtformer.config import Config
from mtformer.data.augment import Augmenter
from mtformer.data.corpus import Corpus, encode_corpus
from mtformer.data.terms import TermSampler
from mtformer.progress import watched
from mtformer.seeds import derive_seed
from mtformer.text.glossary import Glossary
from mtformer.text.sources import ParallelText, SentencePair
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
        self.corpus = self._encode(0)

    def begin(self, epoch: int) -> None:
        """Encode the pairs for an epoch; the result depends on its number alone, not on the epochs before."""
        alpha, seed = self._config.tokenizer.sampling, self._config.training.seed
        if alpha or self._terms or self._augmenter:
            self.corpus = self._encode(epoch, Sampling(alpha, derive_seed(seed, epoch)) if alpha else None)

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
        return encode_corpus(
            pairs,
            self._tokenizer,
            max_length=limits.max_length,
            max_ratio=limits.max_ratio,
            sampling=sampling,
            terms=self._terms,
            augmenter=self._augmenter,
            epoch=epoch,
        )

    def _read(self) -> Iterator[SentencePair]:
        """Yield the pairs of all sources, and count those of each."""
        self.n_pairs = [0] * len(self._pairs.sources)
        for number, part in enumerate(self._pairs.parts()):
            for pair in part:
                self.n_pairs[number] += 1
                yield pair
