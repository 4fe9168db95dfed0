"""Published protocols, on a test set of our own where theirs would be needed."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import sacrebleu
from conftest import Project

from mtformer.bundle.format import load_bundle
from mtformer.engines.loading import load_model
from mtformer.evaluate import protocols
from mtformer.evaluate.protocols import PROTOCOLS, lower_case_moses, run_protocol
from mtformer.evaluate.testsets import read_eval_sets
from mtformer.support.errors import MtformerError, UserError

CASED, LOWER = "multi30k-2016-cased-13a", "multi30k-2016-lc-tok"


@pytest.fixture
def adapted(copied: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose test set the protocols take for theirs."""
    bundle = copied.config.parent / "model.safetensors"
    [texts] = read_eval_sets(bundle, load_bundle(bundle).header)
    references = protocols._digest(lower_case_moses(texts.references[0], "de"))
    for name in (CASED, LOWER):
        changed = replace(PROTOCOLS[name], fingerprint=texts.fingerprint)
        monkeypatch.setitem(PROTOCOLS, name, replace(changed, references=references if name == LOWER else ""))
    return copied


def test_text_is_processed_as_the_scripts_of_moses_do() -> None:
    lines = ["Ein Mann, der „Hallo“ sagt.", "Zwei 3-jährige Kinder (Mädchen) & ein Ball…", ""]
    assert lower_case_moses(lines, "de") == [
        "ein mann , der &quot; hallo &quot; sagt .",
        "zwei 3-jährige kinder ( mädchen ) &amp; ein ball ...",
        "",
    ]


def test_both_search_the_same_way_and_score_what_they_say(adapted: Project) -> None:
    found = {}
    for name in (CASED, LOWER):
        options = ["--protocol", name, "--json", "--output", "hypotheses.de"]
        found[name] = json.loads(adapted.mtformer("eval", *options).stdout)
        assert (found[name]["beam_size"], found[name]["length_penalty"]) == (5, 1.0)
        assert (found[name]["protocol"], found[name]["raw"]) == (name, True)
    hypotheses = (adapted.folder / "hypotheses.de").read_text().splitlines()
    references = (adapted.folder / "test.de").read_text().splitlines()
    cased = sacrebleu.corpus_bleu(hypotheses, [references])
    processed = [lower_case_moses(lines, "de") for lines in (hypotheses, references)]
    lower = sacrebleu.corpus_bleu(processed[0], [processed[1]], tokenize="none", lowercase=True, force=True)
    for name, score, recipe in ((CASED, cased, "case:mixed|eff:no|tok:13a"), (LOWER, lower, "case:lc|eff:no|tok:none")):
        [shown] = found[name]["scores"]
        assert shown["score"] == round(score.score, 2)
        assert recipe in shown["signature"]


def test_the_text_explains_the_protocol(adapted: Project) -> None:
    text = adapted.mtformer("eval", "--protocol", LOWER).stdout
    assert text.startswith("BLEU ")
    for part in (
        "20 sentences, beam size 5, length penalty 1, the model alone",
        "lower-cased",
        CASED,
        "Published: 41.02",
    ):
        assert part in text
    assert "Published" not in adapted.mtformer("eval", "--protocol", CASED).stdout


def test_another_test_set_is_refused(copied: Project) -> None:
    (copied.folder / "kept").write_text("kept")
    result = copied.mtformer("eval", "--protocol", LOWER, "--output", "kept")
    assert (result.status, result.stdout) == (2, "")
    assert f"the protocol {LOWER} needs test2016 of Multi30k" in result.stderr
    assert (copied.folder / "kept").read_text() == "kept"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--protocol", "multi30k"], f"there is no protocol 'multi30k'; there are {LOWER} and {CASED}"),
        (["--protocol", LOWER, "--beam-size", "4"], "--protocol and --beam-size cannot be combined"),
        (["--protocol", LOWER, "--length-penalty", "0"], "--protocol and --length-penalty cannot be combined"),
        (["--protocol", LOWER, "--stress"], "--protocol and --stress cannot be combined"),
        (["--protocol", LOWER, "--save", "a.jsonl"], "--protocol and --save cannot be combined"),
    ],
)
def test_a_protocol_is_not_changed(copied: Project, options: list[str], message: str) -> None:
    result = copied.mtformer("eval", *options)
    assert (result.status, result.stdout) == (2, "")
    assert message in result.stderr


def test_an_unknown_protocol_is_reported_even_without_a_model(tmp_path: Path) -> None:
    result = Project(tmp_path, tmp_path).mtformer("eval", "--protocol", "x")
    assert (result.status, result.stderr) == (2, f"Error: there is no protocol 'x'; there are {LOWER} and {CASED}\n")


def test_a_protocol_is_for_its_languages(adapted: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROTOCOLS, CASED, replace(PROTOCOLS[CASED], languages=("en", "fr")))
    path = adapted.config.parent / "model.safetensors"
    with pytest.raises(UserError, match="is for en-fr; this model translates en-de"):
        run_protocol([path], load_model([path]), PROTOCOLS[CASED])


def test_references_processed_differently_are_an_error(adapted: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def differently(lines: Sequence[str], language: str) -> list[str]:
        return [line.lower() for line in lines]

    monkeypatch.setattr(protocols, "lower_case_moses", differently)
    path = adapted.config.parent / "model.safetensors"
    with pytest.raises(MtformerError, match="does not process the references"):
        run_protocol([path], load_model([path]), PROTOCOLS[LOWER])
