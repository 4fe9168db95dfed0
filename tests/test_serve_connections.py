"""Connections of the server: what comes before a request is there is limited in size and time."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from mtformer.serve import connections
from mtformer.serve.connections import Connection

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
KIB = 2**10


class Transport(asyncio.Transport):
    """Records what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.is_closed = b"", False

    def write(self, data: Any) -> None:
        assert not self.is_closed
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Peer:
    """The other side of a connection to an application that answers with the size of each body."""

    def __init__(self, *, reads: bool = True) -> None:
        self.sizes: list[int] = []
        self.transport, self._reads = Transport(), reads
        config = uvicorn.Config(self._answer, interface="asgi3", log_config=None)
        config.load()
        self.connection = Connection(config, ServerState(), {}, asyncio.get_running_loop())
        self.connection.connection_made(self.transport)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        size, has_more = 0, self._reads
        while has_more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            size, has_more = size + len(message["body"]), message["more_body"]
        self.sizes.append(size)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def send(self, *parts: bytes) -> bytes:
        """Send data, and return what is answered, or nothing if that is nothing by then."""
        self.transport.written = b""
        for part in parts:
            if not self.transport.is_closed:
                self.connection.data_received(part)
                await self.settle()
        return self.transport.written

    async def settle(self) -> None:
        """Let the application do what it can do by now."""
        for _ in range(5):
            await asyncio.sleep(0)

    async def closed(self) -> None:
        """Wait until the connection is closed."""
        async with asyncio.timeout(60):
            while not self.transport.is_closed:
                await asyncio.sleep(0.001)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


@pytest.mark.parametrize("size", [1, KIB, 100 * KIB])
def test_a_head_has_64_kib_at_most(size: int) -> None:
    """However it is divided into parts, and whatever comes with it."""

    async def talk() -> None:
        name = b"X: "
        for length, answer in ((63 * KIB, b"HTTP/1.1 200"), (65 * KIB, b"HTTP/1.1 431")):
            peer = Peer()
            data = HEAD + name + b"a" * length + b"\r\nContent-Length: 70000\r\n\r\n"
            parts = [HEAD + name, *([b"a"] * 9), data[len(HEAD + name) + 9 :]] if size == 1 else []
            parts = parts or [data[i : i + size] for i in range(0, len(data), size)]
            assert (await peer.send(*parts[:-1], parts[-1] + b"b" * 70_000)).startswith(answer)
            assert peer.sizes == ([70_000] if b"200" in answer else [])
            assert peer.transport.is_closed == (b"431" in answer)

    run(talk())


def test_a_head_without_an_end_is_not_kept() -> None:
    async def talk() -> None:
        peer = Peer()
        assert (await peer.send(HEAD + b"X: ", *10 * [b"a" * 10 * KIB])).startswith(b"HTTP/1.1 431")
        assert peer.transport.is_closed

    run(talk())


def test_what_follows_the_last_chunk_is_limited_like_a_head() -> None:
    async def talk() -> None:
        chunks = 40 * [b"1000\r\n" + b"b" * 4_096 + b"\r\n"]
        peer, head = Peer(), HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
        assert (await peer.send(head, *chunks, b"0\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert peer.sizes == [40 * 4_096]
        await peer.send(head, *chunks, b"0\r\nX: ", *10 * [b"a" * 10 * KIB])
        assert peer.transport.is_closed
        assert len(peer.sizes) == 1

    run(talk())


def test_what_is_no_request_is_refused() -> None:
    async def talk() -> None:
        peer = Peer()
        answer = await peer.send(b"\x16\x03\x01 no HTTP")
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.endswith(b'{"error": "Bad Request", "message": "Bad Request"}')
        assert peer.transport.is_closed

    run(talk())


def test_a_head_that_does_not_end_is_waited_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def talk() -> None:
        peer = Peer()
        assert (await peer.send(HEAD, b"\r\n")).startswith(b"HTTP/1.1 200")
        monkeypatch.setattr(connections, "_SECONDS", 0.001)
        assert await peer.send(HEAD) == b""
        await peer.closed()
        assert peer.transport.written.startswith(b"HTTP/1.1 408")

    run(talk())


def test_the_time_for_a_head_ends_with_the_head() -> None:
    async def talk() -> None:
        peer = Peer()
        for _ in range(2):
            assert await peer.send(HEAD) == b""
            assert not waits(peer).cancelled()
            assert (await peer.send(b"\r\n")).startswith(b"HTTP/1.1 200")
            assert waits(peer).cancelled()
        await peer.send(HEAD)
        peer.connection.connection_lost(None)
        assert waits(peer).cancelled()

    def waits(peer: Peer) -> asyncio.TimerHandle:
        assert peer.connection._waiting is not None
        return peer.connection._waiting

    run(talk())


def test_a_connection_that_has_sent_nothing_gets_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def talk() -> None:
        monkeypatch.setattr(connections, "_SECONDS", 0.001)
        peer = Peer()
        await peer.closed()
        assert peer.transport.written == b""

    run(talk())


def test_an_answer_to_come_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the next request, which follows without waiting for it, does not end."""

    async def talk() -> None:
        peer = Peer()
        await peer.send(HEAD + b"Content-Length: 1\r\n\r\n")
        peer.connection._give_up()
        assert not peer.transport.is_closed
        assert (await peer.send(b"a")).startswith(b"HTTP/1.1 200")
        assert peer.transport.is_closed

    run(talk())


def test_the_rest_of_a_request_that_was_answered_is_not_waited_for() -> None:
    async def talk() -> None:
        peer = Peer(reads=False)
        assert (await peer.send(HEAD + b"Content-Length: 9\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert await peer.send(b"a") == b""
        assert peer.connection.timeout_keep_alive_task is not None
        assert not peer.connection.timeout_keep_alive_task.cancelled()
        assert (await peer.send(b"aaaaaaaa", HEAD + b"\r\n")).startswith(b"HTTP/1.1 200")

    run(talk())
