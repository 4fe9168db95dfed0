"""Models whose special ids are not ours, and whose translations start with forced ids."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from engines import Ids
from test_export import readme_prints

from mtformer.bundle.format import Bundle, load_bundle, save_bundle
from mtformer.bundle.header import all_heads
from mtformer.bundle.peek import peek_tokenizer
from mtformer.config import SearchOptions
from mtformer.config.search import LengthPenalty
from mtformer.config.sources import PrefixTokens
from mtformer.data.batches import make_batch
from mtformer.data.tokens import Encoder
from mtformer.engines.ctranslate2.conversion import write_ctranslate2
from mtformer.engines.torch import TorchEngine
from mtformer.explain.record import Explainer
from mtformer.explain.trace import Trace
from mtformer.export import require_huggingface
from mtformer.export.huggingface import write_huggingface
from mtformer.model.architecture import SpecialIds
from mtformer.model.transformer import Transformer
from mtformer.search.engine import AlignRequest, Engine, ScoreRequest, SearchRequest, results_of
from mtformer.search.hypothesis import ranked
from mtformer.support.errors import UserError
from mtformer.text.glossary import Glossary
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.sentencepiece_file import read_tokens, with_tokens
from mtformer.text.tokenizer.tokenizer import PrefixIds, Tokenizer
from mtformer.training.update import summed_loss
from mtformer.translate.translator import Translator

FIXTURES = Path(__file__).parent / "fixtures"
TEXTS = ["The kettle whistles.", "Our doors open slowly.", "Where is the green kettle?", "A small door.", "Ελλ"]
TARGETS = ["Der Kessel pfeift.", "Unsere Türen sind grün.", "Wo ist Ωx?", "Ein", ""]


def permuted(bundle: Bundle, order: Sequence[int]) -> Bundle:
    """Return the same model with its tokens in another order, and with padding instead of BOS to start decoding.

    What was BOS is called padding and the other way round; to the weights, a name makes no difference.
    """
    old = read_tokens(bundle.tokenizer.src_model)
    old[PAD_ID], old[BOS_ID] = old[BOS_ID], old[PAD_ID]
    place = np.argsort(order).tolist()  # of each old id
    special_ids = SpecialIds(
        pad=place[BOS_ID], unk=place[UNK_ID], bos=place[PAD_ID], eos=place[EOS_ID], start=place[BOS_ID]
    )
    architecture = bundle.header.architecture.model_copy(update={"special_ids": special_ids})
    model = Transformer(architecture)
    model.load_state_dict(bundle.model.state_dict())
    with torch.no_grad():
        for matrix in {model.src_embedding.weight, model.tgt_embedding.weight, model.output.weight}:
            matrix.copy_(matrix[torch.tensor(order)])
    tokenizer = Tokenizer(with_tokens(bundle.tokenizer.src_model, [old[i] for i in order]))
    header = bundle.header.model_copy(update={"architecture": architecture})
    return Bundle(model.eval(), tokenizer.with_start(special_ids.start), header)


@pytest.fixture(scope="module")
def ours() -> Bundle:
    """A model that knows eight sentences by heart; the other tokens of its vocabulary are untrained."""
    return load_bundle(FIXTURES / "bundle-3.safetensors")


@pytest.fixture(scope="module")
def theirs(ours: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The same with its ids shuffled, written and read."""
    path = tmp_path_factory.mktemp("shuffled") / "model.safetensors"
    shuffled = permuted(ours, np.random.default_rng(1).permutation(ours.tokenizer.vocab_size).tolist())
    assert PAD_ID not in (shuffled.tokenizer.special_ids.pad, shuffled.tokenizer.special_ids.start)
    save_bundle(path, shuffled)
    [peeked] = [tokenizer for tokenizer in [peek_tokenizer(path)] if tokenizer is not None]
    assert peeked.special_ids == shuffled.tokenizer.special_ids
    return load_bundle(path)


