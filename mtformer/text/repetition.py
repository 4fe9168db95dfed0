"""Repetitions in texts, as models write them: of words, of characters, and inside of words.

The zeros of 1,000,000,000 are no loop: what has no letter has to be words, and repeated twice as often.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from mtformer.text.entities import SLOT
from mtformer.text.languages import base_language, is_written_with_spaces

FEWEST_REPEATS = 3  # of a phrase in a row that are a loop
MOST_TIMES_AS_OFTEN = 2  # as in its source may a phrase be repeated: a word may become two
_MOST_PHRASE_WORDS = 8
_LONG_WORD = 8  # characters, from which on a word may repeat a part of itself
_WORD = re.compile(r"\w+")
LOOP_IN_WORD = re.compile(r"(\S{1,10}?)\1{3,}")
LOOPS_OF_WORDS = re.compile(r"\b(\w.{0,80}?)(?:\W+\1\b){2,}", re.IGNORECASE)
LOOPS_OF_CHARACTERS = re.compile(r"(\w.{0,20}?)(?:\s*\1){2,}")
# A phrase twice in a row, and in a language without spaces one of different characters, not alone in its clause: people
# say 看看 and 好了好了. A clause may begin with a slot for a number.
DOUBLED_WORDS = re.compile(r"(?<!\w)(?=[^\W\d_])(\w+(?:[ -]\w+){0,7})[ -]\1(?!\w)", re.IGNORECASE)
DOUBLED_CHARACTERS = re.compile(
    rf"(?P<before>(?:\w|{SLOT.pattern})?)(?P<phrase>([^\W\d_])(?!\3)\w{{1,7}}?)(?P=phrase)(?P<after>\w?)"
)
DOUBLED_ONES = re.compile(r"([^\W\d_]\w{0,7}?)\1")
MAY_DOUBLE = {  # of other languages all words of up to three letters
    "en": "that had her you is in do so who bye ha no ho blah knock hush night there out on up to yo great".split(),
    "de": "die der das sie ihr wer was zu dem den du mir ja na ha yo jo".split(),
    "fr": "nous vous".split(),
}
_NEVER = "Sie Sie"  # unlike sie Sie
_MOST_LETTERS_DOUBLED = 3


def repeats(text: str, language: str) -> bool:
    """Tell whether a text repeats a phrase three times in a row, or a part of a long word four times."""
    return n_repeats(text, is_written_with_spaces(language)) >= FEWEST_REPEATS


def n_repeats(text: str, is_spaced: bool) -> int:
    """Return the longest run of a repeated phrase, or of a part of a long word that repeats four times."""
    words = _WORD.findall(text.casefold())
    units: Sequence[str] = words if is_spaced else "".join(words)
    most = 1
    for size in range(1, _MOST_PHRASE_WORDS + 1) if n_repeated_pairs(units) else ():
        run = 0
        for end, (before, after) in enumerate(zip(units, units[size:], strict=False), size + 1):
            run = run + 1 if before == after else 0
            n = 1 + run // size
            if n > most and not any(map(_has_letter, units[end - size : end])):
                n = n // 2 if is_spaced else 1
            most = max(most, n)
    return max(most, *map(_n_repeats_in, text.split())) if is_spaced and words else most


def n_repeated_pairs(units: Sequence[str]) -> int:
    """Count the repeated pairs of neighbours: most sentences have none, and need no closer look."""
    return max(0, len(units) - 1 - len(set(pairwise(units))))


def doubles_words(source: str, translation: str, src_lang: str, tgt_lang: str) -> bool:
    """Tell whether a translation ungrammatically doubles a phrase, and its source does not.

    Where both have spaces, one in the source excuses one with at most twice or at least half as many words.
    """
    src_is_spaced = is_written_with_spaces(src_lang)
    if not is_written_with_spaces(tgt_lang):
        is_doubled = any(match["before"] or match["after"] for match in DOUBLED_CHARACTERS.finditer(translation))
        return is_doubled and not (DOUBLED_WORDS if src_is_spaced else DOUBLED_ONES).search(source)
    words = _WORD.findall(translation.casefold())
    if not (n_repeated_pairs(words) or any(a == b for a, b in pairwise(words))):
        return False
    doubled = DOUBLED_WORDS.finditer(translation)
    phrases = [match[1] for match in doubled if match[0] == _NEVER or not _may_be_doubled(match[1].lower(), tgt_lang)]
    if not src_is_spaced:
        return bool(phrases) and not DOUBLED_ONES.search(source)
    sizes = [_n_words(match[1]) for match in DOUBLED_WORDS.finditer(source)] if phrases else []
    return any(
        not any(size <= MOST_TIMES_AS_OFTEN * n and n <= MOST_TIMES_AS_OFTEN * size for size in sizes)
        for n in map(_n_words, phrases)
    )


def _may_be_doubled(word: str, language: str) -> bool:
    known = MAY_DOUBLE.get(base_language(language))
    return word in known if known else len(word) <= _MOST_LETTERS_DOUBLED


def _n_words(phrase: str) -> int:
    return len(_WORD.findall(phrase))


def without_loops(text: str, is_spaced: bool) -> str:
    """Return a text with each phrase that repeats itself once."""
    text = LOOPS_OF_WORDS.sub(_word_once, text) if is_spaced else LOOPS_OF_CHARACTERS.sub(_once, text)
    return LOOP_IN_WORD.sub(_once, text)


def _word_once(loop: re.Match[str]) -> str:
    return loop[1] if loop[0].count(loop[1]) >= 2 * FEWEST_REPEATS else _once(loop)


def _once(loop: re.Match[str]) -> str:
    return loop[1] if _has_letter(loop[1]) else loop[0]


def _n_repeats_in(word: str) -> int:
    """Return how often a part of a long word occurs in a row if that is four times."""
    if len(word) < _LONG_WORD or n_repeated_pairs(word) < 2:
        return 1
    loops = (loop for loop in LOOP_IN_WORD.finditer(word) if _has_letter(loop[1]))
    return max((len(loop[0]) // len(loop[1]) for loop in loops), default=1)


def _has_letter(text: str) -> bool:
    return any(map(str.isalpha, text))
