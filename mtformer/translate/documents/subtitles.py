"""Subtitles in SRT and WebVTT: their times stay, and sentences that run over several of them are translated whole.

The translation of a sentence is divided among its cues in the proportions of the source, between words, and wrapped to
lines as long as those of the file. A line that starts a new speaker, a sound or a song stays a separate line.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise

from mtformer.support.errors import UserError
from mtformer.support.terminal import text_width, wrap
from mtformer.text.languages import language_of_script, separator_of
from mtformer.text.tokenizer.vocabulary import on_one_line
from mtformer.text.words import word_spans
from mtformer.translate.documents.blocks import Block
from mtformer.translate.documents.inline import BlockUnit, Text, Writer
from mtformer.translate.documents.plain import read_text
from mtformer.translate.documents.seam import DocumentSettings, TextDocument
from mtformer.translate.markup.scanner import SUBTITLE_OVERRIDE

_WIDTH = 42  # columns: the usual length of a line
_MOST_CUES = 6  # that a sentence runs over; captions without punctuation would have no end
_EMPTY = "\u00a0"  # the text of a cue for which no word is left
_PUNCTUATION_BONUS = 8  # characters that a cut may be moved for it
_CLAUSE_END = re.compile(r"[,;:.!?，。；：！？、]['\"”’]*\s*$")
_TIME = r"(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}"
_TIMES = rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}"
_LINE = rf"(?!(?:[ \t]*\d+[ \t]*\r?\n)?{_TIMES})[^\n]*\S[^\n]*(?:\n|\Z)"  # not that of the next cue
# Not before a cue, whatever its name, and even if its times are damaged.
_GAP = rf"(?:[ \t\r]*\n)+(?![ \t]*\d+[ \t\r]*$|[^\n]*(?:-->|\n{_TIMES}))(?={_LINE})"
_CUE = re.compile(rf"^{_TIMES}[^\n]*\n(?P<text>(?:{_LINE})*)", re.MULTILINE)
_SRT_CUE = re.compile(rf"^{_TIMES}[^\n]*\n(?P<text>(?:{_LINE}|{_GAP})*)", re.MULTILINE)
_OPENING = r"(?:<[A-Za-z][^<>]*>|\{\\[ibus][1-9]\d*\})"
_CLOSING = r"(?:</[A-Za-z][^<>]*>|\{\\[ibus]0?\})"
_CODE = r"\{\\[^{}]*\}"
_TAG = re.compile(rf"(?P<opening>{_OPENING})|(?P<closing>{_CLOSING})|{_CODE}|<[\d:.]+>")  # the last are times
_TAG_OR_CHARACTER = re.compile(rf"{_TAG.pattern}|(?P<character>.)", re.DOTALL)
_OF_THE_CUE = re.compile(  # codes that mean the same at its start, such as positions, and unknown ones
    r"\{(?:\\(?:an?\d+|(?:pos|move|org|fade?|i?clip)\([^(){}]*\)))+\}"
    rf"|(?!\{{(?:{SUBTITLE_OVERRIDE})++\}}){_CODE}",
    re.IGNORECASE,
)
_BEFORE = re.compile(rf"(?:{_CODE}|{_OPENING}|<[\d:.]+>|[-–—](?!\d)|[♪♫]|\s)*")
_UP_TO_AFTER = re.compile(rf"(?:(?:{_CLOSING}|[♪♫]|\s)*+(?!\Z)(?s:.))*+")  # before the last tags, in linear time
_VOICE = re.compile(r"<v[ .][^<>]*>")
_SIGN = re.compile(r"[-–—](?!\d)|[\[♪♫]")
_NAME = re.compile(r"([^\W\d_][^:<>\n]{0,30}):\s+")
_SOUND = re.compile(r"\s*\[[^\[\]]*\]\s*")
_LONGEST_SOUND = 500  # characters
_END = re.compile(r"[.!?…。！？♪♫]['\"”’»)\]]*\s*$")


@dataclass(frozen=True)
class _Cue:
    """The text of one cue, or of those of its lines that belong together.

    Attributes:
        start: where it starts in the file.
        end: where it ends.
        before: position marks, tags, and the dash or name of its speaker.
        text: its text on one line.
        after: the closing tags.
        speaker: the start of a new speaker, a sound or a song; empty if there is none.
        is_end: whether a sentence ends with it.
    """

    start: int
    end: int
    before: str
    text: str
    after: str
    speaker: str
    is_end: bool


def read(content: bytes, settings: DocumentSettings) -> TextDocument:
    """Read subtitles.

    Raises:
        UserError: there are none.
    """
    text, encoding = read_text(content, settings)
    first = _CUE.search(text)
    is_srt = first is not None and "," in first[0][: first.start("text") - first.start()]  # in its times
    matches = list((_SRT_CUE if is_srt else _CUE).finditer(text))
    if not matches and text.strip().removeprefix("\ufeff").removeprefix("WEBVTT"):
        raise UserError(
            f"{settings.name} has no subtitles, which begin with times, as in 00:01:02,000 --> 00:01:04,000"
        )
    cues = [cue for match in matches for cue in _cues(match)]
    longest = max(
        (text_width(_bare(line)) for cue in cues for line in text[cue.start : cue.end].split("\n")), default=0
    )
    width, line_end = max(_WIDTH, longest), "\r\n" if "\r\n" in text else "\n"
    blocks = []
    for group in _sentences(cues):
        unit = _joined([cue.text for cue in group])
        if any(map(str.isalpha, _bare(unit))):
            span, part = (group[0].start, group[-1].end), BlockUnit(0, 1, unit, None)
            written = partial(_written, text, group, width, line_end, bilingual=settings.bilingual)
            blocks.append(Block(span, [Text("")], [part], Writer(), written))
    return TextDocument(text, encoding, replace(settings, bilingual=False), blocks)


def _cues(match: re.Match[str]) -> Iterator[_Cue]:
    """Yield the parts of a cue: each speaker, and each line with tags of its own, is separate."""
    parts, before = list[str](), ""
    for line in match["text"].rstrip().splitlines(keepends=True):
        is_apart = parts and (
            _speaker(line)
            or (len(parts[-1]) <= _LONGEST_SOUND and _SOUND.fullmatch(_bare(parts[-1])))
            or (re.match(_OPENING, line.lstrip()) and re.search(rf"{_CLOSING}\s*\Z", before))
        )
        if is_apart or not parts:
            parts.append(line)
        else:
            parts[-1] += line
        before = line
    start = match.start("text")
    for whole in parts:
        part = whole.strip()
        if part:
            begin, end = _inside(part)
            codes = "".join(_OF_THE_CUE.findall(part[begin:end]))
            text = _joined([line.strip() for line in _OF_THE_CUE.sub("", part[begin:end]).split("\n")])
            is_end = bool(_END.search(_bare(part)) or _SOUND.fullmatch(_bare(part)))
            first = start + whole.index(part)
            yield _Cue(first, first + len(part), codes + part[:begin], text, part[end:], _speaker(part), is_end)
        start += len(whole)


def _bare(text: str) -> str:
    return _TAG.sub("", text)


def _speaker(line: str) -> str:
    """Return the start of a line that marks a new speaker, a sound or a song."""
    before = _BEFORE.match(line)
    voice = _VOICE.search(before[0]) if before else None
    bare = _bare(line).lstrip()
    sign, name = _SIGN.match(bare), _NAME.match(bare)
    return voice[0] if voice else bare[:1] if sign or (name and name[1].isupper()) else ""


def _inside(text: str) -> tuple[int, int]:
    """Return the span of a text without marks that stay around it; a pair of tags is outside or inside as a whole."""
    before, up_to_after = _BEFORE.match(text), _UP_TO_AFTER.match(text)
    start = before.end() if before else 0
    name = _NAME.match(text, start)
    start = name.end() if name and name[1].isupper() else start
    end = max(start, up_to_after.end() if up_to_after else len(text))
    for opening, closing in _pairs(text):
        if opening.start() < start and closing.start() < end:
            start = opening.start()
        elif opening.start() >= start and closing.start() >= end:
            end = max(end, closing.end())
    return (start + 1, end - 1) if _SOUND.fullmatch(text[start:end]) else (start, end)


def _pairs(text: str) -> list[tuple[re.Match[str], re.Match[str]]]:
    """Return the pairs of matching tags, outermost first."""
    opened = defaultdict[str, list[re.Match[str]]](list)
    pairs = []
    for tag in _TAG.finditer(text):
        name = re.split(r"[^a-z]+", tag[0].lower())[1]  # the i of <i>, </i>, {\i1} and {\i0}
        if tag["opening"]:
            opened[name].append(tag)
        elif tag["closing"] and opened[name]:
            pairs.append((opened[name].pop(), tag))
    return sorted(pairs, key=lambda pair: pair[0].start())


def _sentences(cues: Sequence[_Cue]) -> Iterator[list[_Cue]]:
    """Group the cues of each sentence."""
    group: list[_Cue] = []
    for cue in cues:
        is_same_voice = group and cue.speaker.startswith("<") and cue.speaker == group[0].speaker
        if group and ((cue.speaker and not is_same_voice) or len(group) == _MOST_CUES):
            yield group
            group = []
        group.append(cue)
        if cue.is_end or not cue.text:
            yield group
            group = []
    if group:
        yield group


def _joined(lines: Sequence[str]) -> str:
    lines = [line for line in lines if line]
    return on_one_line(separator_of(language_of_script(_bare(" ".join(lines)))).join(lines))


def _written(file: str, cues: Sequence[_Cue], width: int, line_end: str, translation: str, *, bilingual: bool) -> str:
    """Return cues with their parts of a translation, in bilingual subtitles below their source."""
    written = ""
    for number, (cue, part) in enumerate(zip(cues, _divided(translation, cues), strict=True)):
        between = file[cues[number - 1].end : cue.start] if number else ""
        source = file[cue.start : cue.end] + line_end if bilingual else ""
        written += between + source + _wrapped(cue.before + (part or _EMPTY) + cue.after, width, line_end)
    return written


def _wrapped(text: str, width: int, line_end: str) -> str:
    """Wrap a text; tags take no columns and stay whole."""
    bare, starts = _bare(text), _starts(text)
    breaks, place = [0], 0
    for line in wrap(bare, width, keeps_words=True)[:-1]:
        place += len(line)
        place += bare.startswith(" ", place)
        breaks.append(starts[place])
    lines = (text[start:end].strip(" ") for start, end in pairwise([*breaks, len(text)]))
    return line_end.join(filter(None, lines))  # an empty line would end the cue


def _divided(text: str, cues: Sequence[_Cue]) -> list[str]:
    """Divide a translation among cues, in the proportions of their texts, best at punctuation."""
    bare, starts = _bare(text), _starts(text)
    sizes = list(accumulate(len(_bare(cue.text)) for cue in cues))
    words = [start for start, _ in word_spans(bare)[1:]] if len(cues) > 1 else []
    cuts = [0]
    for size in sizes[:-1]:
        wanted = len(bare) * size / max(sizes[-1], 1)
        distances = {
            word: abs(word - wanted) - _PUNCTUATION_BONUS * bool(_CLAUSE_END.search(bare[max(0, word - 5) : word]))
            for word in words
            if word > cuts[-1]
        }
        cuts.append(min(distances, key=distances.__getitem__, default=len(bare)))
    pairs, parts = _pairs(text), []
    for start, end in pairwise([0, *(starts[cut] for cut in cuts[1:]), len(text)]):
        opened = [opening[0] for opening, closing in pairs if opening.start() < start <= closing.start()]
        closed = [closing[0] for opening, closing in reversed(pairs) if opening.start() < end <= closing.start()]
        parts.append("".join(opened) + text[start:end].strip() + "".join(closed))
    return parts


def _starts(text: str) -> list[int]:
    """Return where to cut a text before each character of its bare text: before the tags that open there."""
    starts, start = [], 0
    for match in _TAG_OR_CHARACTER.finditer(text):
        if match["character"]:
            starts.append(start)
        if match["character"] or match["closing"]:
            start = match.end()
    return [*starts, len(text)]
