"""``mtformer score``."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mtformer.cli.jobs import compared_options, load_translator
from mtformer.cli.options import (
    Device,
    DeviceOption,
    FromOption,
    ModelsOption,
    OptionalEngineOption,
    ResumeOption,
    TagOption,
    ToOption,
)
from mtformer.translate.jobs.options import Format


def score(
    context: typer.Context,
    model: ModelsOption = None,
    src: Annotated[Path | None, typer.Option(metavar="FILE", help="Sources, one a line.")] = None,
    tgt: Annotated[Path | None, typer.Option(metavar="FILE", help="Their translations, one a line.")] = None,
    input: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Without --tgt: a source, a tab and its translation on each line; - is standard input.",
        ),
    ] = Path("-"),
    output: Annotated[Path, typer.Option(metavar="FILE", help="Where to write; - is standard output.")] = Path("-"),
    format: Annotated[
        Format, typer.Option(help="A score a line; or score, source and translation; or JSON.")
    ] = Format.text,
    from_: FromOption = None,
    to: ToOption = None,
    tag: TagOption = None,
    normalize: Annotated[
        bool, typer.Option("--normalize", help="The mean log probability per token instead of the sum.")
    ] = False,
    min_score: Annotated[
        float | None, typer.Option(metavar="X", help="Print the pairs that score X or more, and no others.")
    ] = None,
    rerank: Annotated[
        bool,
        typer.Option(
            "--rerank",
            help="Read what translate --n-best N --format tsv prints; print the best translation of each line, or with "
            "--format tsv or json all of them, best first.",
        ),
    ] = False,
    device: DeviceOption = Device.auto,
    engine: OptionalEngineOption = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Only the model: texts are scored as they are, not split and not changed.")
    ] = False,
    resume: ResumeOption = False,
) -> None:
    """Score given translations.

    Prints how probable the model thinks each is: its log probability, in nats.
    """
    from mtformer.runs.models import find_models
    from mtformer.translate.jobs.core import run
    from mtformer.translate.jobs.scoring import ScoringJob

    models = find_models(model)
    load = partial(load_translator, models, device, engine=engine, raw=raw, src_lang=from_, tgt_lang=to, tag=tag)
    job = ScoringJob(
        models=models,
        src=src,
        tgt=tgt,
        input=input,
        output=output,
        format=format,
        normalize=normalize,
        min_score=min_score,
        rerank=rerank,
        resume=resume,
        options=compared_options(context),
    )
    run(job, load)
