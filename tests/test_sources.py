import gzip
import json
import os
import re
import threading
from pathlib import Path

import pytest

from mtformer.config import (
    BuiltinText,
    Config,
    DataConfig,
    HubDataset,
    JsonlFile,
    MosesFiles,
    Source,
    TextFiles,
    TsvFile,
    load_config,
    parse_source,
)
from mtformer.data.sources.parallel import ParallelText, require_readable, source_files
from mtformer.support.errors import UserError
from mtformer.text.pairs import Drops, SentencePair, fingerprint
from mtformer.training.inputs import named_commits

PAIRS = [
    ("one house", "ein Haus"),
    ("", "leer"),
    ("blank", ""),
    ("U+2028\u2028here", "猫。"),
    (' "quoted" ', "da\x85s"),
]


def read(*sources: Source) -> list[tuple[str, str]]:
    return [(pair.src, pair.tgt) for pair in ParallelText(sources, "en", "de")]


def error_of(*sources: Source) -> str:
    with pytest.raises(UserError) as error:
        read(*sources)
    return str(error.value)


def write(path: Path, lines: list[str]) -> Path:
    raw = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def text_files(folder: Path, src: list[str], tgt: list[str], suffix: str = ".txt") -> TextFiles:
    return TextFiles(src=write(folder / f"src{suffix}", src), tgt=write(folder / f"tgt{suffix}", tgt))


def tsv(folder: Path, lines: list[str]) -> TsvFile:
    return TsvFile(tsv=write(folder / "pairs.tsv", lines))


def jsonl(folder: Path, lines: list[str], src_key: str | None = None, tgt_key: str | None = None) -> JsonlFile:
    return JsonlFile(jsonl=write(folder / "pairs.jsonl", lines), src_key=src_key, tgt_key=tgt_key)


def every_kind(folder: Path, pairs: list[tuple[str, str]]) -> list[Source]:
    src, tgt = [src for src, _ in pairs], [tgt for _, tgt in pairs]
    return [
        text_files(folder, src, tgt),
        text_files(folder, src, tgt, suffix=".gz"),
        tsv(folder, [f"{src}\t{tgt}" for src, tgt in pairs]),
        jsonl(folder, [json.dumps({"en": src, "de": tgt}) for src, tgt in pairs]),
    ]


@pytest.mark.parametrize("kind", range(4))
def test_the_pairs_stand_in_every_kind_of_source_as_they_were_written(tmp_path: Path, kind: int) -> None:
    # A blank line on one side is an empty text there: it shifts nothing.
    assert read(every_kind(tmp_path, PAIRS)[kind]) == PAIRS


def test_several_sources_follow_each_other_and_can_be_read_again(tmp_path: Path) -> None:
    text = ParallelText(every_kind(tmp_path, PAIRS), "en", "de")
    assert list(text) == PAIRS * 4
    assert list(text) == PAIRS * 4


def test_a_bad_source_is_reported_when_its_turn_comes(tmp_path: Path) -> None:
    good, bad = text_files(tmp_path, ["a"], ["b"]), tsv(tmp_path, ["no tab"])
    pairs = iter(ParallelText([good, bad], "en", "de"))
    assert next(pairs) == ("a", "b")
    with pytest.raises(UserError, match="no tab"):
        next(pairs)


