"""Traces: every recorded number against the model, and the search replayed from its tree."""

import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from conftest import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Project
from engines import candidates, request, score
from torch import Tensor, nn

from mtformer import Translator
from mtformer.bundle.format import load_bundle
from mtformer.config import ModelConfig
from mtformer.config.search import LengthPenalty
from mtformer.engines.torch import TorchEngine
from mtformer.explain.explanation import checkpoint_models, compare, explain
from mtformer.explain.matrices import record_pass
from mtformer.explain.plain import rounded
from mtformer.explain.record import Explainer
from mtformer.explain.trace import Block, Node, Trace
from mtformer.explain.why_not import _ordinal, _pattern, with_why_not
from mtformer.model.architecture import ACTIVATIONS
from mtformer.model.attention import record_attention
from mtformer.model.transformer import Transformer
from mtformer.runs.checkpoints import list_checkpoints, model_weights, step_of
from mtformer.runs.folder import RunFolder
from mtformer.search.hypothesis import Hypothesis
from mtformer.support.errors import UserError
from mtformer.support.terminal import fixed

SENTENCE = "the red house sees a small dog."
Blocks = dict[Any, Tensor]  # by stack, side, layer, sub-layer and name


def make_model(seed: int, vocab_size: int = 12, **config: Any) -> Transformer:
    torch.manual_seed(seed)
    values = {"d_model": 16, "n_heads": 2, "d_ff": 32, "n_encoder_layers": 2, "n_decoder_layers": 2, **config}
    sizes = ModelConfig.model_validate({"tie_embeddings": False, **values})
    model = Transformer(
        sizes.architecture(src_vocab_size=vocab_size, tgt_vocab_size=vocab_size, joint=True, max_length=64)
    )
    with torch.no_grad():
        model.output.weight.mul_(3)
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):  # fresh ones are zero, and would hide that one is missing
                nn.init.normal_(parameter, std=0.1)
    return model.eval()


@pytest.fixture(scope="module")
def translator(trained: Project) -> Translator:
    return Translator.load(trained.folder / "runs/config")


@pytest.fixture(scope="module")
def trace(translator: Translator) -> Trace:
    return translator.explain(SENTENCE)


def with_random_model(translator: Translator, seed: int, **options: Any) -> Explainer:
    """Return what explains a model that hesitates at every step, with the tokenizer of ``translator``."""
    model = make_model(seed, translator.tokenizer.tgt_vocab_size)
    short = {"max_length_factor": 0.5, "max_length_offset": 3}
    found = replace(translator.explainer(), options=translator.options.updated(**short, **options))
    return replace(found, engine=TorchEngine(model))


# Matrices


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"norm": "post"},
        {"norm": "post", "feed_forward": "gelu", "positions": "learned"},
        {"positions": "rotary", "tie_embeddings": True},
        {"positions": "none", "n_encoder_layers": 1, "n_decoder_layers": 3},
        *({"feed_forward": name} for name in ACTIVATIONS),
    ],
    ids=lambda config: "-".join(map(str, config.values())) or "default",
)
def test_every_matrix_follows_from_those_before_it(config: dict[str, Any]) -> None:
    model = make_model(3, **config)
    src, tgt_in = torch.tensor([[5, 8, 11, 4, EOS_ID]]), torch.tensor([[BOS_ID, 7, 7, 9]])
    with torch.inference_mode():
        expected = model.project(model(src, torch.ones_like(src, dtype=torch.bool), tgt_in))[0]
        found = record_pass(model, src, tgt_in)
        assert not any(module._forward_hooks for module in model.modules())  # the hooks are gone
        torch.testing.assert_close(found.logits, expected, rtol=0, atol=1e-4)
        blocks = {(b.stack, b.side, b.layer, b.sublayer, b.name): torch.tensor(b.values) for b in found.blocks}
        assert all(b.shape == b.values.shape for b in found.blocks)
        used: set[Any] = set()
        memory = follow_stack(model, blocks, used, "encoder", "source", src[0], None)
        hidden = follow_stack(model, blocks, used, "decoder", "target", tgt_in[0], memory)
        torch.testing.assert_close(hidden @ model.output.weight.T, expected, rtol=0, atol=1e-4)
    assert set(blocks) == used  # none was recorded that this test does not recompute


