"""Variations of training pairs, drawn anew for each epoch: text as users write it, where a corpus has edited text.

A model can only translate text similar to its training text: without such pairs, ALL CAPS and emoji are spelled in
tokens that it never learned. An emoji is the same on both sides, so the model learns to copy it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import numpy as np
from pydantic import JsonValue

from mtformer.config import AugmentConfig, LanguagePair
from mtformer.data.variations import NAMES, are_dotted, kinds_for
from mtformer.text.glossary import Glossary, Match, Term
from mtformer.text.languages import UNDETERMINED
from mtformer.text.pairs import SentencePair
from mtformer.text.slots import pair_with_slots
from mtformer.text.tokenizer.tokenizer import Annotator, Tokenizer
from mtformer.text.tokenizer.vocabulary import normalize
from mtformer.text.words import claim, find_words, word_rule

_VERSION = 8  # of the variations, which are cached: raise it when a seed gives others
NO_VARIATION = AugmentConfig.model_validate(dict.fromkeys(AugmentConfig.model_fields, 0))
_CHUNK = 10_000  # pairs varied at once
_INVENTED = 0.5  # the share of terms with invented translations
_SLOTS_SHARE = 0.5  # of the pairs: the others have the digits, which a translation may need too


class Augmenter:
    """Varies some of the pairs of each epoch.

    The variations of a pair depend on the seed, the epoch, the number of the pair and its text: not on how the text is
    divided or on the epochs before.
    """

    def __init__(
        self, shares: AugmentConfig | None, *, seed: int, languages: Sequence[LanguagePair] = (), slots: bool = False
    ) -> None:
        """Take the share of each kind of variation, the directions of the text, and whether some pairs get slots."""
        self._shares, self._seed, self._slots = shares or NO_VARIATION, seed, slots
        self._languages = tuple(languages[0]) if len(languages) == 1 else (UNDETERMINED, UNDETERMINED)
        self._dotted = [are_dotted(codes) for codes in zip(*languages, strict=True)] or [False, False]
        self._kinds = kinds_for(self._dotted)

    @property
    def identity(self) -> JsonValue:
        """Everything that the variations depend on besides the text and the epoch."""
        slots: JsonValue = [*self._languages] if self._slots else False  # a language decides what is a number or a name
        return [_VERSION, self._seed, self._shares.model_dump(mode="json"), *self._dotted, slots]

    def vary(self, pairs: Sequence[SentencePair], first: int, epoch: int) -> dict[int, SentencePair]:
        """Draw variations.

        Args:
            pairs: successive pairs of a source.
            first: the number of the first of them.
            epoch: the number of the epoch.

        Returns:
            the pairs that change, by their indices in ``pairs``.
        """
        varied = {}
        draws = self._draws((len(pairs), 1 + len(NAMES)), first, epoch)  # the first column is the seed of the rest
        wanted = draws[:, 1:] < [getattr(self._shares, name) for name in NAMES]
        for index in np.flatnonzero(wanted.any(axis=1)).tolist():
            generator = Random(draws[index, 0])
            names = [name for name, is_wanted in zip(NAMES, wanted[index], strict=True) if is_wanted]
            pair = self._varied(pairs[index], names, generator)
            if pair != pairs[index]:
                varied[index] = pair
        return varied | self._slotted([varied.get(index, pair) for index, pair in enumerate(pairs)], first, epoch)

    def _slotted(self, pairs: Sequence[SentencePair], first: int, epoch: int) -> dict[int, SentencePair]:
        """Put slots into some pairs; return those that change, by their indices."""
        if not self._slots:
            return {}
        draws = self._draws((len(pairs), 2), first, epoch, 1)
        slotted = {}
        for index in np.flatnonzero(draws[:, 0] < _SLOTS_SHARE).tolist():
            pair = pair_with_slots(pairs[index], self._languages, Random(draws[index, 1]))
            if pair is not None:
                slotted[index] = pair
        return slotted

    def _draws(self, shape: tuple[int, int], first: int, *entropy: int) -> np.ndarray:
        """Draw from [0, 1): a row for each pair from the ``first`` on."""
        generator = np.random.PCG64([self._seed, *entropy])
        generator.advance(first * shape[1])  # as if the draws for the pairs before were done
        return np.random.Generator(generator).random(shape)

    def _varied(self, pair: SentencePair, names: Sequence[str], rng: Random) -> SentencePair:
        """Apply kinds of variations in turn; those that do not suit the pair leave it unchanged."""
        if pair.is_blank:
            return pair
        for name in names:
            if name in self._kinds:
                pair = self._kinds[name](pair, rng) or pair
        return pair


@dataclass(frozen=True)
class TokenizerText:
    """The text to train a tokenizer on, with variations, so that their words get tokens; iterable repeatedly.

    It has no typos: the tokens of misspelled words would take the place of others. And no emoji: each would need a
    token, where the model can learn to copy their bytes.
    """

    pairs: Sequence[SentencePair]
    shares: AugmentConfig
    seed: int
    languages: Sequence[LanguagePair] = ()

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[SentencePair]:
        shares = self.shares.model_copy(update={"typos": 0, "emoji": 0})
        augmenter = Augmenter(shares, seed=self.seed, languages=self.languages)
        for first in range(0, len(self.pairs), _CHUNK):
            chunk = self.pairs[first : first + _CHUNK]
            varied = augmenter.vary(chunk, first, epoch=0)
            yield from (varied.get(index, pair) for index, pair in enumerate(chunk))


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

    def annotated(self, pairs: Sequence[SentencePair], first: int, epoch: int) -> dict[int, EncodedPair]:
        """Draw some of the pairs and some of the terms in each of them.

        Args:
            pairs: successive pairs of the text.
            first: the number of the first of them; the result depends on it, on the epoch and on the seed.
            epoch: the number of the epoch.

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
                [tgt_ids] = self._tokenizer.encode_tgt([tgt])
                rows[index] = EncodedPair(self._annotator.encode(src, matches), tgt_ids)
        return rows

    def _usable(self, src: str, tgt: str) -> list[tuple[Match, int]]:
        """Return the terms in a source whose translations are in the target, with distinct target positions."""
        taken = [False] * len(tgt)
        usable = []
        for match in self._glossary.find(src, self._src_words):
            for place in find_words(tgt, match.term.tgt, self._tgt_words):
                if claim(taken, place, place + len(match.term.tgt)):
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
        """Return the translation of a random term, or the beginning of one joined with the end of another."""
        terms = self._glossary.terms
        first, second = (terms[i].tgt for i in random.integers(len(terms), size=2))
        if random.random() < 0.5:
            return first
        beginning = first[: random.integers(1, len(first), endpoint=True)]
        return normalize(beginning + second[random.integers(len(second)) :])
