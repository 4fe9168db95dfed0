"""``mtformer train`` and ``mtformer average``."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from mtformer.errors import UserError
from mtformer.logs import log_as_json

log = logging.getLogger(__name__)


def train(
    config: Annotated[Path, typer.Argument(help="The config file.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a key, as in training.max_steps=1000.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over instead of going on.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Do not train, but tell steps, speed, time and memory of it.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show nothing but warnings.")] = False,
    json_logs: Annotated[bool, typer.Option("--json-logs", help="Log JSON objects, one a line.")] = False,
    nproc: Annotated[int, typer.Option(min=1, help="Processes that share the work: one for each GPU.")] = 1,
) -> None:
    """Train a model. Run again, it goes on where it stopped."""
    if quiet:
        logging.getLogger("mtformer").setLevel(logging.WARNING)
    if json_logs:
        log_as_json()
    if dry_run and nproc > 1:
        raise UserError("--dry-run measures one process: leave out --nproc")
    from mtformer.config import load_config

    loaded = load_config(config, overrides or [])
    if nproc > 1:
        from mtformer.training.launch import launch

        launch(nproc, loaded.training.device)

    from mtformer.runs import RunFolder
    from mtformer.training import run
    from mtformer.training.launch import end_at_once, is_first_rank, is_restart

    if dry_run:
        print(run.dry_run(loaded, fresh=fresh))
        return
    try:
        bundle = run.train(loaded, fresh=fresh and not is_restart())
    except KeyboardInterrupt:
        if run.has_checkpoint(loaded):
            log.warning("stopped; %s keeps what was learned: the same command goes on", RunFolder.of(loaded).path)
        raise
    if is_first_rank():
        print(bundle)
    end_at_once()


def average(
    models: Annotated[list[Path], typer.Argument(help="A run's folder, whose checkpoints are taken, or bundles.")],
    output: Annotated[Path, typer.Option(help="The bundle to write.")],
    last: Annotated[int | None, typer.Option(min=1, help="Take so many of the run's newest checkpoints.")] = None,
    best: Annotated[int | None, typer.Option(min=1, help="Take those of so many of its best validations.")] = None,
) -> None:
    """Average the weights of several checkpoints of a run, or of several bundles, into one model."""
    from mtformer.training.averaging import average_bundles, average_checkpoints

    [first, *others] = models
    if last is not None and best is not None:
        raise UserError("give --last or --best, not both")
    if first.is_dir():
        if others:
            raise UserError("give one run's folder, or bundles")
        average_checkpoints(first, output, last=last, best=best)
    else:
        if last is not None or best is not None:
            raise UserError("--last and --best choose among the checkpoints of a run: give its folder")
        average_bundles(models, output)
    print(output)
