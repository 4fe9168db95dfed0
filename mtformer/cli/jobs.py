"""What the commands share that translate or score whole files with a model."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from mtformer.translate.translator import Translator

_NOT_COMPARED = (
    "text",
    "input",
    "src",
    "tgt",
    "model",
    "output",
    "resume",
    "nproc",
)  # or compared as what they contain


def compared_options(context: typer.Context) -> dict[str, object]:
    """Return the options, besides the model, that must be the same when an unfinished output is resumed."""
    return {name.rstrip("_"): value for name, value in context.params.items() if name not in _NOT_COMPARED}


def load_translator(models: Sequence[Path], device: str, **options: Any) -> "Translator":
    """Load a model or an ensemble; this takes seconds, so jobs do it once they have refused what cannot work."""
    from mtformer.translate.translator import Translator

    return Translator.load(models, device, **options)
