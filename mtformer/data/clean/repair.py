"""Repair texts: remove markup, and undo wrong decoding. Correct texts stay unchanged."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

import ftfy.bad_codecs  # noqa: F401 (registers the encodings "sloppy-…", in which every byte is a character)
from ftfy import fix_encoding
from ftfy.badness import is_bad
from ftfy.fixes import fix_c1_controls

from mtformer.text.code_pages import OF_MANY_CHARACTERS, code_pages_of, read_in_code_page
from mtformer.text.languages import letters_of
from mtformer.text.lines import bytes_of, without_escapes
from mtformer.text.marks import character_of
from mtformer.text.pairs import SentencePair

_ELEMENTS = (
    "a abbr address article aside audio b big blockquote body br button caption center cite code col colgroup dd del "
    "dfn div dl dt em figcaption figure font footer form h[1-6] head header hr html i iframe img input ins kbd label "
    "li link main mark meta nav nobr ol option p pre q s samp script section select small source span strike strong "
    "style sub sup table tbody td textarea tfoot th thead title tr tt u ul var video wbr"
)
_INLINE = "a abbr b big cite code del dfn em font i ins kbd mark q s samp small span strike strong sub sup tt u var wbr"
_TAG = re.compile(  # not the middle of a<b and c>d
    rf"<(/?)({_ELEMENTS.replace(' ', '|')})(?:\s[^<>=]*=[^<>]*)?\s*/?>|<!--(?:(?!<!--).)*?-->", re.IGNORECASE
)
_PROGRAM = re.compile(  # which is no text
    r"<(script|style)(?P<attributes>\s[^<>]*)?>(?P<inside>(?:(?!<\1\b).)*?)</\1\s*>", re.IGNORECASE
)
_OF_PROGRAMS = re.compile(r"[{};=]|\w\(")
_ENTITY = re.compile(r"&(?:[A-Za-z]{2,8}\d?|#\d{2,6}|#x[0-9A-Fa-f]{2,5});")
_SUBTITLE_CODE = re.compile(r"\{\\[^{}]+\}|</?c(?:\.[\w-]+)*>|<(?:\d+:)?\d\d:\d\d\.\d{3}>")  # the last are times
_SPEAKER = re.compile(r"(?<![A-Za-z0-9])<v(?:\.[\w.-]+)?\s[^<>]*>|</v>")  # not the middle of a<v and c>d
MAYBE_MARKUP = re.compile("[<&{]")
_BREAKS = re.compile("[\v\f\r\x1c-\x1f]+")  # of lines, pages and fields, as word processors and spreadsheets have
_CONTINUED = re.escape(bytes(range(0x80, 0xC0)).decode("sloppy-windows-1250"))
# Letters of two bytes, such as "ü" and "ą", read as Windows-1250; in a word, which has no capital there.
_READ_AS_1250 = re.compile(f"(?<=[a-z])[ĂÄĹ][{_CONTINUED}]|[ĂÄĹ][ĄĽŁŚśŠŞŤŹŻŽ](?=[a-z])")
_LEAST_SHARE = 1e-4  # of the letters beyond ASCII, for a letter to be usual
_FEWEST_LETTERS = 500  # beyond ASCII, to know the usual ones
_LEAST_OTHERS = 0.5  # of the lines beyond ASCII, which are not UTF-8, for others to be so by chance
_LOWEST_BYTE = 0xA1  # of frequent characters in code pages of many; most words in UTF-8 have lower bytes, too
_LATIN_WORD = re.compile("[A-Za-z][^\0-\x7f]|[^\0-\x7f][A-Za-z]")  # with diacritics: "Café"
_ASCII = re.compile("[\0-\x7f]+")
_MOST_TIMES = 4  # that a text may have been escaped
Repair = Callable[[str], str]


def without_markup(text: str) -> str:
    """Remove tags of HTML, scripts, styles and codes of subtitles, and replace entities by their characters."""
    if not MAYBE_MARKUP.search(text):
        return text
    found = text
    for _ in range(_MOST_TIMES):
        before = found
        found = _PROGRAM.sub(_without_program, _ENTITY.sub(lambda entity: character_of(entity[0]), found))
        found = _SUBTITLE_CODE.sub("", _SPEAKER.sub(" ", _TAG.sub(_space, found)))
        if found == before:
            break
    return text if found == text else " ".join(found.split())


def _space(tag: re.Match[str]) -> str:
    """Return the separator of the words around a tag; empty for an inline tag."""
    return "" if tag[2] and tag[2].lower() in _INLINE.split() else " "


class Letters:
    """The letters beyond ASCII that are usual in a text, in any case."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Count the letters of texts."""
        counts = Counter(chain.from_iterable(map(_letters_beyond_ascii, texts)))
        least = _LEAST_SHARE * counts.total()
        self._usual = {letter for letter, count in counts.items() if count >= least}
        self._are_known = counts.total() >= _FEWEST_LETTERS

    def are_usual(self, text: str) -> bool:
        """Tell whether all letters beyond ASCII in a text are usual; also if there were too few to know."""
        return not self._are_known or self._usual.issuperset(_letters_beyond_ascii(text))


