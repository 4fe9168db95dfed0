"""Models of Marian compute here what they compute there."""

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from conftest import sentence_pairs
from sentencepiece import SentencePieceTrainer

from mtformer.bundle.format import load_bundle
from mtformer.config import LanguagePair
from mtformer.export.importing import read_model, write_model
from mtformer.model.architecture import Architecture, SpecialIds
from mtformer.model.transformer import Transformer
from mtformer.support.errors import UserError

PAIR = LanguagePair("en", "de")
OPTIONS: dict[str, Any] = {
    "type": "transformer",
    "enc-depth": 1,
    "dec-depth": 2,
    "transformer-heads": 2,
    "transformer-dim-ffn": 24,
    "transformer-ffn-depth": 2,
    "transformer-ffn-activation": "swish",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": "",
    "transformer-tied-layers": [],
    "tied-embeddings": False,
    "tied-embeddings-src": False,
    "tied-embeddings-all": True,
    "input-types": [],
}
KINDS: dict[str, dict[str, Any]] = {
    "usual": {},
    "relu": {"transformer-ffn-activation": "relu", "tied-embeddings-all": False, "tied-embeddings-src": True},
    "two-vocabularies": {"tied-embeddings-all": False, "tied-embeddings": True},
    "untied": {"tied-embeddings-all": False},
}
Arrays = dict[str, np.ndarray[Any, Any]]


def train_vocabulary(path: Path, vocab_size: int) -> int:
    """Train a SentencePiece model with Marian's settings; return its size."""
    model = io.BytesIO()
    texts = (text for pair in sentence_pairs(300) for text in pair)
    ids: dict[str, Any] = {"bos_id": -1, "eos_id": 0, "unk_id": 1, "pad_id": -1}
    SentencePieceTrainer.train(sentence_iterator=texts, model_writer=model, vocab_size=vocab_size, minloglevel=2, **ids)
    path.write_bytes(model.getvalue())
    return vocab_size


def reference(options: dict[str, Any], sizes: tuple[int, int]) -> Transformer:
    """A model of ours with random weights, whose last token is Marian's start: zeros, and never predicted."""
    is_shared = options["tied-embeddings-all"] or options["tied-embeddings-src"]
    start = max(sizes)
    model = Transformer(
        Architecture(
            d_model=16,
            n_heads=2,
            d_ff=24,
            n_encoder_layers=1,
            n_decoder_layers=2,
            norm="post",
            activation="relu" if options["transformer-ffn-activation"] == "relu" else "silu",
            positions="marian",
            tie_embeddings=options["tied-embeddings-all"] or options["tied-embeddings"],
            output_bias=True,
            joint_vocab=is_shared,
            src_vocab_size=start + 1,
            tgt_vocab_size=start + 1,
            special_ids=SpecialIds(pad=start, unk=1, bos=start, eos=0, start=start),
            max_length=512,
        )
    )
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 3)
        if options["tied-embeddings-src"]:
            model.src_embedding.weight.copy_(model.tgt_embedding.weight)
        for weight, size in zip((model.src_embedding.weight, model.tgt_embedding.weight), sizes, strict=True):
            weight[size:] = 0
        model.output.weight[sizes[1] :] = 0
        model.output.bias[sizes[1] :] = torch.finfo(torch.float16).min
    return model.eval()


