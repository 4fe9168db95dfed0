"""``mtformer data check``: what it reports of texts with known faults, and the clean copy that it writes."""

import gzip
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from conftest import Project, phrasebook_pairs, sentence_pairs, write_pairs

from mtformer.config import (
    Config,
    LanguagePair,
    TextFiles,
    dump_override,
    load_config,
    parse_config,
    parse_source,
    valid_run_name,
)
from mtformer.data.clean import checkup
from mtformer.data.clean.checkup import check
from mtformer.data.clean.filters import Filters, Judgement
from mtformer.data.clean.learned import LearnedRules
from mtformer.data.clean.report import as_config, as_text, write_clean
from mtformer.data.clean.source_check import SourceChecker
from mtformer.data.sources.parallel import ParallelText
from mtformer.data.store import Portion
from mtformer.support.errors import UserError
from mtformer.support.processes.workers import in_order
from mtformer.support.progress import Progress
from mtformer.text.pairs import SentencePair

SLIP = 2_000  # the line where the targets begin to stand a line late
N_PAIRS = 3_000
QUICK = {"type": "char"}  # a tokenizer that is trained at once, where lengths do not matter


def write(path: Path, lines: list[str]) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


@pytest.fixture(scope="module")
def slipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A config whose training text slips, with a copy, an empty side and a sentence of the test set before that."""
    folder = tmp_path_factory.mktemp("slipped")
    pairs = [[src, tgt] for src, tgt in phrasebook_pairs()[: N_PAIRS + 20]]
    train, test = pairs[:N_PAIRS], pairs[N_PAIRS:]
    train[10][1] = train[10][0] = "This line was never translated by anyone."
    train[20][1] = ""
    train[30] = list(test[5])
    sources, targets = [src for src, _ in train], [tgt for _, tgt in train]
    targets = [*targets[: SLIP - 1], "Diese Zeile ist zu viel.", *targets[SLIP - 1 : -1]]
    write(folder / "train.en.gz", sources)
    write(folder / "train.de.gz", targets)
    for number, side in enumerate(("en", "de")):
        write(folder / f"test.{side}", [pair[number] for pair in test])
    data = {
        "src_lang": "en",
        "tgt_lang": "de",
        "train": [{"src": "train.en.gz", "tgt": "train.de.gz"}],
        "valid": [{"src": "test.en", "tgt": "test.de"}],
        "test": [{"src": "test.en", "tgt": "test.de"}],
    }
    (folder / "config.yaml").write_text(yaml.safe_dump({"data": data}))
    return folder / "config.yaml"


@pytest.fixture(scope="module")
def report(slipped: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of that text as JSON; ``--fix`` writes to ``clean`` beside the config."""
    project = Project(slipped.parent, slipped)
    result = project.mtformer("data", "check", slipped, "--json", "--fix", "clean", "--strict")
    assert result.status == 1, result.stderr
    return json.loads(result.stdout)


def test_two_files_are_checked_like_a_config_that_names_them(tmp_path: Path) -> None:
    """With the options of train, and without a config left behind."""
    data = {"src_lang": "en", "tgt_lang": "de", "train": [write_pairs(tmp_path, "text", sentence_pairs(50, seed=1))]}
    project = Project(tmp_path, tmp_path / "config.yaml")
    project.config.write_text(yaml.safe_dump({"data": data}))
    by_config = project.mtformer("data", "check", "config.yaml", "--fix", "one")
    files = ("--src", "text.en", "--tgt", "text.de")
    by_files = project.mtformer("data", "check", *files, "--fix", "two")
    assert by_files.status == 0, by_files.stderr
    assert by_files.stdout == by_config.stdout
    assert "rules not fully applied: diacritics" in by_files.stdout
    assert by_files.stderr.count("\n") == 3  # what the report says is not said twice
    assert not list(tmp_path.glob("text.*.yaml"))
    (tmp_path / "text.en-de.yaml").write_text(project.config.read_text().replace("text.de", "other.de"))
    assert project.mtformer("data", "check", *files).stdout == by_config.stdout
    missing = project.mtformer("data", "check", "--src", "text.en")
    assert (missing.status, missing.stdout) == (2, "")
    assert "needs --tgt" in missing.stderr
    assert missing.stderr.endswith(": mtformer data check --src text.en --tgt FILE --to LANG\n")


