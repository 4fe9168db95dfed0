"""From strings to strings: order, batches, empty texts and texts that are too long."""

import logging
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest
import torch
from conftest import BOS_ID, EOS_ID, PAD_ID, Project, sentence_pairs
from engines import score
from torch import Tensor

import mtformer
from mtformer.bundle.format import load_bundle
from mtformer.config import ModelConfig, SearchConfig, SearchOptions, TokenizerConfig
from mtformer.engines.torch import TorchEngine
from mtformer.model.positions import sinusoidal_table
from mtformer.model.transformer import Transformer
from mtformer.search.decoder import TransformerDecoder
from mtformer.search.hypothesis import Hypothesis
from mtformer.support.errors import MtformerError, UserError
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.sentencepiece_file import read_tokens
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.translate.translation import Translation, by_rank
from mtformer.translate.translator import Translator

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
    return random_model(tokenizer, seed=6)


def random_model(tokenizer: Tokenizer, seed: int) -> Transformer:
    """Return a model whose translations depend on the source and end before their limits, most of them."""
    torch.manual_seed(seed)
    config = ModelConfig(d_model=16, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1, tie_embeddings=False)
    n = tokenizer.src_vocab_size
    model = Transformer(config.architecture(src_vocab_size=n, tgt_vocab_size=n, joint=True, max_length=64))
    with torch.no_grad():
        model.output.weight[EOS_ID] *= 2
        for name, parameter in model.named_parameters():
            if name.endswith("cross_attention.out_proj.weight"):
                parameter.mul_(4)
    return model.eval()


def make_translator(model: Transformer, tokenizer: Tokenizer, **settings: Any) -> Translator:
    tgt_lang, max_length = settings.pop("tgt_lang", "de"), settings.pop("max_length", 64)
    options = SearchOptions.model_validate(
        {"beam_size": 3, "max_length_factor": 1.0, "max_length_offset": 4, **settings}
    )
    return Translator(TorchEngine(model), tokenizer, options, tgt_lang=tgt_lang, max_length=max_length)


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
    translator = make_translator(model, tokenizer, beam_size=beam_size, n_best=beam_size, batch_tokens=batch_tokens)
    together = translator.translate(TEXTS)
    assert len({best.text for best, *_ in together}) >= len(TEXTS) - 2  # a random model may repeat itself
    for text, translations in zip(TEXTS, together, strict=True):
        [alone] = translator.translate([text])
        assert_same(translations, alone)


def test_batches_hold_the_token_budget_and_the_longest_texts_come_first(
    model: Transformer, tokenizer: Tokenizer
) -> None:
    shapes: list[tuple[int, int]] = []
    hook = model.src_embedding.register_forward_pre_hook(lambda _module, inputs: shapes.append(tuple(inputs[0].shape)))
    texts = [text + end for end in ("", "!", "?") for text in TEXTS if text]
    make_translator(model, tokenizer, batch_tokens=40).translate(texts)
    hook.remove()
    assert sum(rows for rows, _ in shapes) == len(texts)
    assert all(rows * length <= 40 for rows, length in shapes if rows > 1)
    assert [length for _, length in shapes] == sorted((length for _, length in shapes), reverse=True)
    assert len(shapes) < len(texts)


@pytest.mark.parametrize("blank", ["", "   ", "\t\u00a0\u3000"])
def test_a_text_without_words_is_translated_as_the_empty_text(
    model: Transformer, tokenizer: Tokenizer, blank: str
) -> None:
    translator = make_translator(model, tokenizer, n_best=2)
    assert translator.translate([blank, blank]) == [[Translation("", 0.0, 0.0)]] * 2
    between = translator.translate([TEXTS[0], blank, TEXTS[1]])
    assert [best.text == "" for best, *_ in between] == [False, True, False]
    assert translator.translate([]) == []


def test_a_model_that_takes_no_text_beside_its_tags_is_refused(model: Transformer, tokenizer: Tokenizer) -> None:
    with pytest.raises(UserError, match=r"max_length = 1 of this model leaves no room for text: .* take 1"):
        make_translator(model, tokenizer, max_length=1)
    assert make_translator(model, tokenizer, max_length=2).translate(TEXTS[:1])[0][0].notes


