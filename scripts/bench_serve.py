"""Measure mtformer serve beside translate --input, and beside another server of LibreTranslate's interface.

A turn starts the server as a process of its own, warms it up, and sends sentences: each connection sends one, waits for
its translation, and sends the next (closed loop); then sentences come at random times, at --load of the highest
throughput, whether others are answered or not (open loop). The load generator runs on the same machine and takes its
share. What translate --input does with the same sentences is measured before and after, in this process, and the
throughput of each turn is divided by the mean of the two. The machine may be shared, so the ratios count,
and the processor's time that a sentence takes in the server, which no other program changes much.

--url names a server that runs already, such as LibreTranslate with the model that export --to argos has written; it is
measured in the same way, after ours.
"""

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from program import run_program

from mtformer import Translator
from mtformer.support.errors import UserError
from mtformer.support.terminal import as_text

HEADER = ("what", "connections", "sentences/s", "ratio", "p50 ms", "p95 ms", "p99 ms", "CPU ms", "failed")
SECONDS = 60  # after which a request has failed
SOAK_PART = 2_000  # requests between two looks at the memory
MTFORMER = [sys.executable, "-m", "mtformer"]


@dataclass(frozen=True)
class Turn:
    """What was measured.

    Attributes:
        seconds: from the first request to the last answer.
        n_sentences: that were translated.
        latencies: seconds of each request that succeeded.
        n_failed: the others.
        cpu: seconds of the processor; None if they are not known.
    """

    seconds: float
    n_sentences: int
    latencies: Sequence[float]
    n_failed: int = 0
    cpu: float | None = None

    def row(self, what: str, connections: str, per_second: float) -> list[str]:
        """Return a row of the table, given the throughput that the ratio is to."""
        speed = self.n_sentences / self.seconds
        times = sorted(self.latencies) or [float("nan")]
        quantiles = [times[min(len(times) - 1, int(len(times) * share))] for share in (0.5, 0.95, 0.99)]
        shown = [f"{1000 * each:.1f}" for each in quantiles]
        cpu = "" if self.cpu is None else f"{1000 * self.cpu / self.n_sentences:.1f}"
        return [what, connections, f"{speed:.1f}", f"{speed / per_second:.2f}", *shown, cpu, str(self.n_failed)]


class Connection:
    """A connection that is kept open."""

    def __init__(self, url: str, pair: Sequence[str]) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._pair = pair
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def translate(self, texts: Sequence[str]) -> bool:
        """Send a request, and return whether it succeeded."""
        source, target = self._pair
        q = texts[0] if len(texts) == 1 else texts
        body = json.dumps({"q": q, "source": source, "target": target}).encode()
        head = (
            f"POST /translate HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n"
        )
        try:
            async with asyncio.timeout(SECONDS):
                answer = await self._exchange(head.encode() + b"\r\n" + body)
        except (OSError, asyncio.IncompleteReadError):  # also when time is up
            self.close()
            return False
        if "connection: close" in answer:
            self.close()
        return answer.split()[1] == "200"

    async def _exchange(self, request: bytes) -> str:
        """Send a request, and return the head of the response."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        writer.write(request)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = re.search(r"content-length: (\d+)", answer)
        await reader.readexactly(int(size[1]) if size else 0)
        return answer

    def close(self) -> None:
        """Close it."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def closed_loop(url: str, pair: Sequence[str], requests: Sequence[Sequence[str]], n_connections: int) -> Turn:
    """Send requests over some connections, each the next one as soon as its last is answered."""
    remaining = iter(requests)
    latencies: list[float] = []
    failed: list[None] = []

    async def work(connection: Connection) -> None:
        for texts in remaining:
            start = time.perf_counter()
            if await connection.translate(texts):
                latencies.append(time.perf_counter() - start)
            else:
                failed.append(None)
        connection.close()

    start = time.perf_counter()
    await asyncio.gather(*(work(Connection(url, pair)) for _ in range(n_connections)))
    seconds = time.perf_counter() - start
    return Turn(seconds, sum(map(len, requests)), latencies, len(failed))


async def open_loop(url: str, pair: Sequence[str], texts: Sequence[str], per_second: float) -> Turn:
    """Send sentences at random times (a Poisson process), each over a connection that is free."""
    free: list[Connection] = []
    latencies: list[float] = []
    failed: list[None] = []
    random_times = random.Random(1)

    async def send(text: str) -> None:
        start = time.perf_counter()
        connection = free.pop() if free else Connection(url, pair)
        if await connection.translate([text]):
            latencies.append(time.perf_counter() - start)
        else:
            failed.append(None)
        free.append(connection)

    start, tasks = time.perf_counter(), []
    due = start
    for text in texts:
        due += random_times.expovariate(per_second)
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(send(text)))
    await asyncio.gather(*tasks)
    seconds = time.perf_counter() - start
    for connection in free:
        connection.close()
    return Turn(seconds, len(texts), latencies, len(failed))


@contextmanager
def serving(model: Path, precision: str) -> Iterator[tuple[str, psutil.Process]]:
    """Start the server, and yield its address and its process."""
    command = [*MTFORMER, "serve", str(model), "--port", "0", "--precision", precision]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            found = None
            while found is None and process.poll() is None:
                time.sleep(0.2)
                log.seek(0)
                found = re.search(r"http://[\d.:]+", log.read())
            if found is None:
                log.seek(0)
                raise UserError(f"the server did not start: {log.read().strip()}")
            yield found[0], psutil.Process(process.pid)
        finally:
            process.terminate()