def test_the_command_that_trains_on_the_clean_copy_of_two_files_is_printed(tmp_path: Path) -> None:
    write_pairs(tmp_path, "text", sentence_pairs(300, seed=1))
    (tmp_path / "text.de").rename(tmp_path / "my text")
    project = Project(tmp_path, tmp_path / "none.yaml")
    files = ("--src", "text.en", "--tgt", "my text", "--to", "de", "--set", "training.max_steps=1")
    assert project.mtformer("train", *files).status == 0  # on the text as it is, with a config of its own
    fixed = project.mtformer("data", "check", *files, "--fix", "clean: v1.")
    command = fixed.stderr.splitlines()[-1].partition(": mtformer ")[2]
    assert command.startswith("train --src 'clean: v1./text.en' --tgt 'clean: v1./my text' --to de --set ")
    trained = project.mtformer(*shlex.split(command))
    assert (trained.status, trained.stdout) == (0, "runs/clean_ v1/model.safetensors\n"), trained.stderr
    assert "stopped at step 1 " in trained.stderr


@pytest.mark.parametrize("folder", ["v1. ", "fix: c#", "null", "[a], {b}", "it's", ' .a|"b', "20261130", "a\nb", "..."])
def test_a_folder_of_any_name_gives_a_run_a_name_that_train_accepts(folder: str) -> None:
    name = valid_run_name(folder)
    config = "data: {src_lang: en, tgt_lang: de, train: [{builtin: phrasebook}]}"
    assert parse_config(config, Path("c.yaml"), [dump_override("run.name", name)]).run.name == name


def test_a_run_is_named_after_its_folder_as_nearly_as_possible() -> None:
    names = ["clean copy", "clean v1.", "a/b: c?", "..."]
    assert list(map(valid_run_name, names)) == ["clean copy", "clean v1", "a_b_ c_", "run"]
    assert dump_override("run.name", "clean copy") == "run.name=clean copy"


def test_a_slip_is_found_with_its_line_and_its_offset(report: dict[str, Any]) -> None:
    [slip] = report["sources"][0]["out_of_alignment"]
    assert abs(slip["first_line"] - SLIP) <= 5
    assert slip["last_line"] == N_PAIRS
    assert slip["offset"] == 1


def test_problems_are_counted_with_examples_by_line(report: dict[str, Any]) -> None:
    train, *others = report["sources"]
    assert (train["use"], train["pairs"]) == ("train", N_PAIRS)
    assert train["examples"]["copy"][0]["line"] == 11
    assert train["examples"]["empty"] == [{"src": train["examples"]["empty"][0]["src"], "tgt": "", "line": 21}]
    assert 31 in [example["line"] for example in train["examples"]["held_out"]]
    assert train["held_out_exactly"] >= 1
    assert train["problems"].get("misaligned", 0) < 5  # of the pairs as --fix realigns them
    assert [(one["use"], one["problems"]) for one in others] == [("valid", {}), ("test", {})]
    assert report["problems"] == sum(train["problems"].values()) + len(train["out_of_alignment"])


def test_the_most_certain_examples_come_first_or_else_the_first_ones() -> None:
    filters = Filters(["misaligned", "copy"], LanguagePair("en", "de"))
    checker = SourceChecker(ParallelText([], "en", "de"), "train", filters)
    for first, certainty in ((1, [0.5, 0.0, 3.0, 0.0]), (5, [0.0, 1.0, 2.0, 0.0])):
        pairs = [SentencePair(f"source {line}", f"target {line}") for line in range(first, first + 4)]
        rules: list[str | None] = ["misaligned" if value else "copy" for value in certainty]
        portion = Portion(0, LanguagePair("en", "de"), pairs, list(range(first, first + 4)))
        checker.add(portion, Judgement(rules, np.array(certainty), None))
    lines = {rule: [example.line for example in examples] for rule, examples in checker.finish().examples.items()}
    assert lines == {"misaligned": [3, 7, 6], "copy": [2, 4, 5]}


