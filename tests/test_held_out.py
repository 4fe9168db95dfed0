"""Training from two text files: the pairs that are held out, the config that is written, and what ``eval`` scores."""

import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from conftest import Project, sentence_pairs, write_pairs

from mtformer.config import DataConfig, LanguagePair
from mtformer.data.held_out import describe_held_out, held_out_share, training_text, warnings_of_copies
from mtformer.data.new_config import config_of_files
from mtformer.data.store import StoredText
from mtformer.support.errors import UserError
from mtformer.text.pairs import SentencePair

EN_DE, DE_EN = LanguagePair("en", "de"), LanguagePair("de", "en")
WORDS = ["".join("abcdefghij"[int(digit)] for digit in f"{n:04}") for n in range(1_000)]
PAIRS = [SentencePair(f"the word is {word} here", f"das Wort ist {word} hier") for word in WORDS]
TINY = ("model.d_model=16", "model.n_heads=2", "model.d_ff=32", "model.n_encoder_layers=1", "model.n_decoder_layers=1")
SMALL = (*TINY, "training.max_steps=4", "training.warmup_steps=0", "training.precision=fp32")
SHORT = tuple(word for setting in SMALL for word in ("--set", setting))


def tsv(folder: Path, name: str, pairs: Sequence[tuple[str, str]]) -> dict[str, object]:
    (folder / name).write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs))
    return {"tsv": folder / name, "src_column": 1, "tgt_column": 2}


def read(*sources: dict[str, object], **settings: object) -> StoredText:
    data = {"src_lang": "en", "tgt_lang": "de", "train": list(sources)} | settings
    return training_text(DataConfig.model_validate(data, context={"base": Path("/")}))


def held_out(text: StoredText, part: str, languages: LanguagePair = EN_DE) -> set[SentencePair]:
    return set(text.held_out[part][languages])


@pytest.mark.parametrize(
    ("n_pairs", "least", "most"),
    [(16, 1, 1), (1_000, 60, 65), (25_000, 350, 400), (200_000, 1_000, 2_000), (30_000_000, 1_000, 2_000)],
)
def test_the_share_is_sized_to_the_text(n_pairs: int, least: int, most: int) -> None:
    assert least <= round(held_out_share(n_pairs) * n_pairs) <= most


def test_a_larger_text_never_has_a_larger_share() -> None:
    shares = [held_out_share(n) for n in range(1, 1_000_000, 1_000)]
    assert shares == sorted(shares, reverse=True)
    assert len(set(shares)) < 10  # a share that changed with each pair would move pairs


def test_pairs_are_divided_among_training_validation_and_test(tmp_path: Path) -> None:
    text = read(tsv(tmp_path, "a.tsv", PAIRS))
    train, valid, test = set(text), held_out(text, "valid"), held_out(text, "test")
    assert len(train) + len(valid) + len(test) == len(PAIRS)
    assert train | valid | test == set(PAIRS)
    assert 40 < len(valid) < 90
    assert 40 < len(test) < 90
    assert text.n_pairs == [1_000]
    assert all(PAIRS[line - 1] == pair for line, pair in zip(text.lines.tolist(), text, strict=True))
    assert describe_held_out(text) == (
        f"no data.valid: {len(valid)} of 1,000 pairs are held out to choose the best model, and {len(test)} to test it"
    )
    few = describe_held_out(read(tsv(tmp_path, "few.tsv", PAIRS[:10])))
    assert few == "no data.valid: 1 of 10 pairs is held out to choose the best model, and 1 to test it"


def test_copies_of_a_pair_are_on_one_side(tmp_path: Path) -> None:
    copies = [SentencePair(f"  {src.upper()}!", f"{tgt}…") for src, tgt in PAIRS]
    text = read(tsv(tmp_path, "a.tsv", [*PAIRS, *copies]))
    trained = {pair.src.casefold().strip(" !") for pair in text}
    assert len(text) == 2 * len(trained)
    for part in ("valid", "test"):
        pairs = text.held_out[part][EN_DE]
        assert trained.isdisjoint(pair.src for pair in pairs)
        assert set(pairs) <= set(PAIRS)  # the first of its copies
        assert len(set(pairs)) == len(pairs)


