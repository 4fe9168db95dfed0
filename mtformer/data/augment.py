"""Variations of training pairs, drawn anew for each epoch: text as users write it, where a corpus has edited text.

A model can only translate what it has seen something like: without such pairs, ALL CAPS and emoji are spelled in tokens
that it never learned. What is inserted is the same on both sides, so the model learns to copy it.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from itertools import islice

import numpy as np
from pydantic import JsonValue

from mtformer.config import AugmentConfig
from mtformer.data import inserts
from mtformer.text.languages import is_written_with_spaces, language_of_script
from mtformer.text.numbers import find_numbers
from mtformer.text.sources import SentencePair

Random = random.Random

_VERSION = 1  # of the variations, which are cached: raise it when a seed gives others
Kind = Callable[[SentencePair, Random], SentencePair | None]

_CHUNK = 10_000  # pairs varied at once
_MARKS = ".!?…。！？"
_CLOSING = "\"'”’»“)"
_END = re.compile(rf"[{_MARKS}]+$")
_ENDED = re.compile(rf"[{_MARKS}][{_CLOSING}]*$")
_FIRST_LETTER = re.compile(r"(?<!\S)[^\w\s]*[^\W\d_]")  # of a word, with the quotes and brackets before it
_LONGEST_SHORT_WORD = 3  # letters, of the words that titles may leave in small letters
_NEARLY_ALL = 0.9
_WORD = re.compile(r"[^\W\d_]{3,}")
_COPIED = re.compile(r"\S*(?:[@/<>{}_=%$]|\w[.:]\w)\S*")  # addresses and the like, which typos would break
_BETWEEN_WORDS = re.compile(r"\s+(?=\w)|[，、；：](?=\w)")
_CHARACTERS_PER_TYPO = 30
_SHORTEST_NUMBER = 2  # digits: another number needs no other plural
_KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS = {
    key: "".join(
        row[place]
        for row in _KEYBOARD[max(0, y - 1) : y + 2]
        for place in range(max(0, x - 1), min(len(row), x + 2))
        if row[place] != key
    )
    for y, keys in enumerate(_KEYBOARD)
    for x, key in enumerate(keys)
}


class Augmenter:
    """Varies some of the pairs of each epoch.

    The variations of a pair depend on the seed, the epoch, the number of the pair, its text, and, where it is joined
    with it, on the next pair: not on how the text is divided or on the epochs before.
    """

    def __init__(self, shares: AugmentConfig, *, seed: int) -> None:
        """Take the share of each kind of variation."""
        self._shares, self._seed = shares, seed

    @property
    def identity(self) -> JsonValue:
        """What the variations depend on besides the text and the epoch."""
        return [_VERSION, self._seed, self._shares.model_dump(mode="json")]

    def vary(self, pairs: Sequence[SentencePair], first: int, epoch: int) -> dict[int, SentencePair]:
        """Draw variations.

        Args:
            pairs: successive pairs of a source; the last one is never joined.
            first: the number of the first of them.
            epoch: the number of the epoch.

        Returns:
            the pairs that change, by their indices in ``pairs``.
        """
        varied = {}
        draws = self._draws(len(pairs), first, epoch)
        wanted = draws[:, 1:] < [getattr(self._shares, name) for name in _NAMES]
        for index in np.flatnonzero(wanted.any(axis=1)).tolist():
            generator = Random(draws[index, 0])
            following = pairs[index + 1] if index + 1 < len(pairs) else None
            names = [name for name, is_wanted in zip(_NAMES, wanted[index], strict=True) if is_wanted]
            pair = _varied(pairs[index], following, names, generator)
            if pair != pairs[index]:
                varied[index] = pair
        return varied

    def _draws(self, n: int, first: int, epoch: int) -> np.ndarray:
        """Draw from [0, 1): (n, 1 + kinds), where the first column is the seed of the rest."""
        n_columns = 1 + len(_NAMES)
        generator = np.random.PCG64([self._seed, epoch])
        generator.advance(first * n_columns)  # as if the draws for the pairs before were done
        return np.random.Generator(generator).random((n, n_columns))


@dataclass(frozen=True)
class TokenizerText:
    """The text to train a tokenizer on, which is to have tokens for the words of the variations; iterable repeatedly.

    It has no typos: the tokens of misspelled words would take the place of others. And no emoji: each would need a
    token, where the model can learn to copy their bytes.
    """

    pairs: Iterable[SentencePair]
    shares: AugmentConfig
    seed: int

    def __len__(self) -> int:
        return len(self.pairs) if isinstance(self.pairs, Sized) else sum(1 for _ in self.pairs)

    def __iter__(self) -> Iterator[SentencePair]:
        augmenter = Augmenter(self.shares.model_copy(update={"typos": 0, "emoji": 0}), seed=self.seed)
        stream = iter(self.pairs)
        first = 0
        while chunk := list(islice(stream, _CHUNK)):
            varied = augmenter.vary(chunk, first, epoch=0)
            yield from (varied.get(index, pair) for index, pair in enumerate(chunk))
            first += len(chunk)


def _varied(pair: SentencePair, following: SentencePair | None, names: Sequence[str], rng: Random) -> SentencePair:
    """Apply kinds of variations one after the other; those that do not suit the pair leave it as it is."""
    if not all(map(str.strip, pair)):
        return pair
    if "joined" in names and following and all(map(_ENDED.search, pair)) and all(map(str.strip, following)):
        pair = SentencePair(*map(_joined, pair, following))
    for name in names:
        if name in _KINDS:
            pair = _KINDS[name](pair, rng) or pair
    return pair


def _joined(text: str, following: str) -> str:
    space = " " if is_written_with_spaces(language_of_script(text)) else ""
    return f"{text.rstrip()}{space}{following.lstrip()}"


def _with_typos(pair: SentencePair, rng: Random) -> SentencePair | None:
    """Mistype one letter or more of the source, never the first of a word, which people seldom mistype."""
    src = pair.src
    copied = [found.span() for found in _COPIED.finditer(src)]
    places = [
        place
        for word in _WORD.finditer(src)
        if not any(start <= word.start() < end for start, end in copied)
        for place in range(word.start() + 1, word.end())
    ]
    n_typos = 1 + rng.randrange(1 + len(src) // _CHARACTERS_PER_TYPO)
    for place in sorted(rng.sample(places, min(len(places), n_typos)), reverse=True):  # places to the left stay
        src = _mistyped(src, place, rng)
    return pair._replace(src=src)


def _mistyped(text: str, place: int, rng: Random) -> str:
    before, letter, after = text[:place], text[place], text[place + 1 :]
    way = rng.randrange(4)
    if way == 0:
        return before + after
    if way == 1:
        return before + letter + letter + after
    if way == 2 and letter.lower() in _NEIGHBOURS:
        return before + rng.choice(_NEIGHBOURS[letter.lower()]) + after
    if after[:1].isalpha():
        return before + after[0] + letter + after[1:]
    return before[:-1] + letter + before[-1] + after


def _in_capitals(pair: SentencePair, rng: Random) -> SentencePair | None:
    if not _has_case(pair.src):
        return None
    src = pair.src.replace("ß", "ẞ") if rng.random() < 0.5 else pair.src  # people write either, and "SS"
    return SentencePair(src.upper(), pair.tgt.upper())


def _in_title_case(pair: SentencePair, rng: Random) -> SentencePair | None:
    if not _has_case(pair.src):
        return None
    shortest = rng.choice((0, _LONGEST_SHORT_WORD + 1))
    return SentencePair(*(_title_cased(text, shortest) for text in pair))


def _title_cased(text: str, shortest: int) -> str:
    """Capitalize the first word, and those of at least ``shortest`` letters."""
    return " ".join(
        _FIRST_LETTER.sub(lambda found: found[0].upper(), word)
        if not n or sum(map(str.isalpha, word)) >= shortest
        else word
        for n, word in enumerate(text.split(" "))
    )


def _has_case(text: str) -> bool:
    """Tell whether nearly all letters have case: a Chinese sentence with an English name stays as it is."""
    n_letters = sum(map(str.isalpha, text))
    return sum(character.lower() != character.upper() for character in text) > _NEARLY_ALL * n_letters


def _unpunctuated(pair: SentencePair, rng: Random) -> SentencePair | None:
    bare = SentencePair(*(_END.sub("", text.rstrip()).rstrip() for text in pair))
    return bare if all(bare) and all(_END.search(text.rstrip()) for text in pair) else None


def _with_other_numbers(pair: SentencePair, rng: Random) -> SentencePair | None:
    """Replace the numbers that are the same on both sides; insert one if there are none."""
    numbers = [{number.text for number in find_numbers(text)} for text in pair]
    shared = sorted(number for number in set.intersection(*numbers) if len(number) >= _SHORTEST_NUMBER)
    if not shared:
        return _inserted(pair, inserts.number(rng), rng)
    others = {number: inserts.with_other_digits(number, rng) for number in shared}
    pattern = re.compile(rf"(?<!\d)(?:{'|'.join(map(re.escape, sorted(others, key=len, reverse=True)))})(?!\d)")
    return SentencePair(*(pattern.sub(lambda found: others[found[0]], text) for text in pair))


def _with_placeholder(pair: SentencePair, rng: Random) -> SentencePair | None:
    return _inserted(pair, inserts.placeholder(rng), rng)


def _with_tags(pair: SentencePair, rng: Random) -> SentencePair | None:
    """Put tags around a word that both sides share, or around both sides."""
    opening, closing = inserts.tags(rng)
    shared = [word for word in _WORD.findall(pair.src) if all(len(_places(word, text)) == 1 for text in pair)]
    if not shared:
        return SentencePair(*(f"{opening}{text}{closing}" for text in pair))
    word = rng.choice(shared)
    return SentencePair(*(_places_of(word).sub(f"{opening}{word}{closing}", text) for text in pair))


def _places(word: str, text: str) -> list[str]:
    return _places_of(word).findall(text)


def _places_of(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){word}(?!\w)")


def _with_url(pair: SentencePair, rng: Random) -> SentencePair | None:
    return _inserted(pair, inserts.url(rng), rng)


def _with_emoji(pair: SentencePair, rng: Random) -> SentencePair | None:
    return _inserted(pair, inserts.emoji(rng), rng)


def _inserted(pair: SentencePair, text: str, rng: Random) -> SentencePair:
    """Insert a text at the end of both sides, or at their start, or between words at the same relative place."""
    where = rng.random()
    if where < 0.5:
        return SentencePair(*(f"{side} {text}" for side in pair))
    if where < 0.6:
        return SentencePair(*(f"{text} {side}" for side in pair))
    relative = rng.random()
    return SentencePair(*(_inserted_inside(side, text, relative) for side in pair))


def _inserted_inside(side: str, text: str, relative: float) -> str:
    ends = [found.end() for found in _BETWEEN_WORDS.finditer(side)]
    if not ends:
        return f"{side} {text}"
    place = ends[int(relative * len(ends))]
    return f"{side[:place].rstrip()} {text} {side[place:]}"


_KINDS: dict[str, Kind] = {  # in the order that they are applied: what is inserted keeps its letters
    "typos": _with_typos,
    "title": _in_title_case,
    "upper": _in_capitals,
    "unpunctuated": _unpunctuated,
    "numbers": _with_other_numbers,
    "placeholders": _with_placeholder,
    "tags": _with_tags,
    "urls": _with_url,
    "emoji": _with_emoji,
}
_NAMES = ("joined", *_KINDS)
