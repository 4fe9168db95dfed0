"""A lesson: the page of an explanation with the model inside, so that the reader can type and change what it does."""

from typing import Any

from mtformer.browser.pack import ENGINE_ASSETS
from mtformer.bundle.format import Bundle
from mtformer.model.architecture import ACTIVATIONS

# The worker runs the scripts up to the engine, which is the last of its own.
WORKER_ASSETS = [
    *ENGINE_ASSETS[:-1],
    *(("mtformer.explain", f"live_{name}.js") for name in ("model", "blocks", "trace")),
    ENGINE_ASSETS[-1],
]


def describe_lesson(bundle: Bundle) -> dict[str, Any]:
    """Return what ``new LiveExplainer(…)`` in JavaScript takes besides the model: the ids before texts, and a formula."""
    prefixes = bundle.tokenizer.prefixes
    return {
        "prefixes": {"src": list(prefixes.src), "tgt": list(prefixes.tgt)},
        "formula": ACTIVATIONS[bundle.header.architecture.activation].formula,
    }
