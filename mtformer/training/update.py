"""One update of the weights: gradients of its batches, guard, clipping, optimizers, average; the loss of several."""

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mtformer.config import ResolvedTraining
from mtformer.data.batches import Batch
from mtformer.model.dropout import randomness_from
from mtformer.model.graphs import has_graphs
from mtformer.model.output import Losses
from mtformer.model.transformer import Transformer
from mtformer.support.errors import MtformerError
from mtformer.support.hardware import autocast, return_freed_memory_if_scarce
from mtformer.support.processes.ranks import ALONE, Ranks
from mtformer.support.processes.threads import Threads
from mtformer.support.reproducibility import derive_seed
from mtformer.training.ema import WeightAverage
from mtformer.training.graphs import UpdateGraphs
from mtformer.training.optimizer import make_optimizers
from mtformer.training.sharding import computes_in_threads, is_sharded, whole

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Update:
    """The outcome of an update.

    Attributes:
        loss: as minimized, summed over the target tokens, in nats; label smoothing included.
        cross_entropy: the same without label smoothing.
        n_tokens: target tokens, padding not counted.
        grad_norm: the norm of the gradient before it is clipped.
        fault: why the weights were not changed; empty if they were.
        suspects: after a fault, the pairs that may have caused it.
    """

    loss: float
    cross_entropy: float
    n_tokens: int
    grad_norm: float
    fault: str = ""
    suspects: Sequence[int] = ()

    @property
    def mean_loss(self) -> float:
        """The loss per target token."""
        return self.loss / self.n_tokens


