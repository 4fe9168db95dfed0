"""Files of messages: JSON, YAML and the properties of Java. Keys, comments and the layout of the file stay."""

import json
import re
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial

import yaml

from mtformer.support.errors import UserError
from mtformer.support.fast_yaml import LOADER
from mtformer.translate.documents.blocks import Block
from mtformer.translate.documents.inline import Span
from mtformer.translate.documents.markup_tokens import decoded
from mtformer.translate.documents.plain import plain_block
from mtformer.translate.documents.seam import DocumentSettings, TextDocument

_BOM = "\ufeff"  # the byte order mark, which the readers of both do not count
_JSON_STRING = re.compile(r'(?P<text>"(?:[^"\\]|\\.)*")\s*(?P<colon>:)?')  # a key has a colon after it
# Of WebExtensions and FormatJS; what is beside a message is for translators.
_MESSAGE_KEYS = frozenset(["message", "defaultMessage"])
_DESCRIPTION_KEYS = frozenset("id description placeholders hash file".split())
_ARB_LANGUAGE = "@@locale"
_MAX_LEVELS = 200  # of collections in YAML
_MAX_DEPTH = 5  # of choices inside of choices
_SPECIAL = "\n,[]{}#:&*!|>'\"%@`"  # characters that may mean something in YAML
_YAML_TAG = "tag:yaml.org,2002:"
_YAML_TEXT = (None, "!", f"{_YAML_TAG}str")  # the tags of scalars that are text
_YAML_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)+")
_PROPERTY = re.compile(
    r"^\ufeff?+[ \t\f]*+(?![#!\s])(?:\\\r?\n[ \t\f]*+|\\.|[^\\=:\s])+[ \t\f]*[=:]?[ \t\f]*"
    r"(?P<value>(?:\\\r?\n|\\.|[^\\\r\n])*)",
    re.MULTILINE,
)
# An argument of ICU that chooses one of several messages, up to its first message.
_CHOICE = re.compile(r"\{\s*[\w.-]+\s*,\s*(?:plural|select|selectordinal)\s*,")
_CHOICE_END = re.compile(r"\s*\}\s*")
_BRACE = re.compile("[{}]")
_BRANCH = re.compile(r"\s*(?:offset:\d+\s*)?(?:=\d+|[\w-]+)\s*\{")
# A value that is no text.
_TECHNICAL = re.compile(
    r"[a-z]{2,3}(?:-(?:[A-Z]{2}|Han[st]|Latn|Cyrl))+"  # a locale
    r"|(?:application|audio|font|image|model|multipart|text|video)/[\w.+-]+"  # a media type
    r"|(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific)(?:/[\w-]+)+"  # a time zone
    r"|[a-z0-9]+(?:-+[a-z0-9]+)+"  # btn-save
    r"|(?![a-z](?:\.\w)+\Z)[a-z][\w-]*(?:\.[\w-]+)+"  # menu.file.save, but not e.g
    r"|[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)+"  # save_button, MAX_SIZE
    r"|[a-z]{2,}\d*(?:[A-Z][a-z0-9]*)+"  # saveButton
    r"|(?=[!-~]*[\[\]()+*\\])(?:\^[!-~]*|[!-~]*\$)",  # a regular expression
    re.ASCII,
)


def message_block(span: Span, text: str, escape: Callable[[str], str], *, is_named: bool = False) -> Iterator[Block]:
    """Yield the block of a message, if it has text to translate.

    The variants of an ICU plural or select are separate units.
    """
    if is_named or not _TECHNICAL.fullmatch(text):
        yield from plain_block(span, text, escape, parts=choice_parts(text))


def choice_parts(text: str, depth: int = 0) -> list[tuple[str, bool]] | None:
    """Return the parts of a message that is a single choice, and whether each is a message; else None."""
    start = _CHOICE.match(text)
    if start is None or depth == _MAX_DEPTH:
        return None
    parts, position = [(start[0], False)], start.end()
    while branch := _BRANCH.match(text, position):
        end = _closing(text, branch.end())
        inside = text[branch.end() : end]
        parts += [
            (branch[0], False),
            *(choice_parts(inside, depth + 1) or [(inside, True)]),
            (text[end : end + 1], False),
        ]
        position = end + 1
    return [*parts, (text[position:], False)] if _CHOICE_END.fullmatch(text, position) else None


def _closing(text: str, start: int) -> int:
    """Return the index of the brace that closes the one before ``start``."""
    depth = 1
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.start()
    return len(text)


