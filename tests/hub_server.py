"""A server on loopback that speaks as much of the Hugging Face hub's API as loading data sets and models needs.

It serves a folder: version C of the data set or model ``owner/name`` is the folder ``owner/name/C`` in it, and the file
``owner/name/HEAD`` names the newest. Large files of models are elsewhere, where a redirection leads.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.parse import unquote, urlsplit


class HubServer:
    """The data sets and models, and what goes wrong with them.

    Attributes:
        folder: with the data sets and models.
        environment: in which a client uses this hub and no other server.
        faults: what happens at the next requests for a file, by its name: ``cut`` closes the connection in the middle
            of it, ``flip`` changes a bit there, and a number is the status of an error.
        gated: the data sets and models that nobody may read, and the status that says so.
        moved: the new names of models.
        ranges: the ranges of bytes that were asked for.
        served: the files that were sent.
    """

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self.faults: defaultdict[str, list[str]] = defaultdict(list)
        self.gated: dict[str, int] = {}
        self.moved: dict[str, str] = {}
        self.ranges: list[str] = []
        self.served: list[str] = []

    def add(self, name: str, **files: str | bytes) -> str:
        """Add a version of a data set and return its commit; ``train_jsonl="…"`` is its file ``train.jsonl``."""
        contents = {
            file.replace("_", "."): dedent(text).encode() if isinstance(text, str) else text
            for file, text in files.items()
        }
        commit = hashlib.sha1(repr((name, contents)).encode()).hexdigest()
        (self.folder / name / commit).mkdir(parents=True)
        for file, raw in contents.items():
            (self.folder / name / commit / file).write_bytes(raw)
        (self.folder / name / "HEAD").write_text(commit)
        return commit

    def add_folder(self, name: str, folder: Path) -> str:
        """Add a version of a model, the files of a folder, and return its commit."""
        contents = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        commit = hashlib.sha1(repr((name, contents)).encode()).hexdigest()
        shutil.copytree(folder, self.folder / name / commit)
        (self.folder / name / "HEAD").write_text(commit)
        return commit


class HubClient:
    """A program with the real client, which answers calls; nothing but its answers may be on its standard output.

    It is a process of its own, since the client reads the environment when it is imported.
    """

    script: str  # reads calls, [function, argument], and writes answers, [class of the error or "", answer]

    def __init__(self, hub: HubServer, **environment: str) -> None:
        own = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
        self._process = subprocess.Popen(
            [sys.executable, "-c", self.script],
            env=own | hub.environment | environment,
            cwd=hub.folder.parent,  # not that of the data sets: their names would be taken for local folders
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, call: str, argument: object) -> tuple[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([call, argument]) + "\n")
        self._process.stdin.flush()
        kind, answer = json.loads(self._process.stdout.readline())
        return kind, answer

    def call(self, call: str, argument: object) -> Any:
        kind, answer = self.ask(call, argument)
        assert not kind, answer
        return answer

    def close(self) -> None:
        self._process.communicate()


@contextmanager
def serve_hub(folder: Path, cache: Path) -> Iterator[HubServer]:
    """Serve the data sets and models in ``folder``."""
    server = HubServer(folder, {})

    class Handler(HubHandler):
        hub = server

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{http.server_port}"
        # It is also the proxy on the way to all other hosts, and answers 404 to what is asked of them.
        server.environment |= {"HF_ENDPOINT": address, "HF_HOME": str(cache), "http_proxy": address}
        server.environment |= {"https_proxy": address}
        try:
            yield server
        finally:
            http.shutdown()


class HubHandler(BaseHTTPRequestHandler):
    hub: HubServer

    def do_GET(self) -> None:
        path = urlsplit(self.path).path.strip("/")
        match [unquote(part) for part in path.split("/")]:
            case ["api", "models", owner, name, *_] | [owner, name, "resolve", *_] if (
                f"{owner}/{name}" in self.hub.moved
            ):
                place = path.replace(f"{owner}/{name}", self.hub.moved[f"{owner}/{name}"])
                self._send(307, b"", {"Location": f"/{place}"})
            case ["api", "datasets" | "models", owner, name, *rest] if (self.hub.folder / owner / name).is_dir():
                self._send_api(f"{owner}/{name}", rest)
            case ["datasets", owner, name, "resolve", revision, *inside] if (self.hub.folder / owner / name).is_dir():
                self._send_file(f"{owner}/{name}", revision, "/".join(inside))
            case ["elsewhere", owner, name, commit, *inside]:
                self._send(200, self.hub.folder.joinpath(owner, name, commit, *inside).read_bytes(), {}, inside[-1])
            case [owner, name, "resolve", revision, *inside] if (self.hub.folder / owner / name).is_dir():
                self._send_file(f"{owner}/{name}", revision, "/".join(inside), is_model=True)
            case ["api" | "datasets", *_] | [_, _, "resolve", *_]:
                self._send_error(401, "RepoNotFound")  # as the hub does, so that nobody learns which names are private
            case _:
                self._send_error(404, "Unknown")

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _commit(self, name: str, revision: str) -> str | None:
        commit = (self.hub.folder / name / "HEAD").read_text() if revision == "main" else revision
        return commit if (self.hub.folder / name / commit).is_dir() else None

    def _send_api(self, name: str, rest: list[str]) -> None:
        revision, inside = (rest[1], rest[2:]) if len(rest) > 1 else ("main", [])
        commit = self._commit(name, revision)
        if commit is None:
            self._send_error(404, "RevisionNotFound")
            return
        folder = self.hub.folder / name / commit
        match rest[:1]:
            case [] | ["revision"]:
                siblings = [{"rfilename": path.name, "size": path.stat().st_size} for path in sorted(folder.iterdir())]
                self._send(200, json.dumps({"id": name, "sha": commit, "siblings": siblings}).encode(), {})
            case ["tree"] if folder.joinpath(*inside).is_dir():
                entries = [_entry(folder, commit, path) for path in sorted(folder.joinpath(*inside).iterdir())]
                self._send(200, json.dumps(entries).encode(), {})
            case _:
                self._send_error(404, "EntryNotFound")

    def _send_file(self, name: str, revision: str, inside: str, *, is_model: bool = False) -> None:
        commit = self._commit(name, revision)
        path = self.hub.folder / name / (commit or "") / inside
        if name in self.hub.gated:
            self._send_error(self.hub.gated[name], "GatedRepo")
        elif commit is None:
            self._send_error(404, "RevisionNotFound")
        elif path.is_file() and is_model and _is_large(path):
            another_host = self.hub.environment["HF_ENDPOINT"].replace("127.0.0.1", "localhost")
            place = f"{another_host}/elsewhere/{name}/{commit}/{inside}"
            self._send(302, b"", _checksum(path) | {"X-Repo-Commit": commit, "Location": place})
        elif path.is_file():
            self._send(200, path.read_bytes(), _checksum(path) | {"X-Repo-Commit": commit}, path.name)
        else:
            self._send_error(404, "EntryNotFound", commit)

    def _send_error(self, status: int, what: str, commit: str = "") -> None:
        self._send(status, b"", {"X-Error-Code": what, "X-Repo-Commit": commit})

    def _send(self, status: int, body: bytes, headers: dict[str, str], file: str = "") -> None:
        faults = self.hub.faults[file]
        fault = faults.pop(0) if faults and self.command == "GET" else ""
        if fault == "flip":
            middle = len(body) // 2
            body = body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :]
        if fault.isdecimal():
            status, body = int(fault), b""
            headers = {"Retry-After": "0"}
        if file and self.command == "GET":
            self.hub.served.append(file)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked and file and status == 200:
            self.hub.ranges.append(asked[0])
            start, end = int(asked[1]), min(int(asked[2] or len(body)), len(body) - 1)
            headers = headers | {"Content-Range": f"bytes {start}-{end}/{len(body)}"}
            status, body = 206, body[start : end + 1]
        self.send_response(status)
        self.send_header("X-HF-Warning", "account; Please set a HF_TOKEN.")  # which the client logs
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if fault == "cut" else body)
        self.close_connection = True


def _is_large(path: Path) -> bool:
    """Tell whether a file is kept outside git."""
    return path.suffix in (".parquet", ".safetensors", ".bin", ".spm", ".model")


def _checksum(path: Path) -> dict[str, str]:
    """Return the header with the checksum of a file: git's, or that of a large file, which is kept outside git."""
    raw = path.read_bytes()
    if _is_large(path):
        return {"X-Linked-Etag": f'"{hashlib.sha256(raw).hexdigest()}"', "X-Linked-Size": str(len(raw))}
    of_git = hashlib.sha1(b"blob %d\0" % len(raw) + raw).hexdigest()
    return {"ETag": f'"{of_git}"'}


def _entry(folder: Path, commit: str, path: Path) -> dict[str, object]:
    entry = {"path": path.relative_to(folder).as_posix(), "oid": commit}
    if path.is_dir():
        return {"type": "directory", **entry}
    return {"type": "file", "size": path.stat().st_size, **entry}
