"""From a YAML file to a :class:`Config`, with all problems reported at once.

YAML provides the structure and the schema the types: plain scalars are kept as the characters in the file, and pydantic
parses them by the type of their field. So ``5e-4`` is a number where the schema has a number, and ``no`` and ``012``
are text where it has text.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from mtformer.config.problems import explained, shown
from mtformer.config.schema import Config
from mtformer.config.section import Section, fill_in, subsections
from mtformer.config.sources import SOURCE_KINDS, SOURCES, Source, expand_sources
from mtformer.support.errors import UserError

if TYPE_CHECKING:
    import yaml  # takes as long to import as all of the schema

Key = tuple[str | int, ...]

_MAX_VALUES = 100_000  # with all aliases written out
_MAX_PROBLEMS = 100
_NO_TEXT = re.compile("[\0\ud800-\udfff]")  # what escapes in quotes can write, and no path or file of text has


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read the config file at ``path`` and apply ``overrides``, each ``dotted.key=value`` with the value in YAML.

    Paths in it are made absolute from the file's folder, and ``run.name`` defaults to the file's name.

    Raises:
        UserError: naming file, line, key and remedy of all problems.
    """
    path = Path(path)
    refuse_source(path, "a config")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        files = path.parent.glob("*.y*ml") if isinstance(error, FileNotFoundError) else ()
        beside = {file.stem: file for file in files}
        near = [beside[name] for name in get_close_matches(path.stem, beside, n=1)]
        meant = [file for file in (path / "config.yaml", *near) if file.is_file()]
        hint = f"; did you mean {meant[0]}?" if meant else ""
        raise UserError(f"cannot read the config {path}: {error.strerror}{hint}") from None
    except UnicodeDecodeError as error:
        if path.suffix == ".safetensors":
            raise UserError(f"{path} is a model, not a config") from None
        line, byte = error.object.count(b"\n", 0, error.start) + 1, error.object[error.start]
        raise UserError(f"{path}:{line}: byte 0x{byte:02x} is not UTF-8; save the config as UTF-8") from None
    return parse_config(text, path, overrides)


def refuse_source(path: Path, wanted: str) -> None:
    """Refuse a table, a translation memory or a spreadsheet, by its name, in the place of what is ``wanted``.

    Raises:
        UserError: with the config that would name it as a source.
    """
    name = path.with_suffix("") if path.suffix in (".gz", ".xz", ".bz2", ".zst") else path
    kind, what, advice = name.suffix[1:].lower(), "a file of sentence pairs", ""
    if kind in ("xlsx", "xls", "ods"):
        named, kind, what, advice = name.with_suffix(".csv"), "csv", "a spreadsheet", "save it as CSV in UTF-8, and "
    elif kind in ("tsv", "csv", "jsonl", "tmx"):
        named = path
    else:
        return
    data = f"{{src_lang: LANG, tgt_lang: LANG, train: [{{{kind}: {str(named).removeprefix(f'{kind}:')}}}]}}"
    raise UserError(f"{path} is {what}, not {wanted}; {advice}write a config that names it, data: {data}")


