"""Random sentence pairs of a source."""

import logging

from mtformer.config import BuiltinText, Source
from mtformer.data.drops import Drops
from mtformer.data.reservoir import Reservoir
from mtformer.data.sources.parallel import ParallelText, source_name
from mtformer.support.progress import Progress
from mtformer.text.pairs import SentencePair

log = logging.getLogger(__name__)


def sample_pairs(source: Source, src_lang: str, tgt_lang: str, n: int, seed: int) -> list[SentencePair]:
    """Return ``n`` random pairs of ``source``, or all of them if there are fewer.

    The pairs keep the order of the source and are equally likely. The training text of the phrasebook is endless, so
    the first ``n`` pairs for ``seed`` are returned.
    """
    if isinstance(source, BuiltinText) and source.split == "train":
        source = BuiltinText.model_validate({"size": n, "seed": seed} | source.model_dump(exclude_unset=True))
    kept = Reservoir[tuple[int, SentencePair]](n, seed)
    drops, n_pairs = Drops(), 0
    with Progress("sampling", unit="pairs") as progress:
        for src, tgt, _ in ParallelText([source], src_lang, tgt_lang).examples(drops):
            n_pairs += 1
            kept.add((n_pairs, SentencePair(src, tgt)))
            progress.advance(1)
    if warning := drops.warning(source_name(source), n_pairs):
        log.warning("%s", warning)
    return [pair for _, pair in sorted(kept.items)]
