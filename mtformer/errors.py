"""What can go wrong, divided by who has to act.

The command line prints the message of an error without a traceback and turns its class into an exit status.
"""


class MtformerError(Exception):
    """The work failed (exit status 1): a full disk, a non-finite loss."""


class UserError(MtformerError):
    """What the user gave cannot be used (exit status 2): a config, an argument, a file."""


class OutputClosed(MtformerError):  # noqa: N818, it is no error
    """The reader of standard output, such as ``head``, has closed it and wants no more (exit status 0)."""
