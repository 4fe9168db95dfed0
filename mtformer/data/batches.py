"""Batches filled to a token budget with pairs of similar length.

Shapes: B rows, S source length, T target length.
"""

import itertools
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, overload
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from mtformer.data.tokens import Corpus

_MOST_BUCKETS = 64  # oneDNN caches 1,024 kernels; more buckets overflow the cache, so that only padding can be saved
_MOST_GROWTH = 1.25  # leftover pairs move to a bucket at most this much longer; otherwise they form a smaller batch
_MOST_CELLS = 5_000  # clustering takes 4 bytes for each pair of cells: 100 MB

_buckets_of: "WeakKeyDictionary[Corpus, tuple[np.ndarray, np.ndarray]]" = WeakKeyDictionary()

_UNKNOWN = torch.empty(0)  # positions that are not given


@dataclass(frozen=True)
class Batch:
    """The pairs of one training step.

    Attributes:
        src: (B, S) source ids, ended by EOS, padded on the right.
        src_mask: (B, S), True at real tokens.
        tgt_in: (B, T) target ids shifted right: the start, y1, …, yn.
        tgt_out: (B, T) target ids to predict: y1, …, yn, EOS.
        tgt_mask: (B, T), True at the real tokens of ``tgt_out``.
        indices: the pairs' indices in the corpus.
        positions: (n_tokens,), where ``tgt_mask`` is true once it is flattened. To find them on a GPU, the processor
            would have to wait for it, so they are found before the batch is sent there.
    """

    src: Tensor
    src_mask: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    tgt_mask: Tensor
    indices: Sequence[int]
    positions: Tensor = field(default_factory=lambda: _UNKNOWN)

    def __post_init__(self) -> None:
        if self.positions is _UNKNOWN:
            object.__setattr__(self, "positions", self.tgt_mask.flatten().nonzero()[:, 0])

    @property
    def n_tokens(self) -> int:
        """The number of predictions, EOS included, padding not."""
        return len(self.positions)

    def parts(self, n: int) -> list["Batch"]:
        """Divide the rows among ``n`` batches, or as many as there are rows."""
        if n == 1:
            return [self]
        ends = np.linspace(0, len(self.indices), min(n, len(self.indices)) + 1).round().astype(int).tolist()
        return [self._rows(slice(start, end)) for start, end in itertools.pairwise(ends)]

    def _rows(self, rows: slice) -> "Batch":
        return replace(self._map(lambda tensor: tensor[rows], _UNKNOWN), indices=self.indices[rows])

    def _map(self, change: Callable[[Tensor], Tensor], positions: Tensor) -> "Batch":
        """Return the batch with each of its (B, …) tensors changed."""
        tensors = self.src, self.src_mask, self.tgt_in, self.tgt_out, self.tgt_mask
        src, src_mask, tgt_in, tgt_out, tgt_mask = map(change, tensors)
        return Batch(src, src_mask, tgt_in, tgt_out, tgt_mask, self.indices, positions)

    def without_targets(self) -> "Batch":
        """Return a batch of these rows with nothing to predict: its summed loss and its gradients are zero."""
        return replace(self, tgt_mask=torch.zeros_like(self.tgt_mask), positions=_UNKNOWN)

    def to(self, device: torch.device) -> "Batch":
        """Return the batch with its tensors on ``device``."""
        if device.type == "cpu":
            return self
        return self._map(lambda tensor: send(tensor, device), send(self.positions, device))


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor on ``device``, without waiting until a GPU is idle: CUDA copies what it has yet to send."""
    return tensor.to(device, non_blocking=device.type != "mps")


def pad(rows: Sequence[Sequence[int] | np.ndarray], pad_id: int, length: int = 0) -> Tensor:
    """Stack rows of ids into one (B, longest) tensor, padded on the right, and to at least ``length``."""
    padded = np.full((len(rows), max(length, *(len(row) for row in rows))), pad_id, dtype=np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return torch.from_numpy(padded)


def make_batch(corpus: Corpus, indices: Sequence[int] | np.ndarray, src_length: int = 0, tgt_length: int = 0) -> Batch:
    """Collect the pairs at ``indices`` of ``corpus`` into a batch, padded to at least the given lengths."""
    indices = [int(index) for index in indices]
    pad_id = corpus.special_ids.pad
    src = pad([corpus.src[i] for i in indices], pad_id, src_length)
    tgt_out = pad([corpus.tgt[i] for i in indices], pad_id, tgt_length)
    start = torch.full((len(indices), 1), corpus.special_ids.start)
    # The last column is EOS or padding in every row; where EOS stays as an input, the output is padding and not scored.
    tgt_in = torch.cat([start, tgt_out[:, :-1]], dim=1)
    return Batch(src, src != pad_id, tgt_in, tgt_out, tgt_out != pad_id, indices)


class PlannedBatch(NamedTuple):
    """The pairs of a batch, as indices into the corpus, and the lengths that its sides are padded to."""

    indices: np.ndarray
    src_length: int
    tgt_length: int


class Plan(Sequence[PlannedBatch]):
    """Batches, kept in arrays: an epoch may have hundreds of thousands.

    Attributes:
        order: (N,) the indices of the pairs, batch by batch.
        bounds: (B, 2) where each batch starts and ends in ``order``.
        lengths: (B, 2) the source and target lengths of each batch.
    """

    def __init__(self, order: np.ndarray, bounds: np.ndarray, lengths: np.ndarray) -> None:
        self.order, self.bounds, self.lengths = order, bounds, lengths

    def __len__(self) -> int:
        return len(self.bounds)

    @overload
    def __getitem__(self, index: int) -> PlannedBatch: ...
    @overload
    def __getitem__(self, index: slice) -> "Plan": ...
    def __getitem__(self, index: int | slice) -> "PlannedBatch | Plan":
        if isinstance(index, slice):
            return Plan(self.order, self.bounds[index], self.lengths[index])
        start, end = self.bounds[index]
        return PlannedBatch(self.order[start:end], *self.lengths[index].tolist())

    def arranged(self, numbers: np.ndarray) -> "Plan":
        """Return the batches with these numbers, in this order."""
        return Plan(self.order, self.bounds[numbers], self.lengths[numbers])

    @property
    def n_rows(self) -> np.ndarray:
        """The number of pairs in each batch: (B,)."""
        return self.bounds[:, 1] - self.bounds[:, 0]

    @property
    def checksum(self) -> int:
        """A number that changes when any batch or their order does."""
        checksum = 0
        for indices, _, _ in self:
            checksum = zlib.crc32(np.append(len(indices), indices).astype(np.int64).tobytes(), checksum)
        return checksum


def epoch_batches(
    corpus: Corpus, max_tokens: int, *, seed: int, epoch: int, order: np.ndarray | None = None, n_parts: int = 1
) -> Plan:
    """Divide the pairs of an epoch into batches of at most ``max_tokens``: rows times the longer side.

    Each epoch regroups pairs of similar length and shuffles the batches, but the shapes of the batches depend on the
    lengths alone. The result depends on the arguments alone, so (epoch, batch number) is a position in the data. A
    pair longer than the budget is a batch of its own.

    Args:
        corpus: encoded pairs.
        max_tokens: the budget.
        seed: of the shuffling.
        epoch: the number of the epoch.
        order: which pairs occur, as :func:`mtformer.data.training.epoch_order` chooses them; None for all, once.
        n_parts: into how many parts batches will be divided; full batches have as many rows in each.
    """
    random = np.random.default_rng([seed, epoch])
    pairs = np.arange(len(corpus)) if order is None else order
    plan = fill_buckets(corpus, random.permutation(pairs), max_tokens, n_parts)
    return plan.arranged(random.permutation(len(plan)))


def fill_buckets(corpus: Corpus, order: np.ndarray, max_tokens: int, n_parts: int = 1) -> Plan:
    """Divide the pairs, taken in ``order``, into full batches of few distinct shapes, from short to long.

    oneDNN generates its kernels for each shape of a matrix and cuBLAS selects one, so a new shape costs time and
    memory. All batches of a bucket have the same shape; the pairs left over move to the next larger bucket.
    """
    buckets, bucket_of = _assign_buckets(corpus)
    waiting = _by_bucket(order, bucket_of, len(buckets))
    taken, bounds, lengths = [], [], []
    end = 0
    for i, bucket in enumerate(buckets):
        n_rows = max(1, max_tokens // int(bucket.max()))
        n_rows -= n_rows % n_parts if n_rows > n_parts else 0  # parts of two sizes would have twice as many shapes
        following = i + 1 + _first_containing(buckets[i + 1 :], bucket)
        moves_on = following < len(buckets) and buckets[following].sum() <= _MOST_GROWTH * bucket.sum()
        n_taken = len(waiting[i]) // n_rows * n_rows if moves_on else len(waiting[i])
        starts = np.arange(0, n_taken, n_rows)
        taken.append(waiting[i][:n_taken])
        bounds.append(end + np.stack([starts, np.minimum(starts + n_rows, n_taken)], axis=1))
        lengths.append(np.tile(bucket, (len(starts), 1)))
        end += n_taken
        if moves_on:
            waiting[following] = np.concatenate([waiting[i][n_taken:], waiting[following]])
    return Plan(*map(np.concatenate, (taken, bounds, lengths)))


def _by_bucket(order: np.ndarray, bucket_of: np.ndarray, n_buckets: int) -> list[np.ndarray]:
    """Return the pairs of each bucket, in ``order``."""
    dtype = np.int32 if len(bucket_of) < 2**31 else np.int64
    buckets = bucket_of[order]
    ends = np.cumsum(np.bincount(buckets, minlength=n_buckets))
    return np.split(order.astype(dtype)[np.argsort(buckets, kind="stable")], ends[:-1])


def _assign_buckets(corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
    """Return the buckets (K, 2) of a corpus, sorted by size, and the number of each pair's bucket, (N,).

    They depend on the lengths alone and take a while, so they are computed once for each corpus.
    """
    known = _buckets_of.get(corpus)
    if known and len(known[1]) == len(corpus):
        return known
    lengths = corpus.src.lengths, corpus.tgt.lengths
    for n_bits, most_padding in ((4, 0.03), (5, 0.02)):  # rounder lengths give fewer distinct products of rows × length
        cells, cell_of, counts = _cells(*lengths, n_bits)
        buckets = _buckets(cells, counts, most_padding)
        if len(buckets) <= _MOST_BUCKETS:
            break
    # They are sorted by size, so the first bucket that a pair fits in is the smallest.
    bucket_of = np.array([_first_containing(buckets, cell) for cell in cells], dtype=np.uint16)[cell_of]
    _buckets_of[corpus] = buckets, bucket_of
    return buckets, bucket_of


def _cells(src_lengths: np.ndarray, tgt_lengths: np.ndarray, n_bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Round lengths (N,) of both sides; more coarsely if there would be too many distinct pairs of them.

    Returns:
        The distinct pairs (C, 2), which of them each pair of sentences has (N,), and how often each occurs (C,).
    """
    src, src_rounded = _rounded(src_lengths, n_bits)
    tgt, tgt_rounded = _rounded(tgt_lengths, n_bits)
    codes = src.astype(np.int32) * len(tgt_rounded) + tgt
    counts = np.bincount(codes, minlength=1)
    cells = np.flatnonzero(counts)
    if len(cells) > _MOST_CELLS and n_bits > 1:
        return _cells(src_lengths, tgt_lengths, n_bits - 1)
    rank = np.zeros(len(counts), dtype=np.int32)
    rank[cells] = np.arange(len(cells))
    src_place, tgt_place = np.divmod(cells, len(tgt_rounded))
    return np.stack([src_rounded[src_place], tgt_rounded[tgt_place]], axis=1), rank[codes], counts[cells]


