"""``mtformer improve``: the stages in order, and the results that are kept."""

import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pydantic import JsonValue

from mtformer.config import Config, JsonlFile, ResolvedConfig
from mtformer.data.held_out import training_text
from mtformer.data.sources.parallel import ParallelText, can_be_read_again
from mtformer.data.store import StoredText
from mtformer.improve.configs import Configs
from mtformer.improve.plan import Baseline, describe, make_plan
from mtformer.improve.report import Report, tested
from mtformer.improve.stages import Stages, write_pairs
from mtformer.improve.state import State, locked
from mtformer.runs.contents import Contents, gather
from mtformer.runs.folder import RunFolder
from mtformer.support.errors import UserError
from mtformer.support.files import digest_of, file_digest, write_atomically
from mtformer.support.terminal import counted
from mtformer.text.glossary import Glossary
from mtformer.text.lines import read_lines
from mtformer.text.pairs import SentencePair, fingerprint
from mtformer.training.run import dry_run, require_resumable, train
from mtformer.translate.jobs.reading import TextInput

log = logging.getLogger(__name__)

_FEWEST_PAIRS, _FEWEST_VALID = 100, 10


@dataclass(frozen=True)
class Request:
    """The arguments of an improvement.

    Attributes:
        config: of the baseline.
        command: the command line that trains it.
        output: the folder to make; None for a plan alone.
        monolingual: more text in the target language.
        size: the preset of the final model; None for the size of the baseline.
        budget: the most time, as a multiple of the baseline's.
    """

    config: Config
    command: str
    output: Path | None
    monolingual: Path | None = None
    size: str | None = None
    budget: float = 6.0


@dataclass(frozen=True)
class _Texts:
    train: StoredText
    valid: Sequence[SentencePair]
    monolingual: TextInput | None
    n_monolingual: int


def forecast(request: Request, columns: int | None = None) -> str:
    """Return the plan with the time and the expected gain of each stage; nothing is written.

    Args:
        request: what to plan.
        columns: the width of the terminal; None for any width.

    Raises:
        UserError: the request cannot be carried out.
    """
    texts = _read(request)
    baseline = _expected(request, texts)
    return describe(make_plan(baseline, request.budget), baseline, request.budget, columns)


def improve(request: Request) -> Report:
    """Run all stages, or those that an interrupted call has left, and return the result of each.

    Raises:
        UserError: the request cannot be carried out, or the folder was started with another one.
        MtformerError: a stage failed; what is finished stays.
    """
    if request.output is None:
        raise UserError("name a folder for the final model, which is a run, with --output")
    texts = _read(request)
    folder = request.output / "improve"
    with locked(folder):
        state = State(folder, _inputs(request, texts))
        is_new = "baseline" not in state.outcomes
        if is_new:
            expected = _expected(request, texts)
            log.info("%s", describe(make_plan(expected, request.budget), expected, request.budget))
            log.info("stage baseline")
            train(request.config)
        baseline = RunFolder.of(request.config)
        configs = Configs(folder, request.config, baseline.read_config(ResolvedConfig), baseline)
        if is_new or not configs.valid.exists():
            _write_texts(configs, texts)
        return _Improvement(request, texts, state, configs).run()


