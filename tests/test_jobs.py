"""Jobs: windows, formats, documents, shards, lines that are not text, and resuming after a crash."""

import errno
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, cast
from unittest.mock import Mock

import pytest
from conftest import Project, sentence_pairs
from faults import PowerCut, disk_error_before, power_cut_before
from forked import run_ranks

from mtformer.support.errors import MtformerError, UserError
from mtformer.support.files import replace as replace_file
from mtformer.translate.jobs import reading
from mtformer.translate.jobs.core import process, run
from mtformer.translate.jobs.options import Format, OnError, Shard
from mtformer.translate.jobs.partial import PartialFile
from mtformer.translate.jobs.ranks import run_on_ranks
from mtformer.translate.jobs.reading import Paragraph, TextInput, windows
from mtformer.translate.jobs.translating import TranslationJob
from mtformer.translate.translation import Translation
from mtformer.translate.translator import Translator

LINES = [b"line 1", b"line 2", b"line 3", b"", b"line 5", b"bad \xff line", b"line 7", b"line 8", b"line 9"]


class Reverser:
    """A translator that turns texts around and records them.

    Args:
        most_windows: how many windows it translates before Ctrl-C is pressed.
    """

    src_lang = "en"
    computation = "reversed in fp32"

    def __init__(self, most_windows: int = 99) -> None:
        self.texts: list[str] = []
        self.windows_left = most_windows

    def translate(self, texts: Sequence[str], **options: Any) -> list[list[Translation]]:
        if not self.windows_left:
            raise KeyboardInterrupt
        self.windows_left -= 1
        self.texts += texts
        options.get("on_progress", abs)(len(texts))
        return [[Translation(text[::-1], -len(text), -len(text)), Translation("2nd", -99, -99)] for text in texts]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TranslationJob:
    """A job of windows of two, four and three lines."""
    monkeypatch.setattr(reading, "FIRST_SIZE", 2)
    monkeypatch.setattr(reading, "LARGEST_SIZE", 4)
    (tmp_path / "model").write_text("weights")
    (tmp_path / "in.txt").write_bytes(b"\n".join(LINES) + b"\n")
    source = TextInput(path=tmp_path / "in.txt", on_error=OnError.copy)
    return TranslationJob(
        source=source, models=[tmp_path / "model"], output=tmp_path / "out.txt", options={"beam_size": 4}
    )


def done(job: TranslationJob, most_windows: int = 99) -> Reverser:
    """Do a job, or the first windows of it, and return the translator."""
    translator = Reverser(most_windows)
    run(job, lambda: cast(Translator, translator))
    return translator


def interrupted(job: TranslationJob) -> TranslationJob:
    """Do the first window of a job, and return the job that resumes it."""
    with pytest.raises(KeyboardInterrupt):
        done(job, most_windows=1)
    return replace(job, resume=True)


def files(job: TranslationJob) -> set[str]:
    return {path.name for path in job.output.parent.iterdir()} - {"model", "in.txt"}


def test_windows_grow_up_to_a_limit() -> None:
    sizes = [len(window) for window in windows(range(40_000))]
    assert sizes[:5] == [1_000, 2_000, 4_000, 8_000, 8_000]
    assert (sum(sizes), max(sizes)) == (40_000, 8_000)
    assert list(windows([])) == []


def test_of_many_lines_at_most_a_window_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n_read = n_written = most_held = 0

    def lines(self: TextInput) -> Iterator[Paragraph]:
        nonlocal n_read
        for n_read in range(1, 100_001):
            yield Paragraph(n_read, str(n_read))

    def write(self: PartialFile, text: str, n_units: int, *_: Any) -> None:
        nonlocal n_written, most_held
        most_held = max(most_held, n_read - n_written)
        numbers = range(n_written + 1, n_written + n_units + 1)
        assert text == "".join(f"{str(number)[::-1]}\n" for number in numbers)
        n_written += n_units

    (tmp_path / "model").touch()
    monkeypatch.setattr(TextInput, "units", lines)
    monkeypatch.setattr(PartialFile, "write", write)
    done(TranslationJob(source=TextInput(), models=[tmp_path / "model"], output=tmp_path / "out"))
    assert (n_written, most_held) == (100_000, 8_000)


