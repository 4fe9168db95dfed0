"""The sources that sentence pairs come from, and the languages that a model translates between."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeGuard, get_args

from pydantic import AfterValidator, Discriminator, Field, Tag, ValidationInfo

from mtformer.config.section import (
    BoolOrAuto,
    DatasetName,
    PositiveInt,
    Section,
    TextPath,
    TextPrefix,
    fill_in,
    no_country,
)

SOURCES = ("train", "valid", "test")  # the lists of sources in the section ``data``
MULTIPLE = "mul"  # ISO 639-2's code of several languages


def _between_languages(direction: str, info: ValidationInfo) -> str:
    return "-".join(no_country(code, info) for code in direction.split("-"))


_LANGUAGE = "[a-z]{2,3}(_[A-Za-z0-9]+)*"
Direction = Annotated[str, Field(pattern=f"^{_LANGUAGE}-{_LANGUAGE}$"), AfterValidator(_between_languages)]


class PrefixTokens(Section):
    """The tokens that stand before the texts of a direction."""

    src: tuple[str, ...] = ()
    """Before each source."""
    tgt: tuple[str, ...] = ()
    """Before each translation, which is forced to start with them; they are neither scored nor shown."""


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
    """Set the languages in a section ``data`` with ``directions``, and expand its sources by direction.

    Invalid values stay as they are, for the schema to refuse.
    """
    directions = data["directions"]
    if not _are_directions(directions):
        return {"src_lang": MULTIPLE, "tgt_lang": MULTIPLE} | data
    languages = merged(list(map(LanguagePair.parse, directions)))._asdict()
    sources = {key: [source for _, source in expand_sources(data.get(key), directions)] for key in SOURCES}
    return languages | data | {key: expanded for key, expanded in sources.items() if expanded}


def expand_sources(sources: Any, directions: Any) -> list[tuple[int, Any]]:
    """Repeat each source of a config for each of its directions: all, unless it names some.

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
    return isinstance(value, list) and all(isinstance(item, str) and item.count("-") == 1 for item in value)


def _free(tag: str) -> str:
    if tag in _TAKEN:
        raise ValueError(f"the token <{tag}> has another meaning: choose another name")
    return tag


_TAKEN = ("s", "pad", "unk", "term", "is", "context")
Column = Annotated[str, Field(min_length=1, coerce_numbers_to_str=True)]
TagName = Annotated[str, Field(pattern="^[a-z][a-z0-9_-]*$", max_length=32), AfterValidator(_free)]


class SourceSection(Section):
    """The settings of any source."""

    weight: float = Field(default=1.0, gt=0, le=1_000, allow_inf_nan=False)
    """How often each pair of this source occurs in an epoch, on average. Only in `data.train`."""
    tag: TagName | None = None
    """A word, such as `bt` for back-translated text: its token, `<bt>`, is put in front of each source text (Caswell et
    al. 2019); `translate --tag bt` does the same. Only in `data.train`."""
    general: bool = False
    """Text of the kind that the model of `training.init_from` was trained on. In `data.train`, an epoch draws as many
    pairs from such sources, times their weight, as from the others, so that fine-tuning forgets less; in `data.valid`,
    it shows what the model forgets, and `training.max_forgetting` limits that."""
    directions: list[Direction] = Field(default=[])
    """The directions of the model for which this source has text. Default: all."""

    @property
    def languages(self) -> LanguagePair | None:
        """The direction of a source in a multilingual model; None if the model has only one direction."""
        return LanguagePair.parse(self.directions[0]) if self.directions else None


class TextFiles(SourceSection):
    """Two text files, parallel line by line."""

    src: TextPath
    """The text in the source language; in a path, `{src_lang}` and `{tgt_lang}` stand for the language codes."""
    tgt: TextPath
    """The text in the target language."""

    def _contradictions(self) -> Iterator[str]:
        if str(self.src) == str(self.tgt) == "-":
            yield "src and tgt are both standard input: read one of them from a file"


class MosesFiles(SourceSection):
    """Two text files that share their name up to the language code, as in `corpus.en` and `corpus.de`."""

    moses: TextPrefix
    """The common start of their names, such as `corpus`; compressed files have a further ending, as in
    `corpus.en.gz`."""


class TsvFile(SourceSection):
    """A table with a pair on each line, in columns separated by tabs. Blank lines are skipped."""

    tsv: TextPath
    """The file."""
    src_column: Column | None = None
    """The column of the source text: its name in the header, or its number from 1. Default: the column whose header is
    the language (`en`, `en-US`, `eng`, `English`), `source` or `src`; without a header, the first of two."""
    tgt_column: Column | None = None
    """The column of the target text. Default: the column whose header is the language, `target` or `tgt`; without a
    header, the second of two."""
    header: BoolOrAuto = "auto"
    """Whether the first line is a header. `auto`: it is if it names both languages, or has only codes of languages, or
    if a column is given by name."""
    quotes: bool = False
    """Treat `"` around a field as quotes, as spreadsheets and pandas write them, and not as part of the text."""


