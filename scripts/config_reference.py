"""Print docs/config.md, made from the schema and the docstrings in it.

usage: python scripts/config_reference.py > docs/config.md
"""

import math
import typing
from typing import Any

from pydantic.fields import FieldInfo

from mtformer.config import Config
from mtformer.config.resolve import SIZES
from mtformer.config.section import Section, documentation, parts_of, subsections
from mtformer.config.sources import SOURCE_KINDS, SourceSection

INTRODUCTION = """# Config reference

A config is a YAML file with up to seven sections; a missing section or key takes its default. Values are read by the
type of their key: `5e-4` is a number, and the language `no` is Norwegian. Relative paths start at the folder of the
config file, but `run.dir` at the current folder. `{src_lang}` and `{tgt_lang}` in paths and in `run.name` stand for the
languages. All errors are reported at once, with file, line and the nearest valid key. `--set section.key=value`
overrides a key on the command line.

This page is generated: `python scripts/config_reference.py > docs/config.md`.
"""
SIZING = """## Defaults chosen by the size of the data

Keys of this table that are not set get their values from the number of training pairs: `max_epochs` if no other limit
is set, and `warmup_steps` at least 1,000 with post-norm. The values are written to the `config.yaml` of the run.

| training pairs | `preset` | `vocab_size` | `max_tokens` | `max_epochs` | `warmup_steps` |
|---|---|---|---|---|---|"""


def main() -> None:
    """Print the sections of a config, the kinds of sources, and the defaults that depend on the data."""
    print(INTRODUCTION)
    for name, section in subsections(Config).items():
        print_section(f"`{name}`", section)
        for inner, part in subsections(section).items():
            print_section(f"`{name}.{inner}`", part)
    for kind, section in SOURCE_KINDS.items():
        print_section(f"A source with `{kind.replace('/', '` and `')}`", section)
    print_section("Any source", SourceSection)
    print(SIZING)
    for size in SIZES:
        pairs = "more" if size.max_pairs == math.inf else f"up to {size.max_pairs:,}"
        numbers = (size.vocab_size, size.max_tokens, size.max_epochs, size.warmup_steps)
        print(f"| {pairs} | `{size.preset}` | {' | '.join(f'{number:,}' for number in numbers)} |")


def one_line(text: str | None) -> str:
    """Bring a docstring's first paragraph to one line of Markdown."""
    return " ".join((text or "").split("\n\n")[0].split()).replace("``", "`")


def print_section(title: str, section: type[Section]) -> None:
    """Print one table."""
    print(f"## {title}\n\n{one_line(section.__doc__)}\n")
    print("| key | value | default | meaning |")
    print("|---|---|---|---|")
    texts = documentation(section)
    for name, field in section.model_fields.items():
        if name in section.__annotations__:  # not those of the class that it extends
            print(f"| `{name}` | {value_of(field)} | {default_of(field)} | {texts[name].replace('``', '`')} |")
    print()


def value_of(field: FieldInfo) -> str:
    """Say what may be given."""
    return " or ".join(words(part) for part in parts_of(field.annotation) if part is not type(None))


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
        kind = typing.get_args(item)[0] if typing.get_origin(item) is typing.Annotated else item
        if kind is str:
            return "list of texts"
        return f"list of {words(item)}" if typing.get_origin(item) is typing.Literal else "list of sources"
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return "section"
    if typing.get_origin(annotation) is dict:
        return "section"
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
