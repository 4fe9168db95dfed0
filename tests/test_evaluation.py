"""What ``eval`` scores, and what it never touches."""

import json
import math
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import sacrebleu
from conftest import Project
from safetensors import safe_open

from mtformer.bundle.format import load_bundle, save_bundle
from mtformer.engines.loading import load_model
from mtformer.evaluate.evaluation import evaluate_loaded
from mtformer.evaluate.metrics import all_scores, sacrebleu_commands, sentence_scores
from mtformer.evaluate.results import Evaluation
from mtformer.evaluate.testsets import read_eval_sets
from mtformer.support.errors import UserError
from mtformer.text.pairs import Example, SentencePair, fingerprint
from mtformer.translate.translator import Translator


@pytest.fixture
def bundle(copied: Project) -> Path:
    """The bundle in the folder of its run."""
    return copied.config.parent / "model.safetensors"


@pytest.fixture
def lone(bundle: Path, tmp_path: Path) -> Path:
    """The same bundle away from its run; the files that its run's config names are all there."""
    return Path(shutil.copy(bundle, tmp_path))


def evaluated(*paths: Path, beam_size: int | None = None, **options: Any) -> Evaluation:
    """The result for the models at ``paths``, as an ensemble if there are several."""
    return evaluate_loaded(paths, load_model(paths, None, "cpu", beam_size=beam_size), **options)


