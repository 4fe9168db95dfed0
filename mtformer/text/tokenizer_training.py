"""Training SentencePiece on parallel text, and adding tokens to a model that is trained already."""

import io
import re
import struct
from collections.abc import Iterable, Iterator, Sequence, Sized

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from mtformer.config import TokenizerConfig
from mtformer.errors import UserError
from mtformer.text.languages import function_words, has_many_characters, max_token_length, suit_joint_vocabulary
from mtformer.text.sources import SentencePair
from mtformer.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer, normalize

Languages = str | Sequence[str]  # one or several

_MAX_TRAINING_SENTENCES = 2_000_000
_NUMBERS_AT_ONCE = 1_000_000  # drawn for the sample
# SentencePiece silently skips lines above a limit in bytes, and counts the characters of a word in 16 bits.
_MAX_CHARACTERS = 16_000
_MAX_BYTES = 12 * _MAX_CHARACTERS  # up to four bytes a character, and boundaries around it
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

    The new tokens are those of a tokenizer trained on ``pairs`` alone, single characters first.

    Raises:
        UserError: the text does not support as many tokens.
    """
    sides = _sides(pairs, src_lang, tgt_lang, joint=old.joint, seed=seed)
    found = Tokenizer(*_train(sides, config, adjust=True))
    models = [_extended(old._src, found._src, config)]
    if not old.joint:
        models.append(_extended(old._tgt, found._tgt, config))
    return Tokenizer(*models)


def _extended(old: SentencePieceProcessor, found: SentencePieceProcessor, config: TokenizerConfig) -> bytes:
    """Append tokens to a serialized model: protobuf merges a message with what follows it."""
    pieces = [old.id_to_piece(i) for i in range(old.vocab_size())]
    known = set(pieces)
    others = [i for i in range(found.vocab_size()) if found.id_to_piece(i) not in known]
    others.sort(key=lambda i: len(found.id_to_piece(i)) > 1)  # a character without a token is spelled in bytes
    n_missing = (config.vocab_size or 0) - len(pieces)
    if n_missing > len(others):
        raise UserError(
            f"tokenizer.vocab_size = {config.vocab_size} is too large: the initial model has {len(pieces)} tokens and "
            f"the text supports {len(others)} more; set it to {len(pieces) + len(others)} or less"
        )
    least = min(old.get_score(i) for i in range(old.vocab_size()))
    model = old.serialized_model_proto()
    for rank, i in enumerate(others[:n_missing], 1):
        # A score is a log probability, or for BPE the negative rank of the merge.
        score = least - rank if config.type == "bpe" else found.get_score(i)
        piece = found.id_to_piece(i).encode()
        message = b"\x0a" + _varint(len(piece)) + piece + b"\x15" + struct.pack("<f", score)  # fields 1 and 2
        model += b"\x0a" + _varint(len(message)) + message  # field 1 of the model
    return model


def _varint(number: int) -> bytes:
    """Encode a length as a protobuf varint: seven bits per byte, lowest first."""
    low, rest = number % 128, number // 128
    return bytes([low]) if not rest else bytes([low + 128]) + _varint(rest)


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
        pairs: the text, iterated more than once; of more than two million texts, a random sample is used. If it is a
            sequence, no others are read.
        config: the algorithm and the sizes.
        src_lang: with ``tgt_lang``, decides what ``config`` leaves open: whether the vocabulary is joint, how many
            characters become tokens, and how long a token may be.
        tgt_lang: the target language; on each side, there may be several.
        seed: the seed of the sample.
        adjust: use the nearest size that the text supports, instead of raising.
        control_symbols: source tokens that no text contains, such as :data:`MARKERS`; encoding never yields them.

    Raises:
        UserError: the text does not support a vocabulary of this size; the message names the nearest supported size.
    """
    joint = suit_joint_vocabulary(_all(src_lang), _all(tgt_lang)) if config.joint is None else config.joint
    texts = _sides(pairs, src_lang, tgt_lang, joint=joint, seed=seed)
    return Tokenizer(*_train(texts, config, control_symbols, adjust=adjust))


def _all(languages: Languages) -> Sequence[str]:
    return [languages] if isinstance(languages, str) else languages


def _sides(
    pairs: Iterable[SentencePair], src_lang: Languages, tgt_lang: Languages, *, joint: bool, seed: int
) -> list["_Texts"]:
    languages = {"src": _all(src_lang), "tgt": _all(tgt_lang)}
    if joint:
        return [_Texts(pairs, languages, seed)]
    return [_Texts(pairs, {side: of_side}, seed) for side, of_side in languages.items()]


