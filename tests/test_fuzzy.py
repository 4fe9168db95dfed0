"""Fuzzy matches of a translation memory: which texts are similar, and searches that follow their translations."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import torch
from conftest import BOS_ID, EOS_ID, Project
from engines import candidates, request
from test_search import TableDecoder, make_model

from mtformer.config import SearchOptions
from mtformer.engines.torch import TorchEngine
from mtformer.search.decoder import TransformerDecoder
from mtformer.search.nearest import Datastore, NearestDecoder
from mtformer.support.errors import UserError
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.translate.fuzzy import FuzzyMatches, edit_distance, similarity
from mtformer.translate.translation import Recalled
from mtformer.translate.translation_memory import TranslationMemory
from mtformer.translate.translator import Translator

EOS = EOS_ID
MEMORY = [
    ("the red house sees a small dog.", "Das Haus sieht das Hündchen."),
    ("the red house sees a small cat.", "Das Haus sieht das Kätzchen."),
    ("the red house sees a small cat.", "Das Haus sieht das Kätzchen."),
    ("her new garden needs my old friend.", "Ihr Garten braucht mich."),
]
NEAR = "the red house sees a small garden."
FAR = "every good book."


def slow_distance(first: Sequence[int], second: Sequence[int]) -> int:
    row = list(range(len(second) + 1))
    for i, item in enumerate(first, 1):
        above, row = row, [i]
        for j, other in enumerate(second, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (item != other)))
    return row[-1]


def test_the_edit_distance_is_that_of_the_table() -> None:
    draw = random.Random(1)
    for _ in range(500):
        longest = draw.choice([8, 8, 8, 80])
        first, second = ([draw.randrange(4) for _ in range(draw.randrange(longest))] for _ in range(2))
        assert edit_distance(first, second) == slow_distance(first, second), (first, second)
    assert (similarity("", ""), similarity("abcd", "abxd"), similarity("ab", "")) == (1.0, 0.75, 0.0)


@pytest.fixture(scope="module")
def tokenizer(trained: Project) -> Tokenizer:
    return Translator.load(trained.folder / "runs/config").tokenizer


def found(tokenizer: Tokenizer, text: str, least: float, max_length: int = 256) -> list[tuple[str, str]]:
    matches = FuzzyMatches(TranslationMemory(MEMORY), tokenizer, least, max_length)
    [ids] = tokenizer.encode_src([text])
    values = [match.similarity for match, _ in matches.find(ids)]
    assert values == sorted(values, reverse=True) and all(value >= least for value in values)
    return [match[:2] for match, _ in matches.find(ids)]


def test_similar_texts_are_found_once_and_the_most_similar_first(tokenizer: Tokenizer) -> None:
    assert found(tokenizer, MEMORY[1][0], 0.5) == [MEMORY[1], MEMORY[0]]
    assert set(found(tokenizer, NEAR, 0.5)) == {MEMORY[0], MEMORY[1]}
    assert found(tokenizer, MEMORY[0][0], 1) == [MEMORY[0]]
    assert found(tokenizer, FAR, 0.5) == found(tokenizer, "☃", 0.1) == []
    assert found(tokenizer, NEAR, 0.5, max_length=8) == []


def test_the_ids_of_a_match_are_those_that_the_model_reads(tokenizer: Tokenizer) -> None:
    matches = FuzzyMatches(TranslationMemory(MEMORY), tokenizer, 0.5, 256)
    [ids], [tgt] = tokenizer.encode_src([MEMORY[3][0]]), tokenizer.encode_tgt([MEMORY[3][1]])
    assert [example for _, example in matches.find(ids)] == [(tuple(ids), tuple(tgt[:-1]))]


def test_an_empty_memory_has_no_matches(tokenizer: Tokenizer) -> None:
    [ids] = tokenizer.encode_src([NEAR])
    assert FuzzyMatches(TranslationMemory([]), tokenizer, 0.5, 256).find(ids) == []


@pytest.mark.parametrize("least", [0.0, -1.0, 1.1, float("nan")])
def test_a_similarity_that_is_none_is_refused(tokenizer: Tokenizer, least: float) -> None:
    with pytest.raises(UserError, match="it is a similarity, above 0 and at most 1"):
        FuzzyMatches(TranslationMemory(MEMORY), tokenizer, least, 256)


class StateDecoder(TableDecoder):
    """A decoder whose state is the same in every step."""

    state = torch.tensor([[3.0, 0.0]])

    def step_with_state(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.state.expand(len(tokens), 2), self.step(tokens)


def mixed(probabilities: dict[int, float], *examples: tuple[list[float], int]) -> list[float]:
    """Return the probabilities of the first token of a sentence with keys and values, beside one without any."""
    states = [(torch.tensor([key]), torch.tensor([value])) for key, value in examples]
    stores = [Datastore.of(each, 2, torch.device("cpu")) for each in (states, [])]
    tables = StateDecoder({(): probabilities}, {(): probabilities})
    decoder = NearestDecoder(cast(TransformerDecoder, tables), stores)
    step = decoder.step(torch.tensor([BOS_ID, BOS_ID])).exp()
    assert step[1].tolist() == pytest.approx(tables.log_probs(1, ()).exp().tolist())
    return [round(value, 4) for value in step[0].tolist()]


def test_votes_are_mixed_in_by_the_distance_and_the_certainty_of_the_model() -> None:
    even = {4: 0.5, 5: 0.25, 6: 0.25}
    assert mixed(even, ([2.0, 0.0], 6)) == [0, 0, 0, 0, 0.25, 0.125, 0.625]  # distance 0: λ is 1 - 0.5
    assert mixed(even, ([0.8, 0.6], 6))[6] == pytest.approx(0.25 + 0.75 * 0.5 * (1 - 0.2 / 0.35), abs=1e-4)
    assert mixed(even, ([0.0, 1.0], 6)) == [0, 0, 0, 0, 0.5, 0.25, 0.25]  # too far
    assert mixed({4: 1.0}, ([1.0, 0.0], 6)) == [0, 0, 0, 0, 1, 0, 0]  # the model is certain
    assert mixed(even, ([1.0, 0.0], 5), ([1.0, 0.0], 6), ([1.0, 0.0], 6))[5:] == pytest.approx(
        [0.125 + 0.5 / 3, 0.125 + 1 / 3], abs=1e-4
    )


@pytest.mark.parametrize("seeds", [(2,), (2, 4)])
def test_a_model_that_knows_nothing_follows_the_example_of_the_same_sentence(seeds: tuple[int, ...]) -> None:
    models = [make_model(seed) for seed in seeds]
    for model in models:
        model.output.weight.data.zero_()
    engine, src, tgt = TorchEngine(*models), (7, 4, 5, EOS), (9, 4, 10)
    asked = [request(src, 6), request([6, 8, EOS], 6)]
    guided = [replace(asked[0], examples=[((6, 5, EOS), (8, 8)), (src, tgt)]), asked[1]]
    for options in (SearchOptions(beam_size=1), SearchOptions(beam_size=3, n_best=3)):
        plain, followed = candidates(engine, asked, options), candidates(engine, guided, options)
        best = [max(of_one, key=lambda each: each.log_prob) for of_one in (*plain, *followed)]
        assert tuple(best[2].ids) == tgt != tuple(best[0].ids)
        assert best[3].ids == best[1].ids
        assert best[3].log_prob == pytest.approx(best[1].log_prob, abs=1e-4)
    samples = candidates(engine, guided, SearchOptions(sample=True, n_best=60, beam_size=1))
    assert sum(tuple(sample.ids) == tgt for sample in samples[0]) > 1


@pytest.fixture(scope="module")
def following(trained: Project) -> Translator:
    return Translator.load(trained.folder / "runs/config", memory=TranslationMemory(MEMORY), fuzzy=0.5)


def test_translations_name_their_matches_and_others_are_as_without(trained: Project, following: Translator) -> None:
    plain = Translator.load(trained.folder / "runs/config")
    texts = [
        NEAR,
        FAR,
        MEMORY[3][0],
        f"{FAR}\n{NEAR}",
        "<b>the red house sees a small garden.</b>",
        "",
    ]
    results = [best for [best] in following.translate(texts)]
    assert [len(result.fuzzy) for result in results] == [2, 0, 0, 2, 2, 0]
    assert {match[:2] for match in results[0].fuzzy} == set(MEMORY[:2])
    [far], [empty] = plain.translate([FAR, ""])
    assert (results[1].text, results[5]) == (far.text, empty)
    assert results[1].score == pytest.approx(far.score, abs=1e-4)
    assert results[2].memory == (Recalled(*MEMORY[3]),)
    assert results[0].token_log_probs != plain.translate([NEAR])[0][0].token_log_probs


def test_the_command_marks_fuzzy_matches(trained: Project, tmp_path: Path) -> None:
    (tmp_path / "memory.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in MEMORY))
    command: list[str | Path] = ["translate", "--memory", tmp_path / "memory.tsv", "--fuzzy", "0.5", "--engine", "auto"]
    done = trained.mtformer(*command, "--format", "json", stdin=f"{NEAR}\n{FAR}\n{MEMORY[3][0]}\n")
    assert done.status == 0, done.stderr
    objects = [json.loads(line)["translations"][0] for line in done.stdout.splitlines()]
    assert [len(each.get("fuzzy", ())) for each in objects] == [2, 0, 0]
    assert objects[0]["fuzzy"][0].keys() == {"src", "tgt", "similarity"}
    assert 0.5 <= objects[0]["fuzzy"][1]["similarity"] <= objects[0]["fuzzy"][0]["similarity"] < 1
    assert ["memory" in each for each in objects] == [False, False, True]
    assert "from the translation memory: 2 lines (1, 3), fuzzy (1), whole (1)\n" in done.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--fuzzy", "0.5"], "--fuzzy 0.5 needs --memory FILE"),
        (["--fuzzy", "50", "--memory", "memory.tsv"], "it is a similarity, above 0 and at most 1"),
        (
            ["--fuzzy", "0.5", "--memory", "memory.tsv", "--engine", "ctranslate2"],
            "CTranslate2 does not support fuzzy matches",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused(trained: Project, tmp_path: Path, options: list[str], problem: str) -> None:
    (tmp_path / "memory.tsv").write_text("a dog\tein Hund\n")
    model = trained.folder / "runs/config"
    done = Project(tmp_path, trained.config).mtformer("translate", *options, "--model", model, "a dog")
    assert done.status == 2
    assert problem in done.stderr
