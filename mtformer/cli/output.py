"""Printing the results of commands."""

import os
import shutil
import sys
from pathlib import Path

from mtformer.support.errors import UserError


def print_result(result: object, *, styled: bool = False) -> None:
    """Print to standard output, at once, so that a full disk or a reader that has gone shows here.

    Args:
        result: what to print.
        styled: its control characters are meant for the terminal.

    Raises:
        MtformerError: it cannot be written.
        OutputClosed: the reader has gone.
    """
    from mtformer.text.lines import open_output

    with open_output(None, styled=styled) as output:
        print(result, file=output)


def require_file(option: str, path: Path | None, shown: str) -> None:
    """Refuse standard output for a file, because commands print something else there.

    Args:
        option: what names the file.
        path: the file; None if the option is not given.
        shown: what is printed.

    Raises:
        UserError: it is standard output.
    """
    from mtformer.text.lines import is_standard_output

    if path is not None and is_standard_output(path):
        raise UserError(f"{option} {path}: standard output has {shown}; name a file")


def columns() -> int:
    """Return the width to print at: that of the terminal, or 100 where there is none, within what can be read."""
    return max(60, min(shutil.get_terminal_size((100, 24)).columns, 140))


def has_colours() -> bool:
    """Tell whether standard output is a terminal, and colours are wanted there (https://no-color.org)."""
    return (
        sys.stdout is not None
        and sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )
