"""Text to tokens and back, line by line. Nothing here imports torch, unless a model is damaged."""

from collections.abc import Callable, Sequence
from pathlib import Path

from mtformer.bundle.peek import is_exported, peek_tokenizer
from mtformer.engines.ctranslate2.folder import tokenizer_models
from mtformer.support.errors import UserError
from mtformer.support.files import read_errors
from mtformer.support.progress import Progress
from mtformer.text.lines import input_name, is_regular_input, open_output, read_lines
from mtformer.text.tokenizer.adopt import adopt
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.vocabulary import Vocabulary
from mtformer.translate.jobs.reading import available, windows


def load_tokenizer(path: Path) -> Tokenizer:
    """Read the tokenizer of a bundle or of an exported model, or a SentencePiece model that ends in ``.model``.

    Raises:
        UserError: it does not exist, or cannot be used.
    """
    with read_errors(path):
        try:
            if is_exported(path):
                return Tokenizer(*tokenizer_models(path))
            if path.suffix == ".model":
                return Tokenizer(adopt(path.read_bytes()))
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
    tokenizer = peek_tokenizer(path)
    if tokenizer is None:
        from mtformer.bundle.format import load_bundle

        return load_bundle(path).tokenizer
    return tokenizer


def tokenize(vocabulary: Vocabulary, text: str | None, input: Path, output: Path, *, ids: bool) -> None:
    """Write the tokens of each line, or their ids, with spaces between them.

    Args:
        vocabulary: the vocabulary of the source or the target language.
        text: the only line; None reads ``input``.
        input: the file to read; ``-`` is standard input.
        output: the file to write; ``-`` is standard output.
        ids: whether to write ids.
    """

    def convert(numbers_and_lines: Sequence[tuple[int, str]]) -> list[str]:
        rows = [row[:-1] for row in vocabulary.encode([line for _, line in numbers_and_lines])]
        return [" ".join(map(str, row) if ids else vocabulary.tokens(row)) for row in rows]

    _convert(text, input, output, convert)


def detokenize(vocabulary: Vocabulary, text: str | None, input: Path, output: Path, *, ids: bool) -> None:
    """Write the text that each line of tokens, or of ids, spells; the inverse of :func:`tokenize`.

    Raises:
        UserError: a line contains an unknown token or id.
    """
    all_ids = range(vocabulary.vocab_size)
    known = dict(zip(map(str, all_ids) if ids else vocabulary.tokens(all_ids), all_ids, strict=True))

    def convert(numbers_and_lines: Sequence[tuple[int, str]]) -> list[str]:
        texts = []
        for number, line in numbers_and_lines:
            tokens = [token for token in line.split(" ") if token]
            if unknown := [token for token in tokens if token not in known]:
                where = "the text" if text is not None else f"{input_name(input)}:{number}"
                what = f"an id below {len(known)}" if ids else "a token of the model"
                raise UserError(f"{where}: {unknown[0]} is not {what}")
            texts.append(vocabulary.decode([known[token] for token in tokens]))
        return texts

    _convert(text, input, output, convert)


def _convert(
    text: str | None, input: Path, output: Path, convert: Callable[[Sequence[tuple[int, str]]], list[str]]
) -> None:
    """Convert numbered lines; lines from a program are converted as they arrive."""
    is_stored = text is not None or is_regular_input(input)
    lines = enumerate(read_lines(input) if text is None else [text], 1)
    with open_output(output) as file, Progress("converting", unit="lines") as progress:
        for window in (windows if is_stored else available)(lines):
            converted = convert(window)
            with progress.aside():
                file.writelines(f"{line}\n" for line in converted)
                if not is_stored:
                    file.flush()
            progress.advance(len(window))
