"""Pipes: whoever writes a line and waits gets its translation, and nothing is held back."""

import gzip
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Project, sentence_pairs

from mtformer.support.errors import UserError
from mtformer.text.lines import is_regular_input, is_regular_output, read_lines
from mtformer.translate.jobs.reading import LARGEST_SIZE, available

_SECONDS = 120  # a wait this long is a failure


def test_what_is_there_is_taken_without_waiting_for_more() -> None:
    answered = threading.Semaphore(0)

    def lines() -> Iterator[int]:
        for number in range(3):
            yield number
            assert answered.acquire(timeout=_SECONDS)  # the next line comes only after the answer to this one
        yield from range(3, 10)

    found = []
    for window in available(lines()):
        found += window
        answered.release()
    assert found == list(range(10))


def test_what_has_come_meanwhile_is_taken_at_once() -> None:
    come = threading.Event()

    def lines() -> Iterator[int]:
        yield from range(500)
        come.set()

    windows = available(lines())
    first = next(windows)
    assert come.wait(_SECONDS)
    assert list(windows) in ([], [list(range(len(first), 500))])


def test_a_writer_is_not_read_far_ahead_and_windows_stay_bounded() -> None:
    n_read = 0

    def lines() -> Iterator[int]:
        nonlocal n_read
        for number in range(100_000):
            n_read += 1
            yield number

    n_taken = 0
    for window in available(lines()):
        assert window == list(range(n_taken, n_taken + len(window)))
        n_taken += len(window)
        assert len(window) <= LARGEST_SIZE
        assert n_read <= n_taken + LARGEST_SIZE + 1
    assert n_taken == 100_000


def test_lines_before_an_error_come_before_it() -> None:
    def lines() -> Iterator[int]:
        yield from range(3)
        raise UserError("broken")

    found: list[int] = []
    with pytest.raises(UserError, match="broken"):
        for window in available(lines()):
            found += window
    assert found == [0, 1, 2]


def test_a_coprocess_gets_each_translation_at_once_and_ends_at_ctrl_c_while_it_waits(trained: Project) -> None:
    command = [sys.executable, "-m", "mtformer", "translate", "--beam-size", "1"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=trained.folder, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        for src, tgt in sentence_pairs(3, seed=9):
            process.stdin.write(f"{src}\n".encode())
            process.stdin.flush()
            answered, _, _ = select.select([process.stdout], [], [], _SECONDS)
            if not answered:
                process.kill()
            assert process.stdout.readline().decode() == f"{tgt}\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(_SECONDS) == 130
        assert b"Fatal" not in process.stderr.read()


@pytest.fixture
def fifo(tmp_path: Path) -> Callable[[bytes], Path]:
    """Return a function that makes a named pipe, as process substitution does, which contains some bytes."""

    def make(contents: bytes) -> Path:
        path = tmp_path / f"fifo{len(list(tmp_path.iterdir()))}"
        os.mkfifo(path)
        threading.Thread(target=path.write_bytes, args=[contents], daemon=True).start()
        return path

    return make


def test_a_named_pipe_is_read_to_its_end(trained: Project, fifo: Callable[[bytes], Path]) -> None:
    pairs = sentence_pairs(20, seed=9)
    path = fifo("".join(f"{src}\n" for src, _ in pairs).encode())
    assert not is_regular_input(path)
    result = trained.mtformer("translate", "--input", path)
    assert result.status == 0, result.stderr
    assert result.stdout == "".join(f"{tgt}\n" for _, tgt in pairs)


def test_of_a_pipe_the_lines_before_a_bad_one_are_translated(trained: Project, fifo: Callable[[bytes], Path]) -> None:
    [(src, tgt)] = sentence_pairs(1, seed=9)
    result = trained.mtformer("translate", "--input", fifo(f"{src}\n".encode() + b"\xff\n"))
    assert (result.status, result.stdout) == (2, f"{tgt}\n")
    assert ":2: byte 0xff" in result.stderr


def test_a_pipe_can_be_written_to(trained: Project, tmp_path: Path) -> None:
    [(src, tgt)] = sentence_pairs(1, seed=9)
    path = tmp_path / "fifo"
    os.mkfifo(path)
    assert not is_regular_output(path)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    assert trained.mtformer("translate", src, "--output", path).status == 0
    reader.join(_SECONDS)
    assert read == [f"{tgt}\n"]


def test_compressed_files_are_read_and_written(trained: Project, tmp_path: Path) -> None:
    pairs = sentence_pairs(20, seed=9)
    text, output = tmp_path / "in.gz", tmp_path / "out.gz"
    text.write_bytes(gzip.compress("".join(f"{src}\n" for src, _ in pairs).encode()))
    assert trained.mtformer("translate", "--input", text, "--output", output).status == 0
    assert gzip.decompress(output.read_bytes()).decode() == "".join(f"{tgt}\n" for _, tgt in pairs)


def test_a_closed_standard_input_is_an_error_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UserError, match="cannot read standard input: Bad file descriptor"):
        list(read_lines(Path("-")))


@pytest.mark.parametrize(("source", "status"), [("builtin:phrasebook,split:valid", 0), ("tsv:nowhere.tsv", 2)])
def test_a_closed_standard_error_changes_nothing_else(source: str, status: int) -> None:
    command = [sys.executable, "-m", "mtformer", "data", "sample", source, "--pair", "en-de", "-n", "3"]
    ended = subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", *command], stdout=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stdout.count(b"\n")) == (status, 0 if status else 3)
