"""Train Hugging Face's MarianMTModel from scratch in a minimal loop, for bench_training.py and time_to_bleu.py.

The loop sorts sentences by length and does nothing else, so it is faster than the Seq2SeqTrainer.
usage: huggingface.py STEPS [bf16]
       huggingface.py RECIPE.json [bf16]
"""

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from transformers import MarianConfig, MarianMTModel

PAD_ID, BOS_ID, EOS_ID, MAX_TOKENS = 0, 2, 3, 4096
SHAPE = {
    "vocab_size": 8000,
    "d_model": 256,
    "encoder_layers": 3,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 1024,
    "decoder_ffn_dim": 1024,
    "dropout": 0.1,
}


def length_sorted_batches() -> list[list[tuple[list[int], list[int]]]]:
    """Fill batches of at most 4,096 tokens, padding included, with pairs of similar length."""
    pairs = json.loads(Path("train.json").read_text(encoding="utf-8"))
    pairs.sort(key=lambda pair: (max(map(len, pair)), len(pair[1])))
    batches: list[list[tuple[list[int], list[int]]]] = []
    batch: list[tuple[list[int], list[int]]] = []
    for pair in pairs:
        if batch and (len(batch) + 1) * max(map(len, pair)) > MAX_TOKENS:
            batches.append(batch)
            batch = []
        batch.append(pair)
    return [*batches, batch]


def pad(rows: list[list[int]]) -> torch.Tensor:
    """Stack rows of ids."""
    return torch.nn.utils.rnn.pad_sequence(list(map(torch.tensor, rows)), batch_first=True, padding_value=PAD_ID)


def new_model(**settings: Any) -> MarianMTModel:
    """Return a model whose weights are random."""
    config = MarianConfig(
        activation_function="relu",
        attention_dropout=0.0,
        activation_dropout=0.0,
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=PAD_ID,
        bos_token_id=BOS_ID,
        eos_token_id=EOS_ID,
        forced_eos_token_id=EOS_ID,
        decoder_start_token_id=BOS_ID,
        **settings,
    )
    return MarianMTModel(config).train()


class Training:
    """A model, its optimizer, and steps of both."""

    def __init__(self, model: MarianMTModel, rate: float, clip: float) -> None:
        self.model, self.clip = model, clip
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True)

    def step(self, batch: list[tuple[list[int], list[int]]]) -> None:
        """Update the weights, and print the target tokens per second and the loss."""
        started = time.perf_counter()
        src, tgt = pad([src for src, _ in batch]), pad([tgt for _, tgt in batch])
        tgt_in = torch.cat([torch.full((len(batch), 1), BOS_ID), tgt[:, :-1]], dim=1)
        with torch.autocast("cpu", torch.bfloat16, enabled="bf16" in sys.argv):
            logits = self.model(input_ids=src, attention_mask=src != PAD_ID, decoder_input_ids=tgt_in).logits
            loss = F.cross_entropy(logits.flatten(0, 1), tgt.flatten(), ignore_index=PAD_ID, label_smoothing=0.1)
        loss.backward()
        if self.clip:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        n_tokens = int((tgt != PAD_ID).sum())
        print(f"{n_tokens / (time.perf_counter() - started):.1f} tokens/s, loss {loss.item():.3f}", flush=True)


def follow(recipe: dict[str, Any]) -> None:
    """Train by a recipe of peer_recipes.py; save the model regularly, in folders ``step-100`` and so on."""
    training = Training(new_model(**recipe["model"]), recipe["learning_rate"], clip=0.0)
    batches, warmup, step = length_sorted_batches(), recipe["warmup_steps"], 0
    while step < recipe["max_steps"]:
        random.shuffle(batches)
        for batch in batches:
            step += 1
            rate = recipe["learning_rate"] * min(step / warmup, (warmup / step) ** 0.5)
            for group in training.optimizer.param_groups:
                group["lr"] = rate
            training.step(batch)
            if step % recipe["save_every"] == 0:
                training.model.save_pretrained("saving")
                Path("saving").rename(f"step-{step}")  # only once complete


def main() -> None:
    """Train for some steps, or by a recipe."""
    torch.manual_seed(1)
    random.seed(1)
    if sys.argv[1].isdecimal():
        training, batches = Training(new_model(**SHAPE), 1e-3, clip=1.0), length_sorted_batches()
        random.shuffle(batches)
        for batch in batches[: int(sys.argv[1])]:
            training.step(batch)
    else:
        follow(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))


main()
