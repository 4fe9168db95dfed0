"""Alignments: which words of a source text the words of its translation come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.text.spans import Span, word_spans

Weights = NDArray[np.float32]


class Link(NamedTuple):
    """A part of a translation and the part of the source that it comes from.

    Attributes:
        src: where it stands in the source text.
        tgt: where it stands in the translation.
        weight: the share of the model's attention, between 0 and 1.
    """

    src: Span
    tgt: Span
    weight: float


@dataclass(frozen=True, eq=False)
class Alignment:
    """How much the tokens of a translation attend to those of its source.

    Attributes:
        src: the source text.
        tgt: the translation.
        src_spans: where the S source tokens stand in ``src``, in characters.
        tgt_spans: where the T target tokens stand in ``tgt``.
        weights: (T, S) the attention of each target token. What a row lacks to 1 went to the end of the source.
    """

    src: str
    tgt: str
    src_spans: Sequence[Span]
    tgt_spans: Sequence[Span]
    weights: Weights

    def links(self) -> list[Link]:
        """Link each target token to the source token that it attends to most.

        Tokens that are only a space have no link. All tokens that spell a character in bytes have that character's
        span.
        """
        is_text = np.array([start < end for start, end in self.src_spans], dtype=bool)
        if not is_text.any():
            return []
        weights = np.where(is_text, self.weights, -1)
        best = weights.argmax(axis=1)
        return [
            Link(self.src_spans[s], span, float(weights[t, s]))
            for t, (s, span) in enumerate(zip(best.tolist(), self.tgt_spans, strict=True))
            if span[0] < span[1]
        ]

    def word_links(self) -> list[tuple[int, int]]:
        """Link each target word to the source word that it attends to most; return their places, counted from 0.

        Words are those of :func:`mtformer.text.spans.word_spans`. The attention of a word is the mean of its tokens'.
        Punctuation that is attached to words does not link them: "chips." and "gegessen." share a full stop, no more.
        """
        letters, marks = self._word_weights(attached=False), self._word_weights(attached=True)
        words = word_spans(self.tgt)
        is_mark = np.array([not _has_letters(self.tgt[start:end]) for start, end in words], dtype=bool)
        weights = np.where(is_mark[:, None], marks, letters)  # a mark of its own may be attached in the source
        if not weights.size:
            return []
        best = weights.argmax(axis=1).tolist()
        return sorted((src, tgt) for tgt, src in enumerate(best) if weights[tgt, src] > 0)

    def _word_weights(self, *, attached: bool) -> Weights:
        """Return (target words, source words), with or without punctuation that is attached to words."""
        of_src = _membership(self.src, self.src_spans, attached=attached)  # (source words, S)
        of_tgt = _membership(self.tgt, self.tgt_spans, attached=attached)  # (target words, T)
        shares = of_src / np.maximum(of_src.sum(axis=0), 1)  # of a token that is in several words
        means = of_tgt / np.maximum(of_tgt.sum(axis=1, keepdims=True), 1)
        return means @ self.weights @ shares.T

    def pharaoh(self) -> str:
        """Return :meth:`word_links` as in ``0-0 1-2``, the source's place first."""
        return " ".join(f"{src}-{tgt}" for src, tgt in self.word_links())

    def to_dict(self) -> dict[str, Any]:
        """Return the words of both texts and :meth:`word_links`, for JSON."""
        return {"src_words": _texts(self.src), "tgt_words": _texts(self.tgt), "links": self.word_links()}


def _texts(text: str) -> list[str]:
    return [text[start:end] for start, end in word_spans(text)]


def _membership(text: str, spans: Sequence[Span], *, attached: bool) -> Weights:
    """Return (words, tokens), 1 where a token is in a word; ``attached`` includes punctuation attached to a word."""
    words = word_spans(text)
    found = np.zeros((len(words), len(spans)), dtype=np.float32)
    first = 0
    for token, (start, end) in enumerate(spans):
        while first < len(words) and words[first][1] <= start:
            first += 1
        for word in range(first, len(words)):
            left, right = words[word]
            if left >= end:
                break
            inside = text[max(start, left) : min(end, right)]
            found[word, token] = attached or _has_letters(inside) or not _has_letters(text[left:right])
    return found


def _has_letters(text: str) -> bool:
    return any(character.isalnum() for character in text)
