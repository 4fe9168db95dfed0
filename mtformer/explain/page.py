"""The page of ``mtformer explain``: one HTML file with the whole explanation in it."""

import base64
import html
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtformer.errors import UserError
from mtformer.page import MAX_PAGE_BYTES, assemble

_SCRIPTS = ("dom", "data", "tokens", "matrix", "attention", "steps", "tree", "matrices", "what_if", "explain")
_ASSETS = [("mtformer.explain", "explain.css"), *(("mtformer.explain", f"{name}.js") for name in _SCRIPTS)]

_UNIT = 1e-4  # numbers are rounded to a multiple of this
_MINUS_INFINITY = -(2**31)  # stands for -∞, or for what JSON calls null
_BASE64 = 4 / 3  # characters a byte


@dataclass(frozen=True)
class _Level:
    """How much of the numbers a page contains.

    Attributes:
        columns: the most columns of a matrix of features; None is all of them, 0 leaves out all matrices.
        heads: whether it contains each head's attention, or the mean only.
    """

    columns: int | None
    heads: bool = True


# From everything to the least that is still an explanation. A page takes the first level at which it is small enough.
_LEVELS = [*(_Level(columns) for columns in (None, 64, 32, 16, 8, 0)), _Level(0, heads=False)]


def render_page(explanation: dict[str, Any], *, layer: int | None = None, head: int | None = None) -> str:
    """Return an explanation as a self-contained HTML page of at most ``MAX_PAGE_BYTES`` bytes.

    The numbers of matrices are rounded to 1e-4 and compressed. If the page is still too large, the matrices lose their
    last columns, then all of them are left out, then attention is averaged over heads. The page says so.

    Args:
        explanation: what :meth:`mtformer.explain.explanation.Explanation.to_dict` returns.
        layer: the layer whose attention the page shows first, from 1; without it, the last.
        head: the head it shows first, from 1; without it, the mean of all.

    Raises:
        UserError: the sentence is too long for a page.
    """
    text = explanation["traces"][0]["source"]["text"]
    explanation = explanation | {"first": {"layer": layer, "head": head}}
    body = (
        f"<header><h1>{html.escape(text)}</h1></header>\n<main></main>\n"
        "<noscript><p>This page draws its pictures with JavaScript, which is turned off.</p></noscript>"
    )
    for level in _LEVELS:
        if level is not _LEVELS[-1] and _least_bytes(explanation, level) > MAX_PAGE_BYTES:
            continue
        page = assemble(f"{text} · mtformer explain", body, data=_page_data(explanation, level), assets=_ASSETS)
        if len(page.encode()) <= MAX_PAGE_BYTES:
            return page
    raise UserError(
        f"the sentence is too long: its page would take more than {MAX_PAGE_BYTES / 1e6:g} MB; shorten it, or use "
        "--format json"
    )


def _page_data(explanation: dict[str, Any], level: _Level) -> dict[str, Any]:
    """Return ``explanation`` with its matrices packed."""

    def with_attention(holder: dict[str, Any]) -> dict[str, Any]:
        attention = [{**one, "weights": _pack(_weights(one["weights"], level))} for one in holder["attention"]]
        return {**holder, "attention": attention}

    def with_matrices(trace: dict[str, Any]) -> dict[str, Any]:
        blocks = trace["matrices"] if level.columns != 0 else []
        return {**trace, "matrices": [{**block, "values": _pack(_kept(block, level))} for block in blocks]}

    return {
        **explanation,
        "traces": [with_matrices(with_attention(trace)) for trace in explanation["traces"]],
        "checkpoints": [with_attention(snapshot) for snapshot in explanation["checkpoints"]],
        "left_out": {"matrices": level.columns == 0, "heads": not level.heads},
    }


def _weights(weights: Any, level: _Level) -> np.ndarray:
    """Return attention weights (H, Q, K), or their mean as (1, Q, K)."""
    array = np.asarray(weights, dtype=np.float64)
    return array if level.heads else array.mean(axis=0, keepdims=True)


def _kept(block: dict[str, Any], level: _Level) -> np.ndarray:
    """Return the values of a matrix without the features that ``level`` leaves out."""
    array = np.asarray(block["values"], dtype=np.float64)  # null becomes NaN
    return array[..., : level.columns] if block["columns"] == "features" else array


def _pack(array: np.ndarray) -> dict[str, Any]:
    """Return an array as base64 of raw deflate, which a browser unpacks without a library.

    Each number is a 32-bit count of units. The lowest bytes of all numbers come first, then the next ones: the high
    bytes are nearly all 0 or 255, which compress to almost nothing, so that a number costs what its digits cost.
    """
    finite = np.isfinite(array)
    numbers = np.where(finite, array, 0.0)
    most = np.abs(numbers).max(initial=0.0)
    unit = _UNIT * 10 ** max(0, math.ceil(math.log10(max(most, 1.0) / _UNIT / 2**31)))
    counts = np.where(finite, np.rint(numbers / unit), _MINUS_INFINITY).astype("<i4")
    planes = np.ascontiguousarray(counts.reshape(-1).view(np.uint8).reshape(-1, 4).T).tobytes()
    compressor = zlib.compressobj(9, wbits=-15)
    packed = compressor.compress(planes) + compressor.flush()
    return {"shape": list(array.shape), "unit": unit, "data": base64.b64encode(packed).decode()}


def _least_bytes(explanation: dict[str, Any], level: _Level) -> float:
    """Return less than the numbers of a page can take, to skip levels without compressing in vain.

    Most features take about two bytes each; half of those after ReLU are 0. Attention weights may take almost nothing.
    """
    return sum(_n_features(explanation, level)) * _BASE64


def _n_features(explanation: dict[str, Any], level: _Level) -> Iterator[int]:
    for trace in explanation["traces"]:
        for block in trace["matrices"]:
            *rows, columns = block["shape"]
            if block["columns"] == "features":
                yield math.prod(rows) * (columns if level.columns is None else min(columns, level.columns))
