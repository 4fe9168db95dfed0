"""Significance tests against sacreBLEU's own command line, and what they say in words."""

import os
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest

from mtformer.evaluate.comparison import Comparison, Estimate, Outcome, compare_systems
from mtformer.evaluate.comparison_formats import mark_differences
from mtformer.support.errors import MtformerError

WORDS = "the a red old house dog friend car sees likes finds garden book near under with".split()
CHINESE = "我你他吃喝看买卖苹果香蕉书水茶大小红的了在"


def corpus(n: int, words: Sequence[str] = WORDS, space: str = " ") -> tuple[list[str], dict[str, list[str]]]:
    """Return references, and the translations of three systems: the second errs less often than the others."""
    draw = random.Random(8)
    references = [draw.choices(words, k=draw.randint(5, 12)) for _ in range(n)]

    def noisy(share: float) -> list[str]:
        rows = [[draw.choice(words) if draw.random() < share else word for word in row] for row in references]
        return [space.join(row) + "." for row in rows]

    systems = {"first": noisy(0.4), "second": noisy(0.2), "third": noisy(0.4)}
    return [space.join(row) + "." for row in references], systems


def sacrebleu_cli(
    folder: Path, references: Sequence[Sequence[str]], systems: dict[str, list[str]], *options: str
) -> str:
    """Run sacreBLEU's command line and return its table: its JSON cannot write NumPy's numbers."""
    names = [f"ref{i}" for i in range(len(references))]
    for name, lines in zip([*names, *systems], [*references, *systems.values()], strict=True):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", *names, "-i", *systems, "-m", "bleu", "chrf", "ter", *options]
    environment = {key: value for key, value in os.environ.items() if key != "SACREBLEU_SEED"}
    done = subprocess.run(
        [*command, "--format", "text", "--width", "4"], cwd=folder, capture_output=True, check=True, env=environment
    )
    return done.stdout.decode()


def numbers(table: str, pattern: str) -> list[tuple[str, ...]]:
    return [tuple(found if isinstance(found, tuple) else (found,)) for found in re.findall(pattern, table)]


def estimates(comparison: Comparison) -> list[Estimate]:
    """Return the estimates row by row, as sacreBLEU prints them: all metrics of a system, then the next system."""
    return [metric.estimates[i] for i in range(len(comparison.systems)) for metric in comparison.metrics]


@pytest.mark.slow
@pytest.mark.parametrize("chinese", [False, True])
def test_all_numbers_are_those_of_sacrebleus_command_line(chinese: bool, tmp_path: Path) -> None:
    references, systems = corpus(40, CHINESE, "") if chinese else corpus(40)
    others, _ = corpus(60)
    streams = [references] if chinese else [references, others[-40:]]
    options = ["--tokenize", "zh", "--ter-normalized", "--ter-asian-support"] if chinese else []
    language = "zh" if chinese else "de"
    comparison = compare_systems(systems, streams, tgt_lang=language, n_resamples=200, n_trials=400)
    bootstrap = sacrebleu_cli(tmp_path, streams, systems, "--paired-bs", "--paired-bs-n", "200", *options)
    randomization = sacrebleu_cli(tmp_path, streams, systems, "--paired-ar", "--paired-ar-n", "400", *options)

    found = estimates(comparison)
    assert comparison.systems == ["first", "second", "third"]
    assert numbers(bootstrap, r"([\d.]+) \(([\d.]+) ± ([\d.]+)\)") == [
        (f"{e.score:.4f}", f"{e.mean:.4f}", f"{e.ci:.4f}") for e in found
    ]
    for table, values in (
        (bootstrap, [e.p_bootstrap for e in found[3:]]),
        (randomization, [e.p_randomization for e in found[3:]]),
    ):
        assert numbers(table, r"\(p = ([\d.]+)\)") == [(f"{p:.4f}",) for p in values]
    assert all(e.p_bootstrap is None and e.p_randomization is None for e in found[:3])
    for metric in comparison.metrics:
        for table, signature in zip((bootstrap, randomization), metric.signatures, strict=True):
            assert re.search(rf"- {metric.metric} +{re.escape(signature)}\n", table)


