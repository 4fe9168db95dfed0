"""mtformer improve: the plan, what each stage gives, resuming after kills, and what is refused."""

import errno
import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Project, make_project, sentence_pairs
from faults import PowerCut, disk_error_before

from mtformer.bundle.format import load_bundle
from mtformer.config import ResolvedConfig, load_config
from mtformer.improve import run, stages
from mtformer.improve.configs import Configs
from mtformer.improve.plan import Baseline, describe, make_plan
from mtformer.improve.run import Request, improve
from mtformer.improve.state import Outcome, State, locked
from mtformer.runs.folder import RunFolder
from mtformer.support.errors import MtformerError, UserError
from mtformer.training import checkpoint
from mtformer.translate.jobs import core
from mtformer.translate.jobs.partial import PartialFile

BASELINE = Baseline(seconds=600, n_steps=1_000, n_epochs=10, n_pairs=10_000)


def make(folder: Path, n_pairs: int = 120, **training: object) -> Project:
    return make_project(folder, n_pairs, **{"max_steps": 80, "learning_rate": 0.01, "validate_every": 40} | training)


def run_improve(project: Project, output: str = "better", **asked: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.folder)
        return improve(Request(load_config("config.yaml"), "mtformer train config.yaml", Path(output), **asked))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, str]]:
    """A project that was improved without interruption, and what the command printed."""
    project = make(tmp_path_factory.mktemp("whole"))
    result = project.mtformer("improve", "config.yaml", "--output", "better")
    assert result.status == 0, result.stderr
    yield project, result.stdout


def digest(project: Project, model: str = "better") -> str:
    return load_bundle(project.folder / model / "model.safetensors").digest


def outcomes(project: Project) -> dict[str, dict[str, Any]]:
    state = json.loads((project.folder / "better/improve/state.json").read_text("utf-8"))
    return {outcome["stage"]: outcome for outcome in state["outcomes"]}


def test_the_plan_fits_a_terminal() -> None:
    plan = make_plan(replace(BASELINE, n_monolingual=1_000), 12)
    whole, narrow = describe(plan, BASELINE, 12), describe(plan, BASELINE, 12, 80)
    assert max(map(len, narrow.splitlines())) <= 80 < max(map(len, whole.splitlines()))
    assert sorted(narrow.split()) == sorted(whole.split())


def test_the_plan_fits_the_budget_and_leaves_a_third_of_it_to_the_student() -> None:
    for budget in (4, 5, 6, 12, 9):
        plan = {stage.name: stage.cost for stage in make_plan(BASELINE, budget)}
        assert sum(plan.values()) == pytest.approx(budget)
        assert plan["student"] >= budget / 3
    assert list(plan) == [
        *("baseline", "reverse", "teacher.2", "reverse.2", "forward", "backward", "student"),
    ]


def test_monolingual_text_counts_by_its_size() -> None:
    given = Baseline(600, 1_000, 10, n_pairs=10_000, n_monolingual=20_000)
    plan = {stage.name: stage.cost for stage in make_plan(given, 6)}
    assert plan["monolingual"] == pytest.approx(2 * plan["backward"])
    assert sum(plan.values()) == pytest.approx(6)
    with pytest.raises(UserError, match=r"--budget 6: .* give --budget \d+ or fewer lines with --monolingual"):
        make_plan(Baseline(600, 1_000, 10, n_pairs=10_000, n_monolingual=1_000_000), 6)


def test_a_baseline_that_is_done_takes_no_time() -> None:
    for is_done, shown in ((False, ("10:00", "1:00:00")), (True, ("done", "50:00"))):
        given = replace(BASELINE, is_done=is_done)
        lines = describe(make_plan(given, 6), given, 6).splitlines()
        found = [line.split()[-1] for line in lines if line.startswith(("baseline", "all"))]
        assert found == [*shown]


def test_the_gain_of_an_ensemble_is_expected_once() -> None:
    plan = make_plan(BASELINE, 30)
    assert [stage.name for stage in plan if stage.name.startswith("teacher")][-1] == "teacher.6"
    assert describe(plan, BASELINE, 30).count("+0.7") == 2  # in the table, and where it is known from


