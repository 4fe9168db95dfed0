"""Read the text of a config once, and note what is wrong with it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.config import Config, DataConfig, FilterName, LanguagePair, Source
from mtformer.data.clean.filters import Filters, filters_of, rule_of
from mtformer.data.clean.learned import LearnedRules
from mtformer.data.clean.lengths import Lengths, measure_lengths
from mtformer.data.clean.slips import Slip, find_slips, offset_of
from mtformer.data.drops import Drops
from mtformer.data.held_out import held_out_share
from mtformer.data.reservoir import Reservoir
from mtformer.data.sources.parallel import ParallelText, source_name
from mtformer.support.processes.workers import in_order
from mtformer.support.progress import Progress
from mtformer.text.pairs import Example, SentencePair
from mtformer.text.tokenizer.tokenizer import Tokenizer

_CHUNK = 10_000
_EXAMPLES = 3  # of each problem and source
_FOR_LENGTHS = 20_000  # random pairs of all training sources
_SEED = 1
_AROUND = 250  # pairs at the beginning of a passage

MISALIGNED, HELD_OUT = "misaligned", "held_out"
_RULES_OF_EVALUATION: tuple[FilterName, ...] = (
    "empty",
    "too_long",
    "encoding",
    "copy",
    "script",
    "length_ratio",
    "repetition",
    "numbers",
    "urls",
    "markup",
    "language",
    "duplicates",
)


@dataclass
class SourceCheck:
    """What is wrong with a source.

    Attributes:
        part: the source by itself.
        use: ``train``, ``valid`` or ``test``.
        n_pairs: how many pairs it has.
        blank: lines that contain no pair.
        problems: the number of pairs that each rule would drop.
        examples: the first of them.
        n_exact: of the pairs in the validation or test set, those with a sentence that is there exactly.
        slips: the passages that are out of alignment, by the numbers of their pairs.
        slip_lines: the first and the last line of each.
        dropped: (N,) for each pair, the index of its problem in ``names``; -1 for none.
        names: the problems.
    """

    part: ParallelText
    use: str
    n_pairs: int = 0
    blank: Drops = field(default_factory=Drops)
    problems: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[Example]] = field(default_factory=dict)
    n_exact: int = 0
    slips: list[Slip] = field(default_factory=list)
    slip_lines: list[tuple[int, int]] = field(default_factory=list)
    dropped: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, dtype=np.int8))
    names: list[str] = field(default_factory=list)

    @property
    def source(self) -> Source:
        """Where the pairs come from."""
        return self.part.sources[0]

    @property
    def name(self) -> str:
        """What messages call the source."""
        return source_name(self.source)

    @property
    def languages(self) -> LanguagePair:
        """The languages of its pairs."""
        return LanguagePair(self.part.src_lang, self.part.tgt_lang)


class Checkup(NamedTuple):
    """What is wrong with the text of a config.

    Attributes:
        sources: each source, in order: those to train on, to validate, to test.
        lengths: tokens of the training text; None if it is empty.
        held_out: about how many pairs training will hold out for each part of the data without sources.
    """

    sources: list[SourceCheck]
    lengths: Lengths | None
    held_out: dict[str, int]

    @property
    def n_problems(self) -> int:
        """The number of pairs with a problem; a source without pairs is one, too."""
        return sum(source.problems.total() or not source.n_pairs for source in self.sources)


class _Portion(NamedTuple):
    examples: list[Example]
    pairs: list[SentencePair]


class _Judged(NamedTuple):
    reasons: list[str | None]
    log_odds: NDArray[np.float64] | None


def check(config: Config, tokenizer: Tokenizer | None = None) -> Checkup:
    """Apply all rules of ``data.filters`` to the text of a config, find slips, and measure lengths in tokens.

    Args:
        config: the config.
        tokenizer: that of the model of ``training.init_from``, to measure with; None if there is none.

    Raises:
        UserError: the text cannot be read.
    """
    data = config.data
    by_direction = filters_of(data.model_copy(update={"filters": ["all"]}))
    checked: list[SourceCheck] = []
    sample = Reservoir[SentencePair](_FOR_LENGTHS, _SEED)
    with Progress("checking the text", unit="pairs") as progress:
        for part in ParallelText(data.train, data.src_lang, data.tgt_lang).parts():
            filters = by_direction[LanguagePair(part.src_lang, part.tgt_lang)]
            checked.append(_check_source(part, "train", filters, progress, sample))
        for use, sources in (("valid", data.valid), ("test", data.test)):
            for part in ParallelText(sources, data.src_lang, data.tgt_lang).parts():
                # Nothing is held out from these, and duplicates are counted within each.
                own = Filters(_RULES_OF_EVALUATION, LanguagePair(part.src_lang, part.tgt_lang))
                checked.append(_check_source(part, use, own, progress, sample))
    n_pairs = sum(one.n_pairs for one in checked if one.use == "train")
    lengths = measure_lengths(config, sample.items, n_pairs, tokenizer)
    return Checkup(checked, lengths, _held_out(data, checked))


def _held_out(data: DataConfig, checked: Sequence[SourceCheck]) -> dict[str, int]:
    """Estimate how many pairs training will hold out for each part of the data without sources."""
    sizes = Counter[LanguagePair]()
    for source in checked:
        if source.use == "train" and not source.source.tag:
            sizes[source.languages] += source.n_pairs
    return dict.fromkeys(data.held_out, sum(round(held_out_share(n) * n) for n in sizes.values()))


def _check_source(
    part: ParallelText, use: str, filters: Filters, progress: Progress, sample: Reservoir[SentencePair]
) -> SourceCheck:
    """Check a source; if it is one to train on, add its pairs to ``sample``."""
    found = SourceCheck(part, use, names=filters.names)
    dropped: list[NDArray[np.int8]] = []
    log_odds: list[NDArray[np.float64]] = []
    lines: list[NDArray[np.int64]] = []
    number_of = {name: number for number, name in enumerate(found.names)}
    for portion, judged in in_order(partial(_judge, filters), _portions(part, found.blank)):
        reasons = filters.corpus_reasons(portion.pairs, judged.reasons)
        for pair in portion.pairs if use == "train" else ():
            sample.add(pair)
        names = [reason and rule_of(reason) for reason in reasons]
        for name, example in zip(names, portion.examples, strict=True):
            if name and len(found.examples.setdefault(name, [])) < _EXAMPLES:
                found.examples[name].append(example)
        leaked = [pair for name, pair in zip(names, portion.pairs, strict=True) if name == HELD_OUT]
        found.n_exact += sum(filters.held_out.contains(leaked, languages=found.languages, near=False))
        dropped.append(np.array([number_of[name] if name else -1 for name in names], dtype=np.int8))
        lines.append(np.array([example.line for example in portion.examples]))
        log_odds += [] if judged.log_odds is None else [judged.log_odds]
        found.n_pairs += len(portion.pairs)
        progress.advance(len(portion.pairs))
    if dropped:
        found.dropped = np.concatenate(dropped)
    if log_odds and filters.learned:
        slips = find_slips(np.concatenate(log_odds))
        found.slips = list(_with_offsets(slips, part, filters.learned))
        numbers = np.concatenate(lines)
        found.slip_lines = [(int(numbers[slip.first]), int(numbers[slip.end - 1])) for slip in slips]
        for slip in slips:
            passage = found.dropped[slip.first : slip.end]
            passage[passage < 0] = number_of[MISALIGNED]
    counts = np.bincount(found.dropped[found.dropped >= 0], minlength=len(found.names))
    found.problems = Counter({name: int(n) for name, n in zip(found.names, counts, strict=True) if n})
    return found


def _portions(part: ParallelText, blank: Drops) -> Iterator[_Portion]:
    examples = part.examples(blank)
    while chunk := list(islice(examples, _CHUNK)):
        yield _Portion(chunk, [SentencePair(example.src, example.tgt) for example in chunk])


def _judge(filters: Filters, portion: _Portion) -> _Judged:
    """Apply the rules that look at one pair at a time; other processes may call this."""
    learned = filters.learned
    return _Judged(filters.pair_reasons(portion.pairs), learned.misalignment(portion.pairs) if learned else None)


def _with_offsets(slips: Sequence[Slip], part: ParallelText, learned: LearnedRules) -> Iterator[Slip]:
    """Reread the first pairs of each passage, and return where the translations of their sources are."""
    pairs, n_read = iter(part), 0
    for slip in slips:
        end = min(slip.end, slip.first + _AROUND)
        beginning = list(islice(pairs, slip.first - n_read, end - n_read))
        n_read = end
        yield slip._replace(offset=offset_of(beginning, learned.misalignment))
