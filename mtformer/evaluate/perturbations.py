"""Perturbed sentences: what users write, and test sets do not have."""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

_LETTERS = r"[^\W\d_]+"
_FULL_STOPS = (".", "。")
_EMOJI = ("😀", "🎉", "👍🏽", "🚗", "❤️")
_CHARACTERS_PER_TYPO = 30


class Pair(NamedTuple):
    """A sentence of the test set, with its first reference and whether spaces separate the words of the source."""

    src: str
    ref: str
    spaced: bool


class Case(NamedTuple):
    """A perturbed sentence.

    Attributes:
        src: what the model is given.
        ref: what its translation is compared with; None if there is no reference.
        added: what the translation should contain as it is; empty for nothing.
    """

    src: str
    ref: str | None
    added: str = ""


def _clean(pair: Pair, rng: random.Random) -> Case:
    return Case(pair.src, pair.ref)


def _all_caps(pair: Pair, rng: random.Random) -> Case:
    return Case(pair.src.upper(), pair.ref)


def _title_case(pair: Pair, rng: random.Random) -> Case:
    return Case(re.sub(r"(?<!\S)\S", lambda found: found[0].upper(), pair.src), pair.ref)


def _no_full_stop(pair: Pair, rng: random.Random) -> Case:
    if not pair.src.rstrip().endswith(_FULL_STOPS):
        return Case(pair.src, pair.ref)
    return Case(pair.src.rstrip().rstrip(".。"), pair.ref.rstrip().rstrip(".。"))


def _doubled_spaces(pair: Pair, rng: random.Random) -> Case:
    return Case(pair.src.replace(" ", "  "), pair.ref)


def _typos(pair: Pair, rng: random.Random) -> Case:
    """Swap neighbouring letters: one pair for every 30 characters, not the first letter of a word if it has spaces."""
    src = pair.src
    pattern = r"(?<=[^\W\d_])[^\W\d_]{2}" if pair.spaced else r"[^\W\d_]{2}"
    places = [i for i in range(len(src)) if re.compile(pattern).match(src, i) and src[i] != src[i + 1]]
    for i in rng.sample(places, min(len(places), 1 + len(src) // _CHARACTERS_PER_TYPO)):
        src = f"{src[:i]}{src[i + 1]}{src[i]}{src[i + 2 :]}"
    return Case(src, pair.ref)


def _emoji(pair: Pair, rng: random.Random) -> Case:
    return _with_appended(pair, rng.choice(_EMOJI))


def _url(pair: Pair, rng: random.Random) -> Case:
    return _with_appended(pair, f"https://example.org/news/{rng.randrange(10_000)}?id={rng.randrange(100)}")


def _with_appended(pair: Pair, added: str) -> Case:
    return Case(f"{pair.src} {added}", f"{pair.ref} {added}", added)


def _one_word(pair: Pair, rng: random.Random) -> Case:
    """Keep one word, or two neighbouring characters where no spaces separate words."""
    words = re.findall(_LETTERS if pair.spaced else r"[^\W\d_]{2}", pair.src)
    return Case(rng.choice(words) if words else pair.src, None)


def _wrong_language(pair: Pair, rng: random.Random) -> Case:
    return Case(pair.ref, pair.ref)


PERTURBATIONS: Mapping[str, Callable[[Pair, random.Random], Case]] = {
    "clean": _clean,
    "all caps": _all_caps,
    "title case": _title_case,
    "no full stop": _no_full_stop,
    "doubled spaces": _doubled_spaces,
    "typos": _typos,
    "emoji appended": _emoji,
    "URL appended": _url,
    "one word": _one_word,
    "wrong language": _wrong_language,
}


def perturb(name: str, pairs: Sequence[Pair]) -> dict[int, Case]:
    """Perturb sentences; return the cases that differ from the clean text by their places, the same at every call."""
    change = PERTURBATIONS[name]
    cases = {i: change(pair, random.Random(f"{name} {i}")) for i, pair in enumerate(pairs)}
    return {i: case for i, case in cases.items() if name == "clean" or case.src != pairs[i].src}
