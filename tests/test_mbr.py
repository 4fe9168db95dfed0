"""Minimum Bayes risk against a naive computation with sacreBLEU."""

import math
from statistics import fmean

import pytest
from conftest import ENGLISH, Project
from sacrebleu.metrics.chrf import CHRF

from mtformer import Translator
from mtformer.cli.command import SearchFields
from mtformer.config import SearchConfig
from mtformer.search.hypothesis import Hypothesis, expected_chrf, rank
from mtformer.support.errors import UserError

TEXTS = ["Das rote Haus.", "Das rote Haus.", "Das Haus ist rot!", "", "红色的房子", "a", "Ein rotes  Haus, das"]
BUNDLE = "runs/config/model.safetensors"


def naive(texts: list[str], weights: list[float]) -> list[float]:
    chrf = CHRF()
    return [fmean([chrf.sentence_score(text, [other]).score for other in texts], weights) for text in texts]


def test_the_utility_is_the_mean_chrf_of_sacrebleu() -> None:
    for weights in ([1.0] * 7, [1.0, 0.5, 2.0, 0.1, 0.3, 1.0, 0.7]):
        assert expected_chrf(TEXTS, weights) == pytest.approx(naive(TEXTS, weights), abs=1e-3)
    assert expected_chrf(["one"], [0.2]) == pytest.approx([100.0])


def test_translations_are_ranked_by_their_utility_among_the_candidates(trained: Project) -> None:
    lines = [f"{verb} {english}" for english in ENGLISH for verb in ("sees", "green", "needs needs")]
    bundle = trained.folder / BUNDLE
    candidates = Translator.load(bundle, raw=True, n_best=6).translate(lines)
    found = Translator.load(bundle, raw=True, mbr=6, n_best=3).translate(lines)
    for of_line, translations in zip(candidates, found, strict=True):
        if len(of_line) < 6:
            continue  # two candidates of the beam have one text: it is shown once, and its utility counts both
        texts = [one.text for one in of_line]
        weights = [math.exp(one.log_prob / 2) for one in of_line]
        utilities = dict(zip(texts, naive(texts, weights), strict=True))
        ranks = sorted(utilities.values(), reverse=True)[:3]
        assert [one.score for one in translations] == pytest.approx(ranks, abs=1e-3)
        assert [one.score for one in translations] == pytest.approx([utilities[one.text] for one in translations])
        assert all(one.log_prob < 0 for one in translations)
        assert len({one.text for one in translations}) == len(translations)
    assert any(len(of_line) == 6 for of_line in candidates)


def test_a_translation_like_the_others_is_better_than_a_likelier_one() -> None:
    texts = {1: "a cat sleeps", 2: "the red house", 3: "the red house"}
    hypotheses = [Hypothesis([i], [log_prob]) for i, log_prob in ((1, -1.0), (2, -1.1), (3, -1.2))]
    best, second = rank(SearchConfig().updated(mbr=3, n_best=3), hypotheses, lambda ids: texts[ids[0]])
    assert (best.ids, second.ids) == ([2], [1])


def test_the_command_that_installs_the_package_is_as_it_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"^mbr needs the package fastchrf, .*\[mbr\]"):
        SearchFields({}).collect({"mbr": 4})
