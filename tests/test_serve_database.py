"""What servers remember, in SQLite and in PostgreSQL, and what they share."""

import gc
import hashlib
import sqlite3
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from socket import create_server
from threading import Event
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import Mock

import pytest
import requests
from conftest import Project
from postgresql import PASSWORD, PostgreSQL, postgresql
from servers import ASKED, PAIRS, SECONDS, TEXT, Client, held, limited, running, until

from mtformer.serve import database as databases
from mtformer.serve import results as waiting
from mtformer.serve.database import Database
from mtformer.serve.errors import ServiceError
from mtformer.serve.results import Outcome, Results
from mtformer.serve.store import Store
from mtformer.support.errors import UserError
from mtformer.text.glossary import Glossary

SUBTITLES = f"1\n00:00:01,000 --> 00:00:02,000\n{TEXT}\n"
TRANSLATED = SUBTITLES.replace(TEXT, PAIRS[TEXT])


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQL]:
    with postgresql() as running_server:
        yield running_server


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new database is."""
    if request.param == "sqlite":
        return str(tmp_path / "server.db")
    new: str = request.getfixturevalue("server").new_database()
    return new


def authorized(path: Path, name: str, **limits: int) -> dict[str, str]:
    """Add a key with limits to a file, and return the header that has it."""
    return {"Authorization": f"Bearer {limited(path, name, **limits)}"}


class Sent(NamedTuple):
    """A document that is being translated."""

    path: str
    key: str

    def status(self, client: Client, headers: dict[str, str] | None = None) -> dict[str, Any]:
        status: dict[str, Any] = client.post(self.path, {"document_key": self.key}, headers=headers).json()
        return status

    def result(self, client: Client) -> requests.Response:
        return client.post(f"{self.path}/result", {"document_key": self.key})


def upload(client: Client, headers: dict[str, str] | None = None) -> Sent:
    """Begin to translate a document."""
    asked, files = {"source_lang": "en", "target_lang": "de"}, {"file": ("film.srt", SUBTITLES)}
    answer = client.post("/v2/document", data=asked, files=files, headers=headers).json()
    return Sent(f"/v2/document/{answer['document_id']}", answer["document_key"])


# Servers that share a database


def test_a_glossary_made_at_one_server_is_used_at_another(bundle: Path, place: str) -> None:
    terms = {"name": "animals", "source_lang": "en", "target_lang": "de", "entries": "dog\tFreund"}
    asked = {"text": "the red house sees a small dog.", "source": "en", "target": "de"}
    with running(bundle, database=place) as one, running(bundle, database=place) as other:
        made = one.post("/v2/glossaries", terms).json()
        path = f"/v2/glossaries/{made['glossary_id']}"
        assert other.get(path).json() == made
        assert other.get("/v2/glossaries").json() == {"glossaries": [made]}
        assert other.get(f"{path}/entries").text == "dog\tFreund\n"
        answer = other.post("/v1/translate", asked | {"glossary": made["glossary_id"]}).json()
        assert "Freund" in answer["translations"][0][0]["text"]
        assert requests.delete(other.url + path, timeout=SECONDS).status_code == 204
        assert one.get(path).status_code == 404


def test_a_document_sent_to_one_server_is_fetched_from_another(bundle: Path, place: str) -> None:
    with running(bundle, database=place) as one, running(bundle, database=place) as other:
        with held(one) as gate:
            sent = upload(one)
            assert sent.status(other)["status"] == "translating"
            assert sent.result(other).status_code == 503
            gate.opened.set()
        until(lambda: sent.status(other)["status"] == "done")
        assert sent.status(other)["billed_characters"] == len(TEXT)
        assert [sent._replace(key=key).result(other).status_code for key in ("0", "ü", "")] == [404, 404, 400]
        assert sent.result(other).text == TRANSLATED
        assert sent.result(one).status_code == 404  # a document is fetched once
        given = {"source": "en", "target": "de"}
        answer = one.post("/translate_file", data=given, files={"file": ("film.srt", SUBTITLES)})
        address = answer.json()["translatedFileUrl"]
        file = other.get(address.removeprefix(one.url))
        assert (file.text, "film.de.srt" in file.headers["content-disposition"]) == (TRANSLATED, True)


def test_a_server_that_stops_finishes_its_documents(bundle: Path, place: str) -> None:
    with running(bundle, database=place) as other:
        with running(bundle, database=place) as one, held(one) as gate:
            sent = upload(one)
            assert gate.reached.wait(SECONDS)
            one.server.should_exit = True
            gate.opened.set()
        assert sent.result(other).text == TRANSLATED


def test_a_quota_is_counted_over_all_servers(bundle: Path, place: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    n_fitting = 7
    ada, bob = authorized(keys, "ada", characters_per_month=n_fitting * len(TEXT) + 1), authorized(keys, "bob")
    with (
        running(bundle, keys=keys, database=place) as one,
        running(bundle, keys=keys, database=place) as other,
        ThreadPoolExecutor(8) as threads,
    ):
        answers = list(threads.map(lambda i: (one, other)[i % 2].post("/translate", ASKED, headers=ada), range(20)))
        assert sorted(answer.status_code for answer in answers) == n_fitting * [200] + (20 - n_fitting) * [456]
        one.post("/translate", ASKED, headers=bob)
        one.service.remember()
        used = [[client.get("/v2/usage", headers=key).json() for client in (one, other)] for key in (ada, bob)]
        assert [each["character_count"] for of_key in used for each in of_key] == [
            *2 * [n_fitting * len(TEXT)],
            *2 * [len(TEXT)],
        ]


def test_characters_that_were_not_translated_are_given_back(bundle: Path, place: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    ada = authorized(keys, "ada", characters_per_month=len(TEXT))
    with running(bundle, keys=keys, database=place) as client:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(client.service.scheduler, "submit", lambda job: 1 / 0)
            assert client.post("/translate", ASKED, headers=ada).status_code == 500
        assert client.get("/v2/usage", headers=ada).json()["character_count"] == 0
        assert client.post("/translate", ASKED, headers=ada).status_code == 200
        assert client.post("/translate", ASKED, headers=ada).status_code == 456


# The database itself


def test_a_server_waits_while_another_one_changes_the_mode_of_a_new_file() -> None:
    busy = iter([True, True, False, False])
    executed = []

    class Connection:
        def execute(self, statement: str) -> Mock:
            if next(busy):
                raise sqlite3.OperationalError("database is locked")
            executed.append(statement)
            return Mock()

    databases._prepare_sqlite(Connection(), None)
    assert executed == ["PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL"]


def test_many_servers_start_at_the_same_time_and_take_exactly_the_quota(place: str) -> None:
    def start(number: int) -> tuple[Database, Store]:
        database = Database(place)
        Results(database)
        return database, Store(database)

    def take(number: int) -> bool:
        return opened[number % 6][1].take("ada", 3, quota=100) is not None

    with ThreadPoolExecutor(6) as threads:
        opened = list(threads.map(start, range(6)))
        assert sum(threads.map(take, range(60))) == 33
        list(threads.map(lambda each: [each[1].count(key, 1) for key in ("ada", "bob", "cyd")], opened))
        list(threads.map(lambda each: each[1].flush(), opened))
    assert [opened[0][1].used(key) for key in ("ada", "bob", "nobody")] == [105, 6, 0]
    for database, _ in opened:
        database.close()


def test_text_that_postgresql_cannot_store(place: str) -> None:
    with closing(Database(place)) as database:
        store, results = Store(database), Results(database)
        made = store.add_glossary("a\0", "n\0\ud800", ("en", "de"), Glossary([("dog", "Hu\0nd")]))
        assert made.name == "n\ufffd\ufffd"
        assert store.glossary("a\0", made.id) == made
        assert store.glossaries("a\0") == [replace(made, entries="")]
        assert store.glossary("a\0", "\0") is None
        store.count("a\0", 5)
        assert store.take("a\0", 5, 10)
        assert store.used("a\0") == 10
        id = results.add("\ud800\0.txt", "text/plain", Outcome(b"\0"))
        assert results.content(id) == b"\0"
        assert results.find("\0") is None


def test_documents_of_a_server_that_has_ended_fail_and_later_go(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_FORGOTTEN", 30)
    with closing(Database(place)) as database:
        ended, alive, watching = Results(database), Results(database), Results(database)
        lost, done = (ended.add("a.txt", "text/plain", outcome) for outcome in (Outcome(), Outcome(b"x")))
        slow = alive.add("a.txt", "text/plain", Outcome())

        def beat(n: int) -> list[str]:
            for _ in range(n):
                alive.beat()
                watching.beat()
            return [getattr(watching.find(id), "error", "gone") for id in (lost, done, slow)]

        assert beat(waiting._MOST_SILENT - 1) == ["", "", ""]
        assert beat(1) == [waiting.ENDED, "", ""]
        assert beat(17) == [waiting.ENDED, "", ""]
        assert beat(1) == ["gone", "gone", ""]
        ended.beat()  # it was only paused
        again = ended.add("b.txt", "text/plain", Outcome())
        assert (beat(5), watching.find(again) is not None) == (["gone", "gone", ""], True)


def test_documents_wait_for_an_hour_and_the_oldest_make_room(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: now))
    with closing(Database(place)) as database:
        results = Results(database)
        first = results.add("a.txt", "text/plain", Outcome(b"12345"))
        now += 1_800
        second = results.add("b.txt", "text/plain", Outcome(b"12345"))
        now += 1_799
        results.beat()
        assert results.find(first)
        now += 1
        results.beat()
        assert [results.find(id) is not None for id in (first, second)] == [False, True]
        monkeypatch.setattr(waiting, "_MOST_BYTES", 8)
        now += 1
        third = results.add("c.txt", "text/plain", Outcome(b"1234"))
        assert [results.content(id) for id in (second, third)] == [None, b"1234"]
        mine = results.add("d.txt", "text/plain", Outcome(b"12"), "ada")
        now += 1
        yours = [results.add("e.txt", "text/plain", Outcome(b"1"), "bob") for _ in range(3)]
        assert [results.content(id) for id in (third, mine, *yours)] == [None, b"12", b"1", b"1", b"1"]
        slow = results.add("f.txt", "text/plain", Outcome())
        now += 4_000  # it waits from the end of its translation
        results.beat()
        results.finish(slow, Outcome(b"12"))
        results.beat()
        assert [results.content(id) for id in (mine, slow)] == [None, b"12"]


def test_what_cannot_be_written_is_written_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = tmp_path / "server.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(databases, "_SECONDS", 0.05)  # to wait for a lock
        database = Database(str(place))
    with closing(database), closing(sqlite3.connect(place)) as writer:
        store, results = Store(database), Results(database)
        id = results.add("a.txt", "text/plain", Outcome())
        store.count("ada", 5)
        writer.execute("BEGIN IMMEDIATE")
        calls: list[Callable[[], object]] = [
            store.flush,
            lambda: results.finish(id, Outcome(b"x", 1)),
            lambda: store.take("bob", 1, 1),
        ]
        for call in calls:
            with pytest.raises(ServiceError, match="does not answer") as raised:
                call()
            assert (raised.value.status, raised.value.retry_after) == (503, 5)
        assert store.used("ada") == 5  # reading goes on
        assert f"the database {place} cannot be used: database is locked" in caplog.text
        writer.rollback()
        store.flush()
        results.beat()
        assert Store(database).used("ada") == 5
        assert results.content(id) == b"x"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_only_the_owner_can_read_a_new_file(tmp_path: Path) -> None:
    with closing(Database(str(tmp_path / "server.db"))) as database:
        Store(database)
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


# A database that is lost


@pytest.mark.usefixtures("unclosed")
def test_a_server_without_its_database_does_what_it_can(
    bundle: Path, server: PostgreSQL, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = tmp_path / "keys.json"
    ada, bob = authorized(keys, "ada", characters_per_month=1_000), authorized(keys, "bob")
    terms = {"name": "n", "source_lang": "en", "target_lang": "de", "entries": "dog\tHund"}
    with running(bundle, keys=keys, database=server.new_database()) as client:
        made = client.post("/v2/glossaries", terms, headers=ada).json()
        server.stop()
        try:
            for answer in (
                client.post("/translate", ASKED, headers=ada),
                client.get("/v2/usage", headers=bob),
                client.post("/v2/glossaries", terms, headers=bob),
                client.post(
                    f"/v2/document/{hashlib.sha256(b'0').hexdigest()[:32]}", {"document_key": "0"}, headers=bob
                ),
            ):
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
            given = {"text": TEXT, "target": "de", "glossary": {"dog": "Hund"}}
            assert client.post("/translate", ASKED, headers=bob).json() == {"translatedText": PAIRS[TEXT]}
            assert client.post("/v1/translate", given, headers=bob).status_code == 200
            assert [client.get(path).status_code for path in ("/health", "/ready", "/metrics")] == [200, 200, 200]
            with pytest.raises(ServiceError):
                client.service.remember()
        finally:
            server.start()
        assert client.post("/translate", ASKED, headers=ada).status_code == 200
        assert client.get(f"/v2/glossaries/{made['glossary_id']}", headers=ada).status_code == 200
        client.service.remember()
        usage = client.get("/v2/usage", headers=bob).json()
        assert usage["character_count"] == 2 * len(TEXT)
    assert "Traceback" not in caplog.text
    assert PASSWORD not in caplog.text


def test_a_database_that_does_not_answer_delays_nobody_else(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "keys.json"
    ada, bob = authorized(keys, "ada", characters_per_month=1_000), authorized(keys, "bob")
    with running(bundle, keys=keys) as client, ThreadPoolExecutor(8) as threads:
        reached, answered = Event(), Event()

        def hang(*args: object) -> str:
            reached.set()
            assert answered.wait(SECONDS)
            return "2026-01"

        monkeypatch.setattr(client.service.store, "take", hang)
        waiting_requests = [threads.submit(client.post, "/translate", ASKED, headers=ada) for _ in range(8)]
        assert reached.wait(SECONDS)
        for _ in range(3):
            assert client.post("/translate", ASKED, headers=bob).status_code == 200
        assert not any(request.done() for request in waiting_requests)
        monkeypatch.setattr(databases, "time", SimpleNamespace(monotonic=lambda: 1e12))  # long after they came
        answered.set()
        statuses = sorted(request.result(SECONDS).status_code for request in waiting_requests)
        assert statuses == [200] + 7 * [503]


# Bad input


@pytest.fixture
def unclosed() -> Iterator[None]:
    """Let pg8000 leave the sockets of connections open that it could not make."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


