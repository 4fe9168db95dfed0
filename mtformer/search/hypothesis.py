"""A translation as the search finds it, and the order of hypotheses: by score or minimum Bayes risk."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from mtformer.config import SearchOptions
from mtformer.config.search import LengthPenalty

PREDICTS_NAN = "the model predicts NaN instead of probabilities: its weights are damaged; use another"
NO_HYPOTHESIS = "the search found no translation: the model gives every possible one probability 0"
_SCALE = 0.5  # of log probabilities in minimum Bayes risk (Tromble et al. 2008); chosen on Multi30k's validation set


class Hypothesis(NamedTuple):
    """A finished translation.

    Attributes:
        ids: the tokens chosen, without BOS and EOS.
        token_log_probs: the model's log probability of each token given those before it, and of EOS at the end; empty
            if the request did without them.
        penalty: what penalties such as that on repetition take from the log probability before hypotheses are ranked.
        utility: the expected chrF, which ranks hypotheses instead with minimum Bayes risk.
        summed: the log probability of the translation by the search, where those of the tokens are left out.
    """

    ids: list[int]
    token_log_probs: list[float]
    penalty: float = 0.0
    utility: float | None = None
    summed: float | None = None

    @property
    def log_prob(self) -> float:
        """The model's log probability of the translation."""
        return sum(self.token_log_probs) if self.summed is None else self.summed

    def score(self, penalty: LengthPenalty) -> float:
        """Return the score that hypotheses are ranked by.

        That is the utility, if there is one, or else the log probability, less the penalty, over the length penalty.
        """
        if self.utility is not None:
            return self.utility
        n_tokens = len(self.token_log_probs) if self.summed is None else len(self.ids) + 1
        return (self.log_prob - self.penalty) / penalty(n_tokens)


def ranked(hypotheses: Iterable[Hypothesis], penalty: LengthPenalty) -> list[Hypothesis]:
    """Sort hypotheses by their scores, best first; of equal ones the first in order of ids comes first."""
    return sorted(hypotheses, key=lambda hypothesis: (-hypothesis.score(penalty), hypothesis.ids))


def rank(
    options: SearchOptions, candidates: Sequence[Hypothesis], decode: Callable[[list[int]], str]
) -> list[Hypothesis]:
    """Return the ``n_best`` best of the hypotheses that a search has given for a sentence, best first.

    Samples that are not ranked stay in the order of their numbers, so that the first is one like any other.

    Args:
        options: those of the search.
        candidates: the result of a :class:`.SearchRequest`.
        decode: makes a text of the ids of a hypothesis.
    """
    if options.mbr:
        ordered = _by_utility(candidates, decode)
    else:
        ordered = list(candidates) if options.sample else ranked(candidates, options.penalty)
    return ordered[: options.n_best]


def _by_utility(hypotheses: Sequence[Hypothesis], decode: Callable[[list[int]], str]) -> list[Hypothesis]:
    """Rank hypotheses by their expected chrF; of several with one text, keep the likeliest."""
    texts = [decode(hypothesis.ids) for hypothesis in hypotheses]
    likeliest = max(hypothesis.log_prob for hypothesis in hypotheses)
    weights = [math.exp(_SCALE * (hypothesis.log_prob - likeliest)) for hypothesis in hypotheses]
    best: dict[str, Hypothesis] = {}
    for text, hypothesis, utility in zip(texts, hypotheses, expected_chrf(texts, weights), strict=True):
        if text not in best or hypothesis.log_prob > best[text].log_prob:
            best[text] = hypothesis._replace(utility=utility)
    return ranked(best.values(), LengthPenalty(0.0))


def expected_chrf(texts: Sequence[str], weights: Sequence[float]) -> list[float]:
    """Return the mean chrF (0 to 100) of each translation of a source against all of them, weighted."""
    from fastchrf import pairwise_chrf  # which SearchConfig.updated requires

    of_text: dict[str, float] = defaultdict(float)  # each text is compared once, however often it occurs
    for text, weight in zip(texts, weights, strict=True):
        of_text[text] += weight
    unique = list(of_text)
    [matrix] = pairwise_chrf([unique], [unique])
    total = sum(weights)
    utilities = {
        text: sum(chrf * of_text[compared] for compared, chrf in zip(unique, row, strict=True)) / total
        for text, row in zip(unique, matrix, strict=True)
    }
    return [utilities[text] for text in texts]
