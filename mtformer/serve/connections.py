"""Connections: as many as the system allows, each only as long as its client does not keep the server waiting."""

import asyncio
import sys
from contextlib import suppress

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_SECONDS = 30  # until a new connection must have sent a request's headers, and every other one after its first byte
_MOST = 65_536  # connections and files


class Connection(HttpToolsProtocol):
    """A connection that is closed if its client sends nothing, or headers without an end."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request."""
        super().connection_made(transport)
        self._wait()

    def on_message_begin(self) -> None:
        """Wait for the headers of a request that has begun."""
        super().on_message_begin()
        self._wait()

    def on_headers_complete(self) -> None:
        """Wait no more: the body has a limit of its own."""
        self._cancel()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._cancel()
        self._waiting = self.loop.call_later(_SECONDS, self.transport.close)

    def _cancel(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()


def allow_many() -> None:
    """Let the process have many connections, where the system limits them; often to 1,024 unless one asks for more."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
        if soft != resource.RLIM_INFINITY and soft < most:
            with suppress(OSError, ValueError):  # macOS allows fewer than it says
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
