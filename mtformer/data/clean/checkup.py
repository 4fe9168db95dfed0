"""Check the text of a config: bad pairs, passages out of alignment, lengths in tokens."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from mtformer.config import FILTERS, Config, DataConfig, LanguagePair
from mtformer.config.sources import SOURCES
from mtformer.data.clean.filters import LEARNED, Filters, Judgement, filters_of, of_direction
from mtformer.data.clean.source_check import HELD_OUT, SourceCheck, SourceChecker
from mtformer.data.clean.token_lengths import Lengths, measure_lengths
from mtformer.data.held_out import held_out_share, is_apart
from mtformer.data.sources.parallel import ParallelText, Reservoir, file_version, require_readable
from mtformer.data.store import Portion, text_portions
from mtformer.support.errors import UserError
from mtformer.support.processes.workers import in_order
from mtformer.support.progress import Progress
from mtformer.text.lines import input_name
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import Tokenizer

_FOR_LENGTHS = 20_000  # random pairs of all training sources
_SEED = 1
_NEVER_HELD_OUT = "empty", "duplicates", "near_duplicates"  # with another pair, all its copies are
# Rules for training text alone; duplicates are counted within each validation and test set.
_NOT_IN_EVALUATION = {*LEARNED, HELD_OUT, "near_duplicates", "many_targets"}


class Checkup(NamedTuple):
    """The problems of the text of a config.

    Attributes:
        sources: each source, in order: those to train on, to validate, to test. One that slips has been realigned.
        lengths: tokens of the training text; None if it is empty.
        held_out: about how many pairs training will hold out for each part of the data without sources.
    """

    sources: list[SourceCheck]
    lengths: Lengths | None
    held_out: dict[str, int]

    @property
    def n_problems(self) -> int:
        """The number of problems: bad pairs, passages out of alignment, and sources without pairs or translations."""
        return sum(
            source.problems.total() + len(source.slips) + (not source.n_pairs or source.has_no_translations)
            for source in self.sources
        )


def check(config: Config, tokenizer: Tokenizer | None = None) -> Checkup:
    """Apply all rules of ``data.filters`` to the text of a config, find slips, and measure lengths in tokens.

    Args:
        config: the config.
        tokenizer: that of the model of ``training.init_from``, to measure with; None if there is none.

    Raises:
        UserError: the text cannot be read, or there is none.
    """
    data = config.data
    texts = {
        use: ParallelText(getattr(data, use), data.src_lang, data.tgt_lang, lenient=use == "train") for use in SOURCES
    }
    require_readable(texts.values())
    checkers = list(_checkers(data, texts))
    sample = Reservoir[SentencePair](_FOR_LENGTHS, _SEED)
    for portion in _judged(checkers, "checking the text"):
        for pair in portion.pairs if checkers[portion.source].use == "train" else ():
            sample.add(pair)
    sources = [checker.finish() for checker in checkers]
    if not any(source.n_pairs for source in sources):
        names = ", ".join(dict.fromkeys(name for source in sources for name in map(input_name, source.part.files)))
        raise UserError(f"there is nothing to check: no sentence pairs in {names}")
    n_pairs = sum(source.n_pairs for source in sources if source.use == "train")
    lengths = measure_lengths(config, sample.items, n_pairs, tokenizer)
    held_out = _held_out(data, sources)
    train = [source for source in sources if source.use == "train"]
    if any(source.slips for source in train):
        sources = _realigned(train) + sources[len(train) :]
    return Checkup(sources, lengths, held_out)


def _realigned(sources: Sequence[SourceCheck]) -> list[SourceCheck]:
    """Return training sources realigned, with rules learned from the realigned text.

    Rules learned from text out of alignment would reject good pairs.

    Raises:
        UserError: a source cannot be read a second time, or it has changed.
    """
    parts = [source.realigned for source in sources]
    filters = {
        source.languages: Filters(
            source.filters.names, source.languages, source.filters.held_out, of_direction(parts, source.languages)
        )
        for source in sources
    }
    checkers = [
        SourceChecker(part, "train", filters[part.languages], source.versions)
        for part, source in zip(parts, sources, strict=True)
    ]
    for _ in _judged(checkers, "checking the realigned text"):
        pass
    checked = (checker.finish() for checker in checkers)
    return [
        replace(
            again,
            slips=source.slips,
            is_surely_aligned=source.is_surely_aligned,
            is_foreign=source.is_foreign,
            n_lost=source.n_pairs - again.n_pairs,
        )
        for source, again in zip(sources, checked, strict=True)
    ]


def _judged(checkers: Sequence[SourceChecker], what: str) -> Iterator[Portion]:
    """Apply the rules of sources to their text, and yield the text."""
    for checker in checkers:
        checker.filters.learn()  # before the progress of judging, whose rate would be wrong
    judge = partial(_judge, [checker.filters for checker in checkers])
    with Progress(what, unit="pairs") as progress:
        portions = text_portions([checker.part for checker in checkers], [checker.blank for checker in checkers])
        for portion, judgement in in_order(judge, portions):
            checkers[portion.source].add(portion, judgement)
            progress.advance(len(portion.pairs))
            yield portion


def _held_out(data: DataConfig, checked: Sequence[SourceCheck]) -> dict[str, int]:
    """Estimate how many pairs training will hold out for each part of the data without sources."""
    sizes, n_possible = Counter[LanguagePair](), Counter[LanguagePair]()
    for source in checked:
        if source.use == "train" and not is_apart(source.source):
            sizes[source.languages] += source.n_pairs
            n_possible[source.languages] += source.n_pairs - sum(source.problems[rule] for rule in _NEVER_HELD_OUT)
    enough = {languages: n for languages, n in n_possible.items() if n > len(data.held_out)}
    n_held_out = sum(max(1, round(held_out_share(sizes[languages]) * n)) for languages, n in enough.items())
    return dict.fromkeys(data.held_out, n_held_out)


def _checkers(data: DataConfig, texts: Mapping[str, ParallelText]) -> Iterator[SourceChecker]:
    by_direction = filters_of(data.model_copy(update={"filters": ["all"]}), lenient=True)
    of_evaluation = FILTERS.keys() - _NOT_IN_EVALUATION
    for use, text in texts.items():
        for part in text.parts():
            filters = by_direction[part.languages] if use == "train" else Filters(of_evaluation, part.languages)
            yield SourceChecker(part, use, filters, {path: file_version(path) for path in part.files})


def _judge(filters: Sequence[Filters], portion: Portion) -> Judgement:
    """Apply the rules that look at one pair at a time; other processes may call this."""
    return filters[portion.source].judge(portion.pairs, align=True)
