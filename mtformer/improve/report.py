"""The results of the stages, as text and as JSON."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtformer.config import LanguagePair
from mtformer.engines.loading import load_model
from mtformer.evaluate.evaluation import evaluate_loaded
from mtformer.evaluate.metrics import Score
from mtformer.evaluate.testsets import has_test_set
from mtformer.improve.state import Outcome
from mtformer.support.errors import UserError
from mtformer.support.files import write_text
from mtformer.support.terminal import as_text

log = logging.getLogger(__name__)


def tested(bundle: Path) -> list[Score]:
    """Return the scores of the model of a run on its test set; none if it has none, or it cannot be read."""
    loaded = load_model([bundle], "torch")
    if not has_test_set(bundle, LanguagePair(loaded.header.src_lang, loaded.header.tgt_lang)):
        return []
    try:
        return evaluate_loaded([bundle], loaded).total.scores
    except UserError as error:  # a file that has moved since the start must not cost the report
        log.warning("%s is not scored: %s", bundle, error)
        return []


@dataclass(frozen=True)
class Report:
    """The result of an improvement.

    Attributes:
        outcomes: those of all stages, in order.
        output: the folder of the final model.
        test: of the baseline's run and then of the final model, by folder: the scores on the test set, by which nothing
            was chosen; none without a test set.
    """

    outcomes: Sequence[Outcome]
    output: Path
    test: Mapping[str, Sequence[Score]]

    @property
    def minutes(self) -> float:
        """The time of all stages."""
        return sum(outcome.minutes for outcome in self.outcomes)

    @property
    def multiple(self) -> float:
        """That as a multiple of the baseline's."""
        return self.minutes / max(self.outcomes[0].minutes, 1e-9)

    @property
    def steps(self) -> int:
        """The updates of all trainings."""
        return sum(outcome.steps or 0 for outcome in self.outcomes)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``report.json`` has."""
        return {
            "output": str(self.output),
            "minutes": round(self.minutes, 2),
            "multiple": round(self.multiple, 2),
            "updates": self.steps,
            "stages": [outcome.model_dump() for outcome in self.outcomes],
            "test": {name: [score.to_dict() for score in scores] for name, scores in self.test.items()},
        }

    def to_text(self, columns: int | None = None) -> str:
        """Show the stages in a table of at most so many columns, the scores on the test set, and the commands."""
        rows = [
            [
                outcome.stage,
                f"{outcome.minutes:.1f}",
                "" if outcome.steps is None else f"{outcome.steps:,}",
                outcome.shown_bleu,
                outcome.shown_gain,
                outcome.verdict,
                outcome.note,
            ]
            for outcome in self.outcomes
        ]
        header = ["stage", "minutes", "updates", "valid BLEU", "gain", "", ""]
        blocks = [as_text(header, rows, columns=columns)]
        blocks.append(
            f"{self.minutes:.1f} minutes, {self.multiple:.1f} times the baseline's; {self.steps:,} updates, "
            f"{self.steps / (self.outcomes[0].steps or 1):.1f} times the baseline's"
        )
        for name, scores in self.test.items():
            shown = "\n".join(score.to_text() for score in scores if score.name in ("BLEU", "chrF2"))
            blocks.append(f"{name}, test set:\n{shown or 'none'}")
        commands = (command for outcome in self.outcomes for command in outcome.commands)
        blocks.append("The same by hand:\n" + "\n".join(commands))
        blocks.append(f"The model is in {self.output}")
        return "\n\n".join(blocks)

    def write(self, folder: Path) -> None:
        """Write ``report.txt`` and ``report.json``.

        Raises:
            MtformerError: they cannot be written.
        """
        as_json = json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"
        for name, text in (("report.txt", self.to_text() + "\n"), ("report.json", as_json)):
            write_text(folder / name, text)
