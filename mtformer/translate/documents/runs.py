"""Paragraphs of Office: text in runs, each with its format.

Runs of one format beside each other are one text, however they are divided: Word begins a run where somebody has
corrected a letter. The format of most characters of a paragraph gets no tag, and punctuation takes the format of the
text before it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

from mtformer.translate.documents.blocks import Block
from mtformer.translate.documents.fields import Content, is_translated
from mtformer.translate.documents.flow import between_tags
from mtformer.translate.documents.inline import Kind, Mark, Raw, Text, Token, Writer, texts
from mtformer.translate.documents.markup_tokens import MarkupSource
from mtformer.translate.documents.paired_elements import paired, point

# A word in the name of a style of code, as in SourceCode, Code_20_Block and HTML Preformatted, but not in Postcode.
CODE_WORD = (
    "(?:(?<![A-Za-z])(?i:code|preformatted|verbatim|listing)(?![A-Za-z])"
    "|(?:Code|Preformatted|Verbatim|Listing)(?![a-z]))"
)
_CODE_STYLE = re.compile(rf'<[\w.-]*:?(?:pStyle|rStyle)\s[^>]*val="[^"]*{CODE_WORD}')
_LANGUAGE = re.compile(
    r'<[\w.-]+:lang\s[^>]*/>|<[\w.-]+:noProof\s*/>|\s(?:lang|altLang|dirty|err|noProof|smtClean)="[^"]*"'
)
_EMPTY_FORMAT = re.compile(r"<([\w:.-]+)\s*(?:/>|></\1>)")
_SEEN_ON_SPACES = re.compile(r"<[\w.-]+:(?:u|strike|dstrike|highlight|shd|vertAlign|bdr)\s|\su=")


@dataclass(frozen=True)
class Dialect:
    """The elements of a paragraph, by their names.

    Attributes:
        paragraphs: the paragraphs.
        prefix: the prefix of the other names.
        line_break: what breaks a line, with the prefix of a document in its places.
        breaks: the elements that break lines, without the prefix.
        marks_spaces: whether spaces at the ends of a text count only if its element says so.
        containers: the elements around runs, such as links.
        dropped: the elements that a translation does not need, such as marks of misspelled words, without the prefix.
        line_end: a pattern of line breaks in a text.
        code: a pattern of escapes for characters that XML does not allow; empty if there are none.
    """

    paragraphs: frozenset[str]
    prefix: str
    line_break: str
    breaks: frozenset[str] = frozenset(["br"])
    marks_spaces: bool = True
    containers: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    line_end: str = r"\r?\n"
    code: str = ""


def paragraphs(
    source: MarkupSource, dialect: Dialect, *, joins: bool, within: tuple[int, int] | None = None
) -> Iterator[Block]:
    """Yield the paragraphs of a part.

    Args:
        source: the part.
        dialect: the names of its elements.
        joins: whether pairs of empty elements go around words; see :func:`.paired`.
        within: the range of tokens to search, end exclusive; None for all.
    """
    start, stop = within or (0, len(source.tokens))
    for number in source.children(start, stop, *dialect.paragraphs):
        paragraph = _Paragraph(source, dialect, number)
        yield from paragraph.blocks(joins=joins)
        for inside in paragraph.nested:
            yield from paragraphs(source, dialect, joins=joins, within=inside)


class _Paragraph:
    """Collects the text and the marks of a paragraph.

    Attributes:
        nested: the ranges of tokens that may contain paragraphs of their own, such as text boxes.
    """

    def __init__(self, source: MarkupSource, dialect: Dialect, start: int) -> None:
        self._source, self._dialect, self._tokens = source, dialect, source.tokens
        self._stop = source.end(start)
        self._bare: int | None = None  # the text element of a paragraph without runs
        self._is_code = False
        self.nested: list[tuple[int, int]] = []
        name = re.split(r"[\s>]", self._source.written(start)[1:], maxsplit=1)[0]
        self._prefix = name[: name.find(":") + 1]
        self._content = Content(source, self._prefix)
        self._first = start + 1
        self._children(self._first, self._stop)
        self._content.end()

    def blocks(self, *, joins: bool) -> Iterator[Block]:
        """Yield the paragraph, if it has text to translate."""
        lengths = Counter[str]()
        for item in self._content.items:
            if isinstance(item, Text):
                lengths[item.format] += len(item.text)
        if not lengths or self._is_code:
            return
        if self._bare is not None:
            yield from self._bare_block(self._bare)
            return
        base = lengths.most_common(1)[0][0]
        span = (self._tokens[self._first].start, self._tokens[self._stop].start)
        tokens = list(_with_formats(paired(self._content.items, joins=joins), base))
        writer = Writer(
            self._dialect.line_break.format(self._prefix),
            lambda text, format: self._written(text, base if format is None else format),
        )
        yield from Block.of(span, tokens, writer)

    def _written(self, text: str, format: str) -> str:
        """Return a run with a text."""
        space = ' xml:space="preserve"' if self._dialect.marks_spaces and text != text.strip() else ""
        content = f"<{self._prefix}t{space}>{escape(text, quote=False)}</{self._prefix}t>"
        return f"<{self._prefix}r>{format}{content}</{self._prefix}r>"

    def _bare_block(self, number: int) -> Iterator[Block]:
        """Yield a paragraph that is a text element, and drop following elements tied to the source's characters."""
        following = self._source.children(self._source.end(number) + 1, self._stop)
        if not all(self._tokens[each].name in self._dialect.dropped for each in following):
            return
        span = (self._tokens[number].start, self._tokens[self._stop].start)
        start, end = f'<{self._prefix}t xml:space="preserve">', f"</{self._prefix}t>"
        for block in Block.of(span, self._content.items, Writer("\n", between_tags)):
            yield replace(block, finish=lambda text: f"{start}{text}{end}")

    def _children(self, start: int, stop: int) -> None:
        for number in self._source.children(start, stop):
            name, dialect = self._tokens[number].name.removeprefix(self._dialect.prefix), self._dialect
            end = self._source.end(number)
            if name == "pPr" and start == self._first:
                self._is_code = _CODE_STYLE.search(self._source.text, *self._source.span(number)) is not None
                self._first = end + 1
            elif name == "endParaRPr":
                self._stop = number
            elif name == "r" and end > number:
                self._run(number, end)
            elif name == "t" and end > number:
                self._bare = number
                self._text(number, "", None)
            elif self._tokens[number].name in dialect.containers and end > number:
                self._container(number, end)
            elif name in dialect.breaks:
                self._content.add(Mark(Kind.LINE, (self._source.span(number),)))
            elif name not in dialect.dropped:
                has_text = name in ("fld", "m:oMath")
                self._content.add(point(self._source, number, (self._source.span(number),), has_text=has_text))
                self.nested.append((number + 1, end))

    def _container(self, start: int, stop: int) -> None:
        """Add an element around runs, with its properties, as a pair of marks, unless it is in a field that is kept."""
        if self._content.is_keeping:
            self._content.add_kept(start)
            self.nested.append((start + 1, stop))
            return
        children = list(self._source.children(start + 1, stop))
        if self._tokens[start].name == "w:fldSimple" and not is_translated(
            self._source.attributes(start).get(f"{self._prefix}instr", "")
        ):
            self._content.add(Mark(Kind.POINT, (self._source.span(start),), has_text=True))
            return
        first = start + 1
        for number in children:
            if self._tokens[number].name.endswith("Pr"):
                first = self._source.end(number) + 1
            elif self._tokens[number].name == "w:sdtContent":
                first, stop = number + 1, self._source.end(number)
        begin, end = self._source.span(start)
        n_before, opening = len(self._content.items), (begin, self._tokens[first - 1].end)
        self._content.add(Mark(Kind.OPEN, (opening,), start))
        self._children(first, stop)
        if self._content.is_keeping:  # a field ends after the element
            self._content.keep_since(n_before, start)
        else:
            self._content.add(Mark(Kind.CLOSE, ((self._tokens[stop].start, end),), start))

    def _run(self, start: int, stop: int) -> None:
        format, is_code = "", False
        for number in self._source.children(start + 1, stop):
            name = self._tokens[number].name.removeprefix(self._dialect.prefix)
            begin, end = self._source.span(number)
            raw: Raw = (f"<{self._prefix}r>{format}", (begin, end), f"</{self._prefix}r>")
            if name == "rPr":
                written = self._source.text[begin:end]
                format, is_code = _LANGUAGE.sub("", written), _CODE_STYLE.search(written) is not None
                format = "" if _EMPTY_FORMAT.fullmatch(format) else format
            elif name in ("fldChar", "instrText"):
                self._content.add_part(number, name, raw)
            elif is_code or self._content.is_keeping:
                self._content.add(Mark(Kind.POINT, raw, has_text=name == "t"))
            elif name == "t":
                self._text(number, format, raw)
            elif name == "ruby":
                self._ruby(number, raw)
            elif name == "noBreakHyphen":
                self._content.items.append(Text("\u2011", format=format))
            elif name in self._dialect.breaks and "w:type=" not in self._source.written(number):
                self._content.add(Mark(Kind.LINE, raw))
            elif name in ("tab", "ptab", *self._dialect.breaks):
                self._content.add(Mark(Kind.BREAK, raw))
            elif name not in self._dialect.dropped:
                self._content.add(Mark(Kind.POINT, raw))
                self.nested.append((number + 1, self._source.end(number)))

    def _ruby(self, number: int, raw: Raw) -> None:
        """Add characters with their reading, which is kept."""
        before, _, after = raw
        start, end = self._source.span(number)
        children = self._source.children(number + 1, self._source.end(number))
        bases = [each for each in children if self._tokens[each].name == "w:rubyBase"]
        if not bases or self._content.is_keeping:
            self._content.add(Mark(Kind.POINT, raw))
            return
        inside = bases[0] + 1, self._source.end(bases[0])
        self._content.add(Mark(Kind.OPEN, (before, (start, self._tokens[inside[0]].start)), number))
        self._children(*inside)
        self._content.add(Mark(Kind.CLOSE, ((self._tokens[inside[1]].start, end), after), number))

    def _text(self, number: int, format: str, raw: Raw | None) -> None:
        """Add the text of an element; characters that end lines break them, and tabs separate sentences."""
        characters = self._source.characters_in(number)
        if self._dialect.marks_spaces and "preserve" not in self._source.written(number):
            characters = characters.strip()
        signs = "|".join(filter(None, [self._dialect.line_end, "\t", self._dialect.code]))
        for place, part in enumerate(re.split(f"({signs})", characters)):
            if place % 2:
                kind = {"\n": Kind.LINE, "\t": Kind.BREAK}.get(part[-1], Kind.POINT)
                written = part if raw is None else self._written(part, format)
                self._content.add(Mark(kind, (written,), has_text=kind is Kind.POINT))
            else:
                self._content.items += [replace(text, format=format) for text in texts(part)]


