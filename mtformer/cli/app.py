"""The command line as a whole: its commands, its errors, its exit status. Heavy imports happen inside the commands."""

import logging
import os
import sys
import traceback
from typing import Annotated

import typer

from mtformer import __version__
from mtformer.cli import data
from mtformer.cli.evaluate import evaluate
from mtformer.cli.train import average, train
from mtformer.cli.translate import translate
from mtformer.errors import MtformerError, UserError
from mtformer.logs import log_to_stderr

log = logging.getLogger(__name__)

app = typer.Typer(
    name="mtformer",
    help="Train a Transformer to translate, translate with it, and say how good it is.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"mtformer {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Declare ``--debug`` and ``--version`` for the help; :func:`main` looks for the former itself."""


app.command()(train)
app.command()(average)
app.command()(translate)
app.command(name="eval")(evaluate)
app.add_typer(data.app, name="data")


def main() -> None:
    """Run the command line; turn errors into sentences and exit statuses (0, 1, 2, and 130 for Ctrl-C)."""
    debug = "--debug" in sys.argv
    log_to_stderr()
    try:
        app(args=[arg for arg in sys.argv[1:] if arg != "--debug"])  # wherever it stands
    except (KeyboardInterrupt, EOFError):
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the last flush fails silently too
        sys.exit(1)
    except Exception as error:
        is_told = isinstance(error, UserError) and os.environ.get("LOCAL_RANK", "0") != "0"  # by another process here
        if debug:
            traceback.print_exc()
        elif is_told:
            pass
        elif isinstance(error, MtformerError):
            log.error("mtformer: %s", error)
        else:
            log.error("mtformer: unexpected %s: %s (--debug shows where)", type(error).__name__, error)
        sys.exit(2 if isinstance(error, UserError) else 1)
