"""Rules that a text teaches by itself: which of its pairs look like corrupted copies of its pairs.

Copies are corrupted in three ways: targets exchanged between pairs, a side cut off, and the words of a side shuffled.
For each way, a logistic regression learns to tell the pairs of the text from the corrupted ones: by how well the
words of the two sides explain each other (:class:`~mtformer.data.clean.words.Association`), or by how well those of a
side follow each other (:class:`~mtformer.data.clean.words.WordOrder`). The scores of the text are then a mixture of
those of good pairs and those of pairs that are corrupted already, if there are any, which expectation maximization
tells apart. A pair is dropped if it is probably one of the latter: a clean text loses almost nothing, and a noisy one
most of its noise.

A pair must not explain itself: each half of the text is judged by what the other half has taught.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.config import LanguagePair
from mtformer.data.arrays import Ragged
from mtformer.data.clean.seen import hashes
from mtformer.data.clean.words import Association, EncodedPairs, Encoder, Features, Floats, Ints, WordOrder, Words
from mtformer.text.pairs import SentencePair

log = logging.getLogger(__name__)

MISALIGNED = "misaligned"
CORRUPTIONS = (MISALIGNED, "truncated", "misordered")
WAYS = (MISALIGNED, "truncated src", "truncated tgt", "misordered src", "misordered tgt")
_SHORTEST = 4  # words of a pair that is cut
_MOST_SHUFFLED = 5_000  # of each half, since texts are slower than numbers
_LEAST_POSTERIOR = 0.85  # probability of being corrupted
_NEAR = 0.5  # standard deviations that corrupted pairs of a text may score less than corrupted copies
_LARGEST_SHARE = 0.9  # of corrupted pairs; above it, there is too little translation to learn from
_FIRST_SHARE = 0.1  # of corrupted pairs, where the estimate starts
_LEAST_DEVIATION = 0.3
_ROUNDING = 1e-6  # of a score, which depends on how many pairs are scored at once
_ITERATIONS = 100
_MOST_STEPS, _SMALLEST_STEP = 20, 1e-6  # of the regressions
_FEWEST_PAIRS = 2_000  # that teach anything
_FEWEST_EXAMPLES = 100  # of each half
_MOST_CELLS = 2**22  # of each half: 64 to 300 megabytes while learning
_MOST_EXAMPLES = 20_000  # of each half, for the regressions
_SEED = 1


class Examples(NamedTuple):
    """Sentence pairs, as texts and encoded."""

    pairs: Sequence[SentencePair]
    encoded: EncodedPairs


def corrupted(examples: Examples, way: str, encoder: Encoder, random: np.random.Generator) -> EncodedPairs:
    """Return copies of pairs that are corrupted in one of :data:`WAYS`; those that are too short are left out."""
    pairs = examples.encoded
    if way == MISALIGNED:
        circle = random.permutation(len(examples.pairs))
        neighbours = np.empty_like(circle)
        neighbours[circle] = np.roll(circle, 1)
        return pairs.selected(np.arange(len(circle)), neighbours)
    how, side = way.split()
    if how == "misordered":
        texts = [getattr(pair, side) for pair in examples.pairs[:_MOST_SHUFFLED]]
        kept, changed = _shuffled(texts, getattr(encoder, side), random)
        copies = pairs.selected(kept)
    else:
        copies = pairs.selected(np.flatnonzero(np.minimum(pairs.src.lengths, pairs.tgt.lengths) >= _SHORTEST))
        changed = _cut(getattr(copies, side), random)
    return copies._replace(**{side: changed})


def _shuffled(texts: Sequence[str], words: Words, random: np.random.Generator) -> tuple[Ints, Ragged]:
    """Put the words of texts into random order, with the punctuation at them.

    Returns:
        the numbers of the texts that this changes, and their words.
    """
    separator = " " if words.is_spaced else ""
    changed = {}
    for number, text in enumerate(texts):
        parts = text.split() if words.is_spaced else list(text)
        shuffled = [parts[place] for place in random.permutation(len(parts)).tolist()]
        if shuffled != parts:
            changed[number] = separator.join(shuffled)
    return np.array(list(changed), dtype=np.int64), words.encode(changed.values())


def _cut(sentences: Ragged, random: np.random.Generator) -> Ragged:
    """Keep 30 to 70 % of the words of each sentence, from its beginning."""
    words, lengths = sentences.values, sentences.lengths
    n_kept = np.maximum(1, np.floor(random.uniform(0.3, 0.7, len(lengths)) * lengths)).astype(np.int64)
    kept = np.arange(len(words)) - np.repeat(sentences.starts[:-1], lengths) < np.repeat(n_kept, lengths)
    return Ragged.of_lengths(words[kept], n_kept)


class Classifier(NamedTuple):
    """Tells corrupted pairs by their features.

    Attributes:
        mean: of the features.
        scale: of the features.
        weights: of the scaled features, and of a constant.
        threshold: the score from which on a pair is dropped.
        share: the estimated share of such pairs in the text.
    """

    mean: Floats
    scale: Floats
    weights: Floats
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

    def scores(self, features: Features) -> Floats:
        """Return the log odds of each pair for being corrupted, if half of all pairs were."""
        return (features - self.mean) / self.scale @ self.weights[:-1] + self.weights[-1]


def _logistic_regression(features: Features, labels: Floats, importance: Floats) -> Floats:
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


def _threshold(text: Floats, corrupted: Floats) -> tuple[float, float]:
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


def _posterior(scores: Floats, means: Floats, deviations: Floats, share: float) -> Floats:
    """Return the probability of each score of belonging to the second of two normal distributions."""
    priors = np.log([1 - share, share])
    good, bad = (
        priors[:, None] - np.log(deviations)[:, None] - ((scores - means[:, None]) / deviations[:, None]) ** 2 / 2
    )
    return 1 / (1 + np.exp(np.clip(good - bad, -50, 50)))


class Half(NamedTuple):
    """Statistics of the pairs of one half of a text, by which those of the other are judged."""

    association: Association
    src_order: WordOrder
    tgt_order: WordOrder

    @classmethod
    def learn(cls, pairs: EncodedPairs) -> "Half":
        """Learn from the pairs of a half."""
        return cls(Association(next(pairs.portions(_MOST_CELLS))), *map(WordOrder, pairs))

    def features(self, pairs: EncodedPairs, aspects: Collection[str]) -> dict[str, Features]:
        """Return for each aspect numbers that tell good pairs from bad ones, of shape (pairs, features)."""
        features = {}
        if "src order" in aspects:
            features["src order"] = self.src_order.features(pairs.src)
        if "tgt order" in aspects:
            features["tgt order"] = self.tgt_order.features(pairs.tgt)
        if not {"association", "association and ends"}.isdisjoint(aspects):
            features["association"] = self.association.features(pairs)
            ends = self.src_order.ends(pairs.src), self.tgt_order.ends(pairs.tgt)
            features["association and ends"] = np.column_stack([features["association"], *ends])
        return features


class LearnedRules:
    """Scores pairs for each of :data:`CORRUPTIONS`."""

    def __init__(self, encoder: Encoder, halves: Sequence[Half], classifiers: dict[str, Classifier]) -> None:
        """Take the results of :meth:`learn`: ``halves[i]`` is learned from the pairs whose half is i."""
        self._encoder = encoder
        self._halves = halves
        self._classifiers = classifiers

    @classmethod
    def learn(cls, pairs: Sequence[SentencePair], languages: LanguagePair) -> "LearnedRules | None":
        """Learn from a sample of a text; None if it is too small."""
        pairs = [pair for pair in pairs if not pair.is_blank]
        halves = _halves(pairs)
        if len(pairs) < _FEWEST_PAIRS or min(np.bincount(halves, minlength=2)) < _FEWEST_EXAMPLES:
            log.warning(
                "%s: %s pairs are too few for the rules %s, which need %s with different sources",
                languages,
                f"{len(pairs):,}",
                ", ".join(CORRUPTIONS),
                f"{_FEWEST_PAIRS:,}",
            )
            return None
        encoder, words = Encoder.learn(pairs, languages)
        numbers = [np.flatnonzero(halves == half) for half in (0, 1)]
        taught = [Half.learn(words.selected(of_half)) for of_half in numbers]
        chosen = [of_half[:_MOST_EXAMPLES] for of_half in numbers]
        examples = [Examples([pairs[i] for i in of_half.tolist()], words.selected(of_half)) for of_half in chosen]
        teachers = taught[::-1]
        aspects = set(map(_aspect, WAYS))
        good = [teacher.features(half.encoded, aspects) for half, teacher in zip(examples, teachers, strict=True)]
        classifiers = {}
        for number, way in enumerate(WAYS):
            random, aspect = np.random.default_rng((_SEED, number)), _aspect(way)
            copies = [corrupted(half, way, encoder, random) for half in examples]
            if min(len(half.src.lengths) for half in copies) >= _FEWEST_EXAMPLES:
                bad = [teacher.features(half, [aspect]) for half, teacher in zip(copies, teachers, strict=True)]
                of_kinds = (np.concatenate([half[aspect] for half in kind]) for kind in (good, bad))
                classifiers[way] = Classifier.fit(*of_kinds)
        learned = cls(encoder, taught, classifiers)
        for name, share in learned.shares().items():
            if share:
                log.info("%s: an estimated %.1f %% of the text are %s pairs", languages, 100 * share, name)
        return learned

    def ways(self, names: Collection[str]) -> list[str]:
        """Return the ways of corruption by which pairs are dropped, of the rules ``names``."""
        return [way for way, kind in self._classifiers.items() if way.split()[0] in names and kind.threshold < np.inf]

    def scores(self, pairs: Sequence[SentencePair], ways: Collection[str]) -> dict[str, Floats]:
        """Return the log odds of each pair for being corrupted in each of some ways, if half of all pairs were."""
        scores = {way: np.zeros(len(pairs)) for way in ways}
        halves = _halves(pairs)
        for half, teacher in enumerate(reversed(self._halves)):
            places = np.flatnonzero(halves == half)
            if len(places) and scores:
                encoded = self._encoder.encode([pairs[place] for place in places.tolist()])
                features = teacher.features(encoded, set(map(_aspect, ways)))
                for way in scores:
                    scores[way][places] = self._classifiers[way].scores(features[_aspect(way)])
        return scores

    def is_corrupted(self, scores: Mapping[str, Floats]) -> dict[str, NDArray[np.bool_]]:
        """Tell by their scores which pairs each of :data:`CORRUPTIONS` drops, if any."""
        dropped: dict[str, NDArray[np.bool_]] = {}
        for way, of_way in scores.items():
            name = way.split()[0]
            dropped[name] = dropped.get(name, False) | (of_way >= self._classifiers[way].threshold)
        return dropped

    def misalignment(self, pairs: Sequence[SentencePair]) -> Floats:
        """Return the log odds of each pair for being misaligned, if half of all pairs were."""
        return self.scores(pairs, [MISALIGNED])[MISALIGNED]

    def shares(self) -> dict[str, float]:
        """Return the estimated share of such pairs in the text, of each of :data:`CORRUPTIONS`."""
        shares = {way: classifier.share for way, classifier in self._classifiers.items()}
        return {name: sum(share for way, share in shares.items() if name in way) for name in CORRUPTIONS}


def _halves(pairs: Sequence[SentencePair]) -> Ints:
    """Return the half, 0 or 1, of each pair; pairs with one source are in one half."""
    return (hashes(pair.src for pair in pairs) & np.uint64(1)).astype(np.int64)


def _aspect(way: str) -> str:
    """Return the features that distinguish pairs corrupted in a certain way."""
    corruption, _, side = way.partition(" ")
    return {"misaligned": "association", "truncated": "association and ends", "misordered": f"{side} order"}[corruption]
