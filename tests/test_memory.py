"""Finding the batch that fits into memory."""

import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch
import yaml
from conftest import make_project, training_settings
from test_update import CORPUS, make_updater

from mtformer.data.batches import Batch, make_batch
from mtformer.model.output import Losses
from mtformer.model.transformer import Transformer
from mtformer.support.errors import MtformerError
from mtformer.training.memory import _largest, _limited_memory, largest_max_tokens, peak_memory
from mtformer.training.update import Updater, is_out_of_memory, summed_loss

SETTINGS = training_settings()


@pytest.mark.parametrize("limit", [1, 64, 700, 1_023, 1_024, 1_500, 5_000, 123_456])
@pytest.mark.parametrize("most", [100, 3_000, 200_000])
def test_the_largest_that_fits_is_found_to_an_eighth(limit: int, most: int) -> None:
    tried: list[int] = []

    def fits(n: int) -> bool:
        tried.append(n)
        return n <= limit

    found = _largest(fits, most)
    assert found <= min(limit, most)
    assert found * 9 / 8 + 1 >= min(limit, most)
    assert max(tried) <= most
    assert len(tried) < 30


def test_batches_are_tried_at_the_longest_pair_and_an_epoch_keeps_many(monkeypatch: pytest.MonkeyPatch) -> None:
    updater = make_updater()
    before = [parameter.detach().clone() for parameter in updater.model.parameters()]
    sizes: list[tuple[int, int]] = []

    def fits(_: Updater, batch: Batch) -> bool:
        sizes.append((batch.tgt_out.size(0), batch.tgt_out.size(1)))
        return True

    monkeypatch.setattr(Updater, "fits", fits)
    assert largest_max_tokens(updater.model, SETTINGS, CORPUS) == 64  # the corpus is small
    both = list(zip(CORPUS.src.lengths.tolist(), CORPUS.tgt.lengths.tolist(), strict=True))
    longest = max(both, key=max)
    assert sizes == [(64 // max(longest), longest[1])]
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(updater.model.parameters(), before, strict=True))


def test_a_model_beside_which_nothing_fits_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Updater, "fits", lambda self, batch: False)
    with pytest.raises(MtformerError, match="not even the smallest batch fits"):
        largest_max_tokens(make_updater().model, SETTINGS, CORPUS)


def test_a_batch_that_does_not_fit_is_told_from_other_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    updater = make_updater()

    def starve(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    def stumble(*_: object) -> None:
        raise RuntimeError("something else")

    batch: Batch = object.__new__(Batch)
    object.__setattr__(batch, "positions", torch.zeros(1))
    monkeypatch.setattr(updater, "_gradients", starve)
    assert not updater.fits(batch)
    monkeypatch.setattr(updater, "_gradients", stumble)
    with pytest.raises(RuntimeError, match="something else"):
        updater.fits(batch)


def test_a_batch_is_tried_in_as_many_threads_as_an_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them has gradients of its own, which take memory."""
    updater, sizes = make_updater(threads=3), []

    def counted(model: Transformer, part: Batch, label_smoothing: float) -> Losses:
        sizes.append(len(part.indices))
        return summed_loss(model, part, label_smoothing)

    monkeypatch.setattr("mtformer.training.update.summed_loss", counted)
    assert updater.fits(make_batch(CORPUS, range(6)))
    assert sizes == [2, 2, 2]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
def test_on_a_cpu_memory_runs_out_with_an_error_and_not_by_a_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=200 * 2**20))
    before = psutil.Process().rlimit(psutil.RLIMIT_DATA)
    with _limited_memory():
        torch.empty(2**22, dtype=torch.uint8)
        with pytest.raises(RuntimeError) as caught:
            torch.empty(2**31, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)
    assert psutil.Process().rlimit(psutil.RLIMIT_DATA) == before


def test_a_run_takes_the_batches_that_were_found_and_keeps_to_them(tmp_path: Path) -> None:
    project = make_project(tmp_path, max_tokens="auto", max_steps=3)
    result = project.mtformer("train", project.config)
    assert result.status == 0, result.stderr
    resolved = yaml.safe_load((tmp_path / "runs/config/config.yaml").read_text())
    found = resolved["training"]["max_tokens"]
    assert f"batches of up to {found} tokens" in result.stderr
    again = project.mtformer("train", project.config, "--set", "training.max_steps=6")
    assert again.status == 0
    assert "batches of up to" not in again.stderr
    assert "resuming from step 3" in again.stderr


@pytest.mark.parametrize(("platform", "unit"), [("linux", 1024), ("darwin", 1)])
def test_peak_memory_is_in_bytes(platform: str, unit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    held = torch.zeros(2**22, dtype=torch.uint8)
    assert peak_memory(torch.device("cpu")) > held.nbytes
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr("resource.getrusage", lambda who: SimpleNamespace(ru_maxrss=3))
    assert peak_memory(torch.device("cpu")) == 3 * unit
