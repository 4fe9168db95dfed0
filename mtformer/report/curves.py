"""The charts of a report, as the data that ``charts.js`` draws."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from mtformer.report.elements import Html, element, thinned
from mtformer.runs.contents import Contents


class _Series(NamedTuple):
    name: str
    key: str
    markers: bool = False


class _Chart(NamedTuple):
    title: str
    series: tuple[_Series, ...]
    options: Mapping[str, Any] = MappingProxyType({})


_CHARTS = (
    _Chart(
        "Loss, nats per token",
        (
            _Series("training", "train_loss"),
            _Series("training, as minimized", "train_loss_smoothed"),
            _Series("validation", "valid_loss", True),
        ),
        {"logarithmic": True},
    ),
    _Chart("BLEU of the validation text", (_Series("validation", "valid_bleu", True),), {"most": 100}),
    _Chart("chrF of the validation text", (_Series("validation", "valid_chrf", True),), {"most": 100}),
    _Chart("TER of the validation text", (_Series("validation", "valid_ter", True),)),
    _Chart("Learning rate", (_Series("learning rate", "lr"),), {"fromZero": True, "digits": 3}),
    _Chart("Speed, target tokens per second", (_Series("speed", "tokens_per_second"),), {"fromZero": True}),
    _Chart("Gradient norm, before clipping", (_Series("gradient norm", "grad_norm"),), {"fromZero": True, "digits": 3}),
    _Chart("Memory in use, GiB", (_Series("memory", "memory_gib"),), {"fromZero": True, "digits": 3}),
)


def curves_of(run: Contents, n_points: int) -> list[dict[str, Any]]:
    """Return the charts of one run, those of which there is anything, with ``n_points`` on a curve at most."""
    charts = []
    for title, series, options in _CHARTS:
        curves = list[dict[str, Any]]()
        for style, line in enumerate(series):
            curve = _curve(run, line, line.name, style, n_points)
            # Without label smoothing, both training losses are the same.
            if curve["points"] and curve["points"] not in [earlier["points"] for earlier in curves]:
                curves.append(curve)
        if curves:
            charts.append({"title": title, "series": curves, **options})
    return charts


def curves_side_by_side(runs: Mapping[str, Contents], n_points: int) -> list[dict[str, Any]]:
    """Return charts with a line for each run, of ``n_points`` at most, under the name that it has in ``runs``."""
    charts = []
    for title, series, options in _CHARTS:
        for line in series:
            named = enumerate(runs.items())
            curves = [_curve(run, line, name, style, n_points) for style, (name, run) in named]
            if any(curve["points"] for curve in curves) and line.key != "train_loss_smoothed":
                shown = title if len(series) == 1 else f"{line.name.capitalize()} loss, nats per token"
                charts.append({"title": shown, "series": [curve for curve in curves if curve["points"]], **options})
    return charts


def _curve(run: Contents, line: _Series, name: str, style: int, n_points: int) -> dict[str, Any]:
    kept = thinned(run.curve(line.key), n_points)
    points = [(point.step, round(point.minutes, 4), point.value) for point in kept]
    return {"name": name, "points": points, "markers": line.markers, "style": style}


def marks_of(run: Contents) -> list[dict[str, Any]]:
    """Return the steps to mark: where the run was resumed, and the best model."""
    marked = [(start, "resumed", "resume") for start in run.resumes] + (
        [(run.best, "best", "best")] if run.best else []
    )
    return [{"at": [line["step"], line["seconds"] / 60], "label": label, "kind": kind} for line, label, kind in marked]


def thinning_note(lines: Sequence[Any], n_points: int) -> str:
    """Say that curves through ``lines`` are thinned, if they are."""
    if len(lines) <= n_points:
        return ""
    return f"Of long curves, about {n_points:,} points are drawn; metrics.jsonl has all. "


def chart_figures(charts: Sequence[dict[str, Any]], first: int = 0) -> Html:
    """Return the places of charts, which are numbered from ``first`` in the page's data."""
    figures = [
        element("figure", element("h3", chart["title"]), class_="chart", data_chart=number)
        for number, chart in enumerate(charts, first)
    ]
    return element("div", figures, class_="charts")


def controls(charts: Sequence[dict[str, Any]]) -> Html:
    """Return the buttons that choose the axes."""

    def choice(label: str, name: str, choices: Mapping[str, str]) -> Html:
        buttons = [
            element("button", text, type="button", data_set=name, data_to=to, aria_pressed="false" if i else "true")
            for i, (to, text) in enumerate(choices.items())
        ]
        return element("span", label, *buttons, role="group", aria_label=label)

    axis = choice("against", "axis", {"step": "steps", "minute": "minutes"})
    has_scale = any("logarithmic" in chart for chart in charts)
    scales = choice("loss", "scale", {"linear": "linear", "logarithmic": "logarithmic"}) if has_scale else ""
    return element("div", axis, scales, class_="controls")
