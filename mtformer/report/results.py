"""The part of a page about the test set."""

import shlex
from collections.abc import Sequence
from typing import Any

from mtformer.evaluate.analysis import Bucket
from mtformer.evaluate.comparison_formats import mark_differences
from mtformer.evaluate.metrics import Score, interval
from mtformer.explain.trace import Trace
from mtformer.report.elements import Html, element, facts, joined, sentence_card, table
from mtformer.report.test_set import SENTENCE_METRIC, Sentence, TranslatedTestSet
from mtformer.runs.contents import Contents

LEGEND = Html(
    "Where translation and reference differ, words are marked: "
    '<mark class="missing">only in the reference</mark>, <mark class="extra">only in the translation</mark>.'
)


def interval_of(score: Score) -> str:
    """Format the 95 % confidence interval of a score that was bootstrapped."""
    low, high = interval(score.name, score.details["mean"], score.details["ci"])
    return f"{low:.2f} to {high:.2f}"


def test_set_scores(result: TranslatedTestSet) -> Html:
    """Return the scores of the whole test set."""
    rows = [
        [score.name, f"{score.value:.2f}", interval_of(score), element("code", score.signature)]
        for score in result.scores
    ]
    words = next(score.details for score in result.scores if score.name == "BLEU")
    about: list[tuple[object, object]] = [
        ("test set", result.name),
        ("sentences", f"{len(result.sentences):,}"),
        ("references", len(result.references)),
        ("fingerprint", result.fingerprint),
        ("model", f"of step {result.step:,}" if result.step is not None else ""),
        ("search", result.search),
        ("length ratio", f"{words['hyp_length'] / max(1, words['ref_length']):.3f}"),
        ("brevity penalty", f"{words['brevity_penalty']:.3f}"),
        ("equal to a reference", f"{result.analysis.exact_matches:.1%}"),
        ("repeat a phrase", f"{result.analysis.repetitions:.1%}"),
    ]
    return joined(
        [
            table(["metric", "score", "95 % interval", "signature"], rows, numbers=[1, 2]),
            element(
                "p",
                "BLEU and chrF: higher is better; TER: lower. Intervals are bootstrapped by sacreBLEU. A difference "
                "between two models is tested with both on the same sentences, not by comparing intervals.",
                class_="muted",
            ),
            element("div", facts(about[:5]), facts(about[5:]), class_="columns"),
        ]
    )


def test_set_charts(result: TranslatedTestSet) -> list[dict[str, Any]]:
    """Return the charts of scores by sentence length, by rarity of words, and of single sentences."""
    scores = [sentence.score for sentence in result.sentences]
    bins = [(low, low + 10) for low in range(0, 100, 10)]
    counts = [sum(low <= score < high or score == high == 100 for score in scores) for low, high in bins]
    return [
        _buckets("BLEU by length of the reference, in words", "sentences", "words", result.analysis.by_length),
        _buckets(
            "F1 of words by their number of tokens: rare words have many", "words", "tokens", result.analysis.by_tokens
        ),
        {
            "title": f"Sentences by {SENTENCE_METRIC}",
            "caption": f"{len(scores):,} sentences.",
            "bars": [
                {"label": str(low), "value": count, "text": f"sentences with {SENTENCE_METRIC} {low} to {high}"}
                for (low, high), count in zip(bins, counts, strict=True)
            ],
        },
    ]


def _buckets(title: str, unit: str, of: str, buckets: Sequence[Bucket]) -> dict[str, Any]:
    bars = [
        {
            "label": part.label,
            "value": part.score,
            "count": part.count,
            "text": f"{part.label} {of}, {part.count:,} {unit}",
        }
        for part in buckets
    ]
    return {"title": title, "bars": bars, "caption": f"{sum(part.count for part in buckets):,} {unit}."}


def best_and_worst(result: TranslatedTestSet, language: str) -> Html:
    """Return the worst and the best sentences, with their differences to the reference marked."""
    return joined(
        [
            element("p", LEGEND),
            element("h3", f"Lowest {SENTENCE_METRIC}"),
            element("div", joined(_sentence(sentence, language) for sentence in result.worst), class_="cards")
            if result.worst
            else element("p", "Every translation equals its reference."),
            element("h3", f"Highest {SENTENCE_METRIC}"),
            element("div", joined(_sentence(sentence, language) for sentence in result.best), class_="cards"),
        ]
    )


def _sentence(sentence: Sentence, language: str) -> Html:
    reference, hypothesis = mark_differences(sentence.ref, sentence.hyp, language)
    rows = [
        ("source", sentence.src, None),
        ("reference", marked(reference, "missing"), None),
        ("translation", marked(hypothesis, "extra"), None),
    ]
    return sentence_card(rows, f"sentence {sentence.number:,} · {SENTENCE_METRIC} {sentence.score:.1f}")


def marked(segments: Sequence[tuple[str, bool]], kind: str) -> Html:
    """Return text in which the segments that differ are marked."""
    return joined((element("mark", text, class_=kind) if differs else text for text, differs in segments), "")


def attention_data(trace: Trace) -> dict[str, Any]:
    """Return the cross-attention of a trace: weights by layer, head, target token and source token."""
    cross = [attention for attention in trace.attentions if attention.kind == "cross"]
    return {
        "sources": [token.text for token in trace.source.tokens],
        "targets": [token.text for token in trace.target.tokens],
        "layers": [attention.weights.round(3).tolist() for attention in cross],
    }


def attention_figure(sentence: Sentence, trace: Trace, run: Contents) -> Html:
    """Return a sentence, the place of its heat map, and the controls for layer and head."""
    data = attention_data(trace)
    layers = [element("option", n, value=n - 1) for n in range(len(data["layers"]), 0, -1)]
    heads = [element("option", n, value=n - 1) for n in range(1, len(data["layers"][0]) + 1)]
    choices = element(
        "div",
        element("label", "layer ", element("select", joined(layers))),
        element("label", "head ", element("select", element("option", "mean", value="mean"), joined(heads))),
        class_="controls",
    )
    head = element("tr", element("th"), joined(element("th", element("span", text)) for text in data["sources"]))
    rows = joined(
        element("tr", element("th", text), joined(element("td") for _ in data["sources"])) for text in data["targets"]
    )
    grid = element(
        "table",
        element("thead", head),
        element("tbody", rows),
        tabindex=0,
        role="application",
        aria_label="Cross-attention. Arrow keys read the weights.",
    )
    readout = element("p", class_="readout muted", aria_live="polite")
    figure = element("figure", choices, element("div", grid, class_="scroll"), readout, data_attention="")
    text = (
        "How much the decoder attends to each source token (a column) when it predicts a target token (a row). A row "
        "sums to 1. The whole translation, step by step: "
    )
    command = shlex.join(["mtformer", "explain", sentence.src, "--model", str(run.folder.path)])
    note = element("p", text, element("code", command), class_="muted")
    return joined([note, _sentence(sentence, run.config.data.tgt_lang), figure])
