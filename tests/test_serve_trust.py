"""The server can be trusted: keys, who may use it, hostile requests, failures under load, and the demo."""

import hashlib
import json
import logging
import os
import shutil
import socket
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from conftest import Project
from servers import ASKED, PAIRS, SECONDS, TEXT, Client, head, held, running, talk, until

from mtformer.cli import serve as serving
from mtformer.serve.database import Database
from mtformer.serve.keys import Keys, add_key
from mtformer.serve.running import Address, url_of
from mtformer.serve.store import Store
from mtformer.support.errors import UserError
from mtformer.training import run as training

# Keys


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def test_requests_need_a_key_where_there_are_keys(bundle: Path, key_file: Path) -> None:
    key = add_key(key_file, "ada")
    with running(bundle, keys=key_file) as client:
        for given in ({"api_key": "wrong"}, {}):
            answer = client.post("/translate", ASKED | given)
            assert (answer.status_code, list(answer.json())) == (403, ["error"])
        assert client.post("/translate", ASKED | {"api_key": key}).status_code == 200
        for scheme in ("Bearer", "DeepL-Auth-Key"):
            headers = {"Authorization": f"{scheme} {key}"}
            asked = {"text": [TEXT], "target_lang": "DE"}
            assert client.post("/v2/translate", asked, headers=headers).status_code == 200
            assert client.post("/v2/translate", asked, headers={"Authorization": f"{scheme} x"}).status_code == 403
        unsent = head(
            "Authorization: Bearer x", "Content-Type: application/json", "Content-Length: 9", "Connection: close"
        )
        assert talk(client, unsent).startswith(b"HTTP/1.1 403")
        assert "message" in client.get("/v2/usage").json()
        for path in ("/v1/explain", "/v1/translate", "/detect"):
            assert client.post(path, {"text": TEXT, "q": TEXT, "target": "de"}).status_code == 403
        for path in ("/health", "/ready", "/metrics", "/openapi.json"):
            assert client.get(path).status_code == 200
        assert client.get("/frontend/settings").json()["keyRequired"] is True


def test_a_glossary_belongs_to_its_key(bundle: Path, key_file: Path, tmp_path: Path) -> None:
    ada, bob = (add_key(key_file, name) for name in ("ada", "bob"))
    terms = {"name": "n", "source_lang": "en", "target_lang": "de", "entries": "dog\tHund"}
    with running(bundle, keys=key_file, database=tmp_path / "server.db") as client:
        made = client.post("/v2/glossaries", terms, headers={"Authorization": f"Bearer {ada}"}).json()
        path = f"/v2/glossaries/{made['glossary_id']}"
        assert client.get(path, headers={"Authorization": f"Bearer {ada}"}).status_code == 200
        assert client.get(path, headers={"Authorization": f"Bearer {bob}"}).status_code == 404
        assert client.get("/v2/glossaries", headers={"Authorization": f"Bearer {bob}"}).json() == {"glossaries": []}
        client.post("/translate", ASKED | {"api_key": ada})
    with closing(Database(str(tmp_path / "server.db"))) as database:  # another process finds it all
        store = Store(database)
        assert [each.name for each in store.glossaries("ada")] == ["n"]
        assert (store.used("ada"), store.used("bob")) == (len(TEXT), 0)


def test_the_file_of_keys_has_hashes_and_only_its_owner_can_read_it(key_file: Path) -> None:
    key = add_key(key_file, "ada")
    stored = json.loads(key_file.read_text(encoding="utf-8"))
    assert stored == {"ada": {"sha256": hashlib.sha256(key.encode()).hexdigest()}}
    assert key not in key_file.read_text(encoding="utf-8")
    if os.name != "nt":
        assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    second = add_key(key_file, "bob")
    read = Keys.read(key_file)
    assert [found and found.name for found in map(read.find, (key, second, "x", ""))] == ["ada", "bob", None, None]


