"""What can go wrong, told apart by whose turn it is to act.

The command line prints the message of either class without a traceback and turns the class into an exit status.
"""


class MtformerError(Exception):
    """The work failed while it was under way (exit status 1): a full disk, a loss that is not finite."""


class UserError(MtformerError):
    """What the user gave cannot be used (exit status 2): a config, an argument, a file."""
