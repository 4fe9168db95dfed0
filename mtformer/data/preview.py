"""Random sentence pairs of a source."""

import logging
import random

from mtformer.config import BuiltinText, Source
from mtformer.progress import Progress
from mtformer.text.drops import Drops
from mtformer.text.sources import ParallelText, SentencePair, source_name

log = logging.getLogger(__name__)


def sample_pairs(source: Source, src_lang: str, tgt_lang: str, n: int, seed: int) -> list[SentencePair]:
    """Return ``n`` random pairs of ``source``, or all of them if there are fewer.

    The pairs keep the order of the source and are equally likely (reservoir sampling: Vitter 1985, algorithm R). The
    training text of the phrasebook is endless, so the first ``n`` pairs for ``seed`` are returned.
    """
    if isinstance(source, BuiltinText) and source.split == "train":
        source = BuiltinText.model_validate({"size": n, "seed": seed} | source.model_dump(exclude_unset=True))
    generator = random.Random(seed)
    kept: list[tuple[int, SentencePair]] = []
    drops, n_pairs = Drops(), 0
    with Progress("sampling", unit="pairs") as progress:
        for src, tgt, _ in ParallelText([source], src_lang, tgt_lang).examples(drops):
            n_pairs += 1
            if len(kept) < n:
                kept.append((n_pairs, SentencePair(src, tgt)))
            elif (place := generator.randrange(n_pairs)) < n:
                kept[place] = n_pairs, SentencePair(src, tgt)
            progress.advance(1)
    if warning := drops.warning(source_name(source), n_pairs):
        log.warning("%s", warning)
    return [pair for _, pair in sorted(kept)]
