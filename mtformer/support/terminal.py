"""Text in the columns of a terminal; tables as plain text, Markdown and LaTeX."""

import re
import sys
import unicodedata
from collections.abc import Sequence
from itertools import zip_longest

Row = Sequence[str]  # of a table: as many cells as the header has

_ANSI = re.compile(r"\x1b\[\d*m")
# Chinese and Japanese, with their punctuation; not Korean, which has spaces.
_IDEOGRAPH = re.compile("[\u2e80-\u312f\u3190-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\U00020000-\U0003ffff]")
_ENDS_NO_LINE = ("Ps", "Pi")  # categories: opening brackets and quotation marks
_STARTS_NO_LINE = ("Pe", "Pf", "Po", "Pd", "Lm", "Sk", "Mn", "Mc", "Me", "Cf")  # closing ones, full stops, marks

_NARROWEST = 12  # the width to which the columns of a table are narrowed at most

_CONTROL = ("Cc", "Cs", "Zl", "Zp")  # categories of characters that a terminal obeys or cannot show

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
_LATEX |= {character: f"\\{character}" for character in "&%$#_{}"}


def escaped(text: str, *, keep: str = "") -> str:
    r"""Return ``text`` with its control characters as ``\x1b`` and the like, except for those to ``keep``."""
    if text.isprintable():
        return text
    return "".join(c if c in keep or unicodedata.category(c) not in _CONTROL else ascii(c)[1:-1] for c in text)


def shortened(text: str, most: int) -> str:
    """Return at most so many characters of a text that anyone may have written, with what is not printable escaped."""
    shown = text if len(text) <= most else text[: most - 1] + "…"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in shown)


def fixed(number: float, digits: int, width: int = 0) -> str:
    """Return a number with this many digits after its point and with a proper minus sign, right-aligned."""
    return f"{number:{width}.{digits}f}".replace("-", "−")


def counted(n: int, noun: str) -> str:
    """Return a number of things, as in ``1 line`` or ``2,000 lines``."""
    return f"{n:,} {noun}" + "s" * (n != 1)


def text_width(text: str) -> int:
    """Return the columns that ``text`` takes: two for a wide character, none for a combining mark or an ANSI code."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def wrap(text: str, columns: int, first: str = "", others: str = "", *, keeps_words: bool = False) -> list[str]:
    """Wrap a text to lines of at most ``columns``.

    Lines are broken at spaces and between ideographs, but not before a full stop or the like, nor after an opening
    bracket.

    Args:
        text: the text.
        columns: the most that a line may take.
        first: the beginning of the first line.
        others: the beginning of every other line.
        keeps_words: whether a word that is too long for a line stays whole, and makes the line longer.
    """
    lines, line, n_columns, is_empty = list[str](), first, text_width(first), True
    longest = sys.maxsize if keeps_words else columns - text_width(others)
    for word in text.split(" "):
        for place, unit in enumerate(_unbreakable(word, longest)):
            added = f" {unit}" if place == 0 and not is_empty else unit
            n_columns += text_width(added)
            if is_empty or n_columns <= columns:
                line += added
            else:
                lines.append(line)
                line = others + unit
                n_columns = text_width(line)
            is_empty = False
    return [*lines, line]


def _unbreakable(word: str, longest: int) -> list[str]:
    """Divide a word where a line may be broken, and where it would take more than ``longest`` columns."""
    units, start, n_columns = list[str](), 0, 0
    for place, character in enumerate(word):
        width = text_width(character)
        n_columns += width
        if place > start and (_may_break(word[place - 1], character) or n_columns > longest):
            units.append(word[start:place])
            start, n_columns = place, width
    return [*units, word[start:]]


def _may_break(before: str, after: str) -> bool:
    return (
        bool(_IDEOGRAPH.match(before) or _IDEOGRAPH.match(after))
        and unicodedata.category(before) not in _ENDS_NO_LINE
        and unicodedata.category(after) not in _STARTS_NO_LINE
    )


def shorten(text: str, columns: int) -> str:
    """Cut ``text`` to at most ``columns``, ending in … where something is missing."""
    if text_width(text) <= columns:
        return text
    kept = ""
    for character in text:
        if text_width(kept + character) >= columns:
            break
        kept += character
    return kept + "…"


def as_text(header: Row, rows: Sequence[Row], *, left: int = 1, columns: int | None = None) -> str:
    """Align the columns with spaces: the first ``left`` to the left, the others to the right.

    Args:
        header: the names of the columns.
        rows: the others.
        left: how many columns are aligned to the left.
        columns: the width of the terminal, to which cells of the widest columns are wrapped; None for any width.
    """
    table = [header, *rows]
    widths = [max(map(text_width, column)) for column in zip(*table, strict=True)]
    while columns is not None and sum(widths) + 2 * len(widths) - 2 > columns and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    lines = []
    for row in table:
        wrapped = [
            [cell] if text_width(cell) <= width else wrap(cell, width) for cell, width in zip(row, widths, strict=True)
        ]
        for parts in zip_longest(*wrapped, fillvalue=""):
            cells = []
            for place, (cell, width) in enumerate(zip(parts, widths, strict=True)):
                space = " " * (width - text_width(cell))
                cells.append(cell + space if place < left else space + cell)
            lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


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
    return re.sub(r"[\\~^±&%$#_{}]", lambda match: _LATEX[match.group()], cell)
