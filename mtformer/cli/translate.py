"""``mtformer translate``, ``score``, ``tokenize`` and ``detokenize``."""

import logging
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from mtformer.cli import options
from mtformer.cli.command import Options, option
from mtformer.cli.documents import DocumentOptions
from mtformer.support.errors import UserError
from mtformer.translate.jobs.options import Format, OnError

if TYPE_CHECKING:
    from mtformer.text.glossary import Glossary
    from mtformer.text.tokenizer.vocabulary import Vocabulary
    from mtformer.translate.jobs.reading import TextInput


class FileOptions(Options):
    """The input, the output and its format."""

    panel = options.IN_OUT
    input: Path | None = option(
        "A text file, translated line by line, a document, or a folder of documents; - is standard input."
    )
    output: Path = options.OUTPUT
    format: Format = option(
        "text, tsv (line number, rank, score and text) or json; of documents, json prints the units.",
        default=Format.text,
    )
    alignments: bool = option("Add word alignments, as in 0-0 1-2.")
    document: bool = option("Join wrapped lines into paragraphs, and wrap their translations.")
    on_error: OnError = option(
        "On a line that is not UTF-8 or fails: stop, write an empty line (skip), or copy the line.",
        default=OnError.stop,
    )

    @property
    def for_lines(self) -> dict[str, bool]:
        """The options that do not apply to documents, and whether each is given."""
        return {
            "--format tsv": self.format is Format.tsv,
            "--alignments": self.alignments,
            "--document": self.document,
        }

    def source(self, text: str | None) -> "TextInput":
        """Return the source of the texts.

        Raises:
            UserError: some of the options cannot be combined.
        """
        from mtformer.text.lines import is_standard_output
        from mtformer.translate.jobs.reading import TextInput

        options.check_text(text, self.input, writes_documents=not is_standard_output(self.output))
        if self.document and self.alignments and self.format is Format.text:
            raise UserError("--alignments cannot be shown in the text of --document: use --format tsv or json")
        return TextInput(text, self.input or Path("-"), is_document=self.document, on_error=self.on_error)


class TermOptions(Options):
    """A glossary, and how to apply it."""

    panel = options.CONTROL
    terms: Path | None = option("A glossary: a term, a tab and its translation on each line.")
    terms_mode: Literal["hard", "soft", "both"] = option(
        "hard: force terms into translations; soft: annotate them in the source, for models trained with data.terms; "
        "or both.",
        default="hard",
    )

    def read(self, source: "TextInput", output: Path) -> "Glossary | None":
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


class MemoryOptions(Options):
    """A translation memory."""

    panel = options.CONTROL
    memory: str | None = option(
        "A translation memory: TMX, or a text, a tab and its translation on each line. Its translations are reused.",
        metavar="FILE",
    )
    fuzzy: float | None = option(
        "Let the search follow pairs of the memory with at least this similarity, such as 0.5; 1 means equal.",
        metavar="SIMILARITY",
    )

    def check(self, source: "TextInput", terms: Path | None, output: Path) -> list[Path]:
        """Return the files of the translation memory.

        Raises:
            UserError: the memory is missing, is the output, or shares standard input with the text or the glossary.
        """
        if self.memory is None:
            if self.fuzzy is not None:
                raise UserError(f"--fuzzy {self.fuzzy} needs --memory FILE, a translation memory")
            return []
        from mtformer.support.files import require_distinct
        from mtformer.translate.translation_memory import memory_source  # which imports numpy

        paths = [value for _, value in memory_source(self.memory, "", "") if isinstance(value, Path)]
        for others, what in ((source.files, "the text"), ([terms], "the glossary")):
            if "-" in map(str, paths) and "-" in map(str, others):
                raise UserError(f"--memory and {what} are both standard input: name a file for one of them")
        require_distinct(output, paths)
        return paths


