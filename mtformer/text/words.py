"""Words: where phrases stand as whole words, the spans of words and tokens, and folding of case and accents."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence

from mtformer.text.languages import is_written_with_spaces

WordRule = Callable[[str], bool]
WORD = re.compile(r"[^\W\d_]+")  # of letters alone
FIRST_LETTER = re.compile(r"(?<!\S)[^\w\s]*[^\W\d_]")  # of a word, with the quotes and brackets before it


def word_rule(language: str) -> WordRule:
    """Return the test whether a character is part of a word, so that a phrase must not begin or end beside it.

    Where no spaces separate words, only ASCII letters and digits are: a Chinese phrase may stand between any others.
    """
    return _is_word_character if is_written_with_spaces(language) else _is_ascii_word_character


def find_words(text: str, phrase: str, is_word: WordRule) -> list[int]:
    """Return where ``phrase`` starts in ``text`` as whole words, from left to right."""
    places = (match.start() for match in re.finditer(f"(?={re.escape(phrase)})", text))
    return [start for start in places if stands_alone(text, start, start + len(phrase), is_word)]


def stands_alone(text: str, start: int, end: int, is_word: WordRule) -> bool:
    """Tell whether ``text[start:end]`` neither begins nor ends within a word."""
    begins_inside = start > 0 and is_word(text[start - 1]) and is_word(text[start])
    ends_inside = end < len(text) and is_word(text[end - 1]) and is_word(text[end])
    return not begins_inside and not ends_inside


def claim(taken: list[bool], start: int, end: int) -> bool:
    """Mark the characters from ``start`` to before ``end`` as taken, unless some of them are; return whether it did."""
    is_free = not any(taken[start:end])
    if is_free:
        taken[start:end] = [True] * (end - start)
    return is_free


def _is_word_character(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")


def _is_ascii_word_character(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")


Span = tuple[int, int]  # start and end, in characters of a text

_SPACE = "▁"  # SentencePiece's mark for a space
# Han characters and their punctuation, full-width forms, kana and Thai: scripts without spaces between words.
CHARACTER_WORDS = "\u0e00-\u0e7f\u3000-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
_WORDS = re.compile(rf"[{CHARACTER_WORDS}\U00020000-\U0003ffff]|[^\s{CHARACTER_WORDS}\U00020000-\U0003ffff]+")


def word_spans(text: str) -> list[Span]:
    """Return the spans of the words of ``text``.

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


def folded(text: str) -> str:
    """Return a text in small letters without accents, and with ASCII digits for those of other widths or sizes."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character))
