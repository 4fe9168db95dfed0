"""``mtformer eval``."""

from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mtformer.cli.command import Options, option
from mtformer.cli.options import (
    IN_OUT,
    SCORES,
    DirectionOptions,
    EngineOptions,
    JsonOption,
    ModelsOption,
    SearchOptions,
    TestSetOptions,
)
from mtformer.cli.output import print_result, require_file
from mtformer.support.errors import UserError

if TYPE_CHECKING:
    from mtformer.evaluate.evaluation import Evaluations
    from mtformer.evaluate.protocols import ProtocolResult
    from mtformer.evaluate.results import Evaluation
    from mtformer.evaluate.stress import StressResult


@dataclass(frozen=True)
class ScoreOptions(Options):
    """Scores of other texts, or by another model."""

    panel = SCORES
    protocol: Annotated[
        str | None,
        option("Rerun a published protocol: multi30k-2016-lc-tok or multi30k-2016-cased-13a.", metavar="NAME"),
    ] = None
    stress: Annotated[bool, option("Score perturbed text: all caps, typos, an emoji appended and others.")] = False
    comet: Annotated[
        str | None,
        option("Score with COMET too, as in Unbabel/wmt22-comet-da; needs comet-score.", metavar="MODEL"),
    ] = None


@dataclass(frozen=True)
class ResultOptions(Options):
    """The outputs."""

    panel = IN_OUT
    json: JsonOption = False
    output: Annotated[Path | None, option("Where to write the translations, one a line.")] = None
    save: Annotated[
        Path | None, option("Where to write each sentence, its translation and scores as JSON, one a line.")
    ] = None


def evaluate(
    *,
    model: ModelsOption = None,
    direction: DirectionOptions,
    test_set: TestSetOptions,
    scores: ScoreOptions,
    results: ResultOptions,
    compute: EngineOptions,
    search: SearchOptions,
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

    _require_compatible(scores, results, test_set, search)
    protocol = None if scores.protocol is None else find_protocol(scores.protocol)
    bundles, toward = find_models(model), Toward(**vars(direction))
    common: dict[str, Any] = {"device": compute.device, "engine": compute.engine, **test_set.texts}
    result: Evaluation | Evaluations | ProtocolResult | StressResult
    if protocol is not None:
        result = run_protocol(bundles, protocol, toward, output=results.output, **common)
    else:
        common |= {"search": search, "save": results.save, "raw": compute.raw}
        if scores.stress:
            result = stress_model(bundles, toward, **common)
        else:
            result = evaluate_model(bundles, toward, comet=scores.comet, output=results.output, **common)
    print_result(dumps(result.to_dict(), indent=2, ensure_ascii=False) if results.json else result.to_text())


def _require_compatible(
    scores: ScoreOptions, results: ResultOptions, test_set: TestSetOptions, search: dict[str, Any]
) -> None:
    """Refuse options that do not go together."""
    require_file("--output", results.output, "the scores")
    require_file("--save", results.save, "the scores")
    refused: dict[str, object] = {}
    if scores.protocol is not None:
        chosen, refused = (
            "--protocol",
            {"--testset": test_set.testset, "--save": results.save, "--stress": scores.stress},
        )
        refused |= {f"--{name.replace('_', '-')}": True for name in search}
    elif scores.stress:
        chosen, refused = "--stress", {"--output": results.output}
    else:
        return
    for name, value in {"--comet": scores.comet, **refused}.items():
        if value is not None and value is not False:
            raise UserError(f"{chosen} and {name} do not go together")
