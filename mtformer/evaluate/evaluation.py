"""Score a model on test sets."""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from statistics import fmean
from typing import IO, Any, Unpack

from mtformer.bundle.header import ANY, Header, Toward
from mtformer.engines.loading import LoadedModel
from mtformer.evaluate import metrics
from mtformer.evaluate.analysis import analyse
from mtformer.evaluate.results import Evaluation, Evaluations, Likelihood, ScoredModel, SetResult
from mtformer.evaluate.testsets import EvalSet, TextOptions, combined, has_test_set, read_eval_sets
from mtformer.runs.folder import run_of
from mtformer.search.engine import ScoreRequest, results_of
from mtformer.support.errors import UserError
from mtformer.support.files import require_distinct
from mtformer.support.progress import Progress
from mtformer.text.lines import open_output
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.translate.translation import Translation
from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)


def evaluate_loaded(
    paths: Sequence[Path],
    model: LoadedModel,
    *,
    comet: str | None = None,
    output: Path | None = None,
    save: Path | None = None,
    device: str = "auto",
    raw: bool = False,
    **texts: Unpack[TextOptions],
) -> Evaluation:
    """Translate test sets and score the translations, each set and all together.

    Args:
        paths: what the model was loaded from: the bundle, or the folder of an exported model; or the bundles of an
            ensemble.
        model: the model, toward one of its directions.
        comet: a model of COMET to score with too.
        output: write the translations there, one a line.
        save: write a JSON object for each sentence there.
        device: where to compute.
        raw: translate with the model alone, without changes to texts before and checks of translations after.
        texts: the test sets, as for :func:`read_eval_sets`; without any, those of the first bundle's run.

    Raises:
        UserError: a test set cannot be used, or a file to write is one of the input files or the config of a run.
        MtformerError: sacreBLEU cannot download a test set, or COMET failed.
    """
    sets = read_test_sets(paths, model, [output, save], **texts)
    translator, header, whole = Translator.load(model, raw=raw), model.header, combined(sets)
    with opened(output) as plain, opened(save) as rows:  # first: a wrong path must not cost the work
        translations = best_translations(translator, whole.sources)
        hypotheses = [translation.text for translation in translations]
        if plain is not None:
            plain.writelines(f"{hypothesis}\n" for hypothesis in hypotheses)
        from_comet = None
        if comet is not None:
            references = whole.references[0]
            from_comet = metrics.comet_scores(whole.sources, hypotheses, references, model=comet, device=device)
        if rows is not None:
            lines = _rows(sets, translations, header, from_comet)
            rows.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in lines)
    log_probs = reference_log_probs(translator, whole)

    def score(texts: EvalSet, part: slice) -> SetResult:
        likelihood = Likelihood.of(log_probs[part])
        result = score_set(texts, hypotheses[part], header, model.tokenizer, likelihood)
        if from_comet is None:
            return result
        mean = 100 * fmean(from_comet[part])  # as papers report it
        return replace(result, scores=[*result.scores, metrics.Score("COMET", mean, f"model:{comet}|scale:100")])

    ends = accumulate(len(test_set.sources) for test_set in sets)
    results = [score(one, slice(end - len(one.sources), end)) for one, end in zip(sets, ends, strict=True)]
    total = results[0] if len(results) == 1 else score(whole, slice(None))
    commands = []
    if output and whole.sacrebleu_arguments:
        recipe = header.tgt_lang, header.bleu_tokenize
        commands = metrics.sacrebleu_commands(output, whole.sacrebleu_arguments, *recipe)
    return Evaluation(ScoredModel(tuple(paths), model, raw), hypotheses, results, total, commands)


def read_test_sets(
    paths: Sequence[Path], model: LoadedModel, outputs: Sequence[Path | None], **texts: Unpack[TextOptions]
) -> list[EvalSet]:
    """Read the test sets of a model, and refuse outputs that are among the inputs; see :func:`evaluate_loaded`."""
    sets = read_eval_sets(paths[0], model.header, **texts)
    written = [output for output in outputs if output is not None]
    files = [*paths, *(file for test_set in sets for file in test_set.files)]
    files += [run.config for run in map(run_of, paths) if run]
    for output in written:
        require_distinct(output, files)
    if len({output.resolve() for output in written}) < len(written):
        raise UserError(f"{written[0]} cannot have both the translations and the sentences' scores: name two files")
    return sets


def opened(path: Path | None) -> AbstractContextManager[IO[str] | None]:
    """Open a file to write; None for none."""
    return nullcontext() if path is None else open_output(path)


def best_translations(translator: Translator, sources: Sequence[str]) -> list[Translation]:
    """Translate ``sources`` with a progress bar, each into its best translation."""
    with Progress("translating", len(sources), unit="lines") as progress:
        return [best for best, *_ in translator.translate(sources, on_progress=progress.advance)]