class Updater:
    """Updates a model. Randomness in an update depends on the seed and its number alone, not on earlier updates.

    Attributes:
        n_parts: the parts that each thread's part of a batch is split into; doubled whenever memory runs out.
        threads: those that compute gradients; one on a GPU and for a sharded model.
    """

    def __init__(self, model: Transformer, settings: ResolvedTraining, ranks: Ranks = ALONE) -> None:
        """Set up the optimizers and the weight average that ``settings`` name."""
        self.model = model
        self.settings = settings
        self.ranks = ranks
        self.device = model.device
        self.threads = Threads(settings.threads if computes_in_threads(model) else 1)
        # Those that are trained: a model is frozen and sharded before.
        self._weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizers = make_optimizers(model, settings, self.threads)
        self.average = WeightAverage(model, settings.ema_decay) if settings.ema_decay else None
        self.n_parts = 1
        can_capture = has_graphs(self.device) and not is_sharded(model)
        self._graphs = UpdateGraphs(self._add_gradients_of, self.optimizers, self.device) if can_capture else None

    def update(self, batches: Sequence[Batch], step: int, rate: float, usual_loss: float | None = None) -> Update:
        """Update the weights once on all the batches, or report a fault and do not change them.

        Args:
            batches: this rank's share; the summed losses are divided by the target tokens of all ranks.
            step: the number of the update.
            rate: the learning rate.
            usual_loss: per target token in earlier updates; ``spike_factor`` times as much is a fault.

        Raises:
            MtformerError: a single sentence pair does not fit in memory.
        """
        [n_tokens] = self.ranks.sum(sum(batch.n_tokens for batch in batches))
        parts, losses = self._add_up_gradients(batches, step, n_tokens)
        self._share_gradients()
        norm = whole(torch.nn.utils.clip_grad_norm_(self._weights, self.settings.max_grad_norm))
        # One synchronization with a GPU instead of several.
        *sums, grad_norm = torch.cat([*losses, norm.view(1)]).tolist()
        own_losses, own_cross_entropies = sums[::2], sums[1::2]
        loss, cross_entropy = self.ranks.sum(sum(own_losses), sum(own_cross_entropies))
        fault = self._fault(loss / n_tokens, grad_norm, usual_loss)
        suspects: list[int] = []
        if fault:
            suspects = self._suspects(parts, own_losses)
        else:
            self._step(rate)
            if self.average:
                self.average.update(step)
        self._zero_grad()
        return_freed_memory_if_scarce()
        return Update(loss, cross_entropy, int(n_tokens), grad_norm, fault, suspects)

    def _suspects(self, parts: Sequence[Batch], losses: Sequence[float]) -> list[int]:
        """Return the pairs of all ranks in parts with a non-finite loss, or all pairs if there is none."""
        checked = [(math.isfinite(loss), i) for part, loss in zip(parts, losses, strict=True) for i in part.indices]
        everywhere = self.ranks.collect(checked)
        return [i for is_finite, i in everywhere if not is_finite] or [i for _, i in everywhere]

    def fits(self, batch: Batch) -> bool:
        """Return whether the gradients of ``batch``, a part in each thread, fit in memory; change nothing."""
        try:
            self._gradients(batch.parts(self.threads.n), 1, batch.n_tokens)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return False
        finally:
            self._zero_grad()
        return True

    def _add_up_gradients(
        self, batches: Sequence[Batch], step: int, n_tokens: float
    ) -> tuple[Sequence[Batch], Sequence[Tensor]]:
        """Compute the gradients; if memory runs out, split batches into smaller parts from now on.

        The sums stay the same except for dropout, whose masks depend on the parts.

        Returns:
            The parts of the batches, and for each its summed loss and cross entropy, (2,).
        """
        while True:
            parts = [part for batch in batches for part in batch.parts(self.n_parts * self.threads.n)]
            losses: list[Tensor] = []
            ran_out = False
            try:
                losses = self._gradients(parts, step, n_tokens)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if is_sharded(self.model):  # the other ranks are waiting inside a layer and cannot be asked to split
                    raise MtformerError(
                        "out of memory: training.shard cannot split batches; set a smaller training.max_tokens and "
                        "more training.grad_accum_steps"
                    ) from error
                ran_out = True
            # Outside the handler, whose exception would keep the tensors of the failed attempt alive.
            n_ran_out, n_divisible = self.ranks.sum(ran_out, any(len(part.indices) > 1 for part in parts))
            if not n_ran_out:
                return parts, losses
            self._zero_grad()
            if not n_divisible:
                raise MtformerError("out of memory: not even a single sentence pair fits in memory with this model")
            self.n_parts *= 2
            log.warning("out of memory: batches are split into %d parts from now on", self.n_parts)

    def _gradients(self, parts: Sequence[Batch], step: int, n_tokens: float) -> list[Tensor]:
        """Add the gradients of the parts to those of the weights, in order; return the losses of each part."""
        self.model.train()
        if self.device.type != "cpu":
            torch.manual_seed(derive_seed(self.settings.seed, step, self.ranks.rank))
        if self._graphs:
            return [self._graphs.add_gradients(part, n_tokens).clone() for part in parts]

        def compute(numbered_part: tuple[int, Batch]) -> tuple[Tensor, Sequence[Tensor | None]]:
            number, part = numbered_part
            seed = derive_seed(self.settings.seed, step, self.ranks.rank, number)
            with randomness_from(seed), autocast(self.device, self.settings.precision):
                loss = summed_loss(self.model, part, self.settings.label_smoothing)
            mean = loss.smoothed / n_tokens
            if self.threads.n == 1:  # sharded weights have gradients in no other way
                mean.backward()
                return torch.stack(loss).detach(), ()
            return torch.stack(loss).detach(), torch.autograd.grad(mean, self._weights, allow_unused=True)

        losses, numbered = [], list(enumerate(parts))
        for start in range(0, len(parts), self.threads.n):  # so many gradients are in memory
            for loss, gradients in list(self.threads.map(compute, numbered[start : start + self.threads.n])):
                losses.append(loss)
                _add_gradients(self._weights, gradients)
        return losses

    def _add_gradients_of(self, batch: Batch, n_tokens: Tensor) -> Tensor:
        """Add the gradients of a batch to those of the weights; return its loss and cross entropy, (2,)."""
        with autocast(self.device, self.settings.precision):
            loss = summed_loss(self.model, batch, self.settings.label_smoothing, of_padding=True)
        gradients = torch.autograd.grad(loss.smoothed / n_tokens, self._weights, allow_unused=True)
        _add_gradients(self._weights, gradients)
        return torch.stack(loss).detach()

    def _zero_grad(self) -> None:
        """Forget the gradients; graphs always have the same tensors for them."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=self._graphs is None)

    def _step(self, rate: float) -> None:
        """Let the optimizers change the weights."""
        if self._graphs:
            self._graphs.step(rate)
            return
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()

    def _share_gradients(self) -> None:
        """Add up the gradients over all ranks, unless they are sums already; a rank with an empty share has none."""
        if self.ranks.size > 1 and not is_sharded(self.model):
            for weight in self._weights:
                if weight.grad is None:
                    weight.grad = torch.zeros_like(weight)
            self.ranks.sum_in_place([weight.grad for weight in self._weights if weight.grad is not None])

    def _fault(self, mean_loss: float, grad_norm: float, usual_loss: float | None) -> str:
        """Return the fault of an update, or an empty string."""
        if not math.isfinite(mean_loss):
            return "the loss is not a finite number"
        if not math.isfinite(grad_norm):
            return "the gradient is not a finite number"
        factor = self.settings.spike_factor
        if factor and usual_loss and mean_loss > factor * usual_loss:
            return f"the loss is {mean_loss:.3g} and was {usual_loss:.3g} in the steps before"
        return ""


def _add_gradients(weights: Sequence[Tensor], gradients: Sequence[Tensor | None]) -> None:
    """Add the gradients that a thread has computed, if any, to those of the weights."""
    sums, terms = [], []
    for weight, gradient in zip(weights, gradients, strict=False):
        if weight.grad is None:
            weight.grad = None if gradient is None else gradient.contiguous()  # fused optimizers need it so
        elif gradient is not None:
            sums.append(weight.grad)
            terms.append(gradient)
    if sums:
        torch._foreach_add_(sums, terms)


def summed_loss(model: Transformer, batch: Batch, label_smoothing: float, *, of_padding: bool = False) -> Losses:
    """Return the losses summed over the batch's target tokens; padding is ignored.

    Sums, not means: several batches are added up and divided once, by their common number of tokens. Then 8 pairs in
    one batch and 2 pairs in each of 4 batches give the same gradient.

    ``of_padding`` computes the losses of padding as well before it is ignored: then the shapes of all tensors follow
    from that of the batch.
    """
    hidden = model(batch.src, batch.src_mask, batch.tgt_in).flatten(0, 1)  # (B·T, D)
    target = batch.tgt_out.flatten()
    if of_padding:
        return model.output.loss(hidden, target, label_smoothing, batch.tgt_mask.flatten())
    return model.output.loss(hidden[batch.positions], target[batch.positions], label_smoothing)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether torch or NumPy ran out of memory; torch has no exception for that on a CPU."""
    signs = ("DefaultCPUAllocator: can't allocate memory", "bad_alloc")
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(sign in str(error) for sign in signs)


