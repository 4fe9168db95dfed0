"""Import models of Marian (https://marian-nmt.github.io) from their ``.npz`` files."""

import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from pydantic import ValidationError
from torch import Tensor

from mtformer.bundle.header import Header, first_problem
from mtformer.config.sources import LanguagePair
from mtformer.export.huggingface_tokens import targets_in
from mtformer.export.imported import MAX_VOCABULARY, Imported, Tokens, directions, languages_of, search_defaults
from mtformer.model.architecture import Architecture
from mtformer.model.weights import without_weights
from mtformer.support.errors import UserError
from mtformer.text.tokenizer.sentencepiece_file import Kind, in_order, read_tokens, with_rule
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.vocabulary import RULES

Arrays = dict[str, np.ndarray[Any, np.dtype[Any]]]

_OPTIONS = "special:model.yml"
_MEANT: dict[str, tuple[object, ...]] = {  # the values of options with which Marian computes what we do
    "type": ("transformer",),
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (0, 2),
    "transformer-decoder-dim-ffn": (0,),
    "transformer-attention-mask": ("default",),
    "transformer-tied-layers": ([],),
    "factors-dim-emb": (0,),
    "lemma-dim-emb": (0,),
    "lemma-dependency": ("",),
    "input-types": ([],),
    **dict.fromkeys(
        (
            *("transformer-no-projection", "transformer-no-affine", "transformer-no-bias", "transformer-pool"),
            *("transformer-train-positions", "transformer-train-position-embeddings"),
            *("transformer-disable-position-embeddings", "ulr", "right-left"),
        ),
        (False,),
    ),
}
_STEPS = {"preprocess": "", "postprocess": "an", "postprocess-emb": "", "postprocess-top": ""}  # without dropout
_ACTIVATIONS = {"relu": "relu", "swish": "silu"}
_MAX_LENGTH = 512  # models do not say how long their training text was
_START = ("<pad>", "<s>", "<start>")  # names of the token that starts decoding, which Marian does not have
_SPM = ("source.spm", "target.spm")  # beside a vocabulary that says the ids alone
_PARTS = {  # of our modules and theirs, of which {} is W or b
    "self_attention.qkv_proj": ["self_{}q", "self_{}k", "self_{}v"],
    "cross_attention.qkv_proj": ["context_{}q", "context_{}k", "context_{}v"],
    "self_attention.out_proj": ["self_{}o"],
    "cross_attention.out_proj": ["context_{}o"],
    "feed_forward.linear1": ["ffn_{}1"],
    "feed_forward.linear2": ["ffn_{}2"],
}
_RESIDUALS = {"encoder": ("self_Wo", "ffn_ffn"), "decoder": ("self_Wo", "context_Wo", "ffn_ffn")}
_LAYER = re.compile(r"(encoder|decoder)_layers\.(\d+)\.(?:residuals\.(\d)\.norm|(.+))\.(weight|bias)")


def read_marian(path: Path, vocabularies: Sequence[Path] = (), languages: LanguagePair | None = None) -> Imported:
    """Read a model of Marian.

    Args:
        path: the ``.npz`` file.
        vocabularies: that of the source and that of the target, or one for both; none: as files beside the model say.
        languages: those of the model; None: as the name of its folder says.

    Raises:
        UserError: such a model cannot be imported, or its files do not belong together.
    """
    arrays = _load(path)
    options, settings = _options(path, arrays), _settings(path)
    embeddings = [_array(path, arrays, name) for name in _embeddings(options)]
    files = list(vocabularies) or _vocabularies(path, settings)
    tokens = _read_tokens(path, files, [len(embedding) for embedding in embeddings], is_shared=_is_shared(options))
    tokenizer = Tokenizer(*tokens.models)
    tokenizer = tokenizer.with_start(tokenizer.tgt_vocab_size - 1)
    architecture = _architecture(path, arrays, options, tokenizer)
    tensors = _weights(path, arrays, options, architecture)
    header = Header(
        **directions(tokens, languages or languages_of(path.parent, path.resolve().parent.name)),
        architecture=architecture,
        tokenizer_type=tokenizer.src.type,
        normalization=tokenizer.src.form,
        search=search_defaults(settings, "beam-size", "normalize"),
    )
    return Imported(header, tensors, tokens.models)


def _load(path: Path) -> Arrays:
    """Read all arrays of a file."""
    if not path.is_file():
        raise UserError(f"there is no file {path}")
    if not zipfile.is_zipfile(path):  # of which numpy says that it may be unsafe to load
        raise UserError(f"{path} is damaged or no model of Marian: it is not an archive of arrays")
    try:
        # Given a path, numpy would leave a damaged file open.
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{path} is damaged or no model of Marian: {str(error).splitlines()[0]}") from None


