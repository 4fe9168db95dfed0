"""Subtitles in SRT and WebVTT: their times stay, and sentences that run over several of them are translated whole.

The translation of a sentence is divided among its cues in the proportions of the source, between words, and wrapped to
lines as long as those of the file. A line that starts a new speaker, a sound or a song stays a separate line.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from mtformer.support.errors import UserError
from mtformer.support.terminal import text_width, wrap
from mtformer.text.languages import language_of_script, separator_of
from mtformer.text.tokenizer.vocabulary import on_one_line
from mtformer.text.words import word_spans
from mtformer.translate.documents.blocks import Block
from mtformer.translate.documents.inline import BlockUnit, Text, Writer
from mtformer.translate.documents.markup_tokens import decoded
from mtformer.translate.documents.seam import Settings, TextDocument

_WIDTH = 42  # columns: the usual length of a line
_MOST_CUES = 6  # that a sentence runs over; captions without punctuation would have no end
_EMPTY = "\u00a0"  # the text of a cue for which no word is left
_PUNCTUATION_BONUS = 8  # characters that a cut may be moved for it
_CLAUSE_END = re.compile(r"[,;:.!?，。；：！？、]['\"”’]*\s*$")
_TIME = r"(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}"
_TIMES = rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}"
_LINE = rf"(?!(?:[ \t]*\d+[ \t]*\r?\n)?{_TIMES})[^\n]*\S[^\n]*(?:\n|\Z)"  # not that of the next cue
_GAP = rf"(?:[ \t\r]*\n)+(?!\d+[ \t\r]*$|[^\n]*-->)(?={_LINE})"  # not before a cue, even if its times are damaged
_CUE = re.compile(rf"^{_TIMES}[^\n]*\n(?P<text>(?:{_LINE})*)", re.MULTILINE)
_SRT_CUE = re.compile(rf"^{_TIMES}[^\n]*\n(?P<text>(?:{_LINE}|{_GAP})*)", re.MULTILINE)
_OPENING = r"<[A-Za-z][^<>]*>"
_TAG = re.compile(r"\{\\[^{}]*\}|<(?:(?P<slash>/?)(?P<name>[A-Za-z]+)[^<>]*|[\d:.]+)>")  # positions, tags and times
_TAG_OR_CHARACTER = re.compile(f"{_TAG.pattern}|.", re.DOTALL)
_BEFORE = re.compile(rf"(?:\{{\\[^{{}}]*\}}|{_OPENING}|<[\d:.]+>|[-–—](?!\d)|[♪♫]|\s)*")
_AFTER = re.compile(r"(?:</[A-Za-z][^<>]*>|[♪♫]|\s)*\Z")
_OPENED = re.compile(rf"(?:{_OPENING})+")
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


def read(content: bytes, settings: Settings) -> TextDocument:
    """Read subtitles.

    Raises:
        UserError: there are none.
    """
    text, encoding = decoded(content, settings.name)
    body = text.removeprefix("\ufeff")
    is_webvtt = body.startswith("WEBVTT")
    matches = list((_CUE if is_webvtt else _SRT_CUE).finditer(text))
    if not matches and body.strip().removeprefix("WEBVTT"):
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
        if any(map(str.isalpha, unit)):
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
            or (re.match(_OPENING, line.lstrip()) and re.search(r"</[^<>]*>\s*\Z", before))
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
            text = _joined([line.strip() for line in part[begin:end].split("\n")])
            is_end = bool(_END.search(_bare(part)) or _SOUND.fullmatch(_bare(part)))
            first = start + whole.index(part)
            yield _Cue(first, first + len(part), part[:begin], text, part[end:], _speaker(part), is_end)
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
    before, after = _BEFORE.match(text), _AFTER.search(text)
    start = before.end() if before else 0
    name = _NAME.match(text, start)
    start = name.end() if name and name[1].isupper() else start
    end = max(start, after.start() if after else len(text))
    for opening, closing in _pairs(text):
        if opening.start() < start and closing.start() < end:
            start = opening.start()
        elif opening.start() >= start and closing.start() >= end:
            end = max(end, closing.end())
    return (start + 1, end - 1) if _SOUND.fullmatch(text[start:end]) else (start, end)


def _pairs(text: str) -> list[tuple[re.Match[str], re.Match[str]]]:
    """Return the pairs of matching tags, outermost first."""
    opened: list[re.Match[str]] = []
    n_open = Counter[str]()
    pairs = []
    for tag in filter(lambda tag: tag["name"], _TAG.finditer(text)):
        name = tag["name"].lower()
        if not tag["slash"]:
            opened.append(tag)
            n_open[name] += 1
        elif n_open[name]:
            while (partner := opened.pop())["name"].lower() != name:
                n_open[partner["name"].lower()] -= 1
            n_open[name] -= 1
            pairs.append((partner, tag))
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
    bare = _bare(text)
    breaks, place = set(), 0
    for line in wrap(bare, width, keeps_words=True)[:-1]:
        place += len(line)
        breaks.add(place)
        place += bare.startswith(" ", place)
    written, opened, place = "", "", 0
    for match in _TAG_OR_CHARACTER.finditer(text):
        if match["name"] and not match["slash"]:
            opened += match[0]  # it begins the next line if there is one
            continue
        is_character = not _TAG.fullmatch(match[0])
        is_broken = is_character and place in breaks
        written += f"{line_end}{opened}{match[0].removeprefix(' ')}" if is_broken else opened + match[0]
        opened, place = "", place + is_character
    return written + opened


def _divided(text: str, cues: Sequence[_Cue]) -> list[str]:
    """Divide a translation among cues, in the proportions of their texts, best at punctuation."""
    total = sum(len(cue.text) for cue in cues) or 1
    shares = [sum(len(cue.text) for cue in cues[:number]) / total for number in range(1, len(cues))]
    masked = _TAG.sub(lambda tag: "\0" * len(tag[0]), text)
    words = [start for start, _ in word_spans(text)[1:] if masked[start] != "\0"] if shares else []
    outside = {opened.end(): opened.start() for opened in _OPENED.finditer(text)}
    starts = [outside.get(start, start) for start in words]
    cuts = [0]
    for share in shares:
        places = [start for start in starts if start > cuts[-1]]
        wanted = share * len(text)
        bonus = {
            place: _PUNCTUATION_BONUS * bool(_CLAUSE_END.search(text[max(0, place - 5) : place])) for place in places
        }
        cuts.append(min(places, key=lambda place: abs(place - wanted) - bonus[place], default=len(text)))
    pairs = _pairs(text)
    parts = []
    for start, end in pairwise([*cuts, len(text)]):
        opened = [opening[0] for opening, closing in pairs if opening.start() < start <= closing.start()]
        closed = [closing[0] for opening, closing in reversed(pairs) if opening.start() < end <= closing.start()]
        parts.append("".join(opened) + text[start:end].strip() + "".join(closed))
    return parts
