"""The languages that a model translates between: one pair of them, or several in one model."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, TypeGuard

from pydantic import Field

from mtformer.config.section import fill_in

SOURCES = ("train", "valid", "test")  # the lists of sources in the section ``data``
MULTIPLE = "mul"  # ISO 639-2's code of several languages

_LANGUAGE = "[a-z]{2,3}(_[A-Za-z0-9]+)*"
Direction = Annotated[str, Field(pattern=f"^{_LANGUAGE}-{_LANGUAGE}$")]


class LanguagePair(NamedTuple):
    """The codes of two languages."""

    src_lang: str
    tgt_lang: str

    def __str__(self) -> str:
        return f"{self.src_lang}-{self.tgt_lang}"

    @classmethod
    def parse(cls, direction: str) -> "LanguagePair":
        """Read a direction as in ``en-de``; a hyphen within a code is written as an underscore: ``en-zh_Hant``."""
        return cls(*direction.split("-"))


def merged(pairs: Sequence[LanguagePair]) -> LanguagePair:
    """Return the language of each side, :data:`MULTIPLE` where a side has several."""
    sides = (set(side) for side in zip(*pairs, strict=True))
    return LanguagePair(*(side.pop() if len(side) == 1 else MULTIPLE for side in sides))


def expand_directions(data: dict[str, Any]) -> dict[str, Any]:
    """Write out the section ``data`` of a config with ``directions``: its languages, and its sources by direction.

    What the schema has to refuse stays as it is.
    """
    directions = data["directions"]
    if not _are_directions(directions):
        return {"src_lang": MULTIPLE, "tgt_lang": MULTIPLE} | data
    languages = merged(list(map(LanguagePair.parse, directions)))._asdict()
    sources = {key: [source for _, source in expand_sources(data.get(key), directions)] for key in SOURCES}
    return languages | data | {key: found for key, found in sources.items() if found}


def expand_sources(sources: Any, directions: Any) -> list[tuple[int, Any]]:
    """Write out each source of a config for each of its directions, which are all unless it names some.

    Returns:
        the sources, with ``{src_lang}`` and ``{tgt_lang}`` in their text replaced, each with its index in ``sources``.
    """
    expanded = []
    for index, source in enumerate(sources if isinstance(sources, list) else []):
        own = (source.get("directions") or directions) if isinstance(source, dict) else None
        if not _are_directions(own):
            expanded.append((index, source))
            continue
        for direction in own:
            names = LanguagePair.parse(direction)
            languages = {f"{{{side}}}": language for side, language in names._asdict().items()}
            expanded.append((index, fill_in(source, languages) | {"directions": [direction]}))
    return expanded


def _are_directions(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(one, str) and one.count("-") == 1 for one in value)