@pytest.mark.parametrize(
    ("row", "keys"),
    [
        ({"en": "a b", "de": "c", "id": 7}, (None, None)),
        ({"source": "a b", "target": "c", "en": "x", "de": "y"}, ("source", "target")),
        ({"source": "a b", "de": "c"}, ("source", None)),
        ({"translation": {"en": "a b", "de": "c"}, "id": 7}, (None, None)),
        ({"translation": {"s": "a b", "t": "c"}}, ("s", "t")),
        ({"translation": "a b", "en": "c"}, ("translation", "en")),
        ({"en": "a\nb", "de": "c"}, (None, None)),
        ({"en": "a\rb", "de": "c"}, (None, None)),
        ({"en": "a\0b", "de": "c"}, (None, None)),
        ({"src": "a b", "tgt": "c", "score": "0.5"}, (None, None)),
        ({"DE": "c", "en_US": "a b"}, (None, None)),
    ],
)
def test_a_json_object_holds_a_pair_of_lines(
    tmp_path: Path, row: dict[str, object], keys: tuple[str | None, str | None]
) -> None:
    assert read(jsonl(tmp_path, [json.dumps(row)], *keys)) == [("a b", "c")]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"en": "a", "de": "b"', 'this line is not JSON by itself: \'{"en"'),
        ("[" * 100_000, "this line is not JSON"),
        ('["a", "b"]', "this is not an object with the keys 'en' and 'de'"),
        ('{"en": "a", "fr": "b"}', "there is no text under 'de'; the keys are: en, fr; set tgt_key"),
        ('{"en": null, "de": "b"}', "the value under 'en' is null, not text"),
        ('{"en": "a", "de": 5}', "the value under 'de' is 5, not text"),
        ('{"en": ["a"], "de": "b"}', "the value under 'en' is [\"a\"], not text"),
        (json.dumps({"en": ["a" * 999], "de": "b"}), "aaa, not text"),
        ('{"translation": {"en": "a", "fr": "b"}}', "there is no text under 'de'; the keys are: en, fr; set tgt_key"),
        ("{}", "there is no text under 'en'; the keys are: none; set src_key"),
        ('{"en": "half an emoji \\ud83d", "de": "b"}', "en"),  # no UTF-8 can hold it
    ],
)
def test_a_line_of_jsonl_without_a_pair_is_named(tmp_path: Path, line: str, problem: str) -> None:
    source = jsonl(tmp_path, ['{"en": "a", "de": "b"}', line])
    message = error_of(source)
    assert message.startswith(f"{source.jsonl}:2: ")
    assert problem in message
    assert len(message) < len(str(source.jsonl)) + 200


@pytest.mark.parametrize("kind", [0, 2, 3])
def test_a_byte_that_is_not_utf8_is_named_in_every_kind_of_source(tmp_path: Path, kind: int) -> None:
    source = every_kind(tmp_path, PAIRS)[kind]
    path = source_files(source, "en", "de")[-1]
    path.write_bytes(path.read_bytes().replace(b"ein Haus", b"ein H\xe4us"))
    message = error_of(source)
    assert re.match(re.escape(f"{path}:1: ") + r"byte 0xe4 at position \d+ is not UTF-8; convert the file", message)
    assert bool(re.search(r", or let mtformer data check --src .* --fix FOLDER decode it$", message)) == (kind == 0)


def test_unequal_line_counts_are_told_with_the_command_that_helps(tmp_path: Path) -> None:
    source = text_files(tmp_path, ["a"] * 3, ["b"])
    message = error_of(source)
    assert "src.txt has 3 lines, " in message and "tgt.txt has 1: they are not parallel line by line; " in message
    files = f"--src {tmp_path / 'src.txt'} --tgt {tmp_path / 'tgt.txt'} --from LANG --to LANG"
    assert message.endswith(
        f"; mtformer data check {files} finds where lines are missing, and --fix realigns the others"
    )


@pytest.mark.parametrize("side", [0, 1])
def test_the_shorter_file_of_an_uneven_text_goes_on_with_empty_lines(tmp_path: Path, side: int) -> None:
    lines = [["a", "b", "c"], ["x", "y", "z"]]
    del lines[side][1:]
    drops = Drops()
    text = ParallelText([text_files(tmp_path, lines[0], lines[1])], "en", "de", lenient=True)
    rows = list(zip(*([*of_side, "", ""][:3] for of_side in lines), (1, 2, 3), strict=True))
    assert list(text.examples(drops)) == list(text.parts()[0].examples()) == rows
    longer = tmp_path / ("tgt.txt" if side == 0 else "src.txt")
    assert drops.lines == {f"only in {longer}": [2, 3]}


