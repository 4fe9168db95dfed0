"""What a run trains on."""

from collections.abc import Iterable

from mtformer.config import Config
from mtformer.progress import watched
from mtformer.data.corpus import Corpus, encode_corpus
from mtformer.text.sources import ParallelText
from mtformer.text.tokenizer import Sampling, Tokenizer
from mtformer.seeds import derive_seed


class TrainingData:
    """The training pairs, encoded once; or in each epoch anew, where each has pieces of its own.

    Attributes:
        corpus: the pairs as they are encoded now.
    """

    def __init__(self, config: Config, pairs: ParallelText, tokenizer: Tokenizer) -> None:
        """Read and encode ``pairs``, with the likeliest pieces."""
        self._config = config
        self._pairs = pairs
        self._tokenizer = tokenizer
        self.corpus = self._encode()

    def begin(self, epoch: int) -> None:
        """Let the corpus be that of an epoch, which depends on its number alone."""
        alpha, seed = self._config.tokenizer.sampling, self._config.training.seed
        if alpha:
            self.corpus = self._encode(Sampling(alpha, derive_seed(seed, epoch)))

    def places(self, indices: Iterable[int]) -> list[str]:
        """Say where pairs of the corpus stand, as file and line; this reads the text once more."""
        return self._pairs.places(self.corpus.numbers[index] for index in indices)

    def _encode(self, sampling: Sampling | None = None) -> Corpus:
        limits = self._config.data
        pairs = watched(self._pairs, "encoding the text", "pairs")
        return encode_corpus(
            pairs, self._tokenizer, max_length=limits.max_length, max_ratio=limits.max_ratio, sampling=sampling
        )
