"""What a search finds, in order: by score, coverage or minimum Bayes risk; or as it was drawn."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence

from mtformer.config import SearchOptions
from mtformer.search.engine import Engine, Request
from mtformer.search.hypothesis import Hypothesis, length_penalty, ranked
from mtformer.support.errors import UserError

_SCALE = 0.5  # of log probabilities in minimum Bayes risk (Tromble et al. 2008); chosen on Multi30k's validation set
_LEAST_COVERAGE = 1e-9  # of a token that nothing attends to: its logarithm is finite


def search(
    engine: Engine,
    requests: Sequence[Request],
    options: SearchOptions,
    decode: Callable[[list[int]], str],
    *,
    on_batch: Callable[[Sequence[int]], object] | None = None,
) -> list[list[Hypothesis]]:
    """Search for the ``n_best`` best translations of each sentence, and rank them.

    Args:
        engine: the model.
        requests: the sentences.
        options: how to search, and how to rank what is found.
        decode: makes a text of the ids of a hypothesis.
        on_batch: called with the indices of requests that have been translated.

    Returns:
        For each request at least one and at most ``options.n_best`` hypotheses, best first. Samples that are not ranked
        stay in the order of their numbers, so that the first is one like any other.

    Raises:
        UserError: the engine cannot do what ``options`` ask for, or a package for it is not installed.
        MtformerError: the model predicts NaN.
    """
    of_engine = options.model_copy(update={"n_best": options.n_candidates, "mbr": 0, "coverage_penalty": 0.0})
    found = engine.translate(requests, of_engine, on_batch=on_batch)
    if options.mbr:
        found = [_by_utility(hypotheses, decode, 0.0 if options.sample else _SCALE) for hypotheses in found]
    elif not options.sample:
        if options.coverage_penalty:
            found = _with_coverage(engine, requests, found, options)
        found = [ranked(hypotheses, options.length_penalty) for hypotheses in found]
    return [hypotheses[: options.n_best] for hypotheses in found]


def _by_utility(hypotheses: Sequence[Hypothesis], decode: Callable[[list[int]], str], scale: float) -> list[Hypothesis]:
    """Rank hypotheses by their expected chrF; of several with one text, keep the likeliest.

    Each counts with its probability to the power of ``scale``; samples are as frequent as they are probable already.
    """
    texts = [decode(hypothesis.ids) for hypothesis in hypotheses]
    likeliest = max(hypothesis.log_prob for hypothesis in hypotheses)
    weights = [math.exp(scale * (hypothesis.log_prob - likeliest)) for hypothesis in hypotheses]
    best: dict[str, Hypothesis] = {}
    for text, hypothesis, utility in zip(texts, hypotheses, expected_chrf(texts, weights), strict=True):
        if text not in best or hypothesis.log_prob > best[text].log_prob:
            best[text] = hypothesis._replace(utility=utility)
    return ranked(best.values(), 0.0)


def _with_coverage(
    engine: Engine, requests: Sequence[Request], found: Sequence[Sequence[Hypothesis]], options: SearchOptions
) -> list[list[Hypothesis]]:
    """Add to each penalty what the score must lose for the coverage penalty of Wu et al. 2016, equation 14.

    Attention is what :meth:`Engine.align` gives; the source's EOS need not be covered.
    """
    sources = [request.src for request, hypotheses in zip(requests, found, strict=True) for _ in hypotheses]
    weights = iter(engine.align(sources, [hypothesis.ids for hypotheses in found for hypothesis in hypotheses]))

    def penalized(hypothesis: Hypothesis) -> Hypothesis:
        covered = next(weights)[:, :-1].sum(axis=0).clip(_LEAST_COVERAGE, 1.0)  # (S - 1,)
        cost = -options.coverage_penalty * sum(map(math.log, covered.tolist()))
        scale = length_penalty(len(hypothesis.token_log_probs), options.length_penalty)
        return hypothesis._replace(penalty=hypothesis.penalty + cost * scale)

    return [[penalized(hypothesis) for hypothesis in hypotheses] for hypotheses in found]


def expected_chrf(texts: Sequence[str], weights: Sequence[float]) -> list[float]:
    """Return for each of some translations of a source its mean chrF (0 to 100) against all of them, weighted.

    With samples and equal weights, this estimates the chrF to expect against what the model would say (Eikema and Aziz
    2020, equation 4).

    Raises:
        UserError: the library that computes chrF is not installed.
    """
    try:
        from fastchrf import pairwise_chrf
    except ImportError:
        raise UserError("mbr needs the package fastchrf: pip install 'mtformer[mbr]'") from None
    of_text: dict[str, float] = defaultdict(float)  # each text is compared once, however often it was found
    for text, weight in zip(texts, weights, strict=True):
        of_text[text] += weight
    unique = list(of_text)
    [matrix] = pairwise_chrf([unique], [unique])
    total = sum(weights)
    utilities = {
        text: sum(chrf * of_text[other] for other, chrf in zip(unique, row, strict=True)) / total
        for text, row in zip(unique, matrix, strict=True)
    }
    return [utilities[text] for text in texts]
