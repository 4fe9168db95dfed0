"""Check mtformer on a GPU against the processor, measure its speed, and print it beside what to expect.

First updates, validations and searches of several architectures, whose results must be those of the processor, and
updates with dropout, which must be the same with graphs and without; then the speed of training and translating with
three sizes of random models. What to expect is computed by scripts/roofline.py from the peak rates of the GPU, or from
those of a product and a copy where they are not known. The exit status is 1 if a result is wrong.

    scripts/gpu_check                   # on the GPU
    scripts/gpu_check --expect H100     # only what to expect of another
"""

import argparse
import copy
import logging
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from program import run_program
from roofline import MACHINES, SHAPES, Cost, Machine, Shape, known, operations, step_cost, update_cost

from mtformer.config import Config, Facts, ModelConfig, ResolvedTraining, SearchOptions, TokenizerConfig, resolve
from mtformer.data.arrays import Ragged
from mtformer.data.batches import make_batch
from mtformer.data.tokens import Corpus, Encoder
from mtformer.engines.torch import TorchEngine
from mtformer.model.dropout import Dropout
from mtformer.model.graphs import CAPTURES
from mtformer.model.inference import InferenceModel
from mtformer.model.transformer import Transformer
from mtformer.phrasebook.splits import sentences
from mtformer.search.engine import SearchRequest, results_of
from mtformer.search.hypothesis import Hypothesis
from mtformer.support.hardware import has_fast_bf16, pick_device
from mtformer.support.terminal import as_text
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.training.update import Updater
from mtformer.training.validation import Validator

ARCHITECTURES: tuple[dict[str, Any], ...] = (
    {"norm": "post"},
    {"norm": "pre", "positions": "rotary"},
    {"norm": "pre", "feed_forward": "gelu", "positions": "learned"},
    {"norm": "pre", "feed_forward": "silu", "positions": "none"},
)
BATCHES = ((1, 1), (32, 1), (256, 1), (1, 4), (64, 4))  # sentences and beams
TINY = Shape("tiny", ModelConfig(d_model=16, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1), 64, 64, 8)
N_PAIRS = 8  # that are learned and translated
N_STEPS = 48  # of a translation; the cache has room for 64


def settings(precision: str, **given: object) -> ResolvedTraining:
    """Return settings of training."""
    chosen = {"max_tokens": 1024, "optimizer": "adamw", "learning_rate": 1e-3, "warmup_steps": 0, "weight_decay": 0.01}
    chosen |= {"early_stopping_patience": None, "precision": precision, "threads": 1}
    return ResolvedTraining.model_validate(chosen | given)


def make_model(config: ModelConfig, vocab_size: int, device: torch.device) -> Transformer:
    """Return a random model, the same on each device."""
    torch.manual_seed(1)
    sizes = {"src_vocab_size": vocab_size, "tgt_vocab_size": vocab_size, "joint": True, "max_length": 256}
    return Transformer(config.architecture(**sizes)).to(device)  # type: ignore[arg-type]


