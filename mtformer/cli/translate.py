"""``mtformer translate``."""

import logging
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mtformer.cli.command import Options, option
from mtformer.cli.options import (
    CONTROL,
    IN_OUT,
    JOBS,
    DirectionOptions,
    EngineOptions,
    InputOption,
    JobOptions,
    ModelsOption,
    NBestOptions,
    OutputOption,
    TextArgument,
    check_text,
    compared_options,
    load_translator,
)
from mtformer.support.errors import UserError
from mtformer.translate.jobs.options import Format, OnError

if TYPE_CHECKING:
    from mtformer.text.glossary import Glossary
    from mtformer.translate.jobs.reading import Source


@dataclass(frozen=True)
class FileOptions(Options):
    """The input, the output and its format."""

    panel = IN_OUT
    input: InputOption = None
    output: OutputOption = Path("-")
    format: Annotated[Format, option("Plain text; or line, rank, score and text; or JSON.")] = Format.text
    alignments: Annotated[bool, option("Add word alignments, as in 0-0 1-2.")] = False
    document: Annotated[bool, option("Join wrapped lines to paragraphs, and wrap their translations.")] = False
    on_error: Annotated[
        OnError, option("At a line that is not UTF-8 or fails: stop; or write an empty line (skip) or the line (copy).")
    ] = OnError.stop

    def source(self, text: str | None) -> "Source":
        """Return the source of the texts.

        Raises:
            UserError: some of the options do not go together.
        """
        from mtformer.translate.jobs.reading import Source

        check_text(text, self.input)
        if self.document and self.alignments and self.format is Format.text:
            raise UserError("--alignments has no place in the text of --document: use --format tsv or json")
        return Source(text, self.input or Path("-"), is_document=self.document, on_error=self.on_error)


@dataclass(frozen=True)
class TermOptions(Options):
    """A glossary, and how its terms appear in translations."""

    panel = CONTROL
    terms: Annotated[Path | None, option("A glossary: a term, a tab and its translation on each line.")] = None
    terms_mode: Annotated[
        Literal["hard", "soft", "both"],
        option(
            "hard: force terms into translations; soft: annotate them in the source, for models trained with "
            "data.terms; or both."
        ),
    ] = "hard"

    def read(self, source: "Source", output: Path) -> "Glossary | None":
        """Read the glossary; None without one.

        Raises:
            UserError: it cannot be used with ``source`` and ``output``.
        """
        from mtformer.support.files import require_distinct
        from mtformer.text.glossary import Glossary

        if self.terms is None:
            if self.terms_mode != "hard":
                raise UserError(f"--terms-mode {self.terms_mode} needs --terms FILE, a glossary")
            return None
        if source.text is None and str(self.terms) == str(source.path) == "-":
            raise UserError("--terms and the text are both standard input: name a file for one of them")
        require_distinct(output, [self.terms])
        return Glossary.read(self.terms)


def translate(
    context: typer.Context,
    text: TextArgument = None,
    *,
    model: ModelsOption = None,
    direction: DirectionOptions,
    files: FileOptions,
    search: NBestOptions,
    compute: EngineOptions,
    terms: TermOptions,
    job: JobOptions,
    nproc: Annotated[int, option("Translate a file in N processes, with torchrun.", min=1, panel=JOBS)] = 1,
) -> None:
    """Translate a text, a file or standard input, line by line."""
    from mtformer.runs.models import find_models
    from mtformer.support.memory import keep_freed_memory
    from mtformer.translate.jobs.core import run
    from mtformer.translate.jobs.translating import TranslationJob

    if nproc > 1 or os.environ.get("RANK", "0") != "0":
        logging.getLogger("mtformer").setLevel(logging.ERROR)  # the first of the processes reports
    source = files.source(text)
    asked = {**vars(compute), **vars(direction), **search, "alignments": files.alignments}
    asked |= {"terms": terms.read(source, files.output), "terms_mode": terms.terms_mode}
    models = find_models(model)
    work = TranslationJob(
        source=source,
        models=models,
        output=files.output,
        format=files.format,
        n_best=search.get("n_best", 1),
        n_processes=max(nproc, int(os.environ.get("WORLD_SIZE", "1"))),
        options=compared_options(context),
        **vars(job),
    )
    if nproc > 1:
        from mtformer.support.processes.launch import launch

        work.check()
        launch(nproc, compute.device)
    keep_freed_memory()
    load = partial(load_translator, models, **asked)
    if work.n_processes > 1:
        from mtformer.translate.jobs.ranks import run_on_ranks  # which imports torch

        run_on_ranks(work, load)
    else:
        run(work, load)
