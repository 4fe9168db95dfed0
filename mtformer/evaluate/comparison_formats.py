"""A comparison of systems as text, JSON, CSV, Markdown and LaTeX; in text, differences are marked word by word."""

import json
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from mtformer.evaluate.comparison import Estimate, MetricComparison, Outcome, SentenceDifference
from mtformer.evaluate.systems import SystemsComparison
from mtformer.support.terminal import as_csv, as_latex, as_markdown, as_text, escaped
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


def mark_differences(one: str, other: str, tgt_lang: str) -> tuple[list[Segment], list[Segment]]:
    """Divide two texts where they differ: by words, or by characters in languages without spaces.

    Args:
        one: the first text.
        other: the second text.
        tgt_lang: their language.
    """
    word = _WORD if is_written_with_spaces(tgt_lang) else _CHARACTER
    sides = [(text, list(word.finditer(text))) for text in (one, other)]
    ours, theirs = ([match.group() for match in matches] for _, matches in sides)
    changes = [op for op in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes() if op[0] != "equal"]
    spans_of_both = [(i, j) for _, i, j, _, _ in changes if i < j], [(i, j) for _, _, _, i, j in changes if i < j]
    first, second = (
        list(_segments(text, [(matches[i].start(), matches[j - 1].end()) for i, j in spans]))
        for (text, matches), spans in zip(sides, spans_of_both, strict=True)
    )
    return first, second


def _segments(text: str, spans: list[tuple[int, int]]) -> Iterator[Segment]:
    """Divide ``text`` at the ends of the different spans, which are given in order and do not overlap."""
    end = 0
    for start, stop in spans:
        if end < start:
            yield Segment(text[end:start], False)
        yield Segment(text[start:stop], True)
        end = stop
    if end < len(text):
        yield Segment(text[end:], False)


_PLAIN = ("[-", "-]"), ("{+", "+}")  # as in the word diffs of wdiff and Git
_COLOURED = ("\x1b[31m", "\x1b[0m"), ("\x1b[32m", "\x1b[0m")


def format_comparison(result: SystemsComparison, format: str, *, coloured: bool = False) -> str:
    """Format a comparison.

    Args:
        result: the comparison.
        format: ``text``, ``json``, ``csv``, ``markdown`` or ``latex``; the last three contain the tables only.
        coloured: show by colour where translations differ, instead of by ``[-…-]`` and ``{+…+}``; in ``text`` only.
    """
    match format:
        case "json":
            return json.dumps(_to_dict(result), indent=2, ensure_ascii=False)
        case "csv":
            return as_csv(*_long_table(result))
        case "markdown":
            return f"{as_markdown(*_wide_table(result))}\n\n{_notes(result, '')}"
        case "latex":
            return f"{_notes(result, '% ')}\n{as_latex(*_wide_table(result))}"
        case _:
            return "\n\n".join(_sections(result, coloured))


def _sections(result: SystemsComparison, coloured: bool) -> Iterator[str]:
    comparison, test_set = result.comparison, result.test_set
    yield f"{test_set.name}: {comparison.n_sentences:,} sentences, fingerprint {test_set.fingerprint[:12]}"
    rows = [
        [
            estimate.system,
            metric.metric,
            f"{estimate.score:.2f}",
            f"{estimate.low:.2f} to {estimate.high:.2f}",
            "" if estimate.p_bootstrap is None else f"{estimate.difference:+.2f}",
            _p_value(estimate.p_bootstrap),
            _p_value(estimate.p_randomization),
        ]
        for metric in comparison.metrics
        for estimate in metric.estimates
    ]
    header = ["system", "metric", "score", "95 % interval", "difference", "p (bootstrap)", "p (randomization)"]
    yield as_text(header, rows, left=2)
    if result.groups:
        header = ["mean ± standard deviation", *(metric.metric for metric in comparison.metrics)]
        yield as_text(header, [_group_row(result, i) for i in range(len(result.groups))])
    yield "\n".join(comparison.verdicts())
    yield "\n".join(f"{metric.metric}: {metric.signature}" for metric in comparison.metrics)
    if result.commands:
        yield "\n".join(["The same numbers from sacreBLEU:", *result.commands])
    for system, differences in result.differences.items():
        for difference in differences:
            yield "\n".join(_sentence(result, system, difference, coloured))


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
    for name, segments, marks in zip((baseline, system), sides, _COLOURED if coloured else _PLAIN, strict=True):
        yield f"  {name:{width}}  {_marked(segments, *marks)}"


