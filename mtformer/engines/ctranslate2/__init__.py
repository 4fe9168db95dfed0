"""CTranslate2: convert a bundle, and run the result. Only conversion imports torch."""

from mtformer.config import SearchOptions
from mtformer.support.errors import UserError

_LACKING = frozenset(("sample", "temperature", "top_k", "top_p", "seed"))


def require_supported(options: SearchOptions) -> None:
    """Refuse options that CTranslate2 cannot do.

    Raises:
        UserError: the message names them.
    """
    if refused := unsupported(options):
        raise UserError(f"--engine ctranslate2 does not support {', '.join(refused)}; use --engine torch")


def unsupported(options: SearchOptions) -> list[str]:
    """Return the options, as in ``seed = 1``, that differ from their defaults and that CTranslate2 cannot do."""
    refused = [name for name in _LACKING if getattr(options, name) != type(options).model_fields[name].default]
    refused += ["precision"] * (options.precision == "bf16")
    return [f"{name} = {getattr(options, name)}" for name in type(options).model_fields if name in refused]
