"""The plan of a text that the model reads as it is: searches and checks."""

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING

from mtformer.config import SearchOptions
from mtformer.search.engine import Engine, SearchRequest
from mtformer.search.hypothesis import Hypothesis, rank
from mtformer.support.errors import UserError
from mtformer.text.glossary import Term
from mtformer.text.languages import UNDETERMINED, is_written_with_spaces, separator_of
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.translate.guard import SOURCE_REPEATS, Guard, stricter, without_made_up
from mtformer.translate.parts import Part, parts_of
from mtformer.translate.plan import Plan, ask, together
from mtformer.translate.terms import Terms
from mtformer.translate.translation import FLAG, Translation, by_rank, in_parts

if TYPE_CHECKING:
    from mtformer.translate.fuzzy import FuzzyMatches

_MISPLACED = f"{FLAG}terms may be in wrong places"


@dataclass(frozen=True, eq=False, repr=False)
class SearchPlanner:
    """Makes the plans of texts that the model reads as they are; see :mod:`mtformer.translate.plan`.

    Attributes:
        engine: the model. Plans ask it only what it can do; whoever drives them submits their requests.
        tokenizer: the one that the model was trained with.
        options: how to search.
        tgt_lang: the target language, which decides how numbers are written, and whether a space joins the parts of a
            sentence that is too long.
        max_length: the most tokens, EOS included, that the model takes at once; longer sentences are split.
        src_lang: the source language.
        terms: how terms are to be translated; None for no glossary.
        fuzzy: finds the pairs of a memory that searches follow; None for none. The engine has to be torch's.
        token_log_probs: whether translations need the log probabilities of their tokens; see :class:`.SearchRequest`.
        guard: finds problems of translations; None if they are not checked.
    """

    engine: Engine
    tokenizer: Tokenizer
    options: SearchOptions
    _: KW_ONLY
    tgt_lang: str
    max_length: int
    src_lang: str = UNDETERMINED
    terms: Terms | None = None
    fuzzy: "FuzzyMatches | None" = None
    token_log_probs: bool = True
    guard: Guard | None = None

    def __post_init__(self) -> None:
        """Refuse a model that takes no text, and search options that cannot be combined with the terms."""
        n_added = len(self.tokenizer.prefixes.src) + 1
        if self.max_length <= n_added:
            raise UserError(
                f"data.max_length = {self.max_length} of this model leaves no room for text: its tags and the end of a "
                f"text take {n_added}"
            )
        if self.terms is not None and self.terms.is_hard and self.options.sample:
            raise UserError("terms cannot be combined with sample: a beam search places them")

    def _plan_checked(self, text: str) -> Plan[list[Translation]]:
        first = yield from self._plan_search(text, self.options)
        return first if self.guard is None else (yield from self._plan_guarded(self.guard, text, first))

    def _plan_guarded(self, guard: Guard, text: str, first: list[Translation]) -> Plan[list[Translation]]:
        """Search again, more strictly, if the best translation has problems, and keep the one with fewer.

        Of all that the second search finds, what has the fewest problems counts, but not of samples. Then each
        translation is repaired where that is possible without the model, and gets notes on the problems left.
        """

        def n_problems(each: Translation) -> int:
            return len(guard.problems(text, each.text, each.terms))

        translations = first
        problems = guard.problems(text, first[0].text, first[0].terms)
        if set(problems) - SOURCE_REPEATS:
            second = yield from self._plan_search(text, stricter(self.options, text, problems))
            if not self.options.sample:
                second.sort(key=n_problems)
            if n_problems(second[0]) < len(problems):
                translations = second[: self.options.n_best]
        return self._checked(guard, text, translations)

    def _checked(self, guard: Guard, text: str, translations: Iterable[Translation]) -> list[Translation]:
        return [guard.checked(text, translation, self._missing_terms) for translation in translations]

    def _plan_search(self, text: str, options: SearchOptions) -> Plan[list[Translation]]:
        """Search for the translations of a sentence, in parts if it is too long."""
        parts = parts_of(text, self.tokenizer, self.terms, self.max_length)
        if not parts:
            return [Translation("")]
        matches = [[] if self.fuzzy is None else self.fuzzy.find(part.ids) for part in parts]
        requests = [
            replace(self._request(part, options), examples=[example for _, example in of_part])
            for part, of_part in zip(parts, matches, strict=True)
        ]
        candidates = yield from ask(requests)
        of_parts: Sequence[tuple[Sequence[Hypothesis], bool]] = [(of_part, False) for of_part in candidates]
        if self.terms is not None and self.terms.mode == "hard":  # annotations show the places
            from mtformer.translate.placement import Placement  # which imports numpy

            placement = Placement(self.tokenizer, self.terms)
            of_parts = yield from together(
                placement.plan(request, part.terms, of_part)
                for request, part, of_part in zip(requests, parts, candidates, strict=True)
            )
        translations = [
            [
                replace(each.noted(_MISPLACED) if are_doubtful else each, fuzzy=tuple(match for match, _ in of_part))
                for hypothesis in rank(options, hypotheses, self.tokenizer.decode)
                for each in [self._translation(hypothesis, part.terms)]
            ]
            for part, of_part, (hypotheses, are_doubtful) in zip(parts, matches, of_parts, strict=True)
        ]
        joiner = separator_of(self.tgt_lang)
        return self._without_made_up(text, (in_parts(chosen, joiner) for chosen in by_rank(translations)))

    def plan_with_start(self, text: str, start: str, n_next: int) -> Plan[list[Translation]]:
        """Translate a sentence so that its translation begins in a given way; see :meth:`.Planner.plan_continued`."""
        parts = parts_of(text, self.tokenizer, None, self.max_length)
        if len(parts) != 1:
            return []
        prefix = self.tokenizer.encode_tgt([start])[0][:-1] if start else []
        request = replace(self._request(parts[0], self.options), prefix=prefix)
        if len(prefix) > request.limit:  # each of its tokens takes a step
            raise UserError(
                f"the beginning has {len(prefix)} tokens, more than the {request.limit} that the translation may have"
            )
        requests = [request]
        if n_next:
            next_ids = yield from self._plan_next_words(request, n_next)
            greedy = self.options.updated(beam_size=1)
            requests = [replace(request, options=greedy, prefix=(*prefix, id)) for id in next_ids]
        results = yield from ask(requests)
        best = [rank(self.options, candidates, self.tokenizer.decode)[0] for candidates in results]
        return self._without_made_up(text, map(self._translation, best))

    def _plan_next_words(self, request: SearchRequest, n: int) -> Plan[list[int]]:
        """Return the likeliest tokens after a prefix that begin a word: those of the translations that end there."""
        options = self.options.updated(beam_size=n, n_best=n)
        place = len(request.prefix)
        [candidates] = yield from ask([replace(request, options=options, limit=place + 1)])
        ids = [hypothesis.ids[place] for hypothesis in candidates if len(hypothesis.ids) > place]
        is_any = not place or not is_written_with_spaces(self.tgt_lang)
        tokens = self.tokenizer.tgt_tokens(ids)
        return [id for id, token in zip(ids, tokens, strict=True) if is_any or token.startswith("▁")]

    def _request(self, part: Part, options: SearchOptions) -> SearchRequest:
        return SearchRequest(
            part.ids,
            options,
            options.limit(len(part.ids)),
            constraint=None if self.terms is None else self.terms.constraint(part.terms),
            forced=self.tokenizer.prefixes.tgt,
            token_log_probs=self.token_log_probs,
        )

    def _translation(self, hypothesis: Hypothesis, of_part: Sequence[Term] = ()) -> Translation:
        """Return a hypothesis as the translation of a part with these terms."""
        text = self.tokenizer.decode(hypothesis.ids)
        return Translation(
            text=text,
            score=hypothesis.score(self.options.penalty),
            log_prob=hypothesis.log_prob,
            tokens=tuple(self.tokenizer.tgt_tokens([*hypothesis.ids, self.tokenizer.special_ids.eos])),
            token_log_probs=tuple(hypothesis.token_log_probs),
            terms=tuple(of_part),
            notes=tuple(self._missing_terms(of_part, text)),
        )

    def _without_made_up(self, text: str, translations: Iterable[Translation]) -> list[Translation]:
        return [without_made_up(text, each) if self.tokenizer.has_slots else each for each in translations]

    def _missing_terms(self, terms: Sequence[Term], text: str) -> list[str]:
        return self.terms.missing_notes(terms, text) if self.terms is not None and terms else []
