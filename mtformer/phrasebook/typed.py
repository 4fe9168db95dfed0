"""Sentences as people type them: contracted, in small letters, without a full stop, with other words for *please*."""

import random
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

_NEGATIONS = {
    "cannot": "can't",
    "will not": "won't",
    **{f"{word} not": f"{word}n't" for word in "do does did is are was were has have".split()},
}
_CONTRACTIONS = {
    "I am": "I'm",
    **{f"{who} are": f"{who}'re" for who in ("you", "we", "they")},
    **{f"{what} is": f"{what}'s" for what in "he she it there where what who".split()},
    **{f"{who} will": f"{who}'ll" for who in "I you he she it we they".split()},
    **{f"{who} have already": f"{who}'ve already" for who in ("I", "you", "we", "they")},
    **{f"{who} has already": f"{who}'s already" for who in ("he", "she")},
}
_SHORT = {
    form(full): form(short)
    for full, short in (_NEGATIONS | _CONTRACTIONS).items()
    for form in (str, lambda text: text[0].upper() + text[1:])
}
_FULL = {short.lower(): full.lower() for full, short in _SHORT.items()} | {"thanks": "thank you"}


def _are_from(match: re.Match[str]) -> str:
    return f"{match[1]} are {match[2] or ''}from"


def _is_from(match: re.Match[str]) -> str:
    verb = "is" if match[2] else "are"
    return f"{'Where ' + verb if match[1] == 'Where d' else verb.capitalize()} {match[2] or match[3]} from"


class Rule(NamedTuple):
    """Another way to type something: the text it replaces, the replacement, and its share of the possible places."""

    pattern: re.Pattern[str]
    replacement: str | Callable[[re.Match[str]], str]
    share: float


def _contracted(match: re.Match[str]) -> str:
    return _SHORT[match[0]]


def _full(forms: Iterable[str]) -> str:
    return rf"\b(?:{'|'.join(full for full in _SHORT if full.lower() in {form.lower() for form in forms})})\b"


def _small(text: str) -> str:
    """Return ``text`` without its capital, unless that is the pronoun *I*."""
    return text if text.startswith(("I ", "I'")) else text[0].lower() + text[1:]


def _not_any(match: re.Match[str]) -> str:
    if match[1] == "are":
        return "There aren't any "
    return f"There isn't {'an' if match[2] in 'aeiou' else 'a'} "


_ANY_SHORT = re.compile(rf"\b(?:{'|'.join(_FULL)})\b")
_ENGLISH = [
    Rule(re.compile(r"^(.+), please\.$"), lambda match: f"I would like {_small(match[1])}, please.", 0.3),
    Rule(re.compile(r"^Please (.+)\.$"), lambda match: f"{match[1][0].upper()}{match[1][1:]}, please.", 0.4),
    Rule(re.compile(r"\b(I|[Ww]e) want\b"), r"\1 would like", 0.2),
    Rule(re.compile(r"\b(I|[Ww]e) would\b"), r"\1'd", 0.5),
    Rule(re.compile(r"\bcomes from\b"), "is from", 0.5),
    Rule(re.compile(r"\bdoes not come from\b"), "is not from", 0.5),
    Rule(re.compile(r"\bI (do not )?come from\b"), lambda match: f"I am {'not ' * bool(match[1])}from", 0.5),
    Rule(re.compile(r"\b(You|[Ww]e|[Tt]hey) (?:do (not ))?come from\b"), _are_from, 0.5),
    Rule(re.compile(r"^(Where d|D)o(?:es (.+?)| (you|they)) come from\b"), _is_from, 0.5),
    Rule(re.compile(r"\b([Tt])hank you(?= for|,|!|\.)"), r"\1hanks", 0.4),
    Rule(re.compile(r"\bhundred and\b"), "hundred", 0.4),
    Rule(re.compile(r"^There (is|are) no (?=(.))"), _not_any, 0.5),
    Rule(re.compile(r"^Hello\b"), "Hi", 0.3),
    Rule(re.compile(r"^(Why (?:do|does|did|is|are)) (.+?) not\b"), r"\1n't \2", 0.6),
    Rule(re.compile(_full(_NEGATIONS)), _contracted, 0.5),
    Rule(re.compile(rf"{_full(_CONTRACTIONS)}(?= \w)(?! not\b(?<=will not))"), _contracted, 0.6),
]
_SMALL, _OPEN_IF_SMALL, _OPEN = 0.12, 0.6, 0.04  # shares of texts in small letters, and of those without a full stop


class Typist:
    """Types sentences as people do, the same ones for the same seed."""

    def __init__(self, seed: str, language: str) -> None:
        """Take the language, for which there may be other ways to say something."""
        self._random = random.Random(seed)
        self._rules = _ENGLISH if language == "en" else []

    def type(self, text: str) -> str:
        """Return ``text`` as one could type it; most texts as they are, or with a contraction."""
        chance = self._random.random
        for rule in self._rules:
            if rule.pattern.search(text) and chance() < rule.share:
                text = rule.pattern.sub(rule.replacement, text)
        is_small = chance() < _SMALL
        if chance() < (_OPEN_IF_SMALL if is_small else _OPEN):
            text = text.rstrip(".!?。！？")
        return text.lower() if is_small else text


def plain(text: str) -> str:
    """Normalize an English text regardless of how it was typed: lower case, no contractions, no punctuation."""
    text = text.lower().replace("’", "'").rstrip(".!?")
    return _ANY_SHORT.sub(lambda match: _FULL[match[0]], text)
