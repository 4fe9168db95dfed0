"""The command line: one thin file for each group of commands, which parses, calls one function and prints."""

from mtformer.cli.app import main

__all__ = ["main"]
