"""SentencePiece (Kudo and Richardson 2018): training it, and text to pieces and back."""

import io
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer, set_random_generator_seed

from mtformer.config import TokenizerConfig
from mtformer.errors import UserError
from mtformer.text.languages import has_many_characters
from mtformer.text.sources import SentencePair

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3

_MAX_TRAINING_SENTENCES = 2_000_000
_CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")  # line breaks and tabs among them


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

    def encode_src(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn source texts into ids, each ended by EOS."""
        return self._src.encode([normalize(text) for text in texts], add_eos=True)

    def encode_tgt(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn target texts into ids, each ended by EOS; BOS is put before them when a batch is made."""
        return self._tgt.encode([normalize(text) for text in texts], add_eos=True)

    def src_pieces(self, ids: Sequence[int]) -> list[str]:
        """Spell source ids as pieces."""
        return [self._src.id_to_piece(i) for i in ids]

    def decode(self, ids: Sequence[int]) -> str:
        """Turn target ids into text, always on one line; special ids leave no trace."""
        text = self._tgt.decode([i for i in ids if i not in (PAD_ID, BOS_ID, EOS_ID)])
        return _CONTROL_CHARACTERS.sub(" ", text)


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
    set_random_generator_seed(seed)
    if config.joint:
        return Tokenizer(_train(_Side(pairs, ("src", "tgt")), config, (src_lang, tgt_lang), adjust))
    return Tokenizer(
        _train(_Side(pairs, ("src",)), config, (src_lang,), adjust),
        _train(_Side(pairs, ("tgt",)), config, (tgt_lang,), adjust),
    )


class _Side(NamedTuple):
    """The texts of one side of the pairs, or of both, made anew at each iteration: they may not fit in memory."""

    pairs: Iterable[SentencePair]
    sides: tuple[str, ...]

    def texts(self) -> Iterator[str]:
        return (normalize(getattr(pair, side)) for pair in self.pairs for side in self.sides)


def _train(side: _Side, config: TokenizerConfig, languages: tuple[str, ...], adjust: bool) -> bytes:
    try:
        return _train_model(side.texts(), config, languages, config.vocab_size)
    except RuntimeError as error:
        most, least = _limits(str(error))
    nearest = most if most is not None else least
    if nearest is not None and adjust:
        return _train_model(side.texts(), config, languages, nearest)
    given = f"tokenizer.vocab_size = {config.vocab_size}"
    if most is not None:
        raise UserError(f"{given} is more than the training text supports; it supports up to {most}")
    if least is not None:
        raise UserError(
            f"{given} is less than the characters of the training text need; "
            f"give {least} or more, or a smaller tokenizer.character_coverage"
        )
    raise UserError("SentencePiece found no text to train on: are the training sources empty?")


def _train_model(
    texts: Iterator[str], config: TokenizerConfig, languages: tuple[str, ...], vocab_size: int | None
) -> bytes:
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=texts,
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
        input_sentence_size=_MAX_TRAINING_SENTENCES,
        shuffle_input_sentence=True,
        num_threads=os.cpu_count() or 1,
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
        return SentencePieceProcessor(model_proto=model)
    except RuntimeError:
        raise UserError("this is not a SentencePiece model") from None
