"""The page of several runs, side by side."""

import shlex
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mtformer.report.curves import chart_figures, controls, curves_side_by_side, thinning_note
from mtformer.report.elements import Detail, Html, document, element, fitted, muted, table
from mtformer.report.page import describe_state, score, short
from mtformer.runs.contents import METRIC_NAMES, Contents, differing_settings
from mtformer.support.progress import clock


def render_side_by_side(runs: Sequence[Contents]) -> str:
    """Return the page of several runs: their validation scores, their curves, and the settings that differ."""
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        names = [str(run.folder.path) for run in runs]
    named = dict(zip(names, runs, strict=True))
    return fitted(lambda detail: _render(named, detail))


def _render(runs: Mapping[str, Contents], detail: Detail) -> str:
    charts = curves_side_by_side(runs, detail.points)
    thin = thinning_note(max((run.metrics for run in runs.values()), key=len), detail.points)
    states = [element("li", element("b", name), ": ", describe_state(run)) for name, run in runs.items()]
    sections = [
        ("scores", "Validation scores", _validation_scores(runs)),
        ("curves", "Curves", [muted(thin), controls(charts), chart_figures(charts)]),
        ("settings", "Settings that differ", _settings(runs)),
    ]
    command = ["mtformer", "report", *(str(run.folder.path) for run in runs.values())]
    data = {"charts": charts, "marks": [], "namesRuns": True}
    return document(" · ".join(runs), element("ul", states), sections, command, data)


def _validation_scores(runs: Mapping[str, Contents]) -> Iterator[Html]:
    keys = {key for run in runs.values() for line in run.validations for key in line}
    metrics = [metric for metric in METRIC_NAMES if f"valid_{metric}" in keys]
    head = ["run", *(f"validation {METRIC_NAMES[metric]}" for metric in metrics)]
    head += ["at step", "steps", "time", "tokens/s", "parameters"]
    yield table(head, [[name, *_row(run, metrics)] for name, run in runs.items()], numbers=range(1, len(head)))
    note = "Scores are those of each run's best model."
    if len({run.config.provenance.fingerprints.get("valid") for run in runs.values()}) > 1:
        note += " The runs have different validation texts: their scores cannot be compared."
    command = shlex.join(["mtformer", "compare", *(str(run.folder.path) for run in runs.values())])
    test = " Whether the models differ significantly on a test set: "
    yield muted(note, test, element("code", command))


def _row(run: Contents, metrics: Sequence[str]) -> list[str]:
    best: dict[str, Any] = run.best or {}
    speeds = [point.value for point in run.curve("tokens_per_second")]
    return [
        *(score(f"valid_{metric}", best.get(f"valid_{metric}")) for metric in metrics),
        f"{best['step']:,}" if best else "–",
        f"{run.step:,}",
        clock(60 * run.minutes),
        f"{statistics.median(speeds):,.0f}" if speeds else "–",
        short(sum(run.parameters.values())) if run.parameters else "–",
    ]


def _settings(runs: Mapping[str, Contents]) -> Html:
    differing = differing_settings(list(runs.values()))
    if not differing:
        return element("p", "None: the runs have the same settings, text and software.")
    rows = [[element("code", key), *map(_value, values)] for key, values in differing.items()]
    return table(["key", *runs], rows)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_value(item)}" for key, item in value.items() if item is not None)
    if isinstance(value, list):
        return "; ".join(map(_value, value)) or "none"
    return "none" if value is None else str(value)
