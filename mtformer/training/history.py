"""The settings of a run so far: whether it can be resumed with new ones, and the changes if it is."""

import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import yaml
from pydantic import JsonValue

from mtformer.config import Change, Config, Provenance, ResolvedConfig
from mtformer.runs.checkpoints import list_checkpoints, newest_checkpoint
from mtformer.runs.folder import Journal, RunFolder
from mtformer.support import fast_yaml
from mtformer.support.errors import UserError
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.training.checkpoint import TrainState

log = logging.getLogger(__name__)

# Without influence on the model: how a run reports and what it keeps, and names of what is compared by its contents.
_FREE = (
    *("data.train", "data.valid", "data.test", "data.terms", "model.preset", "training.init_from", "training.device"),
    *("tokenizer.model", "tokenizer.src_model", "tokenizer.tgt_model"),
    *("training.log_every", "training.log_to", "training.report", "training.checkpoint_every", "training.keep_last"),
    *("training.keep_early", "eval.n_samples"),
    *("search.beam_size", "search.length_penalty", "search.length_penalty_offset"),  # validation searches greedily
)
# With these changed, weights, moments and scores of before and after would not belong together.
_FIXED_SECTIONS = ("data.", "tokenizer.", "model.", "fingerprints.")
_FIXED = (
    *("training.seed", "training.optimizer", "training.freeze", "training.lora", "training.like"),
    *("training.early_stopping_metric", "eval.bleu_tokenize"),
)
_CONTENTS = {
    "fingerprints.train": "the text of data.train",
    "fingerprints.valid": "the text of data.valid",
    "fingerprints.terms": "the glossary of data.terms",
    "fingerprints.init_from": "the model of training.init_from",
    "fingerprints.tokenizer": "the SentencePiece model of the tokenizer",
}

_WAYS_OUT = (
    "restore it from a backup, train in another folder (--set run.name=…), or start from scratch with --fresh, which "
    "deletes the run"
)


class SavedRun(NamedTuple):
    """A run that can be resumed.

    Attributes:
        config: its settings so far.
        tokenizer: the one that it trains with.
        step: the updates done in its newest checkpoint.
        epoch: the epochs done there.
        batch: the batches of the next epoch done there.
    """

    config: ResolvedConfig
    tokenizer: Tokenizer
    step: int
    epoch: int
    batch: int


def load_saved_run(folder: RunFolder) -> SavedRun | None:
    """Read the run in ``folder``, if there is one, wherever the texts that its config names are now.

    Raises:
        UserError: the folder contains something else.
    """
    if not folder.config.is_file() and not list_checkpoints(folder.checkpoints):
        return None
    try:
        config, tokenizer = _saved_config(folder), _saved_tokenizer(folder)
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}; make it readable and rerun") from error
    newest = newest_checkpoint(folder.checkpoints, with_tensors=False)
    state = TrainState.load(newest) if newest else TrainState()
    return SavedRun(config, tokenizer, state.step, state.epoch, state.batch)


