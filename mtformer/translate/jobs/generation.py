"""Sentence pairs that models make: back-translated and distilled text.

Back-translation (Sennrich et al. 2016) turns text of the target language into pairs by translating it into the source
language. Sequence-level distillation (Kim and Rush 2016) replaces the targets of the training text by the translations
of a larger model or of an ensemble, which a small one learns more easily.
"""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from mtformer.data.clean.language import N_TEXTS, language_warning
from mtformer.data.sources.parallel import ParallelText
from mtformer.support.errors import UserError
from mtformer.support.files import require_distinct
from mtformer.text.languages import UNDETERMINED
from mtformer.text.lines import is_regular_output
from mtformer.text.numbers import find_numbers
from mtformer.text.pairs import SentencePair
from mtformer.translate.guard.checks import REPAIRED_NUMBERS
from mtformer.translate.jobs.documents import Paragraph
from mtformer.translate.jobs.partial import PartialFile
from mtformer.translate.jobs.resuming import fill
from mtformer.translate.jobs.settings import described
from mtformer.translate.jobs.shards import Shard, share_of
from mtformer.translate.translation import FLAG, Translation

if TYPE_CHECKING:
    from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Generation:
    """What is translated, and where the pairs go.

    Attributes:
        models: the file or folder of the model, or those of an ensemble.
        output: the file to write: a JSON object on each line, with a text under the code of each language.
        resume: whether to continue an unfinished output.
        options: what else the translations depend on, by name; resuming needs the same ones.
    """

    models: Sequence[Path]
    output: Path
    resume: bool = False
    options: Mapping[str, object] = field(default_factory=dict)

    def check(self, inputs: Sequence[Path]) -> None:
        """Refuse an output that is no file, or that is one of the inputs.

        Raises:
            UserError: it is.
        """
        require_distinct(self.output, [*self.models, *inputs])
        if not is_regular_output(self.output):
            raise UserError(f"--output {self.output}: name a file, so that the job can be resumed")


def run(job: Generation, texts: Iterator[Paragraph], load: Callable[[], "Translator"]) -> None:
    """Translate ``texts`` and write each with its translations; the blank ones are skipped.

    A warning says so if the text does not seem to be in the language that the model reads.

    Translations that are empty or that the guard finds doubtful are left out, and counted. Those whose only number it
    has put right are not.

    Raises:
        UserError: the input cannot be read, the model's source language is not known, or an unfinished output cannot
            be continued.
        MtformerError: the output cannot be written, or the model predicts NaN.
    """
    first = list(islice(texts, N_TEXTS))

    def start() -> Callable[[Sequence[Paragraph], Counter[str]], str]:
        translator = load()
        if UNDETERMINED in (translator.src_lang, translator.tgt_lang):
            raise UserError("the pairs are named by their languages: give the one to translate from (--from)")
        if warning := language_warning("the input", {translator.src_lang: [unit.text for unit in first]}):
            log.warning("%s", warning)
        return lambda window, left_out: _pairs(translator, window, left_out)

    file = PartialFile(job.output, described(job.options, job.models))
    fill(
        file,
        chain(first, texts),
        start,
        resume=job.resume,
        doing="translating",
        unit="lines",
        left_out_of="translations",
    )


def numbered_share(text: ParallelText, shard: Shard | None) -> Iterator[tuple[int, SentencePair]]:
    """Yield the pairs of a text, or of a share of it, with their numbers from 1."""
    return share_of(lambda: enumerate(text, 1), shard)


def _pairs(translator: "Translator", window: Sequence[Paragraph], left_out: Counter[str]) -> str:
    """Translate a window, and return its pairs as lines of JSON."""
    left_out.update("not UTF-8" for unit in window if unit.problem)
    units = [unit for unit in window if not unit.problem and unit.text.strip()]
    found = translator.translate([unit.text for unit in units], numbers=[unit.number for unit in units])
    lines = []
    for unit, translations in zip(units, found, strict=True):
        for translation in translations:
            problems = _problems(unit.text, translation)
            left_out.update(problems)
            if not problems:
                pair = {translator.src_lang: unit.text, translator.tgt_lang: translation.text}
                lines.append(json.dumps(pair, ensure_ascii=False) + "\n")
    return "".join(lines)


def _problems(source: str, translation: Translation) -> list[str]:
    """Return why a translation is left out, the first reason only; nothing if it is not.

    A number that the guard has put right stands where it belongs if it is the only one.
    """
    if not translation.text.strip():
        return ["empty"]
    harmless = REPAIRED_NUMBERS if len(list(find_numbers(source))) == 1 else ()
    notes = (note.removeprefix(FLAG) for note in translation.notes if note.startswith(FLAG))
    return [note.split(":")[0] for note in notes if note not in harmless][:1]
