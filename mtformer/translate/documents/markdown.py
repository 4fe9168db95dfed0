"""Markdown: paragraphs, headings, items and cells; code, front matter, links' targets and HTML's tags stay.

The pipeline for markup reads Markdown itself, so a unit is a stretch of the source as it is written.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

import yaml

from mtformer.translate.documents.blocks import Block
from mtformer.translate.documents.flow import Flow, between_tags
from mtformer.translate.documents.html import role_in_html
from mtformer.translate.documents.inline import BlockUnit, Kind, Mark, Span, Text, Writer, ends_sentence
from mtformer.translate.documents.markup_tokens import MarkupSource, read_html
from mtformer.translate.documents.plain import plain_block, read_text
from mtformer.translate.documents.seam import DocumentSettings, TextDocument

if TYPE_CHECKING:
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(
    r"\ufeff?(?P<fence>---|\+\+\+)[ \t]*\r?\n(?P<inside>.*?)^(?:(?P=fence)|\.\.\.)[ \t]*(?:\r?\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
_LINE_END = re.compile(r"\r\n|\r|\n")
# Lines that extensions of Markdown read: alerts, containers, admonitions, tags of templates, attributes, formulas,
# tables of contents, commands of TeX.
_OPAQUE = re.compile(
    r"(?<![^\r\n])[ \t>]*(?:(?:\[![A-Za-z][\w-]*\]|:{3,}|(?:!!!|\?\?\?\+?|===)[ \t])[^\r\n]*"
    r"|\{(?:[%{][^\r\n]*[%}]|:[^{}\r\n]*)\}[ \t]*"
    r"|(?:@?\[(?:TOC|toc)\]|\\[a-z]+)[ \t]*"
    r"|\$\$(?:[^$\n]|\n(?![ \t>]*\r?\n))*+\$\$[ \t]*)(?![^\r\n])",
)
# What contains the indented lines below it, in which CommonMark sees code: admonitions, tabs, footnotes, definitions.
_CONTAINER = re.compile(r"(?:(?:!!!|\?\?\?\+?)[ \t]|===[!+]?[ \t]+\"|\[\^[^\[\]]+\]:|:[ \t])")
_INDENTATION = 4  # of what they contain
_FENCE = re.compile(r"(?:(?:[-+*>]|\d+[.)]) +)*(?P<fence>`{3,}(?=[^`]*$)|~{3,})(?P<language>.*)")  # of code
_CELLS = ("tr_open", "th_open", "td_open")  # in which a bar has a backslash before it
_DEFINITION = re.compile(r":[ \t]+")  # of the term in the line before
_HARD_BREAK = re.compile(r"(?: {2,}| *\\)(?:\r\n|\r|\n)[ \t>]*")  # and what the next line begins with
_BREAKS = re.compile(
    rf"(?<! )(?:(?P<first>\A|{_HARD_BREAK.pattern})(?:{_HARD_BREAK.pattern})+|(?:{_HARD_BREAK.pattern})\Z)"
)
_LAST_BACKSLASH = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")  # which has no backslash before it
_NOTE = re.compile(r"\[\^[^\]]+\]:\s+|\[[^\]]+\]:\s*\S+\s*\Z")  # a footnote, or a definition that is none
_SYNTAX = re.compile(r"<[^<>]*>|!?\[|\](?:\([^()]*\)|\[[^\[\]]*\])?|[*_~`]+")  # of formats and links, around their text
_BESIDE = 1000  # characters beside a line break that show whether a sentence ends there
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_ESCAPED = frozenset("_*[](){}#+-.!~`")  # characters that may lose their backslash and get it again
# What is replaced by a tag: images, line breaks inside a sentence, footnotes, links of wikis, attributes, formulas,
# other characters with a backslash, and links to definitions.
_REFERENCE = re.compile(
    r"!\[(?P<alt>[^\[\]]+)\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"]*\")?\)"
    rf"|(?P<break>(?<! ){_HARD_BREAK.pattern}|(?i:<br\s*/?>))"
    r"|(?P<kept>\[\^[^\[\]]+\]|!?\[\[[^\[\]]+\]\](?!\()|\{:?\s*(?:[.#]|[\w-]+=)[^{}]*\}"
    r"|\$\$[^$]+\$\$|\$(?=[^\s$])[^$`]*(?<=[^\s$])\$(?!\w))"
    rf"|(?P<escape>{_ESCAPE.pattern})"
    r"|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
    r"|(?P<start>!?\[)(?P<text>(?!\^)(?:[^\[\]]|\[[^\[\]]*+\])++)\](?:\[(?P<label>[^\[\]]*)\])?(?!\()"
)
_IMAGE = "!["  # what an image begins with
_BLOCK_START = re.compile(r"(?:[-+*>]|#{1,6}|\d{1,9}[.)])(?=\s)")
_START_OF_LINE = re.compile(rf"(?P<break>{_HARD_BREAK.pattern})(?![ \t>])(?P<start>{_BLOCK_START.pattern})")


def read(content: bytes, settings: DocumentSettings) -> TextDocument:
    """Read a text in Markdown.

    Raises:
        UserError: the encoding of the text is not known.
    """
    from markdown_it import MarkdownIt

    text, encoding = read_text(content, settings)
    start = _end_of_front_matter(text)
    starts = [start, *(match.end() for match in _LINE_END.finditer(text, start)), len(text)]
    opaque = _opaque_lines(text, starts)
    blocks: list[Block] = []
    position, level, environment = start, "", dict[str, dict[str, object]]()
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parsed = parser.parse(_outdented(text, starts), environment)
    references = frozenset(environment.get("references", ()))
    html = _without_prefixes(text, starts, [token for token in parsed if token.type == "html_block"])
    for token in parsed:
        if token.map is None:
            continue
        first, last = token.map
        if token.type == "html_block":
            blocks += _html(html, starts[first], starts[min(last, len(starts) - 1)], settings)
        elif token.type == "inline":
            written = token.content.replace("|", "\\|") if level in _CELLS else token.content
            spans = _spans(text, written, position, starts[first : last + 1])
            position = spans[-1][1] if spans else position
            for lines in _apart(text, spans, [number in opaque for number in range(first, last)]):
                blocks += _paragraph(text, lines, level, references)
        elif token.type.endswith("_open"):
            level = token.type
    return TextDocument(text, encoding, settings, blocks, errors="strict")


def _end_of_front_matter(text: str) -> int:
    """Return the start of the text; two rules with text between them are not front matter."""
    front, start = _FRONT_MATTER.match(text), len(text) - len(text.removeprefix("\ufeff"))
    if front is None:
        return start
    if front["fence"] == "---":
        try:
            # The stream, the document, and its first node.
            events = list(islice(yaml.parse(front["inside"], Loader=yaml.SafeLoader), 3))
        except yaml.YAMLError:
            events = []  # that of a template, as it may be
        if len(events) == 3 and not isinstance(events[2], yaml.MappingStartEvent):
            return start
    return front.end()


def _outdented(text: str, starts: Sequence[int]) -> str:
    """Return the lines that start at some places, without the indentation inside of Markdown's extensions."""
    outdented, containers = [], list[int]()  # the open ones, by their own indentations
    fence, closing = "", 0  # of the code that is open, and the most indentation of its end
    for start, end in pairwise(starts):
        line = text[start:end]
        inside = line.lstrip(" ")
        indentation = len(line) - len(inside)
        while inside.strip() and containers and indentation < containers[-1] + _INDENTATION:
            containers.pop()
            fence = ""
        outdented.append(line[min(indentation, _INDENTATION * len(containers)) :])
        found = _FENCE.match(inside.rstrip())
        if fence:
            is_end = found and found["fence"].startswith(fence) and not found["language"] and indentation <= closing
            fence = "" if is_end else fence
        elif found:
            fence, closing = found["fence"], indentation + _INDENTATION - 1
        elif _CONTAINER.match(inside):
            containers.append(indentation)
    return "".join(outdented)


