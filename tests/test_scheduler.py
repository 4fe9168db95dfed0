"""The scheduler: merges the requests of many callers, fairly, and keeps what goes wrong with one from the others."""

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from threading import Event
from typing import Any

import pytest

from mtformer.config import SearchOptions
from mtformer.search.engine import OnDone, Request, ScoreRequest
from mtformer.serve.scheduler import Job, Scheduler
from mtformer.serve.turns import MOST_TOKENS, FairQueue, Item, Line
from mtformer.support.errors import MtformerError
from mtformer.translate.plan import Plan, ask

SECONDS = 60  # until a test gives up


class Recorder:
    """An engine that doubles numbers, fails at 13, breaks at 66, and records what it gets at once.

    The first submission waits for :attr:`go`, so that a test decides what waits behind it.
    """

    def __init__(self) -> None:
        self.submitted: list[list[int]] = []
        self.started, self.go = Event(), Event()

    def require_supported(self, options: SearchOptions) -> None:
        """Support all options."""

    def submit(self, requests: Sequence[Request[Any]], *, on_done: OnDone | None = None) -> list[Any]:
        """Compute the requests."""
        numbers = [request.src[0] for request in requests if isinstance(request, ScoreRequest)]
        self.submitted.append(numbers)
        self.started.set()
        assert self.go.wait(SECONDS)
        if 66 in numbers:
            raise RuntimeError("out of memory")
        return [MtformerError("thirteen") if number == 13 else [2.0 * number] for number in numbers]


def plan(text: str) -> Plan[list[float]]:
    """Ask for the numbers in a text at once, and then for their sum; "bug" is not what it seems."""
    if text == "bug":
        raise ZeroDivisionError
    results = yield from ask([ScoreRequest([int(word)], []) for word in text.split()])
    doubled = [result for [result] in results]
    if len(doubled) > 1:
        [[total]] = yield from ask([ScoreRequest([int(sum(doubled))], [])])
        doubled.append(total)
    return doubled


@contextmanager
def scheduling(n_threads: int = 1, *, blocked: bool = False) -> Iterator[tuple[Scheduler, Recorder]]:
    """Yield a scheduler and an engine; if it is blocked, it computes the request 0 until it may go on."""
    engine = Recorder()
    scheduler = Scheduler(n_threads)
    if blocked:
        scheduler.submit(Job(plan, ["0"], engine))
        assert engine.started.wait(SECONDS)
    else:
        engine.go.set()
    try:
        yield scheduler, engine
    finally:
        engine.go.set()
        scheduler.close()


def outcomes(*jobs: Job[list[float]]) -> list[Any]:
    return [
        [str(each) if isinstance(each, MtformerError) else each for each in job.future.result(SECONDS)] for job in jobs
    ]


def test_requests_of_all_callers_are_computed_together() -> None:
    with scheduling(blocked=True) as (scheduler, engine):
        jobs = [Job(plan, [text], engine, key=key) for text, key in (("1", "a"), ("2", "b"), ("3 4", "a"))]
        for job in jobs:
            scheduler.submit(job)
        engine.go.set()
        assert outcomes(*jobs) == [[[2.0]], [[4.0]], [[6.0, 8.0, 28.0]]]
    assert list(map(sorted, engine.submitted)) == [[0], [1, 2, 3, 4], [14]]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_each_text_gets_its_own_result(n_threads: int) -> None:
    with scheduling(n_threads) as (scheduler, engine):
        jobs = [Job(plan, [str(n), f"{n} {n + 1}"], engine, key=str(n % 5)) for n in range(100, 400)]
        for job in jobs:
            scheduler.submit(job)
        expected = [[[2.0 * n], [2.0 * n, 2.0 * n + 2, 8.0 * n + 4]] for n in range(100, 400)]
        assert outcomes(*jobs) == expected


def test_an_error_stays_with_its_text() -> None:
    with scheduling(blocked=True) as (scheduler, engine):
        texts = ["1", "13", "66", "bug", "2"]
        jobs = [Job(plan, [text], engine) for text in texts] + [Job(plan, texts, engine)]
        for job in jobs:
            scheduler.submit(job)
        engine.go.set()
        failed = "the server failed to translate this text; its log says why"
        expected = [[2.0], "thirteen", failed, failed, [4.0]]
        assert outcomes(*jobs) == [*([each] for each in expected), expected]


def test_a_job_without_texts_is_done() -> None:
    with scheduling() as (scheduler, engine):
        assert scheduler.submit(Job(plan, [], engine)).result(SECONDS) == []


def test_a_cancelled_job_is_not_computed() -> None:
    with scheduling(blocked=True) as (scheduler, engine):
        cancelled, kept = Job(plan, ["1", "2"], engine), Job(plan, ["3"], engine)
        scheduler.submit(cancelled)
        scheduler.submit(kept)
        assert cancelled.future.cancel()
        engine.go.set()
        assert outcomes(kept) == [[[6.0]]]
        with pytest.raises(CancelledError):
            cancelled.future.result(SECONDS)
    assert engine.submitted == [[0], [3]]
    assert scheduler.n_waiting == 0


def test_texts_are_reported_as_they_are_done() -> None:
    done: list[tuple[int, Any]] = []
    with scheduling() as (scheduler, engine):
        job = Job(plan, ["1", "2 3"], engine)
        job.on_text = lambda index, outcome: done.append((index, outcome))
        scheduler.submit(job).result(SECONDS)
    assert sorted(done) == [(0, [2.0]), (1, [4.0, 6.0, 20.0])]


