"""Searches for translations that have certain tokens, with any engine: what a translation lacks is inserted."""

from collections.abc import Sequence
from dataclasses import replace

from mtformer.search.engine import SearchRequest
from mtformer.search.hypothesis import Hypothesis
from mtformer.translate.plan import Plan, ask


def plan_with_tokens(request: SearchRequest, needed: Sequence[int], space: int) -> Plan[Hypothesis]:
    """Search for a translation that has certain tokens.

    As long as the translation lacks some, each of these is put at each place of it, and the rest is translated anew,
    greedily. The best of these translations is that with the most needed tokens, and then the likeliest.

    Args:
        request: the sentence.
        needed: the ids of the tokens.
        space: the id of the token for a space, which may have to come before one of them.

    Returns:
        The translation, which lacks some of the tokens if each attempt has lost another one.
    """
    request = replace(request, options=request.options.updated(beam_size=1), token_log_probs=True)
    [[best]] = yield from ask([request])
    for _ in needed:
        missing = [id for id in needed if id not in best.ids]
        if not missing:
            break
        inserted = [ids for id in missing for ids in ([id], [space, id])]
        prefixes = [[*best.ids[:place], *ids] for place in range(len(best.ids) + 1) for ids in inserted]
        found = yield from ask([replace(request, prefix=prefix) for prefix in prefixes])
        best = max((hypothesis for [hypothesis] in found), key=lambda one: _quality(one, needed, request))
    return best


def _quality(hypothesis: Hypothesis, needed: Sequence[int], request: SearchRequest) -> tuple[int, float]:
    return sum(id in hypothesis.ids for id in needed), hypothesis.score(request.options.penalty)
