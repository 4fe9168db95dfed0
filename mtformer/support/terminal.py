"""Tables as plain text, CSV, Markdown and LaTeX. A row is a list of cells, as many as the header has."""

import csv
import io
import re
import unicodedata
from collections.abc import Sequence

Row = Sequence[str]

_CONTROL = ("Cc", "Cs", "Zl", "Zp")  # categories of characters that a terminal obeys or cannot show

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
_LATEX |= {character: f"\\{character}" for character in "&%$#_{}"}


def escaped(text: str, *, keep: str = "") -> str:
    r"""Return ``text`` with its control characters as ``\x1b`` and the like, except for those to ``keep``."""
    if text.isprintable():
        return text
    return "".join(c if c in keep or unicodedata.category(c) not in _CONTROL else ascii(c)[1:-1] for c in text)


def text_width(text: str) -> int:
    """Return the columns that ``text`` takes in a terminal: two for a wide character, none for a combining mark."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def as_text(header: Row, rows: Sequence[Row], *, left: int = 1) -> str:
    """Align the columns with spaces: the first ``left`` to the left, the others to the right."""
    table = [header, *rows]
    widths = [max(map(text_width, column)) for column in zip(*table, strict=True)]
    lines = []
    for row in table:
        cells = []
        for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - text_width(cell))
            cells.append(cell + space if place < left else space + cell)
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def as_csv(header: Row, rows: Sequence[Row]) -> str:
    """Separate cells by commas, as RFC 4180 does, but lines by line feeds."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().removesuffix("\n")


def as_markdown(header: Row, rows: Sequence[Row]) -> str:
    """Format a table of GitHub's Markdown; numbers are aligned to the right."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    lines = [[cell.replace("|", "\\|") for cell in row] for row in (header, rule, *rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def as_latex(header: Row, rows: Sequence[Row]) -> str:
    r"""Format a ``tabular`` with the rules of the package ``booktabs``; ``±`` becomes ``\pm``."""
    body = [" & ".join(map(_latex, row)) + r" \\" for row in (header, *rows)]
    columns = "l" + "r" * (len(header) - 1)
    head = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", body[0], r"\midrule"]
    return "\n".join([*head, *body[1:], r"\bottomrule", r"\end{tabular}"])


def _latex(cell: str) -> str:
    return re.sub(r"[\\~^±&%$#_{}]", lambda found: _LATEX[found.group()], cell)
