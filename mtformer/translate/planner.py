"""The plan of a text: markup is taken out, texts are prepared, searched for, checked, and all is put back."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from mtformer.config import SearchOptions
from mtformer.search.engine import Engine, SearchRequest
from mtformer.search.hypothesis import Hypothesis, rank
from mtformer.support.errors import UserError
from mtformer.text.glossary import Term
from mtformer.text.languages import UNDETERMINED, is_written_with_spaces
from mtformer.text.slots import Slotted, known_slots, with_slots
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.vocabulary import normalize, on_one_line
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
from mtformer.translate.markup.atoms import Links
from mtformer.translate.markup.line import MarkedText, take_out
from mtformer.translate.pairs import Pairing, Part, parts_of
from mtformer.translate.plan import Plan, ask, together
from mtformer.translate.preparation import KnownCharacters, Preparation, PreparedText, known_characters, prepared
from mtformer.translate.terms import Terms
from mtformer.translate.translation import FLAG, Recalled, Translation, by_rank, distinct, joined, with_ends

if TYPE_CHECKING:
    from mtformer.translate.alignment import Alignment
    from mtformer.translate.fuzzy import FuzzyMatches
    from mtformer.translate.translation_memory import TranslationMemory

_SLOTS_BEAM = 8  # of a search for translations that have each slot
_LINE_END = re.compile(r"\r?\n")


@dataclass(frozen=True, eq=False, repr=False)
class Planner:
    """Makes the plans of texts; see :mod:`mtformer.translate.plan`.

    Attributes:
        engine: the model. Plans ask it only what it can do; whoever drives them submits their requests.
        tokenizer: the one that the model was trained with.
        options: how to search.
        tgt_lang: the target language, which decides whether a space joins the parts of a split text.
        max_length: the most tokens, EOS included, that the model takes at once; longer texts are split.
        src_lang: the source language, which decides which lines begin with the number of a list's item.
        preparations: what happens to texts before the model sees them, in order.
        terms: how terms are to be translated; None for no glossary.
        memory: the translations to reuse; None for none.
        fuzzy: finds the pairs of a memory that searches follow; None for none. The engine has to be torch's.
        markup: whether tags, placeholders and the like are taken out before and put back afterwards.
        alignments: whether translations come with their alignments.
        token_log_probs: whether translations need the log probabilities of their tokens; see :class:`.SearchRequest`.
        guard: finds problems of translations; None if they are not checked.
        slots: whether numbers, codes and names are taken out and put back, as the model has learned.
    """

    engine: Engine
    tokenizer: Tokenizer
    options: SearchOptions
    _: KW_ONLY
    tgt_lang: str
    max_length: int
    src_lang: str = UNDETERMINED
    preparations: Sequence[Preparation] = ()
    terms: Terms | None = None
    memory: "TranslationMemory | None" = None
    fuzzy: "FuzzyMatches | None" = None
    markup: bool = False
    alignments: bool = False
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

    def plan(self, text: str) -> Plan[list[Translation]]:
        """Translate a text, line by line, into its best translations."""
        lines, ends = _LINE_END.split(text), _LINE_END.findall(text)
        of_lines = yield from together(map(self._plan_line, lines))
        results = of_lines[0] if not ends else [with_ends(chosen, ends) for chosen in by_rank(of_lines)]
        if not self.options.sample:
            results = distinct(results)
        if not self.alignments:
            return results
        alignments = yield from together(self.plan_alignment(text, translation.text) for translation in results)
        return [replace(each, alignment=alignment) for each, alignment in zip(results, alignments, strict=True)]

    def plan_alignment(self, src: str, tgt: str) -> "Plan[Alignment]":
        """Align a text with its translation, anyone's."""
        from mtformer.translate.alignment import Alignment  # which imports numpy

        pair = self._pairing(src, tgt)
        weights = yield from ask(pair.align_requests())
        return Alignment(src, tgt, pair.src_spans, pair.tgt_spans, [matrix[:, :-1] for matrix in weights])

    def plan_continued(self, text: str, start: str, n_next: int = 0) -> Plan[list[Translation]]:
        """Translate a sentence so that the translation begins in a given way.

        Args:
            text: the sentence; several have no such translation.
            start: how it begins.
            n_next: how many of the likeliest next tokens that begin a word get a translation each; 0 for the one best
                translation, whatever comes next.
        """
        tree = prepared(text, self.preparations)
        leaves = list(tree.leaves())
        if len(leaves) != 1:
            return []
        slotted = self.with_slots(leaves[0])
        translations = list[Translation]()
        if slotted is not None:
            begun = yield from self._plan_begun(slotted.text, slotted.emptied(start), n_next)
            translations = [filled(slotted, each) for each in begun if slotted.fits(each.text)]
        if not translations:
            translations = yield from self._plan_begun(leaves[0], start, n_next)
        return [each for translation in translations for each in tree.restored(iter([[translation]]))]

    def _plan_begun(self, text: str, start: str, n_next: int) -> Plan[list[Translation]]:
        """Translate a text that needs no more preparation as :meth:`plan_continued` does."""
        parts = parts_of(text, self.tokenizer, None, self.max_length)
        if len(parts) != 1:
            return []
        ids = parts[0].ids
        begun = self.tokenizer.encode_tgt([start])[0][:-1] if start else []
        request = SearchRequest(
            ids, self.options, self.options.limit(len(ids)), prefix=begun, forced=self.tokenizer.prefixes.tgt
        )
        requests = [request]
        if n_next:
            next_ids = yield from self._plan_next_words(request, n_next)
            greedy = self.options.updated(beam_size=1)
            requests = [replace(request, options=greedy, prefix=(*begun, id)) for id in next_ids]
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

    def plan_score(self, src: str, tgt: str) -> Plan[Translation]:
        """Return a translation, anyone's, with the probabilities that the model gives it.

        The empty translation of an empty text has probability 1 and no tokens.
        """
        pair = self._pairing(src, tgt)
        log_probs = yield from ask(pair.score_requests())
        if not src.strip() and not tgt.strip():
            return Translation(tgt, 0.0, 0.0)
        hypotheses = [Hypothesis(list(ids), each) for ids, each in zip(pair.targets, log_probs, strict=True)]
        parts = [filled(*each) for each in zip(pair.slotted, map(self._translation, hypotheses), strict=True)]
        notes = (f"scored in {len(hypotheses)} parts",) if pair.is_cut else ()
        return replace(self._joined(parts, notes), text=tgt)

    def texts_read(self, text: str) -> list[str]:
        """Return the prepared texts that the model reads when ``text`` is translated; none for a text of marks."""
        unmarked = list[str]()
        for line in _LINE_END.split(text):
            marked = self._marked(line)
            unmarked += [line] if marked is None else marked.texts
        leaves = [leaf for part in unmarked for leaf in prepared(part, self.preparations).leaves()]
        of_leaves = [self.with_slots(leaf) for leaf in leaves]
        return [leaf if slotted is None else slotted.shown for leaf, slotted in zip(leaves, of_leaves, strict=True)]

    def _plan_line(self, line: str) -> Plan[list[Translation]]:
        """Take out the markup of a line, translate the texts between it, and put it back."""
        if (recalled := self._recall(line)) is not None:
            return [recalled]
        marked = self._marked(line)
        if marked is None:
            return (yield from self._plan_unmarked(line))
        of_texts = yield from together(map(self._plan_unmarked, marked.texts))
        ranks = by_rank(of_texts) or [[]]
        pairs = [list(zip(marked.texts, [each.text for each in chosen], strict=True)) for chosen in ranks]
        links = yield from self._plan_links({pair for of_rank in pairs for pair in of_rank})
        return [
            marked.put_back(chosen, [links[pair] for pair in of_rank])
            for chosen, of_rank in zip(ranks, pairs, strict=True)
        ]

    def _marked(self, line: str) -> MarkedText | None:
        return take_out(line, self.src_lang, self._characters.can_write) if self.markup else None

    def _plan_links(self, pairs: Iterable[tuple[str, str]]) -> Plan[Mapping[tuple[str, str], Links]]:
        """Link words of texts and their translations; in capitals, as they would be in small letters."""
        pairs = sorted(pairs)
        as_read = [tuple(side.lower() if src.isupper() else side for side in (src, tgt)) for src, tgt in pairs]
        alignments = yield from together(self.plan_alignment(src, tgt) for src, tgt in as_read)
        return {pair: alignment.word_weights() for pair, alignment in zip(pairs, alignments, strict=True)}

    def _plan_unmarked(self, text: str) -> Plan[list[Translation]]:
        """Prepare a text, translate and check the texts that are left to the model, and undo the preparations."""
        tree = prepared(text, self._with_reuse)
        of_leaves = yield from together(map(self._plan_leaf, tree.leaves()))
        return tree.restored(iter(of_leaves))

    def _recall(self, text: str) -> Translation | None:
        """Return the translation of a text in the memory, with notes on the terms that it lacks; None without one."""
        tgt = None if self.memory is None else self.memory.find(text)
        if tgt is None:
            return None
        terms = () if self.terms is None else tuple(match.term for match in self.terms.find(text))
        notes = tuple(self._missing_terms(terms, tgt))
        return Translation(tgt, 0.0, 0.0, terms=terms, notes=notes, memory=(Recalled(text, tgt),))

    def _plan_leaf(self, text: str) -> Plan[list[Translation]]:
        """Translate a text that needs no more preparation, with slots for its numbers, or without if one gets lost."""
        slotted = self.with_slots(text)
        if slotted is None:
            return (yield from self._plan_known(text))
        if not any(map(str.isalpha, slotted.text)):  # there is nothing to translate beside the codes
            return [Translation(on_one_line(slotted.filled([slotted.text])[0]), 0.0, 0.0)]
        tree = self._without_unknown(slotted.text)
        slotted = replace(slotted, text=next(tree.leaves()))
        translations = yield from self._plan_checked(slotted.text)
        best = translations[0].text
        if not slotted.fits(best):
            translations = [] if self.options.sample else (yield from self._plan_all_slots(slotted, best))
        fitting = [each for each in translations if slotted.fits(each.text)]
        fitting = fitting or [each for each in translations if slotted.keeps(each.text)]
        fitting = [filled(slotted, each) for each in tree.restored(iter([fitting]))] if fitting else []
        chosen = fitting or (yield from self._plan_known(text))
        return [with_lost_names(slotted, each) for each in chosen]

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
        wide = yield from self._plan_search(
            slotted.text, self.options.updated(beam_size=width, n_best=width), self.terms
        )
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
        request = self._request(parts[0], self.options, self.terms)
        needed, [space] = map(self.tokenizer.tgt.ids, (list(slotted.fillings), ["▁"]))
        has_spaces = is_written_with_spaces(self.tgt_lang)

        def fits(ids: Sequence[int]) -> bool:
            return slotted.fits(known_slots(self.tokenizer.decode(ids), slotted.text))

        hypothesis = yield from plan_with_tokens(request, needed, space, has_spaces=has_spaces, fits=fits)
        return self._without_made_up(slotted.text, [self._translation(hypothesis, parts[0].terms, self.terms)])

    def with_slots(self, text: str) -> Slotted | None:
        """Return a text with slots; None if it needs none, or the model has none."""
        if not self.slots:
            return None
        kept = []
        if self.terms is not None:
            text = normalize(text)  # as in which terms have their places
            kept = [(match.start, match.end) for match in self.terms.find(text)]
        return with_slots(text, self.src_lang, self.tgt_lang, n_tokens=self.tokenizer.n_src_tokens, kept=kept)

    def _plan_checked(self, text: str) -> Plan[list[Translation]]:
        first = yield from self._plan_search(text, self.options, self.terms)
        return first if self.guard is None else (yield from self._plan_guarded(self.guard, text, first))

    def _plan_guarded(self, guard: Guard, text: str, first: list[Translation]) -> Plan[list[Translation]]:
        """Search again, more strictly, if the best translation has problems, and keep what has fewer.

        Of all that the second search finds, what has the fewest problems counts, but not of samples. Then each
        translation is repaired where that is possible without the model, and gets notes on the problems left.
        """

        def n_problems(each: Translation) -> int:
            return len(guard.problems(text, each.text, each.terms))

        translations = first
        problems = guard.problems(text, first[0].text, first[0].terms)
        if set(problems) - SOURCE_REPEATS:
            second = yield from self._plan_search(text, stricter(self.options, text, problems), self.terms)
            if not self.options.sample:
                second.sort(key=n_problems)
            if n_problems(second[0]) < len(problems):
                translations = second[: self.options.n_best]
        return self._checked(guard, text, translations)

    def _checked(self, guard: Guard, text: str, translations: Iterable[Translation]) -> list[Translation]:
        return [guard.checked(text, translation, self._missing_terms) for translation in translations]

    def _plan_search(self, text: str, options: SearchOptions, terms: Terms | None) -> Plan[list[Translation]]:
        """Search for the translations of a text that needs no more preparation, in parts if it is too long."""
        parts = parts_of(text, self.tokenizer, terms, self.max_length)
        if not parts:
            return [Translation("", 0.0, 0.0)]
        matches = [[] if self.fuzzy is None else self.fuzzy.find(part.ids) for part in parts]
        requests = [
            replace(self._request(part, options, terms), examples=[example for _, example in of_part])
            for part, of_part in zip(parts, matches, strict=True)
        ]
        candidates = yield from ask(requests)
        of_parts = [rank(options, of_part, self.tokenizer.decode) for of_part in candidates]
        if terms is not None and terms.mode == "hard":  # annotations show the places
            from mtformer.translate.placement import Placement  # which imports numpy

            placement = Placement(self.tokenizer, terms)
            of_parts = yield from together(
                placement.plan(request, part.terms, hypotheses)
                for request, part, hypotheses in zip(requests, parts, of_parts, strict=True)
            )
        translations = [
            [
                replace(self._translation(hypothesis, part.terms, terms), fuzzy=tuple(match for match, _ in of_part))
                for hypothesis in hypotheses
            ]
            for part, of_part, hypotheses in zip(parts, matches, of_parts, strict=True)
        ]
        notes = (f"translated in {len(parts)} parts",) if len(parts) > 1 else ()
        return self._without_made_up(text, (self._joined(chosen, notes) for chosen in by_rank(translations)))

    def _request(self, part: Part, options: SearchOptions, terms: Terms | None) -> SearchRequest:
        return SearchRequest(
            part.ids,
            options,
            options.limit(len(part.ids)),
            constraint=None if terms is None else terms.constraint(part.terms),
            forced=self.tokenizer.prefixes.tgt,
            token_log_probs=self.token_log_probs,
        )

    def _without_made_up(self, text: str, translations: Iterable[Translation]) -> list[Translation]:
        return [without_made_up(text, each) if self.tokenizer.has_slots else each for each in translations]

    def _translation(
        self, hypothesis: Hypothesis, of_part: Sequence[Term] = (), terms: Terms | None = None
    ) -> Translation:
        """Return a hypothesis as the translation of a part with these terms."""
        text = self.tokenizer.decode(hypothesis.ids)
        return Translation(
            text=text,
            score=hypothesis.score(self.options.penalty),
            log_prob=hypothesis.log_prob,
            tokens=tuple(self.tokenizer.tgt_tokens([*hypothesis.ids, self.tokenizer.special_ids.eos])),
            token_log_probs=tuple(hypothesis.token_log_probs),
            terms=tuple(of_part),
            notes=tuple(terms.missing_notes(of_part, text)) if terms is not None and of_part else (),
        )

    def _joined(self, parts: Sequence[Translation], notes: tuple[str, ...]) -> Translation:
        """Join the translations of a text's parts, with ``notes`` before those of the parts."""
        whole = joined(parts, " " if is_written_with_spaces(self.tgt_lang) else "")
        return replace(whole, notes=(*notes, *whole.notes))

    def _missing_terms(self, terms: Sequence[Term], text: str) -> list[str]:
        return self.terms.missing_notes(terms, text) if self.terms is not None and terms else []

    @cached_property
    def _with_reuse(self) -> Sequence[Preparation]:
        """The preparations, and before them what needs none."""
        if self.memory is None:
            return self.preparations
        from mtformer.translate.translation_memory import Reuse  # which imports numpy

        return (Reuse(self._recall, self.src_lang, self.tgt_lang), *self.preparations)

    @cached_property
    def _pairing(self) -> Pairing:
        return Pairing(
            self.tokenizer, self.preparations, self.with_slots, tgt_lang=self.tgt_lang, max_length=self.max_length
        )

    @cached_property
    def _characters(self) -> KnownCharacters:
        return known_characters(self.tokenizer)
