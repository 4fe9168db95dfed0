"""The choice of a model: by a path, by the environment, or the newest run's."""

import logging
import os
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mtformer.bundle.peek import is_exported, peek
from mtformer.config import load_config
from mtformer.runs.checkpoints import list_checkpoints
from mtformer.runs.contents import gather
from mtformer.runs.folder import BUNDLE, RunFolder, files_of_runs, hint
from mtformer.support.errors import UserError

log = logging.getLogger(__name__)

_CONFIGS = (".yaml", ".yml")
_OF_TRANSFORMERS = re.compile(r"model.*\.safetensors|pytorch_model.*\.bin")  # the names of their weights


def find_model(given: Path | None, how_to_name: str = "--model") -> Path:
    """Return the bundle to use: of ``given``, else of ``$MTFORMER_MODEL``, else of ``runs/``.

    Args:
        given: a bundle, a run's folder, or a folder of runs (the ``run.dir`` of their config), of which the newest with
            a bundle is taken; or the folder of a model exported for CTranslate2, which is returned as it is.
        how_to_name: how the command names a model, for an error.

    Raises:
        UserError: there is none, or none yet, and the message names the run that may be meant; or it is a model that
            has to be imported first.
    """
    from_environment = os.environ.get("MTFORMER_MODEL")
    path = given or Path(from_environment or "runs")
    if importable := _importable(path):
        command = shlex.join(["mtformer", "import", importable.as_posix(), "--output", "FOLDER"])
        raise UserError(f"{path} is a model of another toolkit; import it first: {command}")
    if run := _run_of_checkpoint(path):
        if run.bundle.is_file():
            average = ["mtformer", "average", run.path.as_posix(), "--last", "1", "--output", "FILE.safetensors"]
            raise UserError(
                f"{path} is a checkpoint, not a model: name its run, {run.path}, or make a bundle of the run's newest "
                f"checkpoint: {shlex.join(average)}"
            )
        path = run.path
    if path.is_dir():
        bundle = RunFolder(path).bundle
        if bundle.is_file():
            return bundle
        if is_exported(path):
            return path
        if bundles := files_of_runs(path, BUNDLE):
            log.info("model: %s%s", bundles[-1], _state(bundles[-1].parent))
            return bundles[-1]
    elif path.exists() and path.suffix not in _CONFIGS:  # a config is no model: its run may be meant
        return path
    source = " (from $MTFORMER_MODEL)" if from_environment and not given else ""
    of_config = _run_of_config(path)
    if of_config and of_config.bundle.is_file():
        raise UserError(f"there is no model at {path}{source}; did you mean {of_config.path}?")
    for run in (of_config or RunFolder(path), *map(RunFolder, sorted(path.glob("*")))):
        if run.is_training or os.path.exists(run.starts):  # noqa: PTH110 (False in a folder that cannot be read)
            resume = f"; resume it to get one: {run.resume_command}"
            how = " yet: training writes one at its first validation" if run.is_training else resume
            raise UserError(f"the run {run.path}{source} has no model{how}")
    if not given and not from_environment:
        raise UserError(
            f"there is no trained model under {path.absolute()}: train one (mtformer train --src FILE --tgt FILE), "
            f"name one with {how_to_name}, or try the built-in phrasebook: mtformer serve --demo"
        )
    raise UserError(f"there is no model at {path}{source}{hint(path, BUNDLE)}")


def find_models(given: Sequence[Path] | None, how_to_name: str = "--model") -> list[Path]:
    """Return the bundles of an ensemble, or the one to use where none is given; see :func:`find_model`."""
    return [find_model(path) for path in given] if given else [find_model(None, how_to_name)]


def _state(path: Path) -> str:
    """Return the end of the note that names a model: whether its run is still training, or was stopped early."""
    if RunFolder(path).is_training:
        return ", still training"
    try:
        run = gather(path, is_training=False)
    except UserError:  # a bundle alone, or with a run of another version
        return ""
    if run.is_finished or not run.metrics:
        return ""
    return f", stopped at step {run.step:,}" + (f" of {run.total_steps:,}" if run.total_steps else "")


def _run_of_checkpoint(path: Path) -> RunFolder | None:
    """Return the run if ``path`` is one of its checkpoints, or a file of one."""
    folder = (path.parent if path.is_file() else path).absolute()
    run = RunFolder(_from_here(folder.parent.parent))
    is_inside = run.checkpoints.absolute() == folder.parent
    return run if is_inside and folder in map(Path.absolute, list_checkpoints(run.checkpoints)) else None


def _run_of_config(path: Path) -> RunFolder | None:
    """Return the run of a config; None if ``path`` is no config that can be read."""
    with suppress(UserError):
        if path.suffix in _CONFIGS and path.is_file():
            return RunFolder(_from_here(RunFolder.of(load_config(path)).path))
    return None


def _from_here(path: Path) -> Path:
    """Return a path relative to the current folder if it is inside."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _importable(path: Path) -> Path | None:
    """Return the argument of ``mtformer import`` if ``path`` is a model of transformers, of Marian or on the hub."""
    if str(path).startswith("hf:"):
        return path
    is_file = path.is_file()
    folder, files = (path.parent, [path]) if is_file else (path, sorted(path.glob("*")))
    if weights := [file for file in files if _OF_TRANSFORMERS.fullmatch(file.name)]:
        return folder if (folder / "config.json").is_file() and not any(map(peek, weights)) else None
    of_marian = is_file or any(file.name.endswith("decoder.yml") for file in files)
    return next((file for file in files if of_marian and file.suffix == ".npz"), None)
