"""``mtformer train``, ``runs``, ``report``, ``average``, ``export`` and ``import``."""

import logging
import re
from collections.abc import Callable
from functools import partial
from itertools import chain
from json import dumps
from mimetypes import MimeTypes
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mtformer.cli import options
from mtformer.cli.command import argument, option
from mtformer.support.errors import UserError
from mtformer.support.logs import log_as_json
from mtformer.support.packages import require_package

if TYPE_CHECKING:
    from mtformer.bundle.format import Bundle

log = logging.getLogger(__name__)


def train(
    config: Path | None = options.CONFIG_OR_TEXTS,
    *,
    texts: options.Texts,
    overrides: list[str] | None = options.SET,
    fresh: bool = option("Start from scratch instead of resuming."),
    dry_run: bool = option("Print the expected steps, speed, time and memory; do not train."),
    samples: bool = option("Show sample translations at each validation."),
    quiet: bool = option("Show only warnings and errors."),
    json_logs: bool = option("Log JSON objects, one per line."),
    nproc: int = option("The number of processes: one for each GPU.", default=1, min=1),
) -> None:
    """Train a model. Rerun to resume."""
    if quiet:
        logging.getLogger("mtformer").setLevel(logging.WARNING)
    if json_logs:
        log_as_json()
    if dry_run and nproc > 1:
        raise UserError("--dry-run measures one process: remove --nproc")
    with texts.loaded("train", config, overrides or [], write=not dry_run) as loaded:
        if nproc > 1:
            from mtformer.support.processes.launch import launch

            launch(nproc, loaded.training.device)

        from mtformer.report.writing import refresh_report
        from mtformer.training import run

        if dry_run:
            options.print_result(run.dry_run(loaded, fresh=fresh))
            return
        on_scores = refresh_report if loaded.training.report else None
        bundle = run.train(loaded, fresh=fresh, show_samples=samples, on_scores=on_scores)

    from mtformer.support.processes.launch import end_at_once, is_first_rank

    if is_first_rank():
        options.print_result(bundle)
    end_at_once()


def runs(
    folder: Path = argument("The folder of all runs, as in run.dir.", "FOLDER", default=Path("runs")),
    *,
    json: bool = options.JSON,
) -> None:
    """List runs.

    Shows what each trains, its progress, and the scores of its best model.
    """
    from mtformer.runs.listing import as_table, list_runs

    listed = list_runs(folder)
    for run in listed:
        if run.problem:
            log.warning("%s", run.problem)
    if json:
        options.print_result(dumps([run.to_dict() for run in listed], indent=2, ensure_ascii=False))
    elif listed:
        options.print_result(as_table(listed, options.terminal_columns()))
    else:
        log.info("there are no runs in %s", folder)


def report(
    runs: list[Path] | None = options.RUNS,
    *,
    output: Path | None = option("The page to write; default: report.html in the run's folder."),
    no_test: bool = option("Do not translate the test set."),
    device: options.Device = options.DEVICE,
) -> None:
    """Write a page about a run.

    It shows data, curves, samples, scores and settings. Of several runs, it shows validation scores, curves and the
    settings that differ, side by side.
    """
    from mtformer.report.writing import write_report
    from mtformer.runs.finding import find_model

    options.require_file("--output", output, "the path of the page")
    options.require_own_page(output)
    runs = runs or [find_model(None, "mtformer report RUN").parent]
    options.print_result(write_report(runs, output, with_test=not no_test, device=device))


def average(
    models: list[Path] = argument("A run's folder, or several bundles.", "MODEL"),
    *,
    output: Path = option("A new file for the bundle."),
    last: int | None = option("Average the N newest checkpoints of the run; default: all.", min=1),
) -> None:
    """Average checkpoints or bundles into one bundle."""
    from mtformer.runs.folder import RunFolder
    from mtformer.support.files import require_distinct, require_new_folder
    from mtformer.training.ema import average_bundles, average_checkpoints

    first, is_run = models[0], any(map(Path.is_dir, models))
    require_new_folder(output, "--output", kind="file")
    if is_run:
        require_distinct(output, RunFolder(first).parts)
        if len(models) > 1:
            bundle = RunFolder(next(filter(Path.is_dir, models))).bundle
            raise UserError(f"give the folder of one run alone, or bundles, such as {bundle}")
        average_checkpoints(first, output, last=last)
    else:
        if last is not None:
            raise UserError("--last chooses among the checkpoints of a run: give its folder")
        average_bundles(models, output)
    options.print_result(output)


