"""Documents that wait to be fetched, in the database, so that any server that shares it can return them.

Each server increments a counter in the database (its beat). Other servers count how often they have seen it unchanged,
and so detect that a server has ended without comparing clocks.
"""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from mtformer.serve.database import DOCUMENTS, SERVERS, Database
from mtformer.serve.errors import ServiceError

_UNFINISHED = DOCUMENTS.c.content.is_(None) & (DOCUMENTS.c.error == "")

BEAT_SECONDS = 5  # between two beats of a server
_MOST_BYTES = 128 * 2**20  # of the translated documents of a server that wait
_MOST_PENDING = 50  # documents that a server translates at a time, each of which it has in memory
_RETRY_AFTER = 5  # seconds, when it has so many
_SECONDS = 3_600  # that a translated document waits
_MOST_SILENT = 60 // BEAT_SECONDS  # beats without one of another server, after which that translates no more
_FORGOTTEN = _SECONDS // BEAT_SECONDS  # beats after which its documents are deleted
ENDED = "the server that was translating this document has ended: send it again"


@dataclass(frozen=True)
class Result:
    """A document.

    Attributes:
        name: the name of its file.
        media_type: its media type.
        n_characters: the length of its text.
        error: the reason why it cannot be translated.
        is_done: whether it is translated.
    """

    name: str
    media_type: str
    n_characters: int = 0
    error: str = ""
    is_done: bool = False


@dataclass(frozen=True)
class Outcome:
    """The outcome of a translation of a document.

    Attributes:
        content: its bytes; None as long as it is not translated.
        n_characters: the length of its text.
        error: the reason why it cannot be translated.
    """

    content: bytes | None = None
    n_characters: int = 0
    error: str = ""


class Results:
    """The documents that wait to be fetched, each under an id that nobody can guess. Threads may share it.

    All that uses the database raises a ServiceError if that does not answer.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._server = secrets.token_hex(16)
        self._made: dict[str, float] = {}  # since when each document of this server waits, by the monotonic clock
        self._unwritten: dict[str, Outcome] = {}
        self._others: dict[str, tuple[int, int]] = {}  # other servers' last beats, and our beats since then
        self._tasks: set[asyncio.Task[None]] = set()
        self.beat()

    def add(self, name: str, media_type: str, outcome: Outcome, owner: str = "") -> str:
        """Keep a document for a while, and return its id.

        Args:
            name: the name of its file.
            media_type: its media type.
            outcome: the outcome; empty if it is still to be translated.
            owner: the name of the key of the sender; the owners of the largest documents make room for others.

        Raises:
            ServiceError: it is still to be translated, and too many others are.
        """
        if outcome == Outcome() and len(self._tasks) >= _MOST_PENDING:
            raise ServiceError(
                503, "too many documents wait to be translated; try again later", retry_after=_RETRY_AFTER
            )
        id = secrets.token_hex(16)
        values = {"id": id, "server": self._server, "owner": owner, "name": name, "media_type": media_type}
        with self._database.begin() as connection:
            connection.execute(DOCUMENTS.insert().values(**values, **_written(outcome)))
        self._make_room()
        return id

    def finish(self, id: str, outcome: Outcome) -> None:
        """Store the outcome of a document: at the next :meth:`beat`, if the database does not answer now."""
        self._unwritten[id] = outcome
        self._write()

    def find(self, id: str) -> Result | None:
        """Return a document; None if it is no longer stored."""
        columns = [DOCUMENTS.c[name] for name in ("name", "media_type", "n_characters", "error")]
        query = select(*columns, DOCUMENTS.c.content.is_not(None).label("is_done")).where(DOCUMENTS.c.id == id)
        with self._database.begin() as connection:
            row = connection.execute(query).mappings().first()
            return None if row is None else Result(**row)

    def content(self, id: str) -> bytes | None:
        """Return the bytes of a document; None if it is not translated, or no longer stored."""
        with self._database.begin() as connection:
            return connection.execute(select(DOCUMENTS.c.content).where(DOCUMENTS.c.id == id)).scalar()

    def remove(self, *ids: str) -> None:
        """Delete documents."""
        with self._database.begin() as connection:
            connection.execute(DOCUMENTS.delete().where(DOCUMENTS.c.id.in_(ids)))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task in the background."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)  # the loop has weak references only
        task.add_done_callback(self._tasks.discard)

    async def drain(self, seconds: float) -> None:
        """Wait for background tasks; cancel those that take too long."""
        tasks = list(self._tasks)
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def beat(self) -> None:
        """Signal that this server is running, write pending outcomes, and clean up."""
        first = secrets.randbits(32)  # none that others remember, should they have deleted what they had of this server
        insertion = self._database.insert(SERVERS).values(id=self._server, beat=first)
        beat = SERVERS.c.beat + 1
        with self._database.begin() as connection:
            connection.execute(insertion.on_conflict_do_update(index_elements=["id"], set_={"beat": beat}))
            beats = connection.execute(select(SERVERS.c.id, SERVERS.c.beat).where(SERVERS.c.id != self._server))
            self._others = {id: (beat, self._silence(id, beat)) for id, beat in beats}
        self._write()
        self._make_room()
        self._clean_up()

    def _silence(self, server: str, beat: int) -> int:
        last, n = self._others.get(server, (None, 0))
        return n + 1 if beat == last else 0

    def _clean_up(self) -> None:
        """Mark the documents of ended servers as failed and, later, delete them."""
        silent = [id for id, (_, n) in self._others.items() if n >= _MOST_SILENT]
        forgotten = [id for id in silent if self._others[id][1] >= _FORGOTTEN]
        if silent:
            of_them = DOCUMENTS.c.server.in_(silent)
            with self._database.begin() as connection:
                connection.execute(DOCUMENTS.update().where(of_them, _UNFINISHED).values(error=ENDED))
                connection.execute(DOCUMENTS.delete().where(DOCUMENTS.c.server.in_(forgotten)))
                connection.execute(SERVERS.delete().where(SERVERS.c.id.in_(forgotten)))

    def _write(self) -> None:
        for id, outcome in list(self._unwritten.items()):
            with self._database.begin() as connection:
                connection.execute(DOCUMENTS.update().where(DOCUMENTS.c.id == id).values(**_written(outcome)))
            self._unwritten.pop(id, None)

    def _make_room(self) -> None:
        """Delete expired documents of this server, and the oldest ones of the owner with the most data."""
        columns = [DOCUMENTS.c[name] for name in ("id", "owner", "n_bytes")]
        query = select(*columns).where(DOCUMENTS.c.server == self._server, ~_UNFINISHED)
        with self._database.begin() as connection:
            rows = {row.id: row for row in connection.execute(query)}
        now, sizes = time.monotonic(), Counter[str]()
        self._made = made = {id: self._made.get(id, now) for id in rows}
        removed = [id for id in rows if made[id] <= now - _SECONDS]
        kept = sorted((rows[id] for id in made.keys() - removed), key=lambda row: made[row.id])
        for row in kept:
            sizes[row.owner] += row.n_bytes
        while sizes.total() > _MOST_BYTES:
            [(owner, _)] = sizes.most_common(1)
            oldest = next(row for row in kept if row.owner == owner)
            kept.remove(oldest)
            removed.append(oldest.id)
            sizes[owner] -= oldest.n_bytes
        if removed:
            self.remove(*removed)


def _written(outcome: Outcome) -> dict[str, Any]:
    """Return the columns that an outcome fills."""
    return {**vars(outcome), "n_bytes": len(outcome.content or b"")}
