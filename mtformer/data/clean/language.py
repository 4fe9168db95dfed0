"""Find texts that are certainly not in the expected language.

A language identifier is often wrong on a few words, so a text is only refused when it is long enough and when another
language is far more probable than the expected one. The identifier is py3langid (naive Bayes over n-grams of bytes),
applied to many texts at once: its automaton reads the n-th byte of all texts in one step, and each text costs one
matrix product, which is about eight times as fast as text by text, with the same scores.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import gettempdir
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.support.files import disk_errors
from mtformer.support.terminal import text_width
from mtformer.text.languages import base_language, is_written_with_spaces, letters_of

_MOST_CHARACTERS = 10_000  # of a text, from its beginning: a step for each byte is slow where few texts are so long
_FEATURE_BITS = 32  # of a number that holds a text and a feature
_ODDS = 10.0  # how many times more probable than the expected language another one must be
_FEWEST_LETTERS = 10  # in a text that is refused
_FEWEST_TEXTS = 20  # most of which must be in another language for a warning
_TOGETHER = 5  # texts that are judged as one for a warning: one of a few Chinese characters is too short alone
N_TEXTS = 200  # at the beginning of a text, which :func:`language_warning` looks at
_KANA = re.compile("[\u3040-\u30ff]")
_SAME = tuple(map(str.split, ("no nn da", "zh yue wuu", "bs hr sr", "id ms", "en pcm", "ar ary arz")))
_NO_LANGUAGE = "zxx"  # of the identifier
_LABELS = {"nb": "no", "fil": "tl", "iw": "he", "in": "id"}  # codes for which the identifier has another


class Identifier:
    """Scores texts in all languages that it knows.

    Attributes:
        labels: the language of each score; several scripts of a language have a score each.
    """

    def __init__(self) -> None:
        """Read the model of py3langid: 5 MB on disk, 70 MB in memory.

        Raises:
            MtformerError: the folder for temporary files, where py3langid unpacks it, cannot be written to.
        """
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        with disk_errors(Path(gettempdir())):
            model = LanguageIdentifier.from_model_file(MODEL_FILE)
        self.labels: list[str] = model.nb_classes
        self._weights: NDArray[np.float16] = model.nb_ptc  # of shape (features, labels)
        self._priors: NDArray[np.float32] = model.nb_pc
        self._next = np.asarray(model.tk_nextmove)  # the state after a state and a byte
        self._rows = np.asarray(model.tk_row, dtype=np.int32) << 8  # where those of a state begin
        self._outputs = np.asarray(model.tk_output, dtype=np.int32)  # the feature that ends in a state, or -1

    def scores(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the score of each text in each language, of shape (texts, labels).

        The scores are calibrated log likelihoods but for a constant of each text. Of a text with more than 10,000
        characters, they are those of the first 10,000.
        """
        encoded = [_encode(text) for text in texts]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        sentences, features, weights = self._features(b"".join(encoded), lengths)
        is_used = np.zeros(len(self._weights), dtype=np.bool_)
        is_used[features] = True
        table = self._weights[is_used].astype(np.float32)
        rows = (np.cumsum(is_used) - 1)[features]
        scores = np.zeros((len(texts), len(self.labels)), dtype=np.float32)
        ends = np.searchsorted(sentences, np.arange(len(texts) + 1)).tolist()
        for number, (start, end) in enumerate(pairwise(ends)):
            np.dot(weights[start:end], table.take(rows[start:end], axis=0), out=scores[number])
        # Log likelihoods of overlapping n-grams are calibrated by this root.
        return (scores + self._priors) / np.sqrt(np.maximum(lengths, 1))[:, None]

    def _features(
        self, data: bytes, lengths: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """Return the distinct features of each text, in order: the number of the text, the feature and its weight."""
        features = self._outputs[self._states(np.frombuffer(data, np.uint8), lengths)]
        is_feature = features >= 0
        keys = (np.repeat(np.arange(len(lengths)), lengths)[is_feature] << _FEATURE_BITS) | features[is_feature]
        distinct, counts = np.unique(keys, return_counts=True)
        return distinct >> _FEATURE_BITS, distinct & (2**_FEATURE_BITS - 1), np.log1p(counts.astype(np.float32))

    def _states(self, data: NDArray[np.uint8], lengths: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Return the state of the automaton after each byte of texts that follow each other."""
        longest_first = np.argsort(-lengths, kind="stable")
        places = (np.cumsum(lengths) - lengths)[longest_first]
        n_longer = len(lengths) - np.cumsum(np.bincount(lengths, minlength=1))  # texts with more than 0, 1, … bytes
        states = np.zeros(len(lengths), dtype=np.uint32)
        visited = np.zeros(len(data), dtype=np.uint32)
        for place, n in enumerate(n_longer[:-1].tolist()):
            at = places[:n] + place
            states = self._next[self._rows[states[:n]] + data[at]]
            visited[at] = states
        return visited


@cache
def identifier() -> Identifier:
    """Return the identifier, which is read once."""
    return Identifier()


def _encode(text: str) -> bytes:
    """Return the bytes that py3langid looks at."""
    text = text[:_MOST_CHARACTERS]
    if text.isupper():
        text = text.lower()
    return unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass")


class Identified(NamedTuple):
    """How probable each language is for a text.

    Attributes:
        text: the text.
        shares: the probability of each language that the identifier knows, by the identifier's code.
    """

    text: str
    shares: Mapping[str, float]

    def probability(self, code: str) -> float:
        """Return the probability of a language; 0 if the identifier does not know it."""
        return self.shares.get(_label(code), 0.0)

    def probability_of_any(self, codes: Sequence[str]) -> float:
        """Return the probability that the text is in one of some languages, or one that is not told apart from them.

        Or in none at all, such as codes. It is 1 for a text that is too short to tell, and if the identifier does not
        know one of the languages.
        """
        labels = set(map(_label, codes))
        # Names are the same in many languages.
        if self.text.istitle() or text_width(_letters(self.text)) < _FEWEST_LETTERS or not labels <= self.shares.keys():
            return 1.0
        return sum(self.shares.get(label, 0.0) for label in {_NO_LANGUAGE}.union(*map(_same, labels)))

    def ranked(self, codes: Sequence[str]) -> list[tuple[str, float]]:
        """Return all languages with their probabilities, the most probable first, under the names in ``codes``."""
        names = {_label(code): code for code in reversed(codes)}
        return sorted(((names.get(label, label), share) for label, share in self.shares.items()), key=lambda e: -e[1])


def identify(texts: Sequence[str]) -> list[Identified]:
    """Return how probable each language is for each text."""
    labels, scores = identifier().labels, identifier().scores(texts)
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    found = []
    for text, row in zip(texts, (odds / odds.sum(axis=1, keepdims=True)).tolist(), strict=True):
        shares = dict.fromkeys(labels, 0.0)
        for label, share in zip(labels, row, strict=True):
            shares[label] += share  # several scripts of a language have one each
        found.append(Identified(text, shares))
    return found


def _label(code: str) -> str:
    """Return the identifier's code of a language."""
    language = base_language(code)
    return _LABELS.get(language, language)


def language_warning(name: str, sides: Mapping[str, Sequence[str]]) -> str | None:
    """Return a warning if most texts of a side are surely in another language, as when the sides are swapped.

    Args:
        name: what the message calls the text.
        sides: the first :data:`N_TEXTS` of it in each language, by the code of the language.
    """
    wrong = [code for code, texts in sides.items() if _most_are_wrong(texts, code)]
    if not wrong:
        return None
    return (
        f"{name}: most of the first {len(sides[wrong[0]])} texts that should be in {' and '.join(wrong)} are in "
        "another language; check which language is the source and which the target"
    )


def _most_are_wrong(texts: Sequence[str], code: str) -> bool:
    test = LanguageTest(code)
    if len(texts) < _FEWEST_TEXTS or not test.is_possible:
        return False
    wrong = test.wrong([" ".join(texts[start : start + _TOGETHER]) for start in range(0, len(texts), _TOGETHER)])
    return 2 * sum(wrong) > len(wrong)


class LanguageTest:
    """Finds texts that are in another language than the expected one."""

    def __init__(self, code: str) -> None:
        """Expect the language ``code``."""
        self._language = _label(code)
        self._own_letters = None if is_written_with_spaces(code) else re.compile(f"[{letters_of(code) or ''}]")

    @property
    def is_possible(self) -> bool:
        """Whether the identifier knows the language; else, all texts pass."""
        return self._language in identifier().labels

    def wrong(self, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether it is surely in another language."""
        wrong = [False] * len(texts)
        judged = [number for number, text in enumerate(texts) if len(text) >= _FEWEST_LETTERS and self._is_open(text)]
        if judged and self.is_possible:
            for number in np.array(judged)[self._is_improbable([texts[number] for number in judged])].tolist():
                # Names are the same in many languages.
                wrong[number] = _n_letters(texts[number]) >= _FEWEST_LETTERS and not texts[number].istitle()
        return wrong

    def _is_improbable(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Tell for which texts another language is far more probable."""
        scores = identifier().scores(texts)
        is_expected = np.isin(identifier().labels, list(_same(self._language)))
        lead: NDArray[np.float64] = scores[:, ~is_expected].max(axis=1) - scores[:, is_expected].max(axis=1)
        return lead > math.log(_ODDS)

    def _is_open(self, text: str) -> bool:
        """Tell whether a text may be in another language by its letters; some languages have letters of their own."""
        if not self._own_letters or (self._language == "zh" and _KANA.search(text)):
            return True
        return 2 * len(self._own_letters.findall(text)) < _n_letters(text)


def _n_letters(text: str) -> int:
    return sum(map(str.isalpha, text))


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text))


def _same(language: str) -> set[str]:
    """Return the languages that are not told apart from ``language``."""
    return next((set(group) for group in _SAME if language in group), {language})
