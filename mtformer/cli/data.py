"""``mtformer data``."""

import logging
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mtformer.cli import options
from mtformer.cli.command import Group, argument, option
from mtformer.support.errors import UserError

if TYPE_CHECKING:
    from mtformer.config import LanguagePair
    from mtformer.data.sources.parallel import ParallelText

log = logging.getLogger(__name__)

SOURCE = argument(
    "The source of the pairs: src:a.en,tgt:a.de, moses:a, tsv:a.tsv, csv:a.csv, jsonl:a.jsonl, tmx:a.tmx, "
    "hf:NAME,split:train, sacrebleu:wmt14 or builtin:phrasebook,split:test. Splits of the phrasebook: train, valid, "
    "test, compositional, ambiguous, pronouns.",
    "SOURCE",
)
PAIR = option("The languages, as in en-de.", metavar="SRC-TGT")


def sample(
    source: str = SOURCE,
    *,
    pair: str = PAIR,
    n: int = option("The number of pairs.", "-n", default=10, min=1),
    seed: int = option("The seed for choosing them.", default=1, min=0),
) -> None:
    """Print random sentence pairs of a source.

    Each line has the source, a tab and the target.
    """
    from mtformer.config import parse_source
    from mtformer.data.sources.parallel import sample_pairs
    from mtformer.text.lines import open_output

    src_lang, tgt_lang = options.parse_pair(pair)
    pairs = sample_pairs(parse_source(source, src_lang, tgt_lang), src_lang, tgt_lang, n, seed)
    if not pairs:
        log.warning("%s contains no sentence pairs", source)
    with open_output(None) as output:
        for src, tgt in pairs:
            print(src.replace("\t", " "), tgt.replace("\t", " "), sep="\t", file=output)


def fetch(
    source: str = SOURCE, *, pair: str = PAIR, output: Path = option("The folder for the files.", metavar="FOLDER")
) -> None:
    """Download or convert a source to plain parallel files.

    Prints how to name them in a config. Each pair of files comes with NAME.origin.json: source, revision, license,
    checksums. Without a split, all splits of a data set are written. Existing files are never overwritten, and complete
    ones not downloaded again.
    """
    from mtformer.data.fetch import fetch

    for files in fetch(source, *options.parse_pair(pair), output):
        options.print_result(f"src:{files.src},tgt:{files.tgt}")


def check(
    config: Path | None = options.CONFIG_OR_TEXTS,
    *,
    texts: options.Texts,
    overrides: list[str] | None = options.SET,
    fix: Path | None = option(
        "Write the cleaned and realigned training text, and the rejected pairs, to a new folder.", metavar="FOLDER"
    ),
    json: bool = options.JSON,
    strict: bool = option("Exit with status 1 if any problem is found."),
) -> None:
    """Report the problems of the text of a config, or of two files.

    These are passages whose sides are out of alignment, and pairs that the rules of data.filters would drop.
    """
    from json import dumps

    from mtformer.config import dump_override, valid_run_name
    from mtformer.data.clean.checkup import check as check_text
    from mtformer.data.clean.report import as_config, as_text, write_clean
    from mtformer.data.clean.report import as_json as values_of
    from mtformer.data.new_config import options_of_files
    from mtformer.support.files import require_new_folder
    from mtformer.translate.jobs.tokenizing import load_tokenizer

    if fix is not None:
        require_new_folder(fix, "--fix")
    with texts.loaded("data check", config, overrides or []) as loaded:
        base = loaded.training.init_from
        checkup = check_text(loaded, load_tokenizer(base) if base is not None else None)
    options.print_result(dumps(values_of(checkup), ensure_ascii=False) if json else as_text(checkup))
    if fix is None and checkup.n_problems:
        log.info("to write a clean copy of the training text, add --fix FOLDER")
    if fix is not None:
        for source in write_clean(checkup, fix):
            if config:
                log.info("clean text, a source for the config: %s", as_config(source, config.resolve().parent))
            else:
                files = options_of_files(source.src, source.tgt, (texts.src_lang, texts.tgt_lang))
                named = dump_override("run.name", valid_run_name(fix.name))
                settings = [part for each in (*(overrides or []), named) for part in ("--set", each)]
                log.info("to train on the clean text: mtformer train %s %s", files, shlex.join(settings))
    if strict and checkup.n_problems:
        raise typer.Exit(1)


PAIRS = argument("A config, for its training text; or a source with --pair, as in src:a.en,tgt:a.de.", "TEXT")
PAIR_OF_TEXT = option(
    "The languages, as in en-de; a config of one direction needs none.",
    "--pair",
    metavar="SRC-TGT",
    panel=options.IN_OUT,
)
PAIRS_OUTPUT = option(
    "The JSON Lines file for the pairs, for use as a jsonl source in a config.", "--output", panel=options.IN_OUT
)


