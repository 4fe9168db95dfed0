"""A translation as the search leaves it, and how hypotheses of different lengths are compared."""

from typing import NamedTuple


class Hypothesis(NamedTuple):
    """A finished translation.

    Attributes:
        ids: the pieces chosen, without BOS and EOS.
        log_prob: the sum of the log probabilities of all choices, that of EOS included.
        score: ``log_prob`` over the length penalty: what hypotheses are ranked by.
    """

    ids: list[int]
    log_prob: float
    score: float


def length_penalty(length: int, alpha: float) -> float:
    """Return ((5 + length) / 6)^alpha (Wu et al. 2016, equation 14); ``length`` counts EOS."""
    return ((5.0 + length) / 6.0) ** alpha
