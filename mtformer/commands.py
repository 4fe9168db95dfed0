"""What stands behind ``translate`` and ``eval``: finding the model, streams of lines, printed scores."""

import json
import logging
import os
from collections.abc import Iterable
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from mtformer.bundle import BUNDLE_NAME, Bundle, load_bundle
from mtformer.config import SearchConfig, parse_source
from mtformer.errors import UserError
from mtformer.hardware import pick_device
from mtformer.metrics import Score, all_scores
from mtformer.progress import Progress
from mtformer.text.lines import open_output, read_lines
from mtformer.text.sources import ParallelText, SentencePair
from mtformer.translator import Translation, Translator

log = logging.getLogger(__name__)


def find_model(given: Path | None) -> Path:
    """Return the bundle to use: ``given``, else the environment's ``MTFORMER_MODEL``, else that of the newest run.

    Raises:
        UserError: there is none.
    """
    path = given or (Path(os.environ["MTFORMER_MODEL"]) if os.environ.get("MTFORMER_MODEL") else None)
    if path is None:
        bundles = sorted(Path("runs").glob(f"*/{BUNDLE_NAME}"), key=lambda bundle: bundle.stat().st_mtime)
        if not bundles:
            raise UserError("there is no trained model under runs/: train one, or name one with --model")
        log.info("model: %s", bundles[-1])
        return bundles[-1]
    return path / BUNDLE_NAME if path.is_dir() else path


def open_translator(
    path: Path, device: str, beam_size: int | None = None, length_penalty: float | None = None, n_best: int = 1
) -> Translator:
    """Load the bundle at ``path`` for translating, with its own search settings where none are given.

    Raises:
        UserError: no such bundle or device, or more translations asked for than the beam holds.
    """
    return make_translator(load_bundle(path), device, beam_size, length_penalty, n_best)


def make_translator(
    bundle: Bundle, device: str, beam_size: int | None = None, length_penalty: float | None = None, n_best: int = 1
) -> Translator:
    """The same for a bundle that is loaded already."""
    changed = {"beam_size": beam_size, "length_penalty": length_penalty}
    given = {key: value for key, value in changed.items() if value is not None}
    if beam_size is None and n_best > bundle.config.search.beam_size:
        given["beam_size"] = n_best
    try:
        search = SearchConfig.model_validate(bundle.config.search.model_dump() | given)
    except ValidationError as error:
        problems = [f"--{str(e['loc'][0]).replace('_', '-')} {e['input']}: {e['msg']}" for e in error.errors()]
        raise UserError("; ".join(problems)) from None
    if n_best > search.beam_size:
        raise UserError(f"--n-best {n_best} is more than --beam-size {search.beam_size}")
    return Translator(
        bundle.model.to(pick_device(device)),
        bundle.tokenizer,
        search,
        tgt_lang=bundle.config.data.tgt_lang,
        max_length=bundle.config.data.max_length,
    )


def translate_stream(
    translator: Translator,
    lines: Iterable[str],
    output: IO[str],
    *,
    n_best: int,
    format: str,
    lines_at_once: int = 1_000,
) -> None:
    """Translate ``lines`` as they come and write them to ``output`` in order, one or ``n_best`` results a line."""
    rest = iter(lines)
    number = 1
    with Progress("translating", unit="lines") as progress:
        while texts := list(islice(rest, lines_at_once)):
            found = translator.translate(texts, n_best=n_best, first_line=number, on_progress=progress.advance)
            for text, translations in zip(texts, found, strict=True):
                output.write(_format(number, text, translations, format))
                number += 1
            output.flush()


def _format(number: int, text: str, translations: list[Translation], format: str) -> str:
    if format == "json":
        found = [{"text": t.text, "score": round(t.score, 4), "log_prob": round(t.log_prob, 4)} for t in translations]
        return json.dumps({"line": number, "src": text, "translations": found}, ensure_ascii=False) + "\n"
    if format == "tsv":
        return "".join(f"{number}\t{rank}\t{t.score:.4f}\t{t.text}\n" for rank, t in enumerate(translations, 1))
    return "".join(f"{t.text}\n" for t in translations)


def evaluate_model(
    path: Path,
    *,
    src: Path | None,
    ref: Path | None,
    data: str | None,
    beam_size: int | None,
    length_penalty: float | None,
    as_json: bool,
    output: Path | None,
    device: str,
) -> None:
    """Translate a test set, print the scores, and write the translations to ``output`` if it is given."""
    bundle = load_bundle(path)
    sources, references = _test_set(bundle, path, src, ref, data)
    translator = make_translator(bundle, device, beam_size, length_penalty)
    if str(output) == "-":
        raise UserError("--output -: standard output has the scores; name a file for the translations")
    with open_output(output) if output else nullcontext() as file:  # opened first: a wrong path must not cost the work
        with Progress("translating", len(sources), unit="lines") as progress:
            hypotheses = [best.text for best, *_ in translator.translate(sources, on_progress=progress.advance)]
        if file is not None:
            file.writelines(f"{hypothesis}\n" for hypothesis in hypotheses)
    config = bundle.config
    scores = all_scores(hypotheses, references, config.data.tgt_lang, config.eval.bleu_tokenize)
    print(_scores_as_json(path, translator, len(sources), scores) if as_json else _scores_as_text(scores))


def _test_set(
    bundle: Bundle, path: Path, src: Path | None, ref: Path | None, data: str | None
) -> tuple[list[str], list[str]]:
    """Read the given files or the given source, or else the test set that the run's config names."""
    languages = bundle.config.data.src_lang, bundle.config.data.tgt_lang
    if (src is None) != (ref is None):
        raise UserError("give both --src and --ref, or neither for the run's test set")
    if src is not None and data is not None:
        raise UserError("give --src and --ref, or --data, not both")
    if src is not None and ref is not None:
        sources, references = list(read_lines(src)), list(read_lines(ref))
        if len(sources) != len(references):
            raise UserError(f"{src} has {len(sources):,} lines, {ref} has {len(references):,}")
    elif data is not None:
        sources, references = _sides(ParallelText([parse_source(data, *languages)], *languages))
    elif bundle.config.data.test:
        try:
            sources, references = _sides(ParallelText(bundle.config.data.test, *languages))
        except UserError as error:
            raise UserError(f"the test set that {path} names: {error}; or give --data, or --src and --ref") from None
    else:
        raise UserError(f"{path} names no test set (data.test): give --data, or --src and --ref")
    if not sources:
        raise UserError("the test set is empty")
    return sources, references


def _sides(pairs: Iterable[SentencePair]) -> tuple[list[str], list[str]]:
    both = list(pairs)
    return [pair.src for pair in both], [pair.tgt for pair in both]


def _scores_as_json(path: Path, translator: Translator, n_sentences: int, scores: list[Score]) -> str:
    search = {"beam_size": translator.search.beam_size, "length_penalty": translator.search.length_penalty}
    shown = {"model": str(path), "sentences": n_sentences, **search, "scores": [score.to_dict() for score in scores]}
    return json.dumps(shown, indent=2)


def _scores_as_text(scores: list[Score]) -> str:
    return "\n".join(f"{score.name:<6} {score.value:6.2f}  {score.signature}" for score in scores)
