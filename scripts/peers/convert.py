"""Convert a bundle of mtformer to another toolkit's checkpoint, so that bench_translate.py compares the same weights.

usage: convert.py joeynmt|opennmt|marian BUNDLE FOLDER

Models with pre-norm, LayerNorm, ReLU, sinusoidal positions and one tied vocabulary can be converted. JoeyNMT and
OpenNMT-py then compute the same function. Marian cannot: its sinusoids have other frequencies, and its decoder starts
from zeros where ours starts from the embedding of BOS. Its model has the same shape but never predicts EOS: each
translation ends at the length limit, so that its speed can be compared.
"""

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import Tensor

from mtformer.bundle.format import Bundle, load_bundle
from mtformer.model.architecture import SPECIAL_IDS, Architecture
from mtformer.model.positions import sinusoidal_table
from mtformer.support.errors import UserError

N_POSITIONS = 5_000  # of the tables of JoeyNMT and OpenNMT-py
NEVER = -1e8  # added to a logit

Array = np.ndarray[Any, np.dtype[Any]]


def require_convertible(architecture: Architecture) -> None:
    """Check that the toolkits have the parts of the model.

    Raises:
        UserError: they lack some; the message names all of them.
    """
    wanted = {
        "norm": "pre",
        "activation": "relu",
        "positions": "sinusoidal",
        "tie_embeddings": True,
        "joint_vocab": True,
    }
    wrong = [f"{key} = {found}" for key, want in wanted.items() if (found := getattr(architecture, key)) != want]
    if wrong:
        raise UserError(f"the model cannot be converted because of {', '.join(wrong)}")


def layers(model: Any) -> list[tuple[str, int, str, str, Tensor, Tensor]]:
    """Take the layers apart: (stack, number, block, part, weight, bias) of each linear layer and normalization.

    Blocks are ``self``, ``cross`` and ``ffn``. The parts of an attention are ``norm``, ``q``, ``k``, ``v`` and ``out``,
    those of a feed-forward network ``norm``, ``1`` and ``2``.
    """
    found = []
    for stack in ("encoder", "decoder"):
        blocks = ("self", "ffn") if stack == "encoder" else ("self", "cross", "ffn")
        for number, layer in enumerate(getattr(model, f"{stack}_layers")):
            for block, residual in zip(blocks, layer.residuals, strict=True):
                parts = {"norm": (residual.norm.weight, residual.norm.bias)}
                if block == "ffn":
                    network = layer.feed_forward
                    parts |= {str(i): (m.weight, m.bias) for i, m in enumerate((network.linear1, network.linear2), 1)}
                else:
                    attention = layer.self_attention if block == "self" else layer.cross_attention
                    weights, biases = attention.qkv_proj.weight.chunk(3), attention.qkv_proj.bias.chunk(3)
                    parts |= dict(zip("qkv", zip(weights, biases, strict=True), strict=True))
                    parts["out"] = (attention.out_proj.weight, attention.out_proj.bias)
                found += [(stack, number, block, part, *tensors) for part, tensors in parts.items()]
    return found


def joeynmt_state(model: Any) -> dict[str, Tensor]:
    """Return the weights by the names of JoeyNMT 2.3, whose vocabulary starts with UNK and PAD."""
    modules = {
        ("encoder", "self"): "src_src_att",
        ("decoder", "self"): "trg_trg_att",
        ("decoder", "cross"): "src_trg_att",
        ("encoder", "self", "norm"): "layer_norm",
        ("decoder", "self", "norm"): "x_layer_norm",
        ("decoder", "cross", "norm"): "dec_layer_norm",
    }
    ffn = {"norm": "feed_forward.layer_norm", "1": "feed_forward.pwff_layer.0", "2": "feed_forward.pwff_layer.3"}
    state: dict[str, Tensor] = {}
    for stack, number, block, part, weight, bias in layers(model):
        if block == "ffn":
            name = ffn[part]
        elif part == "norm":
            name = modules[stack, block, part]
        else:
            name = f"{modules[stack, block]}.{'output' if part == 'out' else part}_layer"
        state |= {f"{stack}.layers.{number}.{name}.weight": weight, f"{stack}.layers.{number}.{name}.bias": bias}
    for stack in ("encoder", "decoder"):
        norm = getattr(model, f"{stack}_norm")
        state |= {f"{stack}.layer_norm.weight": norm.weight, f"{stack}.layer_norm.bias": norm.bias}
        state[f"{stack}.pe.pe"] = sinusoidal_table(N_POSITIONS, model.d_model)[None]
    embedding = model.tgt_embedding.weight
    embedding = torch.cat([embedding[[SPECIAL_IDS.unk, SPECIAL_IDS.pad]], embedding[2:]])
    tied = ("src_embed.lut.weight", "trg_embed.lut.weight", "decoder.output_layer.weight")
    return state | dict.fromkeys(tied, embedding)


