"""Greedy and beam search on tables small enough to search by hand or exhaustively, and on a real model."""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mtformer.config import ModelConfig
from mtformer.model.transformer import Transformer
from mtformer.search import Hypothesis, TransformerDecoder, beam_search, greedy_search, length_penalty
from mtformer.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID

EOS, A, B, C = EOS_ID, 4, 5, 6
Prefix = tuple[int, ...]  # the pieces so far, BOS left out
Table = dict[Prefix, dict[int, float]]  # the probabilities of the next piece; EOS is certain where nothing is said

# Greedy begins with A, which is likelier than B; but no translation that begins with A is as likely as B alone.
GARDEN_PATH: Table = {
    (): {A: 0.6, B: 0.4},
    (A,): {A: 0.4, EOS: 0.35, B: 0.25},
    (B,): {EOS: 0.9, A: 0.1},
}


class TableDecoder:
    """A decoder whose probabilities stand in a table for each sentence; it notes how many rows each step had."""

    vocab_size = 7

    def __init__(self, *tables: Table) -> None:
        self._tables = tables
        self._rows: list[tuple[int, Prefix]] = [(sentence, ()) for sentence in range(len(tables))]
        self.n_rows: list[int] = []

    def step(self, tokens: Tensor) -> Tensor:
        chosen = [() if token == BOS_ID else (token,) for token in tokens.tolist()]
        self._rows = [(sentence, prefix + own) for (sentence, prefix), own in zip(self._rows, chosen, strict=True)]
        self.n_rows.append(len(self._rows))
        return torch.stack([self.log_probs(sentence, prefix) for sentence, prefix in self._rows])

    def select(self, rows: Tensor) -> None:
        self._rows = [self._rows[row] for row in rows.tolist()]

    def log_probs(self, sentence: int, prefix: Prefix) -> Tensor:
        probabilities = torch.zeros(self.vocab_size)
        for token, probability in self._tables[sentence].get(prefix, {EOS: 1.0}).items():
            probabilities[token] = probability
        return probabilities.log()


class RandomDecoder(TableDecoder):
    """A decoder with random probabilities for every prefix of every sentence."""

    def __init__(self, *seeds: int) -> None:
        super().__init__(*({} for _ in seeds))
        self._seeds = seeds

    def log_probs(self, sentence: int, prefix: Prefix) -> Tensor:
        key = [self._seeds[sentence], *prefix]
        generator = torch.Generator().manual_seed(sum(token * 10**place for place, token in enumerate(key)))
        logits = 1.5 * torch.randn(self.vocab_size, generator=generator)
        logits[[PAD_ID, UNK_ID, BOS_ID]] = -math.inf
        return logits.log_softmax(dim=-1)


def log_prob_of(decoder: TableDecoder, ids: Sequence[int]) -> float:
    return sum(float(decoder.log_probs(0, tuple(ids[:t]))[choice]) for t, choice in enumerate([*ids, EOS]))


def exhaustive_search(decoder: TableDecoder, max_length: int, alpha: float) -> list[Hypothesis]:
    """Score every translation there is, best first."""
    found = []
    for length in range(max_length + 1):
        for ids in product((A, B, C), repeat=length):
            log_prob = log_prob_of(decoder, ids)
            found.append(Hypothesis(list(ids), log_prob, log_prob / ((5 + length + 1) / 6) ** alpha))
    return sorted(found, key=lambda hypothesis: -hypothesis.score)


def make_model(seed: int, **config: Any) -> Transformer:
    """Build a random model whose translations end after a few pieces, sooner or later."""
    torch.manual_seed(seed)
    values = {"d_model": 16, "n_heads": 2, "d_ff": 32, "n_encoder_layers": 1, "n_decoder_layers": 2, **config}
    sizes = ModelConfig.model_validate({"tie_embeddings": False, **values})
    model = Transformer(sizes, src_vocab_size=12, tgt_vocab_size=12, joint=True, max_length=16)
    with torch.no_grad():
        model.output.weight.mul_(2)
    return model.eval()


