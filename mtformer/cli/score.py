"""``mtformer score``."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mtformer.cli.command import option
from mtformer.cli.options import (
    IN_OUT,
    SCORES,
    DirectionOptions,
    EngineOptions,
    ModelsOption,
    OutputOption,
    ResumeOption,
    compared_options,
    load_translator,
)
from mtformer.translate.jobs.options import Format


def score(
    context: typer.Context,
    *,
    model: ModelsOption = None,
    direction: DirectionOptions,
    src: Annotated[Path | None, option("Sources, one a line.", panel=IN_OUT)] = None,
    tgt: Annotated[Path | None, option("Their translations, one a line.", panel=IN_OUT)] = None,
    input: Annotated[
        Path,
        option("Without --tgt: a source, a tab and its translation on each line; - is standard input.", panel=IN_OUT),
    ] = Path("-"),
    output: OutputOption = Path("-"),
    format: Annotated[
        Format, option("A score a line; or score, source and translation; or JSON.", panel=IN_OUT)
    ] = Format.text,
    normalize: Annotated[bool, option("The mean log probability per token instead of the sum.", panel=SCORES)] = False,
    min_score: Annotated[
        float | None, option("Print the pairs that score X or more, and no others.", panel=SCORES)
    ] = None,
    rerank: Annotated[
        bool,
        option(
            "Read what translate --n-best N --format tsv prints; print the best translation of each line, or with "
            "--format tsv or json all of them, best first.",
            panel=SCORES,
        ),
    ] = False,
    compute: EngineOptions,
    resume: ResumeOption = False,
) -> None:
    """Score given translations.

    Prints how probable the model thinks each is: its log probability, in nats.
    """
    from mtformer.runs.models import find_models
    from mtformer.translate.jobs.core import run
    from mtformer.translate.jobs.scoring import ScoringJob

    models = find_models(model)
    load = partial(load_translator, models, **vars(compute), **vars(direction))
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
