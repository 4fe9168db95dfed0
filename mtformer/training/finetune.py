"""Fine-tuning: training that begins with the weights and the pieces of a bundle."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from mtformer.bundle import Bundle
from mtformer.config import Config
from mtformer.errors import UserError
from mtformer.model.transformer import Transformer
from mtformer.model.weights import weights
from mtformer.text.sources import SentencePair
from mtformer.text.tokenizer import Tokenizer, extend_tokenizer

_MAY_DIFFER = ("preset", "dropout", "layer_drop")  # of the model; they change no weight's shape or meaning
_MAY_GROW = ("vocab_size", "sampling")
_PARTS = {
    "embeddings": ("src_embedding", "tgt_embedding", "output", "src_positions", "tgt_positions"),
    "encoder": ("encoder_layers", "encoder_norm"),
    "decoder": ("decoder_layers", "decoder_norm"),
}


def with_settings_of(config: Config, bundle: Bundle) -> Config:
    """Return ``config`` with the model and the tokenizer of ``bundle``.

    Raises:
        UserError: ``config`` asks for others, or for a vocabulary that is smaller.
    """
    problems: list[str] = []
    model = _inherited(config.model, bundle.config.model, _MAY_DIFFER, "model", problems)
    tokenizer = _inherited(config.tokenizer, bundle.config.tokenizer, _MAY_GROW, "tokenizer", problems)
    if tokenizer.vocab_size < bundle.config.tokenizer.vocab_size:
        problems.append(
            f"tokenizer.vocab_size = {tokenizer.vocab_size} is less than {bundle.config.tokenizer.vocab_size}"
        )
    if model.positions == "learned" and config.data.max_length != bundle.config.data.max_length:
        problems.append(f"data.max_length must be {bundle.config.data.max_length}, for so many positions are learned")
    if config.training.shard and model.layer_drop:
        problems.append(f"it has model.layer_drop = {model.layer_drop}, where training.shard needs 0")
    if problems:
        raise UserError(f"{config.training.init_from} (training.init_from) is another model: {'; '.join(problems)}")
    return config.model_copy(update={"model": model, "tokenizer": tokenizer})


def _inherited(given: Any, begun: Any, free: Sequence[str], section: str, problems: list[str]) -> Any:
    """Return the section of the bundle's config with what the user has given and may change."""
    changed = {key: value for key in given.model_fields_set if (value := getattr(given, key)) != getattr(begun, key)}
    problems += [
        f"{section}.{key} = {value}, there {getattr(begun, key)}" for key, value in changed.items() if key not in free
    ]
    return begun.model_copy(update={key: value for key, value in changed.items() if key in free and value is not None})


def tokenizer_of(bundle: Bundle, config: Config, pairs: Iterable[SentencePair]) -> Tokenizer:
    """Return the tokenizer of ``bundle``, with more pieces if ``config`` asks for more than it has."""
    old = bundle.tokenizer
    if config.tokenizer.vocab_size in (None, max(old.src_vocab_size, old.tgt_vocab_size)):
        return old
    languages = config.data.src_lang, config.data.tgt_lang
    return extend_tokenizer(old, pairs, config.tokenizer, *languages, seed=config.training.seed)


@torch.no_grad()
def initialize(model: Transformer, tokenizer: Tokenizer, bundle: Bundle) -> None:
    """Give ``model`` the weights of ``bundle``; a new piece begins as the mean of those that have spelled it before."""
    old = weights(bundle.model)
    for name, parameter in model.named_parameters():
        begun = old[name].to(parameter.device)
        parameter[: len(begun)] = begun
        n_new = len(parameter) - len(begun)
        if n_new:
            spelled = _spelled_before(bundle.tokenizer, tokenizer, len(begun), n_new, of_source=name.startswith("src"))
            parameter[len(begun) :] = torch.stack([begun[ids].mean(dim=0) for ids in spelled])


def _spelled_before(old: Tokenizer, new: Tokenizer, first: int, n: int, *, of_source: bool) -> list[Tensor]:
    """Return the ids, in ``old``, of the text of pieces ``first`` to ``first + n - 1`` of ``new``."""
    ids = range(first, first + n)
    texts = [piece.replace("\u2581", " ") for piece in (new.src_pieces(ids) if of_source else new.tgt_pieces(ids))]
    encoded = old.encode_src(texts) if of_source else old.encode_tgt(texts)
    return [torch.tensor(row[:-1] or row) for row in encoded]


def freeze(model: Transformer, parts: Iterable[str]) -> None:
    """Keep the weights of ``parts`` from changing."""
    prefixes = tuple(prefix for part in parts for prefix in _PARTS[part])
    for name, parameter in model.named_parameters():
        parameter.requires_grad = not name.startswith(prefixes)
