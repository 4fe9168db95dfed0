"""Rules that a text teaches by itself: which of its pairs look like corrupted copies of its pairs.

Copies are corrupted in three ways: targets exchanged between pairs, a side cut off, and the words of a side shuffled.
For each way, a logistic regression learns to tell the pairs of the text from the corrupted ones: by how well the
words of the two sides explain each other (:mod:`~mtformer.data.clean.association`), or by how well those of a side
follow each other (:mod:`~mtformer.data.clean.order`). The scores of the text are then a mixture of those of good
pairs and those of pairs that are corrupted already, if there are any, which expectation maximization tells apart. A
pair is dropped if it is probably one of the latter: a clean text loses almost nothing, and a noisy one most of its
noise.

A pair must not explain itself: each half of the text is judged by what the other half has taught.
"""

import logging
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.config import LanguagePair
from mtformer.data.clean.association import Association
from mtformer.data.clean.classifier import Classifier, Features
from mtformer.data.clean.corruptions import CORRUPTIONS, WAYS, Examples, corrupted
from mtformer.data.clean.ibm_model_1 import EncodedPairs
from mtformer.data.clean.order import WordOrder
from mtformer.data.clean.seen import hashes
from mtformer.data.clean.words import Encoder
from mtformer.text.pairs import SentencePair

log = logging.getLogger(__name__)

_FEWEST_PAIRS = 2_000  # that teach anything
_FEWEST_EXAMPLES = 100  # of each half
_MOST_CELLS = 2**22  # of each half: 64 to 300 megabytes while learning
_MOST_EXAMPLES = 20_000  # of each half, for the regressions
_SEED = 1


class Half(NamedTuple):
    """What the pairs of one half of a text teach about those of the other."""

    association: Association
    src_order: WordOrder
    tgt_order: WordOrder

    @classmethod
    def learn(cls, pairs: EncodedPairs) -> "Half":
        """Learn from the pairs of a half."""
        orders = WordOrder(pairs.src, pairs.src_lengths), WordOrder(pairs.tgt, pairs.tgt_lengths)
        return cls(Association(next(pairs.portions(_MOST_CELLS))), *orders)

    def features(self, pairs: EncodedPairs, aspect: str) -> Features:
        """Return numbers of each pair that tell good pairs from bad ones, of shape (pairs, features)."""
        if aspect == "src order":
            return self.src_order.features(pairs.src, pairs.src_lengths)
        if aspect == "tgt order":
            return self.tgt_order.features(pairs.tgt, pairs.tgt_lengths)
        association = self.association.features(pairs)
        if aspect == "association":
            return association
        ends = self.src_order.ends(pairs.src, pairs.src_lengths), self.tgt_order.ends(pairs.tgt, pairs.tgt_lengths)
        return np.column_stack([association, *ends])


class LearnedRules:
    """Scores pairs for each of :data:`CORRUPTIONS`."""

    def __init__(self, encoder: Encoder, halves: Sequence[Half], classifiers: dict[str, Classifier]) -> None:
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
        judged = [
            (Examples([pairs[number] for number in some.tolist()], words.selected(some)), teacher)
            for some, teacher in zip((of_half[:_MOST_EXAMPLES] for of_half in numbers), reversed(taught), strict=True)
        ]
        good: dict[str, Features] = {}
        classifiers = {}
        for number, way in enumerate(WAYS):
            random = np.random.default_rng((_SEED, number))
            aspect = _aspect(way)
            if aspect not in good:
                good[aspect] = np.concatenate([teacher.features(one.encoded, aspect) for one, teacher in judged])
            copies = [(corrupted(examples, way, encoder, random), teacher) for examples, teacher in judged]
            if min(len(one.src_lengths) for one, _ in copies) >= _FEWEST_EXAMPLES:
                bad = np.concatenate([teacher.features(one, aspect) for one, teacher in copies])
                classifiers[way] = Classifier.fit(good[aspect], bad)
        learned = cls(encoder, taught, classifiers)
        for name, share in learned.shares().items():
            if share:
                log.info("%s: an estimated %.1f %% of the text are %s pairs", languages, 100 * share, name)
        return learned

    def found(self, pairs: Sequence[SentencePair], names: Collection[str]) -> dict[str, NDArray[np.bool_]]:
        """Tell for each of :data:`CORRUPTIONS` that is in ``names`` which pairs to drop."""
        found = {name: np.zeros(len(pairs), dtype=np.bool_) for name in CORRUPTIONS if name in names}
        ways = [way for way, one in self._classifiers.items() if way.split()[0] in found and one.threshold < np.inf]
        for way, scores in self.scores(pairs, ways).items():
            found[way.split()[0]] |= scores >= self._classifiers[way].threshold
        return found

    def misalignment(self, pairs: Sequence[SentencePair]) -> NDArray[np.float64]:
        """Return the log odds of each pair for being misaligned, if half of all pairs were."""
        return self.scores(pairs, ["misaligned"])["misaligned"]

    def scores(self, pairs: Sequence[SentencePair], ways: Sequence[str]) -> dict[str, NDArray[np.float64]]:
        """Return the log odds of each pair for being corrupted in each of some ways, if half of all pairs were."""
        scores = {way: np.zeros(len(pairs)) for way in ways}
        if not ways:
            return scores
        halves = _halves(pairs)
        for half, teacher in enumerate(reversed(self._halves)):
            places = np.flatnonzero(halves == half)
            if len(places):
                encoded = self._encoder.encode([pairs[place] for place in places.tolist()])
                features = {aspect: teacher.features(encoded, aspect) for aspect in set(map(_aspect, ways))}
                for way in ways:
                    scores[way][places] = self._classifiers[way].scores(features[_aspect(way)])
        return scores

    def shares(self) -> dict[str, float]:
        """Return the estimated share of such pairs in the text, of each of :data:`CORRUPTIONS`."""
        return {name: sum(one.share for way, one in self._classifiers.items() if name in way) for name in CORRUPTIONS}


def _halves(pairs: Sequence[SentencePair]) -> NDArray[np.int64]:
    """Return the half, 0 or 1, of each pair; pairs with one source are in one half."""
    return (hashes(pair.src for pair in pairs) & np.uint64(1)).astype(np.int64)


def _aspect(way: str) -> str:
    """Return what tells the pairs that are corrupted in a way."""
    corruption, _, side = way.partition(" ")
    return {"misaligned": "association", "truncated": "association and ends", "misordered": f"{side} order"}[corruption]
