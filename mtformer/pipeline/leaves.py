"""What the model translates: texts that are prepared, cut into parts that it can take at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import NamedTuple

from mtformer.pipeline.terms import Terms
from mtformer.pipeline.translation import Translation
from mtformer.search import Engine, Hypothesis, Request, SearchOptions
from mtformer.search.ranking import search
from mtformer.text.cutting import cut
from mtformer.text.glossary import Term
from mtformer.text.tokenizer import EOS_ID, Tokenizer

OnDone = Callable[[Sequence[int]], object]


class _Part(NamedTuple):
    """A part of a text that the model takes at once: its ids, EOS included, and the terms in it."""

    ids: list[int]
    terms: list[Term]


@dataclass(frozen=True)
class Leaves:
    """Translates texts that are prepared, the leaves of their plans.

    Attributes:
        engine: the model.
        tokenizer: the one that the model was trained with.
        terms: how terms are to be translated; None for no glossary.
        max_length: the most tokens, EOS included, that the model takes at once; longer texts are cut.
        length_penalty: what scores are computed with.
        joiner: what stands between the translations of a text's parts.
    """

    engine: Engine
    tokenizer: Tokenizer
    terms: Terms | None
    max_length: int
    length_penalty: float
    joiner: str

    def translate(
        self, texts: Sequence[str], options: SearchOptions, on_done: OnDone = lambda places: None
    ) -> list[list[Translation]]:
        """Translate texts, each into its best translations.

        Args:
            texts: one line each.
            options: how to search.
            on_done: called with the places of texts whose first parts have been translated.

        Raises:
            MtformerError: the model predicts NaN.
        """
        ids_of = self.tokenizer.encode_src(texts)
        parts_of = [self._parts(text, ids) for text, ids in zip(texts, ids_of, strict=True)]
        requests = [self._request(part, options) for parts in parts_of for part in parts]
        on_batch = on_wholes(list(map(len, parts_of)), on_done)
        found = search(self.engine, requests, options, self.tokenizer.decode, on_batch=on_batch)
        if self.terms is not None and self.terms.mode == "hard":  # annotations show the places
            from mtformer.pipeline.placement import Placement  # with NumPy

            placement = Placement(self.engine, self.tokenizer, self.terms, options)
            found = placement.improved(requests, [part.terms for parts in parts_of for part in parts], found)
        rest = iter(found)
        return [self._join(list(islice(rest, len(parts))), [part.terms for part in parts]) for parts in parts_of]

    def _parts(self, text: str, ids: list[int]) -> list[_Part]:
        """Cut a text, encoded as ``ids``, into parts with their terms."""
        if len(ids) == len(self.tokenizer.src_prefix) + 1:
            return []
        if self.terms is None:
            return [_Part(part, []) for part in self._split(ids, self.max_length)]
        n_added = self.terms.n_added(text)
        parts = self._split(ids, self.max_length if len(ids) + n_added <= self.max_length else self.max_length // 2)
        texts = [text] if len(parts) == 1 else map(self.tokenizer.decode_src, parts)
        return [self._with_terms(of_part, part) for of_part, part in zip(texts, parts, strict=True)]

    def _with_terms(self, text: str, ids: list[int]) -> _Part:
        """Find the terms in a part, and annotate them if they are soft."""
        assert self.terms is not None
        matches = self.terms.find(text)
        annotated = self.terms.annotated(text, matches, self.max_length)
        return _Part(annotated or ids, [match.term for match in matches])

    def _request(self, part: _Part, options: SearchOptions) -> Request:
        constraint = self.terms.constraint(part.terms) if self.terms is not None else None
        return Request(part.ids, options.limit(len(part.ids)), constraint=constraint)

    def _split(self, ids: list[int], max_length: int) -> list[list[int]]:
        """Cut ids into parts of at most ``max_length`` with prefix and EOS each, at the best places there are."""
        prefix = self.tokenizer.src_prefix
        body = ids[len(prefix) : -1]
        rest = iter(body)
        sizes = cut(self.tokenizer.src_tokens(body), max_length - len(prefix) - 1)
        return [[*prefix, *islice(rest, size), EOS_ID] for size in sizes]

    def _join(self, parts: list[list[Hypothesis]], terms: Sequence[Sequence[Term]]) -> list[Translation]:
        """Join the r-th best hypotheses of a text's parts, with these terms, into its r-th best translation."""
        if not parts:
            return [Translation("", 0.0, 0.0)]
        notes = (f"translated in {len(parts)} parts",) if len(parts) > 1 else ()
        return [self.joined(chosen, terms, notes) for chosen in zip(*parts, strict=False)]

    def joined(
        self, parts: Sequence[Hypothesis], terms: Sequence[Sequence[Term]], notes: tuple[str, ...]
    ) -> Translation:
        """Join hypotheses of a text's parts, with the terms of each part, into a translation with ``notes``."""
        texts = [self.tokenizer.decode(part.ids) for part in parts]
        missing = [
            note for of_part, text in zip(terms, texts, strict=False) for note in self.missing_terms(of_part, text)
        ]
        ids = [i for part in parts for i in (*part.ids, EOS_ID)]
        return Translation(
            text=self.joiner.join(text for text in texts if text),
            score=sum(part.score(self.length_penalty) for part in parts),
            log_prob=sum(part.log_prob for part in parts),
            tokens=tuple(self.tokenizer.tgt_tokens(ids)),
            token_log_probs=tuple(log_prob for part in parts for log_prob in part.token_log_probs),
            terms=tuple(term for of_part in terms for term in of_part),
            notes=(*notes, *missing),
        )

    def missing_terms(self, terms: Sequence[Term], text: str) -> list[str]:
        """Return a note for each term whose translation is not in ``text``, that of a part with these terms."""
        missing = self.terms.missing(terms, text) if self.terms is not None and terms else []
        return [f"the term {term.src!r} is not translated as {term.tgt!r}" for term in missing]


def on_wholes(sizes: Sequence[int], on_done: OnDone) -> OnDone:
    """Return what to call with the places of parts, of which each whole has a number.

    It calls ``on_done`` with the wholes whose first parts these are. Wholes without parts are done at once.
    """
    whole_of = {
        end - size: whole for whole, (size, end) in enumerate(zip(sizes, accumulate(sizes), strict=True)) if size
    }
    on_done([whole for whole, size in enumerate(sizes) if not size])
    return lambda places: on_done([whole_of[place] for place in places if place in whole_of])
