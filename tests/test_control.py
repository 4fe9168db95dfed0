"""Rules on what a search may choose, against values computed by hand, and combinations of options."""

import math
import shutil
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import BOS_ID, ENGLISH, Project
from engines import align, candidates, request, score
from test_search import EOS, A, B, C, RandomDecoder, Table, TableDecoder, assert_same_hypotheses, make_model, rules
from torch import Tensor

from mtformer import Translator
from mtformer.bundle.format import load_bundle, save_bundle
from mtformer.config import SearchOptions
from mtformer.config.search import LengthPenalty
from mtformer.engines.torch import TorchEngine
from mtformer.search.beam import beam_search
from mtformer.search.decoder import EnsembleDecoder
from mtformer.search.engine import SearchRequest, results_of
from mtformer.search.greedy import greedy_search
from mtformer.search.hypothesis import Hypothesis, rank
from mtformer.search.processors import (
    ForcePrefixes,
    MinLength,
    NoRepeatedNgrams,
    Prefixes,
    Processor,
    RepetitionPenalty,
    rules_of,
)
from mtformer.support.errors import UserError

CPU = torch.device("cpu")
FIXTURES = Path(__file__).parent / "fixtures"


def prefixes(*beams: list[int]) -> Prefixes:
    """Return the prefixes of one sentence's beams."""
    return Prefixes(torch.tensor([[[BOS_ID, *ids] for ids in beams]]), torch.tensor([0]))


def of(*probabilities: float) -> Tensor:
    """Return log probabilities (1, 1, 7) of EOS, A, B and C."""
    values = torch.zeros(1, 1, 7)
    values[0, 0, [EOS, A, B, C]] = torch.tensor(probabilities)
    return values.log()


def allowed(processor: Processor, *ids: int) -> set[int]:
    """Return which of EOS, A, B and C may follow ``ids``."""
    return {token for token in (EOS, A, B, C) if processor(prefixes([*ids]), of(0.1, 0.2, 0.3, 0.4))[0, 0, token] > -9}


def test_a_repeated_token_counts_with_its_probability_to_the_power_of_the_penalty() -> None:
    found = RepetitionPenalty(2.0)(prefixes([A, B, A]), of(0.1, 0.2, 0.3, 0.4))
    assert found[0, 0, [EOS, A, B, C]].exp().tolist() == pytest.approx([0.1, 0.04, 0.09, 0.4])


@pytest.mark.parametrize(
    ("size", "ids", "expected"),
    [
        (1, [], {EOS, A, B, C}),
        (1, [A, C, A], {EOS, B}),
        (2, [A], {EOS, A, B, C}),
        (2, [A, A], {EOS, B, C}),
        (2, [A, B, A, C, A], {EOS, A}),
        (3, [A, B, C, A, B], {EOS, A, B}),
        (3, [A, B, C, B, A], {EOS, A, B, C}),
        (3, [A, A, A], {EOS, B, C}),
        (9, [A, B], {EOS, A, B, C}),
    ],
)
def test_a_token_that_would_repeat_an_ngram_is_forbidden(size: int, ids: list[int], expected: set[int]) -> None:
    assert allowed(NoRepeatedNgrams(size), *ids) == expected


def test_rules_see_each_beam_for_itself() -> None:
    log_probs = of(0.1, 0.2, 0.3, 0.4).expand(1, 2, 7).clone()
    found = NoRepeatedNgrams(2)(prefixes([A, B, A], [A, C, A]), log_probs)
    assert [[float(found[0, beam, token]) > -9 for token in (A, B, C)] for beam in (0, 1)] == [
        [True, False, True],
        [True, True, False],
    ]


def test_eos_is_forbidden_below_the_minimum_length() -> None:
    at_least_two = MinLength(2, EOS)
    assert [EOS in allowed(at_least_two, *ids) for ids in ([], [A], [A, B], [A, B, C])] == [False, False, True, True]


def test_a_rule_that_leaves_nothing_does_not_apply() -> None:
    only_a, only_eos = of(0.0, 1.0, 0.0, 0.0), of(1.0, 0.0, 0.0, 0.0)
    assert NoRepeatedNgrams(1)(prefixes([A]), only_a.clone()).equal(only_a)
    assert MinLength(5, EOS)(prefixes([A]), only_eos.clone()).equal(only_eos)


