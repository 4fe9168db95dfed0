"""All runs in a folder, each on a line."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mtformer.runs.contents import METRIC_NAMES, Contents, gather
from mtformer.runs.folder import RunFolder
from mtformer.support.errors import UserError
from mtformer.support.files import read_errors
from mtformer.support.terminal import as_text, text_width

_LEAST_NEEDED = ("date", "minutes", "model", "at step")  # columns, in the order in which a narrow terminal lacks them


@dataclass(frozen=True)
class ListedRun:
    """A row of the list of runs.

    Attributes:
        path: its folder.
        state: ``training`` now, ``finished`` by one of its limits, ``stopped`` before, or ``damaged``.
        date: when its model was written; without one, its metrics or its config.
        contents: what it has recorded; None if it is damaged, or has not recorded its settings yet.
        bundle_bytes: the size of its model; None before the first validation.
        problem: why it is called damaged.
    """

    path: Path
    state: str
    date: datetime
    contents: Contents | None
    bundle_bytes: int | None
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        shown: dict[str, Any] = {"name": self.path.resolve().name, "path": str(self.path), "state": self.state}
        if run := self.contents:
            best = run.best or {}
            shown |= {
                "src_lang": run.config.data.src_lang,
                "tgt_lang": run.config.data.tgt_lang,
                "directions": list(map(str, run.config.data.language_pairs)),
                "step": run.step,
                "total_steps": run.total_steps,
                "metric": run.metric,
                "best": best.get(f"valid_{run.metric}"),
                "best_step": best.get("step"),
                "minutes": round(run.minutes, 2),
            }
        shown |= {"bundle_bytes": self.bundle_bytes, "date": self.date.isoformat(timespec="seconds")}
        return shown | {"problem": self.problem} if self.problem else shown


def list_runs(folder: Path) -> list[ListedRun]:
    """List the runs in ``folder``, or that in it if it is one itself; the newest first.

    Raises:
        UserError: ``folder`` cannot be read.
    """
    with read_errors(folder):
        try:
            inside = list(folder.iterdir())
        except FileNotFoundError:
            path = folder.absolute()
            raise UserError(f"there is no folder {path}: train a model, or name the folder of your runs") from None
    runs = [folder] if RunFolder(folder).config.is_file() else [path for path in inside if _is_run(path)]
    return sorted(map(_look_at, runs), key=lambda run: (run.date, run.path.name), reverse=True)


def as_table(runs: Sequence[ListedRun], columns: int | None = None) -> str:
    """Lay out the list for people.

    Args:
        runs: the rows.
        columns: the width of the terminal, for which less is shown if it is narrow; None for any width.
    """
    header = ["name", "state", "languages", "step", "best", "at step", "minutes", "model", "date"]
    table = [header, *map(_row, runs)]
    for column in _LEAST_NEEDED:
        if columns is None or max(map(text_width, as_text(table[0], table[1:], left=3).split("\n"))) <= columns:
            break
        place = table[0].index(column)
        if column == "date":  # without the time
            table = [[*row[:-1], row[-1].partition(" ")[0]] for row in table]
        else:
            table = [[*row[:place], *row[place + 1 :]] for row in table]
    return as_text(table[0], table[1:], left=3, columns=columns)


def _row(listed: ListedRun) -> list[str]:
    cells = [""] * 5
    if run := listed.contents:
        directions = list(map(str, run.config.data.language_pairs))
        cells[0] = directions[0] if len(directions) == 1 else f"{len(directions)} directions"
        cells[1] = f"{run.step:,}" + (f"/{run.total_steps:,}" if run.total_steps else "")
        if best := run.best:
            score = best[f"valid_{run.metric}"]
            cells[2] = f"{METRIC_NAMES[run.metric]} {score:.{3 if run.metric == 'loss' else 2}f}"
            cells[3] = f"{best['step']:,}"
        cells[4] = f"{run.minutes:.1f}"
    size = "" if listed.bundle_bytes is None else f"{listed.bundle_bytes / 1e6:.1f} MB"
    date = listed.date.astimezone().strftime("%Y-%m-%d %H:%M")
    return [listed.path.resolve().name, listed.state, *cells, size, date]


def _is_run(path: Path) -> bool:
    folder = RunFolder(path)
    parts = (folder.config, folder.metrics, folder.bundle, folder.checkpoints)
    # Path.exists would raise in a folder that cannot be read, such as lost+found.
    return path.is_dir() and (folder.is_training or any(map(os.path.exists, parts)))


def _look_at(path: Path) -> ListedRun:
    folder = RunFolder(path)
    parts = (folder.bundle, folder.metrics, folder.config)  # by the bundle, the newest run is chosen to translate
    written = next((part for part in parts if part.exists()), path)
    date = datetime.fromtimestamp(written.stat().st_mtime, UTC)
    size = folder.bundle.stat().st_size if folder.bundle.is_file() else None
    is_training = folder.is_training
    try:
        contents = gather(path, is_training=is_training)
        if folder.bundle.exists() and not contents.parameters:
            raise UserError(f"{folder.bundle} is damaged: its weights are missing or cut off")
        state = "training" if is_training else "finished" if contents.is_finished else "stopped"
    except UserError as error:
        if is_training and not folder.config.exists():  # it is still reading the text
            return ListedRun(path, "training", date, None, size)
        return ListedRun(path, "damaged", date, None, size, str(error))
    return ListedRun(path, state, date, contents, size)
