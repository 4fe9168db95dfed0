"""How many lines are translated together.

A search is fast if its batches hold sentences of one length, and the more sentences it can choose from, the less
padding there is. On the other hand, nobody should wait long for the first translations, and a program that has written
one line and waits for its translation must get it.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from queue import Queue
from threading import Thread
from typing import TypeVar

Item = TypeVar("Item")

FIRST_SIZE, LARGEST_SIZE = 1_000, 8_000


def windows(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Divide items into windows, each twice as large as the one before, up to a limit.

    Where a window ends depends only on the number of items before it.
    """
    rest, size = iter(items), FIRST_SIZE
    while window := list(islice(rest, size)):
        yield window
        size = min(2 * size, LARGEST_SIZE)


def available(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Divide items into windows of those that are there, waiting only while there is none.

    If ``items`` raises an error, the items before it are yielded first.
    """
    queue: Queue[Item | None] = Queue(LARGEST_SIZE)  # None is the end
    errors: list[Exception] = []

    def fill() -> None:
        try:
            for item in items:
                queue.put(item)
        except Exception as error:
            errors.append(error)
        queue.put(None)

    # A daemon: it may wait for input that never comes, and the program must end nevertheless.
    Thread(target=fill, name="reader", daemon=True).start()
    size = FIRST_SIZE
    while (item := queue.get()) is not None:
        window = [item]
        while len(window) < size and not queue.empty():
            if (item := queue.get()) is None:
                queue.put(None)
                break
            window.append(item)
        yield window
        size = min(2 * size, LARGEST_SIZE) if len(window) == size else size
    for error in errors:
        raise error
