"""``mtformer translate``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mtformer.cli.options import BeamOption, Device, DeviceOption, Format, LengthPenaltyOption, ModelOption
from mtformer.errors import UserError


def translate(
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="The text; without it, --input or standard input is read.")
    ] = None,
    model: ModelOption = None,
    input: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A text file, one sentence a line; - is standard input.")
    ] = None,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write; - is standard output.")] = None,
    beam_size: BeamOption = None,
    length_penalty: LengthPenaltyOption = None,
    n_best: Annotated[int, typer.Option(metavar="N", min=1, help="Translations of each line.")] = 1,
    format: Annotated[Format, typer.Option(help="Plain text; or line, rank, score and text; or JSON.")] = Format.text,
    device: DeviceOption = Device.auto,
) -> None:
    """Translate a text, a file or standard input, line by line."""
    from mtformer.files import require_distinct
    from mtformer.runs import find_model
    from mtformer.streams import translate_stream
    from mtformer.text.lines import is_utf8, open_output, read_lines
    from mtformer.translator import open_translator

    if text is not None and input is not None:
        raise UserError("give a text or --input, not both")
    if text is not None and not is_utf8(text):
        raise UserError("the text is not UTF-8")
    source = input or Path("-")
    bundle = find_model(model)
    require_distinct(output or Path("-"), [bundle, *([source] if text is None else [])])
    typed = text is None and str(source) == "-" and sys.stdin.isatty()  # who types a line waits for its translation
    with open_output(output) as file:  # opened first: a wrong path must not cost the work
        translator = open_translator(bundle, device, beam_size, length_penalty, n_best)
        lines = text.split("\n") if text is not None else read_lines(source)
        translate_stream(translator, lines, file, n_best=n_best, format=format, lines_at_once=1 if typed else 1_000)
