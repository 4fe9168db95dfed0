"""What tests share: a small language to learn, a config for it, and a model that has learned it."""

import gc
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: two test processes share two cores
sys.path.append(str(Path(__file__).parent.parent / "scripts"))  # at the end: some have the names of packages

import numpy as np
import pytest
import yaml
from filelock import FileLock

from mtformer.cli import main
from mtformer.config import ResolvedTraining, parse_source
from mtformer.data.arrays import Ragged
from mtformer.data.sources.parallel import ParallelText
from mtformer.data.store import Chunk, pack
from mtformer.data.tokens import Corpus, Encoder, Rows, Variation, replaced
from mtformer.text.pairs import SentencePair

if TYPE_CHECKING:
    from browser import Opener
    from hub_server import HubClient, HubServer
    from servers import Client

PAD_ID, UNK_ID, BOS_ID, EOS_ID = range(4)  # of every tokenizer that is trained here
LONGEST = (
    "ranks tour translator_page improve cli explain_live browser_text trainer import markup filters check "
    "explain_page translator sharding"
).split()
ENGLISH = ["the red house", "a small dog", "my old friend", "this green car", "every good book", "her new garden"]
GERMAN = [
    "das rote Haus",
    "ein kleiner Hund",
    "mein alter Freund",
    "dieses grüne Auto",
    "jedes gute Buch",
    "ihr neuer Garten",
]
ENGLISH_VERBS = ["sees", "likes", "finds", "needs"]
GERMAN_VERBS = ["sieht", "mag", "findet", "braucht"]


@dataclass(frozen=True)
class Project:
    """A folder with parallel text and a config that trains on it in seconds."""

    folder: Path
    config: Path

    def mtformer(self, *args: str | Path, stdin: str | bytes = "", env: dict[str, str] | None = None) -> "Result":
        """Run the command line in the folder as a user would, but inside this process, which has torch loaded."""
        with streams_at(stdin) as streams, pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            patch.setattr(sys, "argv", ["mtformer", *map(str, args)])
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            status = 0
            try:
                main()
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else int(end.code is not None)
        return Result(status, streams.stdout, streams.stderr)

    def process(self, *args: str | Path, env: dict[str, str] | None = None) -> "Result":
        """Run the command line in a process of its own, where that makes a difference."""
        command = [sys.executable, "-m", "mtformer", *map(str, args)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, env=os.environ | (env or {}), timeout=300)
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


@dataclass
class Streams:
    """What a command has written."""

    stdout: str = ""
    stderr: str = ""


@contextmanager
def streams_at(stdin: str | bytes) -> Iterator[Streams]:
    """Give the process the standard streams, logging and signals of its start; what it writes is there afterwards."""
    written = Streams()
    kept = sys.stdin, sys.stdout, sys.stderr
    descriptors = [os.dup(number) for number in range(3)]
    root, package = logging.getLogger(), logging.getLogger("mtformer")
    handlers, levels = root.handlers[:], (root.level, package.level)
    root.handlers.clear()
    on_sigterm = signal.getsignal(signal.SIGTERM)
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin.encode() if isinstance(stdin, str) else stdin)
        given.seek(0)
        try:
            for number, file in enumerate((given, out, err)):
                os.dup2(file.fileno(), number)
            sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (a descriptor)
            sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
            yield written
        finally:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError):
                    stream.flush()
            sys.stdin, sys.stdout, sys.stderr = kept
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
                os.close(descriptor)
            signal.signal(signal.SIGTERM, on_sigterm)
            root.handlers[:] = handlers
            root.setLevel(levels[0])
            package.setLevel(levels[1])
            for name, file in (("stdout", out), ("stderr", err)):
                file.seek(0)
                setattr(written, name, file.read().decode())


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    status: int
    stdout: str
    stderr: str


