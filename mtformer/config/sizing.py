"""Defaults that depend on how much text there is to learn from."""

from typing import NamedTuple


class Size(NamedTuple):
    """What a corpus of up to ``max_pairs`` sentence pairs gets by default."""

    max_pairs: float
    preset: str
    vocab_size: int
    max_tokens: int
    max_epochs: int
    warmup_steps: int


SIZES = (
    Size(10_000, "tiny", 4_000, 1_024, 30, 200),
    Size(100_000, "small", 8_000, 2_048, 12, 400),
    Size(200_000, "small", 16_000, 2_048, 12, 400),
    Size(2_000_000, "small", 16_000, 4_096, 5, 2_000),
    Size(float("inf"), "base", 32_000, 8_192, 4, 4_000),
)


def size_for(n_pairs: int) -> Size:
    """Return the defaults for a corpus of ``n_pairs`` sentence pairs."""
    return next(size for size in SIZES if n_pairs <= size.max_pairs)
