"""The scheduler: threads that drive the plans of all callers, and compute their requests in common batches.

A plan asks for requests, gets their results and asks for more, until it ends with the outcome of its text::

    state       who has the text                                 next transition
    new         FairQueue, as a call without a request           _take, to held
    held        one thread, which alone runs its plan            _advanced, to asking, or to done if the plan ends
    asking      nobody: each of its requests is a call, which    _stored, to held: by the thread that stores the
                waits (_put_back, _take) or is being computed    result of the last of its requests
                by a thread (_compute)
    done        its job, with its outcome (Job.finish)

Results, and what waits, change under the lock ``_changed`` alone; plans and engines run without it.
"""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from threading import Condition, Thread
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from mtformer.search.engine import Engine, PairRequest, Request, SearchRequest
from mtformer.serve.turns import MOST_TOKENS, FairQueue, Item, Line
from mtformer.support.errors import MtformerError
from mtformer.translate.plan import Plan

log = logging.getLogger(__name__)

T = TypeVar("T")

_WINDOW = 0.005  # seconds that a thread waits for as many requests as its last batch had
_FEWEST_TOKENS = 512  # smaller ones take a third more of the processor's time (scripts/bench_serve.py)
_SECONDS = 0.5  # that a batch should take at most, so that newcomers need not wait long for a thread
_FORGET = 1.05  # by which a speed that was measured counts less with each batch
_CHARACTERS = 4  # about as many make a token
_FAILED = "the server failed to translate this text; its log says why"

Observer = Callable[[int, int, float], object]  # called with the requests, tokens and seconds of each batch


class Job(Line["_Call"], Generic[T]):
    """The texts of one caller.

    Attributes:
        future: for each text its result or the error that has ended its plan. Cancelling it cancels the job.
        on_text: called in a thread of the scheduler with the index of each text that is done, and its outcome.
    """

    def __init__(
        self,
        plan: Callable[[str], Plan[T]],
        texts: Sequence[str],
        engine: Engine,
        *,
        key: str = "",
        weight: float = 1.0,
    ) -> None:
        """Describe the job.

        Args:
            plan: makes the plan of a text.
            texts: the texts.
            engine: computes what the plans ask for.
            key: whose job it is: keys get equal shares of the server.
            weight: how much more it gets than a job of weight 1 under the same key.
        """
        super().__init__(key, weight)
        self.texts, self.engine = texts, engine
        self.future: Future[list[T | MtformerError]] = Future()
        self.on_text: Callable[[int, T | MtformerError], object] | None = None
        self._plan = plan
        self._outcomes: list[Any] = [None] * len(texts)
        self._n_left = len(texts)
        self.future.add_done_callback(self._leave)

    def make_plan(self, index: int) -> Plan[T]:
        """Return the plan of one of the texts."""
        return self._plan(self.texts[index])

    def finish(self, index: int, outcome: "T | MtformerError") -> None:
        """Store the outcome of a text; the last one completes :attr:`future`. One thread at a time may call this."""
        self._outcomes[index] = outcome
        self._n_left -= 1
        if self.on_text is not None and self.is_wanted:
            self.on_text(index, outcome)
        if not self._n_left:
            with suppress(InvalidStateError):  # it was cancelled
                self.future.set_result(self._outcomes)

    def _leave(self, future: "Future[Any]") -> None:
        self.is_wanted = False


class _Text:
    """A text that is being translated: its plan, and the results that the plan waits for."""

    def __init__(self, job: Job[Any], index: int) -> None:
        self.job, self.index = job, index
        self.plan: Plan[Any] | None = None  # until it starts
        self.results: list[Any] = []
        self.n_left = 0

    def advance(self) -> Sequence[Request[Any]]:
        """Start or continue the plan, and return its requests; none once it has ended and the job has its result."""
        try:
            if self.plan is None:
                self.plan = self.job.make_plan(self.index)
                requests = self.plan.send(None)  # type: ignore[arg-type]  # as generators are started
            else:
                requests = self.plan.send(self.results)
        except StopIteration as end:
            self.outcome: Any = end.value
        except MtformerError as error:
            self.outcome = error
        except Exception:
            log.exception("a plan has failed")
            self.outcome = MtformerError(_FAILED)
        else:
            self.results, self.n_left = [None] * len(requests), len(requests)
            return requests
        return ()


