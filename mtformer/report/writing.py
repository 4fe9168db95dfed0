"""Write the page of a run, or of several side by side."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from mtformer.report.page import render
from mtformer.report.side_by_side import render_side_by_side
from mtformer.report.test_set import translate_test_set
from mtformer.runs.contents import Contents, gather
from mtformer.runs.folder import RunFolder
from mtformer.support.errors import UserError
from mtformer.support.files import require_distinct
from mtformer.text.lines import open_output

log = logging.getLogger(__name__)


def write_report(
    paths: Sequence[Path], output: Path | None = None, *, with_test: bool = True, device: str = "auto"
) -> Path:
    """Write the page of the runs in ``paths`` and return where it is.

    Args:
        paths: the folders of runs.
        output: the file to write, compressed if it ends in ``.gz``. Default: ``report.html`` in the folder of the run;
            of several runs, in the folder that contains the first.
        with_test: translate the test set of a single run, to show how well its model does.
        device: where to translate.

    Raises:
        UserError: one of ``paths`` is not the folder of a run, or is given twice; or ``output`` is a file of a run or
            of its texts.
        MtformerError: the page cannot be written.
    """
    runs = [gather(path) for path in paths]
    for number, path in enumerate(paths):
        if path.resolve() in (other.resolve() for other in paths[:number]):
            raise UserError(f"{path} is given twice")
    folder = paths[0] if len(runs) == 1 else Path(os.path.normpath(paths[0] / ".."))  # Path(".").parent is "."
    target = output or RunFolder(folder).report
    require_distinct(target, [file for run in runs for file in _files_of(run)])
    for run in runs:
        if run.is_training:
            log.info("%s is still training: the page shows what there is", run.folder.path)
    with open_output(target) as file:  # opened first: a wrong path must not cost the work
        if len(runs) > 1:
            file.write(render_side_by_side(runs))
        else:
            file.write(render(runs[0], translate_test_set(runs[0], device) if with_test else None))
    return target


def refresh_report(folder: RunFolder, is_training: bool) -> None:
    """Write the page of a run from its records; a failure is a warning and does not stop training."""
    try:
        page = render(gather(folder.path, is_training=is_training))
        with open_output(folder.report) as file:
            file.write(page)
    except Exception as error:
        log.warning("the report was not written: %s", error)


def _files_of(run: Contents) -> list[Path]:
    """List the files of a run and of its texts, which the page must not replace; an earlier page is not among them."""
    data = run.config.data
    texts = [value for source in (*data.train, *data.valid, *data.test) for _, value in source]
    own = [file for file in run.folder.path.rglob("*") if file.is_file() and file != run.folder.report]
    return own + [value for value in texts if isinstance(value, Path)]