def test_a_text_has_as_many_translations_as_its_part_with_the_most(model: Transformer, tokenizer: Tokenizer) -> None:
    """One rule for paragraphs of markup, for sentences and for the parts of what is too long."""
    assert by_rank([[1, 2, 3], [4], [5, 6]]) == [[1, 4, 5], [2, 4, 6], [3, 4, 6]]
    assert by_rank([]) == []
    translator = replace(make_translator(model, tokenizer, n_best=3, max_length=8), markup=True)
    for text in ("<p>her new garden</p><p>needs</p>", " ".join(TEXTS)):
        [several] = translator.translate([text])
        assert len({translation.text for translation in several}) == len(several) == 3
        [[best]] = translator.with_options(n_best=1).translate([text])
        assert several[0].text == best.text


def test_the_lines_of_a_text_are_translated_one_by_one_and_keep_their_ends(
    model: Transformer, tokenizer: Tokenizer
) -> None:
    translator = make_translator(model, tokenizer, n_best=2)
    [several, *lines] = translator.translate(["\n\r\n".join([*TEXTS[:2], ""]), *TEXTS[:2]])
    for rank, whole in enumerate(several):
        assert whole.text == "".join(f"{line[min(rank, len(line) - 1)].text}\n\r\n" for line in lines)
    assert len(several) == max(map(len, lines))
    [[aligned]] = replace(translator, alignments=True).with_options(n_best=1).translate(["\n".join(TEXTS[:2])])
    parts = translator.align(TEXTS[:2], aligned.text.split("\n"))
    assert aligned.alignment is not None
    assert [block.shape for block in aligned.alignment.blocks] == [
        block.shape for part in parts for block in part.blocks
    ]
    [scored] = translator.score(["\n".join(TEXTS[:2])], [aligned.text])
    assert scored.tokens.count("</s>") == 2


def test_what_is_too_long_for_a_word_is_copied_with_a_note(model: Transformer, tokenizer: Tokenizer) -> None:
    translator = replace(make_translator(model, tokenizer), markup=True, src_lang="en")
    data = "iVBORw0KGgo" * 20_000
    alone, inside, tagged = (best for best, *_ in translator.translate([data, f"a dog {data}.", f"<p>{data}</p>"]))
    assert (alone.text, tagged.text) == (data, f"<p>{data}</p>")
    assert data in inside.text and inside.tokens
    assert {t.notes for t in (alone, inside, tagged)} == {("check: copied what is too long for a word",)}
    for text in ("-" * 300, "我们的狗" * 100, "<b>a</b>" * 100, "word " * 30):
        assert not any("too long" in note for note in translator.translate([text])[0][0].notes)


def test_a_text_that_fails_leaves_those_beside_it_alone(model: Transformer, tokenizer: Tokenizer) -> None:
    bad = TEXTS[3]

    class Fails(TorchEngine):
        def submit(self, requests: Any, **_: Any) -> Any:
            results = super().submit(requests)
            refused = tokenizer.encode_src([bad])
            return [
                MtformerError("bad") if request.src in refused else r
                for request, r in zip(requests, results, strict=True)
            ]

    translator = replace(make_translator(model, tokenizer), engine=Fails(model))
    with pytest.raises(MtformerError, match="bad"):
        translator.translate(TEXTS)
    stand_in = [Translation("?", 0.0, 0.0)]
    failed: dict[int, MtformerError] = {}

    def note(index: int, error: MtformerError) -> list[Translation]:
        failed[index] = error
        return stand_in

    results = translator.translate(TEXTS, on_error=note)
    assert list(failed) == [3]
    for text, result in zip(TEXTS, results, strict=True):
        assert_same(result, stand_in if text == bad else translator.translate([text])[0])


def test_the_n_best_are_different_and_best_first(model: Transformer, tokenizer: Tokenizer) -> None:
    for text in TEXTS[:2]:
        [found] = make_translator(model, tokenizer, n_best=3).translate([text])
        [best] = make_translator(model, tokenizer).translate([text])
        assert len({translation.text for translation in found}) == len(found) in (2, 3)
        assert [t.score for t in found] == sorted((t.score for t in found), reverse=True)
        assert_same(found[:1], best)


