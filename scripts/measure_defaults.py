"""Train models of several sizes on corpora of several sizes, and print which is best: the measurement of the defaults.

usage: python scripts/measure_defaults.py WORK --multi30k DIR --tatoeba DIR [--only NAME …] [--set KEY=VALUE …]
       [--threads N] [--seed N]

DIR has the text as train.en.gz, train.de.gz and so on; scripts/get_multi30k fetches Multi30k. Each model is trained
with all defaults but those that its name says: `8,000 narrow` has tokenizer.vocab_size = 8000 and the shape `narrow`.
`base` is the paper's, and a star marks what the defaults give; `--set` changes further settings of all models. A run
under WORK that is complete is not trained again, so that more names and more seeds can follow.

Columns: parameters; epochs; the validation BLEU of greedy search, by which to choose; the BLEU of beam search on the
test set, for the report; minutes of training, validations included.
"""

import argparse
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml
from program import run_program

from mtformer.bundle.format import load_bundle
from mtformer.config import TextFiles, load_config
from mtformer.config.resolve import size_for
from mtformer.data.sources.parallel import ParallelText, sample_pairs
from mtformer.evaluate.metrics import bleu
from mtformer.runs.contents import gather
from mtformer.runs.folder import RunFolder
from mtformer.support.files import write_atomically
from mtformer.training.run import train
from mtformer.translate.translator import Translator

SHAPES: dict[str, dict[str, Any]] = {
    "tiny": {"preset": "tiny"},
    "narrow": {"preset": "tiny", "n_encoder_layers": 4, "n_decoder_layers": 4},  # d_model 128
    "small": {"preset": "small"},  # 3 + 3 layers, d_model 256
    "deep": {"preset": "small", "n_encoder_layers": 4, "n_decoder_layers": 4},
    "base": {"preset": "base"},
}


@dataclass(frozen=True)
class Corpus:
    """A training text, and the models to train on it.

    Attributes:
        folder: the option that names its folder.
        valid: the name of its validation set.
        test: the name of its test set.
        size: how many pairs to draw.
        vocab_sizes: to combine with ``shapes``.
        shapes: names of :data:`SHAPES`.
        also: further combinations.
    """

    folder: str
    valid: str
    test: str
    size: int
    vocab_sizes: tuple[int, ...]
    shapes: tuple[str, ...]
    also: tuple[tuple[int, str], ...] = ()

    @property
    def models(self) -> dict[str, dict[str, Any]]:
        """The settings of each model, by name."""
        pairs = [(size, shape) for shape in self.shapes for size in self.vocab_sizes]
        default = size_for(self.size)
        return {
            f"{size:,} {shape}{'*' * ((size, shape) == (default.vocab_size, default.preset))}": {
                "tokenizer": {"vocab_size": size},
                "model": SHAPES[shape],
            }
            for size, shape in (*pairs, *self.also)
        }


CORPORA = {
    "multi30k-5000": Corpus(
        *("multi30k", "val", "test2016", 5_000, (1_000, 2_000, 4_000), ("tiny", "narrow", "small")), ((2_000, "base"),)
    ),
    "multi30k-29000": Corpus(
        *("multi30k", "val", "test2016", 29_000, (4_000, 8_000), ("tiny", "narrow", "small")),
        ((2_000, "narrow"), (8_000, "deep"), (8_000, "base")),
    ),
    "tatoeba-160000": Corpus(
        *("tatoeba", "valid", "test", 160_000, (4_000, 8_000, 16_000), ("narrow", "small")), ((8_000, "deep"),)
    ),
}


def files_of(folder: Path, name: str) -> dict[str, str]:
    """Return the source of a text in a folder."""
    return {"src": f"{folder / name}.en.gz", "tgt": f"{folder / name}.de.gz"}


def training_source(corpus: Corpus, folder: Path, work: Path) -> dict[str, str]:
    """Return the source of a corpus, or of the pairs drawn from it, which are written to a file under ``work``."""
    drawn = work / f"{corpus.folder}-{corpus.size}.tsv"
    if not drawn.exists():
        whole = TextFiles.model_validate(files_of(folder, "train"))
        pairs = sample_pairs(whole, "en", "de", corpus.size, seed=1)
        lines = "".join(f"{src}\t{tgt}\n" for src, tgt in pairs)
        write_atomically(drawn, lambda temporary: temporary.write_text(lines, encoding="utf-8"))
    return {"tsv": str(drawn)}


def trained(
    name: str, corpus: Corpus, folder: Path, work: Path, settings: dict[str, Any], overrides: list[str]
) -> RunFolder:
    """Train a model, unless it is trained already."""
    run = re.sub("[^a-z0-9]+", "-", " ".join([name, *overrides]))
    config = {
        "data": {
            "src_lang": "en",
            "tgt_lang": "de",
            "train": [training_source(corpus, folder, work)],
            "valid": [files_of(folder, corpus.valid)],
            "test": [files_of(folder, corpus.test)],
        },
        "run": {"dir": str(work / "runs"), "name": run},
    }
    path = work / f"{run}.yaml"  # another process may train another model meanwhile
    path.write_text(yaml.safe_dump(config | settings, sort_keys=False), encoding="utf-8")
    loaded = load_config(path, overrides)
    train(loaded)
    return RunFolder.of(loaded)


def row(name: str, run: RunFolder, corpus: Corpus, folder: Path) -> str:
    """Return a line of the table."""
    translator = Translator.load(load_bundle(run.bundle), "cpu", raw=True)
    test = list(ParallelText([TextFiles.model_validate(files_of(folder, corpus.test))], "en", "de"))
    found = translator.translate([pair.src for pair in test])
    score = bleu([best.text for best, *_ in found], [pair.tgt for pair in test]).value
    records = gather(run.path)
    best = max(line["valid_bleu"] for line in records.validations)
    n_parameters, epochs = sum(records.parameters.values()) / 1e6, records.step / records.starts[0]["steps_per_epoch"]
    return f"{name:<32} {n_parameters:8.1f} M  {epochs:6.1f}  {best:5.2f}  {score:5.2f}  {records.minutes:7.1f}"


def main() -> None:
    """Train each model and print its row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, help="the folder of the runs")
    parser.add_argument("--multi30k", type=Path, metavar="DIR")
    parser.add_argument("--tatoeba", type=Path, metavar="DIR")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="rows whose names contain any of these")
    parser.add_argument("--set", nargs="+", metavar="KEY=VALUE", default=[], help="settings of all models")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    arguments = parser.parse_args()
    if not (arguments.multi30k or arguments.tatoeba):
        parser.error("give --multi30k, --tatoeba or both")
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    torch.set_num_threads(arguments.threads)
    arguments.work.mkdir(parents=True, exist_ok=True)
    print(f"{'':<32} parameters  epochs  valid   test  minutes", flush=True)
    for title, corpus in CORPORA.items():
        folder = getattr(arguments, corpus.folder)
        if folder is None:
            continue
        for model, settings in corpus.models.items():
            name = f"{title} {model}"
            if not arguments.only or any(part in name for part in arguments.only):
                overrides = [f"training.seed={arguments.seed}", *arguments.set]
                run = trained(name, corpus, folder.absolute(), arguments.work.absolute(), settings, overrides)
                print(row(name, run, corpus, folder.absolute()), flush=True)


if __name__ == "__main__":
    run_program(main)
