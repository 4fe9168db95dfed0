"""Scores of given translations: equal to the search's, and used to filter and rerank."""

import json
import math
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from conftest import BOS_ID, ENGLISH, EOS_ID, Project, sentence_pairs

from mtformer.engines.torch import TorchEngine
from mtformer.support.errors import UserError
from mtformer.translate.translation import Translation
from mtformer.translate.translator import Translator

SOURCES = [src for src, _ in sentence_pairs(12, seed=9)]


@pytest.fixture(scope="module")
def translator(trained: Project) -> Translator:
    return Translator.load(trained.folder / "runs/config", device="cpu", n_best=4)


def write(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_what_the_search_found_gets_the_searchs_figures(translator: Translator) -> None:
    sources = [*SOURCES, f"{SOURCES[0]} {SOURCES[1].capitalize()}", f"{ENGLISH[0]} 🎉", SOURCES[2].upper(), ""]
    found = [
        (src, t) for src, translations in zip(sources, translator.translate(sources), strict=True) for t in translations
    ]
    scored = translator.score([src for src, _ in found], [t.text for _, t in found])
    n_same = 0
    for (_, expected), ours in zip(found, scored, strict=True):
        assert ours.text == expected.text
        if ours.tokens == expected.tokens:  # the search may choose other tokens for the same text
            n_same += 1
            assert ours.log_prob == pytest.approx(expected.log_prob, abs=1e-4)
            assert ours.score == pytest.approx(expected.score, abs=1e-4)
            assert ours.token_log_probs == pytest.approx(expected.token_log_probs, abs=1e-4)
    assert n_same > 0.7 * len(found)


def test_the_score_is_the_sum_over_tokens_and_the_end(translator: Translator) -> None:
    assert isinstance(translator.engine, TorchEngine)
    text, tgt = SOURCES[0], "mein alter Freund mag das Haus."
    [ours] = translator.score([text], [tgt])
    src = torch.tensor(translator.tokenizer.encode_src([text]))
    ids = translator.tokenizer.encode_tgt([tgt])[0]
    model = translator.engine.model
    with torch.inference_mode():
        logits = model.project(model(src, torch.ones_like(src).bool(), torch.tensor([[BOS_ID, *ids[:-1]]])))[0]
    expected = [row.log_softmax(dim=-1)[i].item() for row, i in zip(logits, ids, strict=True)]
    assert ids[-1] == EOS_ID
    assert ours.token_log_probs == pytest.approx(expected, abs=1e-4)
    assert ours.log_prob == pytest.approx(sum(expected), abs=1e-4)
    assert ours.tokens == tuple(translator.tokenizer.tgt_tokens(ids))


def test_empty_sides(translator: Translator) -> None:
    both, source, target = translator.score(["", "", SOURCES[0]], [" ", "ein Haus", ""])
    assert (both.log_prob, both.tokens) == (0.0, ())
    assert source.log_prob < 0
    assert target.tokens == ("</s>",)
    assert target.log_prob < -1


@pytest.mark.parametrize(("n_src", "n_tgt"), [(200, 200), (1, 400), (400, 1), (400, 0)])
def test_what_is_too_long_is_scored_in_parts_with_a_warning(
    translator: Translator, caplog: pytest.LogCaptureFixture, n_src: int, n_tgt: int
) -> None:
    src, tgt = " ".join(["the red house"] * n_src), " ".join(["das rote Haus"] * n_tgt)
    short, long = translator.score(["a", src], ["b", tgt], numbers=[7, 8])
    n_parts = long.tokens.count("</s>")
    assert n_parts > 1
    assert (short.notes, long.notes) == ((), (f"scored in {n_parts} parts",))
    assert long.text == tgt
    assert len(long.tokens) == len(translator.tokenizer.encode_tgt([tgt])[0]) - 1 + n_parts
    assert f"line 8: scored in {n_parts} parts" in caplog.messages


def test_sentences_of_a_line_are_paired_if_both_sides_have_as_many(translator: Translator) -> None:
    one, other = (
        ("the red house sees my old friend.", "das rote Haus sieht mein alter Freund."),
        ("A dog.", "Ein Hund."),
    )
    both, alone, unpaired = translator.score(
        [f"{one[0]} {other[0]}", one[0], f"{one[0]} {other[0]}"], [f"{one[1]} {other[1]}", one[1], one[1]]
    )
    assert both.token_log_probs[: len(alone.tokens)] == pytest.approx(alone.token_log_probs, abs=1e-4)
    assert both.tokens.count("</s>") == 2
    assert unpaired.tokens.count("</s>") == 1


def test_score_refuses_lists_that_do_not_match(translator: Translator) -> None:
    with pytest.raises(UserError, match="a list of as many translations"):
        translator.score(["a"], "b")
    with pytest.raises(UserError, match="a list of as many translations"):
        translator.score(iter(["a"]), iter(["b", "c"]))


def test_score_and_align_take_iterators(translator: Translator) -> None:
    sources, targets = zip(*sentence_pairs(3, seed=4), strict=True)
    assert translator.score(iter(sources), iter(targets)) == translator.score(sources, targets)
    pharaoh = [alignment.pharaoh() for alignment in translator.align(sources, targets)]
    assert [alignment.pharaoh() for alignment in translator.align(iter(sources), iter(targets))] == pharaoh


def test_the_command_prints_what_the_api_gives(trained: Project, translator: Translator, tmp_path: Path) -> None:
    pairs = [*sentence_pairs(3, seed=4), ("", ""), ("my old friend", "das rote Haus")]
    expected = translator.score([src for src, _ in pairs], [tgt for _, tgt in pairs])
    files = (
        "--src",
        write(tmp_path / "a.en", (p[0] for p in pairs)),
        "--tgt",
        write(tmp_path / "a.de", (p[1] for p in pairs)),
    )
    command = ("score", "--model", "runs/config", "--device", "cpu")
    assert trained.mtformer(*command, *files).stdout == "".join(f"{t.log_prob:.4f}\n" for t in expected)
    columns = "".join(f"{src}\t{tgt}\n" for src, tgt in pairs)
    means = [t.log_prob / max(1, len(t.tokens)) for t in expected]
    assert trained.mtformer(*command, "--normalize", "--format", "tsv", stdin=columns).stdout == "".join(
        f"{mean:.4f}\t{src}\t{tgt}\n" for mean, (src, tgt) in zip(means, pairs, strict=True)
    )
    objects = [
        json.loads(line) for line in trained.mtformer(*command, "--format", "json", stdin=columns).stdout.splitlines()
    ]
    assert [found["line"] for found in objects] == [1, 2, 3, 4, 5]
    assert [found["translations"][0]["tokens"] for found in objects] == [list(t.tokens) for t in expected]
    kept = trained.mtformer(*command, "--normalize", "--min-score", "-1", stdin=columns).stdout
    output = tmp_path / "kept.tsv"
    filtered = ("--normalize", "--min-score", "-1", "--output", output)
    assert trained.mtformer(*command, *filtered, stdin=columns).stderr.endswith(
        f"5 pairs scored, 4 lines written to {output}\n"
    )
    assert output.read_text(encoding="utf-8") == kept
    assert kept == "".join(f"{src}\t{tgt}\n" for src, tgt in pairs[:4])
    tabbed = ("--src", write(tmp_path / "b.en", ["my\told friend"]), "--tgt", write(tmp_path / "b.de", ["das\tHaus"]))
    for options in (("--format", "tsv"), ("--min-score", "-1000")):
        assert trained.mtformer(*command, *tabbed, *options).stdout.endswith("my old friend\tdas Haus\n")


def test_translations_are_reranked_in_a_pipe(trained: Project, translator: Translator, tmp_path: Path) -> None:
    sources = [*SOURCES[:3], "", SOURCES[3]]
    src = write(tmp_path / "a.en", sources)
    command = ("--model", "runs/config", "--device", "cpu")
    found = trained.mtformer("translate", *command, "--input", src, "--n-best", "3", "--format", "tsv").stdout
    rows = [line.split("\t") for line in found.splitlines()]
    scored = translator.score([sources[int(row[0]) - 1] for row in rows], [row[3] for row in rows])
    likeliest = {row[0]: one for row, one in sorted(zip(rows, scored, strict=True), key=lambda both: both[1].log_prob)}
    worst_first = "".join("\t".join(row) + "\n" for row in sorted(rows, key=lambda row: (int(row[0]), -int(row[1]))))
    best = trained.mtformer("score", *command, "--src", src, "--rerank", stdin=worst_first)
    assert best.stdout.splitlines() == [likeliest[str(number)].text for number in range(1, 6)]
    ordered = trained.mtformer("score", *command, "--src", src, "--rerank", "--format", "tsv", stdin=worst_first).stdout
    again = [line.split("\t") for line in ordered.splitlines()]
    assert [row[:2] for row in again] == [row[:2] for row in rows]
    assert sorted(row[3] for row in again) == sorted(row[3] for row in rows)
    scores = [float(row[2]) for row in again if row[0] == "1"]
    assert scores == sorted(scores, reverse=True)


def ranked(*numbers: int) -> str:
    """Return what ``translate --format tsv`` prints for lines of these numbers."""
    return "".join(f"{number}\t1\t0\ta\n" for number in numbers)


@pytest.mark.parametrize(
    ("args", "stdin", "message"),
    [
        (("--src", "test.en"), "", "give --src and --tgt, or an --input"),
        (("--rerank",), "", "--rerank needs --src"),
        (("--rerank", "--src", "test.en", "--tgt", "test.de"), "", "--rerank does not work with --tgt"),
        (("--rerank", "--src", "test.en", "--min-score", "1"), "", "--rerank does not work with --min-score"),
        (("--src", "test.en", "--tgt", "test.de", "--input", "x"), "", "or --input, not both"),
        (("--min-score", "nan"), "a\tb\n", "--min-score nan: a score is a finite number"),
        (("--rerank", "--src", "-"), "", "standard input cannot be read twice"),
        (("--src", "test.en", "--tgt", "test.de", "--output", "test.de"), "", "test.de is both input and output"),
        ((), "a\tb\na\n", "standard input:2: expected a source, a tab and its translation"),
        ((), "a\tb\tc\n", "standard input:1: expected a source"),
        (("--src", "test.en", "--tgt", "train.de"), "", "test.en ends after line 20, and train.de does not"),
        (("--rerank", "--src", "test.en"), "a\tb\n", "expected a line of translate --format tsv"),
        (("--rerank", "--src", "test.en"), "1\t1\t0\ta\tb\tc\n", "expected a line of translate --format tsv"),
        (("--rerank", "--src", "test.en"), f"{'9' * 5000}\t1\t0\ta\n", "expected a line of translate --format tsv"),
        (("--rerank", "--src", "test.en"), ranked(1, 2, 1), "standard input:3: line 1 comes after line 2"),
        (("--rerank", "--src", "test.en"), ranked(*range(1, 22)), "standard input:21: test.en has no line 21"),
        (("--rerank", "--src", "test.en"), ranked(2), "standard input:1: line 1 of test.en has no translation"),
        (("--rerank", "--src", "test.en"), ranked(1, 1, 2, 4), "input:4: line 3 of test.en has no translation"),
        (("--rerank", "--src", "test.en"), ranked(*range(1, 20)), "standard input has no translation of line 20 of"),
        (("--rerank", "--src", "test.en"), "", "standard input has no translation of line 1 of test.en"),
    ],
)
def test_what_cannot_be_scored_is_refused(trained: Project, args: tuple[str, ...], stdin: str, message: str) -> None:
    result = trained.mtformer("score", "--model", "runs/config", *args, stdin=stdin)
    assert result.status == 2
    assert message in result.stderr
    assert not result.stdout.strip() or "\t" not in result.stdout


def test_confidence_is_the_mean_probability_of_the_tokens() -> None:
    translation = Translation("ab", -1.0, -1.0, ("a", "b", "</s>"), (math.log(0.5), math.log(0.25), 0.0))
    assert translation.confidence == pytest.approx(1.75 / 3)
    assert Translation("copied", 0.0, 0.0).confidence == 1


def test_translate_prints_confidence(trained: Project) -> None:
    result = trained.mtformer("translate", "--model", "runs/config", "--format", "json", SOURCES[0])
    [found] = json.loads(result.stdout)["translations"]
    probabilities = [math.exp(log_prob) for log_prob in found["token_log_probs"]]
    assert found["confidence"] == pytest.approx(sum(probabilities) / len(probabilities), abs=2e-4)
