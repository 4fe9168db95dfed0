"""``mtformer runs`` and ``mtformer report``."""

import logging
from json import dumps
from pathlib import Path
from typing import Annotated

from mtformer.cli.command import argument, option
from mtformer.cli.options import DeviceOption, JsonOption
from mtformer.cli.output import print_result, require_file

log = logging.getLogger(__name__)


def runs(
    folder: Annotated[Path, argument("The folder of all runs, as in run.dir.", "FOLDER")] = Path("runs"),
    *,
    json: JsonOption = False,
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


def report(
    runs: Annotated[list[Path], argument("The folders of one or more runs.", "RUN")],
    *,
    output: Annotated[Path | None, option("The page to write; default: report.html in the run's folder.")] = None,
    no_test: Annotated[bool, option("Do not translate the test set.")] = False,
    device: DeviceOption = "auto",
) -> None:
    """Write a page about a run.

    It shows data, curves, samples, scores and settings; several runs are shown side by side.
    """
    from mtformer.report.writing import write_report

    require_file("--output", output, "the path of the page")
    print_result(write_report(runs, output, with_test=not no_test, device=device))
