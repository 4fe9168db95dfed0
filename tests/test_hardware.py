"""Which precision a run computes in."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import sentence_pairs, training_settings
from test_translator import make_translator
from test_update import make_corpus, make_updater
from torch.utils._python_dispatch import TorchDispatchMode

from mtformer.bundle.format import load_bundle
from mtformer.config import Config, Facts, LanguagePair, Precision, resolve
from mtformer.data.batches import Batch, Plan
from mtformer.support.errors import UserError
from mtformer.support.hardware import pick_device, pick_device_of, pick_precision
from mtformer.support.processes.ranks import require_gpus
from mtformer.text.pairs import SentencePair
from mtformer.training.timing import seconds_per_update, share_of_new_shapes
from mtformer.training.update import Updater
from mtformer.training.validation import Validator

CPU = torch.device("cpu")
BUNDLE = Path(__file__).parent / "fixtures/bundle-2.safetensors"


def never() -> dict[Precision, float]:
    raise AssertionError("nothing is measured")


def pretend(monkeypatch: pytest.MonkeyPatch, **capabilities: bool) -> None:
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)


@pytest.mark.parametrize("capability", ["avx512_bf16", "amx_bf16"])
@pytest.mark.parametrize(
    ("seconds", "expected"),
    [({"bf16": 0.2, "fp32": 0.3}, "bf16"), ({"bf16": 0.3, "fp32": 0.2}, "fp32"), ({}, "bf16")],
)
def test_on_a_cpu_with_bf16_auto_takes_what_is_faster(
    capability: str, seconds: dict[Precision, float], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, **{capability: True})
    assert pick_precision("auto", CPU, lambda: seconds) == expected


def test_on_a_cpu_without_bf16_auto_is_fp32_and_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, avx512_bf16=False)
    assert pick_precision("auto", CPU, never) == "fp32"


@pytest.mark.parametrize(("limit", "has_bf16"), [("AVX2", False), ("avx512_core", False), ("AVX512_CORE_BF16", True)])
def test_instructions_that_onednn_is_told_to_leave_out_do_not_count(
    limit: str, has_bf16: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, avx512_bf16=True)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    assert pick_precision("auto", CPU, dict) == ("bf16" if has_bf16 else "fp32")


@pytest.mark.parametrize("is_supported", [True, False])
def test_on_a_gpu_its_capability_decides(is_supported: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: is_supported)
    assert pick_precision("auto", torch.device("cuda"), never) == ("bf16" if is_supported else "fp32")


def test_a_precision_that_is_set_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, avx512_bf16=True)
    assert [pick_precision(choice, CPU, never) for choice in ("fp32", "bf16")] == ["fp32", "bf16"]


@pytest.mark.parametrize(
    ("n_batches", "n_shapes", "expected"),
    [(3, 3, 1.0), (480, 48, 0.1), (10_000, 50, 0.005), (10_000, 200, 0.75)],
    ids=["each its own", "all in the cache", "a large corpus", "more than the cache takes"],
)
def test_kernels_are_created_for_new_shapes_and_for_those_that_the_cache_has_lost(
    n_batches: int, n_shapes: int, expected: float
) -> None:
    ends = np.arange(1, n_batches + 1)
    lengths = np.stack([ends % n_shapes, np.ones_like(ends)], axis=1)
    plan = Plan(order=np.arange(n_batches), bounds=np.stack([ends - 1, ends], axis=1), lengths=lengths)
    assert share_of_new_shapes(plan) == pytest.approx(expected)


def test_the_creation_of_kernels_counts_as_often_as_it_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    now, update = 0.0, Updater.update
    warm_up, reuse = [100.0], [1.0, 1.0, 1.0]
    seconds = {"bf16": iter([*warm_up, 7.0, 8.0, 9.0, *reuse]), "fp32": iter([*warm_up, 2.0, 2.0, 2.0, *reuse])}
    shapes: list[tuple[int, ...]] = []

    def take_time(updater: Updater, batches: list[Batch], *arguments: Any) -> object:
        nonlocal now
        now += next(seconds[updater.settings.precision])
        shapes.extend((batch.src.shape[1], batch.tgt_in.shape[1]) for batch in batches)
        return update(updater, batches, *arguments)

    monkeypatch.setattr(Updater, "update", take_time)
    monkeypatch.setattr("mtformer.training.timing.time.perf_counter", lambda: now)
    monkeypatch.setattr("mtformer.training.timing.share_of_new_shapes", lambda plan: 0.25)
    precisions: tuple[Precision, ...] = ("bf16", "fp32")
    trials = {precision: training_settings(precision=precision) for precision in precisions}
    updater = make_updater()
    before = [parameter.detach().clone() for parameter in updater.model.parameters()]
    corpus = make_corpus(1000)
    assert seconds_per_update(updater.model, trials, corpus) == pytest.approx({"bf16": 2.75, "fp32": 1.25})
    measured = shapes[2:]
    assert len(set(measured)) == 3
    assert measured[::2] == measured[1::2]
    assert measured[:6] == measured[6:]
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(updater.model.parameters(), before, strict=True))


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
