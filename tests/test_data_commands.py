"""``data sample``, ``eval --data`` and the phrasebook, as a user meets them on the command line."""

import json
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from typing import get_args

import pytest
import yaml
from conftest import Project

from mtformer.config import BuiltinText, parse_source
from mtformer.data.sources.parallel import sample_pairs
from mtformer.phrasebook.splits import held_out, train


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    path = tmp_path / "numbers.tsv"
    path.write_text("".join(f"{n}\tn{n}\n" for n in range(1_000)))
    return path


def sampled(project: Project, *arguments: str | Path) -> list[list[str]]:
    result = project.mtformer("data", "sample", *arguments)
    assert result.status == 0, result.stderr
    return [line.split("\t") for line in result.stdout.splitlines()]


def test_a_sample_is_spread_over_the_source_and_keeps_its_order(project: Project, numbers: Path) -> None:
    command = (f"tsv:{numbers}", "--pair", "en-de", "-n", "50")
    pairs = sampled(project, *command)
    drawn = [int(src) for src, _ in pairs]
    assert [tgt for _, tgt in pairs] == [f"n{n}" for n in drawn]
    assert drawn == sorted(set(drawn))
    assert len(drawn) == 50
    assert 350 < sum(drawn) / 50 < 650
    assert sampled(project, *command) == pairs
    assert sampled(project, *command, "--seed", "2") != pairs


def test_a_source_with_fewer_pairs_is_printed_whole(project: Project, numbers: Path) -> None:
    assert len(sampled(project, f"tsv:{numbers}", "--pair", "en-de", "-n", "2000")) == 1_000


@pytest.mark.parametrize(("src", "tgt"), list(permutations(["en", "de", "zh"], 2)))
def test_the_phrasebook_in_all_directions(src: str, tgt: str) -> None:
    source = parse_source("builtin:phrasebook,split:test,size:5", src, tgt)
    pairs = [(saying.text(src), saying.text(tgt)) for saying in held_out("test")[:5]]
    assert sample_pairs(source, src, tgt, n=9, seed=1) == pairs


def test_the_languages_stand_in_paths_as_in_a_config(project: Project) -> None:
    named = sampled(project, "src:test.{src_lang},tgt:test.{tgt_lang}", "--pair", "de-en", "-n", "3")
    assert named == sampled(project, "src:test.de,tgt:test.en", "--pair", "de-en", "-n", "3")


def test_samples_of_the_phrasebook_are_drawn_as_its_seed_says(project: Project) -> None:
    command = ("builtin:phrasebook", "--pair", "en-de", "-n", "20")
    assert len(sampled(project, *command)) == 20
    assert sampled(project, *command, "--seed", "3") == sampled(project, "builtin:phrasebook,seed:3", *command[1:])
    samples = sampled(project, *command, "--seed", "3")  # sources are typed in several ways, targets are not
    assert [target for _, target in samples] == [saying.de for saying in train(20, 3)]


def test_the_help_lists_the_splits(project: Project) -> None:
    shown = " ".join(project.mtformer("data", "sample", "--help").stdout.split())
    assert f"Splits of the phrasebook: {', '.join(get_args(BuiltinText.model_fields['split'].annotation))}." in shown


