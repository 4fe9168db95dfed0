"""Put the marks of a segment into its translation."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mtformer.translate.markup.atoms import Atom
from mtformer.translate.markup.destinations import Destinations, Node
from mtformer.translate.markup.scanner import CLOSING_PUNCTUATION, unescape


@dataclass
class _Chunk:
    """A part of the output.

    Attributes:
        text: its text.
        space: what separates it from the previous part: a space, which may be a no-break one, or nothing.
        is_mark: whether it is a mark without words inside.
        is_glued: whether no space follows.
        is_severed: whether a space follows, if a word does.
    """

    text: str
    space: str
    is_mark: bool = False
    is_glued: bool = False
    is_severed: bool = False


NO_SPACE_AFTER = tuple("([{（「『“‘«")
_EMPHASIS = re.compile(r"[*_~]+")


class Projection:
    """Writes a translation with marks at their destinations."""

    def __init__(self, tgt: Sequence[Atom], tgt_text: str, destinations: Destinations, *, escaped: bool) -> None:
        """Take the atoms of a translation, its text, and where marks go; ``escaped`` writes HTML's entities."""
        self._tgt, self._destinations, self._escaped = tgt, destinations, escaped
        before = (tgt_text[atom.start - 1 : atom.start] for atom in tgt)
        self._spaces = [each if each.isspace() else "" for each in before]

    def render(self, nodes: Sequence[Node]) -> str:
        """Return the translation with the marks."""
        chunks = self._render(nodes, range(len(self._tgt)))
        return "".join((chunk.space if place else "") + chunk.text for place, chunk in enumerate(chunks))

    def _render(self, nodes: Sequence[Node], within: range) -> list[_Chunk]:
        """Render a stretch of the target with the marks in it."""
        chunks: list[_Chunk] = []
        position = within.start
        for stretch, _, node in self._destinations.of(nodes, within):
            self._add_atoms(chunks, range(position, stretch.start))
            position = stretch.stop
            inner = self._render(node.children, stretch)
            if node.closing is not None and inner:
                _add_pair(chunks, node.opening, inner, node.closing)
            else:
                _add_empty(chunks, node)
        self._add_atoms(chunks, range(position, within.stop))
        return chunks

    def _add_atoms(self, chunks: list[_Chunk], atoms: range) -> None:
        for place in atoms:
            text = self._tgt[place].text
            space = _space(chunks, text, self._spaces[place])
            chunks.append(_Chunk(html.escape(text, quote=False) if self._escaped else text, space))


def _space(chunks: Sequence[_Chunk], text: str, otherwise: str) -> str:
    """Return the separator before ``text`` of the translation: ``otherwise``, unless a mark is before it."""
    last = chunks[-1] if chunks else None
    if last and last.is_severed and text[:1].isalnum():
        return otherwise or " "
    if last and last.is_mark:
        is_glued = last.is_glued or text.startswith(CLOSING_PUNCTUATION) or unescape(last.text).isspace()
        return "" if is_glued else " "
    return otherwise


def _add_pair(chunks: list[_Chunk], opening: str, inner: Sequence[_Chunk], closing: str) -> None:
    """Add a pair of marks around chunks."""
    first, last = inner[0], inner[-1]
    first.space = _space(chunks, first.text, first.space)
    if first.is_mark and chunks and chunks[-1].text.endswith(NO_SPACE_AFTER):
        first.space = ""
    if chunks and chunks[-1].text[-1:].isalnum() and _is_severed(opening, first.text[:1]):
        first.space = first.space or " "
    last.is_severed = _is_severed(closing, last.text[-1:])
    first.text = opening + first.text
    last.text += closing
    chunks += inner


def _add_empty(chunks: list[_Chunk], node: Node) -> None:
    """Add a single mark, or a pair without anything inside."""
    if node.closing == node.opening:  # Markdown's emphasis on nothing would be read as something else
        return
    text = node.opening + (node.closing or "")
    if node.closing and node.end > node.start and chunks:  # its words are lost, and a space would be seen
        chunks[-1].text += text
        return
    spaced = node.spaced and not (chunks and chunks[-1].text.endswith(NO_SPACE_AFTER))
    is_glued = node.is_glued or node.closing == ""  # all that follows is inside
    chunks.append(_Chunk(text, " " * spaced, is_mark=True, is_glued=is_glued))


def _is_severed(mark: str, inside: str) -> bool:
    """Tell whether Markdown reads a mark of emphasis at a word only if a space is between."""
    return bool(_EMPHASIS.fullmatch(mark)) and ("_" in mark or not inside.isalnum())