def parse_config(
    text: str, path: Path, overrides: Sequence[str] = (), places: Mapping[Key, str] | None = None
) -> Config:
    """Read the config ``text`` as the content of the file at ``path``; see :func:`load_config`.

    For a key in ``places``, problems name what set it there, such as an option, instead of the file.
    """
    document = _Document(str(path), overrides=dict(places or {}))
    values = document.read(text)
    if not isinstance(values, dict):
        raise UserError(f"{path}: a config is a mapping of sections (data:, model:, training:, …) to keys")
    for override in overrides:
        document.problems += document.override(values, override)
    values = {key: value for key, value in values.items() if value is not None}  # `training:` with nothing under it
    values.setdefault("run", {})
    if isinstance(values["run"], dict) and values["run"].get("name") is None:
        values["run"]["name"] = path.resolve().stem
    try:
        config = Config.model_validate(values, context={"base": path.resolve().parent})
    except ValidationError as error:
        details_of = [_before_expansion(details, values) for details in error.errors()]
        document.problems += [_explain(details, document) for details in details_of]
    if document.problems:
        raise UserError("\n".join(_with_heading(list(dict.fromkeys(document.problems)))))
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
        raise UserError(
            f"{text}: write a source as key:value, such as tsv:pairs.tsv or src:train.en,tgt:train.de; a path with a "
            "comma needs a config"
        )
    values = fill_in(values, {"{src_lang}": src_lang, "{tgt_lang}": tgt_lang})
    try:
        return TypeAdapter[Source](Source).validate_python(values, context={"base": Path.cwd()})
    except ValidationError as error:
        document = _Document(text)
        problems = [_explain(details, document, root=("data", "train", 0)) for details in error.errors()]
        raise UserError("\n".join(problems)) from None


def dump_config(config: Config) -> str:
    """Write ``config`` as YAML that :func:`load_config` reads back to an equal one."""
    import yaml

    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def dump_new_config(values: dict[str, Any], overrides: Sequence[str] = ()) -> str:
    """Write ``values`` with ``overrides``, which :func:`parse_config` has accepted, as YAML for a user to edit."""
    import yaml

    class PlainDumper(yaml.SafeDumper):
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]  # the schema knows what is a number

    for override in overrides:
        list(_Document("").override(values, override))
    return yaml.dump(values, Dumper=PlainDumper, sort_keys=False, allow_unicode=True, width=1_000)


def dump_override(key: str, text: str) -> str:
    """Write the override that sets a dotted key to ``text``, in quotes if YAML needs them."""
    import yaml

    with suppress(UserError):
        if _Document("").read(text) == text:
            return f"{key}={text}"
    quoted = yaml.safe_dump(text, default_style="'", allow_unicode=True, width=10_000)
    return f"{key}={quoted.strip()}"


def _with_heading(problems: list[str]) -> list[str]:
    if len(problems) > _MAX_PROBLEMS:
        return [f"the config has {len(problems)} problems, such as:", *problems[:_MAX_PROBLEMS]]
    return problems if len(problems) == 1 else [f"the config has {len(problems)} problems:", *problems]


