"""The database of a server: a SQLite file, or PostgreSQL, which servers on several machines can share; its tables."""

import asyncio
import logging
import os
import sqlite3
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import QueuePool
from sqlalchemy.types import TypeDecorator

from mtformer.serve.errors import ServiceError
from mtformer.support.errors import UserError
from mtformer.support.packages import require_package
from mtformer.text.lines import without_surrogates

log = logging.getLogger(__name__)
# When it closes a connection that the database has closed already, it would log a traceback.
logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)

_SECONDS = 5  # to wait for the database: so long may an answer of PostgreSQL take, or a lock of SQLite
_CONNECTIONS = 4  # to PostgreSQL; SQLite writes one transaction at a time anyway
_LOCKS = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "SELECT pg_advisory_xact_lock(7302417)"}  # while tables are made
_VERIFIED = "verify-full"
_TLS = {"disable": False, "prefer": None, "require": True, _VERIFIED: None}  # in pg8000's words

T = TypeVar("T")


def storable(text: str) -> str:
    """Replace the characters that PostgreSQL does not store, U+0000 and surrogates, by U+FFFD."""
    return without_surrogates(text).replace("\0", "\ufffd")


class SafeText(TypeDecorator[str]):
    """Text of requests, which becomes :func:`storable` in every statement."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """Replace characters that cannot be stored."""
        return None if value is None else storable(value)


def _texts(*names: str, is_key: bool = False) -> "list[sa.Column[str]]":
    return [sa.Column(name, SafeText, primary_key=is_key, nullable=False) for name in names]


_TABLES = sa.MetaData()
GLOSSARIES = sa.Table(
    "glossaries",
    _TABLES,
    *_texts("id", is_key=True),
    *_texts("key", "name", "src_lang", "tgt_lang", "entries"),
    sa.Column("n_entries", sa.Integer, nullable=False),
    *_texts("created"),
)
USAGE = sa.Table(
    "usage", _TABLES, *_texts("key", "month", is_key=True), sa.Column("characters", sa.BigInteger, nullable=False)
)
SERVERS = sa.Table("servers", _TABLES, *_texts("id", is_key=True), sa.Column("beat", sa.BigInteger, nullable=False))
DOCUMENTS = sa.Table(
    "documents",
    _TABLES,
    *_texts("id", is_key=True),
    *_texts("server", "owner", "name", "media_type", "error"),
    sa.Column("n_characters", sa.Integer, nullable=False),
    sa.Column("n_bytes", sa.Integer, nullable=False),
    sa.Column("content", sa.LargeBinary),
)


class Database:
    """A database. Threads may share it; so may processes, unless it is in memory."""

    def __init__(self, place: str | None = None) -> None:
        """Open a database.

        Args:
            place: a SQLite file, which is created if missing, or the URL of a PostgreSQL database; None for a
                database in memory, which ends with the process.

        Raises:
            UserError: it cannot be opened, or missing tables cannot be created. The message contains no password.
        """
        if place == "":  # of a variable that is not set
            raise UserError("--database is empty: name a file or a URL, or leave it out")
        settings: dict[str, Any] = {"poolclass": QueuePool, "max_overflow": 0, "pool_timeout": _SECONDS}
        if place is not None and "://" in place:
            url, connect_args = _postgresql(place)
            self._name = f"{url.database or url.username} at {url.host or 'localhost'}:{url.port or 5432}"
            n_connections = _CONNECTIONS
            settings["pool_pre_ping"] = True  # the database may have been restarted
        else:
            url = URL.create("sqlite", database=place)
            connect_args = {"timeout": _SECONDS, "check_same_thread": False}
            self._name = place or "in memory"
            n_connections = 1
        try:
            if place is not None and "://" not in place:
                Path(place).touch(mode=0o600)  # texts may wait in it
            self._engine = sa.create_engine(url, pool_size=n_connections, connect_args=connect_args, **settings)
            if url.drivername == "sqlite":
                sa.event.listen(self._engine, "connect", _prepare_sqlite)
            with self._engine.begin() as connection:
                connection.exec_driver_sql(_LOCKS[self._engine.dialect.name])  # another server may start now, too
                _TABLES.create_all(connection)
        except (SQLAlchemyError, OSError, TypeError) as error:  # TypeError: the driver does not know a setting
            raise UserError(f"cannot open {self._name}, the database of the server: {_reason(error)}") from None
        self._threads = ThreadPoolExecutor(n_connections, "database")

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """Run the block in a transaction.

        Raises:
            ServiceError: the database cannot be used.
        """
        try:
            with self._engine.begin() as connection:
                yield connection
        except (SQLAlchemyError, OSError) as error:
            log.error("the database %s cannot be used: %s", self._name, _reason(error))
            raise _unusable() from None

    def insert(self, table: sa.Table) -> "sqlite.Insert | postgresql.Insert":
        """Return an INSERT that supports ON CONFLICT, which both databases write in the same way."""
        return postgresql.insert(table) if self._engine.dialect.name == "postgresql" else sqlite.insert(table)

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function that uses the database in a thread, so that a slow database delays no other request.

        Raises:
            ServiceError: the database cannot be used, or does not answer.
        """
        until = time.monotonic() + _SECONDS

        def call() -> T:
            if time.monotonic() > until:  # others have waited for the database until now
                raise _unusable()
            return function(*args)

        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def close(self) -> None:
        """Close all connections."""
        self._threads.shutdown()
        self._engine.dispose()


