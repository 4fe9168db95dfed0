"""Import models of Hugging Face's transformers: Marian, Pegasus, M2M-100 with NLLB, and mBART."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from mtformer.bundle.header import Header, first_problem
from mtformer.bundle.peek import EXPORT_SETTINGS
from mtformer.config.sources import LanguagePair
from mtformer.engines.ctranslate2.folder import TOKENIZER_FILES, tokenizer_models
from mtformer.export.families import FAMILIES, N_UNUSED_POSITIONS, Family
from mtformer.export.huggingface_tokens import SENTENCEPIECE, read_tokenizer_files
from mtformer.export.imported import Imported, directions, languages_of, read_json, search_defaults
from mtformer.export.names import feature_dimension, names_in_transformers, sines_first
from mtformer.export.tensors import Tensors, open_tensors
from mtformer.model.architecture import ACTIVATIONS, Architecture
from mtformer.model.weights import without_weights
from mtformer.support.errors import UserError
from mtformer.support.files import read_errors
from mtformer.text.tokenizer.tokenizer import Tokenizer

_MEANT: dict[str, Callable[[Family], object]] = {  # flags that old configs have beside their type
    "normalize_before": lambda family: family.norm == "pre",
    "add_final_layer_norm": lambda family: family.norm == "pre",
    "normalize_embedding": lambda family: family.embedding_norm,
    "static_position_embeddings": lambda family: family.positions != "learned",
    "scale_embedding": lambda _: True,
}
_ALIASES = {"swish": "silu"}
_COMPUTED = re.compile(r"embed_positions\.weights?$")  # of sinusoids, which some files contain
FILES = (  # of a model besides its weights; not every one has all
    *("config.json", "generation_config.json", "README.md"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json", "target_vocab.json"),
    *("source.spm", "target.spm", *SENTENCEPIECE),
    *(EXPORT_SETTINGS, *TOKENIZER_FILES),  # of one that was exported here
)


def read_huggingface(folder: Path, name: str, languages: LanguagePair | None = None) -> Imported:
    """Read a model of transformers.

    Args:
        folder: contains ``config.json``, the weights and the tokenizer. What was exported here has its header too.
        name: of the model, which may name its languages, as ``opus-mt-en-de`` does.
        languages: those of a model of one direction; None: as its files or its name say.

    Raises:
        UserError: such a model cannot be imported, or its files do not belong together.
    """
    config = read_json(folder / "config.json")
    if (folder / EXPORT_SETTINGS).is_file():
        if languages is not None:
            raise UserError(f"--from and --to are for models that do not say their languages: {EXPORT_SETTINGS} does")
        return _read_exported(folder, family_of(config))
    try:
        family = family_of(config)
        tokens = read_tokenizer_files(folder, config)
        tokenizer = Tokenizer(*tokens.models).with_start(config["decoder_start_token_id"])
        _require_ids(tokenizer, config)
        architecture = _architecture(config, family, tokenizer)
    except KeyError as error:
        raise UserError(f"{folder / 'config.json'} lacks {error.args[0]}") from None
    except ValidationError as error:
        raise UserError(f"{folder / 'config.json'}: {first_problem(error)}") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise UserError(f"the settings in {folder} are damaged or not those of such a model: {error}") from None
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
        search=search_defaults(generation, "num_beams", "length_penalty", n_forced=int(bool(tokens.languages))),
    )
    return Imported(header, tensors, tokens.models)


def _read_exported(folder: Path, family: Family) -> Imported:
    """Read a model that was exported here, whose header and SentencePiece models lie beside it.

    Raises:
        UserError: they are damaged or not those of the model.
    """
    try:
        with read_errors(folder):
            header = Header.model_validate_json((folder / EXPORT_SETTINGS).read_bytes())
            models = tokenizer_models(folder)
    except ValidationError as error:
        raise UserError(f"{folder / EXPORT_SETTINGS} is damaged: {first_problem(error)}") from None
    architecture, tokenizer = header.architecture, header.make_tokenizer(models)
    sizes = {"src_vocab_size": tokenizer.src_vocab_size, "tgt_vocab_size": tokenizer.tgt_vocab_size}
    if not family.suits(architecture) or architecture != architecture.model_copy(update=sizes):
        raise UserError(f"{folder / EXPORT_SETTINGS} is of another model than the files beside it")
    with open_tensors(folder) as theirs:
        return Imported(header, _weights(theirs, architecture, family), tuple(models))


def family_of(config: Mapping[str, Any]) -> Family:
    """Return the family of a model, given its config.

    Raises:
        UserError: models of this type cannot be imported.
    """
    if "auto_map" in config:
        raise UserError("this model brings code of its own (auto_map, trust_remote_code), which is never run")
    kind = str(config.get("model_type") or "")
    if kind not in FAMILIES:
        what = f"model_type = {kind}" if kind else "a config.json without model_type"
        raise UserError(f"{what} cannot be imported; known are {', '.join(FAMILIES)}")
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
        raise UserError(f"decoder_start_token_id = {json.dumps(config['decoder_start_token_id'])} is not an id")


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
    sizes = {"source": (src_size, tokenizer.src_vocab_size), "target": (tgt_size, tokenizer.tgt_vocab_size)}
    for side, (size, known) in sizes.items():
        if size != known:
            raise UserError(f"the tokenizer is of another model: it has {known:,} {side} tokens, not {size:,}")
    return Architecture(
        d_model=config["d_model"],
        n_heads=of_both("attention_heads"),
        d_ff=of_both("ffn_dim"),
        n_encoder_layers=config["encoder_layers"],
        n_decoder_layers=config["decoder_layers"],
        norm=family.norm,
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


def _weights(theirs: Tensors, architecture: Architecture, family: Family) -> dict[str, Tensor]:
    """Return the weights by our names.

    Raises:
        UserError: one is missing, of another shape, or has no place in the architecture.
    """
    is_padded = architecture.src_vocab_size != architecture.tgt_vocab_size  # all but Marian have a single size
    order = torch.argsort(sines_first(architecture.d_model)) if family.sines_first else None
    used = {"final_logits_bias"}
    tensors = {}
    for ours, parameter in without_weights(architecture).named_parameters():
        names = _names(ours, theirs, architecture)
        used.update(names)
        if missing := [name for name in names if name not in theirs]:
            raise UserError(f"the weights lack {missing[0]}")
        tensor = theirs.joined(names)
        if ours.endswith("positions.weight"):
            tensor = tensor[N_UNUSED_POSITIONS:]
        elif ours == "output.bias":
            lowest = torch.finfo(torch.float16).min  # some forbid tokens by -inf
            tensor = tensor.flatten()[: len(parameter)].clamp(min=lowest)
        elif is_padded and ours.startswith(("src_embedding", "tgt_embedding", "output")):
            tensor = tensor[: len(parameter)]
        if tensor.shape != parameter.shape:
            raise UserError(f"{names[0]} has the shape {tuple(tensor.shape)}, not {tuple(parameter.shape)}")
        if not tensor.is_floating_point() or not all(value.isfinite() for value in tensor.aminmax()):
            raise UserError(f"{names[0]} has values that are not finite numbers")
        if tensor.dtype == torch.float64:  # which no bundle has
            tensor = tensor.float()
        dimension = feature_dimension(ours)
        if order is not None and dimension is not None:
            tensor = tensor.index_select(dimension, order)
        tensors[ours] = tensor.contiguous()
    if extra := sorted(name for name in theirs.keys() - used if not _is_copy(name)):
        raise UserError(f"the weights contain {extra[0]}, which such a model does not have")
    return tensors


def _names(ours: str, theirs: Mapping[str, Tensor], architecture: Architecture) -> list[str]:
    """Return the names of the tensors that one of our weights consists of; shared embeddings have several names."""
    names = names_in_transformers(ours)
    if ours == "tgt_embedding.weight" or (ours == "src_embedding.weight" and architecture.joint_vocab):
        shared = ["model.shared.weight"] if architecture.joint_vocab else []
        others = [*shared, *names, "lm_head.weight"] if architecture.tie_embeddings else [*names, *shared]
        return [next((name for name in others if name in theirs), names[0])]
    return names


def _is_copy(name: str) -> bool:
    """Tell whether a tensor is computed anyway, or another name of one of the embeddings."""
    return bool(_COMPUTED.search(name)) or name.endswith(("embed_tokens.weight", "shared.weight", "lm_head.weight"))
