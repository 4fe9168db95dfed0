"""``mtformer explain``."""

import logging
from json import dumps
from pathlib import Path
from typing import Literal

from mtformer.cli import options
from mtformer.cli.command import Options, argument, option

log = logging.getLogger(__name__)


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
    model: Path | None = options.MODEL,
    direction: options.Direction,
    output: Path | None = option("Write everything as one HTML page, as in page.html.", panel=options.IN_OUT),
    format: Literal["text", "json"] | None = option(
        "Print a readable account (the default without --output) or the recorded trace.", panel=options.IN_OUT
    ),
    questions: QuestionOptions,
    shown: AttentionOptions,
    search: options.Beam,
    device: options.Device = options.DEVICE,
) -> None:
    """Show how a sentence is translated.

    This covers tokens, attention, decoding step by step, the search and the matrices. The model reads the sentence as
    it is, as with translate --raw; if translate would change it first, stderr says what the model would read.
    """
    from mtformer.bundle.format import load_bundle
    from mtformer.explain import explanation as explaining
    from mtformer.explain.page import Focus, render_page
    from mtformer.explain.terminal import View, render
    from mtformer.runs.folder import RunFolder, find_model
    from mtformer.support.files import require_distinct
    from mtformer.text.lines import open_output
    from mtformer.translate.translator import Translator

    if format is not None:
        options.require_file("--output", output, "what --format prints")
    path = find_model(model)
    run = RunFolder(path.parent)
    require_distinct(output, [path, *run.checkpoints.rglob("*")])
    bundle = load_bundle(path).toward(**vars(direction))
    focus = Focus(shown.kind, shown.layer, shown.head)
    focus.require(bundle.header.architecture)
    checkpoints = explaining.checkpoint_models(run, bundle.model) if questions.checkpoints else ()
    translator = Translator.load(bundle, device, **search)
    explanation = explaining.explain(
        translator.explainer(),
        text,
        model=explaining.describe(bundle, str(path)),
        prefix=questions.prefix,
        why_not=questions.why_not or [],
        compare_with=questions.compare,
        checkpoints=checkpoints,
    )
    if (texts := translator.texts_read(text)) != [text]:
        log.info("translate would read: %s", " | ".join(texts) or "nothing, and copy the text")
    if output is not None:
        page = render_page(explanation.to_dict(), focus)
        with open_output(output) as file:
            file.write(page)
        log.info("the page is written to %s", output)
    if format == "json":
        options.print_result(dumps(explanation.to_dict(), ensure_ascii=False, allow_nan=False))
    elif format == "text" or output is None:
        options.print_result(
            render(explanation, View(options.columns(), options.has_colours(), focus, shown.attention)), styled=True
        )
