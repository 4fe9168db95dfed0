"""Markdown: paragraphs, headings, items and cells; code, front matter, links' targets and HTML's tags stay.

The pipeline for markup reads Markdown itself, so a unit is a stretch of the source as it is written.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from mtformer.support.errors import UserError
from mtformer.translate.documents.flow import Flow, FlowWriter
from mtformer.translate.documents.html import role_in_html
from mtformer.translate.documents.inline import Kind, Mark, Segment, Span, Text
from mtformer.translate.documents.markup_tokens import MarkupSource, decoded, read_html
from mtformer.translate.documents.plain import PlainWriter
from mtformer.translate.documents.seam import Settings, TextDocument
from mtformer.translate.documents.source import Block, Source

_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n.*?^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_HARD_BREAK = re.compile(r"(?: {2,}|\\)\n[ \t]*")
_NOTE = re.compile(r"\[\^[^\]]+\]:\s+|\[[^\]]+\]:\s*\S+\s*\Z")  # a footnote, or a definition that is none
_REFERENCE = re.compile(
    r"(?P<note>\[\^[^\[\]]+\])|(?P<start>!?\[)(?P<text>[^\[\]^][^\[\]]*)\](?:\[(?P<label>[^\[\]]*)\])?(?!\()"
)
_BLOCK_START = re.compile(r"(?:[-+*>]|#{1,6}|\d{1,9}[.)])(?=\s)")


def read(content: bytes, settings: Settings) -> TextDocument:
    """Read a text in Markdown.

    Raises:
        UserError: the package that reads it is missing, or the text is not UTF-8.
    """
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise UserError("Markdown needs another package: pip install 'mtformer[documents]'") from None
    text, encoding = decoded(content, settings.name)
    front = _FRONT_MATTER.match(text)
    start = front.end() if front else 0
    starts = [start, *(start + match.end() for match in re.finditer("\n", text[start:])), len(text)]
    blocks: list[Block] = []
    position, level, environment = start, "", dict[str, dict[str, object]]()
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text[start:], environment):
        if token.map is None:
            continue
        begin = starts[token.map[0]]
        if token.type == "html_block":
            blocks += _html(text, begin, starts[min(token.map[1], len(starts) - 1)], settings)
        elif token.type == "inline":
            spans = _spans(text, token.content, max(position, begin))
            position = spans[-1][1] if spans else position
            blocks += _paragraph(text, spans, level, frozenset(environment.get("references", ())))
        elif token.type.endswith("_open"):
            level = token.type
    return TextDocument(Source(text, blocks), encoding, settings, "strict")


def _spans(text: str, content: str, position: int) -> list[Span]:
    """Return where the lines of a paragraph's content stand in the source, from ``position`` on."""
    spans: list[Span] = []
    for line in content.split("\n"):
        found = text.find(line.strip(), position)
        if found < 0:  # as where a tab was written as spaces
            return []
        position = found + len(line.strip())
        spans.append((found, position))
    return spans


def _paragraph(text: str, spans: list[Span], level: str, references: frozenset[str]) -> Iterator[Block]:
    """Yield the paragraph of these lines, of which a hard break ends a unit."""
    if not spans:
        return
    note = _NOTE.match(text, *spans[0])
    if note and note.end() >= spans[0][1]:
        return
    start = note.end() if note else spans[0][0]
    tokens: list[Text] = []
    found: list[Segment] = []
    unit = ""
    for number, (begin, end) in enumerate(spans):
        following = spans[number + 1][0] if number + 1 < len(spans) else end
        unit += text[max(begin, start) : end]
        gap = text[end:following]
        is_end = number + 1 == len(spans)
        if is_end or _HARD_BREAK.match(gap.replace("\r\n", "\n")) or unit.endswith("\\"):
            if any(map(str.isalpha, unit)):
                tagged, marks = _without_references(unit, references)
                guarded = partial(_guarded, unit)
                found.append(Segment(len(tokens), len(tokens) + 1, tagged, marks or None, guarded, is_escaped=False))
            tokens += [Text(unit), Text(gap)]
            unit = ""
        else:
            unit += " "
    if found:
        is_paragraph = level == "paragraph_open" and len(spans) == len(found)
        writer = PlainWriter("\\\n" if is_paragraph and not text[:start].rsplit("\n", 1)[-1].strip() else "<br>")
        yield Block((start, spans[-1][1]), tokens, found, writer)


def _without_references(unit: str, references: frozenset[str]) -> tuple[str, dict[str, Sequence[Mark]]]:
    """Put tags in the place of footnotes and of links to definitions, whose names must not be translated."""
    marks: dict[str, Sequence[Mark]] = {}

    def tag(match: re.Match[str]) -> str:
        number = len(marks) + 1
        label = match["label"] or match["text"] or ""
        if match["note"]:
            marks[f"<{number}/>"] = [Mark(Kind.POINT, (match[0],))]
            return f"<{number}/>"
        if " ".join(label.split()).lower().upper() not in references:
            return match[0]
        marks[f"<{number}>"] = [Mark(Kind.OPEN, (match["start"],), number)]
        marks[f"</{number}>"] = [Mark(Kind.CLOSE, (f"][{label}]",), number)]
        return f"<{number}>{match['text']}</{number}>"

    return _REFERENCE.sub(tag, unit), marks


def _guarded(src: str, tgt: str) -> str:
    """Escape the start of a translation if it would begin a list or the like, and the source does not."""
    start = _BLOCK_START.match(tgt)
    if start is None or _BLOCK_START.match(src):
        return tgt
    return tgt[: start.end() - 1] + "\\" + tgt[start.end() - 1 :]


def _html(text: str, start: int, stop: int, settings: Settings) -> Iterator[Block]:
    part = read_html(text[start:stop], settings.name)
    tokens = [token._replace(start=token.start + start, end=token.end + start) for token in part.tokens]
    source = MarkupSource(text, tokens)
    yield from Flow(source, partial(role_in_html, source), FlowWriter("<br>")).blocks()