def in_marian(model: Transformer, options: dict[str, Any], sizes: tuple[int, int]) -> Arrays:
    """The weights of a model by the names of Marian, whose matrices are transposed and whose vectors are rows."""
    tensors: dict[str, torch.Tensor] = {"decoder_ff_logit_out_b": model.output.bias[: sizes[1]]}

    def linear(place: str, part: str, weight: torch.Tensor, bias: torch.Tensor) -> None:
        tensors[f"{place}_W{part}"], tensors[f"{place}_b{part}"] = weight.T, bias

    def norm(name: str, module: Any) -> None:
        tensors[f"{name}_ln_scale"], tensors[f"{name}_ln_bias"] = module.weight, module.bias

    for stack in ("encoder", "decoder"):
        for number, layer in enumerate(getattr(model, f"{stack}_layers"), 1):
            blocks = {"self": layer.self_attention}
            if stack == "decoder":
                blocks["context"] = layer.cross_attention
            for name, attention in blocks.items():
                place = f"{stack}_l{number}_{name}"
                for part, weight, bias in zip(
                    "qkv", attention.qkv_proj.weight.chunk(3), attention.qkv_proj.bias.chunk(3), strict=True
                ):
                    linear(place, part, weight, bias)
                linear(place, "o", attention.out_proj.weight, attention.out_proj.bias)
            place = f"{stack}_l{number}_ffn"
            first, second = layer.feed_forward.linear1, layer.feed_forward.linear2
            linear(place, "1", first.weight, first.bias)
            linear(place, "2", second.weight, second.bias)
            for name, residual in zip([*(f"{name}_Wo" for name in blocks), "ffn_ffn"], layer.residuals, strict=True):
                norm(f"{stack}_l{number}_{name}", residual.norm)
    arrays = {name: np.atleast_2d(tensor.detach().numpy()) for name, tensor in tensors.items()}
    embeddings = {
        "encoder_Wemb": model.src_embedding.weight[: sizes[0]],
        "decoder_Wemb": model.tgt_embedding.weight[: sizes[1]],
    }
    if options["tied-embeddings-all"] or options["tied-embeddings-src"]:
        embeddings = {"Wemb": embeddings["decoder_Wemb"]}
    if not (options["tied-embeddings-all"] or options["tied-embeddings"]):
        embeddings["decoder_ff_logit_out_Wt"] = model.output.weight[: sizes[1]]
    return arrays | {name: weight.detach().numpy() for name, weight in embeddings.items()}


def write_npz(path: Path, arrays: Arrays, options: dict[str, Any]) -> None:
    described = np.frombuffer(yaml.safe_dump(options).encode() + b"\0", dtype=np.int8)
    np.savez(path, **{**arrays, "special:model.yml": described})  # type: ignore[arg-type]


def write_theirs(folder: Path, given: dict[str, Any]) -> Transformer:
    """Write a model, and the settings that name its vocabularies; return what it computes."""
    options = OPTIONS | given
    is_shared = options["tied-embeddings-all"] or options["tied-embeddings-src"]
    names = ["vocab.spm"] * 2 if is_shared else ["src.spm", "tgt.spm"]
    sizes = (train_vocabulary(folder / names[0], 65), train_vocabulary(folder / names[1], 65 if is_shared else 60))
    model = reference(options, sizes)
    write_npz(folder / "model.npz", in_marian(model, options, sizes), options)
    settings = {"vocabs": [f"elsewhere/{name}" for name in names], "beam-size": 6, "normalize": 0.5}
    (folder / "model.npz.decoder.yml").write_text(yaml.safe_dump(settings))
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_the_same(kind: str, tmp_path: Path) -> None:
    theirs = write_theirs(tmp_path, KINDS[kind])
    write_model(read_model(str(tmp_path / "model.npz"), PAIR), tmp_path)
    bundle = load_bundle(tmp_path / "model.safetensors")
    assert bundle.header.architecture == theirs.architecture
    assert bundle.header.search.beam_size == 6
    assert bundle.header.search.length_penalty == 0.5
    assert bundle.header.provenance["imported_from"] == "model.npz"
    start = theirs.architecture.special_ids.start
    src, tgt_in = torch.randint(2, 60, (2, 9)), torch.randint(2, 60, (2, 7))
    tgt_in[:, 0] = start
    mask = torch.ones_like(src, dtype=torch.bool)
    with torch.inference_mode():
        expected = theirs.project(theirs(src, mask, tgt_in))
        ours = bundle.model.project(bundle.model(src, mask, tgt_in))
    assert torch.allclose(ours, expected, atol=1e-4, rtol=1e-5)
    text = "the old dog sees a cat"
    assert bundle.tokenizer.encode_src([text])[0][-1] == 0
    assert bundle.tokenizer.decode(bundle.tokenizer.encode_tgt([text])[0]) == text