def translate(
    context: typer.Context,
    text: list[str] | None = options.TEXT_OR_DOCUMENTS,
    *,
    model: list[Path] | None = options.MODELS,
    direction: options.Direction,
    files: FileOptions,
    search: options.NBest,
    compute: options.Engine,
    glossary: TermOptions,
    reuse: MemoryOptions,
    documents: DocumentOptions,
    job: options.Job,
    nproc: int = option("Translate a file in N processes, with torchrun.", default=1, min=1, panel=options.JOBS),
) -> None:
    """Translate documents; or a text, a file or standard input, line by line."""
    from mtformer.runs.finding import find_models
    from mtformer.support.hardware import keep_freed_memory
    from mtformer.translate.jobs.core import run
    from mtformer.translate.jobs.reading import TextInput
    from mtformer.translate.jobs.translating import TranslationJob

    if nproc > 1 or os.environ.get("RANK", "0") != "0":
        logging.getLogger("mtformer").setLevel(logging.ERROR)  # the first of the processes reports
    tasks = documents.tasks(text, files.input, files.output)
    source = TextInput("", on_error=files.on_error) if tasks else files.source(text[0] if text else None)
    terms = glossary.read(source, files.output)
    memory_files = reuse.check(source, glossary.terms, files.output)
    models = find_models(model)
    work = TranslationJob(
        source=source,
        models=models,
        output=files.output,
        format=files.format,
        n_best=search.get("n_best", 1),
        n_processes=max(nproc, int(os.environ.get("WORLD_SIZE", "1"))),
        options={**options.compared_options(context), "memory": [reuse.memory, *memory_files]},
        **vars(job),
    )
    if nproc > 1 and not tasks:
        from mtformer.support.processes.launch import launch

        work.check()
        launch(nproc, compute.device)
    keep_freed_memory()
    asked = {**vars(compute), **vars(direction), **search, **vars(reuse), "alignments": files.alignments}
    asked["token_log_probs"] = files.format is not Format.text
    load = partial(options.load_translator, models, **asked, terms=terms, terms_mode=glossary.terms_mode)
    if tasks:
        origin = context.get_parameter_source("output")  # documents are written beside their sources by default
        to_stdout = str(files.output) == "-" and origin is not None and origin.name != "DEFAULT"
        refused = {"--shard": job.shard is not None, "--nproc": nproc > 1, "--n-best": work.n_best > 1}
        refused["--output -"] = to_stdout
        read = [path for path in (glossary.terms, *memory_files) if path is not None]
        documents.translate(tasks, work, load, {**files.for_lines, **refused}, read)
    elif work.n_processes > 1:
        from mtformer.translate.jobs.ranks import run_on_ranks  # which imports torch

        run_on_ranks(work, load)
    else:
        run(work, load)


class ScoredFileOptions(Options):
    """The input, the output and its format."""

    panel = options.IN_OUT
    src: Path | None = option("Sources, one per line.")
    tgt: Path | None = option("Their translations, one per line.")
    input: Path = option(
        "Instead of --src and --tgt: a source, a tab and its translation on each line; - is standard input.",
        default=Path("-"),
    )
    output: Path = options.OUTPUT
    format: Format = option(
        "text (one score per line), tsv (score, source and translation) or json.", default=Format.text
    )


class ScoreOptions(Options):
    """The scores, and the selection by them."""

    panel = "Scores"
    normalize: bool = option("Print the mean log probability per token instead of the sum.")
    min_score: float | None = option("Print only the pairs with a score of at least X.")
    rerank: bool = option(
        "Read the output of translate --n-best N --format tsv; print the best translation of each line, or with "
        "--format tsv or json all of them, best first."
    )


def score(
    context: typer.Context,
    *,
    model: list[Path] | None = options.MODELS,
    direction: options.Direction,
    files: ScoredFileOptions,
    scores: ScoreOptions,
    compute: options.Engine,
    resume: bool = options.RESUME,
) -> None:
    """Score given translations.

    Prints the log probability of each by the model, in nats.
    """
    from mtformer.runs.finding import find_models
    from mtformer.translate.jobs.core import run
    from mtformer.translate.jobs.scoring import ScoringJob

    models = find_models(model)
    compared = options.compared_options(context)
    job = ScoringJob(models=models, **vars(files), **vars(scores), resume=resume, options=compared)
    run(job, partial(options.load_translator, models, **vars(compute), **vars(direction)))


class TokenizerOptions(Options):
    """A tokenizer, the input and the output."""

    model: Path | None = options.TOKENIZER
    side: Literal["src", "tgt"] = option("The side, if each language has its own vocabulary.", default="src")
    input: Path | None = options.INPUT
    output: Path = options.OUTPUT

    def load(self, text: str | None) -> "tuple[Vocabulary, str | None, Path, Path]":
        """Return the vocabulary, the text or the file to read, and the file to write."""
        from mtformer.runs.finding import find_model
        from mtformer.support.files import require_distinct
        from mtformer.translate.jobs.tokenizing import load_tokenizer

        options.check_text(text, self.input)
        source, path = self.input or Path("-"), find_model(self.model)
        require_distinct(self.output, [source, path])
        tokenizer = load_tokenizer(path)
        return tokenizer.src if self.side == "src" else tokenizer.tgt, text, source, self.output


def tokenize(
    text: str | None = options.TEXT, *, files: TokenizerOptions, ids: bool = option("Print the ids of the tokens.")
) -> None:
    """Split text into the tokens of a model.

    One line in, one line out, with spaces between the tokens.
    """
    from mtformer.translate.jobs.tokenizing import tokenize

    tokenize(*files.load(text), ids=ids)


def detokenize(
    text: str | None = options.TEXT, *, files: TokenizerOptions, ids: bool = option("Read the ids of the tokens.")
) -> None:
    """Join tokens into text, the inverse of tokenize."""
    from mtformer.translate.jobs.tokenizing import detokenize

    detokenize(*files.load(text), ids=ids)
