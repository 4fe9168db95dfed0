"""Which lines of a source are not used, and why."""

from collections import Counter
from dataclasses import dataclass, field

BLANK = "blank"  # the reason that a line is
_SHOWN = 5  # lines named for each reason
_LOUD = 0.1  # a larger share of a source deserves a warning


@dataclass
class Drops:
    """Counts what is left out of a source, by reason.

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
        return f"{source}: {self.total:,} of {n_lines:,} lines are dropped ({self.total / n_lines:.0%}): {reasons}"

    def _describe(self, reason: str, count: int) -> str:
        shown = ", ".join(f"{line}" for line in self.lines[reason])
        more = ", …" if count > len(self.lines[reason]) else ""
        return f"{count:,} {reason} ({'line' if count == 1 else 'lines'} {shown}{more})"
