"""Diverse beam search (Vijayakumar et al. 2018)."""

from collections.abc import Sequence

from torch import Tensor

from mtformer.config import SearchOptions
from mtformer.search.beam import Beams, Likeliest, beam_search
from mtformer.search.decoder import Decoder
from mtformer.search.hypothesis import Hypothesis, ranked
from mtformer.search.observer import Candidates
from mtformer.search.processors import Prefixes, Processor
from mtformer.text.tokenizer.tokenizer import EOS_ID


def diverse_search(
    decoder: Decoder, limits: Sequence[int], options: SearchOptions, processors: Sequence[Processor]
) -> list[list[Hypothesis]]:
    """Decode B sentences side by side, each with G = ``options.beam_groups`` groups of beams.

    Args:
        decoder: at its start, with B·G sentences: each G times in a row.
        limits: the maximum length of the hypotheses of each of these in tokens, EOS not counted.
        options: the groups, the beams of all of them together, and how many hypotheses to find.
        processors: for the B·G sentences; see :func:`beam_search`.

    Returns:
        For each of the B sentences the best hypotheses of all groups, each of them once: at least one, at most
        ``options.n_candidates``.

    Raises:
        MtformerError: the model predicts NaN, or no hypothesis is possible.
    """
    n_groups = options.beam_groups
    selection = Diverse(len(limits) // n_groups, n_groups, options.beam_size // n_groups, options.diversity)
    of_each = options.model_copy(
        update={"n_best": -(-options.n_candidates // n_groups), "mbr": 0, "coverage_penalty": 0.0}
    )
    found = beam_search(decoder, limits, of_each, processors, selection=selection)
    sentences = (found[start : start + n_groups] for start in range(0, len(found), n_groups))
    unique = ({tuple(one.ids): one for group in groups for one in group}.values() for groups in sentences)
    return [ranked(hypotheses, options.length_penalty)[: options.n_candidates] for hypotheses in unique]


class Diverse:
    """A :class:`Selection` for G groups of beams of each sentence, which the search takes for G sentences.

    The groups of a step choose in turn. Each subtracts from the log probability of a token ``strength`` for every beam
    of the groups before it that takes this token now (the Hamming diversity of section 4 of the paper). This decides
    what goes on; the log probabilities of the hypotheses remain those of the model, so that a group ends as exactly as
    a plain search does. The first group is a plain search.
    """

    def __init__(self, n_sentences: int, n_groups: int, group_size: int, strength: float) -> None:
        """Start the groups.

        Args:
            n_sentences: B.
            n_groups: G; those of sentence b are sentences b·G to b·G + G - 1 of the search.
            group_size: K, the beams of a group.
            strength: what a token costs for each beam that has taken it.
        """
        self.beam_size = group_size
        self._n_sentences, self._n_groups, self._strength = n_sentences, n_groups, strength
        self._likeliest = Likeliest(group_size)

    def select(self, beams: Beams, log_probs: Tensor) -> tuple[Candidates, Tensor]:
        """Choose for one group after the other."""
        k, v = log_probs.shape[1:]
        groups = beams.prefixes.sentences  # (n,): those that have not ended
        sentences = groups // self._n_groups
        taken = log_probs.new_zeros(self._n_sentences, v)  # how many beams have taken each token
        candidates = Candidates(*(values.new_empty(len(groups), 2 * k) for values in _likes(log_probs, groups)))
        order = groups.new_empty(len(groups), k)
        for group in range(self._n_groups):
            rows = (groups % self._n_groups == group).nonzero()[:, 0]
            cost = self._strength * taken[sentences[rows]]  # (r, V)
            part, order[rows] = self._likeliest.select(_part(beams, rows), log_probs[rows] - cost[:, None])
            token_log_probs = log_probs[rows[:, None], part.beams, part.tokens]  # (r, 2K)
            totals = beams.log_probs[rows[:, None], part.beams] + token_log_probs
            part = part._replace(log_probs=totals, token_log_probs=token_log_probs)
            for whole, values in zip(candidates, part, strict=True):
                whole[rows] = values
            tokens, totals = part.tokens.gather(1, order[rows]), totals.gather(1, order[rows])  # (r, K)
            goes_on = (tokens != EOS_ID) & (totals > float("-inf"))
            taken.index_put_((sentences[rows, None].expand_as(tokens), tokens), goes_on.to(taken), accumulate=True)
        return candidates, order


def _likes(log_probs: Tensor, ids: Tensor) -> Candidates:
    """Return tensors of the types that candidates have."""
    return Candidates(log_probs=log_probs, beams=ids, tokens=ids, token_log_probs=log_probs)


def _part(beams: Beams, rows: Tensor) -> Beams:
    """Return the beams of some sentences."""
    prefixes = Prefixes(beams.prefixes.ids[rows], beams.prefixes.sentences[rows])
    return Beams(prefixes, beams.token_log_probs[rows], beams.log_probs[rows])
