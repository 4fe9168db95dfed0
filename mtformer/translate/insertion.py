"""Search for translations that contain certain tokens, with any engine: missing tokens are inserted."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

from mtformer.search.engine import SearchRequest
from mtformer.search.hypothesis import Hypothesis
from mtformer.translate.plan import Plan, ask

_MOST_INSERTED = 4  # tokens: a sentence that lacks more becomes another one
_MOST_ADDED = 8  # tokens that a translation may grow by with each
_BEAM_SIZE = 2
_MOST_TOKENS = 1_024  # of all prefixes of a translation that are tried, roughly: of a long one, few are


def plan_with_tokens(
    request: SearchRequest,
    needed: Sequence[int],
    space: int,
    *,
    has_spaces: bool,
    fits: Callable[[Sequence[int]], bool],
) -> Plan[Hypothesis]:
    """Search for a translation that contains certain tokens.

    While tokens are missing, the first missing one is tried at each position, or in a long translation at those around
    where it is expected by its order, and the rest is translated anew with a small beam. The best of these translations
    has the most needed tokens; among equals, it is the likeliest that fits.

    Args:
        request: the sentence.
        needed: the ids of the tokens.
        space: the id of the token for a space, with which each text starts.
        has_spaces: whether a space precedes each of the tokens.
        fits: tells whether the tokens of a translation are acceptable.

    Returns:
        The translation. It lacks some of the tokens if it lacked many, or if each attempt has lost another one.
    """
    options = request.options.updated(beam_size=_BEAM_SIZE, n_best=1, mbr=0)
    request = replace(request, options=options, token_log_probs=True)

    def quality(hypothesis: Hypothesis) -> tuple[int, bool, float]:
        n_found = sum(id in hypothesis.ids for id in needed)
        return n_found, fits(hypothesis.ids), hypothesis.score(options.penalty)

    best = max(chain.from_iterable((yield from ask([request]))), key=quality)
    for _ in range(_MOST_INSERTED):
        missing = [id for id in needed if id not in best.ids]
        if not missing or len(missing) > _MOST_INSERTED:
            break
        prefixes = []
        for place in _places(len(best.ids), needed.index(missing[0]), len(needed)):
            start = best.ids[:place]
            needs_space = (has_spaces or not start) and start[-1:] != [space]
            prefixes.append([*start, *([space] * needs_space), missing[0]])
        limit = min(request.limit, len(best.ids) + _MOST_ADDED)
        results = yield from ask([replace(request, prefix=prefix, limit=limit) for prefix in prefixes])
        best = max(chain.from_iterable(results), key=quality)
    return best


def _places(n_tokens: int, index: int, n_needed: int) -> range:
    """Return the positions in a translation to try the needed token of this index at."""
    n_places = min(n_tokens + 1, max(1, _MOST_TOKENS // max(1, n_tokens)))
    middle = (2 * index + 1) * n_tokens // (2 * n_needed)
    start = min(max(0, middle - n_places // 2), n_tokens + 1 - n_places)
    return range(start, start + n_places)