def _options(path: Path, arrays: Arrays) -> dict[str, Any]:
    """Return the options that a model contains, if it computes the same function as ours."""
    if _OPTIONS not in arrays:
        raise UserError(f"{path} lacks {_OPTIONS}, the options of a model of Marian")
    options = _yaml(f"{_OPTIONS} in {path}", arrays.pop(_OPTIONS).tobytes().rstrip(b"\0"))
    for name, meant in _MEANT.items():
        if name in options and options[name] not in meant:
            raise UserError(f"{name} = {options[name]} cannot be imported, only {meant[0] or 'none'}")
    return options


def _settings(path: Path) -> dict[str, Any]:
    """Return the settings of decoding or of training that stand beside a model, if they do."""
    for name in (f"{path.name}.decoder.yml", "decoder.yml", "config.yml", f"{path.name}.yml"):
        file = path.with_name(name)
        if file.is_file():
            return _yaml(str(file), file.read_bytes())
    return {}


def _yaml(what: str, text: bytes) -> dict[str, Any]:
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):  # the latter of a date such as 2024-13-01
        content = None
    if not isinstance(content, dict):
        raise UserError(f"{what} contains no options")
    return content


def _vocabularies(path: Path, settings: Mapping[str, Any]) -> list[Path]:
    """Return the files of the vocabularies that settings name, or the only one beside a model."""
    named = settings.get("vocabs")
    if not isinstance(named, list) or not named:
        beside = sorted(path.parent.glob("*.spm"))
        if len(beside) != 1:
            raise UserError(f"nothing beside {path} says what its vocabularies are: add --vocab SRC --vocab TGT")
        return beside
    files = []
    for name in map(str, named):
        places = [path.parent / name, Path(name), path.with_name(Path(name).name)]
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise UserError(f"the vocabulary {name} of {path} is missing: add --vocab SRC --vocab TGT")
        files.append(found)
    return files


def _is_shared(options: Mapping[str, Any]) -> bool:
    """Tell whether both languages have the same embeddings."""
    return bool(options.get("tied-embeddings-all") or options.get("tied-embeddings-src"))


def _embeddings(options: Mapping[str, Any]) -> list[str]:
    """Return the names of the embeddings of both languages."""
    return ["Wemb"] * 2 if _is_shared(options) else ["encoder_Wemb", "decoder_Wemb"]


def _read_tokens(path: Path, files: Sequence[Path], sizes: Sequence[int], *, is_shared: bool) -> Tokens:
    """Read both vocabularies and give them, at the same place, a token that starts decoding."""
    if len(files) > 2:
        raise UserError(f"{path} has {len(files)} vocabularies: only models with one source can be imported")
    sides = []
    for file, spm, size in zip([*files] * 2, _SPM, sizes, strict=False):
        model, texts = _vocabulary(file, path.with_name(spm))
        if len(texts) != size:
            raise UserError(f"{file} is of another model: it has {len(texts):,} tokens, not {size:,}")
        sides.append((model, [*texts, *(f"<unused_{i}>" for i in range(size, max(sizes)))]))
    known = {text for _, texts in sides for text in texts}
    start = next(text for text in _START if text not in known)
    targets = targets_in(sides[0][1])
    tags = {f">>{lang}<<" for lang in targets}
    models = [
        with_rule(in_order(model, [*texts, start], {start, *tags, *_control(model)}), RULES["identity"])
        for model, texts in sides
    ]
    if is_shared and models[0] == models[1]:
        models.pop()
    return Tokens(tuple(models), targets=targets)


def _control(model: bytes) -> list[str]:
    return [token.text for token in read_tokens(model) if token.kind == Kind.CONTROL]


def _vocabulary(file: Path, spm: Path) -> tuple[bytes, list[str]]:
    """Return a SentencePiece model and the tokens by id, which are the model's own or those of a file beside it."""
    is_spm = file.suffix == ".spm"
    try:
        content, model = file.read_bytes(), (file if is_spm else spm).read_bytes()
        if is_spm:
            return model, [token.text for token in read_tokens(model)]
        ids = yaml.load(content, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))  # to which all keys are texts
        by_id = {int(i): text for text, i in ids.items()}
        if not all(0 <= i < MAX_VOCABULARY for i in by_id):
            raise ValueError
    except OSError as error:
        wanted = "" if is_spm else f", with which {file.name} splits texts"
        raise UserError(f"cannot read {error.filename}{wanted}: {error.strerror}") from None
    except (ValueError, AttributeError, TypeError, yaml.YAMLError):
        raise UserError(f"{file} is not a vocabulary of Marian") from None
    return model, [by_id.get(i, f"<unused_{i}>") for i in range(max(by_id, default=0) + 1)]


