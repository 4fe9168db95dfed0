"""The account of a translation in the terminal."""

import io
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from conftest import Project

from mtformer import Translator
from mtformer.bundle.format import load_bundle
from mtformer.cli.options import columns, has_colours
from mtformer.explain.explanation import Explanation, describe, explain
from mtformer.explain.layout import HeatMap, pad, shorten_left, upright
from mtformer.explain.terminal import View, render
from mtformer.explain.trace import Token, Trace
from mtformer.support.terminal import as_text, shorten, text_width, wrap
from mtformer.translate.translation import Translation

SENTENCE = "the red house sees a small dog."
CHINESE = ["▁那只", "动物", "没", "穿过", "，", "因为", "它", "太", "累", "了", "。"]


@pytest.fixture(scope="module")
def explanation(trained: Project) -> Explanation:
    path = trained.folder / "runs/config/model.safetensors"
    return explain(
        Translator.load(path).explainer(),
        SENTENCE,
        model=describe(load_bundle(path), str(path)),
        why_not=["findet"],
    )


def test_control_characters_of_texts_are_shown_escaped(trained: Project) -> None:
    path = trained.folder / "runs/config/model.safetensors"
    explainer = Translator.load(path).explainer()
    model = describe(load_bundle(path), str(path))
    wild = explain(
        explainer, "the \x1b[31mred\x07 house", model=model, why_not=["\x1b[2J"], compare_with="the \x9bhouse"
    )
    shown = render(wild, View())
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert r"the \x1b[31mred\x07 house" in shown and r"the \x9bhouse" in shown


@pytest.fixture(scope="module")
def trace(explanation: Explanation) -> Trace:
    return explanation.traces[0]


def in_chinese(trace: Trace) -> Trace:
    """Return the trace with Chinese tokens in the translation, as if the model had said them."""
    tokens = [replace(token, text=CHINESE[place % 11]) for place, token in enumerate(trace.target.tokens[:-1])]
    nodes = [replace(node, token=replace(node.token, text=CHINESE[node.id % 11])) for node in trace.tree.nodes]
    return replace(
        trace,
        target=replace(trace.target, text="".join(CHINESE) * 8, tokens=(*tokens, trace.target.tokens[-1])),
        tree=replace(trace.tree, nodes=tuple(nodes)),
    )


def test_chinese_characters_are_two_columns_wide() -> None:
    assert text_width("那只 a，é") == 9
    assert text_width("\x1b[1m那\x1b[0m") == 2
    assert text_width("e\u0301") == 1  # a combining accent
    assert as_text(["a", "b"], [["e\u0301e", "1"], ["那", "2"]]) == "a   b\ne\u0301e  1\n那  2"
    table = "a                b\none two three    1\nfour\n那               2"
    assert as_text(["a", "b"], [["one two three four", "1"], ["那", "2"]], columns=18) == table
    assert pad("那", 4) == "那  "
    assert shorten("那只动物没", 6) == "那只…"
    assert shorten("那只动", 6) == "那只动"
    assert shorten_left("那只动物没", 6) == "…物没"
    assert upright(["ab", "那只动"], 3) == ["   那 ", "a  只 ", "b  动 "]


def test_lines_break_at_spaces_and_between_chinese_characters_but_not_before_punctuation() -> None:
    assert wrap("one two three", 7) == ["one two", "three"]
    assert wrap("one two", 9, "→ ", "  ") == ["→ one two"]
    assert wrap("one two x", 8, "→ ", "  ") == ["→ one", "  two x"]
    assert wrap("没穿过马路，因为", 11) == ["没穿过马", "路，因为"]
    assert wrap("abcdefgh", 3) == ["abc", "def", "gh"]
    assert wrap("", 10) == [""]


def test_a_vocabulary_cannot_disturb_the_terminal() -> None:
    assert Token("\x1b[2J\n\u2028a", 9, "word").printable == "·[2J··a"
    assert Token("▁", 9, "word").label == "▁"


