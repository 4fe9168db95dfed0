"""One update of the weights: gradients of its batches, guard, clipping, optimizers, average."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from mtformer.config import TrainingConfig
from mtformer.errors import MtformerError
from mtformer.hardware import autocast
from mtformer.model.transformer import Transformer
from mtformer.text.batching import Batch
from mtformer.training.averaging import WeightAverage
from mtformer.training.loss import summed_loss
from mtformer.training.optimizer import make_optimizers

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Update:
    """What became of an update.

    Attributes:
        loss: summed over the target pieces, in nats.
        n_tokens: target pieces, padding not counted.
        fault: why the weights were left as they were; empty if they were not.
        suspects: with a fault, the pairs among which the reason is.
    """

    loss: float
    n_tokens: int
    fault: str = ""
    suspects: Sequence[int] = ()

    @property
    def mean_loss(self) -> float:
        """The loss per target piece."""
        return self.loss / self.n_tokens


class Updater:
    """Updates a model. What is random in an update depends on the seed and its number alone, not on those before it."""

    def __init__(self, model: Transformer, settings: TrainingConfig) -> None:
        """Set up the optimizers, and the average of the weights, that ``settings`` ask for."""
        self.model = model
        self.settings = settings
        self.device = next(model.parameters()).device
        self.optimizers = make_optimizers(model, settings)
        self.average = WeightAverage(model, settings.ema_decay) if settings.ema_decay else None
        self._n_parts = 1  # of each batch: more when memory has run out

    def update(self, batches: Sequence[Batch], step: int, rate: float, usual_loss: float | None = None) -> Update:
        """Do one update on the batches together; or find a fault, and leave the weights as they are.

        Args:
            batches: their summed losses are divided by the target pieces of them all.
            step: the number of the update.
            rate: the learning rate.
            usual_loss: of a target piece in the updates before; ``spike_factor`` times as much is a fault.

        Raises:
            MtformerError: a single sentence pair does not fit into memory.
        """
        parts, losses, grad_norm = self._gradients_in_memory(batches, step)
        n_tokens = sum(part.n_tokens for part in parts)
        fault, suspects = self._fault(parts, losses, grad_norm, n_tokens, usual_loss)
        if not fault:
            for optimizer in self.optimizers:
                for group in optimizer.param_groups:
                    group["lr"] = rate
                optimizer.step()
            if self.average:
                self.average.update(step)
        self.model.zero_grad(set_to_none=True)
        return Update(sum(losses), n_tokens, fault, suspects)

    def _gradients_in_memory(self, batches: Sequence[Batch], step: int) -> tuple[list[Batch], list[float], float]:
        """Take the batches in smaller parts, from now on, when memory runs out: sums and gradients stay what they are.

        Returns:
            the parts, the summed loss of each, and the norm of the gradient of the mean.
        """
        while True:
            parts = [part for batch in batches for part in batch.parts(self._n_parts)]
            try:
                return parts, *self._gradients(parts, step)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
            # Outside the handler, whose exception would hold the tensors of what has failed.
            self.model.zero_grad(set_to_none=True)
            if all(len(part.indices) == 1 for part in parts):
                raise MtformerError("out of memory: not even a single sentence pair fits beside this model")
            self._n_parts *= 2
            log.warning("out of memory: from now on a batch is taken in %d parts, with the same result", self._n_parts)

    def _gradients(self, parts: Sequence[Batch], step: int) -> tuple[list[float], float]:
        self.model.train()
        torch.manual_seed(_mixed(self.settings.seed, step))
        n_tokens = sum(part.n_tokens for part in parts)
        losses = []
        for part in parts:
            with autocast(self.device, self.settings.precision):
                loss = summed_loss(self.model, part, self.settings.label_smoothing)
            (loss / n_tokens).backward()
            losses.append(loss.detach())
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.max_grad_norm)
        *sums, grad_norm = torch.stack([*losses, norm]).tolist()  # the one place that waits for a GPU
        return sums, grad_norm

    def _fault(
        self,
        parts: Sequence[Batch],
        losses: Sequence[float],
        grad_norm: float,
        n_tokens: int,
        usual_loss: float | None,
    ) -> tuple[str, Sequence[int]]:
        """Return what is wrong with the update, and the pairs it may come from; nothing and none if it is sound."""
        everything = [index for part in parts for index in part.indices]
        for part, loss in zip(parts, losses, strict=True):
            if not math.isfinite(loss):
                return "the loss is not a finite number", part.indices
        if not math.isfinite(grad_norm):
            return "the gradient is not a finite number", everything
        factor, mean = self.settings.spike_factor, sum(losses) / n_tokens
        if factor and usual_loss and mean > factor * usual_loss:
            return f"the loss is {mean:.3g} and was {usual_loss:.3g} in the steps before", everything
        return "", ()


def is_out_of_memory(error: RuntimeError) -> bool:
    """Tell whether torch has failed to get memory; on a CPU it has no exception for that."""
    return isinstance(error, torch.OutOfMemoryError) or "DefaultCPUAllocator: can't allocate memory" in str(error)


def _mixed(*numbers: int) -> int:
    """Mix numbers into one seed: neighbours must not draw alike."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))
