"""A server on loopback that speaks as much of the Hugging Face hub's API as loading a data set needs.

It serves a folder: the data set ``owner/name`` is the folder ``owner/name`` in it.
"""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def serve_hub(folder: Path, cache: Path) -> Iterator[dict[str, str]]:
    """Serve the data sets in ``folder``; yield the environment in which a client uses this hub and no other server."""

    class Handler(HubHandler):
        root = folder

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        try:
            # It is also the proxy on the way to all other hosts, and answers 404 to what is asked of them.
            yield {"HF_ENDPOINT": address, "HF_HOME": str(cache), "http_proxy": address, "https_proxy": address}
        finally:
            server.shutdown()


class HubHandler(BaseHTTPRequestHandler):
    root: Path

    def do_GET(self) -> None:
        match [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]:
            case ["api", "datasets", owner, name, *rest] if (self.root / owner / name).is_dir():
                self._send_api(self.root / owner / name, rest)
            case ["datasets", owner, name, "resolve", _, *inside] if (self.root / owner / name).is_dir():
                self._send_file(self.root.joinpath(owner, name, *inside))
            case ["api" | "datasets", *_]:
                self._send_missing("RepoNotFound")
            case _:
                self._send_missing("Unknown")

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _send_api(self, dataset: Path, rest: list[str]) -> None:
        match rest:
            case [] | ["revision", _]:
                info = {"id": dataset.relative_to(self.root).as_posix(), "sha": COMMIT, "siblings": []}
                self._send(200, json.dumps(info).encode(), {})
            case ["tree", _, *inside] if dataset.joinpath(*inside).is_dir():
                entries = [_entry(dataset, path) for path in sorted(dataset.joinpath(*inside).iterdir())]
                self._send(200, json.dumps(entries).encode(), {})
            case _:
                self._send_missing("EntryNotFound")

    def _send_file(self, path: Path) -> None:
        if path.is_file():
            self._send(200, path.read_bytes(), {"ETag": f'"{_digest(path)}"', "X-Repo-Commit": COMMIT})
        else:
            self._send_missing("EntryNotFound")

    def _send_missing(self, what: str) -> None:
        self._send(404, b"", {"X-Error-Code": what, "X-Repo-Commit": COMMIT})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _entry(dataset: Path, path: Path) -> dict[str, object]:
    entry = {"path": path.relative_to(dataset).as_posix(), "oid": COMMIT}
    if path.is_dir():
        return {"type": "directory", **entry}
    return {"type": "file", "size": path.stat().st_size, **entry}


def _digest(path: Path) -> str:
    return hashlib.sha1(path.read_bytes()).hexdigest()
