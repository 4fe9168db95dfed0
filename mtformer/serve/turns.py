"""The order of the work of many callers: each gets a share, and nobody waits for the end of a long text.

This is start-time fair queueing (Goyal, Vin and Cheng 1996, "Start-time Fair Queuing"), among keys and, within each,
among jobs. The one that was served least since it joined is next; newcomers join where the others are::

    FairQueue      start   items of cost 20
      key A          30
        job 1        20    [item, item]
        job 2        10    [item]
      key B          12
        job 3        12    [item, item]

Key B is next: its job 3 loses an item, and both start at 32 then. So key A is next, with its job 2, which leaves.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, NamedTuple, TypeVar

W = TypeVar("W")

MOST_TOKENS = 2_048  # of the sources of a batch, as larger ones are no faster; and so of what a turn is charged


class Member:
    """A member of :class:`Turns`.

    Attributes:
        weight: how much more it gets than a member of weight 1.
        start: where its next turn starts, on a scale of what all turns have cost.
        balance: what it was charged so far beyond what its turns have cost.
    """

    weight: float = 1.0
    start: float = 0.0
    balance: float = 0.0

    def charge(self, cost: float) -> None:
        """Count a turn."""
        due = cost - self.balance
        self.balance = max(0.0, -due)
        self.start += max(0.0, due) / self.weight


M = TypeVar("M", bound=Member)


class Turns(Generic[M]):
    """Members that take turns: those with costlier turns get fewer."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, M]] = []  # by their starts; of equal ones the first to come is first
        self._numbers = count()
        self._clock = 0.0

    def __bool__(self) -> bool:
        """Whether there are members."""
        return bool(self._heap)

    def join(self, member: M) -> None:
        """Add a member: it starts where the one whose turn was last has started, or where its own last turn ended."""
        member.start = max(self._clock, member.start)
        heapq.heappush(self._heap, (member.start, next(self._numbers), member))

    @property
    def first(self) -> M:
        """The member whose turn it is."""
        self._clock, _, member = self._heap[0]
        return member

    def charge_first(self, cost: float, *, stays: bool) -> None:
        """Count the turn of the first member, which leaves or makes another one the first."""
        _, _, member = heapq.heappop(self._heap)
        member.charge(cost)
        if stays:
            self.join(member)


class Item(NamedTuple, Generic[W]):
    """A part of the work of a job.

    Attributes:
        cost: about how much it is, in tokens.
        work: what is to be done.
    """

    cost: int
    work: W


@dataclass(eq=False)
class Line(Member, Generic[W]):
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


class _Key(Member, Generic[W]):
    """A key, with those of its jobs that wait."""

    def __init__(self) -> None:
        self.lines: Turns[Line[W]] = Turns()


class FairQueue(Generic[W]):
    """The work of all jobs that wait, in fair order.

    Attributes:
        n: the number of their items.
        cost: the sum of their costs.
    """

    def __init__(self) -> None:
        self._turns: Turns[_Key[W]] = Turns()
        self._keys: dict[str, _Key[W]] = {}
        self.n = self.cost = 0

    def add(self, line: Line[W], items: Sequence[Item[W]]) -> None:
        """Add work to a job, before the work that it has already."""
        is_waiting = bool(line.items)
        line.items.extendleft(reversed(items))
        self._count(items, 1)
        if is_waiting or not items:
            return
        key = self._keys.setdefault(line.key, _Key())
        if not key.lines:
            self._turns.join(key)
        key.lines.join(line)

    def take(self, cost: int) -> list[Item[W]]:
        """Remove work of this cost, or a little more, and return it in fair order; work of unwanted jobs is dropped.

        The cost of each returned item is what its job was charged: no more than a batch holds.
        """
        taken: list[Item[W]] = []
        while self._turns and cost > 0:
            key = self._turns.first
            line = key.lines.first
            charged = 0
            if line.is_wanted:
                item = line.items.popleft()
                self._count([item], -1)
                charged = min(item.cost, MOST_TOKENS)
                taken.append(item._replace(cost=charged))
                cost -= item.cost
            else:
                self._count(line.items, -1)
                line.items.clear()
            key.lines.charge_first(charged, stays=bool(line.items))
            self._turns.charge_first(charged, stays=bool(key.lines))
        return taken

    def settle(self, line: Line[W], amount: float) -> None:
        """Deduct an amount from the next charges of a job and its key; one below 0 is added."""
        line.balance += amount
        if line.key in self._keys:
            self._keys[line.key].balance += amount

    def forget(self) -> None:
        """Forget the charges if nobody waits: a key that had the server to itself does not pay for that later."""
        if not self.n:
            self._turns, self._keys = Turns(), {}

    def _count(self, items: Iterable[Item[W]], sign: int) -> None:
        for item in items:
            self.n += sign
            self.cost += sign * item.cost
