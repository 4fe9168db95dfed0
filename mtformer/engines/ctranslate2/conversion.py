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

from mtformer.bundle.format import Bundle
from mtformer.bundle.header import AlignmentHead, Header
from mtformer.engines.ctranslate2.folder import (
    VOCABULARY_MAP,
    describe_slots,
    describe_tags,
    write_settings,
    write_tokenizer,
)
from mtformer.model.architecture import ACTIVATIONS, POSITIONS, Architecture
from mtformer.model.transformer import Transformer
from mtformer.search.engine import EngineError
from mtformer.support.errors import UserError

_LEAST_POSITIONS = 4_096  # CTranslate2 adds positions from a table, which ends somewhere
_USE = """\
# {name}

A Transformer that translates {languages}, converted from mtformer's `{bundle}` for
[CTranslate2](https://github.com/OpenNMT/CTranslate2), weights as {quantization}. With mtformer:

```
mtformer translate "…"{to} --model .
```

Without it:

    import ctranslate2, sentencepiece

    source = sentencepiece.SentencePieceProcessor(model_file="{src_tokenizer}")
    target = sentencepiece.SentencePieceProcessor(model_file="{tgt_tokenizer}")
    translator = ctranslate2.Translator(".")
    tokens = {tag}source.encode("…", out_type=str) + ["</s>"]
    [result] = translator.translate_batch([tokens], beam_size={beam_size}, patience=1.5{target_prefix})
    print(target.decode(result.hypotheses[0]{without_prefix}))
{normalization}
The model knows texts of up to {max_length} tokens, `</s>` included; mtformer splits longer ones. CTranslate2 ranks
hypotheses by a length penalty of its own, so its beam search may choose another one than mtformer does.{use_map}

{notes}`mtformer.json` has the languages, the search settings, where the model comes from, and digests of the others.
"""
_NORMALIZE = """
The model was trained on text in {form}: call `unicodedata.normalize("{form}", text)` first.
"""
_USE_MAP = """

`vmap.txt` says which target tokens may translate which source tokens; `translate_batch(…, use_vmap=True)` is faster
with it. A text with a token that has no line in it needs the whole vocabulary: `use_vmap=False`."""


def parse_quantization(given: str) -> str:
    """Return the type to store weights in; ``int8_float16`` keeps those in float16 that int8 cannot hold.

    Raises:
        UserError: CTranslate2 has no such type.
    """
    if given not in ACCEPTED_MODEL_TYPES:
        raise UserError(f"--quantization {given}: it is one of {', '.join(ACCEPTED_MODEL_TYPES)}")
    return given


def write_ctranslate2(
    folder: Path, bundle: Bundle, *, name: str, quantization: str, vocabulary_map: str | None = None
) -> None:
    """Fill an empty ``folder`` with all that translating takes: model, vocabularies, tokenizers, settings and README.

    Args:
        folder: where to write.
        bundle: the model.
        name: the name of the bundle's file.
        quantization: the type of the stored weights.
        vocabulary_map: the text of a vocabulary map; see :mod:`mtformer.engines.ctranslate2.vocabulary_map`.
    """
    spec = to_spec(bundle)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))
    header = bundle.header
    src_tokenizer, tgt_tokenizer = write_tokenizer(folder, bundle.tokenizer)
    if vocabulary_map is not None:
        (folder / VOCABULARY_MAP).write_text(vocabulary_map, encoding="utf-8", newline="\n")
    forced = list(header.prefix_tokens(header.language_pairs[0]).tgt)
    readme = _USE.format(
        name=header.title,
        bundle=name,
        languages=header.title if header.directions else f"{header.src_lang} to {header.tgt_lang}",
        to=f" --to {header.language_pairs[0].tgt_lang}" * bool(header.directions),
        notes=describe_slots(bundle.tokenizer) + describe_tags(header),
        tag="".join(f'["{tag}"] + ' for tag in header.target_tags[:1]),
        target_prefix=f", target_prefix=[{forced}]" * bool(forced),
        without_prefix=f"[{len(forced)}:]" * bool(forced),
        quantization=quantization,
        src_tokenizer=src_tokenizer,
        tgt_tokenizer=tgt_tokenizer,
        beam_size=header.search.beam_size,
        max_length=header.architecture.max_length,
        normalization=_NORMALIZE.format(form=header.normalization.upper()) * (header.normalization != "identity"),
        use_map="" if vocabulary_map is None else _USE_MAP,
    )
    write_settings(
        folder, header, digest=bundle.digest, quantization=quantization, n_positions=_n_positions(bundle.header)
    )
    (folder / "README.md").write_text(readme, encoding="utf-8")


def _n_positions(header: Header) -> int | None:
    """Return the positions that the longest source and the longest translation of it need; None for rotary ones."""
    if POSITIONS[header.architecture.positions].is_rotary:
        return None
    return max(_LEAST_POSITIONS, header.architecture.max_length, header.longest_translation + 1)


def to_spec(bundle: Bundle) -> transformer_spec.TransformerSpec:
    """Describe the model of ``bundle`` to CTranslate2, with its weights and vocabularies.

    Raises:
        EngineError: CTranslate2 cannot compute it.
    """
    model, architecture = bundle.model, bundle.header.architecture
    options = _layer_options(architecture)
    aligning = bundle.header.alignment_group
    encoder = transformer_spec.TransformerEncoderSpec(architecture.n_encoder_layers, **options)
    decoder = transformer_spec.TransformerDecoderSpec(
        architecture.n_decoder_layers, alignment_layer=aligning[0].layer, alignment_heads=len(aligning), **options
    )
    _set_encoder(encoder, model)
    _set_decoder(decoder, model, aligning)
    for stack, positions in ((encoder, model.src_positions), (decoder, model.tgt_positions)):
        _set_positions(stack, positions, architecture.d_model, _n_positions(bundle.header))
    spec = transformer_spec.TransformerSpec(encoder, decoder)
    spec.config.layer_norm_epsilon = 1e-5  # of nn.LayerNorm
    [spec.config.decoder_start_token] = bundle.tokenizer.tgt_tokens([architecture.special_ids.start])
    spec.register_source_vocabulary(bundle.tokenizer.src_tokens(range(architecture.src_vocab_size)))
    spec.register_target_vocabulary(bundle.tokenizer.tgt_tokens(range(architecture.tgt_vocab_size)))
    return spec


