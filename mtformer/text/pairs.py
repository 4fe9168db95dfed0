"""Sentence pairs: the columns that contain them, and the lines that do not."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from mtformer.support.terminal import counted
from mtformer.text.languages import is_language

ROLES = (("source", "src"), ("target", "tgt", "trg"))
BLANK = "blank"  # the reason that a line is dropped for
_SHOWN = 5  # lines named for each reason
_LOUD = 0.1  # a larger share of a source deserves a warning


class SentencePair(NamedTuple):
    """A text and its translation."""

    src: str
    tgt: str

    @property
    def is_blank(self) -> bool:
        """Whether a side is empty or has only spaces."""
        return not self.src.strip() or not self.tgt.strip()


class Example(NamedTuple):
    """A pair with its place in its source.

    Attributes:
        src: the text.
        tgt: its translation.
        line: the line of the file where it begins, or the row of a data set; from 1.
    """

    src: str
    tgt: str
    line: int


class Fingerprint(NamedTuple):
    """Identifies a text.

    Attributes:
        n_pairs: the number of pairs.
        digest: changes when any pair, or their order, does.
    """

    n_pairs: int
    digest: str


def fingerprint(pairs: Iterable[SentencePair]) -> Fingerprint:
    """Count ``pairs`` and compute their digest, in one pass."""
    digest = hashlib.sha256()
    n_pairs = 0
    for pair in pairs:
        n_pairs += 1
        digest.update(f"{pair.src}\n{pair.tgt}\n".encode())
    return Fingerprint(n_pairs, digest.hexdigest()[:16])


def one_line(text: str) -> str:
    """Replace line ends and zero bytes, which a text file cannot have inside a line."""
    return text.replace("\r", " ").replace("\n", " ").replace("\0", " ")


def is_column_name(cell: str) -> bool:
    """Tell whether a cell names a language or a side, as those of a header do."""
    return is_language(cell) or cell.strip().lower() in (*ROLES[0], *ROLES[1])


@dataclass
class Drops:
    """Counts the lines left out of a source, by reason.

    Attributes:
        counts: the number of lines by reason.
        lines: the first lines by reason.
    """

    counts: Counter[str] = field(default_factory=Counter)
    lines: dict[str, list[int]] = field(default_factory=dict)

    def add(self, reason: str, line: int) -> None:
        """Count one more line."""
        self.counts[reason] += 1
        shown = self.lines.setdefault(reason, [])
        if len(shown) < _SHOWN:
            shown.append(line)

    @property
    def total(self) -> int:
        """The number of lines left out, for any reason."""
        return self.counts.total()

    def warning(self, source: str, n_kept: int) -> str:
        """Return a warning if more than a tenth of ``source`` is left out, or else an empty text."""
        n_lines = n_kept + self.total
        if self.total <= _LOUD * n_lines:
            return ""
        reasons = "; ".join(self._describe(reason, count) for reason, count in self.counts.most_common())
        dropped = f"{self.total:,} of {counted(n_lines, 'line')} {'is' if self.total == 1 else 'are'} dropped"
        return f"{source}: {dropped} ({100 * self.total / n_lines:.0f} %): {reasons}"

    def _describe(self, reason: str, count: int) -> str:
        shown = ", ".join(f"{line}" for line in self.lines[reason])
        more = ", …" if count > len(self.lines[reason]) else ""
        return f"{count:,} {reason} ({'line' if count == 1 else 'lines'} {shown}{more})"
