"""Find the marks that a translation must not change: tags, Markdown, placeholders, URLs, emoji."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache

from mtformer.text.languages import UNDETERMINED
from mtformer.text.marks import EMOJI, LONG_WORD, LONGEST_WORD, character_of, separators
from mtformer.text.words import CHARACTER_WORDS


class Role(Enum):
    """The effect of a mark on the text around it.

    Attributes:
        OPEN: begins a stretch of text that a CLOSE ends.
        CLOSE: ends it.
        POINT: stands beside words, like an image or an emoji.
        WORD: stands for a word, like a placeholder; characters glued to it belong to it.
        BREAK: separates texts to translate, like a paragraph tag.
    """

    OPEN = "open"
    CLOSE = "close"
    POINT = "point"
    WORD = "word"
    BREAK = "break"


@dataclass(frozen=True)
class Mark:
    """A stretch of a text that is not translated.

    Attributes:
        start: where it starts in the text, in characters.
        end: where it ends.
        role: its effect on the text around it.
        name: a name shared by an OPEN and its CLOSE.
    """

    start: int
    end: int
    role: Role
    name: str = ""

    def moved(self, distance: int) -> "Mark":
        """Return the mark with shifted positions."""
        return replace(self, start=self.start + distance, end=self.end + distance)


# Elements that separate sentences, whatever stands around them; all others stand inside of sentences.
BLOCKS = frozenset(
    "address article aside blockquote body br button caption center col colgroup dd details dialog div dl dt fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hr html input legend li link main menu meta nav ol "
    "optgroup option p section select summary table tbody td textarea tfoot th thead title tr ul".split()
)
VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())

_TEXT = "&<>\"'°€£¥\u00ad\u200c"  # what entities stand for in texts, besides letters; the last two are invisible
ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]*|#\d+|#[xX][0-9A-Fa-f]+);")  # of HTML, if there is one of this name
CLOSING_PUNCTUATION = tuple(".,;:!?)]}…。，、；：！？）」』”’")
_ATTRIBUTES = r"""(?:\s(?:"[^"]*"|'[^']*'|[^'"<>])*)?"""
# Chinese beside a mark is no part of it, though it matches \w. Each large set of characters takes a millisecond to
# compile, so most patterns name the Latin letters instead.
_LATIN = r"A-Za-z0-9_\u00c0-\u024f\u1e00-\u1eff"
_W = rf"[{_LATIN}]"
_SPACED = rf"(?-i:(?![{CHARACTER_WORDS}]))"  # before one of several characters, of which Chinese ones do not count
_NOT_IN_URLS = r"\s<>\"\u2018-\u201f\u3000-\u303f\u3040-\u30ff\u4e00-\u9fff\uff00-\uffef"
# Codes of subtitles: {\i1} begins a style and {\i0} ends it; {\an8} and {\pos(1,2)\c&HFF&} are others. Commands of
# LaTeX, as in {\i}, {\ss} and {\it one}, are none, nor are regular expressions, as {\w+}.
_STYLE = r"\{\\(?:(?P<style>[ius])(?P<is_on>[01])|b(?P<weight>[01]|[1-9]00))\}"
SUBTITLE_OVERRIDE = (
    r"\\(?:(?-i:fn(?:[A-Z][^\\{}]*)?)|r(?:[A-Z][^\\{}]*)?(?=[\\}])"
    r"|[ibus][01](?!\d)|b[1-9]00|(?:an?|be|fe|k[fot]?|p|pbo|q)\d+"
    r"|[1-4]?(?:c|a|alpha)&h?[0-9a-f]+&?|(?:[1-4]?c|[1-4]a)(?=[\\}])|alpha"
    r"|(?:[xy]?(?:bord|shad)|blur|fs(?:p|c[xy])?|fr[xyz]?|fa[xy])(?:[+-]?[\d.]+)?"
    r"|(?:pos|move|org|fade?|i?clip|t)\([^(){}]*\)|(?<!\{\\)[ibus](?=[\\}]))"
)

_PROGRAMS, _CODE = "script|style|svg", "code|pre|kbd|samp|var|math"  # elements whose contents are no prose
_HIDDEN_START = re.compile(rf"<({_PROGRAMS}|{_CODE})(?=[\s>])", re.IGNORECASE)
_HIDDEN_END = re.compile(rf"</({_PROGRAMS}|{_CODE})\s*>", re.IGNORECASE)
_ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>", "<%": "%>"}

# In order: of two that match at one place, the first wins.
_PATTERNS = {
    # Whole elements whose contents are no prose, comments and declarations.
    "element": rf"<(?P<hidden>{_PROGRAMS}){_ATTRIBUTES}>.*?</(?P=hidden)\s*>"
    r"|<(?P<script>sup|sub)>(?:(?![^\W\d_])[^<>\s])+</(?P=script)>"
    rf"(?!{_W})",  # as in m², or for a footnote
    "code": rf"<(?P<code>{_CODE}){_ATTRIBUTES}>.*?</(?P=code)\s*>",
    "comment": r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<![A-Za-z][^>]*>|<\?.*?\?>|<%.*?%>"
    r"|\{%(?:(?!\{%).)*?%\}|\{\#(?:(?!\{\#).)*?\#\}",
    "tag": rf"<(?P<slash>/?)(?P<name>[A-Za-z0-9][\w:.-]*)(?:{_ATTRIBUTES}|/)>",
    "escaped_tag": r"&lt;(?P<escaped_slash>/?)(?P<escaped_name>[A-Za-z][\w:.-]*)(?:\s(?:(?!&[lg]t;)[^<>])*|/)?&gt;",
    "code_span": r"(?<!`)(?P<ticks>`++)(?:.*?[^`])??(?P=ticks)(?!`)",
    "autolink": r"<(?:https?|ftp|mailto):[^\s<>]+>",
    # Its text may have pairs of brackets, such as an image; a target with spaces stands between < and >.
    "link": r"!?\[(?=[^\[\]]*+(?:\[[^\[\]]*+\][^\[\]]*+)*+(?P<target>\]\("
    r"(?:<[^<>]*>|[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+(?:\"[^\"]*\"|'[^']*'))?\)))",
    "url": rf"(?<!{_W})(?:[A-Za-z][A-Za-z0-9+-]{{1,15}}://|www\.)[^{_NOT_IN_URLS}]*[^{_NOT_IN_URLS}.,;:!?'*_~]",
    "email": rf"(?<!{_W})(?<![.%+-])(?:mailto:)?[{_LATIN}.%+-]+@[{_LATIN}-]+(?:\.[{_LATIN}-]+)+(?<!-)",
    "plural": r"\{\w+,\s*(?:plural|select|selectordinal|number|date|time)\b"
    r"(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*+\})*+\})*+\})*+\}",
    "style": _STYLE,
    "subtitle_code": rf"\{{(?:{SUBTITLE_OVERRIDE})++\}}",
    "braces": r"\{\{[^{}]*\}\}|[$%#@]?\{[\w.$@\[\]:!>+,#-]*\}",
    "percent": rf"(?<!{_W})(?<!%)"
    r"%(?:\(\w+\)|\d+\$)?[-+#0]?\d*(?:\.\d+)?(?:hh|h|ll|l|z)?[sdifgeExXucpr@](?![A-Za-z])|%%\w+%%",
    "variable": rf"(?<!{_W})(?<!\$)\$[A-Za-z_]{_W}*|(?<!{_W})(?-i:__[A-Z][A-Z0-9_]*__)(?!{_W})",
    "shortcode": rf"(?<!{_W})(?<!:):[a-z][a-z0-9_+-]*:(?!{_W})(?!:)",
    "mention": rf"(?<!{_W})(?<![@&/#])[@#][A-Za-z_]{_W}*",
    "entity": ENTITY.pattern,
    # Windows: C:\\new, \\\\server\\new; Unix: /usr/local; a word of a regular expression.
    "path": rf"(?<!{_W})"
    r"(?:[A-Za-z]:\\|\\\\[\w.$-]+\\)[^\s<>\"|*?]*[^\s<>\"|*?.,;:!)']"
    rf"|(?<![\w/.<])~?(?:/(?:{_SPACED}[\w+.-])*{_SPACED}[\w+-]){{2,}}/?"
    rf"|(?<!\S)(?:{_SPACED}[^\s<>])*\\[dwsb](?![A-Za-z]|[01]\}}|[1-9]00\}})[^\s<>]*",
    "newline": r"(?:\\[nrt])+",
    "emoji": EMOJI,
    # Neither blanks to fill in, ____, nor escaped ones.
    "emphasis": r"(?<![\\*])\*{1,3}(?!\*)|(?<![\\_])_{1,3}(?!_)|(?<![\\~])~~(?!~)",
}
# Without one of these, or "www.", a line has no mark: most lines need not be searched for one pattern after the other.
_HINT = re.compile(r"[<`\[{%$@#&/\\*_~:\u00a9\u00ae\u203c-\u2fff\u3030\u303d\u3297\u3299\U0001f000-\U0010ffff]")
_UNKNOWN = re.compile(r"(?<![kum])u[um]*(?: +u[um]*)*(?![kum])")  # of letters (u), combining marks (m), spaces


@cache
def _mark() -> re.Pattern[str]:
    """Return the pattern of all marks, which takes longer to compile than most texts to translate."""
    patterns = (f"(?P<k_{kind}>{pattern})" for kind, pattern in _PATTERNS.items())
    return re.compile("|".join(patterns), re.DOTALL | re.IGNORECASE)


def scan(text: str, src_lang: str = UNDETERMINED) -> list[Mark]:
    """Return the marks of one line, in order and without overlaps.

    Where ``src_lang`` writes ordinal numbers with a full stop, a line that begins with one is no item of a list.
    """
    marks = [Mark(*span, Role.BREAK) for span in separators(text, src_lang)]
    if not _may_have_marks(text):
        return marks
    closing: list[tuple[int, int]] = []  # the ends of links that are open
    position = marks[0].end if marks and marks[0].start == 0 else 0
    searched = _without_unclosed(text)
    while match := _mark().search(searched, position):
        while closing and closing[-1][0] < match.end():  # a link's end comes before what follows
            start, end = closing.pop()
            if start >= position:
                marks.append(Mark(start, end, Role.CLOSE, "link"))
                position = end
                break
        else:
            marks += _marks(text, match, marks, closing)
            position = match.end()
    marks += [Mark(start, end, Role.CLOSE, "link") for start, end in reversed(closing) if start >= position]
    return without_overlaps(marks)


def _without_unclosed(text: str) -> str:
    """Hide unclosed elements and comments: for each of them, a search would scan the whole text."""
    for start, end in _ENDS.items():
        after = text.rfind(end) + 1
        if text.find(start, after) >= 0:
            text = text[:after] + text[after:].replace(start, " " + start[1:])
    if _HIDDEN_START.search(text):
        last = {match[1].lower(): match.start() for match in _HIDDEN_END.finditer(text)}
        text = _HIDDEN_START.sub(
            lambda match: match[0] if match.start() < last.get(match[1].lower(), -1) else f"{match[0][:-1]}_", text
        )
    return text


def unknown_words(text: str, is_known: Callable[[str], bool]) -> list[Mark]:
    """Return a mark for each run of adjacent words without any known letter.

    A text without any known letter has no such marks.
    """
    letters = {character for character in text if character.isalpha()}
    known = set(filter(is_known, letters))
    if not known or known == letters:
        return []
    kinds = {letter: "k" if letter in known else "u" for letter in letters}
    shape = "".join(kinds.get(character) or _kind(character) for character in text)
    return [Mark(*match.span(), Role.WORD) for match in _UNKNOWN.finditer(shape)]


def long_words(text: str, marks: Sequence[Mark]) -> list[Mark]:
    """Return a mark for each stretch between ``marks`` that is too long for a word, such as encoded data."""
    if len(text) <= LONGEST_WORD:
        return []
    starts, ends = [0, *(mark.end for mark in marks)], [*(mark.start for mark in marks), len(text)]
    stretches = (
        match for start, end in zip(starts, ends, strict=True) for match in LONG_WORD.finditer(text, start, end)
    )
    return [Mark(*stretch.span(), Role.WORD) for stretch in stretches if any(map(str.isalnum, stretch[0]))]


def _kind(character: str) -> str:
    if character.isspace() or character in "-'’":
        return " "
    return "m" if unicodedata.category(character)[0] == "M" else "."


def _may_have_marks(text: str) -> bool:
    return bool(_HINT.search(text)) or "www." in text.lower()


def _marks(text: str, match: re.Match[str], marks: Sequence[Mark], closing: list[tuple[int, int]]) -> Iterator[Mark]:
    """Yield the marks of a match that comes after ``marks``; ``closing`` gets the end of a link."""
    start, end = match.span()
    kind = next(group[2:] for group, value in match.groupdict().items() if group.startswith("k_") and value is not None)
    match kind:
        case "tag":
            yield _tag(match, match["name"].lower(), match["slash"])
        case "escaped_tag":
            yield _tag(match, match["escaped_name"].lower(), match["escaped_slash"])
        case "link":
            closing.append(match.span("target"))
            yield Mark(start, end, Role.OPEN, "link")
        case "url":
            while text[end - 1] == ")" and text.count(")", start, end) > text.count("(", start, end):
                end -= 1  # it closes a bracket that stands around the URL
            yield Mark(start, end, Role.WORD)
        case "emphasis":
            yield from _emphasis(text, start, end, marks)
        case "newline":
            yield Mark(start, end, Role.BREAK)
        case "entity":
            character = unescape(match[0])
            if character != match[0] and not (character.isalnum() or character in _TEXT):
                yield Mark(start, end, Role.POINT)
        case "style":
            role = Role.CLOSE if "0" in (match["is_on"], match["weight"]) else Role.OPEN
            yield Mark(start, end, role, rf"{{\{match['style'] or 'b'}}}")
        case "element" | "comment" | "emoji" | "subtitle_code":
            yield Mark(start, end, Role.POINT)
        case _:
            yield Mark(start, end, Role.WORD)


def _tag(match: re.Match[str], name: str, slash: str) -> Mark:
    if name in BLOCKS:
        return Mark(*match.span(), Role.BREAK)
    if slash:
        return Mark(*match.span(), Role.CLOSE, name)
    return Mark(*match.span(), Role.POINT if match[0].endswith(("/>", "/&gt;")) or name in VOID else Role.OPEN, name)


def _emphasis(text: str, start: int, end: int, marks: Sequence[Mark]) -> Iterator[Mark]:
    """Yield the mark if it is emphasis in CommonMark: beside a word, neither inside a word nor alone.

    A mark between signs, or between Chinese words, which no spaces separate, closes the open emphasis of its kind, or
    else opens one if another such mark follows, but not before closing punctuation. A star inside of a word may only
    close it: *dog*s.
    """
    before, after = text[start - 1 : start] or " ", text[end : end + 1] or " "
    opens = not after.isspace() and (_is_word(after) or not _is_word(before))
    closes = not before.isspace() and (_is_word(before) or not _is_word(after))
    is_between_signs = not _is_word(before) and not _is_word(after)
    is_between_words = text[start] != "_" and re.search(f"[{CHARACTER_WORDS}]", before + after)
    is_inside_word = text[start] != "_" and before.isalpha() and after.isalpha() and not is_between_words
    if opens and closes and (is_between_signs or is_between_words or is_inside_word):
        last = next((mark for mark in reversed(marks) if mark.name == text[start:end]), None)
        closes = last is not None and last.role is Role.OPEN
        may_open = not is_inside_word and not after.startswith(CLOSING_PUNCTUATION)
        opens = not closes and may_open and text.find(text[start:end], end) >= 0
    if opens != closes:
        yield Mark(start, end, Role.OPEN if opens else Role.CLOSE, text[start:end])


def unescape(text: str) -> str:
    """Replace the entities of HTML, all of which end in a semicolon, by their characters."""
    return ENTITY.sub(lambda entity: character_of(entity[0]), text)


def _is_word(character: str) -> bool:
    return not (character.isspace() or unicodedata.category(character)[0] in "PS")


def without_overlaps(marks: list[Mark]) -> list[Mark]:
    """Return the marks in order; of overlapping ones, the first."""
    kept: list[Mark] = []
    for mark in sorted(marks, key=lambda mark: (mark.start, -mark.end)):
        if not kept or mark.start >= kept[-1].end:
            kept.append(mark)
    return kept
