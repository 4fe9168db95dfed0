"""Preparations: reversible changes of a text, such as splitting it into sentences, and the plan that they make."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from mtformer.translate.translation import Translation, ranked


@dataclass(frozen=True)
class Prepared:
    """What is translated instead of a text.

    Attributes:
        parts: the texts to translate; none of them if the text needs no model.
        restore: makes the text's translation from one translation of each part.
    """

    parts: Sequence[str]
    restore: Callable[[Sequence[Translation]], Translation]


class Preparation(Protocol):
    """A reversible change of texts."""

    def __call__(self, text: str) -> Prepared | None:
        """Prepare ``text``; None leaves it as it is."""
        ...


@dataclass(frozen=True)
class Plan:
    """How a text is translated: a tree whose leaves are what the model translates.

    Attributes:
        text: what is translated.
        parts: the plans of the texts that are translated instead.
        restore: makes the translation of ``text`` from one of each part; None if the model translates ``text`` itself.
    """

    text: str
    parts: Sequence["Plan"] = ()
    restore: Callable[[Sequence[Translation]], Translation] | None = None

    def leaves(self) -> Iterator[str]:
        """Yield the texts that the model translates, in order."""
        if self.restore is None:
            yield self.text
        for part in self.parts:
            yield from part.leaves()

    def restored(self, found: Iterator[list[Translation]]) -> list[Translation]:
        """Take the translations of each leaf, best first, and return those of the text, best first."""
        if self.restore is None:
            return next(found)
        of_parts = [part.restored(found) for part in self.parts]
        return [self.restore(chosen) for chosen in ranked(of_parts) or [[]]]


def make_plan(text: str, preparations: Sequence[Preparation]) -> Plan:
    """Apply ``preparations`` in order, each to the parts that those before it have made."""
    for place, prepare in enumerate(preparations):
        prepared = prepare(text)
        if prepared is not None:
            rest = preparations[place + 1 :]
            return Plan(text, [make_plan(part, rest) for part in prepared.parts], prepared.restore)
    return Plan(text)
