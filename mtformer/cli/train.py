"""``mtformer train``."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from mtformer.cli import options
from mtformer.cli.command import Options, argument, option
from mtformer.support.errors import UserError
from mtformer.support.logs import log_as_json

if TYPE_CHECKING:
    from mtformer.config import Config


class TextOptions(Options):
    """Two text files to train on without a config."""

    panel = "Two text files instead of a config"
    src: Path | None = option("Source text, such as train.en.gz.")
    tgt: Path | None = option("Its translation, line by line, such as train.de.gz.")
    src_lang: str | None = option("The language of --src. Default: the end of its name.", "--from", metavar="LANG")
    tgt_lang: str | None = option("The language of --tgt. Default: the end of its name.", "--to", metavar="LANG")


def train(
    config: Path | None = argument("The config file; not with --src and --tgt.", "CONFIG"),
    *,
    texts: TextOptions,
    overrides: list[str] | None = options.SET,
    fresh: bool = option("Start from scratch instead of resuming."),
    dry_run: bool = option("Print the expected steps, speed, time and memory; do not train."),
    samples: bool = option("Show sample translations at each validation."),
    quiet: bool = option("Show only warnings and errors."),
    json_logs: bool = option("Log JSON objects, one a line."),
    nproc: int = option("Processes to train with: one for each GPU.", default=1, min=1),
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
        options.print_result(run.dry_run(loaded, fresh=fresh))
        return
    on_scores = refresh_report if loaded.training.report else None
    bundle = run.train(loaded, fresh=fresh, show_samples=samples, on_scores=on_scores)
    if is_first_rank():
        options.print_result(bundle)
    end_at_once()


def _load(config: Path | None, texts: TextOptions, overrides: list[str], *, write: bool) -> "Config":
    """Read the config, or write one for two files."""
    from mtformer.config import load_config
    from mtformer.data.new_config import config_of_files

    if config is not None:
        if any(value is not None for value in vars(texts).values()):
            raise UserError("give a config, or two files with --src and --tgt, not both")
        return load_config(config, overrides)
    if texts.src is not None and texts.tgt is None:
        raise UserError(f"--src {texts.src} needs --tgt, the file with its translation, line by line")
    if texts.tgt is not None and texts.src is None:
        raise UserError(f"--tgt {texts.tgt} needs --src, the file that it translates, line by line")
    if texts.src is None or texts.tgt is None:
        raise UserError("name a config, or two text files with --src and --tgt, such as --src train.en --tgt train.de")
    return config_of_files(texts.src, texts.tgt, (texts.src_lang, texts.tgt_lang), overrides, write=write)
