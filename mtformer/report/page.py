"""The page of one run."""

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from mtformer.config import LanguagePair
from mtformer.evaluate.comparison_formats import Segment, mark_differences
from mtformer.report.curves import chart_figures, controls, curves_of, marks_of
from mtformer.report.elements import (
    Detail,
    Html,
    element,
    facts,
    fitted,
    joined,
    section,
    sentence_card,
    table,
    thinned,
)
from mtformer.report.environment import environment
from mtformer.report.results import (
    LEGEND,
    attention_data,
    attention_figure,
    best_and_worst,
    interval_of,
    test_set_charts,
    test_set_scores,
)
from mtformer.report.test_set import TranslatedTestSet
from mtformer.runs.contents import Contents
from mtformer.runs.metrics import METRIC_NAMES
from mtformer.support import __version__
from mtformer.support.page import assemble
from mtformer.support.progress import clock

ASSETS = [("mtformer.report", name) for name in ("report.css", "charts.js", "samples.js", "attention.js")]


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
    sections = [
        ("curves", "Curves", _curves(run, charts, detail)),
        ("samples", "Validation samples", _samples(run, samples)),
    ]
    data = {"charts": charts, "marks": marks_of(run), "samples": samples}
    if result:
        more = test_set_charts(result)
        shown = [test_set_scores(result), chart_figures(more, first=len(charts))]
        sections.append(("test", "Test set", joined(shown)))
        sections.append(("sentences", "Best and worst sentences", best_and_worst(result, run.config.data.tgt_lang)))
        data["charts"] = charts + more
        if result.traced:
            sentence, trace = result.traced
            sections.append(("attention", "Attention", attention_figure(sentence, trace, run)))
            data["attention"] = attention_data(trace)
    sections += [
        ("data", "Data and model", _data_and_model(run, result)),
        ("settings", "Settings", _settings(run)),
        ("reproduce", "Environment and reproduction", environment(run)),
    ]
    links = (element("a", title, href=f"#{anchor}") for anchor, title, _ in sections)
    body = joined(
        [
            element("header", element("h1", f"Run {run.name}"), element("p", describe_state(run), class_="notice")),
            _tiles(run, result),
            element("nav", joined(links), class_="contents", aria_label="Contents"),
            *(section(anchor, title, content) for anchor, title, content in sections),
            footer(shlex.join(["mtformer", "report", str(run.folder.path)])),
        ]
    )
    return assemble(f"Run {run.name}", body, data=data, assets=ASSETS)


def footer(command: str) -> Html:
    """Return the end of a page: when it was written, and the command that writes it again."""
    written = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    text = f"Written on {written} by mtformer {__version__}: ", element("code", command)
    return element("footer", element("p", *text, class_="muted"))


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


def _tiles(run: Contents, result: TranslatedTestSet | None) -> Html:
    def tile(name: str, value: object, note: object = "") -> Html:
        return element("div", element("dt", name), element("dd", value, element("small", note) if note else ""))

    tiles = []
    if result:
        first = result.scores[0]
        tiles.append(tile(f"test {first.name}", f"{first.value:.2f}", f"95 % interval {interval_of(first)}"))
    if best := run.best:
        metric = f"valid_{run.metric}"
        at = f"at step {best['step']:,}"
        tiles.append(tile(f"best validation {METRIC_NAMES[run.metric]}", score(metric, best[metric]), at))
        if run.metric != "loss" and best["valid_loss"] is not None:
            perplexity = f"perplexity {best['valid_perplexity']:.2f} {at}" if "valid_perplexity" in best else at
            tiles.append(tile("validation loss", f"{best['valid_loss']:.3f}", perplexity))
    tiles.append(tile("training time", clock(60 * run.minutes), f"{run.step:,} steps"))
    if n_parameters := sum(run.parameters.values()):
        model = run.config.model
        layers = f"{model.n_encoder_layers} + {model.n_decoder_layers} layers of width {model.d_model}"
        tiles.append(tile("parameters", short(n_parameters), layers))
    if pairs := run.data.get("pairs"):
        n_dropped = sum(run.data["dropped"].values())
        tiles.append(tile("training pairs", short(pairs), f"{n_dropped:,} dropped"))
    return element("dl", joined(tiles), class_="tiles")


