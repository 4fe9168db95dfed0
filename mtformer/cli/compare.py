"""``mtformer compare``."""

from pathlib import Path
from typing import Annotated

import typer

from mtformer.cli.options import (
    BeamOption,
    DataOption,
    Device,
    DeviceOption,
    LengthPenaltyOption,
    RawOption,
    TableFormat,
    TestSetOption,
    parse_pair,
)
from mtformer.cli.output import has_colours


def compare(
    systems: Annotated[
        list[Path],
        typer.Argument(
            metavar="SYSTEM",
            help="Bundles, runs' folders, or files with a translation on each line; the first is the baseline.",
        ),
    ],
    src: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Source text; without it, the test set of the first run.")
    ] = None,
    ref: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Its reference; may be repeated. Files of translations need no --src."),
    ] = None,
    data: DataOption = None,
    testset: TestSetOption = None,
    pair: Annotated[
        str | None,
        typer.Option(
            metavar="SRC-TGT",
            help="The languages, as in en-de: of files of translations, or the direction of a model that has several.",
        ),
    ] = None,
    beam_size: BeamOption = None,
    length_penalty: LengthPenaltyOption = None,
    resamples: Annotated[
        int, typer.Option(metavar="N", min=1, help="Resampled test sets of the paired bootstrap.")
    ] = 1_000,
    trials: Annotated[int, typer.Option(metavar="N", min=1, help="Trials of approximate randomization.")] = 10_000,
    seed: Annotated[
        int, typer.Option(metavar="N", min=1, envvar="SACREBLEU_SEED", help="The seed of both tests.")
    ] = 12_345,
    sentences: Annotated[
        int, typer.Option(metavar="N", min=0, help="How many of the most different sentences to show.")
    ] = 5,
    format: Annotated[TableFormat, typer.Option(help="text, json, or the tables as csv, markdown or latex.")] = (
        TableFormat.text
    ),
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the result instead of standard output.")
    ] = None,
    device: DeviceOption = Device.auto,
    raw: RawOption = False,
) -> None:
    """Test whether systems differ.

    The first system is the baseline, with which the others are compared on one test set.
    """
    from mtformer.evaluate.comparison_formats import format_comparison
    from mtformer.evaluate.systems import compare_paths
    from mtformer.text.lines import open_output

    languages = None if pair is None else parse_pair(pair)
    with open_output(output) as file:  # opened first: a wrong path must not cost the work
        result = compare_paths(
            systems,
            pair=languages,
            search={"beam_size": beam_size, "length_penalty": length_penalty},
            n_resamples=resamples,
            n_trials=trials,
            seed=seed,
            n_sentences=sentences,
            output=output,
            device=device,
            raw=raw,
            src=src,
            ref=ref or [],
            data=data or [],
            testset=testset or [],
        )
        print(format_comparison(result, format, coloured=output is None and has_colours()), file=file)