def wait(device: torch.device) -> None:
    """Wait until the device has computed everything."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_of(compute: Callable[[], object], device: torch.device, n: int) -> float:
    """Return the mean time of ``n`` calls, after two others."""
    for _ in range(2):
        compute()
    wait(device)
    started = time.perf_counter()
    for _ in range(n):
        compute()
    wait(device)
    return (time.perf_counter() - started) / n


def waits_of(compute: Callable[[], object], device: torch.device) -> int | None:
    """Return how often the processor waits for the GPU; None without one."""
    if device.type != "cuda":
        return None
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            compute()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchronizing" in str(warning.message) for warning in caught)


def search(model: Transformer, sources: Iterable[list[int]], limit: int, **options: Any) -> list[list[Hypothesis]]:
    """Translate all sources in one batch."""
    chosen = SearchOptions(batch_tokens=1 << 16, **options)
    requests = [SearchRequest(source, chosen, limit) for source in sources]
    return results_of(TorchEngine(model.eval(), n_threads=1), requests)


Result = TypeVar("Result")


class Text(NamedTuple):
    """A few sentences: their ids, and what validates on them."""

    corpus: Corpus
    vocab_size: int
    validator: Validator


def read_text(precision: str) -> Text:
    """Return sentences of the phrasebook."""
    pairs = [SentencePair(saying.en, saying.de) for saying in sentences("valid", 60, 1)]
    tokenizer = train_tokenizer(pairs, TokenizerConfig(vocab_size=400), "en", "de", adjust=True)
    files = {"src_lang": "en", "tgt_lang": "de", "train": [{"src": "train.en", "tgt": "train.de"}], "max_length": 64}
    sections = {"data": files, "training": {"precision": precision, "max_tokens": 256}}
    config = resolve(Config.model_validate(sections), Facts(n_pairs=1))
    [languages] = config.data.language_pairs
    corpus = Encoder(tokenizer, max_length=64, max_ratio=math.inf).corpus(pairs)
    return Text(corpus, tokenizer.tgt_vocab_size, Validator(config, tokenizer, {languages: pairs[:20]}))


def fit(model: Transformer, text: Text) -> None:
    """Let the model learn a few sentences, so that rounding changes no translation."""
    updater = Updater(model, settings("fp32"))
    batch = make_batch(text.corpus, list(range(N_PAIRS)))
    for step in range(1, 41):
        updater.update([batch], step, 5e-3)


def results(model: Transformer, text: Text, precision: Any) -> dict[str, Any]:
    """Return what is compared: translations with their mean log probabilities, and losses."""
    found: dict[str, Any] = {"validation": [text.validator.validate(model).loss]}
    sources = [text.corpus.src[i].tolist() for i in range(N_PAIRS)]
    for name, beam_size in (("greedy", 1), ("beam", 4)):
        best = [row[0] for row in search(model, sources, 30, beam_size=beam_size, precision=precision)]
        found[name] = [hypothesis.log_prob / (len(hypothesis.ids) + 1) for hypothesis in best]
        found[f"{name} tokens"] = [hypothesis.ids for hypothesis in best]
    updater = Updater(model, settings(precision))
    batch = make_batch(text.corpus, list(range(N_PAIRS))).to(updater.device)
    found["update"] = [updater.update([batch], step, 1e-3).mean_loss for step in (1, 2, 3)]
    return found


def losses_with_dropout(model: Transformer, text: Text, precision: Any) -> dict[str, Any]:
    """Return the losses of updates with dropout, which the device draws."""
    model = copy.deepcopy(model)
    for module in model.modules():
        if isinstance(module, Dropout):
            module.p = 0.2
    updater = Updater(model, settings(precision, optimizer="muon", ema_decay=0.9))
    batch = make_batch(text.corpus, list(range(N_PAIRS))).to(updater.device)
    return {"dropout": [updater.update([batch], step, 1e-3).mean_loss for step in range(1, 7)]}


def without_graphs(compute: Callable[[], Result], device: torch.device) -> Result:
    """Return what ``compute`` does when the device has no graphs."""
    capture = CAPTURES.pop(device.type, None)
    try:
        return compute()
    finally:
        if capture:
            CAPTURES[device.type] = capture


def compare(ours: Any, expected: Any, name: str, precision: str) -> tuple[str, str, str]:
    """Return how much numbers differ, how many translations are the same, and whether that is right."""
    if name not in ("greedy", "beam"):
        same = [True] * len(expected[name])
    else:
        same = [a == b for a, b in zip(ours[f"{name} tokens"], expected[f"{name} tokens"], strict=True)]
    pairs = zip(ours[name], expected[name], same, strict=True)
    differs = max((abs(a - b) for a, b, is_same in pairs if is_same), default=math.inf)
    is_close = differs < (0.05 if precision == "bf16" else 0.002)
    is_right = is_close and sum(same) >= (len(same) / 2 if precision == "bf16" else len(same) - 1)
    return f"{differs:.5f}", f"{sum(same)} of {len(same)}", "ok" if is_right else "WRONG"


def check(device: torch.device, precision: str) -> list[tuple[str, ...]]:
    """Compare each architecture with the processor in float32; return rows for the table."""
    text = read_text(precision)
    rows: list[tuple[str, ...]] = []
    sizes = {"d_model": 64, "n_heads": 4, "d_ff": 128, "n_encoder_layers": 2, "n_decoder_layers": 2, "dropout": 0.0}
    for architecture in ARCHITECTURES:
        config = ModelConfig.model_validate(sizes | architecture)
        model = make_model(config, text.vocab_size, torch.device("cpu"))
        fit(model, text)
        there = copy.deepcopy(model).to(device)
        with_dropout = partial(losses_with_dropout, copy.deepcopy(there), text, precision)
        ours = results(there, text, precision) | with_dropout()
        expected = without_graphs(with_dropout, device) | results(model, text, "fp32")
        rows += [
            (" ".join(architecture.values()), name, *compare(ours, expected, name, precision))
            for name in ("dropout", "update", "validation", "greedy", "beam")
        ]
    return rows


def training(shape: Shape, device: torch.device, precision: str) -> tuple[float, int | None]:
    """Return the seconds and the waits of an update."""
    random = np.random.default_rng(1)
    n_rows = max(1, shape.max_tokens // shape.length)
    rows = [[*random.integers(4, shape.vocab_size, shape.length - 1).tolist(), 3] for _ in range(2 * n_rows)]
    corpus = Corpus(Ragged.of(rows[::2]), Ragged.of(rows[1::2]))
    updater = Updater(make_model(shape.model, shape.vocab_size, device), settings(precision))
    batches = [make_batch(corpus, list(range(n_rows))).to(device)]
    seconds = seconds_of(lambda: updater.update(batches, 1, 1e-4), device, 10 if device.type == "cuda" else 1)
    return seconds, waits_of(lambda: updater.update(batches, 1, 1e-4), device)


def decoding(
    shape: Shape, n: int, k: int, device: torch.device, precision: Any, steps: int
) -> tuple[float, float | None]:
    """Return the seconds and the waits of a decoding step of n sentences with k beams, their start included."""
    model = make_model(shape.model, shape.vocab_size, device)
    sources = [[*[4 + i % 50] * (shape.length - 1), 3] for i in range(n)]

    def translate() -> None:
        search(model, sources, steps, beam_size=k, min_length=steps, precision=precision)

    seconds = seconds_of(translate, device, 3 if device.type == "cuda" else 1) / (steps + 1)
    waits = waits_of(translate, device)
    return seconds, None if waits is None else waits / (steps + 1)


def started(shape: Shape) -> tuple[int, int]:
    """Return how many operations an update and the model's part of a decoding step start, whatever their widths."""
    narrow = {"d_model": 16, "n_heads": 2, "d_ff": 32}
    config = ModelConfig.model_validate(shape.model.model_dump() | narrow | {"preset": "auto"})
    cpu, corpus = torch.device("cpu"), Corpus(Ragged.of([[4, 3]] * 2), Ragged.of([[5, 3]] * 2))
    updater = Updater(make_model(config, 64, cpu), settings("bf16"))
    batch = make_batch(corpus, [0, 1])
    updater.update([batch], 1, 1e-4)  # the optimizer's first update is another
    n_update = operations(lambda: updater.update([batch], 2, 1e-4))
    inference = InferenceModel(updater.model.eval())
    with torch.inference_mode():
        state = inference.start(batch.src, batch.src_mask)
        inference.step(torch.tensor([2, 2]), state)
        n_step = operations(lambda: inference.step(torch.tensor([2, 2]), state))
    return n_update, n_step + 2 * (6 * config.n_decoder_layers + 1)  # a product in bfloat16 casts before and after