def follow_stack(
    model: Transformer, blocks: Blocks, used: set[Any], stack: str, side: str, ids: Tensor, memory: Tensor | None
) -> Tensor:
    """Recompute a stack by the formulas of the paper from the model's weights, comparing each block on the way."""

    def same(values: Tensor, *key: Any) -> Tensor:
        torch.testing.assert_close(blocks[key].float(), values.float(), rtol=0, atol=1e-4)
        used.add(key)
        return values

    prefix = "src" if side == "source" else "tgt"
    x = same(getattr(model, f"{prefix}_embedding").weight[ids], "embedding", side, None, None, "embeddings")
    x = same(x * math.sqrt(model.d_model), "embedding", side, None, None, "scaled embeddings")
    positions = getattr(model, f"{prefix}_positions")(0, len(ids))
    if isinstance(positions, Tensor):
        same(positions, "embedding", side, None, None, "positions")
        x = same(x + positions, "embedding", side, None, None, "x")
    names = ["self_attention", *(["cross_attention"] if memory is not None else []), "feed_forward"]
    for number, layer in enumerate(getattr(model, f"{stack}_layers"), 1):
        for residual, name in zip(layer.residuals, names, strict=True):

            def at(values: Tensor, block: str, number: int = number, name: str = name) -> Tensor:
                return same(values, stack, side, number, name, block)

            y = at(residual.norm(x), "norm") if residual.norm_first else x
            module = getattr(layer, name)
            y = feed(module, y, at) if name == "feed_forward" else attend(module, y, memory, name, stack, at)
            x = at(x + y, "residual")
            x = x if residual.norm_first else at(residual.norm(x), "norm")
    norm = getattr(model, f"{stack}_norm")
    return x if isinstance(norm, nn.Identity) else same(norm(x), stack, side, None, "norm", f"{stack} output")


def attend(module: Any, x: Tensor, memory: Tensor | None, name: str, stack: str, at: Any) -> Tensor:
    keys = memory if name == "cross_attention" and memory is not None else x
    w, b = module.qkv_proj.weight.chunk(3), module.qkv_proj.bias.chunk(3)
    q, k, v = (
        (of @ weight.T + bias).unflatten(-1, (module.n_heads, -1)).transpose(0, 1)  # (H, T, Dh)
        for of, weight, bias in zip((x, keys, keys), w, b, strict=True)
    )
    if module.rotary:
        q, k = rotated(q), rotated(k)
    at(q, "Q"), at(k, "K"), at(v, "V")
    scores = at(at(q @ k.mT, "scores") / math.sqrt(q.size(-1)), "scaled scores")
    if stack == "decoder" and name == "self_attention":
        mask = torch.tensor([[i <= t for i in range(len(x))] for t in range(len(x))])
        at(mask, "mask")
        scores = at(scores.masked_fill(~mask, -math.inf), "masked scores")
    heads = at(at(scores.softmax(-1), "weights") @ v, "heads")
    together = at(torch.cat(list(heads), dim=-1), "concatenation")
    return at(together @ module.out_proj.weight.T + module.out_proj.bias, "output")


def rotated(x: Tensor) -> Tensor:
    half = x.size(-1) // 2
    angle = torch.arange(x.size(-2))[:, None] * 10_000.0 ** (-torch.arange(half) / half)
    turned = torch.complex(*x.chunk(2, dim=-1)) * torch.exp(1j * angle)
    return torch.cat([turned.real, turned.imag], dim=-1)


def feed(module: Any, x: Tensor, at: Any) -> Tensor:
    first = x @ module.linear1.weight.T + module.linear1.bias
    inside = module.activation(at(first, "linear1"))
    assert module.activation in [getattr(F, row.function) for row in ACTIVATIONS.values()]
    at(inside, "activation")
    return at(inside @ module.linear2.weight.T + module.linear2.bias, "linear2")


@pytest.mark.parametrize(("norm", "read"), [("pre", "norm"), ("post", "x")])
def test_formulas_name_the_matrix_that_a_sub_layer_reads(norm: str, read: str) -> None:
    found = record_pass(make_model(3, norm=norm), torch.tensor([[5, 8, EOS_ID]]), torch.tensor([[BOS_ID, 7]]))
    formulas = {(b.sublayer, b.name): b.formula for b in found.blocks}
    assert formulas["self_attention", "Q"] == f"{read}·W^Q + b"
    assert formulas["self_attention", "K"] == f"{read}·W^K + b"
    assert formulas["cross_attention", "Q"] == f"{read}·W^Q + b"
    assert formulas["cross_attention", "V"] == "memory·W^V + b"
    assert formulas["feed_forward", "linear1"] == f"{read}·W1 + b1"