class _Texts:
    """The texts for one SentencePiece model, reread on each iteration because they may not fit in memory.

    Of more than ``_MAX_TRAINING_SENTENCES`` texts, a random sample of about that size is used; SentencePiece's own
    sampling is seeded by the process, not by its seed. Long texts are cut, and boundaries mark what no token may span.

    Attributes:
        languages: the languages of the texts.
        error: the exception that ended the last iteration; SentencePiece mistakes it for the end of the text.
    """

    def __init__(self, pairs: Iterable[SentencePair], languages: dict[str, Sequence[str]], seed: int) -> None:
        """Take one side of ``pairs`` or both: ``languages`` maps each side, ``src`` or ``tgt``, to its languages."""
        self._pairs, self._seed = pairs, seed
        self._sides = tuple(languages)
        self.languages = tuple(dict.fromkeys(language for of_side in languages.values() for language in of_side))
        self._words = re.compile("|".join(sorted(_boundary_words(self.languages))))
        self.error: BaseException | None = None

    def __iter__(self) -> Iterator[str]:
        try:
            for pair in _sample(self._pairs, _MAX_TRAINING_SENTENCES // len(self._sides), self._seed):
                for side in self._sides:
                    yield from self._parts(normalize(getattr(pair, side)))
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
        numbers = _draw(n, size / n, seed)
        drawn = next(numbers, None)
        for number, pair in enumerate(pairs):
            if number == drawn:
                yield pair
                drawn = next(numbers, None)


def _draw(n: int, share: float, seed: int) -> Iterator[int]:
    """Yield a random ``share`` of the numbers below ``n``, in order."""
    import numpy as np  # only for training

    random = np.random.default_rng(seed)
    for first in range(0, n, _NUMBERS_AT_ONCE):
        drawn = random.random(min(_NUMBERS_AT_ONCE, n - first)) < share
        yield from (first + np.flatnonzero(drawn)).tolist()


def _train(
    texts: list[_Texts], config: TokenizerConfig, control_symbols: Sequence[str] = (), *, adjust: bool
) -> list[bytes]:
    """Train a model on each of ``texts``; the first, which the source has, gets ``control_symbols``."""
    models: list[bytes] = []
    most: list[int] = []
    least: list[int] = []
    for side in texts:
        symbols = control_symbols if side is texts[0] else ()
        try:
            models.append(_train_model(side, config, symbols, config.vocab_size))
        except Exception as error:
            if side.error is not None:
                raise side.error from None
            limit = _limits(str(error))
            nearest = limit[0] or limit[1]
            if "sentences_.empty()" in str(error):
                raise UserError("SentencePiece found no text to train on: are the training sources empty?") from error
            if nearest is None:
                raise
            if limit[0] and (adjust or len(texts) > 1):
                models.append(_train_model(side, config, symbols, nearest))
            elif adjust:  # all sides again, so that this size, given, would train the same
                return _train(texts, config.model_copy(update={"vocab_size": nearest}), control_symbols, adjust=True)
            elif limit[0]:
                most.append(limit[0])
            else:
                least.append(nearest)
    given = f"tokenizer.vocab_size = {config.vocab_size}"
    if most:
        raise UserError(f"{given} is more than the training text supports; it supports up to {min(most)}")
    if least:
        raise UserError(
            f"{given} is less than the characters of the training text need; "
            f"give {max(least)} or more, or a smaller tokenizer.character_coverage"
        )
    return models


def _train_model(texts: _Texts, config: TokenizerConfig, symbols: Sequence[str], vocab_size: int | None) -> bytes:
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        model_type=config.type,
        vocab_size=vocab_size,
        character_coverage=config.character_coverage or _character_coverage(texts.languages),
        max_sentence_length=_MAX_BYTES,
        max_sentencepiece_length=_max_token_length(texts.languages),
        pretokenization_delimiter=_BOUNDARY,
        byte_fallback=True,
        normalization_rule_name="identity",  # see normalize()
        pad_id=PAD_ID,
        unk_id=UNK_ID,
        bos_id=BOS_ID,
        eos_id=EOS_ID,
        control_symbols=list(symbols),  # SentencePiece never parses them from text
        num_threads=_N_THREADS,
        minloglevel=2,
    )
    return model.getvalue()


def _character_coverage(languages: tuple[str, ...]) -> float:
    return 0.9995 if any(has_many_characters(language) for language in languages) else 1.0


def _max_token_length(languages: tuple[str, ...]) -> int:
    """Return the longest limit of any of the languages; 16 is SentencePiece's own."""
    return max(max_token_length(language) or 16 for language in languages)


def _limits(message: str) -> tuple[int | None, int | None]:
    """Parse the largest or the smallest vocabulary size that SentencePiece would train from its error message."""
    too_high = re.search(r"value <= (\d+)", message)
    too_low = re.search(r"smaller than required_chars\. \d+ vs (\d+)", message)
    return (int(too_high[1]) if too_high else None, int(too_low[1]) if too_low else None)
