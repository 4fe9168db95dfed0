"""A server on loopback that speaks as much of the Hugging Face hub's API as loading a data set needs.

It serves a folder: version C of the data set ``owner/name`` is the folder ``owner/name/C`` in it, and the file
``owner/name/HEAD`` names the newest.
"""

import hashlib
import json
import re
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from textwrap import dedent
from urllib.parse import unquote, urlsplit


class HubServer:
    """The data sets, and what goes wrong with them.

    Attributes:
        folder: with the data sets.
        environment: in which a client uses this hub and no other server.
        faults: what happens at the next requests for a file, by its name: ``cut`` closes the connection in the middle
            of it, ``flip`` changes a bit there, and a number is the status of an error.
        gated: the data sets that nobody may read.
        ranges: the ranges of bytes that were asked for.
    """

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self.faults: defaultdict[str, list[str]] = defaultdict(list)
        self.gated: set[str] = set()
        self.ranges: list[str] = []

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


@contextmanager
def serve_hub(folder: Path, cache: Path) -> Iterator[HubServer]:
    """Serve the data sets in ``folder``."""
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
        match [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]:
            case ["api", "datasets", owner, name, *rest] if (self.hub.folder / owner / name).is_dir():
                self._send_api(f"{owner}/{name}", rest)
            case ["datasets", owner, name, "resolve", revision, *inside] if (self.hub.folder / owner / name).is_dir():
                self._send_file(f"{owner}/{name}", revision, "/".join(inside))
            case ["api" | "datasets", *_]:
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
                self._send(200, json.dumps({"id": name, "sha": commit, "siblings": []}).encode(), {})
            case ["tree"] if folder.joinpath(*inside).is_dir():
                entries = [_entry(folder, commit, path) for path in sorted(folder.joinpath(*inside).iterdir())]
                self._send(200, json.dumps(entries).encode(), {})
            case _:
                self._send_error(404, "EntryNotFound")

    def _send_file(self, name: str, revision: str, inside: str) -> None:
        commit = self._commit(name, revision)
        path = self.hub.folder / name / (commit or "") / inside
        if name in self.hub.gated:
            self._send_error(403, "GatedRepo")
        elif commit is None:
            self._send_error(404, "RevisionNotFound")
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
            headers = {"Retry-After": "1"}
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked and file and status == 200:
            self.hub.ranges.append(asked[0])
            start, end = int(asked[1]), min(int(asked[2] or len(body)), len(body) - 1)
            headers = headers | {"Content-Range": f"bytes {start}-{end}/{len(body)}"}
            status, body = 206, body[start : end + 1]
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if fault == "cut" else body)
        self.close_connection = True


def _checksum(path: Path) -> dict[str, str]:
    """Return the header with the checksum of a file: git's, or that of a large file, which is kept outside git."""
    raw = path.read_bytes()
    if path.suffix == ".parquet":
        return {"X-Linked-Etag": f'"{hashlib.sha256(raw).hexdigest()}"', "X-Linked-Size": str(len(raw))}
    of_git = hashlib.sha1(b"blob %d\0" % len(raw) + raw).hexdigest()
    return {"ETag": f'"{of_git}"'}


def _entry(folder: Path, commit: str, path: Path) -> dict[str, object]:
    entry = {"path": path.relative_to(folder).as_posix(), "oid": commit}
    if path.is_dir():
        return {"type": "directory", **entry}
    return {"type": "file", "size": path.stat().st_size, **entry}
