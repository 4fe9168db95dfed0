"""Sentence pairs, and the names of columns that contain them."""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from mtformer.text.languages import is_language

ROLES = (("source", "src"), ("target", "tgt", "trg"))


class SentencePair(NamedTuple):
    """A text and its translation."""

    src: str
    tgt: str


class Example(NamedTuple):
    """A pair with its place in its source.

    Attributes:
        src: the text.
        tgt: its translation.
        line: the line of the file where it begins, or the row of a data set; from 1.
    """

    src: str
    tgt: str
    line: int


class Fingerprint(NamedTuple):
    """Identifies a text.

    Attributes:
        n_pairs: the number of pairs.
        digest: changes when any pair, or their order, does.
    """

    n_pairs: int
    digest: str


def fingerprint(pairs: Iterable[SentencePair]) -> Fingerprint:
    """Count ``pairs`` and compute their digest, in one pass."""
    digest = hashlib.sha256()
    n_pairs = 0
    for pair in pairs:
        n_pairs += 1
        digest.update(f"{pair.src}\n{pair.tgt}\n".encode())
    return Fingerprint(n_pairs, digest.hexdigest()[:16])


def one_line(text: str) -> str:
    """Replace line ends, which a text file cannot have inside a line."""
    return text.replace("\r", " ").replace("\n", " ")


def is_column_name(cell: str) -> bool:
    """Tell whether a cell names a language or a side, as those of a header do."""
    return is_language(cell) or cell.strip().lower() in (*ROLES[0], *ROLES[1])
