"""``mtformer translate``."""

import json
import logging
import os.path
import sys
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mtformer.cli.options import BeamOption, Device, DeviceOption, Format, LengthPenaltyOption, ModelOption
from mtformer.errors import UserError

if TYPE_CHECKING:
    from mtformer.pipeline import Translation

log = logging.getLogger(__name__)


def translate(
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The text; without it, --input or standard input is read.")
    ] = None,
    model: ModelOption = None,
    input: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A text file, one sentence a line; - is standard input.")
    ] = None,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write; - is standard output.")] = None,
    beam_size: BeamOption = None,
    length_penalty: LengthPenaltyOption = None,
    n_best: Annotated[int | None, typer.Option(metavar="N", min=1, help="Translations of each line.")] = None,
    format: Annotated[Format, typer.Option(help="Plain text; or line, rank, score and text; or JSON.")] = Format.text,
    device: DeviceOption = Device.auto,
) -> None:
    """Translate a text, a file or standard input, line by line."""
    from mtformer.files import require_distinct
    from mtformer.progress import Progress
    from mtformer.runs import find_model
    from mtformer.text.lines import is_utf8, open_output, read_lines

    if text is not None and input is not None:
        raise UserError("give a text or --input, not both")
    if text is not None and not is_utf8(text):
        raise UserError("the text is not UTF-8")
    if text is not None and os.path.isfile(text):  # noqa: PTH113 (a text may be too long for a Path)
        log.warning("%s is a file's name: to translate what the file contains, use --input %s", text, text)
    source = input or Path("-")
    bundle = find_model(model)
    require_distinct(output or Path("-"), [bundle, *([source] if text is None else [])])

    from mtformer.translator import Translator  # takes seconds: bad arguments are reported before

    typed = text is None and str(source) == "-" and sys.stdin.isatty()
    at_once = 1 if typed else 1_000  # who types a line waits for its translation
    with open_output(output) as file:  # opened first: a wrong path must not cost the work
        translator = Translator.load(bundle, device, beam_size=beam_size, length_penalty=length_penalty, n_best=n_best)
        texts, lines = tee(text.split("\n") if text is not None else read_lines(source))
        with Progress("translating", unit="lines") as progress:
            found = translator.stream(lines, at_once=at_once, on_progress=progress.advance)
            for number, (line, translations) in enumerate(zip(texts, found, strict=True), 1):
                file.write(_format(number, line, translations, format))
                if number % at_once == 0:
                    file.flush()


def _format(number: int, text: str, translations: list["Translation"], format: Format) -> str:
    """Return the output lines for line ``number``."""
    match format:
        case Format.text:
            return "".join(f"{t.text}\n" for t in translations)
        case Format.tsv:
            return "".join(f"{number}\t{rank}\t{t.score:.4f}\t{t.text}\n" for rank, t in enumerate(translations, 1))
        case Format.json:
            found = [
                {
                    "text": t.text,
                    "score": round(t.score, 4),
                    "log_prob": round(t.log_prob, 4),
                    "tokens": t.tokens,
                    "token_log_probs": [round(log_prob, 4) for log_prob in t.token_log_probs],
                    "notes": t.notes,
                }
                for t in translations
            ]
            return json.dumps({"line": number, "src": text, "translations": found}, ensure_ascii=False) + "\n"