BAD_URLS = {
    "mysql://u:{}@localhost/d": "a SQLite file or a URL with postgresql://, not with mysql://",
    "postgresql+psycopg://u:{}@localhost/d": "not with postgresql+psycopg://",
    "sqlite:///server.db": "not with sqlite://",
    "postgresql://u:{}@localhost:x/d": "the URL cannot be read; write postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
    "postgresql://u:a@{}@localhost/d": "with %40 for @",
    "://": "the URL cannot be read",
    "": "--database is empty",
    "nowhere/server.db": "cannot open nowhere/server.db, the database of the server: No such file or directory",
    "postgresql://u:{}@localhost/d?sslmode=maybe": "sslmode is disable, prefer, require, verify-full, not maybe",
    "postgresql://u:{}@nowhere.invalid/d": "cannot open d at nowhere.invalid:5432, the database of the server: ",
    "postgresql://u:{}@127.0.0.1:1/d": "cannot open d at 127.0.0.1:1, the database of the server: Connection refused",
    "postgresql://127.0.0.1:1/d": "the URL names no user: write postgresql://USER@HOST/DATABASE",
    "postgresql://u:{}@127.0.0.1:1/d?color=red": "the driver has no option 'color'",
}


@pytest.mark.parametrize(("url", "problem"), BAD_URLS.items())
def test_a_database_that_cannot_be_used(trained: Project, url: str, problem: str) -> None:
    refused = trained.mtformer("serve", "runs/config", "--port", "0", "--database", url.format("SeCrEt"))
    assert (refused.status, refused.stderr.count("\n")) == (2, 1), refused.stderr
    assert problem in refused.stderr
    assert "SeCrEt" not in refused.stderr


