"""scripts/reproduce: every recipe can be run, and docs/results.md shows what was recorded."""

import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Project

from mtformer.bundle.format import load_bundle
from mtformer.config import load_config
from mtformer.support.errors import UserError

ROOT = Path(__file__).parent.parent
REPRODUCE: dict[str, Any] = runpy.run_path(str(ROOT / "scripts/reproduce.py"))
RESULT = REPRODUCE["Result"](
    recipe="multi30k_en_de",
    seed=1,
    scores={"test": {"BLEU tok:13a": 40.0, "chrF2 nc:6": 60.0}, "protocol": {"BLEU tok:none": 41.0}},
    minutes=30.0,
    processor="a processor",
    threads=1,
    precision="bf16",
    parameters=2_000_000,
    n_bytes=8_000_000,
    sha256="abc",
    version="0.1.0",
)


@pytest.mark.parametrize("name", REPRODUCE["RECIPES"])
def test_the_trainings_of_a_recipe_have_valid_configs(name: str) -> None:
    trainings = [
        arguments
        for program, verb, *arguments in map(shlex.split, REPRODUCE["RECIPES"][name].commands(1, Path("run")))
        if (program, verb) == ("mtformer", "train")
    ]
    assert trainings
    for config, *options in trainings:
        assert set(options[::2]) == {"--set"}
        assert problems(ROOT / config, options[1::2]) == ""


def test_an_unknown_recipe_is_refused_before_anything_is_installed() -> None:
    command = ["bash", str(ROOT / "scripts/reproduce"), "nosuch"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHON": "false"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"usage: scripts/reproduce NAME, which is one of {' '.join(REPRODUCE['RECIPES'])}\n"


def problems(config: Path, settings: list[str]) -> str:
    """What is wrong with a config, besides text that is not here."""
    try:
        load_config(config, settings)
    except UserError as error:
        return re.sub(r".*there is no file .*|the config has \d+ problems:", "", str(error)).strip()
    return ""


def test_the_page_is_that_of_the_recorded_results() -> None:
    assert REPRODUCE["page"](REPRODUCE["read_results"]()) == (ROOT / "docs/results.md").read_text("utf-8")


def test_several_seeds_have_a_mean_and_a_standard_deviation() -> None:
    other = replace(RESULT, seed=2, minutes=40.0, scores={"test": {"BLEU tok:13a": 41.0, "chrF2 nc:6": 60.0}})
    first, second, *_ = REPRODUCE["summary"]([RESULT, other])
    size = ["2", "35.0", "2,000,000", "8.0 MB"]
    assert first == ["multi30k_en_de", "test", "40.5 ± 0.7", "60.0 ± 0.0", *size]  # 1 / √2
    assert second == ["multi30k_en_de", "protocol", "41.0", "", *size]


def test_a_result_stands_beside_the_recorded_ones() -> None:
    recorded = [replace(RESULT, seed=2, minutes=20.0), replace(RESULT, sha256="0123456789abcdef", minutes=20.0)]
    shown = REPRODUCE["comparison"](RESULT, recorded).splitlines()
    assert shown[0].split() == ["multi30k_en_de", "seed", "1", "recorded", "(2)"]
    assert [line.split() for line in shown[1:]] == [
        ["test", "BLEU", "40.0", "40.0", "±", "0.0"],
        ["test", "chrF2", "60.0", "60.0", "±", "0.0"],
        ["protocol", "BLEU", "41.0", "41.0", "±", "0.0"],
        ["minutes", "30.0", "20.0"],
        ["digest", "abc", "0123456789ab"],
    ]


def test_a_training_that_is_interrupted_saves_its_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "training.py").write_text(
        "import pathlib, signal, sys, time\n"
        "def save(*_):\n"
        "    time.sleep(1)\n"
        "    pathlib.Path('saved').touch()\n"
        "    sys.exit(130)\n"
        "signal.signal(signal.SIGINT, save)\n"
        "pathlib.Path('started').touch()\n"
        "time.sleep(60)\n"
    )
    script = f"import runpy; runpy.run_path({str(ROOT / 'scripts/reproduce.py')!r})['mtformer']('training')"
    process = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, start_new_session=True)
    while not (tmp_path / "started").exists():
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
    assert process.wait() == 130
    assert (tmp_path / "saved").exists()


