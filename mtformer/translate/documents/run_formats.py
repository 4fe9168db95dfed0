"""The formats of runs as pairs of marks: those of most characters, of spaces and of punctuation need none."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mtformer.translate.documents.inline import Kind, Mark, Text, Token

_SEEN_ON_SPACES = re.compile(r"<[\w.-]+:(?:u|strike|dstrike|highlight|shd|vertAlign|bdr)\s|\su=")


def with_formats(items: Sequence[tuple[Token, str]], base: str) -> Iterator[Token]:
    """Put a pair of marks around texts of one format, unless it is the ``base``."""
    opened: Mark | None = None
    n_pairs = 0
    for (item, _), format in zip(items, _adopted(items, base), strict=True):
        is_text = isinstance(item, Text)
        ends = format != (base if opened is None else opened.format) if is_text else _is_border(item)
        if opened is not None and ends:
            yield replace(opened, kind=Kind.CLOSE)
            opened = None
        if is_text and opened is None and format != base:
            n_pairs += 1
            opened = Mark(Kind.OPEN, (), -n_pairs, format)
            yield opened
        yield item
    if opened is not None:
        yield replace(opened, kind=Kind.CLOSE)


def _is_border(item: Token) -> bool:
    return isinstance(item, Mark) and item.kind is not Kind.POINT


def _adopted(items: Sequence[tuple[Token, str]], base: str) -> list[str]:
    """Return the format of each item; spaces and punctuation take that of the text beside them."""
    formats = [format for _, format in items]
    following = _following(items)
    before: str | None = None
    for place, (item, format) in enumerate(items):
        if _is_border(item):
            before = None
        if not isinstance(item, Text):
            continue
        if not any(map(str.isalnum, item.text)) and not _SEEN_ON_SPACES.search(format):
            after = following[place]
            beside = [each for each in (before, after) if each is not None] or [format]
            is_outside = format == base or item.text.isspace()
            formats[place] = base if is_outside and before != after else beside[0]
        before = formats[place]
    return formats


def _following(items: Sequence[tuple[Token, str]]) -> list[str | None]:
    """Return for each item the format of the next text with a word, up to where no format goes on."""
    following: list[str | None] = []
    after: str | None = None
    for item, format in reversed(items):
        following.append(after)
        if _is_border(item):
            after = None
        elif isinstance(item, Text) and any(map(str.isalnum, item.text)):
            after = format
    return following[::-1]
