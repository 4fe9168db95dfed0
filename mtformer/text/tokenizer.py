"""SentencePiece (Kudo and Richardson 2018): train it, and turn text into tokens and back."""

import io
import re
import struct
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer, set_random_generator_seed

from mtformer.config import TokenizerConfig
from mtformer.errors import UserError
from mtformer.text.languages import function_words, has_many_characters, max_token_length, share_tokens
from mtformer.text.sources import SentencePair
from mtformer.text.spans import Span, token_spans

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
MARKERS = ("<term>", "<is>", "</term>")  # around an annotated term, before its translation, and after that

_MAX_TRAINING_SENTENCES = 2_000_000
# SentencePiece silently skips lines above a limit in bytes, and counts the characters of a word in 16 bits.
_MAX_CHARACTERS = 16_000
_MAX_BYTES = 12 * _MAX_CHARACTERS  # up to four bytes a character, and boundaries around it
_BOUNDARY = "\t"  # normalized text has none
_N_THREADS = 2  # the model depends on it, and must be the same on every machine
# A protobuf field that, appended to a model, makes SentencePiece not put a space before the text.
_NO_DUMMY_PREFIX = b"\x1a\x02\x18\x00"  # normalizer_spec { add_dummy_prefix: false }
_BYTE = re.compile("<0x([0-9A-F]{2})>")
_CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")  # line breaks and tabs among them


class Sampling(NamedTuple):
    """How to sample one of the many ways to segment a text.

    Attributes:
        alpha: unigram: the exponent on the probability of a segmentation (Kudo 2018), where smaller gives more variety;
            BPE: the probability of skipping a merge (Provilkov et al. 2020), where larger gives more.
        seed: the seed of the sample.
    """

    alpha: float
    seed: int


