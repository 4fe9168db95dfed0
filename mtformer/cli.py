"""The command line: parse, call one function, print. Heavy imports happen inside the commands."""

import logging
import os
import sys
import traceback
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mtformer import __version__
from mtformer.errors import MtformerError, UserError
from mtformer.logs import log_as_json, log_to_stderr

log = logging.getLogger(__name__)

app = typer.Typer(
    name="mtformer",
    help="Train a Transformer to translate, translate with it, and say how good it is.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

data_app = typer.Typer(help="Look at the text to learn from.", no_args_is_help=True)
app.add_typer(data_app, name="data")


class Format(StrEnum):
    """How ``translate`` prints."""

    text = "text"
    tsv = "tsv"
    json = "json"


class Device(StrEnum):
    """Where to compute; ``auto`` takes a GPU when there is one."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


ModelOption = Annotated[
    Path | None,
    typer.Option(
        "--model", help="A model bundle or a run's folder; else $MTFORMER_MODEL, else the newest run under runs/."
    ),
]
BeamOption = Annotated[int | None, typer.Option(min=1, help="Hypotheses kept at each step; 1 is greedy search.")]
DeviceOption = Annotated[Device, typer.Option(help="Where to compute; auto takes a GPU when there is one.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"mtformer {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Declare ``--debug`` and ``--version`` for the help; :func:`main` looks for the former itself."""


@app.command()
def train(
    config: Annotated[Path, typer.Argument(help="The config file.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a key, as in training.max_steps=1000.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over instead of going on.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Do not train, but tell steps, speed, time and memory of it.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show nothing but warnings.")] = False,
    json_logs: Annotated[bool, typer.Option("--json-logs", help="Log JSON objects, one a line.")] = False,
    nproc: Annotated[int, typer.Option(min=1, help="Processes that share the work: one for each GPU.")] = 1,
) -> None:
    """Train a model. Run again, it goes on where it stopped."""
    if quiet:
        logging.getLogger("mtformer").setLevel(logging.WARNING)
    if json_logs:
        log_as_json()
    if dry_run and nproc > 1:
        raise UserError("--dry-run measures one process: leave out --nproc")
    from mtformer.config import load_config

    loaded = load_config(config, overrides or [])
    if nproc > 1:
        from mtformer.training.launch import launch

        launch(nproc)

    from mtformer.training import run
    from mtformer.training.launch import end_at_once, is_first_rank, is_restart

    if dry_run:
        print(run.dry_run(loaded, fresh=fresh))
        return
    try:
        bundle = run.train(loaded, fresh=fresh and not is_restart())
    except KeyboardInterrupt:
        if run.has_checkpoint(loaded):
            log.warning("stopped; %s keeps what was learned: the same command goes on", run.run_folder(loaded))
        raise
    if is_first_rank():
        print(bundle)
    end_at_once()


@app.command()
def average(
    models: Annotated[list[Path], typer.Argument(help="A run's folder, whose checkpoints are taken, or bundles.")],
    output: Annotated[Path, typer.Option(help="The bundle to write.")],
    last: Annotated[int | None, typer.Option(min=1, help="Take so many of the run's newest checkpoints.")] = None,
    best: Annotated[int | None, typer.Option(min=1, help="Take those of so many of its best validations.")] = None,
) -> None:
    """Average the weights of several checkpoints of a run, or of several bundles, into one model."""
    from mtformer.training.averaging import average_bundles, average_checkpoints

    [first, *others] = models
    if last is not None and best is not None:
        raise UserError("give --last or --best, not both")
    if first.is_dir():
        if others:
            raise UserError("give one run's folder, or bundles")
        average_checkpoints(first, output, last=last, best=best)
    else:
        if last is not None or best is not None:
            raise UserError("--last and --best choose among the checkpoints of a run: give its folder")
        average_bundles(models, output)
    print(output)


@app.command()
def translate(
    text: Annotated[str | None, typer.Argument(help="The text; without it, --input or standard input is read.")] = None,
    model: ModelOption = None,
    input: Annotated[Path | None, typer.Option(help="A text file, one sentence a line; - is standard input.")] = None,
    output: Annotated[Path | None, typer.Option(help="Where to write; - is standard output.")] = None,
    beam_size: BeamOption = None,
    length_penalty: Annotated[float | None, typer.Option(min=0, help="Larger means longer translations.")] = None,
    n_best: Annotated[int, typer.Option(min=1, help="Translations of each line.")] = 1,
    format: Annotated[Format, typer.Option(help="Plain text; or line, rank, score and text; or JSON.")] = Format.text,
    device: DeviceOption = Device.auto,
) -> None:
    """Translate a text, a file, or what comes in through a pipe, line by line."""
    from mtformer.commands import find_model, open_translator, translate_stream
    from mtformer.text.lines import is_utf8, open_output, read_lines

    if text is not None and input is not None:
        raise UserError("give a text or --input, not both")
    if text is not None and not is_utf8(text):
        raise UserError("the text is not UTF-8")
    source = input or Path("-")
    if text is None and output is not None and output.exists() and source.exists() and output.samefile(source):
        raise UserError(f"--input and --output are the same file, {output}")
    translator = open_translator(find_model(model), device, beam_size, length_penalty, n_best)
    lines = text.split("\n") if text is not None else read_lines(source)
    typed = text is None and str(source) == "-" and sys.stdin.isatty()  # who types a line waits for its translation
    with open_output(output) as file:
        translate_stream(translator, lines, file, n_best=n_best, format=format, lines_at_once=1 if typed else 1_000)


@app.command(name="eval")
def evaluate(
    model: ModelOption = None,
    src: Annotated[Path | None, typer.Option(help="Source text; the run's test set without it.")] = None,
    ref: Annotated[Path | None, typer.Option(help="Its reference translation.")] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="SOURCE", help="A source, as in builtin:phrasebook,split:test or tsv:test.tsv."),
    ] = None,
    beam_size: BeamOption = None,
    length_penalty: Annotated[float | None, typer.Option(min=0, help="Larger means longer translations.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the translations there, one a line.")] = None,
    device: DeviceOption = Device.auto,
) -> None:
    """Score a model on a test set: BLEU, chrF and TER, with sacreBLEU's signatures."""
    from mtformer.commands import evaluate_model, find_model

    evaluate_model(
        find_model(model),
        src=src,
        ref=ref,
        data=data,
        beam_size=beam_size,
        length_penalty=length_penalty,
        as_json=json,
        output=output,
        device=device,
    )


