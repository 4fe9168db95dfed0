"""A translation as the search finds it, and how hypotheses of different lengths are ranked."""

from collections.abc import Iterable
from typing import NamedTuple

NO_HYPOTHESIS = "the search found no translation: the model gives every possible one probability 0"


class Hypothesis(NamedTuple):
    """A finished translation.

    Attributes:
        ids: the tokens chosen, without BOS and EOS.
        token_log_probs: the model's log probability of each token given those before it, and of EOS at the end.
        penalty: what penalties such as that on repetition take from the log probability before hypotheses are ranked.
    """

    ids: list[int]
    token_log_probs: list[float]
    penalty: float = 0.0

    @property
    def log_prob(self) -> float:
        """The model's log probability of the translation."""
        return sum(self.token_log_probs)

    def score(self, alpha: float) -> float:
        """Return what hypotheses are ranked by: the log probability, less the penalty, over the length penalty."""
        return (self.log_prob - self.penalty) / length_penalty(len(self.token_log_probs), alpha)


def length_penalty(length: int, alpha: float) -> float:
    """Return ((5 + length) / 6)^alpha (Wu et al. 2016, equation 14); ``length`` counts EOS."""
    return ((5.0 + length) / 6.0) ** alpha


def ranked(hypotheses: Iterable[Hypothesis], alpha: float) -> list[Hypothesis]:
    """Sort hypotheses by their scores, best first; of equal ones the first in order of ids comes first."""
    return sorted(hypotheses, key=lambda hypothesis: (-hypothesis.score(alpha), hypothesis.ids))