def _marked(segments: list[Segment], before: str, after: str) -> str:
    texts = ((escaped(segment.text), segment.differs) for segment in segments)
    return "".join(f"{before}{text}{after}" if differs else text for text, differs in texts)


def _p_value(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def _long_table(result: SystemsComparison) -> tuple[list[str], list[list[str]]]:
    """Return a row for each system and metric, and for each group of seeds and metric."""
    header = "system runs metric score sd low high difference p_bootstrap p_randomization outcome".split()
    rows = []
    for metric in result.comparison.metrics:
        for e in metric.estimates:
            is_tested = e.p_bootstrap is not None
            numbers = [e.score, None, e.low, e.high, e.difference if is_tested else None]
            cells = map(_number, [*numbers, e.p_bootstrap, e.p_randomization])
            rows.append([e.system, "1", metric.metric, *cells, str(e.outcome) if is_tested else ""])
        for group in result.groups:
            mean, deviation = group.scores[metric.metric]
            summary = [mean, deviation, *[None] * 5]
            rows.append([group.name, str(len(group.systems)), metric.metric, *map(_number, summary), ""])
    return header, rows


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _wide_table(result: SystemsComparison) -> tuple[list[str], list[list[str]]]:
    """Return a row for each system and each group of seeds, with the metrics beside each other."""
    metrics = result.comparison.metrics
    rows = [
        [system, *(_cell(metric.estimates[place]) for metric in metrics)]
        for place, system in enumerate(result.comparison.systems)
    ]
    groups = [_group_row(result, place) for place in range(len(result.groups))]
    return ["system", *(metric.metric for metric in metrics)], rows + groups


def _cell(estimate: Estimate) -> str:
    star = "" if estimate.outcome is Outcome.unclear else "*"
    return f"{estimate.score:.2f}{star} ({estimate.low:.2f} to {estimate.high:.2f})"


def _group_row(result: SystemsComparison, place: int) -> list[str]:
    group = result.groups[place]
    cells = [f"{mean:.2f} ± {deviation:.2f}" for mean, deviation in group.scores.values()]
    return [f"{group.name}, {len(group.systems)} seeds", *cells]


def _notes(result: SystemsComparison, prefix: str) -> str:
    """Explain the cells of the wide table."""
    comparison, test_set = result.comparison, result.test_set
    notes = [
        f"{comparison.n_sentences:,} sentences of {test_set.name}. In parentheses: 95 % confidence intervals. "
        f"* marks systems that differ from {comparison.systems[0]} (p < 0.05 in both tests).",
        *(["Of several seeds: mean ± standard deviation."] if result.groups else []),
        *(f"{metric.metric}: {metric.signature}" for metric in comparison.metrics),
    ]
    return "\n".join(f"{prefix}{note}" for note in notes)


def _to_dict(result: SystemsComparison) -> dict[str, Any]:
    comparison, test_set = result.comparison, result.test_set
    return {
        "test_set": test_set.name,
        "fingerprint": test_set.fingerprint,
        "sentences": comparison.n_sentences,
        "systems": comparison.systems,
        "metrics": [_metric_dict(metric) for metric in comparison.metrics],
        "groups": [
            {
                "name": group.name,
                "systems": group.systems,
                "scores": {name: {"mean": mean, "sd": deviation} for name, (mean, deviation) in group.scores.items()},
            }
            for group in result.groups
        ],
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


def _metric_dict(metric: MetricComparison) -> dict[str, Any]:
    bootstrap, randomization = metric.signatures
    return {
        "name": metric.metric,
        "signatures": {"bootstrap": bootstrap, "randomization": randomization},
        "systems": [
            {
                "system": estimate.system,
                "score": estimate.score,
                "mean": estimate.mean,
                "ci": estimate.ci,
                "low": estimate.low,
                "high": estimate.high,
                **(
                    {}
                    if estimate.p_bootstrap is None
                    else {
                        "difference": estimate.difference,
                        "p_bootstrap": estimate.p_bootstrap,
                        "p_randomization": estimate.p_randomization,
                        "outcome": str(estimate.outcome),
                    }
                ),
            }
            for estimate in metric.estimates
        ],
    }
