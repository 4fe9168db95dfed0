"""Cut texts that are too long for the model: preferably after a sentence, or else between words or characters."""

import re
from collections.abc import Sequence
from itertools import accumulate, pairwise

_FULL_WIDTH_ENDS = tuple("。！？；")  # no space follows them
_CONTINUATION_BYTE = re.compile("<0x[89AB][0-9A-F]>")  # of a character that is spelled as several bytes
_SENTENCE_ENDS = (*".!?;", *(f"<0x{ord(end):02X}>" for end in ".!?;"), *_FULL_WIDTH_ENDS)


def cut(tokens: Sequence[str], most: int) -> list[int]:
    """Cut ``tokens`` into parts of at most ``most`` each; return how many each part has.

    Raises:
        ValueError: ``most`` is below 1.
    """
    if most < 1:
        raise ValueError(f"tokens cannot be cut into parts of at most {most}")
    sizes, start = [], 0
    while len(tokens) - start > most:
        sizes.append(_best(tokens, range(start + most, start + min((most + 1) // 2, most - 1), -1)) - start)
        start += sizes[-1]
    return [*sizes, len(tokens) - start]


def cut_alike(tokens: Sequence[str], sizes: Sequence[int]) -> list[int]:
    """Cut ``tokens``, those of a translation, in proportion to the parts of its source, whose sizes are ``sizes``."""
    ends = list(accumulate(sizes))
    cuts = [0]
    for end, size in zip(ends[:-1], sizes, strict=False):
        ideal = round(len(tokens) * end / ends[-1])
        width = round(len(tokens) * size / ends[-1] / 4)
        near = sorted(range(max(cuts[-1], ideal - width) + 1, ideal + width + 1), key=lambda i: abs(i - ideal))
        places = [place for place in near if place < len(tokens)]
        cuts.append(_best(tokens, places) if places else cuts[-1])
    return [after - before for before, after in pairwise([*cuts, len(tokens)])]


def _best(tokens: Sequence[str], places: Sequence[int]) -> int:
    """Return the first of ``places`` that follows a sentence, else a word, else a character, else the first at all."""
    word_starts = [i for i in places if tokens[i].startswith("▁") or tokens[i - 1].endswith(_FULL_WIDTH_ENDS)]
    sentence_end = next((i for i in word_starts if tokens[i - 1].endswith(_SENTENCE_ENDS)), None)
    character_start = next((i for i in places if not _CONTINUATION_BYTE.fullmatch(tokens[i])), None)
    return sentence_end or next(iter(word_starts), None) or character_start or places[0]
