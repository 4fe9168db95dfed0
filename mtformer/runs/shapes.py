"""What the lines of a run's journals look like, checked where they are read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from mtformer.support.errors import UserError


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True)


class _Line(_Strict):
    step: int


class MetricsLine(_Line):
    """A line of ``metrics.jsonl``; all other keys are numbers, or null where a number was not finite."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, float | None]

    epoch: float
    seconds: float


class _Data(_Strict):
    pairs: int
    pairs_by_source: list[int] = []
    valid_pairs: int | None = None
    dropped: dict[str, int]
    src_tokens: int
    tgt_tokens: int


class _Model(_Strict):
    src_vocab_size: int
    tgt_vocab_size: int


class _Machine(_Strict):
    system: str
    processor: str
    threads: int
    device: str
    processes: int


class StartsLine(_Line):
    """A line of ``starts.jsonl``; what has a default is not in lines of every version."""

    seconds: float
    time: str
    machine: _Machine
    data: _Data
    model: _Model
    total_steps: int | None


class _Sample(_Strict):
    src: str
    ref: str
    hyp: str
    direction: str = ""


class SamplesLine(_Line):
    """A line of ``samples.jsonl``."""

    samples: list[_Sample]


def checked(path: Path, lines: Sequence[dict[str, Any]], shape: type[_Line]) -> list[dict[str, Any]]:
    """Return ``lines`` of the journal at ``path`` if all are of one shape.

    Raises:
        UserError: one of them has another shape.
    """
    for line in lines:
        try:
            shape.model_validate(line)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise UserError(
                f"{path}: the line of step {line['step']} is not one that mtformer writes ({where}: {first['msg']}): "
                "delete it"
            ) from None
    return list(lines)
