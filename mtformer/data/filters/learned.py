"""Rules that a text teaches by itself: which of its pairs look like corrupted copies of its pairs.

Copies are corrupted in two ways: targets exchanged between pairs, and a side cut off. For each way, a logistic
regression learns to tell the pairs of the text from the corrupted ones by how well the words of the two sides explain
each other (:mod:`~mtformer.data.filters.association`). The scores of the text are then a mixture of those of good pairs
and those of pairs that are corrupted already, if there are any, which expectation maximization tells apart. A pair is
dropped if it is probably one of the latter: a clean text loses almost nothing, and a noisy one most of its noise.

A pair must not explain itself: each half of the text is judged by what the other half has taught.
"""

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.config import LanguagePair
from mtformer.data.filters.association import N_FEATURES, Association, Encoder, Features
from mtformer.data.filters.seen import hashes
from mtformer.text.ibm_model_1 import EncodedPairs
from mtformer.text.sources import SentencePair

log = logging.getLogger(__name__)

CORRUPTIONS = ("misaligned", "truncated")
_WAYS = ("misaligned", "truncated src", "truncated tgt")  # to corrupt a pair
_FEWEST_PAIRS = 2_000  # that teach anything
_FEWEST_EXAMPLES = 100  # of each half
_MOST_CELLS = 2**22  # of each half: 64 to 300 megabytes while learning
_MOST_EXAMPLES = 20_000  # of each half, for the regressions
_LEAST_POSTERIOR = 0.85  # probability of being corrupted
_NEAR = 0.5  # standard deviations that corrupted pairs of a text may score less than corrupted copies
_LARGEST_SHARE = 0.9  # of corrupted pairs; above it, there is too little translation to learn from
_FIRST_SHARE = 0.1  # of corrupted pairs, where the estimate starts
_LEAST_DEVIATION = 0.3
_ITERATIONS = 100
_MOST_STEPS, _SMALLEST_STEP = 20, 1e-6  # of the regressions
_SHORTEST = 4  # words of a pair that is cut
_SEED = 1


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

    def scores(self, features: Features) -> NDArray[np.float64]:
        """Return the log odds of each pair for being corrupted, if half of all pairs were."""
        return (features - self.mean) / self.scale @ self.weights[:-1] + self.weights[-1]


class LearnedRules:
    """Scores pairs for each of :data:`CORRUPTIONS`."""

    def __init__(self, encoder: Encoder, halves: Sequence[Association], classifiers: dict[str, Classifier]) -> None:
        """Take what :meth:`learn` has learned: ``halves[i]`` from the pairs whose half is i."""
        self._encoder = encoder
        self._halves = halves
        self._classifiers = classifiers

    @classmethod
    def learn(cls, pairs: Sequence[SentencePair], languages: LanguagePair) -> "LearnedRules | None":
        """Learn from a sample of a text; None if it is too small."""
        pairs = [pair for pair in pairs if pair.src.strip() and pair.tgt.strip()]
        halves = _halves(pairs)
        if len(pairs) < _FEWEST_PAIRS or min(np.bincount(halves, minlength=2)) < _FEWEST_EXAMPLES:
            log.warning(
                "%s: %s pairs, with their different sources, are too few to find misaligned ones: %s are needed",
                languages,
                f"{len(pairs):,}",
                f"{_FEWEST_PAIRS:,}",
            )
            return None
        encoder, words = Encoder.learn(pairs, languages)
        encoded = [_selected(words, np.flatnonzero(halves == half)) for half in (0, 1)]
        associations = [Association(_first_cells(one)) for one in encoded]
        random = np.random.default_rng(_SEED)
        judged = list(zip(map(_some, encoded), reversed(associations), strict=True))
        good = np.concatenate([association.features(examples) for examples, association in judged])
        classifiers = {}
        for way in _WAYS:
            copies = [(_corrupted(examples, way, random), association) for examples, association in judged]
            if min(len(examples.src_lengths) for examples, _ in copies) >= _FEWEST_EXAMPLES:
                bad = np.concatenate([association.features(examples) for examples, association in copies])
                classifiers[way] = _fit(good, bad)
        learned = cls(encoder, associations, classifiers)
        for name, share in learned.shares().items():
            if share:
                log.info("%s: an estimated %.1f %% of the text are %s pairs", languages, 100 * share, name)
        return learned

    def found(self, pairs: Sequence[SentencePair]) -> dict[str, NDArray[np.bool_]]:
        """Tell for each of :data:`CORRUPTIONS` which pairs to drop."""
        features = self._features(pairs)
        found = {name: np.zeros(len(pairs), dtype=np.bool_) for name in CORRUPTIONS}
        for way, classifier in self._classifiers.items():
            found[way.split()[0]] |= classifier.scores(features) >= classifier.threshold
        return found

    def misalignment(self, pairs: Sequence[SentencePair]) -> NDArray[np.float64]:
        """Return the log odds of each pair for being misaligned, if half of all pairs were."""
        return self._classifiers["misaligned"].scores(self._features(pairs))

    def _features(self, pairs: Sequence[SentencePair]) -> Features:
        halves = _halves(pairs)
        features = np.zeros((len(pairs), N_FEATURES))
        for half, association in enumerate(reversed(self._halves)):
            places = np.flatnonzero(halves == half)
            if len(places):
                encoded = self._encoder.encode([pairs[place] for place in places.tolist()])
                features[places] = association.features(encoded)
        return features

    def shares(self) -> dict[str, float]:
        """Return the estimated share of such pairs in the text, of each of :data:`CORRUPTIONS`."""
        return {name: sum(one.share for way, one in self._classifiers.items() if name in way) for name in CORRUPTIONS}


