"""What engines have in common: requests that are alike are computed in batches, and a bad one fails alone."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import Any

from mtformer.config import SearchOptions
from mtformer.search.engine import AlignRequest, OnDone, R_co, Request, ScoreRequest, SearchRequest
from mtformer.search.hypothesis import Hypothesis
from mtformer.support.errors import MtformerError, UserError


class BatchedEngine(ABC):
    """An :class:`.Engine` that computes batches of requests of one kind.

    Requests of a batch have the same forced ids, and searches the same options.
    """

    def submit(
        self, requests: Sequence[Request[R_co]], *, on_done: OnDone | None = None
    ) -> "list[R_co | MtformerError]":
        """Fulfil requests in batches of similar length; see :meth:`.Engine.submit`."""
        results: list[Any] = [None] * len(requests)
        for group in _groups(requests):
            for batch, outcomes in self._outcomes(group, requests):
                for i, outcome in zip(batch, outcomes, strict=True):
                    results[i] = outcome
                if on_done is not None:
                    on_done(batch)
        return results

    def _outcomes(
        self, group: Sequence[int], requests: Sequence[Request[Any]]
    ) -> Iterator[tuple[Sequence[int], list[Any]]]:
        """Yield the results and errors of ``requests`` with the indices ``group``, batch by batch."""
        errors = dict(zip(group, self._refusals([requests[i] for i in group]), strict=True))
        if refused := [i for i in group if errors[i]]:
            yield refused, [errors[i] for i in refused]
        possible = [i for i in group if not errors[i]]
        if not possible:
            return
        chosen: Any = [requests[i] for i in possible]
        is_search = isinstance(chosen[0], SearchRequest)
        places = self._search_batches(chosen) if is_search else self._forced_batches(chosen)
        batches = [[chosen[place] for place in batch] for batch in places]
        with closing(self._map(batches)) as results:
            for batch, of_batch in zip(places, results, strict=True):
                yield [possible[place] for place in batch], of_batch

    def _refusals(self, requests: Sequence[Request[Any]]) -> list[UserError | None]:
        """Return for each of some requests, which are alike, the reason why it cannot be fulfilled; None if it can."""
        if isinstance(requests[0], SearchRequest):
            try:
                self.require_supported(requests[0].options)
            except UserError as error:
                return [error] * len(requests)
        return [self._refusal(request) for request in requests]

    def _run(self, batch: Sequence[Request[Any]]) -> list[Any]:
        """Compute a batch; if it fails, each of its requests alone, so that only those fail that must."""
        compute: Any = {SearchRequest: self._search, ScoreRequest: self._score, AlignRequest: self._align}
        try:
            return list(compute[type(batch[0])](batch))
        except MtformerError as error:
            if len(batch) == 1:
                return [error.with_traceback(None)]  # whose frames would keep the tensors of the batch
        return [outcome for request in batch for outcome in self._run([request])]

    def _map(self, batches: Sequence[Sequence[Request[Any]]]) -> Generator[list[Any], None, None]:
        """Yield the results of batches, in order."""
        yield from map(self._run, batches)

    def _refusal(self, request: Request[Any]) -> UserError | None:
        """Return the reason why a request with supported options cannot be fulfilled; None if it can."""
        return None

    @abstractmethod
    def require_supported(self, options: SearchOptions) -> None:
        """Refuse options; see :meth:`.Engine.require_supported`."""

    @abstractmethod
    def _search_batches(self, requests: Sequence[SearchRequest]) -> list[list[int]]:
        """Divide the indices of searches with the same options into batches."""

    @abstractmethod
    def _forced_batches(self, requests: Sequence[ScoreRequest] | Sequence[AlignRequest]) -> list[list[int]]:
        """Divide the indices of requests of one kind, whose targets are given, into batches."""

    @abstractmethod
    def _search(self, requests: Sequence[SearchRequest]) -> list[list[Hypothesis]]:
        """Search for the translations of one batch."""

    @abstractmethod
    def _score(self, requests: Sequence[ScoreRequest]) -> list[list[float]]:
        """Score one batch."""

    @abstractmethod
    def _align(self, requests: Sequence[AlignRequest]) -> list[Any]:
        """Align one batch."""


def _groups(requests: Sequence[Request[Any]]) -> list[list[int]]:
    """Divide the indices of requests by kind, forced ids and options."""
    groups: dict[tuple[type, tuple[int, ...], SearchOptions | None], list[int]] = {}
    for i, request in enumerate(requests):
        options = request.options if isinstance(request, SearchRequest) else None
        groups.setdefault((type(request), tuple(request.forced), options), []).append(i)
    return list(groups.values())