@pytest.mark.parametrize("beam_size", [0, 1, 3])
@pytest.mark.parametrize(
    "given", [{"repetition_penalty": 1.7}, {"no_repeat_ngram_size": 1}, {"min_length": 3}, {"max_length": 2}]
)
def test_hypotheses_keep_the_probabilities_of_the_model(given: dict[str, Any], beam_size: int) -> None:
    engine, texts = TorchEngine(make_model(3)), [[7, 4, 5, 9, EOS], [6, EOS], [4, 11, EOS]]
    options = SearchOptions.model_validate(
        {"sample": True, "n_best": 3, "beam_size": 1, **given}
        if beam_size == 0
        else {"beam_size": beam_size, "n_best": beam_size, **given}
    )
    found = candidates(engine, [request(text, options.limit(len(text))) for text in texts], options)
    for text, hypotheses in zip(texts, found, strict=True):
        for hypothesis in hypotheses:
            [scores] = score(engine, [text], [hypothesis.ids])
            assert hypothesis.token_log_probs == pytest.approx(scores, abs=1e-4)
            repeated = [t for t, token in enumerate(hypothesis.ids) if token in hypothesis.ids[:t]]
            factor = given.get("repetition_penalty", 1.0)
            expected = sum((1 - factor) * scores[t] for t in repeated)
            assert hypothesis.penalty == pytest.approx(expected, abs=1e-3)
            assert hypothesis.score(LengthPenalty(1.0)) == pytest.approx(
                (sum(scores) - expected) / (len(hypothesis.ids) + 1)
            )
            assert len(hypothesis.ids) >= given.get("min_length", 0)
            assert len(hypothesis.ids) <= given.get("max_length", 99)
            assert not repeated or "no_repeat_ngram_size" not in given


def test_the_search_chooses_by_penalized_probabilities() -> None:
    table: Table = {(): {A: 0.6, B: 0.4}, (A,): {A: 0.6, B: 0.4}, (A, A): {EOS: 1.0}, (A, B): {EOS: 1.0}}
    processors: list[Processor] = [*rules([9]), RepetitionPenalty(2.0)]
    expected = Hypothesis([A, B], [math.log(0.6), math.log(0.4), 0.0])  # 0.6 · 0.4, against 0.6 · 0.6²
    assert_same_hypotheses(greedy_search(TableDecoder(table), 1, processors), [expected])
    [found] = beam_search(TableDecoder(table), [9], SearchOptions(beam_size=3, n_best=3), processors)
    assert [hypothesis.ids for hypothesis in found] == [[B], [A, B], [A, A]]
    assert [hypothesis.penalty for hypothesis in found] == pytest.approx([0.0, 0.0, -math.log(0.6)], abs=1e-6)


@pytest.mark.parametrize("given", [{"repetition_penalty": 1.5}, {"no_repeat_ngram_size": 2}, {"min_length": 2}])
def test_a_beam_as_wide_as_all_prefixes_finds_the_best_penalized_hypotheses(given: dict[str, Any]) -> None:
    for seed in range(5):
        options = SearchOptions.model_validate({"beam_size": 27, "n_best": 27, **given})
        processors = [*rules([3]), *rules_of(options, EOS)]
        [found] = beam_search(RandomDecoder(seed), [3], options, processors)
        few = options.model_copy(update={"n_best": 2})
        decoder = RandomDecoder(seed)
        [best] = beam_search(decoder, [3], few, processors)  # stops as soon as nothing can beat these two
        assert best == found[:2]
        scores = [hypothesis.score(LengthPenalty(1.0)) for hypothesis in found]
        assert scores == sorted(scores, reverse=True)
        [greedy] = greedy_search(RandomDecoder(seed), 1, processors)
        assert scores[0] >= greedy.score(LengthPenalty(1.0)) - 1e-6


