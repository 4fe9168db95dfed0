"""Options that several commands share, their use, and printing results."""

import logging
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mtformer.cli.command import Options, SearchFields, argument, option
from mtformer.support import hardware
from mtformer.support.errors import UserError
from mtformer.translate.jobs.options import Shard

if TYPE_CHECKING:
    from mtformer.config import Config, LanguagePair
    from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)

# The panels of the help.
IN_OUT = "Input and output"
TEST_SET = "Test set"
SEARCH = "Search"
CONTROL = "Control"
SAFETY = "Safety"
JOBS = "Jobs"

_FEW_WORDS = 2  # which may be the name of a file with a space
_BEAM = ("beam_size", "length_penalty")
_SEARCH = (*_BEAM, "precision", "sample", "temperature", "top_k", "top_p", "seed", "mbr")
_CONTROL = ("min_length", "max_length", "repetition_penalty", "no_repeat_ngram_size")
Beam = Annotated[dict[str, Any], SearchFields({SEARCH: _BEAM})]
Search = Annotated[dict[str, Any], SearchFields({SEARCH: _SEARCH, CONTROL: _CONTROL})]
NBest = Annotated[dict[str, Any], SearchFields({SEARCH: ("n_best", *_SEARCH), CONTROL: _CONTROL})]

_RUN = "a run's folder, or a folder of runs (its newest run)"
_OR_ELSE = "Default: $MTFORMER_MODEL, or else runs/."
BUNDLE = argument(f"A bundle, {_RUN}.", "BUNDLE")
MODEL = option(f"A bundle, {_RUN}. {_OR_ELSE}", metavar="PATH", panel=IN_OUT)
_MODELS = f"A bundle, an exported model, {_RUN}. {_OR_ELSE}"
MODELS = option(f"{_MODELS} Repeat for an ensemble.", metavar="PATH", panel=IN_OUT)
RUNS = argument(f"The folders of one or more runs. {_OR_ELSE}", "RUN")
TOKENIZER = option(f"{_MODELS} Or a SentencePiece model, FILE.model.", metavar="PATH")
TEXT = argument("The text; without it, --input or standard input is read.", "TEXT")
TEXT_OR_DOCUMENTS = argument(
    "The text; or documents, such as report.docx; without any, --input or standard input is read.", "TEXT"
)
CONFIG = argument("The config file.", "CONFIG")
CONFIG_OR_TEXTS = argument("The config file; not with --src and --tgt.", "CONFIG", default=None)
SET = option("Set a key, as in training.max_steps=1000.", "--set", metavar="KEY=VALUE")
INPUT = option("A text file, one sentence per line; - is standard input.")
PAGE_SUFFIXES = (".html", ".htm")
OUTPUT = option("The file to write; - is standard output.", default=Path("-"))
JSON = option("Print JSON.")
TAG = option("Translate like the training text with this tag (data.train).", metavar="NAME", panel=IN_OUT)
Device = hardware.Device
DEVICE = option("The device; auto takes cuda if there is a GPU, else cpu.", default="auto", panel=SEARCH)
RESUME = option("Resume an interrupted job.", panel=JOBS)


class Direction(Options):
    """The direction of a multilingual model."""

    panel = IN_OUT
    src_lang: str | None = option("The source language, if the model has several directions.", "--from", metavar="LANG")
    tgt_lang: str | None = option("The target language, if the model has several directions.", "--to", metavar="LANG")
    tag: str | None = TAG


class Compute(Options):
    """The device, and whether to run the model alone."""

    panel = SEARCH
    device: Device = DEVICE
    raw: bool = option("Run the model alone: do not split or change texts, do not check translations.", panel=SAFETY)


class Engine(Compute):
    """The engine, whose choice by ``auto`` :mod:`mtformer.engines.loading` describes, and an adapter."""

    engine: Literal["auto", "torch", "ctranslate2"] = option(
        "The engine; auto takes CTranslate2 if it is installed, supports all options and there is no GPU.",
        default="auto",
    )
    adapter: Path | None = option(
        "A LoRA adapter for the model: adapter.safetensors of a run with training.lora.", panel=IN_OUT
    )


class Job(Options):
    """Dividing and resuming the work on a file."""

    panel = JOBS
    resume: bool = RESUME
    shard: Shard | None = option("Process only share I of N of the lines.", parser=Shard.parse, metavar="I/N")