def read_json(content: bytes, settings: DocumentSettings) -> TextDocument:
    """Read a file of messages in JSON.

    Raises:
        UserError: it is not JSON, or lacks a key to translate.
    """
    text, encoding = decoded(content, settings.name)
    try:
        tree = json.loads(text.removeprefix(_BOM), object_pairs_hook=_Members)
    except ValueError as error:
        raise UserError(f"{settings.name} is not JSON: {error}") from None
    blocks: list[Block] = []
    edits: list[tuple[Span, str]] = []
    strings = list(_JSON_STRING.finditer(text))
    _require_keys(settings, {json.loads(match["text"]) for match in strings if match["colon"]})
    spans = (match.span("text") for match in strings if match["colon"] is None)
    for span, (key, value, is_kept) in zip(spans, _json_values(tree, settings.columns), strict=True):
        if key == _ARB_LANGUAGE:
            edits.append((span, json.dumps(settings.tgt_lang)))
        elif not is_kept:
            is_ascii = "\\u" in text[slice(*span)]
            blocks += message_block(
                span, value, partial(json.dumps, ensure_ascii=is_ascii), is_named=bool(settings.columns)
            )
    return TextDocument(text, encoding, settings, blocks, edits, errors="strict")


def _require_keys(settings: DocumentSettings, keys: Container[str]) -> None:
    if missing := [key for key in settings.columns if key not in keys]:
        raise UserError(f"{settings.name} has no key {missing[0]}, which --column names")


class _Members(list[tuple[str, object]]):
    """The keys and values of a JSON object, duplicates included."""


