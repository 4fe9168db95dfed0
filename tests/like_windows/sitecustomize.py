"""Hides from mtformer what Windows lacks: Python runs this module at its start where its folder is on PYTHONPATH.

The libraries that mtformer uses still see the real system; filelock, psutil and multiprocessing differ by themselves.
"""

import builtins
import os
import signal
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

PACKAGE = str(Path(__file__).parent.parent.parent / "mtformer")
STANDARD_LIBRARY = sysconfig.get_path("stdlib")
SITE_PACKAGES = sysconfig.get_path("purelib")
NO_MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
IS_WINDOWS: dict[str, dict[str, Any]] = {"os": {"name": "nt"}, "sys": {"platform": "win32"}, "signal": {}}
LACKING = {
    "os": "fork forkpty getpgid geteuid getuid killpg mkfifo nice pread pwrite sched_getaffinity setsid sysconf uname",
    "sys": "",
    "signal": "SIGALRM SIGHUP SIGKILL SIGUSR1 SIGUSR2 SIG_BLOCK SIG_SETMASK alarm pthread_kill pthread_sigmask",
}
DIRECTORIES = ("/proc", "/sys", "/dev/shm")


class Windows(ModuleType):
    """A module as it is on Windows."""

    def __init__(self, module: ModuleType) -> None:
        name = module.__name__
        self.__dict__.update(_module=module, _own=IS_WINDOWS[name], _lacking=LACKING[name].split())

    def __getattr__(self, name: str) -> Any:
        if name in self._lacking:
            raise AttributeError(f"{self._module.__name__} has no {name} on Windows")
        return self._own[name] if name in self._own else getattr(self._module, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._module, name, value)


MODULES = {module.__name__: Windows(module) for module in (os, signal, sys)}
really_import = builtins.__import__


def import_as_on_windows(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    if str((globals or {}).get("__name__")).startswith("mtformer"):
        if name in NO_MODULES:
            raise ModuleNotFoundError(f"no module {name} on Windows", name=name)
        if name in MODULES:
            return MODULES[name]
    return really_import(name, globals, locals, fromlist, level)


def is_of_mtformer(frame: FrameType | None) -> bool:
    """Tell whether mtformer has called the standard library; whatever another library does is not its business."""
    while frame is not None:
        place = frame.f_code.co_filename
        if place.startswith(PACKAGE):
            return True
        if place.startswith(SITE_PACKAGES) or not place.startswith((STANDARD_LIBRARY, "<frozen")):
            return False
        frame = frame.f_back
    return False


def absolute(path: str | os.PathLike[str], folder: int) -> str:
    return str((Path.cwd() if folder < 0 else Path(f"/proc/self/fd/{folder}").readlink()) / path)


def open_files() -> Iterator[str]:
    """Yield the paths of all files that this process has open or mapped."""
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # that of this list
            if not descriptor.is_dir():
                yield str(descriptor.readlink())
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        yield line.split(None, 5)[-1]


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Raise the error that Windows would; an audit hook."""
    if event not in ("open", "os.rename", "os.remove", "os.rmdir", "ctypes.dlopen"):
        return
    caller = sys._getframe().f_back
    if not is_of_mtformer(caller):
        return
    first = arguments[0]
    if event == "ctypes.dlopen" and first is None:
        raise TypeError("Windows has no library of the whole process")
    if event == "open":
        is_sync = arguments[1] is None and str(caller and caller.f_code.co_filename).startswith(PACKAGE)  # os.open
        if str(first).startswith(DIRECTORIES) or (is_sync and Path(first).is_dir()):
            raise PermissionError(13, "Windows opens no such file", str(first))
    if event.startswith("os."):
        n = len(arguments) // 2  # paths, and the descriptors of the folders that they are relative to
        paths = [absolute(path, folder) for path, folder in zip(arguments[:n], arguments[n:], strict=True)]
        for used in open_files():
            for path in paths:
                if used == path or used.startswith(path + os.sep):
                    raise PermissionError(13, f"Windows neither renames nor removes what is open ({used})", path)


builtins.__import__ = import_as_on_windows
sys.addaudithook(refuse)