def _unusable() -> ServiceError:
    message = "the database of this server does not answer; try again later"
    return ServiceError(503, message, retry_after=_SECONDS)


def _prepare_sqlite(connection: Any, record: object) -> None:
    """Let processes read while one writes, and survive a crash of any of them."""
    until = time.monotonic() + _SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").close()
            break
        except sqlite3.OperationalError:  # SQLite does not wait while another process changes the mode
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
    connection.execute("PRAGMA synchronous = NORMAL").close()


def _postgresql(text: str) -> tuple[URL, dict[str, Any]]:
    """Return the URL of a PostgreSQL database, and settings of its driver.

    Raises:
        UserError: the URL is invalid, or pg8000 is missing.
    """
    try:
        url = sa.make_url(text)
    except (ArgumentError, ValueError):
        url = None
    if url is None or "@" in (url.host or ""):
        raise UserError(
            "--database: the URL cannot be read; write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %40 for @, "
            "%3A for : and %2F for / in the password"
        )
    if url.drivername not in ("postgresql", "postgres", "postgresql+pg8000"):
        raise UserError(f"--database takes a SQLite file or a URL with postgresql://, not with {url.drivername}://")
    require_package("pg8000", "--database", "postgresql")
    url = url.set(drivername="postgresql+pg8000")
    if url.password is None:
        url = url.set(password=os.environ.get("PGPASSWORD"))
    if url.username is None:
        raise UserError("--database: the URL names no user: write postgresql://USER@HOST/DATABASE")
    mode = str(url.query.get("sslmode", "prefer"))
    if mode not in _TLS:
        raise UserError(f"--database: sslmode is {', '.join(_TLS)}, not {mode}")
    context = ssl.create_default_context() if mode == _VERIFIED else _TLS[mode]
    return url.difference_update_query(["sslmode"]), {"timeout": _SECONDS, "ssl_context": context}


def _reason(error: BaseException) -> str:
    """Describe an error in one line, in the system's or the database's words, without statements and values."""
    cause: BaseException = getattr(error, "orig", None) or error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    if isinstance(cause, OSError):
        return cause.strerror or str(cause)
    first = cause.args[0] if cause.args else ""
    text = first.get("M", "") if isinstance(first, dict) else str(cause)  # pg8000 has the fields of the message
    text = text.replace("connect() got an unexpected keyword argument", "the driver has no option")
    return next(iter(text.splitlines()), type(cause).__name__)
