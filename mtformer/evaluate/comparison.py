"""Test whether one system translates significantly better than another.

The tests are sacreBLEU's (Post 2018): paired bootstrap resampling (Koehn 2004) and paired approximate randomization
(Riezler and Maxwell 2005). The first system is the baseline, with which each of the others is compared.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from mtformer.evaluate.metrics import interval, sacrebleu_metric
from mtformer.runs.contents import LOWER_IS_BETTER
from mtformer.support.errors import MtformerError
from mtformer.support.progress import Progress

ALPHA = 0.05  # the level of significance
_METRICS = ("BLEU", "chrF2", "TER")


class Outcome(StrEnum):
    """The conclusion about a system and the baseline."""

    better = "better"
    worse = "worse"
    unclear = "no difference can be shown"


@dataclass(frozen=True)
class Estimate:
    """The score of one system in one metric, and its confidence interval.

    Attributes:
        system: its name.
        score: on the whole test set, as sacreBLEU gives it.
        mean: of the scores on the resampled test sets.
        ci: half of the 95 % confidence interval, as sacreBLEU gives it: ``mean - ci`` to ``mean + ci``.
        low: the lower end of that interval, or of the metric's scale.
        high: the upper end.
        difference: the score minus the baseline's; 0 for the baseline.
        outcome: better or worse than the baseline if both tests say so, at the level of ``ALPHA``.
        p_bootstrap: the p-value of the paired bootstrap; None for the baseline.
        p_randomization: the p-value of approximate randomization; None for the baseline.
    """

    system: str
    score: float
    mean: float
    ci: float
    low: float
    high: float
    difference: float = 0.0
    outcome: Outcome = Outcome.unclear
    p_bootstrap: float | None = None
    p_randomization: float | None = None


@dataclass(frozen=True)
class MetricComparison:
    """The systems in one metric.

    Attributes:
        metric: such as ``BLEU``.
        estimates: one for each system, in the order given; the first is the baseline.
        signatures: sacreBLEU's, of the paired bootstrap and, of several systems, of approximate randomization.
    """

    metric: str
    estimates: list[Estimate]
    signatures: tuple[str, ...]

    @property
    def signature(self) -> str:
        """The signatures merged, in sacreBLEU's order."""
        bootstrap, *others = self.signatures
        trials = [part for other in others for part in other.split("|") if part.startswith("ar:")]
        return bootstrap.replace("|seed:", "|".join(["", *trials, "seed:"]))


@dataclass(frozen=True)
class Comparison:
    """The systems in all metrics.

    Attributes:
        n_sentences: the size of the test set.
        metrics: BLEU, chrF2 and TER.
    """

    n_sentences: int
    metrics: list[MetricComparison]

    @property
    def systems(self) -> list[str]:
        """The names of the systems, the baseline first."""
        return [estimate.system for estimate in self.metrics[0].estimates]

    def verdicts(self) -> list[str]:
        """Return a sentence about each system and metric."""
        return [
            _verdict(comparison, comparison.estimates[system])
            for system in range(1, len(self.systems))
            for comparison in self.metrics
        ]


