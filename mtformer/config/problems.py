"""Problems of a config in the words of our errors: what was given, what is allowed, and which name may be meant."""

import difflib

from pydantic_core import ErrorDetails

from mtformer.config.section import Section, subsections
from mtformer.config.sources import SOURCES
from mtformer.support.terminal import escaped

_MAX_SHOWN = 100  # characters of a value
_MAX_SENTENCE = 1_000

# What fairseq, OpenNMT-py, JoeyNMT, Marian and Hugging Face call our keys, with underscores for hyphens.
OTHER_NAMES = {
    "data.train": "train_sets trainpref train_file train_files",
    "data.valid": "dev val validation valid_sets validpref validation_file dev_sets",
    "data.test": "test_sets testpref test_file",
    "data.src_lang": "source_lang source_language lang_src",
    "data.tgt_lang": "target_lang target_language trg_lang lang_tgt",
    "data.max_length": "max_len max_sent_length src_seq_length tgt_seq_length max_source_positions max_source_length "
    "max_target_length max_seq_length",
    "tokenizer.type": "bpe tokenizer_type model_type",
    "tokenizer.vocab_size": "src_vocab_size tgt_vocab_size dim_vocabs voc_limit bpe_size num_merges n_vocab vocab",
    "tokenizer.joint": "joined_dictionary share_vocab joint_vocab shared_vocab",
    "tokenizer.character_coverage": "char_coverage",
    "model.preset": "arch architecture",
    "model.d_model": "hidden_size rnn_size word_vec_size embedding_dim embed_dim emb_dim dim_emb dim_model model_dim "
    "encoder_embed_dim decoder_embed_dim n_embd",
    "model.n_heads": "heads num_heads nhead n_head attention_heads transformer_heads encoder_attention_heads "
    "decoder_attention_heads num_attention_heads",
    "model.d_ff": "ff_size transformer_ff dim_feedforward transformer_dim_ffn ffn_dim encoder_ffn_dim decoder_ffn_dim "
    "encoder_ffn_embed_dim decoder_ffn_embed_dim intermediate_size",
    "model.n_encoder_layers": "layers num_layers n_layers num_hidden_layers encoder_layers enc_layers "
    "num_encoder_layers enc_depth depth",
    "model.n_decoder_layers": "layers num_layers n_layers num_hidden_layers decoder_layers dec_layers "
    "num_decoder_layers dec_depth depth",
    "model.dropout": "transformer_dropout hidden_dropout_prob dropout_rate",
    "model.attention_dropout": "transformer_dropout_attention attention_probs_dropout_prob",
    "model.layer_drop": "layerdrop encoder_layerdrop decoder_layerdrop",
    "model.norm": "layer_norm encoder_normalize_before decoder_normalize_before normalize_before pre_norm",
    "model.feed_forward": "activation activation_fn activation_function pos_ffn_activation_fn",
    "model.positions": "position_encoding positional_encoding position_encoding_type",
    "model.tie_embeddings": "share_embeddings share_decoder_embeddings share_all_embeddings tied_embeddings "
    "tied_embeddings_all tied_softmax tie_word_embeddings share_decoder_input_output_embed",
    "training.max_steps": "steps n_steps num_steps train_steps max_update max_updates updates total_steps "
    "after_batches",
    "training.max_epochs": "epochs epoch n_epochs num_epochs max_epoch num_train_epochs after_epochs",
    "training.max_minutes": "max_time max_hours minutes time_limit stop_time_hours max_seconds",
    "training.init_from": "load_model train_from restore_file finetune_from_model pretrained_model model_name_or_path "
    "pretrained checkpoint resume_from_checkpoint",
    "training.max_tokens": "batch_size batch mini_batch mini_batch_words tokens_per_batch max_sentences "
    "per_device_train_batch_size train_batch_size",
    "training.grad_accum_steps": "update_freq accum_count accum_steps grad_accum gradient_accumulation_steps "
    "batch_multiplier optimizer_delay",
    "training.optimizer": "optim optimiser",
    "training.learning_rate": "lr learn_rate peak_lr max_lr",
    "training.schedule": "scheduling scheduler lr_scheduler lr_scheduler_type lr_schedule decay_method lr_decay",
    "training.warmup_steps": "warmup warmup_updates lr_warmup warmup_ratio learning_rate_warmup n_warmup_steps",
    "training.weight_decay": "wd l2",
    "training.label_smoothing": "smoothing label_smoothing_factor",
    "training.max_grad_norm": "clip_norm clip_grad_norm gradient_clipping grad_clip clip",
    "training.ema_decay": "ema exponential_smoothing average_decay",
    "training.precision": "fp16 bf16 amp use_amp dtype model_dtype",
    "training.device": "gpu gpus cuda use_cuda cpu",
    "training.seed": "random_seed",
    "training.log_every": "report_every log_interval logging_steps logging_freq disp_freq print_every",
    "training.validate_every": "valid_steps valid_freq validation_freq eval_steps eval_every validate_interval_updates",
    "training.checkpoint_every": "save_steps save_freq save_every save_checkpoint_steps save_interval_updates",
    "training.keep_last": "keep_checkpoint save_total_limit keep_last_epochs keep_last_ckpts",
    "training.keep_best": "keep_best_ckpts keep_best_checkpoints",
    "training.early_stopping_metric": "best_checkpoint_metric metric_for_best_model valid_metrics eval_metric",
    "training.early_stopping_patience": "patience early_stopping",
    "training.log_to": "report_to loggers",
    "search.beam_size": "beam num_beams beam_width n_beams",
    "search.length_penalty": "lenpen beam_alpha alpha normalize",
    "search.max_length_factor": "max_len_a max_length_ratio",
    "search.max_length_offset": "max_len_b max_output_length max_new_tokens",
    "run.dir": "save_dir model_dir output_dir save_model",
    "run.name": "run_name exp_name experiment",
}