def _halves(pairs: Sequence[SentencePair]) -> NDArray[np.int64]:
    """Return the half, 0 or 1, of each pair; pairs with one source are in one half."""
    return (hashes(pair.src for pair in pairs) & np.uint64(1)).astype(np.int64)


def _some(pairs: EncodedPairs) -> EncodedPairs:
    return _selected(pairs, np.arange(min(len(pairs.src_lengths), _MOST_EXAMPLES)))


def _first_cells(pairs: EncodedPairs) -> EncodedPairs:
    """Return as many pairs as there is memory to learn from."""
    n_cells = np.cumsum(pairs.src_lengths * pairs.tgt_lengths)
    return _selected(pairs, np.arange(max(1, int(np.searchsorted(n_cells, _MOST_CELLS)))))


def _selected(pairs: EncodedPairs, src: NDArray[np.int64], tgt: NDArray[np.int64] | None = None) -> EncodedPairs:
    """Return pairs by their numbers; the targets may be those of others."""
    src_words, src_lengths = _rows(pairs.src, pairs.src_lengths, src)
    tgt_words, tgt_lengths = _rows(pairs.tgt, pairs.tgt_lengths, src if tgt is None else tgt)
    return EncodedPairs(src_words, tgt_words, src_lengths, tgt_lengths)


def _rows(
    words: NDArray[np.int64], lengths: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    starts = (np.cumsum(lengths) - lengths)[rows]
    counts = lengths[rows]
    places = np.arange(int(counts.sum())) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
    return words[places], counts


def _corrupted(pairs: EncodedPairs, how: str, random: np.random.Generator) -> EncodedPairs:
    """Return corrupted copies of pairs; those that are too short for it are left out."""
    if how == "misaligned":
        circle = random.permutation(len(pairs.src_lengths))
        others = np.empty_like(circle)
        others[circle] = np.roll(circle, 1)
        return _selected(pairs, np.arange(len(circle)), others)
    is_long = np.minimum(pairs.src_lengths, pairs.tgt_lengths) >= _SHORTEST
    copies = _selected(pairs, np.flatnonzero(is_long))
    if how.endswith("src"):
        src, src_lengths = _cut(copies.src, copies.src_lengths, random)
        return copies._replace(src=src, src_lengths=src_lengths)
    tgt, tgt_lengths = _cut(copies.tgt, copies.tgt_lengths, random)
    return copies._replace(tgt=tgt, tgt_lengths=tgt_lengths)


def _cut(
    words: NDArray[np.int64], lengths: NDArray[np.int64], random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Keep 30 to 70 % of the words of each sentence; half of the sentences keep their last word, too."""
    n_kept = np.maximum(1, np.floor(random.uniform(0.3, 0.7, len(lengths)) * lengths))
    sentences = np.repeat(np.arange(len(lengths)), lengths)
    starts = (np.cumsum(lengths) - lengths)[sentences]
    kept = np.arange(len(words)) - starts < n_kept[sentences]
    last = np.cumsum(lengths) - 1
    kept[last[random.random(len(lengths)) < 0.5]] = True
    return words[kept], np.bincount(sentences[kept], minlength=len(lengths))


def _fit(good: Features, bad: Features) -> Classifier:
    """Fit a logistic regression, and choose the threshold."""
    features = np.concatenate([good, bad])
    is_bad = np.repeat([0.0, 1.0], [len(good), len(bad)])
    importance = np.repeat([0.5 / len(good), 0.5 / len(bad)], [len(good), len(bad)]) * len(features)
    mean, scale = features.mean(axis=0), features.std(axis=0) + 1e-9
    weights = _logistic_regression((features - mean) / scale, is_bad, importance)
    draft = Classifier(mean, scale, weights, np.inf, 0.0)
    share, threshold = _threshold(draft.scores(good), draft.scores(bad))
    return draft._replace(threshold=threshold, share=share)


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
    return share, float(probable.min(initial=np.inf))


def _posterior(
    scores: NDArray[np.float64], means: NDArray[np.float64], deviations: NDArray[np.float64], share: float
) -> NDArray[np.float64]:
    """Return the probability of each score of belonging to the second of two normal distributions."""
    priors = np.log([1 - share, share])
    good, bad = (
        priors[:, None] - np.log(deviations)[:, None] - ((scores - means[:, None]) / deviations[:, None]) ** 2 / 2
    )
    return 1 / (1 + np.exp(np.clip(good - bad, -50, 50)))
