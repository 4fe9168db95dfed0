"""A line with markup: what of it is translated, and how the translations go back between the marks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from mtformer.text.languages import UNDETERMINED
from mtformer.text.tokenizer.tokenizer import on_one_line
from mtformer.text.words import word_spans
from mtformer.translate.markup.atoms import Links, atoms_of, split_copies
from mtformer.translate.markup.projection import Projection
from mtformer.translate.markup.scanner import Mark, Role, scan, unknown_words, with_marks
from mtformer.translate.markup.segment import Node, Segment, make_segment
from mtformer.translate.translation import FLAG, Translation, joined


@dataclass(frozen=True)
class MarkedText:
    """A line with marks in it.

    Attributes:
        stretches: the line from left to right: segments to translate, and strings that stay as they are.
        notes: those of its translations.
    """

    stretches: Sequence[Segment | str]
    notes: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        """What is translated: the text of each segment without its marks."""
        return [stretch.text for stretch in self.stretches if isinstance(stretch, Segment)]

    def put_back(self, translations: Sequence[Translation], links: Sequence[Links]) -> Translation:
        """Return the translation of the line, with every mark of the line in it.

        Args:
            translations: one of each of :attr:`texts`.
            links: which of their words come from which, for each of them.
        """
        rest = zip(translations, links, strict=True)
        text = "".join(
            stretch if isinstance(stretch, str) else _put_back(stretch, *next(rest)) for stretch in self.stretches
        )
        whole = joined(translations, "")
        return replace(whole, text=text, notes=(*whole.notes, *self.notes))


def _put_back(segment: Segment, translation: Translation, links: Links) -> str:
    src = atoms_of(segment.text, word_spans(segment.text))
    tgt = atoms_of(translation.text, word_spans(translation.text))
    parts = split_copies(src, tgt, links, _places(segment.nodes))
    return Projection(*parts, translation.text).render(segment.nodes, escaped=segment.escaped)


def _places(nodes: Sequence[Node]) -> Iterator[int]:
    for node in nodes:
        yield from (node.start, node.end, *_places(node.children))


def take_out(
    text: str, src_lang: str = UNDETERMINED, is_known: Callable[[str], bool] = lambda character: True
) -> MarkedText | None:
    """Take the marks out of a line; None if it has none.

    Tags, Markdown, placeholders, URLs, e-mail addresses, emoji and words of which no letter ``is_known`` are marks.
    Paragraphs, list items, cells and the like are translated separately; all other marks stand inside of a sentence,
    which is translated as a whole. A space takes the place of tabs and line breaks.
    """
    text = on_one_line(text)
    unknown = unknown_words(text, is_known)
    marks = with_marks(scan(text, src_lang), unknown)
    if not marks and "&" not in text:
        return None
    stretches = list(_stretches(text, marks))
    segments = [stretch for stretch in stretches if isinstance(stretch, Segment)]
    if not marks and not any(segment.escaped for segment in segments):
        return None
    words = [text[mark.start : mark.end] for mark in marks if mark in unknown]
    return MarkedText(stretches, (f"{FLAG}unknown words: {', '.join(words)}",) if words else ())


def _stretches(text: str, marks: Sequence[Mark]) -> Iterator[Segment | str]:
    """Cut the line at its breaks, and leave out the spaces beside them."""
    start, inside = 0, list[Mark]()
    for mark in [*marks, Mark(len(text), len(text), Role.BREAK)]:
        if mark.role is not Role.BREAK:
            inside.append(mark)
            continue
        stretch = text[start : mark.start]
        left, right = start + len(stretch) - len(stretch.lstrip()), start + len(stretch.rstrip())
        segment = make_segment(text[left:right], [mark.moved(-left) for mark in inside])
        if any(character.isalpha() for character in segment.text):
            yield from (text[start:left], segment, text[right : mark.end])
        else:
            yield text[start : mark.end]
        start, inside = mark.end, []
