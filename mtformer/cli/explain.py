"""``mtformer explain``."""

import os
import shutil
import sys
from collections.abc import Iterable
from enum import StrEnum
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mtformer.cli.options import BeamOption, Device, DeviceOption, LengthPenaltyOption, ModelOption
from mtformer.cli.output import print_result
from mtformer.errors import UserError

if TYPE_CHECKING:
    from mtformer.explain.explanation import Checkpoint
    from mtformer.explain.terminal import View


class ExplainFormat(StrEnum):
    """How ``explain`` prints."""

    text = "text"
    json = "json"


def explain(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="One sentence.")],
    model: ModelOption = None,
    prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the translation must begin with, as in 'Das Tier'.")
    ] = None,
    why_not: Annotated[
        list[str] | None, typer.Option(metavar="WORD", help="Say why the translation lacks a word. Repeatable.")
    ] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Another sentence: show what changes in attention and output.")
    ] = None,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Show how the kept checkpoints of the run translated the sentence.")
    ] = False,
    attention: Annotated[bool, typer.Option("--attention", help="Show the attention of every layer and head.")] = False,
    layer: Annotated[int | None, typer.Option(metavar="N", help="The layer to show; else the last.")] = None,
    head: Annotated[int | None, typer.Option(metavar="N", help="The head to show; else the mean of all.")] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write everything as one HTML page, as in page.html.")
    ] = None,
    format: Annotated[
        ExplainFormat | None,
        typer.Option(help="Print a readable account (the default without --output) or the recorded trace."),
    ] = None,
    beam_size: BeamOption = None,
    length_penalty: LengthPenaltyOption = None,
    device: DeviceOption = Device.auto,
) -> None:
    """Show how a sentence is translated: tokens, attention, decoding step by step, the search, the matrices."""
    from mtformer.files import require_distinct
    from mtformer.runs import find_model
    from mtformer.text.lines import is_utf8, open_output

    given = {
        "the text": text,
        "--prefix": prefix,
        "--compare": compare,
        **{f"--why-not {w!r}": w for w in why_not or []},
    }
    for name, value in given.items():
        if value is not None and not is_utf8(value):
            raise UserError(f"{name} is not UTF-8")
    path = find_model(model)
    require_distinct(output, [path])
    if str(output) == "-" and format is not None:
        raise UserError("--output - and --format both print to standard output: name a file for the page")

    from mtformer.bundle import load_bundle
    from mtformer.explain import explanation
    from mtformer.translator import Translator

    bundle = load_bundle(path)
    translator = Translator.from_bundle(bundle, device, beam_size=beam_size, length_penalty=length_penalty)
    earlier: Iterable[Checkpoint] = ()
    if checkpoints:
        from mtformer.training.snapshots import checkpoint_models

        earlier = checkpoint_models(path, bundle.model)
    found = explanation.explain(
        translator.explainer(),
        text,
        model=explanation.describe(bundle, str(path)),
        prefix=prefix,
        why_not=why_not or [],
        compare_with=compare,
        checkpoints=earlier,
    )
    found.traces[0].require(layer, head)
    if output is not None:
        from mtformer.explain.page import render_page

        page = render_page(found.to_dict(), layer=layer, head=head)
        with open_output(output) as file:
            file.write(page)
    if format is ExplainFormat.json:
        print_result(dumps(found.to_dict(), ensure_ascii=False, allow_nan=False))
    elif format is ExplainFormat.text or output is None:
        from mtformer.explain.terminal import render

        print_result(render(found, _view(layer, head, all_attention=attention)))


def _view(layer: int | None, head: int | None, *, all_attention: bool) -> "View":
    """Fit the account to the terminal that standard output is, if it is one."""
    from mtformer.explain.terminal import View

    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    columns = max(60, min(shutil.get_terminal_size((100, 24)).columns, 140))
    color = is_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return View(columns, color, layer, head, all_attention)
