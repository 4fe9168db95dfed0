"""How bench_translate.py times a toolkit: a driver loads its model once and translates the same lines as all others.

A driver runs in the virtual environment of its toolkit. Its argument is a JSON file with the fields of a :class:`Job`.
"""

import json
import sys
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T", bound=Sequence[Any])


@dataclass(frozen=True)
class Job:
    """What to translate, and how.

    Attributes:
        model: the model, in the toolkit's own format.
        sources: the lines.
        n_single: how many of them to translate one by one first.
        beam_size: 1 is greedy search.
        length_penalty: the exponent on the length, where the toolkit has one.
        length_factor: the target tokens per source token, for a model that does not end its translations.
        batch_tokens: the source tokens of a batch, padding included.
        threads: of the toolkit.
        result: the JSON file to write.
    """

    model: str
    sources: list[str]
    n_single: int
    beam_size: int
    length_penalty: float
    length_factor: float
    batch_tokens: int
    threads: int
    result: str


Translate = Callable[[list[str]], list[str]]


def run(load: Callable[[Job], Translate]) -> None:
    """Load the model with ``load``; translate a first line, single lines, and all lines at once; write the times."""
    job = Job(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    translate = load(job)
    translate(job.sources[:1])
    first_at = time.time()
    singles = [_timed(translate, [line])[0] for line in job.sources[: job.n_single]]
    seconds, translations = _timed(translate, job.sources)
    assert len(translations) == len(job.sources), f"{len(translations)} translations of {len(job.sources)} lines"
    found = {
        "first_at": first_at,
        "single_seconds": singles,
        "seconds": seconds,
        "translations": translations,
        "peak_mib": _peak_mib(),
    }
    Path(job.result).write_text(json.dumps(found), encoding="utf-8")


def _timed(translate: Translate, lines: list[str]) -> tuple[float, list[str]]:
    started = time.perf_counter()
    translations = translate(lines)
    return time.perf_counter() - started, translations


def _peak_mib() -> int:
    """Read the peak memory of this process; that of ``getrusage`` includes the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) // 1024


def tokenize(tokenizer: Any, lines: list[str]) -> list[list[str]]:
    """Split lines into tokens with a SentencePieceProcessor, after the normalization that mtformer does."""
    return tokenizer.encode([" ".join(unicodedata.normalize("NFC", line).split()) for line in lines], out_type=str)


def in_batches(rows: Sequence[T], budget: int, translate: Callable[[list[T]], list[str]]) -> list[str]:
    """Translate tokenized lines in batches of similar length, for a toolkit that leaves batching to its user.

    Args:
        rows: the lines; their lengths count.
        budget: the most tokens of a batch, padding included.
        translate: takes the rows of a batch.
    """
    lengths = [len(row) for row in rows]
    order = sorted(range(len(rows)), key=lambda i: -lengths[i])
    found = [""] * len(rows)
    while order:
        size = max(1, budget // max(1, lengths[order[0]]))
        batch, order = order[:size], order[size:]
        for place, translation in zip(batch, translate([rows[i] for i in batch]), strict=True):
            found[place] = translation
    return found


def length_limit(rows: Sequence[Sequence[Any]]) -> int:
    """Return the most tokens of a translation in a batch of ``rows``: mtformer's limit for the longest."""
    return 2 * max(map(len, rows)) + 20
