"""Catalogues of gettext: PO files, and POT files, which have no translations yet.

Existing translations are kept. A fuzzy message is translated again and stays fuzzy, for somebody to review.
"""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from mtformer.support.errors import UserError
from mtformer.translate.documents.blocks import Block
from mtformer.translate.documents.inline import Span
from mtformer.translate.documents.markup_tokens import decoded
from mtformer.translate.documents.plain import plain_block
from mtformer.translate.documents.seam import DocumentSettings, TextDocument

_LINE = re.compile(
    r"(?P<comment>#.*)|(?:(?P<key>msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)\s*)?"
    r'(?P<texts>(?:"(?:[^"\\]|\\.)*"\s*)+)'
)
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_CHARSET = re.compile(rb'^(?:msgstr )?"Content-Type:[^"]*charset=(?!CHARSET\b)([\w.-]+)', re.MULTILINE)
_DECLARATION = re.compile(_CHARSET.pattern.decode(), re.MULTILINE)
_LANGUAGE = re.compile(r'"Language:([^"\\]*)\\n"')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_CODES = {chr(code): f"\\{code:03o}" for code in (*range(32), 127)}
_ESCAPED = _CODES | {character: f"\\{letter}" for letter, character in _ESCAPES.items()} | {'"': '\\"', "\\": "\\\\"}
_ESCAPE = re.compile(r"(?P<bytes>(?:\\(?:[0-7]{1,3}|x[0-9A-Fa-f]{1,2}))+)|\\(?P<letter>.)")


@dataclass
class _Entry:
    """A message.

    Attributes:
        texts: the values of its keywords.
        spans: where they are written, quotes included.
        is_fuzzy: whether the translation needs a review.
    """

    texts: dict[str, str] = field(default_factory=dict)
    spans: dict[str, Span] = field(default_factory=dict)
    is_fuzzy: bool = False


def read(content: bytes, settings: DocumentSettings) -> TextDocument:
    """Read a catalogue.

    Raises:
        UserError: a line is malformed, or the text is not in the encoding that it declares.
    """
    text, encoding = decoded(content, settings.name, _CHARSET)
    line_end = "\r\n" if "\r\n" in text else "\n"
    blocks: list[Block] = []
    edits: list[tuple[Span, str]] = []
    for entry in _entries(text, settings.name):
        if entry.texts.get("msgid"):
            blocks += _blocks(entry, line_end)
        elif header := _LANGUAGE.search(text, *entry.spans.get("msgstr", (0, 0))):
            language = settings.new_target_language(header[1])
            edits += [(header.span(1), f" {language}")] if language is not None else []
    return TextDocument(text, encoding, settings, blocks, edits, errors="strict", declaration=_DECLARATION)


class _Line(NamedTuple):
    """A line that is not empty.

    Attributes:
        number: from 1.
        start: where it starts, in characters.
        text: its characters.
        match: its parts; None if it is malformed.
    """

    number: int
    start: int
    text: str
    match: re.Match[str] | None


def _entries(text: str, name: str) -> Iterator[_Entry]:
    for lines in _lines_of_entries(text):
        entry = _entry(lines, name)
        if entry.texts:
            yield entry


def _lines_of_entries(text: str) -> Iterator[list[_Line]]:
    """Yield the lines of each message, which an empty line, or the beginning of the next message, ends."""
    lines: list[_Line] = []
    keys = set[str]()
    start = 0
    for number, line in enumerate(text.split("\n"), 1):
        match = _LINE.fullmatch(line.strip().removeprefix("\ufeff"))
        if not line.strip() or (match and _begins_another(match, keys)):
            yield lines
            lines, keys = [], set()
        if line.strip():
            lines.append(_Line(number, start, line, match))
        if match and match["key"]:
            keys.add(match["key"])
        start += len(line) + 1
    yield lines


def _begins_another(line: re.Match[str], keys: Set[str]) -> bool:
    """Tell whether a line begins another message than that which has ``keys``."""
    if line["comment"] is None and line["key"] not in ("msgctxt", "msgid"):
        return False
    has_translation = any(key.startswith("msgstr") for key in keys)
    return has_translation or (line["key"] == "msgid" and "msgid" in keys)


def _entry(lines: Sequence[_Line], name: str) -> _Entry:
    """Parse the lines of a message."""
    entry, key = _Entry(), ""
    for number, start, line, match in lines:
        if match is None:
            raise UserError(f"{name}:{number}: this line is not part of a catalogue: {line.strip()[:50]}")
        if match["comment"] is not None:
            if match["comment"].startswith("#~"):  # what was fuzzy is a message that is not used any more
                entry.is_fuzzy = False
            entry.is_fuzzy |= match["comment"].startswith("#,") and "fuzzy" in match["comment"]
            continue
        key = match["key"] or key
        if not key or (match["key"] and key in entry.texts):
            raise UserError(f"{name}:{number}: this line belongs to no message: {line.strip()[:50]}")
        text = "".join(_TEXT.findall(match["texts"]))
        entry.texts[key] = entry.texts.get(key, "") + _ESCAPE.sub(_character, text)
        begin, _ = entry.spans.get(key, (start + line.index('"'), 0))
        entry.spans[key] = (begin, start + len(line.rstrip()))
    return entry


def _blocks(entry: _Entry, line_end: str) -> Iterator[Block]:
    """Yield blocks for the missing translations; a language without plurals has only the plural form."""
    forms = [key for key in entry.texts if key.startswith("msgstr")]
    for key in forms:
        is_one = key == "msgstr" or (key == "msgstr[0]" and len(forms) > 1)
        src = entry.texts["msgid"] if is_one else entry.texts.get("msgid_plural", entry.texts["msgid"])
        if not entry.texts[key].strip() or entry.is_fuzzy:
            yield from plain_block(entry.spans[key], src, lambda tgt: _quoted(tgt, line_end), is_kept=False)


def _character(match: re.Match[str]) -> str:
    if match["bytes"] is None:
        return _ESCAPES.get(match["letter"], match["letter"])
    codes = (int(code[1:], 16) if code[0] == "x" else int(code, 8) for code in match["bytes"].split("\\")[1:])
    return bytes(code & 0xFF for code in codes).decode("utf-8", "replace")


def _quoted(text: str, line_end: str) -> str:
    """Quote a text as gettext does: each of several lines separately."""
    lines = [line.translate(str.maketrans(_ESCAPED)) for line in re.findall(r"[^\n]*\n|[^\n]+", text)]
    if len(lines) == 1:
        return f'"{lines[0]}"'
    return line_end.join(['""', *(f'"{line}"' for line in lines)])
