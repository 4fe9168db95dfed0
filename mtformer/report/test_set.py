"""How a run's model translates its test set: scores, the best and the worst sentences, attention."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mtformer.bundle.format import Bundle, load_bundle
from mtformer.evaluate.analysis import Analysis, analyse
from mtformer.evaluate.comparison import Comparison, compare_systems
from mtformer.evaluate.evaluation import best_translations
from mtformer.evaluate.metrics import Score, all_scores, bleu_tokenize, sentence_scores
from mtformer.evaluate.testsets import EvalSet, combined, has_test_set, read_eval_sets
from mtformer.explain.trace import Trace
from mtformer.runs.contents import Contents
from mtformer.support.errors import UserError
from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)

SENTENCE_METRIC = "chrF2"  # steadier than BLEU on a single sentence, and meaningful without words

_N_RESAMPLES = 1_000
_N_WORST, _N_BEST = 8, 4
_TOKENS_OF_TRACE = range(8, 40)  # of a sentence that makes a good picture of attention: more cannot be read


@dataclass(frozen=True)
class Sentence:
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
        name: where it comes from.
        fingerprint: a digest of its text.
        references: one or more lists, as long as ``sentences``.
        tgt_lang: the target language.
        tokenize: BLEU's tokenization.
        step: of the training that the model is from; None if the model does not say.
        search: how the translations were searched for.
        scores: of the whole set, with confidence intervals.
        analysis: what the scores do not say.
        sentences: all of them.
        traced: one of them, and how it was translated; None if all are long.
    """

    name: str
    fingerprint: str
    references: list[list[str]]
    tgt_lang: str
    tokenize: str
    step: int | None
    search: str
    scores: list[Score]
    analysis: Analysis
    sentences: list[Sentence]
    traced: tuple[Sentence, Trace] | None

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
    tokenize = bleu_tokenize(header.bleu_tokenize, header.tgt_lang)
    of_each = sentence_scores(hypotheses, texts.references, header.tgt_lang, tokenize)
    rows = zip(texts.sources, texts.references[0], hypotheses, of_each, strict=True)
    sentences = [
        Sentence(n, src, ref, hyp, scores[SENTENCE_METRIC]) for n, (src, ref, hyp, scores) in enumerate(rows, 1)
    ]
    options = translator.options
    return TranslatedTestSet(
        name=texts.name,
        fingerprint=texts.fingerprint,
        references=texts.references,
        tgt_lang=header.tgt_lang,
        tokenize=tokenize,
        step=header.step,
        search=f"beam size {options.beam_size}, length penalty {options.length_penalty:g}",
        scores=all_scores(hypotheses, texts.references, header.tgt_lang, tokenize, n_bootstrap=_N_RESAMPLES),
        analysis=analyse(
            texts.sources,
            hypotheses,
            texts.references,
            src_lang=header.src_lang,
            tgt_lang=header.tgt_lang,
            tokenize=tokenize,
            tokenizer=bundle.tokenizer,
        ),
        sentences=sentences,
        traced=_traced(translator, sentences),
    )


def _bundle_and_texts(run: Contents) -> tuple[Bundle, EvalSet]:
    """Read the best model of a run, and its test set.

    Raises:
        UserError: one of them is missing or cannot be read, or the model has several directions.
    """
    folder = run.folder
    if not has_test_set(folder.bundle, run.config.data.language_pairs[0]):
        raise UserError(f"{folder.path} has no test set (data.test)")
    if not folder.bundle.is_file():
        raise UserError(f"{folder.path} has no model yet")
    bundle = load_bundle(folder.bundle)
    if bundle.header.directions:
        raise UserError("mtformer eval shows those of a model of several directions")
    return bundle, combined(read_eval_sets(folder.bundle, bundle.header))


def compare_test_sets(results: Mapping[str, TranslatedTestSet | None]) -> Comparison | None:
    """Test whether models differ significantly from the first one; None unless all have translated the same test set.

    Args:
        results: the translated test set of each run, by the run's name.
    """
    known = {name: result for name, result in results.items() if result}
    if len(known) < 2 or len({(result.fingerprint, result.tokenize) for result in known.values()}) > 1:
        return None
    first = next(iter(known.values()))
    hypotheses = {name: [sentence.hyp for sentence in result.sentences] for name, result in known.items()}
    return compare_systems(hypotheses, first.references, tgt_lang=first.tgt_lang, tokenize=first.tokenize)


def _traced(translator: Translator, sentences: Sequence[Sentence]) -> tuple[Sentence, Trace] | None:
    """Trace the translation with the lowest score, if possible of a sentence that is neither short nor long."""
    lengths = [len(ids) for ids in translator.tokenizer.encode_src([sentence.src for sentence in sentences])]
    possible = [
        (length not in _TOKENS_OF_TRACE, sentence.score, sentence)
        for length, sentence in zip(lengths, sentences, strict=True)
        if 1 < length < _TOKENS_OF_TRACE.stop
    ]
    if not possible:
        return None
    chosen = min(possible, key=lambda item: item[:2])[-1]
    return chosen, translator.explain(chosen.src)
