"""The command line: one thin file for each group of commands, which parses, calls one function and prints."""

import sys

__all__ = ["main"]


def main() -> None:
    """Import the commands and run the command line; Ctrl-C exits with status 130 while they are imported, too."""
    try:
        from mtformer.cli import app
    except KeyboardInterrupt:
        sys.exit(130)
    app.main()