def compare_systems(
    hypotheses: Mapping[str, Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    tgt_lang: str,
    tokenize: str = "auto",
    n_resamples: int = 1_000,
    n_trials: int = 10_000,
    seed: int = 12_345,
) -> Comparison:
    """Test whether systems differ from the first one in BLEU, chrF and TER.

    The numbers are those of sacreBLEU's command line (:func:`~mtformer.evaluate.metrics.sacrebleu_command`), with two
    exceptions, since sacreBLEU does not count resamples that equal the observed difference. It reports tiny p-values
    for two equal scores; here they are 1, as every resample is at least as far from 0. And where translations differ in
    k sentences only, randomization swaps all or none of them with a probability of 2^(1-k), which gives the observed
    difference: its p-value is never below that.

    Args:
        hypotheses: the translations of systems by their names, the baseline first; one alone is only scored.
        references: one or more references of each sentence: ``references[i][n]`` is the i-th reference of sentence n.
        tgt_lang: decides how words are counted.
        tokenize: sacreBLEU's tokenization for BLEU; ``auto`` goes by the language.
        n_resamples: resampled test sets of the paired bootstrap.
        n_trials: trials of approximate randomization.
        seed: of both tests, at least 1; sacreBLEU takes 0 for no seed.

    Raises:
        ValueError: translations differ in number.
        MtformerError: there is not enough memory.
    """
    streams = [list(stream) for stream in references]
    systems: list[tuple[str, Sequence[str]]] = [(name, list(texts)) for name, texts in hypotheses.items()]
    baseline = systems[0][1]
    floors = [_least_p_value(baseline, texts) for _, texts in systems]
    tests = (("bs", n_resamples), ("ar", n_trials))[: len(systems)]  # one system has an interval and no p-value
    compared = []
    with _seeded(seed), Progress("testing", len(tests) * len(_METRICS), unit="tests") as progress:
        for chosen in _METRICS:  # one by one, for the progress: each test starts from the seed again
            metric = sacrebleu_metric(chosen, tgt_lang, tokenize, references=streams)
            signatures, results = [], []
            for kind, n_samples in tests:
                name, signature, result = _run_test(systems, metric, kind, n_samples)
                signatures.append(signature)
                results.append(result)
                progress.advance()
            estimates = _estimates(name, list(hypotheses), floors, results[0], results[-1])
            compared.append(MetricComparison(name, estimates, tuple(signatures)))
    return Comparison(len(baseline), compared)


def _run_test(
    systems: list[tuple[str, Sequence[str]]], metric: Metric, kind: str, n_samples: int
) -> tuple[str, str, Sequence[Any]]:
    """Return the name of the metric, the signature of the test, and a result for each system."""
    try:
        signatures, results = PairedTest(systems, {"": metric}, None, kind, n_samples)()
    except MemoryError as error:
        raise MtformerError(
            "out of memory: the tests need fewer --resamples and --trials, or fewer sentences"
        ) from error
    [(name, signature)] = signatures.items()
    return name, signature.format(), results[name]


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Set the seed of sacreBLEU's tests, which it reads from the environment."""
    name = "SACREBLEU_SEED"
    before = os.environ.get(name)
    os.environ[name] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _least_p_value(baseline: Sequence[str], system: Sequence[str]) -> float:
    """Return the least p-value of randomization that the number of different translations allows."""
    n_different = sum(ours != theirs for ours, theirs in zip(baseline, system, strict=True))
    return min(1.0, 2.0 ** (1 - n_different))


def _estimates(
    metric: str, names: list[str], floors: list[float], bootstrap: Sequence[Any], randomization: Sequence[Any]
) -> list[Estimate]:
    """Join the results of both tests, which are instances of ``sacrebleu.significance.Result``."""
    estimates: list[Estimate] = []
    for name, floor, bs, ar in zip(names, floors, bootstrap, randomization, strict=True):
        score, mean, ci = (float(value) for value in (bs.score, bs.mean, bs.ci))
        low, high = interval(metric, mean, ci)
        if not estimates:  # the baseline
            estimates.append(Estimate(name, score, mean, ci, low, high))
            continue
        difference = score - estimates[0].score
        p_bootstrap, p_randomization = (bs.p_value, max(floor, ar.p_value)) if difference else (1.0, 1.0)
        outcome = Outcome.unclear
        if max(p_bootstrap, p_randomization) < ALPHA:
            outcome = Outcome.better if (difference > 0) != (metric.lower() in LOWER_IS_BETTER) else Outcome.worse
        estimates.append(Estimate(name, score, mean, ci, low, high, difference, outcome, p_bootstrap, p_randomization))
    return estimates


def _verdict(comparison: MetricComparison, estimate: Estimate) -> str:
    baseline, metric = comparison.estimates[0].system, comparison.metric
    p_values = (
        f"p = {estimate.p_bootstrap:.2g} by paired bootstrap, {estimate.p_randomization:.2g} by approximate "
        "randomization"
    )
    change = f"{estimate.difference:+.2f} {metric}"
    if estimate.outcome is Outcome.unclear:
        return f"no difference between {estimate.system} and {baseline} can be shown: {change}, {p_values}"
    return f"{estimate.system} is {estimate.outcome} than {baseline}: {change}, {p_values}"


@dataclass(frozen=True)
class SentenceDifference:
    """A sentence that two systems translate differently.

    Attributes:
        index: its place in the test set, from 0.
        scores: the chrF2 of both translations.
        hypotheses: both translations.
    """

    index: int
    scores: tuple[float, float]
    hypotheses: tuple[str, str]

    @property
    def change(self) -> float:
        """The second score minus the first."""
        return self.scores[1] - self.scores[0]


def largest_differences(
    baseline: Sequence[str], system: Sequence[str], references: Sequence[Sequence[str]], n: int
) -> list[SentenceDifference]:
    """Return the ``n`` sentences whose chrF2 differs most, the largest difference first; none that are equal."""
    metric = CHRF()
    differences = []
    for index, (ours, theirs, *targets) in enumerate(zip(baseline, system, *references, strict=True) if n else ()):
        if ours != theirs:
            scores = metric.sentence_score(ours, targets).score, metric.sentence_score(theirs, targets).score
            differences.append(SentenceDifference(index, scores, (ours, theirs)))
    return sorted(differences, key=lambda difference: -abs(difference.change))[:n]
