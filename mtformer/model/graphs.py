"""CUDA graphs: many operations that are captured once and then started all at once.

A GPU computes an operation of a small model in less time than Python takes to start it. What is captured reads and
writes the same tensors in each replay, so it may neither wait for the device nor depend on numbers in Python.
"""

import logging
from collections.abc import Callable
from functools import cache
from typing import Protocol

import torch

log = logging.getLogger(__name__)


class Graph(Protocol):
    """Operations that are captured."""

    def replay(self) -> None:
        """Start all of them, with the tensors that they were captured with."""
        ...


Capture = Callable[[Callable[[], None], torch.device], Graph]


def has_graphs(device: torch.device) -> bool:
    """Return whether the device has graphs, and no capture has failed."""
    return CAPTURES.get(device.type) is not None


def captured(take: Callable[[], None], device: torch.device) -> Graph | None:
    """Return the graph of the computation of ``take``, without running it.

    None if the device has no graphs or cannot make this one; then none is tried any more.
    """
    capture = CAPTURES.get(device.type)
    if capture is None:
        return None
    try:
        return capture(take, device)
    except RuntimeError as error:
        log.warning("no CUDA graph could be captured; all continues without graphs, more slowly: %s", error)
        CAPTURES[device.type] = None
        if device.type == "cuda":  # whose generator a failed capture leaves in the state of capturing
            fresh = torch.Generator(device).graphsafe_get_state()
            torch.cuda.default_generators[device.index].graphsafe_set_state(fresh)
        return None


def _capture_cuda(take: Callable[[], None], device: torch.device) -> Graph:
    """Capture on a stream of its own.

    ``torch.cuda.graph`` would also empty the allocator's cache, which takes longer than the capture.
    """
    stream, pool, _ = _shared(device)
    return _capture_on(stream, pool, take)


def _capture_on(
    stream: "torch.cuda.Stream", pool: "torch.cuda._POOL_HANDLE", take: Callable[[], object]
) -> "torch.cuda.CUDAGraph":
    graph = torch.cuda.CUDAGraph()
    current = torch.cuda.current_stream(stream.device)
    stream.wait_stream(current)
    with torch.cuda.stream(stream):
        graph.capture_begin(pool, capture_error_mode="thread_local")
        try:
            take()
        finally:
            graph.capture_end()
    current.wait_stream(stream)
    return graph


@cache
def _shared(device: torch.device) -> "tuple[torch.cuda.Stream, torch.cuda._POOL_HANDLE, Graph]":
    """Return a stream, the memory of all graphs, of which each would otherwise have its own, and a graph that keeps it.

    Memory whose graphs are all gone cannot be captured into again.
    """
    stream, pool = torch.cuda.Stream(device), torch.cuda.graph_pool_handle()
    return stream, pool, _capture_on(stream, pool, lambda: torch.zeros(1, device=device))


# Of the devices that have graphs; None where a capture has failed.
CAPTURES: dict[str, Capture | None] = {"cuda": _capture_cuda}
