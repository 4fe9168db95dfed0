"""What texts about mtformer name, looked up in the package, on its command line, in the schema and among the files."""

import ast
import builtins
import functools
import importlib
import inspect
import re
import shlex
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import typer.main
import yaml
from pydantic import BaseModel, ValidationError

from mtformer.cli.app import app
from mtformer.config import Config

ROOT = Path(__file__).parent.parent
VARIABLES = {  # what those of the examples hold
    "F": "torch.nn.functional",
    "best": "mtformer.Translation",
    "model": "mtformer.model.transformer.Transformer",
    "nn": "torch.nn",
    "torch": "torch",
    "trace": "mtformer.explain.trace.Trace",
    "translator": "mtformer.Translator",
}
FOREIGN_PROGRAMS = ("pip", "sacrebleu", "tensorboard")
FOREIGN_OPTIONS = {
    "--add_dummy_prefix": "SentencePiece",
    "--escape_whitespaces": "SentencePiece",
    "--extra-index-url": "pip",
    "--max-restarts": "torchrun",
    "--treat_whitespace_as_suffix": "SentencePiece",
}
FOREIGN_NAMES = {
    "AutoModelForSeq2SeqLM": "transformers",
    "AutoTokenizer": "transformers",
    "data_x": "an attribute of HTML",
    "int8_float16": "CTranslate2",
    "int8_float32": "CTranslate2",
    "src_en": "a column of a table",
    "text_en": "a column of a table",
}

_PATH = re.compile(r"(?<![\w./~:-])(?:configs|scripts|tests|mtformer|docs)/[\w./-]*\w")
_NAME = re.compile(r"([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*)*)(?:\(.*\))?", re.DOTALL)
_ARGUMENT = re.compile(r"([a-z_]+)=.+")
_SETTING = re.compile(r"([a-z_]+(?:\.[a-z_]+)*): (.+)")
_SNAKE_CASE = re.compile(r"_?[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
_CAMEL_CASE = re.compile(r"(?:[A-Z]+[a-z0-9]+){2,}[A-Z]*")


def problems(code: str) -> list[str]:
    """Return what a piece of code names that does not exist.

    Args:
        code: what a text shows as code, such as ``data.filters`` or ``mtformer eval --json``. Code that names nothing
            of ours has no problems.
    """
    code = " ".join(code.split())
    if missing := missing_files(code):
        return missing
    if re.match(r"(?:from|import) mtformer", code):
        return _import_problems(code)
    if re.search(r"(?:^| )--[a-z]", code) or re.match(r"mtformer [a-z]", code):
        return list(_command_problems(_words(code)))
    if match := _SETTING.fullmatch(code):
        return setting_problems(match[1], match[2])
    if match := _NAME.fullmatch(code):
        return [] if _is_name(match[1], match[2]) else [f"no {match[1]}{match[2]}"]
    if match := _ARGUMENT.fullmatch(code):
        return [] if _is_name(match[1], "") else [f"no {match[1]}"]
    return []


def missing_files(text: str) -> list[str]:
    """Return the files of this repository that a text names and that do not exist."""
    return [f"no file {path}" for path in _PATH.findall(text) if not (ROOT / path).exists()]


def setting_problems(key: str, value: str) -> list[str]:
    """Return why a config cannot set ``key``, which may lack its section, to ``value``, which is YAML."""
    named = [section for dotted, found in keys().items() if f".{dotted}".endswith(f".{key}") for section in found]
    if not named:
        return [f"no key {key}"] if "." in key or _SNAKE_CASE.fullmatch(key) else []
    loaded = None if value == "null" else yaml.load(value, Loader=yaml.BaseLoader)
    name = key.rpartition(".")[2]
    return [] if any(_takes(section, name, loaded) for section in named) else [f"{key} cannot be {value}"]


def exists(dotted: str) -> bool:
    """Return whether a dotted name leads to a module, or to a member of one or of its classes."""
    parts = dotted.split(".")
    for n in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:n]))
        except ImportError:
            continue
        for part in parts[n:]:
            if not _has(value, part):
                return False
            value = getattr(value, part, None)
        return True
    return False


def is_role(target: str, module: str, tree: ast.Module, classes: Sequence[str]) -> bool:
    """Return whether a role, such as ``:meth:`Translator.load```, leads to something.

    Args:
        target: what it names.
        module: the module whose docstring has the role.
        tree: the source of that module.
        classes: those around the docstring, the outermost first.
    """
    target = target.removeprefix("~")
    first, dot, rest = target.removeprefix(".").partition(".")
    if target.startswith("."):  # of any module
        return exists(module + target) or any(exists(home + target) for home in _homes(first))
    scopes = [module, *(".".join([module, *classes[: n + 1]]) for n in range(len(classes)))]
    candidates = [target, *(f"{scope}.{target}" for scope in scopes)]
    candidates += [imported + dot + rest for imported in _imports(tree).get(first, [])]
    return any(map(exists, candidates)) or (not module.startswith("mtformer") and target in _definitions(tree))


@functools.cache
def keys() -> dict[str, list[type[BaseModel]]]:
    """Return the dotted keys of a config with the sections that have them: several, for those of sources."""
    sections: dict[str, list[type[BaseModel]]] = {}

    def add(section: type[BaseModel], prefix: str) -> None:
        for name, field in section.model_fields.items():
            sections.setdefault(prefix + name, []).append(section)
            for inner in _sections_in(field.annotation):
                add(inner, f"{prefix}{name}.")

    add(Config, "")
    return sections


@functools.cache
def command_line() -> Any:
    """Return the command line, whose commands do nothing but read their arguments."""
    command = typer.main.get_command(app)
    for inner in _commands_in(command):
        inner.callback = lambda **_: None
    return command


