"""``mtformer data``."""

from typing import Annotated

import typer

from mtformer.errors import UserError

app = typer.Typer(help="Look at the text to learn from.", no_args_is_help=True)


@app.command()
def sample(
    source: Annotated[
        str,
        typer.Argument(
            help="As in builtin:phrasebook,split:test, tsv:pairs.tsv, src:a.en,tgt:a.de or hf:NAME,split:train."
        ),
    ],
    pair: Annotated[str, typer.Option(metavar="SRC-TGT", help="The languages, as in en-de.")],
    n: Annotated[int, typer.Option("-n", min=1, help="How many.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Another number draws other ones.")] = 1,
) -> None:
    """Print sentence pairs of a source, drawn at random: source, tab, target."""
    from mtformer.config import parse_source
    from mtformer.data.preview import sample_pairs

    src_lang, dash, tgt_lang = pair.partition("-")
    if not (src_lang and dash and tgt_lang):
        raise UserError(f"--pair {pair}: give the languages as in en-de")
    if src_lang == tgt_lang:
        raise UserError(f"--pair {pair}: both languages are {src_lang}")
    for src, tgt in sample_pairs(parse_source(source, src_lang, tgt_lang), src_lang, tgt_lang, n, seed):
        print(src.replace("\t", " "), tgt.replace("\t", " "), sep="\t")
