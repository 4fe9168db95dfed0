"""Train Hugging Face's MarianMTModel from scratch on the text of bench_training.py in a minimal loop.

The loop sorts sentences by length and does nothing else, so it is faster than the Seq2SeqTrainer.
usage: huggingface.py STEPS [bf16]
"""

import json
import random
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from transformers import MarianConfig, MarianMTModel

PAD_ID, BOS_ID, EOS_ID, MAX_TOKENS = 0, 2, 3, 4096


def length_sorted_batches() -> list[list[tuple[list[int], list[int]]]]:
    """Fill batches of at most 4,096 tokens, padding included, with pairs of similar length."""
    pairs = json.loads(Path("train.json").read_text())
    pairs.sort(key=lambda pair: (max(map(len, pair)), len(pair[1])))
    batches: list[list[tuple[list[int], list[int]]]] = []
    batch: list[tuple[list[int], list[int]]] = []
    for pair in pairs:
        if batch and (len(batch) + 1) * max(map(len, pair)) > MAX_TOKENS:
            batches.append(batch)
            batch = []
        batch.append(pair)
    random.Random(1).shuffle(batches)
    return batches


def pad(rows: list[list[int]]) -> torch.Tensor:
    """Stack rows of ids."""
    return torch.nn.utils.rnn.pad_sequence(list(map(torch.tensor, rows)), batch_first=True, padding_value=PAD_ID)


def main() -> None:
    """Print the target tokens per second of each step."""
    torch.manual_seed(1)
    config = MarianConfig(
        vocab_size=8000,
        d_model=256,
        encoder_layers=3,
        decoder_layers=3,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=1024,
        decoder_ffn_dim=1024,
        activation_function="relu",
        dropout=0.1,
        attention_dropout=0.0,
        activation_dropout=0.0,
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=PAD_ID,
        bos_token_id=BOS_ID,
        eos_token_id=EOS_ID,
        forced_eos_token_id=EOS_ID,
        decoder_start_token_id=BOS_ID,
    )
    model = MarianMTModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), fused=True)
    for batch in length_sorted_batches()[: int(sys.argv[1])]:
        started = time.perf_counter()
        src, tgt = pad([src for src, _ in batch]), pad([tgt for _, tgt in batch])
        tgt_in = torch.cat([torch.full((len(batch), 1), BOS_ID), tgt[:, :-1]], dim=1)
        with torch.autocast("cpu", torch.bfloat16, enabled="bf16" in sys.argv):
            logits = model(input_ids=src, attention_mask=src != PAD_ID, decoder_input_ids=tgt_in).logits
            loss = F.cross_entropy(logits.flatten(0, 1), tgt.flatten(), ignore_index=PAD_ID, label_smoothing=0.1)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        n_tokens = int((tgt != PAD_ID).sum())
        print(f"{n_tokens / (time.perf_counter() - started):.1f} tokens/s, loss {loss.item():.3f}", flush=True)


main()
