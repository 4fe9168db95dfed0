"""Measure the memory and the time of an update: an adapter of a large model against all of its weights.

The model has the shape of NLLB with 600 million parameters and random weights, and a batch has random tokens. Each row
is a process of its own with one thread. Memory is the most that it has resident; the time is that of its processor, the
median of the updates after the first, which allocates.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from typing import Literal

import torch
from bench_import import N_TOKENS, SHAPE

from mtformer.config import ModelConfig, ResolvedTraining
from mtformer.data.batches import Batch
from mtformer.model.lora import adapt
from mtformer.model.transformer import Transformer
from mtformer.model.weights import count_parameters
from mtformer.support.terminal import as_text
from mtformer.training.memory import peak_memory
from mtformer.training.update import Updater

HEADER = ("training", "parameters trained", "their MB", "of the model", "memory, GiB", "seconds an update")
LENGTH = 32
ARMS: dict[str, tuple[Literal["muon", "adamw"], int]] = {  # the optimizer, and the rank of the adapter
    "all weights, Muon": ("muon", 0),
    "all weights, AdamW": ("adamw", 0),
    "LoRA, rank 8": ("adamw", 8),
    "LoRA, rank 32": ("adamw", 32),
}


def make_model(scale: int) -> Transformer:
    """Make the model, narrower by a factor."""
    config = ModelConfig.model_validate(
        {name: value // scale if name in ("d_model", "d_ff") else value for name, value in SHAPE.items()}
    )
    n_tokens = N_TOKENS // scale
    return Transformer(config.architecture(src_vocab_size=n_tokens, tgt_vocab_size=n_tokens, joint=True, max_length=64))


def make_batch(n_sentences: int, n_tokens: int) -> Batch:
    """Make a batch of random sentences of one length."""
    src, tgt_in, tgt_out = torch.randint(4, n_tokens, (3, n_sentences, LENGTH)).unbind()
    return Batch(src, src > 0, tgt_in, tgt_out, tgt_out > 0, list(range(n_sentences)))


def measure(arm: str, scale: int, n_updates: int, n_sentences: int) -> None:
    """Train for some updates and print the row, with tabs."""
    torch.set_num_threads(1)
    model = make_model(scale)
    n_all = count_parameters(model)
    optimizer, rank = ARMS[arm]
    if rank:
        adapt(model, rank)
    settings = ResolvedTraining(
        optimizer=optimizer,
        precision="bf16",
        max_tokens=n_sentences * LENGTH,
        learning_rate=1e-4,
        warmup_steps=0,
        weight_decay=0.01,
        early_stopping_patience=None,
    )
    n_trained = count_parameters(model, trained_only=True)
    updater, seconds = Updater(model, settings), []
    for step in range(1, n_updates + 1):
        batch = make_batch(n_sentences, N_TOKENS // scale)
        started = time.process_time()
        updater.update([batch], step, 1e-4)
        seconds.append(time.process_time() - started)
    memory = peak_memory(torch.device("cpu")) / 2**30
    size = f"{4 * n_trained / 1e6:,.1f}"
    row = (arm, f"{n_trained:,}", size, f"{100 * n_trained / n_all:.2f} %", f"{memory:.1f}")
    print(*row, f"{statistics.median(seconds[1:]):.1f}", sep="\t")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=1, help="divide the widths and the vocabulary by this")
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--sentences", type=int, default=16, help=f"of a batch, with {LENGTH} tokens each")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--arm", choices=ARMS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    shared = (arguments.scale, arguments.updates, arguments.sentences)
    if arguments.arm:
        measure(arguments.arm, *shared)
        return
    rows = []
    options = [f"--{name}={value}" for name, value in zip(("scale", "updates", "sentences"), shared, strict=True)]
    for arm in arguments.arms:
        command = [sys.executable, __file__, "--arm", arm, *options]
        done = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True)
        rows.append(tuple(done.stdout.strip().split("\t")) if not done.returncode else (arm, *["–"] * 5))
        print("\t".join(rows[-1]), file=sys.stderr, flush=True)
    print(as_text(HEADER, rows))


if __name__ == "__main__":
    main()
