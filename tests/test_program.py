"""Scripts end with a sentence on bad input (scripts/program.py), and the functions that they replace exist."""

import importlib
import inspect
import re
import runpy
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from bench_data import STAGES
from program import run_program

from mtformer.support.errors import MtformerError, UserError

SCRIPTS = Path(__file__).parent.parent / "scripts"


def failing(error: BaseException) -> Callable[[], None]:
    def main() -> None:
        raise error

    return main


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (UserError("there is no model at x"), 2, "report: there is no model at x\n"),
        (FileNotFoundError(2, "No such file or directory", "x.en"), 2, "report: [Errno 2] No such file or directory: "),
        (MtformerError("the loss is not finite"), 1, "report: the loss is not finite\n"),
        (OSError(28, "No space left on device"), 1, "report: [Errno 28] No space left on device\n"),
        (subprocess.CalledProcessError(2, ["mtformer"]), 2, ""),
        (subprocess.CalledProcessError(-9, ["mtformer"]), 1, ""),
        (KeyboardInterrupt(), 130, ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_an_error_gives_a_sentence_and_a_status(
    error: BaseException,
    status: int,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["scripts/report.py"])
    with pytest.raises(SystemExit) as ended:
        run_program(failing(error))
    err = capsys.readouterr().err
    assert ended.value.code == status
    assert err.startswith(sentence) and bool(err) == bool(sentence)


def test_other_errors_are_not_hidden() -> None:
    with pytest.raises(KeyError):
        run_program(failing(KeyError("x")))


@pytest.mark.parametrize(
    "command",
    [
        "alignment_error_rate RUN",
        "augmentation_report RUN RUN",
        "bench_adapters RUN text.en",
        "bench_data missing.en missing.de",
        "bench_finetune missing.yaml missing.yaml --model RUN --folder work",
        "bench_page RUN",
        "bench_shapes --data missing",
        "browser_parity RUN",
        "browser_tokens RUN",
        "confidence RUN --src text.en --ref text.de",
        "contrastive_report RUN",
        "faithful_report RUN",
        "fuzz_bundle missing.safetensors",
        "glossary_report RUN --terms terms.tsv",
        "markup_placement RUN",
        "measure_defaults work",
        "measure_defaults work --multi30k missing",
        "nasty_report RUN",
        "noise_report --data src:missing.en,tgt:missing.de --pair en-de",
        "noise_report --data src:missing.en,tgt:missing.de --pair ende",
        "phrasebook_report RUN",
        "pronoun_attention RUN",
        "readme_pictures RUN RUN",
        "run_tour missing",
        "tour_pictures RUN recurrent.json",
    ],
)
def test_a_script_refuses_what_is_missing(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script, *arguments = command.split()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(SCRIPTS)
    monkeypatch.setattr(
        "sys.argv", [f"{script}.py", *(str(tmp_path / "missing") if a == "RUN" else a for a in arguments)]
    )
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPTS / f"{script}.py"), run_name="__main__")
    err = capsys.readouterr().err
    assert ended.value.code == 2
    assert "Traceback" not in err and any(line.startswith(script) for line in err.splitlines())


@pytest.mark.parametrize(("module", "function"), STAGES.values(), ids=list(STAGES))
def test_the_functions_that_bench_data_times_are_called_where_it_says(module: str, function: str) -> None:
    source = inspect.getsource(importlib.import_module(f"mtformer.training.{module}"))
    assert re.search(rf"\b(?<!def ){function}\(", source)