def test_results_that_other_processes_record_meanwhile_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def trained(*_: object) -> Any:
        REPRODUCE["record"](replace(RESULT, seed=2, minutes=20.0))
        return RESULT

    functions = REPRODUCE["main"].__globals__
    monkeypatch.setitem(functions, "RECORD", tmp_path / "results.jsonl")
    monkeypatch.setitem(functions, "reproduce", trained)
    monkeypatch.setattr("sys.argv", ["reproduce.py", "multi30k_en_de", "--record"])
    REPRODUCE["main"]()
    assert [one.seed for one in REPRODUCE["read_results"]()] == [1, 2]
    assert capsys.readouterr().out.splitlines()[-2].split() == ["minutes", "30.0", "20.0"]


def test_a_recipe_is_trained_scored_and_recorded(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def in_this_process(command: str) -> str:
        done = project.mtformer(*shlex.split(command)[1:])
        assert done.status == 0, done.stderr
        return done.stdout

    monkeypatch.chdir(project.folder)
    monkeypatch.setitem(REPRODUCE["reproduce"].__globals__, "mtformer", in_this_process)
    command = REPRODUCE["training"]("x").replace("configs/x.yaml", str(project.config))
    result = REPRODUCE["reproduce"]("multi30k_en_de", REPRODUCE["Recipe"]("", (command,)), seed=3)
    bundle = project.folder / "runs/reproduce/multi30k_en_de.3/model/model.safetensors"
    assert result.n_bytes == bundle.stat().st_size
    assert result.sha256 == load_bundle(bundle).digest
    assert "seed: 3\n" in (bundle.parent / "config.yaml").read_text("utf-8")
    [(test_set, scores)] = result.scores.items()
    assert test_set == "test"
    assert [name.split()[0] for name in scores] == ["BLEU", "chrF2", "chrF2++", "TER"]

    monkeypatch.setitem(REPRODUCE["record"].__globals__, "RECORD", tmp_path / "results.jsonl")
    for one in (replace(result, minutes=1.0), RESULT, result):
        REPRODUCE["record"](one)
    assert REPRODUCE["read_results"]() == [RESULT, result]


def test_the_time_to_a_bleu_is_measured_beside_the_run_of_the_config(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_this_process(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        done = project.mtformer(*command[3:])
        return subprocess.CompletedProcess(command, done.status, done.stdout)

    monkeypatch.chdir(project.folder)
    monkeypatch.setattr("subprocess.run", in_this_process)
    (project.folder / "runs/config").mkdir(parents=True)
    (project.folder / "runs/config/model.safetensors").write_text("the user's")
    monkeypatch.syspath_prepend(ROOT / "scripts")
    script = runpy.run_path(str(ROOT / "scripts/time_to_bleu.py"))
    run = script["train"]([str(project.config), "--set", "training.max_steps=2"])
    assert run == Path("runs/time_to_bleu/config")
    assert script["report"](run).splitlines()[-1].startswith("best: ")
    assert (project.folder / "runs/config/model.safetensors").read_text() == "the user's"


def test_text_is_generated_once_in_a_new_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran, pairs = [], tmp_path / "new" / "pairs"

    def fake(command: str) -> str:
        ran.append(command)
        if "--output" in command:
            pairs.touch()
        return "run/model.safetensors\n"

    made = REPRODUCE["made"]
    monkeypatch.setitem(made.__globals__, "mtformer", fake)
    commands = ["train teacher", f"distill --output {pairs}", "train student"]
    assert made(commands) == made(commands) == Path("run/model.safetensors")
    assert ran == [commands[0], f"{commands[1]} --resume", commands[2], commands[0], commands[2]]
