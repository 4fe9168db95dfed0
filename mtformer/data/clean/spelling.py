"""Texts whose letters were changed as a whole: without their diacritics, or read in another 8-bit encoding.

A text without its diacritics ("fur die Gaste") has words that the corpus nearly always writes with them. A text that
was read in another encoding ("pøítel" for "přítel") has words that become words of the corpus when they are decoded
again. Both are learned from the corpus itself, which therefore must have them right in most of its texts.
"""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import accumulate, islice, permutations
from statistics import median

import ftfy.bad_codecs  # noqa: F401 (registers the encodings "sloppy-…", in which every byte is a character)

_ENCODINGS = "sloppy-windows-1250", "sloppy-windows-1252", "iso-8859-2", "mac-roman", "cp850", "sloppy-windows-1251"
_WORD = re.compile(r"[^\W\d_]+")
_MARKS = re.compile("[\u0300-\u036f]")
_IN_PLACE = re.compile(r"(?=(.[^\x00-\x7f].))")  # a letter that may be misread, and its neighbours
_OTHER_LETTERS = str.maketrans("łŁđĐøØħĦı", "lLdDoOhHi")  # which Unicode does not decompose
_FEWEST_TEXTS = 500  # that teach anything
_TOO_FEW = f"fewer than {_FEWEST_TEXTS} good pairs are too few to learn from"
_FEWEST = 3  # occurrences of a word that is known
_RATIO = 3  # how many times more frequent a word must be when it is decoded again
_MOST_TRIED = 5_000  # texts that all encodings are tried on
_FEWEST_MISREAD = 3  # of these, for an encoding to be tried on others
_LEAST_SHARE, _LARGEST_SHARE = 1e-3, 0.5  # of texts without diacritics
_FREQUENT = 0.8  # of the occurrences of words with diacritics
_ROUNDS = 5  # of estimating how often they lose them
_LEAST_ODDS = math.log(3)  # of having lost its diacritics
_FEWEST_TOGETHER = 5  # occurrences of a word with diacritics and a neighbour
_PRIOR = 0.01  # occurrences, by which a word may be written without diacritics too
_DEVIATIONS = 3.0  # standard deviations of a count, by which it may be too high by chance
_PRIOR_TOGETHER = 0.5  # the same with a neighbour
_USUAL = 2  # times as frequent as expected
_UNAMBIGUOUS = 0.99  # share of the occurrences of a word, from which on its form is certain


