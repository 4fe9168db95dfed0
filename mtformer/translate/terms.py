"""The terms of a glossary in texts, and the constraints on their translations."""

from collections.abc import Sequence

from mtformer.search.constraints import Constraint, Ids, Phrase, Spellings, TokenTexts, capitalized
from mtformer.support.errors import UserError
from mtformer.text.glossary import Glossary, Match, Term
from mtformer.text.languages import is_written_with_spaces
from mtformer.text.tokenizer.tokenizer import MARKERS, Annotator, Tokenizer
from mtformer.text.tokenizer.vocabulary import normalize
from mtformer.text.words import Span, find_words, word_rule

MODES = ("hard", "soft", "both")


class Terms:
    """A glossary as a model can use it.

    Attributes:
        mode: ``hard``, ``soft`` or ``both``.
    """

    def __init__(
        self, glossary: Glossary, tokenizer: Tokenizer, *, src_lang: str, tgt_lang: str, mode: str = "hard"
    ) -> None:
        """Spell the translations of all terms.

        Args:
            glossary: the terms.
            tokenizer: the model's.
            src_lang: the source language.
            tgt_lang: the target language.
            mode: ``hard``: the search puts the translations of terms into the text; ``soft``: they are annotated in the
                source, where the model has learned to copy them; ``both``.

        Raises:
            UserError: there is no such mode, the model was not trained with annotated terms, or the tokenizer has no
                tokens for a translation.
        """
        if mode not in MODES:
            raise UserError(f"terms_mode {mode}: it is {', '.join(MODES[:-1])} or {MODES[-1]}")
        self.mode = mode
        self._annotator = Annotator(tokenizer, tgt_lang) if mode != "hard" else None
        as_written = ((term.src, tokenizer.tgt.normalize(term.tgt)) for term in glossary.terms)  # by the model
        self._glossary = glossary = Glossary(as_written)
        self._src_words, self._tgt_words = word_rule(src_lang), word_rule(tgt_lang)
        self._tgt_texts = _tgt_texts(tokenizer, tgt_lang)
        with_spaces = is_written_with_spaces(tgt_lang)
        self._phrases: dict[str, Phrase] = {}
        for term in glossary.terms:
            spellings = _spell(term.tgt, tokenizer)
            if spellings is None:
                raise UserError(
                    f"the model's tokenizer has no tokens for {term.tgt!r}, the translation of {term.src!r}"
                )
            self._phrases[term.tgt] = Phrase(term.tgt, spellings, self._tgt_words, with_spaces=with_spaces)

    @property
    def is_hard(self) -> bool:
        """Whether the search puts the translations of terms into the text."""
        return self.mode != "soft"

    def find(self, text: str) -> list[Match]:
        """Return the terms in the normalized form of a source text; see :meth:`Glossary.find`."""
        return self._glossary.find(normalize(text), self._src_words)

    def spans(self, text: str, terms: Sequence[Term]) -> list[Span]:
        """Return where each of some terms, in order, stands in a normalized text; an empty span if it does not."""
        spans, end = list[Span](), 0
        matches = self.find(text)
        for term in terms:
            places = ((match.start, match.end) for match in matches if match.term == term and match.start >= end)
            start, end = next(places, (end, end))
            spans.append((start, end))
        return spans

    def n_added(self, text: str) -> int:
        """Return how many tokens the annotations of soft terms add to a source text."""
        annotator = self._annotator
        return 0 if annotator is None else sum(annotator.n_added(match.term) for match in self.find(text))

    def annotated(self, text: str, matches: Sequence[Match], max_length: int) -> list[int] | None:
        """Return the ids of a source text with its soft terms annotated, EOS included; None where none can be.

        If there are more than ``max_length``, the longest translations are left out.
        """
        if self._annotator is None:
            return None
        chosen = list(matches)
        while chosen:
            ids = self._annotator.encode(normalize(text), chosen)
            if len(ids) <= max_length:
                return ids
            chosen.remove(max(chosen, key=lambda match: len(match.term.tgt)))
        return None

    def constraint(self, terms: Sequence[Term]) -> Constraint | None:
        """Return the constraint that requires the translation of each term; None without terms, or if they are soft."""
        if not self.is_hard:
            return None
        required = [(self._phrases[tgt], n) for tgt, n in self._required(terms).items()]
        return Constraint(required, self._tgt_texts) if required else None

    def missing(self, terms: Sequence[Term], translation: str) -> list[Term]:
        """Return the terms whose translations ``translation`` lacks, or contains less often than it should."""
        small = translation[:1].lower() + translation[1:]  # the first letter may have been capitalized
        required = self._required(terms)
        counts = {tgt: max(self._count(translation, tgt), self._count(small, tgt)) for tgt in required}
        return [term for term in dict.fromkeys(terms) if counts[term.tgt] < required[term.tgt]]

    def missing_notes(self, terms: Sequence[Term], translation: str) -> list[str]:
        """Return a note on each of :meth:`missing`."""
        return [f"the term {term.src!r} is not translated as {term.tgt!r}" for term in self.missing(terms, translation)]

    def _required(self, terms: Sequence[Term]) -> dict[str, int]:
        """Return how often each translation must occur: once for its term, and in each translation that contains it."""
        wanted = [term.tgt for term in terms]
        return {tgt: sum(self._count(each, tgt) for each in wanted) for tgt in dict.fromkeys(wanted)}

    def _count(self, text: str, tgt: str) -> int:
        return len(find_words(text, tgt, self._tgt_words))


def _tgt_texts(tokenizer: Tokenizer, tgt_lang: str) -> TokenTexts:
    """Return the spellings of the target tokens."""
    tokens = tokenizer.tgt_tokens(range(tokenizer.tgt_vocab_size))
    if tokenizer.markers is not None:  # they spell nothing
        tokens = ["" if token in MARKERS else token for token in tokens]
    return TokenTexts(tokens, tokenizer.special_ids, word_rule(tgt_lang))


def _spell(text: str, tokenizer: Tokenizer) -> Spellings | None:
    """Return the tokens of a phrase; None if the tokenizer cannot spell it."""
    firsts = tuple(dict.fromkeys((capitalized(text), text)))
    *at_start, spaced = (tuple(ids[:-1]) for ids in tokenizer.encode_tgt([*firsts, text]))
    unspaced = tuple(tokenizer.encode_tgt_inside(text))
    texts: dict[Ids, str] = dict(zip(at_start, firsts, strict=True)) | {spaced: text, unspaced: text}
    unk = tokenizer.special_ids.unk
    if not all(unk not in ids and tokenizer.decode(ids) == spelled for ids, spelled in texts.items()):
        return None
    return Spellings(tuple(at_start), spaced, unspaced)
