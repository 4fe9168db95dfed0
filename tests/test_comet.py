"""COMET through its command, for which a program with the same options stands in: its models cannot be downloaded."""

import json
import os
import sys
from pathlib import Path

import pytest
from conftest import Project

from mtformer.evaluate.metrics import comet_scores
from mtformer.support.errors import MtformerError, UserError

# As comet-score of unbabel-comet 2.2.7: options, files, and the shape of the JSON.
STAND_IN = """#!{python}
import argparse, json, sys
parser = argparse.ArgumentParser()
for options in (["-s", "--sources"], ["-t", "--translations"], ["-r", "--references"], ["--model"], ["--to_json"]):
    parser.add_argument(*options)
parser.add_argument("--gpus", type=int, default=1)
parser.add_argument("--quiet", action="store_true")
parser.add_argument("--only_system", action="store_true")
given = parser.parse_args()
if given.model == "none":
    sys.exit("Traceback\\nKeyError: Model 'none' not supported by COMET.")
paths = given.sources, given.translations, given.references
texts = [[line.strip() for line in open(path, encoding="utf-8")] for path in paths]
rows = [dict(src=s, mt=t, ref=r, COMET=1.0 if t == r else 0.25) for s, t, r in zip(*texts)]
if given.model == "broken":
    rows = rows[1:]
json.dump({{given.translations: rows}}, open(given.to_json, "w"), indent=4)
print(f"{{given.translations}}\\tscore: {{sum(row['COMET'] for row in rows) / len(rows):.4f}}")
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "comet-score"
    program.parent.mkdir()
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("installed")
def test_each_sentence_has_a_score() -> None:
    sources, hypotheses = ["a", "b", "c\rd"], ["x", "", "z\u2028y"]
    assert comet_scores(sources, hypotheses, ["x", "y", "z y"], model="m", device="cpu") == [1.0, 0.25, 1.0]


@pytest.mark.usefixtures("installed")
def test_eval_adds_comet_to_the_scores(copied: Project) -> None:
    options = ["--comet", "Unbabel/wmt22-comet-da", "--beam-size", "1", "--save", "comet.jsonl", "--json"]
    shown = json.loads(copied.mtformer("eval", *options).stdout)
    rows = [json.loads(line) for line in (copied.folder / "comet.jsonl").read_text().splitlines()]
    exact = sum(row["hyp"] == row["refs"][0] for row in rows)
    score = shown["scores"][-1]
    assert score["name"] == "COMET"
    assert score["score"] == pytest.approx(100 * (exact + 0.25 * (20 - exact)) / 20)
    assert score["signature"] == "model:Unbabel/wmt22-comet-da|scale:100"
    assert {row["scores"]["COMET"] for row in rows} <= {100.0, 25.0}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("model", "message"), [("none", "KeyError: Model 'none' not supported"), ("broken", "gave 1 scores for 2")]
)
def test_its_failures_are_errors(model: str, message: str) -> None:
    with pytest.raises(MtformerError, match=message):
        comet_scores(["a", "b"], ["x", "y"], ["x", "y"], model=model, device="cpu")


def test_without_it_the_error_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a model is loaded, so that a damaged one is not reported."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "broken.safetensors").touch()
    command = ("eval", "--comet", "Unbabel/wmt22-comet-da", "--model", "broken.safetensors")
    result = Project(tmp_path, tmp_path).mtformer(*command)
    assert (result.status, result.stdout) == (2, "")
    assert "comet-score, which is not installed: pipx install unbabel-comet" in result.stderr
    with pytest.raises(UserError):
        comet_scores(["a"], ["x"], ["x"], model="m", device="cpu")
