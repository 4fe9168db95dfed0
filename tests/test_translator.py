"""From strings to strings: order, batches, empty texts and texts that are too long."""

import logging
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Project, sentence_pairs
from torch import Tensor

from mtformer.bundle import load_bundle
from mtformer.config import ModelConfig, SearchConfig, TokenizerConfig
from mtformer.model.transformer import Transformer
from mtformer.text.sources import SentencePair
from mtformer.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer, train_tokenizer
from mtformer.translator import Translation, Translator

TEXTS = [
    "the red house sees her new garden.",
    "my old friend.",
    "",
    "every good book likes this green car and the red house and a small dog.",
    "needs",
    "a small dog finds my old friend.",
    "Ελληνικά 你好",
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    pairs = [SentencePair(*pair) for pair in sentence_pairs(200)]
    return train_tokenizer(pairs, TokenizerConfig(vocab_size=320), "en", "de")


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> Transformer:
    """A random model whose translations depend on the source and end before their limits, most of them."""
    torch.manual_seed(6)
    config = ModelConfig(d_model=16, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1, tie_embeddings=False)
    n = tokenizer.src_vocab_size
    model = Transformer(config, src_vocab_size=n, tgt_vocab_size=n, joint=True, max_length=64)
    with torch.no_grad():
        model.output.weight[EOS_ID] *= 2
        for name, parameter in model.named_parameters():
            if name.endswith("cross_attention.out_proj.weight"):
                parameter.mul_(4)
    return model.eval()


def make_translator(model: Transformer, tokenizer: Tokenizer, **settings: Any) -> Translator:
    tgt_lang, max_length = settings.pop("tgt_lang", "de"), settings.pop("max_length", 64)
    search = SearchConfig.model_validate({"beam_size": 3, "max_length_factor": 1.0, "max_length_offset": 4, **settings})
    return Translator(model, tokenizer, search, tgt_lang=tgt_lang, max_length=max_length)


def assert_same(ours: list[Translation], expected: list[Translation]) -> None:
    assert [translation.text for translation in ours] == [translation.text for translation in expected]
    for translation, other in zip(ours, expected, strict=True):
        assert translation.score == pytest.approx(other.score, abs=1e-3)
        assert translation.log_prob == pytest.approx(other.log_prob, abs=1e-3)


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("batch_tokens", [1, 40, 4096])
@pytest.mark.parametrize("beam_size", [1, 3])
def test_batches_never_change_a_translation_or_the_order(
    model: Transformer, tokenizer: Tokenizer, beam_size: int, batch_tokens: int
) -> None:
    translator = make_translator(model, tokenizer, beam_size=beam_size, batch_tokens=batch_tokens)
    together = translator.translate(TEXTS, n_best=beam_size)
    assert len({best.text for best, *_ in together}) == len(TEXTS)
    for text, translations in zip(TEXTS, together, strict=True):
        [alone] = translator.translate([text], n_best=beam_size)
        assert_same(translations, alone)


def test_batches_hold_the_token_budget_and_the_longest_texts_come_first(
    model: Transformer, tokenizer: Tokenizer
) -> None:
    shapes: list[tuple[int, int]] = []
    hook = model.src_embedding.register_forward_pre_hook(lambda _module, inputs: shapes.append(tuple(inputs[0].shape)))
    make_translator(model, tokenizer, batch_tokens=40).translate(TEXTS * 3)
    hook.remove()
    assert sum(rows for rows, _ in shapes) == 3 * (len(TEXTS) - 1)
    assert all(rows * length <= 40 for rows, length in shapes if rows > 1)
    assert [length for _, length in shapes] == sorted((length for _, length in shapes), reverse=True)
    assert len(shapes) < len(TEXTS) * 3 - 3


@pytest.mark.parametrize("blank", ["", "   ", "\t\u00a0\u3000"])
def test_a_text_without_words_is_translated_as_the_empty_text(
    model: Transformer, tokenizer: Tokenizer, blank: str
) -> None:
    translator = make_translator(model, tokenizer)
    assert translator.translate([blank, blank], n_best=2) == [[Translation("", 0.0, 0.0)]] * 2
    between = translator.translate([TEXTS[0], blank, TEXTS[1]])
    assert [best.text == "" for [best] in between] == [False, True, False]
    assert translator.translate([]) == []


def test_the_n_best_are_different_and_best_first(model: Transformer, tokenizer: Tokenizer) -> None:
    translator = make_translator(model, tokenizer)
    for text in TEXTS[:2]:
        [found] = translator.translate([text], n_best=3)
        [best] = translator.translate([text])
        assert len(found) == 3 and len({translation.log_prob for translation in found}) == 3
        assert [t.score for t in found] == sorted((t.score for t in found), reverse=True)
        assert_same(found[:1], best)


def test_more_translations_than_beams_are_refused(model: Transformer, tokenizer: Tokenizer) -> None:
    with pytest.raises(ValueError, match="n_best = 4 is more than beam_size = 3"):
        make_translator(model, tokenizer).translate(["a small dog."], n_best=4)


@pytest.mark.parametrize(
    ("tgt_lang", "joiner"), [("de", " "), ("zh", ""), ("zh-Hant-TW", ""), ("zh_TW", ""), ("yue", "")]
)
def test_a_text_too_long_is_split_at_sentence_ends_and_its_parts_joined(
    model: Transformer, tokenizer: Tokenizer, caplog: pytest.LogCaptureFixture, tgt_lang: str, joiner: str
) -> None:
    sentences = ["the red house sees her new garden.", "a small dog likes my old friend.", "every good book needs it."]
    lengths = [len(ids) for ids in tokenizer.encode_src(sentences)]
    # Room for any sentence with its EOS and a few pieces of the next, but not for two.
    translator = make_translator(model, tokenizer, tgt_lang=tgt_lang, max_length=max(lengths) + 4)
    parts = translator.translate(sentences, n_best=3)
    assert warnings_of(caplog) == []
    assert all(best.text for best, *_ in parts)
    found = translator.translate([TEXTS[1], " ".join(sentences), TEXTS[4]], n_best=3, first_line=7)
    n_pieces = sum(lengths) - len(sentences)
    assert warnings_of(caplog) == [f"line 8 has {n_pieces} pieces; translated in 3 parts"]
    for rank, translation in enumerate(found[1]):
        chosen = [translations[rank] for translations in parts]
        assert translation.text == joiner.join(part.text for part in chosen)
        assert translation.score == pytest.approx(sum(part.score for part in chosen), abs=1e-3)
        assert translation.log_prob == pytest.approx(sum(part.log_prob for part in chosen), abs=1e-3)


def test_a_text_that_just_fits_is_not_split(
    model: Transformer, tokenizer: Tokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    text = "the red house. a small dog. my old friend."
    [ids] = tokenizer.encode_src([text])
    make_translator(model, tokenizer, max_length=len(ids)).translate([text])
    assert warnings_of(caplog) == []
    make_translator(model, tokenizer, max_length=len(ids) - 1).translate([text], first_line=3)
    assert warnings_of(caplog) == [f"line 3 has {len(ids) - 1} pieces; translated in 2 parts"]


@pytest.mark.parametrize(
    "text",
    ["my old friend sees a small dog " * 1_430, "x" * 3_000, "你好世界" * 300, "a. " * 1_000],
    ids=["ten thousand words", "no spaces", "unseen script", "nothing but sentence ends"],
)
def test_a_very_long_line_reaches_the_model_whole_in_parts_that_fit(
    model: Transformer, tokenizer: Tokenizer, text: str
) -> None:
    batches: list[Tensor] = []
    hook = model.src_embedding.register_forward_pre_hook(lambda _module, inputs: batches.append(inputs[0]))
    [[translation]] = make_translator(model, tokenizer, beam_size=1).translate([text])
    hook.remove()
    assert translation.text
    assert all(batch.size(1) <= 64 for batch in batches)
    seen = torch.cat([batch.flatten() for batch in batches]).tolist()
    [ids] = tokenizer.encode_src([text])
    assert sorted(i for i in seen if i not in (PAD_ID, EOS_ID)) == sorted(ids[:-1])
    assert BOS_ID not in seen


@pytest.mark.parametrize("text", ["你好世界" * 20, "aé" * 60], ids=["three bytes", "one and two bytes"])
def test_a_text_of_bytes_is_never_split_within_a_character(model: Transformer, tokenizer: Tokenizer, text: str) -> None:
    batches: list[Tensor] = []
    hook = model.src_embedding.register_forward_pre_hook(lambda _module, inputs: batches.append(inputs[0]))
    make_translator(model, tokenizer, max_length=32).translate([text])
    hook.remove()
    parts = [tokenizer.decode(row.tolist()) for batch in batches for row in batch]
    assert len(parts) > 3
    assert not any("\ufffd" in part for part in parts)


def test_progress_counts_every_text_once(model: Transformer, tokenizer: Tokenizer) -> None:
    progress: list[int] = []
    translator = make_translator(model, tokenizer, max_length=20, batch_tokens=40)
    translator.translate([*TEXTS, "a small dog. " * 20], on_progress=progress.append)
    assert sum(progress) == len(TEXTS) + 1
    assert len(progress) > 1


def test_a_trained_model_translates_what_it_has_learned_alone_and_in_a_batch(trained: Project) -> None:
    bundle = load_bundle(trained.folder / "runs" / "config" / "model.safetensors")
    translator = Translator(
        bundle.model, bundle.tokenizer, SearchConfig(), tgt_lang="de", max_length=bundle.header.architecture.max_length
    )
    pairs = sentence_pairs(20, seed=9)
    together = translator.translate([src for src, _ in pairs])
    assert sum(best.text == tgt for [best], (_, tgt) in zip(together, pairs, strict=True)) >= 18
    for translations, (src, _) in list(zip(together, pairs, strict=True))[:5]:
        assert_same(translations, translator.translate([src])[0])


def test_beam_search_on_a_trained_model_is_never_worse_than_greedy_search(trained: Project) -> None:
    bundle = load_bundle(trained.folder / "runs" / "config" / "model.safetensors")
    words = " ".join(src for src, _ in sentence_pairs(40, seed=5)).split()
    random = np.random.default_rng(5)
    # Most of these are no sentences that the model has learned, so that it is unsure how to continue.
    texts = [" ".join(random.choice(words, size=random.integers(1, 9))) for _ in range(1_000)]
    scores = {}
    for beam_size in (1, 4):
        search = SearchConfig.model_validate(bundle.header.search.model_dump() | {"beam_size": beam_size})
        translator = Translator(bundle.model, bundle.tokenizer, search, tgt_lang="de", max_length=64)
        scores[beam_size] = [best.score for [best] in translator.translate(texts)]
    pairs = list(zip(scores[4], scores[1], strict=True))
    assert [i for i, (beam, greedy) in enumerate(pairs) if beam < greedy - 1e-4] == []
    assert sum(beam > greedy + 1e-4 for beam, greedy in pairs) > 100
