import math
from collections.abc import Sequence

import pytest
import sacrebleu
import torch
import torch.nn.functional as F
from conftest import Project, sentence_pairs

from mtformer.bundle import Bundle, load_bundle
from mtformer.config import Config, Facts, ResolvedConfig, resolve
from mtformer.model.weights import build_model
from mtformer.text.sources import SentencePair
from mtformer.text.tokenizer import BOS_ID
from mtformer.training.validation import Validation, Validator
from mtformer.translator import Translator

PAIRS = [
    *(SentencePair(*pair) for pair in sentence_pairs(25, seed=5)),
    SentencePair("the dog sees the old house.", "der Hund sieht das alte Haus."),  # words that it knows in other places
    SentencePair("a red friend likes this small book and her garden.", "ein roter Freund mag dieses kleine Buch."),
]
WITH_AN_EMPTY_SIDE = [SentencePair("", "nichts"), SentencePair("the red house", ""), SentencePair(" ", " ")]


@pytest.fixture
def bundle(trained: Project) -> Bundle:
    return load_bundle(trained.folder / "runs" / "config" / "model.safetensors")


def changed(config: Config, **sections: dict[str, object]) -> ResolvedConfig:
    values = config.model_dump()
    config = Config.model_validate(values | {name: values[name] | keys for name, keys in sections.items()})
    return resolve(config, Facts(n_pairs=1))


def validate(bundle: Bundle, pairs: Sequence[SentencePair], **sections: dict[str, object]) -> Validation:
    return Validator(changed(bundle.config, **sections), bundle.tokenizer, pairs).validate(bundle.model)


def greedy(bundle: Bundle, texts: list[str]) -> list[str]:
    search = bundle.config.search.model_copy(update={"beam_size": 1})
    translator = Translator(bundle.model, bundle.tokenizer, search, tgt_lang="de", max_length=256)
    return [best.text for (best,) in translator.translate(texts)]


def loss_pair_by_pair(bundle: Bundle, pairs: Sequence[SentencePair]) -> float:
    total, n_pieces = 0.0, 0
    for pair in pairs:
        [src], [tgt] = bundle.tokenizer.encode_src([pair.src]), bundle.tokenizer.encode_tgt([pair.tgt])
        mask = torch.ones(1, len(src), dtype=torch.bool)
        hidden = bundle.model(torch.tensor([src]), mask, torch.tensor([[BOS_ID, *tgt[:-1]]]))
        total += F.cross_entropy(bundle.model.project(hidden)[0], torch.tensor(tgt), reduction="sum").item()
        n_pieces += len(tgt)
    return total / n_pieces


@pytest.mark.parametrize("max_tokens", [64, 4096])
def test_the_loss_is_cross_entropy_per_piece_without_smoothing(bundle: Bundle, max_tokens: int) -> None:
    result = validate(bundle, PAIRS, training={"max_tokens": max_tokens, "label_smoothing": 0.1})
    assert result.loss == pytest.approx(loss_pair_by_pair(bundle, PAIRS), rel=1e-5)
    assert result.perplexity == pytest.approx(math.exp(result.loss))


@pytest.mark.parametrize("tokenize", ["13a", "char"])
def test_bleu_is_that_of_sacrebleu_on_greedy_translations(bundle: Bundle, tokenize: str) -> None:
    hypotheses = greedy(bundle, [pair.src for pair in PAIRS])
    expected = sacrebleu.corpus_bleu(hypotheses, [[pair.tgt for pair in PAIRS]], tokenize=tokenize).score
    assert 10 < expected < 100
    assert validate(bundle, PAIRS, eval={"bleu_tokenize": tokenize}).scores["bleu"] == pytest.approx(expected)


def test_the_target_language_decides_how_bleu_is_counted(bundle: Bundle) -> None:
    by_character = validate(bundle, PAIRS, eval={"bleu_tokenize": "char"}).scores["bleu"]
    assert validate(bundle, PAIRS, data={"tgt_lang": "ja"}).scores["bleu"] == by_character
    assert validate(bundle, PAIRS).scores["bleu"] != by_character


def test_pairs_with_an_empty_side_count_for_bleu(bundle: Bundle) -> None:
    pairs = [*WITH_AN_EMPTY_SIDE, *PAIRS]
    hypotheses = greedy(bundle, [pair.src for pair in pairs])
    assert (hypotheses[0], hypotheses[2]) == ("", "")
    result = validate(bundle, pairs)
    assert result.scores["bleu"] == pytest.approx(
        sacrebleu.corpus_bleu(hypotheses, [[pair.tgt for pair in pairs]]).score
    )
    assert result.scores["bleu"] < validate(bundle, PAIRS).scores["bleu"]
    assert result.loss == pytest.approx(validate(bundle, PAIRS).loss, rel=1e-5)


@pytest.mark.parametrize(("n_samples", "expected"), [(0, 0), (3, 3), (500, len(PAIRS))])
def test_samples_are_sources_with_their_own_reference_and_translation(
    bundle: Bundle, n_samples: int, expected: int
) -> None:
    samples = validate(bundle, PAIRS, eval={"n_samples": n_samples}).samples
    hypotheses = greedy(bundle, [pair.src for pair in PAIRS])
    assert len(samples) == expected
    assert set(samples) <= {(*pair, hypothesis) for pair, hypothesis in zip(PAIRS, hypotheses, strict=True)}


def test_validating_in_the_middle_of_training_switches_dropout_off_and_draws_no_random_numbers(bundle: Bundle) -> None:
    config = changed(bundle.config, model={"dropout": 0.5})
    model = build_model(config, bundle.tokenizer)
    model.load_state_dict(bundle.model.state_dict())
    before = torch.get_rng_state()
    found = Validator(config, bundle.tokenizer, PAIRS).validate(model.train())
    assert torch.equal(torch.get_rng_state(), before)
    assert found == validate(bundle, PAIRS)
