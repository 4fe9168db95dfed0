"""COMET (Rei et al. 2020), by its own command.

unbabel-comet needs older libraries than mtformer (numpy below 2), so that one environment cannot hold both. Its command
``comet-score`` may come from an environment of its own, as ``pipx install unbabel-comet`` makes it.
"""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from mtformer.support.errors import MtformerError, UserError

_COMMAND = "comet-score"


def require_comet() -> str:
    """Return the path of the command.

    Raises:
        UserError: it is not installed.
    """
    found = shutil.which(_COMMAND)
    if found is None:
        raise UserError(f"--comet needs the command {_COMMAND}, which is not installed: pipx install unbabel-comet")
    return found


def comet_scores(
    sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str], *, model: str, gpus: int
) -> list[float]:
    """Score each hypothesis, mostly from 0 to 1; the score of a test set is their mean.

    Args:
        sources: one line each.
        hypotheses: their translations.
        references: one for each.
        model: a name such as ``Unbabel/wmt22-comet-da``, which is downloaded, or the path of a checkpoint.
        gpus: how many to use.

    Raises:
        UserError: COMET is not installed.
        MtformerError: it failed.
    """
    if Path(model).is_file():
        model = str(Path(model).resolve())  # the command runs in another folder
    command = [require_comet(), "--quiet", "--only_system", "--model", model, "--gpus", str(gpus)]
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file, option, lines in (("src", "-s", sources), ("hyp", "-t", hypotheses), ("ref", "-r", references)):
            # COMET ends a line at a carriage return too.
            (folder / file).write_text("".join(f"{' '.join(line.split())}\n" for line in lines), encoding="utf-8")
            command += [option, file]
        done = subprocess.run([*command, "--to_json", "scores.json"], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise MtformerError(f"{_COMMAND} failed: {last}")
        try:
            [rows] = json.loads((folder / "scores.json").read_text(encoding="utf-8")).values()
            scores = [float(row["COMET"]) for row in rows]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise MtformerError(f"{_COMMAND} wrote no scores that mtformer can read: {error!r}") from error
    if len(scores) != len(hypotheses):
        raise MtformerError(f"{_COMMAND} gave {len(scores):,} scores for {len(hypotheses):,} translations")
    return scores