def _architecture(path: Path, arrays: Arrays, options: Mapping[str, Any], tokenizer: Tokenizer) -> Architecture:
    """Return the architecture that options describe."""
    for name, meant in _STEPS.items():
        steps = str(options.get(f"transformer-{name}", meant))
        if steps.replace("d", "") != meant:  # dropout is for training
            # With pre-norm, Marian normalizes the queries of self-attention, but not its keys and values.
            raise UserError(
                f"transformer-{name} = {steps} cannot be imported, only {meant or 'none'}, with d or without"
            )
    activation = str(options.get("transformer-ffn-activation", "swish"))
    if activation not in _ACTIVATIONS:
        raise UserError(f"transformer-ffn-activation = {activation} cannot be imported")
    try:
        return Architecture(
            d_model=_array(path, arrays, _embeddings(options)[1]).shape[1],
            n_heads=options["transformer-heads"],
            d_ff=options["transformer-dim-ffn"],
            n_encoder_layers=options["enc-depth"],
            n_decoder_layers=options["dec-depth"],
            norm="post",
            activation=_ACTIVATIONS[activation],
            positions="marian",
            tie_embeddings=bool(options.get("tied-embeddings-all") or options.get("tied-embeddings")),
            output_bias=True,
            joint_vocab=_is_shared(options),
            src_vocab_size=tokenizer.src_vocab_size,
            tgt_vocab_size=tokenizer.tgt_vocab_size,
            special_ids=tokenizer.special_ids,
            max_length=_MAX_LENGTH,
        )
    except KeyError as error:
        raise UserError(f"the options in {path} lack {error.args[0]}") from None
    except ValidationError as error:
        raise UserError(f"{path}: {first_problem(error)}") from None


def _weights(path: Path, arrays: Arrays, options: Mapping[str, Any], architecture: Architecture) -> dict[str, Tensor]:
    """Return the weights by our names.

    Raises:
        UserError: one is missing, of another shape, or has no place in the architecture.
    """
    used = set()
    tensors = {}
    for ours, parameter in without_weights(architecture).named_parameters():
        names = _names(ours, arrays, options)
        used.update(names)
        if ours == "output.bias" and options.get("output-omit-bias"):
            tensor = torch.zeros(0)
        else:
            tensor = torch.cat([_tensor(_array(path, arrays, name), name) for name in names])
        if ours.endswith("embedding.weight") or ours.startswith("output."):
            tensor = _with_new_tokens(tensor, ours, architecture)
        if tensor.shape != parameter.shape:
            raise UserError(f"{path}: {names[0]} gives the shape {tuple(tensor.shape)}, not {tuple(parameter.shape)}")
        tensors[ours] = tensor.contiguous()
    if extra := sorted(name for name in arrays.keys() - used if not name.startswith("special:")):
        raise UserError(f"{path} contains {extra[0]}, which such a model does not have")
    return tensors


def _names(ours: str, arrays: Arrays, options: Mapping[str, Any]) -> list[str]:
    """Return the names of the arrays that one of our weights consists of."""
    kinds = {"weight": "scale", "bias": "bias"}
    if match := _LAYER.fullmatch(ours):
        stack, number, residual, module, kind = match.groups()
        place = f"{stack}_l{int(number) + 1}"
        if residual is not None:
            return [f"{place}_{_RESIDUALS[stack][int(residual)]}_ln_{kinds[kind]}"]
        return [f"{place}_{part.format('W' if kind == 'weight' else 'b')}" for part in _PARTS[module]]
    if ours == "output.bias":
        return ["decoder_ff_logit_out_b"]
    if ours == "output.weight":
        untransposed = "decoder_ff_logit_out_W"
        return [untransposed if untransposed in arrays else f"{untransposed}t"]
    return [_embeddings(options)[ours != "src_embedding.weight"]]


def _array(path: Path, arrays: Arrays, name: str) -> np.ndarray[Any, np.dtype[Any]]:
    if name not in arrays:
        raise UserError(f"{path} lacks {name}")
    if arrays[name].dtype.kind != "f" or arrays[name].ndim != 2:
        raise UserError(f"{path}: {name} is not a matrix of floating-point numbers; quantized models are not supported")
    return arrays[name]


def _tensor(array: np.ndarray[Any, np.dtype[Any]], name: str) -> Tensor:
    """Return an array as a weight of ours: Marian transposes matrices, but for those with a row for each token."""
    tensor = torch.from_numpy(array.astype(np.float32))
    if array.shape[0] == 1:
        return tensor.flatten()
    return tensor if name.endswith(("Wemb", "_Wt")) else tensor.T


def _with_new_tokens(tensor: Tensor, ours: str, architecture: Architecture) -> Tensor:
    """Add the tokens that Marian lacks: their embeddings are zero, as is the start of its decoder."""
    size = architecture.src_vocab_size if ours == "src_embedding.weight" else architecture.tgt_vocab_size
    value = torch.finfo(torch.float16).min if ours == "output.bias" else 0.0
    return torch.cat([tensor, tensor.new_full((max(0, size - len(tensor)), *tensor.shape[1:]), value)])