def without_diacritics(text: str) -> str:
    """Return a text without the marks of its letters."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFD", text.translate(_OTHER_LETTERS))
    return unicodedata.normalize("NFC", _MARKS.sub("", decomposed))


def _with_neighbours(words: Sequence[str], place: int) -> tuple[str, str]:
    """Return a word with the one before it and with the one after it."""
    before, after = words[place - 1] if place else "^", words[place + 1] if place + 1 < len(words) else "$"
    return f"{before} <{words[place]}>", f"<{words[place]}> {after}"


def _misreadings() -> dict[str, dict[int, str]]:
    """Return tables for ``str.translate`` that decode again what was written in one encoding and read in another."""
    tables = {}
    for written, read in permutations(_ENCODINGS, 2):
        characters = bytes(range(128, 256))
        wrong, right = characters.decode(read, "replace"), characters.decode(written, "replace")
        table = {ord(a): b for a, b in zip(wrong, right, strict=True) if a != b}
        tables[f"{read} for {written}"] = {code: letter for code, letter in table.items() if letter.isalpha()}
    return tables


class Spelling:
    """Finds and repairs texts of one language whose letters were changed.

    Attributes:
        is_taught: whether the texts had letters with diacritics; if not, all texts pass.
        why_untaught: why they taught nothing, if they did not.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        """Learn from texts, most of which are right."""
        self._counts = Counter(word for text in texts for word in _WORD.findall(text.lower()))
        self._forms: dict[str, dict[str, int]] = {}  # of each word that occurs with diacritics, by its form without
        for word, n in self._counts.items():
            if not word.isascii() and (bare := without_diacritics(word)) != word and n >= _FEWEST:
                self._forms.setdefault(bare, {bare: self._counts[bare]})[word] = n
        self.why_untaught = "its texts have no diacritics" if len(texts) >= _FEWEST_TEXTS else _TOO_FEW
        self.is_taught = len(texts) >= _FEWEST_TEXTS and bool(self._forms)
        self._share = self._bare_share()
        self._neighbours: dict[str, tuple[int, int]] = {}  # how often words stand together without diacritics, and with
        self._misreadings: dict[str, dict[int, str]] = {}
        if self.is_taught:
            self._count_neighbours(texts)
            self._choose_misreadings(texts)

    def is_wrong(self, text: str) -> bool:
        """Tell whether the letters of a text were probably changed."""
        return self.is_taught and (self._has_lost_diacritics(text) or self._decoded(text) != text)

    def repair(self, text: str) -> str:
        """Return the text with its letters, or as it is if they are right or not certain."""
        if not self.is_taught:
            return text
        return self._restored(text) if self._has_lost_diacritics(text) else self._decoded(text)

    def _bare_share(self) -> float:
        """Return how often words lose their diacritics, by the frequent ones.

        Those that are far more often without them are left out: they are words without them, too, such as "konnte".
        """
        counts = sorted(((sum(forms.values()), forms[bare]) for bare, forms in self._forms.items()), reverse=True)
        covered = accumulate(n for n, _ in counts)
        frequent = [
            count for count, n in zip(counts, covered, strict=True) if n <= _FREQUENT * sum(n for n, _ in counts)
        ]
        share = median(n_bare / n for n, n_bare in frequent) if frequent else 0.0
        for _ in range(_ROUNDS):
            usual = [(n, bare) for n, bare in frequent if bare <= 1 + n * share + _DEVIATIONS * math.sqrt(n * share)]
            share = sum(n_bare for _, n_bare in usual) / max(1, sum(n for n, _ in usual))
        return min(max(share, _LEAST_SHARE), _LARGEST_SHARE)

    def _count_neighbours(self, texts: Sequence[str]) -> None:
        """Count words that exist in both forms with the words before and after them."""
        without = {word: without_diacritics(word) for word in self._counts}
        found: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        for text in texts:
            words = _WORD.findall(text.lower())
            bare = [without[word] for word in words]
            for place, word in enumerate(bare):
                for both in _with_neighbours(bare, place) if word in self._forms else ():
                    found[both][words[place] != word] += 1
        self._neighbours = {both: (n, marked) for both, (n, marked) in found.items() if marked >= _FEWEST_TOGETHER}

    def _odds(self, words: Sequence[str]) -> float:
        """Return the log odds of having lost diacritics, of a text without any and its words.

        What is rarer with a neighbour says more than by itself: ``nahe`` may be right, ``der nahe des`` is not.
        """
        odds = math.log(self._share / (1 - self._share))
        for place, word in enumerate(words):
            if forms := self._forms.get(word):
                together = [
                    self._evidence(*self._neighbours[both], _PRIOR_TOGETHER)
                    for both in _with_neighbours(words, place)
                    if both in self._neighbours
                ]
                alone = self._evidence(forms[word], sum(forms.values()) - forms[word], _PRIOR)
                odds += max([alone, *together])
        return odds

    def _evidence(self, n_bare: int, n_marked: int, prior: float) -> float:
        """Return the log odds by words that occur so often without and with diacritics, this text included."""
        n_right = self._n_right(n_bare, n_marked)
        return -math.log((n_right + prior) / ((1 - self._share) * (n_bare + n_marked) + prior))

    def _n_right(self, n_bare: int, n_marked: int) -> float:
        """Return how often words are rightly without diacritics, the text that is judged aside."""
        n_lost = self._share * (n_bare + n_marked)
        return max(0.0, n_bare - 1 - n_lost - _DEVIATIONS * math.sqrt(n_lost))

    def _has_lost_diacritics(self, text: str) -> bool:
        if without_diacritics(text) != text:
            return False
        words = _WORD.findall(text.lower())
        return any(word in self._forms for word in words) and self._odds(words) >= _LEAST_ODDS

    def _restored(self, text: str) -> str:
        """Return a text with its diacritics, or as it is if the corpus does not tell the form of each word.

        A word alone may be right and rare, as "mochte" beside "möchte": it is restored only if it is no more frequent
        than it would be if it had lost them as often as others.
        """
        parts, end, restored = [], 0, set()
        for match in _WORD.finditer(text):
            word = match[0].lower()
            form = self._form(word)
            if form is None:
                return text
            parts += [text[end : match.start()], _in_case_of(match[0], form)]
            end = match.end()
            restored |= {word} - {form}
        is_certain = len(restored) > 1 or all(map(self._is_usual, restored))
        return "".join([*parts, text[end:]]) if is_certain else text

    def _is_usual(self, word: str) -> bool:
        """Tell whether a word without diacritics is no more frequent than if all of its occurrences had lost them."""
        forms = self._forms[word]
        return forms[word] <= _USUAL * self._share * sum(forms.values())

    def _form(self, word: str) -> str | None:
        """Return the form of a word that has lost its diacritics, if there were any; None if it is not certain."""
        if word not in self._forms:
            return word if self._counts[word] >= _FEWEST else None
        forms = self._forms[word]
        counts = forms | {word: self._n_right(forms[word], sum(forms.values()) - forms[word])}
        best = max(counts, key=lambda form: counts[form])
        return best if counts[best] >= _UNAMBIGUOUS * sum(counts.values()) else None

    def _choose_misreadings(self, texts: Sequence[str]) -> None:
        self._letters = Counter(
            letters for text in texts if not text.isascii() for letters in _IN_PLACE.findall(f" {text} ")
        )
        tried = list(islice((text for text in texts if not text.isascii()), _MOST_TRIED))
        present = set("".join(tried))
        for name, table in _misreadings().items():
            if not any(chr(code) in present and letter in present for code, letter in table.items()):
                continue
            decoded = ((text, text.translate(table)) for text in tried)
            if sum(self._gain(*both) > 0 and self._has_better_words(*both) for both in decoded) >= _FEWEST_MISREAD:
                self._misreadings[name] = table

    def _decoded(self, text: str) -> str:
        """Return a text in the encoding that makes its letters usual, or as it is if that is its own."""
        if text.isascii():
            return text
        found = [text, *(text.translate(table) for table in self._misreadings.values())]
        return max(found, key=lambda one: self._gain(text, one))

    def _gain(self, before: str, after: str) -> float:
        """Return the log odds of the letters that differ between their neighbours, negative if one is not better after.

        A text such as "Škoda", foreign and right, has such neighbours.
        """
        places = [slice(n, n + 3) for n, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
        before, after = f" {before} ", f" {after} "
        gains = [math.log((self._letters[after[at]] + 1) / (self._letters[before[at]] + 1)) for at in places]
        return sum(gains) if min(gains, default=0.0) > 0 else -1.0

    def _has_better_words(self, before: str, after: str) -> bool:
        """Tell whether most words that differ are far more frequent after a change."""
        pairs = list(zip(before.lower().split(), after.lower().split(), strict=False))
        changed = [pair for pair in pairs if pair[0] != pair[1]]
        n_better = sum(self._frequency(new) >= _RATIO * (self._frequency(old) + 1) for old, new in changed)
        return n_better > len(changed) / 2

    def _frequency(self, text: str) -> int:
        """Return how often the rarest word in some text occurs."""
        return min((self._counts[word] for word in _WORD.findall(text)), default=0)


def _in_case_of(model: str, word: str) -> str:
    if len(model) == len(word):
        return "".join(new.upper() if old.isupper() else new for old, new in zip(model, word, strict=True))
    return word.upper() if model.isupper() else word