def test_a_vocabulary_knows_its_special_ids_wherever_they_are(ours: Bundle, theirs: Bundle) -> None:
    assert ours.tokenizer.special_ids.never == [PAD_ID, UNK_ID, BOS_ID]
    special_ids = theirs.tokenizer.special_ids
    assert special_ids == theirs.header.architecture.special_ids
    assert special_ids.start == special_ids.pad
    assert theirs.tokenizer.tgt_tokens([special_ids.pad, special_ids.eos]) == ["<pad>", "</s>"]
    for text in TEXTS:
        [row], [expected] = theirs.tokenizer.encode_src([text]), ours.tokenizer.encode_src([text])
        assert row[-1] == special_ids.eos
        assert theirs.tokenizer.src_tokens(row) == ours.tokenizer.src_tokens(expected)
        assert theirs.tokenizer.decode([*row, special_ids.unk, special_ids.pad]) == ours.tokenizer.decode(expected)
    assert theirs.tokenizer.control_symbols == []


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        {"beam_size": 4, "n_best": 3, "length_penalty": 1.0},
        {"beam_size": 3, "min_length": 12, "repetition_penalty": 1.2},
        {"beam_size": 2, "no_repeat_ngram_size": 2},
        {"sample": True, "top_k": 1},
        {"beam_size": 4, "terms": {"kettle": "Kanne", "green": "blau"}},
    ],
    ids=str,
)
def test_a_search_gives_the_same_translations_whatever_the_ids(
    options: dict[str, Any], ours: Bundle, theirs: Bundle
) -> None:
    if "terms" in options:
        options = options | {"terms": Glossary(options["terms"].items())}
    found, expected = (Translator.load(bundle, **options).translate(TEXTS) for bundle in (theirs, ours))
    assert [[best.text for best in each] for each in found] == [[best.text for best in each] for each in expected]
    assert [[best.tokens for best in each] for each in found] == [[best.tokens for best in each] for each in expected]
    for each, other in zip(found, expected, strict=True):
        assert [best.log_prob for best in each] == pytest.approx([best.log_prob for best in other], abs=1e-4)


def test_samples_contain_no_special_ids_and_have_their_probabilities(theirs: Bundle) -> None:
    engine, options = TorchEngine(theirs.model), SearchOptions(sample=True, n_best=20, beam_size=1, temperature=3.0)
    [src] = theirs.tokenizer.encode_src(["Wo?"])
    [samples] = results_of(engine, [SearchRequest(src, options, 9)])
    for sample, scores in zip(
        samples, results_of(engine, [ScoreRequest(src, sample.ids) for sample in samples]), strict=True
    ):
        assert set(sample.ids).isdisjoint([*theirs.tokenizer.special_ids.never, theirs.tokenizer.special_ids.eos])
        assert sample.token_log_probs == pytest.approx(scores, abs=1e-4)


def test_scores_and_alignments_are_the_same_whatever_the_ids(ours: Bundle, theirs: Bundle) -> None:
    translators = [Translator.load(bundle, beam_size=1) for bundle in (theirs, ours)]
    found, expected = (translator.score(TEXTS, TARGETS) for translator in translators)
    assert [one.tokens for one in found] == [one.tokens for one in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-4)
    aligned, alike = (translator.align(TEXTS[:3], TARGETS[:3]) for translator in translators)
    for alignment, same in zip(aligned, alike, strict=True):
        np.testing.assert_allclose(alignment.weights, same.weights, atol=1e-5)


