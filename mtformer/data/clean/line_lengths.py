"""Tell by the lengths of lines where the two sides of a text are out of step, without knowing the languages."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mtformer.data.clean.passages import Passage, Places, Scorer, align, slips_of, translated
from mtformer.data.clean.words import Floats
from mtformer.text.pairs import Example, SentencePair

LineLengths = NDArray[np.int32]

UNRELATED = "hardly any pair looks like a translation: are both sides in the same order?"
_CORRELATION = 0.7  # of the lengths of texts and their translations
_WEIGHT = 4.0  # of the odds by lengths, which are small, so that passages of some 50 lines outweigh their borders
MOST_REALIGNED = 4_000_000  # pairs, which take two gigabytes
_FEWEST_SHOWN = 12  # pairs whose lengths show that they are translations
_NEIGHBOURS = 20  # shifts to either side, at which the lengths of translations are less alike
_LEAST_LEAD = 3.0  # standard errors by which they are
_FEWEST_SURE, _SURE_AT_ONCE = 200, 100  # pairs, in which a slip is found if there is one, and parts of them
_FEWEST_UNRELATED = 300  # pairs
# Above 0, since long and short lines may alternate, whose lengths agree at every other shift.
_LARGEST_UNRELATED, _LARGEST_UNRELATED_LEAD = 0.4, 1.0
_SENTENCES, _LEAST_SPREAD = 15, 0.2  # characters on the longer side; words and codes tell too little


def lengths_of(pairs: Sequence[SentencePair | Example]) -> LineLengths:
    """Return the characters of both sides of each pair, shape (pairs, 2)."""
    return np.array([(len(pair.src), len(pair.tgt)) for pair in pairs], dtype=np.int32).reshape(-1, 2)


def aligned_by_lengths(lengths: LineLengths) -> list[Passage]:
    """Find the passages of a text by the lengths of its lines alone (Gale and Church 1993).

    This takes no other text and no knowledge of the languages, but it finds few slips of less than 30 lines, and the
    ends of passages may be a few lines away.

    Args:
        lengths: the characters of both sides of each pair, shape (pairs, 2).

    Returns:
        passages that together are the whole text; one if it is unsure that some have slipped.
    """
    passages = roughly_aligned(lengths) if 0 < len(lengths) <= MOST_REALIGNED else []
    n_unknown = sum(passage.end - passage.first for passage in passages if passage.shift is None)
    if any(passage.shift for passage in passages) and 2 * n_unknown <= len(lengths):
        return passages
    return [Passage(0, len(lengths), 0)]


def describe_alignment(lengths: LineLengths, lines: Sequence[int], *, fixable: bool) -> Iterator[str]:
    """Yield sentences on passages out of alignment, or on a text that is no translation at all.

    Args:
        lengths: the characters of both sides of each pair, shape (pairs, 2).
        lines: the line of each pair.
        fixable: whether --fix changes the text.
    """
    slips = slips_of(aligned_by_lengths(lengths), lines)
    if not slips and are_unrelated(lengths):
        yield UNRELATED
    for slip in slips:
        yield f"{slip}; mtformer data check --fix {slip.remedy}" if fixable else str(slip)


def are_surely_aligned(passages: Sequence[Passage], lengths: LineLengths) -> bool:
    """Tell whether the lengths leave no doubt in any part of a text that its passages are translations.

    There is doubt in sorted text, for instance, where a line is as long as its neighbours.

    Args:
        passages: those of the text.
        lengths: the characters of both sides of each pair, shape (pairs, 2).
    """
    if len(lengths) < _FEWEST_SURE and not any(passage.shift for passage in passages):
        return False
    scores, parts = _length_scores(lengths), []
    for first, end, shift in translated(passages, len(lengths)):
        borders = np.linspace(first, end, max(1, (end - first) // _SURE_AT_ONCE) + 1).astype(int).tolist()
        parts += [Passage(*between, shift) for between in pairwise(borders)]
    return all(_is_shown(scores, part) for part in parts if 2 * (part.end - part.first) >= _SURE_AT_ONCE)


def are_unrelated(lengths: LineLengths) -> bool:
    """Tell whether the lengths of a text show that hardly any pair is a translation.

    Args:
        lengths: the characters of both sides of each pair, shape (pairs, 2).
    """
    filled = lengths[(lengths > 0).all(axis=1)]
    if len(filled) < _FEWEST_UNRELATED or filled.mean(axis=0).max() < _SENTENCES:
        return False
    if np.log(1.0 + filled).std(axis=0).min() < _LEAST_SPREAD:
        return False
    correlation, lead = _likeness(_length_scores(filled), Passage(0, len(filled), 0))
    return correlation < _LARGEST_UNRELATED and lead < _LARGEST_UNRELATED_LEAD


def _is_shown(scores: Floats, passage: Passage) -> bool:
    """Tell whether the lengths of a passage are alike at its shift, and clearly less so at the shifts around it.

    They may be alike at all shifts: in sorted text, or where headings and paragraphs take turns.

    Args:
        scores: those of the lengths, shape (2, pairs).
        passage: some translations, as far as it seems.
    """
    return passage.end - passage.first >= _FEWEST_SHOWN and _likeness(scores, passage)[1] >= _LEAST_LEAD


def _likeness(scores: Floats, passage: Passage) -> tuple[float, float]:
    """Return the correlation of lengths at a shift, and its lead over shifts around, in standard errors."""
    first, end, shift = passage
    if shift is None:
        return 0.0, 0.0
    src, tgt = scores
    correlations = {}
    for other in range(shift - _NEIGHBOURS, shift + _NEIGHBOURS + 1):
        begin, stop = max(first, -other), min(end, len(src) - other)
        if 2 * (stop - begin) >= end - first:
            correlations[other] = _correlation(src[begin:stop], tgt[begin + other : stop + other])
    here = correlations.pop(shift)
    lead = np.arctanh(here) - np.arctanh(max(0.0, *correlations.values()))  # of Fisher's z
    return here, float(lead * np.sqrt(max(0, end - first - 3)))


def roughly_aligned(lengths: LineLengths) -> list[Passage]:
    """Divide a text into passages, also where that is unsure (Gale and Church 1993)."""
    scores, places = _length_scores(lengths), np.arange(len(lengths))
    score = _score_by_lengths(scores)
    return align(score, score(places, places), partial(_is_shown, scores))


def _correlation(first: Floats, second: Floats) -> float:
    """Return the correlation of two series; 0 if the values of one are all the same."""
    first, second = first - first.mean(), second - second.mean()
    product = np.sqrt((first**2).sum() * (second**2).sum())
    return float(np.clip((first * second).sum() / product, -0.999, 0.999)) if product > 1e-6 else 0.0


def _length_scores(lengths: LineLengths) -> Floats:
    """Return the ranks of the lengths on each side as values of a normal distribution, shape (2, pairs).

    Ranks keep a few outliers, such as blank lines, from deciding for all the others.
    """
    scores = np.empty(lengths.T.shape)
    for side, of_side in zip(lengths.T, scores, strict=True):
        _, places, counts = np.unique(side, return_inverse=True, return_counts=True)
        shares = (np.cumsum(counts) - counts / 2) / len(side)
        of_side[:] = np.array([NormalDist().inv_cdf(share) for share in shares.tolist()])[places]
    return scores


def _score_by_lengths(scores: Floats) -> Scorer:
    """Return log odds of being misaligned that depend on the lengths of the two sides alone (Gale and Church 1993).

    They need no knowledge of the languages, but it takes some lines to tell whether these are translations.

    Args:
        scores: those of the lengths of the text, shape (2, pairs).
    """
    src_lengths, tgt_lengths = scores
    noise = 1 - _CORRELATION**2

    def score(sources: Places, targets: Places) -> Floats:
        src, tgt = src_lengths[sources], tgt_lengths[targets]
        return _WEIGHT * ((tgt - _CORRELATION * src) ** 2 / noise - tgt**2 + np.log(noise)) / 2

    return score
