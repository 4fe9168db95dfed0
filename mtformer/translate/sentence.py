"""The plan of a sentence that needs no more preparation: slots, searches, checks."""

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from mtformer.config import SearchOptions
from mtformer.search.engine import Engine, SearchRequest
from mtformer.search.hypothesis import Hypothesis, rank
from mtformer.support.errors import UserError
from mtformer.text.entities import with_numbers_for
from mtformer.text.glossary import Term
from mtformer.text.languages import UNDETERMINED, is_written_with_spaces, separator_of
from mtformer.text.lost_numbers import lost_numbers, lost_words
from mtformer.text.slots import Slotted, known_slots, with_slots
from mtformer.text.spelled_amounts import lost_units
from mtformer.text.tokenizer.tokenizer import PrefixIds, Tokenizer
from mtformer.text.tokenizer.vocabulary import normalize, on_one_line
from mtformer.translate import stand_ins
from mtformer.translate.characters import KnownCharacters, known_characters
from mtformer.translate.guard import (
    SLOTS_ADDED,
    SOURCE_REPEATS,
    Guard,
    filled,
    stricter,
    with_lost_names,
    without_made_up,
)
from mtformer.translate.insertion import plan_with_tokens
from mtformer.translate.pairs import Part, parts_of
from mtformer.translate.plan import Plan, ask, together
from mtformer.translate.replacement import PreparedText, prepared
from mtformer.translate.terms import Terms
from mtformer.translate.translation import FLAG, Translation, by_rank, joined

if TYPE_CHECKING:
    from mtformer.translate.fuzzy import FuzzyMatches

_ENDS = ".,;。，；、"  # of a part of a sentence
_SLOTS_BEAM = 8  # of a search for translations that have each slot