def opennmt_state(model: Any) -> dict[str, Tensor]:
    """Return the weights by the names of OpenNMT-py 3.5."""
    lists = {"encoder": "transformer", "decoder": "transformer_layers"}
    norms = {"encoder": {"self": "layer_norm"}, "decoder": {"self": "layer_norm_1", "cross": "layer_norm_2"}}
    attentions = {"self": "self_attn", "cross": "context_attn"}
    linears = {"q": "linear_query", "k": "linear_keys", "v": "linear_values", "out": "final_linear"}
    state: dict[str, Tensor] = {}
    for stack, number, block, part, weight, bias in layers(model):
        if block == "ffn":
            name = "feed_forward.layer_norm" if part == "norm" else f"feed_forward.w_{part}"
        else:
            name = norms[stack][block] if part == "norm" else f"{attentions[block]}.{linears[part]}"
        place = f"{stack}.{lists[stack]}.{number}.{name}"
        state |= {f"{place}.weight": weight, f"{place}.bias": bias}
    for stack in ("encoder", "decoder"):
        norm, embeddings = getattr(model, f"{stack}_norm"), f"{stack}.embeddings.make_embedding"
        state |= {f"{stack}.layer_norm.weight": norm.weight, f"{stack}.layer_norm.bias": norm.bias}
        state[f"{embeddings}.emb_luts.0.weight"] = model.tgt_embedding.weight
        state[f"{embeddings}.pe.pe"] = sinusoidal_table(N_POSITIONS, model.d_model)[:, None]
    embedding = model.tgt_embedding.weight
    return state | {"generator.weight": embedding, "generator.bias": torch.zeros(len(embedding))}


def marian_state(model: Any) -> dict[str, Array]:
    """Return the weights by the names of Marian 1.12, whose matrices are transposed and whose vectors are rows."""
    blocks = {"self": "self", "cross": "context", "ffn": "ffn"}
    arrays: dict[str, Array] = {}
    for stack, number, block, part, weight, bias in layers(model):
        place = f"{stack}_l{number + 1}_{blocks[block]}_"
        if part == "norm":
            norm = place + ("ffn" if block == "ffn" else "Wo")
            arrays |= {f"{norm}_ln_scale_pre": _row(weight), f"{norm}_ln_bias_pre": _row(bias)}
        else:
            letter = "o" if part == "out" else part
            arrays |= {f"{place}W{letter}": weight.detach().T.contiguous().numpy(), f"{place}b{letter}": _row(bias)}
    for stack in ("encoder", "decoder"):
        norm = getattr(model, f"{stack}_norm")
        arrays |= {f"{stack}_top_ln_scale": _row(norm.weight), f"{stack}_top_ln_bias": _row(norm.bias)}
    embedding = model.tgt_embedding.weight.detach()
    logits = torch.zeros(len(embedding))
    logits[SPECIAL_IDS.eos] = NEVER
    return arrays | {"Wemb": embedding.numpy(), "decoder_ff_logit_out_b": _row(logits)}


def _row(vector: Tensor) -> Array:
    return vector.detach()[None].numpy()


def write_joeynmt(folder: Path, bundle: Bundle) -> None:
    """Write a checkpoint, its config, vocabulary and tokenizer."""
    architecture = bundle.header.architecture
    symbols = {"unk": "<unk>", "pad": "<pad>", "bos": "<s>", "eos": "</s>"}
    special = {f"{name}_id": i for i, name in enumerate(symbols)} | {f"{name}_token": t for name, t in symbols.items()}
    side = {"level": "word", "max_length": 1_000, "voc_file": "vocab.txt"}
    stack = {
        "type": "transformer",
        "num_heads": architecture.n_heads,
        "hidden_size": architecture.d_model,
        "ff_size": architecture.d_ff,
        "layer_norm": "pre",
        "embeddings": {"embedding_dim": architecture.d_model, "scale": True},
    }
    config = {
        "name": "bench",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder),
        "use_cuda": False,
        "data": {
            "test": "unused",  # a path must be there
            "src": {"lang": "src", **side},
            "trg": {"lang": "trg", **side},
            "special_symbols": special,
        },
        "testing": {"load_model": "model.ckpt"},
        "training": {"batch_size": 1},  # must be there
        "model": {
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": stack | {"num_layers": architecture.n_encoder_layers},
            "decoder": stack | {"num_layers": architecture.n_decoder_layers},
        },
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    torch.save({"model_state": _plain(joeynmt_state(bundle.model))}, folder / "model.ckpt")
    tokens = bundle.tokenizer.src_tokens(range(architecture.src_vocab_size))
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")


