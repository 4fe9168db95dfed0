"""Requests for translations, and their answers."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from mtformer.config import SearchConfig
from mtformer.serve.models import USUAL, Requirements
from mtformer.support.errors import UserError
from mtformer.translate.plan import Plan
from mtformer.translate.translation import Translation
from mtformer.translate.translator import Translator

_LARGEST_BEAM = 16  # that a request may ask for: the time that a text takes grows with it
_WIDE = ("beam_size", "n_best", "mbr")  # options that widen the beam
# What requests may set; the others are for whoever runs the server.
OPTIONS = (
    *_WIDE,
    *("length_penalty", "min_length", "max_length", "repetition_penalty", "no_repeat_ngram_size"),
    *("sample", "temperature", "top_k", "top_p", "seed"),
)


@dataclass(frozen=True, kw_only=True)
class Query:
    """Texts to translate, and how.

    Attributes:
        texts: any number of texts.
        target: the target language, in any spelling.
        source: the source language, in any spelling; None to detect it.
        is_one_language: whether a detected language applies to all texts.
        wanted: the requirements on a model, with options from :func:`checked_options`.
        plan: makes the plan of a text, given a translator.
    """

    texts: Sequence[str]
    target: str
    source: str | None = None
    is_one_language: bool = False
    wanted: Requirements = USUAL
    plan: Callable[[Translator, str], Plan[list[Translation]]] = Translator.plan


class Answer(NamedTuple):
    """The translations of a text.

    Attributes:
        source: its language, as the request calls it or as it was detected.
        probability: the probability of that language.
        translations: the best first; the text itself if it is blank or in the target language already.
    """

    source: str
    probability: float
    translations: Sequence[Translation]

    @property
    def text(self) -> str:
        """The best translation."""
        return self.translations[0].text


def checked_options(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return search options in order, with values of the right types.

    Raises:
        UserError: requests may not set an option, or its value is not allowed.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if unknown := [name for name in given if name not in OPTIONS]:
        raise UserError(f"there is no option {unknown[0]} here; there are {', '.join(OPTIONS)}")
    for name in _WIDE:  # first: the search would name its own limit, which is higher
        with suppress(ValueError):  # no number, as is found below
            if name in given and float(str(given[name])) > _LARGEST_BEAM:
                raise UserError(f"{name} = {given[name]}: a request may ask for {_LARGEST_BEAM} at most")
    checked = SearchConfig().updated(**given) if given else None
    return tuple((name, getattr(checked, name)) for name in sorted(given))