def test_a_verdict_needs_both_tests_and_a_lower_ter_is_better() -> None:
    references, systems = corpus(60)
    comparison = compare_systems(systems, [references], tgt_lang="de", n_trials=500)
    outcomes = {metric.metric: [e.outcome for e in metric.estimates[1:]] for metric in comparison.metrics}
    assert outcomes == {name: [Outcome.better, Outcome.unclear] for name in ("BLEU", "chrF2", "TER")}
    [bleu, _, ter, *others] = comparison.verdicts()
    assert re.fullmatch(r"second is better than first: \+\d+\.\d\d BLEU, p = 0\.\d+ by paired bootstrap, .*", bleu)
    assert re.match(r"second is better than first: -\d+\.\d\d TER, p = ", ter)
    assert others[0].startswith("no difference between third and first can be shown: ")
    reverse = compare_systems(dict(reversed(systems.items())), [references], tgt_lang="de", n_trials=500)
    assert [m.estimates[1].outcome for m in reverse.metrics] == [Outcome.better] * 3
    worse = compare_systems({"b": systems["second"], "a": systems["first"]}, [references], tgt_lang="de", n_trials=500)
    assert [m.estimates[1].outcome for m in worse.metrics] == [Outcome.worse] * 3
    assert worse.verdicts()[2].startswith("a is worse than b: +")


@pytest.mark.parametrize("n_different", [0, 1, 2, 5, 6])
def test_a_difference_in_few_sentences_is_not_significant(n_different: int) -> None:
    """The exact test swaps each of k different sentences or not: 2 of 2^k ways are as extreme as the observed one."""
    references, systems = corpus(40)
    baseline = systems["first"]
    improved = references[:n_different] + baseline[n_different:]
    comparison = compare_systems({"a": baseline, "b": improved}, [references], tgt_lang="de", n_trials=500)
    least = min(1.0, 2 / 2**n_different)
    for metric in comparison.metrics:
        estimate = metric.estimates[1]
        assert (estimate.p_bootstrap == 1) == (n_different == 0)  # its own p-value, which has no such floor
        assert estimate.p_randomization == pytest.approx(least, abs=0.02)
        assert (estimate.outcome is Outcome.better) == (n_different == 6)


def test_equal_scores_of_different_translations_are_no_difference() -> None:
    references, systems = corpus(40)
    spaced = [text.replace(" ", "  ") for text in systems["first"]]
    comparison = compare_systems(
        {"a": systems["first"], "b": spaced}, [references], tgt_lang="de", n_resamples=100, n_trials=100
    )
    for _, other in (metric.estimates for metric in comparison.metrics):
        assert (other.difference, other.outcome) == (0, Outcome.unclear)
        assert (other.p_bootstrap, other.p_randomization) == (1, 1)


def test_intervals_stay_on_the_scale() -> None:
    references, _ = corpus(4)
    systems = {"a": [*references[:3], "x"], "b": [references[0], "x", "x", "x"]}
    comparison = compare_systems(systems, [references], tgt_lang="de", n_resamples=100, n_trials=100)
    beyond = 0
    for metric in comparison.metrics:
        for e in metric.estimates:
            low, high = e.mean - e.ci, e.mean + e.ci
            beyond += low < 0 or high > 100
            assert (e.low, e.high) == (max(0, low), high if metric.metric == "TER" else min(100, high))
    assert beyond


def test_the_seed_decides_and_the_environment_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", "5")
    references, systems = corpus(30)

    def compare(seed: int) -> Comparison:
        return compare_systems(systems, [references], tgt_lang="de", seed=seed, n_resamples=100, n_trials=100)

    assert compare(1) == compare(1)
    assert compare(1) != compare(2)
    assert os.environ["SACREBLEU_SEED"] == "5"
    monkeypatch.delenv("SACREBLEU_SEED")
    compare(1)
    assert "SACREBLEU_SEED" not in os.environ


def test_a_lack_of_memory_is_told_with_the_options_that_help(monkeypatch: pytest.MonkeyPatch) -> None:
    references, systems = corpus(20)
    monkeypatch.setattr("sacrebleu.significance.np.random.default_rng", Mock(side_effect=MemoryError))
    with pytest.raises(MtformerError, match=r"out of memory: .* --resamples and --trials"):
        compare_systems(systems, [references], tgt_lang="de")


@pytest.mark.parametrize(
    ("one", "other", "language", "marked"),
    [
        ("Das ist gut.", "Das war gut.", "de", ("Das [ist] gut.", "Das [war] gut.")),
        ("the old red house", "the house", "en", ("the [old red] house", "the house")),
        ("the house", "the house near here!", "en", ("the house", "the house [near here!]")),
        ("gut , sehr", "gut, sehr", "de", ("gut , sehr", "gut, sehr")),
        ("我吃了苹果。", "我吃了香蕉。", "zh", ("我吃了[苹果]。", "我吃了[香蕉]。")),
        ("", "so", "de", ("", "[so]")),
        ("", "", "de", ("", "")),
    ],
)
def test_differences_are_marked_by_word_or_character(
    one: str, other: str, language: str, marked: tuple[str, str]
) -> None:
    sides = mark_differences(one, other, language)
    assert tuple("".join(f"[{s.text}]" if s.differs else s.text for s in side) for side in sides) == marked
    assert ["".join(segment.text for segment in side) for side in sides] == [one, other]
