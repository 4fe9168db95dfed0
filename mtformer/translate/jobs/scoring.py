"""Score given translations; filter and rerank by the scores."""

import logging
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from operator import itemgetter
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

_LINE_NUMBER = re.compile(r"\d{1,18}")
_RERANKED_COLUMNS = (4, 5)  # line, rank, score, text; alignment


class Candidates(NamedTuple):
    """The translations of a line to score: one, or several to rerank."""

    number: int
    src: str
    translations: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ScoringJob(Job[Candidates]):
    """The scores of given translations.

    Attributes:
        src: the sources; None if ``input`` has them.
        tgt: the translations, one for each source; None if ``input`` has them.
        input: a source, a tab and its translation on each line; or, to rerank, output of ``translate --format tsv``.
        format: the output format.
        normalize: whether a score is the mean per token instead of the sum.
        min_score: the minimum score of printed pairs; None for no filter.
        rerank: whether to order the translations of each line by their scores.
    """

    doing = "scoring"

    src: Path | None = None
    tgt: Path | None = None
    input: Path = Path("-")
    format: Format = Format.text
    normalize: bool = False
    min_score: float | None = None
    rerank: bool = False

    @property
    def unit(self) -> str:
        """Pairs, or the lines whose translations are reranked."""
        return "lines" if self.rerank else "pairs"

    @property
    def line_file(self) -> Path:
        """The file of the sources, or of the pairs."""
        return self.src or self.input

    def inputs(self) -> list[Path]:
        """Return the files of the sources and of the translations."""
        if self.tgt is not None and self.src is not None:
            return [self.src, self.tgt]
        return [self.input, *([self.src] if self.src is not None else [])]

    def check(self) -> None:
        """Refuse options that contradict each other; see :meth:`Job.check`."""
        if self.rerank and self.src is None:
            raise UserError("--rerank needs --src: the output of translate has no sources")
        if self.rerank and (self.tgt is not None or self.min_score is not None):
            option = "--tgt" if self.tgt is not None else "--min-score"
            raise UserError(f"--rerank does not work with {option}: it reads several translations and keeps the best")
        if not self.rerank and (self.src is None) != (self.tgt is None):
            raise UserError("give --src and --tgt, or an --input with a source, a tab and its translation on each line")
        if self.min_score is not None and not math.isfinite(self.min_score):
            raise UserError(f"--min-score {self.min_score}: a score is a finite number")
        if self.tgt is not None and str(self.input) != "-":
            raise UserError("give --src and --tgt, or --input, not both")
        if [str(path) for path in self.inputs()].count("-") > 1:
            raise UserError("standard input cannot be read twice: name a file for the sources")
        super().check()

    def units(self) -> Iterator[Candidates]:
        """Yield the translations in order.

        Raises:
            UserError: a file cannot be read, the files have different numbers of lines, a line has too few or too many
                columns, or a source has no translation.
        """
        if self.rerank:
            for (number, src), rows in groupby(self._to_rerank(), key=itemgetter(0, 1)):
                yield Candidates(number, src, tuple(tgt for _, _, tgt in rows))
        else:
            for number, (src, tgt) in enumerate(self._of_files() if self.tgt is not None else self._of_columns(), 1):
                yield Candidates(number, src, (tgt,))

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

    def _to_rerank(self) -> Iterator[tuple[int, str, str]]:
        """Yield the line number, source and translation of each row."""
        assert self.src is not None
        sources, last, src = read_lines(self.src), 0, ""
        for row, line in enumerate(read_lines(self.input), 1):
            columns, where = line.split("\t"), f"{input_name(self.input)}:{row}"
            if len(columns) not in _RERANKED_COLUMNS or not _LINE_NUMBER.fullmatch(columns[0]):
                raise UserError(f"{where}: expected a line of translate --format tsv: number, rank, score and text")
            number = int(columns[0])
            if number < max(last, 1):
                raise UserError(f"{where}: line {number} comes after line {last}")
            if number > last + 1:
                raise UserError(f"{where}: line {last + 1} of {self.src} has no translation; here is line {number}")
            if number > last:
                if (following := next(sources, None)) is None:
                    raise UserError(f"{where}: {self.src} has no line {number}")
                last, src = number, following
            yield number, src, columns[3]
        if next(sources, None) is not None:
            raise UserError(
                f"{input_name(self.input)} has no translation of line {last + 1} of {self.src}, and of none after it"
            )

    def work(self, *translators: "Translator") -> Work[Candidates]:
        """Return the function that scores and formats a window."""
        [translator] = translators

        def printed(window: Sequence[Candidates], tallies: Tallies, advance: Callable[[int], object]) -> str:
            lines = [line for line in window for _ in line.translations]
            sources, numbers = [line.src for line in lines], [line.number for line in lines]
            targets = [tgt for line in window for tgt in line.translations]
            results = translator.score(sources, targets, numbers=numbers)
            scored = iter(map(self._with_score, results))
            texts = [self._printed(line, [next(scored) for _ in line.translations]) for line in window]
            advance(len(window))
            return "".join(texts)

        return printed

    def _with_score(self, translation: Translation) -> Translation:
        n_tokens = max(1, len(translation.tokens)) if self.normalize else 1
        return replace(translation, score=translation.log_prob / n_tokens)

    def _printed(self, line: Candidates, scored: Sequence[Translation]) -> str:
        if self.rerank or self.format is Format.json:
            best_first = sorted(scored, key=lambda translation: -translation.score)  # stable
            least = -math.inf if self.min_score is None else self.min_score
            kept = [translation for translation in best_first if translation.score >= least]
            return formatted(Paragraph(line.number, line.src), kept, self.format, 1) if kept else ""
        [translation] = scored
        if self.min_score is not None and translation.score < self.min_score:
            return ""
        texts = (text.replace("\t", " ") for text in (line.src, translation.text))
        columns = [f"{translation.score:.4f}", *texts]
        if self.format is Format.text:
            columns = columns[:1] if self.min_score is None else columns[1:]
        return "\t".join(columns) + "\n"

    def report(self, done: Done, n_before: int, tallies: Tallies) -> None:
        """Log the number of scored pairs."""
        noun, verb = ("line", "reranked") if self.rerank else ("pair", "scored")
        log.info(
            "%s %s, %s written to %s", counted(done.n_units, noun), verb, counted(done.n_lines, "line"), self.output
        )
