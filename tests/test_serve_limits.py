"""What the server limits: characters, requests, their size and time, and connections."""

import json
import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from servers import ASKED, SECONDS, TEXT, Client, head, held, limited, running, talk, until

from mtformer.serve import connections, http, service
from mtformer.serve.admission import RequestLimits
from mtformer.serve.keys import Caller, Limits, RateLimiter
from mtformer.support.errors import MtformerError


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


@pytest.mark.parametrize(
    ("limits", "status", "has_retry"),
    [({"characters_per_minute": 40}, 429, True), ({"characters_per_month": 40}, 456, False)],
)
def test_characters_of_a_key_are_limited(
    bundle: Path, key_file: Path, limits: dict[str, int], status: int, has_retry: bool
) -> None:
    key = limited(key_file, "ada", **limits)
    with running(bundle, keys=key_file) as client:
        asked = ASKED | {"q": "a" * 30, "api_key": key}
        assert client.post("/translate", asked).status_code == 200
        refused = client.post("/translate", asked)
        assert (refused.status_code, "retry-after" in refused.headers) == (status, has_retry)
        usage = client.get("/v2/usage", headers={"Authorization": f"Bearer {key}"}).json()
        assert usage["character_count"] == 30
        if not has_retry:
            assert usage["character_limit"] == 40


def test_requests_at_a_time_of_a_key_are_limited(bundle: Path, key_file: Path) -> None:
    key = limited(key_file, "ada", concurrent=1)
    with running(bundle, keys=key_file) as client, held(client) as gate, ThreadPoolExecutor(1) as thread:
        first = thread.submit(client.post, "/translate", ASKED | {"api_key": key})
        assert gate.reached.wait(SECONDS)
        second = client.post("/translate", ASKED | {"api_key": key})
        assert (second.status_code, second.headers["retry-after"]) == (429, "1")
        gate.opened.set()
        assert first.result(SECONDS).status_code == 200
        assert client.post("/translate", ASKED | {"api_key": key}).status_code == 200


def test_a_document_beyond_the_limits_is_not_even_read(bundle: Path, key_file: Path) -> None:
    key = limited(key_file, "ada", characters_per_month=0)
    with running(bundle, keys=key_file) as client:
        asked = {"source": "en", "target": "de", "api_key": key}
        refused = client.post("/translate_file", data=asked, files={"file": ("a.docx", b"PK no archive")})
        assert refused.status_code == 456


def test_a_document_of_too_many_parts_is_not_read(bundle: Path) -> None:
    with running(bundle) as client:
        files = {"file": ("a.txt", b"1\n" * 1_000_001)}
        refused = client.post("/translate_file", data={"source": "en", "target": "de"}, files=files)
    message = "a document may have 1,000,000 line ends, tags and commas in all"
    assert (refused.status_code, refused.json()["error"]) == (413, message)


def test_a_bucket_fills_up_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr("mtformer.serve.keys.time", SimpleNamespace(monotonic=lambda: now))
    limiter, caller = RateLimiter(), Caller(name="ada", limits=Limits(characters_per_minute=60))

    def is_admitted(n: int) -> bool:
        try:
            limiter.take(caller, n)
            return True
        except MtformerError:
            return False

    assert is_admitted(60)
    assert not is_admitted(1)
    now += 10
    assert not is_admitted(11)
    assert is_admitted(10)
    now += 3_600
    assert is_admitted(100)  # more than the bucket holds, which therefore must be full
    now += 60
    assert not is_admitted(60)


def test_the_size_of_requests_is_limited(bundle: Path) -> None:
    with running(bundle, settings=RequestLimits(max_characters=50)) as client:
        answer = client.post("/translate", ASKED | {"q": ["a" * 30, "b" * 30]})
        assert (answer.status_code, answer.json()["error"]) == (
            413,
            "the texts have 60 characters; a request may have 50",
        )
        assert (
            client.post("/v2/translate", {"text": "a" * 51, "source_lang": "en", "target_lang": "de"}).status_code
            == 413
        )


def test_a_body_of_100_mb_is_refused_before_it_is_sent(server: Client) -> None:
    answer = talk(server, head("Content-Type: application/json", "Content-Length: 100000000"))
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in answer.lower()


