"""What commands print."""

import os
import shutil
import sys

from mtformer.text.lines import open_output


def print_result(result: object) -> None:
    """Print to standard output, at once, so that a full disk or a reader that has gone shows here.

    Raises:
        MtformerError: it cannot be written.
        OutputClosed: the reader has gone.
    """
    with open_output(None) as output:
        print(result, file=output)


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