def merge(
    bundle: Path = options.BUNDLE,
    adapter: Path = argument("The LoRA adapter: adapter.safetensors of a run with training.lora.", "ADAPTER"),
    *,
    output: Path = option("A new file for the bundle."),
) -> None:
    """Merge an adapter into its model.

    The new bundle translates like the model with --adapter, and can be exported, averaged and fine-tuned.
    """
    from mtformer.bundle.adapter import load_adapted
    from mtformer.bundle.format import save_bundle
    from mtformer.runs.finding import find_model
    from mtformer.support.files import require_new_folder

    path = find_model(bundle)
    require_new_folder(output, "--output", kind="file")
    save_bundle(output, load_adapted(path, adapter))
    options.print_result(output)


def export(
    bundle: Path = options.BUNDLE,
    *,
    to: Literal["ctranslate2", "huggingface", "html", "argos"] = option(
        "The program to export for; html: a browser; argos: Argos Translate and LibreTranslate."
    ),
    output: Path = option(
        "A new folder for the model; html: a file such as demo.html, or a folder for a web server; argos: a new "
        "file such as en_de.argosmodel.",
        metavar="PATH",
    ),
    quantization: str | None = option(
        "The format of the weights. ctranslate2, argos: such as int8; default: float32. html: float32; default: int8.",
        metavar="TYPE",
    ),
    vocabulary_map: tuple[Path, Path] | None = option(
        "ctranslate2: learn from parallel text, such as the training data, which target tokens may translate a source "
        "token; large vocabularies become faster.",
        metavar="SRC TGT",
    ),
) -> None:
    """Write a model for another program, or as a web page that translates.

    The new folder, or the page, contains everything that translation needs.
    """
    from mtformer.runs.finding import find_model
    from mtformer.support.files import require_new_folder, write_new_folder

    path = find_model(bundle)
    if vocabulary_map is not None and to != "ctranslate2":
        raise UserError(f"--vocabulary-map is for --to ctranslate2; {to} always computes the whole vocabulary")
    if to == "html":
        options.print_result(_write_page(path, output, quantization))
        return
    require_new_folder(output, "--output", kind="file" if to == "argos" else "folder")
    if to != "huggingface":
        require_package("ctranslate2", f"--to {to}")
    if to == "argos":
        options.print_result(_write_argos(path, output, quantization or "float32"))
        return
    if to == "ctranslate2":
        write = _ctranslate2_writer(path, quantization or "float32", vocabulary_map)
    elif quantization is not None:
        raise UserError("--quantization is not for --to huggingface: transformers quantizes a model when loading it")
    else:
        write = _huggingface_writer(path)
    options.print_result(write_new_folder(output, write, "--output"))


def _write_page(path: Path, output: Path, quantization: str | None) -> Path:
    """Write the page of a bundle."""
    from mtformer.support.files import require_new_folder
    from mtformer.text.lines import open_output

    options.require_file("--output", output, "the path of the page")
    is_file = output.suffix.lower() in options.PAGE_SUFFIXES
    if not is_file and MimeTypes().guess_type(output.name)[0]:  # not the system, for which .com may be one
        raise UserError(f"--output {output}: name a page, {output.with_suffix('.html')}, or a folder for a web server")
    if is_file:
        options.require_own_page(output)
    else:
        require_new_folder(output, "--output")

    from mtformer.bundle.format import load_bundle
    from mtformer.export.html import parse_quantization, render_page, write_app

    stored = parse_quantization(quantization)
    if not is_file:
        return write_app(output, load_bundle(path), stored)
    with open_output(output) as file:  # before the work
        file.write(render_page(load_bundle(path), stored))
    return output


def _write_argos(path: Path, output: Path, quantization: str) -> Path:
    """Write a bundle as a package of Argos Translate."""
    from mtformer.engines.ctranslate2.conversion import parse_quantization
    from mtformer.export.argos import write_argos

    stored = parse_quantization(quantization)
    return write_argos(output, _load_for_others(path), quantization=stored)