def pytest_collection() -> None:
    """Look for no garbage while tests are imported: it takes seconds, and almost everything stays."""
    gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the files that take longest, so that no process waits for another at the end."""
    places = {f"test_{name}.py": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


def pytest_collection_finish() -> None:
    """Exempt what has been imported by now from garbage collection, since it stays until the end."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_interrupts() -> Iterator[None]:
    """Handle SIGINT as in the foreground: in the background of a shell, tests and their processes would ignore it."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of the tests' own, for models that are converted for CTranslate2."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


def training_settings(**given: object) -> ResolvedTraining:
    """Return settings of training with ``given`` ones among them."""
    settings = {
        "max_tokens": 64,
        "learning_rate": 0.001,
        "warmup_steps": 0,
        "optimizer": "adamw",
        "weight_decay": 0.01,
        "precision": "fp32",
        "early_stopping_patience": None,
    }
    return ResolvedTraining.model_validate(settings | given)


def sentence_pairs(n: int, seed: int = 1) -> list[tuple[str, str]]:
    """Draw ``n`` sentences such as "the red house needs my old friend." with their German translations."""
    random = np.random.default_rng(seed)
    pairs = []
    for _ in range(n):
        s, v, o = random.integers(len(ENGLISH)), random.integers(len(ENGLISH_VERBS)), random.integers(len(ENGLISH))
        pairs.append((f"{ENGLISH[s]} {ENGLISH_VERBS[v]} {ENGLISH[o]}.", f"{GERMAN[s]} {GERMAN_VERBS[v]} {GERMAN[o]}."))
    return pairs


@lru_cache(maxsize=1)
def phrasebook_pairs() -> list[SentencePair]:
    """Return some 4,000 sentences of the phrasebook, without repetitions."""
    source = parse_source("builtin:phrasebook,size:4000", "en", "de")
    return list(dict.fromkeys(ParallelText([source], "en", "de")))


def write_pairs(folder: Path, name: str, pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Write ``name``.en and ``name``.de and return the source for a config."""
    for side, language in enumerate(("en", "de")):
        text = "".join(pair[side] + "\n" for pair in pairs)
        (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
    return {"src": f"{name}.en", "tgt": f"{name}.de"}


def varied_corpus(encoder: Encoder, pairs: Sequence[SentencePair], variation: Variation) -> Corpus:
    """Encode pairs in memory, with the changes of a variation to the usable ones."""
    corpus = encoder.corpus(pairs)
    assert isinstance(corpus.src, Ragged) and isinstance(corpus.tgt, Ragged)
    changed = variation(Chunk(0, len(pairs), pack(pairs)))
    rows = replaced(Rows(corpus.numbers, corpus.src, corpus.tgt), changed)
    return corpus.with_sides(rows.src, rows.tgt)


def make_project(folder: Path, n_pairs: int = 400, **training: object) -> Project:
    """Write parallel text and a config into ``folder``; ``training`` sets keys of that section."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "data": {
            "src_lang": "en",
            "tgt_lang": "de",
            "train": [write_pairs(folder, "train", sentence_pairs(n_pairs, seed=1))],
            "valid": [write_pairs(folder, "valid", sentence_pairs(20, seed=2))],
            "test": [write_pairs(folder, "test", sentence_pairs(20, seed=3))],
        },
        "tokenizer": {"vocab_size": 320},
        "model": {
            "d_model": 32,
            "n_heads": 2,
            "d_ff": 64,
            "n_encoder_layers": 1,
            "n_decoder_layers": 1,
            "dropout": 0.0,
            "positions": "sinusoidal",  # Hugging Face has no rotary ones
        },
        "training": {
            "max_steps": 20,
            "max_tokens": 512,
            "warmup_steps": 10,
            "optimizer": "adamw",
            "precision": "fp32",
            **training,
        },
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return Project(folder, path)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A fresh project of which nothing has been trained."""
    return make_project(tmp_path / "project")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose model, ``runs/config/model.safetensors``, has learned its language.

    Only for reading: tests that write to its folder take ``copied``.

    It is trained once for all processes of pytest-xdist, whose temporary folders have one parent.
    """
    in_parallel = "PYTEST_XDIST_WORKER" in os.environ
    shared = tmp_path_factory.getbasetemp().parent if in_parallel else tmp_path_factory.getbasetemp()
    folder = shared / "trained"
    with FileLock(shared / "trained.lock"):
        if (folder / "runs/config/model.safetensors").exists():
            return Project(folder, folder / "config.yaml")
        project = make_project(
            folder,
            max_steps=1_500,
            learning_rate=0.005,
            validate_every=300,
            early_stopping_metric="loss",  # BLEU is perfect long before the model is sure
        )
        result = project.mtformer("train", project.config)
        assert result.status == 0, result.stderr
        return project


@pytest.fixture
def copied(trained: Project, tmp_path: Path) -> Project:
    """The trained model and the text it was evaluated on, in a folder that a test may write to."""
    folder = tmp_path / "copied"
    run = folder / "runs" / "config"
    run.mkdir(parents=True)
    for name in ("config.yaml", "model.safetensors"):
        shutil.copy(trained.folder / "runs" / "config" / name, run)
    for name in ("test.en", "test.de", "valid.en", "valid.de"):
        shutil.copy(trained.folder / name, folder)
    return Project(folder, run / "config.yaml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the configs of tests name; the current folder is another."""
    folder = tmp_path / "texts"
    for name in ("a.en", "a.de", "pairs.tsv", "pairs.jsonl.gz", "more/b.tsv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return folder


@pytest.fixture(scope="session")
def bundle(trained: Project) -> Path:
    """The file of the model of ``trained``."""
    return trained.folder / "runs/config/model.safetensors"


@pytest.fixture(scope="module")
def server(bundle: Path) -> "Iterator[Client]":
    """A server of that model, without keys."""
    from servers import running  # which imports the web framework

    with running(bundle) as client:
        yield client


@pytest.fixture(scope="module")
def opener() -> "Iterator[Opener]":
    """A browser, which opens pages."""
    from browser import started  # which imports Playwright

    with started() as opener:
        yield opener


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[HubServer]":
    """A hub of data sets and models, and an empty cache."""
    from hub_server import serve_hub

    folder = tmp_path_factory.mktemp("server") / "hub"
    folder.mkdir()
    with serve_hub(folder, cache=folder.parent / "cache") as server:
        yield server


@pytest.fixture(scope="module")
def client(request: pytest.FixtureRequest, hub: "HubServer") -> "Iterator[HubClient]":
    """The ``Client`` of the module, at the hub."""
    with closing(request.module.Client(hub)) as client:
        yield client


@pytest.fixture(scope="module")
def offline(request: pytest.FixtureRequest, hub: "HubServer", client: "HubClient") -> "Iterator[HubClient]":
    """The same offline, once the other has been started."""
    with closing(request.module.Client(hub, HF_HUB_OFFLINE="1")) as client:
        yield client
