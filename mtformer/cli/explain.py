"""``mtformer explain``."""

from json import dumps
from pathlib import Path
from typing import Literal

from mtformer.cli.command import Options, argument, option
from mtformer.cli.options import (
    DEVICE,
    IN_OUT,
    MODEL,
    BeamOptions,
    Device,
    DirectionOptions,
    columns,
    has_colours,
    print_result,
    require_file,
)


class QuestionOptions(Options):
    """Questions about a translation."""

    panel = "Questions"
    prefix: str | None = option("What the translation must begin with, as in 'Das Tier'.")
    why_not: list[str] | None = option("Say why the translation lacks a word. Repeatable.", metavar="WORD")
    compare: str | None = option("Another sentence: show what changes in attention and output.")
    checkpoints: bool = option("Show how the kept checkpoints of the run translated the sentence.")


class AttentionOptions(Options):
    """The attention to show."""

    panel = "Attention"
    attention: bool = option("Show the attention of every layer and head.")
    kind: Literal["encoder", "decoder", "cross"] | None = option(
        "The attention to show, where cross is from decoder to encoder; else all three."
    )
    layer: int | None = option("The layer to show; else the last.")
    head: int | None = option("The head to show; else the mean of all.")


def explain(
    text: str = argument("One sentence.", "TEXT"),
    *,
    model: Path | None = MODEL,
    direction: DirectionOptions,
    output: Path | None = option("Write everything as one HTML page, as in page.html.", panel=IN_OUT),
    format: Literal["text", "json"] | None = option(
        "Print a readable account (the default without --output) or the recorded trace.", panel=IN_OUT
    ),
    questions: QuestionOptions,
    shown: AttentionOptions,
    search: BeamOptions,
    device: Device = DEVICE,
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
    focus = Focus(shown.kind, shown.layer, shown.head)
    explanation = explain_model(
        find_model(model),
        text,
        lambda bundle: Translator.load(bundle, device, **search),
        **vars(direction),
        prefix=questions.prefix,
        why_not=questions.why_not or [],
        compare_with=questions.compare,
        checkpoints=questions.checkpoints,
        focus=focus,
        output=output,
    )
    if format == "json":
        print_result(dumps(explanation.to_dict(), ensure_ascii=False, allow_nan=False))
    elif format == "text" or output is None:
        print_result(render(explanation, View(columns(), has_colours(), focus, shown.attention)), styled=True)
