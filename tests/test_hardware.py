"""Which precision a run computes in."""

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import sentence_pairs
from test_translator import make_translator
from torch.utils._python_dispatch import TorchDispatchMode

from mtformer.bundle.format import load_bundle
from mtformer.config import Config, Facts, LanguagePair, Precision, resolve
from mtformer.data.batches import Batch
from mtformer.support import hardware
from mtformer.support.errors import UserError
from mtformer.support.hardware import pick_device, pick_device_of, pick_precision
from mtformer.support.processes.ranks import require_gpus
from mtformer.text.pairs import SentencePair
from mtformer.training.update import Updater
from mtformer.training.validation import Validator

CPU = torch.device("cpu")
BUNDLE = Path(__file__).parent / "fixtures/bundle-3.safetensors"


@pytest.fixture(autouse=True)
def _unknown_processor() -> Iterator[None]:
    """Let each test find out what the processor can do, and the tests after it as well."""
    hardware._cpu_has_fast_bf16.cache_clear()
    yield
    hardware._cpu_has_fast_bf16.cache_clear()


@pytest.mark.parametrize(("slower", "expected"), [(torch.float32, "bf16"), (torch.bfloat16, "fp32")])
def test_on_a_cpu_auto_takes_the_type_whose_products_are_faster(
    slower: torch.dtype, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, multiply = 0.0, torch.Tensor.__matmul__

    def take_time(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        nonlocal now
        now += 4.0 if a.dtype == slower else 1.0
        return multiply(a, b)

    monkeypatch.setattr(torch.Tensor, "__matmul__", take_time)
    monkeypatch.setattr("mtformer.support.hardware.time.perf_counter", lambda: now)
    assert pick_precision("auto", CPU) == expected


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the limit is one of x86 processors")
def test_instructions_that_onednn_is_told_to_leave_out_do_not_count() -> None:
    show = "from mtformer.support.hardware import *; import torch; print(pick_precision('auto', torch.device('cpu')))"
    environment = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    assert subprocess.check_output([sys.executable, "-c", show], env=environment, text=True) == "fp32\n"


@pytest.mark.parametrize("is_supported", [True, False])
def test_on_a_gpu_its_capability_decides(is_supported: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: is_supported)
    assert pick_precision("auto", torch.device("cuda")) == ("bf16" if is_supported else "fp32")


@pytest.mark.parametrize("is_fast", [True, False])
def test_a_precision_that_is_set_is_kept(is_fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "has_fast_bf16", lambda device: is_fast)
    assert [pick_precision(choice, CPU) for choice in ("fp32", "bf16")] == ["fp32", "bf16"]


class Products(TorchDispatchMode):
    """Collects the types of the operands of all matrix products inside."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.types: set[torch.dtype] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name.endswith(("mm", "mv")) or any(part in name for part in ("dot", "linear", "attention", "conv")):
            self.types.update(tensor.dtype for tensor in args if isinstance(tensor, torch.Tensor) and tensor.dim() > 1)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_with_fp32_an_update_a_validation_and_a_translation_multiply_nothing_in_bfloat16(
    precision: Precision,
) -> None:
    bundle = load_bundle(BUNDLE)
    text = [{"src": "a", "tgt": "b"}]
    data = {"src_lang": "en", "tgt_lang": "de", "train": text, "valid": text}
    config = Config.model_validate({"data": data, "training": {"precision": precision, "optimizer": "muon"}})
    resolved = resolve(config, Facts(n_pairs=1, precision=precision))
    pairs = [SentencePair(*pair) for pair in sentence_pairs(4)]
    validator = Validator(resolved, bundle.tokenizer, {LanguagePair("en", "de"): pairs})
    ids = torch.tensor(bundle.tokenizer.encode_src(["the old house"]))
    with Products() as products:
        update = Updater(bundle.model, resolved.training).update([Batch(ids, ids > 0, ids, ids, ids > 0, [0])], 1, 1e-3)
        validator.validate(bundle.model)
        make_translator(bundle.model, bundle.tokenizer).translate(["the old house"])
    assert not update.fault
    assert torch.float32 in products.types
    assert (torch.bfloat16 in products.types) == (precision == "bf16")


@pytest.mark.parametrize("has_mps", [True, False])
def test_the_gpu_of_apple_is_taken_only_where_it_is_named_and_there(
    has_mps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: has_mps)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pick_device("auto").type == "cpu"
    if has_mps:
        assert pick_device("mps").type == "mps"
    else:
        with pytest.raises(UserError, match="device mps: torch finds no such GPU here; use cpu or auto"):
            pick_device("mps")
    with pytest.raises(UserError, match=r"device mps: CTranslate2 cannot use it; use cpu, or torch \(--engine torch\)"):
        pick_device_of("CTranslate2", "mps", {"cuda": lambda: False})


def test_one_process_has_the_gpu_of_apple(monkeypatch: pytest.MonkeyPatch) -> None:
    require_gpus(torch.device("mps"), 1)
    with pytest.raises(UserError, match="has 1 GPU for 2 processes"):
        require_gpus(torch.device("mps"), 2)
