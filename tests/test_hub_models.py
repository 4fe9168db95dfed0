"""Models of the hub, loaded by the real client from a server on loopback."""

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import Project
from hub_server import HubClient, HubServer
from pretrained import KINDS

from mtformer.bundle.format import load_bundle
from mtformer.config import LanguagePair
from mtformer.export.importing import read_model

CLIENT = """
import json, sys, tempfile
from pathlib import Path
from huggingface_hub import constants
from mtformer.config import LanguagePair
from mtformer.export.importing import read_model, write_model
from mtformer.support.errors import MtformerError
from mtformer.support.logs import log_to_stderr

constants.DOWNLOAD_CHUNK_SIZE = 10_000  # so that small files come in several chunks

log_to_stderr()

def import_(given):
    with tempfile.TemporaryDirectory() as folder:
        output = Path(given.pop("output", folder))
        imported = read_model(languages=LanguagePair("en", "de"), **given)
        write_model(imported, output)
    return imported.header.provenance

for line in sys.stdin:
    _, argument = json.loads(line)
    try:
        answer = ["", import_(argument)]
    except MtformerError as error:
        answer = [type(error).__name__, str(error)]
    print(json.dumps(answer), flush=True)
"""
CARD = "---\nlicense: cc-by-4.0\nmodel-index: 3\n---\nA model.\n"


class Client(HubClient):
    """The program as far as it imports models."""

    script = CLIENT

    def import_(self, model: str, **given: object) -> dict[str, Any]:
        return self.call("import", {"model": model, **given})

    def error(self, model: str, kind: str = "UserError", **given: object) -> str:
        raised, answer = self.ask("import", {"model": model, **given})
        assert raised == kind, answer
        return answer


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Models with one file of weights, with a pickle, and with several files."""
    folders = {}
    for kind in ("marian", "marian_two_vocabularies", "mbart"):
        folders[kind] = tmp_path_factory.mktemp("theirs") / f"{kind}-en-de"
        folders[kind].mkdir()
        KINDS[kind](folders[kind], 1)
        (folders[kind] / "README.md").write_text(CARD)
    return folders


def cached(hub: HubServer, name: str) -> Path:
    """The folder of a model in the client's cache."""
    return hub.folder.parent / "cache" / "hub" / f"models--{name.replace('/', '--')}"


class Files(NamedTuple):
    """The files of a model in the cache: their names, and how many contents there are."""

    names: set[str]
    n_contents: int


