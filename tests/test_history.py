"""Resuming a run with other settings: what is refused, and what is recorded."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from conftest import Project, make_project, sentence_pairs, write_pairs
from pydantic import JsonValue

from mtformer.bundle.format import load_bundle
from mtformer.config import Change, Facts, Provenance, ResolvedConfig, dump_config, load_config, resolve
from mtformer.model.weights import weights
from mtformer.runs.folder import RunFolder
from mtformer.support.errors import UserError
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.training.history import SavedRun, history, load_saved_run, require_same_run

FOLDER = RunFolder(Path("runs/x"))
PROVENANCE = Provenance(
    versions={"torch": "2.1"},
    hardware={"device": "cpu", "processes": "1"},
    fingerprints={"train": "a", "valid": "b"},
)


@pytest.fixture(scope="module")
def tokenizer(project_of_module: Project) -> Tokenizer:
    pairs = [SentencePair(*pair) for pair in sentence_pairs(50)]
    return train_tokenizer(pairs, config_of(project_of_module).tokenizer, "en", "de", adjust=True)


@pytest.fixture(scope="module")
def project_of_module(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("history"), n_pairs=20)


def config_of(project: Project, *overrides: str, **provenance: Any) -> ResolvedConfig:
    facts = Facts(n_pairs=20, provenance=Provenance(**dict(PROVENANCE) | provenance))
    return resolve(load_config(project.config, overrides), facts)


@pytest.fixture
def saved(project_of_module: Project, tokenizer: Tokenizer) -> SavedRun:
    changes = [
        Change(step=100, key="training.max_steps", old=200, new=20),
        Change(step=500, key="training.label_smoothing", old=0.3, new=0.1),
    ]
    return SavedRun(config_of(project_of_module, changes=changes), tokenizer, step=700, epoch=2, batch=5)


@pytest.mark.parametrize(
    ("override", "old", "new"),
    [
        ("training.learning_rate=0.5", 0.0041926, 0.5),
        ("training.label_smoothing=0.2", 0.1, 0.2),
        ("training.schedule=cosine", "linear", "cosine"),
        ("training.max_steps=30", 20, 30),
        ("training.max_minutes=7", None, 7.0),
        ("training.grad_accum_steps=3", 1, 3),
        ("training.validate_every=9", None, 9),
        ("training.precision=bf16", "fp32", "bf16"),
        ("search.max_length_factor=3", 2.0, 3.0),
    ],
)
def test_a_changed_setting_is_recorded_with_its_step_after_the_earlier_ones(
    project_of_module: Project, saved: SavedRun, override: str, old: JsonValue, new: JsonValue
) -> None:
    now = config_of(project_of_module, override)
    require_same_run(FOLDER, saved, now)
    change = Change(step=700, key=override.partition("=")[0], old=old, new=new)
    assert history(saved, now) == [*saved.config.provenance.changes, change]


def test_other_versions_and_hardware_are_recorded(project_of_module: Project, saved: SavedRun) -> None:
    now = config_of(project_of_module, versions={"torch": "2.2"}, hardware={"device": "cpu", "processes": "4"})
    require_same_run(FOLDER, saved, now)
    assert [(change.key, change.old, change.new) for change in history(saved, now)[2:]] == [
        ("versions.torch", "2.1", "2.2"),
        ("hardware.processes", "1", "4"),
    ]


def test_what_does_not_influence_the_model_is_not_recorded(project_of_module: Project, saved: SavedRun) -> None:
    training = {"log_every": 7, "checkpoint_every": 7, "keep_last": 7, "log_to": "[tensorboard]"}
    overrides = [f"training.{key}={value}" for key, value in training.items()]
    now = config_of(
        project_of_module,
        *(*overrides, "eval.n_samples=1", "run.name=y", "data.test=[]"),
        *("search.beam_size=7", "search.length_penalty=0.6", "search.length_penalty_offset=5"),
    )
    require_same_run(FOLDER, saved, now)
    assert history(saved, now) == saved.config.provenance.changes


def test_from_an_older_checkpoint_training_continues_with_the_present_settings_only(
    project_of_module: Project, saved: SavedRun
) -> None:
    first = saved.config.provenance.changes[0]
    older = saved._replace(step=300)
    smoothing = Change(step=300, key="training.label_smoothing", old=0.3, new=0.1)
    assert history(older, saved.config) == [first, smoothing]
    assert history(older, config_of(project_of_module, "training.label_smoothing=0.3")) == [first]
    assert history(saved._replace(step=0), config_of(project_of_module, "training.max_steps=9")) == []


def test_all_that_would_make_the_result_inexplicable_is_refused_at_once(
    project_of_module: Project, saved: SavedRun
) -> None:
    overrides = {
        "training.seed=2": "training.seed was 1, is now 2",
        "training.optimizer=adam": "training.optimizer was adamw, is now adam",
        "training.early_stopping_metric=loss": "training.early_stopping_metric was bleu, is now loss",
        "eval.bleu_tokenize=char": "eval.bleu_tokenize was auto, is now char",
        "model.d_model=64": "model.d_model was 32, is now 64",
        "data.max_length=100": "data.max_length was 256, is now 100",
        "data.filters=[copy]": 'data.filters was [], is now ["copy"]',
        "data.augment={upper: 0.5}": 'data.augment was null, is now {"typos": ',
    }
    now = config_of(project_of_module, *overrides, fingerprints={"train": "A", "valid": "b"})
    with pytest.raises(UserError) as caught:
        require_same_run(FOLDER, saved, now)
    for told in [*overrides.values(), "the text of data.train has changed", "runs/x", "--fresh"]:
        assert told in str(caught.value)
    assert "data.valid" not in str(caught.value)


def test_a_run_cannot_be_given_another_model_to_start_from(project_of_module: Project, saved: SavedRun) -> None:
    from_model = config_of(project_of_module, fingerprints=PROVENANCE.fingerprints | {"init_from": "c"})
    other = config_of(project_of_module, fingerprints=PROVENANCE.fingerprints | {"init_from": "d"})
    with pytest.raises(UserError, match=r"the model of training\.init_from has changed"):
        require_same_run(FOLDER, saved._replace(config=from_model), other)
    with pytest.raises(UserError, match=r"the model of training\.init_from was added"):
        require_same_run(FOLDER, saved, other)
    with pytest.raises(UserError, match=r"the model of training\.init_from was removed"):
        require_same_run(FOLDER, saved._replace(config=other), config_of(project_of_module))
    with_terms = config_of(project_of_module, fingerprints=PROVENANCE.fingerprints | {"terms": "e"})
    with pytest.raises(UserError, match=r"settings: the glossary of data\.terms was added\. Choose"):
        require_same_run(FOLDER, saved, with_terms)


@pytest.mark.parametrize(("key", "old"), [("training.max_tokens", 512), ("training.threads", 1)])
def test_the_sizes_of_batches_change_between_epochs_only(
    project_of_module: Project, saved: SavedRun, key: str, old: int
) -> None:
    now = config_of(project_of_module, f"{key}=999")
    with pytest.raises(UserError, match=rf"in the middle of epoch 3: .* repeat or skip pairs\. Keep {old} "):
        require_same_run(FOLDER, saved, now)
    between = saved._replace(batch=0)
    require_same_run(FOLDER, between, now)
    assert history(between, now)[-1] == Change(step=700, key=key, old=old, new=999)


def config_file(project: Project) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((project.folder / "runs/config/config.yaml").read_text(encoding="utf-8"))
    return values


def resume(project: Project, *sets: str, config: Path | None = None) -> tuple[int, str]:
    """Train once more, by default to the next step, and return the status and the warnings but those of the text."""
    settings = (part for item in sets for part in ("--set", item))
    result = project.mtformer("train", config or project.config, "--quiet", *settings)
    warnings = result.stderr.splitlines(keepends=True)
    of_text = ("pairs are too few", "are in data.train as well")
    return result.status, "".join(line for line in warnings if not any(told in line for told in of_text))


def test_a_run_tells_in_its_config_and_its_bundle_what_applied_from_which_step(tmp_path: Path) -> None:
    project = make_project(tmp_path, n_pairs=40, max_steps=2, warmup_steps=0)
    assert resume(project) == (0, "")
    assert config_file(project)["provenance"]["changes"] == []
    status, stderr = resume(project, "training.max_steps=4", "training.label_smoothing=0.2")
    assert status == 0
    assert stderr.count("training.label_smoothing was 0.1, is 0.2 from step 2 on") == 1
    changes = [
        {"step": 2, "key": "training.max_steps", "old": 2, "new": 4},
        {"step": 2, "key": "training.label_smoothing", "old": 0.1, "new": 0.2},
    ]
    recorded = config_file(project)
    assert recorded["provenance"]["changes"] == changes
    assert recorded["training"]["label_smoothing"] == 0.2
    status, stderr = resume(project, "training.max_steps=4", "training.label_smoothing=0.2", "training.seed=9")
    assert (status, "training.seed was 1, is now 9" in stderr) == (2, True)
    assert config_file(project) == recorded
    assert resume(project, config=project.folder / "runs/config/config.yaml") == (0, "")
    assert config_file(project) == recorded


def test_provenance_in_a_given_config_is_compared_and_never_taken_over(tmp_path: Path) -> None:
    project = make_project(tmp_path, n_pairs=40, max_steps=1)
    faked = {"versions": {"torch": "0.1"}, "changes": [{"step": 1, "key": "training.seed", "old": 1, "new": 2}]}
    project.config.write_text(project.config.read_text() + yaml.safe_dump({"provenance": faked}))
    status, stderr = resume(project)
    assert status == 0
    assert "provenance.versions.torch of the config is not that of this run: 0.1, here" in stderr
    assert config_file(project)["provenance"]["versions"]["torch"] != "0.1"
    assert config_file(project)["provenance"]["changes"] == []


def test_another_text_is_refused(tmp_path: Path) -> None:
    project = make_project(tmp_path, n_pairs=40, max_steps=1, warmup_steps=0)
    assert resume(project) == (0, "")
    write_pairs(tmp_path, "valid", sentence_pairs(20, seed=9))
    status, stderr = resume(project, "training.max_steps=2")
    assert (status, "the text of data.valid has changed" in stderr) == (2, True)


def test_the_config_of_a_run_gives_the_same_weights_again(tmp_path: Path) -> None:
    project = make_project(tmp_path, n_pairs=40, max_steps=4, warmup_steps=0, max_tokens="auto", precision="auto")
    overrides = ["tokenizer.vocab_size=null", "data.augment=true", "model.dropout=0.2"]
    assert resume(project, *overrides) == (0, "")
    own = project.folder / "runs/config/config.yaml"
    assert resume(project, "run.name=again", config=own) == (0, "")
    ours, theirs = (load_bundle(tmp_path / "runs" / name / "model.safetensors") for name in ("config", "again"))
    assert ours.header.scores == theirs.header.scores
    for name, weight in weights(ours.model).items():
        assert torch.equal(weight, weights(theirs.model)[name])


def test_a_tokenizer_that_is_lost_is_named(project_of_module: Project, tmp_path: Path, saved: SavedRun) -> None:
    folder = RunFolder(tmp_path)
    folder.config.write_text(dump_config(saved.config), encoding="utf-8")
    with pytest.raises(UserError, match=f"^{re.escape(str(folder.joint_tokenizer))}: missing"):
        load_saved_run(folder)
    src, tgt = folder.separate_tokenizers
    src.write_bytes(b"")
    with pytest.raises(UserError, match=f"^{re.escape(f'{src} and {tgt}')}: missing"):
        load_saved_run(folder)
