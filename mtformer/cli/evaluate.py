"""``mtformer eval``."""

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mtformer.cli.options import BeamOption, Device, DeviceOption, LengthPenaltyOption, ModelOption
from mtformer.cli.output import print_result
from mtformer.errors import UserError

if TYPE_CHECKING:
    from mtformer.evaluate.analysis import Bucket
    from mtformer.evaluate.evaluation import Evaluation, SetResult


def evaluate(
    model: ModelOption = None,
    src: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Source text; without it, the test set of the model's run.")
    ] = None,
    ref: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Its reference translation; may be repeated.")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE", help="A source, as in builtin:phrasebook,split:test or tsv:test.tsv; may be repeated."
        ),
    ] = None,
    testset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A test set that sacreBLEU downloads, such as wmt14; may be repeated."),
    ] = None,
    beam_size: BeamOption = None,
    length_penalty: LengthPenaltyOption = None,
    comet: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Score with COMET too, as in Unbabel/wmt22-comet-da; needs comet-score."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the translations, one a line.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to write each sentence, its translation and scores as JSON, one a line."
        ),
    ] = None,
    device: DeviceOption = Device.auto,
) -> None:
    """Score a model on a test set: BLEU, chrF and TER, with sacreBLEU's signatures."""
    from mtformer.evaluate.evaluation import evaluate_model
    from mtformer.runs import find_model

    for option, path in (("--output", output), ("--save", save)):
        if str(path) == "-":
            raise UserError(f"{option} -: standard output has the scores; name a file")
    result = evaluate_model(
        find_model(model),
        src=src,
        ref=ref or [],
        data=data or [],
        testset=testset or [],
        search={"beam_size": beam_size, "length_penalty": length_penalty},
        comet=comet,
        output=output,
        save=save,
        device=device,
    )
    print_result(dumps(result.to_dict(), indent=2, ensure_ascii=False) if json else _as_text(result))


def _as_text(result: "Evaluation") -> str:
    if len(result.results) == 1:
        blocks = [_block(result.total)]
    else:
        blocks = [f"{one.name}\n{_block(one)}" for one in result.results]
        blocks.append(f"together\n{_block(result.total)}")
    if result.command is not None:
        blocks.append(f"The same scores from sacreBLEU:\n{result.command}")
    return "\n\n".join(blocks)


def _block(result: "SetResult") -> str:
    """Show the scores first, one a line, then what explains them."""
    analysis, likelihood = result.analysis, result.likelihood
    lines = [f"{score.name:<7} {score.value:6.2f}  {score.signature}" for score in result.scores]
    share = f"{analysis.exact_matches:.1%} exact, {analysis.repetitions:.1%} with repetitions"
    lines.append(f"{result.n_sentences:,} sentences: {share}, length ratio {result.length_ratio:.3f}")
    if likelihood.loss is not None:
        excluded = f" ({likelihood.n_excluded:,} sentences excluded)" if likelihood.n_excluded else ""
        lines.append(f"loss {likelihood.loss:.3f}, perplexity {likelihood.perplexity:.2f}{excluded}")
    lines += _buckets("BLEU by words", analysis.by_length)
    lines += _buckets("F1 by tokens of a word", analysis.by_tokens)
    return "\n".join(lines)


def _buckets(title: str, buckets: "list[Bucket]") -> list[str]:
    """Show buckets on one line; a single one says nothing new."""
    if len(buckets) < 2:
        return []
    return [f"{title}: " + ", ".join(f"{one.label}: {one.score:.1f} ({one.count:,})" for one in buckets)]
