import errno
import itertools
import json
import math
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from conftest import make_project, sentence_pairs
from test_checkpoint import all_equal
from torch import Tensor

from mtformer.bundle.format import load_bundle
from mtformer.bundle.header import AlignmentHead
from mtformer.config import Facts, LanguagePair, TsvFile, dump_config, load_config, resolve
from mtformer.data.batches import Batch
from mtformer.data.sources.parallel import ParallelText
from mtformer.data.store import stored_text
from mtformer.data.training import TrainingData
from mtformer.model.transformer import Transformer
from mtformer.runs.checkpoints import list_checkpoints, newest_checkpoint
from mtformer.runs.contents import gather
from mtformer.runs.folder import Journal, RunFolder
from mtformer.support.errors import MtformerError, UserError
from mtformer.support.files import write_text
from mtformer.support.processes.ranks import ALONE, Ranks
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.training.model import build_model
from mtformer.training.trainer import Trainer
from mtformer.training.update import Update
from mtformer.training.validation import Validation, Validator

PAIRS = [SentencePair(*pair) for pair in sentence_pairs(60)]
VALID_PAIRS = [SentencePair(*pair) for pair in sentence_pairs(5, seed=2)]


class ObservedTrainer(Trainer):
    """Remembers its updates, and calls ``before_update`` before each of them."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.seen: Counter[int] = Counter()
        self.updates: list[Update] = []
        self.rates: list[float] = []
        self.before_update: Callable[[Sequence[Batch]], object] = lambda batches: None

    def _update(self, batches: Sequence[Batch], rate: float) -> Update:
        self.before_update(batches)
        self.seen.update(i for batch in batches for i in batch.indices)
        self.rates.append(rate)
        self.updates.append(super()._update(batches, rate))
        return self.updates[-1]

    def weights(self) -> list[Tensor]:
        return [parameter.detach().clone() for parameter in self.model.parameters()]

    def metrics(self) -> list[dict[str, Any]]:
        text = self.folder.metrics.read_text(encoding="utf-8")
        assert text.endswith("\n")
        return [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]


def make_trainer(
    folder: Path,
    pairs: Sequence[SentencePair] = PAIRS,
    valid_pairs: Sequence[SentencePair] = VALID_PAIRS,
    *,
    overrides: Sequence[str] = (),
    init_seed: int = 1,
    **training: Any,
) -> ObservedTrainer:
    """Make a trainer in ``folder``; ``training`` sets keys of that section."""
    training = {"learning_rate": 0.01, "max_tokens": 128, **training}
    project = make_project(folder, **training)
    config = resolve(load_config(project.config, ["eval.n_samples=1", *overrides]), Facts(len(pairs)))
    tokenizer = train_tokenizer(pairs, config.tokenizer, "en", "de", adjust=True)
    text = folder / "train.tsv"
    text.write_text("".join(f"{pair.src}\t{pair.tgt}\n" for pair in pairs), encoding="utf-8")
    data = TrainingData(config, stored_text(ParallelText([TsvFile(tsv=text)], "en", "de")), tokenizer)
    torch.manual_seed(init_seed)
    model = build_model(config, tokenizer)
    validator = Validator(config, tokenizer, {LanguagePair("en", "de"): valid_pairs})
    return ObservedTrainer(config, model, tokenizer, data, validator, RunFolder(folder))


def n_batches(trainer: Trainer) -> int:
    return len(trainer.plan(0))


# Faults


def final_bias(trainer: Trainer) -> Tensor:
    return trainer.model.get_parameter("decoder_norm.bias")


def test_a_loss_that_is_not_finite_stops_before_the_update(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, validate_every=2)
    spoiled: list[tuple[list[Tensor], list[int]]] = []

    def spoil(batches: Sequence[Batch]) -> None:
        if trainer.state.step == 3:
            final_bias(trainer).data[0] = math.inf
            spoiled.append((trainer.weights(), sorted(batches[0].indices)))

    trainer.before_update = spoil
    with pytest.raises(MtformerError) as caught:
        trainer.fit()
    [(weights, indices)] = spoiled
    assert "step 4: the loss is not a finite number; the weights were not changed" in str(caught.value)
    lines = ", ".join(f"{tmp_path / 'train.tsv'}:{index + 1}" for index in indices)
    assert f"It came from {lines}." in str(caught.value)
    assert not isinstance(caught.value, UserError)
    assert all_equal(trainer.weights(), weights)
    assert trainer.state.step == 3
    assert [path.name for path in list_checkpoints(trainer.folder.checkpoints)] == ["step-000002"]


def test_a_gradient_that_is_not_finite_stops_before_the_update(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path)
    final_bias(trainer).register_hook(lambda gradient: gradient * math.inf)
    before = trainer.weights()
    with pytest.raises(MtformerError, match="step 1: the gradient is not a finite number"):
        trainer.fit()
    assert all_equal(trainer.weights(), before)


def spoil_gradients(trainer: ObservedTrainer, *update_numbers: int) -> None:
    """Make the gradients of these updates infinite, the first being number 1."""

    def spoil(gradient: Tensor) -> Tensor:
        return gradient * math.inf if len(trainer.updates) + 1 in update_numbers else gradient

    final_bias(trainer).register_hook(spoil)


def test_a_faulty_update_is_left_out_and_counted_if_that_is_configured(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = make_trainer(tmp_path, max_steps=6, on_fault="skip")
    spoil_gradients(trainer, 3, 4)
    weights: list[list[Tensor]] = []
    trainer.before_update = lambda batches: weights.append(trainer.weights())
    assert trainer.fit() == "training.max_steps = 6"
    assert len(trainer.updates) == 8
    assert all_equal(weights[2], weights[3]) and all_equal(weights[3], weights[4])
    assert not all_equal(weights[4], weights[5])
    assert (trainer.state.step, trainer.state.skipped, trainer.state.skipped_in_a_row) == (6, 2, 0)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [warning.partition(";")[0] for warning in warnings] == ["step 3: the gradient is not a finite number"] * 2
    assert "train.tsv:" in warnings[0]
    assert warnings[1].endswith("(2 updates skipped)")


def test_when_every_update_is_faulty_the_run_ends(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=50, on_fault="skip")
    spoil_gradients(trainer, *range(5, 100))
    with pytest.raises(MtformerError, match="So did 20 steps before"):
        trainer.fit()
    assert trainer.state.step == 4
    assert len(trainer.updates) == 4 + 20


def test_a_spike_of_the_loss_is_a_fault(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=8, spike_factor=1.5)

    def spoil(batches: Sequence[Batch]) -> None:
        if trainer.state.step == 5:
            final_bias(trainer).data.fill_(50.0)

    trainer.before_update = spoil
    with pytest.raises(MtformerError, match=r"step 6: the loss is [\d.e+]+ and was [\d.]+ in the steps before"):
        trainer.fit()
    assert trainer.state.step == 5


# What is logged


def test_the_learning_rate_follows_the_schedule_to_the_first_limit(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=40, max_epochs=50, learning_rate=0.02, warmup_steps=4, log_every=1)
    trainer.fit()
    expected = [0.02 * min(1, step / 4) * (1 - (step - 1) / 40) for step in range(1, 41)]
    assert [line["lr"] for line in trainer.metrics() if "lr" in line] == pytest.approx(expected)


@pytest.mark.parametrize("limit", ["max_steps", "max_epochs"])
def test_the_warmup_ends_with_a_tenth_of_the_run_and_resuming_does_not_change_it(limit: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"learning_rate": 0.02, "warmup_steps": 1_000}
    settings |= {"max_steps": 30} if limit == "max_steps" else {"max_steps": None, "max_epochs": 4}
    trainer = make_trainer(tmp_path / "uninterrupted", **settings)
    n_steps = trainer.course.total_steps()
    assert n_steps is not None and n_steps >= 20
    trainer.fit()
    warmup = [max(step / 1_000, 10 * (step - 1) / n_steps) for step in range(1, n_steps + 1)]
    expected = [0.02 * min(1, factor) * (1 - i / n_steps) for i, factor in enumerate(warmup)]
    assert trainer.rates == pytest.approx(expected)

    interrupted = make_trainer(tmp_path / "resumed", **settings)
    interrupted.before_update = lambda batches: signal.raise_signal(signal.SIGINT) if interrupted.rates else None
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit()
    resumed = make_trainer(tmp_path / "resumed", **settings)
    assert resumed.resume()
    resumed.fit()
    assert interrupted.rates + resumed.rates == trainer.rates
    assert all(map(torch.equal, resumed.weights(), trainer.weights()))


def test_the_warmup_of_a_run_limited_by_minutes_follows_the_clock(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=None, max_minutes=10, learning_rate=0.02, warmup_steps=400)
    rates = []
    for step, minutes in ((0, 0.0), (10, 0.5), (20, 1.0), (200, 5.0)):
        trainer.state.step, trainer.state.seconds = step, 60 * minutes
        rates.append(trainer.course.learning_rate())
    assert rates == pytest.approx([0.02 / 400, 0.02 * 0.5 * 0.95, 0.02 * 0.9, 0.02 * 0.5])


@pytest.mark.parametrize("n_before", [1, 4])
def test_the_schedule_follows_the_epochs_when_a_resumed_run_has_other_batches_in_an_update(
    n_before: int, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"max_steps": None, "warmup_steps": 0, "learning_rate": 0.02}
    make_trainer(tmp_path, max_epochs=2, grad_accum_steps=n_before, **settings).fit()
    again = make_trainer(tmp_path, max_epochs=6, grad_accum_steps=5 - n_before, **settings)
    assert again.resume()
    n_left = 4 * again.steps_per_epoch
    assert again.course.total_steps() == again.state.step + n_left
    again.fit()
    assert again.rates == pytest.approx([0.02 * (4 - 4 * i / n_left) / 6 for i in range(n_left)])


def test_the_schedule_of_a_run_limited_by_epochs_ends_with_them(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=None, max_epochs=2, warmup_steps=0, schedule="cosine")
    trainer.fit()
    n_steps = 2 * n_batches(trainer)
    expected = [0.005 * (1 + math.cos(math.pi * step / n_steps)) for step in range(n_steps)]
    assert trainer.rates == pytest.approx(expected)


def test_metrics_are_a_json_object_for_each_logged_step_and_each_validation(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=14, log_every=4, validate_every=6)
    trainer.fit()
    lines = trainer.metrics()
    training, validation = ([line for line in lines if key in line] for key in ("train_loss", "valid_loss"))
    assert len(lines) == len(training) + len(validation)
    assert [line["step"] for line in training] == [4, 8, 12]
    assert [line["step"] for line in validation] == [6, 12, 14]
    common = {"step", "epoch", "seconds"}
    losses = {"train_loss", "train_loss_smoothed"}
    assert all(
        line.keys() == common | losses | {"lr", "tokens_per_second", "grad_norm", "memory_gib"} for line in training
    )
    assert all(line.keys() == common | {"valid_loss", "valid_perplexity", "valid_bleu"} for line in validation)
    assert [line["epoch"] for line in validation] == [step // n_batches(trainer) for step in (6, 12, 14)]
    first = trainer.updates[:4]
    n_tokens = sum(u.n_tokens for u in first)
    assert training[0]["train_loss_smoothed"] == pytest.approx(sum(u.loss for u in first) / n_tokens)
    assert training[0]["train_loss"] == pytest.approx(sum(u.cross_entropy for u in first) / n_tokens)
    assert validation[0]["valid_perplexity"] == pytest.approx(math.exp(validation[0]["valid_loss"]))


def test_off_a_terminal_a_line_now_and_then_says_how_far_training_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("_SECONDS_TO_FIRST_LINE", "_SECONDS_BETWEEN_LINES"):
        monkeypatch.setattr(f"mtformer.support.progress.{name}", 0.0)
    trainer = make_trainer(tmp_path, max_steps=3)
    with caplog.at_level("INFO"):
        trainer.fit()
    lines = [record.getMessage() for record in caplog.records if record.name == "mtformer.support.progress"]
    assert [line.split(" step")[0] for line in lines] == ["training: 1 of 3", "training: 2 of 3", "training: 3 of 3"]
    assert all(", loss " in line and " tokens/s, ETA " in line for line in lines)
    assert [line[-1] for line in lines[:2]] == ["?", "?"]  # the first steps say too little about the time left


def test_the_line_counts_to_the_last_step_where_epochs_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("_SECONDS_TO_FIRST_LINE", "_SECONDS_BETWEEN_LINES"):
        monkeypatch.setattr(f"mtformer.support.progress.{name}", 0.0)
    trainer = make_trainer(tmp_path, max_steps=None, max_epochs=3, overrides=["data.augment={upper: 0.5, typos: 0}"])
    first = trainer.course.total_steps()
    with caplog.at_level("INFO"):
        trainer.fit()
    *_, last = [record.getMessage() for record in caplog.records if record.name == "mtformer.support.progress"]
    assert trainer.state.step != first
    assert last.startswith(f"training: {trainer.state.step} of {trainer.state.step} steps")


# When it stops, and what it leaves behind


@pytest.mark.parametrize("grad_accum_steps", [1, 4])
def test_epochs_show_every_pair_once_each(grad_accum_steps: int, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=None, max_epochs=2, grad_accum_steps=grad_accum_steps)
    assert trainer.fit() == "training.max_epochs = 2"
    assert trainer.seen == dict.fromkeys(range(len(PAIRS)), 2)
    assert n_batches(trainer) % 4  # the last update of an epoch has fewer batches than the others
    assert trainer.state.step == 2 * math.ceil(n_batches(trainer) / grad_accum_steps)


def test_steps_are_counted_and_checkpoints_kept_as_configured(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=10, checkpoint_every=3, keep_last=2, validate_every=100)
    assert trainer.fit() == "training.max_steps = 10"
    assert len(trainer.updates) == 10
    assert [path.name for path in list_checkpoints(trainer.folder.checkpoints)] == ["step-000010", "step-000009"]
    assert load_bundle(tmp_path / "model.safetensors").header.scores["step"] == 10


def test_snapshots_of_steps_that_are_repeated_are_made_again(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"checkpoint_every": 30, "validate_every": 100}
    trainer = make_trainer(tmp_path, max_steps=55, **settings)
    trainer.fit()
    snapshots, newest = trainer.folder.snapshots, trainer.folder.checkpoints / "step-000055"
    assert [path.name for path in list_checkpoints(snapshots)] == ["step-000050", "step-000025"]
    shutil.rmtree(newest)
    again = make_trainer(tmp_path, max_steps=55, **settings)
    assert again.resume()
    assert [path.name for path in list_checkpoints(snapshots)] == ["step-000025"]
    again.fit()
    assert [path.name for path in list_checkpoints(snapshots)] == ["step-000050", "step-000025"]


def test_snapshots_are_removed_as_well_if_the_run_died_before_its_first_checkpoint(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"max_steps": 55, "validate_every": 100, "checkpoint_every": 100}
    trainer = make_trainer(tmp_path, **settings)
    trainer.fit()
    shutil.rmtree(trainer.folder.checkpoints)
    trainer.folder.bundle.unlink()
    trainer.folder.metrics.unlink()
    again = make_trainer(tmp_path, **settings)
    assert not again.resume()
    assert list_checkpoints(again.folder.snapshots) == []


def test_a_run_that_is_to_keep_no_early_models_makes_no_snapshots(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=26, keep_early=0)
    trainer.fit()
    assert not trainer.folder.snapshots.exists()


def test_minutes_are_counted_over_all_starts_of_a_run(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=1, max_minutes=5)
    trainer.fit()
    trainer.state.seconds = 299.999999
    again = make_trainer(tmp_path, max_steps=None, max_minutes=5)
    again.state = trainer.state
    assert again.fit() == "training.max_minutes = 5"
    assert len(again.updates) == 1
    assert again.fit() == "training.max_minutes = 5"
    assert len(again.updates) == 1


def test_a_run_whose_time_is_over_after_a_validation_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer(tmp_path, max_steps=None, max_minutes=5, validate_every=2)
    now, validate = 0.0, trainer.validator.validate

    def validate_for_ten_minutes(model: Transformer, ranks: Ranks) -> Validation:
        nonlocal now
        now += 600
        return validate(model, ranks)

    monkeypatch.setattr("mtformer.training.trainer.time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(trainer.validator, "validate", validate_for_ten_minutes)
    assert trainer.fit() == "training.max_minutes = 5"
    assert (trainer.state.step, now) == (2, 600)
    recorded = json.loads(trainer.folder.metrics.read_text("utf-8").splitlines()[-1])
    assert (recorded["step"], recorded["seconds"]) == (2, 600)  # by which the run is known to be finished


class ScriptedValidator(Validator):
    """Gives the scores of a script, and remembers the weights that it gave them to."""

    def __init__(self, scores: Sequence[tuple[float, float]], general: Sequence[dict[str, float]] = ()) -> None:
        self.scores, self.general = iter(scores), iter(general)
        self.weights: list[list[Tensor]] = []

    def validate(self, model: Transformer, ranks: Ranks = ALONE) -> Validation:
        self.weights.append([parameter.detach().clone() for parameter in model.parameters()])
        loss, bleu = next(self.scores)
        return Validation({"loss": loss, "bleu": bleu, "ter": 100 - bleu}, [], general=next(self.general, {}))

    def alignment_heads(self, model: Transformer) -> list[AlignmentHead]:
        return []


@pytest.mark.parametrize(
    ("metric", "scores", "best", "n_validations"),
    [
        ("bleu", [(3, 10), (2, 30), (1, 20), (2, 30)], 2, 4),  # only equalled
        ("bleu", [(4.74, 0), (4.48, 0), (4.2, 0), (4.3, 0), (4.4, 0)], 3, 5),  # equal BLEU: the loss decides
        ("bleu", [(3, 10), (2, 30), (1, 30), (3, 30), (1, 30)], 3, 5),
        ("bleu", [(math.nan, 10), (2, 10), (math.nan, 10), (3, 10)], 2, 4),
        ("bleu", [(3, 0), (4, 1), (5, 0.5), (6, 2), (1, 1), (1, 1)], 4, 6),
        ("loss", [(3, 10), (2, 5), (2, 90), (2.5, 99)], 2, 4),
        ("ter", [(3, 10), (2, 30), (1, 20), (2, 30)], 2, 4),
    ],
)
def test_early_stopping_keeps_the_best_model(
    metric: str, scores: list[tuple[float, float]], best: int, n_validations: int, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"validate_every": 2, "early_stopping_metric": metric, "early_stopping_patience": 2}
    trainer = make_trainer(tmp_path, **settings)
    trainer.validator = validator = ScriptedValidator(scores)
    assert "training.early_stopping_patience" in trainer.fit()
    assert trainer.state.step == 2 * n_validations
    bundle = load_bundle(tmp_path / "model.safetensors")
    loss, bleu = scores[best - 1]
    assert bundle.header.scores == {"loss": loss, "bleu": bleu, "ter": 100 - bleu, "step": 2 * best}
    assert all_equal(list(bundle.model.parameters()), validator.weights[best - 1])
    again = make_trainer(tmp_path, **settings)
    assert again.resume()
    assert "training.early_stopping_patience" in again.fit()
    assert again.updates == []


@pytest.mark.parametrize(("limit", "best"), [(2.0, 4), (None, 6)])
def test_a_model_that_forgets_too_much_is_not_the_best(limit: float | None, best: int, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=6, validate_every=2, max_forgetting=limit)
    trainer.state.validation_due = True  # as fine-tuning begins
    general = [{"bleu": bleu} for bleu in (50.0, 51.0, 48.0, 47.9)]
    trainer.validator = ScriptedValidator([(3, 10), (2, 20), (1, 30), (1, 40)], general)
    trainer.fit()
    assert load_bundle(tmp_path / "model.safetensors").header.scores["step"] == best
    write_text(trainer.folder.config, dump_config(trainer.config))
    found = gather(tmp_path).best
    assert found is not None
    assert found["step"] == best


def test_metrics_that_cannot_be_written_are_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(MtformerError, match=f"^cannot write {tmp_path / 'metrics.jsonl'}: Is a directory$"):
        make_trainer(tmp_path).fit()


def test_a_checkpoint_that_is_damaged_during_a_validation_is_saved_again(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=2, validate_every=2)
    folder = trainer.folder.checkpoints

    class DamagingValidator(ScriptedValidator):
        def validate(self, model: Transformer, ranks: Ranks = ALONE) -> Validation:
            with (list_checkpoints(folder)[0] / "tensors.safetensors").open("r+b") as file:
                file.seek(-1, os.SEEK_END)
                file.write(b"x")
            return super().validate(model, ranks)

    trainer.validator = DamagingValidator([(3, 10)])
    trainer.fit()
    saved = newest_checkpoint(folder)
    assert saved is not None
    assert saved.state["best"] == [10, 3, 2]


# Interrupted and resumed


def interrupt_in_step(trainer: ObservedTrainer, step: int, *signals: signal.Signals) -> None:
    def send(batches: Sequence[Batch]) -> None:
        if trainer.state.step + 1 == step:
            for number in signals:
                signal.raise_signal(number)

    trainer.before_update = send


INTERRUPTED: dict[str, Any] = {
    "overrides": ["model.dropout=0.2"],
    "max_steps": 18,
    "validate_every": 4,
    "log_every": 2,
    "grad_accum_steps": 2,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> ObservedTrainer:
    """What has trained without an interruption."""
    whole = make_trainer(tmp_path_factory.mktemp("whole"), **INTERRUPTED)
    assert whole.fit() == "training.max_steps = 18"
    assert whole.state.epoch > 1
    return whole


@pytest.mark.parametrize(
    ("step", "number"), [(1, signal.SIGINT), (7, signal.SIGTERM), (8, signal.SIGINT), (13, signal.SIGTERM)]
)
def test_an_interrupted_and_resumed_run_is_the_uninterrupted_one(
    step: int, number: signal.Signals, whole: ObservedTrainer, tmp_path: Path
) -> None:
    interrupted = make_trainer(tmp_path, **INTERRUPTED)
    interrupt_in_step(interrupted, step, number)
    handler = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit()
    assert signal.getsignal(number) == handler
    assert interrupted.state.step == step

    resumed = make_trainer(tmp_path, init_seed=99, **INTERRUPTED)
    assert resumed.resume()
    assert resumed.state == interrupted.state
    assert resumed.fit() == "training.max_steps = 18"
    assert all_equal(resumed.weights(), whole.weights())
    assert interrupted.seen + resumed.seen == whole.seen
    kept = ("step", "epoch", "lr", "train_loss", "train_loss_smoothed", "grad_norm", "valid_loss", "valid_bleu")
    ours, theirs = ([{key: line.get(key) for key in kept} for line in t.metrics()] for t in (resumed, whole))
    assert ours == theirs
    bundles = [load_bundle(trainer.folder.bundle) for trainer in (resumed, whole)]
    assert bundles[0].header.scores == bundles[1].header.scores
    assert all_equal(*(list(bundle.model.parameters()) for bundle in bundles))


def test_a_second_interrupt_does_not_wait_for_the_step_to_end(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path)
    interrupt_in_step(trainer, 3, signal.SIGINT, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        trainer.fit()
    assert trainer.state.step == 2
    assert list_checkpoints(trainer.folder.checkpoints) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGHUP")
def test_an_interrupt_after_a_hangup_still_waits_for_the_step_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a session ends, in which systemd sends both at once."""
    monkeypatch.setattr(os, "isatty", lambda stream: False)  # or the terminal of the tests would be silenced
    trainer = make_trainer(tmp_path)
    interrupt_in_step(trainer, 3, signal.SIGHUP, signal.SIGTERM)
    previous = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup makes these tests ignore
    try:
        with pytest.raises(KeyboardInterrupt):
            trainer.fit()
    finally:
        signal.signal(signal.SIGHUP, previous)
    assert [path.name for path in list_checkpoints(trainer.folder.checkpoints)] == ["step-000003"]


