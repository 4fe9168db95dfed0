"""mtformer: train a Transformer to translate, translate with it, and say how good it is.

>>> from mtformer import Translator
>>> translator = Translator.load("model.safetensors")
>>> [[best]] = translator.translate(["I ate chips."])
>>> best.text
"""

from typing import TYPE_CHECKING, Any

from mtformer.support import __version__

if TYPE_CHECKING:
    from mtformer.translate.translation import Translation
    from mtformer.translate.translator import Translator

__all__ = ["Translation", "Translator", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the public API on first use: ``import mtformer`` loads neither torch nor anything else."""
    if name in ("Translation", "Translator"):
        from mtformer.translate import translator

        return getattr(translator, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
