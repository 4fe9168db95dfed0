"""Reading and writing lines of text: plain, ``.gz`` or ``-``, split on line feeds only."""

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, cast

from mtformer.errors import MtformerError, UserError

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of the file at ``path``, without line ends; ``-`` is standard input.

    Only a line feed (or carriage return and line feed) ends a line: U+2028, U+0085 and form feeds stay inside, since
    a tool that splits there shifts the two sides of a parallel text against each other.

    Raises:
        UserError: a missing, binary, damaged or wrongly encoded file, naming it and the line.
    """
    name = "standard input" if str(path) == "-" else str(path)
    number = 0
    try:
        with _open_binary(path) as file:
            for raw in file:
                number += 1
                yield _decode(raw, name, number)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise UserError(f"{name}: the compressed file is damaged or cut off after line {number}") from None
    except OSError as error:
        raise UserError(f"cannot read {name}: {error.strerror or error}") from None


def is_utf8(argument: str) -> bool:
    """Tell whether an argument of the command line was UTF-8; Python keeps bytes that were not as lone surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in argument)


@contextmanager
def open_output(path: Path | None) -> Iterator[IO[str]]:
    """Open ``path`` for writing UTF-8 lines, compressed if it ends in ``.gz``; None and ``-`` are standard output."""
    if path is None or str(path) == "-":
        output = io.TextIOWrapper(os.fdopen(os.dup(sys.stdout.fileno()), "wb"), encoding="utf-8", newline="\n")
        with output:
            yield output
        return
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        file = cast(IO[str], opener(path, "wt", encoding="utf-8", newline="\n"))
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    try:
        with file:
            yield file
    except OSError as error:
        raise MtformerError(f"cannot write {path}: {error.strerror}") from error


@contextmanager
def _open_binary(path: Path) -> Iterator[BinaryIO | gzip.GzipFile]:
    if str(path) == "-":
        yield sys.stdin.buffer
    elif path.suffix == ".gz":
        with gzip.open(path, "rb") as file:
            yield file
    else:
        with path.open("rb") as plain:
            yield plain


def _decode(raw: bytes, name: str, number: int) -> str:
    if number == 1:
        if raw.startswith(_UTF16_MARKS):
            raise UserError(f"{name}: this is UTF-16; save it as UTF-8")
        raw = raw.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in raw:
        raise UserError(f"{name}:{number}: this is not a text file: the line holds a zero byte")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = raw[error.start]
        raise UserError(
            f"{name}:{number}: byte 0x{byte:02x} at position {error.start + 1} is not UTF-8; convert the file first"
        ) from None
    return text.removesuffix("\n").removesuffix("\r")