def test_an_interrupt_saves_also_if_nobody_reads_stderr(tmp_path: Path) -> None:
    """As after ``2>&1 | tee log``, where Ctrl-C ends ``tee``, too."""
    trainer = make_trainer(tmp_path)
    interrupt_in_step(trainer, 3, signal.SIGINT)
    stderr = os.dup(2)
    reader, writer = os.pipe()
    os.dup2(writer, 2)
    os.close(writer)
    os.close(reader)
    try:
        with pytest.raises(KeyboardInterrupt):
            trainer.fit()
        os.write(2, b"later messages are dropped")
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
    assert [path.name for path in list_checkpoints(trainer.folder.checkpoints)] == ["step-000003"]


def test_a_run_resumed_with_a_limit_that_it_has_passed_gets_its_model(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=8, validate_every=100)
    interrupt_in_step(trainer, 5, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        trainer.fit()
    assert not trainer.folder.bundle.exists()
    again = make_trainer(tmp_path, max_steps=3)
    assert again.resume()
    assert again.fit() == "training.max_steps = 3"
    assert load_bundle(again.folder.bundle).header.step == 5


def test_the_time_of_a_validation_that_an_interrupt_has_put_off_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer(tmp_path, max_steps=4)
    interrupt_in_step(trainer, 4, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        trainer.fit()
    again = make_trainer(tmp_path, max_steps=4)
    assert again.resume()
    clock = itertools.count(1_000.0, 1.0)
    monkeypatch.setattr("mtformer.training.trainer.time.monotonic", lambda: next(clock))
    again.fit()
    assert again.state.seconds >= trainer.state.seconds + 1


def test_a_run_that_is_complete_goes_on_when_its_limit_is_raised(tmp_path: Path) -> None:
    make_trainer(tmp_path, max_steps=3).fit()
    again = make_trainer(tmp_path, max_steps=5)
    again.resume()
    assert again.fit() == "training.max_steps = 5"
    assert len(again.updates) == 2


@pytest.mark.parametrize("max_tokens", [64, 1024])
def test_between_two_epochs_the_size_of_batches_may_change_and_each_pair_is_seen_once_in_each(
    max_tokens: int, tmp_path: Path
) -> None:
    first = make_trainer(tmp_path, max_steps=None, max_epochs=1, max_tokens=128)
    first.fit()
    again = make_trainer(tmp_path, max_steps=None, max_epochs=2, max_tokens=max_tokens)
    assert again.resume()
    again.fit()
    assert first.seen == again.seen == Counter(range(len(PAIRS)))


@pytest.mark.parametrize("changed", [{"max_tokens": 64}, {"max_tokens": 1024}, {"seed": 2}])
def test_in_the_middle_of_an_epoch_other_batches_are_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    make_trainer(tmp_path, max_steps=3).fit()
    again = make_trainer(tmp_path, max_steps=8, **changed)
    assert again.resume()
    with pytest.raises(UserError, match=r"epoch 1 cannot be resumed: .* repeat or skip pairs"):
        again.fit()
    assert again.updates == []


def test_in_the_middle_of_an_epoch_the_batches_of_an_update_may_change_and_no_pair_is_skipped(tmp_path: Path) -> None:
    first = make_trainer(tmp_path, max_steps=2, grad_accum_steps=2)
    first.fit()
    again = make_trainer(tmp_path, max_steps=None, max_epochs=1, grad_accum_steps=1)
    assert 0 < first.state.batch < n_batches(again)
    assert again.resume()
    again.fit()
    assert first.seen + again.seen == Counter(range(len(PAIRS)))


def test_ranks_divide_each_batch_among_them_whatever_their_number(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path)
    for size in (1, 2, 3, 50):
        shares = [
            i
            for rank in range(size)
            for batch in trainer.plan(0)
            for i in Ranks(rank, size).share(batch.indices.tolist())
        ]
        assert sorted(shares) == list(range(len(PAIRS)))


# What is left of a run


def test_a_model_without_checkpoints_is_not_overwritten(tmp_path: Path) -> None:
    make_trainer(tmp_path, max_steps=4, validate_every=2).fit()
    shutil.rmtree(tmp_path / "checkpoints")
    kept = {name: (tmp_path / name).read_bytes() for name in ("model.safetensors", "metrics.jsonl")}
    again = make_trainer(tmp_path)
    with pytest.raises(
        UserError, match=r"contains a trained model, .*but no checkpoint .*restore .*run\.name.*--fresh"
    ):
        again.resume()
    assert {name: (tmp_path / name).read_bytes() for name in kept} == kept
    (tmp_path / "model.safetensors").unlink()  # scores that no model has reached are worth keeping as well
    with pytest.raises(UserError, match="no checkpoint to resume from"):
        again.resume()


def damage(bundle: Path) -> None:
    contents = bytearray(bundle.read_bytes())
    contents[-1] ^= 1
    bundle.write_bytes(contents)


@pytest.mark.parametrize(("lose", "kept"), [(Path.unlink, []), (damage, ["model.safetensors.damaged"])])
@pytest.mark.parametrize("ema_decay", [0, 0.5])
def test_a_finished_run_writes_its_lost_model_again(
    lose: Callable[[Path], object], kept: list[str], ema_decay: float, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"max_steps": 4, "validate_every": 2, "ema_decay": ema_decay}
    make_trainer(tmp_path, **settings).fit()
    path = tmp_path / "model.safetensors"
    before = load_bundle(path)
    lose(path)
    again = make_trainer(tmp_path, **settings)
    assert again.resume()
    again.fit()
    after = load_bundle(path)
    assert all_equal(list(after.model.parameters()), list(before.model.parameters()))
    assert after.header.scores == before.header.scores
    assert again.updates == []
    assert [file.name for file in tmp_path.glob("model*") if file != path] == kept


def test_a_damaged_model_that_another_program_has_open_on_windows_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_trainer(tmp_path, max_steps=4, validate_every=2).fit()
    damage(tmp_path / "model.safetensors")

    def refused(path: Path, target: Path) -> Path:
        if target.suffix == ".damaged":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return move(path, target)

    move = Path.replace
    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(MtformerError, match=r"cannot write .*model\.safetensors\.damaged: Permission denied"):
        make_trainer(tmp_path, max_steps=4, validate_every=2).resume()


def test_a_lost_model_whose_best_checkpoint_is_damaged_is_that_of_the_newest_one(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"max_steps": 4, "validate_every": 2}
    trainer = make_trainer(tmp_path, **settings)
    trainer.validator = ScriptedValidator([(3, 30), (2, 20)])
    trainer.fit()
    (tmp_path / "model.safetensors").unlink()
    damage(tmp_path / "checkpoints/step-000002/tensors.safetensors")
    again = make_trainer(tmp_path, **settings)
    assert again.resume()
    assert load_bundle(tmp_path / "model.safetensors").header.step == 4


def test_a_model_that_is_intact_is_not_written_again(tmp_path: Path) -> None:
    make_trainer(tmp_path, max_steps=4, validate_every=2).fit()
    before = (tmp_path / "model.safetensors").stat()
    make_trainer(tmp_path, max_steps=4, validate_every=2).resume()
    assert (tmp_path / "model.safetensors").stat().st_mtime_ns == before.st_mtime_ns


def test_a_run_that_dies_in_its_first_validation_resumes_there(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=4, validate_every=2)
    trainer.validator = ScriptedValidator([])
    with pytest.raises(StopIteration):
        trainer.fit()
    again = make_trainer(tmp_path, max_steps=4, validate_every=2)
    assert again.resume()
    assert again.state.step == 2
    again.fit()
    assert len(again.updates) == 2
    assert [line["step"] for line in again.metrics() if "valid_loss" in line] == [2, 4]


def test_a_validation_that_is_repeated_leaves_no_second_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"max_steps": 6, "validate_every": 2, "log_every": 1}
    whole = make_trainer(tmp_path / "whole", **settings)
    whole.fit()
    parts = make_trainer(tmp_path / "parts", **settings)

    def die(*args: Any) -> None:
        raise ZeroDivisionError  # after the scores were written, before a checkpoint knows them

    monkeypatch.setattr("mtformer.training.run_files.save_bundle", die)
    with pytest.raises(ZeroDivisionError):
        parts.fit()
    assert [line["step"] for line in Journal(parts.folder.samples).read()] == [2]
    monkeypatch.undo()
    again = make_trainer(tmp_path / "parts", **settings)
    assert again.resume()
    again.fit()
    assert [line["step"] for line in whole.metrics()] == [1, 2, 2, 3, 4, 4, 5, 6, 6]
    assert [line["step"] for line in again.metrics()] == [1, 2, 2, 3, 4, 4, 5, 6, 6]
    assert Journal(again.folder.samples).read() == Journal(whole.folder.samples).read()


def test_samples_of_each_validation_are_recorded(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, overrides=["eval.n_samples=2"], max_steps=4, validate_every=2)
    trainer.fit()
    lines = Journal(trainer.folder.samples).read()
    assert [line["step"] for line in lines] == [2, 4]
    for line in lines:
        assert [(sample["src"], sample["ref"]) for sample in line["samples"]] == [VALID_PAIRS[0], VALID_PAIRS[2]]
    assert lines[-1]["samples"][0]["hyp"] == trainer.validator.validate(trainer.model).samples[0][2]
    make_trainer(tmp_path / "none", overrides=["eval.n_samples=0"], max_steps=2, validate_every=2).fit()
    assert not (tmp_path / "none" / "samples.jsonl").exists()


def test_the_norm_of_the_gradient_is_that_before_clipping(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=2, log_every=1, max_grad_norm=1e-3)
    norms: list[float] = []
    clip = torch.nn.utils.clip_grad_norm_

    def observed(parameters: Any, max_norm: float) -> Tensor:
        listed = list(parameters)
        gradients = [parameter.grad for parameter in listed if parameter.grad is not None]
        norms.append(math.sqrt(sum(gradient.square().sum().item() for gradient in gradients)))
        return clip(listed, max_norm)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch.nn.utils.clip_grad_norm_", observed)
        trainer.fit()
    found = [line["grad_norm"] for line in trainer.metrics() if "grad_norm" in line]
    assert found == pytest.approx(norms, rel=1e-5)
    assert min(found) > 0.01


def test_a_run_that_falls_back_keeps_the_damaged_checkpoint(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=4, checkpoint_every=2)
    trainer.fit()
    state = tmp_path / "checkpoints" / "step-000004" / "state.json"
    state.write_text(damaged := state.read_text()[:-9])
    again = make_trainer(tmp_path, max_steps=6, checkpoint_every=2, keep_last=1)
    assert again.resume()
    assert again.state.step == 2
    again.fit()
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step-000004.damaged", "step-000006"]
    assert (tmp_path / "checkpoints" / "step-000004.damaged" / "state.json").read_text() == damaged


def test_metrics_that_a_crash_has_cut_off_are_repeated(tmp_path: Path) -> None:
    whole = make_trainer(tmp_path / "whole", max_steps=4, log_every=1, schedule="constant")
    whole.fit()
    parts = make_trainer(tmp_path / "parts", max_steps=2, log_every=1, schedule="constant")
    parts.fit()
    with parts.folder.metrics.open("ab") as file:
        file.write(b'{"step": 3, "epoch": 0}\n{"step": 4, "ep\xc3')
    again = make_trainer(tmp_path / "parts", max_steps=4, log_every=1, schedule="constant")
    again.resume()
    again.fit()
    trained = [[line["train_loss"] for line in t.metrics() if "train_loss" in line] for t in (again, whole)]
    assert len(trained[0]) == 4
    assert trained[0] == trained[1]
