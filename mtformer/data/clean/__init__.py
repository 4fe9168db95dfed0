"""Filters for training text, and ``mtformer data check``, which reports what they find."""
