"""Training pairs with annotated terms, drawn anew for each epoch."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mtformer.text.glossary import Glossary, Match, Term
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.annotation import Annotator
from mtformer.text.tokenizer.sampling import Sampling
from mtformer.text.tokenizer.tokenizer import Tokenizer, normalize
from mtformer.text.words import find_words, word_rule

_INVENTED = 0.5  # the share of terms with invented translations


class EncodedPair(NamedTuple):
    """The ids of both sides of a pair, EOS included."""

    src: list[int]
    tgt: list[int]


class TermSampler:
    """Annotates terms of a glossary in some of the pairs whose target has the terms' translations.

    A model would rather translate a term by itself than look at its annotation, which only repeats what it knows. So
    half of the translations are replaced on both sides, by those of other terms or by words made up from two of them:
    the model has to copy.
    """

    def __init__(
        self, glossary: Glossary, tokenizer: Tokenizer, *, src_lang: str, tgt_lang: str, share: float, seed: int
    ) -> None:
        """Take the glossary, a tokenizer with markers, the languages, and the share of the pairs.

        Raises:
            UserError: the tokenizer has no markers.
        """
        self._glossary, self._tokenizer = glossary, tokenizer
        self._annotator = Annotator(tokenizer, tgt_lang)
        self._src_words, self._tgt_words = word_rule(src_lang), word_rule(tgt_lang)
        self._share, self._seed = share, seed

    def annotated(
        self, pairs: Sequence[SentencePair], first: int, epoch: int, sampling: Sampling | None = None
    ) -> dict[int, EncodedPair]:
        """Draw some of the pairs and some of the terms in each of them.

        Args:
            pairs: successive pairs of the text.
            first: the number of the first of them; the result depends on it, on the epoch and on the seed.
            epoch: the number of the epoch.
            sampling: how to sample tokens.

        Returns:
            the pairs that have annotated terms, by their indices in ``pairs``.
        """
        random = np.random.default_rng([self._seed, epoch, first])
        drawn = np.flatnonzero(random.random(len(pairs)) < self._share).tolist()
        rows = {}
        for index in drawn:
            src, tgt = map(normalize, pairs[index])
            usable = self._usable(src, tgt)
            if usable:
                chosen = random.permutation(len(usable))[: random.integers(1, len(usable), endpoint=True)]
                matches, tgt = self._replaced([usable[i] for i in sorted(chosen)], tgt, random)
                [tgt_ids] = self._tokenizer.encode_tgt([tgt], sampling)
                rows[index] = EncodedPair(self._annotator.encode(src, matches, sampling=sampling), tgt_ids)
        return rows

    def _usable(self, src: str, tgt: str) -> list[tuple[Match, int]]:
        """Return the terms in a source whose translations are in the target, and where, each at a place of its own."""
        taken = [False] * len(tgt)
        usable = []
        for match in self._glossary.find(src, self._src_words):
            for place in find_words(tgt, match.term.tgt, self._tgt_words):
                span = slice(place, place + len(match.term.tgt))
                if not any(taken[span]):
                    taken[span] = [True] * len(match.term.tgt)
                    usable.append((match, place))
                    break
        return usable

    def _replaced(
        self, chosen: Sequence[tuple[Match, int]], tgt: str, random: np.random.Generator
    ) -> tuple[list[Match], str]:
        """Replace the translations of some terms in a target; return the terms with their new ones, and the target."""
        matches = [
            Match(start, Term(term.src, self._invented(random) if random.random() < _INVENTED else term.tgt))
            for (start, term), _ in chosen
        ]
        changes = [(place, old.term.tgt, new.term.tgt) for (old, place), new in zip(chosen, matches, strict=True)]
        for place, old, new in sorted(changes, reverse=True):  # from the right: places to the left stay
            tgt = tgt[:place] + new + tgt[place + len(old) :]
        return matches, tgt

    def _invented(self, random: np.random.Generator) -> str:
        """Return the translation of some term, or the beginning of one with the end of another."""
        terms = self._glossary.terms
        one, other = (terms[i].tgt for i in random.integers(len(terms), size=2))
        if random.random() < 0.5:
            return one
        return normalize(one[: random.integers(1, len(one), endpoint=True)] + other[random.integers(len(other)) :])
