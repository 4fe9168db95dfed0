"""``mtformer export``."""

import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from mtformer.cli.command import option
from mtformer.cli.options import BundleArgument
from mtformer.cli.output import print_result
from mtformer.support.errors import UserError

Writer = Callable[[Path], None]
Target = Literal["ctranslate2", "huggingface"]

_PACKAGES = {"ctranslate2": "ctranslate2", "huggingface": "transformers"}


def export(
    bundle: BundleArgument,
    *,
    to: Annotated[Target, option("The program that the model is for.")],
    output: Annotated[Path, option("A new folder for the model.", metavar="DIR")],
    quantization: Annotated[
        str | None,
        option("ctranslate2: how weights are stored, such as int8. Default: float32.", metavar="TYPE"),
    ] = None,
    vocabulary_map: Annotated[
        tuple[Path, Path] | None,
        option(
            "ctranslate2: learn from parallel text, such as the training data, which target tokens may translate a "
            "source token; large vocabularies become faster.",
            metavar="SRC TGT",
        ),
    ] = None,
) -> None:
    """Write a model for another program.

    The new folder contains everything that translation needs.
    """
    from mtformer.runs.models import find_model
    from mtformer.support.files import require_new_folder, write_new_folder

    path = find_model(bundle)
    require_new_folder(output, "--output")
    _require_package(to)
    if to == "ctranslate2":
        write = _ctranslate2_writer(path, quantization, vocabulary_map)
    else:
        write = _huggingface_writer(path, quantization, vocabulary_map)
    print_result(write_new_folder(output, write, "--output"))


def _require_package(to: Target) -> None:
    if importlib.util.find_spec(_PACKAGES[to]) is None:
        raise UserError(
            f"--to {to} needs the package {_PACKAGES[to]}, which is not installed; pip install 'mtformer[{to}]'"
        )


def _ctranslate2_writer(path: Path, quantization: str | None, vocabulary_map: tuple[Path, Path] | None) -> Writer:
    """Load a bundle, and return what writes it into a folder for CTranslate2."""
    from mtformer.bundle.format import load_bundle
    from mtformer.engines.ctranslate2.conversion import parse_quantization, write_ctranslate2
    from mtformer.engines.ctranslate2.vocabulary_map import learn_vocabulary_map

    stored = parse_quantization(quantization or "float32")
    bundle = load_bundle(path)
    if vocabulary_map is not None and bundle.header.directions:
        raise UserError("--vocabulary-map is for a model of one direction: it says which tokens translate which")
    learned = None if vocabulary_map is None else learn_vocabulary_map(*vocabulary_map, bundle)
    return partial(write_ctranslate2, bundle=bundle, name=path.name, quantization=stored, vocabulary_map=learned)


def _huggingface_writer(path: Path, quantization: str | None, vocabulary_map: tuple[Path, Path] | None) -> Writer:
    """Load a bundle, and return what writes it into a folder for transformers."""
    if quantization is not None:
        raise UserError("--quantization is for --to ctranslate2; transformers quantize a model when they load it")
    if vocabulary_map is not None:
        raise UserError("--vocabulary-map is for --to ctranslate2; transformers compute the whole vocabulary")
    from mtformer.bundle.peek import peek
    from mtformer.export import require_huggingface

    if peeked := peek(path):  # before torch and transformers are imported, which takes seconds
        require_huggingface(peeked.header)

    from mtformer.bundle.format import load_bundle
    from mtformer.export.huggingface import write_huggingface

    return partial(write_huggingface, bundle=load_bundle(path), name=path.name)
