"""Texts that are translated instead of another one, and how they become its translation."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mtformer.translate.translation import Translation, by_rank


@dataclass(frozen=True)
class Replacement:
    """The texts that are translated instead of a text.

    Attributes:
        parts: the texts to translate; none of them if the text needs no model.
        restore: makes the text's translation from one translation of each part.
    """

    parts: Sequence[str]
    restore: Callable[[Sequence[Translation]], Translation]


Preparation = Callable[[str], Replacement | None]  # returns what replaces a text; None leaves it as it is


@dataclass(frozen=True)
class PreparedText:
    """A text and the texts that it has become: a tree, whose leaves the model translates.

    Attributes:
        text: what is translated.
        parts: the texts that are translated instead.
        restore: makes the translation of ``text`` from one of each part; None if the model translates ``text`` itself.
    """

    text: str
    parts: Sequence["PreparedText"] = ()
    restore: Callable[[Sequence[Translation]], Translation] | None = None

    def ends(self) -> Iterator["PreparedText"]:
        """Yield the texts that become no others, in order: those that the model translates, or that need no model."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.ends()

    def leaves(self) -> Iterator[str]:
        """Yield the texts that the model translates, in order."""
        return (end.text for end in self.ends() if end.restore is None)

    def restored(self, of_leaves: Iterator[list[Translation]]) -> list[Translation]:
        """Take the translations of each leaf, best first, and return those of the text, best first."""
        if self.restore is None:
            return next(of_leaves)
        of_parts = [part.restored(of_leaves) for part in self.parts]
        return [self.restore(chosen) for chosen in by_rank(of_parts) or [[]]]


def prepared(text: str, preparations: Sequence[Preparation]) -> PreparedText:
    """Apply ``preparations`` in order, each to the parts that those before it have made."""
    for place, prepare in enumerate(preparations, 1):
        replacement = prepare(text)
        if replacement is not None:
            return PreparedText(
                text, [prepared(part, preparations[place:]) for part in replacement.parts], replacement.restore
            )
    return PreparedText(text)