def assert_same_traces(found: Trace, expected: Trace) -> None:
    assert [token.text for token in found.source.tokens] == [token.text for token in expected.source.tokens]
    assert [token.text for token in found.target.tokens] == [token.text for token in expected.target.tokens]
    assert [token.kind for token in found.target.tokens] == [token.kind for token in expected.target.tokens]
    for step, other in zip(found.steps, expected.steps, strict=True):
        assert [candidate.token.text for candidate in step.candidates] == [
            candidate.token.text for candidate in other.candidates
        ]
        assert step.entropy_bits == pytest.approx(other.entropy_bits, abs=1e-3)
        assert step.instead == other.instead
    assert [finished.text for finished in found.tree.finished] == [finished.text for finished in expected.tree.finished]
    assert [block.shape for block in found.matrices] == [block.shape for block in expected.matrices]


def test_an_explanation_is_the_same_whatever_the_ids(ours: Bundle, theirs: Bundle) -> None:
    found, expected = (Translator.load(bundle).explainer().trace(TEXTS[0]) for bundle in (theirs, ours))
    assert (found.bos.text, found.bos.kind, expected.bos.text) == ("<pad>", "special", "<s>")
    assert_same_traces(found, expected)


def test_batches_and_losses_are_the_same_whatever_the_ids(ours: Bundle, theirs: Bundle) -> None:
    pairs = list(map(SentencePair, TEXTS[:4], TARGETS[:4]))
    losses = []
    for bundle in (theirs, ours):
        corpus = Encoder(bundle.tokenizer, max_length=64, max_ratio=100).corpus(pairs)
        batch = make_batch(corpus, [0, 1, 2, 3], 40, 40)
        assert batch.n_tokens == sum(len(corpus.tgt[i]) for i in range(4))
        assert (batch.tgt_in[:, 0] == bundle.header.architecture.special_ids.start).all()
        loss = summed_loss(bundle.model, batch, 0.1)
        gradient = torch.autograd.grad(loss.smoothed, bundle.model.tgt_embedding.weight)[0]
        losses.append([loss.smoothed.item(), loss.cross_entropy.item(), gradient.norm().item()])
        assert summed_loss(bundle.model, batch.without_targets(), 0.1).smoothed.item() == 0
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_ctranslate2_follows_the_special_ids(ours: Bundle, theirs: Bundle, tmp_path: Path) -> None:
    write_ctranslate2(tmp_path, theirs, name="model.safetensors", quantization="float32")
    assert json.loads((tmp_path / "config.json").read_text())["decoder_start_token"] == "<pad>"
    found, expected = (Translator.load(model) for model in (tmp_path, ours))
    assert [best.text for [best] in found.translate(TEXTS[:3])] == [
        best.text for [best] in expected.translate(TEXTS[:3])
    ]
    scores = zip(found.score(TEXTS[:3], TARGETS[:3]), expected.score(TEXTS[:3], TARGETS[:3]), strict=True)
    for one, other in scores:
        assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-4)


def test_transformers_follow_the_special_ids(ours: Bundle, theirs: Bundle, tmp_path: Path) -> None:
    write_huggingface(tmp_path, theirs, name="model.safetensors")
    readme = tmp_path / "README.md"
    readme.write_text(readme.read_text(encoding="utf-8").replace("…", TEXTS[0]), encoding="utf-8")
    [[best]] = Translator.load(ours).translate(TEXTS[:1])
    assert readme_prints(tmp_path) == [best.text]


# A model whose translations start with a forced id. Any token will do: here it is the last one of the vocabulary.


@pytest.fixture(scope="module")
def forced(ours: Bundle) -> Bundle:
    """A model that has learned nothing, whose translations start with a token that stands for a language."""
    tokens = read_tokens(ours.tokenizer.src_model)
    special = [token for token in tokens if token.text == "</s>"]
    tokens[-1] = special[0]._replace(text="<2de>")
    torch.manual_seed(3)
    model = Transformer(ours.header.architecture.model_copy(update={"tie_embeddings": False}))
    with torch.no_grad():
        model.output.weight.mul_(3)
        model.tgt_embedding.weight[-1] *= 5  # it makes a difference
        model.output.weight[EOS_ID] *= 2
    header = ours.header.model_copy(
        update={"prefixes": {"en-de": PrefixTokens(tgt=("<2de>",))}, "architecture": model.architecture}
    )
    tokenizer = header.make_tokenizer([with_tokens(ours.tokenizer.src_model, tokens)])
    return Bundle(model.eval(), tokenizer, header)


