"""Records as plain data, for JSON."""

from dataclasses import fields
from typing import Any

import numpy as np

_DIGITS = 6


def to_plain(value: Any) -> Any:
    """Turn dataclasses and arrays into dictionaries and lists, with 6 significant digits and null for infinity.

    A field with ``key`` in its metadata gets that name, and is left out if it is None.
    """
    if hasattr(value, "__dataclass_fields__"):
        keys = {f.metadata.get("key", f.name): f.name for f in fields(value)}
        return {key: to_plain(getattr(value, name)) for key, name in keys.items() if key is not None}
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, float | np.ndarray):
        return rounded(value)
    return value


def rounded(values: float | np.ndarray) -> Any:
    """Round to 6 significant digits for JSON: arrays become nested lists, and infinity and NaN become None."""
    array = np.asarray(values)
    if array.dtype.kind != "f":
        return array.tolist()
    array = array.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.where(array == 0, 0, np.floor(np.log10(np.abs(array))))
        places = np.nan_to_num(_DIGITS - 1 - exponent, posinf=0, neginf=0).clip(-300, 300)
        # Scaling by a power of ten is exact up to 10^22 only where that power is whole, hence the division.
        up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
        result: np.ndarray = np.round(array * up / down) / up * down
    if np.isfinite(result).all():
        return result.tolist()
    nullable = np.array(result, dtype=object)
    nullable[~np.isfinite(result)] = None
    return nullable.tolist()