def test_a_database_without_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"needs the package pg8000.* pip install .*\[postgresql\]'"):
        Database("postgres://localhost/d")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [({"password": "SeCrEt"}, "password authentication failed for user"), ({"database": "none"}, "does not exist")],
)
@pytest.mark.usefixtures("unclosed")
def test_postgresql_refuses(server: PostgreSQL, changes: dict[str, str], problem: str) -> None:
    with pytest.raises(UserError, match=f"^cannot open .*{problem}[^\n]*$") as raised:
        Store(Database(server.url(**changes)))
    assert "SeCrEt" not in str(raised.value)


@pytest.mark.usefixtures("unclosed")
def test_postgresql_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "_SECONDS", 0.1)
    with create_server(("127.0.0.1", 0)) as silent, pytest.raises(UserError, match="timed out"):
        Store(Database(f"postgresql://u:p@127.0.0.1:{silent.getsockname()[1]}/d"))


@pytest.mark.usefixtures("unclosed")
def test_the_password_may_be_in_the_environment(server: PostgreSQL, monkeypatch: pytest.MonkeyPatch) -> None:
    url = server.url(password="").replace(":@", "@")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with closing(Database(f"{url}?sslmode=disable")) as database:
        assert Store(database).used("ada") == 0
    with pytest.raises(UserError, match="SSL"):
        Store(Database(f"{url}?sslmode=verify-full"))


