"""Runs: their folders, what they record, what ends them, and the models in them."""
