"""Train on Multi30k with batches of few distinct shapes and with batches of any shape, and compare.

Each arm is a process of one thread. Its speed is in target tokens per second of its processor time, so that other work
on the machine disturbs it little. Rounds alternate between the arms; the table has the medians.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from program import run_program

from mtformer.config import ModelConfig, ResolvedTraining, TextFiles, TokenizerConfig
from mtformer.data.batches import PlannedBatch, epoch_batches, make_batch
from mtformer.data.sources.parallel import ParallelText
from mtformer.data.tokens import Corpus, Encoder
from mtformer.model.transformer import Transformer
from mtformer.search.engine import fill_batches
from mtformer.support.hardware import keep_freed_memory
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.training.memory import used_memory
from mtformer.training.update import Updater

VOCAB_SIZE, MAX_TOKENS = 8_000, 2_048
MODELS = {
    "narrow": {"d_model": 128, "d_ff": 256, "n_encoder_layers": 4, "n_decoder_layers": 4},
    "wide": {"d_model": 256, "d_ff": 1024, "n_encoder_layers": 3, "n_decoder_layers": 3},
}


def load_corpus(multi30k: Path) -> Corpus:
    """Encode the training pairs."""
    pairs = list(ParallelText([TextFiles(src=multi30k / "train.en.gz", tgt=multi30k / "train.de.gz")], "en", "de"))
    tokenizer = train_tokenizer(pairs, TokenizerConfig(vocab_size=VOCAB_SIZE), "en", "de", seed=1)
    return Encoder(tokenizer, max_length=256, max_ratio=3.0).corpus(pairs)


def batches_of_any_shape(corpus: Corpus, epoch: int) -> list[PlannedBatch]:
    """Sort by length and fill to the budget: the least padding, and a shape for almost every batch."""
    src_lengths, tgt_lengths = corpus.src.lengths, corpus.tgt.lengths
    longest = np.maximum(src_lengths, tgt_lengths)
    order = np.lexsort((src_lengths, tgt_lengths, longest)).tolist()
    plan = [
        PlannedBatch(np.array(batch), int(src_lengths[batch].max()), int(tgt_lengths[batch].max()))
        for batch in fill_batches(order, longest.tolist(), MAX_TOKENS)
    ]
    return [plan[i] for i in np.random.default_rng([1, epoch]).permutation(len(plan))]


def plans(corpus: Corpus, arm: str) -> Iterator[PlannedBatch]:
    """Yield the batches of all epochs."""
    epoch = 0
    while True:
        few = arm == "few"
        yield from (
            epoch_batches(corpus, MAX_TOKENS, seed=1, epoch=epoch) if few else batches_of_any_shape(corpus, epoch)
        )
        epoch += 1


def train(corpus: Corpus, model_name: str, precision: Literal["fp32", "bf16"], arm: str, n_steps: int) -> None:
    """Train for ``n_steps`` and print the speed and the memory at the end."""
    keep_freed_memory()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    config = ModelConfig.model_validate(MODELS[model_name] | {"dropout": 0.1})
    model = Transformer(
        config.architecture(src_vocab_size=VOCAB_SIZE, tgt_vocab_size=VOCAB_SIZE, joint=True, max_length=256)
    )
    settings = ResolvedTraining(
        max_tokens=MAX_TOKENS,
        learning_rate=1e-4,
        warmup_steps=0,
        weight_decay=0.01,
        optimizer="adamw",
        precision=precision,
        early_stopping_patience=None,
    )
    updater = Updater(model, settings)
    n_tokens, started = 0, time.process_time()
    for step, planned in zip(range(1, n_steps + 1), plans(corpus, arm), strict=False):
        n_tokens += updater.update([make_batch(corpus, *planned)], step, 1e-4).n_tokens
    speed = n_tokens / (time.process_time() - started)
    print("result", speed, used_memory(torch.device("cpu")) / 2**20, flush=True)


def measure(command: list[str]) -> tuple[float, float, int]:
    """Run an arm; return its speed, its memory and the kernels that oneDNN generated."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "ONEDNN_VERBOSE": "profile_create"}
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    [result] = [line.split()[1:] for line in output.splitlines() if line.startswith("result")]
    return float(result[0]), float(result[1]), output.count("create:cache_miss")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data/multi30k"), help="the folder of Multi30k")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=260, help="updates; the default is an epoch")
    parser.add_argument("--arm", nargs=3, metavar=("MODEL", "PRECISION", "SHAPES"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.arm:
        model, precision, arm = arguments.arm
        train(load_corpus(arguments.data), model, precision, arm, arguments.steps)
        return
    corpus = load_corpus(arguments.data)
    n_tokens = int(corpus.src.lengths.sum() + corpus.tgt.lengths.sum())
    for name, plan in (
        ("any", batches_of_any_shape(corpus, 0)),
        ("few", epoch_batches(corpus, MAX_TOKENS, seed=1, epoch=0)),
    ):
        shapes = {(len(batch.indices), batch.src_length, batch.tgt_length) for batch in plan}
        n_places = sum(len(batch.indices) * (batch.src_length + batch.tgt_length) for batch in plan)
        print(
            f"{name} shapes: {len(plan)} batches, {len(shapes)} shapes, {100 * (1 - n_tokens / n_places):.1f} % padding"
        )
    print("\n| model | precision | shapes | tokens per CPU second | kernels generated | memory |")
    print("|---|---|---|---|---|---|")
    for model in arguments.models:
        for precision in ("bf16", "fp32"):
            found: dict[str, list[tuple[float, float, int]]] = {"any": [], "few": []}
            for _ in range(arguments.rounds):
                for arm, results in found.items():
                    command = [sys.executable, __file__, "--data", str(arguments.data), "--steps", str(arguments.steps)]
                    results.append(measure([*command, "--arm", model, precision, arm]))
            for arm, results in found.items():
                speed, memory, n_kernels = (statistics.median(column) for column in zip(*results, strict=True))
                print(
                    f"| {model} | {precision} | {arm} | {speed:,.0f} | {n_kernels:,.0f} | {memory:,.0f} MiB |",
                    flush=True,
                )


if __name__ == "__main__":
    run_program(main)
