"""The page of an explanation, and the attention that it shows first."""

import base64
import html
import math
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any, Literal

import numpy as np

from mtformer.explain.trace import KINDS, Kind, require_head
from mtformer.model.architecture import Architecture
from mtformer.support.errors import UserError
from mtformer.support.page import BASE64, MAX_PAGE_BYTES, Asset, assemble

Language = Literal["en", "zh"]


@dataclass(frozen=True)
class Focus:
    """The attention to show, or to show first.

    Attributes:
        kind: ``encoder``, ``decoder`` or ``cross``; None for all three.
        layer: from 1; None for the last.
        head: from 1; None for the mean of all.
    """

    kind: str | None = None
    layer: int | None = None
    head: int | None = None

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds to show."""
        return tuple(kind for kind in KINDS if self.kind in (None, kind))

    def require(self, model: Architecture) -> None:
        """Make sure that the model has this attention; without a kind, that either stack has the layer.

        Raises:
            UserError: there is no such layer or head; the message says which there are.
        """
        depths = {"encoder": model.n_encoder_layers, "decoder": model.n_decoder_layers, "cross": model.n_decoder_layers}
        kind = max(self.kinds, key=lambda kind: depths[kind])
        layer = depths[kind] if self.layer is None else self.layer
        require_head(kind, layer, self.head, n_layers=depths[kind], n_heads=model.n_heads)


ALL_KINDS = Focus()


_SCRIPTS = (
    "words", "state", "data", "tokens", "matrix", "lines", "attention", "player", "flow", "steps", "tree",
    "matrices", "vectors", "compare", "what_if", "explain",
)  # fmt: skip
ASSETS = [
    ("mtformer.explain", "explain.css"),
    ("mtformer.support", "dom.js"),
    *(("mtformer.explain", f"{name}.js") for name in _SCRIPTS),
]

_NO_SCRIPT = "This page draws its pictures with JavaScript, which is turned off."
_UNIT = 1e-4  # numbers are rounded to a multiple of this
_MINUS_INFINITY = -(2**31)  # stands for -∞, or for what JSON calls null


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


def render_page(explanation: dict[str, Any], focus: Focus = ALL_KINDS, language: Language = "en") -> str:
    """Return an explanation as a self-contained HTML page of at most ``MAX_PAGE_BYTES`` bytes.

    The numbers of matrices are rounded to 1e-4 and compressed. If the page is still too large, the matrices lose their
    last columns, then all of them are left out, then attention is averaged over heads. The page says so.

    Args:
        explanation: what :meth:`mtformer.explain.explanation.Explanation.to_dict` returns.
        focus: the attention that the page shows first.
        language: of the page.

    Raises:
        UserError: the sentence is too long for a page.
    """
    text = explanation["traces"][0]["source"]["text"]
    contents = Contents(explanation, focus, language)
    for level in _LEVELS:
        if contents.least_bytes(level) > MAX_PAGE_BYTES:
            continue
        page = assemble_page(text, language, contents.at(level), ASSETS)
        if len(page.encode()) <= MAX_PAGE_BYTES:
            return page
    raise UserError(
        f"the sentence is too long: its page would take more than {MAX_PAGE_BYTES / 1e6:g} MB; shorten it, or use "
        "--format json"
    )


def assemble_page(
    text: str, language: Language, data: dict[str, Any], assets: Sequence[Asset], *, weights: str = ""
) -> str:
    """Return the page about a sentence, which scripts fill.

    Args:
        text: the sentence.
        language: of the page.
        data: what :meth:`Contents.at` returns.
        assets: style sheets and scripts.
        weights: an element with the weights of a model, if the page runs one.
    """
    body = (
        f"<header><h1>{html.escape(text)}</h1></header>\n<main></main>\n"
        f"<noscript><p>{data['words'].get(_NO_SCRIPT, _NO_SCRIPT)}</p></noscript>"
    )
    title = f"{text} · mtformer explain"
    return assemble(title, body + weights, language=language, data=data, assets=assets, computes=bool(weights))


def read_words() -> dict[str, str]:
    """Return the Chinese translation of each English text of a page, from the table ``words.tsv``."""
    table = resources.files("mtformer.explain").joinpath("words.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in table.splitlines()[1:])
    return {row[0]: row[1] for row in rows}


class Contents:
    """The contents of a page at each level. A matrix that several levels share is packed once."""

    def __init__(self, explanation: dict[str, Any], focus: Focus, language: Language) -> None:
        """Add to an explanation the attention to show first, and the words of the page."""
        words = read_words() if language == "zh" else {}
        self._explanation = explanation | {"first": asdict(focus), "words": words}
        self._arrays: dict[int, np.ndarray] = {}  # by the identity of the nested lists
        self._packed: dict[tuple[int, _Level], dict[str, Any]] = {}

    def at(self, level: _Level = _LEVELS[0]) -> dict[str, Any]:
        """Return the explanation with its matrices packed."""
        traces = [self._with_attention(trace, level) for trace in self._explanation["traces"]]
        for trace in traces:
            blocks = trace["matrices"] if level.columns != 0 else []
            trace["matrices"] = [{**block, "values": self._block(block, level)} for block in blocks]
        kept = {key: value for key, value in self._explanation.items() if key != "changes"}  # which scripts compute
        return {
            **kept,
            "traces": traces,
            "checkpoints": [self._with_attention(snapshot, level) for snapshot in self._explanation["checkpoints"]],
            "left_out": {"matrices": level.columns == 0, "heads": not level.heads},
        }

    def least_bytes(self, level: _Level) -> float:
        """Return less than the numbers of a page can take, to skip levels without compressing in vain.

        Most features take about two bytes each; half of those after ReLU are 0.
        """
        if level.columns == 0:
            return 0.0
        blocks = [block for trace in self._explanation["traces"] for block in trace["matrices"]]
        shapes = [block["shape"] for block in blocks if block["columns"] == "features"]
        n_features = sum(math.prod(rows) * min(columns, level.columns or columns) for *rows, columns in shapes)
        size = n_features * BASE64
        for block in blocks:
            if size > MAX_PAGE_BYTES:  # enough is known
                break
            if block["columns"] != "features":
                size += len(self._block(block, level)["data"])
        return size

    def _with_attention(self, holder: dict[str, Any], level: _Level) -> dict[str, Any]:
        """Return a trace or a snapshot with its attention packed, of each head (H, Q, K) or the mean (1, Q, K)."""
        packed = []
        for attention in holder["attention"]:
            array = self._array(attention["weights"])
            packed.append({**attention, "weights": _pack(array if level.heads else array.mean(axis=0, keepdims=True))})
        return {**holder, "attention": packed}

    def _block(self, block: dict[str, Any], level: _Level) -> dict[str, Any]:
        """Return the values of a matrix, without the features that ``level`` leaves out."""
        is_cut = block["columns"] == "features" and level.columns is not None
        key = (id(block["values"]), level if is_cut else _LEVELS[0])
        if key not in self._packed:
            array = self._array(block["values"])
            self._packed[key] = _pack(array[..., : level.columns] if is_cut else array)
        return self._packed[key]

    def _array(self, values: Any) -> np.ndarray:
        if id(values) not in self._arrays:
            self._arrays[id(values)] = np.asarray(values, dtype=np.float64)  # null becomes NaN
        return self._arrays[id(values)]


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
