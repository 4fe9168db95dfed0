"""Sentence pairs in, integer batches out."""
