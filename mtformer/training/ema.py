"""Averages of weights, which usually translate better than the weights of any single step.

A running average follows the training. Checkpoints and bundles can be averaged afterwards.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from mtformer.bundle.format import Bundle, load_bundle, save_bundle
from mtformer.model.lora import trained_parameters
from mtformer.model.weights import load_weights, require_shapes, weights
from mtformer.runs.checkpoints import list_checkpoints, model_weights, step_of
from mtformer.runs.folder import RunFolder
from mtformer.support.errors import UserError
from mtformer.support.terminal import counted

log = logging.getLogger(__name__)


class WeightAverage:
    """The exponential moving average of a model's weights (Polyak and Juditsky 1992; Morales-Brotons et al. 2024).

    Early in training, when weights change quickly, the decay is (1 + step) / (10 + step) if that is smaller.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        """Start from the current weights."""
        self._model = model
        self._decay = decay
        self.tensors: dict[str, Tensor] = {name: p.detach().clone() for name, p in trained_parameters(model).items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Add the weights after update number ``step``, starting at 1."""
        decay = min(self._decay, (1 + step) / (10 + step))
        weights = [parameter.detach() for parameter in trained_parameters(self._model).values()]
        torch._foreach_lerp_(list(self.tensors.values()), weights, 1 - decay)

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore a saved average; the order of its tensors does not matter."""
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Use the average as the weights of the model inside the context."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for name, parameter in trained_parameters(self._model).items():
            weight = parameter.detach().clone()
            parameter.copy_(self.tensors[name])  # in place: a sharded model sends its weights from this memory
            self.tensors[name].copy_(weight)


def average_checkpoints(run: Path, output: Path, *, last: int | None) -> None:
    """Write a bundle with the mean of the weights of a run's checkpoints (Popel and Bojar 2018).

    Args:
        run: the folder of the run.
        output: the bundle to write.
        last: average this many of the newest checkpoints; None for all.

    Raises:
        UserError: there are fewer, or one cannot be loaded or is not of the run's model.
    """
    checkpoints = list_checkpoints(RunFolder(run).checkpoints)
    if not checkpoints:
        raise UserError(f"{run} has no checkpoints: name the folder of a run")
    if last is not None and len(checkpoints) < last:
        raise UserError(
            f"{run} has {counted(len(checkpoints), 'checkpoint')}, not {last}; training.keep_last sets how many a run "
            "keeps"
        )
    chosen = checkpoints[:last]
    steps = ", ".join(f"step {step_of(path)}" for path in sorted(chosen))
    log.info("averaging %s: %s", counted(len(chosen), "checkpoint"), steps)
    path_of_bundle = RunFolder(run).bundle
    bundle = load_bundle(path_of_bundle)

    def weights_of(path: Path) -> dict[str, Tensor]:
        found = model_weights(path)
        try:
            require_shapes(bundle.model, {name: tensor.shape for name, tensor in found.items()})
        except ValueError as error:
            raise UserError(f"{path} and {path_of_bundle} are of different models: {error}") from None
        return found

    _save_mean(bundle, map(weights_of, chosen), len(chosen), output)


def average_bundles(paths: Sequence[Path], output: Path) -> None:
    """Write a bundle with the mean of the weights of the given ones, for the directions of the first.

    Raises:
        UserError: their languages, tokenizers or sizes differ.
    """
    first = load_bundle(paths[0])
    bundles = map(load_bundle, paths)

    def weights_of(path: Path, bundle: Bundle) -> dict[str, Tensor]:
        if bundle.tokenizer.models != first.tokenizer.models:
            raise UserError(f"{path} and {paths[0]} have different tokenizers: their weights cannot be averaged")
        if not first.header.translates_alike(bundle.header):
            raise UserError(
                f"{path} translates {bundle.header.title}, and {paths[0]} {first.header.title}: their weights "
                "cannot be averaged"
            )
        if _shape(bundle) != _shape(first):
            raise UserError(f"{path} and {paths[0]} are models of different architecture or size")
        if None not in (seeds := (_first_seed(first), _first_seed(bundle))) and seeds[0] != seeds[1]:
            log.warning(
                "%s and %s were initialized with different seeds: the mean of their weights will translate badly; "
                "average checkpoints of one training",
                path,
                paths[0],
            )
        return weights(bundle.model)

    _save_mean(first, map(weights_of, paths, bundles), len(paths), output)


def _first_seed(bundle: Bundle) -> object:
    """Return the seed of a model's initialization; None if it started from another model, or does not say."""
    try:
        origin = bundle.header.provenance
        return None if "init_from" in origin["fingerprints"] else origin["config"]["training"]["seed"]
    except (LookupError, TypeError):
        return None


def _shape(bundle: Bundle) -> dict[str, object]:
    """Return the settings of a model that determine the meaning of its weights."""
    architecture = bundle.header.architecture
    free = {"dropout", "attention_dropout"}
    if architecture.positions != "learned":
        free.add("max_length")
    return architecture.model_dump(exclude=free)


def _save_mean(bundle: Bundle, models: Iterable[dict[str, Tensor]], n: int, output: Path) -> None:
    """Write ``bundle`` with the mean weights of ``n`` models, which are read one at a time."""
    total: dict[str, Tensor] = {}
    for model in models:
        for name, tensor in model.items():
            total[name] = total.get(name, 0) + tensor.double() / n
    load_weights(bundle.model, {name: tensor.float() for name, tensor in total.items()})
    header = bundle.header.model_copy(update={"scores": {}})  # the bundle's scores are of other weights
    save_bundle(output, replace(bundle, header=header))