def _json_values(tree: object, columns: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Yield each string value, in order, with its key and whether it stays.

    Notes for translators stay, and so does what is not below one of the keys ``columns``, if any.
    """
    waiting: list[tuple[str, object, bool]] = [("", tree, bool(columns))]
    while waiting:
        key, value, is_kept = waiting.pop()
        if isinstance(value, str):
            yield key, value, is_kept
        elif isinstance(value, _Members):
            keys = {name for name, member in value if isinstance(member, str | list)}
            is_described = key != "" and keys & _MESSAGE_KEYS and keys <= _MESSAGE_KEYS | _DESCRIPTION_KEYS
            for name, member in reversed(value):
                is_about = name.startswith("@") or (is_described and name not in _MESSAGE_KEYS)
                waiting.append((name, member, name not in columns and (is_kept or bool(is_about))))
        elif isinstance(value, list):
            waiting += [(key or "[]", item, is_kept) for item in reversed(value)]


def read_yaml(content: bytes, settings: DocumentSettings) -> TextDocument:
    """Read a file of messages in YAML; if its only key is the source language, as in Rails, the target replaces it.

    Raises:
        UserError: it is not YAML, or lacks a key to translate.
    """
    text, encoding = decoded(content, settings.name)
    try:
        values = list(_yaml_values(text.removeprefix(_BOM), settings.columns))
    except yaml.YAMLError as error:
        raise UserError(f"{settings.name} is not YAML: {' '.join(str(error).split())}") from None
    _require_keys(settings, {event.value for event, _, is_key, _ in values if is_key})
    roots = [event for event, depth, is_key, _ in values if is_key and depth == 1]
    edits = [
        (_span(text, root), _yaml_scalar("", root.style or None, root.value, settings.tgt_lang))
        for root in roots[:1]
        if [root.value] == [settings.src_lang] * len(roots)
    ]
    blocks = list[Block]()
    for event, _, is_key, is_named in values:
        if is_named and not is_key and (event.style or _is_plain_text(event.value)):
            span = _span(text, event)
            escape = partial(_yaml_scalar, text[slice(*span)], event.style or None, event.value)
            blocks += message_block(span, event.value, escape, is_named=bool(settings.columns))
    return TextDocument(text, encoding, settings, blocks, edits, errors="strict")


def _span(text: str, event: yaml.ScalarEvent) -> Span:
    """Return the span of a scalar, without its anchor and its tag."""
    assert event.start_mark is not None and event.end_mark is not None
    shift = text.startswith(_BOM)
    start, end = event.start_mark.index + shift, event.end_mark.index + shift
    properties = _YAML_PROPERTIES.match(text, start, end) if event.anchor or event.tag else None
    return (properties.end() if properties else start), end


def _yaml_values(text: str, columns: Sequence[str]) -> Iterator[tuple[yaml.ScalarEvent, int, bool, bool]]:
    """Yield each scalar with its depth, and whether it is a key, and below one of ``columns``, or these are empty.

    Aliases are not followed.
    """
    expected: list[bool | None] = []  # for each mapping whether a key comes next; None for a sequence
    named = [not columns]  # for each collection whether its next value is below one of the columns
    opaque = _MAX_LEVELS  # from this level on, texts are arguments of a tag
    for event in yaml.parse(text, Loader=LOADER):
        is_key = isinstance(event, yaml.NodeEvent) and bool(expected and expected[-1])
        if is_key:
            named[-1] = named[-2] or (isinstance(event, yaml.ScalarEvent) and event.value in columns)
        if isinstance(event, yaml.CollectionEndEvent):
            expected.pop()
            named.pop()
            opaque = _MAX_LEVELS if len(expected) <= opaque else opaque
        elif isinstance(event, yaml.ScalarEvent) and len(expected) <= opaque and event.tag in _YAML_TEXT:
            yield event, len(expected), is_key, named[-1]
        if isinstance(event, yaml.CollectionStartEvent):
            if len(expected) == _MAX_LEVELS:
                raise RecursionError
            if event.tag is not None and not event.tag.startswith(_YAML_TAG):
                opaque = min(opaque, len(expected))
            expected.append(True if isinstance(event, yaml.MappingStartEvent) else None)
            named.append(named[-1])
        elif isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent) and expected and expected[-1] is not None:
            expected[-1] = not expected[-1]


def _is_plain_text(value: str) -> bool:
    """Tell whether an unquoted scalar is text rather than a number, date or truth value."""
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers
    return not any(pattern.match(value) for _, pattern in [*resolvers.get(value[:1], ()), *resolvers.get(None, ())])


def _yaml_scalar(written: str, style: str | None, old: str, text: str) -> str:
    """Write a text in the style of the scalar that it replaces, if possible.

    Args:
        written: the scalar as it is written.
        style: its style: ``|``, ``>``, a quotation mark, or None.
        old: its value.
        text: the new value.
    """
    lines, tail = text.rstrip("\n").split("\n"), written[len(written.rstrip(" \t\r\n")) :]
    if style in ("|", ">") and not (style == ">" and re.search(r"^[ \t]", text, re.MULTILINE)):
        line_end = "\r\n" if "\r\n" in written else "\n"
        header, *body = written.split("\n")
        first = next((line for line in body if line.strip()), "  ")
        own = next((line for line in old.split("\n") if line.strip()), "")
        indent = first[: len(first) - len(first.lstrip()) - (len(own) - len(own.lstrip()))]
        new = "\n".join(indent + line if line else "" for line in lines)
        new = re.sub(r"\n+", r"\n\g<0>", new) if style == ">" else new  # there, the first of several is a space
        return f"{header.rstrip()}{line_end}{new.replace(chr(10), line_end)}{tail}"
    if style == "'" and len(lines) == 1:
        return "'" + text.replace("'", "''") + "'"
    is_simple = text[:1].isalnum() and not set(text) & set(_SPECIAL) and text == text.strip()
    if style is None and is_simple and _is_plain_text(text):
        return text
    return json.dumps(text, ensure_ascii=False) + tail


def read_properties(content: bytes, settings: DocumentSettings) -> TextDocument:
    """Read properties of Java, in UTF-8 or ISO 8859-1.

    Raises:
        UserError: it has a zero byte.
    """
    try:
        text, encoding = decoded(content, settings.name)
    except UserError:
        if b"\0" in content:
            raise
        text, encoding = content.decode("latin-1"), "latin-1"
    blocks = list[Block]()
    for match in _PROPERTY.finditer(text):
        value = re.sub(r"\\\r?\n[ \t\f]*", "", match["value"])
        value = re.sub(r"\\(u[0-9A-Fa-f]{4}|.)", lambda escape: _character(escape[1]), value)
        has_arguments = re.search(r"\{\d", value) is not None  # then an apostrophe is written twice
        value = value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # characters of two escapes
        value = value.replace("''", "'") if has_arguments else value
        escape = partial(_property, is_ascii=text.isascii() or encoding != "utf-8", has_arguments=has_arguments)
        blocks += message_block(match.span("value"), value, escape)
    return TextDocument(text, encoding, settings, blocks, errors="strict")


def _character(escape: str) -> str:
    if len(escape) == 5:
        return chr(int(escape[1:], 16))
    return {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}.get(escape, escape)


def _property(text: str, *, is_ascii: bool, has_arguments: bool) -> str:
    text = text.replace("'", "''") if has_arguments else text
    text = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    text = "\\" * text.startswith(" ") + text
    return re.sub(r"[^ -~]" if is_ascii else r"[\x00-\x1f\x7f]", _escaped, text)


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[place : place + 2].hex().upper()}" for place in range(0, len(units), 2))
