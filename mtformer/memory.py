"""How the process treats memory."""

import contextlib
import ctypes


def keep_freed_memory() -> None:
    """Make glibc keep the memory of freed tensors for later ones; other C libraries are left as they are.

    By default, glibc returns large blocks to the system at once. Getting them back takes 5 % of a training step and
    of a beam search on a CPU (docs/performance.md). In exchange, the process holds its peak memory until it ends.
    """
    trim_threshold, mmap_threshold = -1, -3  # mallopt(3)
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library, or another system
        libc = ctypes.CDLL(None)
        if libc.mallopt(mmap_threshold, 1 << 30) or libc.mallopt(mmap_threshold, 1 << 25):  # older ones have a limit
            libc.mallopt(trim_threshold, (1 << 31) - 1)
