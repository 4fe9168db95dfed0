"""Variations of training pairs, drawn anew for each epoch: text as users write it, where a corpus has edited text.

A model can only translate what it has seen something like: without such pairs, ALL CAPS and emoji are spelled in tokens
that it never learned. What is inserted is the same on both sides, so the model learns to copy it.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np
from pydantic import JsonValue

from mtformer.config import AugmentConfig, LanguagePair
from mtformer.data import inserts
from mtformer.text.languages import base_language, is_written_with_spaces, language_of_script
from mtformer.text.numbers import Number, find_numbers
from mtformer.text.sources import SentencePair

Random = random.Random

_VERSION = 2  # of the variations, which are cached: raise it when a seed gives others
Kind = Callable[[SentencePair, Random], SentencePair | None]
Upper = Callable[[str], str]

_CHUNK = 10_000  # pairs varied at once
_MARKS = ".!?…。！？"
_CLOSING = "\"'”’»“)"
_END = re.compile(rf"(?<![{_MARKS}])[{_MARKS}]++$")  # begins and ends where a run does, so that the time is linear
_ENDED = re.compile(rf"[{_MARKS}][{_CLOSING}]*$")
_FIRST_LETTER = re.compile(r"(?<!\S)[^\w\s]*[^\W\d_]")  # of a word, with the quotes and brackets before it
_LONGEST_SHORT_WORD = 3  # letters, of the words that titles may leave in small letters
_NEARLY_ALL = 0.9
_DOTTED = ("tr", "az")  # languages whose i becomes İ
_GEORGIAN = re.compile("[\u10d0-\u10ff]")  # whose capitals nobody writes
_FIXED = re.compile(r"[A-Za-z\u00c0-\u052f]|\.\s+\w")  # after a number: that of an ordinal (21st, 21.) or of a unit
_WORD = re.compile(r"[^\W\d_]{3,}")
_WHOLE_WORD = re.compile(r"\w+")
_NO_SPACE = re.compile(r"\S+")
_COPIED = re.compile(r"[@/<>{}_=%$]|\w[.:]\w")  # in addresses and the like, which typos would break
_BETWEEN_WORDS = re.compile(r"(?<!\s)\s++(?=\w)|[，、；：](?=\w)")
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

    def __init__(self, shares: AugmentConfig, *, seed: int, languages: Sequence[LanguagePair] = ()) -> None:
        """Take the share of each kind of variation, and the directions of the text."""
        self._shares, self._seed = shares, seed
        self._dotted = [_are_dotted(codes) for codes in zip(*languages, strict=True)] or [False, False]
        self._kinds = _kinds_for(self._dotted)

    @property
    def identity(self) -> JsonValue:
        """What the variations depend on besides the text and the epoch."""
        return [_VERSION, self._seed, self._shares.model_dump(mode="json"), *self._dotted]

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
            pair = self._varied(pairs[index], following, names, generator)
            if pair != pairs[index]:
                varied[index] = pair
        return varied

    def _draws(self, n: int, first: int, epoch: int) -> np.ndarray:
        """Draw from [0, 1): (n, 1 + kinds), where the first column is the seed of the rest."""
        n_columns = 1 + len(_NAMES)
        generator = np.random.PCG64([self._seed, epoch])
        generator.advance(first * n_columns)  # as if the draws for the pairs before were done
        return np.random.Generator(generator).random((n, n_columns))

    def _varied(
        self, pair: SentencePair, following: SentencePair | None, names: Sequence[str], rng: Random
    ) -> SentencePair:
        """Apply kinds of variations one after the other; those that do not suit the pair leave it as it is."""
        if not all(map(str.strip, pair)):
            return pair
        if "joined" in names and following and all(map(_ENDED.search, pair)) and all(map(str.strip, following)):
            pair = SentencePair(*map(_joined, pair, following))
        for name in names:
            if name in self._kinds:
                pair = self._kinds[name](pair, rng) or pair
        return pair


@dataclass(frozen=True)
class TokenizerText:
    """The text to train a tokenizer on, which is to have tokens for the words of the variations; iterable repeatedly.

    It has no typos: the tokens of misspelled words would take the place of others. And no emoji: each would need a
    token, where the model can learn to copy their bytes.
    """

    pairs: Iterable[SentencePair]
    shares: AugmentConfig
    seed: int
    languages: Sequence[LanguagePair] = ()

    def __len__(self) -> int:
        return len(self.pairs) if isinstance(self.pairs, Sized) else sum(1 for _ in self.pairs)

    def __iter__(self) -> Iterator[SentencePair]:
        shares = self.shares.model_copy(update={"typos": 0, "emoji": 0})
        augmenter = Augmenter(shares, seed=self.seed, languages=self.languages)
        stream = iter(self.pairs)
        first = 0
        while chunk := list(islice(stream, _CHUNK)):
            varied = augmenter.vary(chunk, first, epoch=0)
            yield from (varied.get(index, pair) for index, pair in enumerate(chunk))
            first += len(chunk)


def _joined(text: str, following: str) -> str:
    space = " " if is_written_with_spaces(language_of_script(text)) else ""
    return f"{text.rstrip()}{space}{following.lstrip()}"


def _with_typos(pair: SentencePair, rng: Random) -> SentencePair | None:
    """Mistype one letter or more of the source, never the first of a word, which people seldom mistype."""
    src = pair.src
    places = [
        place
        for part in _NO_SPACE.finditer(src)
        if not _COPIED.search(part[0])
        for word in _WORD.finditer(src, *part.span())
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


def _are_dotted(codes: Iterable[str]) -> bool | None:
    """Tell whether an i of some languages becomes İ; None if it does in some of them only."""
    found = {base_language(code) in _DOTTED for code in codes}
    return found.pop() if len(found) == 1 else None


def _kinds_for(dotted: Sequence[bool | None]) -> dict[str, Kind]:
    """Return the kinds that suit a text: no capitals if its languages disagree on how to form them."""
    if None in dotted:
        return {name: kind for name, kind in _KINDS.items() if kind not in (_in_capitals, _in_title_case)}
    uppers = [_dotted_upper if is_dotted else _upper for is_dotted in dotted]
    return _KINDS | {
        "title": partial(_in_title_case, uppers=uppers),
        "upper": partial(_in_capitals, uppers=uppers),
    }


def _upper(text: str) -> str:
    return text if _GEORGIAN.search(text) else text.upper()


def _dotted_upper(text: str) -> str:
    return text.replace("i", "İ").upper()


def _in_capitals(pair: SentencePair, rng: Random, uppers: Sequence[Upper] = (_upper, _upper)) -> SentencePair | None:
    if not _has_case(pair.src):
        return None
    src = pair.src.replace("ß", "ẞ") if rng.random() < 0.5 else pair.src  # people write either, and "SS"
    return SentencePair(uppers[0](src), uppers[1](pair.tgt))


def _in_title_case(pair: SentencePair, rng: Random, uppers: Sequence[Upper] = (_upper, _upper)) -> SentencePair | None:
    if not _has_case(pair.src):
        return None
    shortest = rng.choice((0, _LONGEST_SHORT_WORD + 1))
    return SentencePair(*(_title_cased(text, shortest, upper) for text, upper in zip(pair, uppers, strict=True)))


def _title_cased(text: str, shortest: int, upper: Upper) -> str:
    """Capitalize the first word, and those of at least ``shortest`` letters."""
    return " ".join(
        _FIRST_LETTER.sub(lambda found: upper(found[0]), word)
        if not n or sum(map(str.isalpha, word)) >= shortest
        else word
        for n, word in enumerate(text.split(" "))
    )


def _has_case(text: str) -> bool:
    """Tell whether nearly all letters have case: a Chinese sentence with an English name stays as it is."""
    n_letters = sum(map(str.isalpha, text))
    n_cased = sum(character.lower() != character.upper() for character in text)
    return n_cased > _NEARLY_ALL * n_letters and not _GEORGIAN.search(text)


def _unpunctuated(pair: SentencePair, rng: Random) -> SentencePair | None:
    bare = SentencePair(*(_END.sub("", text.rstrip()).rstrip() for text in pair))
    return bare if all(bare) and all(_END.search(text.rstrip()) for text in pair) else None


def _with_other_numbers(pair: SentencePair, rng: Random) -> SentencePair | None:
    """Replace the numbers that are the same on both sides; insert one if there are none."""
    numbers = [list(find_numbers(text)) for text in pair]
    shared = set.intersection(*({number.text for number in found} for found in numbers))
    shared -= {n.text for text, found in zip(pair, numbers, strict=True) for n in found if _FIXED.match(text, n.end)}
    free = sorted(number for number in shared if len(number) >= _SHORTEST_NUMBER)
    if not free:
        return _inserted(pair, inserts.number(rng), rng)
    others = {number: inserts.with_other_digits(number, rng) for number in free}
    return SentencePair(*(_with_numbers(text, found, others) for text, found in zip(pair, numbers, strict=True)))


def _with_numbers(text: str, numbers: Sequence[Number], others: Mapping[str, str]) -> str:
    """Replace numbers of a text, from the last to the first, by those that ``others`` has for them."""
    for number in reversed(numbers):
        text = text[: number.start] + others.get(number.text, number.text) + text[number.end :]
    return text


def _with_placeholder(pair: SentencePair, rng: Random) -> SentencePair | None:
    return _inserted(pair, inserts.placeholder(rng), rng)


def _with_tags(pair: SentencePair, rng: Random) -> SentencePair | None:
    """Put tags around a word that both sides share, or around both sides."""
    opening, closing = inserts.tags(rng)
    counts = [Counter(_WHOLE_WORD.findall(text)) for text in pair]
    shared = [word for word in _WORD.findall(pair.src) if all(count[word] == 1 for count in counts)]
    if not shared:
        return SentencePair(*(f"{opening}{text}{closing}" for text in pair))
    word = rng.choice(shared)
    return SentencePair(*(re.sub(rf"(?<!\w){word}(?!\w)", f"{opening}{word}{closing}", text) for text in pair))


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
