"""``mtformer translate``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mtformer.cli.options import BeamOption, Device, DeviceOption, Format, ModelOption
from mtformer.errors import UserError


def translate(
    text: Annotated[str | None, typer.Argument(help="The text; without it, --input or standard input is read.")] = None,
    model: ModelOption = None,
    input: Annotated[Path | None, typer.Option(help="A text file, one sentence a line; - is standard input.")] = None,
    output: Annotated[Path | None, typer.Option(help="Where to write; - is standard output.")] = None,
    beam_size: BeamOption = None,
    length_penalty: Annotated[float | None, typer.Option(min=0, help="Larger means longer translations.")] = None,
    n_best: Annotated[int, typer.Option(min=1, help="Translations of each line.")] = 1,
    format: Annotated[Format, typer.Option(help="Plain text; or line, rank, score and text; or JSON.")] = Format.text,
    device: DeviceOption = Device.auto,
) -> None:
    """Translate a text, a file, or what comes in through a pipe, line by line."""
    from mtformer.runs import find_model
    from mtformer.streams import translate_stream
    from mtformer.text.lines import is_utf8, open_output, read_lines
    from mtformer.translator import open_translator

    if text is not None and input is not None:
        raise UserError("give a text or --input, not both")
    if text is not None and not is_utf8(text):
        raise UserError("the text is not UTF-8")
    source = input or Path("-")
    if text is None and output is not None and output.exists() and source.exists() and output.samefile(source):
        raise UserError(f"--input and --output are the same file, {output}")
    translator = open_translator(find_model(model), device, beam_size, length_penalty, n_best)
    lines = text.split("\n") if text is not None else read_lines(source)
    typed = text is None and str(source) == "-" and sys.stdin.isatty()  # who types a line waits for its translation
    with open_output(output) as file:
        translate_stream(translator, lines, file, n_best=n_best, format=format, lines_at_once=1 if typed else 1_000)
