"""The choices that options of ``translate`` and ``score`` offer; --help imports them, so nothing heavy is here."""

from enum import StrEnum


class Format(StrEnum):
    """How ``translate`` and ``score`` print."""

    text = "text"
    tsv = "tsv"
    json = "json"


class OnError(StrEnum):
    """What happens to lines that are not UTF-8."""

    stop = "stop"
    skip = "skip"
    copy = "copy"
