"""The metrics of validation."""

from mtformer.config import TrainingConfig

METRIC_NAMES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER", "loss": "loss", "perplexity": "perplexity"}
LOWER_IS_BETTER = ("loss", "perplexity", "ter")


def limit_reached(training: TrainingConfig, *, step: int, epoch: int, seconds: float) -> str:
    """Return the limit that ends a run, or an empty string if none is reached.

    Args:
        training: its settings, with nothing left open.
        step: the updates done.
        epoch: the passes over the data done.
        seconds: the time spent, validations included.
    """
    if training.max_steps and step >= training.max_steps:
        return f"training.max_steps = {training.max_steps}"
    if training.max_epochs and epoch >= training.max_epochs:
        return f"training.max_epochs = {training.max_epochs}"
    if training.max_minutes and seconds >= 60 * training.max_minutes:
        return f"training.max_minutes = {training.max_minutes:g}"
    return ""


def out_of_patience(training: TrainingConfig, stale: int) -> str:
    """Return why early stopping ends a run after ``stale`` validations without a better model; empty if it does not."""
    patience = training.early_stopping_patience
    if isinstance(patience, int) and stale >= patience:
        return f"{stale} validations without a better model (training.early_stopping_patience)"
    return ""
