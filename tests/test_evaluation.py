"""What ``eval`` scores, and what it never touches."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import Project

from mtformer.bundle import load_bundle
from mtformer.errors import UserError
from mtformer.evaluate.evaluation import evaluate_model, read_eval_set
from mtformer.text.sources import SentencePair


@pytest.fixture
def bundle(trained: Project) -> Path:
    """The bundle in the folder of its run."""
    return trained.folder / "runs" / "config" / "model.safetensors"


@pytest.fixture
def lone(bundle: Path, tmp_path: Path) -> Path:
    """The same bundle away from its run; the files that its run's config names are all there."""
    return Path(shutil.copy(bundle, tmp_path))


def test_the_result_is_returned_and_nothing_is_printed(
    trained: Project, bundle: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    result = evaluate_model(
        bundle, src=trained.folder / "test.en", ref=trained.folder / "test.de", search={"beam_size": 1}
    )
    assert [score.name for score in result.scores] == ["BLEU", "chrF2", "TER"]
    assert (len(result.hypotheses), result.options.beam_size, result.model) == (20, 1, bundle)
    assert capfd.readouterr().out == ""


def test_the_test_set_is_that_of_the_folder_of_the_run(trained: Project, bundle: Path) -> None:
    found = read_eval_set(bundle, load_bundle(bundle).header)
    assert found.sources == (trained.folder / "test.en").read_text().splitlines()
    assert found.references == (trained.folder / "test.de").read_text().splitlines()
    assert found.files == [trained.folder / "test.en", trained.folder / "test.de"]


def test_a_bundle_away_from_its_run_names_no_test_set(trained: Project, lone: Path) -> None:
    result = trained.mtformer("eval", "--model", lone)
    assert (result.status, result.stdout) == (2, "")
    assert f"{lone} is not in the folder of a run" in result.stderr
    assert "give --data, or --src and --ref" in result.stderr


def test_a_config_beside_it_that_is_none_is_refused_but_not_needed(trained: Project, lone: Path) -> None:
    (lone.parent / "config.yaml").write_text("a: [")
    header = load_bundle(lone).header
    with pytest.raises(UserError, match=r"config\.yaml is not the config of a run .* give --data"):
        read_eval_set(lone, header)
    folder = trained.folder
    assert len(read_eval_set(lone, header, src=folder / "test.en", ref=folder / "test.de").sources) == 20


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
    for name in (output, "link"):
        result = project.mtformer("eval", "--model", lone, *options, "--output", name)
        assert result.status == 2, result.stderr
        assert f"{name} is both input and output" in result.stderr
    assert (folder / output).read_bytes() == before


def test_the_files_of_a_local_data_set_are_inputs(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = tmp_path / "data" / "test.jsonl"
    rows.parent.mkdir()
    rows.touch()
    monkeypatch.setattr("mtformer.text.sources._from_hub", lambda *_: iter([SentencePair("a house", "ein Haus")]))
    with pytest.raises(UserError, match="is both input and output"):
        evaluate_model(bundle, data=f"hf:{rows.parent},split:test", output=rows)


def test_json_says_what_was_scored(trained: Project, bundle: Path) -> None:
    result = trained.mtformer("eval", "--json", "--beam-size", "2", "--length-penalty", "1")
    shown = json.loads(result.stdout)
    assert (shown["beam_size"], shown["length_penalty"], shown["sentences"]) == (2, 1.0, 20)
    assert Path(shown["model"]).name == bundle.name
