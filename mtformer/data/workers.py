"""Work on many chunks, in order."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Task = TypeVar("Task")
Done = TypeVar("Done")


def in_order(work: Callable[[Task], Done], tasks: Iterable[Task]) -> Iterator[tuple[Task, Done]]:
    """Yield each task with the result of ``work`` on it, in the order of the tasks."""
    return ((task, work(task)) for task in tasks)
