"""Files that translators exchange: XLIFF 1.2 and 2, and TMX.

Existing translations are kept; new ones are marked for review where the format allows it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mtformer.support.errors import UserError
from mtformer.text.languages import base_language, matches_language
from mtformer.translate.documents.blocks import Block
from mtformer.translate.documents.flow import Flow, Role, between_tags
from mtformer.translate.documents.inline import Span, Writer
from mtformer.translate.documents.markup_tokens import MarkupSource, TokenKind, decoded, read_xml
from mtformer.translate.documents.messages import choice_parts
from mtformer.translate.documents.seam import DocumentSettings, TextDocument

_INLINE = frozenset(["g", "mrk", "pc", "hi"])
_STATE = re.compile(r'\s(?:state|state-qualifier)\s*=\s*(?:"[^"]*"|\'[^\']*\')')
_UNTRANSLATED = frozenset(["new", "needs-translation", "initial"])  # states
_REVIEW = ' state="needs-review-translation" state-qualifier="leveraged-mt"'


@dataclass
class _Exchange:
    """Finds the untranslated units of a file."""

    source: MarkupSource
    settings: DocumentSettings

    def __post_init__(self) -> None:
        self.edits: list[tuple[Span, str]] = []
        self.sentences: set[int] = set()  # the tags of segments inside of a unit
        self.lines: set[int] = set()  # the texts in which the ends of lines count
        preserves = [False]
        for number, (kind, name, start, end) in enumerate(self.source.tokens):
            if kind is TokenKind.START:
                attributes = self.source.attributes(number) if "=" in self.source.text[start:end] else {}
                preserves.append(attributes.get("xml:space", "preserve" if preserves[-1] else "") == "preserve")
                if name == "mrk" and attributes.get("mtype") == "seg":
                    self.sentences |= {number, self.source.end(number)}
            elif kind is TokenKind.END:
                preserves.pop()
            elif preserves[-1]:
                self.lines.add(number)
        self.syntax: dict[int, list[Span]] = {}  # of choices of ICU
        self.flow = Flow(self.source, self.role, Writer("\n", between_tags), lines=self.lines, syntax=self.syntax)

    def role(self, number: int) -> Role:
        """Return the role of an element."""
        kind, name, _, _ = self.source.tokens[number]
        if name not in _INLINE:
            return Role.POINT
        if number in self.sentences:
            return Role.SENTENCE
        attributes = self.source.attributes(number) if kind is TokenKind.START else {}
        if attributes.get("translate") == "no" or attributes.get("mtype") == "protected":
            return Role.CODE
        return Role.INLINE if kind is not TokenKind.EMPTY else Role.POINT

    def first(self, unit: int, name: str) -> int | None:
        """Return the first child element with a name."""
        children = self.source.children(unit + 1, self.source.end(unit))
        return next((number for number in children if self.source.tokens[number].name == name), None)

    def translation(self, src: int, span: Span, opening: str, closing: str) -> Iterator[Block]:
        """Yield the block that writes the translation of an element, between two strings, to a span."""
        self._find_syntax(src)
        for block in self.flow.blocks(src + 1, self.source.end(src)):
            yield replace(block, span=span, finish=lambda text: f"{opening}{text}{closing}", is_kept=False)

    def _find_syntax(self, element: int) -> None:
        """Note the syntax, which is not translated, of an element that is a choice of ICU."""
        tokens = [(n, self.source.tokens[n]) for n in range(element + 1, self.source.end(element))]
        texts = [(n, start, end) for n, (kind, _, start, end) in tokens if kind is TokenKind.TEXT]
        parts = choice_parts("".join(self.source.text[start:end] for _, start, end in texts)) or []
        number, left = -1, 0  # of a part: its number, and how much of it is not found yet
        for n, start, end in texts if parts else []:
            position = start
            while position < end:
                if not left:
                    number += 1
                    left = len(parts[number][0])
                size = min(left, end - position)
                if size and not parts[number][1]:
                    self.syntax.setdefault(n, []).append((position, position + size))
                position, left = position + size, left - size

    def target(self, src: int, tgt: int | None, after: int, state: str = "") -> Iterator[Block]:
        """Yield the block that writes a target with a state, in place of an old one or after an element."""
        if tgt is not None:
            name = re.split(r"[\s/>]", self.source.written(tgt)[1:], maxsplit=1)[0]
            opening = _STATE.sub("", self.source.written(tgt)).rstrip("/>").rstrip()
            yield from self.translation(src, self.source.span(tgt), f"{opening}{state}>", f"</{name}>")
            return
        name = re.split(r"[\s>]", self.source.written(src)[1:], maxsplit=1)[0].rpartition(":")
        name = f"{name[0]}{name[1]}target"
        space = ' xml:space="preserve"' if self.source.attributes(src).get("xml:space") == "preserve" else ""
        end = self.source.span(after)[1]
        yield from self.translation(src, (end, end), f"{self.space_before(src)}<{name}{space}{state}>", f"</{name}>")

    def space_before(self, number: int) -> str:
        """Return the line end and the indentation before an element."""
        start = self.source.tokens[number].start
        before = re.search(r"\s*\Z", self.source.text[max(0, start - 200) : start])
        return before[0] if before else ""

    def xliff1(self) -> Iterator[Block]:
        """Yield the units of XLIFF 1.2."""
        for file in self.source.elements("file"):
            self._name_languages(file, "source-language", "target-language")
            for unit in self._allowed(file, "trans-unit"):
                src, tgt = self.first(unit, "source"), self.first(unit, "target")
                if src is None or self.source.attributes(unit).get("approved") == "yes":
                    continue
                segmented = self.first(unit, "seg-source")
                last = src if segmented is None else segmented
                is_new = tgt is not None and self.source.attributes(tgt).get("state") in _UNTRANSLATED
                if tgt is None or is_new or not self.source.characters_in(tgt).strip():
                    yield from self.target(last, tgt, last, _REVIEW)

    def xliff2(self) -> Iterator[Block]:
        """Yield the units of XLIFF 2."""
        [root] = self.source.elements("xliff")
        self._name_languages(root, "srcLang", "trgLang")
        for unit in self._allowed(root, "unit"):
            for segment in self.source.elements("segment", within=unit):
                src, tgt = self.first(segment, "source"), self.first(segment, "target")
                state = self.source.attributes(segment).get("state", "initial")
                has_text = tgt is not None and self.source.characters_in(tgt).strip()
                if src is None or (has_text and state not in _UNTRANSLATED):
                    continue
                blocks = list(self.target(src, tgt, src))
                if blocks:
                    self._set(segment, "state", "translated")
                yield from blocks

    def _allowed(self, start: int, name: str) -> Iterator[int]:
        """Yield the descendants with a name, unless an enclosing element forbids their translation."""

        def is_kept(number: int) -> bool:
            return self.source.attributes(number).get("translate") == "no"

        def is_wanted(number: int) -> bool:
            return self.source.tokens[number].name == name or is_kept(number)

        found = self.source.outermost(start, self.source.end(start), is_wanted)
        return (number for number in found if not is_kept(number))

    def _name_languages(self, number: int, src: str, tgt: str) -> None:
        """Check the source language in an attribute of a tag, and set the target language in another one."""
        attributes = self.source.attributes(number)
        self.settings.require_source_language(attributes.get(src, ""))
        language = self.settings.new_target_language(attributes.get(tgt, ""))
        if language is not None:
            self._set(number, tgt, language)

    def _set(self, number: int, attribute: str, value: str) -> None:
        """Set an attribute of a tag."""
        _, _, start, end = self.source.tokens[number]
        for name, begin, stop in self.source.attribute_spans(start, end):
            if name == attribute:
                self.edits.append(((begin, stop), value))
                return
        self.edits.append(((end - 1, end - 1), f' {attribute}="{value}"'))

    def tmx(self) -> Iterator[Block]:
        """Yield the units of TMX that have the source language but not the target language."""
        headers = list(self.source.elements("header"))
        default = self.source.attributes(headers[0]).get("srclang", "") if headers else ""
        for unit in self.source.elements("tu"):
            variants = {self._language(each): each for each in self.source.elements("tuv", within=unit)}
            wanted = [self.settings.src_lang, self.source.attributes(unit).get("srclang", default)]
            src = next((variants[lang] for code in wanted if (lang := _closest(code, variants))), None)
            if src is None or any(matches_language(lang, self.settings.tgt_lang) for lang in variants):
                continue
            segment = self.first(src, "seg")
            if segment is not None:
                end = self.source.span(src)[1]
                opening = f'{self.space_before(src)}<tuv xml:lang="{self.settings.tgt_lang}"><seg>'
                yield from self.translation(segment, (end, end), opening, "</seg></tuv>")

    def _language(self, variant: int) -> str:
        attributes = self.source.attributes(variant)
        return attributes.get("xml:lang") or attributes.get("lang", "")


def _closest(code: str, languages: Iterable[str]) -> str:
    """Return the language whose code is nearest to ``code``; empty if none matches."""
    same = [lang for lang in languages if base_language(lang.lower()) == base_language(code.lower())]
    return max(same, key=lambda lang: matches_language(lang, code), default="")


def read_xliff(content: bytes, settings: DocumentSettings) -> TextDocument:
    """Read XLIFF.

    Raises:
        UserError: it is not XLIFF, or damaged.
    """
    text, encoding = decoded(content, settings.name)
    exchange = _Exchange(read_xml(text, settings.name), settings)
    root = next(exchange.source.elements("xliff"), None)
    if root is None:
        raise UserError(f"{settings.name} is not XLIFF: its first element has another name")
    is_first = exchange.source.attributes(root).get("version", "1.2").startswith("1")
    blocks = list(exchange.xliff1() if is_first else exchange.xliff2())
    return TextDocument(text, encoding, settings, blocks, exchange.edits)


def read_tmx(content: bytes, settings: DocumentSettings) -> TextDocument:
    """Read a translation memory to which the target language is added.

    Raises:
        UserError: it is not TMX, or damaged.
    """
    text, encoding = decoded(content, settings.name)
    exchange = _Exchange(read_xml(text, settings.name), settings)
    if not any(token.name == "tmx" for token in exchange.source.tokens):
        raise UserError(f"{settings.name} is not TMX: its first element has another name")
    return TextDocument(text, encoding, settings, exchange.tmx())
