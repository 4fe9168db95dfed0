"""``mtformer data check``: what it reports of texts with known faults, and the clean copy that it writes."""

import dataclasses
import gzip
import itertools
import json
import shlex
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from conftest import Project, sentence_pairs, write_pairs
from numpy.typing import NDArray

from mtformer.config import Config, LanguagePair, TextFiles, load_config, parse_config, parse_source
from mtformer.data.clean import checkup
from mtformer.data.clean.checkup import SourceCheck, check
from mtformer.data.clean.filters import Filters, Judgement
from mtformer.data.clean.learned import LearnedRules
from mtformer.data.clean.line_lengths import aligned_by_lengths, are_surely_aligned, are_unrelated, lengths_of
from mtformer.data.clean.passages import Passage, align, find_passages
from mtformer.data.clean.realign import RealignedText
from mtformer.data.clean.report import as_config, as_text, write_clean
from mtformer.data.sources.parallel import ParallelText
from mtformer.data.store import Portion, stored_text
from mtformer.support.errors import UserError
from mtformer.support.processes.workers import in_order
from mtformer.support.progress import Progress
from mtformer.text.pairs import SentencePair

SLIP = 2_000  # the line where the targets begin to stand a line late
N_PAIRS = 3_000
QUICK = {"type": "char"}  # a tokenizer that is trained at once, where lengths do not matter


@cache
def phrasebook() -> list[SentencePair]:
    """Return sentences, without repetitions."""
    source = parse_source("builtin:phrasebook,size:4000", "en", "de")
    return list(dict.fromkeys(ParallelText([source], "en", "de")))


def write(path: Path, lines: list[str]) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


