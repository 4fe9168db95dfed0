"""The order of the hypotheses of a search: by score or minimum Bayes risk; or as they were drawn."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence

from mtformer.config import SearchOptions
from mtformer.search.engine import Engine, OnDone, SearchRequest, results_of
from mtformer.search.hypothesis import Hypothesis, ranked
from mtformer.support.errors import UserError

_SCALE = 0.5  # of log probabilities in minimum Bayes risk (Tromble et al. 2008); chosen on Multi30k's validation set


def search(
    engine: Engine,
    requests: Sequence[SearchRequest],
    decode: Callable[[list[int]], str],
    *,
    on_done: OnDone | None = None,
) -> list[list[Hypothesis]]:
    """Search for the ``n_best`` best translations of each sentence, as its request's options rank them.

    Args:
        engine: the model.
        requests: the sentences.
        decode: makes a text of the ids of a hypothesis.
        on_done: called with the indices of requests that have been searched for.

    Returns:
        For each request its best hypotheses; see :func:`rank`.

    Raises:
        UserError: the engine cannot do what the options ask for, or a package for it is not installed.
        MtformerError: the model predicts NaN.
    """
    candidates = results_of(engine, requests, on_done=on_done)
    return [rank(request.options, of, decode) for request, of in zip(requests, candidates, strict=True)]


def rank(
    options: SearchOptions, candidates: Sequence[Hypothesis], decode: Callable[[list[int]], str]
) -> list[Hypothesis]:
    """Return the ``n_best`` best of the hypotheses that a search has given for a sentence, best first.

    Samples that are not ranked stay in the order of their numbers, so that the first is one like any other.

    Args:
        options: those of the search.
        candidates: the result of a :class:`SearchRequest`.
        decode: makes a text of the ids of a hypothesis.

    Raises:
        UserError: a package that ``mbr`` needs is not installed.
    """
    if options.mbr:
        ordered = _by_utility(candidates, decode)
    else:
        ordered = list(candidates) if options.sample else ranked(candidates, options.length_penalty)
    return ordered[: options.n_best]


def _by_utility(hypotheses: Sequence[Hypothesis], decode: Callable[[list[int]], str]) -> list[Hypothesis]:
    """Rank hypotheses by their expected chrF; of several with one text, keep the likeliest."""
    texts = [decode(hypothesis.ids) for hypothesis in hypotheses]
    likeliest = max(hypothesis.log_prob for hypothesis in hypotheses)
    weights = [math.exp(_SCALE * (hypothesis.log_prob - likeliest)) for hypothesis in hypotheses]
    best: dict[str, Hypothesis] = {}
    for text, hypothesis, utility in zip(texts, hypotheses, expected_chrf(texts, weights), strict=True):
        if text not in best or hypothesis.log_prob > best[text].log_prob:
            best[text] = hypothesis._replace(utility=utility)
    return ranked(best.values(), 0.0)


def expected_chrf(texts: Sequence[str], weights: Sequence[float]) -> list[float]:
    """Return the mean chrF (0 to 100) of each translation of a source against all of them, weighted.

    Raises:
        UserError: the library that computes chrF is not installed.
    """
    try:
        from fastchrf import pairwise_chrf
    except ImportError:
        raise UserError("mbr needs the package fastchrf: pip install 'mtformer[mbr]'") from None
    of_text: dict[str, float] = defaultdict(float)  # each text is compared once, however often it occurs
    for text, weight in zip(texts, weights, strict=True):
        of_text[text] += weight
    unique = list(of_text)
    [matrix] = pairwise_chrf([unique], [unique])
    total = sum(weights)
    utilities = {
        text: sum(chrf * of_text[compared] for compared, chrf in zip(unique, row, strict=True)) / total
        for text, row in zip(unique, matrix, strict=True)
    }
    return [utilities[text] for text in texts]
