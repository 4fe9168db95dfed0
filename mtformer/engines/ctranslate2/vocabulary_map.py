"""A vocabulary map (shortlist): which target tokens may translate a source token.

The output layer then computes the scores of a few thousand tokens instead of the whole vocabulary. The map is learned
from parallel text by IBM model 1.

Format, which CTranslate2 reads as ``vmap.txt``: a line for each source token, with the token, a tab and target tokens
with spaces between them; the line of the empty token has those that are always allowed. A batch may choose the tokens
that any of its sentences may need. Sentences with a token that has no line need the whole vocabulary.
"""

import logging
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mtformer.bundle.format import Bundle
from mtformer.config import TextFiles
from mtformer.data.arrays import Ragged
from mtformer.data.clean.words import EncodedPairs, TranslationTable, ibm_model_1
from mtformer.data.sources.parallel import ParallelText
from mtformer.engines.torch import TorchEngine
from mtformer.search.engine import ScoreRequest, results_of
from mtformer.support.errors import UserError
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import Tokenizer

log = logging.getLogger(__name__)

_N_FREQUENT = 1_500  # target tokens that are always allowed
_N_CANDIDATES = 100  # most target tokens for a source token
_LEAST_PROBABILITY = 1e-4  # of a target token given the source token
_RARE = 20  # a source token seen less often allows all tokens of the translations that it was seen with
_CELLS_AT_ONCE = 2**24  # pairs of positions that the model is estimated on, about 300,000 sentence pairs
_PAIRS_AT_ONCE = 10_000
_PAIRS_TO_SCORE = 50  # that tell whether the files stand for the right sides


def learn_vocabulary_map(src: Path, tgt: Path, bundle: Bundle) -> str:
    """Learn a vocabulary map for a model from two text files; see :func:`make_vocabulary_map`.

    Warns if the model finds the text more probable the other way round.

    Raises:
        UserError: the files cannot be read, have different numbers of lines, or are empty.
    """
    source = TextFiles.model_validate({"src": src, "tgt": tgt})
    pairs = ParallelText([source], "", "")
    first = [pair for pair in islice(pairs, _PAIRS_TO_SCORE) if pair.src and pair.tgt]
    swapped = [SentencePair(pair.tgt, pair.src) for pair in first]
    if first and _log_prob(bundle, swapped) > _log_prob(bundle, first):
        log.warning("--vocabulary-map: %s looks like the target side and %s like the source side: swap them", src, tgt)
    text = make_vocabulary_map(pairs, bundle.tokenizer)
    n_tokens = text.count("\n") - 1
    log.info("the map has %s of %s source tokens", f"{n_tokens:,}", f"{bundle.tokenizer.src_vocab_size:,}")
    return text


def _log_prob(bundle: Bundle, pairs: Sequence[SentencePair]) -> float:
    """Return the mean log probability of the targets per character, cut to the longest that the model takes."""
    longest = bundle.header.architecture.max_length
    sources = bundle.tokenizer.encode_src([pair.src for pair in pairs])
    targets = bundle.tokenizer.encode_tgt([pair.tgt for pair in pairs])
    requests = [ScoreRequest(src[:longest], tgt[: longest - 1]) for src, tgt in zip(sources, targets, strict=True)]
    log_probs = results_of(TorchEngine(bundle.model), requests)
    return sum(map(sum, log_probs)) / sum(len(pair.tgt) for pair in pairs)


def make_vocabulary_map(pairs: Iterable[SentencePair], tokenizer: Tokenizer) -> str:
    """Learn a vocabulary map from ``pairs`` and return it in CTranslate2's format.

    Raises:
        UserError: there are no pairs.
    """
    read = _read(pairs, tokenizer)
    table = ibm_model_1(read, tokenizer.tgt_vocab_size)
    n_seen = np.bincount(read.src.values, minlength=tokenizer.src_vocab_size)
    kept = _most_probable(table) | (n_seen[table.src] < _RARE)
    tokens = tokenizer.tgt_tokens(range(tokenizer.tgt_vocab_size))
    always = _always(read.tgt.values, tokens, tokenizer.special_ids.eos)
    kept &= ~np.isin(table.tgt, always)
    lines = ["\t" + " ".join(tokens[i] for i in always)]
    seen = np.flatnonzero(n_seen)
    starts = np.searchsorted(table.src[kept], seen)  # the table is in the order of source tokens
    names = tokenizer.src_tokens(seen.tolist())
    for name, ids in zip(names, np.split(table.tgt[kept], starts[1:]), strict=True):
        allowed = [tokens[i] for i in ids.tolist()]
        if tokenizer.joint and name not in allowed:  # a name is its own translation
            allowed.append(name)
        lines.append(f"{name}\t{' '.join(allowed)}")
    return "\n".join(lines) + "\n"


def _read(pairs: Iterable[SentencePair], tokenizer: Tokenizer) -> EncodedPairs:
    """Encode pairs until they have as many cells as the model is estimated on."""
    src: list[list[int]] = []
    tgt: list[list[int]] = []
    n_cells = 0
    remaining = iter(pairs)
    while window := list(islice(remaining, _PAIRS_AT_ONCE)):
        sources = tokenizer.encode_src([pair.src for pair in window])
        targets = tokenizer.encode_tgt([pair.tgt for pair in window])
        for src_ids, tgt_ids in zip(sources, targets, strict=True):
            if min(len(src_ids), len(tgt_ids)) > 1:  # EOS of the source is the model's empty word
                src.append(src_ids)
                tgt.append(tgt_ids[:-1])
                n_cells += len(src_ids) * (len(tgt_ids) - 1)
        if n_cells >= _CELLS_AT_ONCE:
            break
    if not src:
        raise UserError("the text for the vocabulary map is empty")
    return EncodedPairs(Ragged.of(src, "<i8"), Ragged.of(tgt, "<i8"))


def _most_probable(table: TranslationTable) -> NDArray[np.bool_]:
    """Return a mask of the pairs that are among the most probable of their source token."""
    order = np.lexsort((-table.probabilities, table.src))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.searchsorted(table.src, table.src)  # the table is in the order of sources
    return (rank < _N_CANDIDATES) & (table.probabilities >= _LEAST_PROBABILITY)


def _always(tgt: NDArray[np.int64], tokens: list[str], eos: int) -> list[int]:
    """Return the tokens that are always allowed: EOS, the most frequent ones, bytes, characters and punctuation."""
    frequent = np.bincount(tgt, minlength=len(tokens)).argsort(kind="stable")[::-1][:_N_FREQUENT]
    spelling = (i for i, token in enumerate(tokens) if _spells(token))
    return sorted({eos, *frequent.tolist(), *spelling})


def _spells(token: str) -> bool:
    """Tell whether a token is a byte, one character, or nothing but digits and punctuation."""
    text = token.removeprefix("▁")
    is_byte = token.startswith("<0x") and token.endswith(">")
    return is_byte or len(text) <= 1 or all(unicodedata.category(character)[0] in "NPS" for character in text)
