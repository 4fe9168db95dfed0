"""The order in which the work of many callers is done: each gets a share, and nobody waits for the end of a long text.

This is start-time fair queueing (Goyal, Vin and Cheng 1996, "Start-time Fair Queuing"), among keys and, within each,
among jobs. The one that was served least since it joined is next; newcomers join where the others are.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, NamedTuple, TypeVar

M = TypeVar("M")
W = TypeVar("W")


class Turns(Generic[M]):
    """Members that take turns: those whose turns cost more have fewer of them."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, M]] = []  # by what each has cost; of equal ones the first to come is first
        self._numbers = count()
        self._clock = 0.0

    def __bool__(self) -> bool:
        """Whether there are members."""
        return bool(self._heap)

    def join(self, member: M) -> None:
        """Add a member, as if it had cost as much so far as the one whose turn was last."""
        heapq.heappush(self._heap, (self._clock, next(self._numbers), member))

    @property
    def first(self) -> M:
        """The member whose turn it is."""
        self._clock, _, member = self._heap[0]
        return member

    def charge_first(self, cost: float) -> None:
        """Count the turn of the first member, which makes another one the first."""
        spent, _, member = self._heap[0]
        heapq.heapreplace(self._heap, (spent + cost, next(self._numbers), member))

    def remove_first(self) -> None:
        """Remove the first member."""
        heapq.heappop(self._heap)


class Item(NamedTuple, Generic[W]):
    """A part of the work of a job.

    Attributes:
        cost: about how much it is, in tokens.
        work: what is to be done.
    """

    cost: int
    work: W


@dataclass(eq=False)
class Line(Generic[W]):
    """The work of one job that waits.

    Attributes:
        key: whose job it is.
        weight: how much more it gets than a job of weight 1.
        items: the work.
        is_wanted: whether anybody still waits for it.
    """

    key: str
    weight: float = 1.0
    items: deque[Item[W]] = field(default_factory=deque)
    is_wanted: bool = True


class Waiting(Generic[W]):
    """The lines of all jobs.

    Attributes:
        n: the number of their items.
        cost: the sum of their costs.
    """

    def __init__(self) -> None:
        self._keys: Turns[str] = Turns()
        self._lines: dict[str, Turns[Line[W]]] = {}
        self.n = self.cost = 0

    def add(self, line: Line[W], items: Sequence[Item[W]]) -> None:
        """Add work to a job, before the work that it has already."""
        is_waiting = bool(line.items)
        line.items.extendleft(reversed(items))
        self._count(items, 1)
        if is_waiting or not items:
            return
        if line.key not in self._lines:
            self._lines[line.key] = Turns()
            self._keys.join(line.key)
        self._lines[line.key].join(line)

    def take(self, cost: int) -> list[Item[W]]:
        """Remove work of this cost, or a little more, and return it in fair order; that of unwanted jobs is dropped."""
        taken: list[Item[W]] = []
        while self._keys and cost > 0:
            key = self._keys.first
            line = self._lines[key].first
            if line.is_wanted:
                item = line.items.popleft()
                taken.append(item)
                self._count([item], -1)
                cost -= item.cost
                self._charge(key, line, item.cost)
            else:
                self._count(line.items, -1)
                line.items.clear()
                self._charge(key, line, 0)
        return taken

    def _charge(self, key: str, line: Line[W], cost: int) -> None:
        """Count the turn of a job that is the first of the first key; what has no more work leaves."""
        lines = self._lines[key]
        if line.items:
            lines.charge_first(cost / line.weight)
        else:
            lines.remove_first()
        if lines:
            self._keys.charge_first(cost)
        else:
            self._keys.remove_first()
            del self._lines[key]

    def _count(self, items: Iterable[Item[W]], sign: int) -> None:
        for item in items:
            self.n += sign
            self.cost += sign * item.cost