def _saved_config(folder: RunFolder) -> ResolvedConfig:
    """Read the settings of a run: its ``config.yaml``, or the record of its last start if that is lost or damaged."""
    try:
        return ResolvedConfig.model_validate(fast_yaml.load(folder.config.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, yaml.YAMLError):
        try:
            config = ResolvedConfig.model_validate(Journal(folder.starts).read()[-1]["config"])
        except (LookupError, ValueError):
            raise UserError(f"{folder.config} is missing, damaged or of another version: {_WAYS_OUT}") from None
    log.warning("%s is missing or damaged: its settings are taken from %s", folder.config, folder.starts)
    return config


def _saved_tokenizer(folder: RunFolder) -> Tokenizer:
    joint, separate = [folder.joint_tokenizer], folder.separate_tokenizers
    paths = next((paths for paths in (joint, separate) if any(map(Path.is_file, paths))), joint)
    try:
        return Tokenizer(*(path.read_bytes() for path in paths))
    except (FileNotFoundError, ValueError, UserError):
        names = " and ".join(map(str, paths))
        raise UserError(f"{names}: missing, damaged or of another version: {_WAYS_OUT}") from None


def require_same_run(folder: RunFolder, saved: SavedRun, now: Config) -> None:
    """Refuse settings with which the result of a resumed run could not be explained.

    Raises:
        UserError: naming all of them.
    """
    changed = _differences(_conditions(saved.config), _conditions(now))
    problems = []
    for key, (old, new) in changed.items():
        if key in _CONTENTS:
            problems.append(
                f"{_CONTENTS[key]} {'has changed' if old and new else 'was added' if new else 'was removed'}"
            )
        elif key in _FIXED or key.startswith(_FIXED_SECTIONS):
            problems.append(f"{key} was {_shown(old)}, is now {_shown(new)}")
    if problems:
        raise UserError(
            f"{folder.path} contains a run started with different settings: {'; '.join(problems)}. "
            "Choose another name (--set run.name=…) or start from scratch (--fresh)"
        )
    for key in ("training.max_tokens", "training.threads") if saved.batch else ():
        if key in changed:
            old, new = changed[key]
            raise UserError(
                f"{folder.path} contains a run in the middle of epoch {saved.epoch + 1}: with {key} = {new} instead of "
                f"{old}, the rest of that epoch would repeat or skip pairs. Keep {old} (training.grad_accum_steps may "
                "change), choose another name (--set run.name=…) or start from scratch (--fresh)"
            )


def history(saved: SavedRun, now: Config) -> list[Change]:
    """Return the changes of a run that is resumed with the settings ``now``: the earlier ones and those that it makes.

    If the newest checkpoint precedes an earlier change, training from there on is done with ``now`` as well.
    """
    if not saved.step:
        return []
    before = _conditions(saved.config)
    changes = saved.config.provenance.changes
    before |= {change.key: change.old for change in reversed(changes) if change.step >= saved.step}
    return [change for change in changes if change.step < saved.step] + [
        Change(step=saved.step, key=key, old=old, new=new)
        for key, (old, new) in _differences(before, _conditions(now)).items()
    ]


def warn_of_changes(changes: list[Change], step: int) -> None:
    """Log the changes made at ``step``, a line for each."""
    for change in changes:
        if change.step == step:
            log.warning("%s was %s, is %s from step %d on", change.key, _shown(change.old), _shown(change.new), step)


def warn_without_effect(changes: Iterable[Change]) -> None:
    """Log which changed settings of training come too late for a run that is complete, a line for each."""
    for key, old, new in ((change.key, _shown(change.old), _shown(change.new)) for change in changes):
        if key.startswith("training."):
            log.warning("%s was %s; that it is %s now has no effect on this run", key, old, new)


def warn_of_foreign_provenance(given: Provenance, current: Provenance) -> None:
    """Log in which conditions a new run differs from the one whose ``config.yaml`` it was given."""
    for key, (old, new) in _differences(_circumstances(given), _circumstances(current)).items():
        if old is not None:
            log.warning("provenance.%s of the config is not that of this run: %s, here %s", key, old, new)


def _shown(value: JsonValue) -> str:
    """Return a value as a config may have it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _differences(old: dict[str, JsonValue], new: dict[str, JsonValue]) -> dict[str, tuple[JsonValue, JsonValue]]:
    return {key: (old.get(key), new.get(key)) for key in old | new if old.get(key) != new.get(key)}


def _conditions(config: Config) -> dict[str, JsonValue]:
    """Return everything that influences the result of a run, by dotted key."""
    sections = config.model_dump(mode="json", exclude={"run", "provenance"})
    settings = {f"{section}.{key}": value for section, values in sections.items() for key, value in values.items()}
    kept = {key: value for key, value in settings.items() if key not in _FREE}
    return kept | _mixing(config) | _circumstances(config.provenance)


def _mixing(config: Config) -> dict[str, JsonValue]:
    """Return the weights and tags of sources, and which of them are general, unless all have the defaults."""
    defaults = {"weight": 1.0, "tag": None, "general": False}
    values = {key: [getattr(source, key) for source in config.data.train] for key in defaults}
    return {f"data.train.{key}": given for key, given in values.items() if set(given) != {defaults[key]}}


def _circumstances(provenance: Provenance) -> dict[str, JsonValue]:
    groups = provenance.model_dump(exclude={"changes"})
    return {f"{group}.{key}": value for group, values in groups.items() for key, value in values.items()}
