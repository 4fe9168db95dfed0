"""Runs: their folders, what they record, what ends them, and the models in them."""

from mtformer.runs.folder import RunFolder
from mtformer.runs.journal import Journal
from mtformer.runs.limits import limit_reached, out_of_patience
from mtformer.runs.metrics import LOWER_IS_BETTER, METRIC_NAMES
from mtformer.runs.models import EXPORT_SETTINGS, find_model, find_models, is_exported, run_of

__all__ = [
    "EXPORT_SETTINGS",
    "LOWER_IS_BETTER",
    "METRIC_NAMES",
    "Journal",
    "RunFolder",
    "find_model",
    "find_models",
    "is_exported",
    "limit_reached",
    "out_of_patience",
    "run_of",
]
