"""Train Marian by a recipe of peer_recipes.py.

usage: train_marian.py RECIPE.json
"""

import sys

import pymarian

pymarian.Trainer(f"--config {sys.argv[1]}").train()
