"""Data sets of the hub, loaded by the real client from a server on loopback."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest
from hub_server import serve_hub

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
    hub.add("me/table", train_csv='one,two_,score\n"one, two",eins,0.5\n')
    pairs = hub.pairs(hf="me/table", split="train", src_column="one", tgt_column="two_")
    assert pairs == [["one, two", "eins"]]

    message = hub.error(hf="me/table", split="train", src_column="one")
    assert message.startswith("me/table, split train, row ")
    assert message.endswith("there is no text under 'de'; the keys are: one, two_, score")


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