@dataclass
class RunningLoss:
    """Losses and gradients of some updates, also of those before training was resumed; the speed of those since.

    Attributes:
        smoothed: the sum of the losses, label smoothing included.
        cross_entropy: the same without it.
        grad_norm: the sum of the gradients' norms.
        n_updates: the updates counted.
        n_tokens: their target tokens.
    """

    smoothed: float = 0.0
    cross_entropy: float = 0.0
    grad_norm: float = 0.0
    n_updates: int = 0
    n_tokens: int = 0

    def __post_init__(self) -> None:
        self._started, self._n_tokens_before = time.monotonic(), self.n_tokens

    def add(self, update: Update) -> None:
        """Count an update."""
        self.smoothed += update.loss
        self.cross_entropy += update.cross_entropy
        self.grad_norm += update.grad_norm
        self.n_updates += 1
        self.n_tokens += update.n_tokens

    def metrics(self) -> dict[str, float]:
        """Return the losses, in nats per target token; the gradient's norm; and target tokens per second.

        ``train_loss`` is the cross entropy, as ``valid_loss`` is, but with dropout; ``train_loss_smoothed`` is what
        training minimizes, with label smoothing. ``grad_norm`` is the mean norm before clipping. Padding does not count
        as tokens.
        """
        n_tokens, seconds = max(1, self.n_tokens), max(1e-9, time.monotonic() - self._started)
        return {
            "train_loss": self.cross_entropy / n_tokens,
            "train_loss_smoothed": self.smoothed / n_tokens,
            "grad_norm": self.grad_norm / max(1, self.n_updates),
            "tokens_per_second": (self.n_tokens - self._n_tokens_before) / seconds,
        }
