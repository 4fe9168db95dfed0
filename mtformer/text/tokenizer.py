"""SentencePiece (Kudo and Richardson 2018): training it, and text to pieces and back."""

import io
import re
import struct
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer, set_random_generator_seed

from mtformer.config import TokenizerConfig
from mtformer.errors import UserError
from mtformer.text.languages import has_many_characters
from mtformer.text.sources import SentencePair

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3

_MAX_TRAINING_SENTENCES = 2_000_000
_N_THREADS = 2  # the model depends on it, and shall be the same on every machine
_CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")  # line breaks and tabs among them


class Sampling(NamedTuple):
    """How pieces are drawn for a text that can be spelled in several ways.

    Attributes:
        alpha: unigram: the exponent that the probabilities of the spellings have (Kudo 2018), smaller meaning more
            variety; BPE: the probability that a merge is left out (Provilkov et al. 2020), larger meaning more.
        seed: decides what is drawn.
    """

    alpha: float
    seed: int


def normalize(text: str) -> str:
    """Bring ``text`` to composed Unicode (NFC) with single spaces.

    No compatibility mapping: it would turn the full-width punctuation of Chinese into ASCII, in the output too.
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


class Tokenizer:
    """Text to piece ids and back, for a source and a target language that may share one vocabulary."""

    def __init__(self, src_model: bytes, tgt_model: bytes | None = None) -> None:
        """Load serialized SentencePiece models; without ``tgt_model`` the first serves both languages.

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
        """The number of source pieces."""
        return self._src.vocab_size()

    @property
    def tgt_vocab_size(self) -> int:
        """The number of target pieces."""
        return self._tgt.vocab_size()

    def encode_src(self, texts: Sequence[str], sampling: Sampling | None = None) -> list[list[int]]:
        """Turn source texts into ids, each ended by EOS."""
        return _encode(self._src, texts, sampling)

    def encode_tgt(self, texts: Sequence[str], sampling: Sampling | None = None) -> list[list[int]]:
        """Turn target texts into ids, each ended by EOS; BOS is put before them when a batch is made."""
        return _encode(self._tgt, texts, sampling)

    def src_pieces(self, ids: Sequence[int]) -> list[str]:
        """Spell source ids as pieces."""
        return [self._src.id_to_piece(i) for i in ids]

    def tgt_pieces(self, ids: Sequence[int]) -> list[str]:
        """Spell target ids as pieces."""
        return [self._tgt.id_to_piece(i) for i in ids]

    def decode(self, ids: Sequence[int]) -> str:
        """Turn target ids into text, always on one line; special ids leave no trace."""
        text = self._tgt.decode([i for i in ids if i > EOS_ID])
        return _CONTROL_CHARACTERS.sub(" ", text)


def _encode(model: SentencePieceProcessor, texts: Sequence[str], sampling: Sampling | None) -> list[list[int]]:
    texts = [normalize(text) for text in texts]
    if sampling is None:
        return model.encode(texts, add_eos=True)
    set_random_generator_seed(sampling.seed)  # of this thread; others would have theirs
    return model.encode(texts, add_eos=True, enable_sampling=True, nbest_size=-1, alpha=sampling.alpha, num_threads=1)


def extend_tokenizer(
    old: Tokenizer, pairs: Iterable[SentencePair], config: TokenizerConfig, src_lang: str, tgt_lang: str, *, seed: int
) -> Tokenizer:
    """Add pieces that ``pairs`` need to ``old``, up to ``config.vocab_size``; its own keep their ids and come first.

    The new ones are those that SentencePiece finds in ``pairs`` alone, single characters first.

    Raises:
        UserError: the text does not support as many pieces.
    """
    found = train_tokenizer(pairs, config, src_lang, tgt_lang, seed=seed, adjust=True)
    models = [_extended(old._src, found._src, config)]
    if not old.joint:
        models.append(_extended(old._tgt, found._tgt, config))
    return Tokenizer(*models)


def _extended(old: SentencePieceProcessor, found: SentencePieceProcessor, config: TokenizerConfig) -> bytes:
    """Append pieces to a serialized model: in protobuf's encoding, what follows a message is merged into it."""
    pieces = [old.id_to_piece(i) for i in range(old.vocab_size())]
    known = set(pieces)
    others = [i for i in range(found.vocab_size()) if found.id_to_piece(i) not in known]
    others.sort(key=lambda i: len(found.id_to_piece(i)) > 1)  # a character that has no piece is spelled in bytes
    n_missing = (config.vocab_size or 0) - len(pieces)
    if n_missing > len(others):
        raise UserError(
            f"tokenizer.vocab_size = {config.vocab_size}: beyond the {len(pieces)} pieces of the model that training "
            f"begins with the text has {len(others)} more, so give {len(pieces) + len(others)} at most"
        )
    least = min(old.get_score(i) for i in range(old.vocab_size()))
    model = old.serialized_model_proto()
    for rank, i in enumerate(others[:n_missing], 1):
        # A score is the logarithm of a probability, or with BPE less the place in the order of merges.
        score = least - rank if config.type == "bpe" else found.get_score(i)
        piece = found.id_to_piece(i).encode()
        message = b"\x0a" + _varint(len(piece)) + piece + b"\x15" + struct.pack("<f", score)  # fields 1 and 2
        model += b"\x0a" + _varint(len(message)) + message  # field 1 of the model
    return model


