"""One update of the weights: gradients of its batches, guard, clipping, optimizers, average."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mtformer.config import ResolvedTraining
from mtformer.data.batches import Batch
from mtformer.errors import MtformerError
from mtformer.hardware import autocast
from mtformer.model.transformer import Transformer
from mtformer.seeds import derive_seed
from mtformer.training.ema import WeightAverage
from mtformer.training.loss import summed_loss
from mtformer.training.optimizer import make_optimizers
from mtformer.training.ranks import ALONE, Ranks
from mtformer.training.sharding import is_sharded, whole

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Update:
    """What became of an update.

    Attributes:
        loss: as minimized, summed over the target tokens, in nats; label smoothing and R-Drop included.
        cross_entropy: the same without label smoothing and R-Drop.
        n_tokens: target tokens, padding not counted.
        fault: why the weights were left as they were; empty if they were not.
        suspects: with a fault, the pairs among which the reason is.
    """

    loss: float
    cross_entropy: float
    n_tokens: int
    fault: str = ""
    suspects: Sequence[int] = ()

    @property
    def mean_loss(self) -> float:
        """The loss per target token."""
        return self.loss / self.n_tokens


class Updater:
    """Updates a model. What is random in an update depends on the seed and its number alone, not on those before it.

    Attributes:
        n_parts: of each batch, taken one after the other; more when memory has run out.
    """

    def __init__(self, model: Transformer, settings: ResolvedTraining, ranks: Ranks = ALONE) -> None:
        """Set up the optimizers, and the average of the weights, that ``settings`` ask for."""
        self.model = model
        self.settings = settings
        self.ranks = ranks
        self.device = next(model.parameters()).device
        self.optimizers = make_optimizers(model, settings)
        self.average = WeightAverage(model, settings.ema_decay) if settings.ema_decay else None
        self.n_parts = 1

    def update(self, batches: Sequence[Batch], step: int, rate: float, usual_loss: float | None = None) -> Update:
        """Do one update on the batches together; or find a fault, and leave the weights as they are.

        Args:
            batches: this rank's share of them; the summed losses are divided by the target tokens of all batches.
            step: the number of the update.
            rate: the learning rate.
            usual_loss: per target token in earlier updates; ``spike_factor`` times as much is a fault.

        Raises:
            MtformerError: a single sentence pair does not fit into memory.
        """
        [n_tokens] = self.ranks.sum(sum(batch.n_tokens for batch in batches))
        parts, losses = self._add_up_gradients(batches, step, n_tokens)
        self._share_gradients()
        norm = whole(torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.max_grad_norm))
        *sums, grad_norm = torch.cat([*losses, norm.view(1)]).tolist()  # one wait for a GPU, not one for each
        own_losses, own_cross_entropies = sums[::2], sums[1::2]
        loss, cross_entropy = self.ranks.sum(sum(own_losses), sum(own_cross_entropies))
        fault = self._fault(loss / n_tokens, grad_norm, usual_loss)
        suspects: list[int] = []
        if fault:
            suspects = self._suspects(parts, own_losses)
        else:
            for optimizer in self.optimizers:
                for group in optimizer.param_groups:
                    group["lr"] = rate
                optimizer.step()
            if self.average:
                self.average.update(step)
        self.model.zero_grad(set_to_none=True)
        return Update(loss, cross_entropy, int(n_tokens), fault, suspects)

    def _suspects(self, parts: Sequence[Batch], losses: Sequence[float]) -> list[int]:
        """Return the pairs, of all ranks, of the parts whose losses are not finite; of all parts if there are none."""
        found = [(math.isfinite(loss), i) for part, loss in zip(parts, losses, strict=True) for i in part.indices]
        everywhere = self.ranks.collect(found)
        return [i for is_finite, i in everywhere if not is_finite] or [i for _, i in everywhere]

    def fits(self, batch: Batch) -> bool:
        """Tell whether there is memory for the gradients of all of ``batch`` at once; nothing else changes."""
        try:
            self._gradients([batch], 1, batch.n_tokens)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return False
        finally:
            self.model.zero_grad(set_to_none=True)
        return True

    def _add_up_gradients(
        self, batches: Sequence[Batch], step: int, n_tokens: float
    ) -> tuple[Sequence[Batch], Sequence[Tensor]]:
        """Compute the gradients; when memory runs out, in smaller parts from now on.

        The sums stay the same but for dropout, which draws other masks for other parts.

        Returns:
            the parts that the batches were taken in, and of each the summed loss and cross entropy, (2,).
        """
        while True:
            parts = [part for batch in batches for part in batch.parts(self.n_parts)]
            losses: list[Tensor] = []
            ran_out = False
            try:
                losses = self._gradients(parts, step, n_tokens)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if is_sharded(self.model):  # the other ranks are waiting for this one's layers, not to be asked
                    raise MtformerError(
                        "out of memory: with training.shard, batches are not taken in parts by themselves; set a "
                        "smaller training.max_tokens, and more training.grad_accum_steps instead"
                    ) from error
                ran_out = True
            # Outside the handler, whose exception would hold the tensors of what has failed.
            n_ran_out, n_divisible = self.ranks.sum(ran_out, any(len(part.indices) > 1 for part in parts))
            if not n_ran_out:
                return parts, losses
            self.model.zero_grad(set_to_none=True)
            if not n_divisible:
                raise MtformerError("out of memory: not even a single sentence pair fits beside this model")
            self.n_parts *= 2
            log.warning("out of memory: from now on a batch is taken in %d parts", self.n_parts)

    def _gradients(self, parts: Sequence[Batch], step: int, n_tokens: float) -> list[Tensor]:
        self.model.train()
        torch.manual_seed(derive_seed(self.settings.seed, step, self.ranks.rank))
        losses = []
        for part in parts:
            with autocast(self.device, self.settings.precision):
                loss = summed_loss(self.model, part, self.settings.label_smoothing, self.settings.r_drop)
            (loss.smoothed / n_tokens).backward()
            losses.append(torch.stack(loss).detach())
        return losses

    def _share_gradients(self) -> None:
        """Add up the gradients over all ranks, unless they are sums already; a rank with an empty share has none."""
        if self.ranks.size > 1 and not is_sharded(self.model):
            trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
            for parameter in trained:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
            self.ranks.sum_in_place([parameter.grad for parameter in trained if parameter.grad is not None])

    def _fault(self, mean_loss: float, grad_norm: float, usual_loss: float | None) -> str:
        """Return what is wrong with the update; nothing if it is sound."""
        if not math.isfinite(mean_loss):
            return "the loss is not a finite number"
        if not math.isfinite(grad_norm):
            return "the gradient is not a finite number"
        factor = self.settings.spike_factor
        if factor and usual_loss and mean_loss > factor * usual_loss:
            return f"the loss is {mean_loss:.3g} and was {usual_loss:.3g} in the steps before"
        return ""


def is_out_of_memory(error: Exception) -> bool:
    """Tell whether torch or NumPy has failed to get memory; on a CPU torch has no exception for that."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return any(sign in str(error) for sign in ("DefaultCPUAllocator: can't allocate memory", "bad_alloc"))
