"""Data sets of the hub, loaded by the real client from a server on loopback."""

import hashlib
import io
import json
import re
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow
import pytest
import yaml
from hub_server import HubClient, HubServer
from pyarrow import parquet

from mtformer.support.hub import why_unreachable

CLIENT = """
import json, logging, sys
from pathlib import Path
from huggingface_hub import constants
from mtformer.config import HubDataset
from mtformer.data.fetch import fetch
from mtformer.support.errors import MtformerError
from mtformer.support.logs import log_to_stderr
from mtformer.data.sources.parallel import ParallelText
from mtformer.data.sources.hub import commit_of

constants.DOWNLOAD_CHUNK_SIZE = 10_000  # so that small files come in several chunks

log_to_stderr()

def n_handlers(name):
    logger = logging.getLogger(name)
    return len(logger.handlers) + (n_handlers(logger.parent.name) if logger.propagate and logger.parent else 0)

def read(source):
    return list(ParallelText([HubDataset(**source)], "en", "de"))

calls = {
    "read": read,
    "handlers": n_handlers,
    "commit": lambda source: commit_of(HubDataset(**source)),
    "fetch": lambda given: [list(map(str, files)) for files in fetch(given["source"], "en", "de", Path(given["to"]))],
}
for line in sys.stdin:
    call, argument = json.loads(line)
    try:
        answer = ["", calls[call](argument)]
    except MtformerError as error:
        answer = [type(error).__name__, str(error)]
    print(json.dumps(answer), flush=True)
"""


class Client(HubClient):
    """The program as far as it reads data sets."""

    script = CLIENT

    def pairs(self, **source: object) -> list[list[str]]:
        return self.call("read", source)

    def error(self, **source: object) -> str:
        """The error of the user's that reading a source leads to."""
        kind, answer = self.ask("read", source)
        assert kind == "UserError", answer
        return answer

    def failure(self, **source: object) -> str:
        kind, answer = self.ask("read", source)
        assert kind == "MtformerError", answer
        return answer


@pytest.mark.slow
def test_a_split_with_columns_named_by_language_is_read_once_and_then_from_the_cache(
    hub: HubServer, client: Client, offline: Client
) -> None:
    hub.add(
        "me/pairs",
        train_jsonl='{"en": "a\\nb", "de": "ä", "id": 1}\n{"en": "", "de": "猫。"}\n',
        test_jsonl='{"en": "t", "de": "u", "id": 1}\n',
    )
    assert client.pairs(hf="me/pairs", split="train") == [["a b", "ä"], ["", "猫。"]]
    assert client.pairs(hf="me/pairs", split="test") == [["t", "u"]]
    assert client.pairs(hf="me/pairs", split="train[1:]") == [["", "猫。"]]

    assert offline.pairs(hf="me/pairs", split="test") == [["t", "u"]]


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address that refuses connections."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def test_where_the_hub_cannot_be_reached_the_cache_is_used_without_long_retries(
    hub: HubServer, client: Client, nowhere: str
) -> None:
    hub.add("me/cached", train_jsonl='{"en": "a", "de": "b"}\n')
    assert client.pairs(hf="me/cached", split="train") == [["a", "b"]]
    with closing(Client(hub, HF_ENDPOINT=nowhere, http_proxy="", HF_HUB_OFFLINE="0")) as lonely:
        message = lonely.failure(hf="me/missing", split="train")
        assert message.endswith(": it is not in the cache, and the hub cannot be reached")
        assert lonely.pairs(hf="me/cached", split="train") == [["a", "b"]]


