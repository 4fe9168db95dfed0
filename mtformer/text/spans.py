"""Where tokens and words stand in a text, in characters."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence

Span = tuple[int, int]  # start and end, in characters of a text

_SPACE = "▁"  # SentencePiece's mark for a space
# Han characters and their punctuation, full-width forms, kana and Thai: scripts without spaces between words.
CHARACTER_WORDS = "\u0e00-\u0e7f\u3000-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
_WORDS = re.compile(rf"[{CHARACTER_WORDS}\U00020000-\U0003ffff]|[^\s{CHARACTER_WORDS}\U00020000-\U0003ffff]+")


def word_spans(text: str) -> list[Span]:
    """Return where the words of ``text`` stand.

    A word is what spaces separate, with the punctuation that is attached to it, so that ``text.split()`` gives the same
    words. In scripts without spaces, such as Chinese, each character is a word, and so is each of their punctuation
    marks.
    """
    return [match.span() for match in _WORDS.finditer(text) if not match[0].isspace()]


def token_spans(text: str, tokens: Sequence[str | bytes], normalize: Callable[[str], str]) -> list[Span]:
    """Return where each token of ``text`` stands in it, without the space before it.

    A token that is only a space has an empty span. Tokens that spell a character in bytes all have its span, and so
    have tokens of characters that normalization has composed or decomposed together.

    Args:
        text: as a user has written it.
        tokens: those of the normalized text, without EOS; bytes are those of a character that has no token.
        normalize: the normalization, which may remove spaces.
    """
    letters = [span for character, span in _normalized(text, normalize) if character not in (" ", _SPACE)]
    spans, place, spelled = [], 0, b""
    for token in tokens:
        if isinstance(token, bytes):
            spelled += token
            spans.append(_cover(letters, place, place + 1))
            is_complete = len(spelled) == _n_bytes(spelled[0])
            place, spelled = (place + 1, b"") if is_complete else (place, spelled)
        else:
            end = place + len(token.replace(_SPACE, ""))
            spans.append(_cover(letters, place, end))
            place = end
    return spans


def _n_bytes(first: int) -> int:
    """Return how many bytes of UTF-8 spell the character whose first byte is ``first``."""
    return 1 + sum(first >= least for least in (0xC0, 0xE0, 0xF0))


def _cover(letters: Sequence[Span], start: int, end: int) -> Span:
    """Return the span from one letter to before another; if there is nothing between them, an empty one."""
    end = min(end, len(letters))  # a model may write bytes that are no letters
    if start < end:
        return letters[start][0], letters[end - 1][1]
    at = letters[start][0] if start < len(letters) else (letters[-1][1] if letters else 0)
    return at, at


def _normalized(text: str, normalize: Callable[[str], str]) -> Iterator[tuple[str, Span]]:
    """Yield the characters of the normalized text, each with the span of ``text`` that it comes from."""
    for start, end in _clusters(text, normalize):
        for character in normalize(text[start:end]):
            yield character, (start, end)


def _clusters(text: str, normalize: Callable[[str], str]) -> Iterable[Span]:
    """Return the smallest parts of ``text`` that are normalized alone as they are in it."""
    if normalize(text) == text:
        return ((i, i + 1) for i in range(len(text)))
    starts: list[int] = []
    for place, character in enumerate(text):
        if not starts or _begins(text[starts[-1] : place], character, normalize):
            starts.append(place)
    return zip(starts, [*starts[1:], len(text)], strict=True)


def _begins(before: str, character: str, normalize: Callable[[str], str]) -> bool:
    """Tell whether ``character`` begins a part: it is no combining mark and is not composed with those before."""
    if unicodedata.combining(character):
        return False
    return normalize(before + character) == normalize(before) + normalize(character)