class _Call(NamedTuple):
    """A task for a thread: to start the plan of a text, or to compute one of its requests.

    Attributes:
        text: the text.
        place: that of the request among those that the plan has asked for.
        request: the request; None to start the plan.
    """

    text: _Text
    place: int = 0
    request: Request[Any] | None = None

    @property
    def cost(self) -> int:
        """The approximate cost of the request, in tokens read or searched."""
        if isinstance(self.request, SearchRequest):
            return len(self.request.src)
        assert isinstance(self.request, PairRequest)
        return 1 + (len(self.request.src) + len(self.request.tgt)) // 8  # in one step, where a search takes many


class Scheduler:
    """Threads that share the work of all jobs; see :mod:`mtformer.serve.turns` for the order.

    A thread takes what waits at once if it is the only caller's. Where many call, it waits up to 5 ms for as many
    requests as its last batch had. A batch takes about half a second at most. Engines divide it by length.
    """

    def __init__(self, n_threads: int, *, observe: Observer | None = None) -> None:
        """Start the threads.

        Args:
            n_threads: how many batches are computed side by side.
            observe: called after each batch.
        """
        self._waiting: FairQueue[_Call] = FairQueue()
        self._changed = Condition()
        self._is_closing = False
        self._n_jobs = 0
        self._n_free = n_threads
        self._seconds_per_token: WeakKeyDictionary[Engine, float] = WeakKeyDictionary()  # of each engine
        self._observe = observe
        self._threads = [Thread(target=self._run, name=f"scheduler-{i}", daemon=True) for i in range(n_threads)]
        for thread in self._threads:
            thread.start()

    @property
    def n_waiting(self) -> int:
        """How many requests and texts wait."""
        return self._waiting.n

    @property
    def waiting_tokens(self) -> int:
        """About how many tokens they have."""
        return self._waiting.cost

    def submit(self, job: Job[T]) -> "Future[list[T | MtformerError]]":
        """Add a job, and return its future.

        Raises:
            MtformerError: the scheduler is closed.
        """
        texts = [_Text(job, index) for index in range(len(job.texts))]
        items = [Item(1 + len(job.texts[text.index]) // _CHARACTERS, _Call(text)) for text in texts]
        if not items:
            job.future.set_result([])
            return job.future
        with self._changed:
            if self._is_closing:
                raise MtformerError("the server is shutting down")
            self._n_jobs += 1
            job.future.add_done_callback(self._count_out)
            self._waiting.add(job, items)
            self._changed.notify()
        return job.future

    def close(self) -> None:
        """Finish all jobs, and end the threads."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _count_out(self, future: "Future[Any]") -> None:
        with self._changed:
            self._n_jobs -= 1
            if not self._n_jobs:
                self._waiting.forget()
            self._changed.notify_all()

    def _run(self) -> None:
        n_last = 0
        while items := self._take(n_last):
            try:
                n_last = self._do([item for item in items if item.work.text.job.is_wanted])
            except Exception:  # a bug must not end the thread
                log.exception("the scheduler has failed")
                for item in items:
                    item.work.text.job.future.cancel()
            finally:
                with self._changed:
                    self._n_free += 1

    def _take(self, n_last: int) -> list[Item[_Call]]:
        """Wait for work and return a share of it; nothing when the scheduler closes."""
        with self._changed:
            while True:
                while not self._waiting.n:
                    if self._is_closing and not self._n_jobs:
                        return []
                    self._changed.wait()
                until = time.monotonic() + _WINDOW
                while 0 < self._waiting.n < n_last and (left := until - time.monotonic()) > 0:
                    self._changed.wait(left)
                share = math.ceil(self._waiting.cost / self._n_free)
                if items := self._waiting.take(min(share, self._budget())):
                    break
            self._n_free -= 1
            if self._waiting.n:
                self._changed.notify()
            return items

    def _budget(self) -> int:
        """Return the tokens of a batch, by the speed of the slowest engine lately."""
        with self._changed:
            slowest = max(self._seconds_per_token.values(), default=0.0)
        return max(_FEWEST_TOKENS, min(MOST_TOKENS, int(_SECONDS / slowest))) if slowest else MOST_TOKENS

    def _do(self, items: Sequence[Item[_Call]]) -> int:
        """Start plans, compute one batch of requests, and put back the others; return how many were computed."""
        ready: list[_Call] = []
        for _, call in items:
            ready += self._advanced(call.text) if call.request is None else [call]
        batch, later = _within(ready, self._budget())
        self._settle(items, batch)
        self._put_back(later)
        by_engine: dict[int, list[_Call]] = {}
        for call in batch:
            by_engine.setdefault(id(call.text.job.engine), []).append(call)
        for of_engine in by_engine.values():
            self._compute(of_engine)
        return len(batch)

    def _settle(self, taken: Sequence[Item[_Call]], batch: Sequence[_Call]) -> None:
        """Replace the estimated charges of jobs by those of the computed work."""
        balances: Counter[Job[Any]] = Counter()
        for charged, call in taken:
            balances[call.text.job] += charged
        for call in batch:
            balances[call.text.job] -= call.cost
        with self._changed:
            for job, amount in balances.items():
                self._waiting.settle(job, amount)

    def _advanced(self, text: _Text) -> list[_Call]:
        """Start or continue a plan, and return its requests; if it has ended, tell its job."""
        requests = text.advance()
        if not requests:
            with self._changed:
                text.job.finish(text.index, text.outcome)
        return [_Call(text, place, request) for place, request in enumerate(requests)]

    def _compute(self, calls: Sequence[_Call]) -> None:
        """Compute requests to one engine, and continue the plans that have asked for no others."""
        engine = calls[0].text.job.engine
        start = time.monotonic()
        outcomes = _submit(engine, [call.request for call in calls if call.request is not None])
        seconds = time.monotonic() - start
        n_tokens = sum(call.cost for call in calls)
        with self._changed:  # the speed is the highest lately, since small batches and a busy machine are slower
            known = self._seconds_per_token.get(engine, math.inf)
            self._seconds_per_token[engine] = min(_FORGET * known, seconds / n_tokens)
        if self._observe is not None:
            self._observe(len(calls), n_tokens, seconds)
        for text in self._stored(calls, outcomes):
            self._put_back(self._advanced(text))

    def _stored(self, calls: Sequence[_Call], outcomes: Sequence[Any]) -> list[_Text]:
        """Store the results of requests, and return the texts that now have all that they asked for."""
        complete = []
        with self._changed:
            for call, outcome in zip(calls, outcomes, strict=True):
                call.text.results[call.place] = outcome
                call.text.n_left -= 1
                if not call.text.n_left:
                    complete.append(call.text)
        return complete

    def _put_back(self, calls: Sequence[_Call]) -> None:
        """Let requests wait for a thread, before those texts of their jobs that have not begun."""
        by_job: dict[Job[Any], list[Item[_Call]]] = {}
        for call in calls:
            by_job.setdefault(call.text.job, []).append(Item(call.cost, call))
        if not by_job:
            return
        with self._changed:
            for job, items in by_job.items():
                if job.is_wanted:
                    self._waiting.add(job, items)
            self._changed.notify()


def _within(calls: Sequence[_Call], budget: int) -> tuple[Sequence[_Call], Sequence[_Call]]:
    """Divide calls into those of a batch and the rest."""
    n_tokens = 0
    for i, call in enumerate(calls):
        n_tokens += call.cost
        if i and n_tokens > budget:
            return calls[:i], calls[i:]
    return calls, ()


def _submit(engine: Engine, requests: Sequence[Request[Any]]) -> Sequence[Any]:
    """Compute requests; if the engine fails on a batch, compute each alone, so that only faulty ones fail."""
    try:
        return engine.submit(requests)
    except Exception as error:
        if len(requests) == 1:
            log.exception("the engine has failed")
            return [error if isinstance(error, MtformerError) else MtformerError(_FAILED)]
    return [outcome for request in requests for outcome in _submit(engine, [request])]
