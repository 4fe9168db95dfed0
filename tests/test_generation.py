"""Pairs that models make and score: back-translation, distillation, dual conditional cross-entropy, thresholds."""

import gzip
import json
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from conftest import Project, sentence_pairs

from mtformer.bundle.format import load_bundle, save_bundle
from mtformer.config import TsvFile
from mtformer.data.selection import curve, describe, select
from mtformer.data.sources.parallel import ParallelText
from mtformer.support.errors import UserError
from mtformer.support.terminal import text_width
from mtformer.translate.jobs import reading
from mtformer.translate.jobs.core import run
from mtformer.translate.jobs.generation import CrossEntropyJob, GenerationJob, dual_score
from mtformer.translate.jobs.options import Shard
from mtformer.translate.jobs.reading import TextInput
from mtformer.translate.translation import FLAG, Translation
from mtformer.translate.translator import Translator

MODEL = "runs/config/model.safetensors"


class Fake:
    """A translator from German to English that reverses texts; some translations are doubtful or empty."""

    src_lang, tgt_lang = "de", "en"
    computation = "faked"

    def __init__(self, windows: int = 99) -> None:
        self.windows_left = windows

    def translate(self, texts: Sequence[str], **_: Any) -> list[list[Translation]]:
        if not self.windows_left:
            raise KeyboardInterrupt
        self.windows_left -= 1
        return [[self._translation(text)] for text in texts]

    def _translation(self, text: str) -> Translation:
        notes: tuple[str, ...] = ()
        if "loop" in text:
            notes = "translated in 2 parts", f"{FLAG}a loop: ab ab", f"{FLAG}too long"
        elif "number" in text:
            notes = (f"{FLAG}numbers or names put back: 7",)
        return Translation("" if "empty" in text else text[::-1], 0.0, 0.0, notes=notes)

    def score(self, sources: Sequence[str], translations: Sequence[str], **_: Any) -> list[Translation]:
        """Give each token the log probability -1, or as the text says, as in ``-2,-4``."""
        return [Translation(tgt, 0.0, 0.0, token_log_probs=tuple(map(float, tgt.split(",")))) for tgt in translations]


class Opposite(Fake):
    src_lang, tgt_lang = "en", "de"


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "FIRST_SIZE", 2)
    monkeypatch.setattr(reading, "LARGEST_SIZE", 4)


def job_of(folder: Path, *lines: str, name: str = "out.jsonl") -> GenerationJob:
    """Return the job that translates these lines."""
    (folder / "model").write_text("weights")
    text = TextInput(text="\n".join(lines))
    return GenerationJob(text=text, models=[folder / "model"], output=folder / name, options={"beam_size": 4})


def scoring(folder: Path, text: ParallelText, name: str = "out.jsonl", shard: Shard | None = None) -> CrossEntropyJob:
    (folder / "model").write_text("weights")
    return CrossEntropyJob(text=text, models=[folder / "model"], output=folder / name, shard=shard)


def load(**arguments: int) -> Any:
    return lambda: cast(Translator, Fake(**arguments))


