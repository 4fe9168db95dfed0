from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
from conftest import BOS_ID, EOS_ID, PAD_ID

from mtformer.data import buckets as buckets_module
from mtformer.data.arrays import Ragged
from mtformer.data.batches import BatchPlan, PlannedBatch, epoch_batches, make_batch, pad
from mtformer.data.buckets import buckets_of
from mtformer.data.tokens import Corpus
from mtformer.search.engine import fill_batches

MAX_TOKENS = 1024


def corpus_of(rows: list[tuple[list[int], list[int]]]) -> Corpus:
    return Corpus(Ragged.of([src for src, _ in rows]), Ragged.of([tgt for _, tgt in rows]))


def row_of(length: int) -> list[int]:
    return [9] * (length - 1) + [EOS_ID]


def random_corpus(n: int = 4000, seed: int = 1) -> Corpus:
    """Draw pairs with the lengths of real text: from 2 to 120 pieces, the target near 1.1 times the source."""
    random = np.random.default_rng(seed)
    src_lengths = np.clip(random.lognormal(3.0, 0.5, n), 2, 100).astype(int)
    tgt_lengths = np.clip(src_lengths * random.normal(1.1, 0.15, n), 2, 120).astype(int)
    return corpus_of([(row_of(s), row_of(t)) for s, t in zip(src_lengths, tgt_lengths, strict=True)])


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return random_corpus()


def sets(batches: Iterable[PlannedBatch]) -> set[frozenset[int]]:
    return {frozenset(batch.indices.tolist()) for batch in batches}


def rows(batches: Iterable[PlannedBatch]) -> list[list[int]]:
    return [batch.indices.tolist() for batch in batches]


def shapes(batches: Iterable[PlannedBatch]) -> list[tuple[int, int, int]]:
    return [(len(batch.indices), batch.src_length, batch.tgt_length) for batch in batches]


def test_targets_are_shifted_right_and_padding_is_masked() -> None:
    corpus = corpus_of([([7, 8, 9, 3], [5, 3]), ([4, 3], [6, 7, 8, 3]), ([3], [3])])
    batch = make_batch(corpus, [1, 0, 2])
    assert (PAD_ID, BOS_ID, EOS_ID) == (0, 2, 3)
    assert batch.src.tolist() == [[4, 3, 0, 0], [7, 8, 9, 3], [3, 0, 0, 0]]
    assert batch.src_mask.tolist() == [[True, True, False, False], [True] * 4, [True, False, False, False]]
    assert batch.tgt_out.tolist() == [[6, 7, 8, 3], [5, 3, 0, 0], [3, 0, 0, 0]]
    assert batch.tgt_mask.tolist() == [[True] * 4, [True, True, False, False], [True, False, False, False]]
    # What is predicted at each place is the next input; behind a row's EOS nothing is predicted.
    assert batch.tgt_in.tolist()[0] == [2, 6, 7, 8]
    assert batch.tgt_in.tolist()[1][:2] == [2, 5]
    assert batch.tgt_in.tolist()[2][:1] == [2]
    assert batch.tgt_in.shape == batch.tgt_out.shape
    assert batch.n_tokens == 7
    assert list(batch.indices) == [1, 0, 2]
    assert {batch.src.dtype, batch.tgt_in.dtype, batch.tgt_out.dtype} == {torch.int64}


def test_all_tensors_of_a_batch_move_to_a_device() -> None:
    batch = make_batch(corpus_of([([4, 3], [5, 6, 3])]), [0])
    moved = batch.to(torch.device("meta"))
    tensors = (moved.src, moved.src_mask, moved.tgt_in, moved.tgt_out, moved.tgt_mask)
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert (moved.src.shape, moved.tgt_in.shape, moved.indices) == ((1, 2), (1, 3), [0])
    assert batch.to(torch.device("cpu")).src.tolist() == [[4, 3]]


def test_rows_are_padded_on_the_right_to_the_longest() -> None:
    assert pad([[5], np.array([6, 7], dtype=np.int32), []], PAD_ID).tolist() == [[5, 0], [6, 7], [0, 0]]


