"""Subtitles in SRT and WebVTT: their times stay, and sentences that run over several of them are translated whole.

The translation of a sentence is divided among its cues in the proportions of the source, between words, and wrapped to
lines as long as those of the file.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from mtformer.support.errors import UserError
from mtformer.support.terminal import text_width, wrap
from mtformer.text.languages import is_written_with_spaces, language_of_script
from mtformer.text.tokenizer.vocabulary import on_one_line
from mtformer.text.words import word_spans
from mtformer.translate.documents.inline import Segment, Text
from mtformer.translate.documents.markup_tokens import decoded
from mtformer.translate.documents.plain import PlainWriter
from mtformer.translate.documents.seam import Settings, TextDocument
from mtformer.translate.documents.source import Block, Source

_WIDTH = 42  # columns: the usual length of a line
_MOST_CUES = 6  # that a sentence runs over; captions without punctuation would have no end
_EMPTY = "\u00a0"  # the text of a cue for which no word is left
_PUNCTUATION_BONUS = 8  # characters that a cut may be moved for it
_CLAUSE_END = re.compile(r"[,;:.!?，。；：！？、]['\"”’]*\s*$")
_TIME = r"(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}"
_TIMES = rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}"
_LINE = rf"(?!(?:[ \t]*\d+[ \t]*\r?\n)?{_TIMES})[^\n]*\S[^\n]*(?:\n|\Z)"  # not that of the next cue
_CUE = re.compile(rf"^{_TIMES}[^\n]*\n(?P<text>(?:{_LINE})*)", re.MULTILINE)
_AROUND = re.compile(r"(?P<before>(?:\{\\[^{}]*\}|<[^/<>][^<>]*>)*)(?P<text>.*?)(?P<after>(?:</[^<>]*>)*)", re.DOTALL)
_SPEAKER = re.compile(r"\s*[-–—]\s*\S")
_END = re.compile(r"[.!?…。！？♪]['\"”’»)\]]*\s*$")
_TAG = re.compile(r"<(/?)([A-Za-z]+)[^>]*>")


@dataclass(frozen=True)
class _Cue:
    """The text of one cue.

    Attributes:
        start: where it starts in the file.
        end: where it ends.
        before: marks of its position and tags around all of it.
        text: its text on one line.
        after: what closes the tags.
        is_dialogue: whether others speak in the same cue.
    """

    start: int
    end: int
    before: str
    text: str
    after: str
    is_dialogue: bool


def read(content: bytes, settings: Settings) -> TextDocument:
    """Read subtitles.

    Raises:
        UserError: there are none.
    """
    text, encoding = decoded(content, settings.name)
    matches = list(_CUE.finditer(text))
    if not matches and text.strip().removeprefix("\ufeff").removeprefix("WEBVTT"):
        raise UserError(
            f"{settings.name} has no subtitles, which begin with times, as in 00:01:02,000 --> 00:01:04,000"
        )
    cues = [cue for match in matches for cue in _cues(match)]
    longest = max((text_width(line) for cue in cues for line in text[cue.start : cue.end].split("\n")), default=0)
    layout = _Layout(text, max(_WIDTH, longest), "\r\n" if "\r\n" in text else "\n", settings.bilingual)
    blocks = []
    for group in _sentences(cues):
        unit = _joined([cue.text for cue in group])
        if any(map(str.isalpha, unit)):
            span, segment = (group[0].start, group[-1].end), Segment(0, 1, unit, None)
            blocks.append(Block(span, [Text("")], [segment], PlainWriter(), partial(layout.written, group)))
    return TextDocument(Source(text, blocks), encoding, replace(settings, bilingual=False))


def _cues(match: re.Match[str]) -> Iterator[_Cue]:
    """Yield the text of a cue; lines of several speakers are apart."""
    lines = match["text"].rstrip().split("\n")
    is_dialogue = len(lines) > 1 and all(map(_SPEAKER.match, lines))
    start = match.start("text")
    for part in lines if is_dialogue else [match["text"].rstrip()]:
        around = _AROUND.fullmatch(part.strip())
        if around and part.strip():
            text = _joined([line.strip() for line in around["text"].split("\n")])
            yield _Cue(start, start + len(part.rstrip()), around["before"], text, around["after"], is_dialogue)
        start += len(part) + 1


def _sentences(cues: Sequence[_Cue]) -> Iterator[list[_Cue]]:
    """Yield the cues that a sentence runs over."""
    group: list[_Cue] = []
    for cue in cues:
        if group and (cue.is_dialogue or _SPEAKER.match(cue.text) or len(group) == _MOST_CUES):
            yield group
            group = []
        group.append(cue)
        if cue.is_dialogue or _END.search(cue.text):
            yield group
            group = []
    if group:
        yield group


def _joined(lines: Sequence[str]) -> str:
    lines = [line for line in lines if line]
    joiner = " " if is_written_with_spaces(language_of_script(" ".join(lines))) else ""
    return on_one_line(joiner.join(lines))


@dataclass(frozen=True)
class _Layout:
    """Writes the translation of a sentence into its cues.

    Attributes:
        text: the file.
        width: the longest line.
        line_end: what ends lines.
        bilingual: whether each cue keeps its source, above the translation.
    """

    text: str
    width: int
    line_end: str
    bilingual: bool

    def written(self, cues: Sequence[_Cue], translation: str) -> str:
        """Return the cues with their parts of a translation, and what stands between them."""
        written = ""
        for number, (cue, part) in enumerate(zip(cues, _divided(translation, cues), strict=True)):
            lines = wrap(part, self.width, "", "", keeps_words=True) or [_EMPTY]
            target = cue.before + self.line_end.join(lines) + cue.after
            source = self.text[cue.start : cue.end] + self.line_end if self.bilingual else ""
            between = self.text[cues[number - 1].end : cue.start] if number else ""
            written += between + source + target
        return written


def _divided(text: str, cues: Sequence[_Cue]) -> list[str]:
    """Divide a translation among cues, in the proportions of their texts, best at punctuation."""
    total = sum(len(cue.text) for cue in cues) or 1
    shares = [sum(len(cue.text) for cue in cues[:number]) / total for number in range(1, len(cues))]
    masked = re.sub(r"<[^<>]*>", lambda tag: "\0" * len(tag[0]), text)
    starts = [start for start, _ in word_spans(text)[1:] if masked[start] != "\0"] if shares else []
    cuts = [0]
    for share in shares:
        places = [start for start in starts if start > cuts[-1]]
        wanted = share * len(text)
        bonus = {
            place: _PUNCTUATION_BONUS * bool(_CLAUSE_END.search(text[max(0, place - 5) : place])) for place in places
        }
        cuts.append(min(places, key=lambda place: abs(place - wanted) - bonus[place], default=len(text)))
    parts = [text[start:end].strip() for start, end in pairwise([*cuts, len(text)])]
    return _with_whole_tags(parts)


def _with_whole_tags(parts: Sequence[str]) -> list[str]:
    """Close the tags that are open at the end of a part, and open them again in the next one."""
    opened: list[tuple[str, str]] = []
    written = []
    for part in parts:
        before = "".join(tag for _, tag in opened)
        for match in _TAG.finditer(part):
            if not match[1]:
                opened.append((match[2], match[0]))
            elif opened and opened[-1][0] == match[2]:
                opened.pop()
        written.append(before + part + "".join(f"</{name}>" for name, _ in reversed(opened)))
    return written
