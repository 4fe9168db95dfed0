"""Greedy and beam search on tables small enough to search by hand or exhaustively, and on a real model."""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
import torch
from conftest import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from engines import candidates, request, score
from torch import Tensor, nn

from mtformer.config import ModelConfig, SearchOptions
from mtformer.config.search import LengthPenalty
from mtformer.engines.torch import TorchEngine
from mtformer.model.architecture import SPECIAL_IDS
from mtformer.model.transformer import Transformer
from mtformer.search.beam import beam_search
from mtformer.search.candidates import likeliest
from mtformer.search.engine import SearchRequest
from mtformer.search.greedy import greedy_search
from mtformer.search.hypothesis import Hypothesis, ranked
from mtformer.search.processors import EndAtLimits, ForcePrefixes, NeverChoose, Processor
from mtformer.support.errors import MtformerError

EOS, A, B, C = EOS_ID, 4, 5, 6
Prefix = tuple[int, ...]  # the tokens so far, BOS left out
Table = dict[Prefix, dict[int, float]]  # the probabilities of the next token; EOS is certain where nothing is said

# Greedy begins with A, which is likelier than B; but no translation that begins with A is as likely as B alone.
GARDEN_PATH: Table = {
    (): {A: 0.6, B: 0.4},
    (A,): {A: 0.4, EOS: 0.35, B: 0.25},
    (B,): {EOS: 0.9, A: 0.1},
}


class TableDecoder:
    """A decoder whose probabilities stand in a table for each sentence; it notes how many rows each step had."""

    device = torch.device("cpu")
    special_ids = SPECIAL_IDS
    vocab_size = 7

    def __init__(self, *tables: Table) -> None:
        self._tables = tables
        self._rows: list[list[tuple[int, Prefix]]] = [[(sentence, ())] for sentence in range(len(tables))]  # n times K
        self.n_rows: list[int] = []

    def __len__(self) -> int:
        """The number of sentences at the start."""
        return len(self._tables)

    def step(self, tokens: Tensor) -> Tensor:
        chosen = iter(() if token == BOS_ID else (token,) for token in tokens.tolist())
        self._rows = [[(sentence, prefix + next(chosen)) for sentence, prefix in beams] for beams in self._rows]
        self.n_rows.append(len(tokens))
        return torch.stack([self.log_probs(sentence, prefix) for beams in self._rows for sentence, prefix in beams])

    def select(self, sentences: Tensor, beams: Tensor) -> None:
        assert len(set(sentences.tolist())) == len(sentences)
        chosen = zip(sentences.tolist(), beams.tolist(), strict=True)
        self._rows = [[self._rows[sentence][beam] for beam in row] for sentence, row in chosen]

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


def greedy(decoder: TableDecoder, limits: Sequence[int]) -> list[Hypothesis]:
    return greedy_search(decoder, len(limits), rules(limits))


def beam(
    decoder: TableDecoder,
    limits: Sequence[int],
    *,
    beam_size: int,
    n_best: int | None = None,
    alpha: float = 0.6,
    offset: int = 5,
) -> list[list[Hypothesis]]:
    options = SearchOptions(
        beam_size=beam_size, n_best=n_best or beam_size, length_penalty=alpha, length_penalty_offset=offset
    )
    return beam_search(decoder, limits, options, rules(limits))


def rules(limits: Sequence[int]) -> list[Processor]:
    cpu = torch.device("cpu")
    return [NeverChoose([PAD_ID, UNK_ID, BOS_ID], cpu), EndAtLimits(limits, EOS_ID, cpu)]


def of_probabilities(ids: Sequence[int], *probabilities: float) -> Hypothesis:
    """Return the hypothesis of ``ids`` with the probabilities of its tokens and of EOS."""
    return Hypothesis(list(ids), [math.log(probability) for probability in probabilities])


