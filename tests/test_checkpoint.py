import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import training_settings
from faults import UNREADABLE, PowerCut, power_cut_before, unreadable
from safetensors import safe_open
from torch import Tensor

from mtformer.config import ModelConfig
from mtformer.data.batches import Batch
from mtformer.model.transformer import Transformer
from mtformer.runs.checkpoints import (
    Checkpoint,
    DamagedCheckpointError,
    list_checkpoints,
    load_checkpoint,
    model_weights,
    newest_checkpoint,
)
from mtformer.support.errors import MtformerError, UserError
from mtformer.training.checkpoint import (
    TrainState,
    is_snapshot_step,
    remove_later_snapshots,
    restore,
    save_checkpoint,
    save_snapshot,
    save_state,
    set_aside_damaged,
)
from mtformer.training.update import Updater

STATE = {"step": 3, "epoch": 1, "batch": 2, "seconds": 12.75, "best": None, "best_step": 0, "stale": 0}


class Training:
    """A small tied model with dropout, trained on batches that are drawn by their number."""

    def __init__(self, seed: int, n_layers: int = 1, d_ff: int = 16, **settings: object) -> None:
        torch.manual_seed(seed)
        config = ModelConfig(
            d_model=8, n_heads=2, d_ff=d_ff, n_encoder_layers=n_layers, n_decoder_layers=n_layers, dropout=0.3
        )
        self.model = Transformer(config.architecture(src_vocab_size=20, tgt_vocab_size=20, joint=True, max_length=16))
        self.updater = Updater(self.model, training_settings(**settings))
        self.step = 0

    def update(self, n_times: int = 1) -> None:
        for _ in range(n_times):
            self.step += 1
            ids = torch.randint(1, 20, (4, 6), generator=torch.Generator().manual_seed(self.step))
            batch = Batch(ids, ids > 0, ids, ids, ids > 0, range(4))
            assert not self.updater.update([batch], self.step, 0.01).fault

    def everything(self) -> list[Tensor]:
        """Weights, moments and average."""
        parameters = list(self.model.parameters())
        moments = [
            optimizer.state[p][name]
            for optimizer in self.updater.optimizers
            for p in parameters
            for name in sorted(optimizer.state.get(p, {}))
        ]
        average = list(self.updater.average.tensors.values()) if self.updater.average else []
        return [tensor.detach().clone() for tensor in (*parameters, *moments, *average)]

    def save(self, folder: Path, step: int, keep_last: int = 10, **state: object) -> Path:
        return save_checkpoint(folder, self.updater, {"step": step, **state}, keep_last=keep_last)

    def load(self, folder: Path) -> dict[str, object] | None:
        found = newest_checkpoint(folder)
        if found is None:
            return None
        restore(self.updater, found)
        return found.state