@pytest.mark.parametrize("suffix", [".txt", ".gz"])
@pytest.mark.parametrize("side", [0, 1])
def test_a_side_without_lines_is_told_by_its_count(tmp_path: Path, side: int, suffix: str) -> None:
    lines: list[list[str]] = [["a"] * 1200, ["b"] * 1200]
    lines[side] = []
    counts = ["1,200", "1,200"]
    counts[side] = "0"
    message = error_of(text_files(tmp_path, lines[0], lines[1], suffix))
    assert f"src{suffix} has {counts[0]} lines" in message
    assert f"tgt{suffix} has {counts[1]}: " in message
    assert "data check" not in message


def test_the_fingerprint_tells_texts_apart_and_not_the_files_they_come_from(tmp_path: Path) -> None:
    pairs = [SentencePair(*pair) for pair in PAIRS]
    expected = fingerprint(pairs)
    assert expected.n_pairs == len(PAIRS)
    assert {fingerprint(ParallelText([source], "en", "de")) for source in every_kind(tmp_path, PAIRS)} == {expected}

    changes = [
        [*pairs[1:], pairs[0]],
        pairs[:-1],
        [*pairs, pairs[0]],
        [SentencePair(pairs[0].tgt, pairs[0].src), *pairs[1:]],
        [SentencePair("one house ", "ein Haus"), *pairs[1:]],
        [SentencePair("one", " houseein Haus"), *pairs[1:]],
    ]
    digests = {fingerprint(changed).digest for changed in changes}
    assert len(digests - {expected.digest}) == len(changes)


def test_a_line_of_jsonl_in_another_encoding_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_bytes('{"en": "表", "de": "b"}\n'.encode("cp932"))  # whose second byte is a backslash
    with pytest.raises(UserError, match=r"pairs.jsonl:1: this line is not UTF-8; convert the file first: '\{\"en"):
        list(ParallelText([JsonlFile(jsonl=path)], "en", "de", lenient=True))


@pytest.mark.parametrize("keys", [("de", "de"), ("de", None), (None, "en")])
def test_the_two_sides_of_jsonl_have_keys_of_their_own(tmp_path: Path, keys: tuple[str | None, str | None]) -> None:
    source = jsonl(tmp_path, ['{"en": "a", "de": "b"}'], *keys)
    both = keys[0] or keys[1]
    assert error_of(source) == f"{source.jsonl}:1: source and target are both under {both!r}; the keys are: en, de"


def test_blank_lines_of_jsonl_are_skipped_and_counted(tmp_path: Path) -> None:
    source = jsonl(tmp_path, ["", '{"en": "a", "de": "b"}', " ", '{"en": "c", "de": "d"}'])
    drops = Drops()
    assert list(ParallelText([source], "en", "de").examples(drops)) == [("a", "b", 2), ("c", "d", 4)]
    assert (drops.counts, drops.lines) == ({"blank": 2}, {"blank": [1, 3]})


def test_the_problems_of_all_sources_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    sources: list[Source] = [
        text_files(tmp_path, ["a"], ["b"]),
        tsv(tmp_path, ["no tab"]),
        jsonl(tmp_path, ['{"en": "a", "de": "b"}', "{"]),
        text_files(tmp_path / "other", ["a", "b"], ["c"]),
    ]
    assert [message.rpartition("/")[2] for message in error_of(*sources).splitlines()] == [
        "pairs.tsv:1: this line has no tab: 'no tab'",
        "pairs.jsonl:2: this line is not JSON by itself: '{'",
        "tgt.txt --from LANG --to LANG finds where lines are missing, and --fix realigns the others",
    ]
    with pytest.raises(UserError) as error:
        require_readable([ParallelText(sources, "en", "de"), ParallelText(sources[1:2], "en", "de")])
    assert str(error.value).endswith("pairs.tsv:1: this line has no tab: 'no tab'")  # the only one in a first line


