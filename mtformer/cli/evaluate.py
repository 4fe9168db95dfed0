"""``mtformer eval``."""

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mtformer.cli.options import BeamOption, Device, DeviceOption, LengthPenaltyOption, ModelOption
from mtformer.cli.output import print_result
from mtformer.errors import UserError

if TYPE_CHECKING:
    from mtformer.evaluate.evaluation import Evaluation


def evaluate(
    model: ModelOption = None,
    src: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Source text; without it, the test set of the model's run.")
    ] = None,
    ref: Annotated[Path | None, typer.Option(metavar="FILE", help="Its reference translation.")] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="SOURCE", help="A source, as in builtin:phrasebook,split:test or tsv:test.tsv."),
    ] = None,
    beam_size: BeamOption = None,
    length_penalty: LengthPenaltyOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the translations, one a line.")
    ] = None,
    device: DeviceOption = Device.auto,
) -> None:
    """Score a model on a test set: BLEU, chrF and TER, with sacreBLEU's signatures."""
    from mtformer.evaluate.evaluation import evaluate_model
    from mtformer.runs import find_model

    if str(output) == "-":
        raise UserError("--output -: standard output has the scores; name a file for the translations")
    result = evaluate_model(
        find_model(model),
        src=src,
        ref=ref,
        data=data,
        search={"beam_size": beam_size, "length_penalty": length_penalty},
        output=output,
        device=device,
    )
    print_result(_as_json(result) if json else _as_text(result))


def _as_json(result: "Evaluation") -> str:
    search = {"beam_size": result.options.beam_size, "length_penalty": result.options.length_penalty}
    scores = [score.to_dict() for score in result.scores]
    shown = {"model": str(result.model), "sentences": len(result.hypotheses), **search, "scores": scores}
    return dumps(shown, indent=2)


def _as_text(result: "Evaluation") -> str:
    return "\n".join(f"{score.name:<6} {score.value:6.2f}  {score.signature}" for score in result.scores)
