"""How much of a long run a page shows, so that it stays small enough to be sent and opened anywhere."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mtformer.support.page import MAX_PAGE_BYTES

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class Detail:
    """The most that a page shows.

    Attributes:
        points: of a curve; a screen has no pixels for more.
        rows: of the table of validations.
        sampled: validations with samples.
        samples: at each of them.
    """

    points: int = 1_000
    rows: int = 1_000
    sampled: int = 200
    samples: int = 100

    def halved(self) -> "Detail":
        """Return half of it."""
        return Detail(*(max(1, n // 2) for n in (self.points, self.rows, self.sampled, self.samples)))


def thinned(items: Sequence[T], most: int) -> list[T]:
    """Return all of ``items``, or every n-th of them and the last: ``most``, or one more."""
    every = -(-len(items) // most) or 1
    return [*items[:-1:every], *items[-1:]]


def fitted(render: Callable[[Detail], str]) -> str:
    """Return the page with as much detail as ``MAX_PAGE_BYTES`` allows."""
    detail = Detail()
    while (n_bytes := len((page := render(detail)).encode())) > MAX_PAGE_BYTES and detail != detail.halved():
        detail = detail.halved()
    if n_bytes > MAX_PAGE_BYTES:
        log.warning("the page has %.1f MB, most of it text that cannot be left out", n_bytes / 1e6)
    return page