def _opaque_lines(text: str, starts: Sequence[int]) -> set[int]:
    """Return the numbers of the lines that stay unchanged and are never joined with text."""
    found: set[int] = set()
    for match in _OPAQUE.finditer(text, starts[0]):
        found.update(range(bisect_right(starts, match.start()) - 1, bisect_left(starts, match.end())))
    return found


def _spans(text: str, content: str, position: int, starts: Sequence[int]) -> list[Span]:
    """Return the source spans of the lines of a paragraph, searched from ``position`` on.

    Args:
        text: the source.
        content: the lines, without what they begin with in the source, such as quotation marks.
        position: the end of what has been found before.
        starts: where the lines of the source start, and the end of the last one.
    """
    lines = content.split("\n")
    spans: list[Span] = []
    for line, begin, end in zip(lines, starts, starts[1:], strict=False):
        found = text.find(line.strip(), max(begin, position), end)
        if found < 0:  # as where a tab was written as spaces
            return []
        position = found + len(line.strip())
        spans.append((found, position))
    return spans if len(spans) == len(lines) else []


def _apart(text: str, spans: Sequence[Span], is_opaque: Sequence[bool]) -> Iterator[list[Span]]:
    """Divide the lines of a paragraph into groups that are read together."""
    lines: list[Span] = []
    for number, (begin, end) in enumerate(spans):
        definition = _DEFINITION.match(text, begin, end)
        if is_opaque[number] or definition:
            yield lines
            lines = []
        if not is_opaque[number]:
            lines.append((definition.end() if definition else begin, end))
    yield lines


