"""Connections: as many as the system allows; those whose clients keep the server waiting are closed."""

import asyncio
import json
import sys
from contextlib import suppress
from http import HTTPStatus
from itertools import chain

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_SECONDS = 30  # until a new connection must have sent a request's headers, and every other one after its first byte
_MOST_BYTES = 64 * 2**10  # of headers, and of what else is no body: sizes of chunks, and what follows the last one
_MOST = 65_536  # connections and files


class _TooLargeError(Exception):
    """The headers of a request are too large."""


class Connection(HttpToolsProtocol):
    """A connection that is closed if its client sends nothing, or unfinished or oversized headers."""

    _waiting: asyncio.TimerHandle | None = None
    _n_bytes = 0  # since the last part of a body, or the end of the last request

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request, or several requests."""
        self._n_bytes += len(data)
        super().data_received(data)
        if self._n_bytes > _MOST_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self.timeout_keep_alive_task is None and self.cycle is not None and self.cycle.response_complete:
            # What is left of a request that was answered before its end is not waited for without a limit.
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def on_message_begin(self) -> None:
        """Wait for the rest of the headers."""
        super().on_message_begin()
        self._wait()

    def on_headers_complete(self) -> None:
        """Stop waiting: the body has its own limits."""
        self._cancel()
        if self._n_bytes > _MOST_BYTES and len(self.url) + sum(map(len, chain(*self.headers))) > _MOST_BYTES:
            raise _TooLargeError
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._n_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Take the end of a request."""
        self._n_bytes = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed or oversized request."""
        too_large = self._n_bytes > _MOST_BYTES
        self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if too_large else HTTPStatus.BAD_REQUEST)

    def _wait(self) -> None:
        self._cancel()
        self._waiting = self.loop.call_later(_SECONDS, self._give_up)

    def _cancel(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()

    def _give_up(self) -> None:
        if self._n_bytes and not self._is_answering():
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        else:
            self.shutdown()  # after the answer, if there is one to come

    def _refuse(self, status: HTTPStatus) -> None:
        """Close the connection, with a reason if no response has started."""
        if self.transport.is_closing():
            return
        if not self._is_answering():
            body = json.dumps({"error": status.phrase, "message": status.phrase}).encode()
            lines = [
                f"HTTP/1.1 {status.value} {status.phrase}",
                *("Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close"),
            ]
            self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self.transport.close()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete


def allow_many() -> None:
    """Raise the system's limit on open connections, which is often 1,024 by default."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
        if soft != resource.RLIM_INFINITY and soft < most:
            with suppress(OSError, ValueError):  # macOS allows fewer than it says
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
