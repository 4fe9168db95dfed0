"""Better places for terms that the model finds unlikely.

A constrained search weighs the places of a term by the probability of the whole translation. A term that is improbable
everywhere is often cheapest after the last word, or beside the usual word, which stays where the term belongs. There, a
translation without terms shows the place: that of the word that translates the term. It is kept up to this word, the
term follows, the model continues, and so on with the next term.

Attention alone does not find that word: where a noun is about to come, its preposition may attend to it as well. Nor
does the probability that words lose when the term is taken out of the source: an article loses more, since it agrees
with the noun. Their product finds it.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.search.constraints import capitalized
from mtformer.search.engine import AlignRequest, Request, ScoreRequest, SearchRequest
from mtformer.search.hypothesis import Hypothesis, rank
from mtformer.text.glossary import Term
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.words import Span, word_spans
from mtformer.translate.plan import Plan, ask, together
from mtformer.translate.terms import Terms

_UNLIKELY = -8.0  # the log probability of a token that shows that a term may have been forced into a wrong place
_LEAST_LOSS = 0.01  # of log probability, in nats; where no word loses any, attention decides
_SENTENCE_ENDS = ".!?。！？"
_SENTENCE_END = re.compile(r"(?:(?<![\W\d_])(?<!\b\w)\.|[!?])[\"'”’»)]*\s+(?=\w)|[。！？](?=\w)")  # inside of a text
_MOST_PLACED = 4  # translations of a sentence whose terms are placed, since each takes several searches


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


class Placed(NamedTuple):
    """Translations whose terms have been placed.

    Attributes:
        candidates: the translations, not ranked.
        are_doubtful: whether terms are in wrong places in all of them, and no better places were found.
    """

    candidates: Sequence[Hypothesis]
    are_doubtful: bool = False


class Placement:
    """Finds translations in which terms stand where the model would translate them."""

    def __init__(self, tokenizer: Tokenizer, terms: Terms) -> None:
        """Take the tokenizer and the glossary of a model whose engine gives its attention."""
        self._tokenizer = tokenizer
        self._terms = terms

    def plan(self, request: SearchRequest, terms: Sequence[Term], candidates: Sequence[Hypothesis]) -> Plan[Placed]:
        """Replace translations to which terms were appended instead of placed.

        Args:
            request: the search.
            terms: those of the sentence.
            candidates: its results.

        Returns:
            The translations to rank: new ones, which contain all terms too, in place of those with misplaced terms.
            There may be fewer than before.
        """
        if not request.options.mbr:  # which compares all candidates
            candidates = rank(request.options, candidates, self._tokenizer.decode)
        if not terms:
            return Placed(candidates)
        sentence, found = self._sentence(request, terms), self._drafts(candidates)
        suspects = [draft for draft in found if _is_suspect(sentence, draft)]
        if not suspects:
            return Placed(candidates)
        free = yield from self._search(sentence, n=min(len(suspects), _MOST_PLACED))
        if not any(_may_be_misplaced(sentence, draft, free) for draft in suspects):
            return Placed(candidates)
        drafts = yield from together(self._place_all(sentence, draft) for draft in free)
        placed = [
            each for each in drafts if not self._terms.missing(terms, each.text) and not _is_at_limit(sentence, each)
        ]
        misplaced = [draft for draft in suspects if _is_misplaced(sentence, draft, free, placed)]
        kept = [draft for draft in found if draft not in misplaced]
        texts = {draft.text for draft in kept}
        new = {draft.text: draft for draft in placed if draft.text not in texts}
        better = [*kept, *islice(new.values(), len(misplaced))]
        return Placed([draft.hypothesis for draft in better]) if better else Placed(candidates, are_doubtful=True)

    def _sentence(self, request: SearchRequest, terms: Sequence[Term]) -> _Sentence:
        src = self._tokenizer.decode_src(request.src[:-1])
        options = request.options.model_copy(update={"mbr": 0})  # what follows a term is the likeliest
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
            [draft] = yield from self._search(sentence, prefix, placed)
            if _is_cut_off(draft, after) or draft.text.removeprefix(prefix).lstrip().startswith(replaced):
                [whole] = yield from self._search(sentence, prefix + after, placed)
                draft = whole._replace(prefix=prefix)
        return draft

    def _search(
        self, sentence: _Sentence, prefix: str = "", placed: tuple[int, ...] = (), n: int = 1
    ) -> Plan[list[_Draft]]:
        """Search for the ``n`` best translations that start with a text in which terms have been placed."""
        options = sentence.request.options.model_copy(update={"n_best": n})
        request = replace(sentence.request, options=options)
        if placed:
            ids = self._tokenizer.encode_tgt([prefix])[0][:-1]
            # The last term must end there.
            constraint = self._terms.constraint([sentence.terms[number] for number in placed])
            request = replace(request, prefix=ids, constraint=constraint)
        [candidates] = yield from ask([request])
        return self._drafts(rank(options, candidates, self._tokenizer.decode), prefix, placed)

    def _drafts(self, hypotheses: Sequence[Hypothesis], prefix: str = "", placed: tuple[int, ...] = ()) -> list[_Draft]:
        return [_Draft(each, self._tokenizer.decode(each.ids), prefix, placed) for each in hypotheses]

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


def _is_suspect(sentence: _Sentence, draft: _Draft) -> bool:
    """Tell whether a translation has an unlikely token, or more sentences than the source."""
    return min(draft.hypothesis.token_log_probs) < _UNLIKELY or _n_ends(draft.text) > _n_ends(sentence.text)


def _may_be_misplaced(sentence: _Sentence, draft: _Draft, free: Sequence[_Draft]) -> bool:
    """Tell whether a translation may have terms in wrong places, given translations without them."""
    is_at_end = _n_ends(draft.text) > _n_ends(sentence.text) or _ends_with_term(draft.text, sentence.terms)
    return is_at_end or _is_beside(sentence, draft, free)


def _is_misplaced(sentence: _Sentence, draft: _Draft, free: Sequence[_Draft], placed: Sequence[_Draft]) -> bool:
    """Tell whether a translation has terms in wrong places, given translations without them and with all of them."""
    terms = sentence.terms
    is_moved = bool(placed) and _ends_with_term(draft.text, terms) and not _ends_with_term(placed[0].text, terms)
    return is_moved or _n_ends(draft.text) > _n_ends(free[0].text) or _is_beside(sentence, draft, free)


def _is_beside(sentence: _Sentence, draft: _Draft, free: Sequence[_Draft]) -> bool:
    """Tell whether beside the terms are all words of a translation without terms: none has been replaced."""
    others = _words(draft.text) - _words(*(term.tgt for term in sentence.terms))
    return any(_words(each.text) <= others for each in free)


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
    """Return how many sentences end before the last one; the points of 5.000, 3. Mai and z. B. end none."""
    return sum(1 for _ in _SENTENCE_END.finditer(text))


def _within(spans: Sequence[Span], span: Span) -> list[int]:
    """Return the indices of the ``spans`` that overlap ``span``."""
    return [i for i, (start, end) in enumerate(spans) if start < span[1] and end > span[0]]