def sources(*lengths: int) -> tuple[Tensor, Tensor]:
    """Return random sources (B, S) of the given lengths, and their mask."""
    generator = torch.Generator().manual_seed(7)
    src = torch.randint(4, 12, (len(lengths), max(lengths)), generator=generator)
    mask = torch.arange(src.size(1)) < torch.tensor(lengths)[:, None]
    return src.masked_fill(~mask, PAD_ID), mask


def assert_same_hypotheses(ours: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [hypothesis.ids for hypothesis in ours] == [hypothesis.ids for hypothesis in expected]
    for hypothesis, other in zip(ours, expected, strict=True):
        assert hypothesis.log_prob == pytest.approx(other.log_prob, abs=1e-4)
        assert hypothesis.score == pytest.approx(other.score, abs=1e-4)


@pytest.mark.parametrize(
    ("length", "alpha", "expected"), [(1, 3.0, 1.0), (7, 1.0, 2.0), (19, 0.5, 2.0), (13, 2.0, 9.0), (50, 0.0, 1.0)]
)
def test_the_length_penalty_is_that_of_wu_et_al(length: int, alpha: float, expected: float) -> None:
    assert length_penalty(length, alpha) == pytest.approx(expected)


def test_greedy_search_takes_the_likeliest_piece_each_time_until_eos() -> None:
    [found] = greedy_search(TableDecoder(GARDEN_PATH), [10], alpha=1.0)
    assert found.ids == [A, A]
    assert found.log_prob == pytest.approx(math.log(0.6 * 0.4))
    assert found.score == pytest.approx(math.log(0.6 * 0.4) / (8 / 6))


def test_two_beams_find_what_greedy_search_misses() -> None:
    [found] = beam_search(TableDecoder(GARDEN_PATH), [10], beam_size=2, alpha=1.0)
    # [A] alone, of probability 0.21, was only third among the beginnings of two pieces, and two beams carry on two.
    assert_same_hypotheses(
        found,
        [
            Hypothesis([B], math.log(0.4 * 0.9), math.log(0.36) / (7 / 6)),
            Hypothesis([A, A], math.log(0.6 * 0.4), math.log(0.24) / (8 / 6)),
        ],
    )


def test_a_beam_that_ends_makes_room_for_the_next_likeliest() -> None:
    table: Table = {(): {EOS: 0.5, A: 0.3, B: 0.2}, (A,): {A: 0.4, B: 0.3, C: 0.3}}
    [found] = beam_search(TableDecoder(table), [10], beam_size=2, alpha=0.0)
    # [B], of probability 0.2, is carried on beside A though EOS and A were the likeliest two.
    expected = [([], 0.5), ([B], 0.2)]
    assert_same_hypotheses(found, [Hypothesis(ids, math.log(p), math.log(p)) for ids, p in expected])


def test_a_strong_length_penalty_prefers_the_longer_hypothesis() -> None:
    [found] = beam_search(TableDecoder(GARDEN_PATH), [10], beam_size=2, alpha=3.0)
    # ln 0.24 / (8/6)³ = -0.602 is better than ln 0.36 / (7/6)³ = -0.643.
    assert [hypothesis.ids for hypothesis in found] == [[A, A], [B]]
    assert found[0].score == pytest.approx(-0.602, abs=1e-3)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 3.0])
@pytest.mark.parametrize("max_length", [0, 1, 3])
def test_a_beam_as_wide_as_all_prefixes_equals_exhaustive_search(max_length: int, alpha: float) -> None:
    k = 3**max_length
    for seed in range(5):
        expected = exhaustive_search(RandomDecoder(seed), max_length, alpha)
        for n_best in {1, min(k, 3), k}:
            [found] = beam_search(RandomDecoder(seed), [max_length], beam_size=k, n_best=n_best, alpha=alpha)
            assert_same_hypotheses(found, expected[:n_best])


@pytest.mark.parametrize("beam_size", [1, 2, 4])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 3.0])
def test_the_best_score_is_never_below_that_of_greedy_search_on_random_tables(alpha: float, beam_size: int) -> None:
    limits = [seed % 7 for seed in range(300)]
    greedy = greedy_search(RandomDecoder(*range(300)), limits, alpha=alpha)
    beam = beam_search(RandomDecoder(*range(300)), limits, beam_size=beam_size, alpha=alpha)
    worse = [seed for seed in range(300) if beam[seed][0].score < greedy[seed].score - 1e-5]
    assert worse == []
    assert len({len(hypothesis.ids) for hypothesis in greedy}) > 3


