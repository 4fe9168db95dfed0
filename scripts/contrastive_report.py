"""Measure how often a model prefers a right translation to one that is wrong in a single point.

An item is a source, its translation, and translations with a wrong pronoun, number, verb form or tense. The model is
right if it gives the right one the highest log probability, as ``mtformer score`` prints it. For a model of the
phrasebook, the items come from its grammar. For one between English and German, ``--src`` and ``--ref`` name text whose
references are changed by rules. ``--wrong`` shows what the model prefers to a right translation.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from contrastive_items import Item, phrasebook_items, text_items
from program import run_program

from mtformer.evaluate.testsets import from_files
from mtformer.support.errors import UserError
from mtformer.text.pairs import SentencePair
from mtformer.translate.translator import Translator


def preferred(translator: Translator, items: Sequence[Item]) -> list[str]:
    """Return the translation of each item that is the most probable one; a wrong one if it is as probable."""
    pairs = [(item.src, text) for item in items for text in (*item.wrong, item.right)]
    scored = iter(translator.score(*map(list, zip(*pairs, strict=True))))
    return [max((next(scored) for _ in range(len(item.wrong) + 1)), key=lambda it: it.log_prob).text for item in items]


def main() -> None:
    """Print a line for each point, and one for all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run's folder or a model bundle")
    parser.add_argument("--src", type=Path, help="English or German text, one sentence a line")
    parser.add_argument("--ref", type=Path, help="its translation")
    parser.add_argument("--point", help="measure pronoun, previous, number, agreement or tense alone")
    parser.add_argument("--wrong", action="store_true", help="show the wrong translations that the model prefers")
    arguments = parser.parse_args()
    translator = Translator.load(arguments.run)
    languages = translator.src_lang, translator.tgt_lang
    if (arguments.src is None) != (arguments.ref is None):
        raise UserError("give both --src and --ref, or neither for the phrasebook")
    if arguments.src is None:
        if languages not in (("en", "de"), ("en", "zh"), ("de", "en"), ("de", "zh")):
            raise UserError("the phrasebook's items are from English or German: use a model from one of these")
        items = phrasebook_items(*languages)
    else:
        if set(languages) != {"en", "de"}:
            raise UserError("the rules are for English and German: use a model between these")
        text = from_files(arguments.src, [arguments.ref])
        items = text_items(map(SentencePair, text.sources, text.references[0]), *languages)
    items = [item for item in items if arguments.point in (None, item.point)]
    if not items:
        raise UserError("there are no such items")
    answers = preferred(translator, items)
    n_items = Counter(item.point for item in items)
    n_right = Counter(item.point for item, answer in zip(items, answers, strict=True) if answer == item.right)
    for point, n in [*sorted(n_items.items()), ("all", len(items))]:
        n_met = n_right.total() if point == "all" else n_right[point]
        print(f"{point:<10} {n_met / n:6.1%}  ({n_met} of {n})")
    for item, answer in zip(items, answers, strict=True) if arguments.wrong else ():
        if answer != item.right:
            print(f"    {item.src}\t{item.right}\t{answer}")


if __name__ == "__main__":
    run_program(main)
