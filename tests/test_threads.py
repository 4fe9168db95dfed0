"""Parts of a batch that are computed side by side: the same results whatever the threads do when."""

import gc
import os
import random
import subprocess
import sys
import threading
import time
import weakref
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from conftest import Project, training_settings
from engines import request, score
from test_search import EOS, make_model
from test_update import batches_of, make_updater, weights, with_sgd
from torch import Tensor
from torch.testing import assert_close

from mtformer.bundle.format import load_bundle
from mtformer.data.batches import Batch
from mtformer.engines import torch as torch_engine
from mtformer.engines.torch import TorchEngine
from mtformer.model.dropout import Dropout, randomness_from
from mtformer.support.processes.threads import Threads, choose_threads, one_core_per_operation
from mtformer.training import update as module
from mtformer.training.update import Updater


@pytest.mark.parametrize(
    ("n_cores", "max_tokens", "expected"), [(1, 8_192, 1), (2, 2_048, 2), (16, 2_048, 4), (16, 100, 1)]
)
def test_cores_and_batches_choose_the_number_of_threads(n_cores: int, max_tokens: int, expected: int) -> None:
    assert choose_threads(n_cores, max_tokens) == expected


def test_results_come_in_order_and_an_error_waits_for_calls_that_have_begun() -> None:
    order, ended = [threading.Event() for _ in range(4)], []

    def work(i: int) -> int:
        if i < 3:
            order[i + 1].wait(10)  # the last one ends first
        ended.append(i)
        order[i].set()
        return 2 * i

    assert list(Threads(4).map(work, range(4))) == [0, 2, 4, 6]
    assert ended == [3, 2, 1, 0]

    def fail(i: int) -> int:
        if i == 0:
            begun.wait(10)
            raise ValueError("first")
        begun.set()
        time.sleep(0.2)
        ended.append(i)
        return i

    begun = threading.Event()
    ended.clear()
    with pytest.raises(ValueError, match="first"):
        list(Threads(2).map(fail, [0, 1]))
    assert ended == [1]


def test_an_error_keeps_nothing_alive() -> None:
    """Its tensors are freed at once, without the garbage collector, or trying again would run out of memory too."""
    kept = []

    def fail(i: int) -> None:
        tensor = torch.empty(8)
        kept.append(weakref.ref(tensor))
        raise MemoryError

    def catch() -> None:
        with pytest.raises(MemoryError):
            list(Threads(2).map(fail, [0, 1]))

    gc.disable()
    try:
        catch()
        ends = time.monotonic() + 10  # a thread may take a moment to leave its handler
        while any(tensor() is not None for tensor in kept) and time.monotonic() < ends:
            time.sleep(0.01)
        assert [tensor() for tensor in kept] == [None] * len(kept)
    finally:
        gc.enable()


def test_nothing_to_do_is_done() -> None:
    assert list(Threads(2).map(str, [])) == []


def test_a_model_on_a_gpu_computes_in_one_thread() -> None:
    """There, threads would take turns, draw from one generator and lack what autocast has set in the first."""
    model = make_updater().model.to("meta")
    assert Updater(model, training_settings(threads=2, optimizer="adam")).threads.n == 1


