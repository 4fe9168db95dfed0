"""A disk that fills up, or becomes read-only, while a run writes to it."""

import errno
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from conftest import Project, make_project
from faults import disk_error_before

from mtformer.config import load_config
from mtformer.data.clean.language import Identifier
from mtformer.support.errors import MtformerError
from mtformer.training.run import dry_run, train

SETTINGS = {"max_steps": 60, "checkpoint_every": 10, "keep_last": 100, "validate_every": 30}


@pytest.fixture
def on_small_disk(tmp_path: Path) -> Iterator[Project]:
    """A project whose runs are on a disk of 2 MiB."""
    project = make_project(tmp_path, **SETTINGS)
    runs = tmp_path / "runs"
    runs.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(runs)]
    mounted = subprocess.run(mount, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield project
    finally:
        subprocess.run(["umount", runs], check=True)


def assert_resumes(project: Project) -> None:
    result = project.mtformer("train", project.config)
    assert result.status == 0, result.stderr
    assert "resuming from step" in result.stderr
    assert "damaged" not in result.stderr


def test_a_run_on_a_full_disk_says_so_and_resumes_when_there_is_room(on_small_disk: Project) -> None:
    project = on_small_disk
    result = project.mtformer("train", project.config)
    assert result.status == 1
    assert "cannot write runs/config/" in result.stderr
    assert "No space left on device" in result.stderr
    subprocess.run(["mount", "-o", "remount,size=100m", project.folder / "runs"], check=True)
    assert_resumes(project)


@pytest.mark.slow
def test_a_disk_error_at_any_operation_ends_the_run_with_a_message_and_is_made_up_for(tmp_path: Path) -> None:
    project = make_project(tmp_path, n_pairs=60, max_steps=6, checkpoint_every=1, validate_every=3, max_tokens=128)
    config = load_config(project.config, ["eval.n_samples=0", f"run.dir={tmp_path / 'runs'}"])
    dry_run(config)  # fills the cache: what a failed start has written there would change the numbers of the operations
    messages = []
    for n in range(200):
        try:
            with disk_error_before(n, errno.EIO):
                train(config)
        except MtformerError as error:
            messages.append(str(error))
        else:
            break
    assert len(messages) > 20
    assert all(": Input/output error" in message for message in messages)
    for name in ("lock", "config.yaml", "metrics.jsonl", "model.safetensors", "checkpoints/step-000003"):
        assert any(f"{tmp_path / 'runs' / 'config' / name}: " in message for message in messages), name
    assert (tmp_path / "runs" / "config" / "checkpoints" / "step-000006").is_dir()


def test_a_full_folder_for_temporary_files_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr("py3langid.langid.LanguageIdentifier.from_model_file", Mock(side_effect=full))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(MtformerError, match=re.escape(f"cannot write {tmp_path}: No space left on device")):
        Identifier()
