"""``mtformer translate``."""

import logging
import os.path
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mtformer.cli.options import (
    IN_OUT,
    SEARCH,
    Device,
    DeviceOption,
    ModelOption,
    RawOption,
)
from mtformer.cli.search_options import SearchSettings, takes_search_options
from mtformer.errors import UserError
from mtformer.jobs.formats import Format

if TYPE_CHECKING:
    from mtformer.translator import Translator

log = logging.getLogger(__name__)


@takes_search_options
def translate(
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The text; without it, --input or standard input is read.")
    ] = None,
    # Input and output
    model: ModelOption = None,
    input: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A text file, one sentence a line; - is standard input.", rich_help_panel=IN_OUT
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write; - is standard output.", rich_help_panel=IN_OUT)
    ] = None,
    format: Annotated[
        Format, typer.Option(help="Plain text; or line, rank, score and text; or JSON.", rich_help_panel=IN_OUT)
    ] = Format.text,
    n_best: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Translations, or samples, of each line.", rich_help_panel=SEARCH),
    ] = None,
    device: DeviceOption = Device.auto,
    raw: RawOption = False,
    *,
    search: SearchSettings,
) -> None:
    """Translate a text, a file or standard input, line by line."""
    from mtformer.jobs.job import Job, run
    from mtformer.runs import find_model

    _check_text(text, input)
    bundle = find_model(model)

    def load() -> "Translator":
        from mtformer.translator import Translator  # takes seconds: bad arguments are reported before

        return Translator.load(bundle, device, raw=raw, n_best=n_best, **search)

    run(Job(text, input or Path("-"), output or Path("-"), format), bundle, load)


def _check_text(text: str | None, input: Path | None) -> None:
    from mtformer.text.lines import is_utf8

    if text is None:
        return
    if input is not None:
        raise UserError("give a text or --input, not both")
    if not is_utf8(text):
        raise UserError("the text is not UTF-8")
    if os.path.isfile(text):  # noqa: PTH113 (a text may be too long for a Path)
        log.warning("%s is a file's name: to translate what the file contains, use --input %s", text, text)
