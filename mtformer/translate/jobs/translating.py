"""Translate a text, a file or a pipe, and print the translations in order."""

import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mtformer.support.errors import MtformerError, UserError
from mtformer.support.terminal import counted
from mtformer.text.lines import is_regular_output
from mtformer.translate.guard import with_languages_noted
from mtformer.translate.jobs.core import Job, Tallies, Tally, Work
from mtformer.translate.jobs.options import Format, OnError, Shard
from mtformer.translate.jobs.reading import Paragraph, TextInput, structured_suffix
from mtformer.translate.translation import Translation

if TYPE_CHECKING:
    from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)

_DOUBTFUL, _NOT_UTF8, _FAILED = "doubtful", "not UTF-8 text", "not translated"  # names of tallies
_ALL, _REUSED = "all", "reused"
_FEW = 10  # doubtful translations that are listed even if they are most of all
_SUFFIXES = {Format.text: "", Format.tsv: ".tsv", Format.json: ".json .jsonl"}  # of structured files


@dataclass(frozen=True, kw_only=True)
class TranslationJob(Job[Paragraph]):
    """The translations of a text.

    Attributes:
        source: the lines or paragraphs.
        format: the output format.
        n_best: the number of translations to print for each line.
        n_processes: the number of processes, each of which translates a share; several are started by torchrun.
    """

    doing = "translating"
    source: TextInput
    format: Format = Format.text
    n_best: int = 1
    n_processes: int = 1

    @property
    def unit(self) -> str:
        """Lines, or the paragraphs of a document."""
        return "paragraphs" if self.source.is_document else "lines"

    @property
    def line_file(self) -> Path | None:
        """The file, unless its lines are joined."""
        return self.source.line_file

    def inputs(self) -> list[Path]:
        """Return the input file, if any."""
        return self.source.files

    def units(self) -> Iterator[Paragraph]:
        """Yield lines or paragraphs."""
        return self.source.units()

    def check(self) -> None:
        """Refuse options that cannot be combined; see :meth:`Job.check`."""
        super().check()
        if (suffix := structured_suffix(self.output)) and suffix not in _SUFFIXES[self.format].split():
            raise UserError(
                f"--output {self.output}: lines of text cannot be written as a {suffix} file: name a .txt file, give "
                "--format tsv or json for a .tsv or .json file, or translate a document of that kind"
            )
        if self.shard is not None:
            self.source.require_file("--shard")
        if self.n_processes > 1 and self.shard is not None:
            raise UserError("--shard does not work with several processes: each of them translates a share")
        if self.n_processes > 1 and not (self.source.is_file and is_regular_output(self.output)):
            raise UserError("several processes (--nproc) need --input and --output with files")
        if self.source.is_document and self.n_best > 1 and self.format is Format.text:
            raise UserError("--document with --n-best needs --format tsv or json")
        if self.n_processes > 1 or self.resume:
            self._require_no_other_shares()

    def _require_no_other_shares(self) -> None:
        """Refuse to abandon unfinished shares of a different number of processes."""
        share = rf"{re.escape(self.output.stem)}\.\d+-of-(\d+){re.escape(self.output.suffix)}\.part"
        folder = self.output.absolute().parent
        matches = (re.fullmatch(share, path.name) for path in (folder.iterdir() if folder.is_dir() else ()))
        for n_shares in {int(match[1]) for match in matches if match} - {self.n_processes}:
            raise UserError(
                f"{self.output} has unfinished shares of {n_shares} processes: continue them with --nproc {n_shares} "
                f"--resume, or delete {self.share(Shard(1, n_shares)).output}.part and the like to start over"
            )

    def share(self, shard: Shard) -> "TranslationJob":
        """Return the job that translates a share: ``out.1-of-4.de`` for ``out.de``."""
        name = f"{self.output.stem}.{shard.index}-of-{shard.count}{self.output.suffix}"
        return replace(self, shard=shard, output=self.output.with_name(name), n_processes=1)

    def settings(self) -> dict[str, str]:
        """Leave out ``--on-error stop``; see :meth:`Job.settings`."""
        # What comes before a bad line is the same with every --on-error: a job that it stopped may resume with another.
        options = {name: value for name, value in self.options.items() if value != OnError.stop}
        return super(TranslationJob, replace(self, options=options)).settings()

    def work(self, *translators: "Translator") -> Work[Paragraph]:
        """Return the function that translates and formats a window."""
        [translator] = translators

        def printed(window: Sequence[Paragraph], tallies: Tallies, advance: Callable[[int], object]) -> str:
            def fail(index: int, error: MtformerError) -> list[Translation]:
                tallies[_FAILED].add(window[index].number, [_FAILED])
                [[empty, *_]] = translator.translate([""])
                return [self._stand_in(window[index], f"failed: {error}", empty)]

            texts = ["" if unit.problem else unit.text for unit in window]
            places = [self.place(unit.number) for unit in window]
            on_error = None if self.source.on_error is OnError.stop else fail
            results = translator.translate(texts, numbers=places, on_progress=advance, on_error=on_error)
            results = with_languages_noted(texts, results, translator.src_lang)
            blocks = []
            for unit, translations in zip(window, results, strict=True):
                if unit.problem:
                    tallies[_NOT_UTF8].add(unit.number, [_NOT_UTF8])
                    translations = [self._stand_in(unit, _NOT_UTF8, translations[0])]
                tallies[_ALL].add(unit.number, ["text"] * bool(unit.text.strip()))
                tallies[_DOUBTFUL].add(unit.number, translations[0].flags)
                tallies[_REUSED].add(unit.number, _reuse(translations[0]))
                blocks.append(formatted(unit, translations, self.format, self.n_best))
            return "".join(blocks)

        return printed

    def warn(self, tallies: Tallies) -> None:
        """Log which lines have not been translated and which translations are doubtful."""
        for kind, how in ((_NOT_UTF8, " with U+FFFD for the bad bytes"), (_FAILED, "")):
            if tallies[kind].n_lines:
                what = f"copied{how}" if self._copies else "replaced by empty lines"
                log.warning("%s: %s, %s", kind, self.places(tallies[kind]), what)
        if (reused := tallies[_REUSED]).n_lines:
            log.info("from the translation memory: %s, %s", self.places(reused), reused)
        elif self.options.get("memory", [None]) != [None]:
            log.info("from the translation memory: nothing")
        doubtful = tallies[_DOUBTFUL]
        if doubtful.n_lines == len(doubtful.details):
            for line, reasons in zip(doubtful.first, doubtful.details, strict=True):
                log.warning("check the translation of %s: %s", self.place(line), reasons)
        elif doubtful.n_lines > max(_FEW, tallies[_ALL].n_lines / 2):
            log.warning(
                "most translations are doubtful, %s of %s: %s; the model reads another language or knows too little",
                *(f"{doubtful.n_lines:,}", f"{tallies[_ALL].n_lines:,} {self.unit}", doubtful),
            )
        else:
            what = "check the translation of %s: %s; --format json has the notes of each"
            log.warning(what, self.places(doubtful), doubtful)

    def place(self, number: int) -> str:
        """Return the name of a line or paragraph in messages."""
        return f"line {number}"

    def places(self, tally: Tally) -> str:
        """Return the number of lines in a tally, and the first ones, for messages."""
        return f"{counted(tally.n_lines, 'line')} ({tally.lines})"

    @property
    def _copies(self) -> bool:
        return self.source.on_error is OnError.copy

    def _stand_in(self, unit: Paragraph, reason: str, empty: Translation) -> Translation:
        """Return a stand-in for the translation of a line, made from the translation of an empty line."""
        note = f"{reason}: {'copied' if self._copies else 'skipped'}"
        return replace(empty, text=unit.text if self._copies else "", notes=(note,))


