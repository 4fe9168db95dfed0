"""Drop the tokens that some languages, or a text, never use from a model of another toolkit, and their embeddings.

What stays is split as before: of a BPE model, that takes the tokens that others are merged from too. They need no
embedding, and stay behind those that the Transformer knows, as unused ones, which SentencePiece splits again.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

import torch
from sentencepiece import SentencePieceProcessor
from torch import Tensor

from mtformer.bundle.header import Header
from mtformer.export.imported import Imported
from mtformer.support.errors import UserError
from mtformer.text.languages import letters_of
from mtformer.text.tokenizer.sentencepiece_file import BPE, Kind, Token, read_settings, read_tokens, replace_tokens
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.vocabulary import Vocabulary, normalize

log = logging.getLogger(__name__)

_N_TEXTS = 10_000  # that are split at once
_MERGED = (Kind.NORMAL, Kind.USER_DEFINED, Kind.UNUSED)  # what characters are merged into


def trim(imported: Imported, languages: Sequence[str] | None, texts: Iterable[str] | None) -> Imported:
    """Return a model with fewer tokens.

    Special tokens, bytes, and all characters of the languages' scripts, digits and punctuation stay.

    Args:
        imported: the model.
        languages: those to keep of a model of many; None keeps all.
        texts: what other tokens stay for: those that any of the texts has, as a source or as a translation. None keeps
            all but those that only have letters of other scripts.

    Raises:
        UserError: the model has no such languages, or there is no text.
    """
    header = imported.header if languages is None else _with_languages(imported.header, languages)
    sides = [_Side(model) for model in imported.tokenizers]
    if texts is not None:
        _read(texts, sides)
    rule = _Rule(_named(header), _script(header), by_text=texts is not None)
    special_ids = header.architecture.special_ids
    special = sorted(set(special_ids.model_dump().values()))
    kept = [side.kept(rule).difference(special) for side in sides]
    if header.architecture.joint_vocab:
        kept = [set.union(*kept)] * len(sides)
    ids = [special + sorted(of_side) for of_side in kept]  # by new id, the old one
    models = tuple(side.with_ids(of_side, rule) for side, of_side in zip(sides, ids, strict=True))
    tokenizer = Tokenizer(*models).with_start(special.index(special_ids.start))
    sizes = {"src_vocab_size": tokenizer.src_vocab_size, "tgt_vocab_size": tokenizer.tgt_vocab_size}
    architecture = header.architecture.model_copy(update={**sizes, "special_ids": tokenizer.special_ids})
    trimmed = Imported(
        header.model_copy(update={"architecture": architecture}), _rows(imported.tensors, ids[0], ids[-1]), models
    )
    changes = (" → ".join(sizes) for sizes in zip(_sizes(imported), _sizes(trimmed), strict=True))
    log.info("vocabulary %s tokens, parameters %s, %s MB", *changes)
    return trimmed


class _Rule(NamedTuple):
    """The rule that decides whether a token stays although no text has it.

    Attributes:
        named: the tokens that stand before texts.
        script: finds a letter of the languages; None: any letter.
        by_text: whether longer tokens stay only if a text has them.
    """

    named: frozenset[str]
    script: re.Pattern[str] | None
    by_text: bool

    def keeps(self, token: Token) -> bool:
        """Tell whether a token stays."""
        if token.kind not in (Kind.NORMAL, Kind.UNUSED):
            return token.kind in (Kind.BYTE, Kind.USER_DEFINED) or token.text in self.named
        text = token.text.replace("▁", "")
        is_own = self.script is None or bool(self.script.search(text)) or not any(map(str.isalpha, text))
        if len(text) <= 1:
            return is_own or text.isascii()  # names are often in Latin letters
        return is_own and not self.by_text and token.kind == Kind.NORMAL


class _Side:
    """A SentencePiece model, and which of its tokens texts have."""

    def __init__(self, model: bytes) -> None:
        self.model = model
        self.vocabulary = Vocabulary(model)
        self.tokens = read_tokens(model)
        self.is_bpe = read_settings(model).algorithm == BPE
        self.used: set[int] = set()
        self._processor = SentencePieceProcessor(model_proto=model)

    def read(self, texts: Sequence[str]) -> None:
        """Add the tokens of texts to those used, with those that the Transformer does not know."""
        n_known, unk = self.vocabulary.vocab_size, self.vocabulary.special_ids.unk
        normalized = [normalize(text, self.vocabulary.form) for text in texts]
        for text, ids in zip(texts, self._processor.encode(normalized, num_threads=1), strict=True):
            self.used.update(ids)
            if unk in ids or max(ids, default=0) >= n_known:
                self.used.update(*self.vocabulary.encode([text]))

    def kept(self, rule: _Rule) -> set[int]:
        """Return the ids that the Transformer keeps, special ones aside."""
        known = range(self.vocabulary.vocab_size)
        kept = {i for i in known if i in self.used or rule.keeps(self.tokens[i])}
        normal = [i for i in known if self.tokens[i].kind == Kind.NORMAL]
        if normal and not self.is_bpe:  # unknown characters are a little less likely than the least likely token
            kept.add(min(normal, key=lambda i: self.tokens[i].score))
        return kept

    def with_ids(self, ids: Sequence[int], rule: _Rule) -> bytes:
        """Return the model with the Transformer's tokens ``ids``, followed by those that split texts as before."""
        n_known = self.vocabulary.vocab_size
        rest = [token for i, token in enumerate(self.tokens[n_known:], n_known) if i in self.used or rule.keeps(token)]
        tokens = [*(self.tokens[i] for i in ids), *rest]
        if self.is_bpe:
            tokens += _lacking(tokens, self.tokens)
        return replace_tokens(self.model, tokens, n_known=len(ids))


