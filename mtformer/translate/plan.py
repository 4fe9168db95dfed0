"""Plans of translating a text: generators that ask for searches, scores and alignments and get their results.

A plan does no input or output, and leaves computing to whoever drives it: :func:`run` drives the plans of many texts at
once and submits what all of them ask for together, so that an engine finds sentences of one length for its batches.
"""

from collections import Counter
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
        owners: the number of the plan that asks for each.
        outcomes: for each plan that has ended, its result or its error.
    """

    def __init__(self, plans: Iterable[Plan[T]]) -> None:
        """Start the plans."""
        self._plans = list(plans)
        self.outcomes: list[Any] = [None] * len(self._plans)
        self._advance(dict.fromkeys(range(len(self._plans))))

    def receive(self, results: Sequence[Any]) -> None:
        """Give the plans the results of :attr:`requests`."""
        of_plan: dict[int, Any] = {number: [] for number in self.owners}
        for number, result in zip(self.owners, results, strict=True):
            of_plan[number].append(result)
        self._advance(of_plan)

    def _advance(self, results: dict[int, Any]) -> None:
        """Continue plans, each with its results; None starts one."""
        self.requests: list[Request[Any]] = []
        self.owners: list[int] = []
        for number, of_plan in results.items():
            try:
                requests = self._plans[number].send(of_plan)
            except StopIteration as end:
                self.outcomes[number] = end.value
            except MtformerError as error:
                self.outcomes[number] = error
            else:
                self.requests += requests
                self.owners += [number] * len(requests)


def run(
    plans: Iterable[Plan[T]], engine: Engine, on_progress: Callable[[int], object] | None = None
) -> "list[T | MtformerError]":
    """Drive plans to their ends.

    Args:
        plans: any number of them.
        engine: computes what they ask for.
        on_progress: called with the number of plans whose first requests have been computed since the last call, which
            are most of the work, or that have none.

    Returns:
        For each plan its result, or the error that has ended it; the others go on.
    """
    report = on_progress or (lambda n_plans: None)
    group = Group(plans)
    owners = group.owners
    left = Counter(owners)
    report(len(group.outcomes) - len(left))

    def count(done: Sequence[int]) -> None:
        numbers = [owners[i] for i in done]
        left.subtract(numbers)
        report(sum(not left[number] for number in set(numbers)))

    if group.requests:
        group.receive(engine.submit(group.requests, on_done=count))
    while group.requests:
        group.receive(engine.submit(group.requests))
    return group.outcomes