def _curves(run: Contents, charts: list[dict[str, Any]], detail: Detail) -> Html:
    if not charts:
        return element("p", f"{run.folder.metrics.name} has no line yet.")
    named = [key.removeprefix("valid_") for key in run.validations[0]] if run.validations else []
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
    numbers = table(head, rows, numbers=range(len(head)))
    title = (
        f"{len(rows):,} validations as a table"
        if len(rows) == len(run.validations)
        else (f"{len(rows):,} of {len(run.validations):,} validations as a table; metrics.jsonl has all")
    )
    thin = thinning_note(run.metrics, detail)
    return joined(
        [
            element("p", "Hover, or select a chart and use the arrow keys, to read values. ", thin, class_="muted"),
            controls(charts),
            chart_figures(charts),
            element("details", element("summary", title), numbers) if rows else "",
        ]
    )


def thinning_note(lines: Sequence[Any], detail: Detail) -> str:
    """Say that curves through ``lines`` are thinned, if they are."""
    if len(lines) <= detail.points:
        return ""
    return f"Of long curves, about {detail.points:,} points are drawn; metrics.jsonl has all. "


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
    shown = [
        f"{METRIC_NAMES[name]} {score(key, line[key])}"
        for name in ("bleu", "loss")
        for key in [f"valid_{name}"]
        if key in line
    ]
    return " · ".join([f"step {step:,}", *shown])


def _sampled(run: Contents) -> list[dict[str, Any]]:
    """Return the lines with samples, without those of steps that a resumed run has yet to repeat."""
    return [line for line in run.samples if line["samples"] and line["step"] <= run.step]


def _samples(run: Contents, data: dict[str, Any]) -> Html:
    lines = _sampled(run)
    if not lines:
        return element("p", "No samples have been recorded.")
    last = len(data["steps"]) - 1
    texts = lines[-1]["samples"][: len(data["sentences"])]
    shown, n_recorded = (len(data["steps"]), len(texts)), (len(lines), len(lines[-1]["samples"]))
    left_out = (
        f"Shown are {shown[0]:,} of {n_recorded[0]:,} validations and {shown[1]:,} of {n_recorded[1]:,} sentences; "
        f"{run.folder.samples.name} has all. "
    )
    cards = [
        sentence_card(
            [
                (_source_title(sample), sample["src"], None),
                ("reference", "", "reference"),
                ("translation", "", "hypothesis"),
            ],
            title=element("span", class_="change"),
            id_=f"sample-{i}",
        )
        for i, sample in enumerate(texts)
    ]
    slider = element("input", type="range", min=0, max=last, value=last, aria_label="Validation")
    return joined(
        [
            element("p", "How the model translated some sentences of the validation text, by greedy search. ", LEGEND),
            element("p", left_out, class_="muted") if shown != n_recorded else "",
            element("div", slider, element("output", data["steps"][-1]), class_="slider"),
            element("div", joined(cards), class_="cards"),
        ]
    )


def _source_title(sample: Mapping[str, str]) -> str:
    return f"source, {sample['direction']}" if sample.get("direction") else "source"


def _data_and_model(run: Contents, result: TranslatedTestSet | None) -> Html:
    config, data = run.config.data, run.data
    recorded = data.get("pairs_by_source", [])
    by_source = recorded if len(recorded) == len(config.train) else [None] * len(config.train)
    rows = [["train", source_label(source), count] for source, count in zip(config.train, by_source, strict=True)]
    rows += [
        [part, joined(map(source_label, sources), "; ") if sources else "held out of train", count]
        for part, sources, count in (
            ("valid", config.valid, data.get("valid_pairs")),
            ("test", config.test, len(result.sentences) if result else None),
        )
        if sources or part in config.held_out
    ]
    dropped = data.get("dropped", {})
    shown = [[part, names, f"{count:,}" if count is not None else "–"] for part, names, count in rows]
    parts = [element("h3", "Data"), table(["part", "sources", "pairs"], shown, numbers=[2])]
    if data:
        parts.append(
            element(
                "p",
                f"{data['pairs']:,} pairs with {data['src_tokens']:,} source and {data['tgt_tokens']:,} target tokens "
                "were trained on. "
                + (f"{sum(dropped.values()):,} pairs were dropped:" if dropped else "No pair was dropped."),
            )
        )
    if dropped:
        parts.append(table(["reason", "pairs"], [[why, f"{n:,}"] for why, n in dropped.items()], numbers=[1]))
    return element("div", element("div", joined(parts)), element("div", _model(run)), class_="columns")


