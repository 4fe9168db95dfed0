"""sacreBLEU's own test sets, downloaded by its real client from a server on loopback."""

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from conftest import Project
from sacrebleu.dataset import DATASETS
from sacrebleu.dataset.fake_sgml import FakeSGMLDataset

from mtformer.bundle.format import load_bundle
from mtformer.evaluate.testsets import EvalSet, combined, read_eval_sets
from mtformer.support.errors import MtformerError, UserError

TEXTS = {
    "src.en": ["the red house sees my old friend.", "a small dog likes every good book."],
    "ref0.de": ["das rote Haus sieht mein alter Freund.", "ein kleiner Hund mag jedes gute Buch."],
    "ref1.de": ["mein alter Freund sieht das rote Haus.", "jedes gute Buch mag ein kleiner Hund."],
}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing the server waits for its threads, which close their connections


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server with ``set.tgz``, in the format of WMT's test sets up to 2020."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("sacrebleu.dataset.base.SACREBLEU_DIR", str(tmp_path / "sacrebleu"))
    (tmp_path / "served").mkdir()
    with tarfile.open(tmp_path / "served" / "set.tgz", "w:gz") as archive:
        for name, lines in TEXTS.items():
            segments = "".join(f'<seg id="{i}">{line}</seg>\n' for i, line in enumerate(lines, 1))
            content = f'<doc docid="1" genre="news" origlang="en">\n{segments}</doc>\n'.encode()
            member = tarfile.TarInfo(f"set/{name}.sgm")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    with Server(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "served")) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def register(monkeypatch: pytest.MonkeyPatch, url: str, md5: str | None = None) -> None:
    files = [f"set/{name}.sgm" for name in TEXTS]
    dataset = FakeSGMLDataset("tiny14", [url], "made for a test", "", [md5] if md5 else None, {"en-de": files})
    monkeypatch.setitem(DATASETS, "tiny14", dataset)


@pytest.fixture
def bundle(trained: Project) -> Path:
    return trained.folder / "runs" / "config" / "model.safetensors"


def read(bundle: Path, name: str) -> EvalSet:
    [found] = read_eval_sets(bundle, load_bundle(bundle).header, testset=[name])
    return found


def test_a_set_is_downloaded_once_with_all_its_references(
    server: str, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checksum = hashlib.md5((tmp_path / "served" / "set.tgz").read_bytes()).hexdigest()
    register(monkeypatch, f"{server}/set.tgz", checksum)
    found = read(bundle, "tiny14")
    assert found.sources == TEXTS["src.en"]
    assert found.references == [TEXTS["ref0.de"], TEXTS["ref1.de"]]
    assert found.sacrebleu_arguments == ("-t", "tiny14", "-l", "en-de")
    (tmp_path / "served" / "set.tgz").unlink()
    assert read(bundle, "tiny14") == found


def test_the_command_scores_it(server: str, copied: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, f"{server}/set.tgz")
    result = copied.mtformer("eval", "--testset", "tiny14", "--output", "tiny.de")
    assert result.status == 0, result.stderr
    assert "nrefs:2|" in result.stdout
    commands = result.stdout.splitlines()[-2:]
    assert all(command.startswith("sacrebleu -t tiny14 -l en-de -i tiny.de -m ") for command in commands)


def test_it_is_a_source_like_any_other(
    server: str, copied: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    register(monkeypatch, f"{server}/set.tgz")
    sample = copied.mtformer("data", "sample", "sacrebleu:tiny14", "--pair", "en-de")
    assert sample.stdout.splitlines() == [f"{src}\t{tgt}" for src, tgt in zip(*list(TEXTS.values())[:2], strict=True)]
    fetched = copied.mtformer("data", "fetch", "sacrebleu:tiny14", "--pair", "en-de", "--output", tmp_path / "out")
    assert fetched.stdout == f"src:{tmp_path}/out/tiny14.en,tgt:{tmp_path}/out/tiny14.de\n"
    scored = copied.mtformer("eval", "--data", "sacrebleu:tiny14")
    assert scored.status == 0, scored.stderr
    assert "nrefs:2|" in scored.stdout
    unknown = copied.mtformer("data", "sample", "sacrebleu:tiny14", "--pair", "en-fr")
    assert (unknown.status, "sacreBLEU's tiny14 has no en-fr; it has en-de" in unknown.stderr) == (2, True)


@pytest.mark.parametrize(
    ("url", "md5", "reason"),
    [
        ("{}/none.tgz", None, "HTTP Error 404"),
        ("{}/set.tgz", "0" * 32, "its checksum is wrong"),
        ("http://127.0.0.1:1/set.tgz", None, r"\[\w+ \d+\] [^<>]+;"),
    ],
)
def test_a_download_that_fails_is_an_error(
    server: str, bundle: Path, monkeypatch: pytest.MonkeyPatch, url: str, md5: str | None, reason: str
) -> None:
    register(monkeypatch, url.format(server), md5)
    with pytest.raises(MtformerError, match=f"sacreBLEU cannot download tiny14: {reason}.*delete .*tiny14") as error:
        read(bundle, "tiny14")
    assert not isinstance(error.value, UserError)


def test_unknown_sets_and_pairs_are_errors_that_name_the_known_ones(
    bundle: Path,
) -> None:
    with pytest.raises(UserError, match="no test set 'wmt14_full'; did you mean wmt14/full"):
        read(bundle, "wmt14_full")
    with pytest.raises(UserError, match="no test set 'x'; sacrebleu --list names all"):
        read(bundle, "x")
    header = load_bundle(bundle).header.model_copy(update={"tgt_lang": "zh"})
    with pytest.raises(UserError, match="sacreBLEU's wmt14 has no en-zh; it has cs-en, de-en, en-cs, en-de, "):
        read_eval_sets(bundle, header, testset=["wmt14"])


def test_sets_with_different_numbers_of_references_cannot_be_put_together() -> None:
    one, two = EvalSet("a", ["x"], [["y"]], []), EvalSet("b", ["x"], [["y"], ["z"]], [])
    assert combined([one, one]).references == [["y", "y"]]
    assert combined([two, two]).references == [["y", "y"], ["z", "z"]]
    with pytest.raises(UserError, match="1 and 2 references: evaluate them one by one"):
        combined([one, two])


def test_the_fingerprint_depends_on_every_line_and_reference() -> None:
    texts = EvalSet("a", ["x", "y"], [["u", "v"]], [])
    others = [
        EvalSet("a", ["y", "x"], [["u", "v"]], []),
        EvalSet("a", ["x", "y"], [["u", "w"]], []),
        EvalSet("a", ["x", "y"], [["u", "v"], ["u", "v"]], []),
    ]
    assert len({one.fingerprint for one in (texts, *others)}) == 4
    assert EvalSet("b", ["x", "y"], [["u", "v"]], [Path("f")]).fingerprint == texts.fingerprint
