"""Score a model on a test set."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import yaml

from mtformer.bundle import Header, load_bundle
from mtformer.config import Config, HubDataset, Source, parse_source
from mtformer.errors import UserError
from mtformer.evaluate.metrics import Score, all_scores
from mtformer.files import require_distinct
from mtformer.progress import Progress
from mtformer.runs import RunFolder
from mtformer.search import SearchOptions
from mtformer.text.lines import open_output, read_lines
from mtformer.text.sources import ParallelText, SentencePair
from mtformer.translator import Translator


@dataclass(frozen=True)
class Evaluation:
    """The result of scoring a model on a test set.

    Attributes:
        model: the bundle.
        options: how the translations were searched for.
        hypotheses: the translations, one for each source.
        scores: BLEU, chrF and TER.
    """

    model: Path
    options: SearchOptions
    hypotheses: list[str]
    scores: list[Score]


@dataclass(frozen=True)
class EvalSet:
    """Sources with their references, and the files they were read from."""

    sources: list[str]
    references: list[str]
    files: list[Path]


def evaluate_model(
    path: Path,
    *,
    src: Path | None = None,
    ref: Path | None = None,
    data: str | None = None,
    search: Mapping[str, float | None] | None = None,
    output: Path | None = None,
    device: str = "auto",
) -> Evaluation:
    """Translate a test set and score the translations.

    Args:
        path: the bundle.
        src: the source text, with ``ref``.
        ref: its reference translation.
        data: a source such as ``tsv:test.tsv``, instead of both. Without any, the test set is that of the run whose
            folder contains the bundle.
        search: search options that replace the bundle's own, such as ``{"beam_size": 8}``; None leaves one as it is.
        output: write the translations there, one a line.
        device: where to compute.

    Raises:
        UserError: the bundle or the test set cannot be used, or ``output`` is one of the input files or the
            config of the bundle's run.
    """
    bundle = load_bundle(path)
    header = bundle.header
    eval_set = read_eval_set(path, header, src=src, ref=ref, data=data)
    require_distinct(output, [path, RunFolder(path.parent).config, *eval_set.files])
    translator = Translator.from_bundle(bundle, device, **(search or {}))
    with open_output(output) if output else nullcontext() as file:  # opened first: a wrong path must not cost the work
        with Progress("translating", len(eval_set.sources), unit="lines") as progress:
            found = translator.translate(eval_set.sources, on_progress=progress.advance)
        hypotheses = [best.text for best, *_ in found]
        if file is not None:
            file.writelines(f"{hypothesis}\n" for hypothesis in hypotheses)
    scores = all_scores(hypotheses, eval_set.references, header.tgt_lang, header.bleu_tokenize)
    return Evaluation(path, translator.options, hypotheses, scores)


def read_eval_set(
    path: Path, header: Header, *, src: Path | None = None, ref: Path | None = None, data: str | None = None
) -> EvalSet:
    """Read the given files or the given source, or else the test set of the run that the bundle at ``path`` belongs to.

    A bundle names no files: the test set is that of the ``config.yaml`` in the same folder, which is the user's own.

    Raises:
        UserError: there is no test set, or it cannot be read.
    """
    if (src is None) != (ref is None):
        raise UserError("give both --src and --ref, or neither for the run's test set")
    if src is not None and data is not None:
        raise UserError("give --src and --ref, or --data, not both")
    if src is not None and ref is not None:
        sources, references = list(read_lines(src)), list(read_lines(ref))
        if len(sources) != len(references):
            raise UserError(f"{src} has {len(sources):,} lines, {ref} has {len(references):,}")
        files = [src, ref]
    else:
        languages = header.src_lang, header.tgt_lang
        chosen = _test_set_of_run(path) if data is None else [parse_source(data, *languages)]
        try:
            sources, references = _sides(ParallelText(chosen, *languages))
        except UserError as error:
            if data is not None:
                raise
            raise UserError(f"the test set of this run: {error}; or give --data, or --src and --ref") from None
        files = [file for source in chosen for file in _files_of(source)]
    if not sources:
        raise UserError("the test set is empty")
    return EvalSet(sources, references, files)


def _test_set_of_run(bundle: Path) -> Sequence[Source]:
    """Return the test set that the config of the bundle's run names."""
    path = RunFolder(bundle.parent).config
    options = "give --data, or --src and --ref"
    if not path.is_file():
        raise UserError(f"{bundle} is not in the folder of a run, which would name a test set: {options}")
    try:
        config = Config.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, yaml.YAMLError):
        raise UserError(f"{path} is not the config of a run of this version: {options}") from None
    if not config.data.test:
        raise UserError(f"{path} names no test set (data.test): {options}")
    return config.data.test


def _files_of(source: Source) -> list[Path]:
    """List the files that ``source`` is read from; a data set of the hub may be a local folder."""
    if isinstance(source, HubDataset):
        return list(Path(source.hf).rglob("*"))
    return [value for _, value in source if isinstance(value, Path)]


def _sides(pairs: Iterable[SentencePair]) -> tuple[list[str], list[str]]:
    both = list(pairs)
    return [pair.src for pair in both], [pair.tgt for pair in both]
