"""Where the model to use is: in a run, in a folder of runs, or exported."""

import difflib
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from mtformer.bundle.peek import is_exported
from mtformer.runs.folder import BUNDLE, RunFolder
from mtformer.support.errors import UserError

log = logging.getLogger(__name__)


def run_of(model: Path) -> RunFolder | None:
    """Return the run that a bundle is in the folder of; None if it is in none, or is an exported model."""
    run = RunFolder(model.parent)
    return run if run.config.is_file() and not is_exported(model) else None


def find_model(given: Path | None) -> Path:
    """Return the bundle to use: that of ``given``, else of ``$MTFORMER_MODEL``, else of ``runs/``.

    Args:
        given: a bundle, a run's folder, or a folder of runs (the ``run.dir`` of their config), of which the newest with
            a bundle is taken; or the folder of a model exported for CTranslate2, which is returned as it is.

    Raises:
        UserError: there is none, or none yet; the message names the run that may be meant.
    """
    from_environment = os.environ.get("MTFORMER_MODEL")
    path = given or Path(from_environment or "runs")
    if path.is_dir():
        bundle = RunFolder(path).bundle
        if bundle.is_file():
            return bundle
        if is_exported(path):
            return path
        if bundles := _bundles_in(path):
            log.info("model: %s", bundles[-1])
            return bundles[-1]
    elif path.exists():
        return path
    if not given and not from_environment:
        raise UserError("there is no trained model under runs/: train one, or name one with --model")
    source = "" if given else " (from $MTFORMER_MODEL)"
    if RunFolder(path).lock_file.exists():
        raise UserError(f"the run {path}{source} has no model yet: training writes one at its first validation")
    raise UserError(f"there is no model at {path}{source}{_hint(path)}")


def find_models(given: Sequence[Path] | None) -> list[Path]:
    """Return the bundles of an ensemble, or the one to use where none is given; see :func:`find_model`."""
    return [find_model(path) for path in given] if given else [find_model(None)]


def _bundles_in(folder: Path) -> list[Path]:
    """List the bundles of the runs in ``folder``, the newest last."""
    return sorted(folder.glob(f"*/{BUNDLE}"), key=lambda bundle: bundle.stat().st_mtime)


def _hint(path: Path) -> str:
    """Name the run whose name is nearest to a path without a model, or else the newest."""
    runs = [bundle.parent for folder in (Path("runs"), path.parent) for bundle in _bundles_in(folder)]
    if not runs:
        return ""
    name = path.parent.name if path.name == BUNDLE else path.name
    close = difflib.get_close_matches(name, [run.name for run in runs], n=1)
    nearest = next((run for run in runs if run.name in close), None)
    return f"; did you mean {nearest}?" if nearest else f"; the newest run here is {runs[-1]}"
