"""What all sections of a config share: the base class, and the types of keys."""

import os
import types
import typing
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationInfo


def _resolve(path: Path, info: ValidationInfo) -> Path:
    """Make ``path`` absolute, from the folder of the config file that is being read, and require the file."""
    base = (info.context or {}).get("base")
    if base is None:  # the config of a run: its files may be on another machine
        return path
    try:
        path = Path(os.path.abspath(base / path.expanduser()))  # noqa: PTH100 (links keep their names)
        if path.is_file():
            return path
        is_folder = path.is_dir()
    except (OSError, RuntimeError):  # a name that is too long, or ~ of an unknown user
        is_folder = False
    raise ValueError(f"{path} is a folder, not a file" if is_folder else f"there is no file {path}")


def fill_in(value: Any, replacements: dict[str, Any]) -> Any:
    """Replace the keys of ``replacements`` in all text inside ``value``, unless their value is no text."""
    if isinstance(value, dict):
        return {key: fill_in(item, replacements) for key, item in value.items()}
    if isinstance(value, list):
        return [fill_in(item, replacements) for item in value]
    if isinstance(value, str):
        for old, new in replacements.items():
            value = value.replace(old, new) if isinstance(new, str) else value
    return value


InputPath = Annotated[Path, AfterValidator(_resolve)]
Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}([-_][A-Za-z0-9]+)*$")]
Probability = Annotated[float, Field(ge=0, lt=1)]
PositiveInt = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_number_or_auto = Discriminator(lambda value: "[auto]" if value == "auto" else "[number]")
TokensOrAuto = Annotated[
    Annotated[int, Field(ge=64), Tag("[number]")] | Annotated[Literal["auto"], Tag("[auto]")], _number_or_auto
]
PatienceOrAuto = Annotated[
    Annotated[int, Field(ge=1), Tag("[number]")] | Annotated[Literal["auto"], Tag("[auto]")], _number_or_auto
]


class Section(BaseModel):
    """The base of all sections: unknown keys are errors, and instances are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # a command needs a few sections only


def subsections(section: type[Section]) -> dict[str, type[Section]]:
    """Return the keys of ``section`` whose values are sections themselves, or sections or null."""
    found = {name: parts_of(field.annotation) for name, field in section.model_fields.items()}
    return {
        name: part
        for name, parts in found.items()
        for part in parts
        if isinstance(part, type) and issubclass(part, Section)
    }


def parts_of(annotation: Any) -> tuple[Any, ...]:
    """Take a union apart."""
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return typing.get_args(annotation) if is_union else (annotation,)