def exhaustive_search(decoder: TableDecoder, max_length: int, alpha: float) -> list[Hypothesis]:
    """Score every translation there is, best first."""
    found = []
    for length in range(max_length + 1):
        for ids in product((A, B, C), repeat=length):
            choices = enumerate([*ids, EOS])
            found.append(Hypothesis(list(ids), [float(decoder.log_probs(0, ids[:t])[choice]) for t, choice in choices]))
    return sorted(found, key=lambda h: -h.log_prob / ((5 + len(h.ids) + 1) / 6) ** alpha)


def beam_search_of_transformers(decoder: TableDecoder, limit: int, beam_size: int, alpha: float) -> list[Hypothesis]:
    """Return the K best that a beam search finishes by the rules of transformers' ``GenerationMixin._beam_search``."""
    beams, finished = [Hypothesis([], [])], list[Hypothesis]()
    for length in range(limit + 1):
        candidates = [
            Hypothesis([*one.ids, token], [*one.token_log_probs, float(log_prob)])
            for one in beams
            for token, log_prob in enumerate(decoder.log_probs(0, tuple(one.ids)))
            if log_prob > -math.inf and (token == EOS or length < limit)
        ]
        candidates = sorted(candidates, key=lambda one: -one.log_prob)[: 2 * beam_size]
        ended = [Hypothesis(one.ids[:-1], one.token_log_probs) for one in candidates[:beam_size] if one.ids[-1] == EOS]
        finished = ranked([*finished, *ended], LengthPenalty(alpha))[:beam_size]
        beams = [one for one in candidates if one.ids[-1] != EOS][:beam_size]
        if len(finished) == beam_size and beams:  # improvement is possible only if the best beam is better as it is
            best, worst = beams[0].score(LengthPenalty(alpha)), finished[-1].score(LengthPenalty(alpha))
            if best <= worst:
                break
    return finished


def make_model(seed: int, **config: Any) -> Transformer:
    """Build a random model whose translations end after a few tokens, sooner or later."""
    torch.manual_seed(seed)
    values = {"d_model": 16, "n_heads": 2, "d_ff": 32, "n_encoder_layers": 1, "n_decoder_layers": 2, **config}
    sizes = ModelConfig.model_validate({"tie_embeddings": False, **values})
    model = Transformer(sizes.architecture(src_vocab_size=12, tgt_vocab_size=12, joint=True, max_length=16))
    with torch.no_grad():
        model.output.weight.mul_(2)
    return model.eval()


def assert_same_hypotheses(ours: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [hypothesis.ids for hypothesis in ours] == [hypothesis.ids for hypothesis in expected]
    for hypothesis, other in zip(ours, expected, strict=True):
        assert hypothesis.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-4)


@pytest.mark.parametrize(
    ("length", "alpha", "expected"), [(1, 3.0, 1.0), (7, 1.0, 2.0), (19, 0.5, 2.0), (13, 2.0, 9.0), (50, 0.0, 1.0)]
)
def test_the_length_penalty_is_that_of_wu_et_al(length: int, alpha: float, expected: float) -> None:
    assert LengthPenalty(alpha, 5)(length) == pytest.approx(expected)


def test_without_an_offset_the_length_itself_divides_scores() -> None:
    assert [LengthPenalty(1.0)(7), LengthPenalty(2.0)(3), LengthPenalty(1.0, 1)(7)] == [7.0, 9.0, 4.0]
    short, long = Hypothesis([1], [-0.4, -0.6]), Hypothesis([1, 1, 1], [-0.5, -0.5, -0.5, -0.4])
    assert ranked([long, short], LengthPenalty(1.0, 5)) == [short, long]  # -1.0 / (7/6), -1.9 / (9/6)
    assert ranked([short, long], LengthPenalty(1.0)) == [long, short]  # -1.0 / 2, -1.9 / 4


def test_hypotheses_are_ranked_by_score_and_equal_ones_by_their_ids() -> None:
    first, second, best = (
        of_probabilities([A, C], 0.5, 0.5, 1.0),
        of_probabilities([B], 0.5, 0.5),
        of_probabilities([C], 1, 1),
    )
    assert ranked([second, best, first], LengthPenalty(0.0)) == [best, first, second]
    assert ranked([second, first], LengthPenalty(1.0, 5)) == [first, second]
    assert first.log_prob == pytest.approx(math.log(0.25))
    assert first.score(LengthPenalty(1.0, 5)) == pytest.approx(math.log(0.25) / (8 / 6))