def test_lengths_are_those_of_the_tokenizer_of_the_config(report: dict[str, Any]) -> None:
    lengths = report["lengths"]
    assert lengths["n_pairs"] <= N_PAIRS
    for side in ("src", "tgt"):
        values = list(lengths[side]["percentiles"].values())
        assert values == sorted(values)
        assert 1 < lengths[side]["mean"] < values[-1]
    assert (lengths["max_length"], lengths["cut"]) == (256, 0)


def test_fix_realigns_the_slip_and_rejects_the_other_pairs(slipped: Path, report: dict[str, Any]) -> None:
    clean = slipped.parent / "clean"
    assert {path.name for path in clean.iterdir()} == {
        "train.en.gz",
        "train.de.gz",
        "rejected.tsv",
        "realigned.tsv",
        "repaired.tsv",
        "report.txt",
        "report.json",
    }
    sources, targets = (
        gzip.decompress((clean / f"train.{side}.gz").read_bytes()).decode().splitlines() for side in ("en", "de")
    )
    header, *rejected = [line.split("\t") for line in (clean / "rejected.tsv").read_text().splitlines()]
    assert header == ["source", "line", "rule", "src", "tgt"]
    header, *realigned = [line.split("\t") for line in (clean / "realigned.tsv").read_text().splitlines()]
    assert header == ["source", "src line", "tgt line", "src", "tgt"]
    [original] = load_config(slipped).data.train
    lines = list(ParallelText([original], "en", "de"))
    assert all(lines[int(line) - 1].src == src for _, line, _, src, _ in rejected)
    assert all(int(tgt_line) == int(src_line) + 1 for _, src_line, tgt_line, *_ in realigned if int(src_line) > SLIP)
    assert all(
        (lines[int(src_line) - 1].src, lines[int(tgt_line) - 1].tgt) == (src, tgt)
        for _, src_line, tgt_line, src, tgt in realigned
    )
    assert len(realigned) > 0.95 * (N_PAIRS - SLIP)
    left = {int(row[1]): int(row[2]) for row in realigned}
    places = sorted({*range(1, N_PAIRS + 1)} - {int(row[1]) for row in rejected})
    assert [lines[place - 1].src for place in places] == sources
    assert [lines[left.get(place, place) - 1].tgt for place in places] == targets
    assert len(sources) + len(rejected) == N_PAIRS
    assert json.loads((clean / "report.json").read_text()) == report
    assert (
        f"lines {report['sources'][0]['out_of_alignment'][0]['first_line']:,} to" in (clean / "report.txt").read_text()
    )


def test_clean_text_never_gets_the_name_of_a_report(project: Project) -> None:
    for old, new in (("train.en", "report.txt"), ("train.de", "rejected.tsv")):
        (project.folder / old).rename(project.folder / new)
    source = "data.train=[{src: report.txt, tgt: rejected.tsv}]"
    result = project.mtformer("data", "check", project.config, "--set", source, "--fix", "clean")
    assert result.status == 0, result.stderr
    assert "{src: clean/2-report.txt, tgt: clean/2-rejected.tsv}\n" in result.stderr
    clean = project.folder / "clean"
    assert (clean / "rejected.tsv").read_text().startswith("source\tline\trule\t")
    n_rejected = len((clean / "rejected.tsv").read_text().splitlines()) - 1
    for name in ("2-report.txt", "2-rejected.tsv"):
        assert len((clean / name).read_text().splitlines()) == 400 - n_rejected


