"""The search: the settings of a config, and the options of a call."""

import difflib
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from mtformer.config.problems import allowed, our_keys, shown
from mtformer.config.section import Section
from mtformer.support.errors import UserError
from mtformer.support.packages import require_package

_MAX_BEAM_SIZE = 64
_MAX_SAMPLES = 1_000  # of a line
SearchPrecision = Literal["fp32", "bf16", "int8"]


class LengthPenalty(NamedTuple):
    """The divisor of log probabilities that makes translations of different lengths comparable.

    Attributes:
        alpha: the exponent; 0 for no penalty.
        offset: added to lengths; 5 in Wu et al. 2016, 0 where the length itself divides.
    """

    alpha: float
    offset: int = 0

    def __call__(self, length: int) -> float:
        """Return ((offset + length) / (offset + 1))^alpha (Wu et al. 2016, equation 14); ``length`` counts EOS."""
        return ((self.offset + length) / (self.offset + 1.0)) ** self.alpha

    def __str__(self) -> str:
        length = f"(({self.offset} + length) / {self.offset + 1})" if self.offset else "length"
        return f"{length}^{self.alpha:g}"


class SearchConfig(Section):
    """The search for translations."""

    beam_size: int = Field(default=4, ge=1, le=_MAX_BEAM_SIZE)
    """Hypotheses kept at each step; 1 is greedy search."""
    length_penalty: float = Field(default=1.0, ge=0, le=10, allow_inf_nan=False)
    """The exponent of the length that scores are divided by; larger means longer translations."""
    length_penalty_offset: int = Field(default=0, ge=0, le=100)
    """A number added to lengths: 0, as in Hugging Face, Marian and fairseq, or 5, as in Wu et al. 2016 and, with a
    `length_penalty` of 0.6, in the paper."""
    max_length_factor: float = Field(default=2.0, gt=0, le=100)
    """A translation may have this many tokens for each source token, plus `max_length_offset`."""
    max_length_offset: int = Field(default=20, ge=1, le=10_000)
    """Tokens that a translation may have on top of `max_length_factor` times those of the source."""
    batch_tokens: int = Field(default=4096, ge=1, le=2**16)
    """The maximum number of source tokens in a batch, padding included. More than 4 beams make batches smaller, and so
    does a large vocabulary: a sentence counts as at least 4 tokens for every 1,024 entries (1 with greedy search)."""

    @property
    def penalty(self) -> LengthPenalty:
        """The length penalty as a function."""
        return LengthPenalty(self.length_penalty, self.length_penalty_offset)

    def limit(self, n_tokens: int) -> int:
        """Return the maximum length of the translation of ``n_tokens`` source tokens, EOS included, in tokens."""
        return int(self.max_length_factor * n_tokens) + self.max_length_offset

    def updated(self, **changes: float | str | None) -> "SearchOptions":
        """Return the options of a call: these settings with ``changes``; None leaves a setting unchanged.

        Without ``beam_size`` among them, the beam is made to fit: it is 1 with ``sample``; else it widens to ``n_best``
        or ``mbr`` hypotheses.

        Raises:
            UserError: an option does not exist, its value is not allowed, it cannot be combined with another, or the
                package that it needs is not installed.
        """
        given = {key: value for key, value in changes.items() if value is not None}
        options = self.model_dump() | given
        if "beam_size" not in given:
            options["beam_size"] = _fitting_beam_size(options)
        try:
            updated = SearchOptions.model_validate(options)
        except ValidationError as error:
            raise UserError("search options: " + "; ".join(map(_explained, error.errors()))) from None
        if updated.mbr:
            require_package("fastchrf", "mbr", "mbr")
        return updated


