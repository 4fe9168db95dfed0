from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from conftest import training_settings
from recorded_graph import Recorded
from torch import Tensor
from torch.testing import assert_close

from mtformer.config import ModelConfig
from mtformer.data.arrays import Ragged
from mtformer.data.batches import Batch, make_batch
from mtformer.data.tokens import Corpus
from mtformer.model import graphs
from mtformer.model.transformer import Transformer
from mtformer.support.errors import MtformerError
from mtformer.training.update import Updater


def make_corpus(n: int = 8) -> Corpus:
    random = np.random.default_rng(1)
    rows = [[*random.integers(4, 30, size=random.integers(1, 12)).tolist(), 3] for _ in range(2 * n)]
    return Corpus(Ragged.of(rows[::2]), Ragged.of(rows[1::2]))


CORPUS = make_corpus()


def make_updater(*, dropout: float = 0.0, **settings: Any) -> Updater:
    config = ModelConfig(d_model=16, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1, dropout=dropout)
    torch.manual_seed(1)
    model = Transformer(config.architecture(src_vocab_size=30, tgt_vocab_size=30, joint=True, max_length=16))
    return Updater(model, training_settings(**settings))


def with_sgd(**settings: Any) -> Updater:
    """An updater that moves weights by the gradient times the learning rate, so that they show the gradient."""
    updater = make_updater(**settings)
    updater.optimizers = [torch.optim.SGD(updater.model.parameters(), lr=0.0)]
    return updater


def batches_of(*groups: range) -> list[Batch]:
    return [make_batch(CORPUS, list(group)) for group in groups]


def weights(updater: Updater) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in updater.model.parameters()])


def test_eight_pairs_at_once_and_four_times_two_accumulated_are_the_same_update() -> None:
    at_once, in_parts = with_sgd(max_grad_norm=0.5), with_sgd(max_grad_norm=0.5)
    before = weights(at_once)
    update = at_once.update(batches_of(range(8)), 1, 1.0)
    other = in_parts.update(batches_of(range(2), range(2, 4), range(4, 6), range(6, 8)), 1, 1.0)
    assert update.n_tokens == other.n_tokens == CORPUS.tgt.lengths.sum()
    assert update.loss == pytest.approx(other.loss, rel=1e-5)
    assert_close(weights(in_parts) - before, weights(at_once) - before, rtol=1e-3, atol=1e-6)


def test_gradients_are_scaled_down_to_the_largest_norm_and_not_up() -> None:
    moves = {}
    for max_grad_norm in (0.01, 1e3, 1e6):
        updater = with_sgd(max_grad_norm=max_grad_norm)
        before = weights(updater)
        updater.update(batches_of(range(8)), 1, 1.0)
        moves[max_grad_norm] = weights(updater) - before
    assert moves[0.01].norm().item() == pytest.approx(0.01, rel=1e-3)
    assert 0.01 < moves[1e3].norm() < 1e3
    assert torch.equal(moves[1e3], moves[1e6])
    assert torch.cosine_similarity(moves[0.01], moves[1e3], dim=0).item() == pytest.approx(1.0, abs=1e-4)


def test_what_is_random_depends_on_seed_and_step_and_on_nothing_before() -> None:
    results = {}
    for seed, step, drawn_before in ((1, 1, 0), (1, 1, 5), (1, 2, 0), (2, 1, 0)):
        updater = with_sgd(dropout=0.5, seed=seed)
        torch.rand(drawn_before)
        updater.update(batches_of(range(8)), step, 1.0)
        results[seed, step, drawn_before] = weights(updater)
    first, same, *others = results.values()
    assert torch.equal(first, same)
    assert not any(torch.equal(first, other) for other in others)


class Starved(Updater):
    """Has no memory for more than so many rows at once, which it finds out when some gradients are there."""

    rows = 2

    def _gradients(self, parts: Sequence[Batch], step: int, n_tokens: float) -> list[Tensor]:
        if any(len(part.indices) > self.rows for part in parts):
            super()._gradients(parts[:2], step, n_tokens)
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return super()._gradients(parts, step, n_tokens)


def starved(rows: int) -> Starved:
    fed = with_sgd()
    updater = Starved(fed.model, fed.settings)
    updater.optimizers = fed.optimizers
    updater.rows = rows
    return updater


def test_when_memory_runs_out_the_parts_get_smaller_and_the_update_stays_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fed, hungry = with_sgd(), starved(rows=2)
    before = weights(fed)
    for step in (1, 2):
        update = fed.update(batches_of(range(5), range(5, 8)), step, 0.1)
        other = hungry.update(batches_of(range(5), range(5, 8)), step, 0.1)
        assert other.loss == pytest.approx(update.loss, rel=1e-5)
        assert other.n_tokens == update.n_tokens
    assert_close(weights(hungry) - before, weights(fed) - before, rtol=1e-3, atol=1e-6)
    warnings = [record.getMessage() for record in caplog.records]
    assert [warning.partition("split into ")[2][:7] for warning in warnings] == ["2 parts", "4 parts"]


