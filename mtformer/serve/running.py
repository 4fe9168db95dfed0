"""Run a server until it is told to stop."""

import errno
import gc
import logging
import os
import re
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from mtformer.serve.admission import RequestLimits
from mtformer.serve.app import make_app
from mtformer.serve.connections import Connection, allow_many
from mtformer.serve.database import Database
from mtformer.serve.keys import Keys
from mtformer.serve.models import Models
from mtformer.serve.origins import is_loopback
from mtformer.serve.service import Service
from mtformer.support.errors import UserError

log = logging.getLogger(__name__)

_BACKLOG = 2_048  # connections that wait to be accepted
_ORIGIN = re.compile(r"\*|null|[a-z][a-z\d+.-]*://[^/\s]+/?", re.IGNORECASE)
_IDLE_SECONDS = 75  # until a connection without requests is closed: more than those of usual load balancers


@dataclass(frozen=True)
class Address:
    """The address of a server, and access to it; open to other machines only if that is explicitly allowed.

    Attributes:
        host: a name or an address.
        port: a number; 0 for any that is free.
        keys: the file of keys; None lets anyone in.
        is_insecure: whether anyone may be let in from other machines.
        cors: the origins of pages that may use it from browsers.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    keys: Path | None = None
    is_insecure: bool = False
    cors: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check the access.

        Raises:
            UserError: other machines could use the server without a key, or ``cors`` has something else than origins.
        """
        for origin in self.cors:
            if not _ORIGIN.fullmatch(origin):
                raise UserError(f"--cors {origin}: write an origin as in https://example.org, or * for all")
        if self.keys is None and not self.is_insecure and not is_loopback(self.host):
            raise UserError(
                f"--host {self.host} lets other machines in, and without keys anyone could use this server: make a key "
                "with --keys FILE --new-key NAME and start it with --keys FILE, or add --insecure if that is meant"
            )

    def listen(self) -> socket.socket:
        """Return a socket that listens there.

        Raises:
            UserError: that is not possible.
        """
        try:
            [(*kind, _, address), *_] = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
            listening = socket.socket(*kind)  # with its protocol: without, asyncio lets Nagle's algorithm delay answers
        except OSError as error:
            raise UserError(f"--host {self.host}: {error.strerror}") from error
        except UnicodeError as error:
            raise UserError(f"--host {self.host}: this is neither a name nor an address") from error
        try:
            if os.name == "posix":  # elsewhere it would let two servers share a port
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(_BACKLOG)
        except OSError as error:
            listening.close()
            if error.errno == errno.EADDRINUSE:
                message = f"port {self.port} of {self.host} is in use: name another with --port"
                raise UserError(message) from error
            raise UserError(f"cannot listen on port {self.port} of {self.host}: {error.strerror}") from error
        return listening


def serve(
    models: Models, address: Address, *, database: str | None = None, settings: RequestLimits, watch: bool = False
) -> None:
    """Answer requests until SIGTERM or Ctrl-C; then finish those that were accepted, unless Ctrl-C comes again.

    Args:
        models: the models.
        address: where to listen, and who may send requests.
        database: a SQLite file or the URL of a database, as for :class:`.Database`.
        settings: limits.
        watch: whether to replace models whose files change.

    Raises:
        UserError: it cannot listen there, or a file or the database cannot be used.
    """
    keys = None if address.keys is None else Keys.read(address.keys)
    is_local = keys is None and is_loopback(address.host)
    if keys is None and not is_local:
        log.warning("ANYONE who can reach %s can use this server: it has no keys (--insecure)", address.host)
    with address.listen() as listening:
        service = Service(models, Database(database), keys, settings)  # whose database has to work before all else
        models.load_first()
        app = make_app(service, cors=address.cors, is_local=is_local, watch=watch)
        log.info("%s on %s", ", ".join(map(str, models.pairs[:10])), url_of(*listening.getsockname()))
        gc.freeze()  # or the collector would go through all that is loaded again and again
        allow_many()
        _Server(server_config(app, settings)).run(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that a second Ctrl-C ends at once, without Python's shutdown, which aborts if threads still compute."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop the server; at once if Ctrl-C has been pressed again."""
        if self.should_exit and sig == signal.SIGINT:
            os._exit(130)
        super().handle_exit(sig, frame)


def url_of(host: str, port: int, *_: object) -> str:
    """Return the URL of a socket, given its address."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def server_config(app: Starlette, settings: RequestLimits) -> uvicorn.Config:
    """Return the settings of uvicorn; our own log has the requests."""
    return uvicorn.Config(
        app,
        http=Connection,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=int(settings.timeout) + 1,
    )
