"""Where a line of text may be broken."""

import re
import unicodedata

from mtformer.support.terminal import text_width

# Chinese and Japanese, with their punctuation; not Korean, which has spaces.
_IDEOGRAPH = re.compile("[\u2e80-\u312f\u3190-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\U00020000-\U0003ffff]")
_ENDS_NO_LINE = ("Ps", "Pi")  # categories: opening brackets and quotation marks
_STARTS_NO_LINE = ("Pe", "Pf", "Po", "Pd", "Lm", "Sk", "Mn", "Mc", "Me", "Cf")  # closing ones, full stops, marks


def wrapped(text: str, width: int, first: str, others: str) -> str:
    """Wrap a text to ``width`` columns of a terminal, where that is possible without breaking a word.

    Lines are broken at spaces and between ideographs, but not before a full stop or the like, nor after an opening
    bracket.

    Args:
        text: the text.
        width: the most columns of a line.
        first: what the first line starts with.
        others: what every other line starts with.
    """
    lines, line, is_empty = [], first, True
    for word in text.split(" "):
        for place, unit in enumerate(_unbreakable(word)):
            gap = " " if place == 0 and not is_empty else ""
            if is_empty or text_width(line + gap + unit) <= width:
                line += gap + unit
            else:
                lines.append(line)
                line = others + unit
            is_empty = False
    return "\n".join([*lines, line])


def _unbreakable(word: str) -> list[str]:
    """Divide a word where a line may be broken."""
    units: list[str] = []
    for character in word:
        if units and not _may_break(units[-1][-1], character):
            units[-1] += character
        else:
            units.append(character)
    return units


def _may_break(before: str, after: str) -> bool:
    return (
        bool(_IDEOGRAPH.match(before) or _IDEOGRAPH.match(after))
        and unicodedata.category(before) not in _ENDS_NO_LINE
        and unicodedata.category(after) not in _STARTS_NO_LINE
    )