def _without_program(element: re.Match[str]) -> str:
    """Leave an element that contains no program, as in a text about the <style> element and its end, </style>."""
    return " " if element["attributes"] or _OF_PROGRAMS.search(element["inside"]) else element[0]


def _letters_beyond_ascii(text: str) -> list[str]:
    return [] if text.isascii() else [each for each in text.lower() if not each.isascii() and each.isalpha()]


def _by_chance(text: str, language: str) -> str:
    """Return the letters that a language does not have, but its code page of many characters makes: "ʲô" of 什么."""
    if not OF_MANY_CHARACTERS.isdisjoint(code_pages_of(language)):
        others = re.sub(f"[{letters_of(language)}]", "", text)
        return "".join(each for each in others if _is_letter(each) and min(each.encode()) >= _LOWEST_BYTE)
    return ""


def _is_letter(character: str) -> bool:
    """Tell letters, their marks and their modifiers from other characters."""
    return character.isalpha() or "\u0100" <= character < "\u2000"


def are_partly_utf8(texts: Iterable[str]) -> bool:
    """Tell whether some lines of a text are not UTF-8, so that others may be so by chance."""
    are_utf8 = [without_escapes(text) == text for text in texts if not text.isascii()]
    return are_utf8.count(False) > _LEAST_OTHERS * len(are_utf8)


def read_again(text: str, language: str) -> str:
    """Read a line that is UTF-8 by chance in the code page of its language: "лл" as 谢谢. Other lines stay."""
    beyond_ascii = _ASCII.sub("", text)
    if not beyond_ascii or beyond_ascii != _by_chance(text, language) or _LATIN_WORD.search(text):
        return text
    read = read_in_code_page(text.encode(), language)
    is_usual = read and re.fullmatch(f"[{letters_of(language)}]+", _ASCII.sub("", read[0]))
    return read[0] if read and is_usual else text


def decoded(text: str, language: str, letters: Letters, *, by_chance: bool = False) -> str:
    """Undo that UTF-8 was read in another encoding, once or several times, or Windows-1252 as Latin-1.

    Control characters that break lines become spaces, as when the text is tokenized.

    Lines that are not UTF-8 are read in the encoding that Windows had for a language before Unicode. If most characters
    beyond ASCII are UTF-8, the others are damaged and stay; so do those that would become unusual letters: "Dvoøák".

    Args:
        text: the text.
        language: its language.
        letters: those that are usual in its corpus.
        by_chance: whether it may be UTF-8 by chance alone, as other lines are not.
    """
    text = _BREAKS.sub(" ", text)
    if text.isascii():
        return text
    n_escaped = sum(map(str.__ne__, text, without_escapes(text)))
    if n_escaped:
        raw = bytes_of(text)
        read = read_in_code_page(raw, language)
        if not read:
            return text
        found, code_page = read
        n_others = n_escaped + len(_by_chance(text, language).encode())
        is_usual = code_page in OF_MANY_CHARACTERS or letters.are_usual(found)
        if 2 * n_others < sum(byte > 0x7F for byte in raw) or not is_usual:
            return text
        text = found
    elif by_chance:
        text = read_again(text, language)
    text = fix_encoding(text)
    if _READ_AS_1250.search(text):
        with suppress(UnicodeError):
            text = text.encode("sloppy-windows-1250").decode()
    return fix_c1_controls(text)


def is_mojibake(text: str) -> bool:
    """Tell whether a text was decoded with the wrong encoding, also where ``ftfy`` is not sure of Windows-1250."""
    return is_bad(text) or _READ_AS_1250.search(text) is not None


class Change(NamedTuple):
    """A repair of a text.

    Attributes:
        side: ``src`` or ``tgt``.
        kind: what was repaired: the name of a rule.
        before: the text that stood there.
        after: the text that replaces it.
    """

    side: str
    kind: str
    before: str
    after: str


def repaired(pair: SentencePair, by_side: Sequence[dict[str, Repair]]) -> tuple[SentencePair, list[Change]]:
    """Apply repairs to both sides of a pair, in order.

    Args:
        pair: the pair.
        by_side: the functions that repair a source and a target, by the name of the rule that finds the fault.
    """
    changes: list[Change] = []
    texts: list[str] = []
    for side, text, repairs in zip(pair._fields, pair, by_side, strict=True):
        for kind, repair in repairs.items():
            after = repair(text)
            if after != text:
                changes.append(Change(side, kind, text, after))
                text = after
        texts.append(text)
    return SentencePair(*texts), changes
