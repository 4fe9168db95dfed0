"""Sentences: where the sentences of a text end."""

import re
from collections.abc import Iterator
from itertools import pairwise

from mtformer.text.languages import base_language, has_full_stops_in_ordinals

# Abbreviations that do not end a sentence, as a name, a number or a noun follows them.
_ABBREVIATIONS = {
    "en": "mr mrs ms dr prof rev hon gen col maj capt lt sgt gov sen rep pres st mt ft vs no nos vol fig eq pp ed eds "
    "e.g i.e cf approx ca al dept est jan feb mar apr jun jul aug sep sept oct nov dec",
    "de": "hr fr dr prof dipl ing st nr str bzw z.b d.h u.a o.ä v.a i.d.r ca evtl ggf inkl exkl vgl abs art abb bd jh "
    "jan feb apr jun jul aug sep sept okt nov dez geb gest hl max min tel mio mrd sog",
    "fr": "m mm mme mlle dr st ste p.ex cf env no fig vol",
    "es": "sr sra srta dr dra d ud uds p.ej núm pág",
}
_CLOSING = "\"'”’»«“)\\]」』）】"
_OPENING = "(\"'“‘„«["
_MARKS = ".!?…؟۔।॥"
_FULL_WIDTH_MARKS = "。！？｡"
# Marks and what closes after them are taken whole (possessive "+"): no sentence starts with the second of two marks.
_END = re.compile(
    rf"(?<![{_MARKS}])(?P<mark>[{_MARKS}]++)[{_CLOSING}]*+(?:\s»(?!\S))?+\s+(?=\S)"  # a space follows; « Ah ! »
    rf"|(?<![{_FULL_WIDTH_MARKS}])[{_FULL_WIDTH_MARKS}]++(?![》〉])[”’」』）】]*+\s*(?=\S)"  # none is needed
)
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # the A of "A. Smith", the U.S of "U.S. team"


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
    for match in _END.finditer(text):
        n_quotes, counted = n_quotes + text.count('"', counted, match.end()), match.end()
        follows = text[match.end()]
        if follows.islower() or follows in ",;:)" or (has_quotes and n_quotes % 2):
            continue
        if follows == "と" and text[match.end() - 1] in "」』":  # the sentence goes on, as in 「はい。」と言った。
            continue
        if match["mark"] != "." or not _has_own_stop(_word_before(text, match.start()), language):
            yield match.end()


def _word_before(text: str, end: int) -> str:
    return text[text.rfind(" ", 0, end) + 1 : end].lstrip(_OPENING)


def _has_own_stop(word: str, language: str) -> bool:
    """Tell whether a full stop belongs to the word before it: an abbreviation, an initial or an ordinal number."""
    return (
        word.lower() in _ABBREVIATIONS.get(language, "").split()
        or (_INITIALS.fullmatch(word) is not None and word != "I")
        or (word.isdigit() and has_full_stops_in_ordinals(language) and len(word) < 3)
    )
