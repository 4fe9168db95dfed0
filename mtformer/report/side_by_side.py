"""The page of several runs, side by side."""

import shlex
import statistics
from collections.abc import Sequence
from typing import Any

from mtformer.evaluate.comparison import Comparison
from mtformer.report.curves import chart_figures, controls, curves_side_by_side, distinct_names
from mtformer.report.elements import Detail, Html, element, fitted, joined, section, table
from mtformer.report.page import ASSETS, describe_state, footer, score, short, thinning_note
from mtformer.report.results import interval_of
from mtformer.report.test_set import TranslatedTestSet
from mtformer.runs.contents import Contents, differing_settings
from mtformer.runs.metrics import METRIC_NAMES
from mtformer.support.page import assemble
from mtformer.support.progress import clock


def render_side_by_side(
    runs: Sequence[Contents], results: Sequence[TranslatedTestSet | None], comparison: Comparison | None
) -> str:
    """Return the page of several runs.

    Args:
        runs: what is recorded of them.
        results: how the model of each translates its test set, where that is known.
        comparison: whether the models differ significantly, if all have translated the same test set.
    """
    return fitted(lambda detail: _render(runs, results, comparison, detail))


def _render(
    runs: Sequence[Contents], results: Sequence[TranslatedTestSet | None], comparison: Comparison | None, detail: Detail
) -> str:
    names = distinct_names(runs)
    charts = curves_side_by_side(runs, detail.points)
    note = thinning_note(max((run.metrics for run in runs), key=len), detail)
    sections = [
        ("scores", "Scores", joined([_test_scores(results, names, comparison), _validation_scores(runs, names)])),
        ("curves", "Curves", joined([element("p", note, class_="muted"), controls(charts), chart_figures(charts)])),
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


def _test_scores(
    results: Sequence[TranslatedTestSet | None], names: Sequence[str], comparison: Comparison | None
) -> Html:
    known = [(name, result) for name, result in zip(names, results, strict=True) if result]
    if not known:
        return Html()
    metrics = [score.name for score in known[0][1].scores]
    rows = [
        [name, *(joined([f"{score.value:.2f}", element("small", interval_of(score))]) for score in result.scores)]
        for name, result in known
    ]
    head = ["run", *(f"test {metric}" for metric in metrics)]
    parts = [table(head, rows, numbers=range(1, len(head)))]
    if comparison:
        verdicts = (element("li", verdict) for verdict in comparison.verdicts())
        parts.append(element("ul", joined(verdicts)))
    if len({result.fingerprint for _, result in known}) > 1:
        parts.append(element("p", "The runs have different test sets: their test scores cannot be compared."))
    recipes = {score.signature: score.name for _, result in known for score in result.scores}
    signatures = table(["metric", "signature"], [[name, element("code", recipe)] for recipe, name in recipes.items()])
    parts.append(element("p", "Below each score is its 95 % confidence interval, bootstrapped by sacreBLEU."))
    parts.append(element("details", element("summary", "Signatures"), signatures))
    return joined([element("h3", "Test set"), *parts])


def _validation_scores(runs: Sequence[Contents], names: Sequence[str]) -> Html:
    metrics = [
        metric for metric in METRIC_NAMES if any(f"valid_{metric}" in line for run in runs for line in run.validations)
    ]
    head = [
        "run",
        *(f"validation {METRIC_NAMES[metric]}" for metric in metrics),
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
    return joined([element("h3", "Validation"), element("p", note), table(head, rows, numbers=range(1, len(head)))])


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
