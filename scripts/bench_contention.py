"""Measure how fast training is beside other programs, and how good its forecasts are then.

usage: python scripts/bench_contention.py WORK [--rounds N] [--models NAME …]

Models learn the phrasebook for some updates: alone, alone with one thread, beside one process that is always busy, and
beside one such process for each core. The rows take turns, and the table shows medians of target tokens per second.
The forecast is that of ``train --dry-run`` beside the same processes, divided by what the training then reached.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from program import run_program

CONFIG = Path(__file__).parent.parent / "configs" / "phrasebook_en_zh.yaml"
COMMON = ("data.train=[{builtin: phrasebook, size: 60000}]", "training.log_every=1", "training.validate_every=10000")
N_WARM = 10  # the first updates allocate memory and create kernels


class Model(NamedTuple):
    """A model to train: its settings, and for how many updates."""

    settings: tuple[str, ...]
    n_steps: int


class Row(NamedTuple):
    """A row of the table: how many busy processes there are, and how many threads train if not as many as usual."""

    name: str
    n_busy: int
    n_threads: int | None = None


MODELS = {
    "demo": Model((), 120),
    "3+3×256": Model(
        (
            "model.preset=small",
            "model.positions=sinusoidal",
            "tokenizer.vocab_size=8000",
            "training.max_tokens=4096",
        ),
        40,
    ),
}
ROWS = (
    Row("alone, one thread", 0, 1),
    Row("alone", 0),
    Row("beside one busy process", 1),
    Row("beside one for each core", os.cpu_count() or 1),
)


@contextmanager
def busy(n: int) -> Iterator[None]:
    """Keep ``n`` processes busy inside."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def train(work: Path, model: Model, row: Row) -> tuple[float, float]:
    """Return the tokens per second of a training, and those of its forecast."""
    threads = [f"training.threads={row.n_threads}"] if row.n_threads else []
    settings = [*COMMON, *model.settings, *threads, f"training.max_steps={model.n_steps}", "run.name=contention"]
    sets = [part for setting in settings for part in ("--set", setting)]
    command = [sys.executable, "-m", "mtformer", "train", str(CONFIG), "--quiet", "--fresh", *sets]
    with busy(row.n_busy):
        told = subprocess.run([*command, "--dry-run"], cwd=work, check=True, capture_output=True, text=True).stdout
        subprocess.run(command, cwd=work, check=True, stdout=subprocess.DEVNULL)
    lines = map(json.loads, (work / "runs/contention/metrics.jsonl").read_text(encoding="utf-8").splitlines())
    speeds = [line["tokens_per_second"] for line in lines if "tokens_per_second" in line]
    [forecast] = re.findall(r"^speed +([\d,]+) target", told, re.MULTILINE)
    return statistics.harmonic_mean(speeds[N_WARM:]), float(forecast.replace(",", ""))


def main() -> None:
    """Measure and print a table for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, metavar="WORK", help="working folder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    for name in arguments.models:
        results: dict[Row, list[tuple[float, float]]] = defaultdict(list)
        for _ in range(arguments.rounds):
            for row in ROWS:
                results[row].append(train(arguments.work, MODELS[name], row))
        medians = {row: statistics.median(speed for speed, _ in measured) for row, measured in results.items()}
        print(f"\n| {name} | target tokens/s | lowest to highest | of one thread alone | forecast ÷ reached |")
        print("|---|---|---|---|---|")
        for row, measured in results.items():
            speeds = [speed for speed, _ in measured]
            reach = f"{min(speeds):,.0f}–{max(speeds):,.0f}"
            ratio = statistics.median(forecast / speed for speed, forecast in measured)
            print(
                f"| {row.name} | {medians[row]:,.0f} | {reach} | {medians[row] / medians[ROWS[0]]:.2f} | {ratio:.2f} |"
            )


if __name__ == "__main__":
    run_program(main)