def test_a_body_that_does_not_say_its_size_is_refused_when_it_is_too_large(
    server: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MOST_BYTES", 1_000)
    chunk = b"3E8\r\n" + b"a" * 1_000 + b"\r\n"
    answer = talk(server, head("Content-Type: application/json", "Transfer-Encoding: chunked") + 2 * chunk)
    assert answer.startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    "kind", ["application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_of_a_body_of_100_mb_little_is_read(server: Client, kind: str) -> None:
    start = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n' if kind[-1] == "x" else b"q="
    )
    part, n_sent = b"a" * 2**20, 0
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as connection:
        connection.sendall(head(f"Content-Type: {kind}", "Transfer-Encoding: chunked"))
        connection.sendall(b"%x\r\n%b\r\n" % (len(start), start))
        with suppress(ConnectionError):  # the server has closed it
            while n_sent < 100 * 2**20:
                connection.sendall(b"%x\r\n%b\r\n" % (len(part), part))
                n_sent += len(part)
    assert n_sent < 50 * 2**20  # 16 MiB, and what the system's buffers hold


def test_large_requests_at_a_time_are_limited(server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_MOST_HELD", 1_500)
    asked = head("Content-Type: application/json", "Content-Length: 1000") + b" " * 900
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as first:
        first.sendall(asked)
        until(lambda: server.post("/translate", ASKED | {"q": "a" * 600}).status_code == 503)
        assert server.post("/translate", ASKED).status_code == 200
    until(lambda: server.post("/translate", ASKED | {"q": "a" * 600}).status_code == 200)


def test_a_client_that_is_too_slow_is_not_waited_for(server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_BODY_SECONDS", 0.05)
    answer = talk(server, head("Content-Type: application/json", "Content-Length: 10") + b"{")
    assert answer.startswith(b"HTTP/1.1 408")


def test_a_request_behind_too_many_others_is_refused(server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_MOST_WAITING", -1)
    answer = server.post("/translate", ASKED)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


def test_a_translation_that_takes_too_long_is_given_up(bundle: Path) -> None:
    with running(bundle, settings=RequestLimits(timeout=0.05)) as client, held(client) as gate:
        assert client.post("/translate", ASKED).status_code == 504
        streamed = client.post("/v1/translate", {"text": [TEXT], "target": "de", "stream": True}).json()
        assert "took more than" in streamed["error"]
        gate.opened.set()
        until(lambda: client.service.scheduler.n_waiting == 0)


# Connections


def test_idle_connections_do_no_harm(server: Client) -> None:
    if sys.platform == "win32":
        pytest.skip("Windows does not say how many connections a process may have")
    import resource

    n_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    n_open = len(list(Path("/dev/fd").iterdir()))  # earlier tests may have left some
    both_ends = 10_000 if n_files == resource.RLIM_INFINITY else (n_files - n_open - 200) // 2
    n = min(10_000, both_ends)
    with ExitStack() as idle:
        for i in range(n):
            connection = idle.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS))
            if i % 2:
                connection.sendall(b"POST /translate HT")
        until(lambda: len(server.server.server_state.connections) >= n)
        assert server.post("/translate", ASKED).status_code == 200


@pytest.mark.skipif(os.name == "nt", reason="Windows does not limit them")
def test_a_server_takes_as_many_connections_as_the_system_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
        connections.allow_many()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (max(soft - 1, min(hard, 65_536)), hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("sent", [b"", b"POST /translate HT", b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /he"])
def test_a_connection_without_a_request_is_closed(server: Client, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(ASKED).encode()
    with held(server) as gate, ThreadPoolExecutor(1) as thread:
        monkeypatch.setattr(connections, "_SECONDS", 0.05)
        asked = head("Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close") + body
        working = thread.submit(talk, server, asked)
        assert gate.reached.wait(SECONDS)
        answer = talk(server, sent)
        assert (b'{"status":"ok"}' in answer) == (b"health" in sent)
        gate.opened.set()  # one that waits for its answer stays
        assert working.result(SECONDS).startswith(b"HTTP/1.1 200")
