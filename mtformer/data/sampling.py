"""Random samples of streams and of sources."""

import logging
import random
from typing import Generic, TypeVar

from mtformer.config import BuiltinText, Source
from mtformer.data.drops import Drops
from mtformer.data.sources.parallel import ParallelText, source_name
from mtformer.support.progress import Progress
from mtformer.text.pairs import SentencePair

Item = TypeVar("Item")
log = logging.getLogger(__name__)


class Reservoir(Generic[Item]):
    """A sample of a stream in which all items are equally likely (Vitter 1985, algorithm R).

    Attributes:
        items: the sample; all items of the stream while there are no more than ``size``.
    """

    def __init__(self, size: int, seed: int) -> None:
        """Keep ``size`` items."""
        self.items: list[Item] = []
        self._size, self._n_seen = size, 0
        self._generator = random.Random(seed)

    def add(self, item: Item) -> None:
        """Take the next item of the stream."""
        self._n_seen += 1
        if len(self.items) < self._size:
            self.items.append(item)
        elif (place := self._generator.randrange(self._n_seen)) < self._size:
            self.items[place] = item


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