def test_the_plan_is_printed_and_nothing_is_written(project: Project) -> None:
    before = sorted(project.folder.iterdir())
    without_output = project.mtformer("improve", "config.yaml")
    assert (without_output.status, without_output.stdout) == (2, "")
    assert "name a folder for the final model, which is a run, with --output" in without_output.stderr
    result = project.mtformer("improve", "config.yaml", "--plan", "--set", "training.max_steps=200")
    assert result.status == 0, result.stderr
    assert "the config is not trained yet: a few updates are measured, to estimate the times\n" in result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["stage", "what", "BLEU", "×", "baseline", "time"]
    assert max(map(len, lines)) <= 90
    assert [line.split()[0] for line in lines[1:3]] == ["baseline", "reverse"]
    assert "Nguyen et al. 2020" in result.stdout
    [total] = [line for line in lines if line.startswith("all ")]
    assert total.split()[-2] == "6.0"
    assert sorted(project.folder.iterdir()) == before


def test_the_report_says_what_each_stage_gave(whole: tuple[Project, str]) -> None:
    project, printed = whole
    report = json.loads((project.folder / "better/improve/report.json").read_text("utf-8"))
    by_stage = {stage["stage"]: stage for stage in report["stages"]}
    assert list(by_stage) == [
        *("baseline", "reverse", "teacher.2", "teacher.2.ensemble", "forward", "backward", "student"),
    ]
    student, baseline = by_stage["student"], by_stage["baseline"]
    assert student["gain"] == round(student["bleu"] - baseline["bleu"], 2)
    assert student["gain"] > 0
    steps = sum(stage["steps"] or 0 for stage in report["stages"])
    assert steps <= 6 * baseline["steps"]
    [before, after] = report["test"].values()
    assert before[0]["signature"].startswith("nrefs:1|case:mixed")
    assert after[0]["score"] > before[0]["score"]
    assert printed == (project.folder / "better/improve/report.txt").read_text("utf-8")


def test_the_model_is_that_of_a_normal_run(whole: tuple[Project, str]) -> None:
    project, _ = whole
    scores = json.loads(project.mtformer("eval", "--engine", "torch", "--model", "better", "--json").stdout)
    report = json.loads((project.folder / "better/improve/report.json").read_text("utf-8"))
    assert scores["scores"][0] == report["test"]["better"][0]
    [listed] = json.loads(project.mtformer("runs", "better", "--json").stdout)
    assert listed["state"] == "finished"


def test_the_commands_do_the_same_by_hand(whole: tuple[Project, str], tmp_path: Path) -> None:
    project, _ = whole
    copy = Project(tmp_path / "copy", tmp_path / "copy/config.yaml")
    shutil.copytree(project.folder, copy.folder)
    folder = copy.folder / "better/improve"
    shutil.rmtree(folder / "reverse")
    before = (folder / "backward.jsonl").read_bytes()
    (folder / "backward.jsonl").unlink()
    done = outcomes(project)
    for command in (done["reverse"]["commands"][0], done["backward"]["commands"][0]):
        result = copy.mtformer(*shlex.split(command)[1:])
        assert result.status == 0, result.stderr
    assert (folder / "backward.jsonl").read_bytes() == before
    result = copy.mtformer(*shlex.split(done["student"]["commands"][1])[1:], "--json")
    assert json.loads(result.stdout)["scores"][0]["score"] == round(done["student"]["bleu"], 2)