def test_greedy_search_takes_the_likeliest_token_each_time_until_eos() -> None:
    assert_same_hypotheses(greedy(TableDecoder(GARDEN_PATH), [10]), [of_probabilities([A, A], 0.6, 0.4, 1.0)])


def test_two_beams_find_what_greedy_search_misses() -> None:
    [found] = beam(TableDecoder(GARDEN_PATH), [10], beam_size=2, alpha=1.0)
    assert_same_hypotheses(found, [of_probabilities([B], 0.4, 0.9), of_probabilities([A, A], 0.6, 0.4, 1.0)])


def test_a_beam_that_ends_makes_room_for_the_next_likeliest() -> None:
    table: Table = {(): {EOS: 0.5, A: 0.3, B: 0.2}, (A,): {A: 0.4, B: 0.3, C: 0.3}}
    [found] = beam(TableDecoder(table), [10], beam_size=2, alpha=0.0)
    # [B], of probability 0.2, continues beside A though EOS and A were the likeliest two.
    assert_same_hypotheses(found, [of_probabilities([], 0.5), of_probabilities([B], 0.2, 1.0)])


@pytest.mark.parametrize(("beam_size", "expected"), [(2, [B]), (3, [])])
def test_eos_ends_a_translation_only_among_the_k_likeliest(beam_size: int, expected: list[int]) -> None:
    # EOS is the third likeliest at first. [], of probability 0.3, would beat [B] and [A], of 0.34 * 0.8 and 0.36 * 0.5.
    table: Table = {(): {A: 0.36, B: 0.34, EOS: 0.3}, (A,): {EOS: 0.5, C: 0.5}, (B,): {EOS: 0.8, C: 0.2}}
    [[best]] = beam(TableDecoder(table), [10], beam_size=beam_size, n_best=1, alpha=0.0)
    assert best.ids == expected


def test_a_search_ends_when_k_are_finished_and_no_beam_is_better_as_it_is() -> None:
    # [A] and [B] are finished after two steps, with scores of ln 0.3 / 2 = -0.60 and ln 0.2 / 2 = -0.80. The best beam,
    # [A, C] of probability 0.19, has ln 0.19 / 2 = -0.83, though it leads to [A, C, C, C] with ln 0.19 / 5 = -0.33.
    table: Table = {
        (): {A: 0.6, B: 0.4},
        (A,): {EOS: 0.5, C: 0.19 / 0.6, A: 0.11 / 0.6},
        (B,): {EOS: 0.5, C: 0.4, A: 0.1},
        **{(A, *[C] * n): {C: 1.0} for n in (1, 2)},
    }
    decoder = TableDecoder(table)
    options = SearchOptions(beam_size=2, n_best=1, length_penalty=1.0, length_penalty_offset=0)
    [[best]] = beam_search(decoder, [20], options, rules([20]))
    assert best.ids == [A]
    assert len(decoder.n_rows) == 2


def test_a_strong_length_penalty_prefers_the_longer_hypothesis() -> None:
    [found] = beam(TableDecoder(GARDEN_PATH), [10], beam_size=2, alpha=3.0)
    # ln 0.24 / (8/6)³ = -0.602 is better than ln 0.36 / (7/6)³ = -0.643.
    assert [hypothesis.ids for hypothesis in found] == [[A, A], [B]]
    assert found[0].score(LengthPenalty(3.0, 5)) == pytest.approx(-0.602, abs=1e-3)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 3.0])
@pytest.mark.parametrize("max_length", [0, 1, 3])
def test_a_beam_as_wide_as_all_translations_equals_exhaustive_search(max_length: int, alpha: float) -> None:
    k = sum(3**length for length in range(max_length + 1))
    for seed in range(5):
        expected = exhaustive_search(RandomDecoder(seed), max_length, alpha)
        for n_best in {1, min(k, 3), k}:
            [found] = beam(RandomDecoder(seed), [max_length], beam_size=k, n_best=n_best, alpha=alpha)
            assert_same_hypotheses(found, expected[:n_best])