def test_a_sentence_goes_on_while_a_beam_may_still_beat_its_finished_hypotheses() -> None:
    # Two bad hypotheses finish first; the best is the one that all beams but one have left behind.
    table: Table = {
        (): {A: 0.5, B: 0.3, EOS: 0.2},
        (A,): {C: 0.8, EOS: 0.2},
        (B,): {EOS: 0.3, A: 0.2, B: 0.2, C: 0.3},
        (A, C): {A: 0.9, B: 0.1},
    }
    decoder = TableDecoder(table)
    [found] = beam_search(decoder, [10], beam_size=2, n_best=2, alpha=0.0)
    assert_same_hypotheses(
        found, [Hypothesis(ids, math.log(p), math.log(p)) for ids, p in [([A, C, A], 0.36), ([], 0.2)]]
    )
    assert len(decoder.n_rows) == 4  # [B, C], the likeliest other beam, has probability 0.09 and cannot win any more


def test_fewer_n_best_are_the_first_of_more_and_need_no_more_steps() -> None:
    for seed in range(60):
        one, all_three = RandomDecoder(seed), RandomDecoder(seed)
        [best] = beam_search(one, [6], beam_size=3, n_best=1, alpha=0.6)
        [found] = beam_search(all_three, [6], beam_size=3, n_best=3, alpha=0.6)
        assert best == found[:1]
        assert len(one.n_rows) <= len(all_three.n_rows)


@pytest.mark.parametrize("config", [{"norm": "post"}, {"norm": "pre", "positions": "learned"}])
def test_the_best_score_is_never_below_that_of_greedy_search_on_a_model(config: dict[str, str]) -> None:
    for seed in range(5):
        model, (src, mask) = make_model(seed, **config), sources(5, 1, 3, 2)
        with torch.inference_mode():
            greedy = greedy_search(TransformerDecoder(model, src, mask), [12, 4, 8, 6], alpha=0.6)
            for k in (1, 2, 4):
                beam = beam_search(TransformerDecoder(model, src, mask), [12, 4, 8, 6], beam_size=k, alpha=0.6)
                assert all(best.score > one.score - 1e-4 for (best, *_), one in zip(beam, greedy, strict=True))


@pytest.mark.parametrize("beam_size", [2, 3, 5])
def test_the_n_best_are_sorted_distinct_and_at_most_as_many_as_the_beams(beam_size: int) -> None:
    for hypotheses in beam_search(RandomDecoder(*range(60)), [6] * 60, beam_size=beam_size, alpha=1.0):
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert 1 <= len(hypotheses) <= beam_size
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(hypothesis.ids) for hypothesis in hypotheses}) == len(hypotheses)


@pytest.mark.parametrize("beam_size", [1, 4])
@torch.inference_mode()
def test_scores_are_what_teacher_forcing_says_of_the_same_pieces(beam_size: int) -> None:
    (src, mask), limits = sources(5, 1, 3, 2), [12, 4, 8, 6]
    model = make_model(3)
    found = beam_search(TransformerDecoder(model, src, mask), limits, beam_size=beam_size, alpha=0.6)
    greedy = greedy_search(TransformerDecoder(model, src, mask), limits, alpha=0.6)
    for row, hypotheses in enumerate(found):
        one, length = slice(row, row + 1), int(mask[row].sum())
        for ids, log_prob, score in [*hypotheses, greedy[row]]:
            tgt_in = torch.tensor([[BOS_ID, *ids]])
            logits = model.project(model(src[one, :length], mask[one, :length], tgt_in))[0]
            logits[:, [PAD_ID, UNK_ID, BOS_ID]] = -math.inf
            expected = logits.log_softmax(dim=-1)[range(len(ids) + 1), [*ids, EOS_ID]].sum().item()
            assert log_prob == pytest.approx(expected, abs=1e-4)
            assert score == pytest.approx(expected / ((5 + len(ids) + 1) / 6) ** 0.6, abs=1e-4)


