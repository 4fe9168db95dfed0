"""Write the page of a run, or of several side by side."""

import logging
import os
import shlex
import statistics
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mtformer.report import page
from mtformer.report.elements import Detail, Html, document, element, fitted, muted, table
from mtformer.report.test_set import translate_test_set
from mtformer.runs.contents import METRIC_NAMES, Contents, differing_settings, gather
from mtformer.runs.folder import RunFolder
from mtformer.support.errors import UserError
from mtformer.support.files import short_names
from mtformer.support.progress import clock
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
        UserError: one of ``paths`` is not the folder of a run, or is given twice.
        MtformerError: the page cannot be written.
    """
    runs = [gather(path) for path in paths]
    folders = [path.resolve() for path in paths]
    for number, path in enumerate(paths):
        if folders[number] in folders[:number]:
            raise UserError(f"{path} is given twice")
    folder = paths[0] if len(runs) == 1 else Path(os.path.normpath(paths[0] / ".."))  # Path(".").parent is "."
    target = output or RunFolder(folder).report
    for run in runs:
        if run.is_training:
            log.info("%s is still training: the page shows what there is", run.folder.path)
    with open_output(target) as file:  # opened first: a wrong path must not cost the work
        if len(runs) > 1:
            named = dict(zip(short_names([run.folder.path for run in runs]), runs, strict=True))
            file.write(fitted(partial(_side_by_side, named)))
        else:
            file.write(page.render(runs[0], translate_test_set(runs[0], device) if with_test else None))
    return target


def refresh_report(folder: RunFolder, is_training: bool) -> None:
    """Write the page of a run from its records; a failure is a warning and does not stop training."""
    try:
        written = page.render(gather(folder.path, is_training=is_training))
        with open_output(folder.report) as file:
            file.write(written)
    except Exception as error:
        log.warning("the report was not written: %s", error)


def _side_by_side(runs: Mapping[str, Contents], detail: Detail) -> str:
    """Return the page of several runs: their validation scores, their curves, and the settings that differ."""
    charts = page.curves_side_by_side(runs, detail.points)
    thin = page.thinning_note(max((run.metrics for run in runs.values()), key=len), detail.points)
    states = [element("li", element("b", name), ": ", page.describe_state(run)) for name, run in runs.items()]
    sections = [
        ("scores", "Validation scores", _validation_scores(runs)),
        ("curves", "Curves", [muted(thin), page.controls(charts), page.chart_figures(charts)]),
        ("settings", "Settings that differ", _settings(runs)),
    ]
    command = ["mtformer", "report", *(str(run.folder.path) for run in runs.values())]
    data = {"charts": charts, "marks": [], "namesRuns": True}
    return document(" · ".join(runs), element("ul", states), sections, command, data)


def _validation_scores(runs: Mapping[str, Contents]) -> Iterator[Html]:
    keys = {key for run in runs.values() for line in run.validations for key in line}
    metrics = [metric for metric in METRIC_NAMES if f"valid_{metric}" in keys]
    head = ["run", *(METRIC_NAMES[metric] for metric in metrics)]
    head += ["at step", "steps", "time", "tokens/s", "parameters"]
    yield table(head, [[name, *_row(run, metrics)] for name, run in runs.items()], numbers=range(1, len(head)))
    note = "Scores are those of each run's best model."
    if len({run.config.provenance.fingerprints.get("valid") for run in runs.values()}) > 1:
        note += " The runs have different validation texts: their scores cannot be compared."
    command = shlex.join(["mtformer", "compare", *(str(run.folder.path) for run in runs.values())])
    test = " Whether the models differ significantly on a test set: "
    yield muted(note, test, element("code", command))


def _row(run: Contents, metrics: Sequence[str]) -> list[str]:
    best: dict[str, Any] = run.best or {}
    speeds = [point.value for point in run.curve("tokens_per_second")]
    return [
        *(page.score(f"valid_{metric}", best.get(f"valid_{metric}")) for metric in metrics),
        f"{best['step']:,}" if best else "–",
        f"{run.step:,}",
        clock(60 * run.minutes),
        f"{statistics.median(speeds):,.0f}" if speeds else "–",
        page.short(sum(run.parameters.values())) if run.parameters else "–",
    ]


def _settings(runs: Mapping[str, Contents]) -> Html:
    differing = differing_settings(list(runs.values()))
    if not differing:
        return element("p", "None: the runs have the same settings, text and software.")
    rows = [[element("code", key), *map(_value, values)] for key, values in differing.items()]
    return table(["key", *runs], rows)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_value(item)}" for key, item in value.items() if item is not None)
    if isinstance(value, list):
        return "; ".join(map(_value, value)) or "none"
    return "none" if value is None else str(value)
