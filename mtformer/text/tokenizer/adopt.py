"""Given SentencePiece models, of whatever program: they get the tokens that they lack here."""

from collections.abc import Sequence
from typing import NamedTuple

from sentencepiece import SentencePieceProcessor

from mtformer.config import Normalization, TokenizerConfig
from mtformer.support.errors import UserError
from mtformer.text.slots import never_split
from mtformer.text.tokenizer.sentencepiece_file import (
    SPECIAL_TOKENS,
    WORDS,
    Kind,
    Token,
    read_settings,
    read_tokens,
    with_rule,
    with_tokens,
)
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.vocabulary import RULES, form_of

_SPECIAL = tuple(Token(text, kind=Kind.UNKNOWN if text == "<unk>" else Kind.CONTROL) for text in SPECIAL_TOKENS)
_BYTES = tuple(Token(f"<0x{byte:02X}>", kind=Kind.BYTE) for byte in range(256))


class GivenTokenizer(NamedTuple):
    """A tokenizer that was not trained here, and the settings that it decides."""

    tokenizer: Tokenizer
    settings: TokenizerConfig


def read_tokenizer(config: TokenizerConfig, control_symbols: Sequence[str] = ()) -> GivenTokenizer:
    """Read the models that ``config`` names.

    Args:
        config: names one model for both languages, or one for each.
        control_symbols: source tokens that no text contains, which the models get if they lack them.

    Raises:
        UserError: a model cannot be read or used, or ``config`` contradicts it.
    """
    form = config.normalization if "normalization" in config.model_fields_set else None
    symbols: Sequence[str] = control_symbols
    models = []
    for path in config.paths:
        try:
            models.append(adopt(path.read_bytes(), form, symbols, never_split(config)))
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from error
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
        symbols = ()  # the target has none
    tokenizer = Tokenizer(*models)
    decided = {
        "type": tokenizer.src.type,
        "vocab_size": tokenizer.vocab_size,
        "normalization": tokenizer.src.form,
        "slots": tokenizer.has_slots,
    }
    for key, value in decided.items():
        given = getattr(config, key)
        if key in config.model_fields_set and given not in (None, value):
            raise UserError(
                f"tokenizer.{key} = {given} contradicts {config.paths[0]}, with which it is {value}: remove {key}"
            )
    return GivenTokenizer(tokenizer, TokenizerConfig.model_validate(config.model_dump() | decided))


def adopt(
    model: bytes,
    form: Normalization | None = None,
    control_symbols: Sequence[str] = (),
    user_symbols: Sequence[str] = (),
) -> bytes:
    """Give a serialized SentencePiece model the special tokens and their ids, all bytes, and symbols.

    What a text is split into stays the same, but for characters without a token, which are spelled in bytes from now
    on. A model that has everything stays as it is.

    Args:
        model: the model.
        form: how to normalize texts before SentencePiece does; None leaves it to the model, and is ``nfc`` if it does
            not say.
        control_symbols: tokens that no text contains.
        user_symbols: tokens that are never split.

    Raises:
        UserError: these bytes are no SentencePiece model, or one that cannot be used.
    """
    require_usable(model)
    settings, tokens = read_settings(model), read_tokens(model)
    completed = _with_special_tokens(tokens, settings.special_names)
    completed = _with_symbols(completed, control_symbols, Kind.CONTROL)
    completed = _with_symbols(completed, user_symbols, Kind.USER_DEFINED)
    changed = model if completed == tokens else with_tokens(model, completed)
    return changed if form in (None, form_of(settings.rule)) else with_rule(changed, RULES[form])


def require_usable(model: bytes) -> None:
    """Check that a serialized SentencePiece model is one that we can use.

    Raises:
        UserError: it is not.
    """
    try:
        if not model:  # SentencePiece takes it for a missing argument
            raise ValueError
        SentencePieceProcessor(model_proto=model)
        settings = read_settings(model)
    except (RuntimeError, ValueError):
        raise UserError("this is not a SentencePiece model") from None
    wrong = [
        option
        for option, is_wrong in (
            ("--model_type=word", settings.algorithm == WORDS),
            ("--add_dummy_prefix=false", not settings.adds_dummy_prefix),
            ("--escape_whitespaces=false", not settings.escapes_spaces),
            ("--treat_whitespace_as_suffix", settings.has_suffixes),
        )
        if is_wrong
    ]
    if wrong:
        raise UserError(
            f"this SentencePiece model was trained with {' and '.join(wrong)}, which is not supported: train it again "
            "without, or set tokenizer.type and tokenizer.vocab_size instead of a model"
        )


def _with_special_tokens(tokens: Sequence[Token], names: Sequence[str]) -> list[Token]:
    """Put our special tokens in the place of those with ``names``, and add the bytes if there are none."""
    replaced = {(Kind.CONTROL, name) for name in names}
    others = [token for token in tokens if token.kind != Kind.UNKNOWN and (token.kind, token.text) not in replaced]
    added = [*_SPECIAL] if any(token.kind == Kind.BYTE for token in tokens) else [*_SPECIAL, *_BYTES]
    texts = {token.text for token in others}
    if clashes := [token.text for token in added if token.text in texts]:
        raise UserError(
            f"this SentencePiece model has tokens for the text {', '.join(clashes[:3])}, which are special here: train "
            "it again without them"
        )
    return [*_SPECIAL, *others, *added[len(_SPECIAL) :]]


def _with_symbols(tokens: Sequence[Token], symbols: Sequence[str], kind: Kind) -> list[Token]:
    """Make ``symbols`` tokens of a kind; add those that are none yet.

    Longer tokens that contain a symbol of a user are not used any more: they would hide it.
    """

    def changed(token: Token) -> Token:
        if token.text in symbols:
            return token._replace(kind=kind)
        is_hiding = token.kind == Kind.NORMAL and any(symbol in token.text for symbol in symbols)
        return token._replace(kind=Kind.UNUSED) if is_hiding and kind == Kind.USER_DEFINED else token

    if wrong := [t.text for t in tokens if t.text in symbols and t.kind not in (kind, Kind.NORMAL)]:
        raise UserError(f"the token {wrong[0]} of this SentencePiece model cannot be a symbol: choose another one")
    known = {token.text for token in tokens}
    return [*map(changed, tokens), *(Token(symbol, kind=kind) for symbol in symbols if symbol not in known)]
