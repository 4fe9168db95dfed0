"""``mtformer explain``."""

from enum import StrEnum
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from mtformer.cli.options import (
    BeamOption,
    Device,
    DeviceOption,
    FromOption,
    LengthPenaltyOption,
    ModelOption,
    TagOption,
    ToOption,
)
from mtformer.cli.output import columns, has_colours, print_result, require_file


class ExplainFormat(StrEnum):
    """How ``explain`` prints."""

    text = "text"
    json = "json"


class AttentionKind(StrEnum):
    """The kinds of attention in a Transformer."""

    encoder = "encoder"
    decoder = "decoder"
    cross = "cross"


def explain(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="One sentence.")],
    model: ModelOption = None,
    from_: FromOption = None,
    to: ToOption = None,
    tag: TagOption = None,
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
    kind: Annotated[
        AttentionKind | None,
        typer.Option(help="The attention to show, where cross is from decoder to encoder; else all three."),
    ] = None,
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
    """Show how a sentence is translated.

    This covers tokens, attention, decoding step by step, the search and the matrices. The model reads the sentence as
    it is, as with translate --raw; if translate would change it first, stderr says what the model would read.
    """
    from mtformer.explain.explanation import explain_model
    from mtformer.explain.page import Focus
    from mtformer.explain.terminal import View, render
    from mtformer.runs.models import find_model
    from mtformer.translate.translator import Translator

    if format is not None:
        require_file("--output", output, "what --format prints")
    focus = Focus(kind, layer, head)
    found = explain_model(
        find_model(model),
        text,
        lambda bundle: Translator.from_bundle(bundle, device, beam_size=beam_size, length_penalty=length_penalty),
        src_lang=from_,
        tgt_lang=to,
        tag=tag,
        prefix=prefix,
        why_not=why_not or [],
        compare_with=compare,
        checkpoints=checkpoints,
        focus=focus,
        output=output,
    )
    if format is ExplainFormat.json:
        print_result(dumps(found.to_dict(), ensure_ascii=False, allow_nan=False))
    elif format is ExplainFormat.text or output is None:
        print_result(render(found, View(columns(), has_colours(), focus, attention)))