@pytest.mark.parametrize(
    ("text", "mode", "problem"),
    [
        ("{}", 0o644, "other users can read or change .*: run chmod 600"),
        ("{}", 0o660, "other users can read or change .*: run chmod 600"),
        ('{"ada": {"sha256": "short"}}', 0o600, "is not a file of keys"),
        ('{"ada": {"sha256": "' + "0" * 64 + '", "limit": 5}}', 0o600, "is not a file of keys"),
        ("[", 0o600, "is not a file of keys"),
        (None, 0o600, "make it with --new-key"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_file_of_keys_that_cannot_be_used(key_file: Path, text: str | None, mode: int, problem: str) -> None:
    if text is not None:
        key_file.write_text(text, encoding="utf-8")
        key_file.chmod(mode)
    with pytest.raises(UserError, match=problem):
        Keys.read(key_file)


def test_a_folder_is_no_file_of_keys(tmp_path: Path) -> None:
    """Its mode is not the problem: with that of a file, nobody could use it."""
    tmp_path.chmod(0o755)
    with pytest.raises(UserError, match=r"^cannot read [^;]*$"):
        Keys.read(tmp_path)


@pytest.mark.parametrize("name", ["", " "])
def test_a_key_has_a_name(key_file: Path, name: str) -> None:
    with pytest.raises(UserError, match="--new-key is empty"):
        add_key(key_file, name)
    assert not key_file.exists()


def test_a_key_is_made_by_the_command_line(trained: Project, tmp_path: Path) -> None:
    made = trained.mtformer("serve", "--keys", tmp_path / "keys.json", "--new-key", "ada")
    assert made.status == 0
    assert Keys.read(tmp_path / "keys.json").find(made.stdout.strip())
    again = trained.mtformer("serve", "--keys", tmp_path / "keys.json", "--new-key", "ada")
    assert (again.status, again.stderr.count("\n")) == (2, 1)
    assert trained.mtformer("serve", "--new-key", "ada").status == 2


# Where it listens


def test_it_listens_on_this_machine_only_unless_it_has_keys(trained: Project, key_file: Path) -> None:
    refused = trained.mtformer("serve", "runs/config", "--host", "0.0.0.0")
    assert (refused.status, refused.stderr.count("\n")) == (2, 1)
    assert "--insecure" in refused.stderr
    for host in ("127.0.0.1", "127.5.5.5", "localhost", "::1"):
        Address(host)
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org", ""):
        with pytest.raises(UserError, match="without keys anyone could use this server"):
            Address(host)
        Address(host, keys=key_file)


@pytest.mark.parametrize("host", ["a..b", "a" * 64])
def test_a_host_that_is_none(host: str) -> None:
    with pytest.raises(UserError, match=f"--host {host}: "):
        Address(host, is_insecure=True).listen()


def test_urls_have_brackets_around_addresses_with_colons() -> None:
    assert [url_of("127.0.0.1", 80), url_of("::1", 80, 0, 0)] == ["http://127.0.0.1:80", "http://[::1]:80"]


@pytest.mark.parametrize("option", ["--timeout", "--max-memory"])
@pytest.mark.parametrize("value", ["inf", "nan", "0"])
def test_limits_are_finite(trained: Project, option: str, value: str) -> None:
    refused = trained.mtformer("serve", "runs/config", option, value)
    assert (refused.status, f"Invalid value for '{option}'" in refused.stderr) == (2, True)


def test_a_server_that_lets_anyone_in_says_so_once(trained: Project) -> None:
    options = ("--host", "0.0.0.0", "--port", "0", "--insecure", "--log-format", "text", "--database", "missing/file")
    result = trained.mtformer("serve", "runs/config", *options)
    assert result.status == 2
    assert result.stderr.count("ANYONE") == 1


def test_a_port_in_use(trained: Project, server: Client) -> None:
    for model in ("runs/config", "--demo"):
        refused = trained.mtformer("serve", model, "--port", str(server.port))
        assert refused.status == 2
        assert f"port {server.port} of 127.0.0.1 is in use: name another with --port" in refused.stderr
        assert "trained first" not in refused.stderr


@pytest.mark.parametrize("content_type", ["application/json", "text/plain"])  # browsers ask before sending the former
def test_pages_of_other_origins_may_not_use_it(server: Client, content_type: str) -> None:
    def status(**headers: str) -> int:
        headers = {name.replace("_", "-"): value for name, value in headers.items()} | {"Content-Type": content_type}
        return server.post("/translate", data=json.dumps(ASKED), headers=headers).status_code

    other = "https://example.org"
    assert {status(Origin=each) for each in (other, "null", f"http://localhost:{server.port}")} == {403}
    assert (status(), status(Origin=server.url), status(Origin=other, Sec_Fetch_Site="same-origin")) == (200, 200, 200)
    assert server.get("/", headers={"Origin": other, "Sec-Fetch-Site": "cross-site"}).status_code == 200  # a link


def test_pages_that_are_named_may_use_it(bundle: Path) -> None:
    with running(bundle, cors=["https://Example.org/"]) as client:
        asks = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
        assert requests.options(f"{client.url}/translate", headers=asks, timeout=SECONDS).status_code == 200
        answer = client.post("/translate", ASKED, headers={"Origin": "https://example.org"})
        assert answer.headers["access-control-allow-origin"] == "https://example.org"
        assert client.post("/translate", ASKED, headers={"Origin": "https://example.com"}).status_code == 403


@pytest.mark.parametrize("origin", ["example.org", "", "https://", "https://example.org/page", "https://a b"])
def test_what_is_no_origin_is_refused(origin: str) -> None:
    with pytest.raises(UserError, match="write an origin as in"):
        Address(cors=[origin])
    Address(cors=["*", "null", "https://example.org", "http://localhost:3000/", "moz-extension://1234"])


def test_a_server_for_this_machine_is_none_of_another_name(bundle: Path) -> None:
    """As when a page gives its own name this machine's address."""
    with running(bundle, is_local=True, cors=["https://translate.example.org"]) as client:
        for host in ("evil.example", f"evil.example:{client.port}", "127.0.0.1.example", "[", "10.0.0.1"):
            headers = {"Host": host, "Origin": f"http://{host}"}
            assert client.post("/translate", ASKED, headers=headers).status_code == 403
            assert client.get("/", headers=headers).status_code == 403
        for host in ("localhost", "127.0.0.1:80", "[::1]:8000", "translate.example.org"):
            assert client.post("/translate", ASKED, headers={"Host": host}).status_code == 200


def test_without_a_model_it_says_how_to_get_one(tmp_path: Path) -> None:
    refused = Project(tmp_path, tmp_path).mtformer("serve")
    assert (refused.status, refused.stderr.count("\n")) == (2, 1)
    advice = "name one with mtformer serve MODEL, or try the built-in phrasebook: mtformer serve --demo"
    assert json.loads(refused.stderr)["message"].endswith(advice)
    both = Project(tmp_path, tmp_path).mtformer("serve", "runs/x", "--demo")
    assert "name no model beside it" in both.stderr


def test_the_demo_is_the_phrasebook_and_is_trained_once(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(__file__).parent.parent
    recipe, copy = (
        {**yaml.safe_load((folder / file).read_text("utf-8")), "run": None}
        for file in ("configs/phrasebook_en_zh.yaml", "mtformer/serve/demo.yaml")
    )
    assert copy == recipe
    monkeypatch.chdir(tmp_path)
    trained: list[Any] = []
    monkeypatch.setattr(training, "train", trained.append)
    assert serving._demo(None, Address(port=0)) == [Path("runs/demo/model.safetensors")]
    assert len(trained) == 1
    Path("runs/demo").mkdir(parents=True)
    shutil.copy(bundle, "runs/demo/model.safetensors")
    serving._demo(None, Address(port=0))
    assert len(trained) == 1


# Hostile and broken requests


@pytest.mark.parametrize("path", ["/translate", "/v2/translate", "/v1/translate", "/detect", "/v2/glossaries"])
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{", "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"null", "application/json"),
        (b'"q"', "application/json"),
        (b"\xff\xfe", "application/json"),
        (b'{"q": {"a": 1}, "text": {"a": 1}, "name": 1}', "application/json"),
        (b"q=%ff%fe&" + b"&".join(b"a=b" for _ in range(5_000)), "application/x-www-form-urlencoded"),
        (b"--x\r\nno header", "multipart/form-data; boundary=x"),
        (b"", "multipart/form-data"),
        (b"", "text/plain"),
    ],
    ids=lambda value: str(value)[:12] if isinstance(value, bytes) else "",
)
def test_malformed_bodies_are_refused(server: Client, path: str, body: bytes, kind: str) -> None:
    answer = server.post(path, data=body, headers={"Content-Type": kind})
    assert answer.status_code == 400
    assert list(answer.json()) == ["message" if path.startswith("/v2/") else "error"]


def test_a_client_that_goes_takes_its_texts_with_it(server: Client, caplog: pytest.LogCaptureFixture) -> None:
    body = json.dumps(ASKED).encode()
    with held(server) as gate:
        before = server.metric("requests_total", route="/translate", status="499")
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS)
        connection.sendall(head("Content-Type: application/json", f"Content-Length: {len(body)}") + body)
        assert gate.reached.wait(SECONDS)
        connection.close()
        until(lambda: server.metric("requests_total", route="/translate", status="499") == before + 1)
        gate.opened.set()
    assert server.post("/translate", ASKED).json() == {"translatedText": PAIRS[TEXT]}
    assert "never retrieved" not in caplog.text


def test_an_engine_that_fails_under_load_fails_nobody_else(server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    models = server.service.models
    engine = models.translator(models.pairs[0]).engine
    submit, bad = engine.submit, "my old friend likes the red house."
    ids = models.translator(models.pairs[0]).tokenizer.encode_src([bad])[0]

    def fail(requests: Any, **given: Any) -> Any:
        if any(list(request.src) == list(ids) for request in requests):
            raise RuntimeError("out of memory")
        return submit(requests, **given)

    monkeypatch.setattr(engine, "submit", fail)
    texts = [bad, *PAIRS] * 2
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda text: server.post("/translate", ASKED | {"q": text}), texts))
    for text, answer in zip(texts, answers, strict=True):
        assert answer.status_code == (500 if text == bad else 200)
        assert text == bad or answer.json()["translatedText"] == PAIRS[text]


def test_the_log_has_neither_texts_nor_keys(bundle: Path, key_file: Path, caplog: pytest.LogCaptureFixture) -> None:
    key = add_key(key_file, "ada")
    with caplog.at_level(logging.DEBUG), running(bundle, keys=key_file) as client:
        client.post("/translate?api_key=" + key, ASKED)
        client.post("/v1/translate", {"text": "red " * 50 + "{", "target": "de", "api_key": key})
        client.post("/translate", ASKED | {"target": "secret"}, headers={"Authorization": f"Bearer {key}"})
    shown = "\n".join(
        f"{record.getMessage()} {vars(record)}" for record in caplog.records if record.name[:8] == "mtformer"
    )
    assert '"route"' in shown or "'route'" in shown
    assert [word for word in (key, "red", "Haus", "secret") if word in shown] == []
