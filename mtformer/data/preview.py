"""Random sentence pairs of a source."""

import random

from mtformer.config import BuiltinText, Source
from mtformer.progress import Progress
from mtformer.text.sources import ParallelText, SentencePair


def sample_pairs(source: Source, src_lang: str, tgt_lang: str, n: int, seed: int) -> list[SentencePair]:
    """Return ``n`` random pairs of ``source``, or all of them if there are fewer.

    The pairs keep the order of the source and are equally likely (reservoir sampling: Vitter 1985, algorithm R). The
    training text of the phrasebook is endless, so the first ``n`` pairs for ``seed`` are returned.
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
