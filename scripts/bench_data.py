"""Measure what lies between the files of a training text and the first step of a run: seconds, memory and disk.

For each size, the text is cut or repeated to that many pairs. One process prepares a run from scratch, with an empty
cache; another one prepares it again, as a restart does. Both stop before the first update.
"""

import argparse
import gzip
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import yaml
from program import run_program

STAGES = {  # each with the module of mtformer.training that calls a function, and the function
    "text": ("inputs", "training_text"),
    "tokenizer": ("facts", "train_tokenizer"),
    "tokens": ("run", "TrainingData"),
}


def write_text(given: Path, output: Path, n_lines: int) -> None:
    """Write ``n_lines`` lines: compressed as given, or plain if they have to be repeated."""
    lines = given.read_bytes()
    lines = gzip.decompress(lines) if given.suffix == ".gz" else lines
    rows = lines.splitlines(keepends=True)
    if n_lines <= len(rows):
        output.write_bytes(gzip.compress(b"".join(rows[:n_lines]), 6))
        return
    with output.open("wb") as file:
        for block in blocks(rows, n_lines):
            file.write(block)


def blocks(rows: list[bytes], n_lines: int) -> Iterator[bytes]:
    """Repeat lines until there are ``n_lines``, each repetition with a number of its own at the end of its lines."""
    for number in range(-(-n_lines // len(rows))):
        end = b" %d\n" % number
        yield b"".join([row[:-1] + end for row in rows[: n_lines - number * len(rows)]])


def prepare(config: Path) -> dict[str, float]:
    """Do all that comes before the first update, and return the seconds of each stage, memory, and what was done."""
    started = time.monotonic()
    import torch

    from mtformer.config import load_config
    from mtformer.data.batches import make_batch
    from mtformer.runs.folder import RunFolder
    from mtformer.support.processes.ranks import ALONE
    from mtformer.training import run

    found: dict[str, float] = {"import": time.monotonic() - started}

    def timed(function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            before = time.monotonic()
            try:
                return function(*args, **kwargs)
            finally:
                found[name] = time.monotonic() - before

        return call

    loaded = load_config(config)
    with ExitStack() as timing:
        for name, (module, function) in STAGES.items():
            caller = importlib.import_module(f"mtformer.training.{module}")
            timing.enter_context(mock.patch.object(caller, function, timed(getattr(caller, function), name)))
        trainer = run._prepare(loaded, torch.device("cpu"), ALONE, fresh=False)
    trainer.data.begin(0)
    plan = trainer.plan(0)
    make_batch(trainer.data.corpus, *plan[0])
    run._write_beginning(RunFolder.of(loaded), trainer.config, trainer.tokenizer, {})
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return found | {
        "seconds": time.monotonic() - started,
        "cpu": sum(usage.ru_utime + usage.ru_stime for usage in usages),
        "memory": usages[0].ru_maxrss / 2**10,
        "memory of others": usages[1].ru_maxrss / 2**10,
        "batches": len(plan),
    }


def measure(config: Path) -> dict[str, float]:
    """Prepare a run in a process of its own."""
    command = [sys.executable, __file__, "--prepare", str(config)]
    environment = os.environ | {"XDG_CACHE_HOME": str(config.parent / "cache")}
    done = subprocess.run(command, env=environment, cwd=config.parent, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def size_of(folder: Path) -> float:
    """Return the size of a folder's files in MiB."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


def measured(arguments: argparse.Namespace, size: int) -> tuple[dict[str, float], dict[str, float], float]:
    """Prepare a run with ``size`` pairs, twice; return both measurements and the size of the store in MiB."""
    src_lang, tgt_lang = arguments.pair.split("-")
    if arguments.work is not None:
        arguments.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.work) as name:
        folder = Path(name)
        ending = ".gz" if size <= arguments.n_lines else ""
        for given, side in ((arguments.src, src_lang), (arguments.tgt, tgt_lang)):
            write_text(given, folder / f"train.{side}{ending}", size)
            write_text(given, folder / f"valid.{side}.gz", 1_000)
        config = {
            "data": {
                "src_lang": src_lang,
                "tgt_lang": tgt_lang,
                "train": [{"src": f"train.{src_lang}{ending}", "tgt": f"train.{tgt_lang}{ending}"}],
                "valid": [{"src": f"valid.{src_lang}.gz", "tgt": f"valid.{tgt_lang}.gz"}],
                "filters": arguments.filters,
            },
            "model": {"preset": "small"},
            "training": {"precision": "fp32", "max_epochs": 1},
            "run": {"dir": str(folder / "runs")},
        }
        path = folder / "config.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        fresh = measure(path)
        return fresh, measure(path), size_of(folder / "cache")


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("src", type=Path, nargs="?", help="the source text, one sentence a line")
    parser.add_argument("tgt", type=Path, nargs="?", help="its translation")
    parser.add_argument("--pair", default="zh-en", help="the languages, as in zh-en")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000, 2_000_000, 20_000_000])
    parser.add_argument("--filters", nargs="*", default=[], help="data.filters of the config")
    parser.add_argument("--work", type=Path, help="where to write the texts and the store")
    parser.add_argument("--prepare", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.prepare:
        print(json.dumps(prepare(arguments.prepare)))
        return
    if arguments.tgt is None:
        parser.error("give the source text and its translation")
    opened = gzip.open if arguments.src.suffix == ".gz" else open
    with opened(arguments.src, "rb") as file:
        arguments.n_lines = sum(1 for _ in file)
    stages = list(STAGES)
    head = ["pairs", "first step", "CPU", *stages, "memory", "restart", "CPU", "memory", "disk"]
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|", flush=True)
    for size in arguments.sizes:
        fresh, again, disk = measured(arguments, size)
        cells = [
            f"{size:,}",
            f"{fresh['seconds']:.0f} s",
            f"{fresh['cpu']:.0f} s",
            *(f"{fresh[stage]:.0f} s" for stage in stages),
            f"{fresh['memory']:,.0f} MiB",
            f"{again['seconds']:.1f} s",
            f"{again['cpu']:.1f} s",
            f"{again['memory']:,.0f} MiB",
            f"{disk:,.0f} MiB",
        ]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    run_program(main)