@dataclass
class _Document:
    """A file with a config, or an override, as it is read.

    Attributes:
        name: the file, or the override as it was given.
        lines: the line of each key that is in effect.
        overrides: the override that sets a key, for those that are set by one.
        problems: the errors so far, in sentences.
        n_values: the values built so far.
    """

    name: str
    lines: dict[Key, int] = field(default_factory=dict)
    overrides: dict[Key, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    n_values: int = 0

    def read(self, text: str) -> Any:
        """Parse YAML into dicts, lists, strings and None, and record lines and problems.

        Raises:
            UserError: it cannot be parsed, is too large, or has characters that no path can have.
        """
        import yaml

        try:
            return self._build(yaml.compose(text, Loader=yaml.SafeLoader), ())
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f"{self.name}:{mark.line + 1}" if mark else self.name
            problem = str(error.problem or error.context)
            hint = '; put quotes around text with braces, as in "train.{src_lang}"' if "got '{'" in problem else ""
            raise UserError(f"{where}: this is not valid YAML: {shown(problem)}{hint}") from None
        except yaml.YAMLError as error:
            raise UserError(f"{self.name}: this is not valid YAML: {shown(str(error).splitlines()[0])}") from None
        except RecursionError:
            raise UserError(f"{self.name}: this is nested too deeply, or contains itself") from None

    def _build(self, node: "yaml.Node | None", key: Key) -> Any:
        from yaml import MappingNode

        self.n_values += 1
        if self.n_values > _MAX_VALUES:
            raise UserError(f"{self.name}: this has more than {_MAX_VALUES:,} values once its aliases are written out")
        if node is None or node.tag == "tag:yaml.org,2002:null":
            return None
        if isinstance(node.value, str):
            if _NO_TEXT.search(node.value):
                label = f"{_dotted(key)}: " if key else ""
                problem = f"{label}given `{shown(node.value)}`, allowed: text without null characters and surrogates"
                raise UserError(f"{self.place(key)}: {problem}")
            return node.value
        if isinstance(node, MappingNode):
            return self._mapping(node, key)
        for index, item in enumerate(node.value):
            self.lines[*key, index] = item.start_mark.line + 1
        return [self._build(item, (*key, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: "yaml.MappingNode", key: Key) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for name, value in node.value:
            line = name.start_mark.line + 1
            if not isinstance(name.value, str):
                self.problems.append(f"{self.name}:{line}: a key is plain text, not a list or a mapping")
                continue
            if name.value == "<<":
                problem = "`<<` cannot be used in a config: write the keys that it would add"
                self.problems.append(f"{self.name}:{line}: {problem}")
                continue
            child = (*key, name.value)
            if name.value in mapping:
                first = self.lines[child]
                self.problems.append(f"{self.name}:{line}: {_dotted(child)} is given twice, first in line {first}")
            self.lines[child] = line
            mapping[name.value] = self._build(value, child)
        return mapping

    def override(self, values: dict[str, Any], override: str) -> Iterator[str]:
        """Set one dotted key in ``values``; yield a problem if this fails."""
        dotted, equals, text = override.partition("=")
        where = f"--set {shown(override)}"
        keys = tuple(dotted.strip().split("."))
        if not equals or not all(keys):
            yield f"{where}: write it as key=value, such as --set training.max_steps=1000"
            return
        document = _Document(where)
        try:
            value = document.read(text)
        except UserError as error:
            yield str(error)
            return
        yield from document.problems
        *parents, last = keys
        section = values
        for depth, parent in enumerate(parents, 1):
            if section.get(parent) in (None, "true"):  # a section with its defaults
                section[parent] = {}
                self.overrides[keys[:depth]] = where
            section = section[parent]
            if not isinstance(section, dict):
                problem = "is a list: set all of it" if isinstance(section, list) else "has no keys"
                yield f"{where}: `{shown(parent)}` {problem}"
                return
        section[last] = value
        for places in (self.lines, self.overrides):
            for key in [key for key in places if key[: len(keys)] == keys]:
                del places[key]  # no longer in effect
        self.overrides[keys] = where

    def place(self, key: Key) -> str:
        """Return the line or the override that sets ``key``, or else its nearest enclosing section."""
        for n in range(len(key), 0, -1):
            if key[:n] in self.overrides:
                return self.overrides[key[:n]]
            if key[:n] in self.lines:
                return f"{self.name}:{self.lines[key[:n]]}"
        return self.name


def _before_expansion(details: ErrorDetails, values: Any) -> ErrorDetails:
    """Map the place of an expanded source to its place in the file."""
    match details["loc"]:
        case "data", str(key), int(index), *inside if key in SOURCES and isinstance(values.get("data"), dict):
            sources, directions = values["data"].get(key), values["data"].get("directions")
            expanded = expand_sources(sources, directions)
            if directions and index < len(expanded):
                number, source = expanded[index]
                is_own = "directions" not in inside or sources[number].get("directions")
                place = (key, number, *inside) if is_own else ("directions", directions.index(source["directions"][0]))
                details["loc"] = ("data", *place)
    return details


def _explain(details: ErrorDetails, document: _Document, root: Key = ()) -> str:
    """Turn one of pydantic's errors into a sentence with file, line and key.

    ``root`` is the key of the part that was read, unless it was a whole config.
    """
    loc = (*root, *details["loc"])
    key = _without_tags(loc)[len(root) :]
    label = f"{document.place(key)}: {_dotted(key)}: " if key else f"{document.place(key)}: "
    return label + explained(details, _section_at(loc[:-1]), Config)


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


def _dotted(key: Key) -> str:
    return ".".join(shown(part) for part in key)
