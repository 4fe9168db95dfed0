"""The stored state of a server: glossaries, and the characters translated for each key."""

import time
import uuid
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock

from sqlalchemy import ColumnElement, Insert, func, literal, select

from mtformer.serve.database import GLOSSARIES, USAGE, Database, storable
from mtformer.support.errors import UserError
from mtformer.text.glossary import Glossary

_MOST_GLOSSARIES = 100  # of a key


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
    def terms(self) -> list[tuple[str, str]]:
        """The terms and their translations."""
        return [(src, tgt) for src, _, tgt in (line.partition("\t") for line in self.entries.splitlines())]


class Store:
    """Glossaries and usage. Threads may share it, and servers the database.

    All that uses the database raises a ServiceError if that does not answer.

    Attributes:
        database: where they are.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._lock = Lock()
        self._uncounted: Counter[tuple[str, str]] = Counter()  # characters that the database lacks, by key and month

    def add_glossary(self, key: str, name: str, languages: tuple[str, str], glossary: Glossary) -> StoredGlossary:
        """Store a glossary.

        Raises:
            UserError: the key has too many.
        """
        entries = "".join(f"{term.src}\t{term.tgt}\n" for term in glossary.terms)
        created = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        stored = StoredGlossary(
            str(uuid.uuid4()), storable(name), *languages, storable(entries), len(glossary), created
        )
        count = select(func.count()).where(GLOSSARIES.c.key == key)
        with self.database.begin() as connection:
            if connection.execute(count).scalar_one() >= _MOST_GLOSSARIES:
                raise UserError(f"there are {_MOST_GLOSSARIES} glossaries already: delete one that is not needed")
            connection.execute(GLOSSARIES.insert().values(key=key, **vars(stored)))
        return stored

    def glossaries(self, key: str) -> list[StoredGlossary]:
        """Return the glossaries of a key without their entries, the oldest first."""
        return self._select(literal("").label("entries"), GLOSSARIES.c.key == key)

    def glossary(self, key: str, id: str) -> StoredGlossary | None:
        """Return a glossary of a key; None if there is none with this id."""
        return next(iter(self._select(GLOSSARIES.c.entries, GLOSSARIES.c.key == key, GLOSSARIES.c.id == id)), None)

    def delete_glossary(self, key: str, id: str) -> bool:
        """Delete a glossary of a key, and return whether there was one."""
        condition = (GLOSSARIES.c.key == key) & (GLOSSARIES.c.id == id)
        with self.database.begin() as connection:
            return connection.execute(GLOSSARIES.delete().where(condition)).rowcount > 0

    def _select(self, entries: ColumnElement[str], *conditions: ColumnElement[bool]) -> list[StoredGlossary]:
        columns = [each for each in GLOSSARIES.c if each.name not in ("key", "entries")]
        query = select(*columns, entries).where(*conditions).order_by(GLOSSARIES.c.created)
        with self.database.begin() as connection:
            return [StoredGlossary(**row) for row in connection.execute(query).mappings()]

    def take(self, key: str, n_characters: int, quota: int) -> str | None:
        """Reserve characters for a key within its quota, atomically across servers.

        Args:
            key: the name of the key.
            n_characters: how many it wants.
            quota: how many it may have in a calendar month (UTC).

        Returns:
            The month, in which :meth:`count` can give them back; None if they would exceed the quota.
        """
        month = _month()
        if self._uncounted[key, month]:
            self.flush()
        if n_characters > quota:
            return None
        row = {"key": key, "month": month, "characters": n_characters}
        with self.database.begin() as connection:
            done = connection.execute(self._adding(quota), row, execution_options={"preserve_rowcount": True})
            return month if done.rowcount > 0 else None

    def _adding(self, quota: int | None = None) -> Insert:
        """Return the statement that adds to the usage of keys in a month, unless that would exceed a quota."""
        insertion = self.database.insert(USAGE)
        total = USAGE.c.characters + insertion.excluded.characters
        is_within = None if quota is None else total <= quota
        return insertion.on_conflict_do_update(
            index_elements=["key", "month"], set_={"characters": total}, where=is_within
        )

    def count(self, key: str, n_characters: int, month: str | None = None) -> None:
        """Add to the usage of a key in a month, by default the current one. The next :meth:`flush` writes it."""
        with self._lock:
            self._uncounted[key, month or _month()] += n_characters

    def flush(self) -> None:
        """Write the usage; keep it for the next time if it cannot be written."""
        with self._lock:
            counts, self._uncounted = self._uncounted, Counter()
        # In order, so that servers that write at the same time do not wait for each other.
        rows = [{"key": key, "month": month, "characters": n} for (key, month), n in sorted(counts.items()) if n]
        if not rows:
            return
        try:
            with self.database.begin() as connection:
                connection.execute(self._adding(), rows)
        except BaseException:
            with self._lock:
                self._uncounted.update(counts)
            raise

    def used(self, key: str) -> int:
        """Return how many characters a key has used in this month (UTC)."""
        month = _month()
        query = select(USAGE.c.characters).where(USAGE.c.key == key, USAGE.c.month == month)
        with self.database.begin() as connection:
            return (connection.execute(query).scalar() or 0) + self._uncounted[key, month]


def _month() -> str:
    return time.strftime("%Y-%m", time.gmtime(time.time()))
