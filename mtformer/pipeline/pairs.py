"""Texts and their translations, cut into parts that fit the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from mtformer.pipeline.alignment import Alignment
from mtformer.search.engine import Engine
from mtformer.text.cutting import cut, cut_alike
from mtformer.text.tokenizer import EOS_ID, Tokenizer


@dataclass(frozen=True)
class Pair:
    """A text and its translation in tokens.

    Attributes:
        sources: the ids of each part of the text, EOS last.
        targets: those of each part of the translation, without EOS.
    """

    sources: Sequence[Sequence[int]]
    targets: Sequence[Sequence[int]]


def make_pairs(tokenizer: Tokenizer, texts: Sequence[tuple[str, str]], max_length: int) -> list[Pair]:
    """Encode texts and their translations; cut those too long for ``max_length`` tokens, EOS included, on both sides.

    A text is cut where it is cut for translating; its translation at about the same places, at ends of sentences or
    words. A translation may be longer than ``max_length`` where its text is not, by half.
    """
    sources = tokenizer.encode_src([src for src, _ in texts])
    targets = tokenizer.encode_tgt([tgt for _, tgt in texts])
    pairs = []
    for src, tgt in zip((ids[:-1] for ids in sources), (ids[:-1] for ids in targets), strict=True):
        src_tokens, tgt_tokens = tokenizer.src_tokens(src), tokenizer.tgt_tokens(tgt)
        src_sizes = cut(src_tokens, max_length - 1)
        tgt_sizes = cut(tgt_tokens, max_length + max_length // 2)
        if len(tgt_sizes) > len(src_sizes):
            src_sizes = cut_alike(src_tokens, tgt_sizes)
        else:
            tgt_sizes = cut_alike(tgt_tokens, src_sizes)
        pairs.append(Pair([[*part, EOS_ID] for part in _parts(src, src_sizes)], _parts(tgt, tgt_sizes)))
    return pairs


def _parts(ids: Sequence[int], sizes: Sequence[int]) -> list[Sequence[int]]:
    return [ids[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]


def align(engine: Engine, tokenizer: Tokenizer, texts: Sequence[tuple[str, str]], max_length: int) -> list[Alignment]:
    """Align texts with their translations; see :meth:`mtformer.translator.Translator.align`."""
    pairs = make_pairs(tokenizer, texts, max_length)
    found = iter(
        engine.align(
            [part for pair in pairs for part in pair.sources], [part for pair in pairs for part in pair.targets]
        )
    )
    alignments = []
    for (src, tgt), pair in zip(texts, pairs, strict=True):
        src_ids = [i for part in pair.sources for i in part[:-1]]
        tgt_ids = [i for part in pair.targets for i in part]
        weights = np.zeros((len(tgt_ids), len(src_ids)), dtype=np.float32)
        row = column = 0
        for part in (next(found)[:, :-1] for _ in pair.sources):
            weights[row : row + part.shape[0], column : column + part.shape[1]] = part
            row, column = row + part.shape[0], column + part.shape[1]
        spans = tokenizer.src_spans(src, src_ids), tokenizer.tgt_spans(tgt, tgt_ids)
        alignments.append(Alignment(src, tgt, *spans, weights))
    return alignments
