"""Robustness: how translations change when the source text is not as clean as a test set."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Unpack

from mtformer.bundle.header import ANY, Toward
from mtformer.engines.loading import load_model
from mtformer.evaluate.analysis import repeats
from mtformer.evaluate.evaluation import best_translations, read_test_sets
from mtformer.evaluate.metrics import chrf
from mtformer.evaluate.perturbations import PERTURBATIONS, Case, Pair, perturb
from mtformer.evaluate.results import ScoredModel
from mtformer.evaluate.testsets import TextOptions, joined
from mtformer.support.terminal import as_text
from mtformer.text.languages import is_written_with_spaces
from mtformer.text.lines import open_output
from mtformer.translate.translator import Translator

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


@dataclass(frozen=True)
class Kept:
    """How many of some expressions of the sources are in the translations."""

    kept: int
    total: int

    @property
    def share(self) -> float | None:
        """From 0 to 1; None if there are none."""
        return self.kept / self.total if self.total else None


@dataclass(frozen=True)
class StressRow:
    """The sentences that one perturbation changes.

    Attributes:
        perturbation: its name.
        n_sentences: how many it changes.
        clean_chrf: chrF2 of the translations of the same sentences unchanged, without regard to case.
        chrf: that of the perturbed sentences; for the wrong language, against the given text itself; None without
            references.
        repetitions: the share of translations that repeat a phrase as neither source nor reference does.
        numbers: those of both source and reference that are in the translation.
        added: the emoji or URLs that are in the translation.
    """

    perturbation: str
    n_sentences: int
    clean_chrf: float
    chrf: float | None
    repetitions: float
    numbers: Kept
    added: Kept

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` shows."""
        return {
            "perturbation": self.perturbation,
            "sentences": self.n_sentences,
            "clean_chrf": round(self.clean_chrf, 2),
            "chrf": None if self.chrf is None else round(self.chrf, 2),
            "repetitions": round(self.repetitions, 4),
            "numbers_kept": self.numbers.kept,
            "numbers": self.numbers.total,
            "added_kept": self.added.kept,
            "added": self.added.total,
        }

    def cells(self) -> tuple[str, ...]:
        """Return what the table shows; an en dash where there is nothing to count."""
        shares = [_percent(share) for share in (self.repetitions, self.numbers.share, self.added.share)]
        chrf, change = ("–", "–") if self.chrf is None else (f"{self.chrf:.1f}", f"{self.chrf - self.clean_chrf:+.1f}")
        return self.perturbation, f"{self.n_sentences:,}", f"{self.clean_chrf:.1f}", chrf, change, *shares


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


