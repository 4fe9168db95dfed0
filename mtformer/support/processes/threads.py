"""Threads that compute side by side, each on one core.

By default torch divides every operation among the cores. Its threads then meet several hundred times per update and
wait for each other in a busy loop: beside a program that takes one of the cores, all of them wait for the slowest, and
training takes several times as long (docs/performance.md). Here each thread computes a part of a batch, or a batch of
its own, and they meet once at the end.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

from mtformer.support.processes.workers import by_threads

Item = TypeVar("Item")
Result = TypeVar("Result")

_FEWEST_TOKENS = 512  # of a thread's part of a batch: smaller products gain little from another core


def choose_threads(n_cores: int, max_tokens: int) -> int:
    """Return the threads for batches of ``max_tokens``: results depend on their number, so load must not choose it."""
    return max(1, min(n_cores, max_tokens // _FEWEST_TOKENS))


@contextmanager
def one_core_per_operation() -> Iterator[None]:
    """Inside, torch computes each operation on one core."""
    n_cores = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_cores)


class Threads:
    """A number of threads.

    Attributes:
        n: the number.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._pool = ThreadPoolExecutor(n, "mtformer", torch.set_num_threads, (1,)) if n > 1 else None

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Generator[Result, None, None]:
        """Yield the results of ``function`` in order; an error is raised once the calls in progress are done."""
        if self._pool is None or len(items) == 1:
            yield from map(function, items)
        else:
            yield from by_threads(self._pool, function, items)