@pytest.mark.parametrize(
    ("lengths", "max_tokens", "batches"),
    [
        ([], 10, []),
        ([5, 5, 5], 10, [[0, 1], [2]]),
        ([3, 3, 4, 4, 2], 12, [[0, 1, 2], [3, 4]]),
        ([2, 6, 2], 10, [[0], [1], [2]]),
        ([1, 2, 3, 4], 9, [[0, 1, 2], [3]]),
        ([11, 4, 30, 30, 5, 5], 10, [[0], [1], [2], [3], [4, 5]]),
        ([10, 10], 10, [[0], [1]]),
    ],
)
def test_batches_are_filled_until_the_next_row_is_too_much(
    lengths: list[int], max_tokens: int, batches: list[list[int]]
) -> None:
    assert fill_batches(range(len(lengths)), lengths, max_tokens) == batches


def test_batches_are_filled_in_the_given_order() -> None:
    assert fill_batches([2, 0, 1], [1, 9, 3], max_tokens=9) == [[2, 0], [1]]


@pytest.mark.parametrize("epoch", range(3))
def test_each_pair_is_in_one_batch_of_an_epoch_and_no_batch_is_over_the_budget(corpus: Corpus, epoch: int) -> None:
    batches = epoch_batches(corpus, MAX_TOKENS, seed=1, epoch=epoch)
    assert sorted(chain.from_iterable(batch.indices for batch in batches)) == list(range(len(corpus)))
    for planned in batches:
        batch = make_batch(corpus, *planned)
        assert batch.src.shape == (len(planned.indices), planned.src_length)
        assert batch.tgt_in.shape == (len(planned.indices), planned.tgt_length)
        assert max(batch.src.numel(), batch.tgt_in.numel()) <= MAX_TOKENS


def test_a_pair_over_the_budget_is_a_batch_of_its_own() -> None:
    short = ([9, 3], [9, 3])
    corpus = corpus_of([short, ([9] * 99 + [3], [9, 3]), short, ([9, 3], [9] * 49 + [3]), short])
    batches = epoch_batches(corpus, 20, seed=1, epoch=0)
    assert sets(batches) == {frozenset({1}), frozenset({3}), frozenset({0, 2, 4})}


@pytest.mark.parametrize("all_of_one_length", [True, False])
def test_batches_depend_on_the_seed_and_the_epoch_alone(corpus: Corpus, all_of_one_length: bool) -> None:
    corpus = corpus_of([(row_of(20), row_of(20))] * 1000) if all_of_one_length else corpus

    def batches(seed: int, epoch: int) -> BatchPlan:
        return epoch_batches(corpus, MAX_TOKENS, seed=seed, epoch=epoch)

    first = batches(1, 0)
    np.random.seed(7)  # the global generators play no part
    torch.manual_seed(7)
    assert rows(batches(1, 0)) == rows(first)
    assert batches(1, 0).checksum == first.checksum
    assert rows(batches(2, 1)) != rows(batches(1, 2))
    assert batches(2, 1).checksum != batches(1, 2).checksum
    for other in (batches(1, 1), batches(2, 0)):
        # Pairs of equal length meet others; those of a rare length have no choice.
        assert len(sets(other) & sets(first)) <= (0 if all_of_one_length else 0.5 * len(first))


def test_batches_come_in_random_order_of_length(corpus: Corpus) -> None:
    batches = epoch_batches(corpus, MAX_TOKENS, seed=1, epoch=0)
    longest = np.array([batch.tgt_length for batch in batches])
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.3
    orders = [
        np.argsort([min(batch.indices) for batch in epoch_batches(corpus, MAX_TOKENS, seed=1, epoch=epoch)])
        for epoch in range(2)
    ]
    assert orders[0].tolist() != orders[1].tolist()


@pytest.mark.parametrize("seed", range(3))
def test_little_of_a_batch_is_padding_and_batches_are_full(seed: int) -> None:
    corpus = random_corpus(seed=seed)
    batches = [make_batch(corpus, *batch) for batch in epoch_batches(corpus, MAX_TOKENS, seed=seed, epoch=0)]
    n_places = sum(batch.src.numel() + batch.tgt_in.numel() for batch in batches)
    n_pieces = sum(int(batch.src_mask.sum()) + batch.n_tokens for batch in batches)
    assert 1 - n_pieces / n_places < 0.10
    n_used = sum(max(batch.src.numel(), batch.tgt_in.numel()) for batch in batches)
    assert n_used / (len(batches) * MAX_TOKENS) > 0.9


