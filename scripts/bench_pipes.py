"""Measure how windows of lines translate a file: their throughput beside one call for all lines, and their memory.

    python scripts/bench_pipes.py runs/multi30k_en_de test2016.en.gz --lines 20000

The lines of the file are repeated. Seconds are processor time of greedy search with one thread; memory is the peak of a
process that translates a tenth of the lines, and of one that translates all.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

import torch

from mtformer import Translator
from mtformer.text.lines import read_lines
from mtformer.translate.jobs.reading import windows


def seconds(translator: Translator, calls: list[list[str]]) -> float:
    """Return the processor time of several calls."""
    start = time.process_time()
    for texts in calls:
        translator.translate(texts)
    return time.process_time() - start


def peak_mib(model: Path, lines: list[str]) -> float:
    """Return the peak memory of ``mtformer translate`` for a file of these lines."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "in"
        source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        command = [sys.executable, "-m", "mtformer", "translate", "--engine", "torch", "--beam-size", "1"]
        options = ["--model", str(model), "--input", str(source), "--output", str(Path(folder) / "out")]
        process = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"translate failed with status {os.waitstatus_to_exitcode(status)}")
        return usage.ru_maxrss / 1024


def main() -> None:
    """Print both measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--lines", type=int, default=20_000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    lines = list(islice(cycle(read_lines(arguments.text)), arguments.lines))
    for n_lines in (len(lines) // 10, len(lines)):
        print(
            f"peak memory for {n_lines:>7,} lines: {peak_mib(arguments.model, lines[:n_lines]):6,.0f} MiB", flush=True
        )
    translator = Translator.load(arguments.model, "cpu", beam_size=1)
    translator.translate(lines[:100])
    in_windows, at_once = seconds(translator, list(windows(lines))), seconds(translator, [lines])
    for name, taken in (("windows", in_windows), ("one call", at_once)):
        print(f"{name:<9}{taken:7.1f} s, {len(lines) / taken:6,.0f} lines/s")


if __name__ == "__main__":
    main()