def test_adding_text_moves_no_pair_out_of_training(tmp_path: Path) -> None:
    more = [SentencePair(f"another line {n}", f"noch eine Zeile {n}") for n in range(9_000)]
    small, large = read(tsv(tmp_path, "a.tsv", PAIRS)), read(tsv(tmp_path, "b.tsv", [*more, *PAIRS]))
    for part in ("valid", "test"):
        assert held_out(large, part) & set(PAIRS) <= held_out(small, part)
    twice = [*PAIRS, *more[:500]]
    assert held_out(read(tsv(tmp_path, "c.tsv", twice)), "valid") & set(PAIRS) == held_out(small, "valid")


def test_directions_of_one_text_share_what_is_held_out(tmp_path: Path) -> None:
    sources = [
        tsv(tmp_path, "a.tsv", PAIRS) | {"directions": ["en-de"]},
        tsv(tmp_path, "b.tsv", [(tgt, src) for src, tgt in PAIRS]) | {"directions": ["de-en"]},
    ]
    text = read(*sources, src_lang="mul", tgt_lang="mul", directions=["en-de", "de-en"])
    assert held_out(text, "valid", DE_EN) == {SentencePair(tgt, src) for src, tgt in held_out(text, "valid", EN_DE)}
    assert held_out(text, "valid", EN_DE).isdisjoint(text)
    assert held_out(text, "valid", DE_EN).isdisjoint(text)


def test_nothing_is_held_out_of_a_source_with_a_tag_but_copies_leave_it(tmp_path: Path) -> None:
    generated = [SentencePair(f"generated {n}", f"erzeugt {n}") for n in range(1_000)]
    text = read(tsv(tmp_path, "a.tsv", PAIRS), tsv(tmp_path, "b.tsv", [*generated, *PAIRS]) | {"tag": "bt"})
    out = held_out(text, "valid") | held_out(text, "test")
    assert out <= set(PAIRS)
    assert out.isdisjoint(text)
    assert set(generated) <= set(text)


def test_all_sources_with_tags_need_a_validation_set(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="valid is left out, and all sources of train have a tag"):
        read(tsv(tmp_path, "a.tsv", PAIRS) | {"tag": "bt"})


def test_filters_come_first_and_the_rule_held_out_looks_at_both_sides(tmp_path: Path) -> None:
    others = [
        SentencePair(pair.src, f"Eine andere Übersetzung von {word}") for word, pair in zip(WORDS, PAIRS, strict=True)
    ]
    text = read(tsv(tmp_path, "a.tsv", [*PAIRS, ("same text here", "same text here"), *others]), filters=["copy"])
    known = {pair.src for part in ("valid", "test") for pair in held_out(text, part)}
    assert text.drops[0].counts == {"the target copies the source (data.filters: copy)": 1}
    assert known & {pair.src for pair in text}
    strict = read(tsv(tmp_path, "a.tsv", [*PAIRS, *others]), filters=["held_out"])
    known = {pair.src for part in ("valid", "test") for pair in held_out(strict, part)}
    assert known.isdisjoint(pair.src for pair in strict)
    assert "in the validation or test set (data.filters: held_out)" in strict.drops[0].counts


def test_a_test_set_that_is_named_leaves_only_the_validation_set_to_hold_out(tmp_path: Path) -> None:
    source = tsv(tmp_path, "a.tsv", PAIRS)
    both = read(source)
    alone = read(source, test=[tsv(tmp_path, "test.tsv", [("a test", "ein Test")])])
    assert list(alone.held_out) == ["valid"]
    assert held_out(alone, "valid") == held_out(both, "valid")
    assert held_out(both, "test") <= set(alone)
    assert alone.digest != both.digest
    assert not read(source, valid=[source]).held_out


def test_blank_sides_are_not_held_out(tmp_path: Path) -> None:
    text = read(tsv(tmp_path, "a.tsv", [*PAIRS[:50], *(("", f"leer {n}") for n in range(1_000))]))
    assert all(pair.src and pair.tgt for part in ("valid", "test") for pair in held_out(text, part))