def write_opennmt(folder: Path, bundle: Bundle) -> None:
    """Write a checkpoint with its options and vocabulary, and the tokenizer."""
    architecture = bundle.header.architecture
    d_model = architecture.d_model
    options = Namespace(
        model_task="seq2seq",
        encoder_type="transformer",
        decoder_type="transformer",
        enc_layers=architecture.n_encoder_layers,
        dec_layers=architecture.n_decoder_layers,
        heads=architecture.n_heads,
        hidden_size=d_model,
        enc_hid_size=d_model,
        dec_hid_size=d_model,
        word_vec_size=d_model,
        src_word_vec_size=d_model,
        tgt_word_vec_size=d_model,
        transformer_ff=architecture.d_ff,
        position_encoding=True,
        share_vocab=True,
        share_embeddings=True,
        share_decoder_embeddings=True,
        add_qkvbias=True,
        add_ffnbias=True,
        norm_eps=1e-5,
        optim="adam",
        freeze_word_vecs_enc=False,
        freeze_word_vecs_dec=False,
        dropout=[0.0],
        attention_dropout=[0.0],
    )
    tokens = bundle.tokenizer.src_tokens(range(architecture.src_vocab_size))
    tokens[SPECIAL_IDS.pad] = "<blank>"
    state = _plain(opennmt_state(bundle.model))
    generator = {name: state.pop(f"generator.{name}") for name in ("weight", "bias")}
    checkpoint = {
        "model": state,
        "generator": generator,
        "vocab": {"src": tokens, "tgt": tokens, "data_task": "seq2seq", "decoder_start_token": "<s>"},
        "opt": options,
    }
    torch.save(checkpoint, folder / "model.pt")


def write_marian(folder: Path, bundle: Bundle) -> None:
    """Write a model, with the options that Marian reads from it, and the tokenizer."""
    architecture = bundle.header.architecture
    config = {
        "type": "transformer",
        "version": "v1.12.0",
        "enc-depth": architecture.n_encoder_layers,
        "dec-depth": architecture.n_decoder_layers,
        "dim-emb": architecture.d_model,
        "dim-vocabs": [architecture.src_vocab_size, architecture.tgt_vocab_size],
        "transformer-heads": architecture.n_heads,
        "transformer-dim-ffn": architecture.d_ff,
        "transformer-ffn-depth": 2,
        "transformer-ffn-activation": "relu",
        "transformer-preprocess": "n",
        "transformer-postprocess": "da",
        "transformer-postprocess-emb": "d",
        "transformer-postprocess-top": "n",
        "transformer-decoder-autoreg": "self-attention",
        "transformer-no-projection": False,
        "tied-embeddings-all": True,
        "skip": False,
        "layer-normalization": False,
        "right-left": False,
        "input-types": [],
    }
    text = np.frombuffer(yaml.safe_dump(config).encode() + b"\0", dtype=np.int8)
    arrays: dict[str, Any] = {**marian_state(bundle.model), "special:model.yml": text}
    np.savez(folder / "model.npz", **arrays)


def _plain(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copy the tensors: a view would be stored with all of the tensor that it is a part of."""
    return {name: tensor.detach().clone() for name, tensor in state.items()}


WRITERS = {"joeynmt": write_joeynmt, "opennmt": write_opennmt, "marian": write_marian}


def main() -> None:
    """Write the folder."""
    if len(sys.argv) != 4 or sys.argv[1] not in WRITERS:
        sys.exit(__doc__)
    toolkit, path, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    try:
        bundle = load_bundle(path)
        require_convertible(bundle.header.architecture)
    except UserError as error:
        sys.exit(f"convert.py: {error}")
    folder.mkdir(parents=True)
    (folder / "tokenizer.spm").write_bytes(bundle.tokenizer.src_model)
    WRITERS[toolkit](folder, bundle)


if __name__ == "__main__":
    main()
