"""scripts/gpu_check: it runs where there is no GPU, and expects what one computes by hand."""

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parent.parent
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(ROOT / "scripts")
    ROOFLINE: dict[str, Any] = runpy.run_path(str(ROOT / "scripts/roofline.py"))
    CHECK: dict[str, Any] = runpy.run_path(str(ROOT / "scripts/gpu_check.py"))


@pytest.mark.slow
def test_every_check_passes_on_the_processor_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(CHECK["check"].__globals__, "ARCHITECTURES", CHECK["ARCHITECTURES"][:2])
    monkeypatch.setattr("sys.argv", ["gpu_check", "--device", "cpu"])
    with pytest.raises(SystemExit) as ended:
        CHECK["main"]()
    checks, speeds = capsys.readouterr().out.split("\n\n")[1:]
    assert not ended.value.code, checks
    assert [line.split()[-1] for line in checks.splitlines()] == ["result", *["ok"] * 10]
    assert [line.split("  ")[0] for line in speeds.splitlines()] == ["shape", "tiny", "tiny"]


def test_a_wrong_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    check, results = CHECK["check"], CHECK["results"]

    def wrong(model: Any, text: Any, precision: str) -> dict[str, Any]:
        found: dict[str, Any] = results(model, text, precision)
        wrong.n += 1  # type: ignore[attr-defined]
        return found | {"greedy": [value + 0.1 * (wrong.n % 2) for value in found["greedy"]]}  # type: ignore[attr-defined]

    wrong.n = 0  # type: ignore[attr-defined]
    monkeypatch.setitem(check.__globals__, "results", wrong)
    monkeypatch.setitem(check.__globals__, "ARCHITECTURES", [{"norm": "post"}])
    rows = check(torch.device("cpu"), "fp32")
    assert [(what, result) for _, what, *_, result in rows if result != "ok"] == [("greedy", "WRONG")]


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", None),
        ("Tesla T4", "T4"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
    ],
)
def test_gpus_are_known_by_their_names(name: str, machine: str | None) -> None:
    found = ROOFLINE["known"](name)
    assert (found and found.name) == machine


def test_a_step_takes_the_time_of_its_arithmetic_its_bytes_or_its_kernels() -> None:
    tiny = CHECK["TINY"]  # D 16, F 32, V 64, S 8
    # A decoder layer: 8·16² + 2·16·32 = 3,072 weights, less 2·16² for the memory, and 64·16 of output.
    read, attended = 3_072 - 512 + 1_024, 8 + 4 * 2  # slots of the memory and of 4 steps with 2 beams
    flops = 2 * 3 * 2 * (read + 2 * 16 * attended)
    n_bytes = 2 * read + 4 * 2 * 3 * 16 * attended + 4 * 6 * 3 * 2 * 64
    machine, outside = ROOFLINE["Machine"], ROOFLINE["OUTSIDE"] * ROOFLINE["START"] + ROOFLINE["WAIT"]
    slow, fast = machine("slow", 1e3, 1e3), machine("fast", 1e18, 1e18)
    cost = ROOFLINE["step_cost"](tiny, slow, 36, 3, 2, 4)
    assert (cost.flops, cost.bytes) == (flops, n_bytes)
    assert cost.seconds == pytest.approx(flops / 1e3 + n_bytes / 1e3 + outside)
    assert ROOFLINE["step_cost"](tiny, fast, 36, 3, 2, 4).seconds == pytest.approx(36 * ROOFLINE["NODE"] + outside)


def test_the_arithmetic_of_an_update_is_six_times_weights_times_tokens_and_that_of_attention() -> None:
    cost = ROOFLINE["update_cost"](CHECK["TINY"], ROOFLINE["MACHINES"][0], 1)
    n_weights = (4 * 256 + 1_024) + (8 * 256 + 1_024) + 64 * 16
    assert cost.flops == 6 * 64 * (n_weights + 2 * 16 * 8 * 3)  # self-attention twice, cross-attention once


def test_operations_are_counted_without_views() -> None:
    x = torch.ones(2, 3)
    assert ROOFLINE["operations"](lambda: (x.t() @ x).unsqueeze(0).add_(1)) == 2
