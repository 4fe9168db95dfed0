import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from faults import PowerCut, power_cut_before
from safetensors.torch import save_file

from mtformer.support.errors import MtformerError, UserError
from mtformer.support.files import (
    open_atomically,
    read_errors,
    require_distinct,
    require_new_folder,
    short_names,
    write_atomically,
    write_folder_atomically,
    write_new_folder,
)
from mtformer.text.lines import open_output


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a/x", "b/y", "-"], ["x", "y", "-"]),
        (["a/x", "b/x"], ["a/x", "b/x"]),
        (["c/a/x", "c/b/x", "d/a/x"], ["c/a/x", "c/b/x", "d/a/x"]),
        (["a/x", "b/../a/x"], ["a/x", "b/../a/x"]),
        ([".", "../other"], ["here", "other"]),
    ],
)
def test_short_names_are_the_ends_of_paths_that_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: list[str], names: list[str]
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert short_names(list(map(Path, paths))) == names


OLD, NEW, MISSING = "what was there before", "what comes instead", ""


class Target:
    """A file, or a folder with a file in it, that holds the old text and is to be replaced."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.path, self.is_folder = folder / "target", kind == "folder"
        self.write(lambda path: path.write_text(OLD))

    def write(self, write: Callable[[Path], object]) -> None:
        """Replace the target with what ``write`` writes to the file that it is given."""
        if self.is_folder:
            write_folder_atomically(self.path, lambda folder: write(folder / "part"))
        else:
            write_atomically(self.path, write)

    def text(self) -> str:
        return (self.path / "part" if self.is_folder else self.path).read_text()

    def is_untouched(self) -> bool:
        """Whether the old text is there, and nothing else in the folder."""
        return self.text() == OLD and list(self.path.parent.iterdir()) == [self.path]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_file_system_that_syncs_no_folders_is_written_to(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def fsync_files(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync_files)
    target = Target(tmp_path, kind)
    target.write(lambda path: path.write_text(NEW))
    assert target.text() == NEW


@pytest.fixture(params=["file", "folder"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    return Target(tmp_path, request.param)


@pytest.fixture(params=["file", "folder"])
def target_on_small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    """A target on a file system of 64 KiB."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield Target(tmp_path, request.param)
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def write_half_and_fail(error: BaseException) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(NEW[:5], encoding="utf-8")
        raise error

    return write


def write_much_text(path: Path) -> None:
    path.write_text("much" * 50_000, encoding="utf-8")


def write_much_safetensors(path: Path) -> None:
    save_file({"much": torch.zeros(50_000)}, path)


def test_the_new_replaces_the_old_and_leaves_nothing_beside_it(target: Target) -> None:
    target.write(lambda path: path.write_text(NEW))
    assert target.text() == NEW
    assert list(target.path.parent.iterdir()) == [target.path]


def test_files_with_similar_names_stay(target: Target) -> None:
    others = {target.path.with_name(f".target.{suffix}") for suffix in ("older", "tmp", "bak.tmp", "12345678.bak")}
    for other in others:
        other.write_text("of the user")
    target.write(lambda path: path.write_text(NEW))
    assert target.text() == NEW
    assert {*target.path.parent.iterdir()} == {target.path, *others}