def test_updates_that_are_graphs_leave_the_batches_for_another_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    fed = with_sgd()
    monkeypatch.setitem(graphs.CAPTURES, "cpu", Recorded)
    batches = [make_batch(CORPUS, rows, 13, 13) for rows in ([0, 1], [2, 3], [4, 5, 6, 7])]
    expected = fed.update(batches, 1, 0.1)
    assert starved(rows=3).update(batches, 1, 0.1).loss == pytest.approx(expected.loss, rel=1e-5)


def test_a_pair_that_does_not_fit_into_memory_alone_is_told() -> None:
    hungry = starved(rows=0)
    before = weights(hungry)
    with pytest.raises(MtformerError, match="not even a single sentence pair fits"):
        hungry.update(batches_of(range(3)), 1, 0.1)
    assert torch.equal(weights(hungry), before)


def test_other_errors_of_torch_are_not_taken_for_a_lack_of_memory() -> None:
    updater = make_updater()
    batch = make_batch(CORPUS, [0])
    with pytest.raises(IndexError):
        updater.update([replace(batch, src=batch.src + 100)], 1, 0.1)


def test_parts_of_a_batch_are_its_rows() -> None:
    batch = make_batch(CORPUS, [3, 1, 4, 0, 5])
    parts = batch.parts(3)
    assert [part.indices for part in parts] == [[3, 1], [4], [0, 5]]
    for name in ("src", "src_mask", "tgt_in", "tgt_out"):
        assert torch.equal(torch.cat([getattr(part, name) for part in parts]), getattr(batch, name))
    assert [part.indices for part in batch.parts(8)] == [[3], [1], [4], [0], [5]]


def test_a_loss_of_many_times_the_usual_one_is_a_fault_that_names_its_pairs() -> None:
    updater = make_updater(spike_factor=2.0)
    sound = updater.update(batches_of(range(4)), 1, 0.01)
    before = weights(updater)
    usual = sound.mean_loss
    assert not updater.update(batches_of(range(4)), 2, 0.01, usual).fault
    moved = weights(updater)
    assert not torch.equal(moved, before)
    update = updater.update(batches_of(range(4), range(4, 6)), 3, 0.01, usual / 3)
    assert "in the steps before" in update.fault
    assert list(update.suspects) == list(range(6))
    assert torch.equal(weights(updater), moved)
    assert all(parameter.grad is None for parameter in updater.model.parameters())


@pytest.mark.parametrize("settings", [{}, {"optimizer": "muon", "ema_decay": 0.9}])
def test_updates_that_are_graphs_do_the_same(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = make_updater(**settings)
    monkeypatch.setitem(graphs.CAPTURES, "cpu", Recorded)
    Recorded.captured.clear()
    graphed = make_updater(**settings)
    shapes = [range(8)], [range(4), range(4, 8)], [range(8)], [range(4, 8), range(4)], [range(3)], [range(8)]
    for step, groups in enumerate(shapes, 1):
        update = graphed.update(batches_of(*groups), step, 0.01 * step)
        expected = plain.update(batches_of(*groups), step, 0.01 * step)
        assert update.loss == pytest.approx(expected.loss, rel=1e-4)
        assert update.cross_entropy == pytest.approx(expected.cross_entropy, rel=1e-4)
        assert update.grad_norm == pytest.approx(expected.grad_norm, rel=1e-3)
        differs = (weights(graphed) - weights(plain)).abs() > 1e-4
        assert differs.float().mean() < 0.02  # Adam makes much of what rounding does to gradients near zero
    assert [graph.n_replays for graph in Recorded.captured] == [5, 2, 1, 1]


@pytest.mark.parametrize(("threads", "capture"), [(2, None), (1, Recorded)])
def test_fused_optimizers_read_gradients_that_lie_in_others(
    threads: int, capture: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gradient of the output's bias is a column of that of the output."""
    config = ModelConfig(d_model=16, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1, dropout=0.0)
    sizes = config.architecture(src_vocab_size=30, tgt_vocab_size=30, joint=True, max_length=16)
    biases = []
    for n, graph in ((1, None), (threads, capture)):
        monkeypatch.setitem(graphs.CAPTURES, "cpu", graph)
        torch.manual_seed(1)
        model = Transformer(sizes.model_copy(update={"output_bias": True}))
        Updater(model, training_settings(threads=n)).update(batches_of(range(8)), 1, 0.01)
        biases.append(model.output.bias.detach())
    assert_close(*biases)