def test_torch_has_its_threads_again_after_the_work() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), one_core_per_operation():
        assert torch.get_num_threads() == 1
        _ = 1 / 0
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(("most_weights", "n_threads"), [(2**25, 1), (0, 3)])
def test_a_lone_batch_of_a_small_model_is_computed_on_one_core(
    monkeypatch: pytest.MonkeyPatch, most_weights: int, n_threads: int
) -> None:
    """Beside a busy program, cores that share the operations of a search would wait for the slowest of them."""
    monkeypatch.setattr(torch_engine, "_SMALL", most_weights)
    used: set[int] = set()
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        engine = TorchEngine(make_model(3))
        engine.model.encoder_layers[0].register_forward_hook(lambda *_: used.add(torch.get_num_threads()))
        score(engine, [[7, 4, EOS]], [[5]])
        assert used == {n_threads}
        search = Mock(side_effect=lambda *_: [torch.get_num_threads()])
        monkeypatch.setattr(engine, "_search", search)
        observed: Any = engine.observe(request([7, 4, EOS], 5), Mock())
        assert observed == n_threads
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_threads_of_torch_do_not_wait_in_a_busy_loop() -> None:
    """OpenMP reads the variable when torch is imported, so it is set before; users may set another value."""
    show = "import mtformer, os, sys; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    for given, expected in (({}, "passive"), ({"OMP_WAIT_POLICY": "active"}, "active")):
        environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"} | given
        done = subprocess.run([sys.executable, "-c", show], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == f"{expected} False\n"


@pytest.mark.parametrize("n_threads", [2, 3])
def test_threads_compute_the_gradient_of_the_whole_batch(n_threads: int) -> None:
    alone, together = with_sgd(), with_sgd(threads=n_threads)
    before = weights(alone)
    expected = alone.update(batches_of(range(5), range(5, 8)), 1, 1.0)
    update = together.update(batches_of(range(5), range(5, 8)), 1, 1.0)
    assert update.n_tokens == expected.n_tokens
    assert update.loss == pytest.approx(expected.loss, rel=1e-5)
    assert_close(weights(together) - before, weights(alone) - before, rtol=1e-3, atol=1e-6)


def trained_with_delays(monkeypatch: pytest.MonkeyPatch, seed: int) -> tuple[Tensor, list[float]]:
    """Train with dropout and Muon in three threads, each of which waits at times that the seed draws."""
    delays, summed_loss = random.Random(seed), module.summed_loss

    def late(*arguments: Any, **keywords: Any) -> object:
        time.sleep(delays.choice([0.0, 0.02]))
        return summed_loss(*arguments, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(module, "summed_loss", late)
        updater = make_updater(dropout=0.3, threads=3, optimizer="muon", ema_decay=0.9)
        losses = [updater.update(batches_of(range(8)), step, 0.01).loss for step in range(1, 6)]
    return weights(updater), losses


def test_updates_are_the_same_whichever_thread_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    first, losses = trained_with_delays(monkeypatch, 1)
    for seed in (2, 3):
        again, losses_again = trained_with_delays(monkeypatch, seed)
        assert torch.equal(again, first)
        assert losses_again == losses


def test_the_masks_of_a_thread_follow_from_its_seed_alone() -> None:
    dropout, x = Dropout(0.5), torch.ones(64)

    def masked(seed: int) -> Tensor:
        with randomness_from(seed):
            return torch.cat([dropout(x), dropout(x)])

    alone = [masked(seed) for seed in range(8)]
    assert len({tuple(mask.tolist()) for mask in alone}) == 8
    assert all(torch.equal(*both) for both in zip(Threads(4).map(masked, range(8)), alone, strict=True))


def test_memory_that_runs_out_in_one_thread_splits_the_batch_for_all(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    alone, together = with_sgd(), with_sgd(threads=2)
    before = weights(alone)
    alone.update(batches_of(range(8)), 1, 1.0)
    summed_loss = module.summed_loss

    def starve(model: Any, batch: Batch, *arguments: Any) -> object:
        if len(batch.indices) > 2:
            raise MemoryError
        return summed_loss(model, batch, *arguments)

    monkeypatch.setattr(module, "summed_loss", starve)
    together.update(batches_of(range(8)), 1, 1.0)
    assert together.n_parts == 2
    assert "batches are split into 2 parts" in caplog.text
    assert_close(weights(together) - before, weights(alone) - before, rtol=1e-3, atol=1e-6)


@pytest.mark.slow
def test_a_run_keeps_its_number_of_threads_on_other_machines(project: Project) -> None:
    """Resumed with one core, it ends with the weights of a run that had two all the time."""
    settings = ("max_steps=4", "max_tokens=1024", "schedule=constant", "warmup_steps=0", "checkpoint_every=2")
    common = [
        part for setting in (*(f"training.{s}" for s in settings), "model.dropout=0.3") for part in ("--set", setting)
    ]

    def train(name: str, n_cores: int, *more: str) -> None:
        result = project.mtformer(
            "train", project.config, *common, "--set", f"run.name={name}", *more, env={"OMP_NUM_THREADS": str(n_cores)}
        )
        assert result.status == 0, result.stderr

    train("whole", 2)
    dry_run = project.mtformer("train", project.config, *common, "--dry-run", env={"OMP_NUM_THREADS": "2"})
    assert "2 threads" in dry_run.stdout
    train("parts", 2, "--set", "training.max_steps=2")
    train("parts", 1)
    whole, parts = (
        load_bundle(project.folder / "runs" / name / "model.safetensors").model for name in ("whole", "parts")
    )
    assert all(map(torch.equal, whole.parameters(), parts.parameters()))