FORMULAS = {
    "relu": "max(0, linear1)",
    "gelu": "GELU(linear1)",
    "silu": "SiLU(linear1)",
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_each_activation_has_its_formula(name: str) -> None:
    model = make_model(3, feed_forward=name)
    found = record_pass(model, torch.tensor([[5, 8, EOS_ID]]), torch.tensor([[BOS_ID, 7]]))
    formulas = {block.formula for block in found.blocks if block.name == "activation"}
    assert formulas == {FORMULAS[name]}


def test_attention_is_what_the_model_computes(translator: Translator, trace: Trace) -> None:
    assert isinstance(translator.engine, TorchEngine)
    model = translator.engine.model
    src = torch.tensor([[token.id for token in trace.source.tokens]])
    tgt_in = torch.tensor([[token.id for token in trace.decoder_input]])
    with torch.inference_mode(), record_attention(model) as expected:
        model(src, src != PAD_ID, tgt_in)
    assert {attention.name for attention in trace.attentions} == set(expected)
    for attention in trace.attentions:
        np.testing.assert_allclose(attention.weights, expected[attention.name][0][0].numpy(), atol=1e-5)
    weights = translator.explain(SENTENCE).attention("cross", layer=1, head=2)
    np.testing.assert_allclose(weights, expected["decoder_layers.0.cross_attention"][0][0, 1], atol=1e-5)
    mean = trace.attention("encoder", layer=1)
    np.testing.assert_allclose(mean, expected["encoder_layers.0.self_attention"][0][0].mean(0), atol=1e-5)


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        ({"kind": "encoder", "layer": 2}, "there is no layer 2: this model's encoder has layers 1 to 1"),
        ({"kind": "cross", "layer": 1, "head": 0}, "there is no head 0: this model has heads 1 to 2"),
        ({"kind": "self", "layer": 1}, "there is no attention 'self'; there are encoder, decoder, cross"),
    ],
)
def test_attention_that_does_not_exist(trace: Trace, chosen: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        trace.attention(**chosen)


# The search


@pytest.mark.parametrize("beam_size", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_tree_replays_the_search(translator: Translator, beam_size: int, seed: int) -> None:
    explainer = with_random_model(translator, seed, beam_size=beam_size, n_best=2, length_penalty=1.0)
    trace = explainer.trace(SENTENCE)
    src = [token.id for token in trace.source.tokens]
    limit = explainer.options.limit(len(src))
    expected = candidates(explainer.engine, [request(src, limit)], explainer.options)[0]
    assert replay(trace, beam_size, 2, limit) == expected
    assert [f.score for f in trace.tree.finished[:2]] == [
        hypothesis.score(LengthPenalty(1.0)) for hypothesis in expected
    ]
    assert {node.fate for node in trace.tree.nodes} >= {"expanded", "finished", "pruned"}


def replay(trace: Trace, beam_size: int, n_best: int, limit: int) -> list[Hypothesis]:
    """Search once more by the rules of beam search, with the recorded nodes instead of a model."""
    nodes = trace.tree.nodes
    beams, found = [nodes[0]], list[Hypothesis]()
    for step in range(1, nodes[-1].step + 1):
        assert {beam.fate for beam in beams} == {"expanded"}
        candidates = [node for node in nodes if node.step == step]
        assert [node.rank for node in sorted(candidates, key=lambda node: -node.total)] == sorted(
            node.rank for node in candidates
        )
        assert all(nodes[node.parent or 0] in beams for node in candidates)
        assert all(node.total == pytest.approx(nodes[node.parent or 0].total + node.log_prob) for node in candidates)
        assert [node.total for node in candidates] == sorted((node.total for node in candidates), reverse=True)
        finished = [node for node in candidates[:beam_size] if node.token.id == EOS_ID]
        assert all(node.fate == "finished" for node in finished)
        found += [hypothesis_of(trace, node) for node in finished]
        beams = [node for node in candidates if node.token.id != EOS_ID][:beam_size]
        assert all(node.fate == "pruned" for node in candidates if node not in finished + beams)
    assert {beam.fate for beam in beams} <= {"stopped"}
    found = sorted(found, key=lambda hypothesis: -hypothesis.score(LengthPenalty(1.0)))
    best_left = max((beam.total for beam in beams), default=-math.inf)
    scores = [hypothesis.score(LengthPenalty(1.0)) for hypothesis in found] + [-math.inf] * beam_size
    cannot_win = best_left / LengthPenalty(1.0)(limit + 1) <= scores[n_best - 1]
    assert cannot_win or best_left / LengthPenalty(1.0)(nodes[-1].step) <= scores[beam_size - 1]
    return found[:n_best]


def hypothesis_of(trace: Trace, node: Node) -> Hypothesis:
    path = trace.tree.path(node)
    return Hypothesis([other.token.id for other in path[:-1]], [other.log_prob for other in path])


def test_node_probabilities_are_the_models(translator: Translator) -> None:
    explainer = with_random_model(translator, 1, beam_size=3)
    trace = explainer.trace(SENTENCE)
    src = [token.id for token in trace.source.tokens]
    leaves = [node for node in trace.tree.nodes[1:] if node.fate in ("finished", "pruned")]
    paths = [[other.token.id for other in trace.tree.path(node)] for node in leaves]
    scores = score(explainer.engine, [src] * len(paths), [path[:-1] if path[-1] == EOS_ID else path for path in paths])
    for node, path, expected in zip(leaves, paths, scores, strict=True):
        log_probs = [other.log_prob for other in trace.tree.path(node)]
        assert log_probs == pytest.approx(expected[: len(path)], abs=1e-4)
        assert node.total == pytest.approx(sum(log_probs), abs=1e-4)


def test_greedy_search_has_a_path_and_what_it_passed_by(translator: Translator) -> None:
    trace = with_random_model(translator, 2, beam_size=1).trace(SENTENCE)
    [finished] = trace.tree.finished
    path = trace.tree.path(trace.tree.nodes[finished.node])
    assert [node.token for node in path] == list(trace.target.tokens)
    assert [node.fate for node in path] == ["expanded"] * (len(path) - 1) + ["finished"]
    assert all(node.rank == 1 for node in path)
    others = [node for node in trace.tree.nodes[1:] if node not in path]
    assert {node.fate for node in others} == {"pruned"}
    assert {sum(node.step == step for node in others) for step in range(1, len(path))} == {9}


# Decoding


def test_steps_show_the_models_distribution(translator: Translator) -> None:
    explainer = with_random_model(translator, 4, beam_size=2)
    trace = explainer.trace(SENTENCE)
    src = torch.tensor([[token.id for token in trace.source.tokens]])
    target = [token.id for token in trace.target.tokens]
    for t, step in enumerate(trace.steps):
        tgt_in = torch.tensor([[BOS_ID, *target[:t]]])
        with torch.inference_mode():
            model = explainer.engine.model
            log_probs = model.project(model(src, src != PAD_ID, tgt_in))[0, -1].double().log_softmax(-1)
        probabilities = log_probs.exp()
        assert step.number == t + 1
        assert step.entropy_bits == pytest.approx(-float((probabilities * probabilities.log2()).sum()), abs=1e-4)
        allowed = [i for i in range(len(log_probs)) if i not in (PAD_ID, UNK_ID, BOS_ID)]
        likeliest = sorted(allowed, key=lambda i: -float(log_probs[i]))
        found = [candidate.token.id for candidate in step.candidates]
        assert found[:9] == likeliest[:9]
        assert len(found) == 10
        assert step.choice.token.id == target[t]
        assert [c.rank for c in step.candidates] == [likeliest.index(i) + 1 for i in found]
        assert [c.log_prob for c in step.candidates] == pytest.approx(log_probs[found].tolist(), abs=1e-4)
        assert [c.probability for c in step.candidates] == pytest.approx(probabilities[found].tolist(), abs=1e-4)
        other = next(i for i in likeliest if i != target[t])
        assert step.margin == pytest.approx(float(log_probs[target[t]] - log_probs[other]), abs=1e-4)
        assert (step.instead is not None) == (step.margin < 1)
        if step.instead is not None:
            prefix = [*target[:t], other]
            text = explainer.tokenizer.decode(prefix)
            if other != EOS_ID:
                greedy = explainer.options.model_copy(update={"beam_size": 1})
                [[best]] = candidates(
                    explainer.engine, [request(src[0].tolist(), greedy.limit(src.size(1)), prefix)], greedy
                )
                text = explainer.tokenizer.decode(best.ids)
            assert step.instead == text
    assert any(step.instead for step in trace.steps)


def test_the_translation_is_that_of_translate(translator: Translator, trace: Trace) -> None:
    [[best]] = translator.translate([SENTENCE])
    assert trace.target.text == best.text
    assert trace.target.log_prob == best.log_prob
    assert trace.target.score == best.score
    assert tuple(token.text for token in trace.target.tokens) == best.tokens
    assert all(trace.tree.nodes[f.node].token.id == EOS_ID for f in trace.tree.finished)
    assert [f.text for f in trace.tree.finished if f.returned] == [best.text]


def test_characters_that_became_bytes(translator: Translator) -> None:
    trace = translator.explain("a €🙂 dog")
    spelled = [token for token in trace.source.tokens if token.kind == "byte"]
    assert bytes(int(token.text[3:5], 16) for token in spelled).decode() == "€🙂"
    assert [token.character for token in spelled] == ["€"] * 3 + ["🙂"] * 4
    assert trace.source.tokens[-1].kind == "special"
    assert trace.source.tokens[0].kind == "word"
    a_part = translator.explainer().spelling("").src_tokens([token.id for token in spelled[:2]])
    assert [token.character for token in a_part] == [None, None]


# What if


def test_a_prefix_is_forced_and_continued(translator: Translator) -> None:
    trace = translator.explain(SENTENCE, prefix="dieses grüne Auto")
    n_forced = sum(step.choice.forced for step in trace.steps)
    forced = [token.id for token in trace.target.tokens[:n_forced]]
    assert forced == translator.tokenizer.encode_tgt(["dieses grüne Auto"])[0][:-1]
    assert trace.target.text.startswith("dieses grüne Auto ")
    assert len(trace.target.text.split()) > 3
    against = next(step for step in trace.steps if step.margin < 0)  # the model wanted to say "das"
    assert against.choice.forced
    assert against.instead is not None
    assert against.instead.startswith("d")
    assert not against.instead.startswith("dieses grüne Auto")


def test_why_not_names_step_rank_and_gap(translator: Translator, trace: Trace) -> None:
    [answer] = translator.explain(SENTENCE, why_not=["findet"]).why_not
    assert not answer.found
    assert [token.text for token in answer.tokens] == translator.tokenizer.tgt_tokens(
        translator.tokenizer.encode_tgt(["findet"])[0][:-1]
    )
    target = [token.id for token in trace.target.tokens]
    src = torch.tensor([[token.id for token in trace.source.tokens]])
    assert isinstance(translator.engine, TorchEngine)
    model = translator.engine.model
    with torch.inference_mode():
        log_probs = model.project(model(src, src != PAD_ID, torch.tensor([[BOS_ID, *target[:-1]]])))[0].log_softmax(-1)
    word = [token.id for token in answer.tokens]
    places = []  # log probability, prefix and step of the first token that is another than the translation's
    for begin in range(len(target)):
        prefix = [*target[:begin], *word]
        t = next(t for t, token in enumerate(prefix) if token != target[t])
        places.append((float(log_probs[t, prefix[t]]), prefix, t))
    places = sorted(places, reverse=True)[:10]
    for step, (log_prob, prefix, t) in zip(answer.steps, places, strict=True):
        assert step.step == t + 1
        assert step.log_prob == pytest.approx(log_prob, abs=1e-4)
        assert step.gap == pytest.approx(float(log_probs[t, target[t]]) - log_prob, abs=1e-4)
        assert step.rank == 1 + int((log_probs[t, EOS_ID:] > log_probs[t, prefix[t]]).sum())
    limit = translator.options.limit(src.size(1))
    requests = [request(src[0].tolist(), limit, prefix) for _, prefix, _ in places]
    found = candidates(translator.engine, requests, translator.options)
    with_word = [hypotheses[0] for hypotheses in found if "findet" in translator.tokenizer.decode(hypotheses[0].ids)]
    best = max(with_word, key=lambda hypothesis: hypothesis.score(LengthPenalty(1.0)))
    assert answer.score is not None
    assert answer.text == translator.tokenizer.decode(best.ids)
    assert answer.score == pytest.approx(best.score(LengthPenalty(1.0)), abs=1e-4)
    assert "findet" in answer.text
    assert f"has score {fixed(answer.score, 3)} instead of {fixed(trace.target.score, 3)}." in answer.message
    assert "▁" not in answer.message.replace("“▁”", "")  # a token may be nothing but the space before a word


def test_why_not_finds_where_a_beam_was_pruned(translator: Translator) -> None:
    explainer = with_random_model(translator, 0, beam_size=3)
    trace = explainer.trace(SENTENCE)
    nodes = trace.tree.nodes

    paths = [[other.token.id for other in trace.tree.path(node)] for node in nodes]
    words_of = [re.findall(r"\w+", explainer.tokenizer.decode(path)) for path in paths]
    words = {word for words in words_of for word in words if word.isalpha()}
    answers = with_why_not(explainer, trace, [*sorted(words)[:40], "Garten"]).why_not
    fates = set()
    for answer in answers:
        fate_of = {node.id: node.fate for node in nodes if answer.word in words_of[node.id]}
        assert answer.found == (answer.word in re.findall(r"\w+", trace.target.text))
        if answer.found:
            continue
        pruned = [nodes[i] for i, fate in fate_of.items() if fate == "pruned"]
        of_beams = [node for node in pruned if node.parent in fate_of]
        if "finished" in fate_of.values():
            fate, step = "The search finished ", None
        elif "stopped" in fate_of.values():
            fate, step = "A beam with it was left when the search stopped ", None
        elif of_beams:
            step = max(node.step for node in of_beams)
            fate = f"The last beam with it was pruned at step {step}: its best continuation ranked "
        elif pruned:
            step, fate = None, ", but never in a beam."
        else:
            step, fate = None, "No candidate of the search contained it."
        assert fate in answer.message
        assert answer.pruned_at == step
        fates.add(fate[:20])
        for place in answer.steps:
            if place.node is not None:
                assert nodes[place.node].token.text == f"▁{answer.word}"
                assert nodes[place.node].step == place.step
                assert nodes[place.node].log_prob == pytest.approx(place.log_prob, abs=1e-4)
    assert len(fates) >= 3, (fates, len(words))


def test_why_not_of_a_word_that_is_there(translator: Translator) -> None:
    [answer] = translator.explain(SENTENCE, why_not=["Haus"]).why_not
    assert answer.found
    assert answer.message.startswith("The translation contains “Haus”, at step ")
    assert answer.steps == ()


def test_a_word_that_the_prefix_excludes_is_not_blamed_on_the_search(translator: Translator) -> None:
    trace = translator.explain(SENTENCE, prefix="dieses grüne Auto", why_not=["das"])
    [answer] = trace.why_not
    assert re.match(r"The prefix excludes it at step [12], where .* was the likeliest\. At step ", answer.message)
    n_forced = sum(step.choice.forced for step in trace.steps)
    assert answer.steps
    assert min(step.step for step in answer.steps) > n_forced
    assert answer.text is not None
    assert answer.text.startswith("dieses grüne Auto")


def test_a_word_inside_a_longer_token_counts_only_where_no_spaces_separate_words(translator: Translator) -> None:
    explainer = translator.explainer()
    trace = explainer.trace(SENTENCE)
    step = next(step for step, token in enumerate(trace.target.tokens, 1) if token.text == "▁Haus")
    [german] = with_why_not(explainer, trace, ["Hau"]).why_not
    [chinese] = with_why_not(replace(explainer, tgt_lang="zh"), trace, ["aus"]).why_not
    assert not german.found
    assert chinese.message == f"The translation contains “aus”, at step {step}."


@pytest.mark.parametrize(
    ("word", "language", "text", "found"),
    [
        ("Hund", "de", "ein Hund.", True),
        ("Hund", "de", "eine Hundehütte", False),
        ("hütte", "de", "eine Hundehütte", False),
        ("müde.", "de", "er ist müde.", True),
        ("müde.", "de", "er ist todmüde.", False),
        (", weil", "de", "müde, weil", True),
        ("工程", "zh", "工程师", True),
    ],
)
def test_words_end_where_letters_do(word: str, language: str, text: str, found: bool) -> None:
    assert (_pattern(word, language).search(text) is not None) == found


@pytest.mark.parametrize(("number", "name"), [(1, "1st"), (22, "22nd"), (13, "13th"), (1_103, "1,103rd")])
def test_ordinal_numbers(number: int, name: str) -> None:
    assert _ordinal(number) == name


def test_the_word_of_a_language_without_spaces_needs_no_boundary(translator: Translator) -> None:
    explainer = replace(translator.explainer(), tgt_lang="zh")
    ids = [explainer.encode_word(explainer.spelling("a dog"), "Hund", first=first) for first in (True, False)]
    first, later = map(translator.tokenizer.tgt_tokens, ids)
    assert "".join(first) == "▁Hund"
    assert "".join(later) == "Hund"


def test_compare_aligns_tokens_and_measures_every_head(translator: Translator, trace: Trace) -> None:
    other = translator.explain("the red house finds a small dog.")
    changes = compare(trace, other)
    words = [token.text for token in trace.source.tokens], [token.text for token in other.source.tokens]
    changed = [(words[0][a0:a1], words[1][b0:b1]) for op, a0, a1, b0, b1 in changes.source if op != "equal"]
    assert changed
    for side, word in enumerate(("▁sees", "▁finds")):  # which may have tokens in common
        assert "".join(token for tokens in changed for token in tokens[side]) in word
    assert len(changes.attention) == 3 * 2  # kinds and heads of the one layer
    differences = {(c.kind, c.head): c.difference for c in changes.attention}
    same = [
        (a, b)
        for op, a0, a1, b0, b1 in changes.source
        if a1 - a0 == b1 - b0
        for a, b in zip(range(a0, a1), range(b0, b1), strict=True)
    ]
    rows, columns = ([place[side] for place in same] for side in (0, 1))
    ours = trace.attention("encoder", layer=1, head=2)[np.ix_(rows, rows)]
    theirs = other.attention("encoder", layer=1, head=2)[np.ix_(columns, columns)]
    assert differences["encoder", 2] == pytest.approx(float(np.abs(ours - theirs).mean()), abs=1e-6)
    assert [c.difference for c in changes.attention] == sorted(differences.values(), reverse=True)
    assert compare(trace, trace).attention[0].difference == 0


# JSON


def test_numbers_have_six_digits_and_infinity_is_null() -> None:
    values = np.array([[1 / 3, -123456.789, 0.0], [1e-12 / 7, -np.inf, 2e20 / 3]], dtype=np.float64)
    assert rounded(values) == [[0.333333, -123457.0, 0.0], [1.42857e-13, None, 6.66667e19]]
    assert rounded(float("nan")) is None


def test_json_is_the_trace(trained: Project, trace: Trace) -> None:
    result = trained.mtformer("explain", SENTENCE, "--format", "json", "--why-not", "findet", "--prefix", "das")
    assert result.status == 0, result.stderr
    found = json.loads(result.stdout)
    bundle = load_bundle(trained.folder / "runs/config/model.safetensors")
    assert found["format"] == 1
    assert found["model"]["digest"] == bundle.digest
    assert found["model"]["step"] == bundle.header.scores["step"]
    assert found["model"]["d_head"] == 16
    assert found["search"]["prefix"] == "das"
    assert found["search"]["beam_size"] == 4
    [one] = found["traces"]
    assert one["target"]["text"] == trace.target.text
    assert one["steps"][2]["input"] == [0, 1, 2]
    for attention, recorded in zip(one["attention"], trace.attentions, strict=True):
        np.testing.assert_allclose(attention["weights"], recorded.weights, atol=1e-5)
    for block, matrix in zip(one["matrices"], trace.matrices, strict=True):
        assert (block["name"], block["shape"]) == (matrix.name, list(matrix.shape))
        values = np.array(block["values"], dtype=np.float64)
        np.testing.assert_allclose(np.nan_to_num(values, nan=-np.inf), matrix.values, rtol=1e-5, atol=1e-5)
    logits, probabilities = by_name(trace, "logits"), by_name(trace, "probabilities")
    for step, row in zip(trace.steps, probabilities.values, strict=True):
        np.testing.assert_allclose(row, [candidate.probability for candidate in step.candidates], atol=1e-5)
    assert logits.shape == (len(trace.steps), bundle.tokenizer.tgt_vocab_size)
    assert one["why_not"][0]["word"] == "findet"


def by_name(trace: Trace, name: str) -> Block:
    [block] = [block for block in trace.matrices if block.name == name]
    return block


# Bad input


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([""], "the text is empty"),
        (["  \t"], "the text is empty"),
        (["a\nb"], "explain takes one sentence, and this text has 2 lines"),
        (["dog " * 5_000], "more than the 256 that explain takes; it does not split texts"),
        ([b"caf\xe9".decode("utf-8", "surrogateescape")], "the text is not UTF-8"),
        ([b"A CAF\xe9 IS RED".decode("utf-8", "surrogateescape")], "the text is not UTF-8"),
        (["a dog", "--prefix", " "], "the prefix is empty"),
        (["a dog", "--why-not", ""], "the word is empty"),
        (["a dog", "--prefix", "Hund " * 800], "tokens, more than the 26 that the translation may have"),
        (["a dog " * 100, "--prefix", "Hund " * 800], "tokens, more than the 256 that the translation may have"),
        (["a dog", "--why-not", "Hund " * 800], "tokens, more than the 26 that the translation may have"),
        (["a dog", "--prefix", b"caf\xe9".decode("utf-8", "surrogateescape")], "the prefix is not UTF-8"),
        (["a dog", "--compare", ""], "the text is empty"),
        (["a dog", "--layer", "2"], "there is no layer 2: this model's encoder has layers 1 to 1"),
        (["a dog", "--layer", "0"], "there is no layer 0"),
        (["a dog", "--kind", "cross", "--layer", "2"], "there is no layer 2: this model's decoder has layers 1 to 1"),
        (["a dog", "--head", "3"], "there is no head 3: this model has heads 1 to 2"),
        (["a dog", "--attention", "--head", "3"], "there is no head 3: this model has heads 1 to 2"),
        (["a dog", "--attention", "--layer", "3"], "there is no layer 3"),
        (["a dog", "--format", "json", "--head", "0"], "there is no head 0"),
        (["a dog", "--model", "nowhere"], "there is no model at nowhere"),
    ],
)
def test_bad_input_is_one_sentence(trained: Project, arguments: list[str], problem: str) -> None:
    result = trained.mtformer("explain", *arguments)
    assert result.status == 2
    assert result.stdout == ""
    assert problem in result.stderr
    assert [line.startswith("Error: ") for line in result.stderr.splitlines()][-1:] == [True]
    assert "Traceback" not in result.stderr


