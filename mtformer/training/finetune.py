"""Fine-tuning: training that starts from the weights and the tokenizer of a bundle."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import torch

from mtformer.bundle.format import Bundle
from mtformer.bundle.header import Header
from mtformer.config import Base, Config, ModelConfig, ResolvedConfig, TokenizerConfig, TrainingConfig
from mtformer.config.section import Section
from mtformer.config.sources import PrefixTokens
from mtformer.model.transformer import Transformer
from mtformer.model.weights import weights
from mtformer.support.errors import UserError
from mtformer.text.pairs import SentencePair
from mtformer.text.tags import all_tags, target_tag
from mtformer.text.tokenizer.sentencepiece_file import Kind, Token, add_tokens
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import extend_tokenizer
from mtformer.training.transfer import translates

S = TypeVar("S", bound=Section)

# Settings of the model that change no weight's shape or meaning.
_MAY_DIFFER = ("preset", "dropout", "attention_dropout")
# The old tokens stay as they are with any of these.
_MAY_DIFFER_IN_TOKENIZER = ("vocab_size", "character_coverage", "user_symbols")
_PARTS = {
    "embeddings": (
        *("src_embedding", "tgt_embedding", "output", "src_positions", "tgt_positions"),
        *("encoder_input_norm", "decoder_input_norm"),
    ),
    "encoder": ("encoder_layers", "encoder_norm"),
    "decoder": ("decoder_layers", "decoder_norm"),
}


def inherit(config: Config, bundle: Bundle) -> Base:
    """Return the settings of the model and the tokenizer of ``bundle``, with the changes that ``config`` may make.

    Raises:
        UserError: ``config`` asks for others, or for a smaller vocabulary.
    """
    problems: list[str] = []
    architecture = bundle.header.architecture
    tags, symbols = new_tags(config.training, bundle.header), bundle.tokenizer.control_symbols
    vocab_size = _with_tags(bundle, tags).vocab_size
    base = TokenizerConfig(
        type=bundle.header.tokenizer_type,
        joint=architecture.joint_vocab,
        vocab_size=vocab_size,
        normalization=bundle.tokenizer.src.form,
        slots=bundle.tokenizer.has_slots,
    )
    if missing := set(config.tokenizer.user_symbols) - set(bundle.tokenizer.src.user_symbols):
        problems.append(f"tokenizer.user_symbols: the bundle has no {', '.join(sorted(missing))}")
    model = _inherit(config.model, ModelConfig.of(architecture), _MAY_DIFFER, "model", problems)
    tokenizer = _inherit(config.tokenizer, base, _MAY_DIFFER_IN_TOKENIZER, "tokenizer", problems)
    wanted = config.tokenizer.vocab_size
    if wanted is not None and wanted < vocab_size:
        problems.append(f"tokenizer.vocab_size = {wanted} is less than the {vocab_size} of the bundle")
    if wanted is not None and wanted > vocab_size and config.training.lora:
        problems.append(f"tokenizer.vocab_size = {wanted}: training.lora adds no tokens to its {vocab_size}")
    if model.positions == "learned" and config.data.max_length != architecture.max_length:
        problems.append(f"data.max_length must be {architecture.max_length}, the number of learned positions")
    if config.data.terms is not None and bundle.tokenizer.markers is None:
        problems.append("it has no tokens that mark terms, which data.terms needs")
    if config.data.context and bundle.tokenizer.context_end is None:
        problems.append("it has no token that ends the previous sentence, which data.context needs")
    prefixes = _prefixes(config, bundle.header) if bundle.header.prefixes or bundle.header.languages else {}
    data = config.data.model_copy(update={"prefixes": prefixes})
    if missing := set(all_tags(data)) - {*symbols, *tags}:
        problems.append(
            f"it has no tokens {', '.join(sorted(missing))}, which data.directions or a tag needs (training.like adds "
            "those of target languages)"
        )
    if wrong := sorted({*tags.values()} - {*symbols}) + sorted({*tags} & {*symbols}):
        problems.append(f"training.like: it {'has' if wrong[0] in symbols else 'lacks'} the token {wrong[0]}")
    if problems:
        raise UserError(f"{config.training.init_from} (training.init_from) is a different model: {'; '.join(problems)}")
    return Base(model, tokenizer, prefixes, is_tuned=translates(bundle, config.data.language_pairs))


def _prefixes(config: Config, header: Header) -> dict[str, PrefixTokens]:
    """Return the tokens that a model has before the texts of the directions of ``config``.

    Raises:
        UserError: it does not have one of them.
    """
    for new, old in config.training.like.items():
        header = _with_language(header, new, old)
    return {str(pair): header.prefix_tokens(header.direction(*pair)) for pair in config.data.language_pairs}


def _inherit(given: S, old: S, free: Sequence[str], section: str, problems: list[str]) -> S:
    """Return the section ``old`` with the changes that the user may make; note all others as problems."""
    changed = {key: value for key in given.model_fields_set if (value := getattr(given, key)) != getattr(old, key)}
    problems += [
        f"{section}.{key} = {value}, but the bundle has {getattr(old, key)}"
        for key, value in changed.items()
        if key not in free
    ]
    taken = {key: value for key, value in changed.items() if key in free and value is not None}
    return type(old).model_validate(old.model_dump() | taken)


def new_tags(training: TrainingConfig, header: Header) -> dict[str, str]:
    """Return the tokens of new target languages, and for each the one that it starts as."""
    return dict(_tag_like(header, new, old) for new, old in training.like.items())


def _tag_like(header: Header, new: str, old: str) -> tuple[str, str]:
    """Return the token of a new target language, and of the model's language that it is spelled like.

    Raises:
        UserError: the model does not translate to the latter.
    """
    if not (header.languages or header.prefixes):
        return target_tag(new), target_tag(old)
    pair = next((pair for pair in header.language_pairs if pair.tgt_lang == header.code(old)), None)
    tokens = header.prefix_tokens(pair) if pair else PrefixTokens()
    if pair is None or not (tokens.tgt or tokens.src):
        raise UserError(f"training.like: the model has no token for {old}; it translates {header.title}")
    tag = (tokens.tgt or tokens.src)[0]
    return re.sub(f"(?<![A-Za-z]){pair.tgt_lang}(?![A-Za-z])", new, tag) if pair.tgt_lang in tag else new, tag


def _with_language(header: Header, new: str, old: str) -> Header:
    """Return the header of a model that also translates to a new language, whose token is spelled like an old one's."""
    tag, of_old = _tag_like(header, new, old)
    if header.languages:
        return header.model_copy(update={"languages": header.languages | {new: tag}})
    added = {}
    for pair in header.language_pairs:
        if pair.tgt_lang == header.code(old):
            tokens = header.prefix_tokens(pair)
            side = "tgt" if tokens.tgt else "src"
            with_tag = tuple(tag if token == of_old else token for token in getattr(tokens, side))
            added[f"{pair.src_lang}-{new}"] = tokens.model_copy(update={side: with_tag})
    directions = (*map(str, header.language_pairs), *added)
    return header.model_copy(update={"directions": directions, "prefixes": header.prefixes | added})


