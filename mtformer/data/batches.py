"""Batches filled to a token budget with pairs of similar length.

Shapes: B rows, S source length, T target length.
"""

import itertools
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, overload

import numpy as np
import torch
from torch import Tensor

from mtformer.data.buckets import buckets_of, first_containing
from mtformer.data.tokens import Corpus

_MOST_GROWTH = 1.25  # leftover pairs move to a bucket at most this much longer; otherwise they form a smaller batch

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
        return replace(self.mapped(lambda tensor: tensor[rows], _UNKNOWN), indices=self.indices[rows])

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The (B, …) tensors, whose shapes follow from those of source and target."""
        return self.src, self.src_mask, self.tgt_in, self.tgt_out, self.tgt_mask

    def mapped(self, change: Callable[[Tensor], Tensor], positions: Tensor) -> "Batch":
        """Return the batch with each of its :attr:`tensors` changed."""
        src, src_mask, tgt_in, tgt_out, tgt_mask = map(change, self.tensors)
        return Batch(src, src_mask, tgt_in, tgt_out, tgt_mask, self.indices, positions)

    def without_targets(self) -> "Batch":
        """Return a batch of these rows without targets: its summed loss and its gradients are zero."""
        return replace(self, tgt_mask=torch.zeros_like(self.tgt_mask), positions=_UNKNOWN)

    def to(self, device: torch.device) -> "Batch":
        """Return the batch with its tensors on ``device``."""
        if device.type == "cpu":
            return self
        return self.mapped(lambda tensor: send(tensor, device), send(self.positions, device))


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor on ``device`` without waiting until a GPU is idle; CUDA keeps a copy until it is sent."""
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


class BatchPlan(Sequence[PlannedBatch]):
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
    def __getitem__(self, index: slice) -> "BatchPlan": ...
    def __getitem__(self, index: int | slice) -> "PlannedBatch | BatchPlan":
        if isinstance(index, slice):
            return BatchPlan(self.order, self.bounds[index], self.lengths[index])
        start, end = self.bounds[index]
        return PlannedBatch(self.order[start:end], *self.lengths[index].tolist())

    def arranged(self, numbers: np.ndarray) -> "BatchPlan":
        """Return the batches with these numbers, in this order."""
        return BatchPlan(self.order, self.bounds[numbers], self.lengths[numbers])

    @property
    def checksum(self) -> int:
        """A number that changes when any batch or their order does."""
        checksum = 0
        for indices, _, _ in self:
            checksum = zlib.crc32(np.append(len(indices), indices).astype(np.int64).tobytes(), checksum)
        return checksum


def epoch_batches(
    corpus: Corpus, max_tokens: int, *, seed: int, epoch: int, order: np.ndarray | None = None, n_parts: int = 1
) -> BatchPlan:
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


def fill_buckets(corpus: Corpus, order: np.ndarray, max_tokens: int, n_parts: int = 1) -> BatchPlan:
    """Divide the pairs, taken in ``order``, into full batches of few distinct shapes, from short to long.

    oneDNN generates its kernels for each shape of a matrix and cuBLAS selects one, so a new shape costs time and
    memory. All batches of a bucket have the same shape; the pairs left over move to the next larger bucket.
    """
    buckets, bucket_of_pair = buckets_of(corpus)
    waiting = _by_bucket(order, bucket_of_pair, len(buckets))
    taken, bounds, lengths = [], [], []
    end = 0
    for i, bucket in enumerate(buckets):
        n_rows = max(1, max_tokens // int(bucket.max()))
        n_rows -= n_rows % n_parts if n_rows > n_parts else 0  # parts of two sizes would have twice as many shapes
        following = i + 1 + first_containing(buckets[i + 1 :], bucket)
        moves_on = following < len(buckets) and buckets[following].sum() <= _MOST_GROWTH * bucket.sum()
        n_taken = len(waiting[i]) // n_rows * n_rows if moves_on else len(waiting[i])
        starts = np.arange(0, n_taken, n_rows)
        taken.append(waiting[i][:n_taken])
        bounds.append(end + np.stack([starts, np.minimum(starts + n_rows, n_taken)], axis=1))
        lengths.append(np.tile(bucket, (len(starts), 1)))
        end += n_taken
        if moves_on:
            waiting[following] = np.concatenate([waiting[i][n_taken:], waiting[following]])
    return BatchPlan(*map(np.concatenate, (taken, bounds, lengths)))


def _by_bucket(order: np.ndarray, bucket_of_pair: np.ndarray, n_buckets: int) -> list[np.ndarray]:
    """Return the pairs of each bucket, in ``order``."""
    dtype = np.int32 if len(bucket_of_pair) < 2**31 else np.int64
    buckets = bucket_of_pair[order]
    ends = np.cumsum(np.bincount(buckets, minlength=n_buckets))
    return np.split(order.astype(dtype)[np.argsort(buckets, kind="stable")], ends[:-1])
