"""Options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How ``translate`` prints."""

    text = "text"
    tsv = "tsv"
    json = "json"


class Device(StrEnum):
    """Where to compute; ``auto`` takes a GPU when there is one."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


ModelOption = Annotated[
    Path | None,
    typer.Option(
        "--model", help="A model bundle or a run's folder; else $MTFORMER_MODEL, else the newest run under runs/."
    ),
]
BeamOption = Annotated[int | None, typer.Option(min=1, help="Hypotheses kept at each step; 1 is greedy search.")]
DeviceOption = Annotated[Device, typer.Option(help="Where to compute; auto takes a GPU when there is one.")]
