"""A translation as the search finds it, and how hypotheses of different lengths are ranked."""

from collections.abc import Iterable
from typing import NamedTuple

PREDICTS_NAN = "the model predicts NaN instead of probabilities: its weights are damaged; use another"
NO_HYPOTHESIS = "the search found no translation: the model gives every possible one probability 0"


class Hypothesis(NamedTuple):
    """A finished translation.

    Attributes:
        ids: the tokens chosen, without BOS and EOS.
        token_log_probs: the model's log probability of each token given those before it, and of EOS at the end.
        penalty: what penalties such as that on repetition take from the log probability before hypotheses are ranked.
        utility: the expected chrF, which ranks hypotheses instead with minimum Bayes risk.
    """

    ids: list[int]
    token_log_probs: list[float]
    penalty: float = 0.0
    utility: float | None = None

    @property
    def log_prob(self) -> float:
        """The model's log probability of the translation."""
        return sum(self.token_log_probs)

    def score(self, alpha: float) -> float:
        """Return the score that hypotheses are ranked by.

        That is the utility, if there is one, or else the log probability, less the penalty, over the length penalty.
        """
        if self.utility is not None:
            return self.utility
        return (self.log_prob - self.penalty) / length_penalty(len(self.token_log_probs), alpha)


def length_penalty(length: int, alpha: float) -> float:
    """Return ((5 + length) / 6)^alpha (Wu et al. 2016, equation 14); ``length`` counts EOS."""
    return ((5.0 + length) / 6.0) ** alpha


def ranked(hypotheses: Iterable[Hypothesis], alpha: float) -> list[Hypothesis]:
    """Sort hypotheses by their scores, best first; of equal ones the first in order of ids comes first."""
    return sorted(hypotheses, key=lambda hypothesis: (-hypothesis.score(alpha), hypothesis.ids))