class SearchOptions(SearchConfig):
    """The search options of one call: the settings of the config, and options that only a call may set."""

    precision: SearchPrecision = "fp32"
    """The number format of matrix products: `bf16` is faster on a GPU or processor with instructions for it, but
    torch only; `int8` on a CPU, but CTranslate2 only.

    Scores of given translations are computed in `fp32`."""
    n_best: int = Field(default=1, ge=1, le=_MAX_SAMPLES)
    """Translations of each line to output, at most `beam_size`; with `sample`, any number of samples."""
    mbr: int = Field(default=0, ge=0, le=_MAX_BEAM_SIZE)
    """Minimum Bayes risk: of this many best candidates, choose the one most similar to all."""
    min_length: int = Field(default=0, ge=0, le=10_000)
    """The minimum length of a translation in tokens; its maximum length takes precedence."""
    max_length: int | None = Field(default=None, ge=1, le=10_000)
    """The maximum length of a translation in tokens, if `max_length_factor` allows for more."""
    repetition_penalty: float = Field(default=1.0, ge=1, le=100)
    """A token that is already in the translation and has probability p counts as if it had p to this power."""
    no_repeat_ngram_size: int = Field(default=0, ge=0, le=1_000)
    """No sequence of this many tokens may occur twice in a translation; 0: no limit."""
    sample: bool = False
    """Draw each token at random by its probability, instead of searching for the best translation."""
    temperature: float = Field(default=1.0, gt=0, le=100)
    """Sampling: logits are divided by this; below 1, likely tokens become likelier."""
    top_k: int = Field(default=0, ge=0)
    """Sampling: draw only from this many likeliest tokens; 0: from all."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Sampling: draw only from the fewest likeliest tokens whose probabilities sum to this."""
    seed: int = Field(default=1, ge=0, lt=2**31)
    """Sampling: the seed; the samples of a sentence depend only on the seed and the sentence."""

    def limit(self, n_tokens: int) -> int:
        """Return the maximum length of the translation of ``n_tokens`` source tokens, EOS included, in tokens."""
        limit = super().limit(n_tokens)
        return limit if self.max_length is None else min(limit, self.max_length)

    @property
    def n_rows(self) -> int:
        """The number of hypotheses that a search works on side by side for each sentence."""
        return self.n_best if self.sample else self.beam_size

    @property
    def n_candidates(self) -> int:
        """The number of hypotheses that a search must find for each sentence, to choose the ``n_best`` from."""
        return self.mbr or self.n_best

    def _contradictions(self) -> Iterator[str]:
        given = {name: f"{name} = {getattr(self, name)}" for name in SearchOptions.model_fields}
        if self.sample:
            if self.beam_size > 1:
                yield f"{given['beam_size']} cannot be combined with sample, which has no beams"
            if self.mbr:
                yield f"{given['mbr']} cannot be combined with sample: it chooses among hypotheses of a beam search"
        else:
            for name in ("temperature", "top_k", "top_p", "seed"):
                if getattr(self, name) != SearchOptions.model_fields[name].default:
                    yield f"{given[name]} needs sample, which draws tokens at random"
            for name in ("n_best", "mbr"):
                if getattr(self, name) > _MAX_BEAM_SIZE:
                    most = f"the {_MAX_BEAM_SIZE} that a beam search finds at most"
                    yield f"{given[name]} is more than {most}; try sample"
                elif getattr(self, name) > self.beam_size:
                    yield f"{given[name]} is more than {given['beam_size']}"
        if self.mbr and self.n_best > self.mbr:
            yield f"{given['n_best']} is more than {given['mbr']}"
        if self.max_length is not None and self.min_length > self.max_length:
            yield f"{given['min_length']} is more than {given['max_length']}"


def _explained(details: ErrorDetails) -> str:
    if details["type"] == "value_error":
        return str(details["ctx"]["error"])
    [name] = details["loc"]
    if details["type"] == "extra_forbidden":
        same = [key.removeprefix("search.") for key in our_keys(str(name)) if key.startswith("search.")]
        meant = same or difflib.get_close_matches(str(name), SearchOptions.model_fields, n=1)
        return f"there is no option {name}" + (f"; did you mean {meant[0]}?" if meant else "")
    return f"{name} = {shown(details['input'])}, allowed: {allowed(details)}"


def _fitting_beam_size(options: dict[str, Any]) -> Any:
    """Return the beam size, adjusted to the other options, which are not validated yet."""
    if options.get("sample"):
        return 1
    size = max(value for name in ("beam_size", "n_best", "mbr") if isinstance(value := options.get(name), int))
    return min(_MAX_BEAM_SIZE, size)