@pytest.mark.parametrize("columns", [60, 80, 100, 140])
@pytest.mark.parametrize("is_chinese", [False, True], ids=["german", "chinese"])
def test_no_line_is_wider_than_the_terminal(explanation: Explanation, columns: int, is_chinese: bool) -> None:
    trace = in_chinese(explanation.traces[0]) if is_chinese else explanation.traces[0]
    for view in (View(columns), View(columns, all_attention=True), View(columns, color=True)):
        text = render(replace(explanation, traces=(trace,)), view)
        assert [line for line in text.split("\n") if text_width(line) > columns] == []


def test_color_changes_no_text(explanation: Explanation) -> None:
    plain, colored = render(explanation, View(80)), render(explanation, View(80, color=True))
    assert "\x1b" not in plain
    assert colored != plain
    # a space before a code is not stripped from the end of a line
    assert [line.rstrip() for line in re.sub(r"\x1b\[\dm", "", colored).split("\n")] == plain.split("\n")


@pytest.mark.parametrize(
    ("is_terminal", "variables", "expected"),
    [
        (True, {"TERM": "xterm"}, True),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (False, {"TERM": "xterm"}, False),
    ],
)
def test_color_is_for_terminals_that_want_it(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, variables: dict[str, str], expected: bool
) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return is_terminal

    monkeypatch.setattr(sys, "stdout", Stream())
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {**variables, "COLUMNS": "90"}.items():
        monkeypatch.setenv(name, value)
    assert has_colours() == expected
    assert columns() == 90


def test_a_heat_map_shows_the_weights(trace: Trace) -> None:
    for attention in trace.attentions:
        found = HeatMap.of(trace, attention, 2)
        weights = attention.weights[1]
        lines = found.draw(140)[-len(weights) :]
        left = max(text_width(token.label) for token in found.queries) + 1
        for token, line, row in zip(found.queries, lines, weights, strict=True):
            assert line.startswith(token.label)
            for k, weight in enumerate(row):
                shade = line[left + 3 * k]
                assert shade == " ░▒▓█"[sum(weight >= least for least in (0.05, 0.2, 0.4, 0.7))]
            strongest = np.argsort(-row, kind="stable")[0]
            assert line[left + 3 * len(row) :].startswith(f" {found.keys[strongest].label} {row[strongest]:.2f}")


def test_a_narrow_terminal_has_narrow_cells_and_then_several_parts(trace: Trace) -> None:
    found = HeatMap.of(trace, trace.attentions[0], 1)
    n, height = len(found.keys), max(len(key.label) for key in found.keys)
    left = max(text_width(token.label) for token in found.queries) + 1
    assert len(found.draw(left + n)) == n + height  # one column for each key, no notes
    assert len(found.draw(left + n - 1)) > 2 * n  # two parts
    wide = replace(found, keys=[replace(key, text=CHINESE[place % 11]) for place, key in enumerate(found.keys)])
    assert len(wide.draw(left + n)) > 2 * n  # a Chinese character needs two columns
    both = found.beside(found, 2 * (left + n) + 3)
    assert len(both) == n + height
    assert len(found.beside(found, 2 * (left + n))) > 2 * n


def test_the_account_is_complete(trained: Project, trace: Trace) -> None:
    result = trained.mtformer("explain", SENTENCE, "--why-not", "findet", env={"COLUMNS": "120"})
    assert result.status == 0, result.stderr
    text = result.stdout
    assert re.findall(r"^── (.*?) ─", text, flags=re.MULTILINE) == [
        "Tokens", "Attention", "Decoding", "Search", "Matrices", "Why not?",
    ]  # fmt: skip
    assert f"→ {trace.target.text}" in text
    assert "\x1b" not in text
    for step in trace.steps:
        assert f"→ {step.choice.token.text} {100 * step.choice.probability:.1f} %" in text
        shifted = " ".join(token.text for token in trace.decoder_input[: step.number])
        assert f"{step.number:>3}  {shifted}\n" in text
    for finished in trace.tree.finished:
        numbers = rf"−{-finished.log_prob:.3f} +{finished.length} +{finished.penalty:.3f} +−{-finished.score:.3f}"
        assert re.search(numbers, text)
    beams = [node for node in trace.tree.nodes if node.fate in ("expanded", "stopped", "finished")]
    drawn = text.split("── Search")[1].split("Finished translations")[0]
    leaves = [node for node in beams if not any(other.parent == node.id for other in beams)]
    assert sum(line.count("├─") for line in drawn.split("\n")) == len(leaves) - 1  # the best path is the trunk
    for block in trace.matrices:
        if block.layer in (None, 1):
            assert f"  {block.name:<20} {' × '.join(map(str, block.shape)):<16} {block.formula}" in text


