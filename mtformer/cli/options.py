"""Options that several commands share."""

import logging
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mtformer.support.errors import UserError
from mtformer.translate.jobs.options import Shard

if TYPE_CHECKING:
    from mtformer.config import LanguagePair

log = logging.getLogger(__name__)

# The groups in the help of commands with many options.
IN_OUT = "Input and output"
TEST_SET = "Test set"
SCORES = "Scores"
SEARCH = "Search"
CONTROL = "Control"
SAFETY = "Safety"
JOBS = "Jobs"


class TableFormat(StrEnum):
    """How ``compare`` prints."""

    text = "text"
    json = "json"
    csv = "csv"
    markdown = "markdown"
    latex = "latex"


class Device(StrEnum):
    """Where to compute; ``auto`` takes a GPU when there is one."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class EngineChoice(StrEnum):
    """What computes; ``auto`` takes CTranslate2 where it can."""

    auto = "auto"
    torch = "torch"
    ctranslate2 = "ctranslate2"


ModelOption = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="PATH",
        help="A bundle, a run's folder, or a folder of runs (its newest run). Default: $MTFORMER_MODEL, or else runs/.",
        rich_help_panel=IN_OUT,
    ),
]
BeamOption = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Hypotheses kept at each step; 1 is greedy search.", rich_help_panel=SEARCH),
]
LengthPenaltyOption = Annotated[
    float | None,
    typer.Option(metavar="ALPHA", min=0, help="Larger means longer translations.", rich_help_panel=SEARCH),
]
ModelsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--model",
        metavar="PATH",
        help="A bundle, an exported model, a run's folder, or a folder of runs (its newest run). Default: "
        "$MTFORMER_MODEL, or else runs/. Repeated: an ensemble.",
        rich_help_panel=IN_OUT,
    ),
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="LANG", help="Source language, for a model of several directions.", rich_help_panel=IN_OUT
    ),
]
ToOption = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="LANG", help="Target language, for a model of several directions.", rich_help_panel=IN_OUT
    ),
]
TagOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Translate like the training text with this tag (data.train).", rich_help_panel=IN_OUT
    ),
]
NBestOption = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="How many translations, or samples, of each line to output.", rich_help_panel=SEARCH
    ),
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Continue the output of a job that was interrupted.", rich_help_panel=JOBS)
]
ShardOption = Annotated[
    Shard | None,
    typer.Option(parser=Shard.parse, metavar="I/N", help="Work on share I of N of the lines.", rich_help_panel=JOBS),
]
DeviceOption = Annotated[
    Device, typer.Option(help="Where to compute; auto takes a GPU when there is one.", rich_help_panel=SEARCH)
]
RawOption = Annotated[
    bool,
    typer.Option(
        "--raw", help="Only the model: no splitting into sentences, no casing, no checks.", rich_help_panel=SAFETY
    ),
]
EngineOption = Annotated[
    EngineChoice,
    typer.Option(
        help="The engine; auto takes CTranslate2 if it is installed, supports all options and there is no GPU.",
        rich_help_panel=SEARCH,
    ),
]
OptionalEngineOption = Annotated[
    EngineChoice | None,
    typer.Option(
        "--engine",
        help="The engine. A bundle runs on torch by default, so that results do not depend on what is installed.",
        rich_help_panel=SEARCH,
    ),
]
DataOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SOURCE",
        help="A source, as in builtin:phrasebook,split:test or tsv:test.tsv; may be repeated.",
        rich_help_panel=TEST_SET,
    ),
]
TestSetOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A test set that sacreBLEU downloads, such as wmt14; may be repeated.",
        rich_help_panel=TEST_SET,
    ),
]


def parse_pair(pair: str) -> "LanguagePair":
    """Return the languages that ``--pair`` names.

    Raises:
        UserError: it does not name two.
    """
    from mtformer.config import LanguagePair

    src_lang, dash, tgt_lang = pair.partition("-")
    if not (src_lang and dash and tgt_lang):
        raise UserError(f"--pair {pair}: give the languages as in en-de")
    if src_lang == tgt_lang:
        raise UserError(f"--pair {pair}: both languages are {src_lang}")
    return LanguagePair(src_lang, tgt_lang)


def check_text(text: str | None, input: Path | None) -> None:
    """Refuse a text that is not UTF-8 or that comes with ``--input``; warn of one that may be meant as a file.

    Raises:
        UserError: it is refused.
    """
    from mtformer.text.lines import is_utf8

    if text is None:
        return
    if input is not None:
        raise UserError("give a text or --input, not both")
    if not is_utf8(text):
        raise UserError("the text is not UTF-8")
    if text == "-":
        log.warning("- is a text here: leave it out to read standard input")
    if os.path.isfile(text):  # noqa: PTH113 (a text may be too long for a Path)
        log.warning("%s is a file's name: to read the file, use --input %s", text, text)
