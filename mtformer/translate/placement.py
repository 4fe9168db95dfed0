"""Better places for terms that the model finds unlikely.

A constrained search weighs the places of a term by the probability of the whole translation. A term that is improbable
everywhere is often cheapest after the last word, or beside the usual word, which stays where the term belongs. There, a
translation without terms shows the place: that of the word that translates the term. It is kept up to this word, the
term follows, the model continues, and so on with the next term.

Attention alone does not find that word: where a noun is about to come, its preposition may attend to it as well. Nor
does the probability that words lose when the term is taken out of the source: an article loses more, since it agrees
with the noun. Their product finds it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.search.constraints import capitalized
from mtformer.search.engine import AlignRequest, Request, ScoreRequest, SearchRequest
from mtformer.search.hypothesis import Hypothesis, rank
from mtformer.text.glossary import Term
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.words import Span, word_spans
from mtformer.translate.plan import Plan, ask
from mtformer.translate.terms import Terms

_UNLIKELY = -8.0  # the log probability of a token that shows that a term may have been forced into a wrong place
_LEAST_LOSS = 0.01  # of log probability, in nats; where no word loses any, attention decides
_SENTENCE_ENDS = ".!?。！？"


@dataclass(frozen=True)
class _Sentence:
    """A sentence with terms.

    Attributes:
        request: the search for its translation, without constraints.
        terms: those of the sentence, in order.
        text: the sentence.
        spans: where each term stands in it.
    """

    request: SearchRequest
    terms: Sequence[Term]
    text: str
    spans: Sequence[Span]


class _Draft(NamedTuple):
    """A translation in which terms are being placed, one after the other.

    Attributes:
        hypothesis: the translation.
        text: its text.
        prefix: what it starts with, up to the last term that has been placed.
        placed: the numbers of the terms that have been placed.
    """

    hypothesis: Hypothesis
    text: str
    prefix: str = ""
    placed: tuple[int, ...] = ()


class Placement:
    """Finds translations in which terms stand where the model would translate them."""

    def __init__(self, tokenizer: Tokenizer, terms: Terms) -> None:
        """Take the tokenizer and the glossary of a model whose engine gives its attention."""
        self._tokenizer = tokenizer
        self._terms = terms

    def plan(
        self, request: SearchRequest, terms: Sequence[Term], hypotheses: list[Hypothesis]
    ) -> Plan[list[Hypothesis]]:
        """Put a better translation first if terms were appended instead of placed.

        Args:
            request: the search.
            terms: those of the sentence.
            hypotheses: its results, best first.

        Returns:
            As many hypotheses as before; the first may be new, and then contains all terms too.
        """
        best = hypotheses[0]
        if not terms or min(best.token_log_probs) >= _UNLIKELY:
            return hypotheses
        sentence, text = self._sentence(request, terms), self._tokenizer.decode(best.ids)
        free = yield from self._search(sentence)
        is_at_end = _n_ends(text) > _n_ends(sentence.text) or _ends_with_term(text, terms)
        # Beside the terms are all words of the translation without them: none has been replaced.
        is_beside = _words(free.text) <= _words(text) - _words(*(term.tgt for term in terms))
        if not is_at_end and not is_beside:
            return hypotheses
        draft = yield from self._place_all(sentence, free)
        if self._terms.missing(terms, draft.text) or _is_at_limit(sentence, draft):
            return hypotheses
        is_moved = _ends_with_term(text, terms) and not _ends_with_term(draft.text, terms)
        if is_beside or is_moved or _n_ends(text) > _n_ends(free.text):
            return [draft.hypothesis, *hypotheses][: len(hypotheses)]
        return hypotheses

    def _sentence(self, request: SearchRequest, terms: Sequence[Term]) -> _Sentence:
        src = self._tokenizer.decode_src(request.src[:-1])
        options = request.options.model_copy(update={"n_best": 1})
        free = replace(request, options=options, constraint=None)
        return _Sentence(free, terms, src, self._terms.spans(src, terms))

    def _place_all(self, sentence: _Sentence, draft: _Draft) -> Plan[_Draft]:
        """Place the terms that a translation lacks, one after the other, as long as there are places for them.

        A translation that the maximum length has cut off only repeats itself, and each search from there would take as
        long.
        """
        while self._terms.missing(sentence.terms, draft.text) and not _is_at_limit(sentence, draft):
            place = yield from self._next_place(sentence, draft)
            if place is None:
                return draft
            number, (start, end) = place
            before, replaced, after = draft.text[:start], draft.text[start:end], draft.text[end:]
            tgt = sentence.terms[number].tgt
            prefix = before + (tgt if before.strip() else capitalized(tgt))
            placed = (*draft.placed, number)
            draft = yield from self._search(sentence, prefix, placed)
            if _is_cut_off(draft, after) or draft.text.removeprefix(prefix).lstrip().startswith(replaced):
                whole = yield from self._search(sentence, prefix + after, placed)
                draft = whole._replace(prefix=prefix)
        return draft

    def _search(self, sentence: _Sentence, prefix: str = "", placed: tuple[int, ...] = ()) -> Plan[_Draft]:
        """Search for the best translation that starts with a text in which terms have been placed."""
        request = sentence.request
        if placed:
            ids = self._tokenizer.encode_tgt([prefix])[0][:-1]
            # The last term must end there.
            constraint = self._terms.constraint([sentence.terms[number] for number in placed])
            request = replace(request, prefix=ids, constraint=constraint)
        [candidates] = yield from ask([request])
        [best] = rank(request.options, candidates, self._tokenizer.decode)
        return _Draft(best, self._tokenizer.decode(best.ids), prefix, placed)

    def _next_place(self, sentence: _Sentence, draft: _Draft) -> Plan[tuple[int, Span] | None]:
        """Return the number of the first missing term and the span that it should replace; None if there is none."""
        missing = self._terms.missing(sentence.terms, draft.text)
        numbers = [i for i, term in enumerate(sentence.terms) if i not in draft.placed and term in missing]
        src, tgt = sentence.request.src, draft.hypothesis.ids
        src_spans = self._tokenizer.src.spans(sentence.text, src[:-1])
        tgt_spans = self._tokenizer.tgt.spans(draft.text, tgt)
        # Bytes that spell no character have no place.
        words = [span for span in word_spans(draft.text) if span[0] >= len(draft.prefix) and _within(tgt_spans, span)]
        if not words or not numbers:
            return None
        term_tokens = [_within(src_spans, sentence.spans[number]) for number in numbers]
        without = [[token for i, token in enumerate(src) if i not in tokens] for tokens in term_tokens]
        forced = sentence.request.forced
        requests: list[Request[Any]] = [AlignRequest(src, tgt, forced)]
        weights, *scores = yield from ask([*requests, *(ScoreRequest(each, tgt, forced) for each in (src, *without))])
        whole, *lacking = map(np.array, scores)
        tokens_of = [_within(tgt_spans, word) for word in words]
        attention = np.stack([weights[tokens].mean(axis=0) for tokens in tokens_of])  # (words, S)
        candidates = [
            (_translating(attention[:, tokens].sum(axis=1), whole - log_probs, tokens_of), number, tokens)
            for number, tokens, log_probs in zip(numbers, term_tokens, lacking, strict=True)
        ]
        first, number, tokens = min(candidates)
        links = attention[first:].argmax(axis=1)
        return number, (words[first][0], _end_of_translation(draft.text, words[first:], links, tokens))


def _translating(attended: NDArray[Any], loss: NDArray[np.float64], tokens_of: Sequence[Sequence[int]]) -> int:
    """Return the index of the target word that translates a term.

    Args:
        attended: (words,) how much each word attends to the term.
        loss: (T,) what each token loses in log probability if the source lacks the term.
        tokens_of: the tokens of each word.
    """
    lost = np.array([loss[tokens].sum() for tokens in tokens_of])  # (words,)
    return int((attended * np.maximum(lost, _LEAST_LOSS)).argmax())


def _end_of_translation(text: str, words: Sequence[Span], src_tokens: NDArray[np.intp], source: Sequence[int]) -> int:
    """Return where the words end that translate the source tokens ``source``, without their last punctuation.

    They are the first of ``words``, and those after it that attend most to one of these tokens.
    """
    n_words = next((i for i in range(1, len(words)) if src_tokens[i] not in source), len(words))
    start, end = words[0][0], words[n_words - 1][1]
    return next((i for i in range(end, start, -1) if text[i - 1].isalnum()), end)


def _is_at_limit(sentence: _Sentence, draft: _Draft) -> bool:
    """Tell whether the maximum length has cut off a translation."""
    return len(draft.hypothesis.ids) >= sentence.request.limit


def _is_cut_off(draft: _Draft, after: str) -> bool:
    """Tell whether the model has ended a translation at the term, where ``after`` followed before."""
    ends = _SENTENCE_ENDS + " "
    return draft.text.rstrip(ends) == draft.prefix.rstrip(ends) and bool(after.strip(ends))


def _words(*texts: str) -> Counter[str]:
    words = (text[start:end].casefold() for text in texts for start, end in word_spans(text))
    return Counter(bare for word in words if (bare := "".join(filter(str.isalnum, word))))


def _ends_with_term(text: str, terms: Sequence[Term]) -> bool:
    return text.rstrip(_SENTENCE_ENDS + " ").endswith(tuple(term.tgt for term in terms))


def _n_ends(text: str) -> int:
    return sum(map(text.count, _SENTENCE_ENDS))


def _within(spans: Sequence[Span], span: Span) -> list[int]:
    """Return the indices of the ``spans`` that overlap ``span``."""
    return [i for i, (start, end) in enumerate(spans) if start < span[1] and end > span[0]]
