"""The plan of a text: markup is taken out, texts are prepared, searched for, checked, and all is put back."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING

from mtformer.search.hypothesis import Hypothesis
from mtformer.text.languages import separator_of
from mtformer.text.sentences import split_sentences
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.translate.guard import filled
from mtformer.translate.markup.atoms import Links
from mtformer.translate.markup.line import MarkedText, take_out
from mtformer.translate.parts import Pairing
from mtformer.translate.plan import Plan, ask, together
from mtformer.translate.preparation import by_sentences
from mtformer.translate.replacement import Preparation, Replacement, prepared
from mtformer.translate.sentence import SentencePlanner
from mtformer.translate.translation import Recalled, Translation, by_rank, distinct, joined, with_ends

if TYPE_CHECKING:
    from mtformer.translate.alignment import Alignment
    from mtformer.translate.translation_memory import TranslationMemory

_LINE_END = re.compile(r"\r?\n")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Planner(SentencePlanner):
    """Makes the plans of texts of any kind.

    Attributes:
        preparations: what happens to texts before the model sees them, in order.
        memory: the translations to reuse; None for none.
        markup: whether tags, placeholders and the like are taken out before and put back afterwards.
        alignments: whether translations come with their alignments.
    """

    preparations: Sequence[Preparation] = ()
    memory: "TranslationMemory | None" = None
    markup: bool = False
    alignments: bool = False

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

        Raises:
            UserError: the beginning is longer than the translation may be.
        """
        tree = prepared(text, self.preparations)
        leaves = list(tree.leaves())
        if len(leaves) != 1:
            return []
        slotted = self.with_slots(leaves[0])
        translations = list[Translation]()
        if slotted is not None:
            found = yield from self.plan_with_start(slotted.text, slotted.emptied(start), n_next)
            translations = [filled(slotted, each) for each in found if slotted.fits(each.text)]
        if not translations:
            translations = yield from self.plan_with_start(leaves[0], start, n_next)
        return [each for translation in translations for each in tree.restored(iter([[translation]]))]

    def plan_score(self, src: str, tgt: str) -> Plan[Translation]:
        """Return a translation, anyone's, with the probabilities that the model gives it.

        The empty translation of an empty text has probability 1 and no tokens.
        """
        pair = self._pairing(src, tgt)
        log_probs = yield from ask(pair.score_requests())
        if not src.strip() and not tgt.strip():
            return Translation(tgt)
        hypotheses = [Hypothesis(list(ids), each) for ids, each in zip(pair.targets, log_probs, strict=True)]
        parts = [filled(*each) for each in zip(pair.slotted, map(self._translation, hypotheses), strict=True)]
        notes = (f"scored in {len(hypotheses)} parts",) if pair.is_cut else ()
        return replace(joined(parts, separator_of(self.tgt_lang)), text=tgt, notes=notes)

    def texts_read(self, text: str) -> list[str]:
        """Return the prepared texts that the model reads when ``text`` is translated; none for a text of marks."""
        unmarked = list[str]()
        for line in _LINE_END.split(text):
            marked = self._marked(line)
            unmarked += [line] if marked is None else marked.texts
        leaves = [leaf for part in unmarked for leaf in prepared(part, self.preparations).leaves()]
        of_leaves = [self.with_slots(leaf) for leaf in leaves]
        return [leaf if slotted is None else slotted.shown for leaf, slotted in zip(leaves, of_leaves, strict=True)]

    def last_sentence(self, text: str) -> tuple[str, Tokenizer]:
        """Return the last sentence of a text, and the tokenizer that puts the model's context before it.

        For a model that reads sentences alone, a text is one sentence.
        """
        sentences = [text] if self.tokenizer.context_end is None else split_sentences(text, self.src_lang)
        before, last = ["", "", *sentences][-2:]
        return last, self.after(before, last).tokenizer

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
        has_marks = [bool(segment.nodes) for segment in marked.segments]
        links = yield from self._plan_links({pair for of_rank in pairs for pair in compress(of_rank, has_marks)})
        return [
            marked.put_back(chosen, [links.get(pair, ()) for pair in of_rank])
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
        reuse = () if self.memory is None else (self._reused, self._reused)  # of a text, then of its sentences
        tree = prepared(text, (*reuse, *self.preparations))
        before, plans = "", list[Plan[list[Translation]]]()
        for end in tree.ends():
            if end.restore is None:
                plans.append(self.after(before, end.text).plan_sentence(end.text))
            if end.restore is None or self._recall(end.text) is not None:  # a copy is no context
                before = end.text
        of_leaves = yield from together(plans)
        return tree.restored(iter(of_leaves))

    def _recall(self, text: str) -> Translation | None:
        """Return the translation of a text in the memory, with notes on the terms that it lacks; None without one."""
        tgt = None if self.memory is None else self.memory.find(text)
        if tgt is None:
            return None
        terms = () if self.terms is None else tuple(match.term for match in self.terms.find(text))
        notes = tuple(self._missing_terms(terms, tgt))
        return Translation(tgt, terms=terms, notes=notes, memory=(Recalled(text, tgt),))

    def _reused(self, text: str) -> Replacement | None:
        """Take a text from the memory, or split it if the memory has one of its sentences."""
        if (whole := self._recall(text)) is not None:
            return Replacement((), lambda _parts: whole)
        replacement = by_sentences(text, self.src_lang, self.tgt_lang)
        return replacement if replacement and any(map(self._recall, replacement.parts)) else None

    @cached_property
    def _pairing(self) -> Pairing:
        languages = self.src_lang, self.tgt_lang
        return Pairing(self.tokenizer, self.preparations, languages, self.max_length, self.slots)
