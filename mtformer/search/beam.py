"""Beam search: at each step, continue the K likeliest prefixes of every sentence."""

from bisect import insort
from collections.abc import Sequence

import torch
from torch import Tensor

from mtformer.search.decoder import Decoder
from mtformer.search.hypothesis import Hypothesis, length_penalty
from mtformer.text.tokenizer import BOS_ID, EOS_ID


def beam_search(
    decoder: Decoder,
    max_lengths: Sequence[int],
    *,
    beam_size: int,
    alpha: float = 0.6,
    n_best: int | None = None,
    device: torch.device | None = None,
) -> list[list[Hypothesis]]:
    """Decode B sentences side by side, each with K = ``beam_size`` beams.

    Each step takes the 2K likeliest continuations of a sentence's beams. Those that end in EOS are finished; the first
    K of the others are the next beams. A sentence ends when no beam can still lead to one of its ``n_best`` best
    hypotheses, and then leaves the batch. If K is at least the number of prefixes of any length, the search is
    exhaustive.

    The greedy prefix always counts as the likeliest, so that the best score is never below that of greedy search,
    which plain beam search does not guarantee: it may drop the greedy prefix for others that prove worse later.

    Args:
        decoder: at its start, with B rows.
        max_lengths: the maximum length of each sentence's hypotheses in tokens, EOS not counted.
        beam_size: K.
        alpha: the exponent of the length penalty that ranks finished hypotheses.
        n_best: how many hypotheses to return for each sentence, at most K; K by default.
        device: where the decoder computes.

    Returns:
        For each sentence its finished hypotheses, best first: at least one, at most ``n_best``.
    """
    k = beam_size
    n_best = n_best or k
    finished: list[list[Hypothesis]] = [[] for _ in max_lengths]
    active = list(range(len(max_lengths)))  # the n sentences that have not ended
    limits = torch.tensor(max_lengths, device=device)  # (n,)
    decoder.select(torch.arange(len(active), device=device).repeat_interleave(k))
    prefixes = torch.full((len(active), k, 1), BOS_ID, device=device)  # (n, K, t)
    scores = torch.full((len(active), k), float("-inf"), device=device)  # (n, K) log probabilities
    scores[:, 0] = 0.0  # all beams start alike: only the first counts
    has_greedy = torch.ones_like(limits, dtype=torch.bool)  # (n,) the first beam is the greedy prefix
    while active:
        log_probs = decoder.step(prefixes[:, :, -1].flatten()).unflatten(0, (-1, k))  # (n, K, V)
        log_probs = _end_at_limits(log_probs, prefixes.size(2) > limits)
        candidate_scores, beams, tokens = _best_candidates(scores, log_probs, 2 * k, has_greedy)  # (n, 2K) each
        is_eos = tokens == EOS_ID
        _collect_finished(finished, active, prefixes, candidate_scores, beams, is_eos, alpha)

        order = is_eos.byte().argsort(dim=1, stable=True)[:, :k]  # (n, K) the first K that do not end in EOS
        next_scores = candidate_scores.masked_fill(is_eos, float("-inf")).gather(1, order)
        has_greedy &= ~is_eos[:, 0]
        going_on = [
            row
            for row, best in enumerate(next_scores.max(dim=1).values.tolist())
            if _can_improve(finished[active[row]], best, max_lengths[active[row]], n_best, alpha)
        ]
        rows = torch.tensor(going_on, dtype=torch.long, device=device)
        active = [active[row] for row in going_on]
        beams, tokens = beams.gather(1, order)[rows], tokens.gather(1, order)[rows]
        limits, scores, has_greedy = limits[rows], next_scores[rows], has_greedy[rows]
        chosen = rows[:, None] * k + beams  # (n, K): the decoder's row that each new beam continues
        decoder.select(chosen.flatten())
        prefixes = torch.cat([prefixes.flatten(0, 1)[chosen], tokens[:, :, None]], dim=2)
    return [hypotheses[:n_best] for hypotheses in finished]


def _end_at_limits(log_probs: Tensor, at_limit: Tensor) -> Tensor:
    """Leave EOS as the only continuation of the sentences where ``at_limit`` (n,) is True."""
    eos = log_probs[:, :, EOS_ID].clone()
    log_probs = log_probs.masked_fill(at_limit[:, None, None], float("-inf"))
    log_probs[:, :, EOS_ID] = eos
    return log_probs


def _best_candidates(scores: Tensor, log_probs: Tensor, n: int, has_greedy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return scores, beams and ids (n, 2K) of the best continuations: the greedy one, then the others, best first."""
    v = log_probs.size(-1)
    totals = (scores[:, :, None] + log_probs).flatten(1)  # (n, K·V)
    greedy_score, greedy = totals[:, :v].max(dim=1, keepdim=True)  # (n, 1)
    rank = greedy_score.masked_fill(has_greedy[:, None], float("inf"))
    best, flat = totals.scatter_(1, greedy, rank).topk(n)
    best[:, :1] = torch.where(has_greedy[:, None], greedy_score, best[:, :1])
    return best, flat // v, flat % v


def _can_improve(finished: list[Hypothesis], log_prob: float, max_length: int, n_best: int, alpha: float) -> bool:
    """Tell whether the likeliest beam, of ``log_prob``, may still lead to one of the ``n_best`` best hypotheses.

    What it leads to is not likelier, and no longer than ``max_length``: its score is at most the log probability of
    the beam over the penalty of that length.
    """
    if log_prob == float("-inf") or len(finished) < n_best:
        return log_prob > float("-inf")
    return log_prob / length_penalty(max_length + 1, alpha) > finished[n_best - 1].score


def _collect_finished(
    finished: list[list[Hypothesis]],
    active: list[int],
    prefixes: Tensor,
    scores: Tensor,
    beams: Tensor,
    is_eos: Tensor,
    alpha: float,
) -> None:
    """Insert into ``finished``, best first, the candidates that end in EOS and are possible at all."""
    ended = is_eos & (scores > float("-inf"))
    length = prefixes.size(2)  # of tokens and EOS: prefixes hold BOS, but not EOS
    for row, candidate in ended.nonzero().tolist():
        ids = prefixes[row, int(beams[row, candidate]), 1:].tolist()
        log_prob = float(scores[row, candidate])
        hypothesis = Hypothesis(ids, log_prob, log_prob / length_penalty(length, alpha))
        insort(finished[active[row]], hypothesis, key=lambda other: -other.score)