class Texts(Options):
    """Two text files instead of a config."""

    panel = "Two text files instead of a config"
    src: Path | None = option("Source text, such as train.en.gz.")
    tgt: Path | None = option("Its translation, line by line, such as train.de.gz.")
    src_lang: str | None = option("The language of --src. Default: the end of its name.", "--from", metavar="LANG")
    tgt_lang: str | None = option("The language of --tgt. Default: the end of its name.", "--to", metavar="LANG")

    def loaded(
        self, command: str, config: Path | None, overrides: list[str], *, write: bool | None = None
    ) -> "AbstractContextManager[Config]":
        """Read the config, or make one for two files.

        Args:
            command: the command, as the user writes it.
            config: the config file; None if there are two text files instead.
            overrides: settings, each ``dotted.key=value``.
            write: whether to write a config for two files, which is kept if training starts; None for commands other
                than training, which do not read an existing one either.

        Raises:
            UserError: neither or both are given, or they cannot be used.
        """
        from mtformer.config import load_config
        from mtformer.config.loading import refuse_source
        from mtformer.data.new_config import config_of_files, language_of, options_of_files
        from mtformer.runs.folder import RunFolder

        if config is not None:
            if any(value is not None for value in vars(self).values()):
                raise UserError("give a config, or two files with --src and --tgt, not both")
            if config.suffix not in (".yaml", ".yml") and language_of(config):
                usage = options_of_files(config, None, (None, None))
                raise UserError(
                    f"{config} is a text, not a config; to use it with its translation: mtformer {command} {usage}"
                )
            return nullcontext(load_config(config, overrides))
        languages = self.src_lang, self.tgt_lang
        if self.src is None and self.tgt is None:
            raise UserError(
                "name a config, or two text files with --src and --tgt, such as --src train.en --tgt train.de"
            )
        for path in filter(None, (self.src, self.tgt)):
            refuse_source(path, "a text in one language")
        usage = f"line by line: mtformer {command} {options_of_files(self.src, self.tgt, languages)}"
        if self.src is None:
            raise UserError(f"--tgt {self.tgt} needs --src, its source text, {usage}")
        if self.tgt is None:
            raise UserError(f"--src {self.src} needs --tgt, its translation, {usage}")
        return config_of_files(
            *(self.src, self.tgt, languages, overrides),
            has_started=lambda config: RunFolder.of(config).config.exists(),
            write=write,
        )


class TestSet(Options):
    """A test set; without any of these options, the run's."""

    panel = TEST_SET
    src: Path | None = option("Source text; without any of these, the test set of the (first) run.")
    ref: list[Path] | None = option("A reference translation. Repeatable.")
    data: list[str] | None = option(
        "A source, as in builtin:phrasebook,split:test or tsv:test.tsv. Repeatable.", metavar="SOURCE"
    )
    testset: list[str] | None = option(
        "A test set that sacreBLEU downloads, such as wmt14. Repeatable.", metavar="NAME"
    )


def parse_pair(pair: str) -> "LanguagePair":
    """Return the languages that ``--pair`` names.

    Raises:
        UserError: it does not name two.
    """
    from mtformer.config import LanguagePair
    from mtformer.config.section import LANGUAGE_CODE

    code = LANGUAGE_CODE.strip("^$")
    languages = re.fullmatch(f"(?P<src_lang>{code}?)-(?P<tgt_lang>{code})", pair)  # the first is as short as it can be
    if not languages:
        raise UserError(f"--pair {pair}: give the languages as in en-de")
    parsed = LanguagePair(**languages.groupdict())
    if parsed.src_lang == parsed.tgt_lang:
        raise UserError(f"--pair {pair}: both languages are {parsed.src_lang}")
    return parsed


def check_text(
    text: str | None, input: Path | None = None, *, reads_files: bool = True, writes_documents: bool = False
) -> None:
    """Refuse a text that is not UTF-8, is a path or comes with ``--input``; warn if it may be meant as a path.

    Args:
        text: the text; None for none.
        input: the file of ``--input``.
        reads_files: whether the command reads files at all.
        writes_documents: whether the output of the command could be a folder of translated documents.

    Raises:
        UserError: it is refused.
    """
    from mtformer.data.new_config import language_of
    from mtformer.text.lines import COMPRESSED, is_utf8
    from mtformer.translate.jobs.reading import TextInput, structured_suffix

    if text is None:
        return
    if input is not None:
        raise UserError("give a text or --input, not both")
    if not is_utf8(text):
        raise UserError("the text is not UTF-8")
    if text == "-":
        advice = ": leave it out to read standard input" if reads_files else ""
        log.warning("- is not standard input here, but a text%s", advice)
    if os.path.isfile(text):  # noqa: PTH113 (a text may be too long for a Path)
        if not reads_files:
            raise UserError(f"{text} is a file: give one of its sentences, in quotes")
        TextInput(path=Path(text))  # an error if it cannot be read with --input either
        raise UserError(
            f"{text} is a file: to read it, use --input {shlex.quote(text)}; to take its name as the text, pipe it in"
        )
    is_folder = os.path.isdir(text)  # noqa: PTH112 (as above)
    how_to_read = f"to read it, use --input {shlex.quote(text)}" if reads_files else ""
    if is_folder and {"/", os.sep}.intersection(text):
        raise UserError(f"{text} is a folder" + (how_to_read and f": {how_to_read}"))
    if is_folder and writes_documents:
        raise UserError(
            f"{text} is a folder: to translate its documents, write {shlex.quote(f'{text}/')}; to take its name as the "
            "text, pipe it in"
        )
    path, is_word = Path(text), _may_be_path(text)
    if is_word and (_is_path(text) or (reads_files and structured_suffix(path))):
        raise UserError(f"there is no file {text}")
    if is_folder:
        log.warning("%s is also a folder: its name is taken as the text%s", text, how_to_read and f"; {how_to_read}")
    elif len(text.split()) <= _FEW_WORDS and (
        structured_suffix(path) or path.suffix.lower() in COMPRESSED or language_of(path)
    ):
        log.warning("there is no file %s: its name is taken as the text", text)


