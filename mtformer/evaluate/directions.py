"""Score a model in each of its directions."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Unpack

from mtformer.bundle.header import ANY, Toward
from mtformer.engines.loading import load_model
from mtformer.evaluate.evaluation import EvaluationOptions, evaluate_loaded
from mtformer.evaluate.results import Evaluation
from mtformer.evaluate.testsets import TextOptions, has_test_set
from mtformer.support.errors import UserError
from mtformer.support.terminal import as_text

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Evaluations:
    """The results of a model of several directions.

    Attributes:
        by_direction: the result of each, as in ``en-de``.
    """

    by_direction: Mapping[str, Evaluation]

    @property
    def means(self) -> dict[str, float]:
        """The mean over the directions of each score, by its name."""
        scores = [{score.name: score.value for score in one.total.scores} for one in self.by_direction.values()]
        return {name: fmean(of_each[name] for of_each in scores) for name in scores[0]}

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` shows."""
        directions = {direction: evaluation.to_dict() for direction, evaluation in self.by_direction.items()}
        return {"directions": directions, "means": {name: round(mean, 2) for name, mean in self.means.items()}}

    def to_text(self) -> str:
        """Show the result of each direction, then the scores of all in a table."""
        blocks = [f"{direction}\n{evaluation.to_text()}" for direction, evaluation in self.by_direction.items()]
        rows = [
            [direction, *(f"{score.value:.2f}" for score in evaluation.total.scores)]
            for direction, evaluation in self.by_direction.items()
        ]
        rows.append(["mean", *(f"{mean:.2f}" for mean in self.means.values())])
        return "\n\n".join([*blocks, as_text(["direction", *self.means], rows)])


def evaluate_model(
    paths: Sequence[Path],
    toward: Toward = ANY,
    *,
    search: Mapping[str, float | str | None] | None = None,
    engine: str | None = None,
    **options: Unpack[EvaluationOptions],
) -> Evaluation | Evaluations:
    """Score a model on given test sets, or on those of its run: each of its directions that has a test set there.

    Args:
        paths: the bundle, or the folder of an exported model; or the bundles of an ensemble.
        toward: the direction to evaluate, and the tag.
        search: search options that replace the bundle's own, such as ``{"beam_size": 8}``; None leaves one as it is.
        engine: what computes, as for :func:`mtformer.engines.loading.load_model`.
        options: as for :func:`mtformer.evaluate.evaluation.evaluate_loaded`.

    Raises:
        UserError: a model, the engine or a test set cannot be used; or one file is to have the translations of several
            directions.
        MtformerError: as for :func:`evaluate_loaded`.
    """
    model = load_model(paths, engine, options.get("device", "auto"), needs_torch=None, **(search or {}))
    wanted = model.header.matching(toward.src_lang, toward.tgt_lang)
    if len(wanted) < 2 or any(options.get(name) for name in TextOptions.__annotations__):
        return evaluate_loaded(paths, model.toward(*toward), **options)
    for name in ("output", "save"):
        if options.get(name) is not None:
            names = ", ".join(map(str, wanted))
            raise UserError(f"--{name} takes the translations of one direction, of {names}: add --from and --to")
    tested = [pair for pair in wanted if has_test_set(paths[0], pair)] or wanted
    if untested := [str(pair) for pair in wanted if pair not in tested]:
        log.warning("not scored, since the run has no test set for it: %s", ", ".join(untested))
    results = {str(pair): evaluate_loaded(paths, model.toward(*pair, toward.tag), **options) for pair in tested}
    return Evaluations(results)
