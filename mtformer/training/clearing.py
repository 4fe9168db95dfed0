"""Start a run from scratch: remove the files of an earlier run, once for each launch."""

import shutil
from functools import partial
from pathlib import Path

from mtformer.runs.folder import RunFolder
from mtformer.support.errors import MtformerError
from mtformer.support.files import write_atomically
from mtformer.support.processes.launch import is_restart, launch_id


def forget_earlier_launch(folder: RunFolder) -> None:
    """Remove the note of an earlier launch, which may have had the same id as that of this process.

    A restart keeps the note: it is that of its own launch.
    """
    if not is_restart():
        folder.cleared.unlink(missing_ok=True)


def is_cleared(folder: RunFolder) -> bool:
    """Tell whether this process is a restart and its launch has already cleared the folder."""
    return is_restart() and folder.cleared.is_file() and folder.cleared.read_text(encoding="utf-8") == launch_id()


def clear(folder: RunFolder) -> None:
    """Remove the files of a run, and nothing else; note the launch, whose restarts are to resume.

    Raises:
        MtformerError: something cannot be removed.
    """
    try:
        for path in folder.folders_left_behind:
            if path.exists():
                shutil.rmtree(path)
        for path in folder.files_left_behind:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise MtformerError(
            f"cannot remove {path}: {error.strerror}; remove it, or choose another name (--set run.name=…)"
        ) from error
    if launch_id():
        write_atomically(folder.cleared, partial(Path.write_text, data=launch_id(), encoding="utf-8"))