@data_app.command(name="sample")
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
    from mtformer.text.sampling import sample_pairs

    src_lang, dash, tgt_lang = pair.partition("-")
    if not (src_lang and dash and tgt_lang):
        raise UserError(f"--pair {pair}: give the languages as in en-de")
    if src_lang == tgt_lang:
        raise UserError(f"--pair {pair}: both languages are {src_lang}")
    for src, tgt in sample_pairs(parse_source(source, src_lang, tgt_lang), src_lang, tgt_lang, n, seed):
        print(src.replace("\t", " "), tgt.replace("\t", " "), sep="\t")


def main() -> None:
    """Run the command line; turn errors into sentences and exit statuses (0, 1, 2, and 130 for Ctrl-C)."""
    debug = "--debug" in sys.argv
    log_to_stderr()
    try:
        app(args=[arg for arg in sys.argv[1:] if arg != "--debug"])  # wherever it stands
    except (KeyboardInterrupt, EOFError):
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the last flush fails silently too
        sys.exit(1)
    except Exception as error:
        is_told = isinstance(error, UserError) and os.environ.get("LOCAL_RANK", "0") != "0"  # by another process here
        if debug:
            traceback.print_exc()
        elif is_told:
            pass
        elif isinstance(error, MtformerError):
            log.error("mtformer: %s", error)
        else:
            log.error("mtformer: unexpected %s: %s (--debug shows where)", type(error).__name__, error)
        sys.exit(2 if isinstance(error, UserError) else 1)
