"""The record of a run's evaluations, and whether a new one differs from the best before it."""

import logging
from collections.abc import Sequence
from typing import Any

from mtformer.bundle import Header
from mtformer.errors import MtformerError
from mtformer.evaluate.comparison import compare_systems
from mtformer.evaluate.results import EarlierEvaluation, Evaluation
from mtformer.evaluate.testsets import EvalSet
from mtformer.runs import Journal, RunFolder

log = logging.getLogger(__name__)

_THIS, _BEST = "this evaluation", "the best earlier one"


def compare_and_record(
    folder: RunFolder, evaluation: Evaluation, texts: EvalSet, header: Header
) -> EarlierEvaluation | None:
    """Compare an evaluation with the best earlier one in ``evaluations.jsonl`` of its run, and add it there.

    An evaluation of the same model with the same search is the same evaluation: it is neither compared nor added again.
    A folder that cannot be read or written costs a warning, not the evaluation.

    Returns:
        The best earlier one, or None if there is none.
    """
    journal = Journal(folder.evaluations)
    model = evaluation.model
    identity = {"digest": model.digest, "options": model.options.model_dump(mode="json")}
    try:
        recorded = [row for row in journal.read() if _is_of(row, evaluation)]
        others = [row for row in recorded if any(row[key] != value for key, value in identity.items())]
        if len(others) == len(recorded):
            journal.write(
                {
                    "step": model.step or 0,
                    **identity,
                    "fingerprint": evaluation.total.fingerprint,
                    "scores": {score.name: round(score.value, 2) for score in evaluation.total.scores},
                    "hypotheses": evaluation.hypotheses,
                }
            )
    except MtformerError as error:
        log.warning("this evaluation is not recorded: %s", error)
        return None
    if not others:
        return None
    best = max(others, key=lambda row: row["scores"]["BLEU"])
    verdict = _verdict(best["hypotheses"], evaluation.hypotheses, texts, header)
    return EarlierEvaluation(best["step"], best["options"]["beam_size"], best["scores"]["BLEU"], verdict)


def _is_of(row: dict[str, Any], evaluation: Evaluation) -> bool:
    """Tell whether a row of the record is about the text of ``evaluation``."""
    keys = {"digest", "options", "fingerprint", "scores", "hypotheses"}
    return keys <= row.keys() and row["fingerprint"] == evaluation.total.fingerprint


def _verdict(earlier: Sequence[str], ours: Sequence[str], texts: EvalSet, header: Header) -> str:
    if list(earlier) == list(ours):
        return f"{_THIS} has the same translations as {_BEST}"
    found = compare_systems(
        {_BEST: earlier, _THIS: ours}, texts.references, tgt_lang=header.tgt_lang, tokenize=header.bleu_tokenize
    )
    return found.verdicts()[0]