@pytest.mark.parametrize(
    ("pairs", "n_usable"), [([("hello", "hallo")], 1), ([("hello", "hallo")] * 20, 1), ([("", "hallo")] * 20, 0)]
)
def test_a_text_that_is_too_small_is_refused(tmp_path: Path, pairs: list[tuple[str, str]], n_usable: int) -> None:
    message = rf"too few different pairs without a blank side to hold any out \({n_usable}\)"
    with pytest.raises(UserError, match=message):
        read(tsv(tmp_path, "a.tsv", pairs))


@pytest.mark.parametrize(
    ("n_copies", "filters", "is_warned"), [(40, [], True), (100, [], True), (100, ["held_out"], False), (5, [], False)]
)
def test_validation_pairs_that_are_trained_on_are_warned_of(
    tmp_path: Path, n_copies: int, filters: list[str], is_warned: bool
) -> None:
    trained, other = PAIRS[:500], PAIRS[500 : 600 - n_copies]
    valid = [*trained[:n_copies], *other, *other[:1]]
    sources = tsv(tmp_path, "train.tsv", trained), tsv(tmp_path, "valid.tsv", valid)
    text = read(sources[0], valid=[sources[1]], filters=filters)
    expected = f"data.valid: {n_copies} of 100 different pairs are in data.train as well"
    warnings = list(warnings_of_copies(text, {"data.valid": valid, "data.test": PAIRS[600:700]}))
    assert [warning.startswith(expected) for warning in warnings] == [True] * is_warned


def test_a_single_validation_pair_that_is_trained_on_is_warned_of(tmp_path: Path) -> None:
    sources = tsv(tmp_path, "train.tsv", PAIRS[:50]), tsv(tmp_path, "valid.tsv", PAIRS[:1])
    [warning] = warnings_of_copies(read(sources[0], valid=[sources[1]]), {"data.valid": PAIRS[:1]})
    assert warning.startswith("data.valid: 1 of 1 different pair is in data.train as well")


