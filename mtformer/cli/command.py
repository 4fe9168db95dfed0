"""How functions become commands: their options, their help, and their errors in our words.

The default of a parameter is an :func:`option` or an :func:`argument`. Or it stands for several options: its type is a
class of :class:`Options`, or it is annotated with :class:`SearchFields`, which the schema describes.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, NamedTuple, Union, dataclass_transform, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from mtformer.support.terminal import escaped

Function = Callable[..., None]

_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_METAVARS = {int: "N", float: "X", Path: "FILE", str: "TEXT"}
# What may be meant by several arguments where a command takes one, by its metavar.
_HINTS = {
    "TEXT": ": give one text, with quotes around all of its words",
    "CONFIG": ": give one config, and set its keys with --set KEY=VALUE",
    "SOURCE": ": write two files as src:FILE,tgt:FILE",
}
_WHOLE_TEXT = re.compile(r"\s|[.!?。！？]$")  # what was quoted, or ends like a sentence
_FILE_NAME = re.compile(r"\S.*\.[A-Za-z]\w{1,9}|.*[/\\].*")
# Options that some commands have where others have another one.
_INSTEAD = {
    "--pair": "--from and --to",
    "--from": "--pair, as in --pair en-de",
    "--to": "--pair, as in --pair en-de",
    "--src-lang": "--from",
    "--tgt-lang": "--to",
}


class _Described(NamedTuple):
    """The declaration of a parameter for typer, and its default."""

    info: Any
    default: Any


def option(help: str, *names: str, default: Any = ..., panel: str | None = None, **settings: Any) -> Any:
    """Describe an option, as the default of a parameter.

    Without ``default`` it is False for a flag, None where the type allows that, and else the option is required. Name
    and metavar follow from the parameter if they are not given.
    """
    return _Described(typer.Option(*names, help=help, rich_help_panel=panel, **settings), default)


def argument(help: str, metavar: str, default: Any = ...) -> Any:
    """Describe an argument, like :func:`option`."""
    return _Described(typer.Argument(help=help, metavar=metavar), default)


@dataclass_transform(frozen_default=True)
class Options:
    """The base of classes whose fields are options that belong together, in one ``panel`` of the help."""

    panel: ClassVar[str | None] = None

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)

    @classmethod
    def parameters(cls) -> Iterator[inspect.Parameter]:
        """Yield a parameter for each field."""
        for parameter in inspect.signature(cls).parameters.values():
            yield _completed(parameter, cls.panel)

    @classmethod
    def collect(cls, values: Mapping[str, Any]) -> "Options":
        """Return an instance with the values of the command line."""
        return cls(**values)


@dataclass(frozen=True)
class SearchFields:
    """Options that are fields of :class:`mtformer.config.SearchOptions`; a command gets those given, as a dictionary.

    Attributes:
        panels: the names of the fields in each panel of the help.
    """

    panels: Mapping[str, Sequence[str]]

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield a parameter for each field, with its type, its bounds and its documentation."""
        from mtformer.config import SearchConfig, SearchOptions
        from mtformer.config.section import documentation

        texts = documentation(SearchOptions)
        spelled = {name: f"search.{name}" for name in SearchConfig.model_fields}
        spelled |= {name: _spelled(name) for names in self.panels.values() for name in names}
        for panel, names in self.panels.items():
            for name in names:
                field = SearchOptions.model_fields[name]
                text = re.sub(r"`(\w+)`", lambda word: spelled.get(word[1], word[1]), texts[name])
                least, most = (_bound(field.metadata, kind) for kind in ("ge", "le"))
                described = option(text, panel=panel, min=least, max=most)
                kind: Any = field.annotation
                kind = kind if kind is bool else kind | None
                yield _completed(inspect.Parameter(name, _KEYWORD, default=described, annotation=kind))

    def collect(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options that are given.

        Raises:
            UserError: they do not go together.
        """
        from mtformer.config import SearchConfig

        given = {name: value for name, value in values.items() if value is not None and value is not False}
        SearchConfig().updated(**given)  # before a model is loaded
        return given


def _bound(limits: Sequence[Any], kind: str) -> float | None:
    """Return the bound of a kind among pydantic's limits of a field."""
    return next((getattr(limit, kind) for limit in limits if hasattr(limit, kind)), None)


def _spelled(name: str) -> str:
    """Return the option of a parameter."""
    return f"--{name.replace('_', '-')}"


def _completed(parameter: inspect.Parameter, panel: str | None = None) -> inspect.Parameter:
    """Return a parameter as typer takes it, with the gaps of its description filled."""
    if not isinstance(parameter.default, _Described):  # typer's context
        return parameter.replace(kind=_KEYWORD)
    kind, info, default = parameter.annotation, copy(parameter.default.info), parameter.default.default
    if default is ...:
        default = False if kind is bool else None if NoneType in get_args(kind) else inspect.Parameter.empty
    if isinstance(info, typer.models.OptionInfo):
        info.rich_help_panel = info.rich_help_panel or panel
        if kind is bool:
            info.param_decls = info.param_decls or (_spelled(parameter.name),)  # and no --no-NAME
        else:
            info.metavar = info.metavar or _METAVARS.get(_element(kind))
    return parameter.replace(kind=_KEYWORD, annotation=Annotated[kind, info], default=default)


def _element(kind: Any) -> Any:
    """Return the type of a single value, which may be left out or repeated."""
    parts = [part for part in get_args(kind) if part is not NoneType]
    return _element(parts[0]) if get_origin(kind) in (list, Union, UnionType) else kind


def _group(annotation: Any) -> type[Options] | SearchFields | None:
    """Return the group that a parameter stands for, if it does."""
    if isinstance(annotation, type) and issubclass(annotation, Options):
        return annotation
    return next((part for part in getattr(annotation, "__metadata__", ()) if isinstance(part, SearchFields)), None)


def _expanded(function: Function) -> Function:
    """Return ``function`` with the options of groups in the place of the parameters that stand for them."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type[Options] | SearchFields, list[str]]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        group = _group(parameter.annotation)
        options = list(group.parameters()) if group else [_completed(parameter)]
        if group:
            groups[name] = group, [option.name for option in options]
        parameters += options

    @wraps(function)
    def wrapped(**values: Any) -> None:
        for name, (group, options) in groups.items():
            values[name] = group.collect({option: values.pop(option) for option in options})
        function(**values)

    vars(wrapped)["__signature__"] = inspect.Signature(parameters)
    return wrapped


class Command(TyperCommand):
    """A command whose help lists options by panel, and whose errors suggest the intended usage."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        ctx.allow_extra_args = True
        try:
            extra = super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = _in_our_words(error)
            raise
        except Exception as error:
            if name := getattr(error, "option_name", None):  # of typer's NoSuchOption, which has no public name
                self._refuse(ctx, name)
            raise
        if isinstance(texts := ctx.params.get("text"), list | tuple) and not all(map(_FILE_NAME.fullmatch, texts)):
            extra = [*texts[1:], *extra]  # several files, but not several texts
        if extra and not ctx.resilient_parsing:
            ctx.fail(f"unexpected arguments ({escaped(' '.join(extra))}){self._hint(ctx.params, extra)}")
        return extra

    def _hint(self, params: Mapping[str, Any], extra: Sequence[str]) -> str:
        """Return a hint about ``extra`` arguments after the one that the command takes."""
        metavars = [str(parameter.metavar) for parameter in self.params if parameter.param_type_name == "argument"]
        text = params.get("text")
        first = text[0] if isinstance(text, list | tuple) else text
        if "TEXT" in metavars and all(map(_WHOLE_TEXT.search, [str(first), *extra])):
            lines = "; the lines of a file (--input) or a pipe are several" if "input" in params else ""
            return f": give one text, in quotes{lines}"
        if {"config", "src", "tgt"} <= set(params) and len(extra) == 1 and "=" not in extra[0]:
            return f": write two text files as --src {escaped(str(params['config']))} --tgt {escaped(extra[0])}"
        return "".join(_HINTS.get(name, "") for name in metavars)

    def _refuse(self, ctx: Any, name: str) -> None:
        """Name what to use instead of an option that other commands or toolkits have; otherwise return."""
        from mtformer.config import Config
        from mtformer.config.problems import our_keys
        from mtformer.config.section import subsections

        key = name.removeprefix("--").replace("-", "_")
        for parameter in self.params:
            if parameter.param_type_name == "argument" and parameter.name == key:
                ctx.fail(f"there is no option {name} here: write {ctx.command_path} {parameter.metavar}")
        known = {spelling for parameter in self.params for spelling in parameter.opts}
        keys = [f"{section}.{key}" for section, part in subsections(Config).items() if key in part.model_fields]
        keys = keys or our_keys(key)
        instead = [_INSTEAD.get(name, ""), *(_spelled(key.split(".")[1]) for key in keys)]
        instead += [f"--set {key}=VALUE" for key in keys]
        for advice in filter(None, instead):
            if advice.split()[0].rstrip(",") in known:
                ctx.fail(f"there is no option {name} here: use {advice}")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, and the options of each panel in the order in which the panels first occur."""
        panels: dict[str, list[tuple[str, str]]] = {}
        options = [parameter for parameter in self.params if parameter.param_type_name == "option"]
        unnamed = "Other" if all(getattr(option, "rich_help_panel", None) for option in options) else "Options"
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                is_argument = parameter.param_type_name == "argument"
                panel = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or unnamed
                panels.setdefault(panel, []).append(record)
        for panel, records in panels.items():
            with formatter.section(panel):
                formatter.write_dl(records)


def _in_our_words(error: typer.BadParameter) -> str:
    """Return the message about a value as for a config; newer versions of typer check values with pydantic."""
    from pydantic import ValidationError

    if not isinstance(error.__cause__, ValidationError):
        return error.message
    from mtformer.config.problems import explained

    return explained(error.__cause__.errors()[0])


def _command(name: str, function: "Function | type[Group]") -> Any:
    """Build a command, or a group of them."""
    if isinstance(function, type):
        return function(name=name, help=inspect.getdoc(function), no_args_is_help=True, rich_markup_mode=None)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=Command)(_expanded(function))
    return typer.main.get_command(app)


class _Commands(Mapping[str, Any]):
    """Commands that are built when they are used: the schema, which has their options, takes long to import."""

    def __init__(self, functions: Mapping[str, "Function | type[Group]"]) -> None:
        self._functions, self._built = functions, dict[str, Any]()

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = _command(name, self._functions[name])
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)


class Group(TyperGroup):
    """A group of commands.

    Attributes:
        functions: those that become commands, by name; a value may also be another group.
    """

    functions: ClassVar[Mapping[str, "Function | type[Group]"]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _Commands(self.functions)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names of the commands and the first sentences of their help, without building them."""
        with formatter.section("Commands"):
            helps = {name: inspect.getdoc(function) or "" for name, function in self.functions.items()}
            formatter.write_dl([(name, text.split("\n")[0]) for name, text in helps.items()])
