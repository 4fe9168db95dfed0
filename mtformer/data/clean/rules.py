"""Rules that look at one sentence pair at a time: each tells whether the pair should be dropped.

The thresholds are lenient: text that people write, short segments and names included, must pass.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from operator import attrgetter

from mtformer.data.clean.language import LanguageTest
from mtformer.data.clean.repair import MAYBE_MARKUP, is_mojibake, without_markup
from mtformer.text.languages import DENSITY, base_language, is_written_with_spaces, letters_of
from mtformer.text.lost_numbers import lost_numbers
from mtformer.text.number_words import LARGEST_SMALL
from mtformer.text.pairs import SentencePair

PairRule = Callable[[Sequence[SentencePair]], list[bool]]
Test = Callable[[SentencePair], bool]

_MOST_CHARACTERS = 1_000
_LONGEST_WORD = 60  # characters; longer ones are encoded data
_MOST_RATIO, _SLACK = 3.0, 20  # one side may have three times as many characters as the other, and 20 more
_COPIED_SHARE, _FEWEST_COPIED = 0.8, 5  # of the words, if there are five or more; else all of them
_FEWEST_LETTERS = 6  # of words in another script, from which on that matters
_FEWEST_REPEATED, _LEAST_DISTINCT = 8, 0.5  # words, and the share of them that differ

_PUNCTUATION = ".,;:!?…\"'“”„‚‘’«»()[]¿¡-–—"
_SENTENCE_END = re.compile(r"[.!?…。！？]\W*$")
_LOWER_LATIN_WORD = re.compile(r"(?<![A-Za-z./@])[a-z]{2,}(?![./@]\w)")
_URL = re.compile(
    r"https?://[^\s<>\"'，。）]+|www\.[^\s<>\"'，。）]+|(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+",
    re.ASCII | re.IGNORECASE,
)
_SCHEME = re.compile("^https?://")
_CONTROL = re.compile(  # also private characters
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd\ufffe\uffff\ue000-\uf8ff\U000f0000-\U0010ffff]|\u951f\u65a4\u62f7"
)
_MAYBE_MOJIBAKE = re.compile("[\x80-\u2fff]{2}")  # a character in UTF-8 read as another encoding has two or more
_DIGIT = re.compile(r"\d")
_SCALED = ("en", "de", "zh")  # languages whose words of large units are known
_RESCALED, _ABBREVIATED = (  # numbers that another language may write with other digits: 30만, 20 mil; 20k, 1.5bn
    re.compile(rf"(?<!\d)(?<!\d[.,:])\d[\d.,:]*+[\s-]?(?:{units})", re.IGNORECASE)
    for units in (
        r"[百千万萬亿億兆천만억]|(?:hundred|thousand|(?:m|b|tr)ill?i[oa]|mill[oó]n)\w*|(?:mio|mrd|mld|mil|k|тыс|млн|млрд)\b",
        r"(?:k|bn)\b",
    )
)
_CENTURY_OF_RANGE = re.compile(r"(?<!\d)(1[89]|20)(\d\d[-–/])(?=\d\d(?![-–/]?\d))")  # which 2007-13 and 2020/21 lack
_TAG = re.compile(r"</?[A-Za-z][\w-]*(?:\s[^<>]*)?/?>")


def pair_rules(src_lang: str, tgt_lang: str) -> dict[str, PairRule]:
    """Return the rules that look at single pairs, by name, the cheapest and surest first."""
    tests: dict[str, Test] = {
        "empty": attrgetter("is_blank"),
        "too_long": is_too_long,
        "encoding": is_damaged,
        "copy": is_copy,
        "script": partial(has_wrong_script, src=_script(src_lang), tgt=_script(tgt_lang)),
        "length_ratio": partial(differs_in_length, src_density=_density(src_lang), tgt_density=_density(tgt_lang)),
        "repetition": repeats_itself,
        "numbers": partial(differs_in_numbers, languages=(src_lang, tgt_lang)),
        "urls": partial(differs_in_urls, codes=_codes(src_lang, tgt_lang)),
        "markup": has_markup,
    }
    rules: dict[str, PairRule] = {name: partial(_each, test) for name, test in tests.items()}
    rules["language"] = partial(_in_wrong_language, LanguageTest(src_lang), LanguageTest(tgt_lang))
    return rules


def _each(test: Test, pairs: Sequence[SentencePair]) -> list[bool]:
    return [test(pair) for pair in pairs]


def _in_wrong_language(src: LanguageTest, tgt: LanguageTest, pairs: Sequence[SentencePair]) -> list[bool]:
    wrong = (src.wrong([pair.src for pair in pairs]), tgt.wrong([pair.tgt for pair in pairs]))
    return list(map(any, zip(*wrong, strict=True)))


def is_too_long(pair: SentencePair) -> bool:
    """Tell whether a side has more than 1,000 characters, or a word of more than 60 that is no URL."""
    if max(map(len, pair)) > _MOST_CHARACTERS:
        return True
    return any(
        len(side) > _LONGEST_WORD
        and side.isascii()  # other scripts may have no spaces
        and max(map(len, side.split()), default=0) > _LONGEST_WORD
        and not _URL.search(side)
        for side in pair
    )


def is_copy(pair: SentencePair) -> bool:
    """Tell whether the target repeats the source, or most of its words, and is more than a name or a number."""
    src, tgt = pair
    src_words, tgt_words = src.casefold().split(), tgt.casefold().split()
    n_words = max(len(set(src_words)), len(set(tgt_words)))
    n_copied = len(set(src_words) & set(tgt_words))
    is_copied = src_words == tgt_words if n_words < _FEWEST_COPIED else n_copied >= _COPIED_SHARE * n_words
    return is_copied and _is_prose(tgt)


def _is_prose(text: str) -> bool:
    """Tell whether a text is a sentence rather than names, numbers or a word that two languages share."""
    if not text.isascii() and any("\u3040" <= character <= "\u9fff" for character in text):
        return len(text) >= 2 * DENSITY
    words = [word.strip(_PUNCTUATION) for word in text.split()]
    n_lower = sum(len(word) > 1 and word.isalpha() and word.islower() for word in words)
    return n_lower >= 2 or (n_lower == 1 and bool(_SENTENCE_END.search(text)))


def _script(code: str) -> tuple[re.Pattern[str], int] | None:
    """Return a pattern of the letters of a language, and how much one says; 0 for Latin letters; None if not known."""
    letters = letters_of(code)
    if letters is None:
        return None
    is_latin = re.match(f"[{letters}]", "a") is not None
    return re.compile(f"[{letters}]"), 0 if is_latin else _density(code)


def has_wrong_script(
    pair: SentencePair, *, src: tuple[re.Pattern[str], int] | None, tgt: tuple[re.Pattern[str], int] | None
) -> bool:
    """Tell whether a side is mostly in letters of another script, names in Latin letters aside."""
    return _is_other_script(pair.src, src) or _is_other_script(pair.tgt, tgt)


def _is_other_script(text: str, script: tuple[re.Pattern[str], int] | None) -> bool:
    if script is None:
        return False
    letters, density = script
    if not density:
        if text.isascii():
            return False
        n_letters = sum(map(str.isalpha, text))
        n_own = len(letters.findall(text))
        return n_letters - n_own > max(1, n_own)
    n_latin = sum(map(len, _LOWER_LATIN_WORD.findall(text)))  # of words that are no names
    n_own = len(letters.findall(text))
    if n_latin >= _FEWEST_LETTERS and n_latin > 2 * density * n_own:
        return True
    if text.isascii():
        return False
    n_others = sum(character.isalpha() and not character.isascii() for character in text) - n_own
    return n_others > max(1, n_own)


def _density(code: str) -> int:
    return 1 if is_written_with_spaces(code) and base_language(code) != "ko" else DENSITY


def differs_in_length(pair: SentencePair, *, src_density: int, tgt_density: int) -> bool:
    """Tell whether one side has more than three times as many characters as the other, and 20 more."""
    shorter, longer = sorted((len(pair.src) * src_density, len(pair.tgt) * tgt_density))
    return longer > _MOST_RATIO * shorter + _SLACK


def repeats_itself(pair: SentencePair) -> bool:
    """Tell whether one side has the same words or characters again and again, and the other has not."""
    return _repeats(pair.src) != _repeats(pair.tgt)


def _repeats(text: str) -> bool:
    words = text.split()
    if len(words) < _FEWEST_REPEATED:  # or a text without spaces
        words = list(text) if len(text) >= 2 * _FEWEST_REPEATED and not text.isascii() else []
    if len(set(words)) > _LEAST_DISTINCT * len(words):
        return False
    return len(set(pairwise(words))) <= _LEAST_DISTINCT * (len(words) - 1)


def differs_in_numbers(pair: SentencePair, *, languages: Sequence[str]) -> bool:
    """Tell whether each side has a number above 12 that the other lacks; one side alone may spell its numbers out.

    Numbers with a word for a large unit that is not known here, such as "1,5 млн", are left out.
    """
    if not all(map(_DIGIT.search, pair)):
        return False
    unknown = (_ABBREVIATED if base_language(each) in _SCALED else _RESCALED for each in languages)
    sides = [pattern.sub(" ", side) for pattern, side in zip(unknown, pair, strict=True)]
    src, tgt = (_CENTURY_OF_RANGE.sub(r"\1\2\1", side) for side in sides)
    lost = lost_numbers(src, tgt, languages), lost_numbers(tgt, src, languages[::-1])
    return all(any(map(_is_large, numbers)) for numbers in lost)


def _is_large(number: str) -> bool:
    return not number.isdecimal() or int(number) > LARGEST_SMALL


def _codes(*languages: str) -> re.Pattern[str]:
    """Return a pattern of the parts that differ in localized URLs: ``/de/``, ``/en-us/``, ``de.`` or ``?lang=de``."""
    codes = "|".join(re.escape(base_language(code).casefold()) for code in languages)
    return re.compile(rf"(?<=[/=_-])(?:{codes})(?:[-_][a-z]{{2,4}})?(?:[/.]|(?=[?&#])|$)")


def differs_in_urls(pair: SentencePair, *, codes: re.Pattern[str]) -> bool:
    """Tell whether a URL or an e-mail address of one side is missing from the other, codes of languages aside."""
    if not any("@" in side or ":" in side or "www" in side.casefold() for side in pair):
        return False
    urls = ([url.rstrip(".,;:!?").casefold() for url in _URL.findall(side)] for side in pair)
    src, tgt = ({_SCHEME.sub("", codes.sub("", url)).rstrip("/") for url in side} for side in urls)
    return src != tgt


def has_markup(pair: SentencePair) -> bool:
    """Tell whether tags of HTML, entities or codes of subtitles are left, or other tags on one side only."""
    if not any(MAYBE_MARKUP.search(side) for side in pair):
        return False
    if any(without_markup(side) != side for side in pair):
        return True
    src, tgt = (Counter(tag.split()[0] for tag in _TAG.findall(side)) for side in pair)
    return src != tgt


def is_damaged(pair: SentencePair) -> bool:
    """Tell whether a side has control characters or was decoded with the wrong encoding ("fÃ¼r" for "für")."""
    return any(map(_is_damaged, pair))


def _is_damaged(text: str) -> bool:
    if _CONTROL.search(text):
        return True
    return not text.isascii() and _MAYBE_MOJIBAKE.search(text) is not None and is_mojibake(text)
