"""Power cuts and disk errors at a chosen file operation, so that tests of them need no luck."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import mtformer.files

_OPERATIONS = ("mkdir", "open", "fsync", "chmod", "rename", "replace", "unlink", "rmdir")


class PowerCut(BaseException):
    """The process is gone: no handler of ``Exception`` may clean up after it."""


@contextmanager
def power_cut_before(n: int) -> Iterator[None]:
    """Inside, raise :class:`PowerCut` instead of file operation number ``n``, counted from 0, and all later ones."""
    done = 0

    def cut(operation: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any, **kwargs: Any) -> Any:
            nonlocal done
            if done >= n:
                raise PowerCut(f"before {operation.__name__}{args}")
            done += 1
            return operation(*args, **kwargs)

        return count

    with pytest.MonkeyPatch.context() as patch:
        for name in _OPERATIONS:
            patch.setattr(os, name, cut(getattr(os, name)))
        patch.setattr(mtformer.files, "_exchange", cut(mtformer.files._exchange))
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
        yield


UNREADABLE = [errno.EACCES, errno.EIO, errno.ESTALE, errno.ENOMEM]
