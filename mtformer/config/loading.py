"""From a YAML file to a :class:`Config`, and every problem on the way told at once.

YAML gives the structure, the schema gives the types: plain scalars are kept as the characters that the user wrote, and
pydantic parses them as what the field is. So ``5e-4`` is a number where a number is meant, and ``no`` and ``012`` stay
text where text is meant.
"""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from mtformer.config.schema import SOURCE_KINDS, Config, Section
from mtformer.errors import UserError

Key = tuple[str | int, ...]
Lines = dict[Key, int]


def load_config(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Read the config file at ``path`` and apply ``overrides``, each ``dotted.key=value`` with the value in YAML.

    Paths in it are made absolute from the file's folder, and ``run.name`` defaults to the file's name.

    Raises:
        UserError: naming file, line, key and remedy of all problems found.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read the config {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"the config {path} is not a UTF-8 text file") from None
    lines: Lines = {}
    values, problems = _parse_yaml(text, str(path), lines)
    if not isinstance(values, dict):
        raise UserError(f"{path}: a config is a mapping of sections (data:, model:, training:, …) to keys")
    for override in overrides:
        problems += _apply_override(values, lines, override)
    values = {key: value for key, value in values.items() if value is not None}  # `training:` with nothing under it
    values.setdefault("run", {})
    if isinstance(values["run"], dict):
        values["run"].setdefault("name", path.resolve().stem)
    try:
        config = Config.model_validate(values, context={"base": path.resolve().parent})
    except ValidationError as error:
        problems += [_explain(details, str(path), lines) for details in error.errors()]
    if problems:
        raise UserError("\n".join(_with_heading(list(dict.fromkeys(problems)))))
    return config


def dump_config(config: Config) -> str:
    """Write ``config`` as YAML that :func:`load_config` reads back to an equal one."""
    values = config.model_dump(mode="json", exclude_defaults=False)
    values["model"].pop("preset")  # its values stand beside it
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def _with_heading(problems: list[str]) -> list[str]:
    return problems if len(problems) == 1 else [f"the config has {len(problems)} problems:", *problems]


def _parse_yaml(text: str, name: str, lines: Lines) -> tuple[Any, list[str]]:
    """Parse ``text`` into dicts, lists, strings and None, noting the line of each key; also return the problems."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}" if mark else name
        raise UserError(f"{where}: this is not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{name}: this is not valid YAML: {error}") from None
    problems: list[str] = []
    return _build(node, (), name, lines, problems), problems


def _build(node: yaml.Node | None, key: Key, name: str, lines: Lines, problems: list[str]) -> Any:
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            child = (*key, key_node.value if isinstance(key_node.value, str) else str(key_node.value))
            line = key_node.start_mark.line + 1
            if child[-1] in mapping:
                problems.append(f"{name}:{line}: {_dotted(child)} is given twice, first in line {lines[child]}")
            lines[child] = line
            mapping[str(child[-1])] = _build(value_node, child, name, lines, problems)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[*key, index] = item.start_mark.line + 1
        return [_build(item, (*key, index), name, lines, problems) for index, item in enumerate(node.value)]
    if node is None or (node.tag == "tag:yaml.org,2002:null"):
        return None
    return node.value


def _apply_override(values: dict[str, Any], lines: Lines, override: str) -> Iterator[str]:
    """Set one dotted key in ``values``; yield a problem if it cannot be done."""
    dotted, equals, text = override.partition("=")
    where = f"--set {override}"
    if not equals or not dotted:
        yield f"{where}: give it as key=value, such as --set training.max_steps=1000"
        return
    own_lines: Lines = {}
    value, problems = _parse_yaml(text, where, own_lines)
    yield from problems
    *parents, last = dotted.strip().split(".")
    section = values
    for parent in parents:
        if section.get(parent) is None:
            section[parent] = {}
        section = section[parent]
        if not isinstance(section, dict):
            yield f"{where}: `{parent}` holds no keys"
            return
    section[last] = value
    changed = (*parents, last)
    for key in [key for key in lines if key[: len(changed)] == changed]:
        del lines[key]  # what stood in the file is no longer there


def _explain(details: ErrorDetails, name: str, lines: Lines) -> str:
    """Turn one of pydantic's errors into a sentence with file, line, key, what was given and what is allowed."""
    key = _without_tags(details["loc"])
    line = next((lines[key[:n]] for n in range(len(key), 0, -1) if key[:n] in lines), None)
    where = f"{name}:{line}" if line else name
    label = f"{where}: {_dotted(key)}: " if key else f"{where}: "
    given = details["input"]
    if details["type"] == "extra_forbidden":
        return label + "there is no such key" + _suggestion(str(key[-1]), _section_at(details["loc"][:-1]))
    if details["type"] == "missing":
        return label + "this key is required and not given"
    if details["type"] == "value_error":
        return label + str(details["ctx"]["error"])
    if details["type"] == "union_tag_not_found":
        return label + "a source is one of {src: …, tgt: …}, {tsv: …}, {jsonl: …}, {hf: …, split: …}"
    shown = "nothing" if given is None else f"`{given}`"
    return f"{label}given {shown}, allowed: {_allowed(details)}"


def _without_tags(loc: Iterable[str | int]) -> Key:
    """Drop from pydantic's location the tags that tell which kind of source it tried."""
    key: list[str | int] = []
    for part in loc:
        after_index = bool(key) and isinstance(key[-1], int)
        if not (after_index and part in SOURCE_KINDS):
            key.append(part)
    return tuple(key)


def _allowed(details: ErrorDetails) -> str:
    """Say in words what a value may be, from the type of the error."""
    context = details.get("ctx", {})
    match details["type"]:
        case "int_parsing" | "int_type" | "int_from_float":
            return "a whole number"
        case "float_parsing" | "float_type" | "finite_number":
            return "a number"
        case "bool_parsing" | "bool_type":
            return "true or false"
        case "string_type":
            return "text"
        case "list_type":
            return "a list"
        case "model_type" | "dict_type" | "model_attributes_type":
            return "a mapping of keys to values"
        case "literal_error":
            return str(context["expected"]).replace("'", "")
        case "greater_than_equal":
            return f"{context['ge']} or more"
        case "greater_than":
            return f"more than {context['gt']}"
        case "less_than_equal":
            return f"{context['le']} or less"
        case "less_than":
            return f"less than {context['lt']}"
        case "too_short":
            return f"at least {context['min_length']} of them"
        case "string_pattern_mismatch" if details["loc"][-1] in ("src_lang", "tgt_lang"):
            return "a language code such as en, de or zh"
        case _:
            return details["msg"]


def _section_at(loc: Sequence[str | int]) -> type[Section] | None:
    """Find the section of the schema that pydantic's location ``loc`` leads to."""
    section: type[Section] | None = Config
    for part in loc:
        if isinstance(part, str):
            section = _subsections(section).get(part) if section else SOURCE_KINDS.get(part)
    return section


def _subsections(section: type[Section]) -> dict[str, type[Section]]:
    """Return the keys of ``section`` that hold sections of their own."""
    annotations = {name: field.annotation for name, field in section.model_fields.items()}
    return {
        name: annotation
        for name, annotation in annotations.items()
        if isinstance(annotation, type) and issubclass(annotation, Section)
    }


def _suggestion(key: str, section: type[Section] | None) -> str:
    """Name the valid key nearest to ``key``: in its own section, or else in another."""
    if section is None:
        return ""
    close = difflib.get_close_matches(key, section.model_fields, n=1, cutoff=0.6)
    if close:
        return f"; did you mean `{close[0]}`?"
    for name, other in _subsections(Config).items():
        close = difflib.get_close_matches(key, other.model_fields, n=1, cutoff=0.8)
        if close:
            return f"; did you mean `{name}.{close[0]}`?"
    return "; there are " + ", ".join(section.model_fields)


def _dotted(key: Key) -> str:
    return ".".join(str(part) for part in key)
