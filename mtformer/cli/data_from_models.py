"""The commands of ``mtformer data`` that use trained models."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mtformer.cli.command import argument, option
from mtformer.cli.options import (
    IN_OUT,
    DeviceOption,
    DirectionOptions,
    EngineOptions,
    JobOptions,
    ModelsOption,
    NBestOptions,
    TagOption,
    compared_options,
    load_translator,
    parse_pair,
)
from mtformer.cli.output import print_result
from mtformer.support.errors import UserError

if TYPE_CHECKING:
    from mtformer.config import LanguagePair
    from mtformer.data.sources.parallel import ParallelText

PairsArgument = Annotated[
    str, argument("A config, for its training text; or a source with --pair, as in src:a.en,tgt:a.de.", "TEXT")
]
PairOption = Annotated[
    str | None,
    option("The languages, as in en-de; a config of one direction has them.", metavar="SRC-TGT", panel=IN_OUT),
]
PairsOption = Annotated[Path, option("Where the pairs go, as JSON lines: a jsonl source of a config.", panel=IN_OUT)]


def backtranslate(
    context: typer.Context,
    *,
    input: Annotated[Path, option("Text in the language that the model reads, one sentence a line.", panel=IN_OUT)],
    output: PairsOption,
    model: ModelsOption = None,
    direction: DirectionOptions,
    search: NBestOptions,
    compute: EngineOptions,
    job: JobOptions,
) -> None:
    """Make training pairs from text in the target language alone.

    To train a model from en to de, give a model from de to en, and text in de: its translations become the sources, and
    the text itself the targets. Doubtful translations are left out. In the config, mark the source with a tag.
    """
    from mtformer.runs.models import find_models
    from mtformer.translate.jobs.core import run
    from mtformer.translate.jobs.generation import GenerationJob
    from mtformer.translate.jobs.options import OnError
    from mtformer.translate.jobs.reading import Source

    models = find_models(model)
    text = Source(path=input, on_error=OnError.skip)
    options = compared_options(context)
    generation = GenerationJob(text=text, models=models, output=output, options=options, **vars(job))
    run(generation, partial(load_translator, models, **vars(compute), **vars(direction), **search))


def distill(
    context: typer.Context,
    text: PairsArgument,
    *,
    output: PairsOption,
    pair: PairOption = None,
    model: ModelsOption = None,
    tag: TagOption = None,
    search: NBestOptions,
    compute: EngineOptions,
    job: JobOptions,
) -> None:
    """Replace the targets of training text by translations.

    A smaller or faster model learns more easily from them. With several --model, an ensemble translates. Doubtful
    translations are left out.
    """
    from mtformer.runs.models import find_models
    from mtformer.translate.jobs.core import run
    from mtformer.translate.jobs.generation import GenerationJob

    models = find_models(model)
    pairs, languages = _text(text, pair)
    options = compared_options(context)
    generation = GenerationJob(text=pairs, models=models, output=output, options=options, **vars(job))
    run(generation, partial(load_translator, models, **vars(compute), **languages._asdict(), tag=tag, **search))


def score(
    context: typer.Context,
    text: PairsArgument,
    *,
    output: PairsOption,
    pair: PairOption = None,
    model: ModelsOption = None,
    reverse: Annotated[
        Path | None,
        option("A model of the opposite direction; scores are better with it.", metavar="PATH", panel=IN_OUT),
    ] = None,
    device: DeviceOption = "auto",
    job: JobOptions,
) -> None:
    """Score sentence pairs with models, for data select.

    Scores are between 0 and 1. With models of both directions, they are computed from the dual conditional
    cross-entropy of Junczys-Dowmunt (2018).
    """
    from mtformer.runs.models import find_model, find_models
    from mtformer.support.files import require_distinct
    from mtformer.translate.jobs.core import run
    from mtformer.translate.jobs.generation import CrossEntropyJob

    models = find_models(model)
    opposite = [find_model(reverse)] if reverse is not None else []
    pairs, (src_lang, tgt_lang) = _text(text, pair)
    options = compared_options(context) | {"reverse": opposite or None}
    scoring = CrossEntropyJob(text=pairs, models=models, output=output, options=options, **vars(job))
    require_distinct(output, opposite)
    load = partial(load_translator, device=device, raw=True)
    forward = partial(load, models, src_lang=src_lang, tgt_lang=tgt_lang)
    backward = partial(load, opposite, src_lang=tgt_lang, tgt_lang=src_lang)
    run(scoring, forward, *([backward] if opposite else []))


def select(
    scored: Annotated[Path, argument("What `mtformer data score` has written.", "FILE")],
    *,
    output: Annotated[Path, option("Where to write; - is standard output.")] = Path("-"),
    min_score: Annotated[float | None, option("Keep the pairs that score X or more.")] = None,
    share: Annotated[float | None, option("Keep this share of the pairs, the best: 0.8, say.", metavar="S")] = None,
) -> None:
    """Keep the best of scored pairs.

    Without --min-score and --share, prints how many pairs each threshold would keep.
    """
    import logging

    from mtformer.data.selection import curve, describe, select

    if min_score is not None and share is not None:
        raise UserError("give --min-score or --share, not both")
    if min_score is None and share is None:
        if str(output) != "-":
            raise UserError("--output needs --min-score or --share, which say what to keep")
        print_result(describe(curve(scored)))
        return
    n_kept, n_pairs = select(scored, output, min_score=min_score, share=share)
    logging.getLogger(__name__).info("kept %s of %s pairs", f"{n_kept:,}", f"{n_pairs:,}")


def _text(text: str, pair: str | None) -> "tuple[ParallelText, LanguagePair]":
    """Return the training text of a config, or a source, with its languages."""
    from mtformer.config import load_config, parse_source
    from mtformer.data.sources.parallel import ParallelText

    languages = parse_pair(pair) if pair is not None else None
    if text.endswith((".yaml", ".yml")):
        data = load_config(text).data
        known = data.language_pairs
        if languages is None and len(known) > 1:
            raise UserError(f"{text} has several directions: choose one of {', '.join(map(str, known))} (--pair)")
        languages = languages or known[0]
        sources = [source for source in data.train if (source.languages or known[0]) == languages]
        if not sources:
            raise UserError(f"--pair {pair}: {text} has training text for {', '.join(map(str, known))}")
        return ParallelText(sources, *languages), languages
    if languages is None:
        raise UserError(f"{text}: give the languages of a source (--pair), as in --pair en-de")
    return ParallelText([parse_source(text, *languages)], *languages), languages
