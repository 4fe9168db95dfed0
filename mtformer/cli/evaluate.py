"""``mtformer eval``."""

from pathlib import Path
from typing import Annotated

import typer

from mtformer.cli.options import BeamOption, Device, DeviceOption, ModelOption


def evaluate(
    model: ModelOption = None,
    src: Annotated[Path | None, typer.Option(help="Source text; the run's test set without it.")] = None,
    ref: Annotated[Path | None, typer.Option(help="Its reference translation.")] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="SOURCE", help="A source, as in builtin:phrasebook,split:test or tsv:test.tsv."),
    ] = None,
    beam_size: BeamOption = None,
    length_penalty: Annotated[float | None, typer.Option(min=0, help="Larger means longer translations.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the translations there, one a line.")] = None,
    device: DeviceOption = Device.auto,
) -> None:
    """Score a model on a test set: BLEU, chrF and TER, with sacreBLEU's signatures."""
    from mtformer.evaluate.evaluation import evaluate_model
    from mtformer.runs import find_model

    evaluate_model(
        find_model(model),
        src=src,
        ref=ref,
        data=data,
        beam_size=beam_size,
        length_penalty=length_penalty,
        as_json=json,
        output=output,
        device=device,
    )
