"""The choices of options of jobs; ``--help`` imports this module, so it imports nothing heavy."""

import re
from dataclasses import dataclass
from enum import StrEnum

from mtformer.support.errors import UserError


class Format(StrEnum):
    """The output format of ``translate`` and ``score``."""

    text = "text"
    tsv = "tsv"
    json = "json"


class OnError(StrEnum):
    """The treatment of lines that are not UTF-8 or that fail."""

    stop = "stop"
    skip = "skip"
    copy = "copy"


@dataclass(frozen=True)
class Shard:
    """One of several consecutive shares of the lines.

    Attributes:
        index: its number, from 1.
        count: the number of shares.
    """

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read ``I/N``.

        Raises:
            UserError: the text has another form, or I is not between 1 and N.
        """
        match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
        index, count = map(int, match.groups()) if match else (0, 0)
        if not 1 <= index <= count:
            raise UserError(f"--shard {text}: write I/N with I from 1 to N, as in 2/8")
        return cls(index, count)

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def of(self, n_lines: int) -> range:
        """Return the indices of this share among ``n_lines`` lines."""
        return range((self.index - 1) * n_lines // self.count, self.index * n_lines // self.count)