_ALLOWED = {
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float", "int_parsing_size"), "a whole number"),
    **dict.fromkeys(("float_parsing", "float_type", "finite_number"), "a number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    **dict.fromkeys(("model_type", "dict_type", "model_attributes_type"), "a mapping of keys to values"),
    "string_type": "text",
    "string_too_short": "text that is not empty",
    "list_type": "a list",
    "path_type": "a path",
    "greater_than_equal": "{ge} or more",
    "greater_than": "more than {gt}",
    "less_than_equal": "{le} or less",
    "less_than": "less than {lt}",
    "too_short": "at least {min_length} of them",
}
_TEXTS = {
    "src_lang": "a language code such as en, de or zh",
    "tgt_lang": "a language code such as en, de or zh",
    "directions": "a direction such as en-de, where the code of a language may have underscores, as in en-zh_Hant",
    "delimiter": "a single character",
    "tag": "a word of up to 32 small letters, digits, hyphens and underscores, such as bt",
    "name": "a folder's name, without slashes and not beginning with a dot or a blank",
}


def shown(value: object) -> str:
    """Return a value on one line without control characters, shortened in its middle."""
    text = escaped(str(value))
    if len(text) <= _MAX_SHOWN:
        return text
    half = _MAX_SHOWN // 2
    return f"{text[:half]}…{text[-half:]} ({len(str(value)):,} characters)"


def explained(details: ErrorDetails, section: type[Section] | None = None, root: type[Section] | None = None) -> str:
    """Turn one of pydantic's errors into a sentence: what was given, and what is allowed or may be meant.

    Args:
        details: the error.
        section: that of the schema in which it occurred.
        root: the whole schema, whose other sections may have a key that is meant.
    """
    match details["type"]:
        case "extra_forbidden":
            return "there is no such key" + suggestion(str(details["loc"][-1]), section, root)
        case "missing":
            return "this key is required and not given"
        case "value_error":
            message = escaped(str(details["ctx"]["error"]))
            return message if len(message) <= _MAX_SENTENCE else message[:_MAX_SENTENCE] + "…"
        case "union_tag_not_found":
            return (
                "a source is one of {src: …, tgt: …}, {moses: …}, {tsv: …}, {csv: …}, {jsonl: …}, {tmx: …}, "
                "{hf: …, split: …}, {sacrebleu: …}, {builtin: phrasebook}"
            )
        case _:
            given = details["input"]
            return f"given {'nothing' if given is None else f'`{shown(given)}`'}, allowed: {allowed(details)}"


def allowed(details: ErrorDetails) -> str:
    """Describe the values that are allowed, by the type of the error."""
    kind, loc, given = details["type"], details["loc"], details["input"]
    match kind:
        case "string_pattern_mismatch" | "string_too_long" | "string_too_short" if keys := _TEXTS.keys() & loc:
            return _TEXTS[keys.pop()]
        case "float_parsing" | "finite_number" if "inf" in str(given).lower():
            return "a finite number"
        case "bool_parsing" | "bool_type" if "[bool]" in loc:
            return "true, false or auto"
        case "list_type" if loc[-1] in SOURCES:
            return "a list of sources, as in [{src: train.en, tgt: train.de}]"
        case "list_type" if isinstance(given, str):
            return f"a list, as in [{shown(given)}]"
        case "literal_error":
            return str(details["ctx"]["expected"]).replace("'", "")
        case _ if kind in _ALLOWED:
            words = _ALLOWED[kind].format_map(details.get("ctx", {}))
            return f"{words} or auto" if "[number]" in loc and kind.startswith("int_") else words
        case _:
            return details["msg"]


def our_keys(name: str) -> list[str]:
    """Return the dotted keys for what another toolkit calls ``name``."""
    return [ours for ours, names in OTHER_NAMES.items() if name.lower().replace("-", "_") in names.split()]


def suggestion(key: str, section: type[Section] | None, root: type[Section] | None) -> str:
    """Suggest the valid key that is meant by ``key``: one of ``section``, or else of another section of ``root``."""
    if section is None or root is None:
        return ""
    sections = subsections(root)
    homes = {field: name for name, part in sections.items() for field in part.model_fields}
    if key not in homes:
        same = our_keys(key)
        if same and section in (root, *sections.values()):
            own = next((f"{name}." for name, part in sections.items() if part is section), "")
            return f"; did you mean {' and '.join(f'`{ours.removeprefix(own)}`' for ours in same)}?"
        if close := difflib.get_close_matches(key, section.model_fields, n=1, cutoff=0.6):
            return f"; did you mean `{close[0]}`?"
    if close := difflib.get_close_matches(key, homes, n=1, cutoff=0.8):
        return f"; did you mean `{homes[close[0]]}.{close[0]}`?"
    return "; there are " + ", ".join(section.model_fields)
