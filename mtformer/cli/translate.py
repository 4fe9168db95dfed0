"""``mtformer translate``."""

import logging
import os
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mtformer.cli.jobs import compared_options, load_translator
from mtformer.cli.options import (
    CONTROL,
    IN_OUT,
    JOBS,
    Device,
    DeviceOption,
    EngineChoice,
    EngineOption,
    FromOption,
    ModelsOption,
    NBestOption,
    RawOption,
    ResumeOption,
    ShardOption,
    TagOption,
    ToOption,
    check_text,
)
from mtformer.cli.search_options import SearchSettings, takes_search_options
from mtformer.support.errors import UserError
from mtformer.translate.jobs.options import Format, OnError

if TYPE_CHECKING:
    from mtformer.text.glossary import Glossary
    from mtformer.translate.jobs.reading import Source


class TermsMode(StrEnum):
    """How to make the translations of terms appear."""

    hard = "hard"
    soft = "soft"
    both = "both"


@takes_search_options
def translate(
    context: typer.Context,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The text; without it, --input or standard input is read.")
    ] = None,
    # Input and output
    model: ModelsOption = None,
    input: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A text file, one sentence a line; - is standard input.", rich_help_panel=IN_OUT
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write; - is standard output.", rich_help_panel=IN_OUT)
    ] = None,
    from_: FromOption = None,
    to: ToOption = None,
    tag: TagOption = None,
    format: Annotated[
        Format, typer.Option(help="Plain text; or line, rank, score and text; or JSON.", rich_help_panel=IN_OUT)
    ] = Format.text,
    alignments: Annotated[
        bool, typer.Option("--alignments", help="Add word alignments, as in 0-0 1-2.", rich_help_panel=IN_OUT)
    ] = False,
    document: Annotated[
        bool,
        typer.Option(
            "--document", help="Join wrapped lines to paragraphs, and wrap their translations.", rich_help_panel=IN_OUT
        ),
    ] = False,
    on_error: Annotated[
        OnError,
        typer.Option(
            help="At a line that is not UTF-8: stop; or write an empty line (skip), or the line (copy).",
            rich_help_panel=IN_OUT,
        ),
    ] = OnError.stop,
    # Search
    n_best: NBestOption = None,
    device: DeviceOption = Device.auto,
    engine: EngineOption = EngineChoice.auto,
    raw: RawOption = False,
    # Control
    terms: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A glossary: a term, a tab and its translation on each line.",
            rich_help_panel=CONTROL,
        ),
    ] = None,
    terms_mode: Annotated[
        TermsMode,
        typer.Option(
            help="hard: force terms into translations; soft: annotate them in the source, for models trained with "
            "data.terms; or both.",
            rich_help_panel=CONTROL,
        ),
    ] = TermsMode.hard,
    *,
    search: SearchSettings,
    # Jobs
    resume: ResumeOption = False,
    shard: ShardOption = None,
    nproc: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Translate a file in N processes, with torchrun.", rich_help_panel=JOBS),
    ] = 1,
) -> None:
    """Translate a text, a file or standard input, line by line."""
    from mtformer.runs.models import find_models
    from mtformer.support.memory import keep_freed_memory
    from mtformer.translate.jobs.core import run
    from mtformer.translate.jobs.reading import Source
    from mtformer.translate.jobs.translating import TranslationJob

    if nproc > 1 or os.environ.get("RANK", "0") != "0":
        logging.getLogger("mtformer").setLevel(logging.ERROR)  # the first of the processes reports
    check_text(text, input)
    if document and alignments and format is Format.text:
        raise UserError("--alignments has no place in the text of --document: use --format tsv or json")
    if terms is None and terms_mode is not TermsMode.hard:
        raise UserError(f"--terms-mode {terms_mode.value} needs --terms FILE, a glossary")
    target = output or Path("-")
    source = Source(text, input or Path("-"), is_document=document, on_error=on_error)
    models = find_models(model)
    load = partial(
        load_translator,
        models,
        device,
        engine=engine,
        terms=None if terms is None else _read_terms(terms, source, target),
        terms_mode=terms_mode.value,
        raw=raw,
        alignments=alignments,
        src_lang=from_,
        tgt_lang=to,
        tag=tag,
        n_best=n_best,
        **search,
    )
    job = TranslationJob(
        source=source,
        models=models,
        output=target,
        shard=shard,
        format=format,
        n_best=n_best or 1,
        n_processes=max(nproc, int(os.environ.get("WORLD_SIZE", "1"))),
        resume=resume,
        options=compared_options(context),
    )
    if nproc > 1:
        from mtformer.support.processes.launch import launch

        job.check()
        launch(nproc, device)
    keep_freed_memory()
    if job.n_processes > 1:
        from mtformer.translate.jobs.ranks import run_on_ranks

        run_on_ranks(job, load)
    else:
        run(job, load)


def _read_terms(terms: Path, source: "Source", output: Path) -> "Glossary":
    from mtformer.support.files import require_distinct
    from mtformer.text.glossary import Glossary

    if source.text is None and str(terms) == str(source.path) == "-":
        raise UserError("--terms and the text are both standard input: name a file for one of them")
    require_distinct(output, [terms])
    return Glossary.read(terms)