def test_the_places_of_pairs_are_lines_of_files(tmp_path: Path) -> None:
    sources: list[Source] = [text_files(tmp_path, ["a", "b"], ["c", "d"]), tsv(tmp_path, ["a\tb", "", "c\td", "e\tf"])]
    assert [example.line for example in ParallelText(sources, "en", "de").examples()] == [1, 2, 1, 3, 4]


def test_files_that_share_a_name_up_to_the_language(tmp_path: Path) -> None:
    write(tmp_path / "corpus.en", ["a"])
    write(tmp_path / "corpus.de.gz", ["b"])
    write(tmp_path / "corpus.fr", ["c"])
    source = MosesFiles(moses=tmp_path / "corpus")
    assert read(source) == [("a", "b")]
    assert list(ParallelText([source], "de", "fr")) == [("b", "c")]
    with pytest.raises(UserError, match=r"no file .*corpus\.es, compressed or not; there are: corpus\.de\.gz, "):
        list(ParallelText([source], "en", "es"))
    write(tmp_path / "corpus.de", ["b"])
    assert "corpus.de.gz exist: name the files with src and tgt" in error_of(source)


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    source = text_files(tmp_path, ["a"] * 3, ["b"] * 3)
    pairs = iter(ParallelText([source], "en", "de"))
    next(pairs)
    write(source.tgt, ["c"] * 4)
    with pytest.raises(UserError, match=r"tgt\.txt changed while it was being read: rerun when nothing writes to it"):
        list(pairs)


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    source = TsvFile(tsv=tmp_path / "pipe")
    text = ParallelText([source], "en", "de")
    threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[gzip.compress(b"a\tb\n")]).start()
    require_readable([text])  # leaves it alone
    assert list(text) == [("a", "b")]
    for again in (text, *text.parts()):
        with pytest.raises(
            UserError, match="pipe is a pipe, which can be read only once, and its text is needed again"
        ):
            list(again)


def test_a_pipe_that_two_texts_need_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("-"), tmp_path / "pipe"):
        train = ParallelText([TsvFile(tsv=path)], "en", "de")
        valid = ParallelText([text_files(tmp_path, ["a"], ["b"]), JsonlFile(jsonl=path)], "en", "de")
        with pytest.raises(UserError, match="is a pipe, which can be read only once, and its text is needed again"):
            require_readable([train, valid])


