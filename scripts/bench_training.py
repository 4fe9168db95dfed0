"""Compare the training speed of mtformer and other toolkits on the same text.

All train 3+3 layers, d_model 256, 4 heads, d_ff 1024, dropout 0.1 and label smoothing 0.1 with the same vocabulary of
8,000 tokens, tied three ways, and about 4,096 target tokens a batch. The speed of a machine drifts, so the systems take
turns and the table shows medians. MFU divides the arithmetic of a step per second, without padding and dropout, by the
rate at which the machine multiplies matrices of the same type, which is measured before every turn.

Only the toolkits that scripts/peers/install has installed in WORK are trained. scripts/get_multi30k downloads the text.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
import yaml
from instructions import add_option, limit
from program import run_program

from mtformer.config import TextFiles, TokenizerConfig
from mtformer.data.sources.parallel import ParallelText
from mtformer.support.hardware import pick_precision
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer

SCRIPTS = Path(__file__).parent
VOCAB_SIZE = 8_000
D_MODEL, D_FF, N_LAYERS = 256, 1024, 3
N_WARM = 4  # the first steps are slow and do not count


@dataclass
class System:
    """A toolkit and the precision it trains in.

    Attributes:
        name: its name in the table.
        precision: the type of its matrix products.
        command: trains it for some steps; run in the folder of the text.
        speed: a regular expression that finds the target tokens per second of each step in its log.
        speeds: the median tokens per second of each turn.
        rates: the machine's rate of matrix products in its type before each turn, in operations per second.
        peak_mib: its peak memory over all turns.
    """

    name: str
    precision: str
    command: list[str]
    speed: str
    speeds: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    peak_mib: int = 0


def systems(work: Path, n_steps: int) -> list[System]:
    """Return mtformer in float32 and in the precision that ``auto`` chooses, and the other toolkits installed.

    Hugging Face trains in bfloat16, too, where the processor multiplies in it.
    """
    found = []
    fastest = pick_precision("auto", torch.device("cpu"))
    for precision in dict.fromkeys([fastest, "fp32"]):
        name = f"mtformer {precision}"
        overrides = [f"training.max_steps={n_steps}", f"training.precision={precision}", f"run.name={precision}"]
        sets = [part for override in overrides for part in ("--set", override)]
        command = [sys.executable, "-m", "mtformer", "train", "--fresh", "mtformer.yaml", *sets]
        found.append(System(name, precision, command, r'"tokens_per_second": ([\d.]+)'))
    peers = SCRIPTS.resolve() / "peers"
    hugging_face = [str(peers / "huggingface.py"), str(n_steps)]
    commands = {
        "joeynmt": (["-m", "joeynmt", "train", "joeynmt.yaml", "--skip-test"], r"Tokens per Sec: +([\d.]+)"),
        "opennmt": (["-m", "onmt.bin.train", "-config", "opennmt.yaml"], r"/ *([\d.]+) tok/s"),
        "marian": ([str(peers / "marian.py"), str(n_steps)], r"([\d.]+) words/s"),
        "huggingface": (hugging_face, r"([\d.]+) tokens/s"),
    }
    for peer, (arguments, speed) in commands.items():
        python = (work / peer / "bin" / "python").absolute()
        if python.exists():
            found.append(System(f"{peer} fp32", "fp32", [str(python), *arguments], speed))
    if fastest == "bf16" and (work / "huggingface").exists():  # emulated, it would take many times as long
        python = (work / "huggingface" / "bin" / "python").absolute()
        found.append(System("huggingface bf16", "bf16", [str(python), *hugging_face, "bf16"], r"([\d.]+) tokens/s"))
    return found


def prepare(multi30k: Path, folder: Path, n_steps: int) -> tuple[float, float]:
    """Write text, vocabularies and configs for all into ``folder``; return the mean lengths of the two sides."""
    folder.mkdir(parents=True, exist_ok=True)
    source = TextFiles(src=multi30k / "train.en.gz", tgt=multi30k / "train.de.gz")
    pairs = list(ParallelText([source], "en", "de"))
    tokenizer = train_tokenizer(pairs, TokenizerConfig(vocab_size=VOCAB_SIZE), "en", "de", seed=1)
    sides = {"en": [pair.src for pair in pairs], "de": [pair.tgt for pair in pairs]}
    ids = write_tokens(folder, tokenizer, sides)
    for lang in sides:
        head = (folder / f"train.pieces.{lang}").read_text(encoding="utf-8").splitlines(keepends=True)[:50]
        (folder / f"valid.pieces.{lang}").write_text("".join(head), encoding="utf-8")
    for name in ("joeynmt.yaml", "opennmt.yaml"):
        text = (SCRIPTS / "peers" / name).read_text(encoding="utf-8")
        (folder / name).write_text(text.replace("{steps}", str(n_steps)), encoding="utf-8")
    files = {"src": str(source.src.absolute()), "tgt": str(source.tgt.absolute())}
    config = {
        "data": {"src_lang": "en", "tgt_lang": "de", "train": [files], "valid": [_head(sides, folder)]},
        "tokenizer": {"vocab_size": VOCAB_SIZE},
        "model": {"preset": "small", "dropout": 0.1, "positions": "sinusoidal"},  # as the other toolkits have
        "training": {"max_tokens": 4096, "log_every": 1},
    }
    (folder / "mtformer.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return statistics.mean(map(len, ids["en"])), statistics.mean(map(len, ids["de"]))


def write_tokens(folder: Path, tokenizer: Tokenizer, sides: dict[str, list[str]]) -> dict[str, list[list[int]]]:
    """Write the training text as tokens and as ids, and the vocabulary; return the ids by language, source first."""
    ids = {lang: tokenizer.encode_src(texts) for lang, texts in sides.items()}
    pieces = {lang: [tokenizer.src_tokens(row[:-1]) for row in rows] for lang, rows in ids.items()}
    for lang, rows in pieces.items():
        lines = [" ".join(row) + "\n" for row in rows]
        (folder / f"train.pieces.{lang}").write_text("".join(lines), encoding="utf-8")
    (folder / "train.json").write_text(json.dumps(list(zip(*ids.values(), strict=True))))
    _write_vocabularies(folder, tokenizer, pieces)
    return ids


def _head(sides: dict[str, list[str]], folder: Path) -> dict[str, str]:
    for lang, texts in sides.items():
        (folder / f"valid.{lang}").write_text("".join(f"{text}\n" for text in texts[:50]), encoding="utf-8")
    return {"src": "valid.en", "tgt": "valid.de"}


def _write_vocabularies(folder: Path, tokenizer: Tokenizer, pieces: dict[str, list[list[str]]]) -> None:
    """Write the same vocabulary in the formats of JoeyNMT, OpenNMT-py and Marian."""
    all_pieces = tokenizer.src_tokens(range(tokenizer.src_vocab_size))
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in all_pieces), encoding="utf-8")
    counts = Counter(piece for rows in pieces.values() for row in rows for piece in row)
    ordinary = sorted(all_pieces[4:], key=lambda piece: -counts[piece])
    (folder / "vocab.counts").write_text("".join(f"{p}\t{counts[p] + 1}\n" for p in ordinary), encoding="utf-8")
    numbered = {piece: number for number, piece in enumerate(["</s>", "<unk>", *ordinary])}
    lines = [f"{json.dumps(piece, ensure_ascii=False)}: {number}\n" for piece, number in numbered.items()]
    (folder / "vocab.yml").write_text("".join(lines), encoding="utf-8")


def flop_per_tgt_token(src_length: float, tgt_length: float) -> float:
    """Return the floating-point operations of training per target token.

    The backward pass takes twice as many as the forward pass. A product of (n, a) with (a, b) takes 2·n·a·b.
    """
    attention, feed_forward = 4 * D_MODEL**2, 2 * D_MODEL * D_FF
    per_src = N_LAYERS * (attention + feed_forward) + N_LAYERS * 2 * D_MODEL**2  # encoder; the memory's keys and values
    per_tgt = N_LAYERS * (attention + 2 * D_MODEL**2 + feed_forward) + VOCAB_SIZE * D_MODEL
    scores = 2 * D_MODEL * N_LAYERS * (src_length**2 + tgt_length**2 + src_length * tgt_length)  # q·kᵀ and weights·v
    return 3 * 2 * (per_src * src_length + per_tgt * tgt_length + scores) / tgt_length


def matmul_rates() -> dict[str, float]:
    """Measure the floating-point operations per second of products of the size of a feed-forward layer, by type."""
    rates = {}
    for precision, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        x, w = torch.randn(4096, D_MODEL).to(dtype), torch.randn(D_FF, D_MODEL).to(dtype)
        seconds = []
        for _ in range(40):
            started = time.perf_counter()
            F.linear(x, w)
            seconds.append(time.perf_counter() - started)
        rates[precision] = 2 * 4096 * D_MODEL * D_FF / statistics.median(seconds)
    return rates


def measure(system: System, folder: Path) -> None:
    """Train ``system`` once and add the measurements to it."""
    rates = matmul_rates()
    for left_behind in folder.glob("*_run"):  # Marian would resume from it
        shutil.rmtree(left_behind)
    log = folder / f"{system.name.replace(' ', '.')}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(system.command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{system.name} failed; see {log}")
    metrics = folder / "runs" / system.precision / "metrics.jsonl"
    text = (metrics if system.name.startswith("mtformer") else log).read_text(encoding="utf-8", errors="replace")
    speeds = [float(number) for number in re.findall(system.speed, text)][N_WARM:]
    if not speeds:
        sys.exit(f"{system.name} logged no speed; see {log}")
    speed = statistics.median(speeds)
    system.speeds.append(speed)
    system.rates.append(rates[system.precision])
    system.peak_mib = max(system.peak_mib, usage.ru_maxrss // 1024)
    print(
        f"    {system.name:<18}{speed:8,.0f} tokens/s  matrix products {rates[system.precision] / 1e9:4.0f} GFLOP/s",
        flush=True,
    )


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, metavar="WORK", help="working folder, with the toolkits to compare")
    parser.add_argument("--data", type=Path, default=Path("data/multi30k"), help="folder of Multi30k")
    parser.add_argument("--rounds", type=int, default=3, help="turns per system")
    parser.add_argument("--steps", type=int, default=20, help=f"updates per turn; the first {N_WARM} do not count")
    add_option(parser)
    arguments = parser.parse_args()
    limit(arguments.isa)
    folder = arguments.work / "text"
    flop = flop_per_tgt_token(*prepare(arguments.data, folder, arguments.steps))
    competitors = systems(arguments.work, arguments.steps)
    for number in range(arguments.rounds):
        print(f"round {number + 1}", flush=True)
        for system in competitors:
            measure(system, folder)
    ours = statistics.median(competitors[0].speeds)
    cores, processor = torch.get_num_threads(), torch.cpu.get_capabilities().get("cpu_name", "unknown processor")
    print(f"\n{flop / 1e6:.1f} MFLOP a target token; {cores} cores of {processor}, instructions: {arguments.isa}\n")
    print("| system | target tokens/s | lowest to highest | ours is faster by | peak memory | MFU |")
    print("|---|---|---|---|---|---|")
    for system in competitors:
        of_its_type = [rate for other in competitors if other.precision == system.precision for rate in other.rates]
        mfu = statistics.median(system.speeds) * flop / statistics.median(of_its_type)
        speed, lowest, highest = statistics.median(system.speeds), min(system.speeds), max(system.speeds)
        print(
            f"| {system.name} | {speed:,.0f} | {lowest:,.0f}–{highest:,.0f} | {ours / speed:.2f} × "
            f"| {system.peak_mib:,} MiB | {mfu:.2f} |"
        )


if __name__ == "__main__":
    run_program(main)
