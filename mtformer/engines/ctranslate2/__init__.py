"""CTranslate2: convert a bundle, and run the result. Only conversion imports torch."""

from mtformer.config import SearchOptions
from mtformer.support.errors import UserError

_SUPPORTED = frozenset(
    (
        "beam_size",
        "n_best",
        "length_penalty",
        "max_length_factor",
        "max_length_offset",
        "min_length",
        "max_length",
        "repetition_penalty",
        "no_repeat_ngram_size",
        "mbr",
        "batch_tokens",
    )
)


def require_supported(options: SearchOptions) -> None:
    """Refuse options that CTranslate2 cannot do.

    Raises:
        UserError: the message names them.
    """
    if refused := unsupported(options):
        raise UserError(f"--engine ctranslate2 has no {', '.join(refused)}; use --engine torch")


def unsupported(options: SearchOptions) -> list[str]:
    """Return the options, as in ``seed = 1``, that differ from their defaults and that CTranslate2 cannot do."""
    return [
        f"{name} = {value}"
        for name, value in options
        if name not in _SUPPORTED
        and (name, value) != ("precision", "int8")
        and value != type(options).model_fields[name].default
    ]
