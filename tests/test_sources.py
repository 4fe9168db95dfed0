import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from hub_server import serve_hub

from mtformer.config import JsonlFile, Source, TextFiles, TsvFile
from mtformer.errors import UserError
from mtformer.text.sources import ParallelText, SentencePair, fingerprint

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


def test_further_columns_of_a_tsv_are_ignored(tmp_path: Path) -> None:
    assert read(tsv(tmp_path, ["a\tb\tc", "d\te\t", "f\tg\r"])) == [("a", "b"), ("d", "e"), ("f", "g")]


@pytest.mark.parametrize("line", ["two  spaces", ""])
def test_a_line_of_a_tsv_without_a_tab_is_named(tmp_path: Path, line: str) -> None:
    source = tsv(tmp_path, ["a\tb", line, "c\td"])
    assert error_of(source) == f"{source.tsv}:2: this line has no tab: {line!r}"


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
    ],
)
def test_a_json_object_holds_a_pair_of_lines(
    tmp_path: Path, row: dict[str, object], keys: tuple[str | None, str | None]
) -> None:
    assert read(jsonl(tmp_path, [json.dumps(row)], *keys)) == [("a b", "c")]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"en": "a", "de": "b"', 'this line is not JSON: \'{"en"'),
        ("", "this line is not JSON"),
        ("[" * 100_000, "this line is not JSON"),
        ('["a", "b"]', "this is not an object with the keys 'en' and 'de'"),
        ('{"en": "a", "fr": "b"}', "there is no text under 'de'; the keys are: en, fr"),
        ('{"en": null, "de": "b"}', "there is no text under 'en'"),
        ('{"en": "a", "de": 5}', "there is no text under 'de'"),
        ('{"translation": {"en": "a", "fr": "b"}}', "there is no text under 'de'; the keys are: en, fr"),
        ("{}", "there is no text under 'en'; the keys are: none"),
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
    path = list(source.model_dump(exclude_none=True).values())[-1]
    path.write_bytes(path.read_bytes().replace(b"ein Haus", b"ein H\xe4us"))
    assert re.match(re.escape(f"{path}:1: ") + r"byte 0xe4 at position \d+ is not UTF-8", error_of(source))


def parallel_lines(n: int, seed: int) -> tuple[list[str], list[str]]:
    """Draw lines with the lengths of real translations: from 20 to 200 characters, the target somewhat longer."""
    random = np.random.default_rng(seed)
    src_lengths = np.clip(random.lognormal(4.0, 0.45, n), 20, 200)
    tgt_lengths = src_lengths * random.normal(1.12, 0.15, n).clip(0.6, 1.7)
    return ["x" * int(length) for length in src_lengths], ["y" * int(length) for length in tgt_lengths]


def lost_lines_message(folder: Path, seed: int, side: int, lost: list[int]) -> tuple[str, int]:
    """Delete the lines ``lost`` (from 1) on one of 300 lines' sides; return the message and the line it guesses."""
    lines = parallel_lines(300, seed)
    for number in sorted(lost, reverse=True):
        del lines[side][number - 1]
    message = error_of(text_files(folder, *lines))
    guess = re.search(r"seem to shift near line (\d+)$", message)
    assert guess, message
    return message, int(guess[1])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("lost", [[150], [150, 151], [20], [285]])
def test_unequal_line_counts_are_told_with_the_place_where_lines_are_missing(
    tmp_path: Path, seed: int, side: int, lost: list[int]
) -> None:
    message, guess = lost_lines_message(tmp_path, seed, side, lost)
    counts = [300, 300]
    counts[side] -= len(lost)
    assert f"src.txt has {counts[0]} lines, {tmp_path / 'tgt.txt'} has {counts[1]}: " in message
    assert abs(guess - lost[0]) <= 6


def test_lines_missing_in_two_places_are_placed_at_one_or_between_them(tmp_path: Path) -> None:
    _, guess = lost_lines_message(tmp_path, seed=1, side=1, lost=[100, 200])
    assert 94 <= guess <= 206


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
    assert "near line" not in message


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


READ = """
import json, sys
from mtformer.config import HubDataset
from mtformer.errors import UserError
from mtformer.text.sources import ParallelText
try:
    print(json.dumps(list(ParallelText([HubDataset(**json.loads(sys.argv[1]))], "en", "de"))))
except UserError as error:
    sys.exit(f"UserError: {error}")
"""