def _paragraph(text: str, spans: list[Span], level: str, references: frozenset[str]) -> Iterator[Block]:
    """Yield the paragraph of these lines; a hard line break ends a unit where a sentence ends."""
    if not spans:
        return
    note = _NOTE.match(text, *spans[0])
    if note and note.end() >= spans[0][1]:
        return
    start = note.end() if note else spans[0][0]
    tokens: list[Text] = []
    found: list[BlockUnit] = []
    unit, is_cell, n_inside = "", level in _CELLS, 0  # the hard breaks inside of sentences
    parts: list[tuple[int, int]] = []  # of the unit: where they start in it and in the text
    for number, (begin, end) in enumerate(spans):
        is_end = number + 1 == len(spans)
        following = end if is_end else spans[number + 1][0]
        if not is_end and _LAST_BACKSLASH.search(text, begin, end):
            end = begin + len(text[begin : end - 1].rstrip())
        parts.append((len(unit), max(begin, start)))
        unit += text[max(begin, start) : end]
        gap = text[end:following]
        is_hard = _HARD_BREAK.match(gap) is not None
        if is_end or (is_hard and _ends_sentence(text[begin:end], text[slice(*spans[number + 1])])):
            if any(map(str.isalpha, unit)):
                written = unit.replace("\\|", "|") if is_cell else unit
                # Characters that always have a backslash can get it in a translation.
                escaped = _ESCAPED.intersection(_ESCAPE.findall(written)).difference(_ESCAPE.sub("", written))
                tagged, marks = _tagged(written, references, escaped, parts if written == unit else ())
                yield from _descriptions(text, marks)
                guarded = partial(_guarded, unit, is_cell=is_cell, escaped=escaped)
                if any(map(str.isalpha, tagged)):
                    place = len(tokens)
                    found.append(BlockUnit(place, place + 1, tagged, marks or None, guarded, is_escaped=False))
            # With the descriptions of images in it, where it has no other text.
            raw = ((parts[0][1], end),) if len(parts) == 1 else ()
            tokens += [Text(unit, raw), Text(gap)]
            unit, parts = "", []
        else:
            unit += gap if is_hard else " "
            n_inside += is_hard
    if found:
        is_paragraph = level == "paragraph_open" and len(spans) == len(found) + n_inside
        before = text[max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1 : start]
        writer = Writer("\\\n" if is_paragraph and not before else "<br>")
        yield Block((start, spans[-1][1]), tokens, found, writer, _with_lines_of_text)


def _descriptions(text: str, marks: Mapping[str, Sequence[Mark]]) -> Iterator[Block]:
    """Yield the descriptions of the images among the marks of a unit, each of which is a unit of its own."""
    for span in (part for [mark] in marks.values() for part in mark.raw if not isinstance(part, str)):
        written = text[slice(*span)]
        special = "".join(map(re.escape, {*"[]|", *_ESCAPE.findall(written)}))
        escape = partial(re.sub, f"[{special}]", r"\\\g<0>")
        for block in plain_block(span, _ESCAPE.sub(r"\1", written), escape):
            yield replace(block, writer=Writer(" / "))


def _ends_sentence(before: str, after: str) -> bool:
    return ends_sentence(_SYNTAX.sub("", before), _SYNTAX.sub("", after))


def _with_lines_of_text(paragraph: str) -> str:
    """Make each hard break of a translated paragraph one, and what follows it text.

    Breaks at its ends are dropped, where they are none, and so are those after others, where they would end it. A start
    of a line that looks like a list item or a heading is escaped.
    """
    paragraph = _BREAKS.sub(lambda breaks: breaks["first"] or "", paragraph)
    return _START_OF_LINE.sub(lambda line: f"{line['break']}{line['start'][:-1]}\\{line['start'][-1]}", paragraph)