def formatted(source: Paragraph, translations: Sequence[Translation], format: Format, n_best: int) -> str:
    """Format the translations of a line, or of a paragraph of a document.

    In text form, ``n_best`` translations are a block of as many lines, and an empty one. Where the search found fewer,
    empty lines fill the block, so that a program can count.
    """
    match format:
        case Format.text if n_best == 1:
            return source.laid_out(translations[0].text) + _pharaoh(translations[0], " ||| ") + "\n"
        case Format.text:
            texts = [t.text + _pharaoh(t, " ||| ") for t in translations]
            return "".join(f"{text}\n" for text in [*texts, *[""] * (n_best + 1 - len(texts))])
        case Format.tsv:
            rows = [(f"{t.score:.4f}", t.text.replace("\t", " ") + _pharaoh(t, "\t")) for t in translations]
            return "".join(f"{source.number}\t{rank}\t{score}\t{text}\n" for rank, (score, text) in enumerate(rows, 1))
        case Format.json:
            objects = [translation.to_dict() for translation in translations]
            values = {"line": source.number, "src": source.text, "translations": objects}
            return json.dumps(values, ensure_ascii=False) + "\n"


def _reuse(translation: Translation) -> list[str]:
    """Return, as reasons for a tally, how much of a translation is from the memory; empty if nothing is."""
    reused = ["in part" if translation.tokens else "whole"] if translation.memory else []
    return [*reused, "fuzzy"] if translation.fuzzy else reused


def _pharaoh(translation: Translation, before: str) -> str:
    """Return the word alignment, if there is one."""
    return "" if translation.alignment is None else before + translation.alignment.pharaoh()
