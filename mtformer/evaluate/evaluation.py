"""Score a model on test sets."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from statistics import fmean
from typing import Any

from mtformer.bundle import Bundle, load_bundle
from mtformer.errors import UserError
from mtformer.evaluate.analysis import Analysis, analyse
from mtformer.evaluate.comet import comet_scores, require_comet
from mtformer.evaluate.likelihood import Likelihood, likelihoods
from mtformer.evaluate.metrics import Score, all_scores, bleu_tokenize, sacrebleu_command, sentence_scores
from mtformer.evaluate.testsets import EvalSet, joined, read_eval_sets
from mtformer.files import require_distinct
from mtformer.hardware import pick_device
from mtformer.progress import Progress
from mtformer.runs import RunFolder
from mtformer.search import SearchOptions
from mtformer.text.lines import open_output
from mtformer.translator import Translation, Translator
from mtformer.versions import versions


@dataclass(frozen=True)
class SetResult:
    """The result on one test set, or on several put together.

    Attributes:
        name: of the test set.
        fingerprint: a digest of its sources and references.
        n_sentences: its size.
        scores: BLEU, chrF2, chrF2++, TER and, if asked for, COMET.
        likelihood: loss and perplexity of the first reference.
        analysis: what the scores do not say.
    """

    name: str
    fingerprint: str
    n_sentences: int
    scores: list[Score]
    likelihood: Likelihood
    analysis: Analysis

    @property
    def length_ratio(self) -> float:
        """The length of the translations over that of the references, in words as BLEU counts them."""
        lengths = next(score.details for score in self.scores if score.name == "BLEU")
        return lengths["hyp_length"] / max(1, lengths["ref_length"])

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` shows."""
        return {
            "test_set": self.name,
            "fingerprint": self.fingerprint,
            "sentences": self.n_sentences,
            "scores": [score.to_dict() for score in self.scores],
            "length_ratio": round(self.length_ratio, 4),
            **self.likelihood.to_dict(),
            **self.analysis.to_dict(),
        }


