"""scripts/bench_translate.py: it measures what is installed, and its converters keep every weight."""

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mtformer.bundle.format import load_bundle
from mtformer.support.errors import UserError

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "tests/fixtures"
BUNDLE = FIXTURES / "bundle-3.safetensors"
PAIRS = [(row["src"], row["translation"]) for row in json.loads((FIXTURES / "bundle-3.json").read_text("utf-8"))]
WEIGHTS = json.loads((FIXTURES / "peer_weights.json").read_text("utf-8"))  # of the toolkits' own models of this shape
CONVERT: dict[str, Any] = runpy.run_path(str(ROOT / "scripts/peers/convert.py"))
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(ROOT / "scripts")  # as when it is run
    BENCH: dict[str, Any] = runpy.run_path(str(ROOT / "scripts/bench_translate.py"))


def states() -> dict[str, dict[str, Any]]:
    """The weights of the fixture's model in each format."""
    model = load_bundle(BUNDLE).model
    return {toolkit: CONVERT[f"{toolkit}_state"](model) for toolkit in ("joeynmt", "opennmt", "marian")}


@pytest.mark.parametrize("toolkit", WEIGHTS)
def test_a_converted_model_has_the_names_and_shapes_of_the_toolkit(toolkit: str) -> None:
    assert {name: list(tensor.shape) for name, tensor in states()[toolkit].items()} == WEIGHTS[toolkit]


def test_converted_attentions_have_their_own_projections() -> None:
    found = states()
    layer: Any = load_bundle(BUNDLE).model.decoder_layers[0]
    attention = layer.cross_attention
    for number, part in enumerate("qkv"):
        weight = attention.qkv_proj.weight[16 * number : 16 * (number + 1)]
        opennmt = {"q": "query", "k": "keys", "v": "values"}[part]
        assert torch.equal(found["joeynmt"][f"decoder.layers.0.src_trg_att.{part}_layer.weight"], weight)
        assert torch.equal(
            found["opennmt"][f"decoder.transformer_layers.0.context_attn.linear_{opennmt}.weight"], weight
        )
        assert np.array_equal(found["marian"][f"decoder_l1_context_W{part}"].T, weight.detach().numpy())


def test_joeynmt_gets_its_own_order_of_special_tokens() -> None:
    embedding = load_bundle(BUNDLE).model.tgt_embedding.weight
    found = states()["joeynmt"]["src_embed.lut.weight"]
    assert torch.equal(found[:2], embedding[:2].flip(0))
    assert torch.equal(found[2:], embedding[2:])


def test_a_model_that_the_toolkits_lack_is_not_converted() -> None:
    architecture = load_bundle(BUNDLE).header.architecture.model_copy(update={"norm": "post", "positions": "rotary"})
    with pytest.raises(UserError, match="because of norm = post, positions = rotary"):
        CONVERT["require_convertible"](architecture)


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(i) for i in range(20, 0, -1)]
    assert [BENCH["percentile"](values, percent) for percent in (50, 95, 100)] == [10, 19, 20]
    assert BENCH["percentile"]([7.0], 50) == 7


def command(folder: Path, *options: str) -> list[str]:
    """Return what compares systems on sentences whose references are the model's own translations."""
    for language, texts in zip(("en", "de"), zip(*PAIRS[:4], strict=True), strict=True):
        (folder / f"small.{language}").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    given = ["--data", str(folder), "--set", "small", "--single", "2", "--rounds", "1", "--beam-sizes", "1"]
    return ["scripts/bench_translate.py", str(BUNDLE), str(folder / "work"), *given, *options]


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """What runs the script with arguments, and returns its status, its standard output and its errors."""
    monkeypatch.setattr("os.sched_setaffinity", lambda process, cpus: None)  # it is this process here

    def run(*arguments: str) -> tuple[Any, str, str]:
        monkeypatch.setattr("sys.argv", list(arguments))
        with pytest.raises(SystemExit) as ended:
            BENCH["main"]()
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.mark.slow
def test_it_measures_what_works_and_names_what_does_not(tmp_path: Path, in_this_process: Callable[..., Any]) -> None:
    broken = tmp_path / "work/opennmt/bin/python"
    broken.parent.mkdir(parents=True)
    broken.write_text("#!/bin/sh\necho out of order >&2\nexit 3\n")
    broken.chmod(0o755)
    notes = tmp_path / "work/translate/notes"  # a folder of somebody else
    notes.parent.mkdir()
    notes.touch()
    status, out, err = in_this_process(*command(tmp_path, "--systems", "joeynmt", "opennmt", "torch", "--markdown"))
    assert notes.exists()
    assert status == 1  # because a system failed
    assert "joeynmt is not installed: scripts/peers/install" in err
    [log] = re.findall(r"^round 1, beam 1, opennmt: failed with status 3; see (.+)$", err, re.MULTILINE)
    assert Path(log).read_text(encoding="utf-8") == "out of order\n"
    assert "beam 1: 4 lines of small at once, 2 one by one" in out
    [row] = re.findall(r"^\| torch \|.*$", out, re.MULTILINE)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert len(cells) == len(BENCH["HEADER"])
    assert cells[4] == "1.00"
    assert cells[-2:] == ["100.00", "100.0 %"]


def test_a_system_that_mtformer_cannot_export_to_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = BENCH["Bench"](tmp_path, {}, 60.0)
    bench.add(BENCH["System"]("future", Path(sys.executable), "translate_future.py", needs="no_such_package"), BUNDLE)
    assert "future needs no_such_package" in capsys.readouterr().err
    assert (bench.models, bench.n_failed) == ({}, 0)


@pytest.mark.slow
def test_the_vocabulary_map_is_learned_from_the_training_text_beside_the_test_set(
    tmp_path: Path, in_this_process: Callable[..., Any]
) -> None:
    for language in ("en", "de"):
        (tmp_path / f"train.{language}").write_text("".join(f"{text}\n" for pair in PAIRS for text in pair))
    benchmark = command(tmp_path, "--systems", "ctranslate2-int8-map", "--markdown")
    status, out, err = in_this_process(*benchmark)
    assert status == 0, err
    assert re.search(r"^\| ctranslate2-int8-map \|", out, re.MULTILINE)
    assert len(list((tmp_path / "work").glob("translate-*/ctranslate2-int8-map/vmap.txt"))) == 1
    (tmp_path / "train.de").unlink()
    status, _, err = in_this_process(*benchmark)
    assert (status, "its conversion failed with status 2" in err) == (1, True), err


def test_text_whose_sides_differ_is_refused(tmp_path: Path) -> None:
    (tmp_path / "small.en").write_text("one\ntwo\n")
    (tmp_path / "small.de").write_text("eins\n")
    with pytest.raises(UserError, match="2 sources and 1 references"):
        BENCH["Text"].read(tmp_path, "small", ("en", "de"), 10)


@pytest.mark.slow
def test_a_limit_of_instructions_holds_for_all_that_is_started(tmp_path: Path) -> None:
    script = "import sys, os; sys.path.insert(0, sys.argv[1]); import instructions; instructions.limit('avx2')"
    show = f"{script}; print(os.environ['ONEDNN_MAX_CPU_ISA'], os.environ['CT2_FORCE_CPU_ISA'])"
    (tmp_path / "bench.py").write_text(show, encoding="utf-8")
    done = subprocess.run([sys.executable, tmp_path / "bench.py", ROOT / "scripts"], capture_output=True, text=True)
    has_avx2 = torch.cpu.get_capabilities().get("avx2", False)
    expected = (0, "AVX2 AVX2\n") if has_avx2 else (1, "")
    assert (done.returncode, done.stdout) == expected
