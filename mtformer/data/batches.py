"""Batches filled to a token budget with pairs of similar length.

Shapes: B rows, S source length, T target length.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from mtformer.data.corpus import Corpus
from mtformer.text.tokenizer import BOS_ID, PAD_ID


@dataclass(frozen=True)
class Batch:
    """What one training step sees.

    Attributes:
        src: (B, S) source ids, ended by EOS, padded on the right.
        src_mask: (B, S), True at real pieces.
        tgt_in: (B, T) target ids shifted right: BOS, y1, …, yn.
        tgt_out: (B, T) what is to be predicted: y1, …, yn, EOS.
        indices: the pairs' places in the corpus.
    """

    src: Tensor
    src_mask: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    indices: Sequence[int]

    @property
    def tgt_mask(self) -> Tensor:
        """(B, T), True at real pieces."""
        return self.tgt_out != PAD_ID

    @property
    def n_tokens(self) -> int:
        """The number of predictions, EOS included, padding not."""
        return int(self.tgt_mask.sum())

    def parts(self, n: int) -> list["Batch"]:
        """Divide the rows among ``n`` batches, or as many as there are rows."""
        ends = np.linspace(0, len(self.indices), min(n, len(self.indices)) + 1).round().astype(int).tolist()
        return [self._rows(slice(start, end)) for start, end in itertools.pairwise(ends)]

    def _rows(self, rows: slice) -> "Batch":
        src, src_mask, tgt_in, tgt_out = (x[rows] for x in (self.src, self.src_mask, self.tgt_in, self.tgt_out))
        return Batch(src, src_mask, tgt_in, tgt_out, self.indices[rows])

    def without_targets(self) -> "Batch":
        """Return a batch of these rows with nothing to predict: its summed loss and its gradients are zero."""
        return replace(self, tgt_out=torch.full_like(self.tgt_out, PAD_ID))

    def to(self, device: torch.device) -> "Batch":
        """Return the batch with its tensors on ``device``."""
        if device.type == "cpu":
            return self
        src, src_mask = self.src.to(device), self.src_mask.to(device)
        return Batch(src, src_mask, self.tgt_in.to(device), self.tgt_out.to(device), self.indices)


def pad(rows: Sequence[Sequence[int] | np.ndarray]) -> Tensor:
    """Stack rows of ids into one (B, longest) tensor, padded on the right."""
    padded = np.full((len(rows), max(len(row) for row in rows)), PAD_ID, dtype=np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return torch.from_numpy(padded)


def make_batch(corpus: Corpus, indices: Sequence[int]) -> Batch:
    """Collect the pairs at ``indices`` of ``corpus`` into a batch."""
    src = pad([corpus.src[i] for i in indices])
    tgt_out = pad([corpus.tgt[i] for i in indices])
    bos = torch.full((len(indices), 1), BOS_ID)
    # The last column is EOS or padding in every row; where EOS stays as an input, the output is padding and not scored.
    tgt_in = torch.cat([bos, tgt_out[:, :-1]], dim=1)
    return Batch(src, src != PAD_ID, tgt_in, tgt_out, list(indices))


def epoch_batches(corpus: Corpus, max_tokens: int, *, seed: int, epoch: int) -> list[list[int]]:
    """Divide all pairs into batches of at most ``max_tokens``: rows times the longest side of any row.

    Pairs of equal length meet others in each epoch, and the batches come in random order. The result depends on the
    arguments alone, so a place in the data is told by (epoch, batch number). A pair longer than the budget is a batch
    of its own.
    """
    random = np.random.default_rng([seed, epoch])
    src_lengths, tgt_lengths = corpus.src.lengths, corpus.tgt.lengths
    longest = np.maximum(src_lengths, tgt_lengths)
    order = random.permutation(len(corpus))
    order = order[np.lexsort((src_lengths[order], tgt_lengths[order], longest[order]))]
    batches = fill_batches(order.tolist(), longest.tolist(), max_tokens)
    random.shuffle(batches)
    return batches


def fill_batches(order: Sequence[int], lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Cut ``order`` into batches so that rows times the longest of ``lengths`` stays within ``max_tokens``."""
    batches: list[list[int]] = []
    batch: list[int] = []
    longest = 0
    for index in order:
        longest = max(longest, lengths[index])
        if batch and (len(batch) + 1) * longest > max_tokens:
            batches.append(batch)
            batch, longest = [], lengths[index]
        batch.append(index)
    if batch:
        batches.append(batch)
    return batches