def test_what_translate_would_read_instead_is_shown(trained: Project) -> None:
    changed = trained.mtformer("explain", "THE RED HOUSE SEES A SMALL DOG.", "--format", "json")
    assert changed.status == 0, changed.stderr
    [read] = re.findall("translate would read: (.*)", changed.stderr)
    explained = json.loads(trained.mtformer("explain", read, "--format", "json").stdout)
    [trace] = explained["traces"]
    translated = trained.mtformer("translate", "THE RED HOUSE SEES A SMALL DOG.").stdout.strip()
    assert translated == trace["target"]["text"].upper() != json.loads(changed.stdout)["traces"][0]["target"]["text"]
    assert "would read" not in trained.mtformer("explain", "the red house sees a small dog.").stderr


def test_a_text_that_translate_would_copy_is_called_so(trained: Project) -> None:
    result = trained.mtformer("explain", "https://example.org")
    assert (result.status, "translate copies this text" in result.stderr) == (0, True)


def test_a_head_that_does_not_exist_is_refused_before_the_work(trained: Project) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Explainer, "trace", lambda *args, **kwargs: pytest.fail("translated first"))
        result = trained.mtformer("explain", "a dog", "--head", "9", "--checkpoints")
    assert result.status == 2
    assert "there is no head 9: this model has heads 1 to 2" in result.stderr


