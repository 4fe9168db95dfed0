"""Sets of texts as 64-bit hashes: eight bytes for each, and the same in every process."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import xxhash
from numpy.typing import NDArray

from mtformer.config import LanguagePair
from mtformer.text.languages import is_written_with_spaces
from mtformer.text.pairs import SentencePair

Hashes = NDArray[np.uint64]

_LEAST_LETTERS = 12  # of a sentence that must not be in several sets: short phrases are in all of them
_MOST_TARGETS = 20


def hashes(texts: Iterable[str]) -> Hashes:
    """Return the hash of each text (XXH3)."""
    return np.fromiter((xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")) for text in texts), np.uint64)


def exact_key(text: str) -> str:
    """Return the key of exact duplicates: the text with single spaces between its words."""
    return " ".join(text.split())


class _Kept(dict[int, int | None]):
    """A table for ``str.translate`` that keeps some characters and the marks of letters, and removes the others."""

    def __init__(self, is_kept: Callable[[str], bool]) -> None:
        super().__init__()
        self._is_kept = is_kept

    def __missing__(self, code: int) -> int | None:
        self[code] = code if self._is_kept(chr(code)) or _is_mark(chr(code)) else None
        return self[code]


def _is_mark(character: str) -> bool:
    """Tell whether it belongs to the letter before it, as the vowel signs of Thai and Hindi do.

    Unicode's marks include the selectors of variants, such as that of an emoji, which look alike.
    """
    is_selector = unicodedata.name(character, "").startswith("VARIATION SELECTOR")
    return unicodedata.category(character).startswith("M") and not is_selector


_LETTERS, _LETTERS_AND_DIGITS = _Kept(str.isalpha), _Kept(str.isalnum)


def letters_key(text: str) -> str:
    """Return the letters of a text without case, or the text itself if it has none."""
    return _folded(text).translate(_LETTERS) or text


def near_key(text: str) -> str:
    """Return the key of near duplicates: the letters and digits without case, or the text itself if it has none."""
    return _folded(text).translate(_LETTERS_AND_DIGITS) or text


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())


class HashSet:
    """A growing set of hashes as sorted arrays, each at least twice as long as the next; 8 bytes for each hash.

    Two texts of a million have the same hash with a probability of 3e-8.
    """

    def __init__(self) -> None:
        self._runs: list[Hashes] = []

    def contains(self, values: Hashes) -> NDArray[np.bool_]:
        """Return for each hash whether the set contains it."""
        is_known = np.zeros(len(values), dtype=np.bool_)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, values), len(run) - 1)
            is_known |= run[places] == values
        return is_known

    def add(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Add hashes, and return for each whether the set or an earlier one of them contained it."""
        values, first = np.unique(hashes, return_index=True)
        repeated = np.ones(len(hashes), dtype=np.bool_)
        repeated[first] = self.contains(values)
        if len(new := values[~repeated[first]]):
            self._runs.append(new)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last = self._runs.pop()
            self._runs[-1] = np.sort(np.concatenate([self._runs[-1], last]), kind="stable")
        return repeated


def repeated(seen: HashSet, key: Callable[[str], str], pairs: Sequence[SentencePair]) -> list[bool]:
    """Return for each pair whether one with the same keys has been ``seen``, and add it to those."""
    return seen.add(hashes(f"{key(src)}\n{key(tgt)}" for src, tgt in pairs)).tolist()


class ManyTargets:
    """Counts the different translations of each source that is no short phrase: people write at most 20."""

    def __init__(self, src_lang: str) -> None:
        """Count sources in the language ``src_lang``."""
        self._least = _least_letters(src_lang)
        self._pairs, self._sources = HashSet(), HashSet()
        self._counts: Counter[int] = Counter()  # of the targets after the first one

    def add(self, pairs: Sequence[SentencePair]) -> list[bool]:
        """Return for each pair whether its source had 20 other targets before."""
        is_repeated = repeated(self._pairs, exact_key, pairs)
        keys = hashes(exact_key(pair.src) for pair in pairs)
        is_known = self._sources.add(keys).tolist()
        many = []
        for pair, key, is_repeat, known in zip(pairs, keys.tolist(), is_repeated, is_known, strict=True):
            if known and not is_repeat and len(letters_key(pair.src)) >= self._least:
                self._counts[key] += 1
            many.append(self._counts[key] >= _MOST_TARGETS)
        return many


class HeldOut:
    """Finds the sentences of validation and test sets, in whatever direction these are translated, in other text."""

    def __init__(self) -> None:
        self._sets: defaultdict[tuple[str, bool], HashSet] = defaultdict(HashSet)  # by language, exact and near
        self.digest = 0  # of all sentences

    def add(self, pairs: Iterable[SentencePair], languages: LanguagePair) -> None:
        """Hold out pairs in two languages."""
        for language, texts in zip(languages, zip(*pairs, strict=True), strict=False):  # no texts without pairs
            for near, key in ((False, exact_key), (True, letters_key)):
                values = hashes(map(key, texts))
                self.digest = (self.digest * 31 + int(values.sum(dtype=np.uint64))) % 2**64
                self._sets[language, near].add(values)

    def contains(self, pairs: Sequence[SentencePair], *, languages: LanguagePair, near: bool) -> list[bool]:
        """Return for each pair whether one of its sides is a held-out sentence, short phrases excepted.

        Args:
            pairs: other text.
            languages: its languages.
            near: compare letters alone.
        """
        is_held_out = np.zeros(len(pairs), dtype=np.bool_)
        for language, texts in zip(languages, zip(*pairs, strict=True), strict=False):
            if (language, near) in self._sets:
                keys = [letters_key(text) for text in texts]
                is_long = np.array([len(key) >= _least_letters(language) for key in keys])
                values = hashes(keys if near else map(exact_key, texts))
                is_held_out |= is_long & self._sets[language, near].contains(values)
        return is_held_out.tolist()


def _least_letters(code: str) -> int:
    """Return how many letters make a sentence rather than a short phrase; Chinese and Japanese need fewer."""
    return _LEAST_LETTERS if is_written_with_spaces(code) else _LEAST_LETTERS // 3
