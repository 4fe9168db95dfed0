"""Errors, divided by who has to act.

The command line prints the message of an error without a traceback and turns its class into an exit status.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class MtformerError(Exception):
    """The work failed (exit status 1): a full disk, a non-finite loss."""


class UserError(MtformerError):
    """The user's input cannot be used (exit status 2): a config, an argument, a file."""


class OutputClosed(MtformerError):  # noqa: N818, it is no error
    """The reader of standard output, such as ``head``, has closed it and wants no more (exit status 0)."""


class Problems:
    """Collects errors of the user's, to report them all at once."""

    def __init__(self) -> None:
        self._messages: list[str] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Collect a UserError that the block raises, and continue after the block."""
        try:
            yield
        except UserError as error:
            self._messages.append(str(error))

    def __bool__(self) -> bool:
        return bool(self._messages)

    def raise_all(self) -> None:
        """Raise all noted problems as one error, if there are any.

        Raises:
            UserError: with one line for each problem.
        """
        if self._messages:
            raise UserError("\n".join(dict.fromkeys(self._messages)))