def backtranslate(
    context: typer.Context,
    *,
    input: Path = option("Text in the source language of the model, one sentence per line.", panel=options.IN_OUT),
    output: Path = PAIRS_OUTPUT,
    model: list[Path] | None = options.MODELS,
    direction: options.Direction,
    search: options.NBest,
    compute: options.Engine,
    job: options.Job,
) -> None:
    """Make training pairs from monolingual text in the target language.

    To train a model from en to de, give a model from de to en, and text in de: its translations become the sources, and
    the text itself the targets. Doubtful translations are left out. In the config, mark the source with a tag.
    """
    from mtformer.runs.finding import find_models
    from mtformer.translate.jobs.core import run
    from mtformer.translate.jobs.generation import GenerationJob
    from mtformer.translate.jobs.options import OnError
    from mtformer.translate.jobs.reading import TextInput

    models = find_models(model)
    text = TextInput(path=input, on_error=OnError.skip)
    compared = options.compared_options(context)
    generation = GenerationJob(text=text, models=models, output=output, options=compared, **vars(job))
    run(generation, partial(options.load_translator, models, **vars(compute), **vars(direction), **search))


def distill(
    context: typer.Context,
    text: str = PAIRS,
    *,
    output: Path = PAIRS_OUTPUT,
    pair: str | None = PAIR_OF_TEXT,
    model: list[Path] | None = options.MODELS,
    tag: str | None = options.TAG,
    search: options.NBest,
    compute: options.Engine,
    job: options.Job,
) -> None:
    """Replace the targets of training text with translations by a model.

    A smaller or faster model learns more easily from them. With several --model, an ensemble translates. Doubtful
    translations are left out.
    """
    from mtformer.runs.finding import find_models
    from mtformer.translate.jobs.core import run
    from mtformer.translate.jobs.generation import GenerationJob

    models = find_models(model)
    pairs, languages = _text(text, pair)
    compared = options.compared_options(context)
    generation = GenerationJob(text=pairs, models=models, output=output, options=compared, **vars(job))
    run(generation, partial(options.load_translator, models, **vars(compute), **languages._asdict(), tag=tag, **search))


def score(
    context: typer.Context,
    text: str = PAIRS,
    *,
    output: Path = PAIRS_OUTPUT,
    pair: str | None = PAIR_OF_TEXT,
    model: list[Path] | None = options.MODELS,
    reverse: Path | None = option(
        "A model of the opposite direction, which improves the scores.", metavar="PATH", panel=options.IN_OUT
    ),
    device: options.Device = options.DEVICE,
    job: options.Job,
) -> None:
    """Score sentence pairs with models, for data select.

    Scores are between 0 and 1. With models of both directions, they are computed from the dual conditional
    cross-entropy of Junczys-Dowmunt (2018).
    """
    from mtformer.runs.finding import find_model, find_models
    from mtformer.support.files import require_distinct
    from mtformer.translate.jobs.core import run
    from mtformer.translate.jobs.generation import CrossEntropyJob

    models = find_models(model)
    opposite = [find_model(reverse)] if reverse is not None else []
    pairs, (src_lang, tgt_lang) = _text(text, pair)
    compared = options.compared_options(context) | {"reverse": opposite or None}
    scoring = CrossEntropyJob(text=pairs, models=models, output=output, options=compared, **vars(job))
    require_distinct(output, opposite)
    load = partial(options.load_translator, device=device, raw=True)
    forward = partial(load, models, src_lang=src_lang, tgt_lang=tgt_lang)
    backward = partial(load, opposite, src_lang=tgt_lang, tgt_lang=src_lang)
    run(scoring, forward, *([backward] if opposite else []))


def select(
    scored: Path = argument("The output of `mtformer data score`.", "FILE"),
    *,
    output: Path = options.OUTPUT,
    min_score: float | None = option("Keep pairs with a score of at least X."),
    share: float | None = option("Keep this share of the pairs, the best ones, such as 0.8.", metavar="S"),
) -> None:
    """Select the best of scored pairs.

    Without --min-score and --share, prints how many pairs each threshold would keep.
    """
    from mtformer.data.selection import curve, describe, select
    from mtformer.support.terminal import counted

    if min_score is not None and share is not None:
        raise UserError("give --min-score or --share, not both")
    if min_score is None and share is None:
        if str(output) != "-":
            raise UserError("--output needs --min-score or --share, which select the pairs to keep")
        options.print_result(describe(curve(scored), options.terminal_columns()))
        return
    n_kept, n_pairs = select(scored, output, min_score=min_score, share=share)
    log.info("kept %s of %s", f"{n_kept:,}", counted(n_pairs, "pair"))


def _text(text: str, pair: str | None) -> "tuple[ParallelText, LanguagePair]":
    """Return the training text of a config, or a source, with its languages."""
    from mtformer.config import load_config, parse_source
    from mtformer.data.sources.parallel import ParallelText

    languages = options.parse_pair(pair) if pair is not None else None
    if text.endswith((".yaml", ".yml")):
        data = load_config(text).data
        known = data.language_pairs
        if languages is None and len(known) > 1:
            raise UserError(f"{text} has several directions: choose one of {', '.join(map(str, known))} (--pair)")
        languages = languages or known[0]
        sources = [source for source in data.train if (source.languages or known[0]) == languages]
        if not sources:
            raise UserError(f"--pair {pair}: {text} has training text for {', '.join(map(str, known))}")
        return ParallelText(sources, *languages), languages
    if languages is None:
        raise UserError(f"{text}: give the languages of a source (--pair), as in --pair en-de")
    return ParallelText([parse_source(text, *languages)], *languages), languages


class DataGroup(Group):
    """Get, check, make and filter parallel text."""

    functions = {  # noqa: RUF012 (a constant)
        command.__name__: command for command in (sample, fetch, check, backtranslate, distill, score, select)
    }
