"""Where two translations of a sentence differ, word by word."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

from mtformer.text.languages import is_written_with_spaces

_WORD = re.compile(r"\w+|[^\w\s]")
_CHARACTER = re.compile(r"[A-Za-z0-9]+|\S")


class Segment(NamedTuple):
    """A part of a translation.

    Attributes:
        text: the part; the segments of a translation, joined, are the translation.
        differs: whether the other translation lacks it in this place.
    """

    text: str
    differs: bool


def mark_differences(one: str, other: str, tgt_lang: str) -> tuple[list[Segment], list[Segment]]:
    """Divide two texts where they differ: by words, or by characters in languages without spaces.

    Args:
        one: the first text.
        other: the second text.
        tgt_lang: their language.
    """
    word = _WORD if is_written_with_spaces(tgt_lang) else _CHARACTER
    sides = [(text, list(word.finditer(text))) for text in (one, other)]
    ours, theirs = ([match.group() for match in matches] for _, matches in sides)
    changes = [op for op in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes() if op[0] != "equal"]
    spans_of_both = [(i, j) for _, i, j, _, _ in changes if i < j], [(i, j) for _, _, _, i, j in changes if i < j]
    first, second = (
        list(_segments(text, [(matches[i].start(), matches[j - 1].end()) for i, j in spans]))
        for (text, matches), spans in zip(sides, spans_of_both, strict=True)
    )
    return first, second


def _segments(text: str, spans: list[tuple[int, int]]) -> Iterator[Segment]:
    """Divide ``text`` at the ends of the different spans, which are given in order and do not overlap."""
    end = 0
    for start, stop in spans:
        if end < start:
            yield Segment(text[end:start], False)
        yield Segment(text[start:stop], True)
        end = stop
    if end < len(text):
        yield Segment(text[end:], False)
