"""Train Marian on the text of bench_training.py, or by a recipe of peer_recipes.py.

usage: marian.py STEPS
       marian.py RECIPE.json
"""

import sys
from pathlib import Path

import pymarian

OPTIONS = {
    "type": "transformer",
    "train-sets": "train.pieces.en train.pieces.de",
    "vocabs": "vocab.yml vocab.yml",
    "model": "marian_run/model.npz",
    "enc-depth": 3,
    "dec-depth": 3,
    "dim-emb": 256,
    "transformer-heads": 4,
    "transformer-dim-ffn": 1024,
    "transformer-preprocess": "n",
    "transformer-postprocess": "da",
    "transformer-dropout": 0.1,
    "tied-embeddings-all": "",
    "label-smoothing": 0.1,
    "mini-batch": 1000,
    "mini-batch-words": 4096,
    "maxi-batch": 1000,
    "maxi-batch-sort": "trg",
    "max-length": 256,
    "learn-rate": 0.001,
    "lr-warmup": 1000,
    "lr-decay-inv-sqrt": 1000,
    "optimizer-params": "0.9 0.98 1e-9",
    "clip-norm": 1,
    "cpu-threads": 2,
    "workspace": 8000,
    "disp-freq": 1,
    "after-batches": sys.argv[1],
    "save-freq": 1_000_000,
    "overwrite": "",
    "seed": 1,
}
if sys.argv[1].isdecimal():
    Path("marian_run").mkdir(exist_ok=True)
    pymarian.Trainer(" ".join(f"--{key} {value}" for key, value in OPTIONS.items())).train()
else:
    pymarian.Trainer(f"--config {sys.argv[1]}").train()