def padding(corpus: Corpus, batches: BatchPlan) -> float:
    n_places = sum(n_rows * (src_length + tgt_length) for n_rows, src_length, tgt_length in shapes(batches))
    return 1 - float(corpus.src.lengths.sum() + corpus.tgt.lengths.sum()) / n_places


def test_all_epochs_have_the_same_shapes_and_captions_have_few() -> None:
    random = np.random.default_rng(1)
    src_lengths = np.clip(random.lognormal(2.75, 0.25, 10_000), 5, 60).astype(int)  # as in Multi30k
    tgt_lengths = np.clip(src_lengths * random.normal(1.03, 0.15, 10_000), 5, 60).astype(int)
    corpus = corpus_of([(row_of(s), row_of(t)) for s, t in zip(src_lengths, tgt_lengths, strict=True)])
    first, other = (epoch_batches(corpus, MAX_TOKENS, seed=seed, epoch=seed) for seed in (1, 2))
    assert sorted(shapes(first)) == sorted(shapes(other))
    assert len(first) > 150
    assert len(set(shapes(first))) <= 75
    assert padding(corpus, first) < 0.07


def test_where_few_shapes_would_take_much_padding_there_are_more() -> None:
    corpus = random_corpus(20_000)
    batches = epoch_batches(corpus, 4 * MAX_TOKENS, seed=1, epoch=0)
    assert padding(corpus, batches) < 0.07


def test_pairs_left_over_join_slightly_longer_ones_but_not_much_longer_ones() -> None:
    lengths = [(20, 20)] * 5 + [(24, 20)] * 3 + [(60, 60)]
    corpus = corpus_of([(row_of(s), row_of(t)) for s, t in lengths])
    batches = epoch_batches(corpus, 80, seed=1, epoch=0)
    assert sorted(shapes(batches)) == [(1, 24, 20), (1, 60, 60), (3, 24, 20), (4, 20, 20)]


def test_buckets_are_never_longer_than_the_longest_pair() -> None:
    corpus = corpus_of([(row_of(s), row_of(t)) for s in range(2, 100) for t in range(s, min(2 * s, 123))])
    batches = epoch_batches(corpus, MAX_TOKENS, seed=1, epoch=0)
    assert (max(b.src_length for b in batches), max(b.tgt_length for b in batches)) == (99, 122)


def test_pairs_of_nearly_the_same_lengths_share_a_bucket() -> None:
    """The example of :mod:`mtformer.data.buckets`."""
    lengths = [(3, 4), (3, 4), (3, 5), (17, 17), (18, 17), (40, 41)]
    buckets = buckets_of(corpus_of([(row_of(s), row_of(t)) for s, t in lengths]))
    assert buckets.lengths.tolist() == [[3, 5], [18, 18], [40, 41]]
    assert buckets.of_pair.tolist() == [0, 0, 0, 1, 1, 2]


def test_buckets_are_computed_once_for_a_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = random_corpus(500)
    first = epoch_batches(corpus, MAX_TOKENS, seed=1, epoch=0)
    monkeypatch.setattr(buckets_module, "_merged", None)
    assert rows(epoch_batches(corpus, MAX_TOKENS, seed=1, epoch=0)) == rows(first)


def test_many_distinct_lengths_are_rounded_more_coarsely_than_few(monkeypatch: pytest.MonkeyPatch) -> None:
    n_cells: list[int] = []
    cluster = buckets_module._merged

    def count(cells: np.ndarray, *arguments: Any) -> np.ndarray:
        n_cells.append(len(cells))
        return cluster(cells, *arguments)

    monkeypatch.setattr(buckets_module, "_merged", count)
    monkeypatch.setattr(buckets_module, "_MOST_CELLS", 100)
    corpus = random_corpus()
    batches = epoch_batches(corpus, MAX_TOKENS, seed=1, epoch=0)
    assert 0 < max(n_cells) <= 100
    assert sorted(chain.from_iterable(batch.indices for batch in batches)) == list(range(len(corpus)))
