"""The part of the pipeline between preparing and restoring: encode, cut, find terms, search, join."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import NamedTuple

from mtformer.config import SearchOptions
from mtformer.search.engine import Engine, OnDone, SearchRequest
from mtformer.search.hypothesis import Hypothesis
from mtformer.search.ranking import search
from mtformer.text.glossary import Term
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.words import cut
from mtformer.translate.terms import Terms
from mtformer.translate.translation import Translation, joined, ranked


class _Part(NamedTuple):
    """A part of a text that the model takes at once: its ids, EOS included, and the terms in it."""

    ids: list[int]
    terms: list[Term]


@dataclass(frozen=True)
class LeafTranslator:
    """Translates prepared texts, the leaves of their plans.

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
        self, texts: Sequence[str], options: SearchOptions, on_done: OnDone = lambda indices: None
    ) -> list[list[Translation]]:
        """Translate texts, each into its best translations.

        Args:
            texts: one line each.
            options: how to search.
            on_done: called with the indices of texts whose first parts have been translated.

        Raises:
            MtformerError: the model predicts NaN.
        """
        ids_of = self.tokenizer.encode_src(texts)
        parts_of = [self._parts(text, ids) for text, ids in zip(texts, ids_of, strict=True)]
        requests = [self._request(part, options) for parts in parts_of for part in parts]
        on_part = by_first_part(list(map(len, parts_of)), on_done)
        found = search(self.engine, requests, self.tokenizer.decode, on_done=on_part)
        if self.terms is not None and self.terms.mode == "hard":  # annotations show the places
            from mtformer.translate.placement import Placement

            placement = Placement(self.engine, self.tokenizer, self.terms, options)
            found = placement.improved(requests, [part.terms for parts in parts_of for part in parts], found)
        rest = iter(found)
        return [self._join(parts, list(islice(rest, len(parts)))) for parts in parts_of]

    def _parts(self, text: str, ids: list[int]) -> list[_Part]:
        """Cut a text, encoded as ``ids``, into parts with their terms."""
        if len(ids) == len(self.tokenizer.prefixes.src) + 1:
            return []
        if self.terms is None:
            return [_Part(part, []) for part in self._cut(ids, self.max_length)]
        n_added = self.terms.n_added(text)
        is_short = len(ids) + n_added <= self.max_length
        least = len(self.tokenizer.prefixes.src) + 2  # a token and EOS
        parts = self._cut(ids, self.max_length if is_short else max(self.max_length // 2, least))
        texts = [text] if len(parts) == 1 else map(self.tokenizer.decode_src, parts)
        return [self._with_terms(of_part, part) for of_part, part in zip(texts, parts, strict=True)]

    def _with_terms(self, text: str, ids: list[int]) -> _Part:
        """Find the terms in a part, and annotate them if they are soft."""
        assert self.terms is not None
        matches = self.terms.find(text)
        annotated = self.terms.annotated(text, matches, self.max_length)
        return _Part(annotated or ids, [match.term for match in matches])

    def _request(self, part: _Part, options: SearchOptions) -> SearchRequest:
        constraint = self.terms.constraint(part.terms) if self.terms is not None else None
        return SearchRequest(part.ids, options, options.limit(len(part.ids)), constraint=constraint)

    def _cut(self, ids: list[int], max_length: int) -> list[list[int]]:
        """Cut ids into parts of at most ``max_length`` with prefix and EOS each, at the best places there are."""
        prefix = self.tokenizer.prefixes.src
        body = ids[len(prefix) : -1]
        rest = iter(body)
        sizes = cut(self.tokenizer.src_tokens(body), max_length - len(prefix) - 1)
        return [[*prefix, *islice(rest, size), self.tokenizer.special_ids.eos] for size in sizes]

    def _join(self, parts: Sequence[_Part], found: Sequence[Sequence[Hypothesis]]) -> list[Translation]:
        """Return the translations of a text, best first: the best joins the best hypothesis of each part, and so on."""
        if not parts:
            return [Translation("", 0.0, 0.0)]
        notes = (f"translated in {len(parts)} parts",) if len(parts) > 1 else ()
        of_parts = [
            [self.to_translation(hypothesis, part.terms) for hypothesis in hypotheses]
            for part, hypotheses in zip(parts, found, strict=True)
        ]
        return [self.join(chosen, notes) for chosen in ranked(of_parts)]

    def join(self, parts: Sequence[Translation], notes: tuple[str, ...] = ()) -> Translation:
        """Join the translations of a text's parts, with ``notes`` before those of the parts."""
        whole = joined(parts, self.joiner)
        return replace(whole, notes=(*notes, *whole.notes))

    def to_translation(self, hypothesis: Hypothesis, terms: Sequence[Term] = ()) -> Translation:
        """Return the translation of a part with these terms."""
        text = self.tokenizer.decode(hypothesis.ids)
        return Translation(
            text=text,
            score=hypothesis.score(self.length_penalty),
            log_prob=hypothesis.log_prob,
            tokens=tuple(self.tokenizer.tgt_tokens([*hypothesis.ids, self.tokenizer.special_ids.eos])),
            token_log_probs=tuple(hypothesis.token_log_probs),
            terms=tuple(terms),
            notes=tuple(self.missing_terms(terms, text)),
        )

    def missing_terms(self, terms: Sequence[Term], text: str) -> list[str]:
        """Return a note for each term whose translation is not in ``text``, that of a part with these terms."""
        missing = self.terms.missing(terms, text) if self.terms is not None and terms else []
        return [f"the term {term.src!r} is not translated as {term.tgt!r}" for term in missing]


def by_first_part(n_parts: Sequence[int], on_done: OnDone) -> OnDone:
    """Turn progress on parts into progress on the texts that they belong to: a text is done when its first part is.

    Texts without parts are done at once.

    Args:
        n_parts: how many parts each text has.
        on_done: called with the indices of texts.

    Returns:
        What to call with the indices of parts, which are counted through all texts.
    """
    ends = accumulate(n_parts)
    text_of_first = {end - n: text for text, (n, end) in enumerate(zip(n_parts, ends, strict=True)) if n}
    on_done([text for text, n in enumerate(n_parts) if not n])
    return lambda parts: on_done([text_of_first[part] for part in parts if part in text_of_first])