def _layer_options(architecture: Architecture) -> dict[str, Any]:
    """Return the options of CTranslate2's layers.

    Raises:
        EngineError: it has no such layers.
    """
    activation = ACTIVATIONS[architecture.activation].ctranslate2
    if activation is None:
        raise EngineError(f"CTranslate2 cannot compute this model, because of feed_forward = {architecture.activation}")
    options = {
        "num_heads": architecture.n_heads,
        "pre_norm": architecture.norm == "pre",
        "activation": Activation[activation],
        "rotary_interleave": False,
        "layernorm_embedding": architecture.embedding_norm,
    }
    if POSITIONS[architecture.positions].is_rotary:
        options["rotary_dim"] = architecture.d_head
    return options


def _set_encoder(spec: Any, model: Transformer) -> None:
    spec.embeddings[0].weight = _array(model.src_embedding.weight)
    for layer_spec, layer in zip(spec.layer, model.encoder_layers, strict=True):
        _set_self_attention(layer_spec.self_attention, layer.self_attention)
        _set_feed_forward(layer_spec.ffn, layer.feed_forward)
        _set_residuals([layer_spec.self_attention, layer_spec.ffn], layer.residuals)
    _set_norm_if_any(spec, "layer_norm", model.encoder_norm)
    _set_norm_if_any(spec, "layernorm_embedding", model.encoder_input_norm)


def _set_decoder(spec: Any, model: Transformer, aligning: Sequence[AlignmentHead]) -> None:
    spec.embeddings.weight = _array(model.tgt_embedding.weight)
    _set_linear(spec.projection, model.output.weight, model.output.bias)
    for number, (layer_spec, layer) in enumerate(zip(spec.layer, model.decoder_layers, strict=True)):
        _set_self_attention(layer_spec.self_attention, layer.self_attention)
        first = [chosen.head for chosen in aligning if chosen.layer == number]
        _set_cross_attention(layer_spec.attention, layer.cross_attention, first)
        _set_feed_forward(layer_spec.ffn, layer.feed_forward)
        _set_residuals([layer_spec.self_attention, layer_spec.attention, layer_spec.ffn], layer.residuals)
    _set_norm_if_any(spec, "layer_norm", model.decoder_norm)
    _set_norm_if_any(spec, "layernorm_embedding", model.decoder_input_norm)


def _set_positions(spec: Any, positions: nn.Module, d_model: int, n_positions: int | None) -> None:
    """Store a table of encodings; where there is none, CTranslate2 would compute sinusoids."""
    if n_positions is None:
        vars(spec).pop("position_encodings", None)
        return
    table = positions(0, n_positions)
    no_table = np.zeros((n_positions, d_model), dtype=np.float32)
    spec.position_encodings.encodings = _array(table) if isinstance(table, Tensor) else no_table


def _set_self_attention(spec: Any, attention: Any) -> None:
    _set_linear(spec.linear[0], attention.qkv_proj.weight, attention.qkv_proj.bias)
    _set_linear(spec.linear[1], attention.out_proj.weight, attention.out_proj.bias)


def _set_cross_attention(spec: Any, attention: Any, first: Sequence[int]) -> None:
    """Store the heads ``first`` before the others: CTranslate2 aligns by the first heads of a layer."""
    d, n_heads = attention.d_model, attention.n_heads
    heads = [*first, *(head for head in range(n_heads) if head not in first)]
    order = torch.arange(d).view(n_heads, -1)[heads].flatten()  # of the heads' dimensions
    weight = attention.qkv_proj.weight.view(3, d, d)[:, order].flatten(0, 1)
    bias = attention.qkv_proj.bias.view(3, d)[:, order].flatten()
    _set_linear(spec.linear[0], weight[:d], bias[:d])  # W^Q
    _set_linear(spec.linear[1], weight[d:], bias[d:])  # W^K and W^V
    _set_linear(spec.linear[2], attention.out_proj.weight[:, order], attention.out_proj.bias)


def _set_feed_forward(spec: Any, network: Any) -> None:
    _set_linear(spec.linear_0, network.linear1.weight, network.linear1.bias)
    _set_linear(spec.linear_1, network.linear2.weight, network.linear2.bias)


def _set_residuals(specs: Sequence[Any], residuals: Any) -> None:
    for spec, residual in zip(specs, residuals, strict=True):
        _set_norm(spec.layer_norm, residual.norm)


def _set_norm_if_any(spec: Any, name: str, norm: nn.Module) -> None:
    if not isinstance(norm, nn.Identity):
        _set_norm(getattr(spec, name), norm)


def _set_norm(spec: Any, norm: Any) -> None:
    spec.gamma = _array(norm.weight)
    if getattr(norm, "bias", None) is not None:
        spec.beta = _array(norm.bias)


def _set_linear(spec: Any, weight: Tensor, bias: Tensor | None) -> None:
    spec.weight = _array(weight)
    if bias is not None:
        spec.bias = _array(bias)


def _array(tensor: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    return tensor.detach().to("cpu", torch.float32).numpy()