@pytest.mark.parametrize("beam_size", [1, 2, 4])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 3.0])
def test_the_search_finds_what_that_of_transformers_finds(alpha: float, beam_size: int) -> None:
    limits = [seed % 7 for seed in range(100)]
    together = beam(RandomDecoder(*range(100)), limits, beam_size=beam_size, n_best=1, alpha=alpha, offset=0)
    for seed, [best] in enumerate(together):
        expected = beam_search_of_transformers(RandomDecoder(seed), limits[seed], beam_size, alpha)
        assert_same_hypotheses([best], expected[:1])
    assert len({len(best.ids) for [best] in together}) > 2


def test_one_beam_is_never_worse_than_greedy_search() -> None:
    limits = [seed % 7 for seed in range(300)]
    expected = greedy(RandomDecoder(*range(300)), limits)
    found = beam(RandomDecoder(*range(300)), limits, beam_size=1)
    assert all(
        best.score(LengthPenalty(0.6, 5)) > one.score(LengthPenalty(0.6, 5)) - 1e-5
        for [best], one in zip(found, expected, strict=True)
    )


def test_a_sentence_goes_on_while_a_beam_may_still_beat_its_finished_hypotheses() -> None:
    # Two bad hypotheses finish first, [] and [A] of probability 0.1; the best is what the likeliest beam leads to.
    table: Table = {
        (): {A: 0.5, EOS: 0.3, B: 0.2},
        (A,): {C: 0.8, EOS: 0.2},
        (B,): {EOS: 0.3, A: 0.2, B: 0.2, C: 0.3},
        (A, C): {A: 0.9, B: 0.1},
    }
    decoder = TableDecoder(table)
    [found] = beam(decoder, [10], beam_size=2, n_best=2, alpha=0.0)
    assert_same_hypotheses(found, [of_probabilities([A, C, A], 0.5, 0.8, 0.9, 1.0), of_probabilities([], 0.3)])
    assert len(decoder.n_rows) == 4


def test_fewer_n_best_are_the_first_of_more_and_need_no_more_steps() -> None:
    for seed in range(60):
        one, all_three = RandomDecoder(seed), RandomDecoder(seed)
        [best] = beam(one, [6], beam_size=3, n_best=1)
        [found] = beam(all_three, [6], beam_size=3, n_best=3)
        assert best == found[:1]
        assert len(one.n_rows) <= len(all_three.n_rows)


def test_equal_hypotheses_come_in_the_same_order_alone_and_in_a_batch() -> None:
    even: Table = {
        prefix: {A: 0.25, B: 0.25, C: 0.25, EOS: 0.25} for t in range(3) for prefix in product((A, B, C), repeat=t)
    }
    [alone] = beam(TableDecoder(even), [2], beam_size=12)
    assert [hypothesis.ids for hypothesis in alone[:4]] == [[], [A], [B], [C]]
    assert [hypothesis.ids for hypothesis in alone[4:]] == [list(ids) for ids in product((A, B, C), repeat=2)][:8]
    for together in beam(TableDecoder(even, GARDEN_PATH, even), [2, 5, 2], beam_size=12)[::2]:
        assert together == alone


@pytest.mark.parametrize("beam_size", [2, 3, 5])
def test_the_n_best_are_sorted_distinct_and_at_most_as_many_as_the_beams(beam_size: int) -> None:
    for hypotheses in beam(RandomDecoder(*range(60)), [6] * 60, beam_size=beam_size, alpha=1.0):
        scores = [hypothesis.score(LengthPenalty(1.0, 5)) for hypothesis in hypotheses]
        assert 1 <= len(hypotheses) <= beam_size
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(hypothesis.ids) for hypothesis in hypotheses}) == len(hypotheses)


