"""The description of a model on a page: its size, origin and quality."""

from collections.abc import Iterator
from textwrap import shorten
from typing import Any

from pydantic import TypeAdapter, ValidationError

from mtformer.bundle.header import Header
from mtformer.config.sources import Source
from mtformer.runs.contents import METRIC_NAMES

_LONGEST = 400  # characters of a fact about a model


def describe_model(header: Header, size: str) -> Iterator[tuple[str, str]]:
    """Yield a bundle's description of its model, as names and texts. Parts of it may be untrusted.

    Args:
        header: that of the bundle.
        size: how large the model is, and how its weights are stored.
    """
    model, origin = header.architecture, header.provenance
    layers = f"{model.n_encoder_layers} encoder and {model.n_decoder_layers} decoder layers"
    facts: dict[str, Any] = {
        "Model": f"Transformer with {layers}, {size}",
        "Imported from": origin.get("imported_from"),
        "Trained on": _sources(header),
        "Validation": _scores(header),
        "Licence": origin.get("license", "not stated in the model"),
    }
    for name, value in facts.items():
        if value and isinstance(value, str):
            yield name, shorten(value, _LONGEST, placeholder=" …")


def _sources(header: Header) -> str:
    try:
        given = header.provenance["config"]["data"]["train"]
        return "; ".join(map(source_label, TypeAdapter(list[Source]).validate_python(given)))
    except (LookupError, TypeError, ValidationError):
        return ""


def source_label(source: Any) -> str:
    """Return a source of a config in short, with its keys where they are needed."""
    given = source.model_dump(mode="json", exclude_defaults=True)
    directions = given.pop("directions", [])
    mixing = [f"{key} {given.pop(key)}" for key in ("weight", "tag") if key in given]
    mixing += ["general"] * given.pop("general", False)
    values = [f"{key} {value:,}" if isinstance(value, int) else str(value) for key, value in given.items()]
    return ", ".join([*values, *directions, *mixing])


def _scores(header: Header) -> str:
    scores = header.scores
    shown = [f"{title} {scores[name]:.2f}" for name, title in METRIC_NAMES.items() if name in scores]
    return ", ".join(shown) + (f" at step {header.step:,}" if shown and header.step is not None else "")
