"""Filters for training text, and ``mtformer data check``, which reports their findings."""