def at_once(translator: Translator, texts: Sequence[str]) -> Turn:
    """Translate sentences as translate --input does."""
    start, cpu = time.perf_counter(), time.process_time()
    translator.translate(texts)
    return Turn(time.perf_counter() - start, len(texts), [], cpu=time.process_time() - cpu)


def one_by_one(translator: Translator, texts: Sequence[str]) -> Turn:
    """Translate sentences one after the other, without a server."""
    latencies, cpu = [], time.process_time()
    for text in texts:
        start = time.perf_counter()
        translator.translate([text])
        latencies.append(time.perf_counter() - start)
    return Turn(sum(latencies), len(texts), latencies, cpu=time.process_time() - cpu)


Measured = tuple[str, str, Turn]  # what, over how many connections


async def measure(
    name: str, url: str, texts: Sequence[str], args: argparse.Namespace, process: psutil.Process | None = None
) -> list[Measured]:
    """Measure a server."""
    pair = args.pair.split("-")
    found: list[Measured] = []

    async def add(what: str, connections: str, loop: Awaitable[Turn]) -> Turn:
        before = _cpu(process)
        turn = await loop
        turn = replace(turn, cpu=None if process is None else _cpu(process) - before)
        found.append((f"{name}, {what}", connections, turn))
        return turn

    await closed_loop(url, pair, [[text] for text in texts[:64]], 8)
    for n in args.connections:
        singles = [[text] for text in (texts if n > 1 else texts[: args.lone])]
        await add("single sentences", str(n), closed_loop(url, pair, singles, n))
    per_second = args.load * max(turn.n_sentences / turn.seconds for _, _, turn in found)
    lists = [texts[i : i + args.list] for i in range(0, len(texts), args.list)]
    await add(f"lists of {args.list}", "8", closed_loop(url, pair, lists, 8))
    await add("open loop", f"{per_second:.0f}/s", open_loop(url, pair, texts, per_second))
    return found


def _listening(port: int | None) -> psutil.Process | None:
    """Return the process that listens on a port of this machine, if it can be told."""
    for each in psutil.net_connections("tcp"):
        if each.status == psutil.CONN_LISTEN and each.pid and each.laddr and each.laddr.port == port:
            return psutil.Process(each.pid)
    return None


def _cpu(process: psutil.Process | None) -> float:
    """Return the seconds of the processor that a process has used."""
    return 0.0 if process is None else sum(process.cpu_times()[:2])


async def soak(url: str, texts: Sequence[str], args: argparse.Namespace, process: psutil.Process) -> None:
    """Send many requests, and print the memory of the server now and then."""
    pair = args.pair.split("-")
    for part in range(args.soak // SOAK_PART):
        few = [[texts[i % len(texts)]] for i in range(SOAK_PART)]
        turn = await closed_loop(url, pair, few, 64)
        n_done = (part + 1) * SOAK_PART
        print(f"{n_done:,} requests, {turn.n_failed} failed: {process.memory_info().rss / 1e6:,.0f} MB", flush=True)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="a bundle or the folder of a run")
    parser.add_argument("input", type=Path, help="sentences, one a line")
    parser.add_argument("--pair", default="en-de", help="the direction")
    parser.add_argument("--precision", default="fp32", help="of mtformer; LibreTranslate takes int8 on a CPU")
    parser.add_argument(
        "--lines", type=int, default=1_000, help="sentences of each turn, those of the input again and again"
    )
    parser.add_argument("--lone", type=int, default=100, help="sentences over one connection")
    parser.add_argument("--list", type=int, default=32, help="sentences of a list")
    parser.add_argument("--load", type=float, default=0.5, help="of the open loop, as a share of the throughput")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 64, 512])
    parser.add_argument("--url", action="append", default=[], help="another server; repeatable")
    parser.add_argument("--soak", type=int, default=0, help="requests that are sent while memory is watched")
    args = parser.parse_args()
    texts = list(islice(cycle(args.input.read_text(encoding="utf-8").splitlines()), args.lines))
    translator = Translator.load(args.model, engine="auto", precision=args.precision, token_log_probs=False)
    translator.translate(texts[:64])
    offline = [at_once(translator, texts)]
    measured: list[Measured] = []
    with serving(args.model, args.precision) as (url, process):
        measured += asyncio.run(measure("mtformer serve", url, texts, args, process))
        if args.soak:
            asyncio.run(soak(url, texts, args, process))
    for other in args.url:
        measured += asyncio.run(measure(other, other, texts, args, _listening(urlsplit(other).port)))
    offline.append(at_once(translator, texts))
    speed = sum(turn.n_sentences / turn.seconds for turn in offline) / len(offline)
    measured.append(("translate, one by one", "", one_by_one(translator, texts[: args.lone])))
    measured += [("translate --input", "", turn) for turn in offline]
    print(as_text(HEADER, [turn.row(what, connections, speed) for what, connections, turn in measured]))


if __name__ == "__main__":
    run_program(main)
