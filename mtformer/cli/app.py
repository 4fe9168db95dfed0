"""The command line: its commands, errors and exit status. Heavy imports happen inside the commands."""

import errno
import logging
import os
import signal
import sys
import traceback
from io import TextIOWrapper
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from mtformer.cli.command import Group
from mtformer.cli.data import DataGroup
from mtformer.cli.evaluate import compare, evaluate
from mtformer.cli.explain import explain
from mtformer.cli.improve import improve
from mtformer.cli.runs import average, export, import_, merge, report, runs, train
from mtformer.cli.serve import serve
from mtformer.cli.translate import detokenize, score, tokenize, translate
from mtformer.support import __version__
from mtformer.support.errors import MtformerError, OutputClosed, UserError
from mtformer.support.logs import log_to_stderr

log = logging.getLogger(__name__)


class Commands(Group):
    """All commands."""

    functions = {  # noqa: RUF012 (a constant)
        "train": train,
        "improve": improve,
        "average": average,
        "merge": merge,
        "translate": translate,
        "score": score,
        "explain": explain,
        "serve": serve,
        "eval": evaluate,
        "compare": compare,
        "runs": runs,
        "export": export,
        "import": import_,
        "report": report,
        "tokenize": tokenize,
        "detokenize": detokenize,
        "data": DataGroup,
    }


app = typer.Typer(
    cls=Commands,
    name="mtformer",
    help="Train a Transformer to translate, translate with it, and measure how good it is.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain text: the same look as our errors, nothing heavy to import, flags without a type
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mtformer {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Declare ``--debug`` and ``--version`` for the help; :func:`main` looks for the former itself."""


def main() -> None:
    """Run the command line and exit: 0 success, 1 failed while working, 2 bad input, 130 Ctrl-C, 143 SIGTERM.

    Errors become one sentence on stderr. If the reader of the output stops early, as ``head`` does, that is success.
    """
    before = list(takewhile("--".__ne__, sys.argv[1:]))  # what follows -- is text
    debug = "--debug" in before  # it may stand anywhere there
    arguments = [each for each in before if each != "--debug"] + sys.argv[1 + len(before) :]
    if sys.stderr is None:  # closed by whoever started the program
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (until the program ends)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # into a file or a pipe, Windows would write another encoding
            stream.reconfigure(encoding="utf-8", errors=stream.errors)
    log_to_stderr()
    signal.signal(signal.SIGTERM, _terminate)
    try:
        app(args=arguments, prog_name="mtformer")
    except (KeyboardInterrupt, EOFError):
        sys.exit(130)
    except OutputClosed:
        sys.exit(0)
    except Exception as error:
        if debug:
            traceback.print_exc()
        elif not _is_reported(error):
            log.error("Error: %s", _sentence(error))
        sys.exit(2 if isinstance(error, UserError) or _is_of_a_path(error) else 1)


def _is_reported(error: Exception) -> bool:
    """Return whether another process that torchrun has started reports the same error."""
    if not isinstance(error, MtformerError) or os.environ.get("WORLD_SIZE", "1") == "1":
        return False
    from mtformer.support.processes.ranks import is_first_to_report

    return not is_first_to_report(str(error))


def _is_of_a_path(error: Exception) -> bool:
    """Tell whether a path cannot even be looked at: its name is too long, or it is in a folder of somebody else."""
    return isinstance(error, OSError) and bool(error.filename) and error.errno in (errno.EACCES, errno.ENAMETOOLONG)


def _sentence(error: Exception) -> str:
    if isinstance(error, MtformerError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}" + " (--debug shows where)" * (not _is_of_a_path(error))
    return f"unexpected {type(error).__name__}: {error} (--debug shows where)"


def _terminate(number: int, frame: FrameType | None) -> None:
    """Exit as the shell reports a process that SIGTERM ended, but remove temporary files on the way."""
    sys.exit(128 + number)
