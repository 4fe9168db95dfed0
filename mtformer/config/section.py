"""The base class of the sections of a config, the types of their keys, and their documentation."""

import ast
import glob
import inspect
import itertools
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationInfo, model_validator

from mtformer.support.files import shown_path


def _absolute(path: Path, info: ValidationInfo) -> Path | None:
    """Resolve ``path`` against the folder of the config file that is being read.

    None in the config of a run, whose files may be on another machine.
    """
    base = (info.context or {}).get("base")
    try:
        return base and Path(os.path.abspath(base / path.expanduser()))  # noqa: PTH100 (links keep their names)
    except RuntimeError:  # ~ of an unknown user
        raise ValueError(f"there is no file {path}") from None


def _existing_file(path: Path, info: ValidationInfo) -> Path:
    """Make ``path`` absolute, and require a file there."""
    file = _absolute(path, info)
    if file and not _is(file, Path.is_file):
        name = shown_path(file)
        raise ValueError(f"{name} is a folder, not a file" if _is(file, Path.is_dir) else f"there is no file {name}")
    return file or path


def _existing_bundle(path: Path, info: ValidationInfo) -> Path:
    """Make ``path`` absolute, and require a bundle there, or the folder of a run that has one."""
    folder = _absolute(path, info)
    if not folder or not _is(folder, Path.is_dir):
        return _existing_file(path, info)
    bundle = folder / "model.safetensors"
    if not _is(bundle, Path.is_file):
        raise ValueError(
            f"the folder {shown_path(folder)} has no model.safetensors: name a bundle, or a run that has one"
        )
    return bundle


def _existing_text(path: Path, info: ValidationInfo) -> Path:
    """Make ``path`` absolute, and require a file, a pipe or a device there; ``-`` is standard input."""
    if str(path) == "-":
        return path
    file = _absolute(path, info)
    if file and _is(file, Path.exists) and not _is(file, Path.is_dir):
        return file
    return _existing_file(path, info)


def _existing_files(prefix: Path, info: ValidationInfo) -> Path:
    """Make ``prefix`` absolute, and require files that begin with it and a dot."""
    path = _absolute(prefix, info)
    if path and not any(_is(file, Path.is_file) for file in path.parent.glob(f"{glob.escape(path.name)}.*")):
        raise ValueError(f"there are no files {shown_path(path)}.*")
    return path or prefix


def _existing_folder(name: str, info: ValidationInfo) -> str:
    """Make the name of a data set absolute and require a folder there, if it is written as a path."""
    if not (name.startswith((".", "/", "~")) or Path(name).is_absolute()):
        return name
    folder = _absolute(Path(name), info)
    if folder and not _is(folder, Path.is_dir):
        is_file = _is(folder, Path.exists)
        reason = "is not a folder: name the one that it is in" if is_file else "does not exist"
        raise ValueError(f"{shown_path(folder)} {reason}")
    return str(folder or name)


def _is(path: Path, kind: Callable[[Path], bool]) -> bool:
    try:
        return kind(path)
    except OSError:  # a name that is too long
        return False


def fill_in(value: Any, replacements: dict[str, Any]) -> Any:
    """Replace the keys of ``replacements`` in all text inside ``value``; replacements that are not text are ignored."""
    if isinstance(value, dict):
        return {key: fill_in(item, replacements) for key, item in value.items()}
    if isinstance(value, list):
        return [fill_in(item, replacements) for item in value]
    if isinstance(value, str):
        for old, new in replacements.items():
            value = value.replace(old, new) if isinstance(new, str) else value
    return value


_COUNTRIES = {"cn": "zh", "cz": "cs", "dk": "da", "gr": "el", "jp": "ja", "ua": "uk"}  # which are no languages


def no_country(code: str, info: ValidationInfo) -> str:
    """Refuse the code of a country in a config that is being read; other codes may be those of rare languages."""
    country = re.split("[-_]", code)[0]
    if info.context and country in _COUNTRIES:
        raise ValueError(f"{country} is the code of a country; that of its language is {_COUNTRIES[country]}")
    return code


InputPath = Annotated[Path, AfterValidator(_existing_file)]
BundlePath = Annotated[Path, AfterValidator(_existing_bundle)]
TextPath = Annotated[Path, AfterValidator(_existing_text)]
TextPrefix = Annotated[Path, AfterValidator(_existing_files)]
DatasetName = Annotated[str, Field(min_length=1), AfterValidator(_existing_folder)]
LANGUAGE_CODE = r"^[a-z]{2,3}([-_][A-Za-z0-9]+)*$"
Language = Annotated[str, Field(pattern=LANGUAGE_CODE), AfterValidator(no_country)]
Probability = Annotated[float, Field(ge=0, lt=1)]
PositiveInt = Annotated[int, Field(ge=1)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Auto = Annotated[Literal["auto"], Tag("[auto]")]
_number_or_auto = Discriminator(lambda value: "[auto]" if value == "auto" else "[number]")
TokensOrAuto = Annotated[Annotated[int, Field(ge=64), Tag("[number]")] | _Auto, _number_or_auto]
PositiveOrAuto = Annotated[Annotated[int, Field(ge=1), Tag("[number]")] | _Auto, _number_or_auto]
_bool_or_auto = Discriminator(lambda value: "[auto]" if value == "auto" else "[bool]")
BoolOrAuto = Annotated[Annotated[bool, Tag("[bool]")] | _Auto, _bool_or_auto]


class Section(BaseModel):
    """The base of all sections: unknown keys are errors, and instances are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # a command needs a few sections only

    def _contradictions(self) -> Iterator[str]:
        """Yield the combinations of values that contradict each other."""
        yield from ()

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if problems := dict.fromkeys(self._contradictions()):
            raise ValueError("; ".join(problems))
        return self


def subsections(section: type[Section]) -> dict[str, type[Section]]:
    """Return the keys of ``section`` whose values are sections, or sections or null."""
    return {
        name: part
        for name, field in section.model_fields.items()
        for part in parts_of(field.annotation)
        if isinstance(part, type) and issubclass(part, Section)
    }


def parts_of(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the annotation itself."""
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return typing.get_args(annotation) if is_union else (annotation,)


def documentation(section: type[Section]) -> dict[str, str]:
    """Return the first paragraph of the docstring below each field, also of those that ``section`` inherits.

    It is read from the source: pydantic would do so each time the program starts.
    """
    texts: dict[str, str] = {}
    names = {(part.__module__, part.__name__) for part in section.__mro__[: section.__mro__.index(Section)]}
    for module in {module for module, _ in names}:
        for definition in ast.parse(inspect.getsource(sys.modules[module])).body:
            if (module, getattr(definition, "name", "")) in names:
                assert isinstance(definition, ast.ClassDef)
                texts |= _texts_below_fields(definition)
    return texts


def _texts_below_fields(definition: ast.ClassDef) -> dict[str, str]:
    texts: dict[str, str] = {}
    for statement, below in itertools.pairwise(definition.body):
        match statement, below:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                texts[name] = " ".join(text.split("\n\n")[0].split())
    return texts
