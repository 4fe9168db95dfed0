"""A model for CTranslate2, which translates faster than torch and needs none.

The specification is built layer by layer: ``TransformerSpec.from_config`` of CTranslate2 has no rotary positions.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ctranslate2.specs import transformer_spec
from ctranslate2.specs.common_spec import Activation
from ctranslate2.specs.model_spec import ACCEPTED_MODEL_TYPES
from torch import Tensor, nn

from mtformer.bundle import Bundle
from mtformer.errors import UserError
from mtformer.model.layers import GatedFeedForward
from mtformer.model.transformer import Transformer

_ACTIVATIONS = {"relu": Activation.RELU, "gelu": Activation.GELU, "swiglu": Activation.SWISH}
_N_POSITIONS = 4_096  # CTranslate2 adds positions from a table, which ends somewhere
_USE = """\
# {name}

A Transformer that translates {src_lang} to {tgt_lang}, converted from mtformer's `{bundle}` for
[CTranslate2](https://github.com/OpenNMT/CTranslate2), weights as {quantization}.

    import ctranslate2, sentencepiece

    source = sentencepiece.SentencePieceProcessor(model_file="{src_tokenizer}")
    target = sentencepiece.SentencePieceProcessor(model_file="{tgt_tokenizer}")
    translator = ctranslate2.Translator(".")
    tokens = source.encode("…", out_type=str) + ["</s>"]
    [result] = translator.translate_batch([tokens], beam_size={beam_size})
    print(target.decode(result.hypotheses[0]))

`mtformer.json` has the languages, the search settings and where the model comes from.
"""


def parse_quantization(given: str) -> str:
    """Return the type in which weights are to be stored; ``int8_float16`` keeps in float16 what int8 does not hold.

    Raises:
        UserError: CTranslate2 has no such type.
    """
    if given not in ACCEPTED_MODEL_TYPES:
        raise UserError(f"--quantization {given}: it is one of {', '.join(ACCEPTED_MODEL_TYPES)}")
    return given


def write_ctranslate2(folder: Path, bundle: Bundle, *, name: str, quantization: str) -> None:
    """Fill an empty ``folder`` with all that translating takes: model, vocabularies, tokenizers, settings and README.

    Args:
        folder: where to write.
        bundle: the model.
        name: the name of the bundle's file.
        quantization: the type of the stored weights.
    """
    spec = to_spec(bundle)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))
    header, tokenizer = bundle.header, bundle.tokenizer
    tokenizers = {"tokenizer.model": tokenizer.src_model}
    if tokenizer.tgt_model is not None:
        tokenizers = {"tokenizer.src.model": tokenizer.src_model, "tokenizer.tgt.model": tokenizer.tgt_model}
    for file, model in tokenizers.items():
        (folder / file).write_bytes(model)
    (folder / "mtformer.json").write_text(header.model_dump_json(indent=2) + "\n", encoding="utf-8")
    readme = _USE.format(
        name=f"{header.src_lang}-{header.tgt_lang}",
        bundle=name,
        src_lang=header.src_lang,
        tgt_lang=header.tgt_lang,
        quantization=quantization,
        src_tokenizer=min(tokenizers),
        tgt_tokenizer=max(tokenizers),
        beam_size=header.search.beam_size,
    )
    (folder / "README.md").write_text(readme, encoding="utf-8")


def to_spec(bundle: Bundle) -> transformer_spec.TransformerSpec:
    """Describe the model of ``bundle`` to CTranslate2, with its weights and vocabularies."""
    model, architecture = bundle.model, bundle.header.architecture
    options: dict[str, Any] = {
        "num_heads": architecture.n_heads,
        "pre_norm": architecture.norm == "pre",
        "activation": _ACTIVATIONS[architecture.activation],
        "ffn_glu": architecture.activation == "swiglu",
        "rms_norm": architecture.norm_type == "rmsnorm",
        "rotary_interleave": False,
    }
    if architecture.positions == "rotary":
        options["rotary_dim"] = architecture.d_model // architecture.n_heads
    encoder = transformer_spec.TransformerEncoderSpec(architecture.n_encoder_layers, **options)
    decoder = transformer_spec.TransformerDecoderSpec(architecture.n_decoder_layers, **options)
    _set_encoder(encoder, model)
    _set_decoder(decoder, model)
    for stack, positions in ((encoder, model.src_positions), (decoder, model.tgt_positions)):
        _set_positions(stack, positions, architecture.d_model, rotary=architecture.positions == "rotary")
    spec = transformer_spec.TransformerSpec(encoder, decoder)
    if architecture.norm_type == "rmsnorm":
        spec.config.layer_norm_epsilon = 1e-6
    spec.register_source_vocabulary(bundle.tokenizer.src_tokens(range(architecture.src_vocab_size)))
    spec.register_target_vocabulary(bundle.tokenizer.tgt_tokens(range(architecture.tgt_vocab_size)))
    return spec


def _set_encoder(spec: Any, model: Transformer) -> None:
    spec.embeddings[0].weight = _array(model.src_embedding.weight)
    for layer_spec, layer in zip(spec.layer, model.encoder_layers, strict=True):
        _set_self_attention(layer_spec.self_attention, layer.self_attention)
        _set_feed_forward(layer_spec.ffn, layer.feed_forward)
        _set_residuals([layer_spec.self_attention, layer_spec.ffn], layer.residuals)
    _set_final_norm(spec, model.encoder_norm)


def _set_decoder(spec: Any, model: Transformer) -> None:
    spec.embeddings.weight = _array(model.tgt_embedding.weight)
    spec.projection.weight = _array(model.output.weight)
    for layer_spec, layer in zip(spec.layer, model.decoder_layers, strict=True):
        _set_self_attention(layer_spec.self_attention, layer.self_attention)
        _set_cross_attention(layer_spec.attention, layer.cross_attention)
        _set_feed_forward(layer_spec.ffn, layer.feed_forward)
        _set_residuals([layer_spec.self_attention, layer_spec.attention, layer_spec.ffn], layer.residuals)
    _set_final_norm(spec, model.decoder_norm)


def _set_positions(spec: Any, positions: nn.Module, d_model: int, *, rotary: bool) -> None:
    """Store a table of encodings; where there is none, CTranslate2 would compute sinusoids."""
    if rotary:
        vars(spec).pop("position_encodings", None)
        return
    table = positions(0, _N_POSITIONS)
    no_table = np.zeros((_N_POSITIONS, d_model), dtype=np.float32)
    spec.position_encodings.encodings = _array(table) if isinstance(table, Tensor) else no_table


def _set_self_attention(spec: Any, attention: Any) -> None:
    _set_linear(spec.linear[0], attention.qkv_proj.weight, attention.qkv_proj.bias)
    _set_linear(spec.linear[1], attention.out_proj.weight, attention.out_proj.bias)


def _set_cross_attention(spec: Any, attention: Any) -> None:
    d = attention.d_model
    weight, bias = attention.qkv_proj.weight, attention.qkv_proj.bias
    _set_linear(spec.linear[0], weight[:d], bias[:d])  # W^Q
    _set_linear(spec.linear[1], weight[d:], bias[d:])  # W^K and W^V
    _set_linear(spec.linear[2], attention.out_proj.weight, attention.out_proj.bias)


def _set_feed_forward(spec: Any, network: Any) -> None:
    weight, bias = network.linear1.weight, network.linear1.bias
    if isinstance(network, GatedFeedForward):
        gate, value = zip(weight.chunk(2), bias.chunk(2), strict=True)
        _set_linear(spec.linear_0, *gate)
        _set_linear(spec.linear_0_noact, *value)
    else:
        _set_linear(spec.linear_0, weight, bias)
    _set_linear(spec.linear_1, network.linear2.weight, network.linear2.bias)


def _set_residuals(specs: Sequence[Any], residuals: Any) -> None:
    for spec, residual in zip(specs, residuals, strict=True):
        _set_norm(spec.layer_norm, residual.norm)


def _set_final_norm(spec: Any, norm: nn.Module) -> None:
    if not isinstance(norm, nn.Identity):
        _set_norm(spec.layer_norm, norm)


def _set_norm(spec: Any, norm: Any) -> None:
    spec.gamma = _array(norm.weight)
    if isinstance(norm, nn.LayerNorm):
        spec.beta = _array(norm.bias)


def _set_linear(spec: Any, weight: Tensor, bias: Tensor) -> None:
    spec.weight, spec.bias = _array(weight), _array(bias)


def _array(tensor: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    return tensor.detach().to("cpu", torch.float32).numpy()
