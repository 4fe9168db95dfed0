"""Counts and times of a server, in the text format that Prometheus reads."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from threading import Lock

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
Labels = tuple[tuple[str, str], ...]


class Counter:
    """A number that only grows, for each combination of labels."""

    kind = "counter"

    def __init__(self) -> None:
        self._values: defaultdict[Labels, float] = defaultdict(float)
        self._lock = Lock()

    def add(self, amount: float = 1, **labels: str) -> None:
        """Add to the number with these labels."""
        with self._lock:
            self._values[tuple(labels.items())] += amount

    def samples(self) -> Iterator[tuple[str, Labels, float]]:
        """Yield a suffix of the name, labels and a value."""
        with self._lock:
            values = list(self._values.items()) or [((), 0.0)]
        yield from (("", labels, value) for labels, value in values)


class Histogram:
    """How often values were up to each of some bounds, for each combination of labels."""

    kind = "histogram"

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts: defaultdict[Labels, list[int]] = defaultdict(lambda: [0] * (len(bounds) + 1))
        self._sums: defaultdict[Labels, float] = defaultdict(float)
        self._lock = Lock()

    def observe(self, value: float, **labels: str) -> None:
        """Count a value with these labels."""
        key = tuple(labels.items())
        with self._lock:
            self._counts[key][bisect_left(self._bounds, value)] += 1
            self._sums[key] += value

    def samples(self) -> Iterator[tuple[str, Labels, float]]:
        """Yield the counts up to each bound, the sum of all values and their number."""
        with self._lock:
            found = [(labels, list(counts), self._sums[labels]) for labels, counts in self._counts.items()]
        for labels, counts, total in found:
            n = 0
            for bound, count in zip((*map(str, self._bounds), "+Inf"), counts, strict=True):
                n += count
                yield "_bucket", (*labels, ("le", bound)), n
            yield "_sum", labels, total
            yield "_count", labels, n


class Gauge:
    """A number that is asked for when it is wanted."""

    kind = "gauge"

    def __init__(self, read: Callable[[], float]) -> None:
        self._read = read

    def samples(self) -> Iterator[tuple[str, Labels, float]]:
        """Yield the number."""
        yield "", (), self._read()


class Metrics:
    """The metrics of a server."""

    def __init__(self) -> None:
        self.requests, self.characters, self.notes = Counter(), Counter(), Counter()
        self.seconds, self.batch_requests, self.batch_seconds = (
            Histogram(_SECONDS),
            Histogram(_SIZES),
            Histogram(_SECONDS),
        )
        self.batch_tokens = Counter()
        self._named: dict[str, tuple[str, Counter | Histogram | Gauge]] = {
            "requests_total": ("Responses, by route and status.", self.requests),
            "request_seconds": ("Seconds until a response, by route.", self.seconds),
            "characters_total": ("Characters of texts that were translated.", self.characters),
            "notes_total": ("Translations that the guard finds doubtful, by what is wrong.", self.notes),
            "batch_requests": ("Searches, scores and alignments that were computed together.", self.batch_requests),
            "batch_seconds": ("Seconds that a batch took.", self.batch_seconds),
            "batch_tokens_total": ("Tokens of batches.", self.batch_tokens),
        }

    def add_gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a number that ``read`` returns."""
        self._named[name] = text, Gauge(read)

    def observe_batch(self, n_requests: int, n_tokens: int, seconds: float) -> None:
        """Count a batch."""
        self.batch_requests.observe(n_requests)
        self.batch_seconds.observe(seconds)
        self.batch_tokens.add(n_tokens)

    def text(self) -> str:
        """Return all metrics."""
        lines = []
        for name, (text, metric) in self._named.items():
            lines += [f"# HELP mtformer_{name} {text}", f"# TYPE mtformer_{name} {metric.kind}"]
            for suffix, labels, value in metric.samples():
                shown = ",".join(f'{key}="{_escaped(of_label)}"' for key, of_label in labels)
                lines.append(f"mtformer_{name}{suffix}{f'{{{shown}}}' * bool(shown)} {value!r}")
        return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
