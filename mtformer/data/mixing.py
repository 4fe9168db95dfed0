"""Mixing sources: how often the pairs of each occur in an epoch, and which of them do."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from mtformer.config import DataConfig
from mtformer.data.corpus import Side
from mtformer.support.errors import UserError
from mtformer.support.reproducibility import derive_seed


def mixing_weights(data: DataConfig, sizes: Sequence[int]) -> list[float]:
    """Return how often a pair of each source of training text occurs in an epoch, on average.

    Without ``data.temperature``, these are the weights of the sources. With a temperature T, a source of n pairs gets a
    share of the epoch proportional to n^(1/T) (Arivazhagan et al. 2019, section 3.2), and an epoch has as many pairs as
    all sources together.

    Args:
        data: the sources.
        sizes: the number of pairs of each, without those that were dropped.
    """
    if data.temperature is None:
        return [source.weight for source in data.train]
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
    """Return whose turn it is from ``first`` to before ``last`` in an endless row of permutations of ``range(n)``."""
    rounds = range(first // n, (last - 1) // n + 1)
    row = np.concatenate([np.random.default_rng([seed, number]).permutation(n) for number in rounds])
    start = rounds[0] * n
    return row[first - start : last - start]


class Prefixed:
    """Rows that begin with the ids of their source's tags, which are not among the stored ids."""

    def __init__(self, rows: Side, prefixes: Sequence[Sequence[int]], source_of_row: np.ndarray) -> None:
        """Take the rows, the ids in front of the rows of each source, and the source of each row: (N,)."""
        self._rows = rows
        self._prefixes = [np.array(prefix, dtype=np.int32) for prefix in prefixes]
        self._source_of_row = source_of_row

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> np.ndarray:
        return np.concatenate([self._prefixes[self._source_of_row[index]], self._rows[index]])

    @cached_property
    def lengths(self) -> np.ndarray:
        """The length of each row, with its prefix."""
        n_added = np.array([len(prefix) for prefix in self._prefixes], dtype=np.int32)
        return self._rows.lengths + n_added[self._source_of_row]
