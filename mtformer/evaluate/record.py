"""The record of a run's evaluations, and whether a new one differs from the best before it."""

import logging
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from mtformer.bundle.header import Header
from mtformer.config import SearchOptions
from mtformer.evaluate.comparison import compare_systems
from mtformer.evaluate.results import EarlierEvaluation, Evaluation
from mtformer.evaluate.testsets import EvalSet
from mtformer.runs.folder import RunFolder
from mtformer.runs.journal import Journal
from mtformer.support.errors import MtformerError

log = logging.getLogger(__name__)

_THIS, _BEST = "this evaluation", "the best earlier one"


class _Record(BaseModel):
    """A line of ``evaluations.jsonl``.

    Attributes:
        step: of the training that the model is from; 0 if it does not say.
        digest: of the model's bundle.
        engine: what computed it; records of earlier versions do not say so, and are torch's.
        options: the search options.
        raw: whether the model translated alone; records without it are of versions in which every model did.
        tag: that of the training text that it translated like; None for no tag.
        fingerprint: of the text.
        scores: by the name of the metric.
        hypotheses: the translations, one for each source.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    step: int
    digest: str
    engine: str = "torch"
    options: SearchOptions
    raw: bool = True
    tag: str | None = None
    fingerprint: str
    scores: dict[str, float]
    hypotheses: list[str]

    @property
    def evaluated(self) -> tuple[object, ...]:
        """What the translations depend on besides the text; the options include the precision."""
        return self.digest, self.engine, self.options, self.raw, self.tag


def compare_and_record(
    folder: RunFolder, evaluation: Evaluation, texts: EvalSet, header: Header
) -> EarlierEvaluation | None:
    """Compare an evaluation with the best earlier one in ``evaluations.jsonl`` of its run, and add it there.

    An evaluation of the same model with the same engine, search and tag, with ``--raw`` or without, is the same
    evaluation: it is neither compared nor added again. Whatever fails costs a warning, not the evaluation, which may
    have taken hours.

    Returns:
        The best earlier one, or None if there is none.
    """
    model, total = evaluation.model, evaluation.total
    ours = _Record(
        step=model.step or 0,
        digest=model.digest,
        engine=model.engine,
        options=model.options,
        raw=model.raw,
        tag=model.tag,
        fingerprint=total.fingerprint,
        scores={score.name: round(score.value, 2) for score in total.scores},
        hypotheses=evaluation.hypotheses,
    )
    journal = Journal(folder.evaluations)
    try:
        recorded = [record for row in journal.read() if (record := _parsed(row)) and _is_comparable(record, ours)]
        others = [record for record in recorded if record.evaluated != ours.evaluated]
        if len(others) == len(recorded):
            journal.write(ours.model_dump(mode="json"))
    except MtformerError as error:
        log.warning("this evaluation is not recorded: %s", error)
        return None
    if not others:
        return None
    best = max(others, key=lambda record: record.scores["BLEU"])
    try:
        verdict = _verdict(best.hypotheses, ours.hypotheses, texts, header)
    except (MtformerError, MemoryError) as error:
        log.warning("this evaluation is not compared with the best earlier one: %s", str(error) or "out of memory")
        return None
    return EarlierEvaluation(best.step, best.options.beam_size, best.raw, best.tag, best.scores["BLEU"], verdict)


def _parsed(row: dict[str, Any]) -> _Record | None:
    """Return a line of the record, or None if it is not one of this version."""
    try:
        return _Record.model_validate(row)
    except ValidationError:
        return None


def _is_comparable(record: _Record, ours: _Record) -> bool:
    """Tell whether a record is about the same text as ``ours``."""
    return (
        record.fingerprint == ours.fingerprint
        and len(record.hypotheses) == len(ours.hypotheses)
        and "BLEU" in record.scores
    )


def _verdict(earlier: Sequence[str], ours: Sequence[str], texts: EvalSet, header: Header) -> str:
    if list(earlier) == list(ours):
        return f"{_THIS} has the same translations as {_BEST}"
    comparison = compare_systems(
        {_BEST: earlier, _THIS: ours},
        texts.references,
        tgt_lang=header.tgt_lang,
        tokenize=header.bleu_tokenize,
        metrics=("BLEU",),
    )
    return comparison.verdicts()[0]
