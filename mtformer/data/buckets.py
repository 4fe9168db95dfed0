"""Buckets: few shapes, one of which each batch is padded to, chosen for the lengths of a corpus.

The N pairs of a corpus fall into C cells by their rounded lengths, and cells that need little padding to be alike share
one of K buckets. Pairs, cells and buckets are each numbered from 0. So are the places of a grid of all rounded source
and target lengths, most of which are empty, on the way from pairs to cells. Six pairs, rounded to four bits::

    pair      0      1      2      3      4      5
    lengths   3, 4   3, 4   3, 5   17,17  18,17  40,41      source, target
    cell      0      0      1      2      2      3
    lengths   3, 4   3, 4   3, 5   18,18  18,18  40,41      40 and 41 would be 40 and 44, but 41 is the longest
    bucket    0      0      0      1      1      2          merging cells 0 and 1 adds two tokens of padding
    lengths   3, 5   3, 5   3, 5   18,18  18,18  40,41
"""

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from mtformer.data.tokens import Corpus

_MOST_BUCKETS = 64  # oneDNN caches 1,024 kernels; more buckets overflow the cache, so that only padding can be saved
_MOST_CELLS = 5_000  # merging takes 4 bytes for each pair of cells: 100 MB


class Buckets(NamedTuple):
    """The buckets of a corpus.

    Attributes:
        lengths: (K, 2) the source and target length of each bucket, sorted by their sum.
        of_pair: (N,) the bucket of each pair, the smallest that it fits in.
    """

    lengths: np.ndarray
    of_pair: np.ndarray


_known: "WeakKeyDictionary[Corpus, Buckets]" = WeakKeyDictionary()


def buckets_of(corpus: Corpus) -> Buckets:
    """Choose the buckets of a corpus: by its lengths alone, and once, as it takes a while."""
    known = _known.get(corpus)
    if known and len(known.of_pair) == len(corpus):
        return known
    for n_bits, most_padding in ((4, 0.03), (5, 0.02)):  # rounder lengths give fewer distinct products of rows × length
        cells, counts, cell_of_pair = _cells(corpus.src.lengths, corpus.tgt.lengths, n_bits)
        buckets = _merged(cells, counts, most_padding)
        if len(buckets) <= _MOST_BUCKETS:
            break
    bucket_of_cell = np.array([first_containing(buckets, cell) for cell in cells], dtype=np.uint16)
    _known[corpus] = Buckets(buckets, bucket_of_cell[cell_of_pair])
    return _known[corpus]


def first_containing(buckets: np.ndarray, lengths: np.ndarray) -> int:
    """Return the number of the first of ``buckets`` (K, 2) that is as long as ``lengths`` (2,); K if there is none."""
    fits = (buckets >= lengths).all(axis=1)
    return int(fits.argmax()) if fits.any() else len(buckets)


def _cells(src_lengths: np.ndarray, tgt_lengths: np.ndarray, n_bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Round the lengths (N,) of both sides; more coarsely if there would be too many cells.

    Returns:
        the lengths of the cells (C, 2), how many pairs are in each (C,), and the cell of each pair (N,).
    """
    rows, src_rounded = _rounded(src_lengths, n_bits)
    columns, tgt_rounded = _rounded(tgt_lengths, n_bits)
    place_of_pair = rows.astype(np.int32) * len(tgt_rounded) + columns
    n_at_place = np.bincount(place_of_pair, minlength=1)
    place_of_cell = np.flatnonzero(n_at_place)
    if len(place_of_cell) > _MOST_CELLS and n_bits > 1:
        return _cells(src_lengths, tgt_lengths, n_bits - 1)
    cell_at_place = np.cumsum(n_at_place > 0, dtype=np.int32) - 1
    src, tgt = np.divmod(place_of_cell, len(tgt_rounded))
    cells = np.stack([src_rounded[src], tgt_rounded[tgt]], axis=1)
    return cells, n_at_place[place_of_cell], cell_at_place[place_of_pair]


def _rounded(lengths: np.ndarray, n_bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Round lengths (N,) up to numbers of ``n_bits`` bits and zeros after them; not above the longest.

    Returns:
        which of the rounded lengths each length has (N,), and what they are, increasing.
    """
    possible = np.arange(lengths.max(initial=1) + 1)
    step = 1 << np.maximum(np.frexp(possible - 0.5)[1] - n_bits, 0)
    rounded, which = np.unique(np.minimum(-(-possible // step) * step, possible[-1]), return_inverse=True)
    return which.astype(np.uint16)[lengths], rounded


def _merged(cells: np.ndarray, counts: np.ndarray, most_padding: float) -> np.ndarray:
    """Merge the cells (C, 2) into buckets (K, 2), sorted by size, that contain them all with little padding.

    Args:
        cells: their lengths.
        counts: (C,) how many pairs are in each.
        most_padding: the share of the tokens that all merging may add.
    """
    clusters = _Clusters(cells, counts)
    budget = most_padding * (counts @ cells).sum()
    while (padding := clusters.least.min()) <= budget:
        clusters.merge_cheapest()
        budget -= padding
    buckets = np.unique(clusters.lengths[clusters.counts > 0], axis=0)
    return buckets[np.argsort(buckets.sum(axis=1), kind="stable")]


class _Clusters:
    """Cells that are merged two by two; a cluster has the number of one of its cells.

    Attributes:
        lengths: (C, 2) those that contain all cells of a cluster.
        counts: (C,) the number of its pairs; 0 once it has been merged into another.
        least: (C,) the padding that merging it with the nearest one adds.
    """

    def __init__(self, lengths: np.ndarray, counts: np.ndarray) -> None:
        self.lengths, self.counts = lengths.copy(), counts.copy()
        self._cost = np.empty((len(counts), len(counts)), dtype=np.float32)  # (C, C) the padding that merging two adds
        for i in range(len(counts)):
            self._cost[i] = self._padding(i)
        self._nearest = self._cost.argmin(axis=1)  # (C,) the one that each is merged with at the least cost
        self.least = self._cost.min(axis=1)

    def merge_cheapest(self) -> None:
        """Merge the two clusters that need the least padding."""
        i = int(self.least.argmin())
        j = int(self._nearest[i])
        self.lengths[i] = np.maximum(self.lengths[i], self.lengths[j])
        self.counts[i], self.counts[j] = self.counts[i] + self.counts[j], 0
        self._cost[j, :] = self._cost[:, j] = np.inf
        self._cost[i, :] = self._cost[:, i] = self._padding(i)
        changed = (self._nearest == i) | (self._nearest == j) | (self._cost[i] < self.least)
        changed[[i, j]] = True
        self._nearest[changed] = self._cost[changed].argmin(axis=1)
        self.least[changed] = self._cost[changed].min(axis=1)

    def _padding(self, i: int) -> np.ndarray:
        """Return (C,) the padding that merging cluster i with each other one adds."""
        merged = np.maximum(self.lengths[i], self.lengths).sum(axis=1)
        added = self.counts[i] * (merged - self.lengths[i].sum()) + self.counts * (merged - self.lengths.sum(axis=1))
        padding = np.where(self.counts > 0, added, np.inf)
        padding[i] = np.inf
        return padding
