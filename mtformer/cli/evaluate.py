"""``mtformer eval``."""

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mtformer.cli.options import (
    IN_OUT,
    SCORES,
    TEST_SET,
    DataOption,
    Device,
    DeviceOption,
    FromOption,
    ModelsOption,
    OptionalEngineOption,
    RawOption,
    TagOption,
    TestSetOption,
    ToOption,
)
from mtformer.cli.output import print_result, require_file
from mtformer.cli.search_options import SearchSettings, takes_search_options
from mtformer.support.errors import UserError

if TYPE_CHECKING:
    from mtformer.evaluate.evaluation import Evaluations
    from mtformer.evaluate.protocols import ProtocolResult
    from mtformer.evaluate.results import Evaluation
    from mtformer.evaluate.stress import StressResult
    from mtformer.evaluate.testsets import TextOptions


@takes_search_options
def evaluate(
    model: ModelsOption = None,
    from_: FromOption = None,
    to: ToOption = None,
    tag: TagOption = None,
    src: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Source text; without any of these, the test set of the model's run.",
            rich_help_panel=TEST_SET,
        ),
    ] = None,
    ref: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Its reference translation; may be repeated.", rich_help_panel=TEST_SET),
    ] = None,
    data: DataOption = None,
    testset: TestSetOption = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Rerun a published protocol: multi30k-2016-lc-tok or multi30k-2016-cased-13a.",
            rich_help_panel=SCORES,
        ),
    ] = None,
    stress: Annotated[
        bool,
        typer.Option(
            "--stress",
            help="Score perturbed text: all caps, typos, an emoji appended and others.",
            rich_help_panel=SCORES,
        ),
    ] = False,
    comet: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Score with COMET too, as in Unbabel/wmt22-comet-da; needs comet-score.",
            rich_help_panel=SCORES,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=IN_OUT)] = False,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write the translations, one a line.", rich_help_panel=IN_OUT),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to write each sentence, its translation and scores as JSON, one a line.",
            rich_help_panel=IN_OUT,
        ),
    ] = None,
    device: DeviceOption = Device.auto,
    engine: OptionalEngineOption = None,
    raw: RawOption = False,
    *,
    search: SearchSettings,
) -> None:
    """Score a model on test sets.

    BLEU, chrF2, chrF2++ and TER come with sacreBLEU's signatures. A model of several directions is scored in each
    for which its run has a test set; --from and --to choose some of them.
    """
    from mtformer.bundle.header import Toward
    from mtformer.evaluate.evaluation import evaluate_model
    from mtformer.evaluate.protocols import find_protocol, run_protocol
    from mtformer.evaluate.stress import stress_model
    from mtformer.runs.models import find_models

    require_file("--output", output, "the scores")
    require_file("--save", save, "the scores")
    others = {"--testset": testset, "--comet": comet, "--save": save, "--stress": stress or None}
    if protocol is not None:
        _refuse("--protocol", others | {f"--{name.replace('_', '-')}": value for name, value in search.items()})
    elif stress:
        _refuse("--stress", {"--comet": comet, "--output": output})
    chosen = None if protocol is None else find_protocol(protocol)
    bundles = find_models(model)
    texts: TextOptions = {"src": src, "ref": ref or [], "data": data or [], "testset": testset or []}
    toward = Toward(from_, to, tag)
    result: Evaluation | Evaluations | ProtocolResult | StressResult
    if chosen is not None:
        result = run_protocol(bundles, chosen, toward, output=output, device=device, engine=engine, **texts)
    elif stress:
        result = stress_model(bundles, toward, search=search, save=save, device=device, engine=engine, raw=raw, **texts)
    else:
        result = evaluate_model(
            bundles,
            toward,
            search=search,
            comet=comet,
            output=output,
            save=save,
            device=device,
            engine=engine,
            raw=raw,
            **texts,
        )
    print_result(dumps(result.to_dict(), indent=2, ensure_ascii=False) if json else result.to_text())


def _refuse(option: str, others: dict[str, object]) -> None:
    """Refuse the options that do not go with ``option``."""
    for name, value in others.items():
        if value is not None:
            raise UserError(f"{option} and {name} do not go together")
