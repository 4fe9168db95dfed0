"""How long the pairs of a training text are in tokens."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mtformer.config import Config, Facts, resolve
from mtformer.text.languages import suit_joint_vocabulary
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.adopt import read_tokenizer
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.text.tokenizer.vocabulary import byte_of

PERCENTILES = ("50", "90", "99", "99.9", "100")


class SideLengths(NamedTuple):
    """The lengths of one side.

    Attributes:
        percentiles: the tokens of a text, EOS included, by each of :data:`PERCENTILES`.
        mean: the mean number of tokens.
        spelled_in_bytes: the share of characters' bytes among the tokens: those of characters without a token.
    """

    percentiles: dict[str, int]
    mean: float
    spelled_in_bytes: float


class Lengths(NamedTuple):
    """Lengths of a sample of the training text.

    Attributes:
        n_pairs: the number of pairs measured.
        vocab_size: the tokens of the source tokenizer.
        src: the sources.
        tgt: the targets.
        max_length: the setting ``data.max_length``.
        cut: the share of pairs that it drops.
    """

    n_pairs: int
    vocab_size: int
    src: SideLengths
    tgt: SideLengths
    max_length: int
    cut: float


def measure_lengths(
    config: Config, pairs: Sequence[SentencePair], n_pairs: int, tokenizer: Tokenizer | None = None
) -> Lengths | None:
    """Train the tokenizer of a config on some of its text, or take the given one, and measure that text.

    Args:
        config: the config.
        pairs: a random sample of the training text.
        n_pairs: how many pairs all of it has, by which the size of the vocabulary is chosen.
        tokenizer: that of the model to fine-tune; None if there is none.
    """
    pairs = [pair for pair in pairs if not pair.is_blank]
    if not pairs:
        return None
    languages = list(zip(*config.data.language_pairs, strict=True))
    if tokenizer is None and config.tokenizer.paths:
        tokenizer = read_tokenizer(config.tokenizer, ()).tokenizer
    elif tokenizer is None:
        settings = resolve(config, Facts(n_pairs=n_pairs, joint=suit_joint_vocabulary(*languages))).tokenizer
        tokenizer = train_tokenizer(pairs, settings, *languages, adjust=True)
    src_rows = tokenizer.encode_src([pair.src for pair in pairs])
    tgt_rows = tokenizer.encode_tgt([pair.tgt for pair in pairs])
    longest = np.maximum(*(np.array([len(row) for row in rows]) for rows in (src_rows, tgt_rows)))
    limit = config.data.max_length
    return Lengths(
        len(pairs),
        tokenizer.src_vocab_size,
        _of_side(src_rows, tokenizer.src_tokens(range(tokenizer.src_vocab_size))),
        _of_side(tgt_rows, tokenizer.tgt_tokens(range(tokenizer.tgt_vocab_size))),
        limit,
        float((longest > limit).mean()),
    )


def _of_side(rows: Sequence[Sequence[int]], tokens: Sequence[str]) -> SideLengths:
    lengths = np.array([len(row) for row in rows])
    is_byte = np.array([byte_of(token) is not None for token in tokens])
    spelled = is_byte[np.concatenate([np.array(row, dtype=np.int64) for row in rows])].mean()
    at = np.percentile(lengths, list(map(float, PERCENTILES))).astype(int).tolist()
    return SideLengths(dict(zip(PERCENTILES, at, strict=True)), float(lengths.mean()), float(spelled))
