"""The base of engines: similar requests are computed in batches, and a bad one fails alone."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any

from mtformer.config import SearchOptions
from mtformer.search.engine import AlignRequest, OnDone, PairRequest, R_co, Request, ScoreRequest, SearchRequest
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
        groups: dict[tuple[type, tuple[int, ...], SearchOptions | None], list[int]] = {}
        refused: list[int] = []
        for i, request in enumerate(requests):
            options = request.options if isinstance(request, SearchRequest) else None
            try:
                self._require_possible(request)
                groups.setdefault((type(request), tuple(request.forced), options), []).append(i)
            except UserError as error:
                results[i] = error
                refused.append(i)
        report = on_done or (lambda indices, results: None)
        if refused:
            report(refused, [results[i] for i in refused])
        for indices in groups.values():
            group: Any = [requests[i] for i in indices]
            is_search = isinstance(group[0], SearchRequest)
            batches = self._search_batches(group) if is_search else self._forced_batches(group)
            with closing(self._map([[group[i] for i in batch] for batch in batches])) as outcomes:
                for batch, of_batch in zip(batches, outcomes, strict=True):
                    done = [indices[i] for i in batch]
                    for i, outcome in zip(done, of_batch, strict=True):
                        results[i] = outcome
                    report(done, of_batch)
        return results

    def _require_possible(self, request: Request[Any]) -> None:
        """Refuse a request that cannot be fulfilled.

        Raises:
            UserError: the reason.
        """
        if isinstance(request, SearchRequest):
            self.require_supported(request.options)

    def _run(self, batch: Sequence[Request[Any]]) -> list[Any]:
        """Compute a batch; if it fails, each of its requests alone, so that only those fail that must."""
        compute: Any = {SearchRequest: self._search, ScoreRequest: self._score, AlignRequest: self._align}
        try:
            return list(compute[type(batch[0])](batch))
        except MtformerError as error:
            if len(batch) == 1:
                return [error.with_traceback(None)]  # whose frames would keep the tensors of the batch
        return [outcome for request in batch for outcome in self._run([request])]

    @abstractmethod
    def _map(self, batches: Sequence[Sequence[Request[Any]]]) -> Generator[list[Any], None, None]:
        """Apply :meth:`_run` to several batches at once, and yield their results in order."""

    @abstractmethod
    def require_supported(self, options: SearchOptions) -> None:
        """Refuse options; see :meth:`.Engine.require_supported`."""

    @abstractmethod
    def _search_batches(self, requests: Sequence[SearchRequest]) -> list[list[int]]:
        """Divide the indices of searches with the same options into batches."""

    @abstractmethod
    def _forced_batches(self, requests: Sequence[PairRequest[Any]]) -> list[list[int]]:
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
