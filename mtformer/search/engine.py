"""What translates and scores sequences of tokens. Nothing here imports torch or numpy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mtformer.config import SearchOptions
from mtformer.search.constraints import Constraint
from mtformer.search.hypothesis import Hypothesis
from mtformer.support.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class EngineError(UserError):
    """An engine cannot run a model that another engine may be able to run."""


@dataclass(frozen=True)
class Request:
    """A sentence to translate.

    Attributes:
        src: its ids, EOS last.
        limit: the maximum length of its translations, in tokens without EOS.
        prefix: the tokens that its translations start with, any number of them.
        constraint: what its translations must contain; the limit grows to leave room for it. None for nothing.
    """

    src: Sequence[int]
    limit: int
    prefix: Sequence[int] = ()
    constraint: Constraint | None = None


class Engine(Protocol):
    """A model that can be searched, whatever computes it. Ids of sources end with EOS; those of targets do not.

    Attributes:
        has_constraints: whether requests may have constraints.
    """

    has_constraints: bool

    def translate(
        self,
        requests: Sequence[Request],
        options: SearchOptions,
        *,
        on_batch: Callable[[Sequence[int]], object] | None = None,
    ) -> list[list[Hypothesis]]:
        """Search for the best translations.

        Args:
            requests: the sentences.
            options: how to search; ranking (``mbr``, ``coverage_penalty``) is not the engine's part.
            on_batch: called with the indices of requests that have been translated.

        Returns:
            For each request at least one and at most ``options.n_best`` hypotheses, in any order; with
            ``options.sample``, that many samples in the order of their numbers.

        Raises:
            MtformerError: the model predicts NaN.
        """
        ...

    def require_supported(self, options: SearchOptions) -> None:
        """Refuse options that this engine cannot do.

        Raises:
            UserError: the message names them.
        """
        ...

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """Return for each pair the log probability of every token of the target, and of EOS after them.

        Raises:
            MtformerError: the model predicts NaN.
        """
        ...

    def align(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "list[NDArray[np.float32]]":
        """Return for each pair (T, S), how much each token of the target attends to each of the source, EOS included.

        Rows sum to 1.

        Raises:
            UserError: the engine does not give its attention.
        """
        ...
