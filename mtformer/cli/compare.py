"""``mtformer compare``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from mtformer.cli.command import Options, argument, option
from mtformer.cli.options import IN_OUT, TEST_SET, BeamOptions, ComputeOptions, TestSetOptions, parse_pair
from mtformer.cli.output import has_colours


@dataclass(frozen=True)
class StatisticsOptions(Options):
    """How to test for significance."""

    panel = "Statistics"
    n_resamples: Annotated[int, option("Resampled test sets of the paired bootstrap.", "--resamples", min=1)] = 1_000
    n_trials: Annotated[int, option("Trials of approximate randomization.", "--trials", min=1)] = 10_000
    seed: Annotated[int, option("The seed of both tests.", min=1, envvar="SACREBLEU_SEED")] = 12_345


@dataclass(frozen=True)
class ResultOptions(Options):
    """The output and its format."""

    panel = IN_OUT
    sentences: Annotated[int, option("How many of the most different sentences to show.", min=0)] = 5
    format: Annotated[
        Literal["text", "json", "csv", "markdown", "latex"],
        option("text, json, or the tables as csv, markdown or latex."),
    ] = "text"
    output: Annotated[Path | None, option("Where to write the result instead of standard output.")] = None


def compare(
    systems: Annotated[
        list[Path],
        argument(
            "Bundles, runs' folders, or files with a translation on each line, which need --ref but no --src; the "
            "first is the baseline.",
            "SYSTEM",
        ),
    ],
    *,
    test_set: TestSetOptions,
    pair: Annotated[
        str | None,
        option(
            "The languages, as in en-de: of files of translations, or the direction of a model that has several.",
            metavar="SRC-TGT",
            panel=TEST_SET,
        ),
    ] = None,
    search: BeamOptions,
    compute: ComputeOptions,
    statistics: StatisticsOptions,
    results: ResultOptions,
) -> None:
    """Test whether systems differ.

    The first system is the baseline, with which the others are compared on one test set.
    """
    from mtformer.evaluate.comparison_formats import format_comparison
    from mtformer.evaluate.systems import compare_paths
    from mtformer.text.lines import open_output

    languages = None if pair is None else parse_pair(pair)
    coloured = results.output is None and has_colours()
    with open_output(results.output, styled=coloured) as file:  # opened first: a wrong path must not cost the work
        result = compare_paths(
            systems,
            pair=languages,
            search=search,
            **vars(statistics),
            n_sentences=results.sentences,
            output=results.output,
            **vars(compute),
            **test_set.texts,
        )
        print(format_comparison(result, results.format, coloured=coloured), file=file)