def names_document(text: str) -> bool:
    """Tell whether an argument of ``translate`` names a document, or by a slash at its end a folder of them."""
    from mtformer.translate.documents.formats import find_format

    if text.endswith(("/", os.sep)):
        return os.path.isdir(text)  # noqa: PTH112 (as above)
    return bool(find_format(text)) and (_may_be_path(text) or os.path.isfile(text))  # noqa: PTH113 (as above)


def _may_be_path(text: str) -> bool:
    """Tell whether a text may be meant as a path: a sentence or a URL may only end like one."""
    is_in_folder = text.partition("/")[1] and os.path.isdir(os.path.dirname(text))  # noqa: PTH112, PTH120 (as above)
    return (len(text.split()) == 1 or bool(is_in_folder)) and "://" not in text


def _is_path(text: str) -> bool:
    """Tell whether a word can only be meant as a path: ./page.html or manual/."""
    path = text.replace(os.sep, "/")
    return (path.startswith(("./", "../")) or path.endswith("/")) and "://" not in path


def compared_options(context: typer.Context) -> dict[str, object]:
    """Return the options, besides the model, that must be the same when an unfinished output is resumed."""
    names = {parameter.name: parameter.opts[-1].lstrip("-") for parameter in context.command.params}
    not_compared = ("text", "input", "src", "tgt", "model", "output", "resume", "nproc")  # or by what they contain
    return {names[name]: value for name, value in context.params.items() if name not in not_compared}


def load_translator(models: Sequence[Path], **options: Any) -> "Translator":
    """Load a model or an ensemble. This takes seconds, so jobs check their options first."""
    from mtformer.translate.translator import Translator

    return Translator.load(models, **options)


def print_result(result: object, *, styled: bool = False) -> None:
    """Print to standard output and flush, so that a full disk or a closed pipe raises here.

    Args:
        result: what to print.
        styled: whether it contains control characters meant for the terminal.

    Raises:
        MtformerError: it cannot be written.
        OutputClosed: the reader has closed the pipe.
    """
    from mtformer.text.lines import open_output

    with open_output(None, styled=styled) as output:
        print(result, file=output)


def require_file(option: str, path: Path | None, shown: str) -> None:
    """Refuse standard output as a file, because the command prints something else there.

    Args:
        option: the option that names the file.
        path: the file; None if the option is not given.
        shown: the printed output.

    Raises:
        UserError: it is standard output.
    """
    from mtformer.text.lines import is_standard_output

    if path is not None and is_standard_output(path):
        raise UserError(f"{option} {path}: standard output is for {shown}; name a file")


def require_own_page(path: Path | None) -> None:
    """Refuse a page to write that is not named as one, or would replace another file than an earlier page.

    Raises:
        UserError: it is refused.
    """
    from mtformer.support.page import POLICY
    from mtformer.text.lines import open_input

    if path is None:
        return
    if not path.name.lower().removesuffix(".gz").endswith(PAGE_SUFFIXES):
        raise UserError(f"--output {path}: name a page, such as {path.stem or 'page'}.html")
    if path.is_file():
        with open_input(path) as file:
            if POLICY.encode() not in file.read(1_000):
                raise UserError(f"{path} exists and is not a page of mtformer: name another file with --output")


def columns() -> int:
    """Return the width to print at: the terminal's, within readable limits, or 100 where there is none."""
    return max(60, min(shutil.get_terminal_size((100, 24)).columns, 140))


def terminal_columns() -> int | None:
    """Return the width of the terminal that standard output is; None if it is none."""
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else None


def has_colours() -> bool:
    """Tell whether standard output is a terminal, and colours are wanted there (https://no-color.org)."""
    return (
        sys.stdout is not None
        and sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )
