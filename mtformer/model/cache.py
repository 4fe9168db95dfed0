"""The key/value cache: the memory of step-by-step decoding. Shapes: see :mod:`mtformer.model.inference`.

There are two, with the same results. :class:`Cache` does no more than necessary. :class:`StaticCache` is for a GPU: its
tensors keep their places and shapes over many steps, so that a graph can replay them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

import torch
from torch import Tensor

from mtformer.model.graphs import Graph, captured

_FIRST_SLOTS = 16  # in a new cache, which doubles when it is full
_FIRST_STATIC_STEPS = 32  # that a new static cache has room for; it doubles as well


Compute = Callable[[Tensor, "Step"], Tensor]  # maps the ids (N,) chosen last to logits (N, V), or to states (N, D)


@dataclass
class Cache:
    """The memory of decoding between steps, for n sentences.

    The keys and values of every beam stay in the slots where they were written, K in each step. Beams that share a
    prefix share its slots, and ``visible`` tells each beam which slots are its own prefix; so choosing other beams
    moves nothing.

    Attributes:
        memory_kv: (L, 2, n, H, S, Dh), each layer's keys and values of the memory; all beams of a sentence share them.
        prefix_kv: (L, 2, n, H, C, Dh), each layer's keys and values of the positions decoded so far.
        src_mask: (n, 1, 1, S); None if there is no padding.
        visible: (n, K, n_slots), the mask of each beam; None as long as there is one beam, which sees all of them.
        n_sentences: n.
        n_beams: K.
        n_slots: how many slots are in use.
        length: the number of positions decoded so far.
    """

    memory_kv: Tensor
    prefix_kv: Tensor
    src_mask: Tensor | None
    n_sentences: int
    visible: Tensor | None = None
    n_beams: int = 1
    n_slots: int = 0
    length: int = 0

    @classmethod
    def start(cls, memory_kv: Tensor, src_mask: Tensor | None) -> "Cache":
        """Start n sentences with one beam each."""
        prefix_kv = memory_kv.new_empty(*memory_kv.shape[:4], _FIRST_SLOTS, memory_kv.size(5))
        return cls(memory_kv, prefix_kv, src_mask, memory_kv.size(2))

    def select(self, sentences: Tensor, beams: Tensor) -> None:
        """Keep some sentences, and continue some of their beams.

        Args:
            sentences: (n',) which sentences to keep, and in which order. Those that keep their index are not copied.
            beams: (n', K') for each of them the beams, 0 to K - 1, that its new beams continue; beams may repeat.
        """
        n_beams = beams.size(1)
        if n_beams > 1 or self.visible is not None:
            visible = self.visible
            if visible is None:
                visible = self.memory_kv.new_zeros(self.n_sentences, 1, self.n_slots)
            rows = (sentences[:, None] * self.n_beams + beams).flatten()  # (n'·K',)
            self.visible = visible.flatten(0, 1).index_select(0, rows).view(*beams.shape, self.n_slots)
        self.n_beams = n_beams
        order = torch.arange(sentences.size(0), device=sentences.device)
        if order.size(0) < self.n_sentences or not torch.equal(sentences, order):
            self._move(sentences, (sentences != order).nonzero()[:, 0])

    def _move(self, sentences: Tensor, moved: Tensor) -> None:
        """Keep ``sentences`` (n',), copying those whose new index is in ``moved``."""
        n = self.n_sentences = sentences.size(0)
        origins = sentences[moved]
        self.memory_kv[:, :, moved] = self.memory_kv[:, :, origins]
        self.prefix_kv[:, :, moved, :, : self.n_slots] = self.prefix_kv[:, :, origins, :, : self.n_slots]
        self.memory_kv, self.prefix_kv = self.memory_kv[:, :, :n], self.prefix_kv[:, :, :n]
        if self.src_mask is not None:
            self.src_mask = self.src_mask[sentences]

    def advance(self, tokens: Tensor, compute: Compute) -> Tensor:
        """Decode one more position of the ids (N,) with ``compute``, and return its result, such as logits (N, V)."""
        logits = compute(tokens, self._begin_step())
        self.length += 1
        return logits

    def _begin_step(self) -> "Step":
        """Take slots for the next position, of which every beam sees its own."""
        n, k, start = self.n_sentences, self.n_beams, self.n_slots
        self.n_slots += k
        if self.n_slots > self.prefix_kv.size(4):
            grown = self.prefix_kv.new_empty(*self.prefix_kv.shape[:4], 2 * self.n_slots, self.prefix_kv.size(5))
            grown[:, :, :, :, :start] = self.prefix_kv[:, :, :, :, :start]
            self.prefix_kv = grown
        if self.visible is not None:
            own = self.visible.new_full((k, k), float("-inf")).fill_diagonal_(0.0)
            self.visible = torch.cat([self.visible, own.expand(n, k, k)], dim=2)
        return Step(
            n_sentences=n,
            n_beams=k,
            position=self.length,
            memory_kv=[kv.unbind() for kv in self.memory_kv.unbind()],
            src_mask=self.src_mask,
            new_kv=self.prefix_kv.narrow(4, start, k).unbind(),
            prefix_kv=[kv.unbind() for kv in self.prefix_kv.narrow(4, 0, self.n_slots).unbind()],
            visible=None if self.visible is None else self.visible[:, None],
        )


class Step(NamedTuple):
    """The inputs of the layers for one position. Views of the cache are made once for all layers.

    Attributes:
        n_sentences: n.
        n_beams: K.
        position: its number; in a tensor (1,) if the step is to be replayed.
        memory_kv: for each layer the memory's keys and values, (n, H, S, Dh) each.
        src_mask: (n, 1, 1, S), or None.
        new_kv: for each layer (2, n, H, K, Dh), the slots for the keys and values of this position; with ``slots``,
            (2, n, H, C, Dh), all of them.
        prefix_kv: for each layer the keys and values of the prefixes, this position included, (n, H, n_slots, Dh) each.
        visible: (n, 1, K, n_slots), or None.
        slots: (K,), the numbers of the slots for this position; None if ``new_kv`` has only those.
    """

    n_sentences: int
    n_beams: int
    position: int | Tensor
    memory_kv: Sequence[Sequence[Tensor]]
    src_mask: Tensor | None
    new_kv: Sequence[Tensor]
    prefix_kv: Sequence[Sequence[Tensor]]
    visible: Tensor | None
    slots: Tensor | None = None

    def write(self, i: int, kv: Tensor) -> None:
        """Store keys and values (2, n, H, K, Dh) of this position in layer ``i``."""
        if self.slots is None:
            self.new_kv[i].copy_(kv)
        else:
            self.new_kv[i].index_copy_(3, self.slots, kv)


class StaticCache:
    """A :class:`Cache` whose tensors keep their places and shapes over many steps.

    A GPU computes a step of a small model in less time than it takes to start its operations one by one. A graph starts
    all of them at once, but always with the same tensors. Hence numbers that change are in tensors; attention reads all
    C slots, and ``visible`` hides those that are not in use; a sentence that has been dropped keeps its row, of m in
    all, until at most half of them are needed. What is shaped anew is computed once without a graph, then captured.

    Attributes:
        n_slots: how many slots are in use.
        length: the number of positions decoded so far.
    """

    def __init__(self, memory_kv: Tensor, src_mask: Tensor | None, positions: Callable[[int, int], object]) -> None:
        """Start m sentences with one beam each.

        Args:
            memory_kv: (L, 2, m, H, S, Dh), as in :class:`Cache`.
            src_mask: (m, 1, 1, S), or None.
            positions: returns the encodings of some positions from a number on, and prepares them for a step.
        """
        m = memory_kv.size(2)
        self.n_slots = self.length = 0
        self._memory_kv, self._src_mask, self._positions = memory_kv, src_mask, positions
        self._prefix_kv = memory_kv.new_zeros(*memory_kv.shape[:4], 0, memory_kv.size(5))  # (L, 2, m, H, C, Dh)
        self._visible = memory_kv.new_zeros(m, 1, 0)  # (m, K, C)
        self._rows = torch.arange(m, device=memory_kv.device)  # (n,): those of the sentences that are left
        self._step: _StaticStep | None = None

    def select(self, sentences: Tensor, beams: Tensor) -> None:
        """Keep some sentences, and continue some of their beams; see :meth:`Cache.select`."""
        n, k = beams.shape
        m, n_beams, capacity = self._visible.shape
        if k != n_beams or 0 < 2 * n <= m:
            self._step = None
        self._rows = self._rows[sentences]
        if k != n_beams or k > 1:
            visible = self._visible.new_full((m, k, capacity), float("-inf")) if k != n_beams else self._visible
            visible[self._rows] = self._visible[self._rows[:, None], beams]
            self._visible = visible
        if 0 < 2 * n <= m:
            self._memory_kv, self._prefix_kv = self._memory_kv[:, :, self._rows], self._prefix_kv[:, :, self._rows]
            self._visible = self._visible[self._rows]
            self._src_mask = None if self._src_mask is None else self._src_mask[self._rows]
            self._rows = torch.arange(n, device=self._rows.device)

    def advance(self, tokens: Tensor, compute: Compute) -> Tensor:
        """Decode one more position; see :meth:`Cache.advance`."""
        k, capacity = self._visible.shape[1:]
        if self.n_slots + k > capacity:
            self._grow(max(2 * capacity, _FIRST_STATIC_STEPS * k))
        if self._step is None:
            self._step = self._make_step(compute)
        self.n_slots += k
        self.length += 1
        return self._step.run(tokens.view(-1, k), self._rows)

    def _grow(self, capacity: int) -> None:
        """Make room for ``capacity`` slots. Those not in use are zeros, since NaN times a weight of 0 would be NaN."""
        used, visible, start = self._prefix_kv, self._visible, self.n_slots
        self._prefix_kv = used.new_zeros(*used.shape[:4], capacity, used.size(5))
        self._prefix_kv[:, :, :, :, :start] = used[:, :, :, :, :start]
        self._visible = visible.new_full((*visible.shape[:2], capacity), float("-inf"))
        self._visible[:, :, :start] = visible[:, :, :start]
        self._step = None

    def _make_step(self, compute: Compute) -> "_StaticStep":
        """Return the next step in the present tensors."""
        m, k, capacity = self._visible.shape
        device = self._visible.device
        inputs = Step(
            n_sentences=m,
            n_beams=k,
            position=torch.full((1,), self.length, device=device),
            memory_kv=[kv.unbind() for kv in self._memory_kv.unbind()],
            src_mask=self._src_mask,
            new_kv=self._prefix_kv.unbind(),
            prefix_kv=[kv.unbind() for kv in self._prefix_kv.unbind()],
            visible=self._visible[:, None],
            slots=torch.arange(self.n_slots, self.n_slots + k, device=device),
        )
        return _StaticStep(inputs, compute, self._positions(0, capacity))


class _StaticStep:
    """A step that is taken many times, each time for the next position: once without a graph, then captured."""

    def __init__(self, inputs: Step, compute: Compute, encodings: object) -> None:
        """Prepare a step; ``encodings`` are only kept alive, since a graph does not keep its inputs."""
        m, k = inputs.n_sentences, inputs.n_beams
        self._inputs, self._compute, self._encodings = inputs, compute, encodings
        assert inputs.slots is not None
        assert inputs.visible is not None
        self._tokens = torch.zeros(m, k, dtype=torch.long, device=inputs.slots.device)
        own = inputs.visible.new_full((k, k), float("-inf")).fill_diagonal_(0.0)
        self._own = own.expand(m, 1, k, k)  # what each beam sees of the slots of a step
        self._graph: Graph | None = None
        self._logits: Tensor | None = None  # (m·K, V)

    def run(self, tokens: Tensor, rows: Tensor) -> Tensor:
        """Compute the step of the ids (n, K) in ``rows`` (n,); return its result for n·K rows."""
        with _REPLAYING:  # graphs share their memory
            self._tokens[rows] = tokens
            if self._graph is None and self._logits is not None:
                self._graph = captured(self._take, self._tokens.device)
            if self._graph is None:
                self._take()
            else:
                self._graph.replay()
            assert self._logits is not None
            return self._logits.unflatten(0, self._tokens.shape)[rows].flatten(0, 1)

    def _take(self) -> None:
        """Compute the step and move to the next position, in tensors only and without waiting for the device."""
        position, slots, visible = self._inputs.position, self._inputs.slots, self._inputs.visible
        assert isinstance(position, Tensor)
        assert slots is not None
        assert visible is not None
        visible.index_copy_(3, slots, self._own)
        self._logits = self._compute(self._tokens.flatten(), self._inputs)
        position.add_(1)
        slots.add_(slots.size(0))


_REPLAYING = Lock()
