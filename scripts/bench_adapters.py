"""Measure what each adapter of a model takes when several translate in one process: merged, and sharing one base.

The adapters are random, and small enough that they change few translations. Each row is a process of its own with one
thread. Memory is what is resident after all adapters have translated the text, beyond that of the model without any.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from program import run_program

from mtformer.bundle.adapter import Adapter, save_adapter
from mtformer.bundle.format import load_bundle
from mtformer.engines.loading import load_model
from mtformer.model.lora import adapter_shapes
from mtformer.runs.finding import find_model
from mtformer.support.terminal import as_text
from mtformer.training.memory import used_memory
from mtformer.translate.translator import Translator

HEADER = ("adapters", "MB", "MB an adapter", "processor seconds a text")


def make_adapters(model: Path, folder: Path, count: int, rank: int) -> list[Path]:
    """Write random adapters of a model."""
    bundle, paths = load_bundle(model), []
    for number in range(count):
        torch.manual_seed(number)
        weights = {name: torch.randn(shape) * 0.01 for name, shape in adapter_shapes(bundle.model, rank)}
        paths.append(folder / f"{number}.safetensors")
        save_adapter(paths[-1], Adapter(weights, bundle.header, bundle.digest))
    return paths


def measure(way: str, model: Path, text: Path, adapters: list[Path]) -> None:
    """Translate a text with all adapters of a model in one of the ways, and print memory and seconds."""
    torch.set_num_threads(1)
    lines = text.read_text(encoding="utf-8").splitlines()
    base = load_bundle(model) if way == "merged" else load_model([model])
    translators = [Translator.load(base)] if way == "none" else [Translator.load(base, adapter=a) for a in adapters]
    for translator in translators:
        translator.translate(lines[:1])
    started = time.process_time()
    for translator in translators:
        translator.translate(lines)
    seconds = (time.process_time() - started) / len(translators)
    print(used_memory(torch.device("cpu")) / 1e6, seconds, sep="\t")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="a bundle, or the folder of its run")
    parser.add_argument("text", type=Path, help="lines to translate")
    parser.add_argument("--adapters", type=int, default=8, metavar="N")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--files", type=Path, nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        measure(arguments.way, arguments.model, arguments.text, arguments.files)
        return
    model = find_model(arguments.model)
    with tempfile.TemporaryDirectory() as folder:
        files = make_adapters(model, Path(folder), arguments.adapters, arguments.rank)
        found = {}
        for way in ("none", "merged", "shared"):
            command = [sys.executable, __file__, model, arguments.text, "--way", way, "--files", *files]
            environment = os.environ | {"OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            found[way] = [float(value) for value in done.stdout.split()]
    without = found["none"][0]
    rows = [
        (way, f"{memory:,.0f}", f"{(memory - without) / len(files):.1f}", f"{seconds:.2f}")
        for way, (memory, seconds) in found.items()
    ]
    print(as_text(HEADER, rows))


if __name__ == "__main__":
    run_program(main)
