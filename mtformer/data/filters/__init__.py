"""Rules that find sentence pairs a model should not learn from."""

from mtformer.data.filters.filters import Filters

__all__ = ["Filters"]
