"""Logging to stderr: sentences for a person, or JSON objects for a machine."""

import json
import logging
import math
import sys
from datetime import UTC, datetime
from typing import Any

from mtformer.support.terminal import escaped


class JsonFormatter(logging.Formatter):
    """Formats a record as an object with ``time``, ``level``, ``message``, and ``metrics`` and ``traceback`` if any."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object on one line."""
        shown: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        if hasattr(record, "metrics"):
            shown["metrics"] = finite(record.metrics)
        if record.exc_info:
            shown["traceback"] = self.formatException(record.exc_info)
        return json.dumps(shown, ensure_ascii=False)


def finite(values: dict[str, Any]) -> dict[str, Any]:
    """Replace infinities and NaN, which JSON lacks, by None."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in values.items()
    }


class TextFormatter(logging.Formatter):
    """Formats a record as its message, in which names and texts of users have their control characters escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message."""
        return escaped(super().format(record), keep="\t\n")


def log_to_stderr() -> None:
    """Log messages as plain sentences; show only the warnings of other packages."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(TextFormatter("%(message)s"))
    logging.getLogger("mtformer").setLevel(logging.INFO)


def log_as_json() -> None:
    """Log JSON objects from now on, without progress bars between them."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(JsonFormatter())


def is_json() -> bool:
    """Tell whether JSON objects are logged."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)
