"""Count the doubtful translations of a job."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from mtformer.translate.translation import FLAG, Translation

_LINES_SHOWN = 5


@dataclass
class FlagCounter:
    """Counts the lines of a job whose translations may be wrong, and says so in one line.

    Attributes:
        n_lines: how many they are.
        first: the numbers of the first of them.
        problems: how many lines have each problem.
    """

    n_lines: int = 0
    first: list[int] = field(default_factory=list)
    problems: dict[str, int] = field(default_factory=dict)

    def add(self, found: Iterable[tuple[int, Translation]]) -> None:
        """Count lines, each given by its number and its best translation."""
        for line, best in found:
            notes = (note.removeprefix(FLAG) for note in best.notes if note.startswith(FLAG))
            problems = dict.fromkeys(note.split(":")[0] for note in notes)
            if problems:
                self.n_lines += 1
                self.problems |= {problem: self.problems.get(problem, 0) + 1 for problem in problems}
                self.first += [line] if len(self.first) < _LINES_SHOWN else []

    def summary(self) -> str | None:
        """Return what to tell the user; None if nothing is wrong."""
        if not self.n_lines:
            return None
        lines = ", ".join(map(str, self.first)) + (", …" if self.n_lines > len(self.first) else "")
        problems = ", ".join(f"{problem} ({n:,})" for problem, n in Counter(self.problems).most_common())
        which = f"line {lines}" if self.n_lines == 1 else f"{self.n_lines:,} lines ({lines})"
        return f"check the translation of {which}: {problems}; --format json has the notes of each"