def _lacking(tokens: Sequence[Token], all_tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens of a BPE model that others are merged from, or that keep others from it, as unused ones."""
    present = {token.text for token in tokens}
    mergeable = {token.text: token.score for token in all_tokens if token.kind in _MERGED}
    needed = {token.text for token in all_tokens if token.kind == Kind.UNUSED}
    for token in tokens:
        if token.kind in _MERGED:
            needed.update(_merged(token.text, mergeable))
    yield from (Token(text, mergeable[text], Kind.UNUSED) for text in sorted(needed - present))


def _merged(text: str, scores: Mapping[str, float]) -> Iterator[str]:
    """Yield the tokens after each BPE merge of the characters of a token: likeliest merge first, then leftmost."""
    parts = list(text)
    while True:
        pairs = [left + right for left, right in pairwise(parts)]
        found = [(-scores[pair], i) for i, pair in enumerate(pairs) if pair in scores]
        if not found:
            return
        _, i = min(found)
        parts[i : i + 2] = [pairs[i]]
        yield pairs[i]


def _read(texts: Iterable[str], sides: Sequence[_Side]) -> None:
    """Collect the tokens of texts.

    Raises:
        UserError: there is no text.
    """
    written = (text for text in texts if text.strip())
    if not (batch := list(islice(written, _N_TEXTS))):
        raise UserError("there is no text that says which tokens to keep")
    while batch:
        for side in sides:
            side.read(batch)
        batch = list(islice(written, _N_TEXTS))


def _with_languages(header: Header, wanted: Sequence[str]) -> Header:
    """Return a header with some of a model's languages.

    Raises:
        UserError: the model does not have them.
    """
    if not header.languages:
        raise UserError(
            f"the model translates {header.title}: languages can be chosen of one that translates between all"
        )
    kept = {header.direction(tgt_lang=language).tgt_lang for language in wanted}
    if len(kept) < 2:
        raise UserError("a model needs two languages or more")
    return header.model_copy(update={"languages": {k: v for k, v in header.languages.items() if k in kept}})


def _named(header: Header) -> frozenset[str]:
    """Return the tokens that stand before texts."""
    prefixes = [token for tokens in header.prefixes.values() for token in (*tokens.src, *tokens.tgt)]
    return frozenset([*header.languages.values(), *prefixes])


def _script(header: Header) -> re.Pattern[str] | None:
    """Return a pattern for the letters of a model's languages; None if one of their scripts is unknown."""
    languages = header.languages or {language for pair in header.language_pairs for language in pair}
    letters = {language: letters_of(language) for language in languages}
    if unknown := [language for language, of_language in letters.items() if of_language is None]:
        log.warning("characters of all scripts stay: that of %s is not known", ", ".join(unknown[:5]))
        return None
    return re.compile(f"[{''.join(filter(None, letters.values()))}]")


def _rows(tensors: Mapping[str, Tensor], src_ids: Sequence[int], tgt_ids: Sequence[int]) -> dict[str, Tensor]:
    """Return the weights of a model with some of its tokens."""
    ids = {"src_embedding": src_ids, "tgt_embedding": tgt_ids, "output": tgt_ids}
    of_module = {module: torch.tensor(of_side) for module, of_side in ids.items()}
    return {
        name: tensor.index_select(0, of_module[module]) if (module := name.split(".")[0]) in of_module else tensor
        for name, tensor in tensors.items()
    }


def _sizes(model: Imported) -> tuple[str, str, str]:
    """Return the numbers of tokens and of parameters, and the size in MB."""
    architecture, tensors = model.header.architecture, model.tensors.values()
    vocabularies = [architecture.src_vocab_size] + [architecture.tgt_vocab_size] * (not architecture.joint_vocab)
    n_bytes = sum(tensor.nbytes for tensor in tensors) + sum(map(len, model.tokenizers))
    n_parameters = sum(tensor.numel() for tensor in tensors)
    return " and ".join(f"{size:,}" for size in vocabularies), f"{n_parameters:,}", f"{n_bytes / 1e6:,.1f}"
