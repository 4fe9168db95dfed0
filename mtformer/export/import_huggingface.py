"""Models of Hugging Face's transformers as ours: Marian, Pegasus, M2M-100 with NLLB, and mBART."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import ValidationError
from torch import Tensor

from mtformer.bundle.header import HEADER_FORMATS, Header, SearchDefaults, first_problem, read_header
from mtformer.bundle.peek import EXPORT_SETTINGS
from mtformer.config.search import SearchConfig
from mtformer.config.sources import MULTIPLE, LanguagePair, PrefixTokens
from mtformer.engines.ctranslate2.folder import TOKENIZER_FILES, tokenizer_models
from mtformer.export.families import FAMILIES, N_UNUSED_POSITIONS, Family
from mtformer.export.fast_tokenizer import read_fast_tokenizer
from mtformer.export.names import feature_dimension, names_in_transformers, sines_first
from mtformer.export.tensors import open_tensors
from mtformer.model.architecture import ACTIVATIONS, Architecture
from mtformer.model.transformer import Transformer
from mtformer.model.weights import SkipInitialization
from mtformer.support.errors import UserError
from mtformer.text.languages import language_code
from mtformer.text.tokenizer.adopt import require_usable
from mtformer.text.tokenizer.sentencepiece_file import SPECIAL_TOKENS, in_order, read_tokens, with_rule
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.vocabulary import RULES


class Imported(NamedTuple):
    """A model in our terms.

    Attributes:
        header: its description.
        tensors: its weights by our names.
        tokenizers: the serialized SentencePiece models, one or two.
    """

    header: Header
    tensors: Mapping[str, Tensor]
    tokenizers: tuple[bytes, ...]


class Tokens(NamedTuple):
    """The vocabularies of a model.

    Attributes:
        models: SentencePiece models in the order of the model's ids, one or two.
        languages: of a model that translates between all of these, the token of each.
        targets: the languages that tokens such as ``>>deu<<`` before a source ask for.
    """

    models: tuple[bytes, ...]
    languages: Mapping[str, str] = {}
    targets: Sequence[str] = ()


_MEANT: dict[str, Callable[[Family], object]] = {  # flags that old configs have beside their type
    "normalize_before": lambda family: family.norm == "pre",
    "add_final_layer_norm": lambda family: family.norm == "pre",
    "normalize_embedding": lambda family: family.embedding_norm,
    "static_position_embeddings": lambda family: family.positions != "learned",
    "scale_embedding": lambda _: True,
}
_ALIASES = {"swish": "silu"}
_MAX_VOCABULARY = 2**20  # tokens
_COMPUTED = re.compile(r"embed_positions\.weights?$")  # of sinusoids, which some files contain
_TARGET = re.compile(r">>(\w+)<<")
_LANGUAGE_TOKEN = re.compile(r"__([a-z]{2,3}(?:_[A-Za-z]{2,4})?)__|([a-z]{2,3}_[A-Z][A-Za-z]{1,3})")
_SENTENCEPIECE = ("sentencepiece.bpe.model", "spiece.model")
FILES = (  # of a model besides its weights; not every one has all
    *("config.json", "generation_config.json", "README.md"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json", "target_vocab.json"),
    *("source.spm", "target.spm", *_SENTENCEPIECE),
    *(EXPORT_SETTINGS, *TOKENIZER_FILES),  # of one that was exported here
)
_PEGASUS_OFFSET = 103
_M2M_LANGUAGES = {  # in the order of their tokens, which the files of a tokenizer may leave out
    "m2m100": (
        "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu "
        "hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt "
        "ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
    ),
    "wmt21": "en ha is ja cs ru zh de",
}
_IN_NAME = re.compile(r"(?:^|[-_/])([A-Za-z]{2,3})-([A-Za-z]{2,3})$")


def read_huggingface(folder: Path, name: str, languages: LanguagePair | None = None) -> Imported:
    """Read a model of transformers.

    Args:
        folder: contains ``config.json``, the weights and the tokenizer. What was exported here has its header too.
        name: of the model, which may name its languages, as ``opus-mt-en-de`` does.
        languages: those of a model of one direction; None: as its files or its name say.

    Raises:
        UserError: it is a model that we cannot have, or its files do not belong together.
    """
    config = read_json(folder / "config.json")
    if (folder / EXPORT_SETTINGS).is_file():
        return _read_exported(folder, family_of(config))
    try:
        family = family_of(config)
        tokens = _read_tokens(folder, config)
        tokenizer = Tokenizer(*tokens.models).with_start(config["decoder_start_token_id"])
        _require_ids(tokenizer, config)
        architecture = _architecture(config, family, tokenizer)
    except KeyError as error:
        raise UserError(f"{folder / 'config.json'} lacks {error.args[0]}") from None
    except ValidationError as error:
        raise UserError(f"{folder / 'config.json'}: {first_problem(error)}") from None
    with open_tensors(folder) as theirs:
        bias = theirs.get("final_logits_bias")
        has_bias = bias is not None and bool(bias.any())
        architecture = architecture.model_copy(update={"output_bias": has_bias})
        tensors = _weights(theirs, architecture, family)
    generation = config | read_json(folder / "generation_config.json", {})
    header = Header(
        **directions(tokens, languages or languages_of(folder, name)),
        architecture=architecture,
        tokenizer_type=tokenizer.src.type,
        normalization=tokenizer.src.form,
        search=search_defaults(
            generation.get("num_beams", 1), generation.get("length_penalty", 1.0), n_forced=int(bool(tokens.languages))
        ),
    )
    return Imported(header, tensors, tokens.models)


def _read_exported(folder: Path, family: Family) -> Imported:
    """Read a model that was exported here, whose header and SentencePiece models lie beside it.

    Raises:
        UserError: they are damaged or not those of the model.
    """
    try:
        header = read_header((folder / EXPORT_SETTINGS).read_bytes(), HEADER_FORMATS[-1])
        models = tokenizer_models(folder)
    except ValidationError as error:
        raise UserError(f"{folder / EXPORT_SETTINGS} is damaged: {first_problem(error)}") from None
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}") from None
    architecture, tokenizer = header.architecture, header.make_tokenizer(models)
    sizes = {"src_vocab_size": tokenizer.src_vocab_size, "tgt_vocab_size": tokenizer.tgt_vocab_size}
    if not family.suits(architecture) or architecture != architecture.model_copy(update=sizes):
        raise UserError(f"{folder / EXPORT_SETTINGS} is of another model than the files beside it")
    with open_tensors(folder) as theirs:
        return Imported(header, _weights(theirs, architecture, family), tuple(models))


def read_json(path: Path, default: dict[str, Any] | None = None) -> dict[str, Any]:
    """Read a JSON object; ``default`` stands for a file that does not exist.

    Raises:
        UserError: there is none.
    """
    if default is not None and not path.is_file():
        return default
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise UserError(f"{path} contains no JSON object")
    return content


def search_defaults(beam_size: int, length_penalty: float, n_forced: int = 0) -> SearchDefaults:
    """Return the search settings of a model that was used with these.

    Args:
        beam_size: 1 counts as not chosen.
        length_penalty: the exponent of the length that scores are divided by.
        n_forced: the tokens at the start of a translation that count as a part of its length.
    """
    usual = SearchConfig()
    return SearchDefaults(
        beam_size=min(beam_size, 64) if beam_size > 1 else usual.beam_size,
        length_penalty=length_penalty,
        length_penalty_offset=n_forced,
        **usual.model_dump(include={"max_length_factor", "max_length_offset", "batch_tokens"}),
    )


def directions(tokens: Tokens, languages: LanguagePair | None) -> dict[str, Any]:
    """Return the entries of a header that say what a model translates.

    Raises:
        UserError: nothing says so.
    """
    if tokens.languages:
        return {"src_lang": MULTIPLE, "tgt_lang": MULTIPLE, "languages": tokens.languages}
    if languages is None:
        raise UserError("nothing says which languages the model translates: add --from and --to")
    if len(tokens.targets) < 2:
        return languages._asdict()
    prefixes = {f"{languages.src_lang}-{lang}": PrefixTokens(src=(f">>{lang}<<",)) for lang in tokens.targets}
    return {"src_lang": languages.src_lang, "tgt_lang": MULTIPLE, "directions": tuple(prefixes), "prefixes": prefixes}


def family_of(config: Mapping[str, Any]) -> Family:
    """Return what the type of a model means, given its config.

    Raises:
        UserError: it is a model that we cannot have.
    """
    if "auto_map" in config:
        raise UserError("this model brings code of its own (auto_map, trust_remote_code), which is never run")
    kind = config.get("model_type")
    if kind not in FAMILIES:
        raise UserError(f"model_type = {kind} cannot be imported; known are {', '.join(FAMILIES)}")
    family = FAMILIES[kind]
    for flag, meant in _MEANT.items():
        if flag in config and config[flag] != meant(family):
            raise UserError(f"{flag} = {json.dumps(config[flag])} in a model of the type {kind} cannot be imported")
    return family


def _require_ids(tokenizer: Tokenizer, config: Mapping[str, Any]) -> None:
    """Compare the ids of special tokens that a config and a tokenizer have."""
    for name in ("pad", "eos"):
        ours, theirs = getattr(tokenizer.special_ids, name), config[f"{name}_token_id"]
        if ours != theirs:
            raise UserError(f"the tokenizer is of another model: its {name} token has the id {ours}, not {theirs}")
    if not isinstance(config["decoder_start_token_id"], int):
        raise UserError(f"decoder_start_token_id = {json.dumps(config['decoder_start_token_id'])} is no id")


def _architecture(config: Mapping[str, Any], family: Family, tokenizer: Tokenizer) -> Architecture:
    """Return the architecture that a config describes; whether the output has a bias is not known yet."""

    def of_both(name: str) -> Any:
        encoder, decoder = config[f"encoder_{name}"], config[f"decoder_{name}"]
        if encoder != decoder:
            raise UserError(f"{name} = {encoder} in the encoder and {decoder} in the decoder cannot be imported")
        return encoder

    function = config["activation_function"]
    activations = {kind.transformers: name for name, kind in ACTIVATIONS.items() if kind.transformers}
    if _ALIASES.get(function, function) not in activations:
        raise UserError(f"activation_function = {function} cannot be imported; known are {', '.join(activations)}")
    is_shared = bool(config.get("share_encoder_decoder_embeddings", True))
    src_size, tgt_size = config["vocab_size"], config.get("decoder_vocab_size") or config["vocab_size"]
    for side, size, known in zip(
        ("source", "target"), (src_size, tgt_size), (tokenizer.src_vocab_size, tokenizer.tgt_vocab_size), strict=True
    ):
        if size != known:
            raise UserError(f"the tokenizer is of another model: it has {known:,} {side} tokens, not {size:,}")
    return Architecture(
        d_model=config["d_model"],
        n_heads=of_both("attention_heads"),
        d_ff=of_both("ffn_dim"),
        n_encoder_layers=config["encoder_layers"],
        n_decoder_layers=config["decoder_layers"],
        norm=family.norm,
        norm_type="layernorm",
        activation=activations[_ALIASES.get(function, function)],
        positions=family.positions,
        tie_embeddings=bool(config.get("tie_word_embeddings", True)),
        embedding_norm=family.embedding_norm,
        joint_vocab=is_shared,
        src_vocab_size=src_size,
        tgt_vocab_size=tgt_size,
        special_ids=tokenizer.special_ids,
        max_length=config["max_position_embeddings"],
        dropout=config.get("dropout", 0.0),
        attention_dropout=config.get("attention_dropout", 0.0),
    )


def _weights(theirs: Mapping[str, Tensor], architecture: Architecture, family: Family) -> dict[str, Tensor]:
    """Return the weights by our names.

    Raises:
        UserError: one is missing, of another shape, or has no place in the architecture.
    """
    with torch.device("meta"), SkipInitialization():
        model = Transformer(architecture)
    is_padded = architecture.src_vocab_size != architecture.tgt_vocab_size  # Pegasus has a single size
    order = torch.argsort(sines_first(architecture.d_model)) if family.sines_first else None
    used = {"final_logits_bias"}
    tensors = {}
    for ours, parameter in model.named_parameters():
        names = _names(ours, theirs, architecture)
        used.update(names)
        if missing := [name for name in names if name not in theirs]:
            raise UserError(f"the weights lack {missing[0]}")
        parts = [theirs[name] for name in names]
        tensor = parts[0] if len(parts) == 1 else torch.cat(parts)
        if ours.endswith("positions.weight"):
            tensor = tensor[N_UNUSED_POSITIONS:]
        elif ours == "output.bias":
            lowest = torch.finfo(torch.float16).min  # some forbid tokens by -inf
            tensor = tensor.flatten()[: len(parameter)].clamp(min=lowest)
        dimension = feature_dimension(ours)
        if order is not None and dimension is not None:
            tensor = tensor.index_select(dimension, order)
        elif is_padded and ours.startswith(("src_embedding", "tgt_embedding", "output")):
            tensor = tensor[: len(parameter)]
        if tensor.shape != parameter.shape:
            raise UserError(f"{names[0]} has the shape {tuple(tensor.shape)}, not {tuple(parameter.shape)}")
        if not tensor.is_floating_point() or not all(value.isfinite() for value in tensor.aminmax()):
            raise UserError(f"{names[0]} has values that are not finite numbers")
        tensors[ours] = tensor.contiguous()
    if extra := sorted(name for name in theirs.keys() - used if not _is_copy(name)):
        raise UserError(f"the weights contain {extra[0]}, which such a model does not have")
    return tensors


def _names(ours: str, theirs: Mapping[str, Tensor], architecture: Architecture) -> list[str]:
    """Return the names of the tensors that one of our weights consists of; that of shared embeddings varies."""
    names = names_in_transformers(ours)
    if ours == "tgt_embedding.weight" or (ours == "src_embedding.weight" and architecture.joint_vocab):
        shared = ["model.shared.weight"] if architecture.joint_vocab else []
        others = [*shared, *names, "lm_head.weight"] if architecture.tie_embeddings else [*names, *shared]
        return [next((name for name in others if name in theirs), names[0])]
    return names


def _is_copy(name: str) -> bool:
    """Tell whether a tensor is computed anyway, or another name of one of the embeddings."""
    return bool(_COMPUTED.search(name)) or name.endswith(("embed_tokens.weight", "shared.weight", "lm_head.weight"))


def _read_tokens(folder: Path, config: Mapping[str, Any]) -> Tokens:
    """Read the tokenizer of a model, whichever of its files there are."""
    if (folder / "source.spm").is_file():
        return _read_marian_tokens(folder)
    path = next((path for path in map(folder.joinpath, _SENTENCEPIECE) if path.is_file()), None)
    model = _read_sentencepiece(path) if path else None
    special = _special_tokens(folder)
    if (folder / "tokenizer.json").is_file():
        fast, by_id, added = read_fast_tokenizer(folder / "tokenizer.json")
        model, special = model or fast, [*special, *added]
    elif model is None:
        raise UserError(f"{folder} contains no tokenizer: neither {', '.join(_SENTENCEPIECE)} nor tokenizer.json")
    else:
        by_id = _ids(folder, model, special, config)
    vocabulary = [by_id.get(i, f"<unused_{i}>") for i in range(config["vocab_size"])]
    languages = {}
    if config["model_type"] in ("m2m_100", "mbart"):
        known = set(vocabulary)
        matches = {text: _LANGUAGE_TOKEN.fullmatch(text) for text in special if text in known}
        languages = {match[1] or match[2]: text for text, match in matches.items() if match}
    return Tokens((_in_order(model, vocabulary, special),), languages)


def _ids(folder: Path, model: bytes, special: Sequence[str], config: Mapping[str, Any]) -> dict[int, str]:
    """Return the tokens by id where only a SentencePiece model and perhaps a vocabulary say them."""
    texts = [token.text for token in read_tokens(model)]
    if (folder / "vocab.json").is_file():
        by_id = _read_vocabulary(folder / "vocab.json")
    elif config["model_type"] == "pegasus":
        reserved = ["<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{i}>" for i in range(2, _PEGASUS_OFFSET))]
        by_id = dict(enumerate([*reserved, *texts[2:]]))
    else:  # the order of fairseq
        by_id = dict(enumerate(["<s>", "<pad>", "</s>", "<unk>", *texts[3:]]))
    known = set(by_id.values())
    return by_id | dict(enumerate((text for text in special if text not in known), max(by_id) + 1))


def _read_vocabulary(path: Path) -> dict[int, str]:
    """Return the tokens by id of a file that has the ids by token."""
    ids = read_json(path)
    if not ids or not all(type(i) is int and 0 <= i < _MAX_VOCABULARY for i in ids.values()):
        raise UserError(f"{path} is no vocabulary: tokens with their ids")
    return {i: text for text, i in ids.items()}


def _special_tokens(folder: Path) -> list[str]:
    """Return the special tokens that the settings of a tokenizer list: languages in order, then the mask."""
    settings = read_json(folder / "special_tokens_map.json", {}) | read_json(folder / "tokenizer_config.json", {})
    added = settings.get("added_tokens_decoder", {})
    listed = [added[i] for i in sorted(added, key=int)]
    for name in ("extra_special_tokens", "additional_special_tokens"):
        listed += settings.get(name) or []
    listed.append(settings.get("mask_token") or SPECIAL_TOKENS[0])
    texts = [token["content"] if isinstance(token, dict) else token for token in listed]
    special = [token for token in dict.fromkeys(texts) if token not in SPECIAL_TOKENS]
    if (folder / "vocab.json").is_file() and not any(map(_LANGUAGE_TOKEN.fullmatch, special)):
        codes = _M2M_LANGUAGES[settings.get("language_codes") or "m2m100"]
        special += [f"__{code}__" for code in codes.split()]
    return special


def _read_marian_tokens(folder: Path) -> Tokens:
    """Read two SentencePiece models and the vocabulary, or both, that give their tokens other ids."""
    files = [folder / "vocab.json", folder / "target_vocab.json"]
    vocabularies = [_read_vocabulary(path) for path in files if path.is_file()]
    if not vocabularies:
        raise UserError(f"{folder} lacks vocab.json")
    targets = targets_in(vocabularies[0].values())
    models = []
    for name, by_id in zip(("source.spm", "target.spm"), vocabularies * 2, strict=False):
        texts = [by_id.get(i, f"<unused_{i}>") for i in range(max(by_id) + 1)]
        models.append(_in_order(_read_sentencepiece(folder / name), texts, [f">>{lang}<<" for lang in targets]))
    return Tokens(tuple(models), targets=targets)


def _read_sentencepiece(path: Path) -> bytes:
    """Read a SentencePiece model of a kind that we support."""
    try:
        model = path.read_bytes()
        require_usable(model)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return model


def targets_in(vocabulary: Iterable[str]) -> list[str]:
    """Return the languages that tokens of a vocabulary such as ``>>deu<<`` ask for."""
    return [match[1] for text in vocabulary if (match := _TARGET.fullmatch(text))]


def _in_order(model: bytes, vocabulary: Sequence[str], special: Sequence[str]) -> bytes:
    """Return a SentencePiece model with the ids of a vocabulary, to which texts go as they are."""
    return with_rule(in_order(model, vocabulary, set(special)), RULES["identity"])


def languages_of(folder: Path, name: str) -> LanguagePair | None:
    """Return the languages that the tokenizer's settings or else the name of a model say."""
    settings = read_json(folder / "tokenizer_config.json", {})
    codes = [settings.get("source_lang"), settings.get("target_lang")]
    if None in codes and (match := _IN_NAME.search(name)):
        codes = [*match.groups()]
    if None in codes:
        return None
    return LanguagePair(*(language_code(str(code)) or MULTIPLE for code in codes))
