"""Minimum Bayes risk decoding (Kumar and Byrne 2004): choose the translation that is most similar to all others."""

from collections import Counter
from collections.abc import Sequence

from mtformer.errors import UserError


def expected_chrf(texts: Sequence[str]) -> list[float]:
    """Return for each of some translations of a source its mean chrF (0 to 100) against all of them.

    If they are samples, this estimates the chrF to expect against a translation that the model may think of (Eikema
    and Aziz 2020, equation 4).

    Raises:
        UserError: the library that computes chrF is not installed.
    """
    try:
        from fastchrf import pairwise_chrf
    except ImportError:
        raise UserError("mbr needs the package fastchrf: pip install 'mtformer[mbr]'") from None
    counts = Counter(texts)  # each text is compared once, however often it was found
    [matrix] = pairwise_chrf([list(counts)], [list(counts)])
    of_text = {
        text: sum(chrf * count for chrf, count in zip(row, counts.values(), strict=True)) / len(texts)
        for text, row in zip(counts, matrix, strict=True)
    }
    return [of_text[text] for text in texts]