def _varint(number: int) -> bytes:
    """Encode a length as protobuf does: seven bits a byte, the lowest first."""
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
) -> Tokenizer:
    """Train SentencePiece on both sides of ``pairs``, with ``config.vocab_size`` pieces.

    Args:
        pairs: the text, which is iterated more than once; beyond two million texts a random sample is taken.
        config: the algorithm and the sizes.
        src_lang: decides, with ``tgt_lang``, how many characters get a piece where ``config`` leaves it open.
        tgt_lang: the target language.
        seed: draws the sample.
        adjust: take the nearest size that the text supports, instead of raising.

    Raises:
        UserError: the text does not support a vocabulary of this size; the message says which it does.
    """
    if config.joint:
        texts = [_Texts(pairs, ("src", "tgt"), seed)]
        languages: list[tuple[str, ...]] = [(src_lang, tgt_lang)]
    else:
        texts = [_Texts(pairs, ("src",), seed), _Texts(pairs, ("tgt",), seed)]
        languages = [(src_lang,), (tgt_lang,)]
    return Tokenizer(*_train(texts, config, languages, adjust))


class _Texts:
    """The texts of one side of the pairs, or of both; read anew at each iteration: they may not fit in memory.

    Of more than ``_MAX_TRAINING_SENTENCES`` a random sample of about that size is taken. (SentencePiece's own sampling
    is seeded by the process, not by its seed.)

    Attributes:
        error: what stopped the last iteration; SentencePiece takes it for the end of the text.
    """

    def __init__(self, pairs: Iterable[SentencePair], sides: tuple[str, ...], seed: int) -> None:
        self._pairs, self._sides, self._seed = pairs, sides, seed
        self.error: BaseException | None = None

    def __iter__(self) -> Iterator[str]:
        try:
            n = sum(1 for _ in self._pairs) * len(self._sides)
            random = np.random.default_rng(self._seed)
            for pair in self._pairs:
                for side in self._sides:
                    if n <= _MAX_TRAINING_SENTENCES or random.random() < _MAX_TRAINING_SENTENCES / n:
                        yield normalize(getattr(pair, side))
        except (Exception, KeyboardInterrupt) as error:
            self.error = error
            raise


def _train(texts: list[_Texts], config: TokenizerConfig, languages: list[tuple[str, ...]], adjust: bool) -> list[bytes]:
    models: list[bytes] = []
    most: list[int] = []
    least: list[int] = []
    for side, spoken in zip(texts, languages, strict=True):
        try:
            models.append(_train_model(side, config, spoken, config.vocab_size))
        except Exception as error:
            if side.error is not None:
                raise side.error from None
            limit = _limits(str(error))
            nearest = limit[0] or limit[1]
            if "sentences_.empty()" in str(error):
                raise UserError("SentencePiece found no text to train on: are the training sources empty?") from error
            if nearest is None:
                raise
            if adjust:
                models.append(_train_model(side, config, spoken, nearest))
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


def _train_model(
    texts: Iterable[str], config: TokenizerConfig, languages: tuple[str, ...], vocab_size: int | None
) -> bytes:
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        model_type=config.type,
        vocab_size=vocab_size,
        character_coverage=config.character_coverage or _character_coverage(languages),
        byte_fallback=True,
        normalization_rule_name="identity",  # see normalize()
        pad_id=PAD_ID,
        unk_id=UNK_ID,
        bos_id=BOS_ID,
        eos_id=EOS_ID,
        num_threads=_N_THREADS,
        minloglevel=2,
    )
    return model.getvalue()


def _character_coverage(languages: tuple[str, ...]) -> float:
    return 0.9995 if any(has_many_characters(language) for language in languages) else 1.0


def _limits(message: str) -> tuple[int | None, int | None]:
    """Read from SentencePiece's message the largest, or the smallest, vocabulary that it would train."""
    too_high = re.search(r"value <= (\d+)", message)
    too_low = re.search(r"smaller than required_chars\. \d+ vs (\d+)", message)
    return (int(too_high[1]) if too_high else None, int(too_low[1]) if too_low else None)


def _load(model: bytes) -> SentencePieceProcessor:
    try:
        if model:  # SentencePiece takes no bytes for no model, and says nothing
            return SentencePieceProcessor(model_proto=model)
    except RuntimeError:
        pass
    raise UserError("this is not a SentencePiece model")
