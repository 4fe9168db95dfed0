"""Rules that a text teaches by itself: which of its pairs look like corrupted copies of its pairs.

Copies are corrupted in three ways: targets exchanged between pairs, a side cut off, and the words of a side shuffled.
For each way, a logistic regression learns to tell the pairs of the text from the corrupted ones, by how well the words
of the two sides explain each other (:class:`~mtformer.data.clean.words.Association`) and how well those of a side
follow each other (:class:`~mtformer.data.clean.words.WordOrder`). The scores of the text are then a mixture of those of
good pairs and those of pairs that are corrupted already, if there are any; the latter are distributed as those of the
copies. A pair is dropped if it is probably one of them: a clean text loses almost nothing, and a noisy one most of its
noise.

A pair must not explain itself: each half of the text is judged by what the other half has taught. The steps are::

    LearnedRules.learn            which words of each half translate and follow each other (Half.learn)
      corrupted                   copies of some pairs, for each of WAYS
      Half.features               numbers about pairs and copies, by the words of the other half
      Classifier.fit              three times, the second and the third without what the one before would drop:
        _logistic_regression        scores: the log odds for being a corrupted copy
        _shares                     how many pairs of the text have scores as copies do
        _thresholds                 the scores from which on most pairs are such
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.config import LanguagePair
from mtformer.data.arrays import Ragged
from mtformer.data.clean.seen import hashes
from mtformer.data.clean.words import Association, EncodedPairs, Features, Floats, Ints, WordEncoder, WordOrder, Words
from mtformer.text.pairs import SentencePair

MISALIGNED = "misaligned"
CORRUPTIONS = (MISALIGNED, "truncated", "misordered")
WAYS = (MISALIGNED, "truncated src", "truncated tgt", "misordered src", "misordered tgt")
_SHORTEST = 4  # words of a pair that is cut
_MOST_SHUFFLED = 5_000  # of each half, since texts are slower than numbers
_ROUNDS = 3  # of learning from the text and cleaning it
_N_BINS = 40  # of scores, with equal shares of the copies
_MOST_EXCESS = 2.0  # pairs of the text in a bin for each one that is probably corrupted
_FREE = 0.003  # of a clean text, at most: translations so free or idiomatic that they look misaligned
_LARGEST_SHARE = 0.9  # of corrupted pairs; above it, there is too little translation to learn from
_LEVELS = (0.3, 0.5)  # quantiles of the scores of copies, above which scores are high
_DEVIATIONS = 1.0  # standard deviations of a count, by which it may be too low by chance
_ROUNDING = 1e-6  # of a score, which depends on how many pairs are scored at once
_MOST_STEPS, _SMALLEST_STEP = 20, 1e-6  # of the regressions
_BLOCK = 200  # examples that are multiplied at once; for more, BLAS starts threads, which a busy machine delays
FEWEST_PAIRS = 2_000  # that teach anything
_FEWEST_EXAMPLES = 100  # of each half
_MOST_CELLS = 2**22  # of each half: 64 to 300 megabytes while learning
_MOST_EXAMPLES = 20_000  # of each half, for the regressions
_SEED = 1


class Examples(NamedTuple):
    """Sentence pairs, as texts and encoded."""

    pairs: Sequence[SentencePair]
    encoded: EncodedPairs


def corrupted(examples: Examples, way: str, encoder: WordEncoder, random: np.random.Generator) -> EncodedPairs:
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
    """Tells pairs that are corrupted in one of some ways by their features.

    Attributes:
        weights: of the features, and of a constant, of shape (features + 1, ways).
        shares: (ways,) the estimated share of such pairs in the text.
        thresholds: (ways,) the scores from which on pairs are dropped; infinite for a way in which none is.
    """

    weights: Floats
    shares: Floats
    thresholds: Floats

    @classmethod
    def fit(cls, text: Features, copies: Sequence[Features], usual: Sequence[float]) -> "Classifier":
        """Fit logistic regressions to pairs of a text and corrupted copies, and choose the thresholds.

        The text teaches what good pairs are, but contains bad ones. So it is cleaned, and teaches again.

        Args:
            text: the features of pairs of the text.
            copies: those of copies, for each way of corruption.
            usual: the share of a clean text that looks corrupted in each way; no more than that is not dropped.
        """
        is_good: NDArray[np.bool_] = np.ones(len(text), dtype=np.bool_)
        for _ in range(_ROUNDS):
            weights = np.stack([_logistic_regression(text[is_good], bad) for bad in copies], axis=1)
            scores, *of_copies = (_scores(features, weights) for features in (text, *copies))
            shares = _shares(scores, of_copies)
            shares = np.where(shares > usual, shares, 0)
            thresholds = _thresholds(scores, of_copies, shares)
            is_good = np.asarray((scores < thresholds).all(axis=1))
        return cls(weights, shares, thresholds)


def _scores(features: Features, weights: Floats) -> Floats:
    """Return the log odds of pairs for being corrupted in each way, if half of all were, of shape (pairs, ways)."""
    return features @ weights[:-1] + weights[-1]


def _thresholds(text: Floats, copies: Sequence[Floats], shares: Floats) -> Floats:
    """Return for each way the score from which on a pair of the text is probably corrupted.

    Args:
        text: the scores of pairs of the text, of shape (pairs, ways).
        copies: those of corrupted copies, for each way.
        shares: the share of the text that is corrupted in each way.
    """
    if shares.sum() > _LARGEST_SHARE:
        return np.full(len(copies), np.inf)
    return np.array([_threshold(way, text, copies, shares) for way in range(len(copies))])


def _threshold(way: int, text: Floats, copies: Sequence[Floats], shares: Floats) -> float:
    """Return the threshold of one way: the first limit, from below, around which half of the pairs are corrupted.

    The scores of its copies are divided into bins with equal shares. Good pairs become far more numerous from one bin
    to the next lower one, corrupted ones do not. If there are so many pairs of the text around each limit between two
    bins for each that is probably corrupted, the threshold is limit 2::

        limit    0     1    2    3    4    5 …
        pairs    70.0  6.0  1.6  1.2  1.1  1.0 …
    """
    limits = np.quantile(copies[way][:, way], np.arange(1, _N_BINS) / _N_BINS)
    found = _histogram(text[:, way], limits)
    corrupted = sum(share * _histogram(bad[:, way], limits) for share, bad in zip(shares, copies, strict=True))
    probable = np.flatnonzero(found[: _N_BINS // 2] <= _MOST_EXCESS * corrupted[: _N_BINS // 2])
    return float(limits[probable[0]] - _ROUNDING) if len(probable) and shares[way] else np.inf


def _histogram(scores: Floats, limits: Floats) -> Floats:
    """Return the share of scores around each limit: in the bin below it and in the bin above it."""
    shares = np.bincount(np.searchsorted(limits, scores), minlength=len(limits) + 1) / len(scores)
    return shares[:-1] + shares[1:]


def _shares(text: Floats, copies: Sequence[Floats]) -> Floats:
    """Estimate which share of a text is corrupted in each way.

    Hardly any good pair has high scores. So the pairs of the text with such are a mixture of corrupted ones, which are
    taken to be distributed as the copies are (Lipton et al. 2018). Of several limits for high scores, the one with the
    least share counts (Garg et al. 2021).

    Args:
        text: the scores of pairs of the text, of shape (pairs, ways).
        copies: those of corrupted copies, for each way.
    """
    shares = np.full(len(copies), np.inf)
    for level in _LEVELS:
        limits = np.array([np.quantile(bad[:, way], level) for way, bad in enumerate(copies)])
        found = np.array([_found(bad, limits) for bad in copies])
        found = found + np.eye(len(copies)) * 1e-6
        n_found = _found(text, limits) * len(text)
        high = (n_found + _DEVIATIONS * np.sqrt(n_found)) / len(text)
        shares = np.minimum(shares, np.maximum(0, np.linalg.solve(found.T, high)))
    return shares


def _found(scores: Floats, limits: Floats) -> Floats:
    """Return, for each kind of noise, the share of pairs for which it has the highest score, above its limit."""
    best = scores.argmax(axis=1)
    is_high = scores[np.arange(len(scores)), best] >= limits[best]
    return np.bincount(best[is_high], minlength=len(limits)) / len(scores)


def _logistic_regression(good: Features, bad: Features) -> Floats:
    """Minimize the cross entropy with a little L2 regularization by Newton's method.

    Returns:
        weights of the features, and of a constant.
    """
    features = np.concatenate([good, bad])
    labels = np.repeat([0.0, 1.0], [len(good), len(bad)])
    importance = np.repeat([0.5 / len(good), 0.5 / len(bad)], [len(good), len(bad)]) * len(features)
    mean, scale = features.mean(axis=0), features.std(axis=0) + 1e-9
    features = np.column_stack([(features - mean) / scale, np.ones(len(features))])
    weights = np.zeros(features.shape[1])
    for _ in range(_MOST_STEPS):
        gradient, hessian = weights.copy(), np.eye(len(weights))
        for first in range(0, len(features), _BLOCK):
            block = slice(first, first + _BLOCK)
            rows = features[block]
            probabilities = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
            gradient += (importance[block] * (probabilities - labels[block])) @ rows
            hessian += rows.T @ (rows * (importance[block] * probabilities * (1 - probabilities))[:, None])
        step = np.linalg.solve(hessian, gradient)
        weights -= step
        if abs(step).max() < _SMALLEST_STEP:
            break
    return np.append(weights[:-1] / scale, weights[-1] - mean @ (weights[:-1] / scale))


class Half(NamedTuple):
    """Statistics of the pairs of one half of a text, by which those of the other are judged.

    A capital shows a word out of place, as in ``tree. We shook nuts from the``, so the order of words minds their case;
    their translations do not.
    """

    encoder: WordEncoder
    association: Association
    src_order: WordOrder
    tgt_order: WordOrder

    @classmethod
    def learn(cls, pairs: EncodedPairs, encoder: WordEncoder) -> "Half":
        """Learn from the pairs of a half."""
        association = Association(encoder.in_usual_forms(next(pairs.portions(_MOST_CELLS))))
        return cls(encoder, association, *map(WordOrder, pairs))

    def features(self, pairs: EncodedPairs) -> Features:
        """Return numbers that tell good pairs from bad ones, of shape (pairs, features)."""
        order = self.src_order.features(pairs.src), self.tgt_order.features(pairs.tgt)
        return np.concatenate([self.association.features(self.encoder.in_usual_forms(pairs)), *order], axis=1)


class LearnedRules:
    """Scores pairs for each of :data:`CORRUPTIONS`."""

    def __init__(
        self, encoder: WordEncoder, halves: Sequence[Half], ways: Sequence[str], classifier: Classifier
    ) -> None:
        """Take the results of :meth:`learn`: ``halves[i]`` is learned from the pairs whose half is i."""
        self._encoder = encoder
        self._halves = halves
        self._ways = ways
        self._classifier = classifier

    @classmethod
    def learn(cls, pairs: Sequence[SentencePair], languages: LanguagePair) -> "LearnedRules | None":
        """Learn from a sample of a text; None if it is too small."""
        pairs = [pair for pair in pairs if not pair.is_blank]
        halves = _halves(pairs)
        if len(pairs) < FEWEST_PAIRS or min(np.bincount(halves, minlength=2)) < _FEWEST_EXAMPLES:
            return None
        encoder, words = WordEncoder.learn(pairs, languages)
        numbers = [np.flatnonzero(halves == half) for half in (0, 1)]
        taught = [Half.learn(words.selected(of_half), encoder) for of_half in numbers]
        chosen = [of_half[:_MOST_EXAMPLES] for of_half in numbers]
        examples = [Examples([pairs[i] for i in of_half.tolist()], words.selected(of_half)) for of_half in chosen]
        teachers = taught[::-1]
        text = _features(teachers, [half.encoded for half in examples])
        copies = _features_of_copies(teachers, examples, encoder)
        if not copies:
            return None
        usual = [_FREE if way == MISALIGNED else 0.0 for way in copies]
        return cls(encoder, taught, list(copies), Classifier.fit(text, list(copies.values()), usual))

    @property
    def is_active(self) -> bool:
        """Whether some pairs of the text look corrupted."""
        return bool((self._classifier.thresholds < np.inf).any())

    @property
    def finds_no_translations(self) -> bool:
        """Whether hardly any pairs of the text look like translations."""
        return bool(self._classifier.shares.sum() > _LARGEST_SHARE)

    def scores(self, pairs: Sequence[SentencePair]) -> Floats:
        """Return the log odds of pairs for being corrupted in each way, if half of all were, of shape (pairs, ways)."""
        scores = np.zeros((len(pairs), len(self._ways)))
        halves = _halves(pairs)
        for half, teacher in enumerate(reversed(self._halves)):
            places = np.flatnonzero(halves == half)
            if len(places):
                encoded = self._encoder.encode([pairs[place] for place in places.tolist()])
                scores[places] = _scores(teacher.features(encoded), self._classifier.weights)
        return scores

    def corruptions(self, scores: Floats, names: Collection[str]) -> tuple[list[str | None], Floats]:
        """Tell by their scores which pairs are corrupted, and in which way of some of :data:`CORRUPTIONS`.

        Returns:
            the ways, and by how much the scores exceed their thresholds, which is negative for other pairs.
        """
        of_ways = [way.split()[0] for way in self._ways]
        excess = scores - np.where(np.isin(of_ways, list(names)), self._classifier.thresholds, np.inf)
        largest = excess.max(axis=1)
        worst = zip(excess.argmax(axis=1).tolist(), (largest >= 0).tolist(), strict=True)
        return [of_ways[way] if is_corrupted else None for way, is_corrupted in worst], largest

    def why_inactive(self, name: str) -> str | None:
        """Return the reason why one of :data:`CORRUPTIONS` cannot be found in this text; None if it can."""
        if name not in {way.split()[0] for way in self._ways}:
            return f"fewer than {2 * _FEWEST_EXAMPLES} of its pairs are long enough to learn from"
        if self.finds_no_translations:
            return "hardly any of its pairs look like translations, so there is nothing to learn from"
        return None

    def misalignment(self, pairs: Sequence[SentencePair]) -> Floats:
        """Return the log odds of each pair for being misaligned, if half of all pairs were."""
        return self.misalignment_of(self.scores(pairs))

    def misalignment_of(self, scores: Floats) -> Floats:
        """Return :meth:`misalignment` for pairs with these scores."""
        return scores[:, self._ways.index(MISALIGNED)]

    def shares(self) -> dict[str, float]:
        """Return the estimated share of such pairs in the text, of each of :data:`CORRUPTIONS`."""
        shares = list(zip(self._ways, self._classifier.shares.tolist(), strict=True))
        return {name: min(1.0, sum(share for way, share in shares if name in way)) for name in CORRUPTIONS}


def _halves(pairs: Sequence[SentencePair]) -> Ints:
    """Return the half, 0 or 1, of each pair; pairs with one source are in one half."""
    return (hashes(pair.src for pair in pairs) & np.uint64(1)).astype(np.int64)


def _features(teachers: Sequence[Half], pairs: Sequence[EncodedPairs]) -> Features:
    """Return the features of pairs of both halves, each by the half that judges it."""
    return np.concatenate([teacher.features(half) for teacher, half in zip(teachers, pairs, strict=True)])


def _features_of_copies(
    teachers: Sequence[Half], examples: Sequence[Examples], encoder: WordEncoder
) -> dict[str, Features]:
    """Return the features of corrupted copies, for each of :data:`WAYS` that enough of the examples can have."""
    copies = {}
    for number, way in enumerate(WAYS):
        random = np.random.default_rng((_SEED, number))
        of_halves = [corrupted(half, way, encoder, random) for half in examples]
        if min(len(half.src.lengths) for half in of_halves) >= _FEWEST_EXAMPLES:
            copies[way] = _features(teachers, of_halves)
    return copies