def test_a_name_without_an_address_and_a_dead_proxy_make_the_hub_unreachable_but_not_a_slow_answer(
    hub: HubServer, nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(host: str, *_: object, **__: object) -> None:
        raise TimeoutError if "slow" in host else socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr("mtformer.support.hub.time.sleep", lambda seconds: None)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.setenv(name, "")
    assert why_unreachable(hub.environment["HF_ENDPOINT"]) is None
    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", resolve)
        assert why_unreachable("https://unknown.example") == "Name or service not known"
        assert why_unreachable("https://slow.example") is None
    monkeypatch.setenv("https_proxy", nowhere)
    assert why_unreachable("https://huggingface.co") == "Connection refused"


def card(**facts: object) -> str:
    """The card of a data set with the configurations de-en, in a.jsonl, and cs-en, in b.jsonl."""
    files = {"de-en": "a.jsonl", "cs-en": "b.jsonl"}
    configs = [{"config_name": name, "data_files": [{"split": "train", "path": files[name]}]} for name in files]
    return f"---\n{yaml.safe_dump({'configs': configs, **facts})}---\n"


def test_a_configuration_with_a_translation_column_is_read(hub: HubServer, client: Client) -> None:
    features = {
        name: [{"name": "translation", "dtype": {"translation": {"languages": name.split("-")}}}]
        for name in ("de-en", "cs-en")
    }
    hub.add(
        "me/wmt",
        README_md=card(dataset_info=[{"config_name": name, "features": features[name]} for name in features]),
        a_jsonl='{"translation": {"de": "eins", "en": "one"}}\n',
        b_jsonl='{"translation": {"cs": "dva", "en": "two"}}\n',
    )
    assert client.pairs(hf="me/wmt", config="de-en", split="train") == [["one", "eins"]]
    other = client.pairs(hf="me/wmt", config="cs-en", split="train", src_column="cs", tgt_column="en")
    assert other == [["dva", "two"]]

    message = client.error(hf="me/wmt", split="train")
    assert message.startswith("cannot load the data set me/wmt (split train): ")
    assert "de-en" in message  # which configurations there are
    assert "cs-en" in message


def test_columns_of_any_name_are_read_and_a_missing_one_is_named_with_those_there_are(
    hub: HubServer, client: Client
) -> None:
    hub.add("me/table", train_csv='one,two_,score\n"one, two",eins,0.5\n')
    pairs = client.pairs(hf="me/table", split="train", src_column="one", tgt_column="two_")
    assert pairs == [["one, two", "eins"]]

    message = client.error(hf="me/table", split="train", src_column="one")
    assert message.startswith("me/table, split train, row ")
    assert message.endswith("there is no text under 'de'; the keys are: one, two_, score; set tgt_column")


def test_a_data_set_or_split_that_is_not_there_is_named(hub: HubServer, client: Client, offline: Client) -> None:
    assert offline.error(hf="me/missing", split="train").endswith(
        "it is not in the cache, and HF_HUB_OFFLINE is set: unset it once"
    )
    message = client.error(hf="me/missing", split="train")
    assert message == (
        "cannot load the data set me/missing (split train): "
        "Dataset 'me/missing' doesn't exist on the Hub or cannot be accessed; "
        "check its name, or run `hf auth login` if it is private"
    )
    hub.add("me/train", train_jsonl='{"en": "a", "de": "b"}\n')
    message = client.error(hf="me/train", split="valid")
    assert message.startswith("cannot load the data set me/train (split valid): ")
    assert "train" in message.split("): ")[1]  # which splits there are


def test_a_file_of_a_data_set_that_cannot_be_parsed_is_told_with_the_cause(hub: HubServer, client: Client) -> None:
    hub.add("me/broken", train_jsonl='{"en": "a", "de": "b"}\n{"en": "a", "de"\n')
    message = client.error(hf="me/broken", split="train")
    assert message.startswith("cannot load the data set me/broken (split train): ")
    assert "JSON" in message
    hub.add("me/blank", train_jsonl="")
    message = client.error(hf="me/blank", split="train")
    assert message.startswith("cannot load the data set me/blank (split train): ")
    assert re.search("StopIteration; its files may be empty|at least one example", message)  # that of datasets 4


def test_a_folder_in_the_form_of_a_data_set_is_read(hub: HubServer, offline: Client) -> None:
    commit = hub.add("local/pairs", train_jsonl='{"en": "a", "de": "b"}\n')
    folder = str(hub.folder / "local" / "pairs" / commit)
    assert offline.pairs(hf=folder, split="train") == [["a", "b"]]
    assert offline.call("commit", {"hf": folder, "split": "train"}) is None


def test_texts_that_a_data_set_lacks_are_empty(tmp_path: Path, offline: Client) -> None:
    (tmp_path / "train.csv").write_text("en,de\n,leer\nNone,Keine\nYes,Ja\n")  # pandas takes None for a missing value
    assert offline.pairs(hf=str(tmp_path), split="train") == [["", "leer"], ["", "Keine"], ["Yes", "Ja"]]
    table = pyarrow.table({"translation": [{"en": "a", "de": None}, {"en": None, "de": "b"}]})
    (tmp_path / "train.csv").unlink()
    parquet.write_table(table, tmp_path / "train.parquet")
    assert offline.pairs(hf=str(tmp_path), split="train") == [["a", ""], ["", "b"]]


def test_files_of_a_folder_may_have_changed_since_they_were_fetched(
    hub: HubServer, offline: Client, tmp_path: Path
) -> None:
    commit = hub.add("local/changing", train_jsonl='{"en": "a", "de": "b"}\n')
    folder = str(hub.folder / "local" / "changing" / commit)
    request = {"source": f"hf:{folder},split:train", "to": str(tmp_path)}
    offline.call("fetch", request)
    assert "exists already: remove it" in offline.ask("fetch", request)[1]


def shards(n_rows: int, n_shards: int) -> dict[str, bytes]:
    """The files of a split in parquet, incompressible, with a column that no text is in."""
    random = np.random.default_rng(1)
    texts = ["".join(map(chr, random.integers(0x4E00, 0x9FA5, 60))) for _ in range(n_rows)]
    files = {}
    for number, rows in enumerate(np.array_split(np.arange(n_rows), n_shards)):
        table = pyarrow.table({"id": rows, "en": [f"{i} {texts[i]}" for i in rows], "de": [f"d{i}" for i in rows]})
        raw = io.BytesIO()
        parquet.write_table(table, raw)
        files[f"train-{number:05d}-of-{n_shards:05d}_parquet"] = raw.getvalue()
    return files


def test_an_interrupted_download_resumes_and_a_busy_hub_is_asked_again(hub: HubServer, client: Client) -> None:
    hub.add("me/shards", **shards(2_000, 2))
    hub.faults["train-00000-of-00002.parquet"] = ["cut"]
    hub.faults["train-00001-of-00002.parquet"] = ["429"]
    pairs = client.pairs(hf="me/shards", split="train")
    assert [tgt for _, tgt in pairs] == [f"d{i}" for i in range(2_000)]
    assert len(hub.ranges) == 1  # the second half of the first shard
    assert int(hub.ranges[0].strip("bytes=-")) > 50_000


def test_messages_of_the_libraries_are_logged_once(hub: HubServer, client: Client) -> None:
    hub.add("me/logged", train_jsonl='{"en": "a", "de": "b"}\n')
    client.pairs(hf="me/logged", split="train")
    assert [client.call("handlers", name) for name in ("datasets.load", "huggingface_hub.utils")] == [1, 1]


def test_rows_that_are_streamed_are_the_same(hub: HubServer, client: Client) -> None:
    hub.add("me/streamed", **shards(1_500, 3))
    streamed = client.pairs(hf="me/streamed", split="train", streaming=True)
    cached = hub.folder.parent / "cache" / "hub" / "datasets--me--streamed"
    assert not list(cached.rglob("*.parquet"))
    assert streamed == client.pairs(hf="me/streamed", split="train")
    assert len(list(cached.rglob("*.parquet"))) == 3
    assert "Bad split: valid" in client.error(hf="me/streamed", split="valid", streaming=True)


@pytest.mark.parametrize("name", ["git", "large"])
def test_a_file_whose_checksum_is_wrong_is_downloaded_again_and_removed_if_that_fails(
    name: str, hub: HubServer, client: Client
) -> None:
    text = "".join(f'{{"en": "e{i}", "de": "d{i}"}}\n' for i in range(100))
    files = {"train_jsonl": text} if name == "git" else shards(100, 2)
    commit = hub.add(f"flipped/{name}", **files)
    file = [name.replace("_", ".") for name in files][-1]
    hub.faults[file] = ["flip"] * 2
    cached = hub.folder.parent / "cache" / "hub" / f"datasets--flipped--{name}"
    assert client.failure(hf=f"flipped/{name}", split="train") == (
        f"hf://datasets/flipped/{name}@{commit}/{file}: downloaded twice with a wrong checksum, and removed from the "
        "cache; rerun to download again"
    )
    assert not (cached / "snapshots" / commit / file).is_symlink()
    assert len(list((cached / "blobs").iterdir())) == len(files) - 1

    hub.faults[file] = ["flip"]
    pairs = client.pairs(hf=f"flipped/{name}", split="train")
    assert [tgt for _, tgt in pairs] == [f"d{i}" for i in range(100)]
    assert hub.faults[file] == []
    assert len(list((cached / "blobs").iterdir())) == len(files)


def test_a_file_that_is_broken_on_the_hub_is_not_taken_for_a_damaged_download(hub: HubServer, client: Client) -> None:
    [(name, raw)] = shards(100, 1).items()
    hub.add("me/damaged", **{name: raw[:-1_000]})
    assert "so the file is damaged on the hub itself" in client.error(hf="me/damaged", split="train")
    assert "is not verified" in client.error(hf="me/damaged", split="train", streaming=True)


def test_a_gated_data_set_is_reported_with_what_to_do(hub: HubServer, client: Client) -> None:
    hub.add("me/gated", train_jsonl='{"en": "a", "de": "b"}\n')
    hub.gated["me/gated"] = 403
    assert client.error(hf="me/gated", split="train") == (
        "cannot load the data set me/gated (split train): access to it is restricted; ask for it at "
        "https://huggingface.co/datasets/me/gated, then run `hf auth login` or set HF_TOKEN"
    )


def test_a_commit_pins_the_text(hub: HubServer, client: Client, offline: Client) -> None:
    old = hub.add("me/moving", train_jsonl='{"en": "old", "de": "alt"}\n')
    assert client.call("commit", {"hf": "me/moving", "split": "train"}) == old
    assert client.pairs(hf="me/moving", split="train") == [["old", "alt"]]
    new = hub.add("me/moving", train_jsonl='{"en": "new", "de": "neu"}\n')
    assert client.call("commit", {"hf": "me/moving", "split": "train"}) == new
    assert client.pairs(hf="me/moving", split="train", revision=old) == [["old", "alt"]]
    assert client.pairs(hf="me/moving", split="train") == [["new", "neu"]]

    assert offline.pairs(hf="me/moving", split="train", revision=new) == [["new", "neu"]]
    missing = "0" * 40
    assert client.error(hf="me/moving", split="train", revision=missing) == (
        f"cannot load the data set me/moving (split train): Revision '{missing}' doesn't exist for dataset 'me/moving' "
        "on the Hub"
    )
    assert offline.failure(hf="me/moving", split="train", revision=missing).startswith(  # not what is in the cache
        f"cannot load the data set me/moving: revision {missing} is neither in the cache nor on the hub"
    )


def test_fetch_writes_all_splits_with_a_note_of_their_origin(hub: HubServer, client: Client, tmp_path: Path) -> None:
    commit = hub.add(
        "me/fetched",
        README_md="---\nlicense: cc-by-4.0\n---\n",
        train_jsonl='{"en": "a", "de": "ä"}\n{"en": "b\\nb", "de": ""}\n',
        test_jsonl='{"en": "t", "de": "u"}\n',
    )
    request = {"source": "hf:me/fetched", "to": str(tmp_path / "new" / "data")}
    files = client.call("fetch", request)
    folder = tmp_path / "new" / "data"
    assert sorted(map(sorted, files)) == [
        [str(folder / f"fetched.{split}.{ending}") for ending in ("de", "en", "origin.json")]
        for split in ("test", "train")
    ]
    assert (folder / "fetched.train.en").read_text() == "a\nb b\n"
    assert (folder / "fetched.train.de").read_text() == "ä\n\n"
    note = json.loads((folder / "fetched.train.origin.json").read_text())
    assert note["source"] == {"hf": "me/fetched", "split": "train", "revision": commit}
    assert note["license"] == "cc-by-4.0"
    assert note["pairs"] == 2
    assert note["sha256"]["fetched.train.en"] == hashlib.sha256(b"a\nb b\n").hexdigest()

    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    (folder / "fetched.test.origin.json").unlink()
    assert "test.en exists already: remove it, or choose another folder" in client.ask("fetch", request)[1]
    for name in ("fetched.test.en", "fetched.test.de"):
        (folder / name).unlink()
    assert client.call("fetch", request) == files
    assert all((path.stat().st_mtime_ns == then) is (".train." in path.name) for path, then in before.items())
    (folder / "fetched.train.de").write_text("mine\nmine\n")
    assert "train.en exists already" in client.ask("fetch", request)[1]
    assert (folder / "fetched.train.de").read_text() == "mine\nmine\n"


def test_fetch_writes_several_data_sets_and_configurations_into_one_folder(
    hub: HubServer, client: Client, tmp_path: Path
) -> None:
    hub.add(
        "me/opus-9",
        README_md=card(),
        a_jsonl='{"de": "eins", "en": "one"}\n',
        b_jsonl='{"de": "zwei", "en": "two"}\n',
    )
    hub.add("me/other", train_jsonl='{"en": "three", "de": "drei"}\n')
    sources = ["hf:me/opus-9,config:de-en", "hf:me/opus-9,config:cs-en,split:train", "hf:me/other"]
    for source in sources:
        client.call("fetch", {"source": source, "to": str(tmp_path)})
    assert {path.name: path.read_text() for path in tmp_path.glob("*.de")} == {
        "opus-9-de-en.train.de": "eins\n",
        "opus-9-cs-en.train.de": "zwei\n",
        "other.train.de": "drei\n",
    }
