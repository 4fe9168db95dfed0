"""What goes to stderr: sentences for a person, or JSON objects for a machine."""

import json
import logging
import math
import sys
from datetime import UTC, datetime
from typing import Any


class JsonFormatter(logging.Formatter):
    """Makes an object with ``time``, ``level``, ``message`` and, where a record has them, ``metrics``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object on one line."""
        shown: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        if hasattr(record, "metrics"):
            shown["metrics"] = finite(record.metrics)
        return json.dumps(shown, ensure_ascii=False)


def finite(values: dict[str, float]) -> dict[str, float | None]:
    """Replace by None the numbers that JSON does not have."""
    return {key: value if math.isfinite(value) else None for key, value in values.items()}


def log_to_stderr() -> None:
    """Show what happens as sentences; of other packages only warnings."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    logging.getLogger("mtformer").setLevel(logging.INFO)


def log_as_json() -> None:
    """From now on show JSON objects, and no progress bars between them."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(JsonFormatter())


def is_json() -> bool:
    """Tell whether JSON objects are shown."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)
