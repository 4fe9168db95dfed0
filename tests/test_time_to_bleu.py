"""scripts/time_to_bleu.py --peers: toolkits train until they are good enough, and their minutes are compared."""

import json
import re
import runpy
import sys
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from conftest import Project

ROOT = Path(__file__).parent.parent
# A toolkit's interpreter: its training saves a checkpoint and goes on for long, its translations are the references.
FAKE = """#!{python}
import json, sys, time, zipfile
if sys.argv[1] == "-m":
    zipfile.ZipFile(f"model_step_200.pt", "w").close()
    time.sleep(600)
job, lines = json.load(open(sys.argv[2])), open({references!r}).read().splitlines()
found = dict(seconds=1, single_seconds=[], first_at=0, peak_mib=1, translations=lines)
json.dump(found, open(job["result"], "w"))
"""


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of the script, which imports its neighbours."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return runpy.run_path(str(ROOT / "scripts" / "race_to_bleu.py"))


def curves(script: dict[str, Any]) -> dict[str, Any]:
    scores = {"mtformer": [(2, 20.0), (4, 36.0), (8, 38.5)], "slow": [(10, 5.0), (20, 36.0)], "worse": [(18, 9.0)]}
    return {
        name: [script["Point"](100 * n, minutes, 2.0 * minutes, bleu) for n, (minutes, bleu) in enumerate(points, 1)]
        for name, points in scores.items()
    }


def test_the_table_has_the_minutes_to_each_mark(script: dict[str, Any]) -> None:
    rows = [re.split(r" *\| *", line)[1:-1] for line in script["table"](curves(script)).splitlines()]
    table = {row[0]: dict(zip(rows[0], row, strict=True)) for row in rows[2:]}
    keys = ("25", "35", "38", "wall, 35", "ratio", "best", "ended", "updates")
    assert [table["mtformer"][key] for key in keys] == ["4.0", "4.0", "8.0", "8.0", "1.00", "38.5", "8.0", "300"]
    assert [table["slow"][key] for key in keys] == ["20.0", "20.0", "–", "40.0", "5.00", "36.0", "20.0", "200"]
    assert [table["worse"][key] for key in keys] == ["–", "–", "–", "–", "> 4.50", "9.0", "18.0", "100"]


def test_the_picture_has_a_curve_for_each_system(script: dict[str, Any]) -> None:
    picture = ElementTree.fromstring(script["draw"](curves(script)))
    words = {element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert {"mtformer", "slow", "worse", "35", "38", "processor minutes of training"} <= words


def test_processor_time_is_that_of_the_whole_group(tmp_path: Path, script: dict[str, Any]) -> None:
    for pid, group, ticks in ((7, 7, 100), (8, 7, 20), (9, 9, 5_000)):
        (tmp_path / str(pid)).mkdir()
        fields = f"{pid} (a (b) c) S 1 {group} 0 0 0 0 0 0 0 0 {ticks} 2 3 4 20 0"
        (tmp_path / str(pid) / "stat").write_text(fields)
    assert script["processor_seconds"](7, tmp_path) == (100 + 20 + 2 * 9) / script["TICKS"]


def test_a_checkpoint_that_is_still_being_written_is_left_alone(tmp_path: Path, script: dict[str, Any]) -> None:
    assert script["newest_checkpoint"]("marian-tiny", tmp_path) is None
    (tmp_path / "model.iter1000.npz").write_bytes(b"PK\x03\x04")
    for step in (200, 900):
        zipfile.ZipFile(tmp_path / f"model.iter{step}.npz", "w").close()
    assert script["newest_checkpoint"]("marian-tiny", tmp_path) == (900, tmp_path / "model.iter900.npz")


def test_a_training_ends_at_the_last_mark_and_is_not_repeated(
    project: Project, tmp_path: Path, script: dict[str, Any]
) -> None:
    references = tmp_path / "references"
    python = tmp_path / "opennmt/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(FAKE.format(python=sys.executable, references=str(references)))
    python.chmod(0o755)
    script["RECIPES"]["opennmt-tiny"] = lambda every: {"save_checkpoint_steps": every}
    script["Race"]._prepare.__globals__["VOCAB_SIZE"] = 300
    race = script["Race"](tmp_path, project.config, [], 100, "native")
    references.write_text("".join(f"{line}\n" for line in race.references))
    race.run("opennmt-tiny", 4.5)
    [point] = race.curve("opennmt-tiny")
    assert (point.step, point.bleu) == (200, pytest.approx(100))
    python.write_text("no program")
    race.run("opennmt-tiny", 4.5)
    assert race.curve("opennmt-tiny") == [point]


@pytest.mark.slow
def test_ours_is_scored_at_its_checkpoints(project: Project, tmp_path: Path, script: dict[str, Any]) -> None:
    race = script["Race"](tmp_path, project.config, ["training.max_steps=2"], 2, "native")
    race.run("mtformer", 1.0)
    assert race.curve("mtformer")[-1].step == 2
    assert json.loads((tmp_path / "time_to_bleu/mtformer.json").read_text())["ended"]
