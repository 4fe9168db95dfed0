"""``mtformer explain``."""

import logging
from contextlib import nullcontext
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mtformer.cli import options
from mtformer.cli.command import Options, argument, option
from mtformer.support.errors import UserError

if TYPE_CHECKING:
    from mtformer.bundle.format import Bundle
    from mtformer.explain.page import Focus
    from mtformer.explain.tokens import Spelling
    from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)


class QuestionOptions(Options):
    """Questions about a translation."""

    panel = "Questions"
    prefix: str | None = option("The beginning that the translation must have, such as 'Das Tier'.")
    why_not: list[str] | None = option("Explain why the translation lacks this word. Repeatable.", metavar="WORD")
    compare: str | None = option("Another sentence to compare: show how attention and output change.")
    checkpoints: bool = option("Also show how earlier models of the run translated the sentence.")


class AttentionOptions(Options):
    """The attention to show."""

    panel = "Attention"
    attention: bool = option("Show the attention of every layer and head.")
    kind: Literal["encoder", "decoder", "cross"] | None = option(
        "The attention to show; cross: from decoder to encoder. Default: all three."
    )
    layer: int | None = option("The layer to show. Default: the last.")
    head: int | None = option("The head to show. Default: the mean of all.")


class PageOptions(Options):
    """The printed output, and the page."""

    panel = options.IN_OUT
    output: Path | None = option("Write everything to an HTML page, such as lesson.html.")
    format: Literal["text", "json"] | None = option(
        "Print a readable account (the default without --output) or the recorded trace."
    )
    fixed: bool = option("Write a page about this sentence only, without the model.")
    language: Literal["en", "zh"] = option("The language of the page.", default="en")

    def check(self) -> None:
        """Refuse options that cannot be combined.

        Raises:
            UserError: the message names them.
        """
        options.require_file("--output", self.output, "what --format prints" if self.format else "the path of the page")
        for name, given in (("--language", self.language != "en"), ("--fixed", self.fixed)):
            if given and self.output is None:
                raise UserError(f"{name} needs --output, the page to write")

    def page(self, bundle: "Bundle", explanation: dict[str, Any], focus: "Focus") -> str:
        """Return the page: with the model inside if this is wanted and possible, else with the explanation only."""
        from mtformer.explain.live import render_lesson
        from mtformer.explain.page import render_page

        if not self.fixed:
            try:
                return render_lesson(bundle, explanation, focus, self.language)
            except UserError as error:
                log.info("%s; this page is about this sentence only, without the model", error)
        return render_page(explanation, focus, self.language)


def explain(
    text: str = argument("One sentence.", "TEXT"),
    *,
    model: Path | None = options.MODEL,
    direction: options.Direction,
    page: PageOptions,
    questions: QuestionOptions,
    shown: AttentionOptions,
    search: options.Beam,
    device: options.Device = options.DEVICE,
) -> None:
    """Show how a sentence is translated.

    This covers tokens, attention, decoding step by step, the search and the matrices. The model reads the sentence
    unchanged, except for slots, such as ⟨4711⟩; if translate would change it first, stderr shows the changed text. Of
    several sentences, a model with data.context translates the last, and reads the one before it first.
    The search shown is the first: translate searches again if the translation seems wrong or lacks a slot; stderr then
    shows what it would print.
    """
    from mtformer.runs.finding import find_model
    from mtformer.runs.folder import RunFolder
    from mtformer.support.files import require_distinct
    from mtformer.text.lines import open_output

    page.check()
    for sentence in (text, questions.compare):
        options.check_text(sentence, reads_files=False)
    path = find_model(model)
    run = RunFolder(path.parent)
    require_distinct(page.output, [path, *run.checkpoints.rglob("*"), *run.snapshots.rglob("*")])
    options.require_own_page(page.output)
    from mtformer.bundle.format import load_bundle
    from mtformer.explain import explanation as explaining
    from mtformer.explain.page import Focus
    from mtformer.explain.terminal import View, render
    from mtformer.translate.translator import Translator

    with nullcontext() if page.output is None else open_output(page.output) as file:  # before the work
        bundle = load_bundle(path).toward(**vars(direction))
        focus = Focus(shown.kind, shown.layer, shown.head)
        focus.require(bundle.header.architecture)
        checkpoints = explaining.checkpoint_models(run, bundle.model) if questions.checkpoints else ()
        translator = Translator.load(bundle, device, **search)
        explainer = translator.explainer()
        explanation = explaining.explain(
            explainer,
            text,
            model=explaining.describe(bundle, str(path)),
            prefix=questions.prefix,
            why_not=questions.why_not or [],
            compare_with=questions.compare,
            checkpoints=checkpoints,
        )
        translation = None if questions.prefix else explanation.traces[0].target.text
        _log_differences(translator, text, explainer.spelling(text), translation)
        if file is not None:
            file.write(page.page(bundle, explanation.to_dict(), focus))
    if page.output is not None and page.format is None:
        options.print_result(page.output)
    if page.format == "json":
        options.print_result(dumps(explanation.to_dict(), ensure_ascii=False, allow_nan=False))
    elif page.format == "text" or page.output is None:
        options.print_result(
            render(explanation, View(options.columns(), options.has_colours(), focus, shown.attention)), styled=True
        )


def _log_differences(translator: "Translator", text: str, spelling: "Spelling", translation: str | None) -> None:
    """Report where ``translate`` would read or print another text than the explained one."""
    if not (texts := translator.texts_read(spelling.sentence)):
        log.warning("translate copies this text unchanged; here is how the model would translate it")
    elif texts != [spelling.read]:
        log.info("translate would read: %s", " | ".join(texts))
    elif translation is not None:
        [[best, *_]] = translator.translate([text])
        if not best.text.endswith(translation):
            log.info("translate would search again or correct the translation, and print: %s", best.text)
