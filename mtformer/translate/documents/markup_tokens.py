"""The tags and texts of XML and HTML, with their places in the source.

XML is checked by expat before, which reads no external entity. A document that declares entities of its own is refused:
no document needs them, and a few lines of them may stand for gigabytes.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import NamedTuple
from xml.parsers import expat

from mtformer.support.errors import UserError
from mtformer.text.lines import how_to_convert
from mtformer.translate.markup.scanner import VOID, unescape


class TokenKind(Enum):
    """The kinds of tokens; OTHER is a comment, a declaration or the like."""

    START = "start"
    END = "end"
    EMPTY = "empty"
    TEXT = "text"
    OTHER = "other"


class MarkupToken(NamedTuple):
    """A tag or a text.

    Attributes:
        kind: its kind.
        name: the name of a tag; in XML with the usual prefix of its namespace.
        start: where it starts in the source, in characters.
        end: where it ends.
    """

    kind: TokenKind
    name: str
    start: int
    end: int


@dataclass
class MarkupSource:
    """A text in XML or HTML.

    Attributes:
        text: the source.
        tokens: all tokens, in order.
        is_html: whether end tags may be left out.
        ends: the index of the END of each START.
        last: the index of the last token inside each START without an END.
    """

    text: str
    tokens: Sequence[MarkupToken]
    is_html: bool = False
    ends: Mapping[int, int] = field(init=False)
    last: Mapping[int, int] = field(init=False)

    def __post_init__(self) -> None:
        ends: dict[int, int] = {}
        inside: dict[int, int] = {}
        opened: list[int] = []
        n_open: dict[str, int] = {}
        for number, (kind, name, _, _) in enumerate(self.tokens):
            if kind is TokenKind.START:
                while self.is_html and opened and name in _ENDED_BY.get(self.tokens[opened[-1]].name, ()):
                    inside[opened[-1]] = number - 1
                    n_open[self.tokens[opened.pop()].name] -= 1
                opened.append(number)
                n_open[name] = n_open.get(name, 0) + 1
            elif kind is TokenKind.END and n_open.get(name):
                while True:  # HTML may leave out the ends of those inside
                    last = opened.pop()
                    n_open[self.tokens[last].name] -= 1
                    if self.tokens[last].name == name:
                        ends[last] = number
                        break
                    inside[last] = number - 1
        self.ends, self.last = ends, inside | dict.fromkeys(opened, len(self.tokens) - 1)

    def end(self, number: int) -> int:
        """Return the index of the last token of the element that a token begins; for an EMPTY, of the token itself."""
        return self.ends.get(number, self.last.get(number, number))

    def attributes(self, number: int) -> dict[str, str]:
        """Return the attributes of a tag by name, with their values as written."""
        _, _, start, end = self.tokens[number]
        return {name: unescape(self.text[begin:stop]) for name, begin, stop in self.attribute_spans(start, end)}

    def written(self, number: int) -> str:
        """Return the source of a token."""
        _, _, start, end = self.tokens[number]
        return self.text[start:end]

    def span(self, element: int) -> tuple[int, int]:
        """Return the span of an element, in characters."""
        return self.tokens[element].start, self.tokens[self.end(element)].end

    def children(self, start: int, stop: int, *names: str) -> Iterator[int]:
        """Yield the outermost elements among some tokens, or the outermost ones with some names."""
        return self.outermost(start, stop, lambda number: not names or self.tokens[number].name in names)

    def outermost(self, start: int, stop: int, is_wanted: Callable[[int], bool]) -> Iterator[int]:
        """Yield the elements among some tokens that are wanted, but none inside of another one."""
        number = start
        while number < stop:
            if self.tokens[number].kind in (TokenKind.START, TokenKind.EMPTY) and is_wanted(number):
                yield number
                number = self.end(number)
            number += 1

    def elements(self, *names: str, within: int | None = None) -> Iterator[int]:
        """Yield the outermost elements with some names, in the document or in an element."""
        start, stop = (0, len(self.tokens)) if within is None else (within + 1, self.end(within))
        return self.children(start, stop, *names)

    def characters(self, number: int) -> str:
        """Return the characters that a text stands for."""
        _, _, start, end = self.tokens[number]
        if self.text.startswith("<![CDATA[", start):
            return self.text[start + 9 : end - 3]
        return unescape(self.text[start:end])

    def characters_in(self, element: int) -> str:
        """Return the characters of all texts in an element."""
        inside = range(element + 1, self.end(element))
        return "".join(self.characters(number) for number in inside if self.tokens[number].kind is TokenKind.TEXT)

    def attribute_spans(self, start: int, end: int) -> Iterator[tuple[str, int, int]]:
        """Yield the name of each attribute of a tag, and where its value starts and ends."""
        tag = _TAG_NAME.match(self.text, start, end)
        for match in _ATTRIBUTE.finditer(self.text, tag.end() if tag else start, end):
            group = next((name for name in ("double", "single", "bare") if match[name] is not None), None)
            if group is not None:
                yield match["name"], *match.span(group)


# The elements of HTML whose ends may be left out, and what begins after them. Only those that are open innermost count.
_PARAGRAPH_ENDS = frozenset(
    "address article aside blockquote details div dl fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header "
    "hr main menu nav ol p pre section table ul".split()
)
_ENDED_BY = {
    "p": _PARAGRAPH_ENDS,
    **dict.fromkeys(("dt", "dd"), frozenset(["dt", "dd"])),
    **dict.fromkeys(("td", "th"), frozenset(["td", "th", "tr", "tbody", "tfoot"])),
    "tr": frozenset(["tr", "tbody", "tfoot"]),
    **dict.fromkeys(("thead", "tbody"), frozenset(["tbody", "tfoot"])),
    **dict.fromkeys(("rt", "rp"), frozenset(["rt", "rp", "rtc"])),
    "li": frozenset(["li"]),
    "option": frozenset(["option", "optgroup"]),
}
MAX_TOKENS = 4_000_000  # in a part; a book of 500 pages has about 500,000
_TAG_NAME = re.compile(r"<[^\s/>]+")
_ATTRIBUTE = re.compile(
    r"""(?P<name>[^\s=/>"']+)(?:\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s"'=<>`]+)))?"""
)
_XML = re.compile(
    r"(?P<text>[^<]+)"
    r"|<!--.*?-->|<\?.*?\?>"
    r"|(?P<cdata><!\[CDATA\[.*?\]\]>)"
    r"|<!DOCTYPE(?:[^\[>\"']|\"[^\"]*\"|'[^']*')*(?:\[.*?\]\s*)?>"
    r"""|<(?P<slash>/?)(?P<name>[^\s/>!?]+)(?:[^>"'/]|"[^"]*"|'[^']*'|/(?!>))*(?P<empty>/?)>""",
    re.DOTALL,
)
# Few quoted values have a "<", and these are short, so that no text is searched again and again for the end of a tag.
_HTML = re.compile(
    r"(?P<text>[^<]++)"
    r"|<(?P<slash>/?)(?P<name>[A-Za-z][^\s/<>]*+)"
    r"""(?:[^<>"']|"[^"<]*+"|'[^'<]*+')*+"""
    r"""(?:(?:"[^"]{0,2000}"|'[^']{0,2000}')(?:[^<>"']|"[^"<]*+"|'[^'<]*+')*+){0,20}+>"""
)
_RAW = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style", "xmp", "plaintext", "iframe")}
# The prefixes that namespaces have here, whatever a document calls them.
_PREFIXES = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w:",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w:",
    "http://schemas.openxmlformats.org/drawingml/2006/main": "a:",
    "http://purl.oclc.org/ooxml/drawingml/main": "a:",
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main": "",
    "http://purl.oclc.org/ooxml/spreadsheetml/main": "",
    "http://schemas.openxmlformats.org/officeDocument/2006/math": "m:",
    "urn:oasis:names:tc:opendocument:xmlns:text:1.0": "text:",
    "urn:oasis:names:tc:opendocument:xmlns:office:1.0": "office:",
    "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0": "draw:",
    "http://www.w3.org/1999/xhtml": "",
    "urn:oasis:names:tc:xliff:document:1.2": "",
    "urn:oasis:names:tc:xliff:document:2.0": "",
}
XML_ENCODING = re.compile(rb"""\A<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
HTML_ENCODING = re.compile(rb"""<meta[^>]*?charset\s*=\s*["']?\s*([A-Za-z0-9._-]+)""", re.IGNORECASE)
_DECLARED_BYTES = 2**16  # a declaration stands in the first of them, in gettext after a comment
_UTF16 = ("utf-16", "utf-32")  # a text that names these in ASCII is in UTF-8, as browsers know
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_NO_ENCODINGS = frozenset(["undefined", "idna", "punycode", "unicode-escape", "raw-unicode-escape"])  # of files
# What browsers read instead of encodings that lack characters, or that have control characters in their places.
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
_CONTROL = re.compile("[\x80-\x9f]")


def decoded(content: bytes, name: str, declaration: re.Pattern[bytes] = XML_ENCODING) -> tuple[str, str]:
    """Return a text and its encoding: by its byte order mark, by its declaration, or else UTF-8.

    The byte order mark of UTF-16 is the first character of the text.

    Raises:
        UserError: the text is not in this encoding, or has a zero byte; the message names the line.
    """
    encoding = next((encoding for bom, encoding in _BOMS if content.startswith(bom)), None)
    declared = None if encoding else declaration.search(content[:_DECLARED_BYTES])
    named = declared[1].decode() if declared else encoding or "utf-8"
    if encoding is None and (place := content.find(0)) >= 0:
        line = content.count(b"\n", 0, place) + 1
        raise UserError(f"{name}:{line}: the text has a zero byte: it is not text, or UTF-16; save it as UTF-8")
    found: dict[str, str] = {}
    where = name
    for each in _encodings(named) if declared else [named]:
        try:
            found[each] = content.decode(each)
        except UnicodeDecodeError as error:
            n_before = content.count(b"\n", 0, error.start)
            where = f"{name}:{n_before + 1}"
        except (UnicodeError, LookupError):
            pass  # it is no encoding of texts
    if not found:
        advice = ", its declared encoding" if declared else f"; {how_to_convert(content)}"
        raise UserError(f"{where}: the text is not {named.upper().removesuffix('-SIG')}{advice}")
    best = next((each for each, text in found.items() if not _CONTROL.search(text)), next(iter(found)))
    return found[best], best


def _encodings(named: str) -> Iterator[str]:
    """Yield the possible encodings of a text, given the name of the declared one."""
    with suppress(LookupError):
        encoding = codecs.lookup(named).name
        if encoding not in _NO_ENCODINGS:
            yield "utf-8" if encoding.startswith(_UTF16) else encoding
        if encoding in _WIDER:
            yield _WIDER[encoding]


def read_xml(text: str, name: str) -> MarkupSource:
    """Read XML.

    Raises:
        UserError: it is not well-formed, or declares entities; the message names it and the line.
    """
    _check(text, name)
    return MarkupSource(text, _few(_xml_tokens(text), name))


def _check(text: str, name: str) -> None:
    parser = expat.ParserCreate("utf-8")

    def refuse(*declaration: object) -> None:
        raise UserError(f"{name} declares entities of its own, which may be an attack: save it without them")

    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise UserError(f"{name} is damaged: line {error.lineno} is not valid XML ({reason})") from None


def _xml_tokens(text: str) -> Iterator[MarkupToken]:
    scopes: list[tuple[int, dict[str, str]]] = [(0, {})]  # the prefixes that count from a depth on
    depth = 0
    for match in _XML.finditer(text):
        start, end = match.span()
        if match["text"] is not None or match["cdata"] is not None:
            yield MarkupToken(TokenKind.TEXT, "", start, end)
        elif match["name"] is None:
            yield MarkupToken(TokenKind.OTHER, "", start, end)
        elif match["slash"]:
            yield MarkupToken(TokenKind.END, _named(match["name"], scopes[-1][1]), start, end)
            depth -= 1
            if depth < scopes[-1][0]:
                scopes.pop()
        else:
            prefixes = scopes[-1][1]
            if "xmlns" in match[0]:
                prefixes = {**prefixes, **_declared(match[0])}
            yield MarkupToken(
                TokenKind.EMPTY if match["empty"] else TokenKind.START, _named(match["name"], prefixes), start, end
            )
            if not match["empty"]:
                depth += 1
                if prefixes is not scopes[-1][1]:
                    scopes.append((depth, prefixes))


def _declared(tag: str) -> dict[str, str]:
    found = re.findall(r"""\sxmlns(?::([\w.-]+))?\s*=\s*["']([^"']*)["']""", tag)
    return {prefix: _PREFIXES.get(uri, f"{prefix}:" if prefix else "") for prefix, uri in found}


def _named(name: str, prefixes: Mapping[str, str]) -> str:
    prefix, colon, local = name.rpartition(":")
    return prefixes.get(prefix, f"{prefix}{colon}") + local


def _few(tokens: Iterable[MarkupToken], name: str) -> list[MarkupToken]:
    found = list(islice(tokens, MAX_TOKENS + 1))
    if len(found) > MAX_TOKENS:
        raise UserError(f"{name} has more than {MAX_TOKENS:,} tags and texts, and is refused")
    return found


def read_html(text: str, name: str) -> MarkupSource:
    """Read HTML, which may be as untidy as browsers accept.

    Raises:
        UserError: it is too large; the message names it.
    """
    return MarkupSource(text, _few(_html_tokens(text), name), is_html=True)


def read_markup(text: str) -> MarkupSource:
    """Read a text with tags of any kind; only those with both a start and an end tag are elements."""
    return MarkupSource(text, list(_html_tokens(text)))


def _html_tokens(text: str) -> Iterator[MarkupToken]:
    """Yield tokens in linear time for any text, since it may come from an attacker."""
    position, text_start, last_code = 0, 0, text.rfind("%>")
    while position < len(text):
        match = _HTML.match(text, position)
        if match is not None and match["name"] is None:
            position = match.end()  # text
            continue
        end = match.end() if match is not None else _end_of_other(text, position, last_code)
        if end is None:
            position += 1  # a "<" that begins nothing
            continue
        if text_start < position:
            yield MarkupToken(TokenKind.TEXT, "", text_start, position)
        if match is None:
            yield MarkupToken(TokenKind.OTHER, "", position, end)
        else:
            name = match["name"].lower()
            is_empty = text[end - 2] == "/" or name in VOID
            kind = TokenKind.END if match["slash"] else TokenKind.EMPTY if is_empty else TokenKind.START
            yield MarkupToken(kind, name, position, end)
            if kind is TokenKind.START and name in _RAW:
                closing = _RAW[name].search(text, end)
                stop = closing.start() if closing else len(text)
                if end < stop:
                    yield MarkupToken(TokenKind.OTHER, "", end, stop)
                end = stop
        position = text_start = end
    if text_start < len(text):
        yield MarkupToken(TokenKind.TEXT, "", text_start, len(text))


def _end_of_other(text: str, start: int, last_code: int) -> int | None:
    """Return the end of a comment, a declaration, code or the like; None if there is none.

    Args:
        text: the text.
        start: where it begins.
        last_code: where the last code of a template ends, as in JSP, ERB and EJS.
    """
    if text.startswith("<!--", start):
        end = text.find("-->", start + 4)
        return end + 3 if end >= 0 else len(text)
    if text.startswith("<%", start) and start + 2 <= last_code:
        return text.index("%>", start + 2) + 2
    if text.startswith(("<!", "<?"), start):
        end = text.find(">", start)
        return end + 1 if end >= 0 else len(text)
    return None
