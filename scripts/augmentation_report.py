"""Compare two runs, trained without and with data.augment, on the test sets of the first; print tables in Markdown.

The first table has BLEU of the models alone, and the tokens per sentence of the clean text and of its capitals. The
second has chrF2 (without regard to case) of the perturbed test set, as ``mtformer eval --stress`` computes it, with the
share of the same model's chrF2 on clean text, for the models alone and as ``mtformer translate`` uses them.

usage: python scripts/augmentation_report.py runs/without runs/with
"""

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from statistics import mean

from program import run_program

from mtformer.bundle.format import load_bundle
from mtformer.engines.loading import load_model
from mtformer.evaluate.evaluation import evaluate_loaded
from mtformer.evaluate.stress import StressRow, stress_model
from mtformer.evaluate.testsets import combined, read_eval_sets
from mtformer.runs.finding import find_model
from mtformer.support.terminal import as_markdown
from mtformer.text.tokenizer.tokenizer import Tokenizer

_FORMS: dict[str, Callable[[str], str]] = {
    "clean": str,
    "IN CAPITALS": str.upper,
    "In Title Case": lambda text: re.sub(r"(?<!\S)\S", lambda found: found[0].upper(), text),
}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs=2, metavar="RUN", help="runs without and with data.augment")
    parser.add_argument(
        "--beam-size", type=int, default=1, help="for the perturbed text; the clean one has the runs' own"
    )
    arguments = parser.parse_args()
    models = [find_model(run) for run in arguments.runs]
    print(clean_table(models), end="\n\n", flush=True)
    print(stress_table(models, arguments.beam_size))


def clean_table(models: list[Path]) -> str:
    """Compare the models on clean text."""
    rows = []
    for name, model in zip(("without", "with"), models, strict=True):
        evaluation = evaluate_loaded([model], load_model([model], None, "auto").toward(), raw=True)
        scores = {score.name: score.value for score in evaluation.total.scores}
        rows.append((name, f"{scores['BLEU']:.2f}", f"{scores['chrF2']:.2f}", *tokens_per_sentence(model)))
    return as_markdown(("data.augment", "BLEU", "chrF2", *(f"tokens, {form}" for form in _FORMS)), rows)


def tokens_per_sentence(model: Path) -> list[str]:
    """Return the mean numbers of tokens of a source and a reference of the test set, in each form."""
    bundle = load_bundle(model)
    tokenizer: Tokenizer = bundle.tokenizer
    texts = combined(read_eval_sets(model, bundle.header))
    sides = (tokenizer.encode_src, texts.sources), (tokenizer.encode_tgt, texts.references[0])
    return [
        " and ".join(f"{mean(map(len, encode([form(text) for text in side]))):.1f}" for encode, side in sides)
        for form in _FORMS.values()
    ]


def stress_table(models: list[Path], beam_size: int) -> str:
    """Compare the models on perturbed text."""
    loaded = [(model, load_model([model], beam_size=beam_size).toward()) for model in models]
    results = [stress_model([path], model, raw=raw).rows for raw in (True, False) for path, model in loaded]
    header = ("perturbation", "alone, without", "alone, with", "`translate`, without", "`translate`, with")
    return as_markdown(header, [(row[0].perturbation, *map(cell, row)) for row in zip(*results, strict=True)])


def cell(row: StressRow) -> str:
    """Show chrF2, its share of that of clean text, and how much of what the perturbation added is kept."""
    shown = "–" if row.chrf is None else f"{row.chrf:.1f}"
    if row.chrf is not None and row.clean_chrf:
        shown += f" ({100 * row.chrf / row.clean_chrf:.1f} %)"
    return f"{shown}, {100 * row.added.share:.0f} % kept" if row.added.share is not None else shown


if __name__ == "__main__":
    run_program(main)