def measured_machine(device: torch.device, precision: str, size: int) -> Machine:
    """Return the rates of a product and of a copy on a device that is not known."""
    a = torch.ones(size, size, device=device, dtype=torch.bfloat16 if precision == "bf16" else torch.float32)
    flops = 2 * size**3 / seconds_of(lambda: a @ a, device, 10)
    b = torch.ones(size, 16 * size, device=device)
    bandwidth = 2 * b.numel() * 4 / seconds_of(b.clone, device, 10)
    return Machine(device.type, flops, bandwidth, has_graphs=device.type in CAPTURES)


def rows_of(
    shape: Shape, machine: Machine, device: torch.device | None, precision: str, steps: int
) -> list[tuple[str, ...]]:
    """Return the rows of a shape: measured on a device, or, without one, what to expect."""
    n_update, n_step = started(shape)
    cost = update_cost(shape, machine, n_update)
    seconds: float | None = None
    waits: float | None = None
    if device:
        seconds, waits = training(shape, device, precision)
    mfu = f"{100 * cost.flops / (seconds or cost.seconds) / machine.flops:.1f} %"
    rows = [row(shape, f"update of {shape.max_tokens:,} tokens", cost, shape.max_tokens, seconds, waits, mfu)]
    for n, k in BATCHES if device is None or device.type == "cuda" else BATCHES[:1]:
        cost = step_cost(shape, machine, n_step, n, k, 64)
        if device:
            seconds, waits = decoding(shape, n, k, device, precision, steps)
        rows.append(row(shape, f"step of {n} × {k} beams" if k > 1 else f"step of {n}", cost, n, seconds, waits))
        if device is not None and device.type in CAPTURES and (n, k) == BATCHES[0]:
            seconds, waits = without_graphs(partial(decoding, shape, n, k, device, precision, steps), device)
            rows.append(row(shape, f"step of {n}, no graph", cost, n, seconds, waits))
    return rows


