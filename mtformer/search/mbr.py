"""Minimum Bayes risk decoding (Kumar and Byrne 2004): choose the translation that is most similar to all others."""

from collections import defaultdict
from collections.abc import Sequence

from mtformer.errors import UserError


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