def test_an_engine_that_is_not_torchs_is_refused(translator: Translator) -> None:
    class Other:
        pass

    engine: Any = Other()
    other = Translator(engine, translator.tokenizer, translator.options, tgt_lang="de", max_length=64)
    with pytest.raises(UserError, match="explain needs a model that runs in torch, not Other"):
        other.explain("a dog")


# Checkpoints


def test_checkpoints_show_what_changed_in_training(trained: Project) -> None:
    result = trained.mtformer("explain", SENTENCE, "--checkpoints", "--format", "json")
    assert result.status == 0, result.stderr
    found = json.loads(result.stdout)
    run = trained.folder / "runs/config"
    folders = sorted({path.name for folder in ("snapshots", "checkpoints") for path in (run / folder).glob("step-*")})
    assert folders[:3] == ["step-000025", "step-000050", "step-000100"]
    assert [snapshot["name"] for snapshot in found["checkpoints"]] == folders
    assert [snapshot["step"] for snapshot in found["checkpoints"]] == [int(name[5:]) for name in folders]
    for snapshot in found["checkpoints"]:
        assert np.array(snapshot["attention"][0]["weights"]).sum(-1) == pytest.approx(1, abs=1e-3)
        assert snapshot["target"]["log_prob"] == snapshot["log_prob"]
    one = trained.mtformer("explain", SENTENCE, "--checkpoints")
    assert f"step {found['checkpoints'][0]['step']:>7,}" in one.stdout


