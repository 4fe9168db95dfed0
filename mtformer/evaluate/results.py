"""The results of scoring a model, and their presentation."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

from mtformer.engines.loading import LoadedModel
from mtformer.evaluate.analysis import Analysis, Bucket
from mtformer.evaluate.metrics import Score
from mtformer.support.reproducibility import versions
from mtformer.support.terminal import as_text, counted


@dataclass(frozen=True)
class Likelihood:
    """The log probability of references, by teacher forcing.

    Attributes:
        log_prob: the sum over all tokens, in nats.
        n_tokens: the tokens of the references, an EOS for each included.
        n_excluded: pairs with an empty side or more tokens than the model takes at once.
    """

    log_prob: float
    n_tokens: int
    n_excluded: int

    @classmethod
    def of(cls, log_probs: Sequence[Sequence[float] | None]) -> "Likelihood":
        """Sum the log probabilities of the tokens of each reference; None for one that is excluded."""
        scored = [row for row in log_probs if row is not None]
        return cls(math.fsum(map(math.fsum, scored)), sum(map(len, scored)), len(log_probs) - len(scored))

    @property
    def loss(self) -> float | None:
        """The cross entropy per token in nats, without label smoothing; None if every pair is excluded."""
        return -self.log_prob / self.n_tokens if self.n_tokens else None

    @property
    def perplexity(self) -> float | None:
        """The exponential of the loss."""
        return None if self.loss is None else math.exp(min(self.loss, 700.0))

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        rounded = {"loss": self.loss, "perplexity": self.perplexity}
        shown = {key: None if value is None else round(value, 4) for key, value in rounded.items()}
        return shown | {"ref_tokens": self.n_tokens, "excluded_from_loss": self.n_excluded}


@dataclass(frozen=True)
class SetResult:
    """The result on one test set, or on several put together.

    Attributes:
        name: of the test set.
        fingerprint: a digest of its sources and references.
        n_sentences: its size.
        scores: BLEU, chrF2, chrF2++, TER and, if asked for, COMET.
        analysis: details behind the scores.
        likelihood: loss and perplexity of the first reference; without tokens if they were not computed.
    """

    name: str
    fingerprint: str
    n_sentences: int
    scores: list[Score]
    analysis: Analysis
    likelihood: Likelihood

    @property
    def length_ratio(self) -> float:
        """The length of the translations divided by that of the references, in words as BLEU counts them."""
        lengths = next(score.details for score in self.scores if score.name == "BLEU")
        return lengths["hyp_length"] / max(1, lengths["ref_length"])

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        return {
            "test_set": self.name,
            "fingerprint": self.fingerprint,
            "sentences": self.n_sentences,
            "scores": [score.to_dict() for score in self.scores],
            "length_ratio": round(self.length_ratio, 4),
            **self.likelihood.to_dict(),
            **self.analysis.to_dict(),
        }

    def to_text(self) -> str:
        """Show the scores first, one a line, then the analysis."""
        analysis, likelihood = self.analysis, self.likelihood
        lines = [score.to_text() for score in self.scores]
        shares = f"{100 * analysis.exact_matches:.1f} % exact, {100 * analysis.repetitions:.1f} % with repetitions"
        lines.append(f"{counted(self.n_sentences, 'sentence')}: {shares}, length ratio {self.length_ratio:.3f}")
        if likelihood.loss is not None:
            excluded = f" ({counted(likelihood.n_excluded, 'sentence')} excluded)" if likelihood.n_excluded else ""
            lines.append(f"loss {likelihood.loss:.3f}, perplexity {likelihood.perplexity:.2f}{excluded}")
        lines += _buckets("BLEU by words", analysis.by_length)
        lines += _buckets("F1 by tokens of a word", analysis.by_tokens)
        return "\n".join(lines)


def _buckets(title: str, buckets: Sequence[Bucket]) -> list[str]:
    """Show buckets on one line; empty for a single bucket, which adds no information."""
    if len(buckets) < 2:
        return []
    return [f"{title}: " + ", ".join(f"{part.label}: {part.score:.1f} ({part.count:,})" for part in buckets)]


@dataclass(frozen=True)
class ScoredModel:
    """A model and the settings that it was scored with.

    Attributes:
        paths: the bundle, or the folder of an exported model; or the bundles of an ensemble.
        loaded: the model, toward one of its directions.
        raw: whether the model translated alone, without changes to texts before and checks of translations after.
    """

    paths: tuple[Path, ...]
    loaded: LoadedModel
    raw: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints, with the versions of the software."""
        names, loaded = [str(path) for path in self.paths], self.loaded
        return {
            "model": names[0] if len(names) == 1 else names,
            "digest": loaded.digest,
            "step": loaded.header.step if len(names) == 1 else None,
            "engine": loaded.engine_name,
            "precision": loaded.precision,
            "beam_size": loaded.options.beam_size,
            "length_penalty": loaded.options.length_penalty,
            "search": loaded.options.model_dump(),
            "raw": self.raw,
            "tag": loaded.tag,
            "versions": versions() | {loaded.engine_name: version(loaded.engine_name)},
        }


@dataclass(frozen=True)
class Evaluation:
    """The result of scoring a model.

    Attributes:
        model: what was scored.
        hypotheses: the translations, one for each source.
        results: for each test set.
        total: for all of them together, the same if there is one.
        commands: how sacreBLEU computes the scores of the hypotheses that were written; none where no file has the
            references, or nothing was written.
    """

    model: ScoredModel
    hypotheses: list[str]
    results: list[SetResult]
    total: SetResult
    commands: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        shown = self.model.to_dict() | self.total.to_dict()
        if len(self.results) > 1:
            shown["test_sets"] = [result.to_dict() for result in self.results]
        return shown | {"sacrebleu": self.commands} if self.commands else shown

    def to_text(self) -> str:
        """Show each set under its name, then all together, then sacreBLEU's commands."""
        blocks = [self.total.to_text()]
        if len(self.results) > 1:
            blocks = [f"{result.name}\n{result.to_text()}" for result in self.results] + [f"together\n{blocks[0]}"]
        if self.commands:
            blocks.append("\n".join(["The same scores from sacreBLEU:", *self.commands]))
        return "\n\n".join(blocks)


@dataclass(frozen=True)
class Evaluations:
    """The results of a model of several directions.

    Attributes:
        by_direction: the result of each, as in ``en-de``.
    """

    by_direction: Mapping[str, Evaluation]

    @property
    def means(self) -> dict[str, float]:
        """The mean over the directions of each score, by its name."""
        of_each = zip(*(evaluation.total.scores for evaluation in self.by_direction.values()), strict=True)
        return {scores[0].name: fmean(score.value for score in scores) for scores in of_each}

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        directions = {direction: evaluation.to_dict() for direction, evaluation in self.by_direction.items()}
        return {"directions": directions, "means": {name: round(mean, 2) for name, mean in self.means.items()}}

    def to_text(self) -> str:
        """Show the result of each direction, then the scores of all in a table."""
        blocks = [f"{direction}\n{evaluation.to_text()}" for direction, evaluation in self.by_direction.items()]
        rows = [
            [direction, *(f"{score.value:.2f}" for score in evaluation.total.scores)]
            for direction, evaluation in self.by_direction.items()
        ]
        rows.append(["mean", *(f"{mean:.2f}" for mean in self.means.values())])
        return "\n\n".join([*blocks, as_text(["direction", *self.means], rows)])
