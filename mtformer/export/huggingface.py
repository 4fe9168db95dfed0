"""A model for Hugging Face transformers, which need none of our code to load it.

The norms and the position encoding of a model decide which architecture of transformers computes the same; see
:mod:`mtformer.export.families`. The sinusoids of Marian and Pegasus come in another order, first all sines, then all
cosines, so the features of the model are reordered likewise, wherever they appear; this changes nothing that the model
computes.

All but Marian have one vocabulary. Where ours has two, its embeddings are not tied, the smaller one gets rows that no
text needs, and ids beyond the target's have a logit of -∞.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Regex, decoders, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as FastTokenizer
from tokenizers.models import BPE, Unigram
from torch import Tensor
from transformers.utils.logging import disable_progress_bar

from mtformer.bundle.format import Bundle
from mtformer.bundle.header import Header
from mtformer.bundle.peek import EXPORT_SETTINGS
from mtformer.engines.ctranslate2.folder import describe_slots, describe_tags, write_tokenizer
from mtformer.export import require_huggingface
from mtformer.export.families import FAMILIES, N_UNUSED_POSITIONS, Family
from mtformer.export.marian_tokenizer import has_unknown_tokens, write_marian_tokenizer
from mtformer.export.names import feature_dimension, names_in_transformers, sines_first
from mtformer.model.architecture import ACTIVATIONS
from mtformer.model.transformer import Transformer
from mtformer.model.weights import weights
from mtformer.support.errors import UserError
from mtformer.text.slots import SLOTS
from mtformer.text.tokenizer.sentencepiece_file import BPE as BPE_MODEL
from mtformer.text.tokenizer.sentencepiece_file import Kind, Settings, Token, read_settings, read_tokens
from mtformer.text.tokenizer.vocabulary import CONTROL_CHARACTERS, form_of

_TARGET = "target"  # the folder of the target language's tokenizer, where it has its own
_LEAST_POSITIONS = 4_096
_USE = """\
# {name}

A Transformer that translates {languages}, converted from mtformer's `{bundle}`.

{imports}    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("."){target_tokenizer}
    model = AutoModelForSeq2SeqLM.from_pretrained(".")
    output = model.generate({inputs})
    print({decoder}.decode(output[0], skip_special_tokens=True))

{notes}`mtformer.json` has the languages, the search settings and where the model comes from. With it and the
SentencePiece models, `mtformer import` makes a bundle of this folder again.
"""
_UNTAGGED = '**tokenizer(["…"], return_tensors="pt")'
_TAGGED = """torch.tensor([[tokenizer.convert_tokens_to_ids("{tag}"), *tokenizer("…").input_ids]])"""
_FORCED = """, forced_bos_token_id=tokenizer.convert_tokens_to_ids("{tag}")"""
_LANGUAGES = """\
The first token of a source is its language, and the first one of a translation is forced to be its own: {tokens}.

