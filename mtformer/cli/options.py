"""Options that several commands share, and what the commands do with them."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mtformer.cli.command import Options, SearchFields, argument, option
from mtformer.support.errors import UserError
from mtformer.translate.jobs.options import Shard

if TYPE_CHECKING:
    from mtformer.config import LanguagePair
    from mtformer.evaluate.testsets import TextOptions
    from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)

# The panels of the help.
IN_OUT = "Input and output"
TEST_SET = "Test set"
SCORES = "Scores"
SEARCH = "Search"
CONTROL = "Control"
SAFETY = "Safety"
JOBS = "Jobs"

_BEAM = ("beam_size", "length_penalty")
_SEARCH = (*_BEAM, "precision", "sample", "temperature", "top_k", "top_p", "seed", "mbr")
_CONTROL = ("min_length", "max_length", "repetition_penalty", "no_repeat_ngram_size")
BeamOptions = Annotated[dict[str, Any], SearchFields({SEARCH: _BEAM})]
SearchOptions = Annotated[dict[str, Any], SearchFields({SEARCH: _SEARCH, CONTROL: _CONTROL})]
NBestOptions = Annotated[dict[str, Any], SearchFields({SEARCH: ("n_best", *_SEARCH), CONTROL: _CONTROL})]

_MODEL = "a run's folder, or a folder of runs (its newest run)"
_DEFAULT_MODEL = "Default: $MTFORMER_MODEL, or else runs/."
BundleArgument = Annotated[Path, argument(f"A bundle, {_MODEL}.", "BUNDLE")]
ModelOption = Annotated[
    Path | None, option(f"A bundle, {_MODEL}. {_DEFAULT_MODEL}", "--model", metavar="PATH", panel=IN_OUT)
]
ModelsOption = Annotated[
    list[Path] | None,
    option(
        f"A bundle, an exported model, {_MODEL}. {_DEFAULT_MODEL} Repeated: an ensemble.",
        "--model",
        metavar="PATH",
        panel=IN_OUT,
    ),
]
TokenizerOption = Annotated[
    Path | None,
    option(
        f"A bundle, an exported model, {_MODEL}. {_DEFAULT_MODEL} Or a SentencePiece model, FILE.model.",
        "--model",
        metavar="PATH",
    ),
]
TextArgument = Annotated[str | None, argument("The text; without it, --input or standard input is read.", "TEXT")]
ConfigArgument = Annotated[Path, argument("The config file.", "CONFIG")]
SetOption = Annotated[
    list[str] | None, option("Set a key, as in training.max_steps=1000.", "--set", metavar="KEY=VALUE")
]
InputOption = Annotated[Path | None, option("A text file, one sentence a line; - is standard input.")]
OutputOption = Annotated[Path, option("Where to write; - is standard output.")]
JsonOption = Annotated[bool, option("Print JSON.")]
TagOption = Annotated[
    str | None,
    option("Translate like the training text with this tag (data.train).", metavar="NAME", panel=IN_OUT),
]
DeviceOption = Annotated[
    Literal["auto", "cpu", "cuda"],
    option("Where to compute; auto takes a GPU when there is one.", panel=SEARCH),
]
ResumeOption = Annotated[bool, option("Continue the output of a job that was interrupted.", panel=JOBS)]
_Engine = Literal["auto", "torch", "ctranslate2"]


@dataclass(frozen=True)
class DirectionOptions(Options):
    """The direction of a model that has several."""

    panel = IN_OUT
    src_lang: Annotated[
        str | None, option("Source language, for a model of several directions.", "--from", metavar="LANG")
    ] = None
    tgt_lang: Annotated[
        str | None, option("Target language, for a model of several directions.", "--to", metavar="LANG")
    ] = None
    tag: TagOption = None


@dataclass(frozen=True)
class ComputeOptions(Options):
    """The device, and whether anything is done beside running the model."""

    panel = SEARCH
    device: DeviceOption = "auto"
    raw: Annotated[
        bool, option("Only the model: texts are neither split nor changed, translations not checked.", panel=SAFETY)
    ] = False


@dataclass(frozen=True)
class EngineOptions(ComputeOptions):
    """The engine; :mod:`mtformer.engines.loading` says which one ``auto`` takes."""

    engine: Annotated[
        _Engine,
        option("The engine; auto takes CTranslate2 if it is installed, supports all options and there is no GPU."),
    ] = "auto"


@dataclass(frozen=True)
class JobOptions(Options):
    """How a file is divided, and resumed."""

    panel = JOBS
    resume: ResumeOption = False
    shard: Annotated[Shard | None, option("Work on share I of N of the lines.", parser=Shard.parse, metavar="I/N")] = (
        None
    )


@dataclass(frozen=True)
class TestSetOptions(Options):
    """A test set; without any of these, that of a run."""

    panel = TEST_SET
    src: Annotated[Path | None, option("Source text; without any of these, the test set of the (first) run.")] = None
    ref: Annotated[list[Path] | None, option("A reference translation; may be repeated.")] = None
    data: Annotated[
        list[str] | None,
        option("A source, as in builtin:phrasebook,split:test or tsv:test.tsv; may be repeated.", metavar="SOURCE"),
    ] = None
    testset: Annotated[
        list[str] | None,
        option("A test set that sacreBLEU downloads, such as wmt14; may be repeated.", metavar="NAME"),
    ] = None

    @property
    def texts(self) -> "TextOptions":
        """The texts to read."""
        return {"src": self.src, "ref": self.ref or [], "data": self.data or [], "testset": self.testset or []}


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


def compared_options(context: typer.Context) -> dict[str, object]:
    """Return the options, besides the model, that must be the same when an unfinished output is resumed."""
    names = {parameter.name: parameter.opts[-1].lstrip("-") for parameter in context.command.params}
    not_compared = ("text", "input", "src", "tgt", "model", "output", "resume", "nproc")  # or by what they contain
    return {names[name]: value for name, value in context.params.items() if name not in not_compared}


def load_translator(models: Sequence[Path], **options: Any) -> "Translator":
    """Load a model or an ensemble; this takes seconds, so jobs do it once they have refused what cannot work."""
    from mtformer.translate.translator import Translator

    return Translator.load(models, **options)
