"""What the terminal shows while a model trains."""

import logging
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import Project, make_project

from mtformer.support.progress import Progress, watched
from mtformer.training.display import Pace, ValidationTable, live_note
from mtformer.training.update import RunningLoss, Update
from mtformer.training.validation import Sample, Validation

HEADER = "    step   epoch  minutes  train loss  valid loss  perplexity    BLEU  tokens/s"


class Clock:
    """A clock that a test advances."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("time.monotonic", lambda: self.now)

    def paced(self, n_steps: int, seconds: float, *validations: float) -> Pace:
        """Return the pace after steps of so many seconds each and validations."""
        pace = Pace()
        for _ in range(n_steps):
            self.now += seconds
            pace.count_step()
        for duration in validations:
            with pace.validation():
                self.now += duration
        return pace


def test_the_time_left_is_that_of_steps_and_of_validations_as_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = Clock(monkeypatch).paced(20, 0.5, 8.0, 12.0)
    # 80 steps of 0.5 s, and validations of 10 s after steps 30, 60, 90 and 100
    assert pace.eta(20, 100, 30, None) == pytest.approx(80.0)
    assert pace.eta(20, 90, 30, None) == pytest.approx(65.0)
    assert pace.eta(90, 90, 30, None) == pytest.approx(0.0)
    # 30 s are enough for 36 steps and a validation, which is due after each 30 of them; the last one comes on top
    assert pace.eta(20, None, 30, 30.0) == pytest.approx(38.0)
    assert pace.eta(20, 25, 30, 30.0) == pytest.approx(12.5)
    assert pace.eta(20, None, 30, -1.0) == 10.0


def test_before_a_validation_its_time_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = Clock(monkeypatch).paced(4, 0.25)
    assert pace.eta(4, 104, 30, None) == 25.0


def test_in_the_first_steps_the_time_left_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = Clock(monkeypatch).paced(2, 9.0)
    assert live_note(RunningLoss(), "loss", None, pace.eta(2, 104, 30, None)).endswith("ETA ?")


def trained(monkeypatch: pytest.MonkeyPatch) -> RunningLoss:
    clock = Clock(monkeypatch)
    running = RunningLoss()
    running.add(Update(loss=300.0, cross_entropy=200.0, n_tokens=100, grad_norm=0.5))
    running.add(Update(loss=200.0, cross_entropy=100.0, n_tokens=50, grad_norm=1.5))
    clock.now += 0.1
    return running


def test_metrics_are_means_over_tokens_and_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {"train_loss": 2.0, "train_loss_smoothed": 500 / 150, "grad_norm": 1.0, "tokens_per_second": 1_500.0}
    assert trained(monkeypatch).metrics() == pytest.approx(expected)


def test_the_live_line_says_how_it_goes_and_how_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    running = trained(monkeypatch)
    assert live_note(running, "bleu", None, 65.0) == "loss 2.000, 1,500 tokens/s, ETA 1:05"
    shown = live_note(running, "bleu", 31.256, 3_725.0)
    assert shown == "loss 2.000, BLEU 31.26, 1,500 tokens/s, ETA 1:02:05"
    assert len(f"123456/300000 steps, {shown}") <= 80
    assert "valid loss 1.235," in live_note(running, "loss", 1.2347, 0.0)


def test_a_validation_is_a_row_below_one_header(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="mtformer")
    running, samples = trained(monkeypatch), [Sample("a", "ä", "b")]
    table = ValidationTable("ter")
    for step, loss, training in ((1_000, 2.0, running), (20_000, 20.0, RunningLoss())):
        result = Validation({"loss": loss, "bleu": 12.345, "ter": 101.5}, samples)
        table.add(step=step, epoch=1.25, minutes=0.5, training=training, result=result, is_best=step == 1_000)
    assert [record.getMessage() for record in caplog.records] == [
        "    step   epoch  minutes  train loss  valid loss  perplexity    BLEU     TER  tokens/s",
        "    1000     1.2      0.5       2.000       2.000        7.39   12.35  101.50     1,500  best",
        "   20000     1.2      0.5                  20.000     4.9e+08   12.35  101.50          ",
    ]


@pytest.mark.parametrize(("total", "done"), [(None, "1,500"), (2_000, "1,500 of 2,000")])
def test_off_a_terminal_a_note_stands_where_rate_and_time_would(
    total: int | None, done: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="mtformer")
    monkeypatch.setattr("mtformer.support.progress._SECONDS_TO_FIRST_LINE", 0.0)
    with Progress("training", total, 1_499, "steps", with_rate=False) as progress:
        progress.note("validating")
        progress.advance(note="loss 1.5")
    assert [record.getMessage() for record in caplog.records] == [f"training: {done} steps, loss 1.5"]


def test_off_a_terminal_one_item_is_not_told_in_the_plural(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="mtformer")
    monkeypatch.setattr("mtformer.support.progress._SECONDS_TO_FIRST_LINE", 0.0)
    for with_rate in (True, False):
        with Progress("sampling", unit="pairs", with_rate=with_rate) as progress:
            progress.advance()
    with Progress("sampling", 5, unit="pairs") as progress:
        progress.advance()
    shown = [record.getMessage().split(",")[0] for record in caplog.records]
    assert shown == ["sampling: 1 pair", "sampling: 1 pair", "sampling: 1 of 5 pairs"]


def test_off_a_terminal_no_time_is_told_before_the_first_item(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="mtformer")
    monkeypatch.setattr("mtformer.support.progress._SECONDS_TO_FIRST_LINE", 0.0)
    with Progress("translating", 1, unit="lines") as progress:
        progress.advance(0)
    assert [record.getMessage() for record in caplog.records] == ["translating: 0 of 1 line"]


def test_off_a_terminal_the_first_line_comes_early_without_an_estimate_from_few_items(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="mtformer")
    now = 0.0
    monkeypatch.setattr("mtformer.support.progress.time", SimpleNamespace(monotonic=lambda: now))
    with Progress("translating", 100, unit="lines") as progress:
        for _ in range(100):
            now += 1.0
            progress.advance()
    lines = [record.getMessage() for record in caplog.records]
    assert lines[:2] == ["translating: 5 of 100 lines", "translating: 35 of 100 lines, 1:05 left"]


def test_watched_items_are_timed_from_the_first_one_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="mtformer")
    now = 0.0
    monkeypatch.setattr("mtformer.support.progress.time", SimpleNamespace(monotonic=lambda: now))

    def items() -> Iterator[str]:
        nonlocal now
        now += 100  # such as generating all of them
        for item in "abc":
            yield item
            now += 20

    assert list(watched(items(), "reading", "pairs")) == ["a", "b", "c"]
    assert [record.getMessage() for record in caplog.records] == ["reading: 2 pairs, 6.0 pairs/min"]


def rows(stderr: str) -> list[str]:
    """Return what follows the description of the model."""
    lines = stderr.splitlines()
    return lines[next(i for i, line in enumerate(lines) if "parameters" in line) + 1 :]


def test_training_prints_a_row_for_each_validation_and_samples_on_request(tmp_path: Path) -> None:
    project = make_project(tmp_path, n_pairs=40, max_steps=4, warmup_steps=0, validate_every=2)
    calm = project.mtformer("train", project.config)
    header, first, second, last = rows(calm.stderr)
    assert header == HEADER
    assert re.fullmatch(r" {7}2 +[\d.]+ +[\d.]+ +\d\.\d{3} +\d\.\d{3} +[\d.]+ +[\d.]+ +[\d,]+  best", first)
    assert second.startswith("       4 ")
    assert last.startswith("stopped at step 4 after ")
    shown = project.mtformer("train", project.config, "--fresh", "--samples", "--set", "eval.n_samples=2")
    lines = rows(shown.stderr)
    assert len(lines) == 4 + 2 * 2 * 3
    assert [line.split(":")[0].strip() for line in lines[2:8]] == ["source", "reference", "hypothesis"] * 2


@pytest.mark.slow
def test_on_a_terminal_there_is_one_live_line_above_which_rows_appear(tmp_path: Path) -> None:
    project = make_project(tmp_path, n_pairs=40, max_steps=6, validate_every=2)
    shown = on_a_terminal(project, "train", "config.yaml")
    *live, _ = re.findall(r"\r(\d/6 steps, .*?) *(?=\r)", shown)
    assert "validating" in " ".join(live)
    pattern = r"\d/6 steps, loss \d\.\d{3}, BLEU [\d.]+, [\d,]+ tokens/s, ETA [\d:]+ .*"
    assert any(re.fullmatch(pattern, line) for line in live), live
    whole = [line.split("\r")[-1] for line in shown.replace("\r\n", "\n").splitlines()]
    assert whole.count(HEADER) == 1
    assert len([line for line in whole if re.match(r" {7}[246] ", line)]) == 3


def test_escape_sequences_in_texts_are_shown_escaped_on_a_terminal_only(project: Project) -> None:
    (project.folder / "wild.tsv").write_text("a\x1b[31mb\t\x1b]0;title\x07c\n", encoding="utf-8")
    command = ["data", "sample", "tsv:wild.tsv", "--pair", "en-de"]
    assert on_a_terminal(project, *command).endswith("a\\x1b[31mb\t\\x1b]0;title\\x07c\r\n")
    assert project.mtformer(*command).stdout == "a\x1b[31mb\t\x1b]0;title\x07c\n"
    assert r"no\x1b[2Jfile" in project.mtformer("train", "no\x1b[2Jfile").stderr


def test_results_are_written_to_a_terminal_in_place_of_the_progress_bar(trained: Project) -> None:
    (trained.folder / "two.en").write_text("the dog\nthe house\n", encoding="utf-8")
    (trained.folder / "two.de").write_text("der Hund\ndas Haus\n", encoding="utf-8")
    for command, doing in (
        (["translate", "--input", "two.en"], "translating"),
        (["score", "--src", "two.en", "--tgt", "two.de"], "scoring"),
        (["tokenize", "--input", "two.en"], "converting"),
    ):
        expected = trained.mtformer(*command).stdout.split("\n")
        shown = on_a_terminal(trained, *command).replace("\r\n", "\n")
        assert f"\r{doing}: " in shown
        whole = [line.split("\r")[-1] for line in shown.split("\n") if not line.startswith("model: ")]
        assert whole == expected


def on_a_terminal(project: Project, *command: str, columns: int = 140) -> str:
    """Run the command line on a terminal and return all that appears there."""
    fcntl, pty, termios = map(pytest.importorskip, ("fcntl", "pty", "termios"))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    program, redrawn = [sys.executable, "-m", "mtformer"], {"TQDM_MININTERVAL": "0", "TQDM_MINITERS": "1"}
    with subprocess.Popen(
        [*program, *command],
        cwd=project.folder,
        env=os.environ | redrawn,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # Linux's sign that the other end is closed
            while part := os.read(ours, 4096):
                shown += part
        os.close(ours)
    assert process.returncode == 0, shown.decode()
    return shown.decode()
