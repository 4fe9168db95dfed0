"""Random samples of streams."""

import random
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Reservoir(Generic[Item]):
    """A sample of a stream in which all items are equally likely (Vitter 1985, algorithm R).

    Attributes:
        items: the sample; all items of the stream while there are no more than ``size``.
    """

    def __init__(self, size: int, seed: int) -> None:
        """Keep ``size`` items."""
        self.items: list[Item] = []
        self._size, self._n_seen = size, 0
        self._generator = random.Random(seed)

    def add(self, item: Item) -> None:
        """Take the next item of the stream."""
        self._n_seen += 1
        if len(self.items) < self._size:
            self.items.append(item)
        elif (place := self._generator.randrange(self._n_seen)) < self._size:
            self.items[place] = item
