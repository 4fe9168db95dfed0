"""A disk that fills up, or is no longer to be written, while a run is on it."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Project, make_project

TRAIN = f"{sys.executable} -m mtformer train config.yaml"


def in_own_mounts(project: Project, script: str) -> str:
    """Run a shell script as the superuser of mounts that nobody else sees; return what it prints."""
    (project.folder / "runs").mkdir()
    script = f"set -u; mount -t tmpfs -o size=100m tmpfs runs || exit 77; {script}"
    command = ["unshare", "--mount", "--map-root-user", "bash", "-c", script]
    done = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, timeout=200)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"cannot mount: {done.stderr}")
    return done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A run that saves often and keeps all that it saves."""
    return make_project(tmp_path, max_steps=400, checkpoint_every=10, keep_last=100, validate_every=200)


def test_a_run_whose_disk_is_full_says_so_and_goes_on_when_there_is_room(project: Project) -> None:
    found = in_own_mounts(
        project,
        f"mount -o remount,size=3m runs; {TRAIN}; echo status $?; ls runs/config/checkpoints | tail -1;"
        f"mount -o remount,size=100m runs; {TRAIN}; echo status $?",
    )
    assert "status 1\n" in found
    assert "No space left on device" in found
    assert "cannot write runs/config/" in found
    assert "Traceback" not in found
    assert "going on from step" in found
    assert found.index("status 1") < found.index("status 0")
    assert found.count("damaged") == 0


def test_a_run_whose_folder_becomes_read_only_says_so_and_goes_on_when_it_is_not(project: Project) -> None:
    found = in_own_mounts(
        project,
        f"({TRAIN}; echo status $?) & "
        "until ls runs/config/checkpoints/step-000010 2>/dev/null; do sleep 0.02; done; "
        "until mount -o remount,ro runs 2>/dev/null; do :; done; wait; "
        f"mount -o remount,rw runs; {TRAIN}; echo status $?",
    )
    assert "status 1\n" in found
    assert "Read-only file system" in found
    assert "cannot write runs/config/" in found
    assert "Traceback" not in found
    assert "going on from step" in found
    assert found.index("status 1") < found.index("status 0")
