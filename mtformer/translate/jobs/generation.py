"""Sentence pairs that models make or score, as JSON lines: back-translated and distilled text, text to select from.

Back-translation (Sennrich et al. 2016) turns text of the target language into pairs by translating it into the source
language. Sequence-level distillation (Kim and Rush 2016) replaces the targets of the training text by the translations
of a larger model or of an ensemble, which a small one learns more easily. Dual conditional cross-entropy
(Junczys-Dowmunt 2018, "Dual Conditional Cross-Entropy Filtering of Noisy Parallel Corpora", equations 1 and 2) scores
pairs: one is good where the models of both directions find it likely, and equally so.
"""

import json
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from mtformer.data.clean.language import N_TEXTS, language_warning
from mtformer.data.sources.parallel import ParallelText
from mtformer.support.errors import UserError
from mtformer.support.terminal import counted
from mtformer.text.languages import UNDETERMINED
from mtformer.text.lines import is_regular_output
from mtformer.text.numbers import find_numbers
from mtformer.text.pairs import SentencePair
from mtformer.translate.guard import SLOTS_ADDED
from mtformer.translate.jobs.core import Job, Tallies, Unit, Work
from mtformer.translate.jobs.partial import Done
from mtformer.translate.jobs.reading import Paragraph, TextInput
from mtformer.translate.translation import Translation

if TYPE_CHECKING:
    from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)

_LEFT_OUT = "left out"  # the name of the tally

NumberedPair = tuple[int, SentencePair]  # from 1


@dataclass(frozen=True, kw_only=True)
class _PairsJob(Job[Unit]):
    """A job that writes pairs as JSON lines, with language codes as keys.

    Attributes:
        text: where they come from.
        left_out: the name of omitted items in the report.
    """

    left_out: ClassVar[str]

    text: TextInput | ParallelText

    def inputs(self) -> list[Path]:
        """Return the files of the text."""
        return self.text.files

    def check(self) -> None:
        """Refuse an output that is not a file; see :meth:`Job.check`."""
        super().check()
        if not is_regular_output(self.output):
            raise UserError(f"--output {self.output}: name a file, so that the job can be resumed")

    def report(self, done: Done, n_before: int, tallies: Tallies) -> None:
        """Log how many pairs there are, and why others were left out."""
        before = f", {n_before:,} of them before it was resumed" * bool(n_before)
        reasons = f"; {self.left_out} left out: {tallies[_LEFT_OUT]}" * bool(tallies[_LEFT_OUT].reasons)
        n_pairs = counted(done.n_lines, "pair")
        log.log(
            logging.WARNING if reasons else logging.INFO, "%s written to %s%s%s", n_pairs, self.output, before, reasons
        )


@dataclass(frozen=True, kw_only=True)
class GenerationJob(_PairsJob[Paragraph]):
    """Text that becomes pairs with its translations.

    Blank lines are skipped. Text that seems to be in another language than the model's source gets a warning.
    Translations that are empty or doubtful to the guard are left out, and counted; a translation whose only number was
    restored is kept.

    Of parallel text, the source side is translated.
    """

    doing = "translating"
    left_out = "translations"

    @property
    def line_file(self) -> Path | None:
        """The file of text in one language."""
        return self.text.line_file if isinstance(self.text, TextInput) else None

    def check(self) -> None:
        """Refuse a share of a text that cannot be read twice; see :meth:`Job.check`."""
        super().check()
        if self.shard is not None and isinstance(self.text, TextInput):
            self.text.require_file("--shard")

    def units(self) -> Iterator[Paragraph]:
        """Yield the lines, or the sources of the pairs."""
        if isinstance(self.text, TextInput):
            return self.text.units()
        return (Paragraph(number, pair.src) for number, pair in enumerate(self.text, 1))

    def work(self, *translators: "Translator") -> Work[Paragraph]:
        """Return the function that translates a window."""
        [translator] = translators
        languages = translator.src_lang, translator.tgt_lang
        if UNDETERMINED in languages:
            raise UserError("pairs are written with language codes as keys: name the source language with --from")
        warn = _LanguageWarning("the input")

        def pairs(window: Sequence[Paragraph], tallies: Tallies, advance: Callable[[int], object]) -> str:
            warn({translator.src_lang: [unit.text for unit in window]})
            left_out = tallies[_LEFT_OUT]
            units = [unit for unit in window if not unit.problem and unit.text.strip()]
            results = translator.translate([unit.text for unit in units], numbers=[unit.number for unit in units])
            lines = []
            for unit in window:
                if unit.problem:
                    left_out.add(unit.number, ["not UTF-8"])
            for unit, translations in zip(units, results, strict=True):
                for translation in translations:
                    if problem := _problem(unit.text, translation):
                        left_out.add(unit.number, [problem])
                    else:
                        lines.append(json_line(languages, (unit.text, translation.text)))
            advance(len(window))
            return "".join(lines)

        return pairs


