"""Devices, precisions, cores, and the memory of the process. Torch is imported where it is needed."""

import contextlib
import ctypes
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Literal, get_args

from mtformer.support.errors import UserError
from mtformer.support.processes.workers import n_cpus

if TYPE_CHECKING:
    import torch

Device = Literal["auto", "cpu", "cuda", "mps"]


def pick_device(choice: str) -> "torch.device":
    """Resolve ``auto`` to a GPU of NVIDIA or AMD where there is one.

    It never takes ``mps``, Apple's GPU, on which nobody has measured this program.

    Raises:
        UserError: there is no such device.
    """
    import torch

    gpus: dict[str, Callable[[], bool]] = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}
    return torch.device(pick_device_of("torch", choice, gpus))


def pick_device_of(library: str, choice: str, gpus: Mapping[str, Callable[[], bool]]) -> str:
    """Resolve ``auto`` to ``cuda`` where a library finds one.

    Args:
        library: its name.
        choice: the device.
        gpus: for each kind of GPU that the library can use, whether there is one.

    Raises:
        UserError: there is no such device.
    """
    if choice not in get_args(Device):
        raise UserError(f"device {choice}: it is auto, cpu, cuda or mps")
    if choice == "auto":
        return "cuda" if gpus["cuda"]() else "cpu"
    if choice == "cpu" or (choice in gpus and gpus[choice]()):
        return choice
    if choice not in gpus:
        raise UserError(f"device {choice}: {library} cannot use it; use cpu, or torch (--engine torch)")
    raise UserError(f"device {choice}: {library} finds no such GPU here; use cpu or auto")


def pick_precision(choice: Literal["auto", "fp32", "bf16"], device: "torch.device") -> Literal["fp32", "bf16"]:
    """Resolve ``auto``: to ``bf16`` on a GPU that supports it and on a CPU that multiplies faster in it."""
    if choice != "auto":
        return choice
    return "bf16" if has_fast_bf16(device) else "fp32"


def has_fast_bf16(device: "torch.device") -> bool:
    """Return whether a device multiplies bfloat16 numbers itself, and oneDNN may let it; processors can emulate it."""
    import torch

    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and _cpu_has_fast_bf16()


@cache
def _cpu_has_fast_bf16() -> bool:
    """Multiply matrices in both types: bfloat16 is several times as fast, or, where it is emulated, as slow.

    The quickest of several products counts, so that other programs do not change the result.
    """
    import torch

    def seconds(matrix: torch.Tensor) -> float:
        started = time.perf_counter()
        matrix @ matrix
        return time.perf_counter() - started

    fp32 = torch.ones(256, 256)
    bf16 = fp32.bfloat16()
    return min(seconds(bf16) for _ in range(10)) < min(seconds(fp32) for _ in range(10))


def require_precision(precision: Literal["fp32", "bf16", "int8"], device: "torch.device") -> None:
    """Refuse precisions that torch cannot translate in on ``device``, or only more slowly than in ``fp32``.

    Raises:
        UserError: it is one of those.
    """
    if precision == "int8":
        raise UserError("precision int8 needs CTranslate2 (--engine ctranslate2): torch computes in fp32 or bf16")
    if precision == "bf16" and not has_fast_bf16(device):
        if device.type == "cpu":
            raise UserError("precision bf16: this processor would emulate it, which is slower; use fp32")
        raise UserError("precision bf16: this GPU does not support it; use fp32")


def autocast(device: "torch.device", precision: str) -> "torch.autocast":
    """Compute matrix products in bfloat16 inside, if ``precision`` says so."""
    import torch

    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")


def usable_cores() -> int:
    """Return ``$OMP_NUM_THREADS``, as torch takes it, or else the number of cores that this process may use."""
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(given) if given.isdecimal() and int(given) > 0 else n_cpus()


def keep_freed_memory() -> None:
    """Make glibc keep the memory of freed tensors for later ones; other C libraries are left as they are.

    By default, glibc returns large blocks to the system at once. Getting them back takes 5 % of a training step and
    of a beam search on a CPU (docs/performance.md). In exchange, the process holds its peak memory until it ends.
    Threads share one heap: those of their own have limits of another kind, and are left out of what is measured below.
    """
    trim_threshold, mmap_threshold, arena_max = -1, -3, -8  # mallopt(3)
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library, or another system
        libc = ctypes.CDLL(None)
        if libc.mallopt(mmap_threshold, 1 << 30) or libc.mallopt(mmap_threshold, 1 << 25):  # older ones have a limit
            libc.mallopt(trim_threshold, (1 << 31) - 1)
            libc.mallopt(arena_max, 1)


def return_freed_memory_if_scarce() -> None:
    """Return the memory that glibc keeps to the system if it is more than all processes could still get.

    Kernels that oneDNN generates during a long training lie between the tensors, whose sizes differ from batch to
    batch, so the heap falls into fragments: 8 GiB were kept for 1 GiB in use (docs/performance.md). A machine with much
    memory can spare them. On a small one, faulting them in again is better than being killed.
    """
    if sys.platform != "linux":
        return
    import psutil

    with contextlib.suppress(OSError, psutil.Error, AttributeError, TypeError):  # another C library, or no /proc
        memory, available = psutil.Process().memory_info(), psutil.virtual_memory().available
        resident = memory.rss - memory.shared  # files left out
        if resident <= available:
            return
        libc = ctypes.CDLL(None)
        libc.mallinfo2.restype = _Mallinfo2
        usage = libc.mallinfo2()
        if resident - usage.counts[7] - usage.counts[4] > available:
            libc.malloc_trim(0)


class _Mallinfo2(ctypes.Structure):
    """The result of mallinfo(3); number 7 and number 4 are the bytes in use, on the heap and mapped."""

    _fields_ = (("counts", ctypes.c_size_t * 10),)
