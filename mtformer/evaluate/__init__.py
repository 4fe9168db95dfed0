"""Evaluation: scores, comparison and stress tests of translations."""
