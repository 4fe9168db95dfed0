"""Rules that find sentence pairs a model should not learn from."""

from mtformer.data.filters.filters import Filters, filters_of, rule_of

__all__ = ["Filters", "filters_of", "rule_of"]