def source_label(source: Any) -> str:
    """Return a source of a config in short, with its keys where they are needed."""
    given = source.model_dump(mode="json", exclude_defaults=True)
    directions = given.pop("directions", [])
    mixing = [f"{key} {given.pop(key)}" for key in ("weight", "tag") if key in given]
    return ", ".join([*map(str, given.values()), *directions, *mixing])


def _model(run: Contents) -> Html:
    model, tokenizer = run.config.model, run.config.tokenizer
    sizes = run.vocab_sizes
    vocabulary = f"{tokenizer.vocab_size:,} tokens"
    if sizes:
        vocabulary = (
            f"{sizes[0]:,} tokens" if tokenizer.joint else f"{sizes[0]:,} source and {sizes[1]:,} target tokens"
        )
    rows: list[tuple[object, object]] = [
        ("layers", f"{model.n_encoder_layers} encoder, {model.n_decoder_layers} decoder"),
        (
            "width",
            f"d_model {model.d_model}, d_ff {model.d_ff}, {model.n_heads} heads of {model.d_model // model.n_heads}",
        ),
        ("norm", f"{model.norm}-norm, {model.norm_type}"),
        ("feed-forward", model.feed_forward),
        ("positions", model.positions),
        ("dropout", model.dropout),
        ("tokenizer", f"{tokenizer.type}, {'joint' if tokenizer.joint else 'one for each language'}"),
        ("vocabulary", vocabulary),
        *((f"parameters, {part}", f"{count:,}") for part, count in run.parameters.items()),
    ]
    return joined([element("h3", "Model"), facts(rows)])


def _settings(run: Contents) -> Html:
    training, search = run.config.training, run.config.search
    limits = [
        f"{value:,.9g} {name if value != 1 else name.removesuffix('s')}"
        for name in ("steps", "epochs", "minutes")
        if (value := getattr(training, f"max_{name}")) is not None
    ]
    rows: list[tuple[object, object]] = [
        ("fine-tuned from", training.init_from),
        ("kept fixed", ", ".join(training.freeze)),
        ("optimizer", f"{training.optimizer}, weight decay {training.weight_decay:g}"),
        (
            "learning rate",
            f"{training.learning_rate:g} at most, {training.schedule}, up to {training.warmup_steps:,} warm-up steps",
        ),
        (
            "batch",
            f"{training.max_tokens:,} tokens"
            + (f" × {training.grad_accum_steps}" if training.grad_accum_steps > 1 else ""),
        ),
        ("limit", ", ".join(limits)),
        ("label smoothing", training.label_smoothing),
        ("gradient clipping", training.max_grad_norm),
        ("weight average", training.ema_decay or "none"),
        ("best model by", f"validation {METRIC_NAMES[run.metric]}"),
        ("seed", training.seed),
        ("search", f"beam size {search.beam_size}, length penalty {search.length_penalty:g}"),
    ]
    changes = [
        [f"{change.step:,}", change.key, str(change.old), str(change.new)] for change in run.config.provenance.changes
    ]
    changed = [
        element("h3", "Changed when the run was resumed"),
        table(["step", "key", "old", "new"], changes, numbers=[0]),
    ]
    text = run.folder.config.read_text(encoding="utf-8", errors="replace")
    whole = element("details", element("summary", "config.yaml"), element("pre", text, tabindex=0))
    return joined([facts(rows), *(changed if changes else []), whole])


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
