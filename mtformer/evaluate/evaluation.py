"""Score a model on a test set."""

import json
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

from mtformer.bundle import Bundle, load_bundle
from mtformer.config import parse_source
from mtformer.errors import UserError
from mtformer.evaluate.metrics import Score, all_scores
from mtformer.progress import Progress
from mtformer.text.lines import open_output, read_lines
from mtformer.text.sources import ParallelText, SentencePair
from mtformer.translator import Translator, make_translator


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
