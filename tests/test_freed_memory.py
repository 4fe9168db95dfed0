"""What happens to the memory of freed tensors."""

import platform
import subprocess
import sys

import pytest

SCRIPT = """
from types import SimpleNamespace

import psutil
import torch
from mtformer.support import hardware

hardware.keep_freed_memory()
tensors, between = [], []
for _ in range(200):
    tensors.append(torch.ones(2**18))  # 1 MiB
    between.append(bytearray(100_000))  # keeps the freed tensors from forming one block at the end of the heap
del tensors
resident = lambda: psutil.Process().memory_info().rss
freed = resident()
for available in (10**12, 10**8):
    psutil.virtual_memory = lambda: SimpleNamespace(available=available)
    hardware.return_freed_memory_if_scarce()
    print(freed - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries treat freed memory differently")
def test_freed_memory_is_returned_only_if_little_is_left() -> None:
    printed = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True).stdout
    kept, returned = map(int, printed.split())
    assert abs(kept) < 10e6
    assert returned > 150e6
