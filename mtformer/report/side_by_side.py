"""The page of several runs, side by side."""

import shlex
import statistics
from collections.abc import Sequence
from typing import Any

from mtformer.page import assemble
from mtformer.progress import clock
from mtformer.report.contents import Contents, differing_settings
from mtformer.report.curves import chart_figures, controls, curves_side_by_side, distinct_names
from mtformer.report.elements import Html, element, joined, section, table
from mtformer.report.page import ASSETS, SHOWN_AS, describe_state, footer, score, short


def render_side_by_side(runs: Sequence[Contents]) -> str:
    """Return the page of several runs."""
    names = distinct_names(runs)
    charts = curves_side_by_side(runs)
    sections = [
        ("scores", "Scores", _scores(runs, names)),
        ("curves", "Curves", joined([controls(charts), chart_figures(charts)])),
        ("settings", "Settings that differ", _settings(runs, names)),
    ]
    title = " · ".join(names)
    links = (element("a", name, href=f"#{anchor}") for anchor, name, _ in sections)
    states = (
        element("li", element("b", name), ": ", describe_state(run)) for name, run in zip(names, runs, strict=True)
    )
    body = joined(
        [
            element("header", element("h1", title), element("ul", joined(states))),
            element("nav", joined(links), class_="contents", aria_label="Contents"),
            *(section(anchor, name, content) for anchor, name, content in sections),
            footer(shlex.join(["mtformer", "report", *(str(run.folder.path) for run in runs)])),
        ]
    )
    data = {"charts": charts, "marks": [], "namesRuns": True}
    return assemble(title, body, data=data, assets=ASSETS)


def _scores(runs: Sequence[Contents], names: Sequence[str]) -> Html:
    metrics = [
        metric for metric in SHOWN_AS if any(f"valid_{metric}" in line for run in runs for line in run.validations)
    ]
    head = [
        "run",
        *(f"validation {SHOWN_AS[metric]}" for metric in metrics),
        "at step",
        "steps",
        "time",
        "tokens/s",
        "parameters",
    ]
    rows = [[name, *_row(run, metrics)] for name, run in zip(names, runs, strict=True)]
    note = "Validation scores are those of each run's best model."
    if len({run.config.provenance.fingerprints.get("valid") for run in runs}) > 1:
        note += " The runs have different validation texts: their validation scores cannot be compared."
    return joined([element("p", note), table(head, rows, numbers=range(1, len(head)))])


def _row(run: Contents, metrics: Sequence[str]) -> list[Any]:
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


def _settings(runs: Sequence[Contents], names: Sequence[str]) -> Html:
    differing = differing_settings(runs)
    if not differing:
        return element("p", "None: the runs have the same settings, text and software.")
    rows = [[element("code", key), *(_value(value) for value in values)] for key, values in differing.items()]
    return table(["key", *names], rows)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_value(item)}" for key, item in value.items() if item is not None)
    if isinstance(value, list):
        return "; ".join(map(_value, value)) or "none"
    return "none" if value is None else str(value)
