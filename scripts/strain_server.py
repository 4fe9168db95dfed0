"""Strain mtformer serve, as a process of its own, and print its memory and what it answers.

First, many connections are opened, of which half send nothing and half the beginning of a request; then sentences are
translated one by one beside them. When the server has closed the idle connections, bodies of 100 MB are sent, some at a
time. The server and this script need a file for each connection: the script asks for as many as the system allows.
"""

import argparse
import asyncio
import resource
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from bench_serve import closed_loop, serving
from program import run_program

PART = b"a" * 2**16
KINDS = {  # of bodies, and how they begin
    "application/json": b"",
    "application/x-www-form-urlencoded": b"q=",
    "multipart/form-data; boundary=x": b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n',
}
AT_A_TIME = 8


def memory(process: psutil.Process) -> str:
    """Return the memory of a process."""
    return f"{process.memory_info().rss / 1e6:,.0f} MB"


async def lone(url: str, pair: Sequence[str], texts: Sequence[str]) -> str:
    """Translate sentences one by one, and say how long that took."""
    turn = await closed_loop(url, pair, [[text] for text in texts], 1)
    p50 = statistics.median(turn.latencies) if turn.latencies else float("nan")
    return f"{len(turn.latencies)} of {len(texts)} sentences answered, p50 {1000 * p50:.1f} ms"


async def idle(url: str, n: int, process: psutil.Process, pair: Sequence[str], texts: Sequence[str]) -> None:
    """Open connections that send no request, and translate beside them."""
    host, port = urlsplit(url).hostname or "", urlsplit(url).port or 0
    start, connections = time.monotonic(), []
    for number in range(n):
        reader, writer = await asyncio.open_connection(host, port)
        if number % 2:
            writer.write(b"POST /translate HTTP/1.1\r\nHost:")
        connections.append((reader, writer))
    print(f"{n:,} connections after {time.monotonic() - start:.0f} s: {memory(process)}", flush=True)
    print("beside them:", await lone(url, pair, texts), flush=True)
    for reader, writer in connections:
        with suppress(ConnectionError):
            await reader.read()  # until the server closes it
        writer.close()
    print(f"the server had closed them after {time.monotonic() - start:.0f} s: {memory(process)}", flush=True)


async def body(url: str, kind: str, n_bytes: int) -> tuple[str, int]:
    """Send a body in parts, and return the status and how much was sent before the server closed the connection."""
    host, port = urlsplit(url).hostname or "", urlsplit(url).port or 0
    reader, writer = await asyncio.open_connection(host, port)
    head = ("POST /translate HTTP/1.1", f"Host: {host}:{port}", f"Content-Type: {kind}", "Transfer-Encoding: chunked")
    writer.write("".join(f"{line}\r\n" for line in (*head, "")).encode())
    if KINDS[kind]:
        writer.write(_chunk(KINDS[kind]))
    answer = asyncio.ensure_future(reader.read(12))
    n_sent = 0
    with suppress(ConnectionError):
        while n_sent < n_bytes and not answer.done():
            writer.write(_chunk(PART))
            await writer.drain()
            n_sent += len(PART)
    status = ""
    with suppress(ConnectionError):
        status = (await answer).decode()[9:]
    writer.close()
    return status or "closed", n_sent


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def bodies(url: str, n: int, process: psutil.Process) -> None:
    """Send large bodies, some at a time, and print the most memory that the server had meanwhile."""
    places, most = asyncio.Semaphore(AT_A_TIME), process.memory_info().rss

    async def send(number: int) -> tuple[str, int]:
        nonlocal most
        async with places:
            sent = await body(url, [*KINDS][number % len(KINDS)], 100_000_000)
            most = max(most, process.memory_info().rss)
            return sent

    sent = await asyncio.gather(*map(send, range(n)))
    statuses = Counter(status for status, _ in sent)
    print(f"{n} bodies of 100 MB, {AT_A_TIME} at a time: statuses {dict(statuses)}", end="")
    print(f", {max(n_sent for _, n_sent in sent) / 1e6:.0f} MB sent at most, {most / 1e6:,.0f} MB at most")


async def strain(url: str, process: psutil.Process, args: argparse.Namespace) -> None:
    """Do it all."""
    pair, texts = args.pair.split("-"), args.input.read_text(encoding="utf-8").splitlines()[:20]
    await closed_loop(url, pair, [[text] for text in texts * 5], 8)
    print(f"before: {await lone(url, pair, texts)}: {memory(process)}", flush=True)
    await idle(url, args.idle, process, pair, texts)
    await bodies(url, args.bodies, process)
    print(f"after: {await lone(url, pair, texts)}: {memory(process)}")


def main() -> None:
    """Strain a server."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="a bundle or the folder of a run")
    parser.add_argument("input", type=Path, help="sentences, one a line")
    parser.add_argument("--pair", default="en-de", help="the direction")
    parser.add_argument("--idle", type=int, default=10_000, help="connections without a request")
    parser.add_argument("--bodies", type=int, default=24, help="bodies of 100 MB")
    args = parser.parse_args()
    with serving(args.model, "fp32") as (url, process):  # which starts with the limit of files that we have had
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        asyncio.run(strain(url, process, args))


if __name__ == "__main__":
    run_program(main)