@pytest.fixture(scope="module")
def slipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A config whose training text slips, with a copy, an empty side and a sentence of the test set before that."""
    folder = tmp_path_factory.mktemp("slipped")
    pairs = [[src, tgt] for src, tgt in phrasebook()[: N_PAIRS + 20]]
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
    fixed = project.mtformer("data", "check", *files, "--fix", "clean copy")
    command = fixed.stderr.splitlines()[-1].partition(": mtformer ")[2]
    assert command.startswith("train --src 'clean copy/text.en' --tgt 'clean copy/my text' --to de --set ")
    trained = project.mtformer(*shlex.split(command))
    assert (trained.status, trained.stdout) == (0, "runs/clean copy/model.safetensors\n"), trained.stderr
    assert "stopped at step 1 " in trained.stderr


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
    found = SourceCheck(ParallelText([], "en", "de"), "train", filters)
    for first, certainty in ((1, [0.5, 0.0, 3.0, 0.0]), (5, [0.0, 1.0, 2.0, 0.0])):
        pairs = [SentencePair(f"source {line}", f"target {line}") for line in range(first, first + 4)]
        rules: list[str | None] = ["misaligned" if value else "copy" for value in certainty]
        portion = Portion(0, LanguagePair("en", "de"), pairs, list(range(first, first + 4)))
        found.add(portion, Judgement(rules, np.array(certainty), None))
    lines = {rule: [example.line for example in examples] for rule, examples in found.examples.items()}
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


def aligned_by_numbers(sources: Sequence[int], targets: Sequence[int]) -> list[Passage]:
    """Align texts that are translations if they are the same number; every tenth number is unclear."""
    src, tgt = np.array(sources), np.array(targets)

    def score(at_src: NDArray[np.int64], at_tgt: NDArray[np.int64]) -> NDArray[np.float64]:
        is_same = src[at_src] == tgt[at_tgt]
        return np.where(is_same, np.where(src[at_src] % 10 == 0, 1.0, -4.0), 5.0)

    places = np.arange(min(len(src), len(tgt)))
    return align(score, score(places, places))


@pytest.mark.parametrize("n_missing", [1, 8, 60])
@pytest.mark.parametrize("from_sources", [False, True])
def test_missing_lines_are_found_where_they_are(n_missing: int, from_sources: bool) -> None:
    whole = list(range(400))
    shorter, longer = whole[:100] + whole[100 + n_missing :], whole[: 400 - n_missing]
    sources, targets = (shorter, longer) if from_sources else (longer, shorter)
    passages = aligned_by_numbers(sources, targets)
    assert [passage.first for passage in passages[:2]] == [0, 100]
    assert passages[1].shift == (n_missing if from_sources else -n_missing)
    joined = realigned_lines(passages, len(sources))
    assert all(sources[src] == targets[tgt] for src, tgt in joined)
    assert len(joined) == len(set(sources) & set(targets))


def realigned_lines(passages: Sequence[Passage], n_pairs: int) -> list[tuple[int, int]]:
    """Return the numbers of sources and of their translations, by the text that passages stand for."""
    text = RealignedText(
        [parse_source("builtin:phrasebook", "en", "de")], "en", "de", passages=passages, n_pairs=n_pairs
    )
    text = dataclasses.replace(text, sources=[text.sources[0].model_copy(update={"size": n_pairs})])
    return [(src.line - 1, tgt.line - 1) for src, tgt in text.joined() if tgt]


def test_each_missing_line_is_found_at_its_place() -> None:
    sources = list(range(3_000))
    targets = [i for i in sources if i not in (500, 1_700, *range(2_000, 2_400))]
    passages = aligned_by_numbers(sources, targets)
    assert [passage.first for passage in passages] == [0, 500, 1_700, 2_000]
    assert [passage.shift for passage in passages] == [0, -1, -2, -402]


@pytest.mark.parametrize("there", [20, 300, 340])
def test_a_few_lines_whose_translations_stand_elsewhere_do_not_cost_those_between(there: int) -> None:
    whole = list(range(1, 400))
    targets = whole.copy()
    targets[200:240] = [-1] * 40
    targets[there : there + 40] = whole[200:240]  # where sources have none
    sources = whole.copy()
    sources[there : there + 40] = [-2] * 40
    joined = realigned_lines(aligned_by_numbers(sources, targets), len(sources))
    assert all(sources[src] == targets[tgt] for src, tgt in joined)
    assert len(joined) >= len(set(sources) & set(targets)) - 45


@pytest.mark.parametrize("bad", [30, 120])
@pytest.mark.parametrize("translation", ["", "TODO", "only the beginning", "of another line"])
@pytest.mark.parametrize("take_turns", [False, True])
def test_a_block_without_translations_is_no_slip(take_turns: bool, translation: str, bad: int) -> None:
    """In text with and without headings that take turns with paragraphs."""
    random = np.random.default_rng(5)
    for n in (120, 300, 600):
        pairs = phrasebook()[:n]
        if take_turns:
            pairs = [pair if n % 2 else SentencePair(pair.src * 4, pair.tgt * 4) for n, pair in enumerate(pairs)]
        lengths = lengths_of(pairs)
        targets = lengths[n // 3 : n // 3 + bad, 1]
        if translation == "only the beginning":
            targets[:] = np.minimum(targets, 12)
        else:
            targets[:] = random.permutation(targets) if translation == "of another line" else len(translation)
        assert aligned_by_lengths(lengths) == [Passage(0, n, 0)]
        assert n == 120 or not are_unrelated(lengths)


@pytest.mark.parametrize("n_missing", [20, 101])
def test_lengths_show_where_many_lines_are_missing(n_missing: int) -> None:
    pairs = phrasebook()[: 800 + n_missing]
    lengths = lengths_of(pairs[:800])
    lengths[400:, 1] = lengths_of(pairs[400 + n_missing :])[:, 1]
    before, after = aligned_by_lengths(lengths)
    assert (before.shift, after.shift) == (0, -n_missing)
    assert abs(after.first - 400) <= 10
    assert are_surely_aligned([before, after], lengths)


def test_it_is_unsure_whether_sorted_text_is_aligned(tmp_path: Path) -> None:
    pairs = sorted(phrasebook()[:400], key=lambda pair: len(pair.src))
    write(tmp_path / "a.en", [pair.src for pair in pairs])
    write(tmp_path / "a.de", [pair.tgt for pair in pairs[1:]])
    checkup = check(config_of({"src": tmp_path / "a.en", "tgt": tmp_path / "a.de"}))
    assert not checkup.sources[0].is_surely_aligned
    with pytest.raises(UserError, match="does not show where lines are missing"):
        write_clean(checkup, tmp_path / "clean")


def test_what_is_no_shifted_translation_is_not_realigned() -> None:
    random = np.random.default_rng(1)

    def by_chance(sources: NDArray[np.int64], targets: NDArray[np.int64]) -> NDArray[np.float64]:
        return random.normal(1.0, 2.0, len(sources))

    assert align(by_chance, np.full(200, 2.0)) == [Passage(0, 200, None)]
    assert align(by_chance, np.empty(0)) == []


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


@pytest.mark.parametrize("n_after", [39, 41])
def test_a_source_that_has_changed_since_it_was_checked_is_an_error(n_after: int, project: Project) -> None:
    checkup = check(load_config(project.config))
    write_pairs(project.folder, "train", sentence_pairs(400, seed=1)[:1] * n_after * 10)
    with pytest.raises(UserError, match=r"train\.en has changed while it was checked"):
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
    sources, targets = zip(*phrasebook()[:30], strict=True)
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
    assert "\x1b" not in result.stdout


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


def least_cost(costs: dict[int, NDArray[np.float64]], border: float) -> float:
    """Try all ways to divide a text into passages; a border at the very end costs nothing."""
    by_state = [*costs.values(), np.zeros(len(costs[0]))]
    divisions = itertools.product(range(len(by_state)), repeat=len(costs[0]))
    return min(cost_of(states, by_state, border) for states in divisions)


def cost_of(states: Sequence[int], by_state: Sequence[NDArray[np.float64]], border: float) -> float:
    """Return the cost of a division by the state of each line."""
    changes = sum(one != other for one, other in itertools.pairwise((0, *states)))
    return float(sum(by_state[state][place] for place, state in enumerate(states)) + border * changes)


def test_passages_are_the_best_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    border = 2.0
    monkeypatch.setattr("mtformer.data.clean.passages._BORDER", border)
    random = np.random.default_rng(1)
    n_found = 0
    for _ in range(30):
        costs = {shift: random.normal(scale=2, size=7).clip(-5, 5) for shift in (0, 3)}
        passages = find_passages(costs)
        n_found += len(passages)
        shifts = [passage.shift for passage in passages for _ in range(passage.first, passage.end)]
        states = [2 if shift is None else list(costs).index(shift) for shift in shifts]
        total = cost_of(states, [*costs.values(), np.zeros(7)], border)
        assert total == pytest.approx(least_cost(costs, border))
    assert n_found > 40


def test_a_passage_in_the_middle() -> None:
    log_odds = np.concatenate([np.full(300, -6.0), np.full(40, 2.0), np.full(300, -6.0)])
    log_odds[320] = -50.0  # one good pair among the bad ones
    assert find_passages({0: log_odds}) == [Passage(0, 300, 0), Passage(300, 340, None), Passage(340, 640, 0)]
    assert find_passages({0: np.array([])}) == []


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_a_slip_near_the_beginning_is_found(tmp_path: Path, is_shuffled: bool) -> None:
    pairs = phrasebook()[:2_400]
    targets = [pair.tgt for place, pair in enumerate(pairs) if place != 4] + ["Zu viel."]
    if is_shuffled:
        targets = [targets[place] for place in np.random.default_rng(1).permutation(len(targets))]
    write(tmp_path / "train.en", [pair.src for pair in pairs])
    write(tmp_path / "train.de", targets)
    files = {"src": tmp_path / "train.en", "tgt": tmp_path / "train.de"}
    data = {"src_lang": "en", "tgt_lang": "de", "train": [files]}
    checkup = check(Config.model_validate({"data": data, "tokenizer": QUICK}))
    found = [(slip.first_line, slip.offset) for slip in checkup.sources[0].slips]
    assert found == ([] if is_shuffled else [(5, -1)])


def small_text(folder: Path, *, missing: Sequence[int] = (), shuffled: bool = False, first: int = 0) -> dict[str, Path]:
    """Write 400 pairs, from whose targets the lines of some are missing, as many as if others followed."""
    pairs = phrasebook()[first : first + 400 + len(missing)]
    targets = [pair.tgt for place, pair in enumerate(pairs) if place not in missing]
    if shuffled:
        targets = [targets[place] for place in np.random.default_rng(1).permutation(len(targets))]
    files = {"src": folder / f"{first}.en", "tgt": folder / f"{first}.de"}
    write(files["src"], [pair.src for pair in pairs[:400]])
    write(files["tgt"], targets)
    return files


def config_of(train: dict[str, Path], **sources: object) -> Config:
    data = {"src_lang": "en", "tgt_lang": "de", "train": [train], **sources}
    return Config.model_validate({"data": data, "tokenizer": QUICK})


@pytest.mark.parametrize(("missing", "found"), [((), []), ((0,), [(0, -1)]), ((150, 300), [(150, -1), (299, -2)])])
def test_lengths_show_where_a_text_slips_that_is_too_small_to_learn_from(
    missing: tuple[int, ...], found: list[tuple[int, int]], tmp_path: Path
) -> None:
    checkup = check(config_of(small_text(tmp_path, missing=missing)))
    [source] = checkup.sources
    assert source.filters.learned is None
    assert [slip.offset for slip in source.slips] == [offset for _, offset in found]
    for slip, (place, _) in zip(source.slips, found, strict=True):
        assert abs(slip.first_line - 1 - place) <= 10
    [clean] = write_clean(checkup, tmp_path / "clean")
    kept = list(ParallelText([clean], "en", "de"))
    assert len(set(kept) - set(phrasebook())) <= 10 * len(missing)  # near the borders
    assert len(kept) >= 350


@pytest.mark.parametrize("at_end", [False, True])
def test_fix_of_small_files_of_unequal_length_keeps_translations_alone(at_end: bool, tmp_path: Path) -> None:
    pairs = phrasebook()[:400]
    targets = [pair.tgt for pair in pairs]
    write(tmp_path / "a.en", [pair.src for pair in pairs])
    write(tmp_path / "a.de", targets[:-1] if at_end else targets[1:])
    checkup = check(config_of({"src": tmp_path / "a.en", "tgt": tmp_path / "a.de"}))
    [clean] = write_clean(checkup, tmp_path / "clean")
    kept = list(ParallelText([clean], "en", "de"))
    assert len(kept) > 380
    assert len(set(kept) - set(pairs)) <= 5


def test_a_validation_set_that_slips_is_a_problem(tmp_path: Path) -> None:
    slipped = small_text(tmp_path, missing=[200], first=1_000)
    checkup = check(config_of(small_text(tmp_path), valid=[slipped]))
    train, valid = checkup.sources
    assert (train.slips, [slip.offset for slip in valid.slips]) == ([], [-1])
    assert checkup.n_problems == train.problems.total() + valid.problems.total() + 1
    assert "to 400 are out of alignment: the translations stand 1 line earlier\n" in as_text(checkup)


def test_a_swapped_source_beside_others_is_called_swapped(tmp_path: Path) -> None:
    """Even if none of it is left once it has been realigned."""
    for src, tgt, pairs in (("a.en", "a.de", phrasebook()[:3_000]), ("b.de", "b.en", phrasebook()[3_000:3_300])):
        write(tmp_path / src, [pair.src for pair in pairs])
        write(tmp_path / tgt, [pair.tgt for pair in pairs])
    sources = [{"src": tmp_path / f"{name}.en", "tgt": tmp_path / f"{name}.de"} for name in "ab"]
    data = {"src_lang": "en", "tgt_lang": "de", "train": sources}
    aligned, swapped = as_text(check(Config.model_validate({"data": data, "tokenizer": QUICK}))).split("\n\n")[:2]
    assert "are the source and the target swapped?" in swapped
    assert "the target swapped?" not in aligned


def test_lines_that_take_turns_do_not_hide_another_order() -> None:
    pairs = [pair if n % 2 else SentencePair(pair.src * 2, pair.tgt * 2) for n, pair in enumerate(phrasebook()[:3_000])]
    assert not are_unrelated(lengths_of(pairs))
    exchanged = [SentencePair(pair.src, pairs[n - 1_500].tgt) for n, pair in enumerate(pairs)]
    assert are_unrelated(lengths_of(exchanged))


def test_a_small_text_in_another_order_is_a_problem(tmp_path: Path) -> None:
    checkup = check(config_of(small_text(tmp_path, shuffled=True)))
    assert (checkup.sources[0].slips, checkup.sources[0].has_no_translations) == ([], True)
    assert checkup.n_problems > checkup.sources[0].problems.total()


@pytest.mark.parametrize("n", [0, 1, 2, 30, 500])
def test_lengths_that_say_nothing_are_no_problem(n: int) -> None:
    """As of codes, or of words, whose lengths depend little on each other."""
    random = np.random.default_rng(1)
    for values in (np.full((n, 2), 20), random.integers(1, 12, (n, 2)), random.integers(38, 42, (n, 2))):
        lengths = values.astype(np.int32)
        assert aligned_by_lengths(lengths) == [Passage(0, n, 0)]
        assert not are_surely_aligned([Passage(0, n, 0)], lengths)
        assert not are_unrelated(lengths)


def test_training_warns_of_a_text_that_slips(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each time, also if the text is in the cache."""
    for files, n_warnings in ((small_text(tmp_path, missing=[100]), 1), (small_text(tmp_path, first=1_000), 0)):
        for name in ("a", "b"):
            caplog.clear()
            files["src"] = files["src"].rename(tmp_path / f"{name}.en")
            stored_text(ParallelText([TextFiles.model_validate(files)], "en", "de"))
            warnings = [record.message for record in caplog.records if "out of alignment" in record.message]
            assert len(warnings) == n_warnings, warnings
            assert all(
                ": the translations stand 1 line earlier; mtformer data check --fix" in line for line in warnings
            )


