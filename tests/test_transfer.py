"""Fine-tuning watches what the model forgets, and refuses a vocabulary that does not fit."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import Project, sentence_pairs, write_pairs
from test_finetune import bundle_of, finetune, new_text

from mtformer.model.weights import weights

GREEK = str.maketrans("abcdefghijklmnopqrstuvwxyz", "αβγδεζηθικλμνξοπρστυφχψωϊϋ")


def watched(folder: Path) -> list[str]:
    """Write new text and general text, and return the settings to train on both and to validate with both."""
    new_text(folder)
    write_pairs(folder, "general", sentence_pairs(100, seed=5))
    sources = "[{src: new.en, tgt: new.de}, {src: general.en, tgt: general.de, general: true}]"
    return [f"data.train={sources}", f"data.valid={sources}"]


def validations(project: Project) -> list[dict[str, Any]]:
    lines = (project.folder / "runs/config/metrics.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if "valid_loss" in line]


def test_the_scores_on_general_text_are_shown_from_the_start_and_kept(trained: Project, tmp_path: Path) -> None:
    project, result = finetune(
        trained, tmp_path, *watched(tmp_path), max_steps=8, validate_every=4, early_stopping_metric="loss"
    )
    assert result.status == 0, result.stderr
    forecast = project.mtformer("train", "--dry-run", "--fresh", project.config)
    assert "for 3 validations" in forecast.stdout
    before, after = bundle_of(trained), bundle_of(project)
    lines = validations(project)
    assert [line["step"] for line in lines] == [0, 4, 8]
    assert lines[0]["valid_general_bleu"] == pytest.approx(before.header.scores["bleu"], abs=0.5)
    assert "general BLEU" in result.stderr
    assert after.header.scores["step"] > 0
    best = next(line for line in lines if line["step"] == after.header.scores["step"])
    assert after.header.scores["general_bleu"] == pytest.approx(best["valid_general_bleu"])
    assert re.search("64 pairs an epoch from .*general.en, which has 100", result.stderr)  # as many as new ones


def test_without_a_better_model_the_bundle_has_the_weights_of_the_start(trained: Project, tmp_path: Path) -> None:
    project, result = finetune(trained, tmp_path, learning_rate=1.0, warmup_steps=0)
    assert result.status == 0, result.stderr
    before, after = weights(bundle_of(trained).model), weights(bundle_of(project).model)
    assert all(tensor.equal(after[name]) for name, tensor in before.items())
    assert "no validation was better than the first" in result.stderr


def test_a_vocabulary_that_does_not_fit_is_refused_with_both_numbers(trained: Project, tmp_path: Path) -> None:
    pairs = [(src, tgt.lower().translate(GREEK)) for src, tgt in sentence_pairs(300)]
    write_pairs(tmp_path, "greek", pairs)
    sets = ["data.train=[{src: greek.en, tgt: greek.de}]"]
    _, refused = finetune(trained, tmp_path, *sets)
    assert refused.status == 2
    assert "does not fit: it needs" in refused.stderr
    _, accepted = finetune(trained, tmp_path, *sets, "tokenizer={vocab_size: 320}", max_steps=1)
    assert accepted.status == 0
    assert "does not fit: it needs" in accepted.stderr


@pytest.mark.parametrize(("language", "warned"), [("nl", True), ("de-AT", False)])
def test_another_target_language_is_reported(trained: Project, tmp_path: Path, language: str, warned: bool) -> None:
    _, result = finetune(trained, tmp_path, f"data.tgt_lang={language}", max_steps=1, learning_rate=None)
    assert result.status == 0, result.stderr
    assert ("translates en-de, not en-nl, which it has to learn" in result.stderr) == warned
    assert ("less than from scratch" in result.stderr) != warned
