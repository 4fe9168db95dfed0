"""``mtformer improve``."""

import shlex
from pathlib import Path
from typing import Literal

from mtformer.cli import options
from mtformer.cli.command import option

Size = Literal["tiny", "small", "base", "big"]


def improve(
    config: Path = options.CONFIG,
    *,
    output: Path | None = option(
        "The run folder of the final model; rerun with the same folder to resume. Only --plan needs none.",
        metavar="FOLDER",
    ),
    monolingual: Path | None = option("More text in the target language, one sentence per line."),
    size: Size | None = option("The preset of the final model. Default: the size of the model of the config."),
    budget: float = option(
        "The maximum time, as a multiple of the training time of the config alone.", default=6.0, min=3.0, max=100.0
    ),
    plan: bool = option("Print the stages with their expected gains and estimated times; train no model."),
    overrides: list[str] | None = options.SET,
) -> None:
    """Train a better model on the text of a config.

    Trains the config, teachers of both directions, and a model that also learns from their translations. Stages that
    gain nothing on the validation set are undone. Rerun to resume.
    """
    from mtformer.config import load_config
    from mtformer.improve import run

    options.require_file("--output", output, "the report")
    settings = overrides or []
    command = shlex.join(["mtformer", "train", str(config), *(part for each in settings for part in ("--set", each))])
    request = run.Request(load_config(config, settings), command, output, monolingual, size, budget)
    columns = options.terminal_columns()
    options.print_result(run.forecast(request, columns) if plan else run.improve(request).to_text(columns))