"""
_CLASSES: dict[str, tuple[Any, Any]] = {
    "marian": (transformers.MarianConfig, transformers.MarianMTModel),
    "pegasus": (transformers.PegasusConfig, transformers.PegasusForConditionalGeneration),
    "m2m_100": (transformers.M2M100Config, transformers.M2M100ForConditionalGeneration),
    "mbart": (transformers.MBartConfig, transformers.MBartForConditionalGeneration),
}


def write_huggingface(folder: Path, bundle: Bundle, *, name: str) -> None:
    """Fill an empty ``folder`` with all that translating takes: model, tokenizers, settings and README.

    Args:
        folder: where to write.
        bundle: the model.
        name: the name of the bundle's file.

    Raises:
        UserError: transformers has no architecture for the model, or no tokenizer like its own.
    """
    header, tokenizer = bundle.header, bundle.tokenizer
    has_target = _write_tokenizers(folder, bundle)
    disable_progress_bar()  # of the file that is written next
    to_transformers(bundle).save_pretrained(folder)
    write_tokenizer(folder, tokenizer)
    (folder / EXPORT_SETTINGS).write_text(header.model_dump_json(indent=2) + "\n", encoding="utf-8")
    tags = header.target_tags or [*header.languages.values()]
    inputs = _TAGGED.format(tag=tags[0]) if tags else _UNTAGGED
    if header.languages:
        inputs += _FORCED.format(tag=tags[1])
    readme = _USE.format(
        name=header.title,
        languages=header.title if header.directions or header.languages else f"{header.src_lang} to {header.tgt_lang}",
        imports="    import torch\n" if tags else "",
        notes=describe_slots(tokenizer) + (_describe_languages(header) or describe_tags(header)),
        inputs=inputs,
        bundle=name,
        target_tokenizer=f'\n    target = AutoTokenizer.from_pretrained(".", subfolder="{_TARGET}")' * has_target,
        decoder="target" if has_target else "tokenizer",
    )
    (folder / "README.md").write_text(readme, encoding="utf-8")


def _describe_languages(header: Header) -> str:
    tokens = ", ".join(f"`{token}`" for token in header.languages.values())
    return _LANGUAGES.format(tokens=tokens) if tokens else ""


def _write_tokenizers(folder: Path, bundle: Bundle) -> bool:
    """Write the tokenizers of transformers; tell whether the target has its own."""
    header, models = bundle.header, bundle.tokenizer.models
    max_length = header.architecture.max_length
    forcing = [prefix for prefix in header.prefixes.values() if prefix.tgt]
    special = [*header.languages.values()] or sorted({token for prefix in forcing for token in prefix.src + prefix.tgt})
    if any(map(has_unknown_tokens, models)):
        write_marian_tokenizer(folder, bundle, special)
        return False
    for place, model in zip((folder, folder / _TARGET), models, strict=False):
        to_fast_tokenizer(model, max_length=max_length, special=special).save_pretrained(place)
    return len(models) > 1


def to_transformers(bundle: Bundle) -> Any:
    """Return the model of ``bundle`` as one of transformers.

    Raises:
        UserError: transformers has no architecture for the model.
    """
    header = bundle.header
    require_huggingface(header)
    search, architecture = header.search, header.architecture
    kind = next(kind for kind, family in FAMILIES.items() if family.suits(architecture))
    config_class, model_class = _CLASSES[kind]
    model = model_class(config_class(**_settings(bundle, kind)))
    with torch.no_grad():
        _fill(model, bundle.model, FAMILIES[kind])
    forced = () if header.languages else header.prefix_tokens(header.language_pairs[0]).tgt
    slots = bundle.tokenizer.tgt.ids(SLOTS) if bundle.tokenizer.has_slots else []
    model.generation_config = transformers.GenerationConfig(
        num_beams=search.beam_size,
        length_penalty=search.length_penalty,
        max_new_tokens=min(header.longest_translation, model.config.max_position_embeddings - 1),
        suppress_tokens=[*architecture.special_ids.never, *slots],
        forced_bos_token_id=next(iter(bundle.tokenizer.tgt.ids(forced)), None),
        **_special_ids(header),
    )
    return model.eval()


def _special_ids(header: Header) -> dict[str, int]:
    special_ids = header.architecture.special_ids
    return {
        "pad_token_id": special_ids.pad,
        "bos_token_id": special_ids.bos,
        "eos_token_id": special_ids.eos,
        "decoder_start_token_id": special_ids.start,
    }


def _settings(bundle: Bundle, kind: str) -> dict[str, Any]:
    """Return the settings of a config of transformers."""
    architecture = bundle.header.architecture
    positions = architecture.max_length
    if FAMILIES[kind].positions != "learned":
        positions = max(_LEAST_POSITIONS, positions, bundle.header.longest_translation)
    is_tied = architecture.tie_embeddings
    is_shared = is_tied and architecture.joint_vocab
    settings = {
        "max_position_embeddings": positions,
        "d_model": architecture.d_model,
        "encoder_layers": architecture.n_encoder_layers,
        "decoder_layers": architecture.n_decoder_layers,
        "encoder_attention_heads": architecture.n_heads,
        "decoder_attention_heads": architecture.n_heads,
        "encoder_ffn_dim": architecture.d_ff,
        "decoder_ffn_dim": architecture.d_ff,
        "activation_function": ACTIVATIONS[architecture.activation].transformers,
        "dropout": architecture.dropout,
        "scale_embedding": True,
        **_special_ids(bundle.header),
        "forced_eos_token_id": None,
    }
    if kind == "marian":
        sizes = {"vocab_size": architecture.src_vocab_size, "decoder_vocab_size": architecture.tgt_vocab_size}
        return settings | sizes | {"share_encoder_decoder_embeddings": is_shared, "tie_word_embeddings": is_tied}
    n_tokens = max(architecture.src_vocab_size, architecture.tgt_vocab_size)
    return settings | {"vocab_size": n_tokens, "tie_word_embeddings": is_shared}


def _fill(theirs: Any, ours: Transformer, family: Family) -> None:
    """Copy our weights into a model of transformers."""
    order = sines_first(ours.d_model) if family.sines_first else torch.arange(ours.d_model)
    missing, unexpected = theirs.load_state_dict(_state(ours, order), strict=False)
    vocabularies = ("embed_tokens.weight", "shared.weight", "lm_head.weight", "final_logits_bias")
    assert not unexpected, unexpected
    assert all("embed_positions" in name or name.endswith(vocabularies) for name in missing), missing
    tables = (
        (theirs.model.encoder.embed_tokens, ours.src_embedding),
        (theirs.model.decoder.embed_tokens, ours.tgt_embedding),
        (theirs.lm_head, ours.output),
    )
    if hasattr(theirs.model, "shared"):
        theirs.model.shared.weight.zero_()  # which there is even if it shares nothing
    for theirs_table, ours_table in tables:
        theirs_table.weight.zero_()
        theirs_table.weight[: len(ours_table.weight)] = ours_table.weight[:, order]
    if hasattr(theirs, "final_logits_bias"):
        theirs.final_logits_bias[:, len(ours.output.weight) :] = float("-inf")
    if ours.output.bias is not None:
        theirs.final_logits_bias[0, : len(ours.output.bias)] = ours.output.bias


def _state(model: Transformer, order: Tensor) -> dict[str, Tensor]:
    """Return the weights of the layers by transformers' names, with features in an order (D,)."""
    state = dict[str, Tensor]()
    for name, tensor in weights(model).items():
        if "embedding" in name or name.startswith("output."):
            continue
        dimension, names = feature_dimension(name), names_in_transformers(name)
        if dimension is not None:
            tensor = tensor.index_select(dimension, order)
        if name.endswith("positions.weight"):
            tensor = torch.cat([tensor.new_zeros(N_UNUSED_POSITIONS, model.d_model), tensor])
        state |= zip(names, tensor.chunk(len(names)), strict=True)
    return state