def row(
    shape: Shape, what: str, cost: Cost, n: int, seconds: float | None, waits: float | None, mfu: str = "–"
) -> tuple[str, ...]:
    """Format a row of the table of speeds."""
    costs = (f"{cost.flops / 1e9:,.2f}", f"{cost.bytes / 1e6:,.0f}", str(cost.n_operations))
    expected = (f"{cost.seconds * 1e3:.2f}", f"{n / cost.seconds:,.0f}")
    measured = (f"{seconds * 1e3:.2f}", f"{n / seconds:,.0f}") if seconds else ("–", "–")
    return shape.name, what, *costs, *expected, *measured, mfu, "–" if waits is None else f"{waits:.1f}"


def main() -> None:
    """Check, measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--device", default="cuda", choices=["cuda", "cpu"], help="cpu tries the script, with tiny sizes"
    )
    names = [machine.name for machine in MACHINES]
    parser.add_argument("--expect", choices=names, help="only print what to expect of a GPU")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    header = (
        "shape",
        "what",
        "GFLOP",
        "MB",
        "operations",
        "expected ms",
        "expected tokens/s",
        "measured ms",
        "measured tokens/s",
        "MFU",
        "waits",
    )
    if arguments.expect:
        machine = known(arguments.expect) or MACHINES[0]
        table = [line for shape in SHAPES for line in rows_of(shape, machine, None, "bf16", N_STEPS)]
        print(as_text(header, table, left=2))
        return
    device = pick_device(arguments.device)
    on_gpu = device.type == "cuda"
    precision = "bf16" if on_gpu and has_fast_bf16(device) else "fp32"
    name = torch.cuda.get_device_name(device) if on_gpu else "the processor, which proves nothing about a GPU"
    machine = known(name) or measured_machine(device, precision, 8192 if on_gpu else 64)
    print(f"{name}, torch {torch.__version__}, {precision}; at best {machine.flops / 1e12:,.1f} TFLOP/s", end=", ")
    print(f"{machine.bandwidth / 1e9:,.0f} GB/s\n")
    checks = [(kind, *line) for kind in dict.fromkeys(["fp32", precision]) for line in check(device, kind)]
    print(as_text(("precision", "architecture", "what", "differs by", "same", "result"), checks, left=3))
    shapes, steps = (SHAPES, N_STEPS) if on_gpu else ((TINY,), 4)
    table = [line for shape in shapes for line in rows_of(shape, machine, device, precision, steps)]
    print(f"\n{as_text(header, table, left=2)}")
    sys.exit(any(line[-1] == "WRONG" for line in checks))


if __name__ == "__main__":
    run_program(main)
