"""mtformer: train a Transformer to translate, translate with it, and say how good it is.

>>> from mtformer import Translator
>>> translator = Translator.load("model.safetensors")
>>> [[best]] = translator.translate(["I ate chips."])
>>> best.text
"""

import os
from typing import TYPE_CHECKING, Any

from mtformer.support import __version__

if TYPE_CHECKING:
    from mtformer.translate.translation import Translation
    from mtformer.translate.translator import Translator

# The threads of an operation would wait for each other in a busy loop: beside a program that takes one of the cores,
# all of them would wait for the slowest (docs/performance.md). OpenMP reads this when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

__all__ = ["Translation", "Translator", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the public API on first use: ``import mtformer`` loads neither torch nor anything else."""
    if name in ("Translation", "Translator"):
        from mtformer.translate import translator

        return getattr(translator, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