def to_fast_tokenizer(
    model: bytes, *, max_length: int, special: Sequence[str] = ()
) -> transformers.PreTrainedTokenizerFast:
    """Return a SentencePiece model as a fast tokenizer, which ends each text in EOS.

    Args:
        model: the serialized SentencePiece model.
        max_length: the longest text, in tokens, that the Transformer was trained for.
        special: the tokens of languages, which no text contains.

    Raises:
        UserError: it has tokens that a user has defined.
    """
    tokens, settings = read_tokens(model), read_settings(model)
    # No text has slots, which translate alone puts into it.
    if symbols := [token.text for token in tokens if token.kind == Kind.USER_DEFINED and token.text not in SLOTS]:
        raise UserError(
            f"the tokenizers of transformers cannot keep {', '.join(symbols)} (tokenizer.user_symbols) whole without "
            "putting spaces after them: train a model without these symbols"
        )
    fast = FastTokenizer(_bpe(tokens) if settings.algorithm == BPE_MODEL else _unigram(tokens))
    fast.normalizer = _normalizer(settings)
    # A special token or a byte that is spelled out in a text is not one. Neither is found where "<" stands alone, and
    # it may stand alone if no token contains it.
    if not any("<" in token.text for token in filter(_is_text, tokens)):
        fast.pre_tokenizer = pre_tokenizers.Split("<", behavior="isolated")
    n_stripped = max_length if settings.removes_extra_spaces else 1
    fast.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", left=n_stripped)]
    )
    eos = [token.text for token in tokens].index(settings.special_names[-1])
    fast.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", eos)])
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    texts = {token.text for token in tokens}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=fast,
        **{key: name for key, name in names.items() if name in texts},
        extra_special_tokens=[*special],
        model_max_length=max_length,
        split_special_tokens=True,
        clean_up_tokenization_spaces=False,
    )


def _normalizer(settings: Settings) -> normalizers.Normalizer:
    """Return the normalization of a text by :func:`.normalize` and by a model before it is split."""
    spaces = normalizers.Replace(Regex(r"\s+"), " ")
    of_form: dict[str, list[normalizers.Normalizer]] = {
        "nfc": [normalizers.NFC(), spaces],
        "nfkc": [normalizers.NFKC(), spaces],
        "identity": [normalizers.Replace(Regex(CONTROL_CHARACTERS.pattern), " ")],
    }
    form = form_of(settings.rule)
    steps = of_form[form]
    if settings.character_map:  # without ▁, which is a space
        steps += [normalizers.Replace("▁", " "), normalizers.Precompiled(settings.character_map)]
    if settings.removes_extra_spaces:
        steps.append(normalizers.Replace(Regex(" +"), " "))
    if form != "identity" or settings.removes_extra_spaces:
        # SentencePiece takes ▁ for a space, but not at the start
        steps.append(normalizers.Replace(Regex("^ |[ ▁]+$"), ""))
    return normalizers.Sequence([*steps, normalizers.Replace(" ", "▁"), normalizers.Prepend("▁")])


def _is_text(token: Token) -> bool:
    """Tell whether a token stands for text: it is neither special nor a byte, and not unused."""
    return token.kind == Kind.NORMAL


def _unigram(tokens: Sequence[Token]) -> Unigram:
    """Make a model in which special tokens and bytes are too unlikely to be found in text that has them spelled out."""
    never = min(token.score for token in tokens) - 1_000.0
    scores = [(token.text, token.score if _is_text(token) else never) for token in tokens]
    unk = [token.kind for token in tokens].index(Kind.UNKNOWN)
    return Unigram(scores, unk_id=unk, byte_fallback=True)


def _bpe(tokens: Sequence[Token]) -> BPE:
    """Recover the merges, which SentencePiece does not store, from the tokens that they make and their ranks."""
    ids = {token.text: i for i, token in enumerate(tokens)}
    ranks = {token.text: -token.score for token in tokens if _is_text(token)}
    merges = [
        (rank, ids[left], ids[right], (left, right))
        for text, rank in ranks.items()
        for left, right in ((text[:cut], text[cut:]) for cut in range(1, len(text)))
        if left in ranks and right in ranks
    ]
    return BPE(ids, [pair for *_, pair in sorted(merges)], unk_token="<unk>", fuse_unk=True, byte_fallback=True)
