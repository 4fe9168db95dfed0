"""A graph that behaves as CUDA's, on the processor."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Recorded(TorchDispatchMode):
    """The operations of a step. Capturing them changes no tensor; a replay reads and writes those that were captured.

    Attributes:
        captured: all graphs.
        n_replays: how often this one was replayed.
    """

    captured: list["Recorded"] = []  # noqa: RUF012

    def __init__(self, take: Callable[[], None], device: torch.device) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[tuple[Any, Any, Any, Any]] = []
        self.n_replays = 0
        self._before: dict[int, tuple[Tensor, Tensor]] = {}
        with self:
            take()
        with torch.no_grad():
            for tensor, value in self._before.values():
                tensor.copy_(value)
        self.captured.append(self)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if func.namespace == "profiler":  # around the step of an optimizer
            return func(*args, **(kwargs or {}))
        for argument, value in zip(func._schema.arguments, args, strict=False):
            for tensor in tree_leaves(value) if argument.is_write else ():
                self._before.setdefault(id(tensor), (tensor, tensor.clone()))
        result = func(*args, **(kwargs or {}))
        waits = any(not isinstance(leaf, Tensor | None) for leaf in tree_leaves(result))
        assert not waits, f"{func} waits for the device"
        self.operations.append((func, args, kwargs or {}, result))
        return result

    @torch.no_grad()
    def replay(self) -> None:
        self.n_replays += 1
        for func, args, kwargs, result in self.operations:
            for old, new in zip(tree_leaves(result), tree_leaves(func(*args, **kwargs)), strict=True):
                if old is not None and old.data_ptr() != new.data_ptr():
                    old.copy_(new)