def asked(bundle: Bundle, options: SearchOptions, prefix: Ids = (), forced: Ids = ()) -> list[SearchRequest]:
    sources = bundle.tokenizer.encode_src(TEXTS[:4])
    return [SearchRequest(src, options, 12 + len(prefix), prefix, forced=forced) for src in sources]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_forced_ids_are_neither_scored_nor_shown(forced: Bundle, beam_size: int) -> None:
    engine, ids = TorchEngine(forced.model), forced.tokenizer.prefixes.tgt
    assert ids == (forced.tokenizer.vocab_size - 1,)
    options = SearchOptions(beam_size=beam_size, n_best=beam_size, length_penalty=0.0)
    found = results_of(engine, asked(forced, options, forced=ids))
    by_prefix = results_of(engine, asked(forced, options, prefix=ids))  # where the search scores and shows them
    without = results_of(engine, asked(forced, options))
    assert [best.ids for best, *_ in found] != [best.ids for best, *_ in without]
    for hypotheses, expected in zip(found, by_prefix, strict=True):
        expected = ranked(expected, LengthPenalty(0.0))
        assert [one.ids for one in ranked(hypotheses, LengthPenalty(0.0))] == [one.ids[1:] for one in expected]
        for one, other in zip(ranked(hypotheses, LengthPenalty(0.0)), expected, strict=True):
            assert one.token_log_probs == pytest.approx(other.token_log_probs[1:], abs=1e-4)
    longest = results_of(engine, asked(forced, SearchOptions(min_length=12, beam_size=2), forced=ids))
    assert {len(best.ids) for best, *_ in longest} == {12}  # they do not count


def test_samples_and_constraints_follow_forced_ids(forced: Bundle) -> None:
    translator = Translator.load(forced, beam_size=2, terms=Glossary([("kettle", "Kanne")]), max_length_factor=1.0)
    [[best]] = translator.translate(TEXTS[:1])
    assert "Kanne" in best.text and "<2de>" not in best.text
    assert "<2de>" not in best.tokens
    [[sample]] = Translator.load(forced, sample=True, max_length_factor=1.0, max_length_offset=1).translate(TEXTS[:1])
    assert "<2de>" not in sample.tokens


def test_scores_and_alignments_begin_after_the_forced_ids(forced: Bundle) -> None:
    ids, src, tgt = forced.tokenizer.prefixes.tgt, *forced.tokenizer.encode_src(TEXTS[:2])
    tgt = tgt[:-1]
    engine: Engine = TorchEngine(forced.model, alignment_heads=[all_heads(forced.header.architecture)])
    [found, whole] = results_of(engine, [ScoreRequest(src, tgt, ids), ScoreRequest(src, [*ids, *tgt])])
    assert found == pytest.approx(whole[1:], abs=1e-5)
    [weights, all_weights] = results_of(engine, [AlignRequest(src, tgt, ids), AlignRequest(src, [*ids, *tgt])])
    np.testing.assert_allclose(weights, all_weights[1:], atol=1e-6)
    [translation] = Translator.load(forced).score(TEXTS[:1], TARGETS[:1])
    [target] = forced.tokenizer.encode_tgt(TARGETS[:1])
    [expected] = results_of(engine, [ScoreRequest(forced.tokenizer.encode_src(TEXTS[:1])[0], target[:-1], ids)])
    assert translation.token_log_probs == pytest.approx(expected, abs=1e-5)