def _problem(source: str, translation: Translation) -> str | None:
    """Return the reason to leave a translation out; None to keep it.

    A number that a search has added is in the right place if it is the only one.
    """
    if not translation.text.strip():
        return "empty"
    harmless = (SLOTS_ADDED,) if len(list(find_numbers(source))) == 1 else ()
    return next((flag for flag in translation.flags if not flag.startswith(harmless)), None)


@dataclass(frozen=True, kw_only=True)
class CrossEntropyJob(_PairsJob[NumberedPair]):
    """Pairs that get scores: ``score``, made by :func:`dual_score` of ``forward`` and ``backward``.

    These are the cross-entropies of the two models, in nats per token.

    Attributes:
        text: the pairs.
    """

    doing = "scoring"
    unit = left_out = "pairs"

    text: ParallelText

    def units(self) -> Iterator[NumberedPair]:
        """Yield the pairs."""
        return enumerate(self.text, 1)

    def work(self, *translators: "Translator") -> Work[NumberedPair]:
        """Return the function that scores a window.

        Args:
            translators: from source to target, and from target to source if there is one.
        """
        forward, backward = translators[0], translators[1] if len(translators) > 1 else None
        languages = src_lang, tgt_lang = forward.src_lang, forward.tgt_lang
        if backward is not None and (backward.tgt_lang, backward.src_lang) != languages:
            raise UserError(
                f"--reverse translates from {backward.src_lang} to {backward.tgt_lang}: to score together with a model "
                f"from {src_lang} to {tgt_lang}, it must be one from {tgt_lang} to {src_lang}"
            )
        warn = _LanguageWarning("the text")

        def scored(window: Sequence[NumberedPair], tallies: Tallies, advance: Callable[[int], object]) -> str:
            warn({src_lang: [pair.src for _, pair in window], tgt_lang: [pair.tgt for _, pair in window]})
            for number, pair in window:
                if pair.is_blank:
                    tallies[_LEFT_OUT].add(number, ["a side is empty"])
            numbers = [number for number, pair in window if not pair.is_blank]
            pairs = [pair for _, pair in window if not pair.is_blank]
            sources, targets = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
            forwards = forward.score(sources, targets, numbers=numbers)
            backwards = backward.score(targets, sources, numbers=numbers) if backward else []
            lines = []
            for pair, of_tgt, of_src in zip_longest(pairs, forwards, backwards):
                entropies = _cross_entropy(of_tgt), _cross_entropy(of_src) if of_src else None
                values = {"score": dual_score(*entropies), "forward": entropies[0], "backward": entropies[1]}
                scores = {name: float(f"{value:.5g}") for name, value in values.items() if value is not None}
                lines.append(json_line(languages, pair, scores))
            advance(len(window))
            return "".join(lines)

        return scored


def dual_score(forward: float, backward: float | None) -> float:
    """Return a score between 0 and 1 for the cross-entropies of both models, or of a single one."""
    if backward is None:
        return math.exp(-forward)
    return math.exp(-(abs(forward - backward) + (forward + backward) / 2))


def _cross_entropy(translation: Translation) -> float:
    """Return the nats per token, EOS included."""
    return -sum(translation.token_log_probs) / len(translation.token_log_probs)


class _LanguageWarning:
    """Warns, at the first window, of text that seems to be in another language than expected."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_first = True

    def __call__(self, sides: Mapping[str, Sequence[str]]) -> None:
        if self._is_first:
            first = {language: texts[:N_TEXTS] for language, texts in sides.items()}
            if warning := language_warning(self._name, first):
                log.warning("%s", warning)
        self._is_first = False


def json_line(languages: Sequence[str], texts: Sequence[str], scores: Mapping[str, float] | None = None) -> str:
    """Return a pair as a line of JSON, each text under the code of its language."""
    values = dict(zip(languages, texts, strict=True)) | dict(scores or {})
    return json.dumps(values, ensure_ascii=False) + "\n"
