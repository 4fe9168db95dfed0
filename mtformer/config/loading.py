"""From a YAML file to a :class:`Config`, with all problems reported at once.

YAML provides the structure and the schema the types: plain scalars are kept as the characters in the file, and pydantic
parses them by the type of their field. So ``5e-4`` is a number where the schema has a number, and ``no`` and ``012``
are text where it has text.
"""

import difflib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from mtformer.config.allowed import allowed
from mtformer.config.directions import SOURCES, expand_sources
from mtformer.config.schema import Config
from mtformer.config.section import Section, fill_in, subsections
from mtformer.config.sources import SOURCE_KINDS, Source
from mtformer.support.errors import UserError

Key = tuple[str | int, ...]
Lines = dict[Key, int]
Overrides = dict[Key, str]


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read the config file at ``path`` and apply ``overrides``, each ``dotted.key=value`` with the value in YAML.

    Paths in it are made absolute from the file's folder, and ``run.name`` defaults to the file's name.

    Raises:
        UserError: naming file, line, key and remedy of all problems found.
    """
    path = Path(path)
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
    applied: Overrides = {}
    for override in overrides:
        problems += _apply_override(values, lines, applied, override)
    values = {key: value for key, value in values.items() if value is not None}  # `training:` with nothing under it
    values.setdefault("run", {})
    if isinstance(values["run"], dict) and values["run"].get("name") is None:
        values["run"]["name"] = path.resolve().stem
    try:
        config = Config.model_validate(values, context={"base": path.resolve().parent})
    except ValidationError as error:
        details_of = [_before_expansion(details, values) for details in error.errors()]
        problems += [_explain(details, str(path), lines, applied) for details in details_of]
    if problems:
        raise UserError("\n".join(_with_heading(list(dict.fromkeys(problems)))))
    return config


def parse_source(text: str, src_lang: str, tgt_lang: str) -> Source:
    """Read a source in the notation of the command line: ``key:value`` pairs, separated by commas.

    ``builtin:phrasebook,split:test`` means ``{builtin: phrasebook, split: test}`` in a config. Paths are relative to
    the current folder.

    Raises:
        UserError: naming all problems.
    """
    given = [part.partition(":") for part in text.split(",")]
    values = {key.strip(): value.strip() for key, _, value in given}
    if not all(colon for _, colon, _ in given) or len(values) < len(given):
        raise UserError(f"{text}: write a source as key:value, such as tsv:pairs.tsv or src:train.en,tgt:train.de")
    values = fill_in(values, {"{src_lang}": src_lang, "{tgt_lang}": tgt_lang})
    try:
        return TypeAdapter[Source](Source).validate_python(values, context={"base": Path.cwd()})
    except ValidationError as error:
        problems = [_explain(details, text, {}, {}, root=("data", "train", 0)) for details in error.errors()]
        raise UserError("\n".join(problems)) from None


def dump_config(config: Config) -> str:
    """Write ``config`` as YAML that :func:`load_config` reads back to an equal one."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _with_heading(problems: list[str]) -> list[str]:
    return problems if len(problems) == 1 else [f"the config has {len(problems)} problems:", *problems]


