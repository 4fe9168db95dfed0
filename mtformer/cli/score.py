"""``mtformer score``."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mtformer.cli.command import Options, option
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


@dataclass(frozen=True)
class FileOptions(Options):
    """The input, the output and its format."""

    panel = IN_OUT
    src: Annotated[Path | None, option("Sources, one a line.")] = None
    tgt: Annotated[Path | None, option("Their translations, one a line.")] = None
    input: Annotated[
        Path, option("Without --tgt: a source, a tab and its translation on each line; - is standard input.")
    ] = Path("-")
    output: OutputOption = Path("-")
    format: Annotated[Format, option("A score a line; or score, source and translation; or JSON.")] = Format.text


@dataclass(frozen=True)
class ScoreOptions(Options):
    """The scores, and what they choose."""

    panel = SCORES
    normalize: Annotated[bool, option("The mean log probability per token instead of the sum.")] = False
    min_score: Annotated[float | None, option("Print the pairs that score X or more, and no others.")] = None
    rerank: Annotated[
        bool,
        option(
            "Read what translate --n-best N --format tsv prints; print the best translation of each line, or with "
            "--format tsv or json all of them, best first."
        ),
    ] = False


def score(
    context: typer.Context,
    *,
    model: ModelsOption = None,
    direction: DirectionOptions,
    files: FileOptions,
    scores: ScoreOptions,
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
    options = compared_options(context)
    job = ScoringJob(models=models, **vars(files), **vars(scores), resume=resume, options=options)
    run(job, partial(load_translator, models, **vars(compute), **vars(direction)))
