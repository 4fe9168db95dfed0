"""Counts and times of a server, in the text format that Prometheus reads."""

from collections.abc import Callable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)

disable_created_metrics()  # nobody asks when a count began


class Metrics:
    """The metrics of a server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        counter = partial(Counter, namespace="mtformer", registry=self._registry)
        histogram = partial(Histogram, namespace="mtformer", registry=self._registry)
        self.requests = counter("requests", "Responses, by route and status.", ["route", "status"])
        self.seconds = histogram("request_seconds", "Seconds until a response, by route.", ["route"], buckets=_SECONDS)
        self.characters = counter("characters", "Characters of texts that were translated.")
        self.notes = counter("notes", "Translations that the guard finds doubtful, by problem.", ["note"])
        self.batch_requests = histogram(
            "batch_requests", "Searches, scores and alignments that were computed together.", buckets=_SIZES
        )
        self.batch_seconds = histogram("batch_seconds", "Seconds that a batch took.", buckets=_SECONDS)
        self.batch_tokens = counter("batch_tokens", "Tokens of batches.")

    def add_gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a number that ``read`` returns."""
        Gauge(name, text, namespace="mtformer", registry=self._registry).set_function(read)

    def observe_batch(self, n_requests: int, n_tokens: int, seconds: float) -> None:
        """Count a batch."""
        self.batch_requests.observe(n_requests)
        self.batch_seconds.observe(seconds)
        self.batch_tokens.inc(n_tokens)

    def text(self) -> str:
        """Return all metrics."""
        return generate_latest(self._registry).decode()
