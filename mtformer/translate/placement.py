"""Better places for terms that the model finds unlikely.

A constrained search weighs the places of a term by the probability of the whole translation. A term that is improbable
everywhere is often cheapest after the last word, while the usual word stays where the term belongs. There, a
translation without terms shows the place: that of the word that translates the term. It is kept up to this word, the
term follows, the model continues, and so on with the next term.

Attention alone does not find that word: where a noun is about to come, its preposition may attend to it as well. Nor
does the probability that words lose when the term is taken out of the source: an article loses more, since it agrees
with the noun. Their product finds it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mtformer.config import SearchOptions
from mtformer.search.constraints import capitalized
from mtformer.search.engine import AlignRequest, Engine, ScoreRequest, SearchRequest, results_of
from mtformer.search.hypothesis import Hypothesis
from mtformer.search.ranking import search
from mtformer.text.glossary import Term
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.words import Span, word_spans
from mtformer.translate.terms import Terms

_UNLIKELY = -8.0  # the log probability of a token that shows that a term may have been forced into a wrong place
_LEAST_LOSS = 0.01  # of log probability, in nats; where no word loses any, attention decides
_SENTENCE_ENDS = ".!?。！？"


@dataclass
class _Draft:
    """A translation in which terms are being placed.

    Attributes:
        request: the sentence, with the prefix that has been decided.
        terms: those of the sentence, in order.
        src: the text of the sentence.
        spans: where each term stands in it.
        placed: the numbers of the terms that have been placed.
        prefix: the text of the prefix.
        rest: what followed the last word that a term has replaced.
        hypothesis: the translation that starts with the prefix.
        text: its text.
        n_ends: how many sentences end in the translation without terms.
    """

    request: SearchRequest
    terms: Sequence[Term]
    src: str
    spans: Sequence[Span]
    placed: list[int] = field(default_factory=list)
    prefix: str = ""
    rest: str = ""
    hypothesis: Hypothesis = field(default_factory=lambda: Hypothesis([], []))
    text: str = ""
    n_ends: int = 0


class Placement:
    """Finds translations in which terms stand where the words for them would."""

    def __init__(self, engine: Engine, tokenizer: Tokenizer, terms: Terms, options: SearchOptions) -> None:
        """Take the engine, which must give its attention, and the options of the search whose results are improved."""
        self._engine = engine
        self._tokenizer = tokenizer
        self._terms = terms
        self._options = options.model_copy(update={"n_best": 1})

    def improved(
        self, requests: Sequence[SearchRequest], terms_of: Sequence[Sequence[Term]], found: Sequence[list[Hypothesis]]
    ) -> list[list[Hypothesis]]:
        """Put a better translation before those whose terms have been added instead of placed.

        Args:
            requests: the sentences.
            terms_of: the terms of each.
            found: what a constrained search has found for each, best first.

        Returns:
            For each sentence as many hypotheses as before; the first may be new, and then contains all terms too.
        """
        results = list(found)
        drafts = {}
        for i, (request, terms, (best, *_)) in enumerate(zip(requests, terms_of, found, strict=True)):
            if terms and min(best.token_log_probs) < _UNLIKELY:
                draft, text = self._draft(request, terms), self._tokenizer.decode(best.ids)
                if _n_ends(text) > _n_ends(draft.src) or _ends_with_term(text, terms):
                    drafts[i] = draft
        self._place(list(drafts.values()))
        for i, draft in drafts.items():
            text = self._tokenizer.decode(found[i][0].ids)
            is_complete = not self._terms.missing(draft.terms, draft.text)
            if is_complete and self._is_added(text, draft):
                results[i] = [draft.hypothesis, *found[i]][: len(found[i])]
        return results

    def _draft(self, request: SearchRequest, terms: Sequence[Term]) -> _Draft:
        src = self._tokenizer.decode_src(request.src[:-1])
        without_terms = SearchRequest(request.src, self._options, request.limit)
        return _Draft(without_terms, terms, src, self._terms.spans(src, terms))

    def _place(self, drafts: Sequence[_Draft]) -> None:
        """Translate without terms, then place those that are missing, one after the other."""
        self._continue(drafts)
        for draft in drafts:
            draft.n_ends = _n_ends(draft.text)
        todo = drafts
        while todo := [draft for draft in todo if self._terms.missing(draft.terms, draft.text)]:
            weights = results_of(
                self._engine, [AlignRequest(draft.request.src, draft.hypothesis.ids) for draft in todo]
            )
            found = zip(todo, weights, self._losses(todo), strict=True)
            todo = [draft for draft, of_draft, losses in found if self._place_next(draft, of_draft, losses)]
            self._continue(todo)
            cut_off = [draft for draft in todo if _is_cut_off(draft)]
            for draft in cut_off:
                self._start(draft, draft.prefix + draft.rest)
            self._continue(cut_off)

    def _continue(self, drafts: Sequence[_Draft]) -> None:
        """Complete translations after their prefixes."""
        found = search(self._engine, [draft.request for draft in drafts], self._tokenizer.decode)
        for draft, [best] in zip(drafts, found, strict=True):
            draft.hypothesis, draft.text = best, self._tokenizer.decode(best.ids)

    def _unplaced(self, draft: _Draft) -> list[int]:
        """Return the numbers of the terms that the translation lacks."""
        missing = self._terms.missing(draft.terms, draft.text)
        return [i for i, term in enumerate(draft.terms) if i not in draft.placed and term in missing]

    def _losses(self, drafts: Sequence[_Draft]) -> list[dict[int, NDArray[np.float64]]]:
        """Return (T,) for each missing term: what each token loses in log probability if the source lacks the term."""
        requests = list[ScoreRequest]()
        for draft in drafts:
            src = draft.request.src
            src_spans = self._tokenizer.src_spans(draft.src, src[:-1])
            terms = [_within(src_spans, draft.spans[number]) for number in self._unplaced(draft)]
            sources = [[token for i, token in enumerate(src) if i not in term] for term in [[], *terms]]
            requests += [ScoreRequest(source, draft.hypothesis.ids) for source in sources]
        scores = map(np.array, results_of(self._engine, requests))
        losses = []
        for draft in drafts:
            whole = next(scores)
            losses.append({number: whole - next(scores) for number in self._unplaced(draft)})
        return losses

    def _place_next(
        self, draft: _Draft, weights: NDArray[np.float32], losses: Mapping[int, NDArray[np.float64]]
    ) -> bool:
        """Add the first missing term to the prefix; tell whether there is a place for it."""
        src_spans = self._tokenizer.src_spans(draft.src, draft.request.src[:-1])
        tgt_spans = self._tokenizer.tgt_spans(draft.text, draft.hypothesis.ids)
        words = [
            word for word in word_spans(draft.text) if word[0] >= len(draft.prefix) and _within(tgt_spans, word)
        ]  # bytes that spell no character have no place
        if not words or not losses:
            return False
        tokens_of = [_within(tgt_spans, word) for word in words]
        attention = np.stack([weights[tokens].mean(axis=0) for tokens in tokens_of])  # (words, S)
        term_tokens = {number: _within(src_spans, draft.spans[number]) for number in losses}
        candidates = []
        for number, loss in losses.items():
            attended = attention[:, term_tokens[number]].sum(axis=1)  # (words,)
            lost = np.array([loss[tokens].sum() for tokens in tokens_of])  # (words,)
            candidates.append((int((attended * np.maximum(lost, _LEAST_LOSS)).argmax()), number))
        first, number = min(candidates)
        links = attention[first:].argmax(axis=1)
        end = _end_of_translation(draft.text, words[first:], links, term_tokens[number])
        self._replace(draft, number, words[first][0], end)
        return True

    def _replace(self, draft: _Draft, number: int, start: int, end: int) -> None:
        """Put a term in the place of the characters from ``start`` to before ``end``, and start again from there."""
        before, tgt = draft.text[:start], draft.terms[number].tgt
        draft.rest = draft.text[end:]
        draft.placed.append(number)
        draft.prefix = before + (tgt if before.strip() else capitalized(tgt))
        self._start(draft, draft.prefix)

    def _start(self, draft: _Draft, text: str) -> None:
        """Let the next translation start with a text that has the terms that have been placed."""
        prefix = self._tokenizer.encode_tgt([text])[0][:-1]
        placed = self._terms.constraint([draft.terms[number] for number in draft.placed])  # the last must end there
        draft.request = replace(draft.request, prefix=prefix, constraint=placed)

    @staticmethod
    def _is_added(text: str, draft: _Draft) -> bool:
        """Tell whether terms have been added at the end of a translation instead of being placed as in the draft."""
        return _n_ends(text) > draft.n_ends or (
            _ends_with_term(text, draft.terms) and not _ends_with_term(draft.text, draft.terms)
        )


def _end_of_translation(text: str, words: Sequence[Span], src_tokens: NDArray[np.intp], source: Sequence[int]) -> int:
    """Return where the words end that translate the source tokens ``source``, without their last punctuation.

    They are the first of ``words``, and those after it that attend most to one of these tokens.
    """
    n_words = next((i for i in range(1, len(words)) if src_tokens[i] not in source), len(words))
    start, end = words[0][0], words[n_words - 1][1]
    return next((i for i in range(end, start, -1) if text[i - 1].isalnum()), end)


def _is_cut_off(draft: _Draft) -> bool:
    """Tell whether the model has ended a translation at the term, where it had more to say before."""
    ends = _SENTENCE_ENDS + " "
    return draft.text.rstrip(ends) == draft.prefix.rstrip(ends) and bool(draft.rest.strip(ends))


def _ends_with_term(text: str, terms: Sequence[Term]) -> bool:
    return text.rstrip(_SENTENCE_ENDS + " ").endswith(tuple(term.tgt for term in terms))


def _n_ends(text: str) -> int:
    return sum(map(text.count, _SENTENCE_ENDS))


def _within(spans: Sequence[Span], span: Span) -> list[int]:
    """Return which of ``spans`` share characters with ``span``."""
    return [i for i, (start, end) in enumerate(spans) if start < span[1] and end > span[0]]
