"""``mtformer report``."""

from pathlib import Path
from typing import Annotated

import typer

from mtformer.cli.options import Device, DeviceOption
from mtformer.cli.output import print_result, require_file


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="The folders of one or more runs.")],
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page to write; default: report.html in the run's folder.")
    ] = None,
    no_test: Annotated[bool, typer.Option("--no-test", help="Do not translate the test set.")] = False,
    device: DeviceOption = Device.auto,
) -> None:
    """Write a page about a run.

    It shows data, curves, samples, scores and settings; several runs are shown side by side.
    """
    from mtformer.report.writing import write_report

    require_file("--output", output, "the path of the page")
    print_result(write_report(runs, output, with_test=not no_test, device=device))
