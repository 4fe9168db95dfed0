"""How a run's model translates its test set: scores, the best and the worst sentences."""

import logging
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mtformer.evaluate.analysis import Bucket
from mtformer.evaluate.comparison_formats import mark_differences
from mtformer.evaluate.evaluation import best_translations, score_set
from mtformer.evaluate.metrics import Score, interval, sacrebleu_metric
from mtformer.evaluate.results import SetResult
from mtformer.evaluate.testsets import EvalSet, combined, has_test_set, read_eval_sets
from mtformer.report.elements import Html, element, facts, muted, sentence_card, table
from mtformer.runs.contents import Contents
from mtformer.support.errors import UserError
from mtformer.support.terminal import counted
from mtformer.translate.translator import Translator

if TYPE_CHECKING:
    from mtformer.bundle.format import Bundle

log = logging.getLogger(__name__)

LEGEND = Html(
    "Where translation and reference differ, words are marked: "
    '<mark class="missing">only in the reference</mark>, <mark class="extra">only in the translation</mark>.'
)

_SENTENCE_METRIC = "chrF2"  # steadier than BLEU on a single sentence, and meaningful without words
_N_RESAMPLES = 1_000
_N_WORST, _N_BEST = 8, 4


class Sentence(NamedTuple):
    """A sentence of the test set.

    Attributes:
        number: its place, from 1.
        src: the source.
        ref: the first reference.
        hyp: the translation.
        score: chrF2 of the translation.
    """

    number: int
    src: str
    ref: str
    hyp: str
    score: float


@dataclass(frozen=True)
class TranslatedTestSet:
    """A translated test set.

    Attributes:
        result: scores, with confidence intervals, and analysis.
        n_references: how many human translations each sentence has.
        step: of the training that the model is from; None if the model does not say.
        search: how the translations were searched for.
        sentences: all of them.
    """

    result: SetResult
    n_references: int
    step: int | None
    search: str
    sentences: list[Sentence]

    @property
    def scores(self) -> list[Score]:
        """The scores of the whole set."""
        return self.result.scores

    @property
    def worst(self) -> list[Sentence]:
        """The sentences with the lowest scores, the worst first; none that equals its reference."""
        imperfect = [sentence for sentence in self.sentences if sentence.hyp != sentence.ref]
        return sorted(imperfect, key=lambda sentence: (sentence.score, -len(sentence.ref)))[:_N_WORST]

    @property
    def best(self) -> list[Sentence]:
        """The sentences with the highest scores; of equal ones, the longest."""
        return sorted(self.sentences, key=lambda sentence: (-sentence.score, -len(sentence.ref)))[:_N_BEST]


def translate_test_set(run: Contents, device: str = "auto") -> TranslatedTestSet | None:
    """Translate the test set of a run with its best model and score it; None, with a warning, if that is impossible.

    Raises:
        MtformerError: the model predicts NaN.
    """
    try:
        bundle, texts = _bundle_and_texts(run)
    except UserError as error:
        log.warning("the report has no test scores: %s", error)
        return None
    header = bundle.header
    translator = Translator.load(bundle, device)
    hypotheses = [translation.text for translation in best_translations(translator, texts.sources)]
    score = sacrebleu_metric(_SENTENCE_METRIC, header.tgt_lang).sentence_score
    rows = zip(texts.sources, hypotheses, *texts.references, strict=True)
    sentences = [
        Sentence(n, src, refs[0], hyp, round(score(hyp, refs).score, 2)) for n, (src, hyp, *refs) in enumerate(rows, 1)
    ]
    options = translator.options
    search = f"beam size {options.beam_size}, length penalty {options.length_penalty:g}"
    result = score_set(texts, hypotheses, header, bundle.tokenizer, n_bootstrap=_N_RESAMPLES)
    return TranslatedTestSet(result, len(texts.references), header.step, search, sentences)


