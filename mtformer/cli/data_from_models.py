"""The commands of ``mtformer data`` that use trained models."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mtformer.cli.jobs import compared_options, load_translator
from mtformer.cli.options import (
    IN_OUT,
    Device,
    DeviceOption,
    EngineChoice,
    EngineOption,
    FromOption,
    ModelsOption,
    NBestOption,
    RawOption,
    ResumeOption,
    ShardOption,
    TagOption,
    ToOption,
    parse_pair,
)
from mtformer.cli.output import print_result
from mtformer.cli.search_options import SearchSettings, takes_search_options
from mtformer.support.errors import UserError

if TYPE_CHECKING:
    from mtformer.config import LanguagePair
    from mtformer.data.sources.parallel import ParallelText

TextArgument = Annotated[
    str,
    typer.Argument(
        metavar="TEXT", help="A config, for its training text; or a source with --pair, as in src:a.en,tgt:a.de."
    ),
]
TextPairOption = Annotated[
    str | None,
    typer.Option(
        metavar="SRC-TGT",
        help="The languages, as in en-de; a config of one direction has them.",
        rich_help_panel=IN_OUT,
    ),
]
PairsOption = Annotated[
    Path,
    typer.Option(
        metavar="FILE", help="Where the pairs go, as JSON lines: a jsonl source of a config.", rich_help_panel=IN_OUT
    ),
]


@takes_search_options
def backtranslate(
    context: typer.Context,
    input: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Text in the language that the model reads, one sentence a line.",
            rich_help_panel=IN_OUT,
        ),
    ],
    output: PairsOption,
    model: ModelsOption = None,
    from_: FromOption = None,
    to: ToOption = None,
    tag: TagOption = None,
    n_best: NBestOption = None,
    device: DeviceOption = Device.auto,
    engine: EngineOption = EngineChoice.auto,
    raw: RawOption = False,
    *,
    search: SearchSettings,
    resume: ResumeOption = False,
    shard: ShardOption = None,
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
    job = GenerationJob(
        text=Source(path=input, on_error=OnError.skip),
        models=models,
        output=output,
        shard=shard,
        resume=resume,
        options=compared_options(context),
    )
    asked = {"src_lang": from_, "tgt_lang": to, "tag": tag, "n_best": n_best, **search}
    run(job, partial(load_translator, models, device, engine=engine, raw=raw, **asked))


@takes_search_options
def distill(
    context: typer.Context,
    text: TextArgument,
    output: PairsOption,
    pair: TextPairOption = None,
    model: ModelsOption = None,
    tag: TagOption = None,
    n_best: NBestOption = None,
    device: DeviceOption = Device.auto,
    engine: EngineOption = EngineChoice.auto,
    raw: RawOption = False,
    *,
    search: SearchSettings,
    resume: ResumeOption = False,
    shard: ShardOption = None,
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
    job = GenerationJob(text=pairs, models=models, output=output, shard=shard, resume=resume, options=options)
    asked = {**languages._asdict(), "tag": tag, "n_best": n_best, **search}
    run(job, partial(load_translator, models, device, engine=engine, raw=raw, **asked))


def score(
    context: typer.Context,
    text: TextArgument,
    output: PairsOption,
    pair: TextPairOption = None,
    model: ModelsOption = None,
    reverse: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="A model of the opposite direction; scores are better with it.", rich_help_panel=IN_OUT
        ),
    ] = None,
    device: DeviceOption = Device.auto,
    resume: ResumeOption = False,
    shard: ShardOption = None,
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
    job = CrossEntropyJob(text=pairs, models=models, output=output, shard=shard, resume=resume, options=options)
    require_distinct(output, opposite)
    forward = partial(load_translator, models, device, raw=True, src_lang=src_lang, tgt_lang=tgt_lang)
    backward = partial(load_translator, opposite, device, raw=True, src_lang=tgt_lang, tgt_lang=src_lang)
    run(job, forward, *([backward] if opposite else []))


def select(
    scored: Annotated[Path, typer.Argument(metavar="FILE", help="What `mtformer data score` has written.")],
    output: Annotated[Path, typer.Option(metavar="FILE", help="Where to write; - is standard output.")] = Path("-"),
    min_score: Annotated[float | None, typer.Option(metavar="X", help="Keep the pairs that score X or more.")] = None,
    share: Annotated[
        float | None, typer.Option(metavar="S", min=0, max=1, help="Keep this share of the pairs, the best.")
    ] = None,
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
        sources = [one for one in data.train if (one.languages or known[0]) == languages]
        if not sources:
            raise UserError(f"--pair {pair}: {text} has training text for {', '.join(map(str, known))}")
        return ParallelText(sources, *languages), languages
    if languages is None:
        raise UserError(f"{text}: give the languages of a source (--pair), as in --pair en-de")
    return ParallelText([parse_source(text, *languages)], *languages), languages
