"""Locks that end with their process."""

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mtformer.support.locks import holder_of, is_locked, lock

HOLDER = """
import sys
from pathlib import Path
from mtformer.support.locks import lock
with lock(Path(sys.argv[1]), holder="the other"):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        assert is_locked(path)
        assert holder_of(path) == "the other"
        with pytest.raises(TimeoutError), lock(path):
            pass
        holder.kill()
    assert not is_locked(path)
    with lock(path, holder="me"):
        assert holder_of(path) == "me"


def test_a_lock_that_cannot_be_made_is_not_held_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object, *_: object) -> int:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))  # as in /proc

    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(FileNotFoundError), lock(tmp_path / "lock"):
        pass


def test_who_waits_gets_the_lock_though_its_file_is_removed_meanwhile(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "lock"
    inside, orders = threading.Event(), []

    def wait() -> None:
        inside.set()
        with lock(path, waiting="waiting"):
            orders.append("second")

    with caplog.at_level("INFO", logger="mtformer"), lock(path):
        second = threading.Thread(target=wait)
        second.start()
        inside.wait()
        ends = time.monotonic() + 30
        while "waiting" not in caplog.messages and time.monotonic() < ends:
            time.sleep(0.01)
        orders.append("first")
    second.join()
    assert orders == ["first", "second"]
    assert not path.exists()


def test_looking_needs_no_permission_to_write_and_creates_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_locked(path) and not path.exists()
    with lock(path):
        path.chmod(0o444)
        assert is_locked(path)
    assert not is_locked(path)


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, lock(tmp_path / "missing" / "lock"):
        pass
    assert caught.value.strerror == os.strerror(errno.ENOENT)
    assert holder_of(tmp_path / "missing") == ""