@pytest.mark.parametrize("end", [["Zu viel.", "Zu viel."], []])
def test_fix_loses_little_of_a_text_that_slips_early_and_twice(tmp_path: Path, end: list[str]) -> None:
    """Whether the files have the same number of lines or not."""
    pairs = phrasebook()[:3_500]
    missing = {99, 1_999}
    write(tmp_path / "train.en", [pair.src for pair in pairs])
    left = [pair.tgt for place, pair in enumerate(pairs) if place not in missing]
    write(tmp_path / "train.de", [*left, *end])
    files = {"src": tmp_path / "train.en", "tgt": tmp_path / "train.de"}
    data = {"src_lang": "en", "tgt_lang": "de", "train": [files]}
    checkup = check(Config.model_validate({"data": data, "tokenizer": QUICK}))
    assert checkup.sources[0].blank.counts == ({} if end else {f"only in {files['src']}": 2})
    first, second = checkup.sources[0].slips
    assert (first.first_line, first.offset) == (100, -1)
    assert (second.first_line, second.offset) == (2_000, -2)
    [clean] = write_clean(checkup, tmp_path / "clean")
    kept = set(ParallelText([clean], "en", "de"))
    rows = [row.split("\t") for row in (tmp_path / "clean" / "rejected.tsv").read_text().splitlines()[1:]]
    copies = {SentencePair(src, tgt) for _, _, rule, src, tgt in rows if rule in ("near_duplicates", "many_targets")}
    assert len(kept - set(pairs)) <= 0.005 * len(pairs)
    assert len(set(pairs) - kept - copies) <= 0.01 * len(pairs)
