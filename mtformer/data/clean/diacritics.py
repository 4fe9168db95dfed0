"""Texts that have lost the diacritics of their letters, as in "fur die Gaste", found and restored by their corpus."""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import accumulate
from statistics import median

from mtformer.text.words import WORD

_FEWEST = 3  # occurrences of a word that is known
_MARKS = re.compile("[\u0300-\u036f]")
_OTHER_LETTERS = str.maketrans("łŁđĐøØħĦı", "lLdDoOhHi")  # which Unicode does not decompose
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


class Diacritics:
    """Finds and restores diacritics of one language.

    A text without any has lost them if the log odds of that, by its words, are large enough. A word that nearly always
    has them raises the odds; one that is frequent without them does not, as it is another word. If each word loses its
    diacritics 1 time in 100 (``_bare_share``), the odds of a text of one word are::

        word   occurs bare and marked   of these rightly bare   evidence           log odds of the text
        fur    10 and 990               0                       log 990 / 0.01     11.5 - log 99 = 6.9: lost
        nahe   300 and 600              300 - 1 - 9 - 9 = 281   log 891 / 281      1.2 - log 99 = -3.4: right

    Attributes:
        occur: whether there are words with them.
    """

    def __init__(self, counts: Counter[str], texts: Sequence[str]) -> None:
        """Learn the forms of words, how often they lose diacritics, and their neighbours from texts and their words."""
        self._counts = counts
        self._forms = self._forms_of_words()
        self.occur = bool(self._forms)
        self._share = self._bare_share()
        self._neighbours = self._count_neighbours(texts) if self.occur else {}

    def are_lost(self, text: str) -> bool:
        """Tell whether a text has probably lost them."""
        if without_diacritics(text) != text:
            return False
        words = WORD.findall(text.lower())
        return any(word in self._forms for word in words) and self._odds(words) >= _LEAST_ODDS

    def restored(self, text: str) -> str:
        """Return a text with its diacritics, or as it is if the corpus does not tell the form of each word.

        A word alone may be right and rare, as "mochte" beside "möchte": it is restored only if it is no more frequent
        than it would be if it had lost them as often as others.
        """
        parts, end, restored = [], 0, set()
        for match in WORD.finditer(text):
            word = match[0].lower()
            form = self._form(word)
            if form is None:
                return text
            parts += [text[end : match.start()], _in_case_of(match[0], form)]
            end = match.end()
            restored |= {word} - {form}
        is_certain = len(restored) > 1 or all(map(self._is_usual, restored))
        return "".join([*parts, text[end:]]) if is_certain else text

    def _forms_of_words(self) -> dict[str, dict[str, int]]:
        """Return the counts of the forms of each word that occurs with diacritics, by its form without."""
        forms: dict[str, dict[str, int]] = {}
        for word, n in self._counts.items():
            if not word.isascii() and (bare := without_diacritics(word)) != word and n >= _FEWEST:
                forms.setdefault(bare, {bare: self._counts[bare]})[word] = n
        return forms

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

    def _count_neighbours(self, texts: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Count how often words that exist in both forms stand beside others, without diacritics and with them."""
        without = {word: without_diacritics(word) for word in self._counts}
        found: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        for text in texts:
            words = WORD.findall(text.lower())
            bare = [without[word] for word in words]
            for place, word in enumerate(bare):
                for both in _with_neighbours(bare, place) if word in self._forms else ():
                    found[both][words[place] != word] += 1
        return {both: (n, marked) for both, (n, marked) in found.items() if marked >= _FEWEST_TOGETHER}

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


def _in_case_of(model: str, word: str) -> str:
    if len(model) == len(word):
        return "".join(new.upper() if old.isupper() else new for old, new in zip(model, word, strict=True))
    return word.upper() if model.isupper() else word
