"""``mtformer data``."""

import logging
from typing import Annotated

import typer

from mtformer.errors import UserError
from mtformer.text.lines import open_output

log = logging.getLogger(__name__)

app = typer.Typer(help="Look at parallel text.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def sample(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="Where the pairs come from: src:a.en,tgt:a.de, tsv:pairs.tsv, jsonl:pairs.jsonl, hf:NAME,split:train "
            "or builtin:phrasebook,split:test. Splits of the phrasebook: train, valid, test, compositional, ambiguous, "
            "pronouns.",
        ),
    ],
    pair: Annotated[str, typer.Option(metavar="SRC-TGT", help="The languages, as in en-de.")],
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="Number of pairs.")] = 10,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the random choice.")] = 1,
) -> None:
    """Print sentence pairs drawn at random from a source: source, tab, target."""
    from mtformer.config import parse_source
    from mtformer.data.preview import sample_pairs

    src_lang, dash, tgt_lang = pair.partition("-")
    if not (src_lang and dash and tgt_lang):
        raise UserError(f"--pair {pair}: give the languages as in en-de")
    if src_lang == tgt_lang:
        raise UserError(f"--pair {pair}: both languages are {src_lang}")
    pairs = sample_pairs(parse_source(source, src_lang, tgt_lang), src_lang, tgt_lang, n, seed)
    if not pairs:
        log.warning("%s contains no sentence pairs", source)
    with open_output(None) as output:
        for src, tgt in pairs:
            print(src.replace("\t", " "), tgt.replace("\t", " "), sep="\t", file=output)
