"""Signs in texts that are no words: of list items, headings and quotes, emphasis, bars of tables, emoji, entities."""

import html
import html.entities
import re
from collections.abc import Iterator

from mtformer.text.dates import find_dates
from mtformer.text.languages import has_full_stops_in_ordinals
from mtformer.text.words import CHARACTER_WORDS, Span

_BULLETS = "·•◦‣▪■□●○►▶➢∙⁃\uf020-\uf0ff"  # the last ones of symbol fonts, as word processors copy them
START = re.compile(
    r"\s*(?:(?:#(?!\s*\d)|#{2,6}|[-*+–—→⇒]|[-=]>|\d{1,3}[.)]|\(\d{1,3}\)|\(?[A-Za-z]\)|\[[ xX]\])\s+"
    rf"|[>{_BULLETS}]\s*)+"
)
START_WITH_ORDINALS = re.compile(START.pattern.replace("[.)]", "[)]"))
SENTENCE_OR_HEADING = re.compile(r"\s*#|.*\w[.!?:]\W*$")
# Emphasis on all of a line, or on what it is about, as in "**Note:** …"; __NAME__ is a placeholder.
EMPHASIZED = re.compile(
    r"(?P<indent>\s*)(?!__[A-Z][A-Z0-9_]*__)(?P<mark>\*{1,3}|_{1,3}|~~)"
    r"(?P<inside>[^\s*_~](?:[^*_~]*[^\s*_~])?)(?P=mark)"
    r"(?:\s*$|:(?=\s)|(?=\s)(?:(?<=:[*_~])|(?<=:[*_~]{2})|(?<=:[*_~]{3})))"
)
TABLE_ROW = re.compile(r"\s*\|.*\|\s*")
LONGEST_WORD = 200  # characters; where no spaces separate words, as in Chinese and Khmer, any stretch may be text
LONG_WORD = re.compile(
    f"[^\\s{CHARACTER_WORDS}\u0e80-\u0fff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff]{{{LONGEST_WORD + 1},}}"
)
BAR = re.compile(r"\s*\|\s*(?::?-+:?\s*(?=\|))?")

_PICTOGRAPH = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u2460-\u24ff\u25aa-\u27bf\u2934\u2935\u2b05-\u2b55\u3030"
    "\u303d\u3297\u3299\U0001f000-\U0001f1e5\U0001f200-\U0001faff]"
)
_MODIFIERS = "[\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
EMOJI = (
    f"(?:[\U0001f1e6-\U0001f1ff]{{2}}|[0-9#*]\ufe0f?\u20e3"
    f"|{_PICTOGRAPH}{_MODIFIERS}(?:\u200d{_PICTOGRAPH}{_MODIFIERS})*)+"
)


def separators(text: str, language: str) -> Iterator[Span]:
    """Yield the spans of the signs that a line starts with and of emphasis after them, or of the bars of a table's row.

    Where ``language`` writes ordinal numbers with a full stop, "3. Mai" and "3. und 4. Klasse" are no items of a list.
    """
    start = START.match(text)
    if start and has_full_stops_in_ordinals(language) and not _is_item(text, start.end(), language):
        start = START_WITH_ORDINALS.match(text)
    if start:
        yield start.span()
    if emphasized := EMPHASIZED.match(text, start.end() if start else 0):
        yield emphasized.span("mark")
        yield emphasized.end("inside"), emphasized.end()
    if TABLE_ROW.fullmatch(text):
        yield from (bar.span() for bar in BAR.finditer(text))


def places_of_texts(text: str, language: str) -> Iterator[Span]:
    """Yield the spans of a line that are translated: those with letters or digits between separators, or all of it."""
    marks = list(separators(text, language))
    if not marks:
        yield 0, len(text)
        return
    for start, end in zip([0, *(end for _, end in marks)], [*(start for start, _ in marks), len(text)], strict=True):
        stretch = text[start:end]
        if any(map(str.isalnum, stretch)):
            yield start + len(stretch) - len(stretch.lstrip()), start + len(stretch.rstrip())


def _is_item(text: str, end: int, language: str) -> bool:
    """Tell whether the number before ``end`` numbers an item or a heading, and is no ordinal and no part of a date."""
    may_be = not text[end : end + 1].islower() or SENTENCE_OR_HEADING.match(text) is not None
    return may_be and all(text[:start].strip() for start, *_ in find_dates(text, language))


def character_of(entity: str) -> str:
    """Return the character of an entity of HTML, or another entity as it is: ``html.unescape`` reads ¬ in &notes;."""
    return html.unescape(entity) if entity.startswith("&#") or entity[1:] in html.entities.html5 else entity
