"""Training SentencePiece on parallel text, and adding tokens to a model that is trained already."""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from functools import partial
from itertools import zip_longest
from typing import Any

from sentencepiece import SentencePieceTrainer

from mtformer.config import TokenizerConfig
from mtformer.model.architecture import SPECIAL_IDS
from mtformer.support.errors import UserError
from mtformer.text.languages import function_words, has_many_characters, max_token_length, suit_joint_vocabulary
from mtformer.text.pairs import SentencePair
from mtformer.text.slots import never_split
from mtformer.text.tokenizer.sentencepiece_file import SPECIAL_TOKENS, Kind, Token, add_tokens, read_tokens, with_rule
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.vocabulary import RULES, Vocabulary, normalize

Normalize = Callable[[str], str]
Languages = str | Sequence[str]  # one or several

MAX_TRAINING_TEXTS = 500_000  # two million take minutes
_NUMBERS_AT_ONCE = 1_000_000  # drawn for the sample
# SentencePiece silently skips lines above a limit in bytes, and counts the characters of a word in 16 bits.
_MAX_CHARACTERS = 16_000
_MAX_BYTES = 12 * _MAX_CHARACTERS  # up to four bytes a character, and boundaries around it
_N_BYTES = 256
_BOUNDARY = "\t"  # normalized text has none
_N_THREADS = 2  # the model depends on it, and must be the same on every machine


def extend_tokenizer(
    old: Tokenizer,
    pairs: Iterable[SentencePair],
    config: TokenizerConfig,
    src_lang: Languages,
    tgt_lang: Languages,
    *,
    seed: int,
) -> Tokenizer:
    """Extend ``old`` to ``config.vocab_size`` tokens for the text of ``pairs``; existing tokens keep their ids.

    The new tokens are those of a tokenizer trained on ``pairs`` alone, single characters first. Where two models share
    the ids of one Transformer, a token has the same id in both, and is unused in that of the other language.

    Raises:
        UserError: the text does not support as many tokens.
    """
    forms = (old.src.normalize, old.tgt.normalize)
    texts = _sides(pairs, {"src": _all(src_lang), "tgt": _all(tgt_lang)}, forms, seed, joint=old.joint)
    trained = _train(texts, config, adjust=True)
    others = [_others(vocabulary, of_text) for vocabulary, of_text in zip((old.src, old.tgt), trained, strict=False)]
    if config.joint and not old.joint:
        others = _in_both(*others)
    sizes = (old.src_vocab_size, old.tgt_vocab_size)
    extended = (_extended(*values, config) for values in zip(old.models, sizes, others, strict=False))
    return Tokenizer(*extended).with_start(old.special_ids.start)


def _others(vocabulary: Vocabulary, trained: bytes) -> list[Token]:
    """Return the tokens of a trained model that a vocabulary lacks."""
    known = set(vocabulary.tokens(range(vocabulary.vocab_size)))
    others = [token for token in read_tokens(trained) if token.kind == Kind.NORMAL and token.text not in known]
    return sorted(others, key=lambda token: len(token.text) > 1)  # a character without a token is spelled in bytes


def _in_both(src: list[Token], tgt: list[Token]) -> list[list[Token]]:
    """Return the tokens of two languages in the same order, in turn from each, and unused where a side lacks them."""
    sides = [{token.text: token for token in tokens} for tokens in (src, tgt)]
    in_turn = (token.text for pair in zip_longest(src, tgt) for token in pair if token is not None)
    texts = list(dict.fromkeys(in_turn))
    return [[side.get(text, Token(text, kind=Kind.UNUSED)) for text in texts] for side in sides]


def _extended(old: bytes, n_known: int, others: Sequence[Token], config: TokenizerConfig) -> bytes:
    """Add tokens to a serialized model of which a Transformer knows the first ``n_known``."""
    n_missing = (config.vocab_size or 0) - n_known
    if n_missing > len(others):
        raise UserError(
            f"tokenizer.vocab_size = {config.vocab_size} is too large: the initial model has {n_known} tokens and "
            f"the text supports {len(others)} more; set it to {n_known + len(others)} or less"
        )
    added = list(others[:n_missing])
    if config.type == "bpe":  # a score is the negative rank of a merge
        least = min(token.score for token in read_tokens(old))
        added = [token._replace(score=least - rank) for rank, token in enumerate(added, 1)]
    return add_tokens(old, added)


