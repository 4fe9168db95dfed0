"""Word alignments between a source text and its translation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.text.words import Span, word_spans

Weights = NDArray[np.float32]
_Places = NDArray[np.int64]


class Link(NamedTuple):
    """A stretch of a translation and the source stretch that it comes from.

    Attributes:
        src: where it stands in the source text.
        tgt: where it stands in the translation.
        weight: the share of the model's attention, between 0 and 1.
    """

    src: Span
    tgt: Span
    weight: float


class WordWeight(NamedTuple):
    """How much a word of a translation attends to a word of its source.

    Attributes:
        src: the place of the source word, counted from 0.
        tgt: that of the target word.
        weight: the share of attention, between 0 and 1.
    """

    src: int
    tgt: int
    weight: float


@dataclass(frozen=True, eq=False)
class Alignment:
    """How much the tokens of a translation attend to those of its source.

    The parts of a text, such as its sentences, are translated separately: no token attends to another part.

    Attributes:
        src: the source text.
        tgt: the translation.
        src_spans: where the S source tokens stand in ``src``, in characters.
        tgt_spans: where the T target tokens stand in ``tgt``.
        blocks: how much the target tokens of each part attend to its source tokens, part by part. The shapes add up to
            (T, S). A row may sum to less than 1: the rest is attention to EOS of the source.
    """

    src: str
    tgt: str
    src_spans: Sequence[Span]
    tgt_spans: Sequence[Span]
    blocks: Sequence[Weights]

    @property
    def weights(self) -> Weights:
        """The attention of all target tokens to all source tokens, (T, S): large for a long text of many parts."""
        weights = np.zeros((len(self.tgt_spans), len(self.src_spans)), dtype=np.float32)
        for row, column, block in self._placed():
            weights[row : row + block.shape[0], column : column + block.shape[1]] = block
        return weights

    def _placed(self) -> Iterator[tuple[int, int, Weights]]:
        """Yield each block with the indices of its first target token and its first source token."""
        row = column = 0
        for block in self.blocks:
            yield row, column, block
            row, column = row + block.shape[0], column + block.shape[1]

    def links(self) -> list[Link]:
        """Link each target token to the source token that it attends to most.

        Tokens that are only a space have no link. All tokens that spell a character in bytes have that character's
        span.
        """
        links: list[Link] = []
        for row, column, block in self._placed():
            src_spans = self.src_spans[column : column + block.shape[1]]
            is_text = np.array([start < end for start, end in src_spans], dtype=bool)
            if is_text.any():
                best = np.where(is_text, block, -1).argmax(axis=1)
                links += [
                    Link(src_spans[s], self.tgt_spans[row + t], float(block[t, s]))
                    for t, s in enumerate(best.tolist())
                    if self.tgt_spans[row + t][0] < self.tgt_spans[row + t][1]
                ]
        return links

    def word_links(self) -> list[tuple[int, int]]:
        """Link each target word to the source word that it attends to most; return their places, counted from 0.

        Words are those of :func:`mtformer.text.words.word_spans`. The attention of a word is the mean of its tokens'.
        Punctuation that is attached to words does not link them: "chips." and "gegessen." share a full stop, no more.
        """
        tgt, src, weights = self._word_weights
        order = np.lexsort((src, -weights, tgt))
        _, firsts = np.unique(tgt[order], return_index=True)
        best = order[firsts]  # of each target word
        return sorted(zip(src[best].tolist(), tgt[best].tolist(), strict=True))

    def word_weights(self) -> list[WordWeight]:
        """Return the attention of target words to source words; pairs without any are left out."""
        tgt, src, weights = self._word_weights
        return list(map(WordWeight, src.tolist(), tgt.tolist(), weights.tolist()))

    @cached_property
    def _word_weights(self) -> tuple[_Places, _Places, Weights]:
        """The target words, the source words and the weights of all pairs of words with a weight."""
        of_src, of_tgt = _Membership(self.src, self.src_spans), _Membership(self.tgt, self.tgt_spans)
        is_mark = np.array([not _has_letters(word) for word in _texts(self.tgt)], dtype=bool)
        tgt, src, values = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.float32)]
        for row, column, block in self._placed():
            tgt_words, in_tgt = of_tgt.among(row, row + block.shape[0])  # (target words,), (2, target words, T)
            src_words, in_src = of_src.among(column, column + block.shape[1])
            means = in_tgt / np.maximum(of_tgt.n_tokens[:, tgt_words, None], 1)
            shares = in_src / np.maximum(in_src.sum(axis=1, keepdims=True), 1)  # of a token that is in several words
            letters, marks = means @ block @ shares.transpose(0, 2, 1)
            weights = np.where(is_mark[tgt_words, None], marks, letters)  # a mark of its own may be attached in src
            rows, columns = weights.nonzero()
            tgt.append(tgt_words[rows])
            src.append(src_words[columns])
            values.append(weights[rows, columns])
        n_src = of_src.n_tokens.shape[1]
        pairs, places = np.unique(np.concatenate(tgt) * n_src + np.concatenate(src), return_inverse=True)
        sums = np.bincount(places, np.concatenate(values), len(pairs))  # words of which several parts have a token
        return pairs // max(n_src, 1), pairs % max(n_src, 1), sums.astype(np.float32)

    def pharaoh(self) -> str:
        """Return :meth:`word_links` in Pharaoh format, as in ``0-0 1-2``: source index first."""
        return " ".join(f"{src}-{tgt}" for src, tgt in self.word_links())

    def to_dict(self) -> dict[str, Any]:
        """Return the words of both texts and :meth:`word_links`, for JSON."""
        return {"src_words": _texts(self.src), "tgt_words": _texts(self.tgt), "links": self.word_links()}


def _texts(text: str) -> list[str]:
    return [text[start:end] for start, end in word_spans(text)]


class _Membership:
    """The membership of the tokens of a text in its words.

    The first dimension of the results has size 2: without the punctuation that is attached to words, and with it.

    Attributes:
        n_tokens: (2, words) how many tokens each word has.
    """

    def __init__(self, text: str, spans: Sequence[Span]) -> None:
        """Take a text and the spans of its tokens."""
        words = word_spans(text)
        members: list[tuple[int, int, bool]] = []
        first = 0
        for token, (start, end) in enumerate(spans):
            while first < len(words) and words[first][1] <= start:
                first += 1
            for word in range(first, len(words)):
                left, right = words[word]
                if left >= end:
                    break
                is_attached = not _has_letters(text[max(start, left) : min(end, right)])
                members.append((token, word, not (is_attached and _has_letters(text[left:right]))))
        columns = np.array(members, dtype=np.int64).reshape(-1, 3).T
        self._tokens, self._words = columns[:2]
        self._counts = np.stack([columns[2], np.ones_like(columns[2])]).astype(np.float32)
        self.n_tokens = np.stack([np.bincount(self._words, counts, len(words)) for counts in self._counts])

    def among(self, start: int, end: int) -> tuple[_Places, Weights]:
        """Return the words of the tokens from ``start`` to before ``end``, and which tokens are in each.

        Returns:
            (words,) their places, and (2, words, tokens) 1 where a token is in a word.
        """
        here = slice(*np.searchsorted(self._tokens, [start, end]))
        words, rows = np.unique(self._words[here], return_inverse=True)
        members = np.zeros((2, len(words), end - start), dtype=np.float32)
        members[:, rows, self._tokens[here] - start] = self._counts[:, here]
        return words, members


def _has_letters(text: str) -> bool:
    return any(character.isalnum() for character in text)
