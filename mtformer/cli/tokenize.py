"""``mtformer tokenize`` and ``mtformer detokenize``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from mtformer.cli.command import option
from mtformer.cli.options import InputOption, OutputOption, TextArgument, TokenizerOption, check_text

if TYPE_CHECKING:
    from mtformer.text.tokenizer.vocabulary import Vocabulary

SideName = Literal["src", "tgt"]
SideOption = Annotated[SideName, option("The vocabulary, where each language has one of its own.")]


def tokenize(
    text: TextArgument = None,
    *,
    model: TokenizerOption = None,
    side: SideOption = "src",
    ids: Annotated[bool, option("Print the ids of the tokens.")] = False,
    input: InputOption = None,
    output: OutputOption = Path("-"),
) -> None:
    """Split text into the tokens of a model.

    One line in, one line out, with spaces between the tokens.
    """
    from mtformer.translate.jobs import tokenizing

    check_text(text, input)
    source = input or Path("-")
    tokenizing.tokenize(_vocabulary(model, side, source, output), text, source, output, ids=ids)


def detokenize(
    text: TextArgument = None,
    *,
    model: TokenizerOption = None,
    side: SideOption = "src",
    ids: Annotated[bool, option("Read the ids of tokens.")] = False,
    input: InputOption = None,
    output: OutputOption = Path("-"),
) -> None:
    """Join tokens into text, the inverse of tokenize."""
    from mtformer.translate.jobs import tokenizing

    check_text(text, input)
    source = input or Path("-")
    tokenizing.detokenize(_vocabulary(model, side, source, output), text, source, output, ids=ids)


def _vocabulary(model: Path | None, side: SideName, input: Path, output: Path) -> "Vocabulary":
    from mtformer.runs.models import find_model
    from mtformer.support.files import require_distinct
    from mtformer.translate.jobs.tokenizing import load_tokenizer

    path = find_model(model)
    require_distinct(output, [input, path])
    return load_tokenizer(path).vocabulary_of(side)
