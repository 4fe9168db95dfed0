"""How the process treats memory."""

import contextlib
import ctypes
import sys


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
    """What mallinfo(3) returns; number 7 and number 4 are the bytes in use, on the heap and mapped."""

    _fields_ = (("counts", ctypes.c_size_t * 10),)