@pytest.mark.parametrize(("content", "problem"), [(b"not a database" * 100, "file is not a database"), (None, "")])
def test_a_file_that_is_no_database(tmp_path: Path, content: bytes | None, problem: str) -> None:
    path = tmp_path / "server.db"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(UserError, match=f"cannot open .*server.db, the database of the server: .*{problem}"):
        Store(Database(str(path)))


# Clocks


def test_a_clock_that_is_set_changes_nothing_but_the_month(
    bundle: Path, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, clock = tmp_path / "keys.json", SimpleNamespace(now=1_800_000_000.0)  # 15 January 2027
    monkeypatch.setattr("time.time", lambda: clock.now)
    limits = {"characters_per_minute": 3 * len(TEXT), "characters_per_month": 3 * len(TEXT)}
    ada, bob = authorized(keys, "ada", **limits), authorized(keys, "bob")
    with running(bundle, keys=keys, database=place) as client:

        def status() -> int:
            return client.post("/translate", ASKED, headers=ada).status_code

        def used() -> list[int]:
            client.service.remember()
            return [client.get("/v2/usage", headers=key).json()["character_count"] for key in (ada, bob)]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mtformer.serve.keys.time", SimpleNamespace(monotonic=lambda: 0.0))
            assert [status(), client.post("/translate", ASKED, headers=bob).status_code] == [200, 200]
            sent = upload(client, bob)
            until(lambda: sent.status(client, bob)["status"] == "done")
            for clock.now in (1_800_000_000.0 + 10 * 365 * 86_400, 0.0):  # ten years ahead, then 1970
                assert used() == [0, 0]  # of that month
                assert status() == 200
                client.service.results.beat()
                assert sent.status(client, bob)["status"] == "done"
            assert status() == 429  # a minute's characters are used up, whatever the clock says
        clock.now = 1_800_000_000.0
        assert used() == [len(TEXT), 2 * len(TEXT)]
