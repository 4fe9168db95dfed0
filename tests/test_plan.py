"""Plans: what they ask for is merged and given back, errors end only the plan that they belong to, progress adds up."""

from collections.abc import Sequence
from typing import Any

import pytest
from engines import given, result_of

from mtformer.config import SearchOptions
from mtformer.search.engine import OnDone, Request, ScoreRequest, succeeded
from mtformer.support.errors import MtformerError
from mtformer.translate.plan import Plan, ask, run, together


class Doubler:
    """An engine that gives each source twice, fails at 13, and records what it gets at once."""

    def __init__(self) -> None:
        self.submitted: list[list[int]] = []

    def require_supported(self, options: SearchOptions) -> None:
        """Support all options."""

    def submit(self, requests: Sequence[Request[Any]], *, on_done: OnDone | None = None) -> list[Any]:
        """Compute the requests one by one, the last first."""
        sources = [request.src[0] for request in requests if isinstance(request, ScoreRequest)]
        self.submitted.append(sources)
        results = [MtformerError("thirteen") if src == 13 else [2.0 * src] for src in sources]
        for i in reversed(range(len(sources))):
            if on_done is not None:
                on_done([i], [results[i]])
        return results


def doubled(*numbers: int) -> Plan[list[float]]:
    """Ask for numbers at once."""
    results = yield from ask([ScoreRequest([number], []) for number in numbers])
    return [result for [result] in results]


def chain(number: int, n_times: int) -> Plan[float]:
    """Double a number several times, one after the other."""
    result = float(number)
    for _ in range(n_times):
        [result] = yield from doubled(int(result))
    return result


def tree(*numbers: int) -> Plan[list[float]]:
    """Double some numbers as often as they say, side by side, and then their sum."""
    results = yield from together(chain(number, number) for number in numbers)
    total = yield from doubled(int(sum(results)))
    return [*results, *total]


def test_plans_that_are_driven_together_ask_together() -> None:
    engine = Doubler()
    assert run([tree(1, 2), given([7.0]), chain_as_list(3)], engine) == [[2.0, 8.0, 20.0], [7.0], [24.0]]
    assert engine.submitted == [[1, 2, 3], [4, 6], [10, 12]]


def chain_as_list(number: int) -> Plan[list[float]]:
    return [(yield from chain(number, number))]


def test_an_error_ends_the_plan_that_it_belongs_to_and_no_other() -> None:
    engine = Doubler()
    plans = [doubled(1, 2), doubled(3, 13), tree(1, 13), chain_as_list(2)]
    first, second, third, last = run(plans, engine)
    assert (first, last) == ([2.0, 4.0], [8.0])
    assert isinstance(second, MtformerError) and isinstance(third, MtformerError)
    with pytest.raises(MtformerError, match="thirteen"):
        succeeded([first, second])
    with pytest.raises(MtformerError, match="thirteen"):
        result_of(doubled(13), engine)


def test_a_plan_can_do_without_what_has_failed() -> None:
    def careful(number: int) -> Plan[list[float]]:
        try:
            return (yield from doubled(number))
        except MtformerError:
            return (yield from doubled(0))

    assert run([careful(13), careful(1)], Doubler()) == [[0.0], [2.0]]


@pytest.mark.parametrize("plans", [[], ["given"], ["given", "long", "wide", "failing"], ["long", "long"]])
def test_progress_counts_each_plan_once(plans: list[str]) -> None:
    made = {
        "given": lambda: given([1.0]),
        "long": lambda: chain_as_list(4),
        "wide": lambda: doubled(1, 2, 3),
        "failing": lambda: doubled(13, 13),
    }
    progress: list[int] = []
    outcomes = run([made[name]() for name in plans], Doubler(), progress.append)
    assert sum(progress) == len(outcomes) == len(plans)
    assert min(progress, default=0) >= 0


def test_progress_counts_a_plan_when_it_ends() -> None:
    progress: list[int] = []
    at_submit: list[int] = []

    class Watched(Doubler):
        def submit(self, requests: Sequence[Request[Any]], *, on_done: OnDone | None = None) -> list[Any]:
            at_submit.append(sum(progress))
            return super().submit(requests, on_done=on_done)

    run([doubled(1, 2), chain_as_list(3), given([1.0])], Watched(), progress.append)
    assert at_submit == [1, 2, 2]
    assert sum(progress) == 3


def test_a_plan_continues_while_others_are_computed() -> None:
    events: list[str] = []

    def named(name: str) -> Plan[list[float]]:
        results = yield from doubled(1)
        events.append(name)
        return results

    class Slow(Doubler):
        def submit(self, requests: Sequence[Request[Any]], *, on_done: OnDone | None = None) -> list[Any]:
            results = super().submit(requests, on_done=on_done)
            events.append("returned")
            return results

    run([named("first"), named("second")], Slow())
    assert events == ["second", "first", "returned"]


def test_an_engine_need_not_report_what_is_done() -> None:
    class Silent(Doubler):
        def submit(self, requests: Sequence[Request[Any]], *, on_done: OnDone | None = None) -> list[Any]:
            return super().submit(requests)

    assert run([doubled(1, 2), chain_as_list(3)], Silent()) == [[2.0, 4.0], [24.0]]