@pytest.mark.parametrize("name", ["out.txt", "out.gz"])
@pytest.mark.parametrize(("format", "n_best"), [(Format.text, 1), (Format.text, 3), (Format.tsv, 2), (Format.json, 1)])
def test_power_cuts_before_one_file_operation_after_another_change_nothing(
    job: TranslationJob, name: str, format: Format, n_best: int
) -> None:
    job = replace(job, output=job.output.with_name(name), format=format, n_best=n_best)
    done(job)
    whole = job.output.read_bytes()
    job.output.write_text("precious")
    job = replace(job, resume=True)
    for n_cuts in range(200):
        try:
            with power_cut_before(n_cuts):
                translator = done(job)
        except PowerCut:
            assert job.output.read_bytes() in (b"precious", whole)
        else:
            break
    assert 5 < n_cuts < 200
    assert job.output.read_bytes() == whole
    assert files(job) == {name}
    assert len(translator.texts) < len(LINES)  # the last run has continued


KILLED = """
import os, signal
from mtformer.cli import main
from mtformer.translate.jobs import reading
from mtformer.translate.jobs.partial import PartialFile
reading.FIRST_SIZE = 20
write = PartialFile.write
def killed(self, *arguments):
    if self.done.n_units:
        self._file.write(b"half a win")
        self._file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, *arguments)
PartialFile.write = killed
main()
"""


def test_a_killed_job_resumes_to_the_same_bytes(
    trained: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "FIRST_SIZE", 20)
    text, whole, output = tmp_path / "in.en", tmp_path / "whole.tsv.gz", tmp_path / "out.tsv.gz"
    text.write_text("".join(f"{src}\n" for src, _ in sentence_pairs(70, seed=8)))
    options = ["--beam-size", "2", "--n-best", "2", "--format", "tsv", "--input", str(text)]
    assert trained.mtformer("translate", *options, "--output", whole).status == 0
    command = [sys.executable, "-c", KILLED, "translate", *options, "--output", str(output)]
    killed = subprocess.run(command, cwd=trained.folder, capture_output=True, timeout=300)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not output.exists()
    resumed = trained.mtformer("translate", *options, "--output", output, "--resume")
    assert resumed.status == 0, resumed.stderr
    assert output.read_bytes() == whole.read_bytes()
    assert set(tmp_path.iterdir()) == {text, whole, output}


def test_a_resumed_job_translates_only_the_rest(job: TranslationJob) -> None:
    rest = interrupted(job)
    assert files(job) == {"out.txt.part", "out.txt.part.json"}
    assert job.output.with_name("out.txt.part").read_text() == "1 enil\n2 enil\n"
    assert done(rest).texts == ["line 3", "", "line 5", "", "line 7", "line 8", "line 9"]
    assert job.output.read_text().splitlines()[:4] == ["1 enil", "2 enil", "3 enil", ""]


class Doubtful(Reverser):
    """A translator whose translations lose the numbers of lines 2 and 7."""

    def translate(self, texts: Sequence[str], **_: Any) -> list[list[Translation]]:
        notes = {"line 2": ("check: numbers lost: 2",), "line 7": ("check: loop", "check: numbers lost: 7")}
        found = zip(texts, super().translate(texts), strict=True)
        return [[replace(best, notes=notes.get(text, ()))] for text, (best, *_) in found]


