"""``mtformer runs``."""

import logging
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from mtformer.cli.output import print_result

log = logging.getLogger(__name__)


def runs(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of all runs, as in run.dir.")] = Path(
        "runs"
    ),
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List runs.

    For each: what it trains, how far it is, and how good its best model is.
    """
    from mtformer.runs.listing import as_table, list_runs

    listed = list_runs(folder)
    for run in listed:
        if run.problem:
            log.warning("%s", run.problem)
    if json:
        print_result(dumps([run.to_dict() for run in listed], indent=2, ensure_ascii=False))
    elif listed:
        print_result(as_table(listed))
    else:
        log.info("there are no runs in %s", folder)
