"""What changes between two sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from mtformer.explain.trace import AttentionTrace, Kind, Token


@dataclass(frozen=True)
class AttentionChange:
    """How much one head's weights differ: the mean absolute difference over the tokens that both sentences have."""

    kind: Kind
    layer: int
    head: int
    difference: float


@dataclass(frozen=True)
class Changes:
    """What changes between two traces.

    Attributes:
        source: operations that turn the tokens of the first source into those of the second, as
            :meth:`difflib.SequenceMatcher.get_opcodes` returns them.
        target: those of the translations.
        attention: of every head, the largest first.
    """

    source: tuple[tuple[str, int, int, int, int], ...]
    target: tuple[tuple[str, int, int, int, int], ...]
    attention: tuple[AttentionChange, ...]


def compare(a: AttentionTrace, b: AttentionTrace) -> Changes:
    """Compare the traces of two sentences by the same model."""
    source = _aligned(a.source.tokens, b.source.tokens)
    target = _aligned(a.decoder_input, b.decoder_input)
    axes = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
    changes = []
    for ours, theirs in zip(a.attentions, b.attentions, strict=True):
        (rows_a, rows_b), (columns_a, columns_b) = axes[ours.kind]
        weights_a = ours.weights[:, rows_a][:, :, columns_a]  # (H, n, m)
        weights_b = theirs.weights[:, rows_b][:, :, columns_b]
        differences = np.abs(weights_a - weights_b).mean(axis=(1, 2))
        heads = enumerate(differences.tolist(), 1)
        changes += [AttentionChange(ours.kind, ours.layer, head, difference) for head, difference in heads]
    return Changes(
        source=_opcodes(a.source.tokens, b.source.tokens),
        target=_opcodes(a.target.tokens, b.target.tokens),
        attention=tuple(sorted(changes, key=lambda change: -change.difference)),
    )


def _opcodes(a: Sequence[Token], b: Sequence[Token]) -> tuple[tuple[str, int, int, int, int], ...]:
    matcher = SequenceMatcher(None, [token.id for token in a], [token.id for token in b], autojunk=False)
    return tuple(matcher.get_opcodes())


def _aligned(a: Sequence[Token], b: Sequence[Token]) -> tuple[list[int], list[int]]:
    """Return the places in ``a`` and in ``b`` of tokens that are equal, or replaced one by one."""
    places: tuple[list[int], list[int]] = [], []
    for _, a0, a1, b0, b1 in _opcodes(a, b):
        if a1 - a0 == b1 - b0:
            places[0].extend(range(a0, a1))
            places[1].extend(range(b0, b1))
    return places