def train_tokenizer(
    pairs: Iterable[SentencePair],
    config: TokenizerConfig,
    src_lang: Languages,
    tgt_lang: Languages,
    *,
    seed: int = 1,
    adjust: bool = False,
    control_symbols: Sequence[str] = (),
) -> Tokenizer:
    """Train SentencePiece on both sides of ``pairs``, with ``config.vocab_size`` tokens.

    Of separate tokenizers, each has as many of them as its side of the text supports.

    Args:
        pairs: the text, iterated more than once; of more than 500,000 texts, a random sample is used. If it is a
            sequence, no others are read.
        config: the algorithm and the sizes.
        src_lang: with ``tgt_lang``, decides what ``config`` leaves open: whether the vocabulary is joint, how many
            characters become tokens, and how long a token may be.
        tgt_lang: the target language; on each side, there may be several.
        seed: the seed of the sample.
        adjust: use the nearest size that the text supports, instead of raising.
        control_symbols: source tokens that no text contains, such as :data:`.MARKERS`; encoding never yields them.

    Raises:
        UserError: the text does not support a vocabulary of this size; the message names the nearest supported size.
    """
    languages = {"src": _all(src_lang), "tgt": _all(tgt_lang)}
    joint = suit_joint_vocabulary(*languages.values()) if config.joint is None else config.joint
    if clashes := set(config.user_symbols) & set(control_symbols):
        raise UserError(f"tokenizer.user_symbols: {', '.join(sorted(clashes))} marks texts or terms; choose others")
    form = partial(normalize, form=config.normalization)
    texts = _sides(pairs, languages, (form, form), seed, joint=joint)
    tokenizer = Tokenizer(*_train(texts, config, control_symbols, adjust=adjust))
    if config.type == "byte" and not adjust and config.vocab_size != tokenizer.src_vocab_size:
        raise UserError(
            f"tokenizer.vocab_size = {config.vocab_size} with tokenizer.type = byte, whose vocabulary has "
            f"{tokenizer.src_vocab_size} tokens: remove vocab_size"
        )
    return tokenizer


def _all(languages: Languages) -> Sequence[str]:
    return [languages] if isinstance(languages, str) else languages


def _sides(
    pairs: Iterable[SentencePair],
    sides: dict[str, Sequence[str]],
    forms: Sequence[Normalize],
    seed: int,
    *,
    joint: bool,
) -> list["_Texts"]:
    if joint:
        return [_Texts(pairs, sides, seed, forms[0])]
    each = zip(sides.items(), forms, strict=True)
    return [_Texts(pairs, {side: languages}, seed, form) for (side, languages), form in each]


