"""Beam search: the K likeliest beginnings are carried on, until K translations have ended."""

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
    device: torch.device | None = None,
) -> list[list[Hypothesis]]:
    """Decode B sentences side by side, each with K = ``beam_size`` beams.

    At each step the 2K likeliest continuations of a sentence's beams are taken. Those among the first K that end in EOS
    are finished; the first K of the others are the next beams. A sentence is done when K hypotheses have finished, and
    then takes no more part, so that neither padding nor its batch mates change what is found.

    Args:
        decoder: at its start, with B rows.
        max_lengths: the most pieces, EOS not counted, a hypothesis may get; then EOS is the only continuation.
        beam_size: K; with 1 the result is that of greedy search.
        alpha: the exponent of the length penalty by which finished hypotheses are ranked.
        device: where the decoder computes.

    Returns:
        For each sentence the finished hypotheses, best first; up to K, at least one.
    """
    k = beam_size
    finished: list[list[Hypothesis]] = [[] for _ in max_lengths]
    active = list(range(len(max_lengths)))  # the sentences still under way, n of them
    limits = torch.tensor(max_lengths, device=device)  # (n,)
    decoder.select(torch.arange(len(active), device=device).repeat_interleave(k))
    prefixes = torch.full((len(active), k, 1), BOS_ID, device=device)  # (n, K, t)
    scores = torch.full((len(active), k), float("-inf"), device=device)  # (n, K) log probabilities
    scores[:, 0] = 0.0  # all beams begin alike: only the first counts
    while active:
        log_probs = decoder.step(prefixes[:, :, -1].flatten()).unflatten(0, (-1, k))  # (n, K, V)
        log_probs = _end_at_limits(log_probs, prefixes.size(2) > limits)
        candidate_scores, beams, tokens = _best_candidates(scores, log_probs, 2 * k)  # (n, 2K) each
        is_eos = tokens == EOS_ID
        _collect_finished(finished, active, prefixes, candidate_scores[:, :k], beams, is_eos[:, :k], alpha)

        next_scores, order = candidate_scores.masked_fill(is_eos, float("-inf")).topk(k)  # (n, K): the live ones
        beams, tokens = beams.gather(1, order), tokens.gather(1, order)
        going_on = [
            row
            for row, alive in enumerate((next_scores[:, 0] > float("-inf")).tolist())
            if alive and len(finished[active[row]]) < k
        ]
        rows = torch.tensor(going_on, dtype=torch.long, device=device)
        active = [active[row] for row in going_on]
        limits, scores, beams, tokens = limits[rows], next_scores[rows], beams[rows], tokens[rows]
        chosen = rows[:, None] * k + beams  # (n, K): the decoder's row that each new beam continues
        decoder.select(chosen.flatten())
        prefixes = torch.cat([prefixes.flatten(0, 1)[chosen], tokens[:, :, None]], dim=2)
    return [sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)[:k] for hypotheses in finished]


def _end_at_limits(log_probs: Tensor, at_limit: Tensor) -> Tensor:
    """Leave EOS as the only continuation of the sentences where ``at_limit`` (n,) is True."""
    eos = log_probs[:, :, EOS_ID].clone()
    log_probs = log_probs.masked_fill(at_limit[:, None, None], float("-inf"))
    log_probs[:, :, EOS_ID] = eos
    return log_probs


def _best_candidates(scores: Tensor, log_probs: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return scores, beams and ids (n, 2K) of the best continuations, best first."""
    v = log_probs.size(-1)
    totals = (scores[:, :, None] + log_probs).flatten(1)  # (n, K·V)
    best, flat = totals.topk(n)
    return best, flat // v, flat % v


def _collect_finished(
    finished: list[list[Hypothesis]],
    active: list[int],
    prefixes: Tensor,
    scores: Tensor,
    beams: Tensor,
    is_eos: Tensor,
    alpha: float,
) -> None:
    """Add to ``finished`` the candidates among the first K that have ended and are possible at all."""
    ended = is_eos & (scores > float("-inf"))
    length = prefixes.size(2)  # BOS and t - 1 pieces, which are as many as the pieces and EOS
    for row, candidate in ended.nonzero().tolist():
        ids = prefixes[row, int(beams[row, candidate]), 1:].tolist()
        log_prob = float(scores[row, candidate])
        finished[active[row]].append(Hypothesis(ids, log_prob, log_prob / length_penalty(length, alpha)))