@pytest.mark.parametrize("key", ["tsv", "src", "jsonl", "tmx"])
def test_a_config_may_name_pipes_but_no_folders(tmp_path: Path, key: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    other = {"tgt": str(tmp_path / "pipe")} if key == "src" else {}
    notation = "".join(f",{name}:{path}" for name, path in other.items())
    for path in (tmp_path / "pipe", "-"):
        assert str(getattr(parse_source(f"{key}:{path}{notation}", "en", "de"), key)) == str(path)
    with pytest.raises(UserError, match="is a folder, not a file"):
        parse_source(f"{key}:{tmp_path}{notation}", "en", "de")
    with pytest.raises(UserError, match="both standard input"):
        parse_source("src:-,tgt:-", "en", "de")
    with pytest.raises(UserError, match=f"there are no files {tmp_path}/corpus"):
        parse_source(f"moses:{tmp_path}/corpus", "en", "de")


@pytest.mark.parametrize(("n_kept", "warned"), [(18, False), (17, True), (0, True)])
def test_many_dropped_lines_deserve_a_warning(n_kept: int, warned: bool) -> None:
    drops = Drops()
    for line in (3, 5):
        drops.add("blank", line)
    assert bool(drops.warning("text.tsv", n_kept)) is warned
    for line in range(10, 20):
        drops.add("too long", line)
    assert drops.warning("text.tsv", n_kept=8) == (
        "text.tsv: 12 of 20 lines are dropped (60 %): 10 too long (lines 10, 11, 12, 13, 14, …); 2 blank (lines 3, 5)"
    )


def test_the_config_of_a_run_names_the_commits_of_data_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtformer.data.sources.hub.commit_of", lambda source: f"commit of {source.hf}/{source.split}")
    hub = HubDataset(hf="me/pairs", split="train")
    other = BuiltinText(builtin="phrasebook")
    data = DataConfig(src_lang="en", tgt_lang="de", train=[other, hub], valid=[hub], test=[hub])
    config = named_commits(Config(data=data)).data
    assert config.train == [other, HubDataset(hf="me/pairs", split="train", revision="commit of me/pairs/train")]
    assert config.valid == config.test == config.train[1:]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"src": "a.en", "tgt": "a.de"}, "src and tgt of a source are the same for en-de and de-en: limit the source"),
        ({"tsv": "a.tsv", "src_column": "1", "tgt_column": "2"}, "src_column and tgt_column of a source are the same"),
        ({"jsonl": "a.jsonl", "src_key": "x"}, "src_key of a source are the same"),
        ({"tsv": "a.tsv", "src_column": "1", "tgt_column": "2", "directions": ["en-de"]}, ""),
        ({"src": "a.{src_lang}", "tgt": "a.{tgt_lang}"}, ""),
        ({"tsv": "a.tsv"}, ""),
    ],
)
def test_sides_that_are_named_fit_one_direction(source: dict[str, object], problem: str) -> None:
    other = {"builtin": "phrasebook"}
    given = {"data": {"directions": ["en-de", "de-en"], "train": [other, source], "valid": [other]}}
    if problem:
        with pytest.raises(ValueError, match=problem):
            Config.model_validate(given)
    else:
        Config.model_validate(given)


def test_a_table_without_a_header_fits_one_direction(tmp_path: Path) -> None:
    write(tmp_path / "a.tsv", ["a\tb"])
    write(tmp_path / "b.tsv", ["de\ten", "b\ta"])
    given = {"data": {"directions": ["en-de", "de-en"], "valid": [{"builtin": "phrasebook"}]}}
    for name, columns in (("a.tsv", {}), ("b.tsv", {}), ("a.tsv", {"src_column": "1", "tgt_column": "2"})):
        own = {"directions": ["en-de"]} if columns else {}
        train = [{"tsv": tmp_path / name, **columns, **own}, {"builtin": "phrasebook"}]
        data = Config.model_validate({"data": given["data"] | {"train": train}}).data
        tables = ParallelText([source for source in data.train if isinstance(source, TsvFile)], "mul", "mul")
        if name == "a.tsv" and not columns:
            with pytest.raises(UserError, match="several directions: set src_column, tgt_column and directions"):
                list(tables)
        else:
            assert list(tables) == [("a", "b"), ("b", "a")][: 1 if columns else 2]


def test_a_folder_in_the_form_of_a_data_set_is_found_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "pairs").mkdir()
    (tmp_path / "a.parquet").touch()
    refused = {"./none": "does not exist", "./a.parquet": "is not a folder: name the one that it is in"}
    config = "data: {src_lang: en, tgt_lang: de, train: [{hf: HF, split: train}], valid: [{builtin: phrasebook}]}\n"
    for name, found in (("./pairs", str(tmp_path / "pairs")), ("me/pairs", "me/pairs")):
        (tmp_path / "config.yaml").write_text(config.replace("HF", name))
        [source] = load_config(tmp_path / "config.yaml").data.train
        assert isinstance(source, HubDataset)
        assert source.hf == found
    for name, reason in refused.items():
        (tmp_path / "config.yaml").write_text(config.replace("HF", name))
        with pytest.raises(UserError, match=re.escape(f"hf: {tmp_path / name} {reason}")):
            load_config(tmp_path / "config.yaml")