class CsvFile(SourceSection):
    """A table with a pair in each row, in columns separated by commas, with quotes where needed (RFC 4180)."""

    csv: TextPath
    """The file."""
    src_column: Column | None = None
    """As for `tsv`."""
    tgt_column: Column | None = None
    """As for `tsv`."""
    header: BoolOrAuto = "auto"
    """As for `tsv`."""
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    """The separator of the columns; some spreadsheets use `;`. A first line for Excel, such as `sep=;`,
    overrides it."""


class JsonlFile(SourceSection):
    """A file with a JSON object on each line. Blank lines are skipped."""

    jsonl: TextPath
    """The file."""
    src_key: str | None = None
    """The key of the source text. Default: the key that names the language, as for the columns of `tsv`."""
    tgt_key: str | None = None
    """The key of the target text. Default: the key that names the language."""


class TmxFile(SourceSection):
    """A translation memory (TMX): the segments of its units in both languages, without inline markup."""

    tmx: TextPath
    """The file. `en` also stands for the variants of English in it, such as `en-US`."""


class HubDataset(SourceSection):
    """A data set of the Hugging Face hub, or a local folder in its format, read through the ``datasets`` library."""

    hf: DatasetName
    """The data set's id, such as ``bentrevett/multi30k``; or a folder, as in `./pairs`."""
    config: str | None = None
    """The configuration of the data set, if it has several."""
    split: str
    """The split to read, such as ``train``."""
    revision: str | None = None
    """A commit, branch or tag of the data set. The config of the run records the commit. Default: the newest commit."""
    streaming: bool = False
    """Read rows as they arrive instead of downloading the whole data set first."""
    src_column: str | None = None
    """The column of the source text. Default: the column that names the language, as for `tsv`."""
    tgt_column: str | None = None
    """The column of the target text. Default: the column that names the language."""


class SacrebleuSet(SourceSection):
    """A test set that sacreBLEU downloads."""

    sacrebleu: str
    """The name of the test set, such as `wmt14/full`; `sacrebleu --list` prints all. `mtformer eval` uses all
    references of a set; other commands use the first."""


class BuiltinText(SourceSection):
    """A corpus that ships with mtformer: the phrasebook, generated by a grammar of English, German and Chinese."""

    builtin: Literal["phrasebook"]
    """The name of the corpus."""
    split: Literal["train", "valid", "test", "compositional", "ambiguous", "pronouns"] = "train"
    """The part of the corpus; no sentence of `train` is in another split."""
    size: PositiveInt = 60_000
    """The maximum number of sentences. `train` is unlimited; the other splits have 1,000."""
    seed: int = Field(default=1, ge=0)
    """The seed for drawing the sentences of `train`."""


def _source_kind(value: Any) -> str | None:
    """Return the kind of a source, identified by its distinctive key; others may be misplaced beside it."""
    keys = set(value if isinstance(value, dict) else getattr(type(value), "model_fields", ()))
    return next((kind for kind in SOURCE_KINDS if kind in keys), "src/tgt" if keys & {"src", "tgt"} else None)


Source = Annotated[
    Annotated[TextFiles, Tag("src/tgt")]
    | Annotated[MosesFiles, Tag("moses")]
    | Annotated[TsvFile, Tag("tsv")]
    | Annotated[CsvFile, Tag("csv")]
    | Annotated[JsonlFile, Tag("jsonl")]
    | Annotated[TmxFile, Tag("tmx")]
    | Annotated[HubDataset, Tag("hf")]
    | Annotated[SacrebleuSet, Tag("sacrebleu")]
    | Annotated[BuiltinText, Tag("builtin")],
    Discriminator(_source_kind),
]
SOURCE_KINDS: dict[str, type[SourceSection]] = {
    tag.tag: kind for kind, tag in map(get_args, get_args(get_args(Source)[0]))
}

_SIDES = ("src", "tgt", "src_column", "tgt_column", "src_key", "tgt_key")


def shared_sides(sources: Sequence[SourceSection]) -> Iterator[str]:
    """Yield an error for each source that names its two sides but is read for several directions."""
    seen: dict[str, LanguagePair] = {}
    for source in sources:
        sides = [name for name in _SIDES if getattr(source, name, None) is not None]
        if not sides or not source.languages:
            continue
        first = seen.setdefault(repr(source.model_copy(update={"directions": []})), source.languages)
        if first != source.languages:
            yield (
                f"{' and '.join(sides)} of a source are the same for {first} and {source.languages}: limit the source "
                "with `directions`, or let {src_lang} and {tgt_lang} in paths, or a header, name the languages"
            )