@dataclass(frozen=True)
class Hub:
    folder: Path
    environment: dict[str, str]

    def add(self, name: str, **files: str) -> None:
        """Add a data set; ``train_jsonl="…"`` is its file ``train.jsonl``."""
        (self.folder / name).mkdir(parents=True)
        for file, text in files.items():
            (self.folder / name / file.replace("_", ".")).write_text(dedent(text), encoding="utf-8")

    def run(self, **source: str) -> subprocess.CompletedProcess[str]:
        # In a process of its own, since the client reads the environment when it is imported. The current folder is
        # not that of the data sets: their names would be taken for local folders.
        command = [sys.executable, "-c", READ, json.dumps(source)]
        return subprocess.run(command, env=self.environment, cwd=self.folder.parent, capture_output=True, text=True)

    def pairs(self, **source: str) -> list[list[str]]:
        done = self.run(**source)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)  # nothing else is on stdout

    def error(self, **source: str) -> str:
        done = self.run(**source)
        assert "UserError: " in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr.split("UserError: ")[1].strip()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    folder = tmp_path / "hub"
    folder.mkdir()
    with serve_hub(folder, cache=tmp_path / "cache") as environment:
        own = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
        yield Hub(folder, own | environment)


def test_a_split_with_columns_named_by_language_is_read_once_and_then_from_the_cache(hub: Hub) -> None:
    hub.add(
        "me/pairs",
        train_jsonl='{"en": "a\\nb", "de": "ä", "id": 1}\n{"en": "", "de": "猫。"}\n',
        test_jsonl='{"en": "t", "de": "u", "id": 1}\n',
    )
    assert hub.pairs(hf="me/pairs", split="train") == [["a b", "ä"], ["", "猫。"]]
    assert hub.pairs(hf="me/pairs", split="test") == [["t", "u"]]
    assert hub.pairs(hf="me/pairs", split="train[1:]") == [["", "猫。"]]

    offline = Hub(hub.folder, hub.environment | {"HF_HUB_OFFLINE": "1"})
    assert offline.pairs(hf="me/pairs", split="test") == [["t", "u"]]


def test_a_configuration_with_a_translation_column_is_read(hub: Hub) -> None:
    hub.add(
        "me/wmt",
        README_md="""\
            ---
            configs:
            - {config_name: de-en, data_files: [{split: train, path: a.jsonl}]}
            - {config_name: cs-en, data_files: [{split: train, path: b.jsonl}]}
            dataset_info:
            - config_name: de-en
              features: [{name: translation, dtype: {translation: {languages: [de, en]}}}]
            - config_name: cs-en
              features: [{name: translation, dtype: {translation: {languages: [cs, en]}}}]
            ---
            """,
        a_jsonl='{"translation": {"de": "eins", "en": "one"}}\n',
        b_jsonl='{"translation": {"cs": "dva", "en": "two"}}\n',
    )
    assert hub.pairs(hf="me/wmt", config="de-en", split="train") == [["one", "eins"]]
    other = hub.pairs(hf="me/wmt", config="cs-en", split="train", src_column="cs", tgt_column="en")
    assert other == [["dva", "two"]]

    message = hub.error(hf="me/wmt", split="train")
    assert message.startswith("cannot load the data set me/wmt (split train): ")
    assert "de-en" in message  # which configurations there are
    assert "cs-en" in message


def test_columns_of_any_name_are_read_and_a_missing_one_is_named_with_those_there_are(hub: Hub) -> None:
    hub.add("me/table", train_csv='source,target,score\n"one, two",eins,0.5\n')
    pairs = hub.pairs(hf="me/table", split="train", src_column="source", tgt_column="target")
    assert pairs == [["one, two", "eins"]]

    message = hub.error(hf="me/table", split="train", src_column="source")
    assert message.startswith("me/table, split train, row ")
    assert message.endswith("there is no text under 'de'; the keys are: source, target, score")


def test_a_data_set_or_split_that_is_not_there_is_named(hub: Hub) -> None:
    message = hub.error(hf="me/missing", split="train")
    assert message == (
        "cannot load the data set me/missing (split train): "
        "Dataset 'me/missing' doesn't exist on the Hub or cannot be accessed."
    )
    hub.add("me/pairs", train_jsonl='{"en": "a", "de": "b"}\n')
    message = hub.error(hf="me/pairs", split="valid")
    assert message.startswith("cannot load the data set me/pairs (split valid): ")
    assert "train" in message.split("): ")[1]  # which splits there are


def test_a_file_of_a_data_set_that_cannot_be_parsed_is_told_with_the_cause(hub: Hub) -> None:
    hub.add("me/broken", train_jsonl='{"en": "a", "de": "b"}\n{"en": "a", "de"\n')
    message = hub.error(hf="me/broken", split="train")
    assert message.startswith("cannot load the data set me/broken (split train): ")
    assert "JSON" in message


def test_a_folder_in_the_form_of_a_data_set_is_read(hub: Hub) -> None:
    hub.add("local/pairs", train_jsonl='{"en": "a", "de": "b"}\n')
    folder = str(hub.folder / "local" / "pairs")
    offline = Hub(hub.folder, hub.environment | {"HF_HUB_OFFLINE": "1"})
    assert offline.pairs(hf=folder, split="train") == [["a", "b"]]
