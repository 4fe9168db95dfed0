"""A few sentence pairs of a source, drawn at random, to look at."""

import random

from mtformer.config import BuiltinText, Source
from mtformer.progress import Progress
from mtformer.text.sources import ParallelText, SentencePair


def sample_pairs(source: Source, src_lang: str, tgt_lang: str, n: int, seed: int) -> list[SentencePair]:
    """Draw ``n`` pairs at random from ``source``; all of them if it has no more.

    The pairs come in the order of the source, each as likely as any other (reservoir sampling: Vitter 1985, algorithm
    R). Of the phrasebook's training text, which has no end, the first ``n`` of ``seed`` are taken.
    """
    if isinstance(source, BuiltinText) and source.split == "train":
        source = BuiltinText.model_validate({"size": n, "seed": seed} | source.model_dump(exclude_unset=True))
    generator = random.Random(seed)
    kept: list[tuple[int, SentencePair]] = []
    with Progress("sampling", unit="pairs") as progress:
        for number, pair in enumerate(ParallelText([source], src_lang, tgt_lang)):
            if len(kept) < n:
                kept.append((number, pair))
            elif (place := generator.randrange(number + 1)) < n:
                kept[place] = number, pair
            progress.advance(1)
    return [pair for _, pair in sorted(kept)]
