"""Hints about arguments and options that a command does not have."""

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import typer

from mtformer.support.terminal import escaped

# What may be meant by several arguments where a command takes one, by its metavar.
_ONE_OF = {
    "TEXT": ": give one text, with quotes around all of its words",
    "CONFIG": ": give one config, and set its keys with --set KEY=VALUE",
    "SOURCE": ": write two files as src:FILE,tgt:FILE",
}
_WHOLE_TEXT = re.compile(r"\s|[.!?。！？]$")  # what was quoted, or ends like a sentence
_FILE_NAME = re.compile(r"\S.*\.[A-Za-z]\w{1,9}|.*[/\\].*")
# Options that some commands have where others have another one.
_INSTEAD = (
    ("--pair", "--from and --to"),
    ("--from", "--pair, as in --pair en-de"),
    ("--to", "--pair, as in --pair en-de"),
    ("--src-lang", "--from"),
    ("--tgt-lang", "--to"),
    ("--tgt", "--ref"),
    ("--ref", "--tgt"),
    ("--src", "--input"),
    ("--input", "--src"),
    ("--output", "--fix"),
    ("--output", "--set run.dir=FOLDER"),
    ("--model", "--set training.init_from=MODEL, to fine-tune it"),
    ("--json", "--format json"),
    ("--format", "--json"),
    ("--glossary", "--terms"),
)
_FILES = ("FILE", "FOLDER", "PATH")  # metavars of options of which the last one would silently win
_MODELS = ("BUNDLE", "RUN", "SYSTEM")  # metavars of arguments that are models


def spelled(name: str) -> str:
    """Return the option of a parameter: ``--n-best`` for ``n_best``."""
    return f"--{name.replace('_', '-')}"


def given_twice(arguments: Sequence[str], parameters: Sequence[Any]) -> str | None:
    """Return the error for an option that takes one file and is given several; None if there is none.

    Args:
        arguments: those of the command line.
        parameters: the parameters of the command.
    """
    given = [text.partition("=")[0] for text in takewhile("--".__ne__, arguments)]
    for parameter in parameters:
        if parameter.metavar in _FILES and parameter.param_type_name == "option" and not parameter.multiple:
            n = sum(map(given.count, parameter.opts))
            if n > 1:
                return f"{parameter.opts[-1]} is given {n} times, but takes one {parameter.metavar}"
    return None


def too_many(extra: Sequence[str], parameters: Sequence[Any], given: Mapping[str, Any]) -> str | None:
    """Return the error for surplus arguments of a command; None if there are none.

    Args:
        extra: the arguments that typer has left over.
        parameters: the parameters of the command.
        given: their values.
    """
    texts = given.get("text")
    if isinstance(texts, list | tuple) and not all(map(_FILE_NAME.fullmatch, texts)):
        extra = [*texts[1:], *extra]  # several files, but not several texts
    return f"unexpected arguments ({escaped(' '.join(extra))}){_hint(extra, parameters, given)}" if extra else None


def _hint(extra: Sequence[str], parameters: Sequence[Any], given: Mapping[str, Any]) -> str:
    """Return a hint at the intended command line for ``extra`` arguments."""
    metavars = [str(parameter.metavar) for parameter in parameters if parameter.param_type_name == "argument"]
    text = given.get("text")
    first = text[0] if isinstance(text, list | tuple) else text
    if "TEXT" in metavars and all(map(_WHOLE_TEXT.search, [str(first), *extra])):
        several = "; for several, give a file with one on each line (--input), or a pipe" if "input" in given else ""
        return f": give one text, in quotes{several}"
    if "ref" in given and len(extra) == 1:
        return f": write a model as --model {escaped(extra[0])}"
    files = [str(given["config"]), *extra] if "config" in given else ["FILE"] * 2 if len(extra) == 1 else extra
    files = ["FILE" if _WHOLE_TEXT.search(file) else file for file in files]
    other = "tgt" if "tgt" in given else "ref"
    if {"src", other} <= set(given) and len(files) == 2 and not files[0].endswith((".yaml", ".yml")):
        return f": write two text files as --src {escaped(files[0])} --{other} {escaped(files[1])}"
    return "".join(_ONE_OF.get(name, "") for name in metavars)


def instead_of(option: str, parameters: Sequence[Any], command: str) -> str | None:
    """Return advice for an option of another command or toolkit, such as ``use --beam-size``."""
    from mtformer.config import Config
    from mtformer.config.problems import our_keys
    from mtformer.config.section import subsections

    key = option.removeprefix("--").replace("-", "_")
    if key in ("src", "tgt") and any(parameter.name == "config" for parameter in parameters):
        return "give a config, which mtformer train --src FILE --tgt FILE writes"
    for parameter in parameters:
        is_model = key == "model" and parameter.metavar in _MODELS
        if parameter.param_type_name == "argument" and (parameter.name == key or is_model):
            return f"write {command} {parameter.metavar}"
    known = {spelling for parameter in parameters for spelling in parameter.opts}
    keys = [f"{section}.{key}" for section, part in subsections(Config).items() if key in part.model_fields]
    keys = keys or our_keys(key)
    advices = [advice for wrong, advice in _INSTEAD if wrong == option]
    advices += [spelled(key.split(".")[1]) for key in keys] + [f"--set {key}=VALUE" for key in keys]
    return next((f"use {advice}" for advice in advices if re.split("[ ,]", advice)[0] in known), None)


def in_our_words(error: typer.BadParameter) -> str:
    """Reword a message about a value as for a config, and name the missing argument."""
    from pydantic import ValidationError

    if not isinstance(error.__cause__, ValidationError):
        return error.message or (getattr(error.param, "help", None) or "").rstrip(".")
    from mtformer.config.problems import explained

    return explained(error.__cause__.errors()[0])