@pytest.fixture(scope="module")
def two_files(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A folder with two text files, trained on without a config."""
    folder = tmp_path_factory.mktemp("two")
    pairs = [(f"{n} {src}", f"{n} {tgt}") for n, (src, tgt) in enumerate(sentence_pairs(400))]
    write_pairs(folder, "train", pairs)
    project = Project(folder, folder / "train.en-de.yaml")
    result = project.mtformer("train", "--src", "train.en", "--tgt", "train.de", *SHORT)
    assert result.status == 0, result.stderr
    assert "the config is written to train.en-de.yaml" in result.stderr
    assert "no data.valid: " in result.stderr
    assert result.stdout == "runs/train.en-de/model.safetensors\n"
    return project


def test_the_config_is_written_as_a_user_would(two_files: Project) -> None:
    text = two_files.config.read_text()
    assert "data:\n  src_lang: en\n  tgt_lang: de\n  train:\n  - src: train.en\n    tgt: train.de\n" in text
    assert "training:\n  max_steps: 4\n" in text
    assert text.startswith("# The config of `mtformer train --src train.en --tgt train.de`.")


def test_the_same_command_resumes_and_so_does_the_config(two_files: Project) -> None:
    written = two_files.config.read_bytes()
    for command in (("--src", "train.en", "--tgt", "train.de"), ("train.en-de.yaml",)):
        before = len((two_files.folder / "runs/train.en-de/starts.jsonl").read_text().splitlines())
        result = two_files.mtformer("train", *command, *SHORT)
        assert result.status == 0, result.stderr
        starts = (two_files.folder / "runs/train.en-de/starts.jsonl").read_text().splitlines()
        assert json.loads(starts[before])["step"] == 4
        assert json.loads(starts[before])["data"] == json.loads(starts[0])["data"]
    assert two_files.config.read_bytes() == written


def test_a_config_for_other_text_is_not_overwritten(two_files: Project) -> None:
    other = two_files.folder / "other.en-de.yaml"
    for language in ("en", "de"):
        (two_files.folder / f"other.{language}").write_text("a\n")
    other.write_text("data: {src_lang: en, tgt_lang: de, train: [{src: train.en, tgt: train.de}]}")
    result = two_files.mtformer("train", "--src", "other.en", "--tgt", "other.de")
    assert result.status == 2
    assert "other.en-de.yaml exists, and is a config for other text" in result.stderr
    assert "train.en" in other.read_text()


def test_an_edited_config_is_used(two_files: Project) -> None:
    """It may have been given other sources and settings."""
    known = two_files.folder / "edited.yaml"
    values = yaml.safe_load(two_files.config.read_text())
    values["data"]["train"].append({"builtin": "phrasebook", "size": 50})
    known.write_text(yaml.safe_dump(values))
    command = ("--src", "train.en", "--tgt", "train.de", "--set", "run.name=edited", "--dry-run")
    result = two_files.mtformer("train", *command)
    assert result.status == 0, result.stderr
    assert "the config is edited.yaml" in result.stderr
    assert "of 450 pairs are held out" in result.stderr


def test_a_dry_run_writes_no_config(two_files: Project) -> None:
    result = two_files.mtformer(
        "train", "--src", "train.de", "--tgt", "train.en", *SHORT, "--dry-run", "--set", "run.name=dry"
    )
    assert result.status == 0, result.stderr
    assert not (two_files.folder / "dry.yaml").exists()
    assert not (two_files.folder / "runs/dry").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a config, or two text files with --src and --tgt"),
        (
            ["--src", "train.en"],
            "--src train.en needs --tgt, its translation, line by line: "
            "mtformer train --src train.en --tgt FILE --to LANG\n",
        ),
        (
            ["--src", "notes.txt", "--to", "de"],
            ", line by line: mtformer train --src notes.txt --tgt FILE --from LANG --to de\n",
        ),
        (
            ["--tgt", "train.de"],
            "--tgt train.de needs --src, its source text, line by line: "
            "mtformer train --src FILE --tgt train.de --from LANG\n",
        ),
        (
            ["train.en"],
            "not a config; to use it with its translation: mtformer train --src train.en --tgt FILE --to LANG\n",
        ),
        (["pairs.tsv"], "names it, data: {src_lang: LANG, tgt_lang: LANG, train: [{tsv: pairs.tsv}]}\n"),
        (["pairs.csv.gz"], "names it, data: {src_lang: LANG, tgt_lang: LANG, train: [{csv: pairs.csv.gz}]}\n"),
        (["csv:pairs.csv"], "names it, data: {src_lang: LANG, tgt_lang: LANG, train: [{csv: pairs.csv}]}\n"),
        (
            ["--src", "pairs.tmx", "--tgt", "train.de", "--from", "en"],
            "pairs.tmx is a file of sentence pairs, not a text in one language; write a config that names it, data: "
            "{src_lang: LANG, tgt_lang: LANG, train: [{tmx: pairs.tmx}]}\n",
        ),
        (["--tgt", "pairs.xlsx"], "pairs.xlsx is a spreadsheet, not a text in one language; save it as CSV in UTF-8, "),
        (["train.en-de.yaml", "--src", "train.en"], "give a config, or two files with --src and --tgt, not both"),
        (
            ["--src", "notes.txt", "--tgt", "train.de"],
            "notes.txt does not end with the code of its language: give --from",
        ),
        (
            ["--src", "train.en", "--tgt", "notes.txt"],
            "notes.txt does not end with the code of its language: give --to",
        ),
        (["--src", "train.en", "--tgt", "train.en"], "--src and --tgt are the same file, train.en"),
        (["--src", "train.en", "--tgt", "other.en"], "both in en: give --to"),
        (["--src", "missing.en", "--tgt", "train.de"], "Error: --src: there is no file missing.en"),
        (["--src", "packed.en", "--tgt", "train.de"], "there is no file packed.en: did you mean packed.en.gz?"),
        (["train.en", "train.de"], "write two text files as --src train.en --tgt train.de"),
        (["--src", "train.en", "--tgt", "train.de", "--set", "x=1"], "there is no such key"),
        (
            ["--src", "train.en", "--tgt", "train.de", "--to", "German"],
            "Error: --to German: data.tgt_lang: given `German`, allowed: a language code such as en, de or zh\n",
        ),
        (
            ["--src", "runs", "--from", "en", "--tgt", "train.de"],
            "Error: --src runs: data.train.0.src: runs is a folder",
        ),
    ],
)
def test_bad_files_are_refused_before_anything_is_written(
    two_files: Project, arguments: list[str], message: str
) -> None:
    (two_files.folder / "notes.txt").write_text("a\n")
    for name in ("packed.en.gz", "other.en", "pairs.tmx", "pairs.xlsx"):
        (two_files.folder / name).touch()
    before = sorted(two_files.folder.iterdir())
    result = two_files.mtformer("train", *arguments)
    assert result.status == 2
    assert message in result.stderr
    assert sorted(two_files.folder.iterdir()) == before


@pytest.mark.parametrize("content", ["eins\n", "", "f\xfcr\n" * 20], ids=["short", "empty", "Latin-1"])
def test_files_that_cannot_be_trained_on_leave_no_config(tmp_path: Path, content: str) -> None:
    (tmp_path / "short.de").write_text(content, encoding="latin-1")
    (tmp_path / "my.en").write_text("one\n" * 20)
    project = Project(tmp_path, tmp_path / "short.de-en.yaml")
    result = project.mtformer("train", "--src", "short.de", "--tgt", "my.en", *SHORT)
    assert (result.status, "short.de" in result.stderr) == (2, True)
    assert "short.de-en.yaml" not in result.stderr
    assert not project.config.exists()


@pytest.mark.parametrize("is_edited", [True, False])
def test_a_config_that_was_edited_or_trained_with_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_edited: bool
) -> None:
    write_pairs(tmp_path, "train", [("one", "eins")])
    monkeypatch.chdir(tmp_path)
    config, src, tgt = map(Path, ("train.en-de.yaml", "train.en", "train.de"))
    new_config = config_of_files(src, tgt, (None, None), [], has_started=lambda config: not is_edited)
    with pytest.raises(UserError, match="no more"), new_config:
        if is_edited:
            config.write_text("edited")
        raise UserError("no more")
    assert config.exists()


@pytest.mark.parametrize(
    ("src", "tgt", "options", "name", "languages"),
    [
        ("news.en.gz", "news.zh_TW.gz", (), "news.en-zh_TW", ["en", "zh_TW"]),
        ("Books.de-en.de", "Books.de-en.en", (), "Books.de-en", ["de", "en"]),
        ("left.eng.txt", "right.deu.txt", (), "left.en-de", ["en", "de"]),
        ("a.txt", "b.txt", ("--from", "no", "--to", "gsw"), "a.no-gsw", ["no", "gsw"]),
    ],
)
def test_languages_and_names_follow_from_the_files(
    tmp_path: Path, src: str, tgt: str, options: tuple[str, ...], name: str, languages: list[str]
) -> None:
    for file, side in ((src, 0), (tgt, 1)):
        data = "".join(pair[side] + "\n" for pair in PAIRS[:100]).encode()
        (tmp_path / file).write_bytes(gzip.compress(data) if file.endswith(".gz") else data)
    project = Project(tmp_path, tmp_path / f"{name}.yaml")
    result = project.mtformer("train", "--src", src, "--tgt", tgt, *options, *SHORT)
    assert result.status == 0, result.stderr
    assert result.stdout == f"runs/{name}/model.safetensors\n"
    data = yaml.load(project.config.read_text(), Loader=yaml.BaseLoader)["data"]
    assert [data["src_lang"], data["tgt_lang"]] == languages


def test_eval_scores_the_test_set_that_is_held_out(two_files: Project) -> None:
    folder = two_files.folder / "runs/train.en-de/held_out"
    files = [folder / f"{part}.en-de.{language}" for part in ("valid", "test") for language in ("en", "de")]
    assert sorted(folder.iterdir()) == sorted(files)
    texts = {file.name: file.read_text().splitlines() for file in files}
    source = (two_files.folder / "train.en").read_text().splitlines()
    assert set(texts["test.en-de.en"]) < set(source)
    assert set(texts["test.en-de.en"]).isdisjoint(texts["valid.en-de.en"])
    result = two_files.mtformer("eval", "--model", "runs/train.en-de", "--json")
    assert result.status == 0, result.stderr
    assert "validation" not in result.stderr
    assert json.loads(result.stdout)["sentences"] == len(texts["test.en-de.en"])
    assert "held_out/test.en-de.en" in result.stdout


def test_eval_without_a_test_set_scores_the_validation_set_and_says_so(project: Project) -> None:
    values = yaml.safe_load(project.config.read_text())
    del values["data"]["test"]
    project.config.write_text(yaml.safe_dump(values))
    assert project.mtformer("train", project.config, "--set", "training.max_steps=2").status == 0
    result = project.mtformer("eval", "--json")
    assert result.status == 0, result.stderr
    assert "runs/config has no test set (data.test): scoring its validation set" in result.stderr
    assert "valid.en (validation set)" in result.stdout
    assert json.loads(result.stdout)["sentences"] == 20
    assert not (project.folder / "runs/config/held_out").exists()


def test_a_run_that_held_out_a_test_set_refuses_another(two_files: Project) -> None:
    """Its pairs would be trained on from there."""
    result = two_files.mtformer(
        "train", "train.en-de.yaml", *SHORT, "--set", "data.test=[{src: train.en, tgt: train.de}]"
    )
    assert result.status == 2
    assert "the text of data.train has changed" in result.stderr


def test_training_on_its_validation_text_is_warned_of(two_files: Project) -> None:
    valid = ("--set", "data.valid=[{src: train.en, tgt: train.de}]", "--set", "run.name=same")
    result = two_files.mtformer("train", "train.en-de.yaml", *SHORT, *valid, "--dry-run")
    assert result.status == 0, result.stderr
    assert "data.valid: 400 of 400 different pairs are in data.train as well" in result.stderr
    assert "held out" not in result.stderr


@pytest.mark.parametrize("valid", ["[]", "[{src: train.en, tgt: train.de}]"])
def test_training_on_its_test_text_is_warned_of(two_files: Project, valid: str) -> None:
    test = ("--set", f"data.valid={valid}", "--set", "data.test=[{src: train.en, tgt: train.de}]")
    result = two_files.mtformer("train", "train.en-de.yaml", *SHORT, *test, "--set", "run.name=same", "--dry-run")
    assert result.status == 0, result.stderr
    assert re.search(r"data.test: \d+ of 400 different pairs are in data.train as well", result.stderr)


def test_data_check_says_what_training_will_hold_out(two_files: Project) -> None:
    result = two_files.mtformer("data", "check", "train.en-de.yaml")
    assert result.status == 0, result.stderr
    assert "training holds out about 25 pairs to choose the best model, and about as many to test it" in result.stdout


def test_data_check_expects_copies_to_be_held_out_together(two_files: Project) -> None:
    write_pairs(two_files.folder, "copies", [("hello there", "hallo du"), ("Hello there!", "Hallo du!")] * 10)
    result = two_files.mtformer("data", "check", "--src", "copies.en", "--tgt", "copies.de")
    assert result.status == 0, result.stderr
    assert "no data.valid: training needs sources of it, as there are too few pairs to hold any out" in result.stdout
    write_pairs(two_files.folder, "copies", [(src, tgt) for src, tgt in PAIRS[:400]] * 10)
    command = ("--src", "copies.en", "--tgt", "copies.de")
    expected = re.search(r"holds out about (\d+) pairs", two_files.mtformer("data", "check", *command).stdout)
    held_out = re.search(r"(\d+) of 4,000 pairs are", two_files.mtformer("train", *command, *SHORT, "--dry-run").stderr)
    assert expected and held_out
    assert int(expected[1]) == pytest.approx(int(held_out[1]), abs=5)


def test_fresh_removes_what_was_held_out(two_files: Project) -> None:
    command = ("--src", "train.en", "--tgt", "train.de", *SHORT, "--set", "run.name=again")
    assert two_files.mtformer("train", *command).status == 0
    folder = two_files.folder / "runs/again/held_out"
    texts = {file.name: file.read_text() for file in folder.iterdir()}
    (folder / "mine.txt").write_text("left behind")
    assert two_files.mtformer("train", *command, "--fresh").status == 0
    assert {file.name: file.read_text() for file in folder.iterdir()} == texts
