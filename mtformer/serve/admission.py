"""The limits of a request: characters and time."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mtformer.serve.errors import ServiceError
from mtformer.serve.keys import Caller, RateLimiter
from mtformer.serve.store import Store

_BULK_CHARACTERS = 10  # times as many as other requests files may have


@dataclass(frozen=True)
class RequestLimits:
    """The limits of a request.

    Attributes:
        max_characters: of the texts of one request.
        timeout: seconds that a request may take.
    """

    max_characters: int = 100_000
    timeout: float = 60.0


class Admission:
    """A request that is being answered.

    Attributes:
        caller: its sender.
        is_bulk: whether it is a file, which may have more characters than others and has no time limit.
        n_characters: the number of characters charged.
        n_translated: the number of these that are not refunded if the rest fails.
    """

    def __init__(
        self, settings: RequestLimits, rate_limiter: RateLimiter, store: Store, caller: Caller, *, is_bulk: bool
    ) -> None:
        """Start the time of a request.

        Args:
            settings: limits of all.
            rate_limiter: counts characters a minute.
            store: counts characters a month.
            caller: who sends the request.
            is_bulk: whether it is a file.
        """
        self._settings, self._rate_limiter, self._store = settings, rate_limiter, store
        self.caller, self.is_bulk = caller, is_bulk
        self.n_characters = self.n_translated = 0
        self._deadline = None if is_bulk else asyncio.get_running_loop().time() + settings.timeout
        self._month: str | None = None  # in which the characters were taken from a quota

    async def require_left(self) -> None:
        """Refuse a request before its characters are counted, if its caller has none left.

        Raises:
            ServiceError: it is refused, or the database is needed and does not answer.
        """
        self._rate_limiter.take(self.caller, 0)
        quota = self.caller.limits.characters_per_month
        if quota is not None and await self._store.database.run(self._store.used, self.caller.name) >= quota:
            raise self._used_up(quota)

    async def charge(self, texts: Sequence[str]) -> None:
        """Count the characters of texts.

        Raises:
            ServiceError: they exceed a limit, or the database is needed and does not answer.
        """
        name, quota, n_characters = self.caller.name, self.caller.limits.characters_per_month, sum(map(len, texts))
        most = self._settings.max_characters * (_BULK_CHARACTERS if self.is_bulk else 1)
        if n_characters > most:
            raise ServiceError(413, f"the texts have {n_characters:,} characters; a request may have {most:,}")
        self._rate_limiter.take(self.caller, n_characters)
        if quota is None:
            self._store.count(name, n_characters)
        else:
            self._month = await self._store.database.run(self._store.take, name, n_characters, quota)
            if self._month is None:
                raise self._used_up(quota)
        self.n_characters = n_characters

    @staticmethod
    def _used_up(quota: int) -> ServiceError:
        return ServiceError(456, f"this key may translate {quota:,} characters a month, of which too few are left")

    def give_back(self) -> None:
        """Refund the charge, except for translated characters."""
        self._store.count(self.caller.name, self.n_translated - self.n_characters, self._month)
        self.n_characters = self.n_translated

    @asynccontextmanager
    async def in_time(self) -> AsyncIterator[None]:
        """Interrupt the block when the time of the request is up.

        Raises:
            ServiceError: the time is up.
        """
        try:
            async with asyncio.timeout_at(self._deadline):
                yield
        except TimeoutError:
            message = f"the translation took more than {self._settings.timeout:g} s"
            raise ServiceError(504, message) from None
