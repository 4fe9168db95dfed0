"""Text and shaded blocks in the columns of a terminal, where Chinese characters are two columns wide."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from mtformer.explain.trace import Attention, Token, Trace
from mtformer.support.terminal import shorten, text_width


def pad(text: str, columns: int) -> str:
    """Fill ``text`` with spaces on the right."""
    return text + " " * (columns - text_width(text))


def shorten_left(text: str, columns: int) -> str:
    """Cut ``text`` from the left, which suits a prefix that grows."""
    return shorten(text[::-1], columns)[::-1]


def upright(labels: Sequence[str], columns: int) -> list[str]:
    """Write labels from top to bottom, side by side, each ``columns`` wide and all ending on the last line."""
    height = max(map(len, labels), default=0)
    rows = zip(*(label.rjust(height) for label in labels), strict=True)
    return ["".join(pad(character, columns) for character in row) for row in rows]


LEGEND = "blank: below 5 %   ░ from 5 %   ▒ from 20 %   ▓ from 40 %   █ from 70 %"
_SHADES = ((0.7, "█"), (0.4, "▓"), (0.2, "▒"), (0.05, "░"))
_NOTE = 26  # columns for the two keys with the largest weights
_GAP = 3  # columns between two heat maps


@dataclass(frozen=True)
class HeatMap:
    """One head's weights, to be drawn with a row for each query and a column for each key.

    Attributes:
        queries: the tokens of the rows.
        keys: the tokens of the columns.
        weights: (Q, K).
    """

    queries: Sequence[Token]
    keys: Sequence[Token]
    weights: np.ndarray

    @classmethod
    def of(cls, trace: Trace, attention: Attention, head: int | None) -> "HeatMap":
        """Take a head of an attention of ``trace``, from 1; None for the mean of all."""
        return cls(
            trace.source.tokens if attention.kind == "encoder" else trace.decoder_input,
            trace.decoder_input if attention.kind == "decoder" else trace.source.tokens,
            attention.of_head(head),
        )

    def draw(self, columns: int) -> list[str]:
        """Draw for a terminal of ``columns``, in several parts if it is too narrow for all keys.

        Where there is room, each row ends with its two strongest keys.
        """
        with_notes = self._cell(columns - _NOTE)
        cell = with_notes or self._cell(columns) or self._cells[-1]
        most = max(1, (columns - self._left) // cell)
        return [
            line for start in range(0, len(self.keys), most) for line in self._part(start, most, cell, with_notes > 0)
        ]

    def beside(self, right: "HeatMap", columns: int) -> list[str]:
        """Draw this heat map and ``right`` side by side, or below each other if the terminal is too narrow."""
        half = (columns - _GAP) // 2
        cell = min(self._cell(half), right._cell(half))
        if not cell:
            return [*self.draw(columns), "", *right.draw(columns)]
        drawings = (reversed(heat_map._part(0, len(heat_map.keys), cell, notes=False)) for heat_map in (self, right))
        return [pad(a, half + _GAP) + b for a, b in zip_longest(*drawings, fillvalue="")][::-1]

    def _part(self, start: int, most: int, cell: int, notes: bool) -> list[str]:
        """Draw ``most`` keys from ``start`` on, each in a cell of this width."""
        shown = slice(start, start + most)
        header = upright([shorten(key.label, 12) for key in self.keys[shown]], cell)
        lines = [" " * self._left + line for line in header]
        for token, row in zip(self.queries, self.weights, strict=True):
            cells = "".join(pad(_shade(weight, cell), cell) for weight in row[shown])
            lines.append(pad(_name(token), self._left) + cells + (" " + self._note(row)) * notes)
        return lines

    def _note(self, row: np.ndarray) -> str:
        best = np.argsort(-row, kind="stable")[:2]
        return shorten(" ".join(f"{self.keys[k].label} {row[k]:.2f}" for k in best), _NOTE - 1)

    def _cell(self, columns: int) -> int:
        """Return the width of the widest cell for which all keys fit; 0 if none does."""
        return next((cell for cell in self._cells if self._left + cell * len(self.keys) <= columns), 0)

    @property
    def _cells(self) -> tuple[int, ...]:
        """The possible widths of a cell: three columns leave one free, and a wide character needs two."""
        is_wide = any(text_width(character) == 2 for key in self.keys for character in key.label)
        return (3, 2) if is_wide else (3, 2, 1)

    @property
    def _left(self) -> int:
        return max(text_width(_name(token)) for token in self.queries) + 1


def _name(token: Token) -> str:
    return shorten(token.label, 16)


def _shade(weight: float, cell: int) -> str:
    return next((shade for least, shade in _SHADES if weight >= least), " ") * min(cell, 2)