def reference_log_probs(translator: Translator, texts: EvalSet) -> list[Sequence[float] | None]:
    """Return the log probabilities of the tokens of each first reference.

    None stands for a pair with an empty side or more tokens than the model takes at once.

    Raises:
        MtformerError: the model predicts NaN.
    """
    tokenizer, longest = translator.tokenizer, translator.max_length
    pairs = list(zip(tokenizer.encode_src(texts.sources), tokenizer.encode_tgt(texts.references[0]), strict=True))
    shortest = 1 + len(tokenizer.prefixes.src)  # of a source: that of the empty one
    requests = {
        place: ScoreRequest(src, tgt[:-1], tokenizer.prefixes.tgt)
        for place, (src, tgt) in enumerate(pairs)
        if shortest < len(src) <= longest and 1 < len(tgt) <= longest
    }
    scores = dict(zip(requests, results_of(translator.engine, list(requests.values())), strict=True))
    return [scores.get(place) for place in range(len(pairs))]


def score_set(
    texts: EvalSet,
    hypotheses: Sequence[str],
    header: Header,
    tokenizer: Tokenizer,
    likelihood: Likelihood | None = None,
    *,
    n_bootstrap: int = 1,
) -> SetResult:
    """Score and analyse the translations of a test set by the model of ``header``.

    Args:
        texts: the test set.
        hypotheses: the translations.
        header: of the model.
        tokenizer: the model's.
        likelihood: that of the first reference.
        n_bootstrap: as for :func:`mtformer.evaluate.metrics.all_scores`.
    """
    tokenize = metrics.bleu_tokenize(header.bleu_tokenize, header.tgt_lang)
    scores = metrics.all_scores(hypotheses, texts.references, header.tgt_lang, tokenize, n_bootstrap=n_bootstrap)
    analysis = analyse(
        texts.sources,
        hypotheses,
        texts.references,
        src_lang=header.src_lang,
        tgt_lang=header.tgt_lang,
        tokenize=tokenize,
        tokenizer=tokenizer,
    )
    return SetResult(
        texts.name, texts.fingerprint, len(texts.sources), scores, analysis, likelihood or Likelihood.of([])
    )


def _rows(
    sets: Sequence[EvalSet], translations: Sequence[Translation], header: Header, from_comet: Sequence[float] | None
) -> Iterator[dict[str, Any]]:
    """Yield the object that ``--save`` writes for each sentence."""
    whole = combined(sets)
    hypotheses = [translation.text for translation in translations]
    scores = metrics.sentence_scores(hypotheses, whole.references, header.tgt_lang, header.bleu_tokenize)
    places = ((test_set.name, line) for test_set in sets for line in range(1, len(test_set.sources) + 1))
    for i, (name, line) in enumerate(places):
        translation = translations[i]
        yield {
            "test_set": name,
            "line": line,
            "src": whole.sources[i],
            "refs": [stream[i] for stream in whole.references],
            "hyp": translation.text,
            "scores": scores[i] if from_comet is None else scores[i] | {"COMET": round(100 * from_comet[i], 2)},
            "log_prob": round(translation.log_prob, 4),
            "n_tokens": len(translation.tokens),
            "notes": translation.notes,
        }


def evaluate_model(
    paths: Sequence[Path], model: LoadedModel, toward: Toward = ANY, **options: Any
) -> Evaluation | Evaluations:
    """Score a model on given test sets, or on those of its run: each of its directions that has a test set there.

    Args:
        paths: what the model was loaded from, as for :func:`evaluate_loaded`.
        model: the model.
        toward: the direction to evaluate, and the tag.
        options: as for :func:`evaluate_loaded`.

    Raises:
        UserError: a test set cannot be used; or one file is to have the translations of several directions.
        MtformerError: as for :func:`evaluate_loaded`.
    """
    wanted = model.header.matching(toward.src_lang, toward.tgt_lang)
    if len(wanted) < 2 or any(options.get(name) for name in TextOptions.__annotations__):
        return evaluate_loaded(paths, model.toward(*toward), **options)
    for name in ("output", "save"):
        if options.get(name) is not None:
            names = ", ".join(map(str, wanted))
            raise UserError(f"--{name} takes the translations of one direction, of {names}: add --from and --to")
    tested = [pair for pair in wanted if has_test_set(paths[0], pair)] or wanted
    if untested := [str(pair) for pair in wanted if pair not in tested]:
        log.warning("not scored, since the run has no test set for it: %s", ", ".join(untested))
    results = {str(pair): evaluate_loaded(paths, model.toward(*pair, toward.tag), **options) for pair in tested}
    return Evaluations(results)
