"""Print the README's table of all config keys, made from the schema and the docstrings in it."""

import types
import typing
from typing import Any

from pydantic.fields import FieldInfo

from mtformer.config import Config
from mtformer.config.schema import SOURCE_KINDS, Section


def main() -> None:
    """Print the sections of a config and then the kinds of sources."""
    for name, field in Config.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            print_section(f"`{name}`", field.annotation)
    for kind, section in SOURCE_KINDS.items():
        print_section(f"a source with `{kind.replace('/', '` and `')}`", section)


def one_line(text: str | None) -> str:
    """Bring a docstring's first paragraph to one line of Markdown."""
    return " ".join((text or "").split("\n\n")[0].split()).replace("``", "`")


def print_section(title: str, section: type[Section]) -> None:
    """Print one table."""
    print(f"**{title}**: {one_line(section.__doc__)}\n")
    print("| key | value | default | meaning |")
    print("|---|---|---|---|")
    for name, field in section.model_fields.items():
        print(f"| `{name}` | {value_of(field)} | {default_of(field)} | {one_line(field.description)} |")
    print()


def value_of(field: FieldInfo) -> str:
    """Say what may be given."""
    return " or ".join(words(part) for part in parts_of(field.annotation) if part is not type(None))


def parts_of(annotation: Any) -> tuple[Any, ...]:
    """Take a union apart."""
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return typing.get_args(annotation) if is_union else (annotation,)


def words(annotation: Any) -> str:
    """Name a type in words; the schema's own limits stand in the meanings or in the error messages."""
    if typing.get_origin(annotation) is typing.Annotated:
        return words(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) is typing.Union:
        return " or ".join(map(words, typing.get_args(annotation)))
    if typing.get_origin(annotation) is typing.Literal:
        return ", ".join(f"`{value}`" for value in typing.get_args(annotation))
    if typing.get_origin(annotation) is list:
        [item] = typing.get_args(annotation)
        return f"list of {words(item)}" if typing.get_origin(item) is typing.Literal else "list of sources"
    names = {int: "whole number", float: "number", bool: "true or false", str: "text"}
    return names.get(annotation, "path")


def default_of(field: FieldInfo) -> str:
    """Show the default; a dash where the key is required or left open."""
    if field.is_required():
        return "required"
    if field.default is None:
        return "—"
    shown = str(field.default).lower() if isinstance(field.default, bool) else field.default
    return f"`{shown}`"


if __name__ == "__main__":
    main()
