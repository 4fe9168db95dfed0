"""``mtformer train`` and ``mtformer average``."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mtformer.cli.command import Options, argument, option
from mtformer.cli.options import SetOption
from mtformer.cli.output import print_result, require_file
from mtformer.support.errors import UserError
from mtformer.support.logs import log_as_json

if TYPE_CHECKING:
    from mtformer.config import Config


@dataclass(frozen=True)
class TextOptions(Options):
    """Two text files to train on without a config."""

    panel = "Two text files instead of a config"
    src: Annotated[Path | None, option("Source text, such as train.en.gz.")] = None
    tgt: Annotated[Path | None, option("Its translation, line by line, such as train.de.gz.")] = None
    src_lang: Annotated[
        str | None, option("The language of --src. Default: the end of its name.", "--from", metavar="LANG")
    ] = None
    tgt_lang: Annotated[
        str | None, option("The language of --tgt. Default: the end of its name.", "--to", metavar="LANG")
    ] = None


def train(
    config: Annotated[Path | None, argument("The config file; not with --src and --tgt.", "CONFIG")] = None,
    *,
    texts: TextOptions,
    overrides: SetOption = None,
    fresh: Annotated[bool, option("Start from scratch instead of resuming.")] = False,
    dry_run: Annotated[bool, option("Print the expected steps, speed, time and memory; do not train.")] = False,
    samples: Annotated[bool, option("Show sample translations at each validation.")] = False,
    quiet: Annotated[bool, option("Show only warnings and errors.")] = False,
    json_logs: Annotated[bool, option("Log JSON objects, one a line.")] = False,
    nproc: Annotated[int, option("Processes to train with: one for each GPU.", min=1)] = 1,
) -> None:
    """Train a model. Rerun to resume."""
    if quiet:
        logging.getLogger("mtformer").setLevel(logging.WARNING)
    if json_logs:
        log_as_json()
    if dry_run and nproc > 1:
        raise UserError("--dry-run measures one process: remove --nproc")
    loaded = _load(config, texts, overrides or [], write=not dry_run)
    if nproc > 1:
        from mtformer.support.processes.launch import launch

        launch(nproc, loaded.training.device)

    from mtformer.report.writing import refresh_report
    from mtformer.support.processes.launch import end_at_once, is_first_rank
    from mtformer.training import run

    if dry_run:
        print_result(run.dry_run(loaded, fresh=fresh))
        return
    on_scores = refresh_report if loaded.training.report else None
    bundle = run.train(loaded, fresh=fresh, show_samples=samples, on_scores=on_scores)
    if is_first_rank():
        print_result(bundle)
    end_at_once()


def _load(config: Path | None, texts: TextOptions, overrides: list[str], *, write: bool) -> "Config":
    """Read the config, or write one for two files."""
    from mtformer.config import load_config
    from mtformer.data.new_config import config_of_files

    if config is not None:
        if texts != TextOptions():
            raise UserError("give a config, or two files with --src and --tgt, not both")
        return load_config(config, overrides)
    if texts.src is None or texts.tgt is None:
        raise UserError("name a config, or two text files with --src and --tgt, such as --src train.en --tgt train.de")
    return config_of_files(texts.src, texts.tgt, (texts.src_lang, texts.tgt_lang), overrides, write=write)


def average(
    models: Annotated[list[Path], argument("A run's folder, or several bundles.", "MODEL")],
    *,
    output: Annotated[Path, option("The bundle to write.")],
    last: Annotated[int | None, option("Take the run's N newest checkpoints; default: all.", min=1)] = None,
    best: Annotated[int | None, option("Take the run's N best checkpoints.", min=1)] = None,
) -> None:
    """Average checkpoints or bundles into one bundle."""
    from mtformer.runs.averaging import average_bundles, average_checkpoints
    from mtformer.runs.folder import RunFolder
    from mtformer.support.files import require_distinct

    first, is_run = models[0], models[0].is_dir()
    if last is not None and best is not None:
        raise UserError("give --last or --best, not both")
    require_file("--output", output, "the path of the bundle")
    require_distinct(output, RunFolder(first).parts if is_run else models)
    if is_run:
        if len(models) > 1:
            raise UserError("give one run's folder, or bundles")
        average_checkpoints(first, output, last=last, best=best)
    else:
        if last is not None or best is not None:
            raise UserError("--last and --best choose among the checkpoints of a run: give its folder")
        average_bundles(models, output)
    print_result(output)
