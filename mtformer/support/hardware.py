"""Which device to use, and in which precision. Torch is imported where it is needed."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, get_args

from mtformer.support.errors import UserError

if TYPE_CHECKING:
    import torch

Device = Literal["auto", "cpu", "cuda", "mps"]

_WITHOUT_BF16 = {"SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2", "AVX512_CORE", "AVX512_CORE_VNNI"}


def pick_device(choice: str) -> "torch.device":
    """Resolve ``auto`` to a GPU of NVIDIA or AMD where there is one.

    It never takes ``mps``, Apple's GPU, on which nobody has measured this program.

    Raises:
        UserError: there is no such device.
    """
    import torch

    gpus: dict[str, Callable[[], bool]] = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}
    return torch.device(pick_device_of("torch", choice, gpus))


def pick_device_of(library: str, choice: str, gpus: Mapping[str, Callable[[], bool]]) -> str:
    """Resolve ``auto`` to ``cuda`` where a library finds one.

    Args:
        library: its name.
        choice: the device.
        gpus: for each kind of GPU that the library can use, whether there is one.

    Raises:
        UserError: there is no such device.
    """
    if choice not in get_args(Device):
        raise UserError(f"device {choice}: it is auto, cpu, cuda or mps")
    if choice == "auto":
        return "cuda" if gpus["cuda"]() else "cpu"
    if choice == "cpu" or (choice in gpus and gpus[choice]()):
        return choice
    if choice not in gpus:
        raise UserError(f"device {choice}: {library} cannot use it; use cpu, or torch (--engine torch)")
    raise UserError(f"device {choice}: {library} finds no such GPU here; use cpu or auto")


def pick_precision(
    choice: Literal["auto", "fp32", "bf16"],
    device: "torch.device",
    measure: Callable[[], Mapping[Literal["fp32", "bf16"], float]],
) -> Literal["fp32", "bf16"]:
    """Resolve ``auto``: to ``bf16`` on a GPU that supports it, to the faster type on a CPU that supports it.

    Args:
        choice: the setting.
        device: where the model is trained.
        measure: returns the seconds of an update in each precision, or nothing if they cannot be measured. It is called
            only where the answer decides.
    """
    import torch

    if choice != "auto":
        return choice
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    if not _has_bf16_instructions():
        return "fp32"
    seconds = measure()
    return min(seconds, key=seconds.__getitem__, default="bf16")


def require_precision(precision: Literal["fp32", "bf16", "int8"], device: "torch.device") -> None:
    """Refuse precisions that ``device`` cannot translate in, or only more slowly than in ``fp32``.

    Raises:
        UserError: it is one of those.
    """
    import torch

    if precision == "int8" and device.type != "cpu":
        raise UserError(f"precision int8 runs on a CPU only, not on {device.type}: use bf16, or the device cpu")
    if precision == "bf16" and device.type == "cpu" and not _has_bf16_instructions():
        raise UserError("precision bf16: this processor has no bfloat16 instructions, so it would be slower; use int8")
    if precision == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise UserError("precision bf16: this GPU does not support it; use fp32")


def _has_bf16_instructions() -> bool:
    """Return whether the CPU multiplies bfloat16 numbers itself, and oneDNN may let it."""
    import torch

    if os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper() in _WITHOUT_BF16:
        return False
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def autocast(device: "torch.device", precision: str) -> "torch.autocast":
    """Compute matrix products in bfloat16 inside, if ``precision`` says so."""
    import torch

    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")
