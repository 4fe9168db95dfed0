"""A server in a thread of the tests' own process."""

import json
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import requests
import uvicorn
from conftest import sentence_pairs

from mtformer.serve.admission import RequestLimits
from mtformer.serve.app import make_app
from mtformer.serve.database import Database
from mtformer.serve.keys import Keys, add_key
from mtformer.serve.models import Models
from mtformer.serve.running import server_config
from mtformer.serve.service import Service

SECONDS = 60  # until a test gives up
PAIRS = dict(sentence_pairs(20, seed=3))
TEXT = next(iter(PAIRS))
ASKED = {"q": TEXT, "source": "en", "target": "de"}


class Started(uvicorn.Server):
    """A server that says when it takes requests."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        self.is_up.set()


class Client:
    """What a test knows of a running server."""

    def __init__(self, url: str, service: Service, server: Started) -> None:
        self.url, self.service, self.server = url, service, server
        self.port = int(url.rpartition(":")[2])

    def get(self, path: str, **given: Any) -> requests.Response:
        return requests.get(self.url + path, timeout=SECONDS, **given)

    def post(self, path: str, json: Any = None, **given: Any) -> requests.Response:
        return requests.post(self.url + path, json=json, timeout=SECONDS, **given)

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of a metric over all samples that have these labels."""
        wanted = {f'{label}="{value}"' for label, value in labels.items()}
        found = re.findall(rf"^mtformer_{name}(?:{{(.*)}})? (\S+)$", self.get("/metrics").text, re.MULTILINE)
        return sum(float(value) for shown, value in found if wanted <= set(shown.split(",")))


@contextmanager
def running(
    *models: Path,
    keys: Path | None = None,
    database: str | Path | None = None,
    settings: RequestLimits | None = None,
    **given: Any,
) -> Iterator[Client]:
    """Yield a server with some models on a free port; ``given`` are arguments of :func:`.make_app`."""
    loaded = Models(models, device="cpu")
    settings = settings or RequestLimits()
    service = Service(
        loaded,
        Database(None if database is None else str(database)),
        None if keys is None else Keys.read(keys),
        settings,
    )
    server = Started(server_config(make_app(service, **given), settings))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            assert server.is_up.wait(SECONDS)
            yield Client(f"http://127.0.0.1:{listening.getsockname()[1]}", service, server)
        finally:
            server.should_exit = True
            thread.join()


class Gate:
    """Holds the engine of a server until it is opened."""

    def __init__(self) -> None:
        self.reached, self.opened = Event(), Event()


@contextmanager
def held(client: Client) -> Iterator[Gate]:
    """Let no batch of a server end before the gate opens."""
    gate = Gate()
    models = client.service.models
    engine = models.translator(models.pairs[0]).engine
    submit = engine.submit

    def wait(*args: Any, **given: Any) -> Any:
        gate.reached.set()
        assert gate.opened.wait(SECONDS)
        return submit(*args, **given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "submit", wait)
        try:
            yield gate
        finally:
            gate.opened.set()


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so that must become so."""
    never = Event()
    for _ in range(SECONDS * 50):
        if is_so():
            return
        never.wait(0.02)
    pytest.fail("it never became so")


def talk(client: Client, data: bytes) -> bytes:
    """Send bytes to a server, and return what it answers until it closes the connection."""
    with socket.create_connection(("127.0.0.1", client.port), timeout=SECONDS) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def head(*lines: str) -> bytes:
    """Return the head of a request."""
    return "\r\n".join(["POST /translate HTTP/1.1", "Host: x", *lines, "", ""]).encode()


def limited(key_file: Path, name: str, **limits: int) -> str:
    """Add a key with limits to a file, and return it."""
    key = add_key(key_file, name)
    stored = json.loads(key_file.read_text(encoding="utf-8"))
    stored[name] |= limits
    key_file.write_text(json.dumps(stored), encoding="utf-8")
    return key
