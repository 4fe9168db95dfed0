"""The metrics of validation."""

METRIC_NAMES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER", "loss": "loss", "perplexity": "perplexity"}
LOWER_IS_BETTER = ("loss", "perplexity", "ter")