def _tagged(
    unit: str, references: frozenset[str], escaped: frozenset[str], parts: Sequence[tuple[int, int]]
) -> tuple[str, dict[str, Sequence[Mark]]]:
    """Replace text that must not be translated, such as footnotes and names of definitions, by tags.

    Args:
        unit: the text.
        references: the names of the definitions.
        escaped: the characters that lose their backslash.
        parts: where the parts of the unit start in it and in the text of the document; none if it is not as there.
    """
    marks: dict[str, Sequence[Mark]] = {}

    def tag(match: re.Match[str]) -> str:
        number = len(marks) + 1
        label = match["label"] or match["text"] or ""
        if match["alt"]:
            first, last = (bisect_right(parts, place, key=itemgetter(0)) for place in match.span("alt"))
            if match.string is not unit or first != last or not first:
                return match[0]
            of_unit, of_text = parts[first - 1]
            span = (match.start("alt") - of_unit + of_text, match.end("alt") - of_unit + of_text)
            after = unit[match.end("alt") : match.end()]
            marks[f"<{number}/>"] = [Mark(Kind.POINT, (_IMAGE, span, after))]
            return f"<{number}/>"
        if match["ticks"] or (match["escape"] and match["escape"][1] in escaped):
            return match[0]
        if match["break"]:
            before = match.string[max(0, match.start() - _BESIDE) : match.start()]
            after = match.string[match.end() : match.end() + _BESIDE]
            if match[0].startswith("<") and _ends_sentence(before, after):
                return match[0]
            marks[f"<{number}/>"] = [Mark(Kind.LINE, (match[0],))]
            return f"<{number}/>"
        if match["kept"] or match["escape"]:
            is_note = match[0].startswith(("[^", "{"))  # or attributes, with an id maybe
            marks[f"<{number}/>"] = [Mark(Kind.POINT, (match[0],), has_text=not is_note)]
            return f"<{number}/>"
        is_known = " ".join(label.split()).lower().upper() in references
        if is_known:
            marks[f"<{number}>"] = [Mark(Kind.OPEN, (match["start"],), number)]
            marks[f"</{number}>"] = [Mark(Kind.CLOSE, (f"][{label}]",), number)]
        inside, after = _REFERENCE.sub(tag, match["text"]), match.string[match.end("text") : match.end()]
        return f"<{number}>{inside}</{number}>" if is_known else f"{match['start']}{inside}{after}"

    return _ESCAPE.sub(
        lambda escape: escape[1] if escape[1] in escaped else escape[0], _REFERENCE.sub(tag, unit)
    ), marks


def _guarded(src: str, tgt: str, *, is_cell: bool, escaped: frozenset[str]) -> str:
    """Escape text that Markdown would read differently, such as a start that looks like a list item."""
    tgt = "".join(f"\\{character}" if character in escaped else character for character in tgt) if escaped else tgt
    if is_cell:
        return tgt.replace("|", "\\|")
    start = _BLOCK_START.match(tgt)
    if start is None or _BLOCK_START.match(src):
        return tgt
    return tgt[: start.end() - 1] + "\\" + tgt[start.end() - 1 :]


def _without_prefixes(text: str, starts: Sequence[int], html: "Sequence[Token]") -> str:
    """Return a text with spaces for what is before lines of HTML, such as the signs of quotations and items."""
    found, position = list[str](), 0
    for token in html:
        for number, line in enumerate(token.content.split("\n")[:-1], token.map[0] if token.map else 0):
            start, end = starts[number], starts[number] + len(text[starts[number] : starts[number + 1]].rstrip("\r\n"))
            content = end - len(line)
            if line and content > start and text.endswith(line, start, end):
                found += text[position:start], " " * (content - start)
                position = content
    return "".join(found) + text[position:]


def _html(text: str, start: int, stop: int, settings: DocumentSettings) -> Iterator[Block]:
    part = read_html(text[start:stop], settings.name)
    tokens = [token._replace(start=token.start + start, end=token.end + start) for token in part.tokens]
    source = MarkupSource(text, tokens)
    yield from Flow(source, partial(role_in_html, source), Writer("<br>", between_tags)).blocks()