class _Texts:
    """The texts for one SentencePiece model, reread on each iteration because they may not fit in memory.

    Of more than ``MAX_TRAINING_TEXTS`` texts, a random sample of about that size is used; SentencePiece's own
    sampling is seeded by the process, not by its seed. Long texts are cut, and boundaries mark what no token may span.

    Attributes:
        languages: the languages of the texts.
        error: the exception that ended the last iteration; SentencePiece mistakes it for the end of the text.
    """

    def __init__(
        self, pairs: Iterable[SentencePair], languages: dict[str, Sequence[str]], seed: int, normalize: Normalize
    ) -> None:
        """Take one side of ``pairs`` or both: ``languages`` maps each side, ``src`` or ``tgt``, to its languages."""
        self._pairs, self._seed, self._normalize = pairs, seed, normalize
        self._sides = tuple(languages)
        self.languages = tuple(dict.fromkeys(language for of_side in languages.values() for language in of_side))
        self._words = re.compile("|".join(sorted(_boundary_words(self.languages))))
        self.error: BaseException | None = None

    def __iter__(self) -> Iterator[str]:
        try:
            for pair in _sample(self._pairs, MAX_TRAINING_TEXTS // len(self._sides), self._seed):
                for side in self._sides:
                    yield from self._parts(self._normalize(getattr(pair, side)))
        except (Exception, KeyboardInterrupt) as error:
            self.error = error
            raise

    def _parts(self, text: str) -> Iterator[str]:
        for start in range(0, len(text), _MAX_CHARACTERS):
            part = text[start : start + _MAX_CHARACTERS]
            yield self._words.sub(rf"{_BOUNDARY}\g<0>{_BOUNDARY}", part) if self._words.pattern else part


def _boundary_words(languages: Sequence[str]) -> set[str]:
    """Return the words that no token spans: Chinese function words, unless another language has their characters."""
    others = [language for language in languages if has_many_characters(language) and not function_words(language)]
    return set() if others else {word for language in languages for word in function_words(language)}


def _sample(pairs: Iterable[SentencePair], size: int, seed: int) -> Iterator[SentencePair]:
    """Yield about ``size`` pairs at random, or all if there are no more; of a sequence, only those are read.

    The choice depends on the number of pairs and the seed alone.
    """
    n = len(pairs) if isinstance(pairs, Sized) else sum(1 for _ in pairs)
    if n <= size:
        yield from pairs
    elif isinstance(pairs, Sequence):
        yield from (pairs[number] for number in _draw(n, size / n, seed))
    else:
        drawn = set(_draw(n, size / n, seed))
        yield from (pair for number, pair in enumerate(pairs) if number in drawn)


def _draw(n: int, share: float, seed: int) -> Iterator[int]:
    """Yield a random ``share`` of the numbers below ``n``, in order."""
    import numpy as np  # only for training

    random = np.random.default_rng(seed)
    for first in range(0, n, _NUMBERS_AT_ONCE):
        drawn = random.random(min(_NUMBERS_AT_ONCE, n - first)) < share
        yield from (first + np.flatnonzero(drawn)).tolist()


class _SizeError(Exception):
    """A text does not support a vocabulary of the given size.

    Attributes:
        limit: the nearest size that it does support.
        is_least: whether this is the least that its characters need, or else the most that it has candidates for.
    """

    def __init__(self, limit: int, *, is_least: bool) -> None:
        super().__init__(limit)
        self.limit, self.is_least = limit, is_least


def _train(
    texts: list[_Texts], config: TokenizerConfig, control_symbols: Sequence[str] = (), *, adjust: bool
) -> list[bytes]:
    """Train a model on each of ``texts``; the first, which the source has, gets ``control_symbols``."""
    given = f"tokenizer.vocab_size = {config.vocab_size}"
    models: list[bytes] = []
    needed: list[int] = []
    for side in texts:
        symbols = control_symbols if side is texts[0] else ()
        try:
            models.append(_train_model(side, config, symbols, config.vocab_size))
        except _SizeError as error:
            if error.is_least and adjust:  # all sides again, so that this size, given, would train the same
                larger = config.model_copy(update={"vocab_size": error.limit})
                return _train(texts, larger, control_symbols, adjust=True)
            if error.is_least:
                needed.append(error.limit)
            elif adjust or len(texts) > 1:
                models.append(_train_model(side, config, symbols, error.limit))
            else:
                most = f"it supports up to {error.limit}"
                raise UserError(f"{given} is more than the training text supports; {most}") from None
    if needed:
        raise UserError(
            f"{given} is less than the characters of the training text need; "
            f"give {max(needed)} or more, or a smaller tokenizer.character_coverage"
        )
    return models


def _train_model(texts: _Texts, config: TokenizerConfig, symbols: Sequence[str], vocab_size: int | None) -> bytes:
    """Train a model, and translate the errors of SentencePiece."""
    try:
        return _model(texts, config, symbols, vocab_size)
    except Exception as error:
        if texts.error is not None:
            raise texts.error from None
        message = str(error)
        if "sentences_.empty()" in message:
            raise UserError("SentencePiece found no text to train on: are the training sources empty?") from error
        if match := re.search(r"value <= (\d+)", message):
            raise _SizeError(int(match[1]), is_least=False) from error
        if match := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
            raise _SizeError(int(match[1]), is_least=True) from error
        raise


def _model(texts: _Texts, config: TokenizerConfig, symbols: Sequence[str], vocab_size: int | None) -> bytes:
    if config.type == "byte":  # a model that knows no character but the space, and spells the others in bytes
        return _sentencepiece(iter([" "]), config, symbols, model_type="char", remove_extra_whitespaces=False)
    n_fixed = len(SPECIAL_TOKENS) + _N_BYTES + len(symbols) + len(never_split(config))
    if config.type == "char" and (vocab_size or 0) <= n_fixed:
        raise UserError(
            f"tokenizer.vocab_size = {vocab_size} leaves no tokens for characters beside {n_fixed} bytes and symbols; "
            "give more"
        )
    coverage = 0.9995 if any(map(has_many_characters, texts.languages)) else 1.0
    settings: dict[str, Any] = {
        "model_type": config.type,
        "vocab_size": vocab_size,
        "character_coverage": config.character_coverage or coverage,
        "max_sentence_length": _MAX_BYTES,
    }
    if config.type == "char":
        return _sentencepiece((text.replace(_BOUNDARY, "") for text in texts), config, symbols, **settings)
    settings["max_sentencepiece_length"] = max(map(max_token_length, texts.languages))
    return _sentencepiece(iter(texts), config, symbols, pretokenization_delimiter=_BOUNDARY, **settings)


def _sentencepiece(texts: Iterator[str], config: TokenizerConfig, symbols: Sequence[str], **settings: Any) -> bytes:
    if config.normalization == "identity":
        settings["remove_extra_whitespaces"] = False
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=texts,
        model_writer=model,
        byte_fallback=True,
        normalization_rule_name="identity",  # see normalize()
        pad_id=SPECIAL_IDS.pad,
        unk_id=SPECIAL_IDS.unk,
        bos_id=SPECIAL_IDS.bos,
        eos_id=SPECIAL_IDS.eos,
        control_symbols=list(symbols),  # SentencePiece never parses them from text
        user_defined_symbols=never_split(config),
        num_threads=_N_THREADS,
        minloglevel=2,
        **settings,
    )
    is_default = config.normalization == "nfc"
    return model.getvalue() if is_default else with_rule(model.getvalue(), RULES[config.normalization])