def test_ids_are_those_of_a_vocabulary_beside_the_sentencepiece_models(tmp_path: Path) -> None:
    write_theirs(tmp_path, {})
    ours = load(read_model(str(tmp_path / "model.npz"), PAIR), tmp_path)
    tokens = ours.tokenizer.src_tokens(range(65))
    for name in ("source.spm", "target.spm"):
        (tmp_path / name).write_bytes((tmp_path / "vocab.spm").read_bytes())
    order = [0, 1, *range(64, 1, -1)]
    vocabulary = {tokens[i]: number for number, i in enumerate(order)}
    (tmp_path / "both.yml").write_text(yaml.safe_dump(vocabulary, allow_unicode=True), encoding="utf-8")
    other = load(read_model(str(tmp_path / "model.npz"), PAIR, vocabularies=[tmp_path / "both.yml"]), tmp_path)
    text = "the old dog sees a cat"
    [ids], [expected] = other.tokenizer.encode_src([text]), ours.tokenizer.encode_src([text])
    assert [order[i] for i in ids] == expected


def load(imported: Any, folder: Path) -> Any:
    write_model(imported, folder)
    return load_bundle(folder / "model.safetensors")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"type": "amun"}, "type = amun cannot be imported, only transformer"),
        ({"transformer-decoder-autoreg": "rnn"}, "transformer-decoder-autoreg = rnn cannot be imported"),
        ({"transformer-tied-layers": [1, 1]}, "transformer-tied-layers = [1, 1] cannot be imported, only none"),
        (
            {"transformer-postprocess": "dhn"},
            "transformer-postprocess = dhn cannot be imported, only an, with d or without",
        ),
        ({"transformer-preprocess": "n"}, "transformer-preprocess = n cannot be imported, only none"),
        ({"transformer-ffn-activation": "prelu"}, "transformer-ffn-activation = prelu"),
        ({"transformer-heads": 3}, "model.npz: n_heads = 3 does not divide d_model = 16"),
        ({"transformer-dim-ffn": 32}, "encoder_l1_ffn_W1 gives the shape (24, 16), not (32, 16)"),
        ({"dec-depth": 3}, "lacks decoder_l3_self_Wq"),
        ({"dec-depth": 1}, "contains decoder_l2_context_Wk, which such a model does not have"),
    ],
)
def test_other_options_are_refused_by_name(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_theirs(tmp_path, {})
    with np.load(tmp_path / "model.npz") as file:
        arrays = {name: file[name] for name in file.files if not name.startswith("special:")}
    write_npz(tmp_path / "model.npz", arrays, OPTIONS | given)
    with pytest.raises(UserError) as raised:
        read_model(str(tmp_path / "model.npz"), PAIR)
    assert message in str(raised.value)


def cut(folder: Path) -> None:
    path = folder / "model.npz"
    path.write_bytes(path.read_bytes()[:5_000])


def name_vocabulary(folder: Path, text: str) -> None:
    """Give the model a vocabulary that says the ids of SentencePiece's tokens."""
    (folder / "vocab.yml").write_text(text)
    shutil.copy(folder / "vocab.spm", folder / "source.spm")
    (folder / "model.npz.decoder.yml").write_text(yaml.safe_dump({"vocabs": ["vocab.yml"]}))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "model.npz is damaged or no model of Marian: it is not an archive of arrays": cut,
    "there is no file": lambda folder: (folder / "model.npz").unlink(),
    "the vocabulary elsewhere/vocab.spm of": lambda folder: (folder / "vocab.spm").unlink(),
    "vocab.spm is of another model: it has 60 tokens, not 65": lambda folder: train_vocabulary(
        folder / "vocab.spm", 60
    ),
    "vocab.spm is not a vocabulary of Marian": lambda folder: (folder / "vocab.spm").write_bytes(b"\x0a\xff"),
    "vocab.yml is not a vocabulary of Marian": lambda folder: name_vocabulary(folder, "a: 99999999999"),
    "model.npz.decoder.yml contains no options": lambda folder: (folder / "model.npz.decoder.yml").write_text(
        "version: 2024-13-01"
    ),
    "lacks special:model.yml": lambda folder: np.savez(folder / "model.npz", Wemb=np.zeros((2, 2))),
    "nothing says which languages": lambda folder: None,
}


@pytest.mark.parametrize("message", DAMAGES)
def test_damaged_and_missing_files_are_named(message: str, tmp_path: Path) -> None:
    write_theirs(tmp_path, {})
    DAMAGES[message](tmp_path)
    with pytest.raises(UserError) as raised:
        read_model(str(tmp_path / "model.npz"), None)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
