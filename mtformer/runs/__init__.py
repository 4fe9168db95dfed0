"""Runs: their folders, records, limits, checkpoints and models."""
