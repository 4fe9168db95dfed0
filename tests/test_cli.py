"""The commands as a user runs them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import sacrebleu
from conftest import Project, make_project, sentence_pairs
from safetensors.torch import load_file

SENTENCE, TRANSLATION = "the red house sees a small dog.", "das rote Haus sieht ein kleiner Hund."


def test_help_loads_nothing_heavy() -> None:
    code = "import sys, mtformer.cli; print({'torch', 'pydantic', 'sentencepiece', 'datasets'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_train_prints_the_bundle_and_leaves_what_the_contract_says(project: Project) -> None:
    result = project.mtformer("train", project.config)
    assert (result.status, result.stdout) == (0, "runs/config/model.safetensors\n")
    run = project.folder / "runs/config"
    files = sorted(path.name for path in run.iterdir())
    assert files == ["checkpoints", "config.yaml", "metrics.jsonl", "model.safetensors", "tokenizer.model"]
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["step-000020"]


def test_a_text_a_file_and_a_pipe_give_the_same(trained: Project, tmp_path: Path) -> None:
    assert trained.mtformer("translate", SENTENCE).stdout == TRANSLATION + "\n"
    assert trained.mtformer("translate", stdin=SENTENCE + "\n").stdout == TRANSLATION + "\n"
    (tmp_path / "in.txt").write_text(SENTENCE)
    result = trained.mtformer("translate", "--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt")
    assert (result.status, result.stdout) == (0, "")
    assert (tmp_path / "out.txt").read_text() == TRANSLATION + "\n"


def test_every_line_in_is_a_line_out_in_order(trained: Project) -> None:
    sources = [pair[0] for pair in sentence_pairs(20, seed=9)]
    lines = [sources[0], "", "   ", "x\u2028y\x0cz", "日本語のテキスト 🙂", "word " * 10_000, *sources[1:]]
    result = trained.mtformer("translate", "--beam-size", "1", stdin="\n".join(lines) + "\n")
    assert result.status == 0
    out = result.stdout.removesuffix("\n").split("\n")
    assert len(out) == len(lines)
    assert out[1:3] == ["", ""]
    assert "line 6 has" in result.stderr
    assert result.stderr.count("parts") == 1
    alone = [trained.mtformer("translate", "--beam-size", "1", lines[i]).stdout.strip() for i in (0, 8, 24)]
    assert alone == [out[i] for i in (0, 8, 24)]


def test_n_best_formats_agree(trained: Project) -> None:
    command = ["translate", "--n-best", "3", "--beam-size", "5"]
    text, tsv, jsonl = (
        trained.mtformer(*command, f"--format={format}", stdin=f"{SENTENCE}\n\n").stdout.split("\n")[:-1]
        for format in ("text", "tsv", "json")
    )
    rows = [line.split("\t") for line in tsv]
    objects = [json.loads(line) for line in jsonl]
    assert [row[:2] for row in rows] == [["1", "1"], ["1", "2"], ["1", "3"], ["2", "1"]]
    assert [row[3] for row in rows] == text
    assert [found["text"] for line in objects for found in line["translations"]] == text
    assert (objects[0]["line"], objects[0]["src"], text[0]) == (1, SENTENCE, TRANSLATION)
    scores = [float(row[2]) for row in rows[:3]]
    assert scores == sorted(scores, reverse=True)


def test_the_bundle_alone_translates_elsewhere(trained: Project, tmp_path: Path) -> None:
    bundle = tmp_path / "model.safetensors"
    bundle.write_bytes((trained.folder / "runs/config/model.safetensors").read_bytes())
    elsewhere = Project(tmp_path, tmp_path / "none.yaml")
    assert elsewhere.mtformer("translate", "--model", bundle, SENTENCE).stdout == TRANSLATION + "\n"
    assert elsewhere.mtformer("translate", SENTENCE, env={"MTFORMER_MODEL": str(bundle)}).stdout == TRANSLATION + "\n"
    lost = elsewhere.mtformer("translate", SENTENCE)
    assert lost.status == 2
    assert "--model" in lost.stderr


def test_eval_scores_are_those_of_sacrebleu_on_the_written_hypotheses(trained: Project, tmp_path: Path) -> None:
    output = tmp_path / "hypotheses.txt"
    result = trained.mtformer("eval", "--json", "--output", output)
    shown = json.loads(result.stdout)
    hypotheses = output.read_text().splitlines()
    references = (trained.folder / "test.de").read_text().splitlines()
    metrics = (sacrebleu.corpus_bleu, sacrebleu.corpus_chrf, sacrebleu.corpus_ter)
    expected = [metric(hypotheses, [references]).score for metric in metrics]
    assert [score["score"] for score in shown["scores"]] == [round(score, 2) for score in expected]
    assert "tok:13a" in shown["scores"][0]["signature"]
    assert shown["sentences"] == 20
    by_files = trained.mtformer("eval", "--src", "test.en", "--ref", "test.de").stdout.splitlines()
    assert [line.split()[:2] for line in by_files] == [[s["name"], f"{s['score']:.2f}"] for s in shown["scores"]]
    assert expected[0] > 60  # it has learned its language


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["eval", "--src", "test.en"], "--ref"),
        (["eval", "--src", "test.en", "--ref", "train.de"], "20 lines"),
        (["translate", "a", "--model", "missing.safetensors"], "missing.safetensors"),
        (["translate", "a", "--model", "train.en"], "not an intact safetensors file"),
        (["translate", "a", "--input", "train.en"], "not both"),
        (["translate", "--input", "missing.txt"], "missing.txt"),
        (["translate", "--input", "train.en", "--output", "no/such/folder"], "no/such/folder"),
        (["translate", "a", "--n-best", "9", "--beam-size", "3"], "--n-best 9"),
        (["translate", "a", "--device", "cuda"], "no GPU"),
        (["translate", "a", "--device", "abacus"], "abacus"),
        (["translate", "a", "--beam-size", "0"], "--beam-size"),
        (["translate", "a", "--n-best", "300"], "--beam-size 300"),
        (["translate", "a", "--length-penalty", "nan"], "--length-penalty"),
        (["eval", "--output", "no/such/folder"], "no/such/folder"),
        (["eval", "--output", "-"], "--output -"),
        (["translate", b"\xff".decode(errors="surrogateescape")], "not UTF-8"),
        (["train", "missing.yaml"], "missing.yaml"),
        (["train", "train.en"], "train.en"),
        (["train", "config.yaml", "--set", "model.d_modle=3"], "did you mean `d_model`?"),
        (["nonsense"], "nonsense"),
    ],
)
def test_wrong_arguments_get_a_sentence_and_status_2(trained: Project, command: list[str], told: str) -> None:
    result = trained.mtformer(*command)
    assert result.status == 2, result.stderr
    assert result.stdout == ""
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_debug_shows_the_traceback(project: Project) -> None:
    result = project.mtformer("translate", "a", "--debug")
    assert result.status == 2
    assert "Traceback" in result.stderr


def test_a_reader_that_goes_away_ends_it_quietly(trained: Project) -> None:
    command = f"yes '{SENTENCE}' | head -3000 | {sys.executable} -m mtformer translate --beam-size 1 | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=trained.folder, capture_output=True, text=True, timeout=120)
    assert done.stdout == TRANSLATION + "\n"
    assert done.stderr == "model: runs/config/model.safetensors\n"


def final_weights(project: Project) -> dict[str, bytes]:
    newest = max((project.folder / "runs/config/checkpoints").iterdir())
    return {name: tensor.numpy().tobytes() for name, tensor in load_file(newest / "tensors.safetensors").items()}


def test_ctrl_c_saves_and_the_same_command_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    straight = make_project(tmp_path / "straight", max_steps=150)
    assert straight.mtformer("train", straight.config).status == 0

    stopped = make_project(tmp_path / "stopped", max_steps=150)
    process = start_training(stopped)
    wait_for(lambda: (stopped.folder / "runs/config/metrics.jsonl").is_file())  # written at step 50
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "the same command goes on" in errors
    assert not (stopped.folder / "runs/config/checkpoints/step-000150").exists()
    result = stopped.mtformer("train", stopped.config)
    assert result.status == 0
    assert "going on from step" in result.stderr
    assert final_weights(stopped) == final_weights(straight)


def start_training(project: Project) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mtformer", "train", str(project.config)]
    return subprocess.Popen(command, cwd=project.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_finished_run_says_so_and_fresh_starts_over(project: Project) -> None:
    assert project.mtformer("train", project.config).status == 0
    again = project.mtformer("train", project.config)
    assert again.status == 0
    assert "training.max_steps = 20" in again.stderr
    fresh = project.mtformer("train", project.config, "--fresh")
    assert "going on" not in fresh.stderr
    assert fresh.status == 0


def test_a_run_is_not_continued_with_another_model_or_other_data(project: Project) -> None:
    assert project.mtformer("train", project.config).status == 0
    weights = final_weights(project)
    other = project.mtformer("train", project.config, "--set", "model.d_model=64")
    assert other.status == 2
    assert "model.d_model was 32, now 64" in other.stderr
    with (project.folder / "valid.en").open("a") as src, (project.folder / "valid.de").open("a") as tgt:
        src.write("one more\n")
        tgt.write("noch eins\n")
    changed = project.mtformer("train", project.config)
    assert changed.status == 2
    assert "data.valid has changed" in changed.stderr
    assert final_weights(project) == weights


def test_fresh_removes_nothing_when_the_new_config_cannot_be_used(project: Project) -> None:
    assert project.mtformer("train", project.config).status == 0
    result = project.mtformer("train", project.config, "--fresh", "--set", "tokenizer.vocab_size=200000")
    assert result.status == 2
    assert "supports up to" in result.stderr
    assert (project.folder / "runs/config/model.safetensors").is_file()


def test_a_full_disk_while_saving_keeps_the_last_checkpoint(project: Project) -> None:
    # A limit on the size of files fails writes as a full disk does; it leaves room for configs, not for weights.
    assert project.mtformer("train", project.config).status == 0
    before = final_weights(project)
    command = f"ulimit -f 40; exec {sys.executable} -m mtformer train {project.config} --set training.max_steps=40"
    done = subprocess.run(
        ["bash", "-c", command], cwd=project.folder, capture_output=True, text=True, env=os.environ, timeout=120
    )
    assert done.returncode == 1, done.stderr
    assert "cannot write" in done.stderr
    assert "Traceback" not in done.stderr
    assert final_weights(project) == before
    assert project.mtformer("translate", "a").status == 0


def test_both_directions_and_separate_vocabularies(project: Project) -> None:
    config = project.config.read_text().replace("src: ", "TGT: ").replace("tgt: ", "src: ").replace("TGT: ", "tgt: ")
    (project.folder / "back.yaml").write_text(config)
    overrides = ["data.src_lang=de", "data.tgt_lang=en", "tokenizer.joint=false", "tokenizer.type=bpe"]
    flags = [part for override in overrides for part in ("--set", override)]
    assert project.mtformer("train", "back.yaml", *flags).status == 0
    run = project.folder / "runs/back"
    assert (run / "tokenizer.src.model").is_file() and (run / "tokenizer.tgt.model").is_file()
    result = project.mtformer("translate", "--model", run, "das rote Haus sieht ein kleiner Hund.")
    assert result.status == 0


def test_a_given_vocabulary_size_that_the_run_does_not_have_is_refused(project: Project) -> None:
    assert project.mtformer("train", project.config).status == 0
    other = project.mtformer("train", project.config, "--set", "tokenizer.vocab_size=310")
    assert other.status == 2
    assert "tokenizer.vocab_size was 320, now 310" in other.stderr


def test_a_run_goes_on_after_its_folder_has_moved(project: Project) -> None:
    assert project.mtformer("train", project.config).status == 0
    moved = project.folder.rename(project.folder.with_name("moved"))
    result = Project(moved, moved / "config.yaml").mtformer("train", "config.yaml", "--set", "training.max_steps=30")
    assert result.status == 0, result.stderr
    assert "going on from step 20" in result.stderr


def test_a_run_without_its_config_is_not_overwritten(project: Project) -> None:
    assert project.mtformer("train", project.config).status == 0
    (project.folder / "runs/config/config.yaml").unlink()
    result = project.mtformer("train", project.config)
    assert result.status == 2
    assert "--fresh" in result.stderr
    assert list((project.folder / "runs/config/checkpoints").iterdir())


def test_a_file_is_not_translated_into_itself(trained: Project, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text(SENTENCE)
    result = trained.mtformer("translate", "--input", text, "--output", text)
    assert result.status == 2
    assert text.read_text() == SENTENCE