def test_lengths_are_those_of_a_sample_of_all_sources(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtformer.data.clean.checkup._FOR_LENGTHS", 100)
    measured: list[SentencePair] = []

    def keep(_: Config, pairs: list[SentencePair], n_pairs: int, tokenizer: None) -> None:
        assert n_pairs == 800
        measured.extend(pairs)

    monkeypatch.setattr("mtformer.data.clean.checkup.measure_lengths", keep)
    (project.folder / "other.tsv").write_text("other\tanderes\n" * 400)
    config = load_config(project.config, ["data.train=[{src: train.en, tgt: train.de}, {tsv: other.tsv}]"])
    check(config)
    assert len(measured) == 100
    assert 30 <= measured.count(SentencePair("other", "anderes")) <= 70


def test_lengths_are_those_of_the_tokenizer_of_the_model_to_fine_tune(trained: Project) -> None:
    settings = ("training.init_from=runs/config/model.safetensors", "tokenizer.vocab_size=300")
    sets = [part for setting in settings for part in ("--set", setting)]
    result = trained.mtformer("data", "check", trained.config, "--json", *sets)
    assert result.status == 0, result.stderr
    assert json.loads(result.stdout)["lengths"]["vocab_size"] == 320


def test_fix_names_files_apart_where_case_does_not_count(tmp_path: Path) -> None:
    """As on macOS and Windows, where one of two files would replace the other."""
    for seed, (folder, name) in enumerate((("one", "text"), ("two", "Text"))):
        (tmp_path / folder).mkdir()
        write_pairs(tmp_path / folder, name, sentence_pairs(30, seed=seed))
    train = "[{src: one/text.en, tgt: one/text.de}, {src: two/Text.en, tgt: two/Text.de}]"
    config = parse_config(f"data: {{src_lang: en, tgt_lang: de, train: {train}}}", tmp_path / "c.yaml")
    clean = write_clean(check(config), tmp_path / "clean")
    assert [source.src.name for source in clean] == ["text.en", "2-Text.en"]


def test_a_clean_copy_on_another_drive_is_named_by_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_on_windows(path: str, start: str) -> str:
        raise ValueError(f"path is on mount {path!r}, start on mount {start!r}")

    monkeypatch.setattr("os.path.relpath", as_on_windows)
    source = TextFiles.model_construct(src=tmp_path / "a.en", tgt=tmp_path / "a.de")
    assert as_config(source, tmp_path / "other") == f"{{src: {tmp_path}/a.en, tgt: {tmp_path}/a.de}}"


def test_fix_keeps_what_a_config_says_of_a_source(project: Project) -> None:
    sources = "data.train=[{src: train.en, tgt: train.de, weight: 3}, {src: valid.en, tgt: valid.de, tag: bt}]"
    command = "data", "check", project.config, "--set", sources, "--set", "data.valid=[]", "--fix", "clean"
    result = project.mtformer(*command)
    assert result.status == 0, result.stderr
    assert "config: {src: clean/train.en, tgt: clean/train.de, weight: 3.0}" in result.stderr
    assert "config: {src: clean/valid.en, tgt: clean/valid.de, tag: bt}" in result.stderr


@pytest.mark.parametrize("n_after", [39, 40, 41])
def test_a_source_that_has_changed_since_it_was_checked_is_an_error(n_after: int, project: Project) -> None:
    checkup = check(load_config(project.config))
    write_pairs(project.folder, "train", sentence_pairs(400, seed=1)[:1] * n_after * 10)
    with pytest.raises(UserError, match=r"train\.en changed while it was being read"):
        write_clean(checkup, project.folder / "clean")
    assert not (project.folder / "clean").exists()


def test_an_existing_folder_is_never_overwritten(slipped: Path, tmp_path: Path) -> None:
    result = Project(slipped.parent, slipped).mtformer("data", "check", slipped, "--fix", tmp_path)
    assert (result.status, result.stdout) == (2, "")
    assert f"{tmp_path} exists: name a new folder with --fix" in result.stderr


def test_a_folder_that_cannot_be_made_is_refused_before_the_text_is_read(slipped: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = Project(slipped.parent, slipped).mtformer("data", "check", slipped, "--fix", tmp_path / "file" / "clean")
    assert (result.status, result.stdout) == (2, "")
    assert f"cannot make {tmp_path}/file/clean: {tmp_path}/file is not a folder that can be written to" in result.stderr


def test_problems_of_all_sources_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes("eins\tone\n".encode("utf-16"))
    (tmp_path / "b.csv").write_text("eins;one\n")
    for name in ("c.tsv", "d.tsv"):
        (tmp_path / name).write_text("eins\tone\nzwei\n")
    data = {"src_lang": "de", "tgt_lang": "en", "train": [{"tsv": "c.tsv"}, {"tsv": "d.tsv"}]}
    with pytest.raises(UserError, match=r"c\.tsv:2: .*\n.*d\.tsv:2: "):
        check(parse_config(yaml.safe_dump({"data": data}), tmp_path / "config.yaml"))
    (tmp_path / "e.tsv").write_text("eins\n")
    data |= {"train": [{"tsv": "a.tsv"}, {"csv": "b.csv"}], "test": [{"tsv": "e.tsv"}]}
    with pytest.raises(UserError, match=r"a\.tsv: .*\n.*b\.csv:1: .*\n.*e\.tsv:1: "):
        check(parse_config(yaml.safe_dump({"data": data}), tmp_path / "config.yaml"))


def test_a_source_without_pairs_is_a_problem(project: Project) -> None:
    for side in ("en", "de"):
        (project.folder / f"empty.{side}").touch()
    train = "data.train=[{src: empty.en, tgt: empty.de}]"
    result = project.mtformer("data", "check", project.config, "--set", train, "--strict")
    assert result.status == 1
    assert "empty.en, en-de, training: no sentence pairs\n" in result.stdout


@pytest.mark.parametrize("options", [(), ("--json",), ("--fix", "clean")])
def test_two_empty_files_are_nothing_to_check(options: tuple[str, ...], tmp_path: Path) -> None:
    for side in ("en", "de"):
        (tmp_path / f"empty.{side}").touch()
    files = ("--src", "empty.en", "--tgt", "empty.de")
    result = Project(tmp_path, tmp_path).mtformer("data", "check", *files, *options)
    assert (result.status, result.stdout) == (2, "")
    assert "Error: there is nothing to check: no sentence pairs in empty.en, empty.de\n" in result.stderr
    assert not (tmp_path / "clean").exists()


@pytest.mark.parametrize(
    ("n_src", "n_tgt", "counts"), [(30, 20, "30 lines, b.de has 20"), (1, 30, "1 line, b.de has 30")]
)
def test_files_of_unequal_length_are_the_first_finding(n_src: int, n_tgt: int, counts: str, tmp_path: Path) -> None:
    sources, targets = zip(*phrasebook_pairs()[:30], strict=True)
    write(tmp_path / "a.en", list(sources[:n_src]))
    write(tmp_path / "b.de", list(targets[:n_tgt]))
    files = ("data", "check", "--src", "a.en", "--tgt", "b.de")
    result = Project(tmp_path, tmp_path).mtformer(*files)
    assert result.status == 0, result.stderr
    unequal = f"a.en has {counts}: they are not parallel line by line"
    unknown = "the text does not show where lines are missing, and all pairs from there on are out of alignment"
    assert result.stdout.splitlines()[1:3] == [f"  {unequal}", f"  {unknown}"]
    fixed = Project(tmp_path, tmp_path).mtformer(*files, "--fix", "clean")
    assert (fixed.status, fixed.stdout, (tmp_path / "clean").exists()) == (2, result.stdout, False)
    assert f"Error: --fix: {unequal}; {unknown}: find them by hand" in fixed.stderr


def test_a_text_in_which_no_line_has_its_translation_is_reported(tmp_path: Path) -> None:
    text = ParallelText([parse_source("builtin:phrasebook,size:2500", "en", "de")], "en", "de")
    sources, targets = zip(*text, strict=True)
    write(tmp_path / "text.en", list(sources))
    write(tmp_path / "text.de", list(reversed(targets)))
    command = ("data", "check", "--src", "text.en", "--tgt", "text.de", "--set", "tokenizer.type=char")
    result = Project(tmp_path, tmp_path).mtformer(*command)
    assert result.status == 0, result.stderr
    assert "\n  hardly any pair looks like a translation: are both sides in the same order?\n" in result.stdout


@pytest.mark.parametrize("languages", ["en-de", "en-zh"])
def test_swapped_files_are_reported_as_such(languages: str, tmp_path: Path) -> None:
    src_lang, tgt_lang = languages.split("-")
    text = ParallelText([parse_source("builtin:phrasebook,size:50", src_lang, tgt_lang)], src_lang, tgt_lang)
    for name, lines in zip(("a", "b"), zip(*text, strict=True), strict=True):
        write(tmp_path / name, list(lines))
    check = ("data", "check", "--from", src_lang, "--to", tgt_lang)
    project = Project(tmp_path, tmp_path)
    assert "swapped" not in project.mtformer(*check, "--src", "a", "--tgt", "b").stdout
    assert "are the source and the target swapped?\n" in project.mtformer(*check, "--src", "b", "--tgt", "a").stdout


def test_a_small_clean_text(project: Project) -> None:
    result = project.mtformer("data", "check", project.config, "--set", "data.max_length=8")
    assert result.status == 0, result.stderr
    assert "train.en, en-de, training: 400 pairs" in result.stdout
    assert "truncated, misordered: 400 good pairs, and learning needs 2,000 with different sources" in result.stdout
    assert "data.max_length = 8 drops" in result.stdout
    checkup = check(load_config(project.config))
    assert set(checkup.sources[0].problems) <= {"duplicates", "near_duplicates", "held_out", "many_targets"}


def test_fix_names_only_sources_with_clean_pairs_and_fails_if_there_are_none(tmp_path: Path) -> None:
    for side in ("en", "de"):
        write(tmp_path / f"blank.{side}", [""] * 3)
        write(tmp_path / f"good.{side}", ["I see it." if side == "en" else "Ich sehe es."] * 3)
    project = Project(tmp_path, tmp_path / "both.yaml")
    languages = "src_lang: en, tgt_lang: de"
    (tmp_path / "blank.yaml").write_text(f"data: {{{languages}, train: [{{moses: blank}}]}}")
    project.config.write_text(f"data: {{{languages}, train: [{{moses: blank}}, {{moses: good}}]}}")
    none = project.mtformer("data", "check", "blank.yaml", "--fix", "none")
    assert none.status == 2
    assert "no data.valid: training needs sources of it, as there are too few pairs to hold any out\n" in none.stdout
    assert none.stderr.endswith("Error: none has no clean text: each pair is in none/rejected.tsv, with the reason\n")
    assert len((tmp_path / "none" / "rejected.tsv").read_text().splitlines()) == 4
    some = project.mtformer("data", "check", project.config, "--fix", "some")
    assert some.status == 0, some.stderr
    assert "clean text, a source for the config: {src: some/good.en, tgt: some/good.de}\n" in some.stderr
    assert "some/blank.en" not in some.stderr


def test_a_terminal_gets_no_control_characters(project: Project) -> None:
    path = project.folder / "train.de"
    path.write_text("\x1b[31mrot\x1b[0m und noch mehr Text\n" + "".join(path.read_text().splitlines(True)[1:]))
    result = project.mtformer("data", "check", project.config)
    assert "encoding, line 1: " in result.stdout
    assert r"| \x1b[31mrot\x1b[0m und noch" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.slow
def test_every_pair_is_scored_once_and_the_progress_of_checking_begins_after_learning(
    slipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rate of the progress would be that of learning."""
    scored: list[int] = []
    order: list[str] = []

    def noted(name: str, work: Any) -> Any:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            order.append(name)
            if name == "score":
                scored.append(len(arguments[1]))
            return work(*arguments, **options)

        return wrapped

    monkeypatch.setattr(LearnedRules, "learn", noted("learn", LearnedRules.learn))
    monkeypatch.setattr(LearnedRules, "scores", noted("score", LearnedRules.scores))
    monkeypatch.setattr(checkup, "Progress", noted("check", Progress))
    monkeypatch.setattr(checkup, "in_order", noted("start workers", in_order))
    assert len(checkup.check(load_config(slipped, ["tokenizer.type=char"])).sources) == 3
    assert scored.count(N_PAIRS) == 1
    steps = [name for name in order if name != "score"]
    assert steps == ["learn", "check", "start workers"] * 2  # the text as it stands, and realigned; for all sources


def test_a_swapped_source_beside_others_is_called_swapped(tmp_path: Path) -> None:
    """Even if none of it is left once it has been realigned."""
    for src, tgt, pairs in (
        ("a.en", "a.de", phrasebook_pairs()[:3_000]),
        ("b.de", "b.en", phrasebook_pairs()[3_000:3_300]),
    ):
        write(tmp_path / src, [pair.src for pair in pairs])
        write(tmp_path / tgt, [pair.tgt for pair in pairs])
    sources = [{"src": tmp_path / f"{name}.en", "tgt": tmp_path / f"{name}.de"} for name in "ab"]
    data = {"src_lang": "en", "tgt_lang": "de", "train": sources}
    aligned, swapped = as_text(check(Config.model_validate({"data": data, "tokenizer": QUICK}))).split("\n\n")[:2]
    assert "are the source and the target swapped?" in swapped
    assert "the target swapped?" not in aligned