@dataclass(frozen=True, eq=False, repr=False)
class SentencePlanner:
    """Makes the plans of sentences that need no more preparation; see :mod:`mtformer.translate.plan`.

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
        slots: whether numbers, codes and names are taken out and put back, as the model has learned. If not, and with a
            guard, other numbers stand in for those that it loses.
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
    slots: bool = False

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

    def after(self, before: str, text: str) -> Self:
        """Return a planner for a sentence that follows another one, which the model reads first if it has learned to.

        It reads the sentence alone if the two do not fit, if it has terms, or if translations follow a memory.
        """
        context = self.tokenizer.context(before)
        if not context or self.fuzzy is not None or (self.terms is not None and self.terms.find(normalize(text))):
            return self
        src, tgt = self.tokenizer.prefixes
        if len(context) + len(src) + self.tokenizer.n_src_tokens(text) + 1 > self.max_length:
            return self
        return replace(self, tokenizer=self.tokenizer.with_prefixes(PrefixIds((*context, *src), tgt)))

    def plan_sentence(self, text: str) -> Plan[list[Translation]]:
        """Translate a sentence, with slots for its numbers, or without if one gets lost.

        Units and larger numbers that are words are left to the model. If it loses any, they get slots.
        """
        translations = yield from self._plan_slotted(text, self.with_slots(text))
        if self.slots and lost_words(text, translations[0].text, self.src_lang, self.tgt_lang):
            translations = yield from self._plan_slotted(text, self.with_slots(text, words=True))
        if not self.slots and self.guard is not None and not self.options.sample:
            translations = yield from self._plan_stand_ins(self.guard, text, translations)
        return translations

    def _plan_stand_ins(self, guard: Guard, text: str, first: list[Translation]) -> Plan[list[Translation]]:
        """Translate a sentence again with stand-ins for its numbers if any is lost; if a unit is, with its number."""
        languages, translations = (self.src_lang, self.tgt_lang), first
        slotted = self._slotted(text, bare=True)
        if slotted is not None and stand_ins.is_any_lost(slotted, text, first[0].text, languages):
            translations = (yield from self._plan_with_stand_ins(guard, text, slotted)) or first
        if lost_units(text, translations[0].text, *languages):
            slotted = self._slotted(text, words=True)
            translations = (slotted and (yield from self._plan_with_stand_ins(guard, text, slotted))) or translations
        return translations

    def _plan_with_stand_ins(self, guard: Guard, text: str, slotted: Slotted) -> Plan[list[Translation]]:
        """Translate a text with stand-ins for its slots; none if no translation has them all."""
        wider = self.options.updated(n_best=self.options.beam_size)
        for numbers in stand_ins.stand_ins(slotted):
            found = yield from self._plan_search(stand_ins.with_stand_ins(slotted, numbers), wider)
            slots = [replace(each, text=stand_ins.without_stand_ins(each.text, numbers)) for each in found]
            fitting = [each for each in slots if stand_ins.fits(slotted, each)]
            if right := [each for each in fitting if not guard.problems(slotted.text, each.text, each.terms)]:
                note = FLAG + SLOTS_ADDED + ", ".join(slotted.fillings.values())
                chosen = (filled(slotted, each).noted(note) for each in right[: self.options.n_best])
                return self._checked(guard, text, chosen)
        return []

    def _plan_slotted(self, text: str, slotted: Slotted | None) -> Plan[list[Translation]]:
        if slotted is None:
            return (yield from self._plan_known(text))
        if not any(map(str.isalpha, slotted.text)):  # there is nothing to translate beside the codes
            return [Translation(on_one_line(with_numbers_for(text, self.src_lang, self.tgt_lang)))]
        chosen = yield from self._plan_kept(text, slotted)
        if not chosen and len(parts := self._parts_of(text, slotted)) > 1:
            return (yield from self._plan_parts(parts))
        chosen = chosen or (yield from self._plan_known(text))
        return [with_lost_names(slotted, each) for each in chosen]

    def _plan_kept(self, text: str, slotted: Slotted) -> Plan[list[Translation]]:
        """Return translations that have each slot; none if there are too many, or if the model loses any."""
        tree = self._without_unknown(slotted.text)
        slotted = replace(slotted, text=next(tree.leaves()))
        translations = yield from self._plan_checked(slotted.text)
        best = translations[0].text
        if slotted.is_full and len(self._parts_of(text, slotted)) > 1 and self._loses(text, slotted, best):
            return []
        if not slotted.fits(best):
            translations = [] if self.options.sample else (yield from self._plan_all_slots(slotted, best))
        fitting = [each for each in translations if slotted.fits(each.text)]
        fitting = fitting or [each for each in translations if slotted.keeps(each.text)]
        return [filled(slotted, each) for each in tree.restored(iter([fitting]))] if fitting else []

    def _loses(self, text: str, slotted: Slotted, translation: str) -> bool:
        """Tell whether a translation lacks a number, a code or a name, with a slot or without."""
        whole = slotted.filled([translation])[0]
        lost = not slotted.fits(translation) or slotted.lost_names(whole)
        return bool(lost or lost_numbers(text, whole, (self.src_lang, self.tgt_lang)))

    def _parts_of(self, text: str, slotted: Slotted) -> list[str]:
        """Return the parts of a text between commas; the whole text if one is in a term."""
        parts = slotted.parts
        if self.terms is not None and sum(len(self.terms.find(part)) for part in parts) != len(self.terms.find(text)):
            return [text]
        return parts

    def _plan_parts(self, parts: Sequence[str]) -> Plan[list[Translation]]:
        """Translate the parts between commas of a sentence that has more numbers than the model can keep."""
        joiner = ", " if is_written_with_spaces(self.tgt_lang) else "，"
        chosen = by_rank((yield from together(map(self._plan_part, parts))))
        return [_in_parts([*map(_without_end, before), last], joiner) for *before, last in chosen]

    def _plan_part(self, part: str) -> Plan[list[Translation]]:
        if not any(map(str.isalnum, part)):  # of "..." the model would make words
            return [Translation(part)]
        return (yield from self.plan_sentence(part))

    def _plan_known(self, text: str) -> Plan[list[Translation]]:
        tree = self._without_unknown(text)
        translations = yield from self._plan_checked(next(tree.leaves()))
        return tree.restored(iter([translations]))

    def _without_unknown(self, text: str) -> PreparedText:
        """Replace the characters that the model does not know, and that no slot has been found for."""
        return prepared(text, [self._characters] if self.slots else [])

    def _plan_all_slots(self, slotted: Slotted, first: str) -> Plan[list[Translation]]:
        """Search for translations that have each slot: a wider beam, and if it finds none, one with slots inserted.

        The note names what the ``first`` translation lacks, or all if it has them beside other signs.
        """
        width = max(_SLOTS_BEAM, self.options.beam_size)
        wider = self.options.updated(beam_size=width, n_best=width, mbr=width if self.options.mbr else None)
        wide = yield from self._plan_search(slotted.text, wider)
        fitting = [each for each in wide if slotted.fits(each.text)][: self.options.n_best]
        if not fitting:
            fitting = yield from self._plan_inserted(slotted)
        added = slotted.lost(first) or slotted.fillings.values()
        noted = [each.noted(FLAG + SLOTS_ADDED + ", ".join(added)) for each in fitting]
        return noted if self.guard is None else self._checked(self.guard, slotted.text, noted)

    def _plan_inserted(self, slotted: Slotted) -> Plan[list[Translation]]:
        """Translate a text, if it need not be cut, so that its slots are in the translation."""
        parts = parts_of(slotted.text, self.tokenizer, self.terms, self.max_length)
        if len(parts) != 1:
            return []
        request = self._request(parts[0], self.options)
        needed, [space] = map(self.tokenizer.tgt.ids, (list(slotted.fillings), ["▁"]))
        has_spaces = is_written_with_spaces(self.tgt_lang)

        def fits(ids: Sequence[int]) -> bool:
            return slotted.fits(known_slots(self.tokenizer.decode(ids), slotted.text))

        hypothesis = yield from plan_with_tokens(request, needed, space, has_spaces=has_spaces, fits=fits)
        return self._without_made_up(slotted.text, [self._translation(hypothesis, parts[0].terms)])

    def with_slots(self, text: str, *, words: bool = False) -> Slotted | None:
        """Return a text with slots, with ``words`` also for units and numbers in words; None if there are none."""
        return self._slotted(text, n_tokens=self.tokenizer.n_src_tokens, words=words) if self.slots else None

    def _slotted(self, text: str, **options: Any) -> Slotted | None:
        kept = []
        if self.terms is not None:
            text = normalize(text)  # as in which terms have their places
            kept = [(match.start, match.end) for match in self.terms.find(text)]
        return with_slots(text, self.src_lang, self.tgt_lang, kept=kept, **options)

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
        of_parts = [rank(options, of_part, self.tokenizer.decode) for of_part in candidates]
        if self.terms is not None and self.terms.mode == "hard":  # annotations show the places
            from mtformer.translate.placement import Placement  # which imports numpy

            placement = Placement(self.tokenizer, self.terms)
            of_parts = yield from together(
                placement.plan(request, part.terms, hypotheses)
                for request, part, hypotheses in zip(requests, parts, of_parts, strict=True)
            )
        translations = [
            [
                replace(self._translation(hypothesis, part.terms), fuzzy=tuple(match for match, _ in of_part))
                for hypothesis in hypotheses
            ]
            for part, of_part, hypotheses in zip(parts, matches, of_parts, strict=True)
        ]
        joiner = separator_of(self.tgt_lang)
        return self._without_made_up(text, (_in_parts(chosen, joiner) for chosen in by_rank(translations)))

    def _request(self, part: Part, options: SearchOptions) -> SearchRequest:
        return SearchRequest(
            part.ids,
            options,
            options.limit(len(part.ids)),
            constraint=None if self.terms is None else self.terms.constraint(part.terms),
            forced=self.tokenizer.prefixes.tgt,
            token_log_probs=self.token_log_probs,
        )

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

    def _without_made_up(self, text: str, translations: Iterable[Translation]) -> list[Translation]:
        return [without_made_up(text, each) if self.tokenizer.has_slots else each for each in translations]

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

    def _missing_terms(self, terms: Sequence[Term], text: str) -> list[str]:
        return self.terms.missing_notes(terms, text) if self.terms is not None and terms else []

    @cached_property
    def _characters(self) -> KnownCharacters:
        return known_characters(self.tokenizer)


def _in_parts(parts: Sequence[Translation], joiner: str) -> Translation:
    """Join the translations of a text's parts, and note how many these are."""
    whole = joined(parts, joiner)
    notes = (f"translated in {len(parts)} parts",) if len(parts) > 1 else ()
    return replace(whole, notes=tuple(dict.fromkeys((*notes, *whole.notes))))


def _without_end(part: Translation) -> Translation:
    return replace(part, text=part.text.rstrip(_ENDS) or part.text)
