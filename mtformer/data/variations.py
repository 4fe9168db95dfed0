"""The kinds of variations of a pair, and random texts to insert that a translation copies."""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random

from mtformer.text.languages import base_language, is_written_with_spaces, language_of_script
from mtformer.text.numbers import Number, find_numbers
from mtformer.text.pairs import SentencePair

# In all patterns, 0 is a digit, @ a word, and # a domain.
_NUMBERS = ("00", "000", "0000", "00000", "00:00", "(00)", "00-00", "00/00")
_PLACEHOLDERS = ("{@}", "{{@}}", "${@}", "%(@)s", "__@__", "[@]", ":@", "{0}", "%0", "$0", "[0]", "%s", "%d")
_NAMES = ("name", "user", "count", "n", "date", "title", "file", "first_name", "total", "link", "email", "id")
_TAGS = ("b", "i", "u", "em", "strong", "span", "code", "p", "a", "0")
_URLS = ("https://@.#/@", "https://www.@.#/@/0000", "http://@.#/@?@=00", "www.@.#", "https://@.@.#/@/@.html")
_E_MAIL = ("@", "@.#")  # what is before and after the at sign
_E_MAIL_SHARE = 0.2
_DOMAINS = ("com", "org", "net", "de", "cn", "eu", "io", "edu")
_SYMBOL = re.compile(r"(?P<leading>(?<![\d.,:])0(?=[.,:]?0))|[0@#]")  # no zero leads several digits
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


def _random_emoji(rng: Random) -> str:
    """Return an emoji; some consist of two characters."""
    if rng.random() < 0.1:
        return rng.choice(_OLDER) + _AS_EMOJI
    character = _between(*rng.choice(_EMOJI), rng)
    is_hand = _HANDS[0] <= ord(character) <= _HANDS[1]
    return character + _between(*_SKINS, rng) if is_hand and rng.random() < 0.5 else character


def _between(first: int, last: int, rng: Random) -> str:
    return chr(rng.randrange(first, last + 1))


def _filled(pattern: str, rng: Random) -> str:
    def fill(symbol: re.Match[str]) -> str:
        if symbol[0] == "#":
            return rng.choice(_DOMAINS)
        if symbol[0] == "@":
            return _word(rng)
        return str(rng.randrange(1 if symbol["leading"] else 0, 10))

    return _SYMBOL.sub(fill, pattern)


def _word(rng: Random) -> str:
    """Return a common name, or letters that only copying gets right."""
    if rng.random() < 0.5:
        return rng.choice(_NAMES)
    return "".join(rng.choice(string.ascii_lowercase) for _ in range(rng.randrange(3, 9)))


def kinds_for(dotted: Sequence[bool | None]) -> dict[str, Kind]:
    """Return the kinds that suit a text and need no other pair, by their names.

    Args:
        dotted: what :func:`are_dotted` says of each side; without capitals if its languages disagree on these.
    """
    uppers = [_dotted_upper if is_dotted else _upper for is_dotted in dotted]
    kinds: dict[str, Kind] = {
        "typos": _with_typos,
        "title": partial(_in_title_case, uppers=uppers),
        "upper": partial(_in_capitals, uppers=uppers),
        "unpunctuated": _unpunctuated,
        "numbers": _with_other_numbers,
        "placeholders": partial(_with_one_of, patterns=_PLACEHOLDERS),
        "tags": _with_tags,
        "urls": _with_url,
        "emoji": _with_emoji,
    }
    if None in dotted:
        del kinds["title"], kinds["upper"]
    return kinds


def are_dotted(codes: Iterable[str]) -> bool | None:
    """Tell whether an i of some languages becomes İ; None if it does in some of them only."""
    dotted = {base_language(code) in _DOTTED for code in codes}
    return dotted.pop() if len(dotted) == 1 else None


def join_pairs(pair: SentencePair, following: SentencePair) -> SentencePair | None:
    """Put the next pair on the same line; None unless the first one ends with a mark on both sides."""
    if not all(map(_ENDED.search, pair)) or following.is_blank:
        return None
    return SentencePair(*map(_join, pair, following))


def _join(text: str, following: str) -> str:
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
        _FIRST_LETTER.sub(lambda letter: upper(letter[0]), word)
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
    shared = set.intersection(*({number.text for number in of_side} for of_side in numbers))
    shared -= {
        n.text for text, of_side in zip(pair, numbers, strict=True) for n in of_side if _FIXED.match(text, n.end)
    }
    free = sorted(number for number in shared if len(number) >= _SHORTEST_NUMBER)
    if not free:
        return _with_one_of(pair, rng, _NUMBERS)
    replacements = {number: _filled(re.sub(r"\d", "0", number), rng) for number in free}
    return SentencePair(*(_with_numbers(*side, replacements) for side in zip(pair, numbers, strict=True)))


def _with_numbers(text: str, numbers: Sequence[Number], replacements: Mapping[str, str]) -> str:
    """Replace numbers of a text, from the last to the first, by those that ``replacements`` has for them."""
    for number in reversed(numbers):
        text = text[: number.start] + replacements.get(number.text, number.text) + text[number.end :]
    return text


def _with_one_of(pair: SentencePair, rng: Random, patterns: Sequence[str]) -> SentencePair | None:
    return _inserted(pair, _filled(rng.choice(patterns), rng), rng)


def _with_tags(pair: SentencePair, rng: Random) -> SentencePair | None:
    """Put tags around a word that both sides share, or around both sides."""
    name = _filled(rng.choice(_TAGS), rng)
    opening, closing = f"<{name}>", f"</{name}>"
    counts = [Counter(_WHOLE_WORD.findall(text)) for text in pair]
    shared = [word for word in _WORD.findall(pair.src) if all(count[word] == 1 for count in counts)]
    if not shared:
        return SentencePair(*(f"{opening}{text}{closing}" for text in pair))
    word = rng.choice(shared)
    return SentencePair(*(re.sub(rf"(?<!\w){word}(?!\w)", f"{opening}{word}{closing}", text) for text in pair))


def _with_url(pair: SentencePair, rng: Random) -> SentencePair | None:
    """Insert a URL or an e-mail address."""
    if rng.random() < _E_MAIL_SHARE:
        return _inserted(pair, "@".join(_filled(part, rng) for part in _E_MAIL), rng)
    return _with_one_of(pair, rng, _URLS)


def _with_emoji(pair: SentencePair, rng: Random) -> SentencePair | None:
    return _inserted(pair, _random_emoji(rng), rng)


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
    ends = [space.end() for space in _BETWEEN_WORDS.finditer(side)]
    if not ends:
        return f"{side} {text}"
    place = ends[int(relative * len(ends))]
    return f"{side[:place].rstrip()} {text} {side[place:]}"


NAMES = ("joined", *kinds_for((False, False)))  # in the order that they are applied: what is inserted keeps its letters
