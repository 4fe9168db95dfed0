"""Evaluate a model trained on the phrasebook.

Prints BLEU on unseen sentences and on unseen combinations of words. From English, it also prints how often the model
translates an ambiguous word in the right sense and *it* with the right gender, and how many of 200 sentences that
visitors type it translates acceptably. ``--wrong`` shows the others.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import phrasebook_measures as measures
from program import run_program

from mtformer.bundle.format import load_bundle
from mtformer.evaluate.metrics import all_scores
from mtformer.phrasebook.splits import held_out
from mtformer.runs.finding import find_model
from mtformer.translate.translator import Translator


def main() -> None:
    """Translate the test splits and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run's folder or a model bundle")
    parser.add_argument("--wrong", action="store_true", help="show the visitors' sentences with a wrong translation")
    arguments = parser.parse_args()
    bundle = load_bundle(find_model(arguments.run))
    header = bundle.header
    translator = Translator.load(bundle)
    for split in ("test", "compositional"):
        sayings = held_out(split)
        references = [saying.text(header.tgt_lang) for saying in sayings]
        found = translator.translate([saying.text(header.src_lang) for saying in sayings])
        hypotheses = [best.text for best, *_ in found]
        bleu, *_ = all_scores(hypotheses, references, header.tgt_lang, header.bleu_tokenize)
        same = sum(map(str.__eq__, hypotheses, references)) / len(references)
        print(f"{split:<14} {bleu.value:6.2f} BLEU  {same:6.1%} word for word  {bleu.signature}")
    if header.src_lang != "en":  # the challenge sets are in English
        return
    lists: dict[str, Sequence[measures.Challenge | measures.Visitor]] = {
        "ambiguous": measures.ambiguous_words(header.tgt_lang),
        "pronouns": measures.pronouns(header.tgt_lang),
        "visitors": measures.visitors(header.tgt_lang),
    }
    for name, questions in lists.items():
        found = translator.translate([question.src for question in questions])
        answers = [(question, best.text) for question, (best, *_) in zip(questions, found, strict=True)]
        wrong = [(question, text) for question, text in answers if not question.is_met_by(text)]
        n_right = len(questions) - len(wrong)
        print(f"{name:<14} {n_right / len(questions):6.1%} right      ({n_right} of {len(questions)})")
    for question, text in wrong if arguments.wrong else ():
        print(f"    {question.src}\t{text}")


if __name__ == "__main__":
    run_program(main)
