"""Several processes that read text."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import sentence_pairs
from tasks import die, end_at_once, faulty, process_of

from mtformer.config import LanguagePair, TokenizerConfig, TsvFile
from mtformer.data import store
from mtformer.data.augment import TermSampler
from mtformer.data.clean.filters import Filters
from mtformer.data.sources.parallel import ParallelText
from mtformer.data.store import stored_text
from mtformer.data.tokens import Encoder, TokenStore, Variation
from mtformer.support.errors import MtformerError, UserError
from mtformer.support.processes import workers
from mtformer.support.processes.workers import in_order
from mtformer.text.glossary import Glossary
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import MARKERS
from mtformer.text.tokenizer.train import train_tokenizer


@pytest.fixture(autouse=True)
def two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes, started for the first task already."""
    monkeypatch.setattr(workers, "_SECONDS_ALONE", 0)
    monkeypatch.setattr(workers, "n_cpus", lambda: 2)


def assert_no_process_is_left() -> None:
    assert multiprocessing.active_children() == []


def test_results_come_in_the_order_of_the_tasks_from_several_processes() -> None:
    processes = [process for _, process in in_order(process_of, range(6))]
    assert os.getpid() not in processes and len(set(processes)) == 2
    assert_no_process_is_left()
    assert list(in_order(process_of, range(1))) == [(0, os.getpid())]
    assert list(in_order(process_of, [])) == []


def test_one_cpu_needs_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "n_cpus", lambda: 1)
    assert list(in_order(process_of, range(3))) == [(i, os.getpid()) for i in range(3)]


def test_no_more_processes_start_than_there_are_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    start = workers._workers

    def counted(work: Callable[[int], int], n: int) -> AbstractContextManager[list[Connection]]:
        started.append(n)
        return start(work, n)

    monkeypatch.setattr(workers, "n_cpus", lambda: 5)
    monkeypatch.setattr(workers, "_workers", counted)
    assert [task for task, _ in in_order(process_of, range(3))] == [0, 1, 2]
    assert started == [3]


def test_what_takes_a_few_seconds_needs_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_SECONDS_ALONE", 3)
    clock = SimpleNamespace(perf_counter=partial(next, count()))  # a second for each task
    monkeypatch.setattr(workers, "time", clock)
    processes = [process for _, process in in_order(process_of, range(6))]
    assert processes[:3] == [os.getpid()] * 3 and len({*processes[3:]} - {os.getpid()}) == 2


def test_errors_of_other_processes_and_of_the_tasks_end_the_work() -> None:
    with pytest.raises(UserError, match=r"^no$"):
        list(in_order(partial(faulty, UserError("no")), range(9)))
    assert_no_process_is_left()
    with pytest.raises(MtformerError, match="a process that helps to read the text has died"):
        list(in_order(die, range(9)))
    assert_no_process_is_left()

    def tasks() -> Iterator[int]:
        yield from range(4)
        raise UserError("bad line")

    with pytest.raises(UserError, match=r"^bad line$"):
        list(in_order(process_of, tasks()))
    assert_no_process_is_left()


def test_a_process_that_does_not_start_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_serve", end_at_once)
    with pytest.raises(MtformerError, match=r"could not start; in a script of .* `if __name__ == '__main__':`"):
        list(in_order(process_of, range(3)))
    assert_no_process_is_left()


def test_processes_end_when_the_first_one_is_killed() -> None:
    code = """
import time
from tasks import process_of
from mtformer.support.processes import workers
workers._SECONDS_ALONE, workers.n_cpus = 0, lambda: 2
for _, process in workers.in_order(process_of, range(2)):
    print(process, flush=True)
    if _ == 1:
        time.sleep(600)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment) as first:
        assert first.stdout
        others = [int(first.stdout.readline()) for _ in range(2)]
        first.kill()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{process}").exists() for process in others):
        assert time.monotonic() < deadline, "the processes still run"
        time.sleep(0.05)


SIGNALLED = """
import os
from mtformer.support.processes import workers

def stop(place):
    os.write(1, f"{place} {os.getpid()}\\n".encode())
    os.read(0, 1)

def work(task):
    stop("working")

def use(**_):
    for _ in workers.in_order(work, range(2)):
        stop("using")

if __name__ == "__mp_main__":
    stop("starting")
if __name__ == "__main__":
    from mtformer.cli import app

    workers._SECONDS_ALONE, workers.n_cpus, app.app = 0, lambda: 2, use
    app.main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("place", ["starting", "working", "using"])
def test_a_signal_to_all_processes_ends_the_first_one_without_errors(
    tmp_path: Path, place: str, number: signal.Signals, status: int
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SIGNALLED)
    with subprocess.Popen(
        [sys.executable, script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as first:
        assert first.stdin and first.stdout
        stops = {b"starting": 2, b"working": 2, b"using": 1}
        for reached, n in stops.items():
            lines = [first.stdout.readline().split() for _ in range(n)]
            assert [where for where, _ in lines] == [reached] * n
            if reached == place.encode():
                break
            for _, process in lines:  # before the first one gets it, as may happen
                os.kill(int(process), number)
            first.stdin.write(b"g" * n)
            first.stdin.flush()
        os.killpg(first.pid, number)
        output = first.communicate(timeout=60)
    assert (first.returncode, output[1]) == (status, b"")


@pytest.mark.slow
def test_the_store_is_the_same_whoever_does_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "CHUNK", 40)
    pairs = [SentencePair(*pair) for pair in sentence_pairs(150)]
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in [*pairs, ("", "leer"), *pairs]), encoding="utf-8")
    languages = LanguagePair("en", "de")
    config = TokenizerConfig(vocab_size=330, joint=True)
    tokenizer = train_tokenizer(pairs, config, ["en"], ["de"], adjust=True, control_symbols=MARKERS)
    glossary = Glossary([("dog", "Hund"), ("car", "Auto")])
    terms = TermSampler(glossary, tokenizer, src_lang="en", tgt_lang="de", share=0.5, seed=1)
    encoder = Encoder(tokenizer, 40, 6.0)
    found = []
    for n in (1, 2):
        monkeypatch.setattr(workers, "n_cpus", lambda n=n: n)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"cache{n}"))
        text = stored_text(ParallelText([TsvFile(tsv=path)], *languages), {languages: Filters(["all"], languages)})
        tokens = TokenStore(text, encoder)
        varied = tokens.varied(Variation(encoder, 3, terms=terms), 3)
        rows = [
            [(corpus.src[i].tolist(), corpus.tgt[i].tolist()) for i in range(len(corpus))]
            for corpus in (tokens.corpus, varied)
        ]
        found.append((text.drops, *rows))
    assert found[0] == found[1]
    assert 0 < len(text) < 150
    plain = Encoder(tokenizer, max_length=40, max_ratio=6.0).corpus(text)
    assert found[0][1] == [(plain.src[i].tolist(), plain.tgt[i].tolist()) for i in range(len(plain))]
