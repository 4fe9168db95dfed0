import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
import sacrebleu
import torch
import torch.nn.functional as F
import yaml
from conftest import BOS_ID, Project, sentence_pairs

from mtformer.bundle.format import load_bundle
from mtformer.config import Config, Facts, LanguagePair, ResolvedConfig, resolve
from mtformer.engines.torch import TorchEngine
from mtformer.model.transformer import Transformer
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.training import update, validation
from mtformer.training.model import build_model
from mtformer.training.validation import Sample, Validation, Validator
from mtformer.translate.translator import Translator

PAIRS = [
    *(SentencePair(*pair) for pair in sentence_pairs(25, seed=5)),
    SentencePair("the dog sees the old house.", "der Hund sieht das alte Haus."),  # words that it knows in other places
    SentencePair("a red friend likes this small book and her garden.", "ein roter Freund mag dieses kleine Buch."),
]
WITH_AN_EMPTY_SIDE = [SentencePair("", "nichts"), SentencePair("the red house", ""), SentencePair(" ", " ")]


class Learned(NamedTuple):
    """A trained model, and the config of its run."""

    model: Transformer
    tokenizer: Tokenizer
    config: Config


@pytest.fixture
def learned(trained: Project) -> Learned:
    run = trained.folder / "runs" / "config"
    bundle = load_bundle(run / "model.safetensors")
    config = Config.model_validate(yaml.safe_load((run / "config.yaml").read_text()))
    return Learned(bundle.model, bundle.tokenizer, config)


def changed(config: Config, **sections: dict[str, object]) -> ResolvedConfig:
    values = config.model_dump()
    config = Config.model_validate(values | {name: values[name] | keys for name, keys in sections.items()})
    return resolve(config, Facts(n_pairs=1))


def validate(learned: Learned, pairs: Sequence[SentencePair], **sections: dict[str, object]) -> Validation:
    config = changed(learned.config, **sections)
    [languages] = config.data.language_pairs
    return Validator(config, learned.tokenizer, {languages: pairs}).validate(learned.model)


def greedy(learned: Learned, texts: list[str]) -> list[str]:
    options, engine = learned.config.search.updated(beam_size=1), TorchEngine(learned.model)
    translator = Translator(engine, learned.tokenizer, options, tgt_lang="de", max_length=256)
    return [best.text for (best,) in translator.translate(texts)]


def loss_pair_by_pair(learned: Learned, pairs: Sequence[SentencePair]) -> float:
    total, n_pieces = 0.0, 0
    for pair in pairs:
        [src], [tgt] = learned.tokenizer.encode_src([pair.src]), learned.tokenizer.encode_tgt([pair.tgt])
        mask = torch.ones(1, len(src), dtype=torch.bool)
        hidden = learned.model(torch.tensor([src]), mask, torch.tensor([[BOS_ID, *tgt[:-1]]]))
        total += F.cross_entropy(learned.model.project(hidden)[0], torch.tensor(tgt), reduction="sum").item()
        n_pieces += len(tgt)
    return total / n_pieces


@pytest.mark.parametrize("max_tokens", [64, 4096])
def test_the_loss_is_cross_entropy_per_piece_without_smoothing(learned: Learned, max_tokens: int) -> None:
    result = validate(learned, PAIRS, training={"max_tokens": max_tokens, "label_smoothing": 0.1})
    assert result.loss == pytest.approx(loss_pair_by_pair(learned, PAIRS), rel=1e-5)
    assert result.perplexity == pytest.approx(math.exp(result.loss))


@pytest.mark.parametrize("tokenize", ["13a", "char"])
def test_bleu_is_that_of_sacrebleu_on_greedy_translations(learned: Learned, tokenize: str) -> None:
    hypotheses = greedy(learned, [pair.src for pair in PAIRS])
    expected = sacrebleu.corpus_bleu(hypotheses, [[pair.tgt for pair in PAIRS]], tokenize=tokenize).score
    assert 10 < expected < 100
    assert validate(learned, PAIRS, eval={"bleu_tokenize": tokenize}).scores["bleu"] == pytest.approx(expected)


def test_the_target_language_decides_how_bleu_is_counted(learned: Learned) -> None:
    by_character = validate(learned, PAIRS, eval={"bleu_tokenize": "char"}).scores["bleu"]
    assert validate(learned, PAIRS, data={"tgt_lang": "ja"}).scores["bleu"] == by_character
    assert validate(learned, PAIRS).scores["bleu"] != by_character


def test_pairs_with_an_empty_side_count_for_bleu(learned: Learned) -> None:
    pairs = [*WITH_AN_EMPTY_SIDE, *PAIRS]
    hypotheses = greedy(learned, [pair.src for pair in pairs])
    assert (hypotheses[0], hypotheses[2]) == ("", "")
    result = validate(learned, pairs)
    assert result.scores["bleu"] == pytest.approx(
        sacrebleu.corpus_bleu(hypotheses, [[pair.tgt for pair in pairs]]).score
    )
    assert result.scores["bleu"] < validate(learned, PAIRS).scores["bleu"]
    assert result.loss == pytest.approx(validate(learned, PAIRS).loss, rel=1e-5)


def test_long_pairs_are_reported_once_and_not_in_each_validation(
    learned: Learned, caplog: pytest.LogCaptureFixture
) -> None:
    long = SentencePair("a dog " * 100, "ein Hund " * 100)
    validate(learned, [long, *PAIRS])
    reason = "longer than 256 tokens (data.max_length)"
    assert caplog.messages == [f"the validation loss excludes 1 of {len(PAIRS) + 1} pairs: {reason}"]


@pytest.mark.parametrize(("n_samples", "expected"), [(0, 0), (3, 3), (500, len(PAIRS))])
def test_samples_are_sources_with_their_own_reference_and_translation(
    learned: Learned, n_samples: int, expected: int
) -> None:
    samples = validate(learned, PAIRS, eval={"n_samples": n_samples}).samples
    hypotheses = greedy(learned, [pair.src for pair in PAIRS])
    assert len(samples) == expected
    assert set(samples) <= {Sample(*pair, hypothesis) for pair, hypothesis in zip(PAIRS, hypotheses, strict=True)}


def test_validating_in_the_middle_of_training_switches_dropout_off_and_draws_no_random_numbers(
    learned: Learned,
) -> None:
    config = changed(learned.config, model={"dropout": 0.5})
    model = build_model(config, learned.tokenizer)
    model.load_state_dict(learned.model.state_dict())
    before = torch.get_rng_state()
    found = Validator(config, learned.tokenizer, {LanguagePair("en", "de"): PAIRS}).validate(model.train())
    assert torch.equal(torch.get_rng_state(), before)
    assert found == validate(learned, PAIRS)


def test_on_a_cpu_the_search_is_in_float32_as_in_translate(learned: Learned, monkeypatch: pytest.MonkeyPatch) -> None:
    in_bf16: dict[str, bool] = {}
    loss, translate = update.summed_loss, Validator._translate

    def observe_loss(*arguments: Any, **keywords: Any) -> object:
        in_bf16["loss"] = torch.is_autocast_enabled("cpu")
        return loss(*arguments, **keywords)

    def observe_search(*arguments: Any) -> list[str]:
        in_bf16["search"] = torch.is_autocast_enabled("cpu")
        return translate(*arguments)

    monkeypatch.setattr(validation, "summed_loss", observe_loss)
    monkeypatch.setattr(Validator, "_translate", observe_search)
    validate(learned, PAIRS, training={"precision": "bf16"})
    assert in_bf16 == {"loss": True, "search": False}