def test_an_explanation_does_not_show_forced_ids(forced: Bundle) -> None:
    explainer: Explainer = Translator.load(forced, max_length_factor=1.0, max_length_offset=2).explainer()
    trace = explainer.trace(TEXTS[0])
    n_src, n_tgt = len(trace.source.tokens), len(trace.target.tokens)
    assert "<2de>" not in [token.text for token in trace.target.tokens]
    assert trace.attention("decoder", layer=1).shape == (n_tgt, n_tgt)
    assert trace.attention("cross", layer=1).shape == (n_tgt, n_src)
    assert {len(block.values) for block in trace.matrices if block.name == "scaled embeddings"} == {n_src, n_tgt}
    [translation] = Translator.load(forced).score(TEXTS[:1], [trace.target.text])
    if translation.tokens == tuple(token.text for token in trace.target.tokens):
        assert trace.target.log_prob == pytest.approx(translation.log_prob, abs=1e-3)
    log_probs = [step.choice.log_prob for step in trace.steps]
    assert sum(log_probs) == pytest.approx(trace.target.log_prob, abs=1e-3)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_ctranslate2_forces_the_same_ids(forced: Bundle, beam_size: int, tmp_path: Path) -> None:
    write_ctranslate2(tmp_path, forced, name="model.safetensors", quantization="float32")
    changes: dict[str, Any] = {"beam_size": beam_size, "max_length_factor": 1.0, "max_length_offset": 3}
    found, expected = (Translator.load(model, **changes) for model in (tmp_path, forced))
    assert found.tokenizer.prefixes == PrefixIds(tgt=forced.tokenizer.prefixes.tgt)
    for [one], [other] in zip(found.translate(TEXTS[:4]), expected.translate(TEXTS[:4]), strict=True):
        assert (one.text, one.tokens) == (other.text, other.tokens)
        assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-3)
    texts = [best.text for [best] in expected.translate(TEXTS[:1])]
    for one, other in zip(found.score(TEXTS[:1], texts), expected.score(TEXTS[:1], texts), strict=True):
        assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-3)
    readme = tmp_path / "README.md"
    readme.write_text(readme.read_text(encoding="utf-8").replace("…", TEXTS[0]), encoding="utf-8")
    assert "<2de>" not in readme_prints(tmp_path)[0]


def test_transformers_force_one_id_and_refuse_more(forced: Bundle, ours: Bundle, tmp_path: Path) -> None:
    tied = ours.header.model_copy(update={"prefixes": forced.header.prefixes})
    write_huggingface(tmp_path, replace(ours, header=tied, tokenizer=forced.tokenizer), name="model.safetensors")
    settings = json.loads((tmp_path / "generation_config.json").read_text())
    assert settings["forced_bos_token_id"] == forced.tokenizer.prefixes.tgt[0]
    two = tied.model_copy(update={"prefixes": {"en-de": PrefixTokens(tgt=("<2de>", "<x>"))}})
    with pytest.raises(UserError, match=r"force one token at the start .* this one <2de>, <x>"):
        require_huggingface(two)


def test_directions_may_have_prefixes_of_any_names(ours: Bundle, forced: Bundle) -> None:
    prefixes = {
        "en-de": PrefixTokens(src=("<2de>",)),
        "fr-de": PrefixTokens(),
        "en-fr": PrefixTokens(tgt=("<2de>",)),
    }
    header = ours.header.model_copy(update={"src_lang": "mul", "tgt_lang": "mul", "directions": tuple(prefixes)})
    header = header.model_copy(update={"prefixes": prefixes})
    tokenizer, [tag] = header.make_tokenizer([forced.tokenizer.src_model]), forced.tokenizer.prefixes.tgt
    assert tokenizer.prefixes == PrefixIds()
    assert header.toward(tokenizer, "en", "de")[1].prefixes == PrefixIds(src=(tag,))
    assert header.toward(tokenizer, None, "fr")[1].prefixes == PrefixIds(tgt=(tag,))
    with pytest.raises(UserError, match=r"name the source language too \(--from\)"):
        header.toward(tokenizer, None, "de")
