"""Corrupted copies of sentence pairs, to learn from."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.data.clean.ibm_model_1 import EncodedPairs
from mtformer.data.clean.words import Encoder, Words
from mtformer.text.pairs import SentencePair

CORRUPTIONS = ("misaligned", "truncated", "misordered")
WAYS = ("misaligned", "truncated src", "truncated tgt", "misordered src", "misordered tgt")
_SHORTEST = 4  # words of a pair that is cut
_MOST_SHUFFLED = 5_000  # of each half, since texts are slower than numbers


class Examples(NamedTuple):
    """Sentence pairs, as texts and encoded."""

    pairs: Sequence[SentencePair]
    encoded: EncodedPairs


def corrupted(examples: Examples, way: str, encoder: Encoder, random: np.random.Generator) -> EncodedPairs:
    """Return copies of pairs that are corrupted in one of :data:`WAYS`; those that are too short are left out."""
    pairs = examples.encoded
    if way == "misaligned":
        circle = random.permutation(len(pairs.src_lengths))
        others = np.empty_like(circle)
        others[circle] = np.roll(circle, 1)
        return pairs.selected(np.arange(len(circle)), others)
    how, side = way.split()
    if how == "misordered":
        texts = [getattr(pair, side) for pair in examples.pairs[:_MOST_SHUFFLED]]
        kept, words, lengths = _shuffled(texts, encoder.src if side == "src" else encoder.tgt, random)
        copies = pairs.selected(kept)
    else:
        copies = pairs.selected(np.flatnonzero(np.minimum(pairs.src_lengths, pairs.tgt_lengths) >= _SHORTEST))
        sentences = (copies.src, copies.src_lengths) if side == "src" else (copies.tgt, copies.tgt_lengths)
        words, lengths = _cut(*sentences, random)
    if side == "src":
        return copies._replace(src=words, src_lengths=lengths)
    return copies._replace(tgt=words, tgt_lengths=lengths)


def _shuffled(
    texts: Sequence[str], words: Words, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Put the words of texts into random order, with the punctuation at them.

    Returns:
        the numbers of the texts that this changes; their words; how many each has.
    """
    separator = " " if words.is_spaced else ""
    kept, results = [], []
    for number, text in enumerate(texts):
        parts = text.split() if words.is_spaced else list(text)
        shuffled = [parts[place] for place in random.permutation(len(parts)).tolist()]
        if shuffled != parts:
            kept.append(number)
            results.append(separator.join(shuffled))
    return np.array(kept, dtype=np.int64), *words.encode(results)


def _cut(
    words: NDArray[np.int64], lengths: NDArray[np.int64], random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Keep 30 to 70 % of the words of each sentence, from its beginning."""
    n_kept = np.maximum(1, np.floor(random.uniform(0.3, 0.7, len(lengths)) * lengths))
    starts = np.cumsum(lengths) - lengths
    kept = np.arange(len(words)) - np.repeat(starts, lengths) < np.repeat(n_kept, lengths)
    return words[kept], n_kept.astype(np.int64)
