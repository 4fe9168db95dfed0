"""``mtformer export``."""

import importlib.util
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mtformer.cli.output import print_result
from mtformer.errors import UserError


class Target(StrEnum):
    """The programs that models are exported to."""

    ctranslate2 = "ctranslate2"


def export(
    bundle: Annotated[
        Path, typer.Argument(metavar="BUNDLE", help="A bundle, a run's folder, or a folder of runs, for the newest.")
    ],
    to: Annotated[Target, typer.Option(help="The program that the model is for.")],
    output: Annotated[Path, typer.Option(metavar="DIR", help="A new folder for the model.")],
    quantization: Annotated[
        str, typer.Option(metavar="TYPE", help="How weights are stored, such as int8; float32 loses nothing.")
    ] = "float32",
) -> None:
    """Write a model for another program: a folder with all that translating takes."""
    from mtformer.files import write_folder_atomically
    from mtformer.runs import find_model

    path = find_model(bundle)
    if output.exists():
        raise UserError(f"{output} exists: name a new folder with --output")
    if importlib.util.find_spec(to) is None:
        raise UserError(f"--to {to} needs the package {to}, which is not installed; pip install 'mtformer[{to}]'")

    from mtformer.bundle import load_bundle
    from mtformer.export.ctranslate2 import Quantization, write_ctranslate2

    try:
        chosen = Quantization(quantization)
    except ValueError:
        raise UserError(f"--quantization {quantization}: it is one of {', '.join(Quantization)}") from None
    write = partial(write_ctranslate2, bundle=load_bundle(path), name=path.name, quantization=chosen)
    write_folder_atomically(output, write)
    print_result(output)
