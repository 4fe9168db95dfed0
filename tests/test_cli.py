"""The commands as a user runs them."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
from conftest import Project, make_project, sentence_pairs
from safetensors.torch import load_file

from mtformer.config import SearchOptions
from mtformer.config.section import documentation
from mtformer.data.batches import Batch
from mtformer.runs.checkpoints import list_checkpoints
from mtformer.runs.finding import find_model
from mtformer.runs.folder import RunFolder
from mtformer.training.update import Update, Updater
from mtformer.translate.translation import Translation
from mtformer.translate.translator import Translator

SENTENCE, TRANSLATION = "the red house sees a small dog.", "das rote Haus sieht ein kleiner Hund."
PROGRAM = f"{sys.executable} -m mtformer"


@pytest.mark.parametrize("env", [{}, {"_MTFORMER_COMPLETE": "complete_bash", "COMP_WORDS": "mtformer tr"}])
def test_help_and_completion_load_nothing_heavy(env: dict[str, str]) -> None:
    code = """
import atexit, sys, mtformer.cli
heavy = {"torch", "numpy", "sentencepiece", "datasets", "sacrebleu"}
atexit.register(lambda: print("loaded:", heavy & set(sys.modules)))
sys.argv = ["mtformer", "--help"]
mtformer.cli.main()
"""
    environment = os.environ | env | {"COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout.endswith("loaded: set()\n"), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("compare train.en train.de --ref train.en --resamples 20 --trials 20", 0),
        ("report runs/config --no-test --output OUT/page.html", 0),
        ("explain train.en", 2),
        ("eval --model missing", 2),
    ],
)
def test_torch_is_imported_to_compute_only(trained: Project, tmp_path: Path, command: str, status: int) -> None:
    (tmp_path / "torch.py").write_text("raise RuntimeError\n")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    arguments = [*PROGRAM.split(), *command.replace("OUT", str(tmp_path)).split()]
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment, cwd=trained.folder)
    assert done.returncode == status, done.stderr


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("mtformer tr", ["train", "translate"]),
        ("mtformer translate --n-", ["--n-best"]),
        ("mtformer translate --format ", ["text", "tsv", "json"]),
        ("mtformer translate --device ", ["auto", "cpu", "cuda", "mps"]),
        ("mtformer eval --precision ", ["fp32", "bf16", "int8"]),
        ("mtformer data sa", ["sample"]),
    ],
)
def test_a_shell_completes_commands_options_and_values(project: Project, words: str, completed: list[str]) -> None:
    place = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    result = project.mtformer(env={"_MTFORMER_COMPLETE": "complete_bash"} | place)
    assert result.stdout.split() == completed


def test_ctrl_c_before_the_commands_are_imported(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([*PROGRAM.split(), "--help"], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("group", [[], ["data"]])
def test_the_list_of_commands_says_of_each_what_it_does(project: Project, group: list[str]) -> None:
    assert "..." not in project.mtformer(*group, "--help").stdout.partition("Commands:")[2]


def test_a_flag_is_shown_without_a_type(project: Project) -> None:
    shown = project.mtformer("train", "--help").stdout
    assert re.search(r"^  --fresh +Start", shown, flags=re.MULTILINE)
    assert "<bool>" not in shown + project.mtformer("--help").stdout
    assert re.search(r"^  --json +Print", project.mtformer("runs", "--help").stdout, flags=re.MULTILINE)


def test_errors_of_the_options_and_of_the_work_look_alike(project: Project) -> None:
    for command in (["nonsense"], ["translate", "--beam", "3"], ["train", "missing.yaml"]):
        last_line = project.mtformer(*command).stderr.splitlines()[-1]
        assert last_line.startswith("Error: ")


def test_train_prints_the_bundle_and_leaves_what_the_contract_says(project: Project) -> None:
    result = project.mtformer("train", project.config)
    assert (result.status, result.stdout) == (0, "runs/config/model.safetensors\n")
    run = project.folder / "runs/config"
    files = sorted(path.name for path in run.iterdir())
    logged = ["metrics.jsonl", "model.safetensors", "samples.jsonl", "starts.jsonl"]
    assert files == ["checkpoints", "config.yaml", *logged, "tokenizer.model"]
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["step-000020"]


def test_a_text_a_file_and_a_pipe_give_the_same(trained: Project, tmp_path: Path) -> None:
    assert trained.mtformer("translate", SENTENCE).stdout == TRANSLATION + "\n"
    assert trained.mtformer("translate", stdin=SENTENCE + "\n").stdout == TRANSLATION + "\n"
    (tmp_path / "in.txt").write_text(SENTENCE)
    result = trained.mtformer("translate", "--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt")
    assert (result.status, result.stdout) == (0, "")
    assert (tmp_path / "out.txt").read_text() == TRANSLATION + "\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("translate a --device gpu", "Invalid value for '--device': 'gpu' is not one of 'auto', 'cpu', 'cuda', 'mps'."),
        ("translate a --precision fp8", "Invalid value for '--precision': 'fp8' is not one of 'fp32', 'bf16', 'int8'."),
        ("translate a --temperature 0.5", "--temperature 0.5 needs --sample, which draws tokens at random"),
        ("translate a --sample --top-p 0", "--top-p 0.0, allowed: more than 0.0"),
        ("translate a --n-best 5 --beam-size 4", "--n-best 5 is more than --beam-size 4"),
        ("translate a --pair en-de", "there is no option --pair here: use --from and --to"),
        ("translate a --json", "there is no option --json here: use --format json"),
        ("eval --format json", "there is no option --format here: use --json"),
        ("translate a --glossary b", "there is no option --glossary here: use --terms"),
        ("translate a --num-beams 3", "there is no option --num-beams here: use --beam-size"),
        ("train a --max-steps 3", "there is no option --max-steps here: use --set training.max_steps=VALUE"),
        ("train --config a", "there is no option --config here: write mtformer train CONFIG"),
        (
            "improve --src a.en --tgt a.de",
            "there is no option --src here: give a config, which mtformer train --src FILE --tgt FILE writes",
        ),
        ("serve --model=a", "there is no option --model here: write mtformer serve MODEL"),
        ("report --model a", "there is no option --model here: write mtformer report RUN"),
        (
            "train a --model b",
            "there is no option --model here: use --set training.init_from=MODEL, to fine-tune it",
        ),
        ("train a --output b", "there is no option --output here: use --set run.dir=FOLDER"),
        ("data check a --output b", "there is no option --output here: use --fix"),
        ("eval --src a --tgt b", "there is no option --tgt here: use --ref"),
        ("eval --input a", "there is no option --input here: use --src"),
        ("score --src a --ref b", "there is no option --ref here: use --tgt"),
        ("translate --src a", "there is no option --src here: use --input"),
        ("train a --lr 3", "there is no option --lr here: use --set training.learning_rate=VALUE"),
        ("data sample a", "Missing option '--pair'. The languages, as in en-de"),
        ("average --output a", "Missing argument 'MODEL'. A run's folder, or several bundles"),
        ("data sample a --from en", "there is no option --from here: use --pair, as in --pair en-de"),
    ],
)
def test_wrong_options_are_refused_before_a_model_is_looked_for(project: Project, arguments: str, message: str) -> None:
    result = project.mtformer(*arguments.split())
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr.endswith(f"Error: {message}\n")


def test_options_of_the_search_are_described_as_in_the_schema(project: Project) -> None:
    shown = " ".join(project.mtformer("translate", "--help", env={"COLUMNS": "200"}).stdout.split())
    texts = documentation(SearchOptions)
    for name, metavar, limits in [
        ("beam_size", "N", "[1<=x<=64]"),
        ("length_penalty", "X", "[0<=x<=10]"),
        ("no_repeat_ngram_size", "N", "[0<=x<=1000]"),
    ]:
        assert f"--{name.replace('_', '-')} {metavar} {texts[name]} {limits}" in shown
    assert "--precision <fp32|bf16|int8>" in shown or "--precision [fp32|bf16|int8]" in shown
    assert "at most --beam-size" in shown and "if search.max_length_factor allows for more" in shown


def test_every_line_in_is_a_line_out_in_order(trained: Project) -> None:
    sources = [pair[0] for pair in sentence_pairs(20, seed=9)]
    lines = [sources[0], "", "   ", "x\u2028y\x0cz", "日本語のテキスト 🙂", "word " * 2_000, *sources[1:]]
    result = trained.mtformer("translate", "--beam-size", "1", stdin="\n".join(lines) + "\n")
    assert result.status == 0
    out = result.stdout.removesuffix("\n").split("\n")
    assert len(out) == len(lines)
    assert out[1:3] == ["", ""]
    assert "line 6: translated in" in result.stderr
    assert result.stderr.count("parts") == 1
    alone = [trained.mtformer("translate", "--beam-size", "1", lines[i]).stdout.strip() for i in (0, 8, 24)]
    assert alone == [out[i] for i in (0, 8, 24)]


def test_the_help_of_translate_groups_its_options(trained: Project) -> None:
    groups = re.findall(r"^([A-Z].*):$", trained.mtformer("translate", "--help").stdout, re.MULTILINE)
    assert groups[:3] == ["Arguments", "Input and output", "Search"]


def test_the_help_of_eval_groups_its_options(trained: Project) -> None:
    groups = re.findall(r"^([A-Z].*):$", trained.mtformer("eval", "--help").stdout, re.MULTILINE)
    assert groups == ["Input and output", "Test set", "Scores", "Search", "Safety", "Control", "Other"]


def test_n_best_formats_agree(trained: Project) -> None:
    command = ["translate", "--n-best", "3", "--beam-size", "5"]
    text, tsv, jsonl = (
        trained.mtformer(*command, f"--format={format}", stdin=f"{SENTENCE}\n\n").stdout.split("\n")[:-1]
        for format in ("text", "tsv", "json")
    )
    rows = [line.split("\t") for line in tsv]
    objects = [json.loads(line) for line in jsonl]
    assert [row[:2] for row in rows] == [["1", "1"], ["1", "2"], ["1", "3"], ["2", "1"]]
    assert text[4:] == ["", "", "", ""]  # the second block, of an empty line
    assert text[:4] == [*(row[3] for row in rows[:3]), ""]
    assert [[found["text"] for found in line["translations"]] for line in objects] == [text[:3], [""]]
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


def test_the_newest_run_of_a_folder_is_found_and_named(trained: Project, tmp_path: Path) -> None:
    bundle = trained.folder / "runs/config/model.safetensors"
    for age, name in enumerate(("new", "old")):
        run = tmp_path / "elsewhere" / name
        run.mkdir(parents=True)
        shutil.copy(bundle, run)
        os.utime(run / bundle.name, (1e9 - age, 1e9 - age))
    (tmp_path / "elsewhere" / "unfinished").mkdir()
    exported = tmp_path / "elsewhere" / "exported"  # to transformers, which name their file like a bundle
    exported.mkdir()
    for name in ("model.safetensors", "config.json"):
        (exported / name).write_text("{}")
    project = Project(tmp_path, tmp_path / "none.yaml")
    for arguments, env in ((("--model", "elsewhere"), {}), ((), {"MTFORMER_MODEL": "elsewhere"})):
        result = project.mtformer("translate", SENTENCE, *arguments, env=env)
        assert (result.status, result.stdout) == (0, TRANSLATION + "\n")
        assert result.stderr.splitlines()[0] == "model: elsewhere/new/model.safetensors"
    with RunFolder(tmp_path / "elsewhere/new").lock():
        result = project.mtformer("translate", SENTENCE, "--model", "elsewhere")
    assert result.stderr.splitlines()[0] == "model: elsewhere/new/model.safetensors, still training"


@pytest.mark.parametrize(
    ("named", "hint"),
    [
        ("runs/confg", "; did you mean runs/config?"),
        ("confg", "; did you mean runs/config?"),
        ("runs/confg/model.safetensors", "; did you mean runs/config?"),
        ("config.yaml", "; did you mean runs/config?"),
        ("elsewhere/xyz", "; the newest run here is runs/config"),
        ("runs/config/checkpoints", "; did you mean runs/config?"),
    ],
)
def test_a_model_that_is_not_there_is_named_with_the_run_that_may_be_meant(
    trained: Project, named: str, hint: str
) -> None:
    message = f"Error: there is no model at {named}"
    assert trained.mtformer("translate", "a", "--model", named).stderr == f"{message}{hint}\n"
    from_environment = trained.mtformer("translate", "a", env={"MTFORMER_MODEL": named})
    assert from_environment.stderr == f"{message} (from $MTFORMER_MODEL){hint}\n"


@pytest.mark.parametrize("file", ["", "/tensors.safetensors"])
def test_a_checkpoint_named_as_the_model_is_averaged_first(trained: Project, copied: Project, file: str) -> None:
    run = copied.folder / "runs/config"
    shutil.copytree(trained.folder / "runs/config/checkpoints", run / "checkpoints")
    shutil.copy(trained.folder / "runs/config/starts.jsonl", run)
    [newest, *_] = list_checkpoints(run / "checkpoints")
    named = f"runs/config/checkpoints/{newest.name}{file}"
    result = copied.mtformer("translate", SENTENCE, "--model", named)
    message = f"Error: {named} is a checkpoint, not a model: name its run, runs/config, or make a bundle of the run's"
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{message} newest checkpoint: mtformer average runs/config --last 1 ")
    assert copied.mtformer(*shlex.split(result.stderr.rpartition(": mtformer ")[2])).status == 0
    assert copied.mtformer("translate", SENTENCE, "--model", "FILE.safetensors").status == 0
    (run / "model.safetensors").unlink()
    assert "the run runs/config has no model" in copied.mtformer("translate", "a", "--model", named).stderr


def test_a_config_named_as_the_model_is_answered_with_its_run(trained: Project, copied: Project) -> None:
    shutil.copy(trained.config, copied.folder / "pb.yaml")
    shutil.copy(trained.folder / "runs/config/starts.jsonl", copied.folder / "runs/config")
    (copied.folder / "runs/config").rename(copied.folder / "runs/pb")
    (copied.folder / "runs/newer").mkdir()
    shutil.copy(copied.folder / "runs/pb/model.safetensors", copied.folder / "runs/newer")
    message = "Error: there is no model at pb.yaml; did you mean runs/pb?\n"
    assert copied.mtformer("translate", "a", "--model", "pb.yaml").stderr == message  # by its name: its text is gone
    for name in ("train.en", "train.de"):
        shutil.copy(trained.folder / name, copied.folder)
    assert copied.mtformer("translate", "a", "--model", "pb.yaml").stderr == message
    (copied.folder / "runs/pb/model.safetensors").unlink()
    assert "the run runs/pb has no model" in copied.mtformer("translate", "a", "--model", "pb.yaml").stderr


def test_where_no_model_was_found_is_an_absolute_path(tmp_path: Path) -> None:
    stderr = Project(tmp_path, tmp_path).mtformer("translate", "a").stderr
    assert f"there is no trained model under {tmp_path / 'runs'}: train one" in stderr


@pytest.mark.parametrize(
    ("files", "named", "importable"),
    [
        ("config.json model.safetensors", "theirs", "theirs"),
        ("config.json model.safetensors", "theirs/model.safetensors", "theirs"),
        ("config.json pytorch_model-00001-of-00002.bin", "theirs", "theirs"),
        ("decoder.yml model.npz model.npz.best-bleu.npz vocab.spm", "theirs", "theirs/model.npz"),
        ("model.npz", "theirs/model.npz", "theirs/model.npz"),
        ("", "hf:Helsinki-NLP/opus-mt-en-de", "hf:Helsinki-NLP/opus-mt-en-de"),
    ],
)
def test_a_model_of_another_toolkit_is_to_be_imported(tmp_path: Path, files: str, named: str, importable: str) -> None:
    (tmp_path / "theirs").mkdir()
    for name in files.split():
        (tmp_path / "theirs" / name).touch()
    result = Project(tmp_path, tmp_path).mtformer("translate", "a", "--model", named)
    command = f"mtformer import {importable} --output FOLDER"
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr == f"Error: {named} is a model of another toolkit; import it first: {command}\n"


def test_to_fine_tune_a_model_of_another_toolkit_it_is_to_be_imported(project: Project) -> None:
    (project.folder / "theirs").mkdir()
    for name in ("config.json", "model.safetensors"):
        (project.folder / "theirs" / name).touch()
    result = project.mtformer("train", project.config, "--set", f"training.init_from={project.folder}/theirs")
    assert (result.status, result.stdout) == (2, "")
    assert f"import it first: mtformer import {project.folder}/theirs --output FOLDER\n" in result.stderr


def test_a_bundle_beside_other_files_is_no_model_of_another_toolkit(tmp_path: Path) -> None:
    bundle = tmp_path / "model.safetensors"
    shutil.copy(Path(__file__).parent / "fixtures/bundle-3.safetensors", bundle)
    for name in ("config.json", "decoder.yml", "vectors.npz"):
        (tmp_path / name).touch()
    assert find_model(tmp_path) == find_model(bundle) == bundle


ONE_TEXT = "give one text, with quotes around all of its words"
ONE_CONFIG = "give one config, and set its keys with --set KEY=VALUE"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("translate A man --raw rides", f"unexpected arguments (man rides): {ONE_TEXT}"),
        ("explain A man", f"unexpected arguments (man): {ONE_TEXT}"),
        ("train c.yaml training.seed=3", f"unexpected arguments (training.seed=3): {ONE_CONFIG}"),
        ("data check c.yaml a=1 b=2", f"unexpected arguments (a=1 b=2): {ONE_CONFIG}"),
        ("data check a.en a.de", "unexpected arguments (a.de): write two text files as --src a.en --tgt a.de"),
        ("data sample a.en a.de --pair en-de", "unexpected arguments (a.de): write two files as src:FILE,tgt:FILE"),
        (
            "translate A. B.",
            "unexpected arguments (B.): give one text, in quotes; for several, give a file with one "
            "on each line (--input), or a pipe",
        ),
        ("explain A. B.", "unexpected arguments (B.): give one text, in quotes"),
        ("train c.yaml --set training.seed 3", f"unexpected arguments (3): {ONE_CONFIG}"),
        ("eval runs/a", "unexpected arguments (runs/a): write a model as --model runs/a"),
        ("eval a.en a.de", "unexpected arguments (a.en a.de): write two text files as --src a.en --ref a.de"),
        ("score more", "unexpected arguments (more): write two text files as --src FILE --tgt FILE"),
        ("score 'A dog.' Hund", "unexpected arguments (A dog. Hund): write two text files as --src FILE --tgt Hund"),
        ("score a.en a.de", "unexpected arguments (a.en a.de): write two text files as --src a.en --tgt a.de"),
    ],
)
def test_arguments_that_a_command_does_not_take_get_a_hint(project: Project, arguments: str, message: str) -> None:
    result = project.mtformer(*shlex.split(arguments))
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr.endswith(f"Error: {message}\n")


def test_a_run_before_its_first_validation_has_no_model_yet(copied: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    message = "has no model yet: training writes one at its first validation\n"
    with RunFolder(copied.folder / "runs" / "new").lock():
        result = copied.mtformer("translate", "a", "--model", "runs/new")
        monkeypatch.setenv("MTFORMER_MODEL", "runs/new")
        from_environment = copied.mtformer("translate", "a")
    assert (result.status, result.stderr) == (2, f"Error: the run runs/new {message}")
    assert from_environment.stderr == f"Error: the run runs/new (from $MTFORMER_MODEL) {message}"


@pytest.mark.parametrize("is_validated", [False, True])
def test_a_run_without_a_model_can_be_resumed(project: Project, is_validated: bool) -> None:
    assert project.mtformer("train", project.config, "--set", "training.max_steps=1").status == 0
    run = RunFolder(project.folder / "runs" / "config")
    run.bundle.unlink()
    if not is_validated:  # as if it had stopped before
        shutil.rmtree(run.checkpoints)
        run.metrics.unlink()
    for command in (["translate", "a"], ["eval"], ["explain", "a"], ["translate", "a", "--model", "runs/config"]):
        result = project.mtformer(*command)
        assert (result.status, result.stdout) == (2, "")
        assert "the run runs/config has no model; resume it" in result.stderr
    hint = result.stderr.rpartition("to get one: mtformer ")[2].split()
    assert hint == ["train", "runs/config/config.yaml"]
    if is_validated:  # wherever it is by now
        run.path.rename(project.folder / "moved")
        run = RunFolder(project.folder / "moved")
        result = project.mtformer("translate", "a", "--model", "moved")
        hint = result.stderr.rpartition("to get one: mtformer ")[2].split()
    resumed = project.mtformer(*hint)
    assert resumed.status == 0, resumed.stderr
    assert run.bundle.exists()


def test_eval_scores_are_those_of_sacrebleu_on_the_written_hypotheses(copied: Project) -> None:
    output = copied.folder / "hypotheses.txt"
    result = copied.mtformer("eval", "--json", "--output", output)
    shown = json.loads(result.stdout)
    hypotheses = output.read_text().splitlines()
    references = (copied.folder / "test.de").read_text().splitlines()
    chrf_plus_plus = partial(sacrebleu.corpus_chrf, word_order=2)
    metrics = (sacrebleu.corpus_bleu, sacrebleu.corpus_chrf, chrf_plus_plus, sacrebleu.corpus_ter)
    expected = [metric(hypotheses, [references]).score for metric in metrics]
    assert [score["score"] for score in shown["scores"]] == [round(score, 2) for score in expected]
    assert "tok:13a" in shown["scores"][0]["signature"]
    assert shown["sentences"] == 20
    by_files = copied.mtformer("eval", "--src", "test.en", "--ref", "test.de").stdout.splitlines()
    assert [line.split()[:2] for line in by_files[:4]] == [[s["name"], f"{s['score']:.2f}"] for s in shown["scores"]]
    assert expected[0] > 60  # it has learned its language


@pytest.mark.parametrize("command", ["translate", "tokenize"])
def test_a_file_named_as_text_is_refused_with_what_to_do(trained: Project, tmp_path: Path, command: str) -> None:
    result = trained.mtformer(command, "train.en")
    assert (result.status, result.stdout) == (2, "")
    assert "train.en is a file: to read it, use --input train.en" in result.stderr
    assert trained.mtformer("translate", "--beam-size", "1", "the red house " * 400).status == 0
    table = tmp_path / "a.jsonl"
    table.touch()
    result = trained.mtformer(command, table)
    assert (result.status, result.stderr.count("\n")) == (2, 1)
    assert "extract the text" in result.stderr and f"use --input {table}" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "--model", "a", "--model=b", "A dog."],
        ["eval", "--src", "a", "--ref", "b", "--src", "c", "--ref", "d"],
    ],
)
def test_an_option_for_one_file_is_not_given_twice(project: Project, arguments: list[str]) -> None:
    result = project.mtformer(*arguments)
    assert (result.status, result.stdout) == (2, "")
    told = "--model is given 2 times, but takes one PATH" if "explain" in arguments else "--src is given 2 times"
    assert f"Error: {told}" in result.stderr


@pytest.mark.parametrize("texts", [["train.en"], ["a", "--compare", "train.en"]])
def test_explain_takes_a_sentence_and_no_file(trained: Project, texts: list[str]) -> None:
    result = trained.mtformer("explain", *texts)
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr == "Error: train.en is a file: give one of its sentences, in quotes\n"
    missing = trained.mtformer("explain", "missing.de").stderr
    assert "there is no file missing.de: its name is taken as the text\n" in missing
    assert trained.mtformer("explain", "-").stderr.startswith("- is not standard input here, but a text\n")


@pytest.mark.parametrize("name", ["missing.de", "missing.gz", "missing.en.gz", "my missing.docx"])
def test_the_name_of_a_missing_file_is_translated_with_a_warning(trained: Project, name: str) -> None:
    result = trained.mtformer("translate", "--beam-size", "1", name)
    assert (result.status, result.stdout.count("\n")) == (0, 1)
    assert f"there is no file {name}: its name is taken as the text\n" in result.stderr


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("folder/", "folder is a folder: name another for the translations, as in --output translated"),
        ("./folder", "./folder is a folder: to read it, use --input ./folder"),
        ("./my folder", "./my folder is a folder: to read it, use --input './my folder'"),
        ("missing/", "there is no file missing/"),
        ("./page.htlm", "there is no file ./page.htlm"),
        ("missing.doc", "there is no file missing.doc"),
        ("missing.jsonl.gz", "there is no file missing.jsonl.gz"),
        ("my folder/missing.docx", "there is no file my folder/missing.docx"),
        ("folder/not there.md", "there is no file folder/not there.md"),
    ],
)
def test_a_path_is_not_translated_as_a_text(copied: Project, text: str, error: str) -> None:
    for name in ("folder", "my folder"):
        (copied.folder / name).mkdir()
    result = copied.mtformer("translate", text)
    assert (result.status, result.stdout, result.stderr) == (2, "", f"Error: {error}\n")
    result = copied.mtformer("translate", "--beam-size", "1", "folder")
    assert result.status == 0
    assert "folder is also a folder: its name is taken as the text; to read it, use --input folder\n" in result.stderr


@pytest.mark.parametrize("output", ["translated", "out.txt"])
def test_the_name_of_a_folder_is_not_translated_to_a_file(copied: Project, output: str) -> None:
    (copied.folder / "my folder").mkdir()
    result = copied.mtformer("translate", "my folder", "--output", output)
    advice = "to translate its documents, write 'my folder/'; to take its name as the text, pipe it in"
    assert (result.status, result.stdout, result.stderr) == (2, "", f"Error: my folder is a folder: {advice}\n")
    assert not (copied.folder / output).exists()


@pytest.mark.parametrize(
    "text", ["I read old.doc", "I read old.de", "house", "house.", "3.5", "e.g.", "D.C", "http://a.b/", "a/b"]
)
def test_text_that_is_no_file_name_is_translated_without_a_warning(trained: Project, text: str) -> None:
    assert "there is no file" not in trained.mtformer("translate", "--beam-size", "1", text).stderr


@pytest.mark.parametrize("text", ["-5 degrees", "- It's late."])
def test_a_text_that_begins_with_a_dash_gets_a_hint(trained: Project, text: str) -> None:
    result = trained.mtformer("translate", text)
    command = f"mtformer translate -- {shlex.quote(text)}"
    assert (result.status, result.stderr.splitlines()[-1]) == (
        2,
        f"Error: write -- before a text that begins with -: {command}",
    )
    assert trained.mtformer(*shlex.split(command)[1:]).status == 0


def test_a_dash_as_text_gets_a_hint_at_standard_input(trained: Project) -> None:
    result = trained.mtformer("tokenize", "-", stdin="the house\n")
    assert "- is not standard input here, but a text: leave it out to read standard input\n" in result.stderr


def test_json_shows_tokens_with_their_log_probabilities_and_notes(trained: Project) -> None:
    result = trained.mtformer("translate", "--format", "json", stdin=f"{SENTENCE}\n{SENTENCE * 100}\n")
    short, long = (json.loads(line)["translations"][0] for line in result.stdout.splitlines())
    assert "".join(short["tokens"]).replace("▁", " ").strip() == f"{TRANSLATION}</s>"
    assert sum(short["token_log_probs"]) == pytest.approx(short["log_prob"], abs=0.01)
    assert (len(short["tokens"]), short["notes"]) == (len(short["token_log_probs"]), [])
    note, flag = long["notes"]
    assert f"line 2: {note}" in result.stderr.splitlines()
    assert flag.startswith("check: ")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["eval", "--src", "test.en"], "--ref"),
        (["eval", "--src", "test.en", "--ref", "train.de"], "20 lines"),
        (["translate", "a", "--model", "missing.safetensors"], "missing.safetensors"),
        (["translate", "a", "--model", "train.en"], "not an intact safetensors file"),
        (["translate", "a", "--model", 300 * "x"], 300 * "x"),
        (["import", 300 * "x", "--output", "new"], 300 * "x"),
        (["translate", "a", "--input", "train.en"], "not both"),
        (["translate", "--input", "missing.txt"], "missing.txt"),
        (["translate", "--input", "train.en", "--output", "no/such/folder"], "no/such/folder"),
        (["translate", "a", "--n-best", "9", "--beam-size", "3"], "--n-best 9 is more than --beam-size 3"),
        (["translate", "a", "--device", "cuda"], "no such GPU"),
        (["translate", "a", "--device", "abacus"], "abacus"),
        (["translate", "a", "--beam-size", "0"], "--beam-size"),
        (["translate", "a", "--n-best", "300"], "--n-best 300"),
        (["translate", "a", "--length-penalty", "nan"], "penalty"),
        (["eval", "--output", "no/such/folder"], "no/such/folder"),
        (["explain", "a", "--model", "train.en", "--output", "no/such.html"], "no/such.html"),  # before it is loaded
        (["eval", "--output", "-"], "--output -"),
        (["report", "runs/config", "--output", "/dev/stdout"], "standard output is for the path of the page"),
        (["average", "runs/config", "--output", "-"], "standard output is not a file"),
        (["average", "runs/config", "--output", "runs"], "runs exists: name a new file with --output"),
        (["merge", "runs/config", "adapter", "--output", "train.en"], "train.en exists: name a new file with --output"),
        (["explain", "a", "--format", "json", "--output", "/dev/stdout"], "standard output is for what --format"),
        (["translate", "--input", "train.en", "--shard", "3/2"], "--shard 3/2: write I/N"),
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


def test_debug_after_two_hyphens_is_a_text(trained: Project) -> None:
    result = trained.mtformer("tokenize", "--", "--debug")
    assert (result.status, result.stdout.replace("<0x2D>", "-").replace(" ", "")) == (0, "▁--debug\n"), result.stderr


def test_a_reader_that_goes_away_does_not_fail_a_script(project: Project) -> None:
    command = f"set -o pipefail; {PROGRAM} data sample src:train.en,tgt:train.de --pair en-de -n 400 | true"
    done = subprocess.run(["bash", "-c", command], cwd=project.folder, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def final_weights(project: Project) -> dict[str, bytes]:
    newest = max((project.folder / "runs/config/checkpoints").iterdir())
    return {name: tensor.numpy().tobytes() for name, tensor in load_file(newest / "tensors.safetensors").items()}


def test_ctrl_c_saves_and_the_same_command_resumes_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    straight = make_project(tmp_path / "straight", max_steps=30)
    assert straight.mtformer("train", straight.config).status == 0

    def update(updater: Updater, batches: Sequence[Batch], step: int, *arguments: Any) -> Update:
        if step == 11:
            signal.raise_signal(signal.SIGINT)
        return original(updater, batches, step, *arguments)

    original = Updater.update
    stopped = make_project(tmp_path / "stopped", max_steps=30)
    with monkeypatch.context() as patch:
        patch.setattr(Updater, "update", update)
        result = stopped.mtformer("train", stopped.config, "--fresh")
    assert result.status == 130
    assert "rerun the same command without --fresh to resume runs/config" in result.stderr
    assert [path.name for path in (stopped.folder / "runs/config/checkpoints").iterdir()] == ["step-000011"]
    result = stopped.mtformer("train", stopped.config)
    assert result.status == 0
    assert "resuming from step 11" in result.stderr
    assert final_weights(stopped) == final_weights(straight)


def test_a_finished_run_says_so_and_fresh_starts_over(project: Project) -> None:
    settings = ("--set", "run.name=named", "--set", "data.max_length=200")
    assert project.mtformer("train", project.config, *settings).status == 0
    record = (project.folder / "runs/named/config.yaml").read_bytes()
    again = project.mtformer("train", project.config, *settings, "--set", "training.learning_rate=0.1")
    assert again.status == 0
    assert (project.folder / "runs/named/config.yaml").read_bytes() == record
    assert "; that it is 0.1 now has no effect on this run" in again.stderr
    shorter = project.mtformer("train", project.config, *settings, "--set", "training.max_steps=10")
    assert "is complete: step 20 " in shorter.stderr and "no effect" not in shorter.stderr
    assert re.search(r"runs/named is complete: step 20 after \d+\.\d min, training\.max_steps = 20; to", again.stderr)
    [command] = re.findall(r"raise that limit: mtformer (.*); --fresh", again.stderr)
    further = project.mtformer(*shlex.split(command.replace("…", "22")))
    assert "stopped at step 22 " in further.stderr, further.stderr
    assert "resuming" not in again.stderr and "stopped" not in again.stderr
    assert again.stderr.count("training pairs are too few for a useful model") == 1
    fresh = project.mtformer("train", project.config, *settings, "--fresh")
    assert "resuming" not in fresh.stderr
    assert fresh.status == 0


def test_a_run_is_not_continued_with_another_model_or_other_data(project: Project) -> None:
    assert project.mtformer("train", project.config).status == 0
    weights = final_weights(project)
    other = project.mtformer("train", project.config, "--set", "model.d_model=64")
    assert other.status == 2
    assert "model.d_model was 32, is now 64" in other.stderr
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
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
    try:
        result = project.mtformer("train", project.config, "--set", "training.max_steps=40")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.status == 1
    assert "cannot write" in result.stderr
    assert "Traceback" not in result.stderr
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
    assert "tokenizer.vocab_size was 320, is now 310" in other.stderr


def test_a_run_goes_on_after_its_folder_has_moved(project: Project) -> None:
    assert project.mtformer("train", project.config).status == 0
    moved = project.folder.rename(project.folder.with_name("moved"))
    result = Project(moved, moved / "config.yaml").mtformer("train", "config.yaml", "--set", "training.max_steps=30")
    assert result.status == 0, result.stderr
    assert "resuming from step 20" in result.stderr


@pytest.mark.parametrize("damaged", [None, "data: [", "data: {}", "\x00"])
def test_a_run_whose_config_is_lost_is_resumed_with_its_recorded_settings(
    project: Project, damaged: str | None
) -> None:
    assert project.mtformer("train", project.config).status == 0
    config = project.folder / "runs/config/config.yaml"
    settings = config.read_text(encoding="utf-8")
    for change, status in (("model.d_model=64", 2), ("training.max_steps=21", 0)):
        config.unlink(missing_ok=True) if damaged is None else config.write_text(damaged)
        result = project.mtformer("train", project.config, "--set", change)
        assert result.status == status, result.stderr
        assert (
            "config.yaml is missing or damaged: its settings are taken from runs/config/starts.jsonl" in result.stderr
        )
    assert "resuming from step 20" in result.stderr
    assert config.read_text(encoding="utf-8").startswith(settings.split("training:")[0])


def test_a_run_without_its_config_and_the_record_of_it_is_not_overwritten(project: Project) -> None:
    assert project.mtformer("train", project.config).status == 0
    for name in ("config.yaml", "starts.jsonl"):
        (project.folder / "runs/config" / name).unlink()
    result = project.mtformer("train", project.config)
    assert result.status == 2
    assert "--fresh" in result.stderr and "--set run.name=" in result.stderr
    assert list((project.folder / "runs/config/checkpoints").iterdir())


def test_a_file_is_not_translated_into_itself(trained: Project, tmp_path: Path) -> None:
    text, link = tmp_path / "text", tmp_path / "link"
    text.write_text(SENTENCE)
    link.symlink_to(text)
    bundle = trained.folder / "runs/config/model.safetensors"
    weights = bundle.read_bytes()
    for arguments in (
        ("--input", text, "--output", text),
        ("--input", link, "--output", text),
        (SENTENCE, "--output", bundle),
        (SENTENCE, "--model", "runs/config", "--output", bundle),
    ):
        result = trained.mtformer("translate", *arguments)
        assert (result.status, "is both input and output" in result.stderr) == (2, True), result.stderr
    assert (text.read_text(), bundle.read_bytes()) == (SENTENCE, weights)


def test_a_redirected_file_is_not_translated_into_itself(trained: Project, tmp_path: Path) -> None:
    (tmp_path / "text").write_text(SENTENCE)
    command = f"{PROGRAM} translate --model {trained.folder / 'runs/config'} --output text <text"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, "is both input and output" in done.stderr) == (2, True)
    assert (tmp_path / "text").read_text() == SENTENCE


def test_an_average_replaces_no_file(trained: Project, tmp_path: Path) -> None:
    run, other = trained.folder / "runs/config", tmp_path / "model.safetensors"
    other.write_text("precious")
    for output in (run / "model.safetensors", run / "checkpoints/mean.safetensors", other):
        assert trained.mtformer("average", "runs/config", "--output", output).status == 2
    assert other.read_text() == "precious"
    mean = run / "mean.safetensors"
    result = trained.mtformer("average", "runs/config", "--output", mean)
    assert (result.status, result.stdout) == (0, f"{mean}\n"), result.stderr
    mean.unlink()


@pytest.mark.parametrize("name", ["out.txt", "out.gz"])
def test_a_bad_byte_leaves_what_was_at_the_output(trained: Project, tmp_path: Path, name: str) -> None:
    output = tmp_path / name
    output.write_text("precious")
    result = trained.mtformer("translate", "--beam-size", "1", "--output", output, stdin=b"\xff\n")
    assert result.status == 2
    assert "standard input:1: byte 0xff" in result.stderr
    assert (output.read_text(), list(tmp_path.iterdir())) == ("precious", [output])


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_job_keeps_the_old_output_and_resumes(
    trained: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, status: int
) -> None:
    text, output = tmp_path / "text", tmp_path / "out.txt"
    text.write_text(f"{SENTENCE}\n" * 1_001)
    output.write_text("precious")
    command = ["translate", "--beam-size", "1", "--input", str(text), "--output", str(output)]
    translate = Translator.translate

    def interrupted(self: Translator, texts: Sequence[str], **kwargs: Any) -> list[list[Translation]]:
        if len(texts) == 1:  # the second window
            signal.raise_signal(number)
        return translate(self, texts, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Translator, "translate", interrupted)
        result = trained.mtformer(*command)
    assert result.status == status, result.stderr
    assert "out.txt.part contains the output so far" in result.stderr
    assert (output.read_text(), (tmp_path / "out.txt.part").read_text()) == ("precious", f"{TRANSLATION}\n" * 1_000)
    refused = trained.mtformer(*command)
    assert (refused.status, "--resume" in refused.stderr) == (2, True)
    resumed = trained.mtformer(*command, "--resume")
    assert resumed.status == 0, resumed.stderr
    assert output.read_text() == f"{TRANSLATION}\n" * 1_001
    assert sorted(tmp_path.iterdir()) == [output, text]


@pytest.mark.parametrize("arguments", ["--version", "data sample src:test.en,tgt:test.de --pair=en-de"])
def test_a_full_disk_behind_standard_output_is_reported(project: Project, arguments: str) -> None:
    command = f"{PROGRAM} {arguments} > /dev/full"
    done = subprocess.run(["bash", "-c", command], cwd=project.folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "No space left on device" in done.stderr
    assert "unexpected" not in done.stderr
