"""The page of one run, and its charts, as the data that ``charts.js`` draws."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mtformer.config import LanguagePair
from mtformer.evaluate.comparison_formats import Segment, mark_differences
from mtformer.report import test_set
from mtformer.report.elements import (
    Detail,
    Html,
    document,
    element,
    fitted,
    markup,
    muted,
    sentence_card,
    table,
    thinned,
)
from mtformer.report.settings import data_and_model, environment, settings
from mtformer.runs.contents import METRIC_NAMES, Contents
from mtformer.support.progress import clock
from mtformer.support.terminal import counted


class _Series(NamedTuple):
    name: str
    key: str
    markers: bool = False


class _Chart(NamedTuple):
    title: str
    series: tuple[_Series, ...]
    options: Mapping[str, Any] = {}


_CHARTS = (
    _Chart(
        "Loss, nats per token",
        (
            _Series("training", "train_loss"),
            _Series("training, with label smoothing", "train_loss_smoothed"),
            _Series("validation", "valid_loss", True),
        ),
        {"logarithmic": True},
    ),
    _Chart("BLEU of the validation text", (_Series("validation", "valid_bleu", True),), {"most": 100}),
    _Chart("BLEU of the general text", (_Series("validation", "valid_general_bleu", True),), {"most": 100}),
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
    without_scripts = element("noscript", element("p", "Charts are drawn with JavaScript, which is turned off."))
    return markup([without_scripts, element("div", figures, class_="charts")])


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


def render(run: Contents, result: test_set.TranslatedTestSet | None = None) -> str:
    """Return the page of a run, with as much detail as ``MAX_PAGE_BYTES`` allows.

    Args:
        run: what is recorded of it.
        result: how its model translates the test set, if that is known.
    """
    return fitted(lambda detail: _render(run, result, detail))


def _render(run: Contents, result: test_set.TranslatedTestSet | None, detail: Detail) -> str:
    charts = curves_of(run, detail.points)
    samples = _samples_data(run, detail)
    sections: list[tuple[str, str, object]] = [
        ("curves", "Curves", _curves(run, charts, detail)),
        ("samples", "Validation samples", _samples(run, samples)),
    ]
    data = {"charts": charts, "marks": marks_of(run), "samples": samples}
    if result:
        more = test_set.charts(result)
        sections.append(("test", "Test set", [test_set.scores(result), chart_figures(more, first=len(charts))]))
        sections.append(("sentences", "Best and worst sentences", test_set.best_and_worst(result, run)))
        data["charts"] = charts + more
    sections += [
        ("data", "Data and model", data_and_model(run, result)),
        ("settings", "Settings", settings(run)),
        ("reproduce", "Environment and reproduction", environment(run)),
    ]
    top = [element("p", describe_state(run), class_="notice"), element("dl", _tiles(run, result), class_="tiles")]
    return document(f"Run {run.name}", top, sections, ["mtformer", "report", str(run.folder.path)], data)


def describe_state(run: Contents) -> str:
    """Return in a sentence how far the run is."""
    of = f" of {run.total_steps:,}" if run.total_steps else ""
    at = f"step {run.step:,}{of}, after {clock(60 * run.minutes)}"
    languages = ", ".join(f"{src_lang} → {tgt_lang}" for src_lang, tgt_lang in run.config.data.language_pairs)
    if not run.metrics:
        state = "training has started, and has not recorded anything yet" if run.is_training else "nothing was trained"
        return f"{languages}: {state}."
    state = "still training" if run.is_training else "finished" if run.is_finished else "stopped"
    missing = "" if run.best else "; there is no model before the first validation"
    return f"{languages}, {state}: {at} of training{missing}."


def _tiles(run: Contents, result: test_set.TranslatedTestSet | None) -> Iterator[Html]:
    def tile(name: str, value: object, note: object) -> Html:
        return element("div", element("dt", name), element("dd", value, element("small", note)))

    if result:
        first = result.scores[0]
        yield tile(f"test {first.name}", f"{first.value:.2f}", f"95 % interval {test_set.interval_of(first)}")
    if best := run.best:
        metric = f"valid_{run.metric}"
        at = f"at step {best['step']:,}"
        how = at if run.metric in ("loss", "perplexity") else f"{at}, by greedy search"
        yield tile(f"best validation {METRIC_NAMES[run.metric]}", score(metric, best[metric]), how)
        if run.metric != "loss" and best["valid_loss"] is not None:
            perplexity = f"perplexity {best['valid_perplexity']:.2f} {at}" if "valid_perplexity" in best else at
            yield tile("validation loss", f"{best['valid_loss']:.3f}", perplexity)
    yield tile("training time", clock(60 * run.minutes), counted(run.step, "step"))
    if n_parameters := sum(run.parameters.values()):
        model = run.config.model
        layers = f"{model.n_encoder_layers} + {model.n_decoder_layers} layers of width {model.d_model}"
        yield tile("parameters", short(n_parameters), layers)
    if data := run.data:
        yield tile("training pairs", short(data["pairs"]), f"{sum(data['dropped'].values()):,} dropped")


def _curves(run: Contents, charts: list[dict[str, Any]], detail: Detail) -> Iterator[Html]:
    if not charts:
        yield element("p", f"{run.folder.metrics.name} has no line yet.")
        return
    thin = thinning_note(run.metrics, detail.points)
    yield muted("Point at a chart or tap it, or select it and use the arrow keys, to read values. ", thin)
    yield controls(charts)
    yield chart_figures(charts)
    if not run.validations:
        return
    named = [key.removeprefix("valid_") for key in run.validations[0]]
    metrics = [name for name in named if name in METRIC_NAMES]
    kept = {line["step"] for line in thinned(run.validations, detail.rows)}
    rows = [
        [
            f"{line['step']:,}" + (" ★" if line is run.best else ""),
            f"{line['seconds'] / 60:.1f}",
            *(score(f"valid_{name}", line.get(f"valid_{name}")) for name in metrics),
        ]
        for line in run.validations
        if line["step"] in kept or line is run.best
    ]
    head = ["step", "minutes", *(METRIC_NAMES[name] for name in metrics)]
    title = f"{counted(len(rows), 'validation')} as a table"
    if len(rows) < len(run.validations):
        title = f"{len(rows):,} of {len(run.validations):,} validations as a table; metrics.jsonl has all"
    yield element("details", element("summary", title), table(head, rows, numbers=range(len(head))))


def _samples_data(run: Contents, detail: Detail) -> dict[str, Any]:
    """Return the samples that are shown, with the words marked in which reference and hypothesis differ."""
    scores = {line["step"]: line for line in run.validations}
    lines = thinned(_sampled(run), detail.sampled)
    n_sentences = min([detail.samples, *(len(line["samples"]) for line in lines)])
    versions = [[_marked(line["samples"][i], run) for line in lines] for i in range(n_sentences)]
    return {"steps": [_step_label(line["step"], scores.get(line["step"], {})) for line in lines], "sentences": versions}


def _marked(sample: Mapping[str, str], run: Contents) -> tuple[list[Segment], list[Segment]]:
    direction = sample.get("direction")
    language = LanguagePair.parse(direction).tgt_lang if direction else run.config.data.tgt_lang
    return mark_differences(sample["ref"], sample["hyp"], language)


def _step_label(step: int, line: Mapping[str, Any]) -> str:
    keys = [("BLEU", "valid_bleu"), ("loss", "valid_loss")]
    return " · ".join([f"step {step:,}", *(f"{name} {score(key, line[key])}" for name, key in keys if key in line)])


def _sampled(run: Contents) -> list[dict[str, Any]]:
    """Return the lines with samples, without those of steps that a resumed run has yet to repeat."""
    return [line for line in run.samples if line["samples"] and line["step"] <= run.step]


def _samples(run: Contents, data: dict[str, Any]) -> Iterator[Html]:
    lines = _sampled(run)
    if not lines:
        yield element("p", "No samples have been recorded.")
        return
    last = len(data["steps"]) - 1
    texts = lines[-1]["samples"][: len(data["sentences"])]
    intro = "How the model translated some sentences of the validation text, by greedy search. "
    yield element("p", intro, test_set.LEGEND)
    shown, n_recorded = (len(data["steps"]), len(texts)), (len(lines), len(lines[-1]["samples"]))
    if shown != n_recorded:
        yield muted(
            f"Shown are {shown[0]:,} of {n_recorded[0]:,} validations and {shown[1]:,} of {n_recorded[1]:,} sentences; "
            f"{run.folder.samples.name} has all. "
        )
    slider = element("input", type="range", min=0, max=last, value=last, aria_label="Validation")
    yield element("div", slider, element("output", data["steps"][-1]), class_="slider")
    cards = []
    for i, (sample, versions) in enumerate(zip(texts, data["sentences"], strict=True)):
        name = f"source, {sample['direction']}" if sample.get("direction") else "source"
        change = element("span", class_="change")
        cards.append(sentence_card(sample["src"], *versions[-1], title=change, name=name, id_=f"sample-{i}"))
    yield element("div", cards, class_="cards")


def score(key: str, value: float | None) -> str:
    """Format a value of ``metrics.jsonl`` for a table."""
    if value is None:
        return "–"
    return f"{value:.4f}" if key == "valid_loss" else f"{value:.2f}"


def short(count: int) -> str:
    """Format a large number in short, as in 4.2 M."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M")):
        if count >= 0.9995 * size:  # which rounds to 1
            return f"{count / size:.3g} {unit}"
    return f"{count:,}"