def _bundle_and_texts(run: Contents) -> "tuple[Bundle, EvalSet]":
    """Read the best model of a run, and its test set.

    Raises:
        UserError: one of them is missing or cannot be read, or the model has several directions.
    """
    folder = run.folder
    if not has_test_set(folder.bundle, run.config.data.language_pairs[0]):
        raise UserError(f"{folder.path} has no test set (data.test)")
    if not folder.bundle.is_file():
        raise UserError(f"{folder.path} has no model yet")
    from mtformer.bundle.format import load_bundle  # which imports torch

    bundle = load_bundle(folder.bundle)
    if bundle.header.directions:
        raise UserError("mtformer eval shows those of a model of several directions")
    return bundle, combined(read_eval_sets(folder.bundle, bundle.header))


def interval_of(score: Score) -> str:
    """Format the 95 % confidence interval of a score that was bootstrapped."""
    low, high = interval(score.name, score.details["mean"], score.details["ci"])
    return f"{low:.2f} to {high:.2f}"


def scores(translated: TranslatedTestSet) -> Iterator[Html]:
    """Yield the scores of the whole test set."""
    result = translated.result
    rows = [
        [score.name, f"{score.value:.2f}", interval_of(score), element("code", score.signature)]
        for score in result.scores
    ]
    yield table(["metric", "score", "95 % interval", "signature"], rows, numbers=[1, 2])
    yield muted(
        "BLEU and chrF: higher is better; TER: lower. Intervals are bootstrapped by sacreBLEU. A difference between "
        "two models is tested with both on the same sentences, not by comparing intervals. Validation in "
        "training searches greedily, which usually scores a little lower."
    )
    [penalty] = [score.details["brevity_penalty"] for score in result.scores if score.name == "BLEU"]
    about: list[tuple[object, object]] = [
        ("test set", result.name),
        ("sentences", f"{result.n_sentences:,}"),
        ("references", translated.n_references),
        ("fingerprint", result.fingerprint),
        ("model", "" if translated.step is None else f"of step {translated.step:,}"),
        ("search", translated.search),
        ("length ratio", f"{result.length_ratio:.3f}"),
        ("brevity penalty", f"{penalty:.3f}"),
        ("equal to a reference", f"{100 * result.analysis.exact_matches:.1f} %"),
        ("repeat a phrase", f"{100 * result.analysis.repetitions:.1f} %"),
    ]
    yield element("div", facts(about[:5]), facts(about[5:]), class_="columns")


def charts(translated: TranslatedTestSet) -> list[dict[str, Any]]:
    """Return the charts of scores by sentence length, by rarity of words, and of single sentences."""
    analysis = translated.result.analysis
    values = [sentence.score for sentence in translated.sentences]
    bins = [(low, low + 10) for low in range(0, 100, 10)]
    bars = [
        {
            "label": str(low),
            "value": sum(low <= score < high or score == high == 100 for score in values),
            "text": f"sentences with {_SENTENCE_METRIC} {low} to {high}",
        }
        for low, high in bins
    ]
    rarity = "F1 of words by their number of tokens: rare words have many"
    return [
        _buckets("BLEU by length of the reference, in words", "sentences", "words", analysis.by_length),
        _buckets(rarity, "words", "tokens", analysis.by_tokens),
        {"title": f"Sentences by {_SENTENCE_METRIC}", "caption": f"{counted(len(values), 'sentence')}.", "bars": bars},
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


def best_and_worst(translated: TranslatedTestSet, run: Contents) -> Iterator[Html]:
    """Yield the worst and the best sentences, with their differences to the reference marked."""
    language = run.config.data.tgt_lang
    yield element("p", LEGEND)
    for title, sentences in (("Lowest", translated.worst), ("Highest", translated.best)):
        yield element("h3", f"{title} {_SENTENCE_METRIC}")
        if sentences:
            yield element("div", (_sentence(sentence, language) for sentence in sentences), class_="cards")
        else:
            yield element("p", "Every translation equals its reference.")
    sentence = (translated.worst or translated.best)[0]
    command = shlex.join(["mtformer", "explain", sentence.src, "--model", str(run.folder.path)])
    yield muted("How a sentence was translated, step by step, with attention: ", element("code", command))


def _sentence(sentence: Sentence, language: str) -> Html:
    sides = mark_differences(sentence.ref, sentence.hyp, language)
    title = f"sentence {sentence.number:,} · {_SENTENCE_METRIC} {sentence.score:.1f}"
    return sentence_card(sentence.src, *sides, title=title)
