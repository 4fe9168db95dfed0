"""What scoring a model gives, and how ``--json`` shows it."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtformer.config import SearchOptions
from mtformer.engines.loading import LoadedModel
from mtformer.evaluate.analysis import Analysis, Bucket
from mtformer.evaluate.likelihood import Likelihood
from mtformer.evaluate.metrics import Score
from mtformer.support.reproducibility import versions


@dataclass(frozen=True)
class SetResult:
    """The result on one test set, or on several put together.

    Attributes:
        name: of the test set.
        fingerprint: a digest of its sources and references.
        n_sentences: its size.
        scores: BLEU, chrF2, chrF2++, TER and, if asked for, COMET.
        analysis: what the scores do not say.
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
        """The length of the translations over that of the references, in words as BLEU counts them."""
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
        shares = f"{analysis.exact_matches:.1%} exact, {analysis.repetitions:.1%} with repetitions"
        lines.append(f"{self.n_sentences:,} sentences: {shares}, length ratio {self.length_ratio:.3f}")
        if likelihood.loss is not None:
            excluded = f" ({likelihood.n_excluded:,} sentences excluded)" if likelihood.n_excluded else ""
            lines.append(f"loss {likelihood.loss:.3f}, perplexity {likelihood.perplexity:.2f}{excluded}")
        lines += _buckets("BLEU by words", analysis.by_length)
        lines += _buckets("F1 by tokens of a word", analysis.by_tokens)
        return "\n".join(lines)


def _buckets(title: str, buckets: Sequence[Bucket]) -> list[str]:
    """Show buckets on one line; a single one says nothing new."""
    if len(buckets) < 2:
        return []
    return [f"{title}: " + ", ".join(f"{one.label}: {one.score:.1f} ({one.count:,})" for one in buckets)]


@dataclass(frozen=True)
class ScoredModel:
    """A model as it was searched.

    Attributes:
        paths: the bundle, or the folder of an exported model; or the bundles of an ensemble.
        digest: of the bundle's contents, or of those of the whole ensemble.
        step: of the training that the first bundle is from; None if it does not say.
        options: how translations were searched for.
        engine: what computed it: ``torch`` or ``ctranslate2``.
        precision: the type of its products, as the engine calls it.
        raw: whether the model translated alone, without changes to texts before and checks of translations after.
        tag: that of the training text that it translated like; None for no tag.
    """

    paths: tuple[Path, ...]
    digest: str
    step: int | None
    options: SearchOptions
    engine: str
    precision: str
    raw: bool
    tag: str | None

    @classmethod
    def of(cls, paths: Sequence[Path], model: LoadedModel, *, raw: bool) -> "ScoredModel":
        """Describe the model from ``paths``."""
        return cls(
            paths=tuple(paths),
            digest=model.digest,
            step=model.header.step,
            options=model.options,
            engine=model.engine_name,
            precision=model.precision,
            raw=raw,
            tag=model.tag,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints, with the versions of the software."""
        names = [str(path) for path in self.paths]
        return {
            "model": names[0] if len(names) == 1 else names,
            "digest": self.digest,
            "step": self.step,
            "engine": self.engine,
            "precision": self.precision,
            "beam_size": self.options.beam_size,
            "length_penalty": self.options.length_penalty,
            "search": self.options.model_dump(),
            "raw": self.raw,
            "tag": self.tag,
            "versions": versions(),
        }


@dataclass(frozen=True)
class EarlierEvaluation:
    """The best earlier evaluation of a run on the same text, by BLEU.

    Attributes:
        step: of the training that the model was from.
        beam_size: of its search.
        raw: whether the model translated alone.
        tag: that of its search; None for no tag.
        bleu: its BLEU.
        verdict: a sentence on the difference in BLEU.
    """

    step: int
    beam_size: int
    raw: bool
    tag: str | None
    bleu: float
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        how = {"step": self.step, "beam_size": self.beam_size, "raw": self.raw, "tag": self.tag}
        return how | {"bleu": round(self.bleu, 2), "verdict": self.verdict}

    def to_text(self) -> str:
        """Return the verdict, and which evaluation it is about."""
        how = f"step {self.step:,}, beam size {self.beam_size}" + ", with --raw" * self.raw
        how += "" if self.tag is None else f", with --tag {self.tag}"
        return textwrap.fill(f"{self.verdict} (the earlier one: {how}, {self.bleu:.2f} BLEU)", width=100)


@dataclass(frozen=True)
class Evaluation:
    """The result of scoring a model.

    Attributes:
        model: what was scored.
        hypotheses: the translations, one for each source.
        results: for each test set.
        total: for all of them together, the same if there is one.
        command: how sacreBLEU computes the scores of the hypotheses that were written; None where no file has the
            references, or nothing was written.
        earlier: the best earlier evaluation of the same run on the same text, if there is one.
    """

    model: ScoredModel
    hypotheses: list[str]
    results: list[SetResult]
    total: SetResult
    command: str | None
    earlier: EarlierEvaluation | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        shown = self.model.to_dict() | self.total.to_dict()
        if len(self.results) > 1:
            shown["test_sets"] = [result.to_dict() for result in self.results]
        if self.earlier is not None:
            shown["best_earlier"] = self.earlier.to_dict()
        return shown if self.command is None else shown | {"sacrebleu": self.command}

    def to_text(self) -> str:
        """Show each set under its name, then all together, then sacreBLEU's command."""
        if len(self.results) == 1:
            blocks = [self.total.to_text()]
        else:
            blocks = [f"{one.name}\n{one.to_text()}" for one in self.results]
            blocks.append(f"together\n{self.total.to_text()}")
        if self.earlier is not None:
            blocks.append(self.earlier.to_text())
        if self.command is not None:
            blocks.append(f"The same scores from sacreBLEU:\n{self.command}")
        return "\n\n".join(blocks)
