"""The record of a run's evaluations."""

import json
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from conftest import Project


def evaluate(project: Project, *options: str) -> dict[str, Any]:
    result = project.mtformer("eval", "--json", *options)
    assert result.status == 0, result.stderr
    return json.loads(result.stdout)


def rows(project: Project) -> list[dict[str, Any]]:
    lines = (project.config.parent / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def change(project: Project, place: int, **values: Any) -> None:
    """Change a row of the record."""
    changed = rows(project)
    changed[place] |= values
    text = "".join(f"{json.dumps(row)}\n" for row in changed)
    (project.config.parent / "evaluations.jsonl").write_text(text, encoding="utf-8")


def test_an_evaluation_is_recorded_once(copied: Project) -> None:
    first = evaluate(copied, "--output", "hyp.de")
    assert "best_earlier" not in first
    assert evaluate(copied) == {key: value for key, value in first.items() if key != "sacrebleu"}
    [row] = rows(copied)
    assert row["hypotheses"] == (copied.folder / "hyp.de").read_text().splitlines()
    assert {key: row[key] for key in ("step", "digest", "fingerprint")} == {
        key: first[key] for key in ("step", "digest", "fingerprint")
    }
    assert row["scores"] == {score["name"]: score["score"] for score in first["scores"]}


def test_a_worse_evaluation_is_worse_than_the_best_earlier_one(copied: Project) -> None:
    references = (copied.folder / "test.de").read_text().splitlines()
    evaluate(copied)
    evaluate(copied, "--beam-size", "1")
    # Make both evaluations those of other models: a perfect one and one that never says a word right.
    change(copied, 0, digest="a", step=10, hypotheses=references, scores={"BLEU": 100.0})
    change(copied, 1, digest="b", step=20, hypotheses=["falsch"] * 20, scores={"BLEU": 0.0})
    (copied.folder / "test.en").write_text("a small dog.\n" * 20)
    [row, _] = rows(copied)
    fingerprint = evaluate(copied, "--src", "test.en", "--ref", "test.de")["fingerprint"]
    assert fingerprint != row["fingerprint"]  # of another text, which has no earlier evaluation
    for place in (0, 1):
        change(copied, place, fingerprint=fingerprint)
    result = copied.mtformer("eval", "--src", "test.en", "--ref", "test.de")
    text = " ".join(result.stdout.split())
    assert "this evaluation is worse than the best earlier one: -" in text
    assert text.endswith("(the earlier one: step 10, beam size 4, 100.00 BLEU)")


def test_equal_translations_are_called_so(copied: Project) -> None:
    evaluate(copied)
    change(copied, 0, digest="another")
    earlier = evaluate(copied)["best_earlier"]
    assert earlier["verdict"] == "this evaluation has the same translations as the best earlier one"
    assert len(rows(copied)) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"scores": {"chrF2": 1.0}},
        {"hypotheses": ["x"]},
        {"hypotheses": 5},
        {"options": {"beam_size": "wide"}},
        {"step": "last"},
    ],
)
def test_records_of_another_shape_are_skipped(other: dict[str, Any], copied: Project) -> None:
    evaluate(copied)
    change(copied, 0, digest="another", **other)
    assert "best_earlier" not in evaluate(copied)
    assert len(rows(copied)) == 2


def test_a_comparison_that_fails_does_not_lose_the_evaluation(copied: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate(copied)
    change(copied, 0, digest="another", hypotheses=["falsch"] * 20)
    monkeypatch.setattr("mtformer.evaluate.results.compare_systems", Mock(side_effect=MemoryError))
    result = copied.mtformer("eval", "--json")
    assert result.status == 0
    assert "this evaluation is not compared with the best earlier one: out of memory" in result.stderr
    assert "best_earlier" not in json.loads(result.stdout)
    assert len(rows(copied)) == 2


def test_a_damaged_record_and_a_folder_that_cannot_be_written_do_not_stop_eval(
    copied: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(copied)
    record = copied.config.parent / "evaluations.jsonl"
    record.write_text('{"step": 1}\n{"step": 5, "dig')
    assert "best_earlier" not in evaluate(copied)  # and its own record is readable though it follows half a line
    assert evaluate(copied, "--beam-size", "1")["best_earlier"]["beam_size"] == 4
    record.unlink()
    record.mkdir()
    result = copied.mtformer("eval")
    assert result.status == 0
    assert "this evaluation is not recorded: cannot read" in result.stderr


def test_a_bundle_outside_of_a_run_leaves_no_record(copied: Project, tmp_path: Path) -> None:
    lone = Path(shutil.copy(copied.config.parent / "model.safetensors", tmp_path))
    evaluate(copied, "--model", str(lone), "--src", "test.en", "--ref", "test.de")
    assert not (tmp_path / "evaluations.jsonl").exists()


def test_the_record_is_not_overwritten(copied: Project) -> None:
    evaluate(copied)
    record = copied.config.parent / "evaluations.jsonl"
    before = record.read_bytes()
    assert copied.mtformer("eval", "--output", record).status == 2
    assert record.read_bytes() == before


def test_the_model_alone_is_another_evaluation(copied: Project) -> None:
    (copied.folder / "test.en").write_text("THE RED HOUSE SEES A SMALL DOG.\n" * 20)
    texts = ("--src", "test.en", "--ref", "test.de")
    prepared, alone, again = (evaluate(copied, *texts, *raw) for raw in ([], ["--raw"], ["--raw"]))
    assert [found["raw"] for found in (prepared, alone, again)] == [False, True, True]
    assert [row["raw"] for row in rows(copied)] == [False, True]
    assert rows(copied)[0]["hypotheses"] != rows(copied)[1]["hypotheses"]
    assert alone["best_earlier"]["raw"] is False