def requests(sources: Sequence[Sequence[int]], limits: Sequence[int]) -> list[SearchRequest]:
    return list(map(request, sources, limits))


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("config", [{"norm": "post"}, {"norm": "pre", "positions": "rotary"}])
def test_an_engine_scores_translations_as_its_search_did(beam_size: int, config: dict[str, str]) -> None:
    engine = TorchEngine(make_model(3, **config))
    texts = [[7, 4, 5, 9, EOS], [6, EOS], [4, 11, EOS], [8, 8, 10, 4, 4, EOS]]
    found = candidates(engine, requests(texts, [12, 4, 8, 6]), SearchOptions(beam_size=beam_size, n_best=beam_size))
    pairs = [(src, hypothesis) for src, hypotheses in zip(texts, found, strict=True) for hypothesis in hypotheses]
    scores = score(engine, [src for src, _ in pairs], [hypothesis.ids for _, hypothesis in pairs])
    assert len(pairs) == 4 * beam_size
    for (_, hypothesis), token_log_probs in zip(pairs, scores, strict=True):
        assert len(hypothesis.token_log_probs) == len(hypothesis.ids) + 1
        assert hypothesis.token_log_probs == pytest.approx(token_log_probs, abs=1e-4)


@torch.inference_mode()
def test_a_score_is_the_log_probability_by_teacher_forcing() -> None:
    model = make_model(3)
    sources, targets = [[7, 4, 5, EOS], [6, EOS], [4, EOS]], [[8, 5], [], [4, 4, 9, 6]]
    for src, tgt, scores in zip(sources, targets, score(TorchEngine(model), sources, targets), strict=True):
        hidden = model(torch.tensor([src]), torch.ones(1, len(src), dtype=torch.bool), torch.tensor([[BOS_ID, *tgt]]))
        expected = model.project(hidden)[0].log_softmax(dim=-1)[range(len(tgt) + 1), [*tgt, EOS]]
        assert scores == pytest.approx(expected.tolist(), abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_padding_and_batch_mates_never_change_what_is_found(beam_size: int) -> None:
    texts = [[7, 4, 5, 9, EOS], [6, EOS], [4, 11, EOS], [8, 8, 10, 4, 4, EOS]]
    limits, options = [12, 4, 8, 6], SearchOptions(beam_size=beam_size, n_best=beam_size)
    for seed in range(5):
        engine = TorchEngine(make_model(seed))
        together = candidates(engine, requests(texts, limits), options)
        for text, limit, hypotheses in zip(texts, limits, together, strict=True):
            [alone] = candidates(engine, [request(text, limit)], options)
            assert_same_hypotheses(ranked(hypotheses, LengthPenalty(1.0)), ranked(alone, LengthPenalty(1.0)))


def test_finished_sentences_leave_the_batch() -> None:
    at_once: Table = {(): {EOS: 0.9, A: 0.1}}
    after_two: Table = {(): {A: 0.9, EOS: 0.1}, (A,): {B: 1.0}}
    decoder = TableDecoder(at_once, after_two, at_once, GARDEN_PATH)
    found = greedy(decoder, [10] * 4)
    assert [hypothesis.ids for hypothesis in found] == [[], [A, B], [], [A, A]]
    assert decoder.n_rows == [4, 2, 2]

    tables = [at_once, GARDEN_PATH, after_two, GARDEN_PATH]
    decoder = TableDecoder(*tables)
    together = beam(decoder, [10] * 4, beam_size=2)
    assert decoder.n_rows == [8, 8, 6]  # the first has its two at the second step; the others end at the third
    for table, hypotheses in zip(tables, together, strict=True):
        assert [hypotheses] == beam(TableDecoder(table), [10], beam_size=2)


@pytest.mark.parametrize("beam_size", [0, 1, 3])
def test_each_sentence_is_ended_by_eos_at_its_own_limit(beam_size: int) -> None:
    next_tokens = {A: 0.9, B: 0.06, C: 0.03, EOS: 0.01}
    endless: Table = {prefix: next_tokens for length in range(6) for prefix in product((A, B, C), repeat=length)}
    limits = [3, 0, 5, 1]
    decoder = TableDecoder(*[endless] * 4)
    if beam_size == 0:
        found = greedy(decoder, limits)
    else:
        found = [best for best, *_ in beam(decoder, limits, beam_size=beam_size, alpha=3.0)]
    assert_same_hypotheses(found, [of_probabilities([A] * limit, *[0.9] * limit, 0.01) for limit in limits])


@pytest.mark.parametrize("beam_size", [1, 3])
def test_translations_start_with_forced_prefixes_and_keep_their_probabilities(beam_size: int) -> None:
    engine, texts = TorchEngine(make_model(3)), [[7, 4, 5, EOS], [6, EOS], [4, 11, EOS], [7, 4, 5, EOS]]
    prefixes, limits = [[9, 4], [], [5, 5, 5, 8], [6]], [5, 5, 2, 5]  # one is longer than its limit
    options = SearchOptions(beam_size=beam_size, n_best=beam_size)
    forced = candidates(engine, [*map(request, texts, limits, prefixes)], options)
    free = candidates(engine, requests(texts, limits), options)
    assert_same_hypotheses(forced[1], free[1])
    for text, prefix, hypotheses in zip(texts, prefixes, forced, strict=True):
        assert hypotheses
        for hypothesis in hypotheses:
            assert hypothesis.ids[: len(prefix)] == prefix
            [token_log_probs] = score(engine, [text], [hypothesis.ids])
            assert hypothesis.token_log_probs == pytest.approx(token_log_probs, abs=1e-4)
    assert all(free[i][0].ids[: len(prefixes[i])] != prefixes[i] for i in (0, 2, 3))
    assert [len(hypothesis.ids) for hypothesis in forced[2]] == [4]


def test_a_forced_prefix_is_continued_as_exhaustive_search_would() -> None:
    forced = ForcePrefixes([[B]], torch.device("cpu"))
    for seed in range(5):
        expected = [h for h in exhaustive_search(RandomDecoder(seed), 3, 0.6) if h.ids[:1] == [B]]
        options = SearchOptions(beam_size=13, n_best=9, length_penalty=0.6, length_penalty_offset=5)
        [found] = beam_search(RandomDecoder(seed), [3], options, [*rules([3]), forced])
        assert_same_hypotheses(found, expected[:9])


def test_pad_unk_and_bos_are_never_chosen_even_if_the_model_prefers_them() -> None:
    model = make_model(1, norm="pre")
    assert isinstance(model.decoder_norm, nn.LayerNorm)
    with torch.no_grad():
        model.decoder_norm.weight.zero_()
        model.decoder_norm.bias.fill_(1.0)  # the logits are now the sums of the rows of the output matrix
        model.output.weight[[PAD_ID, UNK_ID, BOS_ID]] = 1.0
        model.output.weight[[EOS_ID]] = -0.1
    for beam_size in (1, 3):
        options = SearchOptions(beam_size=beam_size, n_best=beam_size)
        found = candidates(TorchEngine(model), requests([[4, 5, EOS], [7, EOS]], [6, 6]), options)
        chosen = {token for hypotheses in found for hypothesis in hypotheses for token in hypothesis.ids}
        assert chosen and chosen.isdisjoint({PAD_ID, UNK_ID, BOS_ID, EOS_ID})


@pytest.mark.parametrize(
    "where", ["src_embedding.weight", "output.weight", "decoder_layers.1.feed_forward.linear2.bias"]
)
def test_a_model_that_yields_nan_ends_with_an_error_and_drops_no_line(where: str) -> None:
    model = make_model(2)
    with torch.no_grad():
        model.get_parameter(where)[-1] = math.nan  # of the embeddings only those of the last token
    engine, texts, limits = TorchEngine(model), [[4, 5, EOS], [11, 7, EOS]], [6, 6]
    for search in (
        lambda: candidates(engine, requests(texts, limits), SearchOptions(beam_size=1)),
        lambda: candidates(engine, requests(texts, limits), SearchOptions(beam_size=3)),
        lambda: score(engine, texts, [[4], [5]]),
    ):
        with pytest.raises(MtformerError, match="the model predicts NaN"):
            search()


def test_a_search_without_a_possible_translation_ends_with_an_error() -> None:
    nothing = {A: 1.0}
    with pytest.raises(MtformerError, match="no translation"):
        beam(TableDecoder({(): nothing}), [0], beam_size=2)


def test_the_engine_reports_every_source_once_longest_first() -> None:
    texts, seen = [[4] * length + [EOS] for length in (2, 9, 5, 1)], list[int]()
    asked = [SearchRequest(text, SearchOptions(batch_tokens=12), 3) for text in texts]
    TorchEngine(make_model(1)).submit(asked, on_done=lambda batch, _: seen.extend(batch))
    assert seen == [1, 2, 0, 3]


@pytest.mark.parametrize(("beam_size", "sizes"), [(1, [8, 8]), (4, [8, 8]), (8, [4] * 4), (64, [1] * 16)])
def test_beams_count_in_the_budget_of_a_batch(beam_size: int, sizes: list[int]) -> None:
    seen = list[int]()
    options = SearchOptions(batch_tokens=24, beam_size=beam_size)
    asked = [SearchRequest([4, 5, EOS], options, 2)] * 16
    TorchEngine(make_model(1)).submit(asked, on_done=lambda batch, _: seen.append(len(batch)))
    assert seen == sizes


def test_greedy_search_ends_where_every_token_has_probability_0() -> None:
    # At its limit, a sentence may only choose EOS; as at any other place, the model may rule that out.
    tables: list[Table] = [{(): {A: 1.0}, (A,): {B: 1.0}}, {(): {A: 0.0, EOS: 0.0}}]
    for table in tables:
        with pytest.raises(MtformerError, match="the search found no translation"):
            greedy(TableDecoder(GARDEN_PATH, table), [1, 1])


@pytest.mark.parametrize("vocab_size", [7, 127, 128, 1_000, 1_024, 1_063])
@pytest.mark.parametrize("k", [1, 2, 7])
def test_the_likeliest_continuations_are_those_of_a_full_sort(vocab_size: int, k: int) -> None:
    generator = torch.Generator().manual_seed(vocab_size)
    log_probs = torch.randn(40, k, vocab_size, generator=generator).log_softmax(dim=-1)
    log_probs[::3, :, : vocab_size // 2] = -math.inf
    log_probs[1::3, 0, -1] = 1.0  # among the tokens that fill no block
    totals = torch.randn(40, k, generator=generator)
    totals[::2, 1:] = -math.inf  # only the first beam is one
    for count in (1, min(7, vocab_size // 2)):
        found, beams, tokens = likeliest(log_probs, totals, count)
        sums = (log_probs + totals[:, :, None]).flatten(1)
        assert torch.equal(found, sums.sort(dim=1, descending=True).values[:, :count])
        places = beams * vocab_size + tokens
        assert torch.equal(sums.gather(1, places), found)
        assert all(len(set(row)) == count for row in places.tolist())


def test_what_fills_a_block_is_no_token() -> None:
    _, beams, tokens = likeliest(torch.full((3, 2, 7), -math.inf), torch.zeros(3, 2), 4)
    assert int(tokens.max()) < 7
    assert int(beams.max()) < 2


def test_batches_are_small_where_the_vocabulary_is_large() -> None:
    seen = list[int]()
    model = make_model(1)
    engine = TorchEngine(model)
    options = SearchOptions(batch_tokens=24, beam_size=4)
    asked = [SearchRequest([4, 5, EOS], options, 2)] * 16
    engine.submit(asked, on_done=lambda batch, _: seen.append(len(batch)))
    sizes = ModelConfig.model_validate({"d_model": 16, "n_heads": 2, "d_ff": 32, "tie_embeddings": False})
    wide = Transformer(sizes.architecture(src_vocab_size=12, tgt_vocab_size=1_536, joint=False, max_length=16))
    TorchEngine(wide.eval()).submit(asked, on_done=lambda batch, _: seen.append(len(batch)))
    assert seen == [8, 8, 4, 4, 4, 4]  # 4 beams of 1,536 logits count as 6 tokens
