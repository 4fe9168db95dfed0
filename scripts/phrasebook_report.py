"""Evaluate a model trained on the phrasebook.

Prints BLEU on unseen sentences and on unseen combinations of words. From English, it also prints how often the model
translates an ambiguous word in the right sense and *it* with the right gender.
"""

import argparse
import sys
from pathlib import Path

import phrasebook_measures as measures

from mtformer.bundle.format import load_bundle
from mtformer.evaluate.metrics import all_scores
from mtformer.phrasebook.splits import held_out
from mtformer.runs.folder import find_model
from mtformer.support.errors import UserError
from mtformer.translate.translator import Translator


def main() -> None:
    """Translate the test splits and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run's folder or a model bundle")
    try:
        bundle = load_bundle(find_model(parser.parse_args().run))
    except UserError as error:
        sys.exit(f"phrasebook_report: {error}")
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
    for name, questions in (
        ("ambiguous", measures.ambiguous_words(header.tgt_lang)),
        ("pronouns", measures.pronouns(header.tgt_lang)),
    ):
        found = translator.translate([question.src for question in questions])
        right = sum(question.is_met_by(best.text) for question, (best, *_) in zip(questions, found, strict=True))
        print(f"{name:<14} {right / len(questions):6.1%} right      ({right} of {len(questions)})")


if __name__ == "__main__":
    main()