def test_of_a_step_with_a_snapshot_and_a_checkpoint_the_exact_weights_are_shown(
    trained: Project, tmp_path: Path
) -> None:
    run = RunFolder(shutil.copytree(trained.folder / "runs/config", tmp_path / "run"))
    newest = list_checkpoints(run.checkpoints)[0]
    shutil.copytree(run.snapshots / "step-000025", run.snapshots / newest.name)
    *_, (step, name, engine) = checkpoint_models(run, load_bundle(run.bundle).model)
    assert (step, name) == (step_of(newest), newest.name)
    for name, weight in model_weights(newest).items():
        assert torch.equal(engine.model.get_parameter(name), weight)


def test_a_checkpoint_is_recorded_without_what_is_not_shown(translator: Translator) -> None:
    assert isinstance(translator.engine, TorchEngine)
    trace = translator.explain(SENTENCE, prefix="dieses")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Explainer, "trace", lambda *args, **kwargs: trace)
        patch.setattr("mtformer.explain.record.record_pass", lambda *args: pytest.fail("all matrices are recorded"))
        checkpoints = [(5, "step-5", translator.engine)]
        found = explain(translator.explainer(), SENTENCE, model={}, prefix="dieses", checkpoints=checkpoints)
    [snapshot] = found.checkpoints
    assert (snapshot.trace.source, snapshot.trace.bos, snapshot.trace.target) == (trace.source, trace.bos, trace.target)
    assert [(one.kind, one.layer, one.name) for one in snapshot.trace.attentions] == [
        (one.kind, one.layer, one.name) for one in trace.attentions
    ]
    for ours, theirs in zip(snapshot.trace.attentions, trace.attentions, strict=True):
        np.testing.assert_allclose(ours.weights, theirs.weights, atol=1e-6)


@pytest.mark.parametrize(("n_kept", "found"), [(0, "no checkpoints"), (1, "1 checkpoint")])
def test_a_run_with_too_few_checkpoints_names_the_key(
    trained: Project, tmp_path: Path, n_kept: int, found: str
) -> None:
    run = trained.folder / "runs/config"
    for path in [run / "model.safetensors", *sorted((run / "checkpoints").glob("step-*/*"))[: 2 * n_kept]]:
        copy = tmp_path / path.relative_to(run)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    result = trained.mtformer("explain", SENTENCE, "--checkpoints", "--model", tmp_path)
    assert result.status == 2
    assert f"has {found}, and --checkpoints compares at least two; training.keep_last" in result.stderr
