"""Access to a server: keys, of which only hashes are stored, and their limits."""

import hashlib
import json
import os
import secrets
import stat
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mtformer.bundle.header import first_problem
from mtformer.serve.errors import ServiceError
from mtformer.support.errors import UserError
from mtformer.support.files import open_atomically

_BYTES = 24  # of a key
_PREFIX = "mt-"  # so that programs that look for leaked secrets can find it
_BUSY_SECONDS = 1  # after which a caller with too many requests may try again


class Limits(BaseModel):
    """The limits of a key; None for no limit.

    Attributes:
        characters_per_minute: of all texts.
        characters_per_month: of all texts, in a calendar month in UTC.
        concurrent: requests at a time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    characters_per_minute: int | None = Field(default=None, ge=1)
    characters_per_month: int | None = Field(default=None, ge=0)
    concurrent: int | None = Field(default=None, ge=1)


class _StoredKey(Limits):
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Caller(NamedTuple):
    """The sender of a request.

    Attributes:
        name: the name of the key; empty if the server has no keys.
        limits: the limits of the key.
    """

    name: str = ""
    limits: Limits = Limits()


ANYONE = Caller()
_FILE = TypeAdapter(dict[str, _StoredKey])


class Keys:
    """The keys of a server."""

    def __init__(self, keys: dict[str, _StoredKey]) -> None:
        self._callers = {key.sha256: Caller(name, key) for name, key in keys.items()}

    @classmethod
    def read(cls, path: Path) -> "Keys":
        """Read a file of keys, which only its owner and, without changing it, a group may read.

        Raises:
            UserError: it cannot be read, other users can read it, or it is not a file of keys.
        """
        return cls(_read(path))

    def find(self, key: str) -> Caller | None:
        """Return the owner of a key; None for an unknown key. Its timing may reveal hashes, but no keys."""
        return self._callers.get(_hash(key))


def add_key(path: Path, name: str) -> str:
    """Add a new key to a file, which is created if missing, and return the key. The file stores only its hash.

    Raises:
        UserError: the name is empty or that of another key, or the file cannot be read or written.
    """
    if not name.strip():  # of a variable that is not set
        raise UserError("--new-key is empty: give the key a name")
    keys = _read(path) if path.exists() else {}
    if name in keys:
        raise UserError(f"{path} has a key for {name}: choose another name, or delete its entry")
    key = _PREFIX + secrets.token_urlsafe(_BYTES)
    keys[name] = _StoredKey(sha256=_hash(key))
    text = json.dumps({each: stored.model_dump(exclude_none=True) for each, stored in keys.items()}, indent=2)
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with open_atomically(path) as file:
            file.write(text.encode() + b"\n")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
    return key


def _hash(key: str) -> str:
    """Return the SHA-256 of a key: as keys are random, nobody can guess one from it."""
    return hashlib.sha256(key.encode()).hexdigest()


def _read(path: Path) -> dict[str, _StoredKey]:
    try:
        text, mode = path.read_bytes(), path.stat().st_mode
        if os.name != "nt" and mode & (stat.S_IWGRP | stat.S_IRWXO):  # Windows has no such bits
            raise UserError(f"other users can read or change {path}, the file of keys: run chmod 600 {path}")
        return _FILE.validate_json(text or b"{}")
    except OSError as error:
        advice = "; make it with --new-key NAME" if isinstance(error, FileNotFoundError) else ""
        raise UserError(f"cannot read {path}: {error.strerror}{advice}") from error
    except ValidationError as error:
        raise UserError(f"{path} is not a file of keys: {first_problem(error)}") from error


class RateLimiter:
    """Counts the use of callers, and refuses requests beyond their limits.

    Characters a minute are a token bucket: a caller may use up a minute's share at once, and then as much as comes in.
    """

    def __init__(self) -> None:
        self._running: defaultdict[str, int] = defaultdict(int)
        self._left: dict[str, tuple[float, float]] = {}  # characters left, and when that was
        self._lock = Lock()

    @contextmanager
    def admit(self, caller: Caller) -> Iterator[None]:
        """Count a request while the block runs.

        Raises:
            ServiceError: the caller has too many.
        """
        most = caller.limits.concurrent
        with self._lock:
            if most is not None and self._running[caller.name] >= most:
                message = f"too many requests at a time: this key may have {most}"
                raise ServiceError(429, message, retry_after=_BUSY_SECONDS)
            self._running[caller.name] += 1
        try:
            yield
        finally:
            with self._lock:
                self._running[caller.name] -= 1
                if not self._running[caller.name]:
                    del self._running[caller.name]

    def take(self, caller: Caller, n_characters: int) -> None:
        """Take characters from a caller's bucket; a text larger than the bucket needs a full one.

        Raises:
            ServiceError: the bucket has too few.
        """
        limit = caller.limits.characters_per_minute
        if limit is None:
            return
        with self._lock:
            now = time.monotonic()
            left, then = self._left.get(caller.name, (float(limit), now))
            left = min(float(limit), left + (now - then) * limit / 60)
            needed = min(n_characters, limit)
            if left < needed:
                seconds = int((needed - left) * 60 / limit) + 1
                message = f"too many characters: this key may translate {limit:,} a minute"
                raise ServiceError(429, message, retry_after=seconds)
            self._left[caller.name] = left - n_characters, now