def _with_tags(bundle: Bundle, tags: Iterable[str]) -> Tokenizer:
    """Add tokens of target languages to the source vocabulary, and to the target's if it has the same ids."""
    tokenizer = bundle.tokenizer
    added = [Token(tag, kind=Kind.CONTROL) for tag in tags if tag not in tokenizer.control_symbols]
    if not added:
        return tokenizer
    src_model, *rest = tokenizer.models
    if bundle.header.architecture.joint_vocab:
        rest = [add_tokens(model, added) for model in rest]
    return Tokenizer(add_tokens(src_model, added), *rest).with_start(tokenizer.special_ids.start)


def tokenizer_of(bundle: Bundle, config: ResolvedConfig, pairs: Iterable[SentencePair]) -> Tokenizer:
    """Return the tokenizer of ``bundle``, with more tokens if ``config`` asks for more than it has."""
    old = _with_tags(bundle, new_tags(config.training, bundle.header))
    if config.tokenizer.vocab_size == old.vocab_size:
        return old
    languages = zip(*config.data.language_pairs, strict=True)
    return extend_tokenizer(old, pairs, config.tokenizer, *languages, seed=config.training.seed)


@torch.no_grad()
def initialize(model: Transformer, tokenizer: Tokenizer, bundle: Bundle, tags: Mapping[str, str]) -> None:
    """Give ``model`` the weights of ``bundle``; a new token starts as the mean of those that spelled it before.

    Args:
        model: has at least as many tokens.
        tokenizer: its tokenizer.
        bundle: the model to start from.
        tags: of new tokens of languages, those that they start as.
    """
    old = weights(bundle.model)
    for name, parameter in model.named_parameters():
        known = old[name].to(parameter.device)
        parameter[: len(known)] = known
        if new_ids := range(len(known), len(parameter)):
            of_source = name.startswith("src")
            spelled = [_spelled_before(bundle.tokenizer, tokenizer, i, tags, of_source=of_source) for i in new_ids]
            parameter[len(known) :] = torch.stack([known[ids].mean(dim=0) for ids in spelled])


def _spelled_before(old: Tokenizer, new: Tokenizer, i: int, tags: Mapping[str, str], *, of_source: bool) -> list[int]:
    """Return the ids, in ``old``, of the text of a new token, or of the token that one of a language starts as."""
    sides = [(old.src, new.src), (old.tgt, new.tgt)]
    before, after = next(((a, b) for a, b in sides[:: 1 if of_source else -1] if not b.is_unused(i)), sides[0])
    [token] = after.tokens([i])
    if token in tags:
        return list(old.src.control_ids([tags[token]]))
    [row] = before.encode([token.removeprefix("▁").replace("▁", " ")], inside=not token.startswith("▁"))
    return row[:-1] or row


def freeze(model: Transformer, parts: Iterable[str]) -> None:
    """Exclude the weights of ``parts`` from training."""
    prefixes = tuple(prefix for part in parts for prefix in _PARTS[part])
    for name, parameter in model.named_parameters():
        parameter.requires_grad = not name.startswith(prefixes)
