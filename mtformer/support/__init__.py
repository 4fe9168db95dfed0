"""The base of every room: errors, logs, files, memory, processes. Nothing here knows about translation."""

__version__ = "0.1.0"
