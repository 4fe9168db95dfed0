"""What whoever runs a server sees of it: its log, its metrics, and how it stops."""

import asyncio
import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from conftest import Project
from servers import ASKED, PAIRS, SECONDS, TEXT, Client, held, running, until

from mtformer.config import LanguagePair
from mtformer.serve import app
from mtformer.serve.admission import RequestLimits
from mtformer.serve.errors import ServiceError
from mtformer.serve.keys import ANYONE, add_key
from mtformer.serve.metrics import Metrics
from mtformer.serve.results import ENDED, Result
from mtformer.support.logs import JsonFormatter


def logged(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Return what the log of a server has, as JSON."""
    return [json.loads(JsonFormatter().format(record)) for record in caplog.records]


def test_a_bug_is_counted_as_a_failure_and_its_traceback_logged(
    server: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(server.service, "pair", fail)
    before = server.metric("requests_total", route="/translate", status="500")
    with caplog.at_level(logging.INFO):
        answer = server.post("/translate", ASKED)
    assert (answer.status_code, list(answer.json())) == (500, ["error"])
    assert server.metric("requests_total", route="/translate", status="500") == before + 1
    assert [each["metrics"]["status"] for each in logged(caplog) if "metrics" in each] == [500]
    [traceback] = [each["traceback"] for each in logged(caplog) if "traceback" in each]
    assert traceback.startswith("Traceback")
    assert traceback.endswith("ZeroDivisionError: a bug")


def test_the_log_has_the_name_of_the_key(bundle: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    key = add_key(tmp_path / "keys.json", "ada")
    with caplog.at_level(logging.INFO), running(bundle, keys=tmp_path / "keys.json") as client:
        client.post("/translate", ASKED | {"api_key": key})
        client.get("/v2/usage", headers={"Authorization": f"DeepL-Auth-Key {key}"})
        client.post("/translate", ASKED)
        shown = client.get("/metrics").text
    keys = [each["metrics"].get("key") for each in logged(caplog) if "metrics" in each]
    assert keys == ["ada", "ada", None]
    assert "ada" not in shown  # which anyone may see


def test_counts_have_all_their_digits_and_times_their_routes() -> None:
    metrics = Metrics()
    metrics.characters.inc(123_456_789)
    metrics.seconds.labels("/translate").observe(0.2)
    metrics.seconds.labels("/translate").observe(0.3)
    metrics.seconds.labels("/health").observe(0.001)
    lines = metrics.text().splitlines()
    assert "mtformer_characters_total 1.23456789e+08" in lines
    assert 'mtformer_request_seconds_bucket{le="0.25",route="/translate"} 1.0' in lines
    assert 'mtformer_request_seconds_sum{route="/translate"} 0.5' in lines
    assert 'mtformer_request_seconds_count{route="/health"} 1.0' in lines


def test_requests_are_counted(server: Client) -> None:
    def counted() -> tuple[float, float]:
        return server.metric("characters_total"), server.metric("requests_total", route="/translate", status="200")

    n_characters, n_requests = counted()
    server.post("/translate", ASKED)
    assert counted() == (n_characters + len(TEXT), n_requests + 1)
    assert server.metric("batch_requests_count") > 0
    assert server.metric("waiting_texts") == 0


def test_explanations_take_nothing_from_other_requests(server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    service, opened, started = server.service, Event(), []

    def explain(pair: LanguagePair, text: str, **given: Any) -> dict[str, Any]:
        started.append(text)
        assert opened.wait(SECONDS)
        return {"text": text}

    async def ask() -> None:
        first, *others = [asyncio.ensure_future(of(str(n))) for n in range(8)]
        await asyncio.sleep(0)  # which starts them
        with pytest.raises(ServiceError, match="too many explanations wait") as refused:
            await of("one too many")
        assert (refused.value.status, refused.value.retry_after) == (503, 5)
        late = await asyncio.gather(*others, return_exceptions=True)
        assert {each.status for each in late if isinstance(each, ServiceError)} == {504}
        assert len(late) == 7
        opened.set()
        with pytest.raises(ServiceError, match="took more than"):
            await first

    async def of(text: str) -> dict[str, Any]:
        async with service.admitted(ANYONE) as admission, admission.in_time():
            return await service.explanations.explain(service.models.pairs[0], text)

    monkeypatch.setattr(service.explanations, "_explain", explain)
    monkeypatch.setattr(service, "settings", RequestLimits(timeout=0.05))
    asyncio.run(ask())
    until(lambda: service.explanations._places._value == 8)
    monkeypatch.setattr(service, "settings", RequestLimits())
    assert asyncio.run(of("again")) == {"text": "again"}
    assert started == ["0", "again"]


# Stopping


def test_what_was_accepted_is_answered_before_the_server_stops(bundle: Path) -> None:
    with running(bundle) as client, held(client) as gate, ThreadPoolExecutor(4) as threads:
        answers = [threads.submit(client.post, "/translate", ASKED) for _ in range(4)]
        assert gate.reached.wait(SECONDS)
        until(lambda: len(client.server.server_state.tasks) == 4)
        client.server.should_exit = True
        gate.opened.set()
        assert [answer.result(SECONDS).json() for answer in answers] == 4 * [{"translatedText": PAIRS[TEXT]}]


def test_a_document_does_not_keep_a_server_from_stopping(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_DRAIN_SECONDS", 0.01)
    languages, files = {"source_lang": "en", "target_lang": "de"}, {"file": ("a.txt", TEXT)}
    with running(bundle) as client, held(client) as gate:
        id = client.post("/v2/document", data=languages, files=files).json()["document_key"]
        assert gate.reached.wait(SECONDS)
        client.server.should_exit = True
        until(lambda: client.service.results.find(id) == Result("a.de.txt", "text/plain", error=ENDED))
        gate.opened.set()


@contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Client, str]]:
    """Yield a process that serves the newest run of a folder, its client, and the first line of its log."""
    command = [sys.executable, "-m", "mtformer", "serve", "runs", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            first = line = process.stderr.readline()
            while line and not (found := re.search(r"http://127.0.0.1:\d+", line)):
                line = process.stderr.readline()
            assert line, "it has ended"
            assert found
            client = Client(found[0], None, None)  # type: ignore[arg-type]
            until(lambda: _is_ready(client))
            yield process, client, json.loads(first)["message"]
            assert "Traceback" not in process.stderr.read()
        finally:
            process.kill()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM")
def test_a_process_serves_until_it_is_terminated(trained: Project) -> None:
    with serving(trained.folder) as (process, client, model):
        assert model.startswith("model: runs")
        assert client.post("/translate", ASKED).json() == {"translatedText": PAIRS[TEXT]}
        process.terminate()
        assert process.wait(SECONDS) == 143


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows cannot interrupt another process only")
def test_a_second_interrupt_ends_a_server_that_is_translating(trained: Project) -> None:
    asked = {"text": [f"{TEXT} " * 20] * 100, "source": "en", "target": "de", "stream": True}
    slowly = {"options": {"beam_size": 16}}
    with (
        serving(trained.folder) as (process, client, _),
        client.post("/v1/translate", asked | slowly, stream=True) as answer,
    ):
        assert "translations" in json.loads(next(answer.iter_lines()))
        process.send_signal(signal.SIGINT)
        until(lambda: not _is_ready(client))
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130


def _is_ready(client: Client) -> bool:
    try:
        return client.get("/ready").status_code == 200
    except OSError:
        return False
