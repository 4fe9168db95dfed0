"""Variations of the training text: capitals, typos, tags, emoji, terms."""