def test_no_two_of_the_n_best_have_the_same_text_unless_they_are_samples(
    model: Transformer, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = enumerate(token.text for token in read_tokens(tokenizer.src_model))
    whole, word = next(([number], text[1:]) for number, text in texts if re.fullmatch("▁[a-z]{2,}", text))
    [[*letters, _]] = tokenizer.encode_tgt([word[0]])
    letters += [token for letter in word[1:] for token in tokenizer.encode_tgt_inside(letter)]
    assert tokenizer.decode(whole) == tokenizer.decode(letters) == word
    hypotheses = [Hypothesis(ids, [log_prob] * (len(ids) + 1)) for ids, log_prob in ((whole, -1.0), (letters, -2.0))]
    for sample, n_expected in ((False, 1), (True, 2)):
        translator = make_translator(model, tokenizer, n_best=2, sample=sample, beam_size=1 if sample else 2)
        monkeypatch.setattr(translator.engine, "submit", lambda *_, **__: [hypotheses])
        [found] = translator.translate(["the"])
        assert [translation.text for translation in found] == [word] * n_expected
        assert found[0].token_log_probs == (-1.0,) * (len(whole) + 1)


def test_options_that_are_not_given_stay_and_the_beam_widens_to_the_n_best() -> None:
    options = SearchOptions(beam_size=3, length_penalty=0.2)
    assert options.updated(beam_size=None, n_best=None) == options
    assert options.updated(n_best=3) == SearchOptions(beam_size=3, length_penalty=0.2, n_best=3)
    assert options.updated(n_best=7).beam_size == 7
    assert SearchConfig(beam_size=3).updated(n_best=2) == SearchOptions(beam_size=3, n_best=2)
    assert options.updated(n_best=2, beam_size=9, length_penalty=0).model_dump(exclude_defaults=True) == {
        "beam_size": 9,
        "length_penalty": 0.0,
        "n_best": 2,
    }


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"n_best": 4, "beam_size": 3}, "n_best = 4 is more than beam_size = 3"),
        ({"beam_size": 0}, "beam_size = 0, allowed: 1 or more$"),
        ({"n_best": 300}, "n_best = 300 is more than the 64 that a beam search finds at most"),
        ({"n_best": "many"}, "n_best = many, allowed: a whole number$"),
        ({"length_penalty": math.nan}, "length_penalty = nan, allowed: a finite number$"),
        ({"precision": "int4"}, "precision = int4, allowed: fp32, bf16 or int8$"),
        ({"beam_sice": 3}, "there is no option beam_sice; did you mean beam_size[?]$"),
        ({"num_beams": 3}, "there is no option num_beams; did you mean beam_size[?]$"),
        ({"xyz": 3}, "there is no option xyz$"),
        ({"beam_size": 0, "n_best": 0}, "beam_size = 0, allowed: 1 or more; n_best = 0, allowed: 1 or more$"),
    ],
)
def test_options_that_are_not_allowed_are_named(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        SearchOptions().updated(**changes)


@pytest.mark.parametrize(
    ("tgt_lang", "joiner"), [("de", " "), ("zh", ""), ("zh-Hant-TW", ""), ("zh_TW", ""), ("yue", "")]
)
def test_a_text_too_long_is_split_at_sentence_ends_and_its_parts_joined(
    model: Transformer, tokenizer: Tokenizer, caplog: pytest.LogCaptureFixture, tgt_lang: str, joiner: str
) -> None:
    # Of the same words, so of about the same length with any tokenizer.
    sentences = ["the red house sees her new garden.", "her new garden sees the red house."]
    sentences.append(sentences[0])
    lengths = [len(ids) for ids in tokenizer.encode_src(sentences)]
    # Room for any sentence with its EOS and one token of the next, but not for two.
    translator = make_translator(model, tokenizer, tgt_lang=tgt_lang, max_length=max(lengths) + 1)
    parts = translator.translate(sentences)
    assert warnings_of(caplog) == []
    assert sum(best.text != "" for best, *_ in parts) >= 2
    found = translator.translate([TEXTS[1], " ".join(sentences), TEXTS[4]], numbers=count(7))
    assert warnings_of(caplog) == ["line 8: translated in 3 parts"]
    assert [best.notes for best, *_ in found] == [(), ("translated in 3 parts",), ()]
    for rank, translation in enumerate(found[1]):
        chosen = [translations[rank] for translations in parts]
        assert translation.text == joiner.join(part.text for part in chosen if part.text)
        assert translation.score == pytest.approx(sum(part.score for part in chosen), abs=1e-3)
        assert translation.log_prob == pytest.approx(sum(part.log_prob for part in chosen), abs=1e-3)
        assert translation.tokens == tuple(token for part in chosen for token in part.tokens)
        assert translation.notes == found[1][0].notes


def test_a_text_that_just_fits_is_not_split(
    model: Transformer, tokenizer: Tokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    text = "the red house. a small dog. my old friend."
    [ids] = tokenizer.encode_src([text])
    make_translator(model, tokenizer, max_length=len(ids)).translate([text])
    assert warnings_of(caplog) == []
    make_translator(model, tokenizer, max_length=len(ids) - 1).translate([text], numbers=[3])
    assert warnings_of(caplog) == ["line 3: translated in 2 parts"]


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


def test_equal_texts_are_translated_once(
    model: Transformer, tokenizer: Tokenizer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator, n_requests, progress = make_translator(model, tokenizer), list[int](), list[int]()
    submit = translator.engine.submit

    def record(requests: Any, **options: Any) -> Any:
        n_requests.append(len(requests))
        return submit(requests, **options)

    monkeypatch.setattr(translator.engine, "submit", record)
    texts = ["needs", "a small dog. " * 20]
    alone = translator.translate(texts)
    caplog.clear()
    assert translator.translate([*texts, *texts], on_progress=progress.append) == [*alone, *alone]
    assert n_requests[0] == n_requests[1] and sum(progress) == 4
    assert [warning.split(":")[0] for warning in warnings_of(caplog)] == ["line 2", "line 4"]


def test_a_translation_carries_its_tokens_with_their_log_probabilities(
    model: Transformer, tokenizer: Tokenizer
) -> None:
    translator = make_translator(model, tokenizer, n_best=3)
    [source] = tokenizer.encode_src([TEXTS[0]])
    [found] = translator.translate([TEXTS[0]])
    targets = [[tokenizer.tgt_tokens(range(320)).index(token) for token in t.tokens[:-1]] for t in found]
    for translation, ids in zip(found, targets, strict=True):
        [expected] = score(translator.engine, [source], [ids])
        assert translation.tokens[-1] == "</s>"
        assert translation.text == tokenizer.decode(ids)
        assert translation.token_log_probs == pytest.approx(expected, abs=1e-4)
        assert translation.log_prob == pytest.approx(sum(translation.token_log_probs))
        assert translation.score == pytest.approx(translation.log_prob / len(expected))


def test_a_stream_of_nothing_to_read_is_refused(model: Transformer, tokenizer: Tokenizer) -> None:
    translator = make_translator(model, tokenizer)
    with pytest.raises(UserError, match="at_once = 0: it is a number of lines, at least 1"):
        translator.stream(TEXTS, at_once=0)
    with pytest.raises(UserError, match=r"write stream\(\[text\]\)"):
        translator.stream("the red house")


def test_half_a_surrogate_pair_is_an_unknown_character(model: Transformer, tokenizer: Tokenizer) -> None:
    translator = make_translator(model, tokenizer)
    pairs = [("my old \ud83d friend.", "my old \ufffd friend."), ("a \ud83d\ude00 dog.", "a 😀 dog.")]
    for given, read in pairs:
        assert_same(translator.translate([given])[0], translator.translate([read])[0])
        assert_same(translator.score([given], [given]), translator.score([read], [read]))
        assert translator.align([given], [given])[0].src == read
        assert translator.explain(given).to_dict() == translator.explain(read).to_dict()


def test_a_stream_answers_lines_in_order_as_they_come(
    model: Transformer, tokenizer: Tokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    translator = make_translator(model, tokenizer, max_length=64)
    lines = [*TEXTS, "a small dog. " * 40]
    read, progress = 0, list[int]()

    def reading() -> Iterator[str]:
        nonlocal read
        for line in lines:
            read += 1
            yield line

    stream = translator.stream(reading(), at_once=3, on_progress=progress.append)
    assert read == 0
    first = next(stream)
    assert read == 3
    assert [best.text for best, *_ in [first, *stream]] == [best.text for best, *_ in translator.translate(lines)]
    assert sum(progress) == len(lines)
    assert [warning[:7] for warning in warnings_of(caplog)] == ["line 8:"] * 2  # of the stream, and of translate


def test_a_model_that_yields_nan_ends_with_an_error_in_place_of_translations(
    model: Transformer, tokenizer: Tokenizer
) -> None:
    broken = deepcopy(model)
    with torch.no_grad():
        broken.output.weight.fill_(math.nan)
    for beam_size in (1, 3):
        with pytest.raises(MtformerError, match="predicts NaN"):
            make_translator(broken, tokenizer, beam_size=beam_size).translate(TEXTS)


def test_threads_share_a_translator(model: Transformer, tokenizer: Tokenizer) -> None:
    shared = deepcopy(model)
    shared.src_positions.table = sinusoidal_table(4, 16)  # it grows while the threads translate
    translator = make_translator(shared, tokenizer, max_length=400, beam_size=2)
    texts = [f"{TEXTS[i % len(TEXTS)]} {'red house ' * (i * 7)}" for i in range(8)]
    expected = make_translator(model, tokenizer, max_length=400, beam_size=2).translate(texts)
    with ThreadPoolExecutor(4) as threads:
        for translations, other in zip(
            threads.map(lambda text: translator.translate([text])[0], texts), expected, strict=True
        ):
            assert_same(translations, other)
    assert len(shared.src_positions.table) > 4


def test_the_public_api_loads_a_bundle_or_the_folder_of_its_run(trained: Project) -> None:
    run = trained.folder / "runs" / "config"
    translator = mtformer.Translator.load(str(run / "model.safetensors"))
    [[best]] = translator.translate(["the red house sees a small dog."])
    assert best.text == "das rote Haus sieht ein kleiner Hund."
    several = mtformer.Translator.load(run, device="cpu", n_best=5, length_penalty=1.0)
    assert (several.options.beam_size, several.options.n_best, several.options.length_penalty) == (5, 5, 1.0)
    [found] = several.translate(["the red house sees a small dog."])
    assert (len(found), found[0].text) == (5, best.text)
    with pytest.raises(UserError, match="beam_sice"):
        mtformer.Translator.load(run, beam_sice=3)
    with pytest.raises(UserError, match="there is no model"):
        mtformer.Translator.load("nowhere.safetensors")


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, mtformer; mtformer.__version__; print({'torch', 'numpy', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
    code = "import sys, mtformer.translate.jobs.translating; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    with pytest.raises(AttributeError, match="has no attribute 'Translater'"):
        _ = mtformer.Translater


def test_a_trained_model_translates_what_it_has_learned_alone_and_in_a_batch(trained: Project) -> None:
    bundle = load_bundle(trained.folder / "runs" / "config" / "model.safetensors")
    translator = Translator.load(bundle, "cpu")
    pairs = sentence_pairs(20, seed=9)
    together = translator.translate([src for src, _ in pairs])
    assert sum(best.text == tgt for [best], (_, tgt) in zip(together, pairs, strict=True)) >= 18
    for translations, (src, _) in list(zip(together, pairs, strict=True))[:5]:
        assert_same(translations, translator.translate([src])[0])


def test_beam_search_on_a_trained_model_is_far_more_often_better_than_worse_than_greedy_search(
    trained: Project,
) -> None:
    bundle = load_bundle(trained.folder / "runs" / "config" / "model.safetensors")
    words = " ".join(src for src, _ in sentence_pairs(40, seed=5)).split()
    random = np.random.default_rng(5)
    # Most of these are no sentences that the model has learned, so that it is unsure how to continue.
    texts = [" ".join(random.choice(words, size=random.integers(1, 9))) for _ in range(1_000)]
    scores = {}
    for beam_size in (1, 4):
        translator = Translator.load(bundle, "cpu", raw=True, beam_size=beam_size)
        scores[beam_size] = [best.score for [best] in translator.translate(texts)]
    pairs = list(zip(scores[4], scores[1], strict=True))
    better, worse = (sum(sign * (beam - greedy) > 1e-4 for beam, greedy in pairs) for sign in (1, -1))
    assert better > 100
    assert worse < better / 10  # where the greedy prefix was dropped for others that proved worse later


def test_a_single_string_is_refused(trained: Project) -> None:
    translator = Translator.load(trained.folder / "runs/config/model.safetensors")
    with pytest.raises(UserError, match=r"a list of texts: write translate\(\[text\]\)"):
        translator.translate("the red house")
    with pytest.raises(UserError, match=r"a list of words: write why_not=\[word\]"):
        translator.explain("the red house", why_not="Haus")


def test_no_model_at_all_is_refused() -> None:
    with pytest.raises(UserError, match="load takes a bundle, the folder of a run, or several bundles, and got none"):
        Translator.load([])


def test_an_unknown_device_is_refused(trained: Project) -> None:
    with pytest.raises(UserError, match="device gpu: it is auto, cpu, cuda or mps"):
        Translator.load(trained.folder / "runs/config/model.safetensors", device="gpu")


DIVERSE_TEXTS = [
    *TEXTS,
    "the red house",
    "a small dog sees every good book and her new garden and my old friend and this green car and the red house.",
    "garden garden garden",
    "my old friend likes this green car.",
    "x",
]


@pytest.mark.parametrize(
    ("seed", "settings"),
    [
        (0, {"beam_size": 1}),
        (1, {"beam_size": 4, "n_best": 4}),
        (2, {"beam_size": 5, "n_best": 2, "length_penalty": 1.5}),
        (3, {"beam_size": 1, "sample": True, "n_best": 3}),
    ],
)
def test_a_text_has_the_same_translations_alone_in_any_batch_and_at_any_place(
    tokenizer: Tokenizer, seed: int, settings: dict[str, Any]
) -> None:
    model = random_model(tokenizer, seed)
    translator = make_translator(model, tokenizer, **settings)
    alone = [translator.translate([text])[0] for text in DIVERSE_TEXTS]
    order = np.random.default_rng(seed).permutation(len(DIVERSE_TEXTS))
    shuffled = [DIVERSE_TEXTS[i] for i in order]
    for batch_tokens in (4096, 40):
        in_batches = make_translator(model, tokenizer, **settings, batch_tokens=batch_tokens)
        together = in_batches.translate(DIVERSE_TEXTS * 2)
        assert_close(together, alone * 2)
        assert_close(in_batches.translate(shuffled), [alone[i] for i in order])
        assert_close(list(in_batches.stream(shuffled, at_once=5)), [alone[i] for i in order])


def assert_close(found: list[list[Translation]], expected: list[list[Translation]]) -> None:
    for translations, others in zip(found, expected, strict=True):
        assert [t.text for t in translations] == [t.text for t in others]
        for ours, theirs in zip(translations, others, strict=True):
            assert ours.tokens == theirs.tokens
            assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, abs=1e-4)
            assert ours.score == pytest.approx(theirs.score, abs=1e-4)


def test_threads_share_a_loaded_translator_with_all_that_it_does_to_texts(trained: Project) -> None:
    translator = Translator.load(trained.folder / "runs/config")
    texts = [text for src, _ in sentence_pairs(10, seed=4) for text in (src, src.upper(), f"<b>{src}</b> {src} 😀")]
    expected = translator.translate(texts)
    with ThreadPoolExecutor(4) as threads:
        alone = list(threads.map(lambda text: translator.translate([text])[0], texts))
        together = list(threads.map(lambda _: translator.translate(texts), range(4)))
    assert_close(alone, expected)
    for found in together:
        assert_close(found, expected)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_an_interrupt_between_batches_leaves_a_translator_usable(
    model: Transformer, tokenizer: Tokenizer, beam_size: int
) -> None:
    def interrupt(n_texts: int) -> None:
        raise KeyboardInterrupt

    translator = make_translator(model, tokenizer, beam_size=beam_size, batch_tokens=40)
    expected = translator.translate(TEXTS)
    with pytest.raises(KeyboardInterrupt):
        translator.translate(TEXTS, on_progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        next(translator.stream(TEXTS, on_progress=interrupt))
    assert_close(translator.translate(TEXTS), expected)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_an_interrupt_in_the_middle_of_a_search_leaves_a_translator_usable(
    model: Transformer, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, beam_size: int
) -> None:
    translator = make_translator(model, tokenizer, beam_size=beam_size)
    expected = translator.translate(TEXTS)
    step = TransformerDecoder.step
    for n_steps in (0, 1, 5):
        steps = iter(range(n_steps))

        def interrupted(self: TransformerDecoder, tokens: Tensor, steps: Iterator[int] = steps) -> Tensor:
            if next(steps, None) is None:
                raise KeyboardInterrupt
            return step(self, tokens)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(TransformerDecoder, "step", interrupted)
            translator.translate(TEXTS)
        assert_close(translator.translate(TEXTS), expected)


def test_other_options_share_the_model_and_leave_the_translator_as_it_is(trained: Project) -> None:
    translator = Translator.load(trained.folder / "runs/config", beam_size=4)
    wide = translator.with_options(beam_size=8, n_best=3)
    assert wide.engine is translator.engine
    assert (wide.options.beam_size, translator.options.beam_size) == (8, 4)
    text = "the red house sees a small dog."
    loaded = Translator.load(trained.folder / "runs/config", beam_size=8, n_best=3)
    assert_close(wide.translate([text]), loaded.translate([text]))
    with pytest.raises(UserError, match="beam_sice"):
        translator.with_options(beam_sice=3)