@pytest.mark.parametrize("beam_size", [0, 1, 4])
def test_padding_and_batch_mates_never_change_what_is_found(beam_size: int) -> None:
    def search(model: Transformer, src: Tensor, mask: Tensor, limits: list[int]) -> list[list[Hypothesis]]:
        decoder = TransformerDecoder(model, src, mask)
        if beam_size == 0:
            return [[best] for best in greedy_search(decoder, limits, alpha=0.6)]
        return beam_search(decoder, limits, beam_size=beam_size, alpha=0.6)

    lengths, limits = [5, 1, 3, 2], [12, 4, 8, 6]
    src, mask = sources(*lengths)
    with torch.inference_mode():
        for seed in range(5):
            model = make_model(seed)
            together = search(model, src, mask, limits)
            for row, length in enumerate(lengths):
                one = slice(row, row + 1)
                [alone] = search(model, src[one, :length], mask[one, :length], limits[one])
                assert_same_hypotheses(together[row], alone)


def test_finished_sentences_leave_the_batch() -> None:
    at_once: Table = {(): {EOS: 0.9, A: 0.1}}
    after_two: Table = {(): {A: 0.9, EOS: 0.1}, (A,): {B: 1.0}}
    decoder = TableDecoder(at_once, after_two, at_once, GARDEN_PATH)
    greedy = greedy_search(decoder, [10] * 4)
    assert [hypothesis.ids for hypothesis in greedy] == [[], [A, B], [], [A, A]]
    assert decoder.n_rows == [4, 2, 2]

    tables = [at_once, GARDEN_PATH, after_two, GARDEN_PATH]
    decoder = TableDecoder(*tables)
    together = beam_search(decoder, [10] * 4, beam_size=2)
    assert decoder.n_rows == [8, 8, 6]  # the first has its two at the second step; the others end at the third
    for table, hypotheses in zip(tables, together, strict=True):
        assert [hypotheses] == beam_search(TableDecoder(table), [10], beam_size=2)


@pytest.mark.parametrize("beam_size", [0, 1, 3])
def test_each_sentence_is_ended_by_eos_at_its_own_limit(beam_size: int) -> None:
    next_pieces = {A: 0.9, B: 0.06, C: 0.03, EOS: 0.01}
    endless: Table = {prefix: next_pieces for length in range(6) for prefix in product((A, B, C), repeat=length)}
    limits = [3, 0, 5, 1]
    decoder = TableDecoder(*[endless] * 4)
    if beam_size == 0:
        found = greedy_search(decoder, limits)
    else:
        found = [best for best, *_ in beam_search(decoder, limits, beam_size=beam_size, alpha=3.0)]
    assert [hypothesis.ids for hypothesis in found] == [[A] * limit for limit in limits]
    for hypothesis, limit in zip(found, limits, strict=True):
        assert hypothesis.log_prob == pytest.approx(limit * math.log(0.9) + math.log(0.01), abs=1e-5)


def test_pad_unk_and_bos_are_never_chosen_even_if_the_model_prefers_them() -> None:
    model, (src, mask) = make_model(1, norm="pre"), sources(4, 2)
    assert isinstance(model.decoder_norm, nn.LayerNorm)
    with torch.no_grad():
        model.decoder_norm.weight.zero_()
        model.decoder_norm.bias.fill_(1.0)  # the logits are now the sums of the rows of the output matrix
        model.output.weight[[PAD_ID, UNK_ID, BOS_ID]] = 1.0
        model.output.weight[[EOS_ID]] = -0.1
        log_probs = TransformerDecoder(model, src, mask).step(torch.tensor([BOS_ID, BOS_ID]))
        found = beam_search(TransformerDecoder(model, src, mask), [6, 6], beam_size=3)
        greedy = greedy_search(TransformerDecoder(model, src, mask), [6, 6])
    assert (log_probs[:, [PAD_ID, UNK_ID, BOS_ID]] == -math.inf).all()
    torch.testing.assert_close(log_probs.logsumexp(dim=-1), torch.zeros(2))
    chosen = {piece for hypotheses in [*found, greedy] for hypothesis in hypotheses for piece in hypothesis.ids}
    assert chosen and chosen.isdisjoint({PAD_ID, UNK_ID, BOS_ID, EOS_ID})
