"""Turn functions into commands, with their options, help and errors.

The default of a parameter is an :func:`option` or an :func:`argument`. A parameter may also stand for several options:
its type is a subclass of :class:`Options`, or it is annotated with :class:`SearchFields`, which the schema describes.
For example::

    class Output(Options):
        n_best: int | None = option("How many translations.")
        raw: bool = option("Do not check them.")

    def translate(text: str = argument("The text.", "TEXT"), *, into: Output) -> None:
        ...

becomes ``translate [OPTIONS] TEXT`` with the options ``--n-best N`` and ``--raw``. Typer calls a function of ``text``,
``n_best`` and ``raw`` (``_expanded``), each with a name, a metavar and a default (``_completed``); that function calls
``translate(text=text, into=Output(n_best, raw))``.
"""

import inspect
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, NamedTuple, Union, dataclass_transform, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from mtformer.cli.hints import given_twice, in_our_words, instead_of, spelled, too_many
from mtformer.support.errors import UserError

Function = Callable[..., None]

_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_METAVARS = {int: "N", float: "X", Path: "FILE", str: "TEXT"}


class _Described(NamedTuple):
    """The declaration of a parameter for typer, and its default."""

    info: Any
    default: Any


def option(help: str, *names: str, default: Any = ..., panel: str | None = None, **settings: Any) -> Any:
    """Describe an option, as the default of a parameter.

    Without ``default``, a flag is False, an optional type is None, and any other option is required. Name and metavar
    default to those derived from the parameter.
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
        shown = {name: f"search.{name}" for name in SearchConfig.model_fields}
        shown |= {name: spelled(name) for names in self.panels.values() for name in names}
        for panel, names in self.panels.items():
            for name in names:
                field = SearchOptions.model_fields[name]
                text = re.sub(r"`(\w+)`", lambda word: shown.get(word[1], word[1]), texts[name])
                least, most = (_bound(field.metadata, end) for end in ("ge", "le"))
                default = option(text, panel=panel, min=least, max=most)
                kind: Any = field.annotation
                kind = kind if kind is bool else kind | None
                yield _completed(inspect.Parameter(name, _KEYWORD, default=default, annotation=kind))

    def collect(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given options.

        Raises:
            UserError: they cannot be combined.
        """
        from mtformer.config import SearchConfig

        given = {name: value for name, value in values.items() if value is not None and value is not False}
        try:
            SearchConfig().updated(**given)  # before a model is loaded
        except UserError as error:
            raise UserError(_with_options(str(error), values)) from None
        return given


def _with_options(message: str, names: Iterable[str]) -> str:
    """Return a message about fields with the options in their place: ``--n-best 3`` for ``n_best = 3``."""
    fields = re.compile(rf"\b({'|'.join(names)})\b(?: =)?")
    other, _, problems = message.partition("search options: ")  # such as a package that is not installed
    return other + fields.sub(lambda found: spelled(found[1]), problems)


def _bound(limits: Sequence[Any], end: str) -> float | None:
    """Return the least (``ge``) or the largest (``le``) value that pydantic's limits of a field allow."""
    return next((getattr(limit, end) for limit in limits if hasattr(limit, end)), None)


def _completed(parameter: inspect.Parameter, panel: str | None = None) -> inspect.Parameter:
    """Return a parameter for typer, with its name, metavar and default filled in."""
    if not isinstance(parameter.default, _Described):  # typer's context
        return parameter.replace(kind=_KEYWORD)
    kind, info, default = parameter.annotation, copy(parameter.default.info), parameter.default.default
    if default is ...:
        default = False if kind is bool else None if NoneType in get_args(kind) else inspect.Parameter.empty
    if isinstance(info, typer.models.OptionInfo):
        info.rich_help_panel = info.rich_help_panel or panel
        if kind is bool:
            info.param_decls = info.param_decls or (spelled(parameter.name),)  # and no --no-NAME
        else:
            info.metavar = info.metavar or _METAVARS.get(_element(kind))
    return parameter.replace(kind=_KEYWORD, annotation=Annotated[kind, info], default=default)


def _element(kind: Any) -> Any:
    """Return the type of a single value of an optional or repeatable parameter."""
    parts = [part for part in get_args(kind) if part is not NoneType]
    return _element(parts[0]) if get_origin(kind) in (list, Union, UnionType) else kind


def _group(annotation: Any) -> type[Options] | SearchFields | None:
    """Return the group of options that a parameter stands for, if any."""
    if isinstance(annotation, type) and issubclass(annotation, Options):
        return annotation
    return next((part for part in getattr(annotation, "__metadata__", ()) if isinstance(part, SearchFields)), None)


def _expanded(function: Function) -> Function:
    """Return ``function`` with each parameter for a group replaced by the options of the group."""
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
        given = [*args]  # which are taken out as they are read
        try:
            extra = super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = in_our_words(error)
            raise
        except Exception as error:
            name = getattr(error, "option_name", None)  # of typer's NoSuchOption, which has no public name
            if name and (text := next((text for text in given if text.startswith(name) and " " in text), None)):
                ctx.fail(f"write -- before a text that begins with -: {ctx.command_path} -- {shlex.quote(text)}")
            if name and (advice := instead_of(name, self.params, ctx.command_path)):
                ctx.fail(f"there is no option {name} here: {advice}")
            raise
        problem = too_many(extra, self.params, ctx.params) or given_twice(given, self.params)
        if problem and not ctx.resilient_parsing:
            ctx.fail(problem)
        return extra

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


def _command(name: str, function: "Function | type[Group]") -> Any:
    """Build a command, or a group of them."""
    if isinstance(function, type):
        return function(name=name, help=inspect.getdoc(function), no_args_is_help=True, rich_markup_mode=None)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=Command)(_expanded(function))
    return typer.main.get_command(app)


class _Commands(Mapping[str, Any]):
    """Commands that are built on first use: importing the schema, which declares their options, takes long."""

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
        """Write each command's name and the first sentence of its help, without building the command."""
        with formatter.section("Commands"):
            helps = {name: inspect.getdoc(function) or "" for name, function in self.functions.items()}
            formatter.write_dl([(name, text.split("\n")[0]) for name, text in helps.items()])
