"""Work on many chunks, by several processes if there are many of them, or by threads."""

import atexit
import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, islice
from multiprocessing import resource_tracker
from typing import Any, TypeVar

import psutil

from mtformer.support.errors import MtformerError

Task = TypeVar("Task")
Done = TypeVar("Done")
Connection = Any  # each system has a class of its own

_SECONDS_ALONE = 3.0  # after which this process starts others, which takes them about one
_DIED = "a process that helps to read the text has died, perhaps because memory ran out; rerun, with less else running"
_NOT_STARTED = (
    "a process that helps to read the text could not start; in a script of your own, let all that it does follow "
    "`if __name__ == '__main__':`, since these processes import it"
)


def in_order(work: Callable[[Task], Done], tasks: Iterable[Task]) -> Iterator[tuple[Task, Done]]:
    """Yield each task with the result of ``work`` on it, in the order of the tasks.

    This process works alone at first, and does not start others for what it can finish in a few seconds. They are at
    most as many as there are CPUs; ``work`` and the tasks are pickled for them.

    Raises:
        MtformerError: one of these processes has died.
    """
    remaining, n_most, seconds = iter(tasks), n_cpus(), 0.0
    for task in remaining:
        first = [task, *islice(remaining, n_most - 1 if seconds >= _SECONDS_ALONE else 0)]
        if len(first) > 1:
            with _workers(work, len(first)) as connections:
                yield from _distributed(connections, chain(first, remaining))
            return
        started = time.perf_counter()
        done = work(task)
        seconds += time.perf_counter() - started
        yield task, done


def by_threads(
    pool: ThreadPoolExecutor, work: Callable[[Task], Done], tasks: Sequence[Task]
) -> Generator[Done, None, None]:
    """Yield the results of ``work`` in the order of the tasks; an error waits for the calls in progress."""
    futures = [pool.submit(work, task) for task in tasks]
    try:
        for i in range(len(tasks)):
            yield futures[i].result()
    finally:
        wait([future for future in futures if not future.cancel()])
        futures.clear()  # an error refers to this frame: a future in it would keep the error and its tensors alive


def n_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    process = psutil.Process()
    return len(process.cpu_affinity()) if hasattr(process, "cpu_affinity") else os.cpu_count() or 1  # not on macOS


@contextmanager
def _workers(work: Callable[[Any], Any], n: int) -> Iterator[list[Connection]]:
    """Start processes that answer each task with the result of ``work``; they also end when this process dies.

    They start from scratch: a copy of this process (``fork``) could inherit locks that threads of torch hold.
    """
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        connections: list[Connection] = []
        for _ in range(n):
            connection, remote = context.Pipe()
            stack.enter_context(connection)
            connections.append(connection)
            process = context.Process(target=_serve, args=(remote,), daemon=True)
            with _signals_blocked():
                process.start()
            stack.callback(process.join)
            stack.callback(process.kill)
            atexit.register(process.kill)  # if an error ends this process while it uses a result
            stack.callback(atexit.unregister, process.kill)
            remote.close()
        for started in connections:
            _receive(started, _NOT_STARTED)
            _send(started, work)
        yield connections


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Start processes that Ctrl-C, SIGTERM and SIGHUP, which often go to all, never reach: the first one decides.

    On Windows, which blocks no signals, Ctrl-C may reach them until they have started.
    """
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # or it is started inside, which unblocks the signals
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _distributed(connections: list[Connection], tasks: Iterator[Task]) -> Iterator[tuple[Task, Any]]:
    """Give each process one task at a time, in turns, and yield the tasks with their results, in order."""
    busy: deque[tuple[Connection, Task]] = deque()
    for connection, task in zip(connections, tasks, strict=False):
        _send(connection, task)
        busy.append((connection, task))
    while busy:
        connection, task = busy.popleft()
        done = _receive(connection)
        for following in islice(tasks, 1):  # so that it works on that while this result is used
            _send(connection, following)
            busy.append((connection, following))
        yield task, done


def _serve(connection: Connection) -> None:
    """Do the tasks that come from another process, until it closes the connection or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        connection.send((None, None))  # it has started
        work = connection.recv()
        while True:
            task = connection.recv()
            connection.send(_answer(work, task))


def _answer(work: Callable[[Any], Any], task: Any) -> tuple[Any, Exception | None]:
    try:
        return work(task), None
    except Exception as error:
        return None, error


def _send(connection: Connection, item: object) -> None:
    try:
        connection.send(item)
    except OSError:
        raise MtformerError(_DIED) from None


def _receive(connection: Connection, failed: str = _DIED) -> Any:
    try:
        done, error = connection.recv()
    except (EOFError, OSError):
        raise MtformerError(failed) from None
    if error is not None:
        raise error
    return done
