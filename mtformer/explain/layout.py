"""Text in the columns of a terminal, where Chinese characters are two columns wide."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from mtformer.explain.trace import Token
from mtformer.support.terminal import text_width

_ANSI = re.compile(r"\x1b\[\d*m")


def width(text: str) -> int:
    """Return the columns that ``text`` takes; ANSI codes take none."""
    return text_width(_ANSI.sub("", text))


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
    """Cut ``text`` from the left, which suits a prefix that grows."""
    return shorten(text[::-1], columns)[::-1]


def wrap(text: str, columns: int, first: str = "", rest: str = "") -> list[str]:
    """Break ``text`` at spaces and between Chinese characters into lines of at most ``columns``.

    Args:
        text: words separated by spaces.
        columns: the width.
        first: what the first line starts with.
        rest: what the others start with.
    """
    lines, is_empty = [first], True
    for word in text.split(" "):
        for number, part in enumerate(_unbreakable(word, columns - width(rest))):
            space = " " if number == 0 and not is_empty else ""
            if not is_empty and width(lines[-1] + space + part) > columns:
                lines.append(rest + part)
            else:
                lines[-1] += space + part
            is_empty = False
    return lines


def upright(labels: Sequence[str], columns: int) -> list[str]:
    """Write labels from top to bottom, side by side, each ``columns`` wide and all ending on the last line."""
    height = max(map(len, labels), default=0)
    rows = zip(*(label.rjust(height) for label in labels), strict=True)
    return ["".join(pad(character, columns) for character in row) for row in rows]


def spelled(token: Token) -> str:
    """Return a token's text without what would disturb a terminal."""
    return "".join(character if character.isprintable() else "·" for character in token.text)


def label(token: Token) -> str:
    """Return a token's text, without the mark of a space before it where it would only take room."""
    return spelled(token).removeprefix("▁") or "▁"


def _unbreakable(word: str, columns: int) -> Iterator[str]:
    """Split a word where a line may break: around wide characters, but not before punctuation."""
    part = ""
    for character in word:
        is_wide = width(character) == 2
        may_break = is_wide or (part != "" and width(part[-1]) == 2)
        is_punctuation = unicodedata.category(character)[0] == "P"
        if part and ((may_break and not is_punctuation) or width(part + character) > columns):
            yield part
            part = ""
        part += character
    yield part