def test_an_empty_source_is_reported(project: Project, tmp_path: Path) -> None:
    (tmp_path / "empty.tsv").touch()
    result = project.mtformer("data", "sample", f"tsv:{tmp_path}/empty.tsv", "--pair", "en-de")
    assert (result.status, result.stdout) == (0, "")
    assert f"tsv:{tmp_path}/empty.tsv contains no sentence pairs" in result.stderr
    result = project.mtformer(
        "data", "fetch", f"tsv:{tmp_path}/empty.tsv", "--pair", "en-de", "--output", tmp_path / "out"
    )
    assert (result.status, f"{tmp_path}/empty.tsv contains no sentence pairs" in result.stderr) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["tsv", "--pair", "en-de"], "tsv: write a source as key:value, such as tsv:pairs.tsv"),
        (["tsv:none.tsv", "--pair", "en-de"], "there is no file"),
        (["tsv:.", "--pair", "en-de"], "is a folder, not a file"),
        (["file:none.tsv", "--pair", "en-de"], "a source is one of {src: …, tgt: …}, {moses: …}, {tsv: …}"),
        (["builtin:phrasebok", "--pair", "en-de"], "builtin: given `phrasebok`, allowed: phrasebook"),
        (["builtin:phrasebook,sice:3", "--pair", "en-de"], "sice: there is no such key; did you mean `size`?"),
        (["builtin:phrasebook,split:dev", "--pair", "en-de"], "split: given `dev`, allowed: train, valid, test"),
        (["builtin:phrasebook,size:none", "--pair", "en-de"], "size: given `none`, allowed: a whole number"),
        (["builtin:phrasebook", "--pair", "en-fr"], "the phrasebook has en, de, zh, not fr"),
        (["tsv:test.en,header:maybe", "--pair", "en-de"], "header: given `maybe`, allowed: true, false or auto"),
        (
            ["csv:test.en,delimiter:ab", "--pair", "en-de"],
            "delimiter: given `ab`, allowed: a single character",
        ),
        (["tmx:test.en", "--pair", "en-de"], "test.en:1: this is not valid XML: syntax error"),
        (["jsonl:test.en", "--pair", "en-de"], "test.en:1: this line is not JSON"),
        (["moses:test", "--pair", "en-fr"], "test.fr, compressed or not; there are: test.de, test.en"),
        (["tsv:a.tsv,tsv:b.tsv", "--pair", "en-de"], "write a source as key:value"),
        (["builtin:phrasebook", "--pair", "en-en"], "--pair en-en: both languages are en"),
        (["builtin:phrasebook", "--pair", "ende"], "--pair ende: give the languages as in en-de"),
        (["builtin:phrasebook", "--pair", "english-german"], "--pair english-german: give the languages as in en-de"),
        (["builtin:phrasebook", "--pair", "pt-BR-en"], "the phrasebook has en, de, zh, not pt-BR"),
    ],
)
def test_a_source_that_cannot_be_read_is_told(project: Project, arguments: list[str], told: str) -> None:
    result = project.mtformer("data", "sample", *arguments)
    assert (result.status, result.stdout) == (2, "")
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_fetch_writes_parallel_files_and_prints_how_to_name_them(project: Project, tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text('id,de,en\n1,"b, b",a\n\n2,d,"c\nc"\n')
    for source, name in ((f"csv:{tmp_path}/pairs.csv", "pairs"), ("builtin:phrasebook,split:valid,size:5", "valid")):
        command = ("data", "fetch", source, "--pair", "en-de", "--output", tmp_path / "out")
        result = project.mtformer(*command)
        assert result.status == 0, result.stderr
        assert result.stdout == f"src:{tmp_path}/out/{name}.en,tgt:{tmp_path}/out/{name}.de\n"
        counts = ("2 pairs", "; lines dropped: blank (1)") if name == "pairs" else ("5 pairs", "")
        told = f"{counts[0]} written to {tmp_path}/out/{name}.en and {tmp_path}/out/{name}.de{counts[1]}\n"
        assert result.stderr.endswith(told)
        assert sampled(project, result.stdout.strip(), "--pair", "en-de") == sampled(project, source, "--pair", "en-de")
        again = project.mtformer(*command)
        assert again.status == (2 if name == "pairs" else 0)  # a file may have changed, the phrasebook has not
        assert ("exists already" if name == "pairs" else "complete already") in again.stderr
    assert (tmp_path / "out" / "pairs.en").read_text() == "a\nc c\n"
    note = json.loads((tmp_path / "out" / "pairs.origin.json").read_text())
    assert (note["source"], note["pairs"]) == ({"csv": f"{tmp_path}/pairs.csv"}, 2)


def test_fetch_leaves_no_files_where_a_source_cannot_be_read_or_a_file_is_in_the_way(
    project: Project, tmp_path: Path
) -> None:
    (tmp_path / "text.en").write_text("a\nb\n")
    (tmp_path / "text.de").write_text("c\n")
    (tmp_path / "mine").mkdir()
    for name in ("new", "mine"):
        broken = project.mtformer(
            "data", "fetch", f"moses:{tmp_path}/text", "--pair", "en-de", "--output", tmp_path / name
        )
        assert (broken.status, "not parallel line by line" in broken.stderr) == (2, True)
    assert not (tmp_path / "new").exists()  # but a folder that was there before stays
    assert [*(tmp_path / "mine").iterdir()] == []
    (tmp_path / "text.de").write_text("c\nd\n")
    unnameable = tmp_path / "newer" / ("x" * 300)
    too_long = project.mtformer("data", "fetch", f"moses:{tmp_path}/text", "--pair", "en-de", "--output", unnameable)
    assert (too_long.status, "cannot make the folder" in too_long.stderr) == (2, True)
    onto_itself = project.mtformer("data", "fetch", f"moses:{tmp_path}/text", "--pair", "en-de", "--output", tmp_path)
    assert (onto_itself.status, "text.en exists already" in onto_itself.stderr) == (2, True)
    in_the_way = project.mtformer(
        "data", "fetch", f"moses:{tmp_path}/text", "--pair", "en-de", "--output", tmp_path / "text.en"
    )
    assert (in_the_way.status, "cannot make the folder" in in_the_way.stderr) == (2, True)


def test_sources_are_read_from_process_substitutions_and_standard_input(project: Project) -> None:
    command = f"""
        {sys.executable} -m mtformer data sample src:<(gzip -c test.en),tgt:<(xz -c test.de) --pair en-de &&
        paste test.en test.de | {sys.executable} -m mtformer data sample tsv:- --pair en-de
    """
    done = subprocess.run(["bash", "-c", command], cwd=project.folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = sampled(project, "src:test.en,tgt:test.de", "--pair", "en-de")
    assert [line.split("\t") for line in done.stdout.splitlines()] == expected * 2


def test_eval_scores_a_source_as_it_scores_the_same_pairs_in_files(copied: Project, tmp_path: Path) -> None:
    pairs = [(copied.folder / f"test.{language}").read_text(encoding="utf-8").splitlines() for language in ("en", "de")]
    (tmp_path / "test.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in zip(*pairs, strict=True)))
    from_source = copied.mtformer("eval", "--json", "--data", f"tsv:{tmp_path / 'test.tsv'}")
    from_config = copied.mtformer("eval", "--json")
    assert from_source.status == 0
    by_source, by_config = (json.loads(result.stdout) for result in (from_source, from_config))
    assert by_source.pop("test_set") != by_config.pop("test_set")
    assert by_source == by_config
    both = copied.mtformer("eval", "--data", "tsv:a", "--src", "b", "--ref", "c")
    assert (both.status, "not several of them" in both.stderr) == (2, True)


def test_training_reports_the_problems_of_all_its_sources_before_it_begins(project: Project, tmp_path: Path) -> None:
    texts = {"a.tsv": "id\ten\tfr\n1\ta\tb\n", "b.jsonl": '{"en": "a"}\n', "c.csv": "1,a,b\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    config = yaml.safe_load(project.config.read_text())
    config["data"]["train"].append({"tsv": f"{tmp_path}/a.tsv"})
    config["data"]["valid"].append({"jsonl": f"{tmp_path}/b.jsonl"})
    config["data"]["test"] = [{"csv": f"{tmp_path}/c.csv"}]
    project.config.write_text(yaml.safe_dump(config))
    result = project.mtformer("train", project.config)
    assert (result.status, result.stdout) == (2, "")
    told = [line.rpartition("/")[2] for line in result.stderr.splitlines() if str(tmp_path) in line]
    assert told == [
        "a.tsv: the header does not name the target (de); the columns are 1 'id', 2 'en', 3 'fr': set tgt_column; if "
        "the first row is a pair, set header: false",
        "b.jsonl:1: there is no text under 'de'; the keys are: en; set tgt_key",
        "c.csv: it is not clear which columns contain the texts; the first row is 1 '1', 2 'a', 3 'b': set src_column "
        "and tgt_column",
    ]
    assert not list((project.folder / "runs").rglob("*.yaml"))


@pytest.mark.parametrize("languages", [("en", "de"), ("de", "en")])
def test_training_warns_of_languages_that_are_swapped(project: Project, languages: tuple[str, str]) -> None:
    settings = ["training.max_steps=1", *map("data.{}_lang={}".format, ("src", "tgt"), languages)]
    result = project.mtformer("train", project.config, *(word for one in settings for word in ("--set", one)))
    assert result.status == 0, result.stderr
    assert ("train.en: most of the first 200 texts that should be in de and en are in another" in result.stderr) == (
        languages == ("de", "en")
    )


def test_training_warns_of_validation_text_whose_sides_are_swapped(project: Project) -> None:
    settings = ["training.max_steps=1", "data.valid=[{src: valid.de, tgt: valid.en}]"]
    result = project.mtformer("train", project.config, *(word for one in settings for word in ("--set", one)))
    assert result.status == 0, result.stderr
    assert "valid.de: most of the first 20 texts that should be in en and de are in another" in result.stderr
    assert result.stderr.count("that should be in") == 1


@pytest.mark.parametrize("n_missing", [0, 1])
@pytest.mark.parametrize("part", ["valid", "test"])
def test_training_warns_of_validation_and_test_text_that_slips(project: Project, part: str, n_missing: int) -> None:
    pairs = sample_pairs(parse_source("builtin:phrasebook", "en", "de"), "en", "de", 300, 1)
    targets = [pair.tgt for pair in pairs[n_missing:]] + ["Zu viel."] * n_missing
    for name, lines in (("late.en", [pair.src for pair in pairs]), ("late.de", targets)):
        (project.folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    settings = [f"data.{part}=[{{src: {part}.en, tgt: {part}.de}}, {{src: late.en, tgt: late.de}}]"]
    result = project.mtformer("train", project.config, "--dry-run", *(f"--set={one}" for one in settings))
    assert result.status == 0, result.stderr
    warnings = [line for line in result.stderr.splitlines() if "out of alignment" in line]
    assert [line.startswith("late.en: lines ") for line in warnings] == [True] * n_missing
    assert all(line.endswith(": the translations stand 1 line earlier") for line in warnings)


def test_training_warns_of_a_source_without_pairs(project: Project) -> None:
    (project.folder / "empty.tsv").touch()
    settings = ["training.max_steps=1", "data.train=[{src: train.en, tgt: train.de}, {tsv: empty.tsv}]"]
    result = project.mtformer("train", project.config, *(word for one in settings for word in ("--set", one)))
    assert result.status == 0, result.stderr
    assert result.stderr.count("contains no sentence pairs") == 1
    assert "\nempty.tsv contains no sentence pairs\n" in result.stderr


def test_a_run_on_the_phrasebook_needs_no_file(project: Project) -> None:
    config = yaml.safe_load(project.config.read_text())
    config["data"] = {
        "src_lang": "zh",
        "tgt_lang": "de",
        "train": [{"builtin": "phrasebook", "size": 300}],
        "valid": [{"builtin": "phrasebook", "split": "valid", "size": 10}],
        "test": [{"builtin": "phrasebook", "split": "compositional", "size": 10}],
    }
    config["tokenizer"] = {}  # a size that the text supports
    config["training"]["max_steps"] = 3
    project.config.write_text(yaml.safe_dump(config))
    result = project.mtformer("train", project.config)
    assert result.status == 0, result.stderr
    assert "300 training pairs" in result.stderr
    scores = json.loads(project.mtformer("eval", "--json").stdout)
    assert scores["sentences"] == 10
