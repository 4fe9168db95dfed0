"""Realign a text in which lines are missing or extra."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, tee

import numpy as np
from numpy.typing import NDArray

from mtformer.data.clean.filters import Filters
from mtformer.data.clean.learned import MISALIGNED, LearnedRules
from mtformer.data.clean.line_lengths import MOST_REALIGNED, lengths_of, roughly_aligned
from mtformer.data.clean.passages import Passage, Places, Scorer, align, find_passages, merged, translated
from mtformer.data.clean.words import Floats
from mtformer.data.sources.parallel import ParallelText
from mtformer.text.pairs import Drops, Example, SentencePair

_AROUND = 1_000  # pairs before and after those that are out of alignment, which may belong to them
_MOST_MISALIGNED = 0.5  # share of the pairs of a text that teaches what translations are


def aligned(
    part: ParallelText, log_odds: Floats, learned: LearnedRules, is_foreign: NDArray[np.bool_]
) -> list[Passage]:
    """Find the passages of a text, which is read once more for that if some are out of alignment.

    Args:
        part: the text.
        log_odds: of each of its pairs for being misaligned.
        learned: what returns them.
        is_foreign: which pairs are in other languages than expected: their words say nothing about the alignment.

    Returns:
        passages that together are the whole text.

    Raises:
        UserError: the text cannot be read a second time.
    """
    log_odds = np.where(is_foreign, 0.0, log_odds)
    passages = find_passages({0: log_odds})
    teaches_little = learned.shares()[MISALIGNED] > _MOST_MISALIGNED
    better = _taught_by_lengths(part, len(log_odds)) if teaches_little else None
    slips = [passage for passage in passages if passage.shift is None]
    if better and not slips:
        slips = passages  # where all has slipped, nothing looks worse than the rest
    if not slips:
        return passages
    first, end = max(0, slips[0].first - _AROUND), min(slips[-1].end + _AROUND, len(log_odds))
    if end - first > MOST_REALIGNED:
        return passages
    pairs = list(islice(part, first, end))
    odds = np.where(is_foreign[first:end], 0.0, better.misalignment(pairs)) if better else log_odds[first:end]
    found = align(_score_by(better or learned, pairs), odds)
    moved = [Passage(passage.first + first, passage.end + first, passage.shift) for passage in found]
    return merged([Passage(0, first, 0), *moved, Passage(end, len(log_odds), 0)])


def _score_by(learned: LearnedRules, pairs: Sequence[SentencePair]) -> Scorer:
    def score(sources: Places, targets: Places) -> Floats:
        places = zip(sources.tolist(), targets.tolist(), strict=True)
        return learned.misalignment([SentencePair(pairs[source].src, pairs[target].tgt) for source, target in places])

    return score


def _taught_by_lengths(part: ParallelText, n_pairs: int) -> LearnedRules | None:
    """Learn from a text that teaches little as it stands, after a rough realignment; None if that changes nothing."""
    if n_pairs > MOST_REALIGNED:
        return None
    passages = roughly_aligned(lengths_of(list(part)))
    if not any(passage.shift for passage in passages):
        return None
    text = RealignedText(part.sources, *part.languages, passages=passages, n_pairs=n_pairs)
    return Filters([MISALIGNED], part.languages, sample=text).learned


@dataclass(frozen=True)
class RealignedText(ParallelText):
    """A text whose sources stand with their translations.

    Attributes:
        passages: how far away the translations are.
        n_pairs: the number of its pairs as they stand.
    """

    lenient: bool = True
    passages: Sequence[Passage] = ()
    n_pairs: int = 0

    def examples(self, drops: Drops | None = None) -> Generator[Example, None, None]:
        """Yield the pairs of sources and their translations, with the lines of the sources."""
        for source, target in self.joined(drops):
            if target is not None:
                yield source._replace(tgt=target.tgt)

    def joined(self, drops: Drops | None = None) -> Iterator[tuple[Example, Example | None]]:
        """Yield the pairs as they stand, each with the one that has the translation of its source; None without one."""
        sources, targets = tee(super().examples(drops))  # which remembers the lines between them
        n_sources = n_targets = 0
        for first, end, shift in translated(self.passages, self.n_pairs):
            if shift is None or first == end:
                continue
            for source in islice(sources, first - n_sources):
                yield source, None
            between = islice(targets, first + shift - n_targets, end + shift - n_targets)
            yield from zip(islice(sources, end - first), between, strict=False)
            n_sources, n_targets = end, end + shift
        for source in sources:
            yield source, None
