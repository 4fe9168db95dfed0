"""A real PostgreSQL server for tests, from the packages of the system."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from socket import create_server
from typing import Any
from urllib.parse import quote

import pytest

PASSWORD = "p@ss:w/rd %"


def _programs() -> Path | None:
    """Return the folder of the server's programs: Debian's is not on the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else None if on_path is None else Path(on_path).parent


class PostgreSQL:
    """A server with the user mtformer. Where the tests run as root, which it refuses, it runs as nobody."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._data = programs, folder / "data"
        self._user: dict[str, Any] = {}
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            self._user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
            shutil.chown(folder, "nobody")
        with create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        (folder / "password").write_text(PASSWORD)
        options = ("--username=mtformer", f"--pwfile={folder / 'password'}", "--auth=scram-sha-256", "--no-sync")
        self._run("initdb", "-D", self._data, *options, "--encoding=UTF8", "--locale=C")
        self._numbers = count()

    def _run(self, program: str, *args: str | Path) -> None:
        command = [self._programs / program, *args]
        done = subprocess.run(command, cwd=self._data.parent, capture_output=True, text=True, **self._user)
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self._run("pg_ctl", "start", "-w", "-D", self._data, "-o", options, "-l", self._data / "log")

    def stop(self) -> None:
        """Stop it as a crash would."""
        self._run("pg_ctl", "stop", "-m", "immediate", "-D", self._data)

    def url(self, database: str = "postgres", password: str = PASSWORD) -> str:
        """Return the URL of a database."""
        return f"postgresql://mtformer:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """Make a database, and return its URL."""
        name = f"test{next(self._numbers)}"
        environment = os.environ | {"PGPASSWORD": PASSWORD}
        command = [str(self._programs / "createdb"), "-h", "127.0.0.1", "-p", str(self.port), "-U", "mtformer", name]
        subprocess.run(command, env=environment, check=True)
        return self.url(name)


@contextmanager
def postgresql() -> Iterator[PostgreSQL]:
    """Yield a server that runs; skip the test where PostgreSQL is not installed."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is missing (Debian: apt install postgresql)")
    with tempfile.TemporaryDirectory() as folder:
        server = PostgreSQL(programs, Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()