@pytest.mark.slow
def test_what_is_killed_anywhere_goes_on(
    whole: tuple[Project, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make(tmp_path)
    left = 0

    def cut_before(owner: Any, name: str) -> None:
        original: Callable[..., Any] = getattr(owner, name)

        def operation(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise PowerCut
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, operation)

    cut_before(State, "write")
    cut_before(checkpoint, "save_checkpoint")
    cut_before(PartialFile, "finish")
    n_cuts = 0
    while n_cuts < 100:
        left = 3
        try:
            report = run_improve(project)
        except PowerCut:
            n_cuts += 1
        else:
            break
    assert n_cuts > 5
    assert digest(project) == digest(whole[0])
    assert [outcome.stage for outcome in report.outcomes] == list(outcomes(whole[0]))


def test_the_seed_after_the_largest_is_the_smallest(
    whole: tuple[Project, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(whole[0].folder)
    config = load_config("config.yaml")
    baseline = RunFolder.of(config)
    resolved = baseline.read_config(ResolvedConfig)
    largest = resolved.model_copy(update={"training": resolved.training.model_copy(update={"seed": 2**31 - 1})})
    for name in ("train.1", "valid"):
        (tmp_path / f"{name}.jsonl").touch()
    configs = Configs(tmp_path, config, largest, baseline)
    assert [configs.teacher("teacher", number).training.seed for number in (1, 2, 3)] == [2**31 - 1, 0, 1]


@pytest.mark.parametrize("given", [None, 0.3])
def test_each_training_decays_weights_by_its_own_amount_of_text_unless_the_config_says_how_much(
    whole: tuple[Project, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: float | None
) -> None:
    monkeypatch.chdir(whole[0].folder)
    config = load_config("config.yaml", () if given is None else [f"training.weight_decay={given}"])
    baseline = RunFolder.of(config)
    for name in ("train.1", "valid", "forward"):
        (tmp_path / f"{name}.jsonl").touch()
    configs = Configs(tmp_path, config, baseline.read_config(ResolvedConfig), baseline)
    student = configs.student([tmp_path / "forward.jsonl"], n_steps=9, size=None)
    assert student.training.weight_decay == given
    assert student.training.learning_rate == configs.resolved.training.learning_rate


def test_a_finished_improvement_repeats_nothing(whole: tuple[Project, str], monkeypatch: pytest.MonkeyPatch) -> None:
    project, printed = whole
    for name in ("train", "valid_bleu"):
        monkeypatch.setattr(stages, name, None)
    result = project.mtformer("improve", "config.yaml", "--output", "better", "--set", "training.device=cpu")
    assert (result.status, result.stdout) == (0, printed)


def test_a_full_disk_is_reported_and_made_up_for(whole: tuple[Project, str], tmp_path: Path) -> None:
    project = Project(tmp_path / "copy", tmp_path / "copy/config.yaml")
    shutil.copytree(whole[0].folder, project.folder)
    (project.folder / "better/model.safetensors").unlink()
    for n in (0, 8, 20, 40):
        with disk_error_before(n, errno.ENOSPC), pytest.raises(MtformerError, match="No space left on device"):
            run_improve(project)
    run_improve(project)
    assert digest(project) == digest(whole[0])


@pytest.mark.slow
def test_stages_without_a_gain_are_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "mtformer.improve")
    project = make(tmp_path, n_pairs=100, max_steps=40)

    def valid_bleu(models: Sequence[Path], valid: Path) -> float:
        return (20.0 if "runs" in models[0].parts else 19.0) + 1e-10 * len(models)  # an ensemble gains nothing

    monkeypatch.setattr(stages, "valid_bleu", valid_bleu)
    report = run_improve(project, budget=9)
    kept = {outcome.stage: outcome.kept for outcome in report.outcomes}
    assert [stage for stage, is_kept in kept.items() if not is_kept] == [
        *("teacher.2.ensemble", "reverse.2.ensemble", "student"),
    ]
    commands = {outcome.stage: outcome.commands[0] for outcome in report.outcomes}
    assert [commands[stage].count("--model") for stage in ("forward", "backward")] == [1, 1]
    assert digest(project) == digest(project, "runs/config")
    assert "undone" in report.to_text()
    told = [record.message for record in caplog.records if re.match(r"stage \S", record.message)]
    assert [message for message in told if "teacher.2" in message or "student" in message] == [
        "stage teacher.2",
        "stage teacher.2: BLEU 19.00 on the validation set",
        "stage teacher.2.ensemble: BLEU 20.00 on the validation set, 0.00: undone",
        "stage student",
        "stage student: BLEU 19.00 on the validation set, \N{MINUS SIGN}1.00: undone",
    ]
    assert {"stage baseline", "stage reverse", "stage forward", "stage backward"} <= set(told)


@pytest.mark.slow
def test_a_smaller_model_learns_from_monolingual_text_and_the_held_out_pairs_choose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_FEWEST_VALID", 5)  # the language has 144 sentences, of which few are held out
    project = make(tmp_path, n_pairs=200)
    text = project.config.read_text("utf-8")
    lines = text.splitlines(keepends=True)
    start, end = lines.index("  valid:\n"), lines.index("tokenizer:\n")
    project.config.write_text("".join(lines[:start] + lines[end:]), encoding="utf-8")  # neither valid nor test
    (project.folder / "more.de").write_text("".join(f"{tgt}\n" for _, tgt in sentence_pairs(50, seed=9)), "utf-8")
    report = run_improve(project, monolingual=project.folder / "more.de", size="tiny", budget=4)
    by_stage = {outcome.stage: outcome for outcome in report.outcomes}
    assert by_stage["student"].kept
    assert {"monolingual", "continued"} <= set(by_stage)
    assert "model: {}\n" in (project.folder / "better/improve/continued.yaml").read_text("utf-8")
    assert len((project.folder / "better/improve/monolingual.jsonl").read_text("utf-8").splitlines()) > 0
    assert load_bundle(project.folder / "better/model.safetensors").header.architecture.d_model == 128
    assert all(scores for scores in report.test.values())


REFUSED = [
    (["--output", "runs/config"], "--output runs/config is in the run of the config: name another folder"),
    (["--output", "."], ". exists and was not made by mtformer improve: name a new folder with --output"),
    (["--output", "file"], "file exists and was not made by mtformer improve: name a new folder with --output"),
    (["--output", "file", "--plan"], "file exists and was not made by mtformer improve"),
    (["--budget", "2"], "--budget"),
    (["--budget", "inf"], "--budget"),
    (["--budget", "1e300"], "--budget"),
    (["--monolingual", "runs.d"], "--monolingual: there is no file runs.d"),
    (["--monolingual", "none.de"], "--monolingual: there is no file none.de"),
    (["--monolingual", "file"], "--monolingual: file contains no text"),
    (["--monolingual", "blank"], "--monolingual: blank contains no text"),
    (["--monolingual", "words.json"], "words.json: all lines of a .json file would be translated"),
    (["--set", "training.init_from=model.safetensors"], "training.init_from: mtformer improve trains from scratch"),
]


@pytest.mark.parametrize(("options", "sentence"), REFUSED)
def test_what_cannot_be_improved_is_refused(project: Project, options: list[str], sentence: str) -> None:
    (project.folder / "model.safetensors").touch()
    (project.folder / "file").touch()
    (project.folder / "blank").write_text(" \n\n")
    (project.folder / "words.json").write_text("{}\n")
    (project.folder / "runs.d").mkdir()
    output = [] if "--output" in options else ["--output", "better"]
    result = project.mtformer("improve", "config.yaml", *output, *options)
    assert result.status == 2
    assert sentence in result.stderr
    assert not (project.folder / "runs").exists()


@pytest.mark.parametrize("plan", [[], ["--plan"]])
def test_a_baseline_with_other_settings_is_refused_and_nothing_is_left(trained: Project, plan: list[str]) -> None:
    command = ["improve", "config.yaml", "--output", "better", "--set", "training.seed=2", *plan]
    result = trained.mtformer(*command)
    assert (result.status, result.stdout) == (2, "")
    assert "contains a run started with different settings: training.seed was 1, is now 2. " in result.stderr
    assert not (trained.folder / "better").exists()


def test_too_little_text_is_refused(tmp_path: Path) -> None:
    few = make(tmp_path / "few", n_pairs=50).mtformer("improve", "config.yaml", "--output", "better")
    assert (few.status, "the config has 50 training pairs: with fewer than 100" in few.stderr) == (2, True)
    project = make(tmp_path / "valid")
    for name in ("valid.en", "valid.de"):
        path = project.folder / name
        path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:5]), encoding="utf-8")
    result = project.mtformer("improve", "config.yaml", "--output", "better")
    assert (result.status, "the validation set has 5 pairs: give 10 or more in data.valid" in result.stderr) == (
        2,
        True,
    )


def test_several_directions_are_refused(project: Project) -> None:
    text = project.config.read_text("utf-8").replace("  src_lang: en\n  tgt_lang: de\n", "  directions: [en-de]\n")
    project.config.write_text(text, encoding="utf-8")
    result = project.mtformer("improve", "config.yaml", "--output", "better")
    assert (result.status, "data.directions: mtformer improve takes a config of one" in result.stderr) == (2, True)


def test_a_change_after_the_start_is_refused(whole: tuple[Project, str], tmp_path: Path) -> None:
    project = Project(tmp_path / "copy", tmp_path / "copy/config.yaml")
    shutil.copytree(whole[0].folder, project.folder)
    again = ["improve", "config.yaml", "--output", "better"]
    result = project.mtformer(*again, "--set", "training.seed=2", "--budget", "7")
    assert result.status == 2
    assert "better cannot be resumed, because the config and --budget changed since it was started" in result.stderr
    with (project.folder / "train.en").open("a") as src, (project.folder / "train.de").open("a") as tgt:
        print("a dog", file=src)
        print("ein Hund", file=tgt)
    result = project.mtformer(*again)
    assert (result.status, "because the training text changed since it was started" in result.stderr) == (2, True)
    with locked(project.folder / "better/improve"):
        result = project.mtformer("improve", "config.yaml", "--output", "better")
    assert result.status == 2


def test_a_file_that_a_finished_improvement_has_lost_is_named(whole: tuple[Project, str], tmp_path: Path) -> None:
    project = Project(tmp_path / "copy", tmp_path / "copy/config.yaml")
    shutil.copytree(whole[0].folder, project.folder)
    command = ["improve", "config.yaml", "--output", "better"]
    for model in project.folder.glob("*/**/*.safetensors"):
        model.unlink()
    result = project.mtformer(*command)
    assert result.status == 2
    assert re.search(r"Error: there is no model at \S+\.safetensors any more: restore it, or name a new", result.stderr)
    (project.folder / "runs/config/starts.jsonl").write_bytes(b"")
    for option in ("--output=better", "--plan"):
        result = project.mtformer("improve", "config.yaml", option)
        assert result.status == 2
        told = "starts.jsonl does not say how many steps an epoch has: restore it, or give the config another run.name"
        assert result.stderr == f"Error: {Path('runs/config')}/{told}\n"


def test_an_interrupted_translation_says_how_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    project = make(tmp_path, max_steps=40)

    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(core, "run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_improve(project)
    assert caplog.messages[-1] == "stopped; rerun the same command to resume better"


def test_a_test_set_that_has_moved_does_not_cost_the_report(whole: tuple[Project, str], tmp_path: Path) -> None:
    project = Project(tmp_path / "copy", tmp_path / "copy/config.yaml")
    shutil.copytree(whole[0].folder, project.folder)
    for name in ("runs/config", "better"):
        config = project.folder / name / "config.yaml"
        config.write_text(config.read_text("utf-8").replace("test.", "gone."), encoding="utf-8")
    (project.folder / "better/improve/report.txt").unlink()
    result = project.mtformer("improve", "config.yaml", "--output", "better")
    assert result.status == 0, result.stderr
    assert "is not scored: the test set of this run: cannot read" in result.stderr
    assert "runs/config, test set:\nnone" in (project.folder / "better/improve/report.txt").read_text("utf-8")


def test_a_config_may_be_corrected_before_the_baseline_is_trained(tmp_path: Path) -> None:
    State(tmp_path, {"the config": "wrong"}).write()
    state = State(tmp_path, {"the config": "right"})
    assert state.once(lambda: Outcome(stage="baseline", commands=[]), "baseline").minutes > 0
    with pytest.raises(UserError, match="because the config changed since it was started"):
        State(tmp_path, {"the config": "wrong"})


def test_the_text_may_be_corrected_before_the_baseline_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*args: object) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(stages, "valid_bleu", interrupt)
    for last in ("a dog", "a cat"):
        project = make(tmp_path, max_steps=2)
        for language in ("en", "de"):
            with (project.folder / f"train.{language}").open("a", encoding="utf-8") as file:
                print(last, file=file)
        with pytest.raises(KeyboardInterrupt):
            run_improve(project, budget=30)
        copy = (project.folder / "better/improve/train.1.jsonl").read_text(encoding="utf-8")
        assert json.loads(copy.splitlines()[-1])["en"] == last
        shutil.rmtree(project.folder / "runs")


def test_a_glossary_counts_by_its_contents(project: Project, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.tsv", "b.tsv", "c.tsv")]
    for path, term in zip(paths, ("dog\tHund", "dog\tHund", "dog\tKöter"), strict=True):
        path.write_text(term, encoding="utf-8")
    inputs = []
    for path in paths:
        request = Request(load_config(project.config, [f"data.terms={path}"]), "", tmp_path / "better")
        inputs.append(run._inputs(request, run._read(request)))
    assert inputs[0] == inputs[1]
    assert [name for name in inputs[0] if inputs[0][name] != inputs[2][name]] == ["the glossary"]


def test_one_process_at_a_time_and_a_damaged_state_is_reported(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "better/improve"),
        pytest.raises(UserError, match="another process is at work in"),
        locked(tmp_path / "better/improve"),
    ):
        pass
    (tmp_path / "better/improve").mkdir(parents=True)
    (tmp_path / "better/improve/state.json").write_text("{")
    with pytest.raises(UserError, match=r"cannot read .*state\.json: restore it"):
        State(tmp_path / "better/improve", {})