def _rounded(lengths: np.ndarray, n_bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Round lengths (N,) up to multiples of a power of 2, to numbers of ``n_bits`` bits; not above the longest.

    Returns:
        Which of the rounded lengths each length has (N,), and what they are, increasing.
    """
    known = np.arange(lengths.max(initial=1) + 1)
    step = 1 << np.maximum(np.frexp(known - 0.5)[1] - n_bits, 0)
    rounded, place = np.unique(np.minimum(-(-known // step) * step, known[-1]), return_inverse=True)
    return place.astype(np.uint16)[lengths], rounded


def _buckets(cells: np.ndarray, counts: np.ndarray, most_padding: float) -> np.ndarray:
    """Choose few pairs of lengths (K, 2), sorted by size, that contain all ``cells`` with little padding.

    Args:
        cells: (N, 2) the distinct pairs of lengths.
        counts: (N,) the number of sentence pairs of each.
        most_padding: the share of the tokens that all merging may add.
    """
    clusters = _Clusters(cells, counts)
    budget = most_padding * (counts @ cells).sum()
    while (padding := clusters.least_padding) <= budget:
        clusters.merge_cheapest()
        budget -= padding
    buckets = np.unique(clusters.lengths[clusters.counts > 0], axis=0)
    return buckets[np.argsort(buckets.sum(axis=1), kind="stable")]


class _Clusters:
    """Pairs of lengths that are merged two by two, those first that need the least additional padding.

    Attributes:
        lengths: (N, 2) those that contain all pairs of a cluster.
        counts: (N,) the number of its sentence pairs; 0 once it has been merged into another.
    """

    def __init__(self, lengths: np.ndarray, counts: np.ndarray) -> None:
        self.lengths, self.counts = lengths.copy(), counts.copy()
        self._cost = np.empty((len(counts), len(counts)), dtype=np.float32)  # (N, N) of merging two clusters
        for i in range(len(counts)):
            self._cost[i] = self._padding(i)
        self._nearest = self._cost.argmin(axis=1)  # (N,) the cheapest one to merge each with
        self._least = self._cost.min(axis=1)  # (N,) what that costs

    @property
    def least_padding(self) -> float:
        """The padding that the cheapest merging adds."""
        return float(self._least.min())

    def merge_cheapest(self) -> None:
        """Merge the two clusters that need the least padding."""
        i = int(self._least.argmin())
        j = int(self._nearest[i])
        self.lengths[i] = np.maximum(self.lengths[i], self.lengths[j])
        self.counts[i], self.counts[j] = self.counts[i] + self.counts[j], 0
        self._cost[j, :] = self._cost[:, j] = np.inf
        self._cost[i, :] = self._cost[:, i] = self._padding(i)
        changed = (self._nearest == i) | (self._nearest == j) | (self._cost[i] < self._least)
        changed[[i, j]] = True
        self._nearest[changed] = self._cost[changed].argmin(axis=1)
        self._least[changed] = self._cost[changed].min(axis=1)

    def _padding(self, i: int) -> np.ndarray:
        """Return (N,) the padding that merging cluster i with each other one adds."""
        merged = np.maximum(self.lengths[i], self.lengths).sum(axis=1)
        added = self.counts[i] * (merged - self.lengths[i].sum()) + self.counts * (merged - self.lengths.sum(axis=1))
        padding = np.where(self.counts > 0, added, np.inf)
        padding[i] = np.inf
        return padding


def _first_containing(buckets: np.ndarray, lengths: np.ndarray) -> int:
    """Return the index of the first bucket with both sides at least as long as ``lengths``, or their number."""
    fits = (buckets >= lengths).all(axis=1)
    return int(fits.argmax()) if fits.any() else len(buckets)
