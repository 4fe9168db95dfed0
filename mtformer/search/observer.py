"""What a search shows of each of its steps to those who want to follow it."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from mtformer.search.processors import Prefixes


class Candidates(NamedTuple):
    """Continuations (n, C) of the beams of each sentence.

    Attributes:
        log_probs: of the whole prefix; -inf where a sentence has fewer candidates.
        beams: the beam that each continues.
        tokens: the token that each appends.
        token_log_probs: the log probability of that token.
    """

    log_probs: Tensor
    beams: Tensor
    tokens: Tensor
    token_log_probs: Tensor


class SearchStep(NamedTuple):
    """One step of a search.

    Attributes:
        prefixes: the beams that are continued.
        candidates: (n, C) the continuations that the search considers.
        chosen: (n, K) which candidates are the next beams.
        finished: (n, C) whether a candidate is a finished translation.
    """

    prefixes: Prefixes
    candidates: Candidates
    chosen: Tensor
    finished: Tensor


SearchObserver = Callable[[SearchStep], object]