def _parse_yaml(text: str, name: str, lines: Lines) -> tuple[Any, list[str]]:
    """Parse ``text`` into dicts, lists, strings and None, noting the line of each key; also return the problems."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        problems: list[str] = []
        return _build(node, (), name, lines, problems), problems
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}" if mark else name
        problem = error.problem or error.context
        hint = '; put quotes around text with braces, as in "train.{src_lang}"' if "got '{'" in str(problem) else ""
        raise UserError(f"{where}: this is not valid YAML: {problem}{hint}") from None
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{name}: this is not valid YAML: {reason}") from None
    except RecursionError:
        raise UserError(f"{name}: this is nested too deeply, or contains itself") from None


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


def _apply_override(values: dict[str, Any], lines: Lines, applied: Overrides, override: str) -> Iterator[str]:
    """Set one dotted key in ``values`` and note it in ``applied``; yield a problem if it cannot be done."""
    dotted, equals, text = override.partition("=")
    where = f"--set {override}"
    keys = tuple(dotted.strip().split("."))
    if not equals or not all(keys):
        yield f"{where}: write it as key=value, such as --set training.max_steps=1000"
        return
    try:
        value, problems = _parse_yaml(text, where, {})
    except UserError as error:
        yield str(error)
        return
    yield from problems
    *parents, last = keys
    section = values
    for depth, parent in enumerate(parents, 1):
        if section.get(parent) in (None, "true"):  # a section with its defaults
            section[parent] = {}
            applied[keys[:depth]] = override
        section = section[parent]
        if not isinstance(section, dict):
            yield f"{where}: `{parent}` has no keys"
            return
    section[last] = value
    for key in [key for key in lines if key[: len(keys)] == keys]:
        del lines[key]  # no longer in effect
    applied[keys] = override


def _before_expansion(details: ErrorDetails, values: Any) -> ErrorDetails:
    """Give the place of a source in the file, where it may stand for several directions."""
    match details["loc"]:
        case "data", str(key), int(index), *rest if key in SOURCES and isinstance(values.get("data"), dict):
            found = expand_sources(values["data"].get(key), values["data"].get("directions"))
            if values["data"].get("directions") and index < len(found):
                details["loc"] = ("data", key, found[index][0], *rest)
    return details


def _explain(details: ErrorDetails, name: str, lines: Lines, applied: Overrides, root: Key = ()) -> str:
    """Turn one of pydantic's errors into a sentence with file, line, key, what was given and what is allowed.

    ``root`` is the key of what was read, if it is only a part of a config.
    """
    loc = (*root, *details["loc"])
    key = _without_tags(loc)[len(root) :]
    where = _where(key, name, lines, applied)
    label = f"{where}: {_dotted(key)}: " if key else f"{where}: "
    given = details["input"]
    if details["type"] == "extra_forbidden":
        return label + "there is no such key" + _suggestion(str(key[-1]), _section_at(loc[:-1]))
    if details["type"] == "missing":
        return label + "this key is required and not given"
    if details["type"] == "value_error":
        return label + str(details["ctx"]["error"])
    if details["type"] == "union_tag_not_found":
        return (
            label + "a source is one of {src: …, tgt: …}, {moses: …}, {tsv: …}, {csv: …}, {jsonl: …}, {tmx: …}, "
            "{hf: …, split: …}, {sacrebleu: …}, {builtin: phrasebook}"
        )
    shown = "nothing" if given is None else f"`{given}`"
    return f"{label}given {shown}, allowed: {allowed(details)}"


def _where(key: Key, name: str, lines: Lines, applied: Overrides) -> str:
    """Return the line or the override that sets ``key``, or else the nearest section around it."""
    for n in range(len(key), 0, -1):
        if key[:n] in applied:
            return f"--set {applied[key[:n]]}"
        if key[:n] in lines:
            return f"{name}:{lines[key[:n]]}"
    return name


def _without_tags(loc: Key) -> Key:
    """Drop the tags of unions from pydantic's location: those of sources follow an index, others are in brackets."""
    kept = (part for before, part in itertools.pairwise(loc) if not isinstance(before, int))
    return loc[:1] + tuple(part for part in kept if not str(part).startswith("["))


def _section_at(loc: Sequence[str | int]) -> type[Section] | None:
    """Return the section of the schema at pydantic's location ``loc``."""
    section: type[Section] | None = Config
    for part in loc:
        if isinstance(part, str):
            section = subsections(section).get(part) if section else SOURCE_KINDS.get(part)
    return section


def _suggestion(key: str, section: type[Section] | None) -> str:
    """Suggest the valid key nearest to ``key``, from its own section or else from another."""
    if section is None:
        return ""
    elsewhere = {field: name for name, other in subsections(Config).items() for field in other.model_fields}
    close = difflib.get_close_matches(key, section.model_fields, n=1, cutoff=0.6)
    if close and key not in elsewhere:
        return f"; did you mean `{close[0]}`?"
    close = difflib.get_close_matches(key, elsewhere, n=1, cutoff=0.8)
    if close:
        return f"; did you mean `{elsewhere[close[0]]}.{close[0]}`?"
    return "; there are " + ", ".join(section.model_fields)


def _dotted(key: Key) -> str:
    return ".".join(str(part) for part in key)
