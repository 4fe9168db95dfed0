"""Sentences about problems of a config: the given value, the allowed ones, and the nearest valid name."""

import difflib
from functools import cache
from pathlib import Path

from pydantic_core import ErrorDetails

from mtformer.config.section import Section, subsections
from mtformer.config.sources import SOURCES
from mtformer.support.terminal import escaped

_MAX_SHOWN = 100  # characters of a value
_MAX_SENTENCE = 1_000

_ALLOWED = {
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float", "int_parsing_size"), "a whole number"),
    **dict.fromkeys(("float_parsing", "float_type"), "a number"),
    "finite_number": "a finite number",
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    **dict.fromkeys(("model_type", "dict_type", "model_attributes_type"), "a mapping of keys to values"),
    "string_type": "text",
    "string_too_short": "text that is not empty",
    "list_type": "a list",
    "path_type": "a path",
    "greater_than_equal": "{ge} or more",
    "greater_than": "more than {gt}",
    "less_than_equal": "{le} or less",
    "less_than": "less than {lt}",
    "too_short": "at least {min_length} of them",
}
_TEXTS = {
    "src_lang": "a language code such as en, de or zh",
    "tgt_lang": "a language code such as en, de or zh",
    "directions": "a direction such as en-de, where the code of a language may have underscores, as in en-zh_Hant",
    "delimiter": "a single character",
    "tag": "a word of up to 32 small letters, digits, hyphens and underscores, such as bt",
    "name": 'the name of a folder on every system, without / \\ < > : " | ? *, and without . or blanks at its ends',
}


def shown(value: object) -> str:
    """Return a value on one line without control characters, shortened in its middle."""
    text = escaped(str(value))
    if len(text) <= _MAX_SHOWN:
        return text
    half = _MAX_SHOWN // 2
    return f"{text[:half]}…{text[-half:]} ({len(str(value)):,} characters)"


def explained(details: ErrorDetails, section: type[Section] | None = None, root: type[Section] | None = None) -> str:
    """Turn one of pydantic's errors into a sentence with the given value and the allowed ones, or the nearest name.

    Args:
        details: the error.
        section: the section of the schema in which it occurred.
        root: the whole schema, for keys that belong in another section.
    """
    match details["type"]:
        case "extra_forbidden":
            return "there is no such key" + suggestion(str(details["loc"][-1]), section, root)
        case "missing":
            return "this key is required and not given"
        case "value_error":
            message = escaped(str(details["ctx"]["error"]))
            return message if len(message) <= _MAX_SENTENCE else message[:_MAX_SENTENCE] + "…"
        case "union_tag_not_found":
            return (
                "a source is one of {src: …, tgt: …}, {moses: …}, {tsv: …}, {csv: …}, {jsonl: …}, {tmx: …}, "
                "{hf: …, split: …}, {sacrebleu: …}, {builtin: phrasebook}"
            )
        case _:
            given = details["input"]
            return f"given {'nothing' if given is None else f'`{shown(given)}`'}, allowed: {allowed(details)}"


def allowed(details: ErrorDetails) -> str:
    """Describe the values that are allowed, by the type of the error."""
    kind, loc, given = details["type"], details["loc"], details["input"]
    match kind:
        case "string_pattern_mismatch" | "string_too_long" | "string_too_short" if keys := _TEXTS.keys() & loc:
            return _TEXTS[keys.pop()]
        case "float_parsing" if "inf" in str(given).lower():
            return "a finite number"
        case "bool_parsing" | "bool_type" if "[bool]" in loc:
            return "true, false or auto"
        case "list_type" if loc[-1] in SOURCES:
            return "a list of sources, as in [{src: train.en, tgt: train.de}]"
        case "list_type" if isinstance(given, str):
            return f"a list, as in [{shown(given)}]"
        case "literal_error":
            return str(details["ctx"]["expected"]).replace("'", "")
        case _ if kind in _ALLOWED:
            words = _ALLOWED[kind].format_map(details.get("ctx", {}))
            return f"{words} or auto" if "[number]" in loc and kind.startswith("int_") else words
        case _:
            return details["msg"]


@cache
def other_names() -> dict[str, list[str]]:
    """Return the names of our keys in other toolkits, with underscores for hyphens, by the dotted key."""
    import yaml  # only where a key is wrong

    names = yaml.safe_load(Path(__file__).with_name("other_names.yaml").read_text(encoding="utf-8"))
    return {ours: others.split() for ours, others in names.items()}


def our_keys(name: str) -> list[str]:
    """Return the dotted keys of the settings that another toolkit calls ``name``."""
    return [ours for ours, others in other_names().items() if name.lower().replace("-", "_") in others]


def suggestion(key: str, section: type[Section] | None, root: type[Section] | None) -> str:
    """Suggest the valid key nearest to ``key``: one of ``section``, or else of another section of ``root``."""
    if section is None or root is None:
        return ""
    sections = subsections(root)
    homes = {field: name for name, part in sections.items() for field in part.model_fields}
    same, own = our_keys(key), next((f"{name}." for name, part in sections.items() if part is section), "")
    if key not in homes or (own and any(ours.startswith(own) for ours in same)):
        if same and (own or section is root):
            return f"; did you mean {' and '.join(f'`{ours.removeprefix(own)}`' for ours in same)}?"
        if close := difflib.get_close_matches(key, section.model_fields, n=1, cutoff=0.6):
            return f"; did you mean `{close[0]}`?"
    if close := difflib.get_close_matches(key, homes, n=1, cutoff=0.8):
        return f"; did you mean `{homes[close[0]]}.{close[0]}`?"
    return "; there are " + ", ".join(section.model_fields)