def test_a_long_file_does_not_delay_a_short_request() -> None:
    """Each of the file's texts is a batch: a request that comes later is in the next one."""
    with scheduling(blocked=True) as (scheduler, engine):
        file = Job(plan, [" ".join(["7"] * 4_000)] * 5, engine)
        short = Job(plan, ["1"], engine)
        scheduler.submit(file)
        scheduler.submit(short)
        engine.go.set()
        outcomes(file, short)
    place = next(i for i, batch in enumerate(engine.submitted) if 1 in batch)
    assert place <= 2
    assert sum(map(len, engine.submitted[: place + 1])) < 8_000


def test_closing_finishes_what_was_accepted_and_refuses_more() -> None:
    with scheduling(blocked=True) as (scheduler, engine):
        jobs = [Job(plan, ["1 2", "3"], engine) for _ in range(20)]
        for job in jobs:
            scheduler.submit(job)
        engine.go.set()
        scheduler.close()
        assert all(job.future.done() for job in jobs)
        with pytest.raises(MtformerError, match="shutting down"):
            scheduler.submit(Job(plan, ["1"], engine))


def take_all(waiting: FairQueue[str], cost: int = 1) -> list[str]:
    taken = []
    while waiting.n:
        taken += [item.work for item in waiting.take(cost)]
    return taken


def filled(*jobs: tuple[str, float, str]) -> FairQueue[str]:
    """Return work of jobs, each a key, a weight and a letter for each item."""
    waiting: FairQueue[str] = FairQueue()
    for key, weight, letters in jobs:
        waiting.add(Line(key, weight), [Item(10, letter) for letter in letters])
    return waiting


@pytest.mark.parametrize(
    ("jobs", "order"),
    [
        ([("k", 1, "aaaa"), ("k", 1, "bb")], "ababaa"),
        ([("k", 1, "aaaa"), ("l", 1, "bb")], "ababaa"),
        ([("k", 1, "aaa"), ("k", 1, "bbb"), ("l", 1, "ccc")], "acbcacbab"),  # the keys share, then the jobs of each
        ([("k", 1, "aaaa"), ("k", 2, "bbbb")], "abbabbaa"),
    ],
)
def test_work_is_taken_in_turns(jobs: list[tuple[str, float, str]], order: str) -> None:
    assert "".join(take_all(filled(*jobs))) == order


def test_a_newcomer_is_neither_first_forever_nor_last() -> None:
    waiting = filled(("k", 1, "aaaaaaaa"))
    first = [item.work for item in waiting.take(40)]
    waiting.add(Line("k"), [Item(10, "b")] * 4)
    order = "".join([*first, *take_all(waiting)])
    assert order[:4] == "aaaa"
    assert sorted(order[4:8]) == sorted(order[8:]) == ["a", "a", "b", "b"]


def test_dear_work_has_fewer_turns() -> None:
    waiting: FairQueue[str] = FairQueue()
    waiting.add(Line("k"), [Item(30, "A")] * 3)
    waiting.add(Line("k"), [Item(10, "b")] * 9)
    assert "".join(take_all(waiting)) == "AbbbAbbbAbbb"


def test_what_is_put_back_comes_before_what_has_not_begun() -> None:
    waiting: FairQueue[str] = FairQueue()
    line: Line[str] = Line("k")
    waiting.add(line, [Item(1, "c"), Item(1, "d")])
    waiting.add(line, [Item(1, "a"), Item(1, "b")])
    assert (waiting.n, waiting.cost) == (4, 4)
    assert "".join(take_all(waiting)) == "abcd"
    assert (waiting.n, waiting.cost) == (0, 0)


def test_who_leaves_and_comes_back_pays_for_what_it_had() -> None:
    """Whether with another job, or with the same, whose work was all taken for a while."""
    for others in ("k", "l"):
        waiting: FairQueue[str] = FairQueue()
        line: Line[str] = Line("k")
        waiting.add(line, [Item(30, "A")])
        waiting.add(Line(others), [Item(10, "b")] * 9)
        order = [item.work for item in waiting.take(30)]
        for again in (line, Line("k") if others == "l" else line):
            waiting.add(again, [Item(30, "A")])
            order += [item.work for item in waiting.take(60)]
        assert "".join(order + take_all(waiting)) == "AbbbAbbbAbbb"


def test_who_had_the_server_alone_does_not_pay_for_it() -> None:
    waiting = filled(("k", 1, "aaaa"))
    take_all(waiting)
    waiting.forget()
    waiting.add(Line("k"), [Item(10, "a")] * 2)
    waiting.add(Line("l"), [Item(10, "b")] * 2)
    assert "".join(take_all(waiting)) == "abab"


def test_a_job_pays_what_its_work_has_cost() -> None:
    waiting: FairQueue[str] = FairQueue()
    long: Line[str] = Line("k")
    waiting.add(long, [Item(100 * MOST_TOKENS, "A"), Item(1024, "a"), Item(512, "a")])
    waiting.add(Line("k"), [Item(512, "b")] * 5)
    assert waiting.take(1) == [Item(MOST_TOKENS, "A")]  # no more than a batch holds
    waiting.settle(long, 1024)  # since half of that has been computed
    assert "".join(take_all(waiting)) == "bbbbaba"


def test_a_long_text_pays_once_for_what_is_put_back() -> None:
    with scheduling(blocked=True) as (scheduler, engine):
        book = Job(plan, [" ".join(["11111111"] * 3_000)] * 5, engine, key="a")  # fewer tokens than it seems
        others = Job(plan, ["1"] * 10_000, engine, key="b")
        scheduler.submit(book)
        scheduler.submit(others)
        engine.go.set()
        outcomes(book, others)
    computed = [number for batch in engine.submitted for number in batch]
    last = len(computed) - computed[::-1].index(1)
    assert computed[:last].count(11111111) > 5_000  # half of all, but for the batches at the ends
