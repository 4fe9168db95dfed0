"""The words of a text and the punctuation beside them, between which marks go."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

Links = Sequence[tuple[int, int, float]]  # source words, target words, and how much these attend to those


@dataclass(frozen=True)
class Atom:
    """A word, or a sign of the punctuation beside a word.

    Attributes:
        text: the word or the sign.
        start: where it starts in its text, in characters.
        word: the index of the word of the text that it belongs to.
        is_word: whether it is a word rather than punctuation.
    """

    text: str
    start: int
    word: int
    is_word: bool

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)

    @property
    def is_currency(self) -> bool:
        """Whether it is the sign of a currency, which stands before a number or after it."""
        return not self.is_word and unicodedata.category(self.text) == "Sc"


_PARTS = re.compile(r"[^\W_]+(?:[\W_]+[^\W_]+)*|[\W_]")


def atoms_of(text: str, words: Sequence[tuple[int, int]]) -> list[Atom]:
    """Separate the ``words`` of ``text``, given by where they start and end, from the punctuation beside them."""
    return [
        Atom(part[0], start + part.start(), number, part[0][0].isalnum())
        for number, (start, end) in enumerate(words)
        for part in _PARTS.finditer(text[start:end])
    ]


def words_of(atoms: Sequence[Atom]) -> dict[int, int]:
    """Map each word of a text to the index of its atom that is not punctuation, if it has one."""
    return {atom.word: place for place, atom in enumerate(atoms) if atom.is_word}


def split_copies(
    src: Sequence[Atom], tgt: Sequence[Atom], links: Links, marks: Iterable[int]
) -> tuple[Sequence[Atom], Sequence[Atom], Links]:
    """Split source words that contain marks, and their copies in the target, at the same offsets.

    So the tag of ``H<sub>2</sub>O`` stays around the 2. A word that is translated instead of copied has no such offset.

    Args:
        src: the source's atoms.
        tgt: the target's.
        links: between their words.
        marks: where marks start and end in the source, in characters.

    Returns:
        The atoms of both, in which each part of a word counts as a word, and the links between them.
    """
    offsets = _offsets(src, sorted(set(marks)))
    copies = _copies(src, tgt, links, offsets) if offsets else {}
    if not copies:
        return src, tgt, links
    src_parts, src_numbers = _split(src, {s: offsets[s] for s in copies})
    tgt_parts, tgt_numbers = _split(tgt, {t: offsets[s] for s, t in copies.items()})
    of_parts: list[tuple[int, int, float]] = []
    for s, t, weight in links:
        src_of_word, tgt_of_word = src_numbers[s], tgt_numbers[t]
        if copies.get(s) == t:
            of_parts += [(i, j, weight) for i, j in zip(src_of_word, tgt_of_word, strict=True)]
        else:
            of_parts += [(i, j, weight / len(src_of_word)) for i in src_of_word for j in tgt_of_word]
    return src_parts, tgt_parts, of_parts


def _offsets(atoms: Sequence[Atom], marks: Sequence[int]) -> dict[int, list[int]]:
    """Return the offsets of ``marks`` inside words, in characters from the start of each word."""
    offsets = {}
    for word, place in words_of(atoms).items():
        start, end = atoms[place].start, atoms[place].end
        if inside := marks[bisect_right(marks, start) : bisect_left(marks, end)]:
            offsets[word] = [mark - start for mark in inside]
    return offsets


def _copies(src: Sequence[Atom], tgt: Sequence[Atom], links: Links, wanted: Iterable[int]) -> dict[int, int]:
    """Map each ``wanted`` source word to the target word that attends to it and is a copy of it, if any."""
    src_words, tgt_words = words_of(src), words_of(tgt)
    copies: dict[int, int] = {}
    remaining = set(wanted)
    for s, t, _ in sorted(links, key=lambda link: -link[2]):
        if s in remaining and t in tgt_words and src[src_words[s]].text == tgt[tgt_words[t]].text:
            copies[s] = t
            remaining.remove(s)
            del tgt_words[t]
    return copies


def _split(
    atoms: Sequence[Atom], offsets: Mapping[int, Sequence[int]]
) -> tuple[list[Atom], Mapping[int, Sequence[int]]]:
    """Split words at ``offsets`` from their starts, and return the new numbers of the words or their parts."""
    parts: list[Atom] = []
    numbers: defaultdict[int, list[int]] = defaultdict(list)
    for atom in atoms:
        cuts = offsets.get(atom.word, []) if atom.is_word else []
        for start, end in pairwise([0, *cuts, len(atom.text)]):
            if atom.is_word:
                numbers[atom.word].append(len(parts))
            parts.append(replace(atom, text=atom.text[start:end], start=atom.start + start, word=len(parts)))
    return parts, numbers