def test_forced_prefixes_may_repeat_what_rules_forbid() -> None:
    options = SearchOptions(beam_size=2, no_repeat_ngram_size=1, repetition_penalty=2.0, min_length=3)
    forced: list[Processor] = [ForcePrefixes([[A, A, A]], CPU)]
    for seed in range(3):
        [[best, *_]] = beam_search(RandomDecoder(seed), [5], options, [*rules([5]), *forced, *rules_of(options, EOS)])
        assert best.ids[:3] == [A, A, A]
        assert A not in best.ids[3:]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"sample": True, "beam_size": 4}, "beam_size = 4 cannot be combined with sample"),
        ({"temperature": 0.5}, "temperature = 0.5 needs sample"),
        ({"top_k": 5}, "top_k = 5 needs sample"),
        ({"top_p": 0.9}, "top_p = 0.9 needs sample"),
        ({"seed": 7}, "seed = 7 needs sample"),
        ({"min_length": 9, "max_length": 8}, "min_length = 9 is more than max_length = 8"),
        ({"repetition_penalty": 0.9}, "repetition_penalty = 0.9, allowed: 1.0 or more"),
        ({"temperature": 0.0, "sample": True}, "temperature = 0.0, allowed: more than 0.0"),
        ({"top_p": 0.0, "sample": True}, "top_p = 0.0, allowed: more than 0.0"),
    ],
)
def test_contradictory_options_are_an_error_that_names_them(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError, match=f"search options: {problem}"):
        SearchOptions().updated(**given)


def test_the_beam_fits_what_is_asked_for_unless_it_is_given() -> None:
    assert SearchOptions(beam_size=4).updated(sample=True, n_best=20).beam_size == 1
    assert SearchOptions(beam_size=4).updated(n_best=6).beam_size == 6


CONTRADICTIONS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "beam_size = 4 cannot be combined with sample": lambda o: o["sample"] and o["beam_size"] == 4,
    "n_best = 2 is more than beam_size = 1": lambda o: not o["sample"] and o["n_best"] > (o["beam_size"] or 4),
    "mbr = 4 is more than beam_size = 1": lambda o: not o["sample"] and o["mbr"] > (o["beam_size"] or 4),
    "mbr = 4 cannot be combined with sample": lambda o: o["sample"] and o["mbr"],
}


def test_every_combination_of_options_works_or_is_an_error_that_names_them() -> None:
    values: dict[str, tuple[Any, ...]] = {
        "beam_size": (None, 1, 4),
        "sample": (False, True),
        "n_best": (1, 2),
        "mbr": (0, 4),
        "max_length": (None, 3),
        "length_penalty": (0.0, 0.6),
    }
    strict = {"repetition_penalty": 1.5, "no_repeat_ngram_size": 2, "min_length": 2}
    engine, texts = TorchEngine(make_model(3)), [[7, 4, 5, 9, EOS], [6, EOS]]
    n_valid = 0
    for combination, on_tokens in product(product(*values.values()), ({}, strict)):
        given = dict(zip(values, combination, strict=True))
        expected = [message for message, applies in CONTRADICTIONS.items() if applies(given)]
        try:
            options = SearchOptions().updated(**given, **on_tokens)
        except UserError as error:
            assert expected and all(message in str(error) for message in expected), (given, str(error))
            continue
        assert not expected, given
        requests = [SearchRequest(text, options, options.limit(len(text))) for text in texts]
        for found in results_of(engine, requests):
            hypotheses = rank(options, found, lambda ids: " ".join(map(str, ids)))
            n_valid += 1
            scores = [hypothesis.score(options.penalty) for hypothesis in hypotheses]
            assert 1 <= len(hypotheses) <= given["n_best"], given
            assert len(hypotheses) == given["n_best"] or given["mbr"], given
            assert options.sample or scores == sorted(scores, reverse=True), given
            for hypothesis in hypotheses:
                assert len(hypothesis.ids) <= (given["max_length"] or 99)
                assert len(hypothesis.ids) >= options.min_length
                pairs = list(pairwise(hypothesis.ids))
                assert not on_tokens or len(set(pairs)) == len(pairs), given
    assert n_valid > 200


def test_an_ensemble_averages_probabilities() -> None:
    first: Table = {(): {A: 0.8, B: 0.2}}
    second: Table = {(): {A: 0.1, B: 0.6, EOS: 0.3}}
    decoder = EnsembleDecoder([TableDecoder(first), TableDecoder(second)])
    [found] = beam_search(decoder, [5], SearchOptions(beam_size=3, n_best=3, length_penalty=0.0), rules([5]))
    assert_same_hypotheses(
        found,
        [
            Hypothesis([A], [math.log(0.45), 0.0]),
            Hypothesis([B], [math.log(0.4), 0.0]),
            Hypothesis([], [math.log(0.15)]),
        ],
    )