def test_the_summary_of_doubtful_lines_includes_those_before_the_interruption(
    job: TranslationJob, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(job, lambda: cast(Translator, Doubtful(1)))
    caplog.clear()
    run(replace(job, resume=True), lambda: cast(Translator, Doubtful()))
    assert [record.getMessage() for record in caplog.records[1:]] == [
        "check the translation of line 2: numbers lost: 2",
        "check the translation of line 7: loop; numbers lost: 7",
    ]


def test_doubtful_lines_are_summed_up_if_there_are_many(job: TranslationJob, caplog: pytest.LogCaptureFixture) -> None:
    job.source.path.write_text("line 2\n" * 5 + "line 7\n" + "\n".join(f"line {n}" for n in range(10, 20)))
    run(job, lambda: cast(Translator, Doubtful()))
    assert "check the translation of 6 lines (1, 2, 3, 4, 5, …): numbers lost (6), loop (1);" in caplog.text


def test_most_translations_are_not_listed_if_they_are_doubtful(
    job: TranslationJob, caplog: pytest.LogCaptureFixture
) -> None:
    job.source.path.write_text("line 2\n" * 20 + "\n" * 30 + "line 3\n" * 5)
    run(job, lambda: cast(Translator, Doubtful()))
    assert "most translations are doubtful, 20 of 25 lines: numbers lost (20); the model" in caplog.text
    assert "check the translation of" not in caplog.text


class Unsure(Reverser):
    """A translator that is unsure of texts with a question mark."""

    def translate(self, texts: Sequence[str], **_: Any) -> list[list[Translation]]:
        return [[Translation("x", tokens=("x",), log_prob=-1.0 if "?" in text else -0.1)] for text in texts]


@pytest.mark.parametrize(
    ("language", "lines"),
    [("en", "line 1: source not in en"), ("de", "line 2: source not in de"), ("qaa", "")],
)
def test_unsure_translations_of_text_in_another_language_are_noted(
    language: str, lines: str, job: TranslationJob, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Unsure, "src_lang", language)
    texts = ["Wo schläft der Hund heute?", "Where does the dog sleep?", "Wer sieht den alten Mann?", "Ja?"]
    texts += ["Der Hund schläft heute im Garten.", "The dog is sleeping in the garden."]
    job.source.path.write_text("\n".join(texts), encoding="utf-8")
    run(job, lambda: cast(Translator, Unsure()))
    assert caplog.text.partition("check the translation of ")[2].startswith(lines)
    assert bool(caplog.text) == bool(lines)


def test_a_refused_resume_does_not_advise_to_resume(job: TranslationJob, caplog: pytest.LogCaptureFixture) -> None:
    rest = interrupted(job)
    assert "continue with --resume" in caplog.text
    caplog.clear()
    job.source.path.write_bytes(b"other\n" + b"\n".join(LINES[1:]))
    with pytest.raises(UserError, match="have changed"):
        done(rest)
    assert "continue with --resume" not in caplog.text


def test_resume_without_an_unfinished_output_starts_from_scratch(job: TranslationJob) -> None:
    assert len(done(replace(job, resume=True)).texts) == len(LINES)


def test_an_interrupt_in_the_first_window_leaves_nothing(job: TranslationJob) -> None:
    with pytest.raises(KeyboardInterrupt):
        done(job, most_windows=0)
    assert files(job) == set()


def test_an_unfinished_output_is_not_overwritten(job: TranslationJob) -> None:
    interrupted(job)
    with pytest.raises(UserError, match=r"out\.txt\.part is an unfinished output: continue it with --resume"):
        done(job)


def test_a_file_of_somebody_else_is_not_overwritten(job: TranslationJob) -> None:
    job.output.with_name("out.txt.part").write_text("precious")
    for resume in (False, True):
        with pytest.raises(UserError, match=r"out\.txt\.part is in the way"):
            done(replace(job, resume=resume))
    assert job.output.with_name("out.txt.part").read_text() == "precious"


def test_an_unfinished_output_is_not_continued_with_something_else(job: TranslationJob) -> None:
    rest = interrupted(job)
    with pytest.raises(UserError, match="different settings: --beam-size was 4, is now 5"):
        done(replace(rest, options={"beam_size": 5}))
    job.models[0].write_text("other weights")
    with pytest.raises(UserError, match=r"the model was [0-9a-f]{16}, is now [0-9a-f]{16}"):
        done(rest)
    job.models[0].write_text("weights")
    job.source.path.write_bytes(b"other\n" + b"\n".join(LINES[1:]))
    with pytest.raises(
        UserError, match=r"first 2 lines or paragraphs of the input have changed since .*out\.txt\.part was written"
    ):
        done(rest)
    job.source.path.write_bytes(b"line 1\nline 2\nchanged")  # what has been translated has not
    assert done(rest).texts == ["changed"]


def test_a_file_that_an_option_names_must_not_change(job: TranslationJob, tmp_path: Path) -> None:
    terms = tmp_path / "terms"
    terms.write_text("dog\tHund\n")
    rest = interrupted(replace(job, options={"terms": terms}))
    terms.write_text("dog\tKöter\n")
    with pytest.raises(UserError, match=r"--terms was .*/terms \(\w+\), is now .*/terms"):
        done(rest)


def test_an_unfinished_output_is_not_continued_by_another_engine(job: TranslationJob) -> None:
    class Other(Reverser):
        computation = "reversed in int8"

    rest = interrupted(job)
    with pytest.raises(UserError, match="the engine was reversed in fp32, is now reversed in int8"):
        run(rest, lambda: cast(Translator, Other()))
    assert done(rest).texts


def test_what_computes_is_the_engine_its_version_and_its_precision(trained: Project) -> None:
    model = trained.folder / "runs/config"
    assert re.fullmatch(r"torch 2\.\S+, fp32", Translator.load(model, "cpu").computation)
    auto = Translator.load(model, "cpu", engine="auto")
    assert re.fullmatch(r"ctranslate2 \d\.\S+, \w+", auto.computation)


def test_unfinished_shares_of_another_number_of_processes_are_not_left_behind(
    job: TranslationJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        file = PartialFile(job.share(Shard(2, 3)).output)
        with file.opened(resume=False):
            process(job.share(Shard(2, 3)), file, lambda: cast(Translator, Reverser(1)))
    for n_processes in (1, 2):
        with pytest.raises(UserError, match=r"out\.txt has unfinished shares of 3 processes: .*--nproc 3 --resume"):
            replace(job, n_processes=n_processes, resume=True).check()
    replace(job, n_processes=3, resume=True).check()


@pytest.mark.parametrize(
    ("change", "progress"),
    [
        (lambda job: job, "2 of 9 lines"),
        (lambda job: replace(job, shard=Shard(1, 2)), "2 of 4 lines"),
        (lambda job: interrupted(job), "6 of 9 lines"),
        (lambda job: replace(job, source=replace(job.source, is_document=True)), "2 paragraphs"),
        (lambda job: replace(job, source=TextInput("\n".join("abc"))), "2 lines"),
    ],
)
def test_progress_shows_the_lines_of_a_file_and_the_time_left(
    job: TranslationJob,
    change: Callable[[TranslationJob], TranslationJob],
    progress: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    job = change(job)
    monkeypatch.setattr("mtformer.support.progress._SECONDS_TO_FIRST_LINE", 0.0)
    with caplog.at_level("INFO"):
        done(job)
    shown = next(text for text in caplog.messages if text.startswith("translating: "))
    assert re.match(
        rf"translating: {progress}, \d+:\d\d left" if " of " in progress else f"translating: {progress}, ", shown
    )


def test_a_process_hashes_the_model_once(job: TranslationJob, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[Path] = []

    def digest(path: Path) -> str:
        hashed.append(path)
        return "0" * 16

    monkeypatch.setattr("mtformer.translate.jobs.core._digest", digest)
    monkeypatch.setattr("mtformer.translate.jobs.ranks.end_at_once", lambda: None)
    translator = Reverser()
    run_on_ranks(job, lambda: cast(Translator, translator))
    assert (hashed, len(translator.texts)) == (job.models, len(LINES))


@pytest.mark.parametrize("name", ["a.ini", "b.STRINGS", "d.srt.gz", "e.toml"])
def test_files_whose_lines_are_not_sentences_are_refused_by_name(trained: Project, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("a small dog.\n")
    refused = trained.mtformer("translate", "--input", tmp_path / name)
    assert (refused.status, refused.stdout) == (2, "")
    assert f"{name}: all lines of a .{name.split('.')[1].lower()} file would be translated" in refused.stderr
    given = trained.mtformer("translate", "--input", "-", stdin=(tmp_path / name).read_text())
    assert (given.status, given.stdout.count("\n")) == (0, 1)


@pytest.mark.parametrize(("name", "suffix"), [("a.DOC", ".docx"), ("b.rtf", ".docx"), ("c.xls", ".xlsx")])
def test_the_format_to_convert_older_documents_to_is_named(
    trained: Project, tmp_path: Path, name: str, suffix: str
) -> None:
    (tmp_path / name).write_text("a small dog.\n")
    for option in ([], ["--input"]):
        refused = trained.mtformer("translate", *option, tmp_path / name)
        assert (refused.status, refused.stdout) == (2, "")
        assert f"{name} is not in a format that is translated: save it as {suffix}" in refused.stderr


@pytest.mark.parametrize("name", ["a.docx", "b.PDF", "c.tsv.gz"])
def test_lines_are_not_written_to_files_of_other_kinds(trained: Project, tmp_path: Path, name: str) -> None:
    refused = trained.mtformer("translate", "--input", "test.en", "--output", tmp_path / name)
    assert (refused.status, list(tmp_path.iterdir())) == (2, [])
    suffix = name.split(".")[1].lower()
    assert f"{name}: lines of text cannot be written as a .{suffix} file: name a .txt file" in refused.stderr


def test_one_process_at_a_time_writes_an_output(job: TranslationJob) -> None:
    with (
        PartialFile(job.output, {}).opened(resume=False),
        pytest.raises(UserError, match=r"another process is writing .*out\.txt"),
    ):
        done(job)


def test_an_output_belongs_to_its_process_until_it_has_its_name(
    job: TranslationJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []
    name = "mtformer.translate.jobs.partial.replace_file"

    def rename_beside_another(path: Path, target: Path) -> None:
        monkeypatch.setattr(name, replace_file)
        with pytest.raises(UserError) as error:
            done(replace(job, resume=True))
        refused.append(str(error.value))
        replace_file(path, target)

    monkeypatch.setattr(name, rename_beside_another)
    done(job)
    assert len(refused) == 1
    assert "another process is writing" in refused[0]


def test_a_full_disk_ends_the_job_with_an_error_that_names_the_output(job: TranslationJob) -> None:
    errors = set()
    for n_operations in range(12):
        try:
            with disk_error_before(n_operations, 28):
                done(replace(job, resume=True))
        except MtformerError as error:
            errors.add(str(error))
    assert errors
    assert all("out.txt" in error and "No space left on device" in error for error in errors)


def test_a_disk_that_is_still_full_when_the_output_is_closed_names_the_output(
    job: TranslationJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.FileIO):
        def write(self, *_: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def open_file(path: Path, mode: str = "r", *args: Any, **kwargs: Any) -> IO[Any]:
        return io.BufferedRandom(Full(path, mode)) if mode == "r+b" else usual(path, mode, *args, **kwargs)

    usual = Path.open
    monkeypatch.setattr(Path, "open", open_file)
    with pytest.raises(MtformerError) as error:
        done(job)
    assert str(error.value) == f"cannot write {job.output}: No space left on device"


def test_n_best_translations_are_a_block_of_lines_and_an_empty_one(job: TranslationJob) -> None:
    done(replace(job, n_best=3))
    blocks = job.output.read_text().splitlines()
    assert len(blocks) == len(LINES) * 4
    assert blocks[:8] == ["1 enil", "2nd", "", "", "2 enil", "2nd", "", ""]
    assert blocks[20:24] == ["bad \ufffd line", "", "", ""]


@pytest.mark.parametrize(("on_error", "printed"), [(OnError.copy, "bad \ufffd line"), (OnError.skip, "")])
def test_a_line_that_is_not_utf8_is_copied_or_skipped(
    job: TranslationJob, on_error: OnError, printed: str, caplog: pytest.LogCaptureFixture
) -> None:
    job = replace(job, source=replace(job.source, on_error=on_error), format=Format.json)
    assert "bad" not in " ".join(done(job).texts)
    rows = [json.loads(line) for line in job.output.read_text().splitlines()]
    assert [row["line"] for row in rows] == list(range(1, 10))
    [translation] = rows[5]["translations"]
    assert (rows[5]["src"], translation["text"], len(translation["notes"])) == ("bad \ufffd line", printed, 1)
    assert "not UTF-8 text: 1 line (6), " in caplog.text


@pytest.mark.parametrize(("on_error", "printed"), [(OnError.copy, "line 2"), (OnError.skip, ""), (OnError.stop, None)])
def test_a_line_that_fails_is_copied_or_skipped_or_ends_the_job(
    job: TranslationJob, on_error: OnError, printed: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    class Fails(Reverser):
        def translate(self, texts: Sequence[str], on_error: Any = None, **_: Any) -> list[list[Translation]]:
            results = super().translate(texts)
            for index, text in enumerate(texts):
                if text == "line 2":
                    if on_error is None:
                        raise MtformerError("the model predicts NaN")
                    results[index] = on_error(index, MtformerError("the model predicts NaN"))
            return results

    job.source.path.write_text("line 1\nline 2\nline 3\n")
    job = replace(job, source=replace(job.source, on_error=on_error), format=Format.json)
    if printed is None:
        with pytest.raises(MtformerError, match="predicts NaN"):
            run(job, lambda: cast(Translator, Fails()))
        return
    run(job, lambda: cast(Translator, Fails()))
    found = [json.loads(line)["translations"][0] for line in job.output.read_text().splitlines()]
    assert [each["text"] for each in found] == ["1 enil", printed, "3 enil"]
    assert found[1]["notes"][0].startswith("failed: the model predicts NaN: ")
    assert "not translated: 1 line (2), " in caplog.text


def test_a_copied_line_has_as_many_columns_as_the_others(trained: Project, tmp_path: Path) -> None:
    (tmp_path / "in.en").write_bytes(b"a small dog.\n\nbad \xff\tline\t.\n")
    options = ("--format", "tsv", "--alignments", "--on-error", "copy")
    printed = trained.mtformer("translate", "--input", tmp_path / "in.en", *options).stdout
    assert [line.count("\t") for line in printed.splitlines()] == [4, 4, 4]


def test_after_a_bad_line_a_job_resumes_with_another_choice(job: TranslationJob) -> None:
    done(job)
    whole = job.output.read_bytes()
    stops = replace(job, source=replace(job.source, on_error=OnError.stop), options={"on_error": OnError.stop})
    with pytest.raises(UserError, match=r"in\.txt:6: byte 0xff at position 5 is not UTF-8; .* see --on-error"):
        done(stops)
    assert "2 enil" in job.output.with_name("out.txt.part").read_text()
    done(replace(job, resume=True, options={"on_error": OnError.copy}))
    assert job.output.read_bytes() == whole


@pytest.mark.parametrize("n_shards", [1, 2, 3, 20])
@pytest.mark.parametrize("is_document", [False, True])
def test_shards_in_their_order_are_the_whole(job: TranslationJob, n_shards: int, is_document: bool) -> None:
    source = replace(job.source, is_document=is_document)
    job = replace(job, source=source, format=Format.tsv)
    done(job)
    whole = job.output.read_bytes()
    parts = []
    for index in range(1, n_shards + 1):
        done(replace(job, shard=Shard(index, n_shards)))
        parts.append(job.output.read_bytes())
    assert b"".join(parts) == whole


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "a/b", "-1/2", "1/2/3", "1/" + "9" * 5000])
def test_a_shard_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="write I/N with I from 1 to N"):
        Shard.parse(text)


def test_compressed_shards_can_be_concatenated(job: TranslationJob) -> None:
    done(job)
    joined = b""
    for index in (1, 2):
        output = job.output.with_suffix(".gz")
        done(replace(job, shard=Shard(index, 2), output=output))
        joined += output.read_bytes()
    assert gzip.decompress(joined) == job.output.read_bytes()


def test_an_empty_input_gives_an_empty_output(job: TranslationJob) -> None:
    job.source.path.write_text("")
    for name in ("out.txt", "out.gz"):
        done(replace(job, output=job.output.with_name(name)))
    assert job.output.read_bytes() == b""
    assert gzip.decompress(job.output.with_suffix(".gz").read_bytes()) == b""


@pytest.mark.parametrize("at_terminal", [True, False])
def test_whoever_gives_no_text_at_a_terminal_learns_what_to_do(
    trained: Project, monkeypatch: pytest.MonkeyPatch, at_terminal: bool
) -> None:
    monkeypatch.setattr("mtformer.translate.jobs.reading.isatty", lambda descriptor: at_terminal)
    result = trained.mtformer("translate", stdin="a small dog.\n")
    assert (result.status, len(result.stdout.splitlines())) == (0, 1)
    assert ("line by line; Ctrl-D ends it" in result.stderr) == at_terminal


def test_options_that_cannot_work_together_are_refused(trained: Project, tmp_path: Path) -> None:
    for arguments, message in (
        (["--resume"], "--resume needs --output"),
        (["a", "--shard", "1/2"], "--shard needs --input"),
        (["--document", "--n-best", "2", "--input", "test.en"], "--document with --n-best"),
        (["a", "--nproc", "2"], "several processes (--nproc) need --input and --output"),
        (["--input", "test.en", "--output", "out", "--nproc", "2", "--shard", "1/2"], "--shard does not work with"),
    ):
        result = trained.mtformer("translate", *arguments)
        assert (result.status, message in result.stderr) == (2, True), result.stderr


def test_an_input_that_cannot_be_read_is_told_before_a_model_is_loaded(job: TranslationJob, tmp_path: Path) -> None:
    def load() -> Translator:
        raise AssertionError("a model is loaded")

    with pytest.raises(UserError, match=r"cannot read .*missing\.txt"):
        run(replace(job, source=TextInput(path=tmp_path / "missing.txt")), load)


def test_two_processes_translate_a_share_each(trained: Project, tmp_path: Path) -> None:
    lines = [src.encode() for src, _ in sentence_pairs(9, seed=8)]
    text, terms, output = (tmp_path / name for name in ("in.en", "terms.tsv", "out.de"))
    text.write_bytes(b"\n".join([*lines[:7], b"\xff", *lines[7:]]))
    terms.write_text("Source\tTarget\n", encoding="utf-8")
    texts = ["translate", "--input", str(text), "--terms", str(terms), "--beam-size", "1"]
    done = run_ranks(trained.folder, [[*texts, "--output", str(output), "--on-error", "copy"]] * 2)
    assert done.statuses == [0, 0], done.stderr
    assert "not UTF-8 text: 1 line (8), copied with U+FFFD for the bad bytes" in done.stderr
    assert done.stderr.count("model: runs/config/model.safetensors") == 1
    assert done.stderr.count("is read as a term") == 1
    assert trained.mtformer(*texts, "--on-error", "copy").stdout == output.read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"in.en", "terms.tsv", "out.de"}


def test_torchrun_starts_the_processes_of_a_translation(trained: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    start = Mock()
    monkeypatch.setattr("torch.distributed.run.run", start)
    job = ["translate", "--input", "test.en", "--output", "out.de"]
    assert trained.mtformer(*job, "--nproc", "2").status == 0
    [started] = start.call_args.args
    assert (started.standalone, started.nproc_per_node, started.module) == (True, "2", True)
    assert [started.training_script, *started.training_script_args] == ["mtformer", *job]


@pytest.mark.parametrize("arguments", [["--input", "test.en"], ["--output", "out.txt"], []])
def test_several_processes_need_files(trained: Project, arguments: list[str]) -> None:
    result = trained.mtformer("translate", *arguments, "--nproc", "2")
    assert (result.status, "several processes (--nproc) need --input and --output" in result.stderr) == (2, True), (
        result.stderr
    )
