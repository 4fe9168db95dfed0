"""``mtformer tokenize`` and ``mtformer detokenize``."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mtformer.cli.options import check_text

if TYPE_CHECKING:
    from mtformer.translate.jobs.tokenizing import Side


class SideName(StrEnum):
    """Which vocabulary to use, where there are two."""

    src = "src"
    tgt = "tgt"


TextArgument = Annotated[
    str | None, typer.Argument(metavar="TEXT", help="The text; without it, --input or standard input is read.")
]
ModelOption = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="PATH",
        help="A bundle, an exported model, a run's folder, or a folder of runs (its newest run). Default: "
        "$MTFORMER_MODEL, or else runs/. Or a SentencePiece model, FILE.model.",
    ),
]
SideOption = Annotated[SideName, typer.Option("--side", help="The vocabulary, where each language has one of its own.")]
InputOption = Annotated[Path | None, typer.Option(metavar="FILE", help="The file to read; - is standard input.")]
OutputOption = Annotated[Path, typer.Option(metavar="FILE", help="Where to write; - is standard output.")]


def tokenize(
    text: TextArgument = None,
    model: ModelOption = None,
    side: SideOption = SideName.src,
    ids: Annotated[bool, typer.Option("--ids", help="Print the ids of the tokens.")] = False,
    input: InputOption = None,
    output: OutputOption = Path("-"),
) -> None:
    """Split text into the tokens of a model.

    One line in, one line out, with spaces between the tokens.
    """
    from mtformer.translate.jobs import tokenizing

    check_text(text, input)
    source = input or Path("-")
    tokenizing.tokenize(_side(model, side, source, output), text, source, output, ids=ids)


def detokenize(
    text: TextArgument = None,
    model: ModelOption = None,
    side: SideOption = SideName.src,
    ids: Annotated[bool, typer.Option("--ids", help="Read the ids of tokens.")] = False,
    input: InputOption = None,
    output: OutputOption = Path("-"),
) -> None:
    """Join tokens into text, the inverse of tokenize."""
    from mtformer.translate.jobs import tokenizing

    check_text(text, input)
    source = input or Path("-")
    tokenizing.detokenize(_side(model, side, source, output), text, source, output, ids=ids)


def _side(model: Path | None, side: SideName, input: Path, output: Path) -> "Side":
    from mtformer.runs.models import find_model
    from mtformer.support.files import require_distinct
    from mtformer.translate.jobs.tokenizing import Side, load_tokenizer

    path = find_model(model)
    require_distinct(output, [input, path])
    return Side.of(load_tokenizer(path), side)
