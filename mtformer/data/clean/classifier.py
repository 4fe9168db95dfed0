"""A classifier that tells corrupted pairs from good ones, with a threshold that the scores of a text suggest."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Features = NDArray[np.float64]

_LEAST_POSTERIOR = 0.85  # probability of being corrupted
_NEAR = 0.5  # standard deviations that corrupted pairs of a text may score less than corrupted copies
_LARGEST_SHARE = 0.9  # of corrupted pairs; above it, there is too little translation to learn from
_FIRST_SHARE = 0.1  # of corrupted pairs, where the estimate starts
_LEAST_DEVIATION = 0.3
_ROUNDING = 1e-6  # of a score, which depends on how many pairs are scored at once
_ITERATIONS = 100
_MOST_STEPS, _SMALLEST_STEP = 20, 1e-6  # of the regressions


class Classifier(NamedTuple):
    """Tells corrupted pairs by their features.

    Attributes:
        mean: of the features.
        scale: of the features.
        weights: of the scaled features, and of a constant.
        threshold: the score from which on a pair is dropped.
        share: the estimated share of such pairs in the text.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    weights: NDArray[np.float64]
    threshold: float
    share: float

    @classmethod
    def fit(cls, good: Features, bad: Features) -> "Classifier":
        """Fit a logistic regression to pairs of the text and corrupted copies, and choose the threshold."""
        features = np.concatenate([good, bad])
        is_bad = np.repeat([0.0, 1.0], [len(good), len(bad)])
        importance = np.repeat([0.5 / len(good), 0.5 / len(bad)], [len(good), len(bad)]) * len(features)
        mean, scale = features.mean(axis=0), features.std(axis=0) + 1e-9
        weights = _logistic_regression((features - mean) / scale, is_bad, importance)
        draft = cls(mean, scale, weights, np.inf, 0.0)
        share, threshold = _threshold(draft.scores(good), draft.scores(bad))
        return draft._replace(threshold=threshold, share=share)

    def scores(self, features: Features) -> NDArray[np.float64]:
        """Return the log odds of each pair for being corrupted, if half of all pairs were."""
        return (features - self.mean) / self.scale @ self.weights[:-1] + self.weights[-1]


def _logistic_regression(
    features: Features, labels: NDArray[np.float64], importance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Minimize the cross entropy with a little L2 regularization by Newton's method."""
    features = np.concatenate([features, np.ones((len(features), 1))], axis=1)
    weights = np.zeros(features.shape[1])
    for _ in range(_MOST_STEPS):
        probabilities = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
        gradient = features.T @ (importance * (probabilities - labels)) + weights
        curvature = importance * probabilities * (1 - probabilities)
        hessian = (features * curvature[:, None]).T @ features + np.eye(len(weights))
        step = np.linalg.solve(hessian, gradient)
        weights -= step
        if abs(step).max() < _SMALLEST_STEP:
            break
    return weights


def _threshold(text: NDArray[np.float64], corrupted: NDArray[np.float64]) -> tuple[float, float]:
    """Estimate which share of a text is corrupted, and from which score on a pair of it probably is.

    The scores of good and of corrupted pairs are taken to be normally distributed. If the second component is far below
    the corrupted copies, it is a part of the good pairs: free translations, for example.

    Args:
        text: the scores of pairs of the text.
        corrupted: those of corrupted copies.
    """
    means = np.array([np.median(text), corrupted.mean()])
    deviations = np.maximum([text.std(), corrupted.std()], _LEAST_DEVIATION)
    share = _FIRST_SHARE
    for _ in range(_ITERATIONS):
        posterior = _posterior(text, means, deviations, share)
        parts = np.stack([1 - posterior, posterior])
        totals = parts.sum(axis=1)
        share = float(np.clip(totals[1] / len(text), 1e-6, 1 - 1e-6))
        means = parts @ text / totals
        deviations = np.maximum(np.sqrt((parts * (text - means[:, None]) ** 2).sum(axis=1) / totals), _LEAST_DEVIATION)
    if means[1] < corrupted.mean() - _NEAR * corrupted.std() or share > _LARGEST_SHARE:
        return 0.0, np.inf
    probable = text[(_posterior(text, means, deviations, share) >= _LEAST_POSTERIOR) & (text > means.mean())]
    return share, float(probable.min(initial=np.inf)) - _ROUNDING


def _posterior(
    scores: NDArray[np.float64], means: NDArray[np.float64], deviations: NDArray[np.float64], share: float
) -> NDArray[np.float64]:
    """Return the probability of each score of belonging to the second of two normal distributions."""
    priors = np.log([1 - share, share])
    good, bad = (
        priors[:, None] - np.log(deviations)[:, None] - ((scores - means[:, None]) / deviations[:, None]) ** 2 / 2
    )
    return 1 / (1 + np.exp(np.clip(good - bad, -50, 50)))