@pytest.mark.parametrize("beam_size", [1, 4])
def test_an_ensemble_of_one_model_twice_is_that_model(beam_size: int) -> None:
    model, other = make_model(3), make_model(4)
    texts = [[7, 4, 5, 9, EOS], [6, EOS], [4, 11, EOS]]
    options = SearchOptions(beam_size=beam_size, n_best=beam_size)
    requests = [request(text, 8) for text in texts]
    twice, alone = (candidates(engine, requests, options) for engine in (TorchEngine(model, model), TorchEngine(model)))
    for found, expected in zip(twice, alone, strict=True):
        assert_same_hypotheses(found, expected)
    engine = TorchEngine(model, other)
    engines = (engine, TorchEngine(model), TorchEngine(other))
    for text, [best, *_] in zip(texts, candidates(engine, requests, options), strict=True):
        [scores], [ours], [theirs] = (score(each, [text], [best.ids]) for each in engines)
        assert best.token_log_probs == pytest.approx(scores, abs=1e-4)
        means = [math.log((math.exp(one) + math.exp(two)) / 2) for one, two in zip(ours, theirs, strict=True)]
        assert scores == pytest.approx(means, abs=1e-4)
        [mean], [one], [two] = (align(each, [text], [best.ids]) for each in engines)
        assert mean == pytest.approx((one + two) / 2, abs=1e-5)


def test_models_with_one_vocabulary_translate_together(trained: Project, tmp_path: Path) -> None:
    first, second = trained.folder / "runs/config/model.safetensors", tmp_path / "second.safetensors"
    bundle = load_bundle(first)
    shutil.copy(first, tmp_path / "copy.safetensors")
    with torch.no_grad():
        for parameter in bundle.model.parameters():
            parameter.mul_(0.8)
    save_bundle(second, bundle)
    lines = "".join(f"{english} sees {english}.\n" for english in ENGLISH)
    command = ("translate", "--beam-size", "2", "--format", "tsv", "--model")
    alone, weak, twice, copied, both, other = (
        trained.mtformer(*command, model, *more, stdin=lines)
        for model, more in (
            (first, ()),
            (second, ()),
            (first, ("--model", first.parent)),
            (first, ("--model", tmp_path / "copy.safetensors")),
            (first, ("--model", second)),
            (first, ("--model", FIXTURES / "bundle-3.safetensors")),
        )
    )
    for refused, name in ((twice, first), (copied, tmp_path / "copy.safetensors")):
        assert (refused.status, refused.stdout) == (2, "")
        assert f"{first} and {name} are the same model: an ensemble needs different ones" in refused.stderr
    scores = [[float(line.split("\t")[2]) for line in one.stdout.splitlines()] for one in (weak, both, alone)]
    assert all(low < mean < high for low, mean, high in zip(*scores, strict=True))
    assert (other.status, other.stdout) == (2, "")
    assert f"{FIXTURES / 'bundle-3.safetensors'} and {first} have different tokenizers" in other.stderr
    pairs = "".join(
        f"{src}\t{line.split(chr(9))[3]}\n"
        for src, line in zip(lines.splitlines(), both.stdout.splitlines(), strict=True)
    )
    scored = trained.mtformer("score", "--model", first, "--model", second, stdin=pairs)
    [translations] = zip(
        *Translator.load([first, second], "cpu", beam_size=2).translate(lines.splitlines()), strict=True
    )
    assert [float(line) for line in scored.stdout.splitlines()] == pytest.approx(
        [one.log_prob for one in translations], abs=1e-3
    )
    overwriting = trained.mtformer(*command, first, "--model", second, "--output", second, stdin=lines)
    assert overwriting.status == 2 and str(second) in overwriting.stderr
    with pytest.raises(UserError, match="explain needs one model, not an ensemble"):
        Translator.load([first, second]).explain("the red house")


@pytest.mark.parametrize("given", [{"sample": True}, {"mbr": 4}])
def test_explain_refuses_what_it_does_not_show(trained: Project, given: dict[str, Any]) -> None:
    [option] = given
    with pytest.raises(UserError, match=f"cannot be combined with {option}"):
        Translator.load(trained.folder / "runs/config", "cpu", **given).explainer()
