"""A progress bar on a terminal, an occasional line elsewhere."""

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain, islice
from typing import Self, TypeVar

from tqdm import tqdm

from mtformer.support import logs
from mtformer.support.terminal import counted

log = logging.getLogger(__name__)

Item = TypeVar("Item")

_SECONDS_TO_FIRST_LINE, _SECONDS_BETWEEN_LINES = 5.0, 30.0
_FEWEST_TIMED = 10  # items, or a tenth of all, before the time that is left is estimated


class Progress:
    """Shows the progress of long work on stderr.

    Use it as a context manager and call :meth:`advance`.

    Attributes:
        done: the number of items that are done.
    """

    def __init__(
        self, what: str, total: int | None = None, initial: int = 0, unit: str = "it", *, with_rate: bool = True
    ) -> None:
        """Start at ``initial`` of ``total`` items.

        Args:
            what: the work, as in "translating".
            total: the number of items; None if unknown.
            initial: the number of items that are done already.
            unit: the plural of an item, as in "lines".
            with_rate: show speed and time left; without, the notes of :meth:`advance` do, before the bar.
        """
        self._what, self._unit, self._with_rate = what, unit, with_rate
        self._on_terminal = sys.stderr.isatty() and log.isEnabledFor(logging.INFO) and not logs.is_json()
        done = "{n_fmt}/{total_fmt}" if total else "{n_fmt}"
        self._bar = tqdm(
            total=total,
            initial=initial,
            unit=unit,
            desc=what,
            disable=not self._on_terminal,
            leave=False,
            dynamic_ncols=True,
            bar_format=None if with_rate else f"{done} {{unit}}{{postfix}} {{bar}}",
        )
        self.done, self._total, self._initial = initial, total, initial
        self._started = time.monotonic()
        self._next_line = self._started + _SECONDS_TO_FIRST_LINE
        self._log_above_bar = _logging_above_bar() if self._on_terminal else nullcontext()

    def __enter__(self) -> Self:
        self._log_above_bar.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._log_above_bar.__exit__(None, None, None)
        self._bar.close()

    def advance(self, n: int = 1, note: str = "") -> None:
        """Count ``n`` more items as done, and show a short ``note`` beside the progress."""
        self.done += n
        if note:
            self._bar.set_postfix_str(note, refresh=False)
        self._bar.update(n)
        if not self._on_terminal and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _SECONDS_BETWEEN_LINES
            log.info("%s: %s", self._what, self._line(note))

    @property
    def total(self) -> int | None:
        """The number of items; None if unknown, until it is set."""
        return self._total

    @total.setter
    def total(self, total: int | None) -> None:
        self._total = self._bar.total = total

    def note(self, text: str) -> None:
        """Show ``text`` beside the progress at once."""
        self._bar.set_postfix_str(text)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Take the bar off the terminal while something else, such as the results of the work, is written to it."""
        with tqdm.external_write_mode():
            yield

    def _line(self, note: str) -> str:
        unit = self._unit.removesuffix("s")
        done = counted(self.done, unit) if self.total is None else f"{self.done:,} of {counted(self.total, unit)}"
        if not self._with_rate:
            return f"{done}, {note}"
        rate = (self.done - self._initial) / (time.monotonic() - self._started)
        if self.total is None:
            speed = f"{rate:,.1f} {self._unit}/s" if rate >= 1 else f"{60 * rate:.1f} {self._unit}/min"
            return f"{done}, {speed} {note}".rstrip()
        is_known = rate and self.done - self._initial >= min(_FEWEST_TIMED, self.total / 10)
        left = f", {clock((self.total - self.done) / rate)} left" if is_known else ""
        return f"{done}{left} {note}".rstrip()


def _logging_above_bar() -> AbstractContextManager[None]:
    from tqdm.contrib.logging import logging_redirect_tqdm  # imports asyncio

    return logging_redirect_tqdm()


def watched(items: Iterable[Item], what: str, unit: str, total: int | None = None) -> Iterator[Item]:
    """Yield ``items`` and show how many have been taken so far, from the first one on: it may take work of its own.

    Args:
        items: what is watched.
        what: the work, as in "reading".
        unit: the plural of an item, as in "lines".
        total: the number of items; None if unknown.
    """
    remaining = iter(items)
    first = list(islice(remaining, 1))
    with Progress(what, total, unit=unit) as progress:
        for item in chain(first, remaining):
            yield item
            progress.advance()


def clock(seconds: float) -> str:
    """Format a time as ``m:ss``, or as ``h:mm:ss`` from an hour on."""
    if seconds == float("inf"):
        return "?"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def expected_seconds(
    batches: Sequence[Item], work: Callable[[Sequence[Item]], object], size: Callable[[Item], float], n_measured: int
) -> float:
    """Return how long ``work`` on all batches takes, from the time that it takes on some of them.

    Args:
        batches: what there is to do.
        work: does it for some batches; it is called twice, and the second time counts, when kernels have been generated
            and memory has been allocated.
        size: of a batch; the time is proportional to it.
        n_measured: about how many batches to measure; they are spread over all sizes.
    """
    by_size = sorted(batches, key=size)
    step = max(1, len(by_size) // n_measured)
    chosen = by_size[step // 2 :: step]
    work(chosen)
    started = time.monotonic()
    work(chosen)
    return (time.monotonic() - started) * sum(map(size, batches)) / sum(map(size, chosen))
