"""A translation as users see it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mtformer.text.glossary import Term

if TYPE_CHECKING:
    from mtformer.translate.alignment import Alignment

Part = TypeVar("Part")

FLAG = "check: "  # starts the notes of translations that may be wrong; there may be many, so that jobs sum them up


class Recalled(NamedTuple):
    """A text that was translated before, and its translation in a translation memory."""

    src: str
    tgt: str


class FuzzyMatch(NamedTuple):
    """A text of a translation memory that is similar to one that is translated, and its translation.

    Attributes:
        src: the text.
        tgt: its translation.
        similarity: from 0 to 1, the share of tokens that the texts have in common, in order.
    """

    src: str
    tgt: str
    similarity: float


@dataclass(frozen=True)
class Translation:
    """One of the translations of a text.

    Attributes:
        text: detokenized, on one line.
        score: the length-penalized log probability that translations are ranked by.
        log_prob: the log probability, the sum of ``token_log_probs``; 0 for a text that the model did not translate.
        tokens: the target tokens, ended by ``</s>``; a text translated in parts has one after each part. What the
            model wrote for a number or a name, but was removed, is empty; ⟨?⟩ in JSON. Numbers that stood in for others
            are still there.
        token_log_probs: the log probability of each of ``tokens``; empty if they were not asked for.
        terms: the terms of the glossary in the text, in order.
        notes: what a reader should know about how the translation was made, as in "translated in 3 parts".
        memory: the whole text or its sentences whose translations are those of a translation memory, in order. They are
            taken as they are, unchecked, with a log probability of 0 and no tokens.
        fuzzy: the similar texts of a translation memory that the search has followed, for each part of the text the
            most similar first.
        alignment: which words come from which of the source; None unless it was asked for.
    """

    text: str
    score: float = 0.0
    log_prob: float = 0.0
    tokens: tuple[str, ...] = ()
    token_log_probs: tuple[float, ...] = ()
    terms: tuple[Term, ...] = ()
    notes: tuple[str, ...] = ()
    memory: tuple[Recalled, ...] = ()
    fuzzy: tuple[FuzzyMatch, ...] = ()
    alignment: "Alignment | None" = None

    @property
    def confidence(self) -> float:
        """The mean probability of ``tokens``, between 0 and 1; 1 for a text that the model did not translate.

        Without ``token_log_probs`` it is the geometric mean, by the log probability of the whole.
        """
        if self.tokens and not self.token_log_probs:
            return math.exp(self.log_prob / len(self.tokens))
        probabilities = [math.exp(log_prob) for log_prob in self.token_log_probs]
        return sum(probabilities) / len(probabilities) if probabilities else 1.0

    @property
    def flags(self) -> list[str]:
        """The problems that the translation may have, as in "numbers lost: 48"."""
        return [note.removeprefix(FLAG) for note in self.notes if note.startswith(FLAG)]

    def noted(self, *notes: str) -> "Translation":
        """Return the translation with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    def to_dict(self) -> dict[str, object]:
        """Return all this for JSON, without a memory, fuzzy matches or an alignment if there are none."""
        aligned = {} if self.alignment is None else {"alignment": self.alignment.to_dict()}
        reused = {"memory": [recalled._asdict() for recalled in self.memory]} if self.memory else {}
        followed = [{**match._asdict(), "similarity": round(match.similarity, 4)} for match in self.fuzzy]
        return {
            "text": self.text,
            "score": round(self.score, 4),
            "log_prob": round(self.log_prob, 4),
            "confidence": round(self.confidence, 4),
            "tokens": [token or "⟨?⟩" for token in self.tokens],
            "token_log_probs": [round(log_prob, 4) for log_prob in self.token_log_probs],
            "terms": [term._asdict() for term in self.terms],
            "notes": self.notes,
            **reused,
            **({"fuzzy": followed} if followed else {}),
            **aligned,
        }


def by_rank(parts: Sequence[Sequence[Part]]) -> list[list[Part]]:
    """Return the parts of the best translation of a text, of the second best, and so on.

    The r-th best translation of a text is made of the r-th best of each part. A part that has fewer repeats its last:
    one that needs no model has only one. There are as many as the part with the most has.
    """
    n_best = max(map(len, parts), default=0)
    return [[part[min(rank, len(part) - 1)] for part in parts] for rank in range(n_best)]


def joined(parts: Sequence[Translation], joiner: str) -> Translation:
    """Join the translations of a text's parts, those without text left out, with ``joiner`` between them."""
    return Translation(
        text=joiner.join(part.text for part in parts if part.text),
        score=sum(part.score for part in parts),
        log_prob=sum(part.log_prob for part in parts),
        tokens=tuple(token for part in parts for token in part.tokens),
        token_log_probs=tuple(log_prob for part in parts for log_prob in part.token_log_probs),
        terms=tuple(term for part in parts for term in part.terms),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        memory=tuple(recalled for part in parts for recalled in part.memory),
        fuzzy=tuple(match for part in parts for match in part.fuzzy),
    )


def in_parts(parts: Sequence[Translation], joiner: str) -> Translation:
    """Join the translations of a text's parts, and note how many these are."""
    whole = joined(parts, joiner)
    notes = (f"translated in {len(parts)} parts",) if len(parts) > 1 else ()
    return replace(whole, notes=tuple(dict.fromkeys((*notes, *whole.notes))))


def with_ends(lines: Sequence[Translation], ends: Sequence[str]) -> Translation:
    """Join the translations of lines with the ends that their sources have."""
    text = "".join(line.text + end for line, end in zip(lines, [*ends, ""], strict=True))
    return replace(joined(lines, ""), text=text)


def distinct(translations: Sequence[Translation]) -> list[Translation]:
    """Drop translations with the text of a better one, from which they differ in their tokens."""
    first: dict[str, Translation] = {}
    for translation in translations:
        first.setdefault(translation.text, translation)
    return list(first.values())