def _with_formats(items: Sequence[Token], base: str) -> Iterator[Token]:
    """Put a pair of marks around texts of one format, unless it is the ``base``."""
    opened: Mark | None = None
    n_pairs = 0
    for item, format in zip(items, _adopted(items, base), strict=True):
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


def _adopted(items: Sequence[Token], base: str) -> list[str]:
    """Return the format of each item; spaces and punctuation adopt the format of adjacent text."""
    formats = [item.format if isinstance(item, Text) else "" for item in items]
    following = _following(items)
    before: str | None = None
    for place, item in enumerate(items):
        if _is_border(item):
            before = None
        if not isinstance(item, Text):
            continue
        if not any(map(str.isalnum, item.text)) and not _SEEN_ON_SPACES.search(item.format):
            after = following[place]
            beside = [each for each in (before, after) if each is not None] or [item.format]
            is_outside = item.format == base or item.text.isspace()
            formats[place] = base if is_outside and before != after else beside[0]
        before = formats[place]
    return formats


def _following(items: Sequence[Token]) -> list[str | None]:
    """Return for each item the format of the next text with a word; None if a border comes first."""
    following: list[str | None] = []
    after: str | None = None
    for item in reversed(items):
        following.append(after)
        if _is_border(item):
            after = None
        elif isinstance(item, Text) and any(map(str.isalnum, item.text)):
            after = item.format
    return following[::-1]
