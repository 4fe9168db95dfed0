"""An imported model, and the helpers that all importers share."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from mtformer.bundle.header import Header, SearchDefaults
from mtformer.config.search import SearchConfig
from mtformer.config.sources import MULTIPLE, LanguagePair, PrefixTokens
from mtformer.support.errors import UserError
from mtformer.support.files import read_errors
from mtformer.text.languages import language_code

MAX_VOCABULARY = 2**20  # tokens
_IN_NAME = re.compile(r"(?:^|[-_/])([A-Za-z]{2,3})-([A-Za-z]{2,3})$")


class Imported(NamedTuple):
    """A model in our terms.

    Attributes:
        header: its description.
        tensors: its weights by our names.
        tokenizers: the serialized SentencePiece models, one or two.
    """

    header: Header
    tensors: Mapping[str, Tensor]
    tokenizers: tuple[bytes, ...]


class Tokens(NamedTuple):
    """The vocabularies of a model.

    Attributes:
        models: SentencePiece models in the order of the model's ids, one or two.
        languages: of a model that translates between all of these, the token of each.
        targets: the languages that tokens such as ``>>deu<<`` before a source ask for.
    """

    models: tuple[bytes, ...]
    languages: Mapping[str, str] = {}
    targets: Sequence[str] = ()


def search_defaults(settings: Mapping[str, Any], beam: str, penalty: str, n_forced: int = 0) -> SearchDefaults:
    """Return our search settings for a model of another toolkit.

    Args:
        settings: the toolkit's, by name.
        beam: the name of the beam size, of which 1 counts as not chosen.
        penalty: the name of the exponent of the length that scores are divided by.
        n_forced: the tokens at the start of a translation that count as a part of its length.

    Raises:
        UserError: they are invalid.
    """
    usual, values = SearchConfig(), {beam: 1, penalty: 1.0}
    values |= {name: settings[name] for name in values if settings.get(name) is not None}
    try:
        beam_size = int(values[beam])
        return SearchDefaults(
            beam_size=min(beam_size, 64) if beam_size > 1 else usual.beam_size,
            length_penalty=float(values[penalty]),
            length_penalty_offset=n_forced,
            **usual.model_dump(include={"max_length_factor", "max_length_offset", "batch_tokens"}),
        )
    except (TypeError, ValueError, OverflowError):
        shown = " and ".join(f"{name} = {value}" for name, value in values.items())
        raise UserError(f"{shown} are not settings of a search") from None


def directions(tokens: Tokens, languages: LanguagePair | None) -> dict[str, Any]:
    """Return the entries of a header that name a model's directions.

    Raises:
        UserError: nothing says so.
    """
    if tokens.languages:
        return {"src_lang": MULTIPLE, "tgt_lang": MULTIPLE, "languages": tokens.languages}
    if languages is None:
        raise UserError("nothing says which languages the model translates: add --from and --to")
    if len(tokens.targets) < 2:
        return languages._asdict()
    prefixes = {f"{languages.src_lang}-{lang}": PrefixTokens(src=(f">>{lang}<<",)) for lang in tokens.targets}
    return {"src_lang": languages.src_lang, "tgt_lang": MULTIPLE, "directions": tuple(prefixes), "prefixes": prefixes}


def languages_of(folder: Path, name: str) -> LanguagePair | None:
    """Return the languages that the tokenizer's settings or else the name of a model say."""
    settings = read_json(folder / "tokenizer_config.json", {})
    codes = [settings.get("source_lang"), settings.get("target_lang")]
    if None in codes and (match := _IN_NAME.search(name)):
        codes = [*match.groups()]
    if None in codes:
        return None
    return LanguagePair(*(language_code(str(code)) or MULTIPLE for code in codes))


def read_json(path: Path, default: dict[str, Any] | None = None) -> dict[str, Any]:
    """Read a JSON object; ``default`` stands for a file that does not exist.

    Raises:
        UserError: there is none.
    """
    if default is not None and not path.is_file():
        return default
    try:
        with read_errors(path):
            content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise UserError(f"{path} contains no JSON object")
    return content
