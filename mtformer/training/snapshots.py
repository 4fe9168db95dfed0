"""The checkpoints of a run as models, to see what changed during training."""

import copy
from collections.abc import Iterator
from pathlib import Path

from mtformer.errors import UserError
from mtformer.explain.explanation import Checkpoint
from mtformer.model.transformer import Transformer
from mtformer.model.weights import load_weights
from mtformer.runs import RunFolder
from mtformer.search import TorchEngine
from mtformer.training.checkpoint import list_checkpoints, model_weights, step_of


def checkpoint_models(bundle: Path, model: Transformer) -> Iterator[Checkpoint]:
    """Return the kept checkpoints of the run that wrote ``bundle``, oldest first, loaded one at a time.

    Args:
        bundle: in the run's folder.
        model: the bundle's, which stays as it is.

    Raises:
        UserError: there are fewer than two, or one is damaged or of another model.
    """
    run = RunFolder(bundle.parent)
    found = sorted(list_checkpoints(run.checkpoints), key=step_of)
    if len(found) < 2:
        raise UserError(
            f"{run.path} has {len(found) or 'no'} checkpoint{'s' * (len(found) != 1)}, and --checkpoints compares at "
            "least two; training.keep_last and training.keep_best set how many a run keeps"
        )
    return (_load(path, model) for path in found)


def _load(path: Path, model: Transformer) -> Checkpoint:
    earlier = copy.deepcopy(model)
    try:
        load_weights(earlier, model_weights(path))
    except ValueError as error:
        raise UserError(f"{path} is a checkpoint of another model: {error}") from None
    return Checkpoint(step_of(path), path.name, TorchEngine(earlier))
