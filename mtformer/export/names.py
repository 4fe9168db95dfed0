"""The names and the order of weights in Hugging Face's transformers; export and import both go by them."""

import torch
from torch import Tensor

_NAMES = (  # of our modules and theirs
    ("self_attention", "self_attn"),
    ("cross_attention", "encoder_attn"),
    ("feed_forward.linear1", "fc1"),
    ("feed_forward.linear2", "fc2"),
    ("encoder_layers", "encoder.layers"),
    ("decoder_layers", "decoder.layers"),
    ("encoder_norm", "encoder.layer_norm"),
    ("decoder_norm", "decoder.layer_norm"),
    ("encoder_input_norm", "encoder.layernorm_embedding"),
    ("decoder_input_norm", "decoder.layernorm_embedding"),
    ("src_positions", "encoder.embed_positions"),
    ("tgt_positions", "decoder.embed_positions"),
    ("src_embedding", "encoder.embed_tokens"),
    ("tgt_embedding", "decoder.embed_tokens"),
)
_NORMS = {"encoder": ("self_attn", "final"), "decoder": ("self_attn", "encoder_attn", "final")}


def names_in_transformers(name: str) -> list[str]:
    """Return the names of the tensors that one of our weights consists of: queries, keys and values are apart there."""
    if name.startswith("output."):
        return ["lm_head.weight" if name == "output.weight" else "final_logits_bias"]
    for number, norm in enumerate(_NORMS.get(name.split("_", 1)[0], ())):
        name = name.replace(f"residuals.{number}.norm", f"{norm}_layer_norm")
    for ours, theirs in _NAMES:
        name = name.replace(ours, theirs)
    parts = [f"{part}_proj" for part in "qkv"] if "qkv_proj" in name else ["qkv_proj"]
    return [f"model.{name.replace('qkv_proj', part)}" for part in parts]


def feature_dimension(name: str) -> int | None:
    """Return the dimension of a weight, by our name, that has the D features of the residual stream; None if none."""
    module, kind = name.split(".")[-2:]
    if module in ("qkv_proj", "linear1"):  # these read features, the others write them
        return 1 if kind == "weight" else None
    if module in ("src_embedding", "tgt_embedding", "src_positions", "tgt_positions", "output"):
        return 1 if kind == "weight" else None
    return 0


def sines_first(d_model: int) -> Tensor:
    """Return the places of our features in the order of transformers' sinusoids: those with sines, then cosines."""
    return torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])