class _Improvement:
    """The stages after the baseline, which decide by the validation set alone."""

    def __init__(self, request: Request, texts: _Texts, state: State, configs: Configs) -> None:
        self._request = request
        self._state = state
        self._configs = configs
        self._monolingual = texts.monolingual
        self._stages = Stages(state, configs)
        self._baseline = self._stages.measured(configs.baseline, "baseline", request.command)
        run = gather(configs.baseline.path)
        self._facts = _recorded(run, texts)
        self._plan = make_plan(self._facts, request.budget)

    def run(self) -> Report:
        """Run the remaining stages, copy the best model to the folder, and report."""
        forward, backward = self._teachers()
        run = self._student(self._translations(forward, backward), backward)
        output = self._configs.folder.parent
        _publish(run, output)
        scores = {str(run.path): tested(run.bundle) for run in (self._configs.baseline, RunFolder(output))}
        report = Report(list(self._state.outcomes.values()), output, scores)
        report.write(self._configs.folder)
        return report

    def _teachers(self) -> tuple[list[Path], list[Path]]:
        """Train the teachers of the plan, and return those of this direction and of the other that help."""
        forward, backward = [self._configs.baseline.bundle], list[Path]()
        self._configs.teacher("forward")  # for data distill, by hand
        for stage in self._plan:
            kind, _, number = stage.name.partition(".")
            if kind not in ("reverse", "teacher"):
                continue
            reverse = kind == "reverse"
            self._stages.trained(self._configs.teacher(stage.name, int(number or 1), reverse=reverse))
            if not reverse:
                forward = self._stages.joined(forward, stage.name)
            elif backward:
                backward = self._stages.joined(backward, stage.name)
            else:
                backward = [self._configs.run(stage.name).bundle]
        return forward, backward

    def _translations(self, forward: list[Path], backward: list[Path]) -> list[Path]:
        """Translate the text in both directions."""
        configs, languages = self._configs, self._configs.languages
        own = [JsonlFile(jsonl=path) for path in configs.texts]
        sides = (
            ("forward", ParallelText(own, *languages), forward, configs.path("forward")),
            ("backward", ParallelText(own, languages.tgt_lang, languages.src_lang), backward, configs.path("reverse")),
        )
        return [
            self._stages.translated(name, text, models, ["distill", str(path)]) for name, text, models, path in sides
        ]

    def _student(self, texts: list[Path], backward: list[Path]) -> RunFolder:
        """Train the final model, and return the run that is best on the validation set."""
        configs, stages, source = self._configs, self._stages, self._monolingual
        best, score = configs.baseline, self._baseline.bleu or 0.0
        size = self._request.size
        config = configs.student(texts, self._n_steps("student"), size)
        outcome = stages.trained(config, score, is_wanted=size is not None)
        if outcome.kept:
            best, score = configs.run("student"), outcome.bleu or 0.0
        if source is not None:
            command = ["backtranslate", "--input", str(source.path)]
            texts = [*texts, stages.translated("monolingual", source, backward, command)]
            config = configs.continued("continued", best.bundle, texts, self._n_steps("continued"))
            outcome = stages.trained(config, score)
            if outcome.kept:
                best = configs.run("continued")
        return best

    def _n_steps(self, name: str) -> int:
        """Return the updates of a stage of the plan."""
        [cost] = [stage.cost for stage in self._plan if stage.name == name]
        return max(1, round(cost * self._facts.n_steps / self._step_cost()))

    def _step_cost(self) -> float:
        """Return the time of an update of the student divided by that of the baseline."""
        if self._request.size is None:
            return 1.0
        if self._state.step_cost is None:
            seconds = [_seconds_per_step(config) for config in (self._request.config, _sized(self._request))]
            self._state.step_cost = seconds[1] / seconds[0]
            self._state.write()
        return self._state.step_cost


def _sized(request: Request) -> Config:
    model = type(request.config.model).model_validate({"preset": request.size})
    return request.config.model_copy(update={"model": model})


def _seconds_per_step(config: Config) -> float:
    expected = dry_run(config, fresh=True)
    return expected.seconds / expected.n_steps


def _read(request: Request) -> _Texts:
    """Read all text, and raise an error if it cannot be improved, before any work.

    Raises:
        UserError: it is refused.
    """
    config = request.config
    data = config.data
    own = RunFolder.of(config).path.resolve()
    output = request.output
    if output is not None and output.resolve().is_relative_to(own):
        raise UserError(f"--output {output} is in the run of the config: name another folder")
    if output is not None and output.exists() and not (output / "improve").is_dir() and not _is_empty(output):
        raise UserError(f"{output} exists and was not made by mtformer improve: name a new folder with --output")
    if data.directions:
        raise UserError("data.directions: mtformer improve takes a config of one direction")
    if config.training.init_from is not None:
        raise UserError("training.init_from: mtformer improve trains from scratch; remove it")
    text = ParallelText([*data.train, *data.valid], data.src_lang, data.tgt_lang)
    monolingual = request.monolingual
    if monolingual is not None and (monolingual.is_dir() or not monolingual.exists()):
        raise UserError(f"--monolingual: there is no file {monolingual}")
    if text.has_pipe or (monolingual is not None and not can_be_read_again(monolingual)):
        raise UserError(
            "mtformer improve reads its text several times, and a pipe can be read once: write it to a file"
        )
    source = TextInput(path=monolingual) if monolingual else None
    n_monolingual = sum(1 for line in read_lines(source.path) if line.strip()) if source else 0
    if source and not n_monolingual:
        raise UserError(f"--monolingual: {monolingual} contains no text")
    train_text = training_text(data)
    valid = list(ParallelText(data.valid, data.src_lang, data.tgt_lang)) if data.valid else []
    valid = valid or list(train_text.held_out.get("valid", {}).get(data.language_pairs[0], []))
    if len(train_text) < _FEWEST_PAIRS:
        raise UserError(
            f"the config has {counted(len(train_text), 'training pair')}: with fewer than {_FEWEST_PAIRS}, no teacher "
            "learns anything worth teaching"
        )
    if len(valid) < _FEWEST_VALID:
        raise UserError(
            f"the validation set has {counted(len(valid), 'pair')}: give {_FEWEST_VALID} or more in data.valid, by "
            "which stages are kept or undone"
        )
    return _Texts(train_text, valid, source, n_monolingual)