def rows(path: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def test_pairs_have_the_text_and_its_translation_and_doubtful_ones_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job = job_of(
        tmp_path, "abc", "", "a loop", "empty", 'tab\tand "quotes"', "  ", "another loop", "number 7", "number 7 of 8"
    )
    run(job, load())
    assert rows(tmp_path / "out.jsonl") == [
        {"de": "abc", "en": "cba"},
        {"de": 'tab\tand "quotes"', "en": '"setouq" dna\tbat'},
        {
            "de": "number 7",
            "en": "7 rebmun",
        },  # of two numbers, either may be in the wrong place
    ]
    left_out = "a loop (2), empty (1), numbers or names put back (1)"
    told = f"3 pairs written to {tmp_path / 'out.jsonl'}; translations left out: {left_out}"
    assert [record.getMessage() for record in caplog.records] == [told]


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz"])
def test_an_interrupted_job_resumes_with_the_same_bytes_and_counts(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    lines = ["one", "loop", "three", "loop", "five", "six", "empty", "eight", "nine"]
    job = job_of(tmp_path, *lines, name=name)
    run(job, load())
    whole = job.output.read_bytes()
    job.output.unlink()
    with pytest.raises(KeyboardInterrupt):
        run(job, load(windows=1))
    assert not job.output.exists() and "nothing was finished" not in caplog.text
    with pytest.raises(UserError, match="is an unfinished output: continue it with --resume"):
        run(job, load())
    with pytest.raises(UserError, match="--beam-size was 4, is now 5"):
        run(replace(job, resume=True, options={"beam_size": 5}), load())
    with pytest.raises(UserError, match="the first 2 lines or paragraphs of the input have changed"):
        run(replace(job, resume=True, text=job_of(tmp_path, "1", *lines[1:]).text), load())
    caplog.clear()
    run(replace(job, resume=True), load())
    assert job.output.read_bytes() == whole
    assert (
        f"6 pairs written to {job.output}, 1 of them before it was resumed; "
        "translations left out: a loop (2), empty (1)"
    ) in caplog.text


def test_an_interrupted_job_says_that_nothing_was_finished(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(job_of(tmp_path, "one"), load(windows=0))
    assert "nothing was finished yet: there is nothing to resume" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_score_of_two_models_is_that_of_the_paper() -> None:
    assert dual_score(0.0, 0.0) == 1.0
    assert dual_score(1.0, 3.0) == pytest.approx(math.exp(-(2.0 + 2.0)))
    assert dual_score(3.0, 1.0) == dual_score(1.0, 3.0)
    assert dual_score(2.0, 2.0) == pytest.approx(dual_score(2.0, None))


def test_scores_are_means_of_tokens_and_pairs_with_an_empty_side_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "t.tsv").write_text("de\ten\n-1\t-2,-4\n\t-3\n-3,-3\t-3\n")
    text = parallel(tmp_path / "t.tsv")
    run(scoring(tmp_path, text), load(), lambda: cast(Translator, Opposite()))
    assert rows(tmp_path / "out.jsonl") == [
        {"de": "-1", "en": "-2,-4", "score": pytest.approx(math.exp(-4), rel=1e-4), "forward": 3.0, "backward": 1.0},
        {"de": "-3,-3", "en": "-3", "score": pytest.approx(math.exp(-3), rel=1e-4), "forward": 3.0, "backward": 3.0},
    ]
    assert f"2 pairs written to {tmp_path / 'out.jsonl'}; pairs left out: a side is empty (1)" in caplog.text
    with pytest.raises(UserError, match="--reverse translates from de to en"):
        run(scoring(tmp_path, text, "2"), load(), load())


def parallel(path: Path) -> ParallelText:
    return ParallelText([TsvFile(tsv=path)], "de", "en")


def test_shards_in_a_row_are_the_whole(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("de\ten\n" + "".join(f"-{n}\t-{n + 1}\n" for n in range(1, 8)))
    outputs = []
    for number, shard in enumerate([None, *(Shard(i, 3) for i in (1, 2, 3))]):
        job = scoring(tmp_path, parallel(tmp_path / "t.tsv"), f"{number}.jsonl", shard)
        run(job, load())
        outputs.append(job.output.read_text())
    assert outputs[0] == "".join(outputs[1:])
    assert all(outputs)


def test_a_shard_of_a_pipe_is_refused(tmp_path: Path) -> None:
    """The pairs are counted first, and none would be left to score."""
    reading, writing = os.pipe()
    os.write(writing, b"de\ten\n-1\t-2\n-3\t-4\n")
    os.close(writing)
    with pytest.raises(UserError, match="is a pipe, which can be read only once"):
        pipe = parallel(Path(f"/dev/fd/{reading}"))
        run(scoring(tmp_path, pipe, shard=Shard(1, 2)), load())
    os.close(reading)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_backtranslation_distillation_and_scores_on_the_command_line(trained: Project, tmp_path: Path) -> None:
    pairs = sentence_pairs(12, seed=9)
    mono = "".join(f"{src}\n" for src, _ in pairs)
    (tmp_path / "mono.en").write_text(f"{mono}The dog sees Мария.\nThe dog sees a cat 🐈.\n")
    model = ("--model", trained.folder / MODEL)
    made = trained.mtformer(
        "data", "backtranslate", *model, "--input", tmp_path / "mono.en", "--output", tmp_path / "bt.jsonl.gz"
    )
    assert (made.status, made.stdout) == (0, ""), made.stderr
    found = rows(tmp_path / "bt.jsonl.gz")
    assert "translations left out: unknown words (1)" in made.stderr
    *others, of_name, last = trained.mtformer("translate", *model, "--input", tmp_path / "mono.en").stdout.splitlines()
    assert "Мария" in of_name and "🐈" in last
    assert [row["en"] for row in found] == [*(src for src, _ in pairs), "The dog sees a cat 🐈."]
    assert [row["de"] for row in found] == [*others, last]
    sampled = trained.mtformer("data", "sample", f"jsonl:{tmp_path}/bt.jsonl.gz", "--pair", "de-en", "-n", "13")
    assert sampled.stdout.splitlines() == [f"{row['de']}\t{row['en']}" for row in found]

    twin = load_bundle(trained.folder / MODEL)
    save_bundle(tmp_path / "twin.safetensors", replace(twin, header=twin.header.model_copy(update={"scores": {}})))
    both, distilled = (*model, "--model", tmp_path / "twin.safetensors"), tmp_path / "distilled.jsonl"
    made = trained.mtformer("data", "distill", trained.config, *both, "--shard", "2/40", "--output", distilled)
    assert made.status == 0, made.stderr
    sources = (trained.folder / "train.en").read_text().splitlines()
    assert [row["en"] for row in rows(distilled)] == sources[10:20]

    scored = tmp_path / "scored.jsonl"
    made = trained.mtformer("data", "score", trained.config, *model, "--shard", "1/40", "--output", scored)
    assert made.status == 0, made.stderr
    assert made.stderr.endswith(f"10 pairs written to {scored}\n")
    given = trained.mtformer(
        "score",
        *model,
        "--normalize",
        "--raw",
        "--src",
        trained.folder / "train.en",
        "--tgt",
        trained.folder / "train.de",
    )
    expected = [math.exp(float(line)) for line in given.stdout.splitlines()[:10]]
    assert [row["score"] for row in rows(scored)] == pytest.approx(expected, rel=1e-3)


def test_a_threshold_is_chosen_by_the_curve(project: Project, tmp_path: Path) -> None:
    scored, kept = tmp_path / "scored.jsonl", tmp_path / "kept.jsonl.gz"
    lines = [json.dumps({"en": f"e{n}", "de": f"d{n}", "score": n / 100}) for n in range(20)]
    scored.write_text("".join(f"{line}\n" for line in lines))
    printed = project.mtformer("data", "select", scored)
    assert printed.status == 0, printed.stderr
    table = [line.split() for line in printed.stdout.splitlines()]
    assert table[0] == "kept pairs --min-score the last pair that is kept".split()
    assert table[1] == "100 % 20 0.0 e0 ||| d0".split()
    assert table[-1] == "10 % 2 0.18 e18 ||| d18".split()
    for option in (["--min-score", "0.15"], ["--share", "0.25"]):
        result = project.mtformer("data", "select", scored, *option, "--output", kept)
        assert (result.status, "kept 5 of 20 pairs" in result.stderr) == (0, True), result.stderr
        with gzip.open(kept, "rt") as file:
            assert file.read().splitlines() == lines[15:]
    assert project.mtformer("data", "select", scored, "--share", "0.05").stdout == f"{lines[19]}\n"


def test_pairs_that_score_the_same_are_kept_together(project: Project, tmp_path: Path) -> None:
    scored = tmp_path / "scored.jsonl"
    scored.write_text("".join(f'{{"en": "a{n}", "de": "b", "score": 0.5}}\n' for n in range(3)))
    assert project.mtformer("data", "select", scored, "--share", "0.4").stdout == scored.read_text()
    table = [line.split() for line in project.mtformer("data", "select", scored).stdout.splitlines()]
    assert table[1:] == ["100 % 3 0.5 a2 ||| b".split()]


def test_a_threshold_of_the_table_keeps_as_many_pairs_as_it_says_and_the_pair_beside_it(tmp_path: Path) -> None:
    scored, kept = tmp_path / "scored.jsonl", tmp_path / "kept.jsonl"
    scores = [0.0012345, 0.0012346, 0.12345, 0.12345, 0.12344, 0.99995, 0.99996, 1e-7, 0.3, 0.123456789]
    scored.write_text("".join(f'{{"en": "e{n}", "score": {score}}}\n' for n, score in enumerate(scores)))
    for line in describe(curve(scored)).splitlines()[1:]:
        _, _, n_pairs, threshold, text = line.split()
        assert select(scored, kept, min_score=float(threshold)) == (int(n_pairs), len(scores))
        assert text in [row["en"] for row in rows(kept)]


def test_the_table_of_thresholds_fits_a_terminal(tmp_path: Path) -> None:
    scored = tmp_path / "scored.jsonl"
    scored.write_text("".join(f'{{"en": "{"long " * 50}", "zh": "{"长" * 99}", "score": {n}}}\n' for n in range(9)))
    points = curve(scored)
    assert describe(points).endswith("长长")
    assert {text_width(line) for line in describe(points, 80).splitlines()[1:]} == {80}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["select", "scored", "--min-score", "1", "--share", "0.5"], "give --min-score or --share, not both"),
        (["select", "scored", "--output", "x"], "--output needs --min-score or --share"),
        (["select", "test.en"], "test.en:1: this is not a line with a score"),
        (["select", "none"], "cannot read none"),
        (["select", "."], ". is a folder, not a file"),
        (["select", "bad"], "bad:2: this is not a line with a score"),
        (["select", "bad", "--min-score", "0", "--output", "o"], "bad:2: this is not a line with a score"),
        (["select", "huge"], "huge:1: this is not a line with a score"),
        (["select", "empty"], "empty: there are no scored pairs in it"),
        (["select", "empty", "--share", "0.5"], "empty: there are no scored pairs in it"),
        (["select", "scored", "--share", "0"], "--share 0: a share is above 0 and at most 1"),
        (["select", "scored", "--share", "nan"], "--share nan: a share is above 0 and at most 1"),
        (["select", "scored", "--share", "1.1"], "--share 1.1: a share is above 0 and at most 1"),
        (["select", "scored", "--min-score", "nan"], "--min-score nan: a score is from 0 to 1"),
        (
            ["backtranslate", "--input", "-", "--shard", "1/2", "--output", "o", "--model", "scored"],
            "--shard needs --input with a file",
        ),
        (["select", "scored", "--min-score", "0", "--output", "scored"], "scored"),
        (
            ["distill", "src:test.en,tgt:test.de", "--output", "o", "--model", "scored"],
            "give the languages of a source",
        ),
        (
            ["distill", "config.yaml", "--pair", "en-fr", "--output", "o", "--model", "scored"],
            "has training text for en-de",
        ),
        (["distill", "config.yaml", "--output", "train.de", "--model", "scored"], "train.de"),
        (["backtranslate", "--input", "test.en", "--output", "-", "--model", "scored"], "--output -: name a file"),
        (["backtranslate", "--input", "test.en", "--output", ".", "--model", "scored"], "--output .: name a file"),
        (["backtranslate", "--input", "test.en", "--output", "test.en", "--model", "scored"], "test.en"),
        (["backtranslate", "--input", "test.en", "--output", "o", "--model", "none"], "none"),
        (["score", "config.yaml", "--output", "o", "--model", "scored", "--reverse", "none"], "none"),
    ],
)
def test_what_cannot_be_done_is_told(project: Project, arguments: list[str], told: str) -> None:
    (project.folder / "empty").touch()
    (project.folder / "bad").write_text('{"score": 0.5}\n{"score": NaN}\n')
    (project.folder / "huge").write_text('{"score": 1' + 400 * "0" + "}\n")  # has no float
    (project.folder / "scored").write_text('{"en": "a", "de": "b", "score": 0.5}\n')
    before = {path: path.read_bytes() for path in project.folder.rglob("*") if path.is_file()}
    result = project.mtformer("data", *arguments)
    assert (result.status, result.stdout) == (2, "")
    assert told in result.stderr
    assert "Traceback" not in result.stderr
    assert {path: path.read_bytes() for path in project.folder.rglob("*") if path.is_file()} == before


def test_text_in_another_language_is_warned_of(trained: Project, tmp_path: Path) -> None:
    (tmp_path / "de").write_text("".join(f"{tgt}\n" for _, tgt in sentence_pairs(1_200)))
    commands: list[list[str | Path]] = [
        ["data", "backtranslate", "--input", tmp_path / "de", "--output", tmp_path / "bt.jsonl"],
        ["data", "score", f"src:{tmp_path}/de,tgt:{tmp_path}/de", "--pair", "en-de", "--output", tmp_path / "s.jsonl"],
    ]
    for command in commands:
        result = trained.mtformer(*command, "--model", trained.folder / MODEL)
        assert result.status == 0, result.stderr
        assert "most of the first 200 texts that should be in en are in another language;" in result.stderr


def test_a_model_of_another_direction_is_refused(trained: Project, tmp_path: Path) -> None:
    result = trained.mtformer(
        "data", "distill", f"moses:{trained.folder}/train", "--pair", "de-en", "--model", trained.folder / MODEL,
        "--output", tmp_path / "o",
    )  # fmt: skip
    assert (result.status, "the model does not translate from de to en; it translates en-de" in result.stderr) == (
        2,
        True,
    )
    assert not (tmp_path / "o").exists()