def test_the_result_is_returned_and_nothing_is_printed(
    trained: Project, bundle: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    result = evaluated(bundle, src=trained.folder / "test.en", ref=[trained.folder / "test.de"], beam_size=1)
    assert [score.name for score in result.total.scores] == ["BLEU", "chrF2", "chrF2++", "TER"]
    assert (len(result.hypotheses), result.model.loaded.options.beam_size, result.model.paths) == (20, 1, (bundle,))
    assert capfd.readouterr().out == ""


def test_an_ensemble_is_scored_on_the_test_set_of_its_first_model(
    trained: Project, bundle: Path, tmp_path: Path
) -> None:
    twin = load_bundle(bundle)
    save_bundle(tmp_path / "twin.safetensors", replace(twin, header=twin.header.model_copy(update={"scores": {}})))
    one = evaluated(bundle)
    two = evaluated(bundle, tmp_path / "twin.safetensors")
    assert two.to_dict()["model"] == [str(bundle), str(tmp_path / "twin.safetensors")]
    assert two.hypotheses == one.hypotheses  # the mean of two equal distributions is that distribution
    assert two.model.loaded.digest != one.model.loaded.digest
    shown = trained.mtformer("eval", "--json", "--model", bundle, "--model", tmp_path / "twin.safetensors")
    assert json.loads(shown.stdout) == two.to_dict() | {"test_set": "test.en"}, shown.stderr  # from its folder


def test_the_test_set_is_that_of_the_folder_of_the_run(trained: Project, bundle: Path) -> None:
    [found] = read_eval_sets(bundle, load_bundle(bundle).header)
    assert found.sources == (trained.folder / "test.en").read_text().splitlines()
    assert found.references == [(trained.folder / "test.de").read_text().splitlines()]
    assert found.files == [trained.folder / "test.en", trained.folder / "test.de"]


@pytest.mark.parametrize("options", [[], ["--stress"], ["--protocol", "multi30k-2016-cased-13a"]], ids=str)
def test_a_bundle_away_from_its_run_names_no_test_set(
    options: list[str], trained: Project, lone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtformer.engines.loading.load_model", Mock(side_effect=AssertionError("this takes seconds")))
    result = trained.mtformer("eval", "--model", lone, *options)
    assert (result.status, result.stdout) == (2, "")
    assert f"{lone} is not in the folder of a run" in result.stderr
    assert "give --data, or --src and --ref" in result.stderr


def test_a_config_beside_it_that_is_none_is_refused_but_not_needed(trained: Project, lone: Path) -> None:
    (lone.parent / "config.yaml").write_text("a: [")
    header = load_bundle(lone).header
    with pytest.raises(UserError, match=r"config\.yaml is not the config of a run .* again; or give --data, or [^;]*$"):
        read_eval_sets(lone, header)
    folder = trained.folder
    [found] = read_eval_sets(lone, header, src=folder / "test.en", ref=[folder / "test.de"])
    assert len(found.sources) == 20


@pytest.mark.parametrize(
    ("options", "output"),
    [
        (["--src", "src.en", "--ref", "ref.de"], "ref.de"),
        (["--src", "src.en", "--ref", "ref.de"], "src.en"),
        (["--data", "tsv:both.tsv"], "both.tsv"),
        (["--data", "tsv:both.tsv"], "model.safetensors"),
        ([], "ref.de"),
        ([], "config.yaml"),
        (["--data", "tsv:both.tsv"], "config.yaml"),
    ],
)
def test_no_input_is_overwritten(
    trained: Project, lone: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], output: str
) -> None:
    folder = lone.parent
    project = Project(folder, folder / "config.yaml")
    (folder / "src.en").write_text("the red house.\n")
    (folder / "ref.de").write_text("das rote Haus.\n")
    (folder / "both.tsv").write_text("the red house.\tdas rote Haus.\n")
    run = (trained.folder / "runs" / "config" / "config.yaml").read_text()
    for name, replacement in (("test.en", "src.en"), ("test.de", "ref.de")):
        run = run.replace(str(trained.folder / name), str(folder / replacement))
    (folder / "config.yaml").write_text(run)
    before = (folder / output).read_bytes()
    (folder / "link").symlink_to(folder / output)
    for option, name in (("--output", output), ("--output", "link"), ("--save", output)):
        result = project.mtformer("eval", "--model", lone, *options, option, name)
        assert result.status == 2, result.stderr
        assert f"{name} is both input and output" in result.stderr
    assert (folder / output).read_bytes() == before


def test_the_files_of_a_local_data_set_are_inputs(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = tmp_path / "data" / "test.jsonl"
    rows.parent.mkdir()
    rows.touch()
    monkeypatch.setattr("mtformer.data.sources.parallel.read_hub", lambda *_: iter([Example("a house", "ein Haus", 1)]))
    with pytest.raises(UserError, match="is both input and output"):
        evaluated(bundle, data=[f"hf:{rows.parent},split:test"], output=rows)


def test_json_says_what_was_scored_and_with_what(trained: Project, copied: Project, bundle: Path) -> None:
    result = copied.mtformer("eval", "--json", "--beam-size", "2", "--length-penalty", "1")
    shown = json.loads(result.stdout)
    assert (shown["beam_size"], shown["length_penalty"], shown["sentences"]) == (2, 1.0, 20)
    assert Path(shown["model"]).name == bundle.name
    with safe_open(bundle, "pt") as file:
        assert shown["digest"] == file.metadata()["digest"]
    assert shown["step"] == load_bundle(bundle).header.scores["step"]
    pairs = zip(*((trained.folder / f"test.{side}").read_text().splitlines() for side in ("en", "de")), strict=True)
    assert shown["fingerprint"] == fingerprint(SentencePair(*pair) for pair in pairs).digest
    assert shown["versions"]["sacrebleu"] == sacrebleu.__version__
    assert "test_sets" not in shown  # there is one


def test_the_loss_is_that_of_validation(trained: Project, bundle: Path) -> None:
    valid = trained.folder / "valid.en", trained.folder / "valid.de"
    [result] = evaluated(bundle, src=valid[0], ref=[valid[1]]).results
    assert result.likelihood.loss == pytest.approx(load_bundle(bundle).header.scores["loss"], rel=1e-4)
    assert result.likelihood.perplexity == pytest.approx(math.exp(result.likelihood.loss or 0))


def test_the_loss_excludes_what_the_model_cannot_score(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("the red house.\n\nthe red house.\n" + "the red house " * 200 + "\n")
    (tmp_path / "a.de").write_text("das rote Haus.\nHaus\n\ndas rote Haus.\n")
    [result] = evaluated(bundle, src=tmp_path / "a.en", ref=[tmp_path / "a.de"]).results
    assert (result.n_sentences, result.likelihood.n_excluded) == (4, 3)


def test_sacrebleu_gives_the_scores_of_the_saved_hypotheses(copied: Project) -> None:
    result = copied.mtformer("eval", "--json", "--beam-size", "1", "--output", "hypotheses.de")
    shown = json.loads(result.stdout)
    assert [command.partition(" -m ")[2] for command in shown["sacrebleu"]] == [
        "bleu chrf ter --tokenize 13a -w 2",
        "chrf --chrf-word-order 2 -w 2",
    ]
    ours = {score["name"]: (score["score"], score["signature"]) for score in shown["scores"]}
    assert rescored(copied, shown["sacrebleu"]) == ours


def rescored(project: Project, commands: list[str]) -> dict[str, tuple[float, str]]:
    """Run commands of sacreBLEU; return their scores with their signatures."""
    scores = {}
    for command in commands:
        name, *arguments = shlex.split(command)
        assert name == "sacrebleu"
        run = [sys.executable, "-m", name, *arguments]
        shown = json.loads(subprocess.run(run, cwd=project.folder, capture_output=True, check=True).stdout)
        for score in shown if isinstance(shown, list) else [shown]:
            scores[score["name"]] = score["score"], score["signature"]
    return scores


def test_sacrebleu_gives_the_same_scores_for_chinese_and_two_references(tmp_path: Path) -> None:
    texts = {
        "hyp": ["我们去年在维也纳买了一架旧钢琴。", "我吃了薯片。"],
        "ref.a": ["我们去年在维也纳买了一架钢琴。", "我吃了一些薯片。"],
        "ref.b": ["去年我们在维也纳买了一架旧的钢琴。", "我把薯片吃了。"],
    }
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    commands = sacrebleu_commands(Path("hyp"), ["ref.a", "ref.b"], "zh", "auto")
    scores = all_scores(texts["hyp"], [texts["ref.a"], texts["ref.b"]], "zh")
    expected = {score.name: (round(score.value, 2), score.signature) for score in scores}
    assert rescored(Project(tmp_path, tmp_path), commands) == expected
    assert expected["BLEU"][0] > 0


def test_the_text_shows_the_scores_first_and_the_commands_last(copied: Project) -> None:
    lines = copied.mtformer("eval", "--output", "again.de").stdout.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["BLEU", "chrF2", "chrF2++", "TER"]
    assert lines[4].startswith("20 sentences: ")
    assert [line.startswith("sacrebleu ") for line in lines[-3:]] == [False, True, True]


def test_several_test_sets_are_scored_each_and_together(copied: Project) -> None:
    parts = ["--data", "src:test.en,tgt:test.de", "--data", "src:valid.en,tgt:valid.de"]
    shown = json.loads(copied.mtformer("eval", "--json", *parts, "--output", "both.de").stdout)
    assert [one["sentences"] for one in shown["test_sets"]] == [20, 20]
    assert shown["sentences"] == 40
    single = json.loads(copied.mtformer("eval", "--json", *parts[2:]).stdout)
    assert shown["test_sets"][1] == {key: single[key] for key in shown["test_sets"][1]}
    references = [
        line for name in ("test", "valid") for line in (copied.folder / f"{name}.de").read_text().splitlines()
    ]
    together = all_scores((copied.folder / "both.de").read_text().splitlines(), references, "de")
    assert shown["scores"] == [score.to_dict() for score in together]
    assert "sacrebleu" not in shown  # no single file has the references
    text = copied.mtformer("eval", *parts).stdout
    titles = [Path(line).name for line in text.splitlines() if line and " " not in line]
    assert titles == ["test.en", "valid.en", "together"]


def test_sentences_are_saved_with_their_scores(copied: Project) -> None:
    (copied.folder / "other.de").write_text("nichts\n" * 20)
    options = ["--src", "test.en", "--ref", "test.de", "--ref", "other.de"]
    result = copied.mtformer("eval", *options, "--save", "sentences.jsonl", "--output", "plain.de")
    assert result.status == 0, result.stderr
    rows = [json.loads(line) for line in (copied.folder / "sentences.jsonl").read_text().splitlines()]
    assert [row["hyp"] for row in rows] == (copied.folder / "plain.de").read_text().splitlines()
    assert [row["src"] for row in rows] == (copied.folder / "test.en").read_text().splitlines()
    assert [row["line"] for row in rows] == list(range(1, 21))
    [[best]] = Translator.load(copied.config.parent).translate([rows[0]["src"]])
    first = rows[0]
    assert first["refs"] == [(copied.folder / "test.de").read_text().splitlines()[0], "nichts"]
    assert first["log_prob"] == pytest.approx(best.log_prob, abs=1e-3)
    assert first["n_tokens"] == len(best.tokens)
    assert first["scores"] == sentence_scores([first["hyp"]], [[ref] for ref in first["refs"]], "de")[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--src", "test.en"], "give both --src and --ref"),
        (["--ref", "test.de"], "give both --src and --ref"),
        (["--src", "-", "--ref", "-"], "standard input cannot be read twice: name files for all inputs but one"),
        (["--src", "test.en", "--ref", "short.de"], "test.en has 20 lines, short.de has 1"),
        (["--src", "test.en", "--ref", "test.de", "--ref", "short.de"], "test.en has 20 lines, short.de has 1"),
        (["--src", "none.en", "--ref", "test.de"], "cannot read none.en"),
        (["--src", "empty", "--ref", "empty"], "the test set empty is empty"),
        (["--data", "tsv:a.tsv", "--testset", "wmt14"], "not several of them"),
        (["--output", "out", "--save", "out"], "name two files"),
        (["--save", "-"], "standard output is for the scores"),
        (["--output", "/dev/stdout"], "--output /dev/stdout: standard output is for the scores"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(copied: Project, options: list[str], message: str) -> None:
    (copied.folder / "short.de").write_text("Haus\n")
    (copied.folder / "empty").touch()
    (copied.folder / "kept").write_text("kept")
    kept = [] if "--output" in options else ["--output", "kept"]
    result = copied.mtformer("eval", "--engine", "torch", *options, *kept)
    assert (result.status, result.stdout) == (2, "")
    assert message in result.stderr
    assert len(result.stderr.removeprefix("model: runs/config/model.safetensors\n").splitlines()) == 1
    assert (copied.folder / "kept").read_text() == "kept"


@pytest.mark.parametrize("files", [("test.en", "test.de"), ("test.de", "test.en")])
def test_a_source_and_a_reference_in_each_others_place_are_warned_of(trained: Project, files: tuple[str, str]) -> None:
    result = trained.mtformer("eval", "--src", files[0], "--ref", files[1], "--beam-size", "1")
    warning = "test.de: most of the first 20 texts that should be in en and de are in another language;"
    assert (result.status, warning in result.stderr) == (0, files[0] == "test.de")
