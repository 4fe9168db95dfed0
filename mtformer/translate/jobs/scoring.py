"""Score translations that are given; filter and rerank by the scores."""

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mtformer.support.errors import UserError
from mtformer.support.files import require_distinct
from mtformer.support.progress import Progress
from mtformer.text.lines import input_name, is_regular_input, is_regular_output, open_output, read_lines
from mtformer.translate.jobs.documents import Paragraph
from mtformer.translate.jobs.formats import formatted
from mtformer.translate.jobs.options import Format
from mtformer.translate.jobs.windows import available, windows
from mtformer.translate.translation import Translation

if TYPE_CHECKING:
    from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)

_RERANKED_COLUMNS = (4, 5)  # line, rank, score, text; alignment


class Candidate(NamedTuple):
    """A translation to score, and the number of its line."""

    number: int
    src: str
    tgt: str


@dataclass(frozen=True)
class Scoring:
    """What is scored, and what is printed.

    Attributes:
        models: the file or folder of the model, or those of an ensemble.
        src: the sources; None if ``input`` has them.
        tgt: the translations, one for each source; None if ``input`` has them.
        input: a source, a tab and its translation on each line; or, to rerank, what ``translate --format tsv`` prints.
        output: the file to write; ``-`` is standard output.
        format: how scores are printed.
        normalize: whether a score is the mean per token, rather than the sum.
        min_score: the least score of the pairs that are printed; None for no filter.
        rerank: whether to order the translations of each line by their scores.
    """

    models: Sequence[Path]
    src: Path | None = None
    tgt: Path | None = None
    input: Path = Path("-")
    output: Path = Path("-")
    format: Format = Format.text
    normalize: bool = False
    min_score: float | None = None
    rerank: bool = False

    def check(self) -> None:
        """Refuse options that contradict each other.

        Raises:
            UserError: they do, or the output is also an input.
        """
        if self.rerank and self.src is None:
            raise UserError("--rerank needs --src: the output of translate has no sources")
        if self.rerank and (self.tgt is not None or self.min_score is not None):
            other = "--tgt" if self.tgt is not None else "--min-score"
            raise UserError(f"--rerank does not work with {other}: it reads several translations and keeps the best")
        if not self.rerank and (self.src is None) != (self.tgt is None):
            raise UserError("give --src and --tgt, or neither: then --input has a source, a tab and its translation")
        if self.min_score is not None and not math.isfinite(self.min_score):
            raise UserError(f"--min-score {self.min_score}: a score is a finite number")
        if self.tgt is not None and str(self.input) != "-":
            raise UserError("give --src and --tgt, or --input, not both")
        if [str(path) for path in self._inputs()].count("-") > 1:
            raise UserError("standard input cannot be read twice: name a file for the sources")
        require_distinct(self.output, [*self.models, *self._inputs()])

    def _inputs(self) -> list[Path]:
        if self.tgt is not None and self.src is not None:
            return [self.src, self.tgt]
        return [self.input, *([self.src] if self.src is not None else [])]

    def candidates(self) -> Iterator[Candidate]:
        """Yield the translations in order.

        Raises:
            UserError: a file cannot be read, the files have different numbers of lines, a line has too few or too many
                columns, or a source has no translation.
        """
        if self.rerank:
            return self._to_rerank()
        return self._of_files() if self.tgt is not None else self._of_columns()

    def is_stored(self) -> bool:
        """Tell whether the translations are in a file, so that nobody waits for an answer."""
        return all(str(path) != "-" and is_regular_input(path) for path in self._inputs())

    def _of_files(self) -> Iterator[Candidate]:
        assert self.src is not None
        assert self.tgt is not None
        sources, translations = read_lines(self.src), read_lines(self.tgt)
        for number, (src, tgt) in enumerate(zip_longest(sources, translations), 1):
            if src is None or tgt is None:
                ended, other = (self.src, self.tgt) if src is None else (self.tgt, self.src)
                raise UserError(f"{input_name(ended)} ends after line {number - 1}, and {input_name(other)} does not")
            yield Candidate(number, src, tgt)

    def _of_columns(self) -> Iterator[Candidate]:
        for number, line in enumerate(read_lines(self.input), 1):
            columns = line.split("\t")
            if len(columns) != 2:
                raise UserError(f"{input_name(self.input)}:{number}: expected a source, a tab and its translation")
            yield Candidate(number, *columns)

    def _to_rerank(self) -> Iterator[Candidate]:
        assert self.src is not None
        sources, last, src = read_lines(self.src), 0, ""
        for row, line in enumerate(read_lines(self.input), 1):
            columns, where = line.split("\t"), f"{input_name(self.input)}:{row}"
            if len(columns) not in _RERANKED_COLUMNS or not columns[0].isdecimal():
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
            yield Candidate(number, src, columns[3])
        if next(sources, None) is not None:
            raise UserError(
                f"{input_name(self.input)} has no translation of line {last + 1} of {self.src}, and of none after it"
            )


def run(job: Scoring, load: Callable[[], "Translator"]) -> None:
    """Score translations in order, a window at a time.

    Args:
        job: what is scored.
        load: makes the translator; called once the output is open.

    Raises:
        UserError: the options contradict each other, or the input cannot be read.
        MtformerError: the output cannot be written, or the model predicts NaN.
    """
    job.check()
    with open_output(job.output) as file, Progress("scoring", unit="pairs") as progress:
        n_lines, scored = 0, _scored(job, load(), progress)
        for text in _reranked(job, scored) if job.rerank else _printed(job, scored):
            file.write(text)
            n_lines += text.count("\n")
            if not job.is_stored():
                file.flush()
    if is_regular_output(job.output):
        log.info("%s pairs scored, %s lines written to %s", f"{progress.done:,}", f"{n_lines:,}", job.output)


def _scored(job: Scoring, translator: "Translator", progress: Progress) -> Iterator[tuple[Candidate, Translation]]:
    """Yield each candidate and its translation, whose score is the one that is asked for."""
    for window in (windows if job.is_stored() else available)(job.candidates()):
        found = translator.score(
            [candidate.src for candidate in window],
            [candidate.tgt for candidate in window],
            numbers=[candidate.number for candidate in window],
        )
        for candidate, translation in zip(window, found, strict=True):
            n_tokens = max(1, len(translation.tokens)) if job.normalize else 1
            yield candidate, replace(translation, score=translation.log_prob / n_tokens)
        progress.advance(len(window))


def _printed(job: Scoring, scored: Iterator[tuple[Candidate, Translation]]) -> Iterator[str]:
    for (number, src, tgt), translation in scored:
        if job.min_score is not None and translation.score < job.min_score:
            continue
        match job.format:
            case Format.json:
                yield formatted(Paragraph(number, src), [translation], job.format, 1)
            case Format.text if job.min_score is None:
                yield f"{translation.score:.4f}\n"
            case Format.text:
                yield f"{src}\t{tgt}\n"
            case Format.tsv:
                yield f"{translation.score:.4f}\t{src}\t{tgt}\n"


def _reranked(job: Scoring, scored: Iterator[tuple[Candidate, Translation]]) -> Iterator[str]:
    for number, group in groupby(scored, key=lambda pair: pair[0].number):
        candidates = list(group)
        translations = sorted((translation for _, translation in candidates), key=lambda t: -t.score)  # stable
        yield formatted(Paragraph(number, candidates[0][0].src), translations, job.format, 1)
