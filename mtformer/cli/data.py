"""``mtformer data``."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from mtformer.cli.data_from_models import backtranslate, distill, score, select
from mtformer.cli.help import ConfigCommand, GroupedCommand, SourceCommand
from mtformer.cli.options import parse_pair
from mtformer.cli.output import print_result
from mtformer.support.files import require_new_folder
from mtformer.text.lines import open_output

log = logging.getLogger(__name__)

app = typer.Typer(help="Get, check, make and filter parallel text.", no_args_is_help=True, rich_markup_mode=None)

SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="Where the pairs come from: src:a.en,tgt:a.de, moses:a, tsv:a.tsv, csv:a.csv, jsonl:a.jsonl, tmx:a.tmx, "
        "hf:NAME,split:train, sacrebleu:wmt14 or builtin:phrasebook,split:test. Splits of the phrasebook: train, "
        "valid, test, compositional, ambiguous, pronouns.",
    ),
]
PairOption = Annotated[str, typer.Option(metavar="SRC-TGT", help="The languages, as in en-de.")]


@app.command(cls=SourceCommand)
def sample(
    source: SourceArgument,
    pair: PairOption,
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="Number of pairs.")] = 10,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the random choice.")] = 1,
) -> None:
    """Print random sentence pairs of a source.

    Each line has the source, a tab and the target.
    """
    from mtformer.config import parse_source
    from mtformer.data.preview import sample_pairs

    src_lang, tgt_lang = parse_pair(pair)
    pairs = sample_pairs(parse_source(source, src_lang, tgt_lang), src_lang, tgt_lang, n, seed)
    if not pairs:
        log.warning("%s contains no sentence pairs", source)
    with open_output(None) as output:
        for src, tgt in pairs:
            print(src.replace("\t", " "), tgt.replace("\t", " "), sep="\t", file=output)


@app.command(cls=SourceCommand)
def fetch(
    source: SourceArgument,
    pair: PairOption,
    output: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write to.")],
) -> None:
    """Download or convert a source to plain parallel files.

    Prints how to name them in a config. Each pair of files has a note beside it, NAME.origin.json: source, revision,
    license, checksums. Without a split, all splits of a data set are written. Nothing is overwritten, and what is
    complete is not downloaded again.
    """
    from mtformer.data.fetch import fetch

    for files in fetch(source, *parse_pair(pair), output):
        print_result(f"src:{files.src},tgt:{files.tgt}")


@app.command(cls=ConfigCommand)
def check(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The config file.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a key, as in data.max_length=128.")
    ] = None,
    fix: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write clean training text, rejected.tsv and the report to a new folder."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with status 1 if there is any problem.")] = False,
) -> None:
    """Report what is wrong with the text of a config.

    That is, where its sides slip out of alignment, and which pairs the rules of data.filters would drop.
    """
    import json

    from mtformer.config import load_config
    from mtformer.data.clean.checkup import check as check_text
    from mtformer.data.clean.cleaning import as_config, write_clean
    from mtformer.data.clean.report import as_json as values_of
    from mtformer.data.clean.report import as_text
    from mtformer.translate.jobs.tokenizing import load_tokenizer

    if fix is not None:
        require_new_folder(fix, "--fix")
    loaded = load_config(config, overrides or [])
    base = loaded.training.init_from
    checkup = check_text(loaded, load_tokenizer(base) if base is not None else None)
    print_result(json.dumps(values_of(checkup), ensure_ascii=False) if as_json else as_text(checkup))
    if fix is not None:
        for source in write_clean(checkup, fix):
            log.info("clean text, a source for the config: %s", as_config(source, config.resolve().parent))
    if strict and checkup.n_problems:
        raise typer.Exit(1)


app.command(cls=GroupedCommand)(backtranslate)
app.command(cls=GroupedCommand)(distill)
app.command()(score)
app.command()(select)
