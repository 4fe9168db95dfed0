"""Glossaries: terms and how they are to be translated."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from mtformer.support.errors import UserError
from mtformer.support.terminal import counted
from mtformer.text.lines import input_name, read_lines
from mtformer.text.pairs import SentencePair, fingerprint, is_column_name
from mtformer.text.tokenizer.vocabulary import normalize
from mtformer.text.words import WordRule, claim, stands_alone

log = logging.getLogger(__name__)

_COLUMN_NAMES = ("term", "translation", "source term", "target term")  # of a header, besides languages

_MAX_PROBLEMS = 10  # that one error lists


class Term(NamedTuple):
    """A term of the source language and its translation."""

    src: str
    tgt: str


class Match(NamedTuple):
    """A term in a text, and where it begins there."""

    start: int
    term: Term

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.term.src)


class Glossary:
    """Terms, found in texts as whole words.

    A term in lower case matches text in any case; a term with a capital letter matches only text in the same case.

    Attributes:
        terms: all of them.
    """

    def __init__(self, terms: Iterable[tuple[str, str]]) -> None:
        """Take pairs of a term and its translation, both normalized.

        Raises:
            UserError: a term or a translation is empty, or a term has two translations.
        """
        self.terms: list[Term] = []
        self._in_case: dict[str, Term] = {}  # terms with a capital letter
        self._in_any_case: dict[str, Term] = {}
        self._lengths: set[int] = set()
        for src, tgt in terms:
            self._add(Term(normalize(src), normalize(tgt)))

    @classmethod
    def read(cls, path: str | Path) -> "Glossary":
        """Read a file with a term, a tab and its translation on each line.

        Blank lines and those that start with ``#`` are skipped; ``.gz`` is read, and ``-`` is standard input. A header
        and quotes around cells, as spreadsheets write them, are part of the terms, with a warning.

        Raises:
            UserError: the file cannot be read; or lines that have no tab, several tabs, an empty side, or a
                translation other than that of an earlier line. The message names the file and the lines.
        """
        path = Path(path)
        name = input_name(path)
        glossary = cls(())
        lines: dict[str, int] = {}  # the line of each term
        problems: list[str] = []
        for number, line in enumerate(read_lines(path), 1):
            if not line.strip() or line.startswith("#"):
                continue
            try:
                glossary._add(term := _parse(line))
                lines.setdefault(term.src, number)
            except _RepeatedTermError as repeated:
                problems.append(f"{name}:{number}: {repeated} in line {lines[repeated.src]}; remove one of the two")
            except UserError as error:
                problems.append(f"{name}:{number}: {error}")
        if problems:
            n_more = len(problems) - _MAX_PROBLEMS
            more = [f"{name}: {counted(n_more, 'more line')} like these"] if n_more > 0 else []
            raise UserError("\n".join([*problems[:_MAX_PROBLEMS], *more]))
        _warn_of_header_and_quotes(name, glossary.terms, lines)
        return glossary

    @cached_property
    def digest(self) -> str:
        """A digest that changes when any term, or their order, does."""
        return fingerprint(SentencePair(*term) for term in self.terms).digest

    def __len__(self) -> int:
        """The number of terms."""
        return len(self.terms)

    def find(self, text: str, is_word: WordRule) -> list[Match]:
        """Return where terms stand in the normalized ``text`` as whole words, in order; longer ones come first.

        No two of them overlap. A term that stands there twice is returned twice.
        """
        folded = _fold(text)
        matches = [
            Match(start, term)
            for start in range(len(text))
            if not (start and is_word(text[start - 1]) and is_word(text[start]))  # it would begin within a word
            for length in self._lengths
            if (term := self._at(text, folded, start, start + length)) is not None
            and stands_alone(text, start, start + length, is_word)
        ]
        taken = [False] * len(text)
        longest_first = sorted(matches, key=lambda match: (-len(match.term.src), match.start))
        return sorted(match for match in longest_first if claim(taken, match.start, match.end))

    def _at(self, text: str, folded: str, start: int, end: int) -> Term | None:
        if end > len(text):
            return None
        return self._in_case.get(text[start:end]) or self._in_any_case.get(folded[start:end])

    def _add(self, term: Term) -> None:
        if not term.src or not term.tgt:
            raise UserError("the term is empty" if not term.src else f"the translation of {term.src!r} is empty")
        places = self._in_any_case if term.src == _fold(term.src) else self._in_case
        known = places.setdefault(term.src, term)
        if known.tgt != term.tgt:
            raise _RepeatedTermError(known)
        if known is term:
            self.terms.append(term)
            self._lengths.add(len(term.src))


class _RepeatedTermError(UserError):
    """A term has two translations."""

    def __init__(self, known: Term) -> None:
        super().__init__(f"{known.src!r} is already translated as {known.tgt!r}")
        self.src = known.src


def _parse(line: str) -> Term:
    sides: Sequence[str] = line.split("\t")
    if len(sides) != 2:
        wrong = "no tab" if len(sides) == 1 else f"{len(sides) - 1} tabs"
        raise UserError(f"this line has {wrong}, but a term, one tab and its translation are needed: {line[:80]!r}")
    return Term(*map(normalize, sides))


def _warn_of_header_and_quotes(name: str, terms: Sequence[Term], lines: Mapping[str, int]) -> None:
    """Warn of a header and of quotes, which are hardly terms; ``lines`` has the line of each in the file ``name``."""
    if terms and all(is_column_name(cell) or cell.lower() in _COLUMN_NAMES for cell in terms[0]):
        src, tgt = terms[0]
        log.warning(
            "%s:%d: %r is read as a term and %r as its translation; if this is a header, start the line with #",
            name,
            lines[src],
            src,
            tgt,
        )
    if quoted := [term.src for term in terms if all(len(cell) > 1 and cell[0] == cell[-1] == '"' for cell in term)]:
        log.warning(
            "%s:%d: the quotes are part of the term %s and of its translation; remove them unless they are meant "
            "(lines with such quotes: %d)",
            name,
            lines[quoted[0]],
            quoted[0],
            len(quoted),
        )


def _fold(text: str) -> str:
    """Return ``text`` in lower case, but of the same length: a few letters would become two."""
    return "".join(low if len(low := character.lower()) == 1 else character for character in text)