def normalize(text: str) -> str:
    """Return ``text`` in composed Unicode (NFC) with single spaces.

    Compatibility mapping (NFKC) would turn the full-width punctuation of Chinese into ASCII, in the output too.
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


def on_one_line(text: str) -> str:
    """Return ``text`` with a space for each run of control characters, line breaks among them."""
    return _CONTROL_CHARACTERS.sub(" ", text)


def byte_of(token: str) -> int | None:
    """Return the byte that ``token`` stands for, one of those that spell a character without a token of its own."""
    found = _BYTE.fullmatch(token)
    return int(found[1], 16) if found else None


class Tokenizer:
    """Text to token ids and back, for a source and a target language that may share one vocabulary.

    User text never becomes a special token: ``<s>`` or ``<0x41>`` in a text is encoded like any other characters.
    """

    def __init__(self, src_model: bytes, tgt_model: bytes | None = None) -> None:
        """Load serialized SentencePiece models; without ``tgt_model``, ``src_model`` serves both languages.

        Raises:
            UserError: the bytes are not a SentencePiece model.
        """
        self.src_model = src_model
        self.tgt_model = tgt_model
        self._src = _load(src_model)
        self._tgt = self._src if tgt_model is None else _load(tgt_model)

    @property
    def joint(self) -> bool:
        """Whether both languages share one vocabulary."""
        return self._tgt is self._src

    @property
    def src_vocab_size(self) -> int:
        """The number of source tokens."""
        return self._src.vocab_size()

    @property
    def tgt_vocab_size(self) -> int:
        """The number of target tokens."""
        return self._tgt.vocab_size()

    def encode_src(self, texts: Sequence[str], sampling: Sampling | None = None) -> list[list[int]]:
        """Turn source texts into ids, each ending in EOS."""
        return _encode(self._src, texts, sampling)

    def encode_tgt(self, texts: Sequence[str], sampling: Sampling | None = None) -> list[list[int]]:
        """Turn target texts into ids, each ending in EOS; batching prepends BOS."""
        return _encode(self._tgt, texts, sampling)

    def encode_tgt_inside(self, text: str, sampling: Sampling | None = None) -> list[int]:
        """Turn target text that follows other text without a space into ids, without EOS."""
        return _encode(self._tgt_inside, [text], sampling)[0][:-1]

    @cached_property
    def markers(self) -> tuple[int, ...] | None:
        """The ids of :data:`MARKERS` in a joint vocabulary; None if it has none."""
        ids = tuple(self._src.piece_to_id(list(MARKERS)))
        return ids if self.joint and all(map(self._src.is_control, ids)) else None

    @cached_property
    def _tgt_inside(self) -> SentencePieceProcessor:
        return _load((self.tgt_model or self.src_model) + _NO_DUMMY_PREFIX)

    def src_characters(self) -> frozenset[str]:
        """Return the characters that the source vocabulary has tokens for; others are spelled as bytes."""
        return self._src_characters

    def tgt_characters(self) -> frozenset[str]:
        """Return the characters that the target vocabulary has tokens for; others are spelled as bytes."""
        return self._src_characters if self.joint else _characters(self._tgt)

    @cached_property
    def _src_characters(self) -> frozenset[str]:
        return _characters(self._src)

    def n_src_tokens(self, text: str) -> int:
        """Return how many tokens a source text has, without EOS."""
        return len(self._src.encode(normalize(text)))

    def src_vocabulary(self) -> list[str]:
        """Return all source tokens, in order of their ids."""
        return self.src_tokens(range(self.src_vocab_size))

    def src_tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens that source ids stand for."""
        return self._src.id_to_piece(list(ids))

    def tgt_tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens that target ids stand for."""
        return self._tgt.id_to_piece(list(ids))

    def src_spans(self, text: str, ids: Sequence[int]) -> list[Span]:
        """Return where the tokens ``ids`` of the source text ``text``, without EOS, stand in it."""
        return _spans(self._src, text, ids)

    def tgt_spans(self, text: str, ids: Sequence[int]) -> list[Span]:
        """Return where the tokens ``ids`` of the target text ``text``, without EOS, stand in it."""
        return _spans(self._tgt, text, ids)

    def tgt_ids(self, tokens: Sequence[str]) -> list[int]:
        """Return the ids of target tokens; the inverse of :meth:`tgt_tokens`."""
        return self._tgt.piece_to_id(list(tokens))

    def decode(self, ids: Sequence[int]) -> str:
        """Turn target ids into text on a single line; special ids are skipped."""
        return _decode(self._tgt, ids)

    def decode_src(self, ids: Sequence[int]) -> str:
        """Turn source ids into text on a single line; special ids are skipped."""
        return _decode(self._src, ids)


def _decode(model: SentencePieceProcessor, ids: Sequence[int]) -> str:
    return on_one_line(model.decode([i for i in ids if i > EOS_ID]))


def _characters(model: SentencePieceProcessor) -> frozenset[str]:
    tokens = model.id_to_piece(list(range(model.vocab_size())))
    return frozenset(token.replace("▁", " ") for token in tokens if len(token) == 1)


def _encode(model: SentencePieceProcessor, texts: Sequence[str], sampling: Sampling | None) -> list[list[int]]:
    texts = [normalize(text) for text in texts]
    if sampling is None:
        return model.encode(texts, add_eos=True)
    set_random_generator_seed(sampling.seed)  # of this thread only, hence num_threads=1
    return model.encode(texts, add_eos=True, enable_sampling=True, nbest_size=-1, alpha=sampling.alpha, num_threads=1)


def _spans(model: SentencePieceProcessor, text: str, ids: Sequence[int]) -> list[Span]:
    tokens = [model.id_to_piece(i) for i in ids]
    is_bytes = [model.is_byte(i) for i in ids]
    return token_spans(
        text, [bytes([int(t[1:-1], 16)]) if is_byte else t for t, is_byte in zip(tokens, is_bytes, strict=True)]
    )


def extend_tokenizer(
    old: Tokenizer, pairs: Iterable[SentencePair], config: TokenizerConfig, src_lang: str, tgt_lang: str, *, seed: int
) -> Tokenizer:
    """Extend ``old`` to ``config.vocab_size`` tokens for the text of ``pairs``; existing tokens keep their ids.

    The new tokens are those of a tokenizer trained on ``pairs`` alone, single characters first.

    Raises:
        UserError: the text does not support as many tokens.
    """
    languages = src_lang, tgt_lang
    found = Tokenizer(*_train(_sides(pairs, *languages, joint=old.joint, seed=seed), config, adjust=True))
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
    src_lang: str,
    tgt_lang: str,
    *,
    seed: int = 1,
    adjust: bool = False,
    control_symbols: Sequence[str] = (),
) -> Tokenizer:
    """Train SentencePiece on both sides of ``pairs``, with ``config.vocab_size`` tokens.

    Of separate tokenizers, each has as many of them as its side of the text supports.

    Args:
        pairs: the text, iterated more than once; of more than two million texts, a random sample is used.
        config: the algorithm and the sizes.
        src_lang: with ``tgt_lang``, decides what ``config`` leaves open: whether the vocabulary is joint, how many
            characters become tokens, and how long a token may be.
        tgt_lang: the target language.
        seed: the seed of the sample.
        adjust: use the nearest size that the text supports, instead of raising.
        control_symbols: source tokens that no text contains, such as :data:`MARKERS`; encoding never yields them.

    Raises:
        UserError: the text does not support a vocabulary of this size; the message names the nearest supported size.
    """
    joint = share_tokens(src_lang, tgt_lang) if config.joint is None else config.joint
    texts = _sides(pairs, src_lang, tgt_lang, joint=joint, seed=seed)
    return Tokenizer(*_train(texts, config, control_symbols, adjust=adjust))


def _sides(pairs: Iterable[SentencePair], src_lang: str, tgt_lang: str, *, joint: bool, seed: int) -> list["_Texts"]:
    languages = {"src": src_lang, "tgt": tgt_lang}
    if joint:
        return [_Texts(pairs, languages, seed)]
    return [_Texts(pairs, {side: language}, seed) for side, language in languages.items()]


class _Texts:
    """The texts for one SentencePiece model, reread on each iteration because they may not fit in memory.

    Of more than ``_MAX_TRAINING_SENTENCES`` texts, a random sample of about that size is used. (SentencePiece's own
    sampling is seeded by the process, not by its seed.) Long texts are cut, and boundaries mark what no token may span.

    Attributes:
        languages: the languages of the texts.
        error: the exception that ended the last iteration; SentencePiece mistakes it for the end of the text.
    """

    def __init__(self, pairs: Iterable[SentencePair], languages: dict[str, str], seed: int) -> None:
        """Take one side of ``pairs`` or both: ``languages`` maps each side, ``src`` or ``tgt``, to its language."""
        self._pairs, self._seed = pairs, seed
        self._sides = tuple(languages)
        self.languages = tuple(languages.values())
        words = set.intersection(*(set(function_words(language)) for language in self.languages))
        self._words = re.compile("|".join(sorted(words)))
        self.error: BaseException | None = None

    def __iter__(self) -> Iterator[str]:
        import numpy as np  # only for training

        try:
            n = sum(1 for _ in self._pairs) * len(self._sides)
            random = np.random.default_rng(self._seed)
            for pair in self._pairs:
                for side in self._sides:
                    if n <= _MAX_TRAINING_SENTENCES or random.random() < _MAX_TRAINING_SENTENCES / n:
                        yield from self._parts(normalize(getattr(pair, side)))
        except (Exception, KeyboardInterrupt) as error:
            self.error = error
            raise

    def _parts(self, text: str) -> Iterator[str]:
        for start in range(0, len(text), _MAX_CHARACTERS):
            part = text[start : start + _MAX_CHARACTERS]
            yield self._words.sub(rf"{_BOUNDARY}\g<0>{_BOUNDARY}", part) if self._words.pattern else part


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


def _load(model: bytes) -> SentencePieceProcessor:
    try:
        if model:  # SentencePiece takes empty bytes for a missing argument, without an error
            processor = SentencePieceProcessor(model_proto=model)
            _require_special_tokens(processor)
            return processor
    except RuntimeError:
        pass
    raise UserError("this is not a SentencePiece model")


def _require_special_tokens(model: SentencePieceProcessor) -> None:
    """Require ids 0 to 3 to be ours and of a type that SentencePiece never parses from text."""
    control = (PAD_ID, BOS_ID, EOS_ID)
    if not (
        model.vocab_size() > EOS_ID
        and [model.id_to_piece(i) for i in range(4)] == ["<pad>", "<unk>", "<s>", "</s>"]
        and all(map(model.is_control, control))
        and model.is_unknown(UNK_ID)
    ):
        raise UserError(
            "this SentencePiece model has other special tokens than <pad>, <unk>, <s>, </s> with ids 0 to 3"
        )
