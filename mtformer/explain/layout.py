"""Text in columns of a terminal, where Chinese characters are two columns wide."""

import unicodedata
from collections.abc import Iterable


def width(text: str) -> int:
    """Return the columns that ``text`` takes."""
    return sum(_columns(character) for character in text)


def pad(text: str, columns: int) -> str:
    """Fill ``text`` with spaces on the right."""
    return text + " " * (columns - width(text))


def shorten(text: str, columns: int) -> str:
    """Cut ``text`` to at most ``columns``, ending in … where something is missing."""
    if width(text) <= columns:
        return text
    kept = ""
    for character in text:
        if width(kept + character) >= columns:
            break
        kept += character
    return kept + "…"


def shorten_left(text: str, columns: int) -> str:
    """Cut ``text`` from the left, as a prefix that grows is best seen."""
    return shorten(text[::-1], columns)[::-1]


def wrap(words: Iterable[str], columns: int, indent: str = "") -> list[str]:
    """Put words on lines of at most ``columns``, all but the first of which start with ``indent``."""
    lines = [""]
    for word in words:
        if lines[-1].strip() and width(lines[-1]) + 1 + width(word) > columns:
            lines.append(indent + word)
        else:
            lines[-1] += " " * bool(lines[-1].strip()) + word
    return lines


def upright(labels: list[str], columns: int) -> list[str]:
    """Write labels from top to bottom, side by side, each ``columns`` wide and all ending on the last line."""
    height = max(map(len, labels), default=0)
    rows = zip(*(label.rjust(height) for label in labels), strict=True)
    return ["".join(pad(character, columns) for character in row) for row in rows]


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