@dataclass(frozen=True)
class Evaluation:
    """The result of scoring a model.

    Attributes:
        model: the bundle.
        digest: of the bundle's contents.
        step: of the training that it is from; None if it does not say.
        options: how the translations were searched for.
        hypotheses: the translations, one for each source.
        results: for each test set.
        total: for all of them together, the same if there is one.
        command: how sacreBLEU computes the scores of the hypotheses that were written; None where no file has the
            references, or nothing was written.
    """

    model: Path
    digest: str
    step: int | None
    options: SearchOptions
    hypotheses: list[str]
    results: list[SetResult]
    total: SetResult
    command: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` shows."""
        shown = {
            "model": str(self.model),
            "digest": self.digest,
            "step": self.step,
            "beam_size": self.options.beam_size,
            "length_penalty": self.options.length_penalty,
            **self.total.to_dict(),
            "versions": versions(),
        }
        if len(self.results) > 1:
            shown["test_sets"] = [result.to_dict() for result in self.results]
        return shown if self.command is None else shown | {"sacrebleu": self.command}


def evaluate_model(
    path: Path,
    *,
    src: Path | None = None,
    ref: Sequence[Path] = (),
    data: Sequence[str] = (),
    testset: Sequence[str] = (),
    search: Mapping[str, float | None] | None = None,
    comet: str | None = None,
    output: Path | None = None,
    save: Path | None = None,
    device: str = "auto",
) -> Evaluation:
    """Translate test sets and score the translations, each set and all together.

    Args:
        path: the bundle.
        src: the source text, with ``ref``.
        ref: one or more reference translations of it.
        data: sources such as ``tsv:test.tsv``, instead of both. Without any, the test sets are those of the run whose
            folder contains the bundle.
        testset: names of sacreBLEU's test sets, instead of all these.
        search: search options that replace the bundle's own, such as ``{"beam_size": 8}``; None leaves one as it is.
        comet: a model of COMET to score with too.
        output: write the translations there, one a line.
        save: write a JSON object for each sentence there.
        device: where to compute.

    Raises:
        UserError: the bundle or a test set cannot be used, or a file to write is one of the input files or the config
            of the bundle's run.
        MtformerError: sacreBLEU cannot download a test set, or COMET failed.
    """
    bundle = load_bundle(path)
    sets = read_eval_sets(path, bundle.header, src=src, ref=ref, data=data, testset=testset)
    whole = joined(sets)
    for written in (output, save):
        require_distinct(written, [path, RunFolder(path.parent).config, *whole.files])
    if output and save and output.resolve() == save.resolve():
        raise UserError(f"{save} cannot have both the translations and the sentences' scores: name another file")
    if comet is not None:
        require_comet()
    translator = Translator.from_bundle(bundle, device, **(search or {}))
    with _opened(output) as plain, _opened(save) as rows:  # first: a wrong path must not cost the work
        translations = best_translations(translator, whole.sources)
        hypotheses = [translation.text for translation in translations]
        if plain is not None:
            plain.writelines(f"{hypothesis}\n" for hypothesis in hypotheses)
        from_comet = None
        if comet is not None:
            gpus = int(pick_device(device).type == "cuda")
            from_comet = comet_scores(whole.sources, hypotheses, whole.references[0], model=comet, gpus=gpus)
        if rows is not None:
            rows.writelines(
                json.dumps(row, ensure_ascii=False) + "\n" for row in _rows(sets, translations, bundle, from_comet)
            )
        results, total = _results(translator, bundle, sets, hypotheses)
    if comet is not None and from_comet is not None:
        sizes = [len(one.sources) for one in sets]
        results = [_with_comet(*pair, comet) for pair in zip(results, _parts(from_comet, sizes), strict=True)]
        total = _with_comet(total, from_comet, comet)
    header = bundle.header
    step = int(header.scores["step"]) if "step" in header.scores else None
    named = whole.sacrebleu_arguments
    command = sacrebleu_command(output, named, header.tgt_lang, header.bleu_tokenize) if output and named else None
    return Evaluation(path, bundle.digest, step, translator.options, hypotheses, results, total, command)


def best_translations(translator: Translator, sources: Sequence[str]) -> list[Translation]:
    """Translate ``sources`` with a progress bar, each into its best translation."""
    with Progress("translating", len(sources), unit="lines") as progress:
        return [best for best, *_ in translator.translate(sources, on_progress=progress.advance)]


def _opened(path: Path | None) -> Any:
    return nullcontext() if path is None else open_output(path)


def _results(
    translator: Translator, bundle: Bundle, sets: Sequence[EvalSet], hypotheses: Sequence[str]
) -> tuple[list[SetResult], SetResult]:
    """Score each set, and all together."""
    whole = joined(sets)
    sizes = [len(one.sources) for one in sets]
    found = likelihoods(translator, whole.sources, whole.references[0], sizes)
    results = [
        _result(bundle, one, part, likelihood)
        for one, part, likelihood in zip(sets, _parts(hypotheses, sizes), found, strict=True)
    ]
    if len(results) == 1:
        return results, results[0]
    total = Likelihood(*map(sum, zip(*((one.log_prob, one.n_tokens, one.n_excluded) for one in found), strict=True)))
    return results, _result(bundle, whole, hypotheses, total)


def _result(bundle: Bundle, texts: EvalSet, hypotheses: Sequence[str], likelihood: Likelihood) -> SetResult:
    header = bundle.header
    tokenize = bleu_tokenize(header.bleu_tokenize, header.tgt_lang)
    scores = all_scores(hypotheses, texts.references, header.tgt_lang, tokenize)
    analysis = analyse(
        texts.sources,
        hypotheses,
        texts.references,
        src_lang=header.src_lang,
        tgt_lang=header.tgt_lang,
        tokenize=tokenize,
        tokenizer=bundle.tokenizer,
    )
    return SetResult(texts.name, texts.fingerprint, len(texts.sources), scores, likelihood, analysis)


def _with_comet(result: SetResult, scores: Sequence[float], model: str) -> SetResult:
    """Add COMET to the scores, times 100 as papers report it."""
    return replace(result, scores=[*result.scores, Score("COMET", 100 * fmean(scores), f"model:{model}|scale:100")])


def _rows(
    sets: Sequence[EvalSet], translations: Sequence[Translation], bundle: Bundle, from_comet: Sequence[float] | None
) -> Iterator[dict[str, Any]]:
    """Yield what ``--save`` writes about each sentence."""
    whole, header = joined(sets), bundle.header
    hypotheses = [translation.text for translation in translations]
    scores = sentence_scores(hypotheses, whole.references, header.tgt_lang, header.bleu_tokenize)
    places = ((one.name, line) for one in sets for line in range(1, len(one.sources) + 1))
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


def _parts(items: Sequence[Any], sizes: Sequence[int]) -> list[Sequence[Any]]:
    """Cut ``items`` into consecutive parts."""
    ends = list(accumulate(sizes))
    return [items[end - size : end] for size, end in zip(sizes, ends, strict=True)]
