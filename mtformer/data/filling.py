"""Filling batches to a token budget. Nothing here imports torch."""

from collections.abc import Sequence


def fill_batches(order: Sequence[int], lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Cut ``order`` into batches so that rows times the longest of ``lengths`` stays within ``max_tokens``."""
    batches: list[list[int]] = []
    batch: list[int] = []
    longest = 0
    for index in order:
        longest = max(longest, lengths[index])
        if batch and (len(batch) + 1) * longest > max_tokens:
            batches.append(batch)
            batch, longest = [], lengths[index]
        batch.append(index)
    if batch:
        batches.append(batch)
    return batches


def longest_first(lengths: Sequence[int]) -> list[int]:
    """Return the indices of ``lengths``, longest first."""
    return sorted(range(len(lengths)), key=lambda i: -lengths[i])