def _is_empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _inputs(request: Request, texts: _Texts) -> dict[str, str]:
    """Return the inputs that all results depend on, by their names in messages."""
    data = request.config.data
    free = {"data": {"train", "valid", "test", "terms"}, "training": {"device", "log_every", "log_to", "report"}}
    settings = request.config.model_dump(mode="json", exclude={"provenance": True, **free})
    sources: list[JsonValue] = [[source.weight, source.tag] for source in data.train]
    return {
        "the config": digest_of([settings, sources]),
        "the glossary": Glossary.read(data.terms).digest if data.terms else "none",
        "the training text": texts.train.digest,
        "the validation text": fingerprint(texts.valid).digest,
        "--monolingual": file_digest(request.monolingual)[:16] if request.monolingual else "none",
        "--size": request.size or "none",
        "--budget": f"{request.budget:g}",
    }


def _facts(seconds: float, n_steps: int, steps_per_epoch: int, texts: _Texts) -> Baseline:
    return Baseline(seconds, n_steps, n_steps / steps_per_epoch, len(texts.train), texts.n_monolingual)


def _recorded(run: Contents, texts: _Texts) -> Baseline:
    """Return the facts of a baseline that is complete.

    Raises:
        UserError: the record of its starts is missing.
    """
    if not run.starts:
        raise UserError(
            f"{run.folder.starts} does not say how many steps an epoch has: restore it, or give the config another "
            "run.name"
        )
    facts = _facts(run.minutes * 60, run.step, run.starts[-1]["steps_per_epoch"], texts)
    return replace(facts, is_done=True)


def _expected(request: Request, texts: _Texts) -> Baseline:
    """Return the facts of the baseline: those of its run, if that is complete, or else measured on a few updates.

    Raises:
        UserError: there is a run with other settings.
    """
    folder = RunFolder.of(request.config)
    if folder.config.is_file() and (run := gather(folder.path)).is_finished:
        recorded = _recorded(run, texts)
        require_resumable(request.config)
        return recorded
    log.info("the config is not trained yet: a few updates are measured, to estimate the times")
    expected = dry_run(request.config)
    return _facts(expected.seconds, expected.n_steps, expected.steps_per_epoch, texts)


def _write_texts(configs: Configs, texts: _Texts) -> None:
    """Copy the pairs that the baseline was trained on, and its validation pairs, for models of both directions."""
    for number, path in enumerate(configs.texts):
        write_pairs(path, configs.languages, texts.train.of_source(number))
    write_pairs(configs.valid, configs.languages, texts.valid)


def _publish(run: RunFolder, output: Path) -> None:
    """Copy the files of a run, but its checkpoints, into the folder that the user has named.

    Raises:
        UserError: the model is gone.
        MtformerError: a file cannot be written.
    """
    if not run.bundle.is_file():
        raise UserError(f"there is no model at {run.bundle} any more: restore it, or name a new folder with --output")
    tokenizers = [run.joint_tokenizer, *run.separate_tokenizers]
    files = [run.config, run.metrics, run.samples, run.starts, *tokenizers, *run.held_out.glob("*"), run.bundle]
    for file in (file for file in files if file.is_file()):
        write_atomically(output / file.relative_to(run.path), partial(shutil.copyfile, file))
