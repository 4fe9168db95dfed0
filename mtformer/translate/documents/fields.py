"""Fields of Word, such as links, dates and page numbers: a code, and the text that Word has computed from it."""

from dataclasses import dataclass

from mtformer.translate.documents.inline import Kind, Mark, Raw, Span, Token
from mtformer.translate.documents.markup_tokens import MarkupSource

_DEPTHS = {"begin": 1, "end": -1}  # how the parts of fields change how many are open
_TRANSLATED_FIELDS = frozenset(["HYPERLINK", "TOC", "QUOTE"])  # of others, such as PAGE, Word computes the text


@dataclass
class _Field:
    """A field of Word: its code, and the text that Word has computed from it.

    Attributes:
        pair: its number.
        raw: the source read so far, as long as no text in it is translated.
        code: its code.
        depth: the number of open fields, including itself and nested ones.
        is_open: whether its text is translated.
    """

    pair: int
    raw: list[str | Span]
    code: str = ""
    depth: int = 1
    is_open: bool = False


class Content:
    """The text and the marks of a paragraph; a field whose text is not translated is one mark.

    Attributes:
        items: the text and the marks so far.
    """

    def __init__(self, source: MarkupSource, prefix: str) -> None:
        """Start a paragraph, whose elements have names with this prefix."""
        self.items: list[Token] = []
        self._source, self._kind = source, f"{prefix}fldCharType"
        self._open: list[_Field] = []  # fields may be nested

    @property
    def is_keeping(self) -> bool:
        """Whether the current element belongs to a field that is kept unchanged."""
        return bool(self._open) and not self._open[-1].is_open

    def add(self, mark: Mark) -> None:
        """Add a mark to the field that is kept, or else to the paragraph."""
        if self.is_keeping:
            self._open[-1].raw += mark.raw
        else:
            self.items.append(mark)

    def add_part(self, number: int, name: str, raw: Raw) -> None:
        """Add a part of a field: begin, code, separate, text, end.

        Args:
            number: the index of its element.
            name: the name of its element: fldChar or instrText.
            raw: its source.
        """
        kind = self._kind_of(number) if name == "fldChar" else "code"
        last = self._open[-1] if self._open else None
        if last is not None and not last.is_open:
            last.raw += raw
            last.depth += _DEPTHS.get(kind, 0)
            if kind == "code" and last.depth == 1:
                last.code += self._source.characters_in(number)
            elif kind == "separate" and last.depth == 1 and is_translated(last.code):
                last.is_open = True
                self.items.append(Mark(Kind.OPEN, tuple(last.raw), last.pair))
            self._end_kept(last)
        elif kind == "begin":
            self._open.append(_Field(number, list(raw)))
        elif kind == "end" and last is not None:
            self._open.pop()
            self.add(Mark(Kind.CLOSE, raw, last.pair))
        else:
            self.add(Mark(Kind.POINT, raw))

    def add_kept(self, element: int) -> None:
        """Add an element around runs to the field that is kept, which may end in it."""
        field = self._open[-1]
        field.raw.append(self._source.span(element))
        parts = self._source.elements("w:fldChar", within=element)
        field.depth += sum(_DEPTHS.get(self._kind_of(each), 0) for each in parts)
        self._end_kept(field)

    def keep_since(self, n_items: int, element: int) -> None:
        """Replace all but ``n_items`` by the element whose field is still open: tags must not separate it."""
        del self.items[n_items:]
        self._open[-1].raw = [self._source.span(element)]

    def end(self) -> None:
        """End the paragraph; fields may end after it."""
        self.items += (Mark(Kind.POINT, tuple(field.raw)) for field in self._open if not field.is_open)

    def _kind_of(self, number: int) -> str:
        return self._source.attributes(number).get(self._kind, "")

    def _end_kept(self, field: _Field) -> None:
        """End a field that is kept once it is complete."""
        if field.depth <= 0:
            self._open.pop()
            self.add(Mark(Kind.POINT, tuple(field.raw), has_text=True))


def is_translated(code: str) -> bool:
    """Tell whether the text of a field is translated, by its code."""
    words = code.upper().split()
    return bool(words) and words[0] in _TRANSLATED_FIELDS