def _is_name(first: str, attributes: str) -> bool:
    """Return whether a name, with its ``.attributes``, exists; true of names that are not ours."""
    dotted = first + attributes
    if not attributes:
        is_ours = _CAMEL_CASE.fullmatch(first) or _SNAKE_CASE.fullmatch(first)
        return not is_ours or first in _vocabulary() or first in FOREIGN_NAMES or hasattr(builtins, first)
    if first in Config.model_fields and (dotted in keys() or dotted in _vocabulary()):
        return True
    owners = [f"{home}.{first}" for home in _homes(first)] if first[0].isupper() else []
    if first in VARIABLES:
        owners = [VARIABLES[first]]
    elif first in ("mtformer", *Config.model_fields):
        owners = [first]
    return not owners or dotted in _vocabulary() or any(exists(owner + attributes) for owner in owners)


def _import_problems(code: str) -> list[str]:
    [statement] = ast.parse(code).body
    if isinstance(statement, ast.ImportFrom):
        names = [f"{statement.module}.{alias.name}" for alias in statement.names]
    else:
        assert isinstance(statement, ast.Import)
        names = [alias.name for alias in statement.names]
    return [f"no {name}" for name in names if not exists(name)]


def _command_problems(words: Sequence[str]) -> Iterator[str]:
    """Look up the command, the options and the settings of a command line, or of a part of one."""
    if Path(words[0]).name in FOREIGN_PROGRAMS:
        return
    root = command_line()
    has_program = "mtformer" in words
    arguments = words[words.index("mtformer") + 1 :] if has_program else words
    command: Any = root
    for word in arguments:
        if not hasattr(command, "commands") or word not in command.commands:
            break
        command = command.commands[word]
    scripts = [ROOT / word for word in words if word.startswith(("scripts/", "tests/"))]
    if has_program and command is root and arguments and arguments[0].islower() and arguments[0][0] != "-":
        yield f"no command {arguments[0]}"
        return
    if has_program or command is not root:
        known = _options_of(command)
    else:
        known = set(re.findall(r"--[a-z-]+", "".join(map(_source, scripts)))) if scripts else _all_options()
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option = word.partition("=")[0]
        if option.startswith("--") and option not in known and "COMMAND" not in words:
            yield f"no option {option}"
        key, equals, value = following.partition("=")
        if word == "--set" and equals and key != "section.key":
            yield from setting_problems(key, value)


def _words(code: str) -> list[str]:
    try:
        return shlex.split(code)
    except ValueError:  # a quote that is not closed
        return code.split()


def _takes(section: type[BaseModel], name: str, value: Any) -> bool:
    """Return whether a section takes a value for a key; its other keys do not matter."""
    try:
        section.model_validate({name: value}, context={})
    except ValidationError as error:
        return all(details["loc"][:1] != (name,) for details in error.errors())
    return True


def _sections_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from _sections_in(argument)


def _commands_in(command: Any) -> Iterator[Any]:
    yield command
    for inner in getattr(command, "commands", {}).values():
        yield from _commands_in(inner)


def _options_of(command: Any) -> set[str]:
    """Return the options of a command, those that all commands have included."""
    parameters = [*command.params, *command_line().params]
    options = {option for parameter in parameters for option in (*parameter.opts, *parameter.secondary_opts)}
    return options | {"--help"}


@functools.cache
def _all_options() -> set[str]:
    """Return the options of all commands and scripts, and those of other programs that texts may name."""
    of_commands = {option for command in _commands_in(command_line()) for option in _options_of(command)}
    scripts = [path for path in (ROOT / "scripts").rglob("*") if path.suffix in ("", ".py") and path.is_file()]
    return {*of_commands, *re.findall(r"--[a-z-]+", "".join(map(_source, scripts))), *FOREIGN_OPTIONS}


def _source(script: Path) -> str:
    """Return the source of a script, with that of the Python program that it starts."""
    paths = {script, script.with_suffix(".py")}
    return "".join(path.read_text(encoding="utf-8") for path in paths if path.is_file())


@functools.cache
def _homes(name: str) -> list[str]:
    """Return the modules of the package that define a name, found without importing all of them."""
    definition = re.compile(rf"^(?:(?:class|def) {name}\b|{name}(?:: .*)? = )", re.MULTILINE)
    paths = [path for path, source in _sources().items() if definition.search(source)]
    return [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]


@functools.cache
def _sources() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in (ROOT / "mtformer").rglob("*.py")}


@functools.cache
def _vocabulary() -> frozenset[str]:
    """Return all names and the words of all texts in the package and the scripts, comments and docstrings aside."""
    words = {path.stem for path in (ROOT / "configs").iterdir()}
    for path in [*(ROOT / "mtformer").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            texts = [value for _, value in ast.iter_fields(node) if isinstance(value, str) and node not in docstrings]
            words |= {word for text in texts for word in (text, *re.findall(r"\w+", text))}
    return frozenset(words)


def _has(value: Any, name: str) -> bool:
    """Return whether a module or class has a member, or a class an attribute that its methods set."""
    if hasattr(value, name) or value is None:  # of an attribute without a value, nothing is known
        return True
    if isinstance(value, ModuleType) or not isinstance(value, type):
        return False
    own = [base for base in value.__mro__ if base.__module__.startswith("mtformer")]
    return any(
        name in inspect.get_annotations(base) or re.search(rf"\bself\.{name}\b", inspect.getsource(base))
        for base in own
    )


def _imports(tree: ast.Module) -> dict[str, list[str]]:
    """Return what the names that a module imports stand for, those for type checking included."""
    names: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names.setdefault(alias.asname or alias.name, []).append(f"{node.module}.{alias.name}")
    return names


def _definitions(tree: ast.Module) -> set[str]:
    """Return what a script defines at any depth."""
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return names | {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