def test_a_layer_and_a_head_can_be_chosen(trained: Project) -> None:
    text = trained.mtformer("explain", SENTENCE, "--layer", "1", "--head", "2", env={"COLUMNS": "120"}).stdout
    assert text.count("Layer 1, head 2.") == 3
    text = trained.mtformer("explain", SENTENCE, "--attention", env={"COLUMNS": "120"}).stdout
    for which in ("mean of 2 heads", "head 1", "head 2"):
        assert text.count(f"{which}.") == 3


def test_a_kind_of_attention_can_be_chosen(trained: Project) -> None:
    options = ["--kind", "cross", "--layer", "1", "--head", "2"]
    text = trained.mtformer("explain", SENTENCE, *options, env={"COLUMNS": "120"}).stdout
    assert text.count("Layer 1, head ") == 1
    assert re.findall("── ([A-Z][a-z]+) ──", text) == ["Tokens", "Attention"]
    assert re.search(r"^Cross: .* Layer 1, head 2\.$", text, flags=re.MULTILINE)
    text = trained.mtformer("explain", SENTENCE, "--attention", "--kind", "encoder", env={"COLUMNS": "120"}).stdout
    assert re.findall(r"^(\w+): .* Layer 1, (.*)\.$", text, flags=re.MULTILINE) == [
        ("Encoder", "mean of 2 heads"), ("Encoder", "head 1"), ("Encoder", "head 2"),
    ]  # fmt: skip
    other = "the red house finds a small dog."
    text = trained.mtformer("explain", SENTENCE, "--compare", other, "--kind", "decoder", env={"COLUMNS": "140"}).stdout
    assert re.findall(r"^(\w+): .* Layer 1, head [12]\.$", text, flags=re.MULTILINE) == ["Decoder"]


def test_it_says_if_translate_would_print_another_translation(
    trained: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = trained.mtformer("explain", SENTENCE)
    assert (result.status, "would" in result.stderr) == (0, False)
    monkeypatch.setattr(Translator, "translate", lambda *_: [[Translation("anderes", 0.0, 0.0)]])
    result = trained.mtformer("explain", SENTENCE)
    assert "translate would search again or correct the translation, and print: anderes\n" in result.stderr
    assert "would" not in trained.mtformer("explain", SENTENCE, "--prefix", "das").stderr


def test_two_sentences_are_compared(trained: Project) -> None:
    other = "the red house finds a small dog."
    result = trained.mtformer("explain", SENTENCE, "--compare", other, "--head", "2", env={"COLUMNS": "140"})
    assert result.status == 0, result.stderr
    assert "das rote Haus findet ein kleiner Hund." in result.stdout
    assert result.stdout.count("Layer 1, head 2.") == 3
    assert re.search(r"^source .*\[.* → .*\]", result.stdout, flags=re.MULTILINE)
    assert (
        len(re.findall(r"^ +0\.\d{4}  (?:encoder|decoder|cross), layer 1, head [12]$", result.stdout, re.MULTILINE))
        == 5
    )


def test_where_the_model_hesitates_it_says_what_else_it_would_have_said(trained: Project, trace: Trace) -> None:
    text = trained.mtformer("explain", SENTENCE, "--prefix", "dieses grüne Auto").stdout
    assert "(forced, rank " in text
    assert re.search(r"hesitates \(\d\.\d bits\); with “.*” it would have said: d", text)
    assert not any(step.instead for step in trace.steps if step.margin > 1)


def test_greedy_search_has_no_tree(trained: Project) -> None:
    text = trained.mtformer("explain", SENTENCE, "--beam-size", "1").stdout
    assert "Greedy search: each step takes the likeliest token and drops all others." in text
    assert "├─" not in text