@dataclass(frozen=True)
class StressResult:
    """How a model handles perturbed text.

    Attributes:
        model: what was scored.
        test_set: the name of the clean text.
        fingerprint: of the clean text.
        signature: of chrF.
        rows: one for each perturbation that changes a sentence, the clean text first.
    """

    model: ScoredModel
    test_set: str
    fingerprint: str
    signature: str
    rows: list[StressRow]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` shows."""
        texts = {"test_set": self.test_set, "fingerprint": self.fingerprint, "signature": self.signature}
        return self.model.to_dict() | texts | {"stress": [row.to_dict() for row in self.rows]}

    def to_text(self) -> str:
        """Show a table."""
        head = ("perturbation", "sentences", "clean", "chrF2", "change", "repetitions", "numbers", "added")
        table = as_text(head, [row.cells() for row in self.rows])
        return f"{table}\n\nchrF2  {self.signature}"


def stress_model(
    paths: Sequence[Path],
    toward: Toward = ANY,
    *,
    search: Mapping[str, float | str | None] | None = None,
    save: Path | None = None,
    device: str = "auto",
    engine: str | None = None,
    raw: bool = False,
    **texts: Unpack[TextOptions],
) -> StressResult:
    """Translate a test set clean and perturbed in several ways, and score the translations.

    Args:
        paths: the bundle, or the folder of an exported model; or the bundles of an ensemble.
        toward: the direction to evaluate, and the tag.
        search: search options that replace the bundle's own.
        save: write a JSON object for each perturbed sentence there.
        device: where to compute.
        engine: what computes, as for :func:`mtformer.engines.loading.load_model`.
        raw: translate with the model alone.
        texts: the test sets, as for :func:`mtformer.evaluate.testsets.read_eval_sets`; without any, those of the first
            one's run. First references count.

    Raises:
        UserError: the model, the engine or a test set cannot be used, or ``save`` is one of the input files.
        MtformerError: sacreBLEU cannot download a test set.
    """
    model = load_model(paths, engine, device, needs_torch=None, **(search or {})).toward(*toward)
    sets = read_test_sets(paths, model, [save], **texts)
    translator = Translator.of(model, raw=raw)
    test_set, header = joined(sets), model.header
    spaced = is_written_with_spaces(header.src_lang)
    pairs = [Pair(*pair, spaced) for pair in zip(test_set.sources, test_set.references[0], strict=True)]
    cases = {name: found for name in PERTURBATIONS if (found := perturb(name, pairs))}
    with nullcontext() if save is None else open_output(save) as file:  # first: a wrong path must not cost the work
        sources = [case.src for found in cases.values() for case in found.values()]
        rest = (translation.text for translation in best_translations(translator, sources))
        hypotheses = {name: dict(zip(found, islice(rest, len(found)), strict=True)) for name, found in cases.items()}
        if file is not None:
            for name, found in cases.items():
                for i, case in found.items():
                    row = {"perturbation": name, "line": i + 1, **case._asdict(), "hyp": hypotheses[name][i]}
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
    score = partial(_row, pairs, hypotheses["clean"], header.src_lang, header.tgt_lang)
    rows = [score(name, found, hypotheses[name]) for name, found in cases.items()]
    signature = chrf(["a"], ["a"], lowercase=True).signature
    scored = ScoredModel.of(paths, model, raw=raw)
    return StressResult(scored, test_set.name, test_set.fingerprint, signature, rows)


def _row(
    pairs: Sequence[Pair],
    clean: Mapping[int, str],
    src_lang: str,
    tgt_lang: str,
    name: str,
    cases: Mapping[int, Case],
    hypotheses: Mapping[int, str],
) -> StressRow:
    """Score the translations of one perturbation."""
    references = [case.ref for case in cases.values() if case.ref is not None]
    src_lang = tgt_lang if name == "wrong language" else src_lang
    loops = sum(
        repeats(hypotheses[i], tgt_lang) and not repeats(case.src, src_lang) and not repeats(pairs[i].ref, tgt_lang)
        for i, case in cases.items()
    )
    return StressRow(
        perturbation=name,
        n_sentences=len(cases),
        clean_chrf=chrf([clean[i] for i in cases], [pairs[i].ref for i in cases], lowercase=True).value,
        chrf=chrf(list(hypotheses.values()), references, lowercase=True).value if references else None,
        repetitions=loops / len(cases),
        numbers=_numbers_kept((case, pairs[i].ref, hypotheses[i]) for i, case in cases.items()),
        added=Kept(
            sum(case.added in hypotheses[i] for i, case in cases.items() if case.added),
            sum(bool(case.added) for case in cases.values()),
        ),
    )


def _numbers_kept(found: Iterable[tuple[Case, str, str]]) -> Kept:
    """Count the numbers of both source and reference, which may separate digits differently."""
    kept = total = 0
    for case, reference, hypothesis in found:
        wanted = _numbers(case.src.removesuffix(case.added)) & _numbers(reference)
        kept += (wanted & _numbers(hypothesis)).total()
        total += wanted.total()
    return Kept(kept, total)


def _numbers(text: str) -> Counter[str]:
    return Counter(re.sub(r"\D", "", number) for number in _NUMBER.findall(text))
