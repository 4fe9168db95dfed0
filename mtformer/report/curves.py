"""The charts of a report, as the data that ``charts.js`` draws."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from mtformer.report.elements import Html, element, joined, thinned
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
        curves = [_curve(run, one, one.name, style, n_points) for style, one in enumerate(series)]
        kept = [curve for i, curve in enumerate(curves) if curve["points"] and not _repeats(curves[:i], curve)]
        if kept:
            charts.append({"title": title, "series": kept, **options})
    return charts


def curves_side_by_side(runs: Sequence[Contents], n_points: int) -> list[dict[str, Any]]:
    """Return charts with a line for each run, of ``n_points`` at most."""
    names = distinct_names(runs)
    charts = []
    for title, series, options in _CHARTS:
        for one in series:
            named = enumerate(zip(runs, names, strict=True))
            curves = [_curve(run, one, name, style, n_points) for style, (run, name) in named]
            if any(curve["points"] for curve in curves) and one.key != "train_loss_smoothed":
                shown = title if len(series) == 1 else f"{one.name.capitalize()} loss, nats per token"
                charts.append({"title": shown, "series": [curve for curve in curves if curve["points"]], **options})
    return charts


def distinct_names(runs: Sequence[Contents]) -> list[str]:
    """Return the names of the runs' folders, or their paths where two have the same name."""
    names = [run.name for run in runs]
    return names if len(set(names)) == len(names) else [str(run.folder.path) for run in runs]


def marks_of(run: Contents) -> list[dict[str, Any]]:
    """Return the steps to mark: where the run was resumed, and the best model."""

    def mark(line: dict[str, Any], label: str, kind: str) -> dict[str, Any]:
        return {"at": [line["step"], line["seconds"] / 60], "label": label, "kind": kind}

    best = [mark(run.best, "best", "best")] if run.best else []
    return [mark(start, "resumed", "resume") for start in run.resumes] + best


def chart_figures(charts: Sequence[dict[str, Any]], first: int = 0) -> Html:
    """Return the places of charts, which are numbered from ``first`` in the page's data."""
    figures = [
        element("figure", element("h3", chart["title"]), class_="chart", data_chart=number)
        for number, chart in enumerate(charts, first)
    ]
    return element("div", joined(figures), class_="charts")


def controls(charts: Sequence[dict[str, Any]]) -> Html:
    """Return the buttons that choose the axes."""

    def choice(label: str, name: str, values: Sequence[str]) -> Html:
        buttons = (
            element("button", value, type="button", data_set=name, data_to=to, aria_pressed="false" if i else "true")
            for i, value in enumerate(values)
            for to in [value.removesuffix("s") if name == "axis" else value]
        )
        return element("span", label, joined(buttons, ""), role="group", aria_label=label)

    scale = choice("loss", "scale", ("linear", "logarithmic")) if any("logarithmic" in c for c in charts) else ""
    return element("div", choice("against", "axis", ("steps", "minutes")), scale, class_="controls")


def _curve(run: Contents, series: _Series, name: str, style: int, n_points: int) -> dict[str, Any]:
    kept = thinned(run.curve(series.key), n_points)
    points = [(point.step, round(point.minutes, 4), point.value) for point in kept]
    return {"name": name, "points": points, "markers": series.markers, "style": style}


def _repeats(earlier: Sequence[dict[str, Any]], curve: dict[str, Any]) -> bool:
    """Tell whether a curve equals an earlier one: without label smoothing, both training losses are the same."""
    return any(curve["points"] == other["points"] for other in earlier)
