"""What CTranslate2 can do: the search options that it has, devices and threads."""

import os

import ctranslate2

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


def pick_device(choice: str) -> str:
    """Resolve ``auto`` to a GPU where CTranslate2 finds one.

    Raises:
        UserError: there is no such device.
    """
    has_gpu = choice != "cpu" and ctranslate2.get_cuda_device_count() > 0
    if choice not in ("auto", "cpu", "cuda"):
        raise UserError(f"device {choice}: it is auto, cpu or cuda")
    if choice == "cuda" and not has_gpu:
        raise UserError("device cuda: CTranslate2 finds no GPU here; use cpu or auto")
    return "cuda" if has_gpu else "cpu"


def n_threads() -> int:
    """Return ``$OMP_NUM_THREADS``, as torch takes it, or else the number of cores that this process may use."""
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(given) if given.isdecimal() and int(given) > 0 else len(os.sched_getaffinity(0))
