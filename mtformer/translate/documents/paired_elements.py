"""Pairs of empty elements, such as the two ends of a bookmark: a translation must not change their order.

Unlike the tags of one element, they may overlap others. Where they do not, they go around words as a pair of tags does.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from mtformer.translate.documents.inline import Kind, Mark, Raw, Text, Token
from mtformer.translate.documents.markup_tokens import MarkupSource

# By their names, as in bookmarkStart, text:bookmark-start and, in XLIFF and TMX, bpt, bx and sc.
_SIDE = re.compile(r"(?P<family>.+?)-?(?:(?P<start>[sS]tart)|[eE]nd)|(?P<begin>b|s)(?P<short>pt|x|c)|e(?P<last>pt|x|c)")
_ANNOTATION = "office:annotation"  # it is what its end has no other start for
_IDS = ("startRef", "rid", "i", "id", "w:id", "text:name", "text:id", "text:change-id", "office:name")


def point(source: MarkupSource, number: int, raw: Raw, *, has_text: bool = False) -> Mark:
    """Return the mark of an element that has no text to translate; see :func:`paired` for those with a partner.

    Args:
        source: the source that contains it.
        number: the index of its token.
        raw: its source text.
        has_text: whether it stands for text.
    """
    name = source.tokens[number].name
    side = _SIDE.fullmatch(name)
    if side or name == _ANNOTATION:
        attributes = source.attributes(number)
        id = next((attributes[key] for key in _IDS if key in attributes), None)
        is_start = side is None or side["start"] or side["begin"]
        family = name if side is None else side["family"] or side["short"] or side["last"]
        if id is not None and (side or "office:name" in attributes):
            return Mark(Kind.OPEN if is_start else Kind.CLOSE, raw, number, has_text=has_text, name=f"{family} {id}")
    return Mark(Kind.POINT, raw, has_text=has_text)


def paired(tokens: Sequence[Token], *, joins: bool = True) -> list[Token]:
    """Return the tokens of a block with the ends of each pair joined, or as points if they cannot be.

    They are joined if text stands between them, and if they are nested with all other pairs. The points of a pair that
    is not joined keep its number, so that a translation can be checked for their order.

    Args:
        tokens: the tokens.
        joins: whether pairs are joined; those of a bilingual document are not, as only the source has them.
    """
    starts: dict[str, int] = {}
    mates: dict[int, int] = {}  # of what has a name, both ways
    n_texts = [0]
    for place, token in enumerate(tokens):
        n_texts.append(n_texts[-1] + (isinstance(token, Text) and not token.text.isspace()))
        if isinstance(token, Mark) and token.name and token.kind is Kind.OPEN:
            starts[token.name] = place
        elif isinstance(token, Mark) and token.name and token.name in starts:
            start = starts.pop(token.name)
            mates[start], mates[place] = place, start
    nested = {place for place in _nested(tokens, mates) if n_texts[place] < n_texts[mates[place]]}
    result = list(tokens)
    for place, token in enumerate(tokens):
        if isinstance(token, Mark) and token.name:
            mate = mates.get(place)
            first = tokens[place if mate is None else min(place, mate)]
            pair = first.pair if mate is not None and isinstance(first, Mark) else 0
            is_joined = joins and mate is not None and min(place, mate) in nested
            result[place] = replace(token, kind=token.kind if is_joined else Kind.POINT, pair=pair)
    return result


def _nested(tokens: Sequence[Token], mates: dict[int, int]) -> set[int]:
    """Return the indices of the starts that nest with all other pairs; pairs of elements take precedence."""
    ends = {token.pair for token in tokens if isinstance(token, Mark) and token.kind is Kind.CLOSE and not token.name}
    nested: set[int] = set()
    opened: list[int] = []
    crossing: set[int] = set()
    for place, token in enumerate(tokens):
        if not isinstance(token, Mark) or (token.name and place not in mates):
            continue
        if token.kind is Kind.OPEN and (token.name or token.pair in ends):
            opened.append(place)
        elif token.kind is Kind.CLOSE and token.name:
            while opened and opened[-1] in crossing:
                opened.pop()
            if opened and opened[-1] == mates[place]:
                nested.add(opened.pop())
            crossing.add(mates[place])
        elif token.kind is Kind.CLOSE:
            while opened:
                start = tokens[opened.pop()]
                if isinstance(start, Mark) and not start.name and start.pair == token.pair:
                    break
    return nested
