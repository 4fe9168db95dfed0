"""What a server remembers: glossaries, and how many characters each key has had translated. It is a SQLite file."""

import sqlite3
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from mtformer.support.errors import UserError
from mtformer.text.glossary import Glossary

_SCHEMA = """
CREATE TABLE IF NOT EXISTS glossaries (
    id TEXT PRIMARY KEY, key TEXT NOT NULL, name TEXT NOT NULL, src_lang TEXT NOT NULL, tgt_lang TEXT NOT NULL,
    entries TEXT NOT NULL, n_entries INTEGER NOT NULL, created TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS usage (
    key TEXT NOT NULL, month TEXT NOT NULL, characters INTEGER NOT NULL, PRIMARY KEY (key, month)
);
"""
_COLUMNS = "id, name, src_lang, tgt_lang, entries, n_entries, created"
_BUSY_SECONDS = 10  # to wait for another process that writes


@dataclass(frozen=True)
class StoredGlossary:
    """A glossary.

    Attributes:
        id: chosen by the server.
        name: chosen by its owner.
        src_lang: the language of its terms, as its owner calls it.
        tgt_lang: that of their translations.
        entries: on each line a term, a tab and its translation.
        n_entries: how many there are.
        created: when, in ISO 8601.
    """

    id: str
    name: str
    src_lang: str
    tgt_lang: str
    entries: str
    n_entries: int
    created: str

    @property
    def glossary(self) -> Glossary:
        """The terms."""
        return Glossary(tuple(line.split("\t")) for line in self.entries.splitlines())  # type: ignore[misc]


class Store:
    """A database of glossaries and usage. Threads may share it, and processes the file."""

    def __init__(self, path: Path | None = None) -> None:
        """Open a file, which is made if there is none; without one, nothing outlives the process.

        Raises:
            UserError: it cannot be opened, or is no such database.
        """
        self._lock = Lock()
        self._uncounted: Counter[str] = Counter()  # characters of each key that are not in the database yet
        try:
            self._connection = sqlite3.connect(
                ":memory:" if path is None else path, check_same_thread=False, timeout=_BUSY_SECONDS
            )
            with self._writing() as cursor:
                cursor.execute("PRAGMA journal_mode = WAL")
                cursor.execute("PRAGMA synchronous = NORMAL")
                for statement in filter(str.strip, _SCHEMA.split(";")):
                    cursor.execute(statement)
        except sqlite3.Error as error:
            raise UserError(f"cannot open {path}, the database of the server: {error}") from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Cursor]:
        with self._lock, self._connection, closing(self._connection.cursor()) as cursor:
            yield cursor

    def close(self) -> None:
        """Write what is left, and close the file."""
        self.flush()
        self._connection.close()

    def add_glossary(
        self, key: str, name: str, languages: tuple[str, str], terms: Sequence[tuple[str, str]]
    ) -> StoredGlossary:
        """Store a glossary.

        Raises:
            UserError: a term or its translation is empty, or a term has two translations.
        """
        glossary = Glossary(terms)
        entries = "".join(f"{term.src}\t{term.tgt}\n" for term in glossary.terms)
        created = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        stored = StoredGlossary(str(uuid.uuid4()), name, *languages, entries, len(glossary), created)
        with self._writing() as cursor:
            cursor.execute(
                f"INSERT INTO glossaries (key, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (key, *vars(stored).values()),
            )
        return stored

    def glossaries(self, key: str) -> list[StoredGlossary]:
        """Return those of a key, the oldest first."""
        return self._select("key = ? ORDER BY created", key)

    def glossary(self, key: str, id: str) -> StoredGlossary | None:
        """Return one of a key; None if it has no such glossary."""
        return next(iter(self._select("key = ? AND id = ?", key, id)), None)

    def delete_glossary(self, key: str, id: str) -> bool:
        """Delete a glossary of a key, and return whether there was one."""
        with self._writing() as cursor:
            return cursor.execute("DELETE FROM glossaries WHERE key = ? AND id = ?", (key, id)).rowcount > 0

    def _select(self, condition: str, *values: str) -> list[StoredGlossary]:
        with self._writing() as cursor:
            rows = cursor.execute(f"SELECT {_COLUMNS} FROM glossaries WHERE {condition}", values)
            return [StoredGlossary(*row) for row in rows]

    def count(self, key: str, n_characters: int) -> None:
        """Add to what a key has used. It is written by the next :meth:`flush`."""
        with self._lock:
            self._uncounted[key] += n_characters

    def flush(self) -> None:
        """Write the usage."""
        with self._writing() as cursor:
            rows = [(key, _month(), n) for key, n in self._uncounted.items()]
            cursor.executemany(
                "INSERT INTO usage VALUES (?, ?, ?) "
                "ON CONFLICT (key, month) DO UPDATE SET characters = characters + excluded.characters",
                rows,
            )
            self._uncounted.clear()

    def used(self, key: str) -> int:
        """Return how many characters a key has used in this month (UTC)."""
        with self._writing() as cursor:
            row = cursor.execute("SELECT characters FROM usage WHERE key = ? AND month = ?", (key, _month())).fetchone()
            return (row[0] if row else 0) + self._uncounted[key]


def _month() -> str:
    return datetime.now(UTC).strftime("%Y-%m")
