"""``mtformer eval`` and ``mtformer compare``."""

from json import dumps
from pathlib import Path
from typing import Any, Literal

from mtformer.cli import options
from mtformer.cli.command import Options, argument, option
from mtformer.cli.hints import spelled
from mtformer.support.errors import UserError

_FEWEST_SAMPLES = 20  # of a test: with n samples, no p-value is below 1 / (n + 1)


class ScoreOptions(Options):
    """Other test sets and metrics."""

    panel = "Scores"
    protocol: str | None = option(
        "Rerun a published protocol: multi30k-2016-lc-tok or multi30k-2016-cased-13a.", metavar="NAME"
    )
    stress: bool = option("Score perturbed text: all caps, typos, an appended emoji and others.")
    comet: str | None = option(
        "Also score with this COMET model, such as Unbabel/wmt22-comet-da; needs comet-score.", metavar="MODEL"
    )


class OutputOptions(Options):
    """The outputs."""

    panel = options.IN_OUT
    json: bool = options.JSON
    output: Path | None = option("The file for the translations, one per line.")
    save: Path | None = option("The JSON Lines file for each sentence, its translation and its scores.")


def evaluate(
    *,
    model: list[Path] | None = options.MODELS,
    direction: options.Direction,
    test_set: options.TestSet,
    scores: ScoreOptions,
    results: OutputOptions,
    compute: options.Engine,
    search: options.Search,
) -> None:
    """Score a model on test sets.

    BLEU, chrF2, chrF2++ and TER come with sacreBLEU's signatures. A model of several directions is scored in each
    for which its run has a test set; --from and --to choose some of them.
    """
    from mtformer.bundle.header import Toward
    from mtformer.engines.loading import load_model
    from mtformer.evaluate.evaluation import evaluate_model
    from mtformer.evaluate.metrics import require_comet
    from mtformer.evaluate.protocols import SEARCH, find_protocol, run_protocol
    from mtformer.evaluate.stress import stress_model
    from mtformer.evaluate.testsets import require_named
    from mtformer.runs.finding import find_models

    _require_compatible(scores, results, test_set, search)
    if scores.comet is not None:
        require_comet()
    protocol = None if scores.protocol is None else find_protocol(scores.protocol)
    paths, toward, texts, raw = find_models(model), Toward(**vars(direction)), vars(test_set), compute.raw
    require_named(paths[0], **texts)  # before the model, whose conversion may take seconds
    changes = search if protocol is None else SEARCH
    loaded = load_model(paths, compute.engine, compute.device, adapter=compute.adapter, **changes)
    result: Any
    if protocol is not None:
        result = run_protocol(paths, loaded.toward(*toward), protocol, output=results.output, **texts)
    elif scores.stress:
        result = stress_model(paths, loaded.toward(*toward), save=results.save, raw=raw, **texts)
    else:
        asked: dict[str, Any] = {"comet": scores.comet, "device": compute.device, "raw": raw, **texts}
        result = evaluate_model(paths, loaded, toward, output=results.output, save=results.save, **asked)
    options.print_result(dumps(result.to_dict(), indent=2, ensure_ascii=False) if results.json else result.to_text())


def _require_compatible(
    scores: ScoreOptions, results: OutputOptions, test_set: options.TestSet, search: dict[str, Any]
) -> None:
    """Refuse options that cannot be combined."""
    options.require_file("--output", results.output, "the scores")
    options.require_file("--save", results.save, "the scores")
    refused: dict[str, object] = {"--comet": scores.comet}
    if scores.protocol is not None:
        chosen = "--protocol"
        refused |= {"--testset": test_set.testset, "--save": results.save, "--stress": scores.stress}
        refused |= {spelled(name): True for name in search}
    elif scores.stress:
        chosen = "--stress"
        refused |= {"--output": results.output}
    else:
        return
    for name, value in refused.items():
        if value is not None and value is not False:
            raise UserError(f"{chosen} and {name} cannot be combined")


class StatisticsOptions(Options):
    """Options of the significance tests."""

    panel = "Statistics"
    n_resamples: int = option(
        "The number of resampled test sets of the paired bootstrap.", "--resamples", default=1_000, min=_FEWEST_SAMPLES
    )
    n_trials: int = option(
        "The number of trials of approximate randomization.", "--trials", default=10_000, min=_FEWEST_SAMPLES
    )
    seed: int = option("The seed of both tests.", default=12_345, min=1, envvar="SACREBLEU_SEED")


class ResultOptions(Options):
    """The output and its format."""

    panel = options.IN_OUT
    sentences: int = option("The number of sentences to show, the most different ones.", default=5, min=0)
    format: Literal["text", "json", "markdown", "latex"] = option(
        "text, json, or the table as markdown or latex.", default="text"
    )
    output: Path | None = option("The file for the result; default: standard output.")


def compare(
    systems: list[Path] = argument(
        "Bundles, runs' folders, or files with a translation on each line, which need --ref but no --src; the first is "
        "the baseline. One alone is scored.",
        "SYSTEM",
    ),
    *,
    test_set: options.TestSet,
    pair: str | None = option(
        "The languages of files of translations, or the direction of a multilingual model, as in en-de.",
        metavar="SRC-TGT",
        panel=options.TEST_SET,
    ),
    search: options.Beam,
    compute: options.Compute,
    statistics: StatisticsOptions,
    results: ResultOptions,
) -> None:
    """Test whether systems differ, or score one.

    The first system is the baseline; each other system is compared with it on one test set. Models run on torch, as
    with eval --engine torch.
    """
    from mtformer.evaluate.comparison_formats import format_comparison
    from mtformer.evaluate.systems import compare_paths
    from mtformer.text.lines import open_output

    languages = None if pair is None else options.parse_pair(pair)
    coloured = results.output is None and options.has_colours()
    with open_output(results.output, styled=coloured) as file:  # opened first: a wrong path must not cost the work
        result = compare_paths(
            systems,
            pair=languages,
            search=search,
            **vars(statistics),
            n_sentences=results.sentences,
            output=results.output,
            **vars(compute),
            **vars(test_set),
        )
        columns = options.terminal_columns() if results.output is None else None
        print(format_comparison(result, results.format, coloured=coloured, columns=columns), file=file)
