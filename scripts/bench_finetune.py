"""Fine-tune a general model on 100, 500, … pairs of another text, and train from scratch for as many minutes.

Both configs name train, valid and test. The texts of GENERAL are mixed in and watched; --alone leaves them out. Each
row of the table has minutes, updates, and BLEU of the test sets, of NEW from scratch as well.
"""

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from program import run_program

from mtformer.config import Config, load_config
from mtformer.data.sources.parallel import ParallelText
from mtformer.text.pairs import SentencePair

SIZES = (100, 500, 2_000, 10_000, 29_000)
HEADER = ("pairs", "minutes", "updates", "tuned: new", "tuned: general", "from scratch: new")


def write(folder: Path, name: str, pairs: Sequence[SentencePair]) -> dict[str, str]:
    """Write pairs as two files and return the source for a config."""
    folder.mkdir(parents=True, exist_ok=True)
    for side in ("src", "tgt"):
        text = "".join(f"{getattr(pair, side)}\n" for pair in pairs)
        (folder / f"{name}.{side}").write_text(text, encoding="utf-8")
    return {side: f"{name}.{side}" for side in ("src", "tgt")}


def texts(config: Config, folder: Path, name: str) -> dict[str, dict[str, str]]:
    """Write the texts of a config into a folder and return their sources by part."""
    data = config.data
    parts = {"train": data.train, "valid": data.valid, "test": data.test}
    return {
        part: write(folder, f"{name}.{part}", list(ParallelText(sources, data.src_lang, data.tgt_lang)))
        for part, sources in parts.items()
    }


def run(*arguments: str | Path, folder: Path) -> str:
    """Run mtformer in a folder and return what it prints."""
    command = [sys.executable, "-m", "mtformer", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout


def train(
    folder: Path, name: str, data: dict[str, Any], training: dict[str, Any], sets: Sequence[str]
) -> tuple[float, int]:
    """Train a run in a folder from scratch and return its minutes and updates."""
    (folder / f"{name}.yaml").write_text(yaml.safe_dump({"data": data, "training": training}), encoding="utf-8")
    run("train", "--fresh", f"{name}.yaml", *(part for given in sets for part in ("--set", given)), folder=folder)
    lines = (folder / "runs" / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    last = json.loads(lines[-1])
    return last["seconds"] / 60, last["step"]


def bleu(folder: Path, model: Path | str, test: dict[str, str]) -> str:
    """Score a model on a test set."""
    printed = run("eval", "--model", model, "--src", test["src"], "--ref", test["tgt"], "--json", folder=folder)
    return f"{json.loads(printed)['scores'][0]['score']:.1f}"


def main() -> None:
    """Train, score and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("general", type=Path, metavar="GENERAL", help="the config of the general text")
    parser.add_argument("new", type=Path, metavar="NEW", help="the config of the other text")
    parser.add_argument("--model", type=Path, required=True, help="the general model")
    parser.add_argument("--folder", type=Path, required=True, help="where texts and runs go")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="how many pairs to fine-tune on")
    parser.add_argument("--alone", action="store_true", help="without general text")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of fine-tuning")
    arguments = parser.parse_args()
    config, folder, model = load_config(arguments.new), arguments.folder, arguments.model.resolve()
    new, general = texts(config, folder, "new"), texts(load_config(arguments.general), folder, "general")
    pairs = list(ParallelText(config.data.train, config.data.src_lang, config.data.tgt_lang))
    random.Random(1).shuffle(pairs)
    print("|", " | ".join(HEADER), "|")
    print("|", " | ".join(["---"] * len(HEADER)), "|")
    print("| 0 | | |", bleu(folder, model, new["test"]), "|", bleu(folder, model, general["test"]), "| |", flush=True)
    for size in arguments.sizes:
        languages = {"src_lang": config.data.src_lang, "tgt_lang": config.data.tgt_lang}
        scratch = {"train": [write(folder, f"new.{size}", pairs[:size])], "valid": [new["valid"]]}
        added = {part: [] if arguments.alone else [{**general[part], "general": True}] for part in scratch}
        mixed = {part: [*sources, *added[part]] for part, sources in scratch.items()}
        tuned = f"tuned-{size}"
        minutes, n_updates = train(folder, tuned, languages | mixed, {"init_from": str(model)}, arguments.set)
        scores = [bleu(folder, f"runs/{tuned}", text["test"]) for text in (new, general)]
        row = [f"{size:,}", f"{minutes:.1f}", f"{n_updates:,}", *scores]
        train(folder, f"scratch-{size}", languages | scratch, {"max_minutes": minutes}, [])
        print("|", " | ".join([*row, bleu(folder, f"runs/scratch-{size}", new["test"])]), "|", flush=True)


if __name__ == "__main__":
    run_program(main)
