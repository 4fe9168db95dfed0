"""Power cuts, kills and disk errors at a chosen file operation, so that no test of them depends on time."""

import errno
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

UNREADABLE = [errno.EACCES, errno.EIO, errno.ESTALE, errno.ENOMEM]
_OPERATIONS = ("mkdir", "open", "fsync", "chmod", "rename", "replace", "unlink", "rmdir")


class PowerCut(BaseException):
    """The process is gone: no handler of ``Exception`` may clean up after it."""


@contextmanager
def fault_before(n: int, fault: Callable[[], object]) -> Iterator[None]:
    """Inside, call ``fault`` before file operation number ``n``, counted from 0, and before all later ones."""
    done = 0

    def counted(operation: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal done
            done += 1
            if done > n:
                fault()
            return operation(*args, **kwargs)

        return run

    with pytest.MonkeyPatch.context() as patch:
        for name in _OPERATIONS:
            patch.setattr(os, name, counted(getattr(os, name)))
        yield


@contextmanager
def power_cut_before(n: int) -> Iterator[None]:
    """Inside, raise :class:`PowerCut` instead of file operation number ``n``, counted from 0, and all later ones."""

    def cut() -> None:
        raise PowerCut

    with fault_before(n, cut):
        yield


@contextmanager
def killed_before(n: int) -> Iterator[None]:
    """Inside, kill this process instead of file operation number ``n``, counted from 0."""
    with fault_before(n, lambda: os.kill(os.getpid(), signal.SIGKILL)):
        yield


@contextmanager
def disk_error_before(n: int, code: int) -> Iterator[None]:
    """Inside, file operation number ``n``, counted from 0, and all later ones fail with an operating system error."""

    def fail() -> None:
        raise OSError(code, os.strerror(code))

    with fault_before(n, fail):
        yield


@contextmanager
def unreadable(name: str, code: int) -> Iterator[None]:
    """Inside, opening a file called ``name``, or listing a folder of that name, fails with this error."""

    def refuse(operation: Callable[..., Any]) -> Callable[..., Any]:
        def check(path: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(path, str | os.PathLike) and Path(path).name == name:
                raise OSError(code, os.strerror(code), os.fspath(path))
            return operation(path, *args, **kwargs)

        return check

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("io.open", refuse(open))
        patch.setattr(os, "listdir", refuse(os.listdir))
        patch.setattr(os, "scandir", refuse(os.scandir))  # pathlib's, from Python 3.13 on
        yield