def cached_files(hub: HubServer, name: str, commit: str) -> Files:
    folder = cached(hub, name)
    return Files({path.name for path in (folder / "snapshots" / commit).iterdir()}, len([*folder.glob("blobs/*")]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["marian", "marian_two_vocabularies", "mbart"])
def test_a_model_of_the_hub_is_that_of_its_folder_with_a_note_of_its_origin(
    kind: str, folders: dict[str, Path], hub: HubServer, client: Client, offline: Client, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    shutil.copytree(folders[kind], theirs)
    for unused in ("tf_model.h5", "rust_model.ot", "pytorch_model.bin"):
        if not (theirs / unused).exists():
            (theirs / unused).write_text(f"nothing of {unused} is needed")
    commit = hub.add_folder(f"me/{kind}", theirs)
    provenance = client.import_(f"hf:me/{kind}", output=str(tmp_path))
    ours, expected = (
        load_bundle(tmp_path / "model.safetensors"),
        read_model(str(folders[kind]), LanguagePair("en", "de")),
    )
    assert provenance["imported_from"] == f"hf:me/{kind}"
    assert provenance["revision"] == commit
    assert provenance["license"] == "cc-by-4.0"
    assert expected.header.provenance["license"] == "cc-by-4.0"
    assert ours.header.provenance == provenance
    assert ours.header == expected.header.model_copy(update={"provenance": provenance})
    state = ours.model.state_dict()
    assert all(state[name].equal(tensor) for name, tensor in expected.tensors.items())
    unused_files = {"tf_model.h5", "rust_model.ot"} | (
        {"pytorch_model.bin"} if kind != "marian_two_vocabularies" else set()
    )
    assert not cached_files(hub, f"me/{kind}", commit).names & unused_files

    assert offline.import_(f"hf:me/{kind}") == provenance
    n_served = len(hub.served)
    assert client.import_(f"hf:me/{kind}") == provenance
    assert len(hub.served) == n_served


@pytest.mark.slow
def test_an_import_shows_what_it_downloads_and_nothing_of_the_library(
    folders: dict[str, Path], hub: HubServer, tmp_path: Path
) -> None:
    hub.add_folder("me/quiet", folders["marian"])
    command = ("import", "hf:me/quiet", "--output", "ours", "--from", "en", "--to", "de")
    result = Project(tmp_path, tmp_path).process(*command, env=hub.environment)
    assert result.status == 0, result.stderr
    assert all(line.startswith("downloading ") for line in result.stderr.splitlines()), result.stderr


def test_a_model_that_has_moved_is_found(folders: dict[str, Path], hub: HubServer, client: Client) -> None:
    commit = hub.add_folder("new/name", folders["marian"])
    hub.moved["old/name"] = "new/name"
    assert client.import_("hf:old/name")["revision"] == commit


def test_an_interrupted_download_resumes(folders: dict[str, Path], hub: HubServer, client: Client) -> None:
    hub.add_folder("me/cut", folders["marian"])
    hub.faults["model.safetensors"] = ["cut"]
    hub.ranges.clear()
    client.import_("hf:me/cut")
    size = (folders["marian"] / "model.safetensors").stat().st_size
    assert len(hub.ranges) == 1
    assert 0 < int(hub.ranges[0].strip("bytes=-")) <= size // 2


def test_a_failed_download_can_be_rerun_and_keeps_complete_files(
    folders: dict[str, Path], hub: HubServer, client: Client
) -> None:
    hub.add_folder("me/failed", folders["mbart"])
    last = sorted(folders["mbart"].glob("*.safetensors"))[-1].name
    hub.faults[last] = ["500"]
    message = client.error("hf:me/failed", "MtformerError")
    assert message.startswith("cannot load the model hf:me/failed: ")
    assert message.endswith("; rerun to resume the download")
    hub.served.clear()
    client.import_("hf:me/failed")
    assert hub.served == [last]

    hub.faults[""] = ["429"] * 9
    message = client.error("hf:me/failed", "MtformerError")
    hub.faults.clear()
    assert message.endswith("the hub asks to wait (429); rerun later, what is downloaded stays")


@pytest.mark.parametrize("file", ["model.safetensors", "vocab.json"])
def test_a_file_whose_checksum_is_wrong_is_downloaded_again_and_removed_if_that_fails(
    file: str, folders: dict[str, Path], hub: HubServer, client: Client
) -> None:
    name = f"flipped/{file.split('.')[0]}"
    commit = hub.add_folder(name, folders["marian"])
    hub.faults[file] = ["flip"] * 2
    assert client.error(f"hf:{name}", "MtformerError") == (
        f"hf:{name}/{file}: downloaded twice with a wrong checksum, and removed from the cache; rerun to download again"
    )
    names, n_contents = cached_files(hub, name, commit)
    assert file not in names
    assert n_contents == len(names)

    hub.faults[file] = ["flip"]
    client.import_(f"hf:{name}")
    assert hub.faults[file] == []
    names, n_contents = cached_files(hub, name, commit)
    assert file in names
    assert n_contents == len(names)


@pytest.mark.parametrize("status", [401, 403])
def test_a_gated_model_is_reported_with_what_to_do(
    status: int, folders: dict[str, Path], hub: HubServer, client: Client
) -> None:
    hub.add_folder(f"me/gated-{status}", folders["marian"])
    hub.gated[f"me/gated-{status}"] = status
    assert client.error(f"hf:me/gated-{status}") == (
        f"cannot load the model hf:me/gated-{status}: access to it is restricted; ask for it at "
        f"https://huggingface.co/me/gated-{status}, then run `hf auth login` or set HF_TOKEN"
    )


def test_what_does_not_exist_is_named(folders: dict[str, Path], hub: HubServer, client: Client, tmp_path: Path) -> None:
    assert client.error("hf:me/nothing") == (
        "there is no model hf:me/nothing, or it is private: check its name, or run `hf auth login`"
    )
    assert client.error("hf:me/a/b") == "hf:me/a/b names no model of the hub, as hf:OWNER/NAME would"
    hub.add_folder("me/model", folders["marian"])
    assert client.error("hf:me/model", revision="v2") == "the model hf:me/model has no revision v2"
    assert "--revision is for a model of the hub" in client.error(str(folders["marian"]), revision="v2")

    for missing, message in {
        "config.json": "the model hf:lacks/config lacks config.json",
        "model.safetensors": "the model hf:lacks/model has no weights: neither model.safetensors nor pytorch_model.bin",
    }.items():
        shutil.copytree(folders["marian"], tmp_path / missing)
        (tmp_path / missing / missing).unlink()
        name = f"lacks/{missing.split('.')[0]}"
        hub.add_folder(name, tmp_path / missing)
        assert client.error(f"hf:{name}") == message

    shutil.copytree(folders["mbart"], tmp_path / "shards")
    last = sorted((tmp_path / "shards").glob("*.safetensors"))[-1]
    last.unlink()
    hub.add_folder("lacks/shard", tmp_path / "shards")
    assert client.error("hf:lacks/shard") == f"the model hf:lacks/shard lacks {last.name}"


def test_a_model_that_cannot_be_imported_is_refused_before_its_weights_are_downloaded(
    folders: dict[str, Path], hub: HubServer, client: Client, tmp_path: Path
) -> None:
    shutil.copytree(folders["marian"], tmp_path / "t5")
    config = json.loads((tmp_path / "t5" / "config.json").read_text())
    (tmp_path / "t5" / "config.json").write_text(json.dumps(config | {"model_type": "t5"}))
    hub.add_folder("me/t5", tmp_path / "t5")
    hub.served.clear()
    assert "model_type = t5 cannot be imported" in client.error("hf:me/t5")
    assert "model.safetensors" not in hub.served


def test_a_revision_pins_the_weights(folders: dict[str, Path], hub: HubServer, client: Client, tmp_path: Path) -> None:
    old = hub.add_folder("me/moving", folders["marian"])
    shutil.copytree(folders["marian"], tmp_path / "new")
    KINDS["marian"](tmp_path / "new", 2)
    new = hub.add_folder("me/moving", tmp_path / "new")
    commits = {}
    for revision in (None, old, new):
        output = tmp_path / str(revision)
        output.mkdir()
        commits[revision] = client.import_("hf:me/moving", revision=revision, output=str(output))["revision"]
    assert commits == {None: new, old: old, new: new}
    weights = {
        revision: load_bundle(tmp_path / str(revision) / "model.safetensors").model.output.weight
        for revision in commits
    }
    assert weights[None].equal(weights[new])
    assert not weights[old].equal(weights[new])


@pytest.mark.slow
def test_where_the_hub_cannot_be_reached_the_cache_is_used(
    folders: dict[str, Path], hub: HubServer, client: Client, offline: Client
) -> None:
    commit = hub.add_folder("me/cached", folders["mbart"])
    assert offline.error("hf:me/cached") == (
        "cannot load the model hf:me/cached: it is not in the cache, and HF_HUB_OFFLINE is set: unset it once"
    )
    provenance = client.import_("hf:me/cached")
    with closing(Client(hub, HF_ENDPOINT="http://127.0.0.1:9", http_proxy="")) as lonely:
        assert lonely.import_("hf:me/cached") == provenance
        missing = lonely.error("hf:me/missing", "MtformerError")
        assert missing == "cannot load the model hf:me/missing: it is not in the cache, and the hub cannot be reached"
        next((cached(hub, "me/cached") / "snapshots" / commit).glob("*.safetensors")).unlink()
        assert "not in the cache" in lonely.error("hf:me/cached", "MtformerError")
