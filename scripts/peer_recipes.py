"""What time_to_bleu.py trains with the other toolkits: published recipes, written in the toolkits' own settings.

``tiny`` is Transformer-tiny of Wu et al. (2021, "Good for Misconceived Reasons"), published for Multi30k with fairseq:
https://github.com/LividWo/Revisit-MMT, README-baseline.md. It is the strongest published recipe for this text, so each
toolkit gets it: 4+4 layers with post-norm (OpenNMT-py has only pre-norm), d_model 128, d_ff 256, 4 heads, dropout 0.3,
label smoothing 0.1, Adam at 0.005 after 2,000 updates of warm-up, 4,096 tokens a batch, 10,000 joint BPE tokens. The
weights start with the variance that they have in fairseq where the toolkit leaves it to its user.

``own`` is what the toolkit's documentation recommends for a Transformer. Hugging Face documents only fine-tuning.
"""

from collections.abc import Callable
from typing import Any

VOCAB_SIZE = 10_000
WARMUP, RATE, D_MODEL = 2_000, 0.005, 128
UPDATES = 8_000  # after which the authors stopped

_MARIAN = {
    "type": "transformer",
    "train-sets": ["train.src", "train.tgt"],
    "vocabs": ["tokenizer.spm", "tokenizer.spm"],
    "dim-vocabs": [VOCAB_SIZE, VOCAB_SIZE],
    "model": "model.npz",
    "tied-embeddings-all": True,
    "label-smoothing": 0.1,
    "cost-type": "ce-mean-words",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "optimizer-params": [0.9, 0.98, 1e-9],
    "clip-norm": 0,
    "mini-batch": 1000,
    "maxi-batch": 1000,
    "cpu-threads": 1,
    "seed": 1,
}
_MARIAN_TINY = {
    "enc-depth": 4,
    "dec-depth": 4,
    "dim-emb": D_MODEL,
    "transformer-heads": 4,
    "transformer-dim-ffn": 256,
    "transformer-dropout": 0.3,
    "learn-rate": RATE,
    "lr-warmup": WARMUP,
    "lr-decay-inv-sqrt": [WARMUP],
    "mini-batch-words": 4096,
    "max-length": 256,
    "workspace": 4000,
    "after-batches": UPDATES,
}
# https://github.com/marian-nmt/marian-examples, transformer-intro/transformer-model.yml, made with --task
# transformer-base. Its batches fill the memory of a GPU: here those of 4,096 words.
_MARIAN_OWN = {
    "enc-depth": 6,
    "dec-depth": 6,
    "dim-emb": 512,
    "transformer-heads": 8,
    "transformer-dim-ffn": 2048,
    "transformer-dropout": 0.1,
    "learn-rate": 0.0003,
    "lr-warmup": 16000,
    "lr-decay-inv-sqrt": [16000],
    "exponential-smoothing": 0.0001,
    "mini-batch-words": 4096,
    "max-length": 100,
    "workspace": 8000,
}
_OPENNMT = {
    "save_data": "vocabulary",
    "save_model": "model",
    "src_vocab": "vocab.counts",
    "tgt_vocab": "vocab.counts",
    "share_vocab": True,
    "src_vocab_size": VOCAB_SIZE,
    "tgt_vocab_size": VOCAB_SIZE,
    "vocab_size_multiple": 1,
    "data": {"corpus_1": {"path_src": "train.pieces.src", "path_tgt": "train.pieces.tgt", "transforms": []}},
    "valid_steps": 1_000_000,
    "num_workers": 0,
    "bucket_size": 32768,
    "seed": 1,
    "batch_type": "tokens",
    "batch_size": 4096,
    "batch_size_multiple": 1,
    "normalization": "tokens",
    "optim": "adam",
    "decay_method": "noam",
    "max_grad_norm": 0,
    "label_smoothing": 0.1,
    "param_init": 0,
    "param_init_glorot": True,
    "encoder_type": "transformer",
    "decoder_type": "transformer",
    "position_encoding": True,
    "share_embeddings": True,
    "share_decoder_embeddings": True,
}
_OPENNMT_TINY = {
    "enc_layers": 4,
    "dec_layers": 4,
    "heads": 4,
    "hidden_size": D_MODEL,
    "word_vec_size": D_MODEL,
    "transformer_ff": 256,
    "dropout": [0.3],
    "attention_dropout": [0.0],
    "adam_beta2": 0.98,
    "learning_rate": RATE * (D_MODEL * WARMUP) ** 0.5,  # what noam multiplies, so that the highest rate is RATE
    "warmup_steps": WARMUP,
    "train_steps": UPDATES,
}
# https://github.com/OpenNMT/OpenNMT-py, docs/source/FAQ.md, "How do I use the Transformer model?". It accumulates
# 4 batches on each of 4 GPUs; here one batch makes an update.
_OPENNMT_OWN = {
    "enc_layers": 6,
    "dec_layers": 6,
    "heads": 8,
    "hidden_size": 512,
    "word_vec_size": 512,
    "transformer_ff": 2048,
    "dropout": [0.1],
    "attention_dropout": [0.1],
    "adam_beta2": 0.998,
    "learning_rate": 2,
    "warmup_steps": 8000,
    "train_steps": 200_000,
}
_HUGGINGFACE_TINY = {
    "model": {
        "vocab_size": VOCAB_SIZE,
        "d_model": D_MODEL,
        "encoder_layers": 4,
        "decoder_layers": 4,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 256,
        "decoder_ffn_dim": 256,
        "dropout": 0.3,
        "init_std": D_MODEL**-0.5,
    },
    "learning_rate": RATE,
    "warmup_steps": WARMUP,
    "max_steps": UPDATES,
}


def _marian(settings: dict[str, Any]) -> Callable[[int], dict[str, Any]]:
    return lambda every: _MARIAN | settings | {"save-freq": every, "disp-freq": every}


def _opennmt(settings: dict[str, Any]) -> Callable[[int], dict[str, Any]]:
    return lambda every: _OPENNMT | settings | {"save_checkpoint_steps": every, "report_every": every}


RECIPES: dict[str, Callable[[int], dict[str, Any]]] = {
    "huggingface-tiny": lambda every: _HUGGINGFACE_TINY | {"save_every": every},
    "marian-tiny": _marian(_MARIAN_TINY),
    "opennmt-tiny": _opennmt(_OPENNMT_TINY),
    "marian-own": _marian(_MARIAN_OWN),
    "opennmt-own": _opennmt(_OPENNMT_OWN),
}
"""The settings by toolkit and recipe; the argument is the number of updates between checkpoints."""
