"""Plans of translating a text: generators that ask for searches, scores and alignments and get their results.

A plan does no input or output, and leaves computing to whoever drives it: :func:`run` drives the plans of many texts at
once and submits what all of them ask for together, so that an engine finds sentences of one length for its batches.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from mtformer.search.engine import Engine, R_co, Request, succeeded
from mtformer.support.errors import MtformerError

T = TypeVar("T")

# Yields requests, and receives for each of them its result or its error; its own result is a T.
Plan: TypeAlias = Generator[Sequence[Request[Any]], Sequence[Any], T]


def ask(requests: Sequence[Request[R_co]]) -> Plan[list[R_co]]:
    """Return the results of requests.

    Raises:
        MtformerError: that of the first request that has failed.
    """
    results = (yield requests) if requests else []
    return succeeded(results)


def together(plans: Iterable[Plan[T]]) -> Plan[list[T]]:
    """Return the results of plans that are driven side by side, as parts of one.

    Raises:
        MtformerError: that of the first plan that has failed.
    """
    plans = list(plans)
    if len(plans) == 1:  # as mostly
        return [(yield from plans[0])]
    group = Group(plans)
    while group.requests:
        group.receive((yield group.requests))
    return succeeded(group.outcomes)


class Group(Generic[T]):
    """Plans that are driven side by side: their requests are computed together.

    Attributes:
        requests: what they ask for now; nothing once all of them have ended.
        outcomes: for each plan that has ended, its result or its error.
    """

    def __init__(self, plans: Iterable[Plan[T]], on_end: Callable[[int], object] | None = None) -> None:
        """Start the plans; ``on_end`` is called with 1 for each that ends."""
        self._plans, self._on_end = list(plans), on_end or (lambda _: None)
        self.outcomes: list[Any] = [None] * len(self._plans)
        self._next: dict[int, Sequence[Request[Any]]] = {}  # of plans that have continued, what they ask for
        for number in range(len(self._plans)):
            self._advance(number, None)
        self._begin_round()

    def receive(self, results: Sequence[Any]) -> None:
        """Give the plans those results of :attr:`requests` that they lack; then :attr:`requests` are the next ones."""
        self.receive_some(range(len(results)), results)
        self._begin_round()

    def receive_some(self, indices: Iterable[int], results: Iterable[Any]) -> None:
        """Give the plans the results of some requests, and continue those that have all of theirs."""
        for index, result in zip(indices, results, strict=True):
            number = self._owners[index]
            of_plan = self._results[number]
            if index not in of_plan:
                of_plan[index] = result
                if len(of_plan) == self._n_requests[number]:
                    self._advance(number, [of_plan[i] for i in sorted(of_plan)])

    def _advance(self, number: int, results: Sequence[Any] | None) -> None:
        """Continue a plan with its results; None starts it."""
        try:
            self._next[number] = self._plans[number].send(results)  # type: ignore[arg-type]
            return
        except StopIteration as end:
            self.outcomes[number] = end.value
        except MtformerError as error:
            self.outcomes[number] = error
        self._on_end(1)

    def _begin_round(self) -> None:
        asked = sorted(self._next.items())
        self._next = {}
        self._results: dict[int, dict[int, Any]] = {number: {} for number, _ in asked}
        self._n_requests = {number: len(requests) for number, requests in asked}
        self._owners = [number for number, requests in asked for _ in requests]
        self.requests: list[Request[Any]] = [request for _, requests in asked for request in requests]


def run(
    plans: Iterable[Plan[T]], engine: Engine, on_progress: Callable[[int], object] | None = None
) -> "list[T | MtformerError]":
    """Drive plans to their ends.

    The engine need not be done with all requests before a plan continues: it does so once its own are done.

    Args:
        plans: any number of them.
        engine: computes what they ask for.
        on_progress: called with the number of plans that have ended since the last call.

    Returns:
        For each plan its result, or the error that has ended it; the others continue.
    """
    group = Group(plans, on_progress)
    while group.requests:
        group.receive(engine.submit(group.requests, on_done=group.receive_some))
    return group.outcomes
