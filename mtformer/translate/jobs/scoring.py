"""Score given translations, and filter them by the scores."""

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mtformer.support.errors import UserError
from mtformer.support.terminal import counted
from mtformer.text.lines import input_name, read_lines
from mtformer.translate.jobs.core import Job, Tallies, Work
from mtformer.translate.jobs.options import Format
from mtformer.translate.jobs.partial import Done
from mtformer.translate.jobs.reading import Paragraph
from mtformer.translate.jobs.translating import formatted
from mtformer.translate.translation import Translation

if TYPE_CHECKING:
    from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)


class NumberedPair(NamedTuple):
    """A source and its translation, and the number of their line."""

    number: int
    src: str
    tgt: str


@dataclass(frozen=True, kw_only=True)
class ScoringJob(Job[NumberedPair]):
    """The scores of given translations.

    Attributes:
        src: the sources; None if ``input`` has them.
        tgt: the translations, one for each source; None if ``input`` has them.
        input: a source, a tab and its translation on each line, instead of both.
        format: the output format.
        normalize: whether a score is the mean per token instead of the sum.
        min_score: the minimum score of printed pairs; None for no filter.
    """

    doing = "scoring"
    unit = "pairs"

    src: Path | None = None
    tgt: Path | None = None
    input: Path = Path("-")
    format: Format = Format.text
    normalize: bool = False
    min_score: float | None = None

    def inputs(self) -> list[Path]:
        """Return the files of the sources and of the translations."""
        return [self.src, self.tgt] if self.src is not None and self.tgt is not None else [self.input]

    def countable(self) -> Path:
        """Return the file of the sources, or of the pairs; see :meth:`Job.countable`."""
        return self.src or self.input

    def check(self) -> None:
        """Refuse options that contradict each other; see :meth:`Job.check`."""
        if (self.src is None) != (self.tgt is None):
            raise UserError("give --src and --tgt, or an --input with a source, a tab and its translation on each line")
        if self.min_score is not None and not math.isfinite(self.min_score):
            raise UserError(f"--min-score {self.min_score}: a score is a finite number")
        if self.tgt is not None and str(self.input) != "-":
            raise UserError("give --src and --tgt, or --input, not both")
        if [str(path) for path in self.inputs()].count("-") > 1:
            raise UserError("standard input cannot be read twice: name a file for the sources")
        super().check()

    def units(self) -> Iterator[NumberedPair]:
        """Yield the translations in order.

        Raises:
            UserError: a file cannot be read, the files have different numbers of lines, or a line has too few or too
                many columns.
        """
        for number, (src, tgt) in enumerate(self._of_files() if self.tgt is not None else self._of_columns(), 1):
            yield NumberedPair(number, src, tgt)

    def _of_files(self) -> Iterator[tuple[str, str]]:
        assert self.src is not None
        assert self.tgt is not None
        sources, translations = read_lines(self.src), read_lines(self.tgt)
        for number, (src, tgt) in enumerate(zip_longest(sources, translations), 1):
            if src is None or tgt is None:
                shorter, longer = (self.src, self.tgt) if src is None else (self.tgt, self.src)
                raise UserError(
                    f"{input_name(shorter)} ends after line {number - 1}, and {input_name(longer)} does not"
                )
            yield src, tgt

    def _of_columns(self) -> Iterator[tuple[str, str]]:
        for number, line in enumerate(read_lines(self.input), 1):
            src, tab, tgt = line.partition("\t")
            if not tab or "\t" in tgt:
                raise UserError(f"{input_name(self.input)}:{number}: expected a source, a tab and its translation")
            yield src, tgt

    def work(self, *translators: "Translator") -> Work[NumberedPair]:
        """Return the function that scores and formats a window."""
        [translator] = translators

        def printed(window: Sequence[NumberedPair], tallies: Tallies, advance: Callable[[int], object]) -> str:
            numbers, sources, translations = zip(*window, strict=True)
            results = translator.score(sources, translations, numbers=numbers)
            texts = [self._printed(*each) for each in zip(window, map(self._with_score, results), strict=True)]
            advance(len(window))
            return "".join(texts)

        return printed

    def _with_score(self, translation: Translation) -> Translation:
        n_tokens = max(1, len(translation.tokens)) if self.normalize else 1
        return replace(translation, score=translation.log_prob / n_tokens)

    def _printed(self, pair: NumberedPair, translation: Translation) -> str:
        if self.min_score is not None and translation.score < self.min_score:
            return ""
        if self.format is Format.json:
            return formatted(Paragraph(pair.number, pair.src), [translation], self.format, 1)
        columns = [f"{translation.score:.4f}", pair.src, translation.text]
        if self.format is Format.text:
            columns = columns[:1] if self.min_score is None else columns[1:]
        return "\t".join(columns) + "\n"

    def report(self, done: Done, n_before: int, tallies: Tallies) -> None:
        """Log the number of scored pairs."""
        log.info(
            "%s scored, %s written to %s", counted(done.n_units, "pair"), counted(done.n_lines, "line"), self.output
        )
