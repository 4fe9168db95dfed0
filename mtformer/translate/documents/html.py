"""HTML: inline elements become tags of a unit; all others separate sentences."""

import re
from collections.abc import Container, Iterator
from functools import partial

from mtformer.text.languages import is_written_from_right
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


def role_in_html(source: MarkupSource, number: int) -> Role:
    """Return the role of an element of HTML."""
    kind, name, start, end = source.tokens[number]
    role = _ROLES.get(name, Role.INLINE)
    if name == "input":
        return role
    if kind is TokenKind.START and UNTRANSLATED.search(source.text, start, end):
        return Role.HIDDEN if role in (Role.BLOCK, Role.HIDDEN) else Role.CODE
    if kind is TokenKind.EMPTY and role is Role.INLINE:
        return Role.POINT
    return role


def page(
    source: MarkupSource, encoding: str, settings: DocumentSettings, writer: Writer, lines: Container[int] = frozenset()
) -> TextDocument:
    """Return a page of HTML or XHTML, given its tokens; ``writer`` and ``lines`` are those of its :class:`.Flow`."""
    flow = Flow(source, partial(role_in_html, source), writer, lines=lines)
    blocks = [*with_line_breaks(source, flow.blocks(), _ONE_LINE), *_attribute_blocks(source)]
    return TextDocument(source.text, encoding, settings, blocks, _language_edits(source, settings))


def _attribute_blocks(source: MarkupSource) -> Iterator[Block]:
    """Yield the attributes that readers see, such as descriptions of images."""
    kept = -1  # the last token of an element that stays
    for number, (kind, name, start, end) in enumerate(source.tokens):
        if number > kept and kind in (TokenKind.START, TokenKind.EMPTY):
            if role_in_html(source, number) in (Role.HIDDEN, Role.CODE):
                kept = source.end(number)
            else:
                yield from _attributes(source, number, name, start, end)


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
