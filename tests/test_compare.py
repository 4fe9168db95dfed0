"""``mtformer compare``: what it accepts, what it shows, and what it refuses."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml
from conftest import Project

from mtformer.bundle.format import load_bundle, save_bundle
from mtformer.cli.options import has_colours
from mtformer.evaluate.comparison import compare_systems
from mtformer.text.languages import language_of_script

FIXTURES = Path(__file__).parent / "fixtures"
PAIRS = [(row["src"], row["translation"]) for row in json.loads((FIXTURES / "bundle-3.json").read_text("utf-8"))]
QUICK = ("--resamples", "200", "--trials", "200", "--beam-size", "1")


@pytest.fixture
def place(tmp_path: Path) -> Project:
    """A folder with a test set of eight sentences."""
    (tmp_path / "test.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in PAIRS), encoding="utf-8")
    for name, lines in (("src.txt", [src for src, _ in PAIRS]), ("ref.txt", [tgt for _, tgt in PAIRS])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Project(tmp_path, tmp_path / "none.yaml")


def write_lines(place: Project, name: str, change: Callable[[str], str]) -> list[str]:
    lines = [change(tgt) for _, tgt in PAIRS]
    (place.folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return lines


def make_run(place: Project, name: str, *, noise: float = 0.0, seed: int = 1, **config: Any) -> Path:
    """Make the folder of a run, whose model knows the test set by heart except for the noise in its weights."""
    run = place.folder / "runs" / name
    run.mkdir(parents=True)
    bundle = load_bundle(FIXTURES / "bundle-3.safetensors")
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in bundle.model.parameters():
            parameter.add_(noise * torch.randn_like(parameter))
    save_bundle(run / "model.safetensors", bundle)
    source = {"tsv": "test.tsv"}
    sections: dict[str, Any] = {
        "data": {"src_lang": "en", "tgt_lang": "de", "train": [source], "valid": [source], "test": [source]},
        "training": {"seed": seed},
        "run": {"name": name},
        "provenance": {"fingerprints": {"train": "a"}, "versions": {"mtformer": name}},
    }
    (run / "config.yaml").write_text(yaml.safe_dump(sections | config), encoding="utf-8")
    return run


def test_a_model_and_a_file_are_compared_on_the_test_set_of_the_run(place: Project) -> None:
    make_run(place, "good")
    lines = write_lines(place, "bad.txt", lambda text: text.replace("e", "i").replace(" ist", ""))
    result = place.mtformer("compare", "bad.txt", "runs/good", *QUICK)
    assert (result.status, result.stderr) == (0, "")
    expected = compare_systems(
        {"bad.txt": lines, "good": [tgt for _, tgt in PAIRS]},
        [[tgt for _, tgt in PAIRS]],
        tgt_lang="de",
        n_resamples=200,
        n_trials=200,
    )
    for sentence in expected.verdicts():
        assert sentence + "\n" in result.stdout
    assert "good is better than bad.txt: +" in result.stdout
    assert "test.tsv: 8 sentences, fingerprint " in result.stdout
    assert "BLEU: nrefs:1|bs:200|ar:200|seed:12345|case:mixed|" in result.stdout
    assert "  source     The kettle is empty.\n  reference  Der Kessel ist leer.\n" in result.stdout
    assert "  bad.txt    [-Dir Kissil liir-].\n  good       {+Der Kessel ist leer+}.\n" in result.stdout
    assert place.mtformer("compare", "bad.txt", "runs/good", *QUICK).stdout == result.stdout
    other = place.mtformer("compare", "bad.txt", "runs/good", *QUICK, env={"SACREBLEU_SEED": "7"})
    assert "|seed:7|" in other.stdout
    assert other.stdout.replace("seed:7", "seed:12345") != result.stdout


def test_a_run_its_bundle_and_a_file_of_its_translations_are_the_same_system(place: Project) -> None:
    make_run(place, "one")
    bundle = Path(shutil.copy(place.folder / "runs/one/model.safetensors", place.folder / "two.safetensors"))
    write_lines(place, "three.txt", str)
    result = place.mtformer("compare", "runs/one", bundle, "three.txt", *QUICK, "--format", "json")
    shown = json.loads(result.stdout)
    assert shown["systems"] == ["one", "two.safetensors", "three.txt"]
    for metric in shown["metrics"]:
        assert [system.get("p_bootstrap") for system in metric["systems"]] == [None, 1.0, 1.0]
        assert [system.get("p_randomization") for system in metric["systems"]] == [None, 1.0, 1.0]
    assert all(text.startswith("no difference between ") for text in shown["verdicts"])
    assert shown["differences"] == {"two.safetensors": [], "three.txt": []}


@pytest.mark.slow
def test_runs_that_differ_in_the_seed_only_are_shown_with_mean_and_standard_deviation(place: Project) -> None:
    for seed in (1, 2, 3):
        make_run(place, f"noisy-{seed}", noise=0.15, seed=seed)
    make_run(place, "other", noise=0.15, seed=4, training={"seed": 4, "label_smoothing": 0.2})
    runs = ["runs/other", "runs/noisy-1", "runs/noisy-2", "runs/noisy-3"]
    shown = json.loads(place.mtformer("compare", *runs, *QUICK, "--format", "json").stdout)
    [group] = shown["groups"]
    assert (group["name"], group["systems"]) == ("noisy-{1,2,3}", ["noisy-1", "noisy-2", "noisy-3"])
    rows = []
    for metric in shown["metrics"]:
        scores = [system["score"] for system in metric["systems"][1:]]
        found = group["scores"][metric["name"]]
        assert (found["mean"], found["sd"]) == pytest.approx((mean(scores), stdev(scores)))
        rows.append(f"{mean(scores):.2f} ± {stdev(scores):.2f}")
    assert group["scores"]["BLEU"]["sd"] > 0
    text = place.mtformer("compare", *runs, *QUICK).stdout
    assert "mean ± sample standard deviation (n - 1). The p-values are of single runs" in text
    assert all(row in text for row in rows)
    markdown = place.mtformer("compare", *runs, *QUICK, "--format", "markdown").stdout
    assert f"| noisy-{{1,2,3}}, 3 seeds | {' | '.join(rows)} |\n" in markdown
    latex = place.mtformer("compare", *runs, *QUICK, "--format", "latex").stdout
    assert f"noisy-\\{{1,2,3\\}}, 3 seeds & {' & '.join(rows)} \\\\\n".replace("±", "$\\pm$") in latex


def test_one_system_is_scored_without_tests(place: Project) -> None:
    write_lines(place, "a.txt", lambda text: text.replace(".", ""))
    write_lines(place, "b.txt", str)
    shown, compared = (
        json.loads(place.mtformer("compare", *names, "--ref", "ref.txt", *QUICK, "--format", "json").stdout)
        for names in (["a.txt"], ["a.txt", "b.txt"])
    )
    assert (shown["systems"], shown["verdicts"], shown["differences"]) == (["a.txt"], [], {})
    for alone, metric in zip(shown["metrics"], compared["metrics"], strict=True):
        assert alone["systems"] == metric["systems"][:1]
        assert alone["signatures"] == {"bootstrap": metric["signatures"]["bootstrap"]}
    [command] = shown["sacrebleu"]
    seed, *arguments = shlex.split(command)
    assert seed == "SACREBLEU_SEED=12345"
    table = subprocess.run(
        [sys.executable, "-m", *arguments, "-w", "4"], capture_output=True, check=True, cwd=place.folder
    ).stdout.decode()
    for metric in shown["metrics"]:
        [system] = metric["systems"]
        assert f"{metric['name']}|{metric['signatures']['bootstrap']} = {system['score']:.4f}" in table
        assert f"(μ = {system['mean']:.4f} ± {system['ci']:.4f})" in table
    text = place.mtformer("compare", "a.txt", "--ref", "ref.txt", *QUICK).stdout
    assert "In parentheses: 95 % confidence intervals.\n" in text
    assert "\n\n\n" not in text
    assert "|ar:" not in text


def test_tables_agree_with_each_other(place: Project) -> None:
    write_lines(place, "a_b.txt", lambda text: text.lower())
    write_lines(place, "c.txt", lambda text: text.replace(".", ""))
    command = ["compare", "a_b.txt", "c.txt", "--ref", "ref.txt", *QUICK, "--format"]
    shown = json.loads(place.mtformer(*command, "json").stdout)
    for metric in shown["metrics"]:
        for system in metric["systems"]:
            assert 0 <= system["low"] <= system["high"]
            assert metric["name"] == "TER" or system["high"] <= 100
    bleu, chrf, ter = (
        "{score:.2f} ({low:.2f} to {high:.2f})".format_map(metric["systems"][0]) for metric in shown["metrics"]
    )
    markdown = place.mtformer(*command, "markdown").stdout.splitlines()
    assert markdown[:2] == ["| system | BLEU | chrF2 | TER |", "| --- | ---: | ---: | ---: |"]
    assert markdown[2] == f"| a_b.txt | {bleu} | {chrf} | {ter} |"
    latex = place.mtformer(*command, "latex").stdout
    assert f"a\\_b.txt & {bleu} & {chrf} & {ter} \\\\\n" in latex
    assert latex.endswith("\\bottomrule\n\\end{tabular}\n")
    text = place.mtformer(*command, "text").stdout
    assert re.search(rf"a_b\.txt +{re.escape(bleu)} ", text)
    assert f"ref.txt: 8 sentences, fingerprint {shown['fingerprint']} of the references alone\n" in text
    written = place.mtformer(*command, "latex", "--output", "table.tex")
    assert written.stdout == ""
    assert (place.folder / "table.tex").read_text(encoding="utf-8") == latex


@pytest.mark.parametrize("language", ["de", "zh"])
def test_the_commands_of_sacrebleu_print_the_same_numbers(language: str, place: Project) -> None:
    chinese = ["我吃了一个苹果。", "他买了两本书。", "水很热，不能喝。"]
    # So many that randomization hardly ever swaps all or none of them.
    references = 4 * (chinese if language == "zh" else [tgt for _, tgt in PAIRS])
    changed = [text.replace("了", "的").replace("er", "re") for text in references]
    shortened = [text[:-3] for text in references]
    for name, lines in (("ref", references), ("a file", changed), ("b", shortened)):
        (place.folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = ["compare", "a file", "b", "--ref", "ref", "--seed", "7", *QUICK, "--format", "json"]
    shown = json.loads(place.mtformer(*command).stdout)
    assert ("--ter-asian-support" in shown["sacrebleu"][0]) == (language == "zh")
    for test, printed in zip(("bootstrap", "randomization"), shown["sacrebleu"], strict=True):
        seed, _, *arguments = shlex.split(printed)
        environment = os.environ | {"SACREBLEU_SEED": seed.removeprefix("SACREBLEU_SEED=")}
        done = subprocess.run(
            [sys.executable, "-m", *("sacrebleu", *arguments, "-w", "4")],
            capture_output=True,
            check=True,
            cwd=place.folder,
            env=environment,
        )
        table = done.stdout.decode()
        p_values = [metric["systems"][1][f"p_{test}"] for metric in shown["metrics"]]
        assert re.findall(r"p = ([\d.]+)", table) == [f"{value:.4f}" for value in p_values]
        for metric in shown["metrics"]:
            assert metric["signatures"][test] in table
            assert all(f"{system['score']:.4f}" in table for system in metric["systems"])


@pytest.mark.parametrize("option", ["--resamples", "--trials"])
def test_samples_too_few_to_show_any_difference_are_refused(option: str, place: Project) -> None:
    for name, text in (("ref", "ein kleiner Hund"), ("b", "eine Katze")):
        (place.folder / name).write_text(f"{text}\n" * 50, encoding="utf-8")
    compared = ("compare", "ref", "b", "--ref", "ref", "--resamples", "20", "--trials", "20")
    assert "b is worse than ref: " in place.mtformer(*compared).stdout
    refused = place.mtformer(*compared, option, "19")
    assert (refused.status, f"Invalid value for '{option}': given `19`, allowed: 20 or more" in refused.stderr) == (
        2,
        True,
    )


@pytest.mark.parametrize("names", [("-", "b", "--ref", "ref"), ("ref", "b", "--ref", "-")])
def test_there_are_no_commands_for_standard_input_which_sacrebleu_does_not_read(
    names: tuple[str, ...], place: Project
) -> None:
    for name in ("ref", "b"):
        (place.folder / name).write_text(f"ein {name}\n", encoding="utf-8")
    result = place.mtformer("compare", *names, *QUICK, stdin="ein Haus\n")
    assert (result.status, "sacrebleu" in result.stdout) == (0, False)


@pytest.mark.parametrize(
    ("text", "language", "tokenize"),
    [("我吃了苹果", "zh", "zh"), ("私はりんごを食べた", "ja", "char"), ("나는 사과를 먹었다", "ko", "char")],
)
def test_without_a_model_the_script_of_the_references_tells_how_to_count_words(
    text: str, language: str, tokenize: str, place: Project
) -> None:
    assert language_of_script(text) == language
    assert language_of_script("ein Apfel 苹果 und noch ein Apfel und noch einer") == "und"
    for name in ("ref", "a", "b"):
        (place.folder / name).write_text(f"{text}\n{text}。\n", encoding="utf-8")
    shown = json.loads(place.mtformer("compare", "a", "b", "--ref", "ref", *QUICK, "--format", "json").stdout)
    assert shown["metrics"][0]["systems"][0]["score"] == pytest.approx(100)
    assert f"|tok:{tokenize}" in shown["metrics"][0]["signatures"]["bootstrap"]
    assert "asian:" + ("no" if language == "ko" else "yes") in shown["metrics"][2]["signatures"]["bootstrap"]


def test_colours_mark_differences_on_a_terminal_unless_they_are_not_wanted(
    place: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(place, "a.txt", str)
    write_lines(place, "b.txt", lambda text: text.replace("leer", "voll"))
    command = ["compare", "a.txt", "b.txt", "--ref", "ref.txt", *QUICK]
    assert "ist [-leer-]." in place.mtformer(*command).stdout
    monkeypatch.setattr("mtformer.cli.options.has_colours", lambda: True)
    assert "ist \x1b[31mleer\x1b[0m." in place.mtformer(*command).stdout
    assert place.mtformer(*command, "--output", "plain.txt").status == 0
    assert "\x1b" not in (place.folder / "plain.txt").read_text(encoding="utf-8")


def test_the_comparison_fits_a_terminal(place: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    write_lines(place, "a.txt", str)
    write_lines(place, "the_other_system.txt", lambda text: text.replace("leer", "voll"))
    command = ["compare", "a.txt", "the_other_system.txt", "--ref", "ref.txt", *QUICK]
    whole = place.mtformer(*command).stdout
    monkeypatch.setattr("mtformer.cli.options.terminal_columns", lambda: 80)
    lines = place.mtformer(*command).stdout.partition("The same numbers")[0].splitlines()
    assert all(len(line) <= 80 or len(line.split()) == 1 for line in lines)
    assert max(map(len, whole.splitlines())) > 120
    assert place.mtformer(*command, "--output", "plain.txt").status == 0
    assert (place.folder / "plain.txt").read_text(encoding="utf-8") == whole


@pytest.mark.parametrize(
    ("terminal", "environment", "coloured"), [(True, "", True), (True, "1", False), (False, "", False)]
)
def test_only_a_terminal_has_colours_and_only_without_no_color(
    terminal: bool, environment: str, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: terminal))
    monkeypatch.setenv("NO_COLOR", environment)
    monkeypatch.setenv("TERM", "xterm")
    assert has_colours() is coloured


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["a.txt"], "files of translations need references: give --ref, --data or --testset"),
        (
            ["saved.jsonl", "a.txt", "--ref", "ref.txt"],
            "saved.jsonl contains JSON: give a file with a translation on each",
        ),
        (["a.txt", "./a.txt", "--ref", "ref.txt"], "a.txt is given twice: a system cannot be compared with itself"),
        (["a.txt", "ref.txt"], "files of translations need references: give --ref, --data or --testset"),
        (["a.txt", "missing.txt", "--ref", "ref.txt"], "there is no run or file missing.txt"),
        (["a.txt", "short.txt", "--ref", "ref.txt"], "short.txt has 7 lines, the test set ref.txt has 8"),
        (["a.txt", "empty.txt", "--ref", "ref.txt"], "empty.txt is empty: it should have 8 translations, one a line"),
        (["a.txt", "b.txt", "--ref", "empty.txt"], "the reference empty.txt is empty"),
        (["a.txt", "-", "--ref", "-"], "standard input cannot be read twice: name files for all inputs but one"),
        (["a.txt", "b.txt", "--src", "-", "--ref", "-"], "standard input cannot be read twice"),
        (["a.txt", "b.txt", "--src", "-", "--ref", "ref.txt"], "standard input has 0 lines, ref.txt has 8"),
        (["a.txt", "b.txt", "--ref", "ref.txt", "--ref", "short.txt"], "ref.txt has 8 lines, short.txt has 7"),
        (["a.txt", "b.txt", "--ref", "ref.txt", "--data", "tsv:test.tsv"], "give --ref, or --data, or --testset"),
        (["a.txt", "b.txt", "--data", "tsv:test.tsv"], "the files do not tell their languages: give --pair"),
        (["a.txt", "b.txt", "--src", "src.txt"], "give both --src and --ref"),
        (["a.txt", "b.txt", "--ref", "ref.txt", "--pair", "de"], "--pair de: give the languages as in en-de"),
        (["a.txt", "runs/one", "--pair", "en-de"], "--pair is for files of translations alone"),
        (["missing.txt", "a.txt"], "there is no run or file missing.txt"),
        (["runs/on", "runs/reverse"], "there is no run or file runs/on; did you mean runs/one?"),
        (["runs/empty", "runs/one"], "there is no model at runs/empty; the newest run here is runs/"),
        (["runs/exported", "runs/one"], "runs/exported is a model exported for CTranslate2; this takes the bundle"),
        (["runs/one", "runs/reverse"], "one translates en to de, reverse de to en: they cannot be compared"),
        (["runs/one", "runs/elsewhere"], "the runs of one and elsewhere have different test sets: give --data, or"),
        (["a.txt", "runs/one", "--output", "test.tsv"], "test.tsv is both input and output"),
        (["a.txt", "b.txt", "--ref", "ref.txt", "--output", "b.txt"], "b.txt is both input and output"),
        (["a.txt", "runs/one/model.safetensors", "--output", "runs/one/model.safetensors"], "both input and output"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_sentence(arguments: list[str], told: str, place: Project) -> None:
    for name in ("a.txt", "b.txt"):
        write_lines(place, name, str)
    (place.folder / "short.txt").write_text("x\n" * 7)
    (place.folder / "empty.txt").touch()
    (place.folder / "saved.jsonl").write_text('{"hyp": "Ein Haus."}\n' * 9)
    if any("runs" in argument for argument in arguments):
        run = make_run(place, "one")
        elsewhere = make_run(place, "elsewhere")
        config = (elsewhere / "config.yaml").read_text()
        (place.folder / "other.tsv").write_text("A kettle.\tEin Kessel.\n")
        (elsewhere / "config.yaml").write_text(config.replace("test.tsv", "other.tsv"))
        bundle = load_bundle(run / "model.safetensors")
        header = bundle.header.model_copy(update={"src_lang": "de", "tgt_lang": "en"})
        (place.folder / "runs" / "reverse").mkdir()
        save_bundle(place.folder / "runs/reverse/model.safetensors", replace(bundle, header=header))
        for name in ("empty", "exported"):
            (place.folder / "runs" / name).mkdir()
        for name in ("mtformer.json", "model.bin"):
            (place.folder / "runs/exported" / name).touch()
    before = {path: path.read_bytes() for path in place.folder.rglob("*") if path.is_file()}
    result = place.mtformer("compare", *arguments, *QUICK)
    assert (result.status, result.stdout) == (2, "")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1
    assert {path: path.read_bytes() for path in place.folder.rglob("*") if path.is_file()} == before