def test_of_two_processes_that_write_at_once_the_first_to_finish_writes_and_the_other_says_so(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_while_another_does(path: Path) -> None:
        with path.open("w", encoding="utf-8") as file:
            file.write(OLD)
            file.flush()
            with monkeypatch.context() as other:
                other.setattr("mtformer.support.files._PROCESS", "0" * 8)
                target.write(lambda path: path.write_text(NEW))
            file.write(OLD)

    with pytest.raises(MtformerError) as caught:
        target.write(write_while_another_does)
    assert target.text() == NEW
    assert str(caught.value) == f"cannot write {target.path}: another process has written it meanwhile"
    assert list(target.path.parent.iterdir()) == [target.path]


def test_a_device_a_pipe_or_a_folder_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/null")):
        with pytest.raises(UserError, match=f"^cannot write {path}: it is not a regular file$"):
            write_atomically(path, write_half_and_fail(AssertionError("not reached")))


def test_an_error_of_reading_names_the_file_and_the_reason(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(UserError, match=f"^cannot read {missing}: No such file or directory$"), read_errors(tmp_path):
        missing.read_bytes()
    with pytest.raises(UserError, match=f"^cannot read {tmp_path}: Input/output error$"), read_errors(tmp_path):
        raise OSError(errno.EIO, os.strerror(errno.EIO))  # as reading an open file raises it


def test_missing_parent_folders_are_made(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a" / "b" / "file", lambda path: path.write_text(NEW))
    assert (tmp_path / "a" / "b" / "file").read_text() == NEW


def test_whoever_may_read_other_files_may_read_a_bundle(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    write_atomically(tmp_path / "bundle", lambda path: save_file({"a": torch.ones(1)}, path))
    assert (tmp_path / "bundle").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_writer_that_fails_midway_leaves_the_old_and_says_why(target: Target) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(MtformerError) as caught:
        target.write(write_half_and_fail(full))
    assert str(caught.value) == f"cannot write {target.path}: No space left on device"
    assert not isinstance(caught.value, UserError)
    assert target.is_untouched()


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_leaves_the_old_and_nothing_beside_it(target: Target, interrupt: type[BaseException]) -> None:
    with pytest.raises(interrupt):
        target.write(write_half_and_fail(interrupt()))
    assert target.is_untouched()


def test_an_error_of_the_program_is_not_blamed_on_the_disk(target: Target) -> None:
    with pytest.raises(ZeroDivisionError):
        target.write(write_half_and_fail(ZeroDivisionError()))
    assert target.is_untouched()


@pytest.mark.parametrize("write", [write_much_text, write_much_safetensors])
def test_a_full_disk_leaves_the_old(target_on_small_disk: Target, write: Callable[[Path], None]) -> None:
    target = target_on_small_disk
    with pytest.raises(MtformerError, match=f"^cannot write {target.path}: No space left on device"):
        target.write(write)
    assert target.is_untouched()


def test_a_disk_that_cannot_be_written_is_told_in_a_sentence(target_on_small_disk: Target) -> None:
    target = target_on_small_disk
    subprocess.run(["mount", "-o", "remount,ro", target.path.parent], check=True)
    with pytest.raises(MtformerError, match=f"^cannot write {target.path}: .*Read-only file system"):
        target.write(lambda path: path.write_text(NEW))
    assert target.is_untouched()


def test_a_folder_that_cannot_get_its_name_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target(tmp_path, "folder")
    rename = Path.replace

    def fail_for_new(path: Path, to: Path) -> Path:
        if to == target.path and (path / "part").read_text() == NEW:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return rename(path, to)

    monkeypatch.setattr(Path, "replace", fail_for_new)
    with pytest.raises(MtformerError, match="No space left"):
        target.write(lambda path: path.write_text(NEW))
    assert target.is_untouched()


def test_a_file_where_a_folder_is_needed_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for write in (write_atomically, write_folder_atomically):
        with pytest.raises(MtformerError, match=f"^cannot write {tmp_path / 'file' / 'target'}: "):
            write(tmp_path / "file" / "target", write_half_and_fail(AssertionError("not reached")))


def write_in_two_halves(path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(NEW[:5])
        file.flush()
        os.fsync(file.fileno())  # an operation that a power cut can come before
        file.write(NEW[5:])


def test_a_crash_between_any_two_operations_leaves_the_old_or_the_new(target: Target) -> None:
    """A folder, whose old contents are damaged, may be missing in between."""
    found = []
    for n in range(100):
        target.write(lambda path: path.write_text(OLD))
        assert target.is_untouched()
        try:
            with power_cut_before(n):
                target.write(write_in_two_halves)
        except PowerCut:
            found.append(target.text() if target.path.exists() else MISSING)
        else:
            break
    assert target.text() == NEW
    assert len(found) > 5
    assert found == sorted(found, key=[OLD, MISSING, NEW].index)  # neither half of one nor back to the old
    assert set(found) == {OLD, NEW} | ({MISSING} if target.is_folder else set())


IN_A_PROCESS_OF_ITS_OWN = """
import os, resource, signal, sys
from pathlib import Path
from mtformer.support.errors import MtformerError
from mtformer.support.files import require_distinct, write_atomically, write_folder_atomically

def write(path):
    path = path / "left over" if path.is_dir() else path
    with path.open("wb") as file:
        for _ in range(100):
            file.write(bytes(1000))
            file.flush()
    os.kill(os.getpid(), signal.SIGKILL)  # only reached where there is no limit

kind, target, limit = sys.argv[1:]
if int(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
try:
    (write_folder_atomically if kind == "folder" else write_atomically)(Path(target), write)
except MtformerError as error:
    sys.exit(str(error))
"""


def run_in_a_process(target: Target, limit: int) -> subprocess.CompletedProcess[str]:
    kind = "folder" if target.path.is_dir() else "file"
    command = [sys.executable, "-c", IN_A_PROCESS_OF_ITS_OWN, kind, str(target.path), str(limit)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_a_limit_on_the_size_of_files_leaves_the_old(target: Target) -> None:
    done = run_in_a_process(target, limit=20_000)
    assert (done.returncode, done.stderr) == (1, f"cannot write {target.path}: File too large\n")
    assert target.is_untouched()


def test_a_process_killed_while_writing_leaves_the_old_and_does_not_hinder_the_next(target: Target) -> None:
    assert run_in_a_process(target, limit=0).returncode == -signal.SIGKILL
    assert target.text() == OLD
    target.write(lambda path: path.write_text(NEW))
    assert target.text() == NEW
    assert list(target.path.parent.rglob("*")) == sorted([target.path, *target.path.glob("*")])


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_an_output_that_is_an_input_is_refused_under_any_name(
    link: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    text, other, missing = (tmp_path / name for name in ("text", "other", "missing"))
    text.write_text(OLD)
    link(other, text)
    for output in (text, other, tmp_path / ".." / tmp_path.name / "text"):
        with pytest.raises(UserError, match=f"^{output} is both input and output"):
            require_distinct(output, [None, missing, text])


def test_a_dash_means_the_file_that_the_stream_is_redirected_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "text"
    text.write_text(OLD)
    for stream, output, source, name in (("_STDIN", text, "-", text), ("_STDOUT", Path("-"), text, "standard output")):
        monkeypatch.setattr(f"mtformer.support.files.{stream}", text)
        with pytest.raises(UserError, match=f"^{name} is both input and output"):
            require_distinct(output, [Path(source)])


def test_an_output_of_its_own_is_accepted(tmp_path: Path) -> None:
    text, other = tmp_path / "text", tmp_path / "other"
    text.write_text(OLD)
    other.write_text(OLD)
    for output in (None, Path("-"), other, tmp_path / "new"):
        require_distinct(output, [None, Path("-"), text])
    require_distinct(Path("/dev/null"), [Path("/dev/null")])


def write_part(folder: Path) -> None:
    (folder / "part").write_text(NEW)


def test_a_new_folder_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "new"

    def write(folder: Path) -> None:
        write_part(folder)
        assert not path.exists()

    assert write_new_folder(path, write, "--output") == path
    assert [file.name for file in path.iterdir()] == ["part"]
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(UserError, match=f"^{path} exists: name a new folder with --output$"):
        write_new_folder(path, write_half_and_fail(AssertionError("not reached")), "--output")


def test_a_new_folder_is_refused_where_nothing_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object, *_: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    require_new_folder(tmp_path / "new", "--output")
    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(UserError, match=f"^cannot make {tmp_path}/new: {tmp_path} is not a folder"):
        require_new_folder(tmp_path / "new", "--output")


def test_standard_output_is_not_a_new_folder() -> None:
    with pytest.raises(UserError, match=r"^--output -: standard output is not a folder; name a new one$"):
        require_new_folder(Path("-"), "--output")


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_new_folder_replaces_nothing_that_appears_meanwhile(
    is_folder: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "new"

    def write(folder: Path) -> None:
        write_part(folder)
        if is_folder:
            path.mkdir()
        (path / "mine" if is_folder else path).write_text(OLD)

    written = write_new_folder(path, write, "--output")
    assert (path / "mine" if is_folder else path).read_text() == OLD
    assert (written.name, (written / "part").read_text()) == ("new-2", NEW)
    assert sorted(tmp_path.iterdir()) == [path, written]
    assert caplog.messages == [f"something else is at {path} by now: the files are in {written}"]


def test_a_new_folder_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(MtformerError, match="No space left"):
        write_new_folder(tmp_path / "new", raise_full_disk, "--output")
    assert list(tmp_path.iterdir()) == []


def test_an_error_in_a_new_folder_names_the_file_that_the_user_would_have(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        with open_output(folder / "part"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(MtformerError) as caught:
        write_new_folder(tmp_path / "new", write, "--output")
    assert str(caught.value) == f"cannot write {tmp_path / 'new' / 'part'}: No space left on device"


def raise_full_disk(folder: Path) -> None:
    write_part(folder)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_whoever_may_read_other_files_may_read_those_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    write_folder_atomically(tmp_path / "checkpoint", lambda folder: save_file({"a": torch.ones(1)}, folder / "tensors"))
    assert (tmp_path / "checkpoint" / "tensors").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("streamed", [False, True])
def test_a_file_that_is_replaced_keeps_its_permissions_and_its_link(streamed: bool, tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_text(OLD)
    path.chmod(0o640)
    link.symlink_to(path)
    if streamed:
        with open_atomically(link) as file:
            file.write(NEW.encode())
    else:
        write_atomically(link, lambda temporary: temporary.write_text(NEW))
    assert link.is_symlink()
    assert (path.read_text(), path.stat().st_mode & 0o777) == (NEW, 0o640)
