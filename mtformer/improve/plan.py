"""The stages of an improvement, each with its cost and expected gain."""

from dataclasses import dataclass
from typing import NamedTuple

from mtformer.support.errors import UserError
from mtformer.support.progress import clock
from mtformer.support.terminal import as_text, wrap

# Translating the training text with a beam of 4, checks included, takes about as long as two epochs of training on it.
_EPOCHS_PER_TEXT = 2.0
_LEAST_STUDENT = 0.4  # of the updates of the baseline
_MONOLINGUAL = 0.35  # of the time of the final model

_DIVERSIFICATION = "+1.3", "to +1.8 on Multi30k, +1.8 on Tatoeba (docs/improve.md; Nguyen et al. 2020)"
_ENSEMBLE = "+0.7", "as an ensemble of three on Multi30k, +1.3 as one of two on Tatoeba"
_BACK_TRANSLATION = "+2 to +4", "with much text of the same kind (Sennrich et al. 2016), +2.8 on Tatoeba"


class Stage(NamedTuple):
    """A step of the plan.

    Attributes:
        name: as the state and the report have it.
        what: a description.
        cost: its time as a multiple of the baseline's.
        expected: the BLEU that it may gain, and where that is known from; empty if it gains nothing by itself.
    """

    name: str
    what: str
    cost: float
    expected: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Baseline:
    """The facts that the plan depends on.

    Attributes:
        seconds: the time of the baseline, measured or expected.
        n_steps: its updates.
        n_epochs: its passes over the text.
        n_pairs: the pairs of the text.
        n_monolingual: the lines of text in the target language alone.
        is_done: whether it is complete, so that only the other stages take time.
    """

    seconds: float
    n_steps: int
    n_epochs: float
    n_pairs: int
    n_monolingual: int = 0
    is_done: bool = False


def make_plan(baseline: Baseline, budget: float) -> list[Stage]:
    """Return the stages that fit into ``budget`` times the baseline's time.

    There are as many teachers, in turns of either direction, as leave a third of the budget to the student.

    Raises:
        UserError: too little is left to the student even with one.
    """
    for n_teachers in range(max(1, int(budget // 3)), 0, -1):
        before = _before_student(baseline, n_teachers)
        left = budget - sum(stage.cost for stage in before)
        if left >= budget / 3:
            break
    if left < _LEAST_STUDENT:
        raise UserError(
            f"--budget {budget:g}: a teacher and the translations take {budget - left:.1f} times the time of the "
            f"baseline, and too little is left to the final model: give --budget {budget - left + 2:.0f}"
            + " or fewer lines with --monolingual"
            * bool(baseline.n_monolingual)
        )
    after = [Stage("student", "train on the text and its translations", left, _DIVERSIFICATION)]
    if baseline.n_monolingual:
        share = _MONOLINGUAL * left
        more = Stage("continued", "train it on with the translations of the given text", share, _BACK_TRANSLATION)
        after = [after[0]._replace(cost=left - share), more]
    return [*before, *after]


def _before_student(baseline: Baseline, n_teachers: int) -> list[Stage]:
    """Return the stages from the baseline to the translations."""
    teachers = [_teacher(number) for number in range(n_teachers)]
    n_backward = sum(stage.name.startswith("reverse") for stage in teachers)
    n_forward = 1 + n_teachers - n_backward
    per_text = _EPOCHS_PER_TEXT / baseline.n_epochs
    texts = [
        Stage("forward", "translate the sources with the baseline and teachers", n_forward * per_text),
        Stage("backward", "translate the targets with the reverse model", n_backward * per_text),
    ]
    if baseline.n_monolingual:
        cost = n_backward * per_text * baseline.n_monolingual / baseline.n_pairs
        texts.append(Stage("monolingual", "translate the given text with the reverse model", cost))
    return [Stage("baseline", "train the config as it is", 1.0), *teachers, *texts]


def _teacher(number: int) -> Stage:
    """Return the training of an additional teacher: of the other direction, of this one, and so on."""
    turn = number // 2
    if number % 2:
        expected = ("", "") if turn else _ENSEMBLE  # measured for an ensemble, not for each model in it
        return Stage(f"teacher.{turn + 2}", "train the config with another seed", 1.0, expected)
    name = "reverse" + f".{turn + 1}" * bool(turn)
    return Stage(name, "train the opposite direction" + ", with another seed" * bool(turn), 1.0)


def describe(plan: list[Stage], baseline: Baseline, budget: float, columns: int | None = None) -> str:
    """Return the plan as a table, with the time of each stage, and where the expected gains are known from.

    Args:
        plan: the stages.
        baseline: the first of them.
        budget: their time at most, as a multiple of the baseline's.
        columns: the width of the terminal; None for any width.
    """
    rows = [
        [stage.name, stage.what, stage.expected[0], f"{stage.cost:.1f}", clock(stage.cost * baseline.seconds)]
        for stage in plan
    ]
    total = sum(stage.cost for stage in plan)
    seconds = (total - plan[0].cost * baseline.is_done) * baseline.seconds
    if baseline.is_done:
        rows[0][-1] = "done"
    rows.append(["all", f"at most {budget:g} times the baseline", "", f"{total:.1f}", clock(seconds)])
    table = as_text(["stage", "what", "BLEU", "× baseline", "time"], rows, left=2, columns=columns)
    gains = [f"  {stage.name}: {' '.join(stage.expected)}" for stage in plan if stage.expected[1]]
    if columns is not None:
        gains = [line for gain in gains for line in wrap(gain.strip(), columns, "  ", "    ")]
    return "\n".join([table, "", "Expected gains in BLEU, as measured on other texts:", *gains])
