"""Write text of the phrasebook in which *it* follows a sentence with its noun, to train with data.context.

Half of the sentences with *it* and its noun become two lines: "The cat did not eat. / It was too ill." The text goes to
train.en and train.de in a folder; validation and test are those of the phrasebook.
"""

import argparse
from pathlib import Path
from random import Random

from contrastive_items import apart
from program import run_program

from mtformer.phrasebook.meaning import Sentence
from mtformer.phrasebook.splits import antecedent, train


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder for train.en and train.de")
    parser.add_argument("--size", type=int, default=170_000, help="sentences of the phrasebook")
    arguments = parser.parse_args()
    rng, lines = Random(1), []
    for saying in train(arguments.size, seed=1):
        has_it = isinstance(saying.meaning, Sentence) and antecedent(saying.meaning) is not None
        lines += apart(saying) if has_it and rng.random() < 0.5 else [saying]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for language in ("en", "de"):
        text = "".join(f"{line.text(language)}\n" for line in lines)
        (arguments.folder / f"train.{language}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
