"""The page of one run."""

from collections.abc import Iterator, Mapping
from typing import Any

from mtformer.config import LanguagePair
from mtformer.evaluate.comparison_formats import Segment, mark_differences
from mtformer.report.curves import chart_figures, controls, curves_of, marks_of, thinning_note
from mtformer.report.elements import Detail, Html, document, element, fitted, muted, sentence_card, table, thinned
from mtformer.report.settings import data_and_model, environment, settings
from mtformer.report.test_set import (
    LEGEND,
    TranslatedTestSet,
    best_and_worst,
    interval_of,
    test_set_charts,
    test_set_scores,
)
from mtformer.runs.contents import METRIC_NAMES, Contents
from mtformer.support.progress import clock


def render(run: Contents, result: TranslatedTestSet | None = None) -> str:
    """Return the page of a run, with as much detail as ``MAX_PAGE_BYTES`` allows.

    Args:
        run: what is recorded of it.
        result: how its model translates the test set, if that is known.
    """
    return fitted(lambda detail: _render(run, result, detail))


def _render(run: Contents, result: TranslatedTestSet | None, detail: Detail) -> str:
    charts = curves_of(run, detail.points)
    samples = _samples_data(run, detail)
    sections: list[tuple[str, str, object]] = [
        ("curves", "Curves", _curves(run, charts, detail)),
        ("samples", "Validation samples", _samples(run, samples)),
    ]
    data = {"charts": charts, "marks": marks_of(run), "samples": samples}
    if result:
        more = test_set_charts(result)
        sections.append(("test", "Test set", [test_set_scores(result), chart_figures(more, first=len(charts))]))
        sections.append(("sentences", "Best and worst sentences", best_and_worst(result, run)))
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


def _tiles(run: Contents, result: TranslatedTestSet | None) -> Iterator[Html]:
    def tile(name: str, value: object, note: object) -> Html:
        return element("div", element("dt", name), element("dd", value, element("small", note)))

    if result:
        first = result.scores[0]
        yield tile(f"test {first.name}", f"{first.value:.2f}", f"95 % interval {interval_of(first)}")
    if best := run.best:
        metric = f"valid_{run.metric}"
        at = f"at step {best['step']:,}"
        yield tile(f"best validation {METRIC_NAMES[run.metric]}", score(metric, best[metric]), at)
        if run.metric != "loss" and best["valid_loss"] is not None:
            perplexity = f"perplexity {best['valid_perplexity']:.2f} {at}" if "valid_perplexity" in best else at
            yield tile("validation loss", f"{best['valid_loss']:.3f}", perplexity)
    yield tile("training time", clock(60 * run.minutes), f"{run.step:,} steps")
    if n_parameters := sum(run.parameters.values()):
        model = run.config.model
        layers = f"{model.n_encoder_layers} + {model.n_decoder_layers} layers of width {model.d_model}"
        yield tile("parameters", short(n_parameters), layers)
    if pairs := run.data.get("pairs"):
        yield tile("training pairs", short(pairs), f"{sum(run.data['dropped'].values()):,} dropped")


def _curves(run: Contents, charts: list[dict[str, Any]], detail: Detail) -> Iterator[Html]:
    if not charts:
        yield element("p", f"{run.folder.metrics.name} has no line yet.")
        return
    thin = thinning_note(run.metrics, detail.points)
    yield muted("Hover, or select a chart and use the arrow keys, to read values. ", thin)
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
    title = f"{len(rows):,} validations as a table"
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
    yield element("p", "How the model translated some sentences of the validation text, by greedy search. ", LEGEND)
    shown, n_recorded = (len(data["steps"]), len(texts)), (len(lines), len(lines[-1]["samples"]))
    if shown != n_recorded:
        yield muted(
            f"Shown are {shown[0]:,} of {n_recorded[0]:,} validations and {shown[1]:,} of {n_recorded[1]:,} sentences; "
            f"{run.folder.samples.name} has all. "
        )
    slider = element("input", type="range", min=0, max=last, value=last, aria_label="Validation")
    yield element("div", slider, element("output", data["steps"][-1]), class_="slider")
    empty = ("reference", "", "reference"), ("translation", "", "hypothesis")
    cards = []
    for i, sample in enumerate(texts):
        source = f"source, {sample['direction']}" if sample.get("direction") else "source"
        change = element("span", class_="change")
        cards.append(sentence_card([(source, sample["src"], None), *empty], change, f"sample-{i}"))
    yield element("div", cards, class_="cards")


def score(key: str, value: float | None) -> str:
    """Format a value of ``metrics.jsonl`` for a table."""
    if value is None:
        return "–"
    return f"{value:.4f}" if key == "valid_loss" else f"{value:.2f}"


def short(count: int) -> str:
    """Format a large number in short, as in 4.2 M."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M")):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:,}"
