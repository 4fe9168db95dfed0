"""Where the sentences of a text end."""

import re
from collections.abc import Iterator
from itertools import pairwise

from mtformer.text.abbreviations import abbreviations
from mtformer.text.languages import base_language, has_full_stops_in_ordinals

_CLOSING, _WIDE_CLOSING = "\"'”’»«“)\\]」』）】", "”’」』）】"
_MARKS, _WIDE_MARKS = ".!?…؟۔।॥", "。！？｡"
_GERMAN = "de"
_OPENING = "(\"'“‘„«["
END = re.compile(  # no sentence starts with the second of two marks, or with what closes after them
    rf"(?<![{_MARKS}])(?P<mark>[{_MARKS}]+)(?![{_MARKS}])[{_CLOSING}]*(?![{_CLOSING}])"
    r"(?:\s»(?!\S)|(?!\s»(?!\S)))\s+(?=\S)"  # a space follows; « Ah ! »
    rf"|(?<![{_WIDE_MARKS}])[{_WIDE_MARKS}]+(?![{_WIDE_MARKS}》〉])[{_WIDE_CLOSING}]*(?![{_WIDE_CLOSING}])"
    r"\s*(?=\S)"  # none is needed
)
INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # the A of "A. Smith", the U.S of "U.S. team"
ORDINAL = re.compile(r"(?:\d{1,2}\.?[-–/])?\d{1,2}")  # the 24.-26 of "24.-26. Dezember"


def split_sentences(text: str, language: str) -> list[str]:
    """Split a text into its sentences, with the spaces between them left out.

    A sentence ends at a full stop, question or exclamation mark, with the quotes and brackets that close after it,
    before a space and anything but a small letter; in Chinese and Japanese no space is needed. The full stop of an
    abbreviation, of an initial, or of an ordinal number where the language writes it so, ends none, nor does the last
    mark of a title, as in 《加油！》, and nothing ends one between straight quotes.
    """
    starts = [0, *_ends(text, base_language(language)), len(text)]
    return [part for start, end in pairwise(starts) if (part := text[start:end].strip())]


def _ends(text: str, language: str) -> Iterator[int]:
    """Yield where each sentence but the first starts."""
    has_quotes = text.count('"') % 2 == 0 and '"' in text
    n_quotes = counted = 0  # straight quotes in the text up to there
    for match in END.finditer(text):
        n_quotes, counted = n_quotes + text.count('"', counted, match.end()), match.end()
        follows = text[match.end()]
        if follows.islower() or follows in ",;:)" or (has_quotes and n_quotes % 2):
            continue
        if follows == "と" and text[match.end() - 1] in "」』":  # the sentence goes on, as in 「はい。」と言った。
            continue
        if match["mark"] != "." or not _has_own_stop(text, match.start(), follows, language):
            yield match.end()


def _has_own_stop(text: str, end: int, follows: str, language: str) -> bool:
    """Tell whether a full stop belongs to the word before it: an abbreviation, an initial or an ordinal number."""
    word = text[text.rfind(" ", 0, end) + 1 : end].lstrip(_OPENING)
    return (
        word.lower() in abbreviations(language)
        or (INITIALS.fullmatch(word) is not None and word != "I")
        or (has_full_stops_in_ordinals(language) and ORDINAL.fullmatch(word) is not None)
        or (language == _GERMAN and word.lower().endswith("str") and follows.isdecimal())  # Hauptstr. 12
    )
