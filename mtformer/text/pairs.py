"""Sentence pairs, and the names of columns that contain them."""

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from mtformer.text.languages import is_language

ROLES = (("source", "src"), ("target", "tgt", "trg"))
_FILLERS = ("text", "sentence", "segment")
_OTHER_NAMES = ("id", "no", "index", "line", "score", "domain", "corpus", "origin", "split", "url", "comment")


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
    """Tell whether a cell names a language, a side or something else that tables contain: a header has such cells."""
    core = core_name(cell)
    return is_language(core) or core in (*ROLES[0], *ROLES[1]) or is_other_name(cell)


def is_other_name(cell: str) -> bool:
    """Tell whether a cell names a column that tables have beside the two texts."""
    return core_name(cell) in _OTHER_NAMES


def core_name(name: str) -> str:
    """Return what matters in a name: ``en`` in ``text_en`` and ``src_en``, ``source`` in ``Source text``."""
    words = [word for word in re.split(r"[\s_()-]+", name.strip().lower()) if word and word not in _FILLERS]
    roles = [word for word in words if word in (*ROLES[0], *ROLES[1])]
    return "-".join(word for word in words if word not in roles) or (roles[0] if len(roles) == 1 else "")
