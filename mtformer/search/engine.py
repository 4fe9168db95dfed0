"""Requests to a model, their batches, and the protocol of engines. Nothing here imports torch or numpy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from mtformer.config import SearchOptions
from mtformer.search.constraints import Constraint
from mtformer.search.hypothesis import Hypothesis
from mtformer.support.errors import MtformerError, UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Weights: TypeAlias = NDArray[np.float32]

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)
Example: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # the ids of a sentence and those of its translation
OnDone = Callable[[Sequence[int], Sequence[Any]], object]  # called with the indices of what is done, and the results


class EngineError(UserError):
    """An engine cannot run a model that another engine may be able to run."""


class Request(Generic[R_co]):
    """A task for a model, whose result is an ``R_co``. Ids of sources end with EOS; those of targets do not.

    Attributes:
        forced: the ids that every translation starts with (:attr:`.PrefixIds.tgt`); results leave them out.
    """

    forced: Sequence[int]


@dataclass(frozen=True)
class SearchRequest(Request[list[Hypothesis]]):
    """A sentence to translate.

    The result is at least one and at most ``options.n_candidates`` hypotheses, in any order; with ``options.sample``,
    that many samples in the order of their numbers. :func:`mtformer.search.hypothesis.rank` chooses among them.

    Attributes:
        src: its ids, EOS last.
        options: how to search.
        limit: the maximum length of its translations, in tokens without EOS.
        prefix: the tokens that its translations start with, any number of them.
        constraint: what its translations must contain; the limit grows to leave room for it. None for nothing.
        forced: see :class:`Request`.
        examples: similar sentences and their translations, which the search follows where the model is not certain:
            the ids of the former with EOS, those of the latter without.
        token_log_probs: whether the log probabilities of the tokens are needed. An engine that would have to compute
            them separately leaves them out otherwise, if a lone hypothesis need not be ranked by them.
    """

    src: Sequence[int]
    options: SearchOptions
    limit: int
    prefix: Sequence[int] = ()
    constraint: Constraint | None = None
    forced: Sequence[int] = ()
    examples: Sequence[Example] = ()
    token_log_probs: bool = True

    @property
    def effective_limit(self) -> int:
        """The limit, or more if the prefix and the constraint take more tokens."""
        n_needed = 0 if self.constraint is None else self.constraint.max_tokens
        return max(self.limit, len(self.prefix) + n_needed)


@dataclass(frozen=True)
class PairRequest(Request[R_co]):
    """A sentence and a translation that is given.

    Attributes:
        src: the ids of the sentence, EOS last.
        tgt: those of the translation, without EOS.
        forced: see :class:`Request`.
    """

    src: Sequence[int]
    tgt: Sequence[int]
    forced: Sequence[int] = ()


class ScoreRequest(PairRequest[list[float]]):
    """A pair to score.

    The result is the log probability of each token of the target, given those before it, and of EOS after them.
    """


class AlignRequest(PairRequest["Weights"]):
    """A pair to align.

    The result (T, S) is how much each token of the target attends to each of the source, EOS included. Rows sum to 1.
    """


class Engine(Protocol):
    """A model that fulfils requests, whatever computes it."""

    def submit(
        self, requests: Sequence[Request[R_co]], *, on_done: OnDone | None = None
    ) -> "list[R_co | MtformerError]":
        """Fulfil requests, in any mix of kinds and options; those that are alike are computed together.

        Args:
            requests: what to compute.
            on_done: called with the indices of requests that are done, and their results or errors.

        Returns:
            For each request its result; or the error for which there is none, such as that the model predicts NaN for
            this sentence or that the engine cannot do what the options ask for. Errors of one request leave those
            beside it alone.
        """
        ...

    def require_supported(self, options: SearchOptions) -> None:
        """Refuse options that this engine cannot do.

        Raises:
            UserError: the message names them.
        """
        ...


def results_of(engine: Engine, requests: Sequence[Request[R_co]]) -> list[R_co]:
    """Return the results of requests that must all succeed; see :meth:`Engine.submit`.

    Raises:
        MtformerError: that of the first request that has failed.
    """
    return succeeded(engine.submit(requests))


def succeeded(outcomes: Sequence[T | MtformerError]) -> list[T]:
    """Return results that must not be errors.

    Raises:
        MtformerError: the first of the errors.
    """
    for outcome in outcomes:
        if isinstance(outcome, MtformerError):
            raise outcome
    return list(outcomes)  # type: ignore[arg-type]


def fill_batches(order: Sequence[int], lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Cut ``order`` into batches so that rows times the longest of ``lengths`` stays within ``max_tokens``."""
    batches: list[list[int]] = []
    batch: list[int] = []
    longest = 0
    for index in order:
        longest = max(longest, lengths[index])
        if batch and (len(batch) + 1) * longest > max_tokens:
            batches.append(batch)
            batch, longest = [], lengths[index]
        batch.append(index)
    if batch:
        batches.append(batch)
    return batches


def longest_first(lengths: Sequence[int]) -> list[int]:
    """Return the indices of ``lengths``, longest first."""
    return sorted(range(len(lengths)), key=lambda i: -lengths[i])
