"""The progress of an improvement, in a file that is replaced atomically after each stage."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import BaseModel, ValidationError

from mtformer.support.errors import MtformerError, UserError
from mtformer.support.files import write_text
from mtformer.support.locks import lock
from mtformer.support.terminal import fixed

log = logging.getLogger(__name__)


class Outcome(BaseModel):
    """The result of a stage.

    Attributes:
        stage: its name.
        commands: what does the same by hand.
        minutes: the time of its training, or else that of its last start.
        steps: its updates, if it is a training.
        bleu: on the validation set, of the model that it led to.
        gain: in BLEU there, over the same without the stage; None where nothing is compared.
        kept: whether its result is used: False without a gain.
        note: what else there is to say.
    """

    stage: str
    commands: list[str]
    minutes: float = 0.0
    steps: int | None = None
    bleu: float | None = None
    gain: float | None = None
    kept: bool = True
    note: str = ""

    @property
    def shown_bleu(self) -> str:
        """Its BLEU in digits; empty without one."""
        return "" if self.bleu is None else fixed(self.bleu, 2)

    @property
    def shown_gain(self) -> str:
        """Its gain with a sign; empty without one."""
        return "" if self.gain is None else ("+" if self.gain > 0 else "") + fixed(self.gain, 2)

    @property
    def verdict(self) -> str:
        """Whether it is kept."""
        return "kept" if self.kept else "undone"


class _Saved(BaseModel):
    inputs: dict[str, str]
    outcomes: list[Outcome] = []
    step_cost: float | None = None


class State:
    """The record of an improvement.

    Attributes:
        outcomes: those of the stages that are finished, by name.
        step_cost: the time of an update of the student over that of the baseline; None until it is measured.
    """

    def __init__(self, folder: Path, inputs: dict[str, str]) -> None:
        """Read the state in ``folder``, or start one.

        Args:
            folder: where the files of the improvement are.
            inputs: what all results depend on, by its name in messages.

        Raises:
            UserError: it was started with other inputs, or cannot be read.
        """
        self._path = folder / "state.json"
        saved = self._read()
        if saved is None or not saved.outcomes:  # the run of the baseline notices what has changed since it was started
            saved = _Saved(inputs=inputs)
        if changed := [name for name, value in inputs.items() if saved.inputs.get(name) != value]:
            raise UserError(
                f"{folder.parent} cannot be resumed, because {' and '.join(changed)} changed since it was started: "
                "undo that, or name a new folder with --output"
            )
        self._inputs = inputs
        self.outcomes = {outcome.stage: outcome for outcome in saved.outcomes}
        self.step_cost = saved.step_cost

    def _read(self) -> _Saved | None:
        try:
            return _Saved.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            raise UserError(f"cannot read {self._path}: restore it, or name a new folder with --output") from error

    def write(self) -> None:
        """Replace the file.

        Raises:
            MtformerError: it cannot be written.
        """
        saved = _Saved(inputs=self._inputs, outcomes=list(self.outcomes.values()), step_cost=self.step_cost)
        write_text(self._path, saved.model_dump_json(indent=1))

    def once(self, do: Callable[[], Outcome], name: str) -> Outcome:
        """Return the outcome of a stage, which is done unless it is finished.

        Raises:
            MtformerError: the outcome cannot be written.
        """
        if name not in self.outcomes:
            started = time.monotonic()
            outcome = do()
            outcome.minutes = outcome.minutes or (time.monotonic() - started) / 60
            self.outcomes[name] = outcome
            self.write()
            if outcome.bleu is not None:
                compared = "" if outcome.gain is None else f", {outcome.shown_gain}: {outcome.verdict}"
                log.info("stage %s: BLEU %s on the validation set%s", name, outcome.shown_bleu, compared)
        return self.outcomes[name]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for one process; if it is new and nothing is written there, it is removed again.

    Raises:
        UserError: another process holds it.
        MtformerError: it cannot be made or locked.
    """
    path, new = folder / "lock", [place for place in (folder, folder.parent) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = lock(path)
    except TimeoutError:
        raise UserError(f"another process is at work in {folder.parent}: wait for it, or stop it") from None
    except OSError as error:
        raise MtformerError(f"cannot lock {path}: {error.strerror}") from error
    try:
        with held:
            yield
    finally:
        with suppress(OSError):  # they are not empty
            for place in new:
                place.rmdir()
