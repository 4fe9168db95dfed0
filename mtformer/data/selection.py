"""Choosing the best of scored sentence pairs: the curve of scores, and a threshold."""

import json
import math
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mtformer.support.errors import UserError
from mtformer.support.files import require_distinct
from mtformer.support.progress import watched
from mtformer.support.terminal import as_text, shorten
from mtformer.text.lines import input_name, is_regular_input, open_output, read_lines

_SHARES = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)


class CurvePoint(NamedTuple):
    """The effect of a threshold.

    Attributes:
        n_kept: the number of pairs that score at least ``min_score``.
        min_score: the threshold.
        texts: the last pair with that score.
    """

    n_kept: int
    min_score: float
    texts: tuple[str, ...]


def curve(path: Path) -> list[CurvePoint]:
    """Return thresholds that keep all scored pairs, 95 %, 90 % and so on, with an example of each.

    Raises:
        UserError: the file is not one that ``data score`` has written.
    """
    _require_file(path)
    scores = _sorted_scores(path)
    thresholds = {_threshold(scores, share) for share in _SHARES}
    last = {score: line for score, line in _scored_lines(path) if score in thresholds}
    n_kept = {score: len(scores) - bisect_left(scores, score) for score in thresholds}
    return [CurvePoint(n_kept[score], score, _texts(last[score])) for score in sorted(thresholds)]


def describe(points: Sequence[CurvePoint], columns: int | None = None) -> str:
    """Return the curve as a table with the pair at each threshold, cut to the width of a terminal if there is one."""
    n_pairs = points[0].n_kept
    rows = [
        (f"{100 * point.n_kept / n_pairs:.0f} %", f"{point.n_kept:,}", f"{point.min_score}", " ||| ".join(point.texts))
        for point in points
    ]
    header = ("kept", "pairs", "--min-score", "the last pair that is kept")
    numbers = as_text(header[:3], [row[:3] for row in rows], left=0).split("\n")
    texts = (header[3], *(row[3] for row in rows))
    lines = (f"{line}  {text}" for line, text in zip(numbers, texts, strict=True))
    return "\n".join(line if columns is None else shorten(line, columns) for line in lines)


def select(path: Path, output: Path, *, min_score: float | None = None, share: float | None = None) -> tuple[int, int]:
    """Write the lines of the best pairs, in order; pairs with the same score are kept or left together.

    Args:
        path: a file that ``data score`` has written.
        output: where they go; ``-`` is standard output.
        min_score: keep the pairs with at least this score; or
        share: keep this share of the pairs, and those that score the same as the last of them.

    Returns:
        the numbers of pairs that are kept, and of all.

    Raises:
        UserError: the file is not one that ``data score`` has written, or it is the output; or a number is not one that
            the options take.
    """
    require_distinct(output, [path])
    if min_score is not None and not 0 <= min_score <= 1:
        raise UserError(f"--min-score {min_score:g}: a score is from 0 to 1")
    if share is not None:
        if not 0 < share <= 1:
            raise UserError(f"--share {share:g}: a share is above 0 and at most 1")
        _require_file(path)
        min_score = _threshold(_sorted_scores(path), share)
    n_kept = n_pairs = 0
    with open_output(output) as file:
        for score, line in watched(_scored_lines(path), "selecting", "pairs"):
            n_pairs += 1
            if min_score is None or score >= min_score:
                n_kept += 1
                file.write(f"{line}\n")
    return n_kept, n_pairs


def _sorted_scores(path: Path) -> "array[float]":
    return array("d", sorted(score for score, _ in _scored_lines(path)))


def _threshold(scores: Sequence[float], share: float) -> float:
    """Return the score of the worst pair of a share of sorted scores."""
    return scores[-max(1, round(share * len(scores)))]


def _scored_lines(path: Path) -> Iterator[tuple[float, str]]:
    number = 0
    for number, line in enumerate(read_lines(path), 1):
        try:
            yield _score(line), line
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise UserError(
                f"{input_name(path)}:{number}: this is not a line with a score, as `mtformer data score` writes: "
                f"{line[:80]!r}"
            ) from None
    if not number:
        raise UserError(f"{input_name(path)}: there are no scored pairs in it")


def _score(line: str) -> float:
    score = float(json.loads(line)["score"])
    if not math.isfinite(score):
        raise ValueError
    return score


def _texts(line: str) -> tuple[str, ...]:
    return tuple(value for value in json.loads(line).values() if isinstance(value, str))


def _require_file(path: Path) -> None:
    if path.is_dir():
        raise UserError(f"{path} is a folder, not a file")
    if str(path) == "-" or not is_regular_input(path):
        raise UserError(f"{input_name(path)}: its scores are sorted first, so it is read twice: name a file")
