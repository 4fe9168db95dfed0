"""``mtformer data``."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from mtformer.cli.command import Group, argument, option
from mtformer.cli.data_from_models import backtranslate, distill, score, select
from mtformer.cli.options import ConfigArgument, JsonOption, SetOption, parse_pair
from mtformer.cli.output import print_result

log = logging.getLogger(__name__)

SourceArgument = Annotated[
    str,
    argument(
        "Where the pairs come from: src:a.en,tgt:a.de, moses:a, tsv:a.tsv, csv:a.csv, jsonl:a.jsonl, tmx:a.tmx, "
        "hf:NAME,split:train, sacrebleu:wmt14 or builtin:phrasebook,split:test. Splits of the phrasebook: train, "
        "valid, test, compositional, ambiguous, pronouns.",
        "SOURCE",
    ),
]
PairOption = Annotated[str, option("The languages, as in en-de.", metavar="SRC-TGT")]


def sample(
    source: SourceArgument,
    *,
    pair: PairOption,
    n: Annotated[int, option("Number of pairs.", "-n", min=1)] = 10,
    seed: Annotated[int, option("Seed of the random choice.", min=0)] = 1,
) -> None:
    """Print random sentence pairs of a source.

    Each line has the source, a tab and the target.
    """
    from mtformer.config import parse_source
    from mtformer.data.sampling import sample_pairs
    from mtformer.text.lines import open_output

    src_lang, tgt_lang = parse_pair(pair)
    pairs = sample_pairs(parse_source(source, src_lang, tgt_lang), src_lang, tgt_lang, n, seed)
    if not pairs:
        log.warning("%s contains no sentence pairs", source)
    with open_output(None) as output:
        for src, tgt in pairs:
            print(src.replace("\t", " "), tgt.replace("\t", " "), sep="\t", file=output)


def fetch(
    source: SourceArgument,
    *,
    pair: PairOption,
    output: Annotated[Path, option("The folder to write to.", metavar="DIR")],
) -> None:
    """Download or convert a source to plain parallel files.

    Prints how to name them in a config. Each pair of files has a note beside it, NAME.origin.json: source, revision,
    license, checksums. Without a split, all splits of a data set are written. Nothing is overwritten, and what is
    complete is not downloaded again.
    """
    from mtformer.data.fetch import fetch

    for files in fetch(source, *parse_pair(pair), output):
        print_result(f"src:{files.src},tgt:{files.tgt}")


def check(
    config: ConfigArgument,
    *,
    overrides: SetOption = None,
    fix: Annotated[
        Path | None,
        option("Write clean training text, rejected.tsv and the report to a new folder.", metavar="DIR"),
    ] = None,
    json: JsonOption = False,
    strict: Annotated[bool, option("Exit with status 1 if there is any problem.")] = False,
) -> None:
    """Report what is wrong with the text of a config.

    That is, where its sides slip out of alignment, and which pairs the rules of data.filters would drop.
    """
    from json import dumps

    from mtformer.config import load_config
    from mtformer.data.clean.checkup import check as check_text
    from mtformer.data.clean.report import as_config, as_text, write_clean
    from mtformer.data.clean.report import as_json as values_of
    from mtformer.support.files import require_new_folder
    from mtformer.translate.jobs.tokenizing import load_tokenizer

    if fix is not None:
        require_new_folder(fix, "--fix")
    loaded = load_config(config, overrides or [])
    base = loaded.training.init_from
    checkup = check_text(loaded, load_tokenizer(base) if base is not None else None)
    print_result(dumps(values_of(checkup), ensure_ascii=False) if json else as_text(checkup))
    if fix is not None:
        for source in write_clean(checkup, fix):
            log.info("clean text, a source for the config: %s", as_config(source, config.resolve().parent))
    if strict and checkup.n_problems:
        raise typer.Exit(1)


class DataGroup(Group):
    """Get, check, make and filter parallel text."""

    functions = {  # noqa: RUF012 (a constant)
        "sample": sample,
        "fetch": fetch,
        "check": check,
        "backtranslate": backtranslate,
        "distill": distill,
        "score": score,
        "select": select,
    }
