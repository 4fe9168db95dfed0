"""The kinds of variations of a pair."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random

from mtformer.text.languages import base_language
from mtformer.text.pairs import SentencePair
from mtformer.text.words import FIRST_LETTER

_EMOJI = (  # ranges without gaps: faces, animals, hands and things, vehicles, food, celebrations, sports
    *((0x1F600, 0x1F644), (0x1F400, 0x1F43E), (0x1F440, 0x1F4A9), (0x1F680, 0x1F69D), (0x1F337, 0x1F37C)),
    *((0x1F380, 0x1F393), (0x1F3A0, 0x1F3C4)),
)
_HANDS = (0x1F446, 0x1F450)
_SKINS = (0x1F3FB, 0x1F3FF)
_AS_EMOJI = "\ufe0f"  # shows a sign of older fonts as an emoji
_OLDER = "❤☀☎✈✔☺✌☕⚡"
Kind = Callable[[SentencePair, Random], SentencePair | None]
Upper = Callable[[str], str]
_LONGEST_SHORT_WORD = 3  # letters, of the words that titles may leave in small letters
_NEARLY_ALL = 0.9
_DOTTED = ("tr", "az")  # languages whose i becomes İ
_GEORGIAN = re.compile("[\u10d0-\u10ff]")  # whose capitals nobody writes
_WORD = re.compile(r"[^\W\d_]{3,}")
_NO_SPACE = re.compile(r"\S+")
_COPIED = re.compile(r"[@/<>{}_=%$]|\w[.:]\w")  # in addresses and the like, which typos would break
_BETWEEN_WORDS = re.compile(r"(?<!\s)\s++(?=\w)|[，、；：](?=\w)")
_CHARACTERS_PER_TYPO = 30
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


def _random_emoji(rng: Random) -> str:
    """Return an emoji; some consist of two characters."""
    if rng.random() < 0.1:
        return rng.choice(_OLDER) + _AS_EMOJI
    character = _between(*rng.choice(_EMOJI), rng)
    is_hand = _HANDS[0] <= ord(character) <= _HANDS[1]
    return character + _between(*_SKINS, rng) if is_hand and rng.random() < 0.5 else character


def _between(first: int, last: int, rng: Random) -> str:
    return chr(rng.randrange(first, last + 1))


def kinds_for(dotted: Sequence[bool | None]) -> dict[str, Kind]:
    """Return the kinds that suit a text, by their names.

    Args:
        dotted: what :func:`are_dotted` says of each side; without capitals if its languages disagree on these.
    """
    uppers = [_dotted_upper if is_dotted else _upper for is_dotted in dotted]
    kinds: dict[str, Kind] = {
        "typos": _with_typos,
        "title": partial(_in_title_case, uppers=uppers),
        "upper": partial(_in_capitals, uppers=uppers),
        "emoji": _with_emoji,
    }
    if None in dotted:
        del kinds["title"], kinds["upper"]
    return kinds


def are_dotted(codes: Iterable[str]) -> bool | None:
    """Tell whether an i of some languages becomes İ; None if it does in some of them only."""
    dotted = {base_language(code) in _DOTTED for code in codes}
    return dotted.pop() if len(dotted) == 1 else None


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


def _upper(text: str) -> str:
    return text if _GEORGIAN.search(text) else text.upper()


def _dotted_upper(text: str) -> str:
    return text.replace("i", "İ").upper()


def _in_capitals(pair: SentencePair, rng: Random, uppers: Sequence[Upper]) -> SentencePair | None:
    if not _has_case(pair.src):
        return None
    src = pair.src.replace("ß", "ẞ") if rng.random() < 0.5 else pair.src  # people write either, and "SS"
    return SentencePair(uppers[0](src), uppers[1](pair.tgt))


def _in_title_case(pair: SentencePair, rng: Random, uppers: Sequence[Upper]) -> SentencePair | None:
    if not _has_case(pair.src):
        return None
    shortest = rng.choice((0, _LONGEST_SHORT_WORD + 1))
    return SentencePair(*(_title_cased(text, shortest, upper) for text, upper in zip(pair, uppers, strict=True)))


def _title_cased(text: str, shortest: int, upper: Upper) -> str:
    """Capitalize the first word, and those of at least ``shortest`` letters."""
    return " ".join(
        FIRST_LETTER.sub(lambda letter: upper(letter[0]), word)
        if not n or sum(map(str.isalpha, word)) >= shortest
        else word
        for n, word in enumerate(text.split(" "))
    )


def _has_case(text: str) -> bool:
    """Tell whether nearly all letters have case: a Chinese sentence with an English name stays as it is."""
    n_letters = sum(map(str.isalpha, text))
    n_cased = sum(character.lower() != character.upper() for character in text)
    return n_cased > _NEARLY_ALL * n_letters and not _GEORGIAN.search(text)


def _with_emoji(pair: SentencePair, rng: Random) -> SentencePair | None:
    """Insert an emoji at the end of both sides, or at their start, or between words at the same relative place."""
    emoji, where = _random_emoji(rng), rng.random()
    if where < 0.5:
        return SentencePair(*(f"{side} {emoji}" for side in pair))
    if where < 0.6:
        return SentencePair(*(f"{emoji} {side}" for side in pair))
    relative = rng.random()
    return SentencePair(*(_inserted(side, emoji, relative) for side in pair))


def _inserted(side: str, text: str, relative: float) -> str:
    ends = [space.end() for space in _BETWEEN_WORDS.finditer(side)]
    if not ends:
        return f"{side} {text}"
    place = ends[int(relative * len(ends))]
    return f"{side[:place].rstrip()} {text} {side[place:]}"


NAMES = tuple(kinds_for((False, False)))  # in the order that they are applied: what is inserted keeps its letters
