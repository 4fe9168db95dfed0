"""Elements of HTML and XML that must not be translated: they are taken out of a text, and put back."""

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import count

from mtformer.text.words import Span
from mtformer.translate.documents.html import HIDDEN, UNTRANSLATED
from mtformer.translate.documents.markup_tokens import read_markup
from mtformer.translate.markup.scanner import BLOCKS
from mtformer.translate.plan import Plan
from mtformer.translate.translation import Translation
from mtformer.translate.translator import Translator

_STAND_IN = re.compile(r"<(?:code>|hr )(\d+)(?:</code)?>")  # elements that translations have unchanged
_BLOCK_TAG = re.compile(rf"(</?(?:{'|'.join(sorted(BLOCKS))})\b[^<>]*>)", re.IGNORECASE)


class Protected:
    """A text without its protected elements.

    Attributes:
        text: the text, with an element ``code`` in place of each, or ``hr`` if it separates sentences.
    """

    def __init__(self, text: str, tags: Collection[str] = (), blocks: Collection[str] = ()) -> None:
        """Take out elements with ``translate="no"``, those of the class ``notranslate``, and those of some names.

        The time is linear in the length of any text.

        Args:
            text: HTML or XML.
            tags: the names of elements.
            blocks: the names of elements that separate sentences.
        """
        own = set(_STAND_IN.findall(text))
        numbers = (number for number in map(str, count()) if number not in own)
        self._elements: dict[str, str] = {}
        parts, end = list[str](), 0
        found = _elements(text, {tag.lower() for tag in tags}.union(blocks))
        for (name, (start, stop)), number in zip(found, numbers, strict=False):
            self._elements[number] = text[start:stop]
            parts += text[end:start], f"<hr {number}>" if name in blocks else f"<code>{number}</code>"
            end = stop
        self.text = "".join([*parts, text[end:]])

    def restore(self, translation: str) -> str:
        """Put the elements into a translation of :attr:`text`."""
        return _STAND_IN.sub(lambda match: self._elements.get(match[1], match[0]), translation)


def _elements(text: str, tags: Collection[str]) -> Iterator[tuple[str, Span]]:
    """Yield the names and spans of protected elements, end tags included; only the outermost of nested ones."""
    source = read_markup(text)

    def is_protected(number: int) -> bool:
        is_whole = number in source.ends
        return is_whole and (source.tokens[number].name in tags or bool(UNTRANSLATED.search(source.written(number))))

    found = source.outermost(0, len(source.tokens), is_protected)
    return ((source.tokens[number].name, source.span(number)) for number in found)


def plan_markup(
    translator: Translator, text: str, *, tags: Collection[str] = (), is_html: bool = False, joins_lines: bool = False
) -> Plan[list[Translation]]:
    """Translate HTML or XML without its protected elements.

    Args:
        translator: translates.
        text: HTML or XML.
        tags: the names of elements to protect, besides those marked in the text.
        is_html: whether it is HTML, whose scripts and preformatted texts are protected too.
        joins_lines: whether a sentence may continue on the next line.
    """
    protected = Protected(text, tags, HIDDEN if is_html else ())
    translations = yield from translator.plan(_joined(protected.text) if joins_lines else protected.text)
    return [replace(each, text=protected.restore(each.text)) for each in translations]


def _joined(text: str) -> str:
    """Join the lines between tags of blocks; the spaces beside these tags stay."""
    parts = _BLOCK_TAG.split(text)
    for place, part in enumerate(parts):
        inside = part.strip()
        lines = filter(None, map(str.strip, inside.split("\n")))
        parts[place] = part.replace(inside, " ".join(lines), 1) if inside else part
    return "".join(parts)


def plan_joined(translator: Translator, text: str) -> Plan[list[Translation]]:
    """Translate a text whose sentences may continue on the next line."""
    return translator.plan(text.replace("\n", " "))
