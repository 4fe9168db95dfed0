"""Shares of a file, for several processes or machines."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from mtformer.support.errors import UserError

Item = TypeVar("Item")


@dataclass(frozen=True)
class Shard:
    """One of several shares of the lines, which follow each other.

    Attributes:
        index: its number, from 1.
        count: how many shares there are.
    """

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read ``I/N``.

        Raises:
            UserError: it is something else, or I is not between 1 and N.
        """
        found = re.fullmatch(r"(\d+)/(\d+)", text)
        index, count = (int(number) for number in found.groups()) if found else (0, 0)
        if not 1 <= index <= count:
            raise UserError(f"--shard {text}: write I/N with I from 1 to N, as in 2/8")
        return cls(index, count)

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def of(self, n_lines: int) -> range:
        """Return the places of this share among ``n_lines`` lines."""
        return range((self.index - 1) * n_lines // self.count, self.index * n_lines // self.count)


def share_of(items: Callable[[], Iterable[Item]], shard: Shard | None) -> Iterator[Item]:
    """Yield the items of a share, or all of them; ``items`` returns them anew, since they are counted first."""
    if shard is None:
        return iter(items())
    share = shard.of(sum(1 for _ in items()))
    return islice(items(), share.start, share.stop)