def all_equal(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> bool:
    return len(ours) == len(theirs) and all(map(torch.equal, ours, theirs))


def names(folder: Path) -> list[str]:
    return [path.name for path in list_checkpoints(folder)]


@contextmanager
def files_limited_to(n_bytes: int) -> Iterator[None]:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("settings", [{}, {"ema_decay": 0.9}, {"optimizer": "adam"}, {"optimizer": "muon"}], ids=str)
def test_training_goes_on_from_a_checkpoint_bit_for_bit(settings: dict[str, Any], tmp_path: Path) -> None:
    training = Training(seed=1, **settings)
    training.update(3)
    save_checkpoint(tmp_path, training.updater, STATE, keep_last=2)
    at_saving = training.everything()
    training.update(3)

    other = Training(seed=2, **settings)
    other.update()
    assert other.load(tmp_path) == STATE
    assert all_equal(other.everything(), at_saving)
    other.step = 3
    other.update(3)
    assert all_equal(other.everything(), training.everything())


def test_an_average_that_is_new_to_a_run_begins_with_its_weights(tmp_path: Path) -> None:
    training, other = Training(seed=1), Training(seed=2, ema_decay=0.9)
    training.update(3)
    training.save(tmp_path, 3)
    other.load(tmp_path)
    assert other.updater.average is not None
    assert all_equal(list(other.updater.average.tensors.values()), list(training.model.parameters()))


def test_a_checkpoint_before_the_first_update_can_be_loaded(tmp_path: Path) -> None:
    training, other = Training(seed=1), Training(seed=2)
    training.save(tmp_path, 0)
    other.load(tmp_path)
    assert all(map(torch.equal, other.model.parameters(), training.model.parameters()))


def test_a_state_of_another_version_is_refused_in_a_sentence() -> None:
    state = asdict(TrainState())
    assert TrainState.load(Checkpoint(Path("step-000001"), state, {})) == TrainState()
    lacking = {name: value for name, value in state.items() if name != "running"}
    for other in (lacking, state | {"new": 1}):
        with pytest.raises(UserError, match="step-000001 is of another version of mtformer; start from scratch"):
            TrainState.load(Checkpoint(Path("step-000001"), other, {}))


def test_without_a_checkpoint_nothing_is_loaded(tmp_path: Path) -> None:
    training = Training(seed=1)
    training.update()
    before = training.everything()
    assert training.load(tmp_path / "there is no such folder") is None
    assert all_equal(training.everything(), before)


def test_a_checkpoint_holds_each_shared_weight_once(tmp_path: Path) -> None:
    training = Training(seed=1)
    path = training.save(tmp_path, 1)
    with safe_open(path / "tensors.safetensors", framework="pt") as file:
        of_embedding_size = [name for name in file.keys() if file.get_slice(name).get_shape() == [20, 8]]  # noqa: SIM118
    assert of_embedding_size == ["model.tgt_embedding.weight"]


def flip_byte(path: Path, place: float) -> None:
    content = bytearray(path.read_bytes())
    content[int(place * (len(content) - 1))] ^= 0x01
    path.write_bytes(content)


def remove_files(path: Path) -> None:
    for file in path.iterdir():
        file.unlink()


def put_a_file_there(path: Path) -> None:
    shutil.rmtree(path)
    path.touch()


def rewrite_state(path: Path, text: str) -> None:
    (path / "state.json").write_text(text)


def without_key(path: Path, key: str) -> str:
    state = json.loads((path / "state.json").read_text())
    return json.dumps({k: value for k, value in state.items() if k != key})


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated tensors": lambda path: (path / "tensors.safetensors").write_bytes(
        (path / "tensors.safetensors").read_bytes()[:-100]
    ),
    "no byte of tensors": lambda path: (path / "tensors.safetensors").write_bytes(b""),
    "flipped first byte": lambda path: flip_byte(path / "tensors.safetensors", 0.0),
    "flipped byte in the middle": lambda path: flip_byte(path / "tensors.safetensors", 0.5),
    "flipped last byte": lambda path: flip_byte(path / "tensors.safetensors", 1.0),
    "no tensors": lambda path: (path / "tensors.safetensors").unlink(),
    "no state": lambda path: (path / "state.json").unlink(),
    "empty state": lambda path: rewrite_state(path, ""),
    "truncated state": lambda path: rewrite_state(path, (path / "state.json").read_text()[:-10]),
    "binary state": lambda path: (path / "state.json").write_bytes(bytes(range(128, 256))),
    "state without digest": lambda path: rewrite_state(path, without_key(path, "digest")),
    "state that is null": lambda path: rewrite_state(path, "null"),
    "state that is a list": lambda path: rewrite_state(path, "[]"),
    "state with another number": lambda path: rewrite_state(
        path, (path / "state.json").read_text().replace('"step": 2', '"step": 3')
    ),
    "empty folder": remove_files,
    "a file in its place": put_a_file_there,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_skipped_with_a_warning(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    training = Training(seed=1)
    training.update()
    training.save(tmp_path, 1, epoch=7)
    older = training.everything()
    training.update()
    newest = training.save(tmp_path, 2, epoch=8)
    DAMAGES[damage](newest)
    found = newest_checkpoint(tmp_path, with_tensors=False)
    assert found is not None
    assert (found.state, found.tensors) == ({"step": 1, "epoch": 7}, {})
    caplog.clear()

    other = Training(seed=2)
    assert other.load(tmp_path) == {"step": 1, "epoch": 7}
    assert all_equal(other.everything(), older)
    [warning] = caplog.records
    assert warning.levelname == "WARNING"
    assert f"the checkpoint {newest} is damaged: " in warning.getMessage()
    assert warning.getMessage().endswith("Falling back to the checkpoint of step 1")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_when_all_are_damaged_nothing_is_loaded_or_deleted(tmp_path: Path) -> None:
    training = Training(seed=1)
    for step in (1, 2):
        DAMAGES["truncated tensors"](training.save(tmp_path, step))
    before, files = training.everything(), contents(tmp_path)
    with pytest.raises(UserError, match=r"step-000002 is damaged: .*step-000001 is damaged: .*--fresh"):
        training.load(tmp_path)
    assert all_equal(training.everything(), before)
    assert contents(tmp_path) == files


def test_damaged_checkpoints_are_kept_aside_and_later_saves_do_not_delete_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    training = Training(seed=1)
    training.save(tmp_path, 10, keep_last=1)
    for _ in range(2):
        damaged = training.save(tmp_path, 20)
        DAMAGES["truncated tensors"](damaged)
        files = contents(damaged)
        newest = newest_checkpoint(tmp_path)
        assert newest is not None
        assert newest.state == {"step": 10}
        set_aside_damaged(newest)
        assert "step-000020.damaged" in caplog.records[-1].getMessage()
        assert names(tmp_path) == ["step-000010"]
    for step in (15, 20, 25):
        training.save(tmp_path, step, keep_last=1)
        assert Training(seed=2).load(tmp_path) == {"step": step}
    kept = ["step-000020.damaged", "step-000020.damaged2", "step-000025"]
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    assert contents(tmp_path / kept[0]) == contents(tmp_path / kept[1]) == files


@pytest.mark.parametrize("code", UNREADABLE, ids=errno.errorcode.get)
@pytest.mark.parametrize("name", ["state.json", "tensors.safetensors"])
def test_a_checkpoint_that_cannot_be_read_is_an_error_and_not_skipped(name: str, code: int, tmp_path: Path) -> None:
    training = Training(seed=1)
    training.save(tmp_path, 1)
    newest = training.save(tmp_path, 2)
    before, files = training.everything(), contents(tmp_path)
    with unreadable(name, code), pytest.raises(UserError) as caught:
        training.load(tmp_path)
    assert str(caught.value).startswith(f"cannot read the checkpoint {newest}: {os.strerror(code)}. It may be intact")
    assert not isinstance(caught.value, DamagedCheckpointError)
    assert all_equal(training.everything(), before)
    assert contents(tmp_path) == files
    assert training.load(tmp_path) == {"step": 2}


def test_a_folder_in_place_of_a_file_is_not_taken_for_damage(tmp_path: Path) -> None:
    training = Training(seed=1)
    training.save(tmp_path, 1)
    path = training.save(tmp_path, 2) / "tensors.safetensors"
    path.unlink()
    path.mkdir()
    with pytest.raises(UserError, match=r"^cannot read the checkpoint .*step-000002: Is a directory"):
        training.load(tmp_path)


@pytest.mark.parametrize("code", UNREADABLE, ids=errno.errorcode.get)
def test_a_folder_of_checkpoints_that_cannot_be_read_is_not_taken_for_an_empty_one(code: int, tmp_path: Path) -> None:
    training = Training(seed=1)
    folder = tmp_path / "checkpoints"
    training.save(folder, 1)
    with unreadable("checkpoints", code), pytest.raises(UserError, match=f"cannot read {folder}: {os.strerror(code)}"):
        training.load(folder)
    put_a_file_there(folder)
    with pytest.raises(UserError, match=f"cannot read {folder}: Not a directory"):
        training.load(folder)


def test_a_save_killed_at_any_operation_leaves_an_intact_checkpoint(tmp_path: Path) -> None:
    training = Training(seed=1)
    found: list[int] = []
    for n in range(100):
        training.save(tmp_path, 1, keep_last=1)
        training.save(tmp_path, 2, keep_last=2, version=1)
        try:
            with power_cut_before(n):
                save_state(tmp_path, {"step": 2, "version": 2}, keep_last=1)
                training.save(tmp_path, 3, keep_last=1, version=3)
        except PowerCut:
            state = Training(seed=2).load(tmp_path)
            assert state is not None
            found.append(int(str(state["version"])))
            shutil.rmtree(tmp_path)
        else:
            break
    assert found == sorted(found)
    assert set(found) == {1, 2, 3}
    assert [path.name for path in tmp_path.iterdir()] == ["step-000003"]


def test_what_a_killed_save_leaves_behind_is_ignored_and_later_replaced(tmp_path: Path) -> None:
    training = Training(seed=1)
    training.save(tmp_path, 1)
    unfinished = tmp_path / ".step-000002.tmp"
    shutil.copytree(tmp_path / "step-000001", unfinished)
    (unfinished / "left over").touch()
    assert training.load(tmp_path) == {"step": 1}
    path = training.save(tmp_path, 2)
    assert sorted(file.name for file in path.iterdir()) == ["state.json", "tensors.safetensors"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["step-000001", "step-000002"]


def test_other_folders_beside_the_checkpoints_do_no_harm(tmp_path: Path) -> None:
    training = Training(seed=1)
    training.save(tmp_path, 1)
    shutil.copytree(tmp_path / "step-000001", tmp_path / "step-000001 (copy)")
    assert training.load(tmp_path) == {"step": 1}


def test_the_newest_are_kept_by_number(tmp_path: Path) -> None:
    training = Training(seed=1)
    for step in (5, 50, 999_999, 1_000_000):
        training.save(tmp_path, step, keep_last=3)
    assert names(tmp_path) == ["step-1000000", "step-999999", "step-000050"]


def test_a_full_disk_leaves_the_earlier_checkpoints(tmp_path: Path) -> None:
    training = Training(seed=1)
    training.update()
    training.save(tmp_path, 1)
    at_saving = training.everything()
    training.update()
    with files_limited_to(1_000), pytest.raises(MtformerError, match=r"^cannot write .*step-000002: .*File too large"):
        training.save(tmp_path, 2, keep_last=1)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001"]
    other = Training(seed=2)
    other.load(tmp_path)
    assert all_equal(other.everything(), at_saving)


@pytest.mark.parametrize("other", [{"n_layers": 2}, {"d_ff": 24}])
def test_a_checkpoint_of_another_model_is_refused_in_a_sentence_and_the_model_left_alone(
    tmp_path: Path, other: dict[str, int]
) -> None:
    saved = Training(seed=1)
    saved.update()
    saved.save(tmp_path, 1)
    training = Training(seed=2, **other)
    training.update()
    before = training.everything()
    with pytest.raises(MtformerError, match="step-000001"):
        training.load(tmp_path)
    assert all_equal(training.everything(), before)


# Snapshots


def test_snapshots_are_kept_from_the_first_steps_to_the_last_about_evenly_on_a_logarithmic_scale(
    tmp_path: Path,
) -> None:
    training, kept = Training(seed=1), {}
    for step in filter(is_snapshot_step, range(51_201)):
        save_snapshot(tmp_path, step, training.updater, keep=6)
        kept[step] = names(tmp_path)[::-1]
    assert list(kept) == [25 * 2**n for n in range(12)]
    assert kept[800] == [f"step-{step:06d}" for step in (25, 50, 100, 200, 400, 800)]
    assert kept[51_200] == [f"step-{step:06d}" for step in (25, 100, 400, 1_600, 6_400, 51_200)]


@pytest.mark.parametrize(("keep", "expected"), [(1, [800]), (2, [25, 800]), (3, [25, 100, 800])])
def test_few_snapshots_are_the_newest_the_first_and_one_between_them(
    keep: int, expected: list[int], tmp_path: Path
) -> None:
    training = Training(seed=1)
    for step in filter(is_snapshot_step, range(801)):
        save_snapshot(tmp_path, step, training.updater, keep=keep)
    assert names(tmp_path)[::-1] == [f"step-{step:06d}" for step in expected]


@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
def test_a_snapshot_has_the_weights_that_translate_and_is_a_fraction_of_a_checkpoint(
    ema_decay: float, tmp_path: Path
) -> None:
    training = Training(seed=1, d_ff=512, ema_decay=ema_decay)
    training.update(3)
    exact = model_weights(training.save(tmp_path / "checkpoints", 25))
    save_snapshot(tmp_path / "snapshots", 25, training.updater, keep=6)
    snapshot = load_checkpoint(tmp_path / "snapshots/step-000025")
    assert snapshot.state == {"step": 25}
    found = model_weights(snapshot.path)
    assert found.keys() == exact.keys()
    for name, weight in exact.items():
        torch.testing.assert_close(found[name].float(), weight, rtol=2**-8, atol=0)
    sizes = [
        (tmp_path / folder / "step-000025/tensors.safetensors").stat().st_size
        for folder in ("checkpoints", "snapshots")
    ]
    assert sizes[1] < sizes[0] / 4


def test_snapshots_of_steps_that_are_repeated_are_removed(tmp_path: Path) -> None:
    training = Training(seed=1)
    for step in (25, 50, 100):
        save_snapshot(tmp_path, step, training.updater, keep=6)
    remove_later_snapshots(tmp_path, 60)
    assert names(tmp_path) == ["step-000050", "step-000025"]
    remove_later_snapshots(tmp_path / "nowhere", 60)
