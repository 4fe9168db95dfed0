"""A comparison of systems as text, JSON, Markdown and LaTeX; in text, differences are marked word by word."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from difflib import SequenceMatcher
from itertools import chain, pairwise
from typing import Any, NamedTuple

from mtformer.evaluate.comparison import Estimate, Outcome, SentenceDifference
from mtformer.evaluate.systems import SystemsComparison
from mtformer.support.terminal import as_latex, as_markdown, as_text, counted, escaped, wrap
from mtformer.text.languages import is_written_with_spaces

_WORD = re.compile(r"\w+|[^\w\s]")
_CHARACTER = re.compile(r"[A-Za-z0-9]+|\S")


class Segment(NamedTuple):
    """A part of a translation.

    Attributes:
        text: the part; the segments of a translation, joined, are the translation.
        differs: whether the other translation lacks it in this place.
    """

    text: str
    differs: bool


def mark_differences(before: str, after: str, tgt_lang: str) -> tuple[list[Segment], list[Segment]]:
    """Divide two texts where they differ: by words, or by characters in languages without spaces.

    Args:
        before: the first text.
        after: the second text.
        tgt_lang: their language.
    """
    word = _WORD if is_written_with_spaces(tgt_lang) else _CHARACTER
    ours, theirs = (list(word.finditer(text)) for text in (before, after))
    our_words, their_words = ([match[0] for match in side] for side in (ours, theirs))
    matcher = SequenceMatcher(None, our_words, their_words, autojunk=False)
    changes = [places for kind, *places in matcher.get_opcodes() if kind != "equal"]
    removed = [(ours[i].start(), ours[j - 1].end()) for i, j, _, _ in changes if i < j]
    added = [(theirs[i].start(), theirs[j - 1].end()) for _, _, i, j in changes if i < j]
    return _segments(before, removed), _segments(after, added)


def _segments(text: str, spans: list[tuple[int, int]]) -> list[Segment]:
    """Divide ``text`` at the ends of the different spans, which are given in order and do not overlap."""
    places = [0, *chain.from_iterable(spans), len(text)]
    segments = (Segment(text[start:end], bool(n % 2)) for n, (start, end) in enumerate(pairwise(places)))
    return [segment for segment in segments if segment.text]


_OF_SEEDS = (
    "Of several seeds: mean ± sample standard deviation (n - 1). The p-values are of single runs, and ignore the "
    "variance between seeds."
)
_PLAIN = ("[-", "-]"), ("{+", "+}")  # as in the word diffs of wdiff and Git
_COLOURED = ("\x1b[31m", "\x1b[0m"), ("\x1b[32m", "\x1b[0m")


def format_comparison(
    result: SystemsComparison, format: str, *, coloured: bool = False, columns: int | None = None
) -> str:
    """Format a comparison.

    Args:
        result: the comparison.
        format: ``text``, ``json``, ``markdown`` or ``latex``; the last two contain the table only.
        coloured: show by colour where translations differ, instead of by ``[-…-]`` and ``{+…+}``; in ``text`` only.
        columns: the width of the terminal, to which ``text`` is wrapped, but for sentences, commands and long words;
            None for any width.
    """
    notes = _notes(result)
    match format:
        case "json":
            return json.dumps(_to_dict(result), indent=2, ensure_ascii=False)
        case "markdown":
            return "\n".join([as_markdown(*_table(result)), "", *notes])
        case "latex":
            return "\n".join([*(f"% {note}" for note in notes), as_latex(*_table(result))])
    sections = [
        _wrapped(notes[:1], columns),
        [as_text(*_table(result), columns=columns)],
        _wrapped(result.comparison.verdicts(), columns),
        _wrapped(notes[1:], columns),
    ]
    if result.commands:
        sections.append(["The same numbers from sacreBLEU:", *result.commands])
    for system, differences in result.differences.items():
        sections += [list(_sentence(result, system, difference, coloured)) for difference in differences]
    return "\n\n".join(map("\n".join, filter(None, sections)))


def _wrapped(lines: list[str], columns: int | None) -> list[str]:
    if columns is None:
        return lines
    return [part for line in lines for part in wrap(line, columns, others="  ", keeps_words=True)]


def _sentence(result: SystemsComparison, system: str, difference: SentenceDifference, coloured: bool) -> Iterator[str]:
    """Yield the lines about a sentence: source, references, and the translations of the baseline and another system."""
    test_set, index = result.test_set, difference.index
    baseline = result.comparison.systems[0]
    width = max(map(len, ("reference", baseline, system)))
    scores = "chrF2 {:.1f} and {:.1f}".format(*difference.scores)
    yield f"sentence {index + 1:,}: {scores} ({difference.change:+.1f})"
    if test_set.sources[index]:
        yield f"  {'source':{width}}  {escaped(test_set.sources[index])}"
    for stream in test_set.references:
        yield f"  {'reference':{width}}  {escaped(stream[index])}"
    sides = mark_differences(*difference.hypotheses, result.tgt_lang)
    marks = _COLOURED if coloured else _PLAIN
    for name, segments, (before, after) in zip((baseline, system), sides, marks, strict=True):
        texts = ((escaped(segment.text), segment.differs) for segment in segments)
        marked = "".join(f"{before}{text}{after}" if differs else text for text, differs in texts)
        yield f"  {name:{width}}  {marked}"


def _table(result: SystemsComparison) -> tuple[list[str], list[list[str]]]:
    """Return a row for each system and each group of seeds, with the metrics beside each other."""
    metrics = result.comparison.metrics
    rows = [[system] for system in result.comparison.systems]
    for metric in metrics:
        for row, estimate in zip(rows, metric.estimates, strict=True):
            star = "" if estimate.outcome is Outcome.unclear else "*"
            row.append(f"{estimate.score:.2f}{star} ({estimate.low:.2f} to {estimate.high:.2f})")
    for group in result.groups:
        cells = [f"{scores['mean']:.2f} ± {scores['sd']:.2f}" for scores in group.scores.values()]
        rows.append([f"{group.name}, {len(group.systems)} seeds", *cells])
    return ["system", *(metric.metric for metric in metrics)], rows


def _notes(result: SystemsComparison) -> list[str]:
    """Name the test set, and explain the cells of the table."""
    comparison, test_set = result.comparison, result.test_set
    of_references = "" if any(test_set.sources) else " of the references alone"
    baseline, *others = comparison.systems
    starred = [f"* marks systems that differ from {baseline} (p < 0.05 in both tests)."] if others else []
    return [
        f"{test_set.name}: {counted(comparison.n_sentences, 'sentence')}, fingerprint {test_set.fingerprint}"
        + of_references,
        " ".join(["In parentheses: 95 % confidence intervals.", *starred]),
        *([_OF_SEEDS] if result.groups else []),
        *(f"{metric.metric}: {metric.signature}" for metric in comparison.metrics),
    ]


def _to_dict(result: SystemsComparison) -> dict[str, Any]:
    comparison, test_set = result.comparison, result.test_set
    return {
        "test_set": test_set.name,
        "fingerprint": test_set.fingerprint,
        "sentences": comparison.n_sentences,
        "systems": comparison.systems,
        "metrics": [
            {
                "name": metric.metric,
                "signatures": dict(zip(("bootstrap", "randomization"), metric.signatures, strict=False)),
                "systems": [_estimate(estimate) for estimate in metric.estimates],
            }
            for metric in comparison.metrics
        ],
        "groups": [asdict(group) for group in result.groups],
        "verdicts": comparison.verdicts(),
        "differences": {
            system: [
                {
                    "line": difference.index + 1,
                    "src": test_set.sources[difference.index],
                    "refs": [stream[difference.index] for stream in test_set.references],
                    "hyps": list(difference.hypotheses),
                    "chrF2": list(difference.scores),
                }
                for difference in differences
            ]
            for system, differences in result.differences.items()
        },
        **({"sacrebleu": result.commands} if result.commands else {}),
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    """Return the numbers of a system; the baseline has no difference from itself."""
    of_others = ("difference", "outcome", "p_bootstrap", "p_randomization")
    is_baseline = estimate.p_bootstrap is None
    return {key: value for key, value in asdict(estimate).items() if not (is_baseline and key in of_others)}
