"""The plan of a sentence that needs no more preparation: with slots or stand-ins for its numbers, or as it is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from mtformer.text.entities import with_numbers_for
from mtformer.text.languages import is_written_with_spaces
from mtformer.text.lost_numbers import lost_numbers, lost_words
from mtformer.text.slots import Slotted, known_slots, with_slots
from mtformer.text.spelled_amounts import lost_units
from mtformer.text.tokenizer.tokenizer import PrefixIds
from mtformer.text.tokenizer.vocabulary import normalize, on_one_line
from mtformer.translate import stand_ins
from mtformer.translate.characters import KnownCharacters, known_characters
from mtformer.translate.guard import SLOTS_ADDED, Guard, filled, with_lost_names
from mtformer.translate.insertion import plan_with_tokens
from mtformer.translate.parts import parts_of
from mtformer.translate.plan import Plan, together
from mtformer.translate.replacement import PreparedText, prepared
from mtformer.translate.search_plan import SearchPlanner
from mtformer.translate.translation import FLAG, Translation, by_rank, in_parts

_ENDS = ".,;。，；、"  # of a part of a sentence
_SLOTS_BEAM = 8  # of a search for translations that have each slot


@dataclass(frozen=True, eq=False, repr=False)
class SentencePlanner(SearchPlanner):
    """Makes the plans of sentences that need no more preparation: with slots or stand-ins, or as they are.

    The first translation that keeps the numbers of its sentence is taken. The searches are, in order::

        the model knows slots                           the model knows none
        with slots                                      the sentence as it is
          from a wider beam                             with stand-ins for its numbers, if it loses any
          with slots that the search inserts            with stand-ins for numbers with units, if it loses a unit
        in parts, if the sentence has too many slots
        the sentence as it is
        with slots for numbers in words, if it loses any

    Attributes:
        slots: whether numbers, codes and names are taken out and put back, as the model has learned. If not, and with a
            guard, other numbers stand in for those that it loses.
    """

    slots: bool = False

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
        return [in_parts([*map(_without_end, before), last], joiner) for *before, last in chosen]

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

    @cached_property
    def _characters(self) -> KnownCharacters:
        return known_characters(self.tokenizer)


def _without_end(part: Translation) -> Translation:
    return replace(part, text=part.text.rstrip(_ENDS) or part.text)