def _ctranslate2_writer(
    path: Path, quantization: str, vocabulary_map: tuple[Path, Path] | None
) -> Callable[[Path], None]:
    """Load a bundle, and return its writer into a folder for CTranslate2."""
    from mtformer.engines.ctranslate2.conversion import parse_quantization, write_ctranslate2
    from mtformer.engines.ctranslate2.vocabulary_map import learn_vocabulary_map

    stored = parse_quantization(quantization)
    bundle = _load_for_others(path)
    if vocabulary_map is not None and bundle.header.directions:
        raise UserError("--vocabulary-map needs a model of one direction: it maps source tokens to target tokens")
    learned = None if vocabulary_map is None else learn_vocabulary_map(*vocabulary_map, bundle)
    return partial(write_ctranslate2, bundle=bundle, name=path.name, quantization=stored, vocabulary_map=learned)


def _huggingface_writer(path: Path) -> Callable[[Path], None]:
    """Load a bundle, and return its writer into a folder for transformers."""
    from mtformer.bundle.peek import peek
    from mtformer.export import require_huggingface

    if peeked := peek(path):  # before torch and transformers are imported, which takes seconds
        require_huggingface(peeked.header)
    require_package("transformers", "--to huggingface", "huggingface")

    from mtformer.export.huggingface import write_huggingface

    return partial(write_huggingface, bundle=_load_for_others(path), name=path.name)


def _load_for_others(path: Path) -> "Bundle":
    """Load a bundle for another program, and say what that will not do with it."""
    from mtformer.bundle.format import load_bundle

    bundle = load_bundle(path)
    if bundle.tokenizer.has_slots:
        log.warning("only mtformer fills this model's slots for numbers, codes and names: without it, many are wrong")
    return bundle


def import_(
    model: str = argument(
        "A model of Hugging Face's transformers: its folder, or hf:OWNER/NAME for one on the hub; or a model of "
        "Marian: model.npz.",
        "MODEL",
    ),
    *,
    output: Path = option("The folder to create for the bundle.", metavar="FOLDER"),
    revision: str | None = option("hf: the branch, tag or commit. Default: the newest commit."),
    vocab: list[Path] | None = option(
        "Marian: the source and the target vocabulary, or a joint one. Default: those next to the model.",
        metavar="FILE",
    ),
    src_lang: str | None = option("The source language, if the model does not name it.", "--from", metavar="LANG"),
    tgt_lang: str | None = option("The target language, if the model does not name it.", "--to", metavar="LANG"),
    languages: str | None = option(
        "The languages to keep of a multilingual model, such as en,de; tokens in other scripts are dropped.",
        metavar="LANGS",
    ),
    keep_vocabulary: list[Path] | None = option(
        "Keep only the tokens in this text, and all characters. Repeatable.", metavar="FILE"
    ),
) -> None:
    """Import a model of another toolkit.

    The new bundle can be used and fine-tuned like one that was trained here.
    """
    from mtformer.config import LanguagePair
    from mtformer.config.section import LANGUAGE_CODE
    from mtformer.support.files import require_new_folder, write_new_folder

    for name, given in (("--from", src_lang), ("--to", tgt_lang)):
        if given is not None and not re.match(LANGUAGE_CODE, given):
            raise UserError(f"{name} {given}: give a language code such as en, de or zh")
    if (src_lang is None) != (tgt_lang is None):
        raise UserError("give --from and --to together")
    pair = LanguagePair(src_lang, tgt_lang) if src_lang and tgt_lang else None
    require_new_folder(output, "--output")
    from mtformer.export.importing import read_model, write_model

    imported = read_model(model, pair, revision, vocab or ())
    if languages is not None or keep_vocabulary:
        from mtformer.export.trim import trim
        from mtformer.text.lines import read_lines

        texts = chain.from_iterable(map(read_lines, keep_vocabulary)) if keep_vocabulary else None
        imported = trim(imported, languages.split(",") if languages is not None else None, texts)
    options.print_result(write_new_folder(output, partial(write_model, imported), "--output"))
