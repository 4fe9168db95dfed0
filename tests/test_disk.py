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


FULL = f"mount -o remount,size=3m runs; {TRAIN}; echo status $?"
READ_ONLY = (
    f"({TRAIN}; echo status $?) & "
    "until ls runs/config/checkpoints/step-000010 2>/dev/null; do sleep 0.02; done; "
    "until mount -o remount,ro runs 2>/dev/null; do :; done; wait"
)


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [(FULL, "No space left on device"), (READ_ONLY, "Read-only file system")],
    ids=["full", "read-only"],
)
def test_a_run_that_cannot_write_says_so_and_goes_on_when_it_can(trouble: str, reason: str, tmp_path: Path) -> None:
    project = make_project(tmp_path, max_steps=400, checkpoint_every=10, keep_last=100, validate_every=200)
    found = in_own_mounts(project, f"{trouble}; mount -o remount,rw,size=100m runs; {TRAIN}; echo status $?")
    before, _, after = found.partition("status 1\n")
    assert after, found
    assert "status 0\n" in after
    assert reason in found
    assert "cannot write runs/config/" in found
    assert "resuming from step" in found
    assert "Traceback" not in found
    assert "damaged" not in found
    assert "status 0" not in before
