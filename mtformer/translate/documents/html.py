"""HTML: inline elements become tags of a unit; all others separate sentences."""

import re
from collections.abc import Callable, Container, Iterator
from functools import partial

from mtformer.text.languages import base_language, is_written_from_right
from mtformer.translate.documents.blocks import Block
from mtformer.translate.documents.flow import Flow, Role, attribute_block, between_tags, with_line_breaks
from mtformer.translate.documents.inline import Writer
from mtformer.translate.documents.markup_tokens import HTML_ENCODING, MarkupSource, TokenKind, decoded, read_html
from mtformer.translate.documents.seam import DocumentSettings, TextDocument
from mtformer.translate.markup.scanner import BLOCKS

HIDDEN = frozenset(["script", "style", "template", "pre", "listing", "xmp", "plaintext"])  # elements that stay
_ROLES = {
    **dict.fromkeys(BLOCKS, Role.BLOCK),
    **dict.fromkeys(HIDDEN, Role.HIDDEN),
    **dict.fromkeys(("code", "kbd", "samp", "var", "tt", "math"), Role.CODE),
    **dict.fromkeys(("img", "input", "wbr", "svg", "object", "audio", "video", "canvas", "iframe"), Role.POINT),
    **dict.fromkeys(("rt", "rp", "rtc"), Role.READING),
    "br": Role.LINE_BREAK,
}
_TRANSLATED = frozenset(["alt", "title", "placeholder", "aria-label"])  # attributes
_DESCRIPTIONS = frozenset(
    ["description", "og:title", "og:description", "twitter:title", "twitter:description"]  # names of meta tags
)
_ONE_LINE = {"title": " / ", "option": " / ", "textarea": "\n"}  # no tag may stand in these
UNTRANSLATED = re.compile(  # of a tag
    r"""\s(?:translate\s*=\s*["']?no\b|class\s*=\s*(?:"[^"]*|'[^']*)?\bnotranslate\b)""", re.IGNORECASE
)
_LANG = re.compile(r"\s(?:xml:)?lang\s*=", re.IGNORECASE)


def role_in_html(source: MarkupSource, number: int, foreign: Container[int] = frozenset()) -> Role:
    """Return the role of an element of HTML; ``foreign`` ones stay."""
    kind, name, start, end = source.tokens[number]
    role = _ROLES.get(name, Role.INLINE)
    if name == "input":
        return role
    if number in foreign or (kind is TokenKind.START and UNTRANSLATED.search(source.text, start, end)):
        return Role.HIDDEN if role in (Role.BLOCK, Role.HIDDEN) else Role.CODE
    if kind is TokenKind.EMPTY and role is Role.INLINE:
        return Role.POINT
    return role


def page(
    source: MarkupSource, encoding: str, settings: DocumentSettings, writer: Writer, lines: Container[int] = frozenset()
) -> TextDocument:
    """Return a page of HTML or XHTML, given its tokens; ``writer`` and ``lines`` are those of its :class:`.Flow`."""
    foreign, islands = _languages(source, settings)
    role = partial(role_in_html, source, foreign=foreign)
    flow = Flow(source, role, writer, lines=lines)
    spans = [(0, len(source.tokens)), *((island, source.end(island) + 1) for island in islands)]
    blocks = [block for span in spans for block in [*flow.blocks(*span), *_attribute_blocks(source, role, *span)]]
    blocks = list(with_line_breaks(source, blocks, _ONE_LINE))
    return TextDocument(source.text, encoding, settings, blocks, _language_edits(source, settings))


def _languages(source: MarkupSource, settings: DocumentSettings) -> tuple[set[int], list[int]]:
    """Return the elements in another language than the source and the page, and those inside them that are not."""
    foreign, islands = set[int](), list[int]()
    page_language, kept = "", -1
    around = list[tuple[int, bool]]()  # the open elements with a language: the last token, and whether it is foreign
    for number, (kind, name, start, end) in enumerate(source.tokens):
        if number <= kept or kind is not TokenKind.START:
            continue
        if role_in_html(source, number) in (Role.HIDDEN, Role.CODE):
            kept = source.end(number)
        elif _LANG.search(source.text, start, end):
            attributes = {attribute.lower(): value for attribute, value in source.attributes(number).items()}
            language = attributes.get("lang") or attributes.get("xml:lang", "")
            if name in ("html", "body"):
                page_language = base_language(language.lower())
            if name in ("html", "body") or language in ("", "und", "mul"):
                continue
            while around and around[-1][0] < number:
                around.pop()
            is_foreign = base_language(language.lower()) != page_language and settings.is_foreign(language)
            if is_foreign:
                foreign.add(number)
            elif around and around[-1][1]:
                islands.append(number)
            around.append((source.end(number), is_foreign))
    return foreign, islands


def _attribute_blocks(source: MarkupSource, role: Callable[[int], Role], start: int, stop: int) -> Iterator[Block]:
    """Yield the attributes that readers see, such as descriptions of images, among some of the tokens."""
    number = start
    while number < stop:
        kind, name, begin, end = source.tokens[number]
        if kind in (TokenKind.START, TokenKind.EMPTY):
            if role(number) in (Role.HIDDEN, Role.CODE):
                number = max(number, source.end(number))  # it stays
            else:
                yield from _attributes(source, number, name, begin, end)
        number += 1


def _attributes(source: MarkupSource, number: int, name: str, start: int, end: int) -> Iterator[Block]:
    shown = _TRANSLATED
    if name in ("meta", "input"):
        attributes = {attribute.lower(): value for attribute, value in source.attributes(number).items()}
        if (attributes.get("name") or attributes.get("property", "")).lower() in _DESCRIPTIONS:
            shown = frozenset(["content"])
        elif attributes.get("type", "").lower() in ("submit", "button", "reset"):
            shown = _TRANSLATED | {"value"}
    for attribute, begin, stop in source.attribute_spans(start, end):
        quoted = source.text[begin - 1] in "\"'"
        if attribute.lower() in shown and quoted:
            yield from attribute_block(source, (begin, stop))


def _language_edits(source: MarkupSource, settings: DocumentSettings) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the edits that set the language of the page, and its text direction."""
    for kind, name, start, end in source.tokens:
        if kind is TokenKind.START and name == "html" and not settings.bilingual:
            direction = "rtl" if is_written_from_right(settings.tgt_lang) else "ltr"
            spans = {attribute.lower(): (begin, stop) for attribute, begin, stop in source.attribute_spans(start, end)}
            for each in spans.keys() & {"lang", "xml:lang"}:
                yield spans[each], settings.tgt_lang
            if "dir" in spans:
                yield spans["dir"], direction
            elif direction == "rtl":
                yield (end - 1, end - 1), f' dir="{direction}"'
            return


def read(content: bytes, settings: DocumentSettings) -> TextDocument:
    """Read a page.

    Raises:
        UserError: its text is not in the encoding that it declares.
    """
    text, encoding = decoded(content, settings.name, HTML_ENCODING)
    source = read_html(text, settings.name)
    lines = {
        number + 1
        for number, token in enumerate(source.tokens)
        if token.kind is TokenKind.START and token.name == "textarea"
    }
    writer = Writer("<br>", lambda text, format: between_tags(text).replace("\u00a0", "&nbsp;"))
    return page(source, encoding, settings, writer, lines)
