"""The problems of one source of a text, and how they are collected."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.config import LanguagePair, Source
from mtformer.data.clean.filters import Filters, Judgement
from mtformer.data.clean.learned import MISALIGNED
from mtformer.data.clean.line_lengths import aligned_by_lengths, are_surely_aligned, are_unrelated, lengths_of
from mtformer.data.clean.passages import Passage, Slip, slips_of
from mtformer.data.clean.realign import RealignedText, aligned
from mtformer.data.sources.parallel import ParallelText, Versions, source_name
from mtformer.data.store import Portion
from mtformer.text.lines import without_escapes
from mtformer.text.pairs import Drops, Example

HELD_OUT = "held_out"
_EXAMPLES = 3  # of each problem and source
FOREIGN = "script", "language"  # the rules that find text in other languages than expected


@dataclass(frozen=True)
class SourceCheck:
    """The problems of a source.

    Attributes:
        part: the source by itself.
        use: ``train``, ``valid`` or ``test``.
        filters: the rules that it was checked with.
        versions: of its files when the check began.
        blank: lines that contain no pair.
        rules: (N,) for each pair, the index in ``filters.names`` of the rule that would drop it; -1 for none.
        n_exact: of the pairs in the validation or test set, those with a sentence that is there exactly.
        examples: some pairs that each rule would drop, the most certain ones first, or else the first ones.
        passages: all of its pairs, by how far away the translations of the sources are.
        slips: those passages that are out of alignment.
        is_surely_aligned: whether the text shows that all other pairs are translations.
        is_unrelated: whether the lengths of its lines show that none are.
        is_foreign: whether most of its pairs are in other languages than expected.
        n_lost: how many more pairs it had before it was realigned: those of sources without a translation.
    """

    part: ParallelText
    use: str
    filters: Filters
    versions: Versions
    blank: Drops
    rules: NDArray[np.int8]
    n_exact: int
    examples: dict[str, list[Example]]
    passages: list[Passage]
    slips: list[Slip]
    is_surely_aligned: bool
    is_unrelated: bool
    is_foreign: bool
    n_lost: int = 0

    @property
    def source(self) -> Source:
        """The source of the pairs."""
        return self.part.sources[0]

    @property
    def name(self) -> str:
        """The name of the source in messages."""
        return source_name(self.source)

    @property
    def languages(self) -> LanguagePair:
        """The languages of its pairs."""
        return self.part.languages

    @property
    def n_pairs(self) -> int:
        """How many pairs it has."""
        return len(self.rules)

    @property
    def has_no_translations(self) -> bool:
        """Whether hardly any of its pairs look like translations, so that none is misaligned more than the others."""
        learned = self.filters.learned
        return self.is_unrelated or (learned is not None and learned.finds_no_translations)

    @property
    def problems(self) -> Counter[str]:
        """The number of pairs that each rule would drop; pairs lost by realigning count as misaligned."""
        return +Counter({MISALIGNED: self.n_lost}) + _counts(self.rules, self.filters.names)

    @property
    def realigned(self) -> RealignedText:
        """The sources with their translations."""
        if isinstance(self.part, RealignedText):
            return self.part
        return RealignedText([self.source], *self.languages, passages=self.passages, n_pairs=self.n_pairs)


def _counts(rules: NDArray[np.int8], names: Sequence[str]) -> Counter[str]:
    """Count the pairs that each rule would drop."""
    counts = np.bincount(rules[rules >= 0], minlength=len(names)).tolist()
    return Counter(dict(zip(names, counts, strict=True)))


class _Alignment(NamedTuple):
    """What the text shows of its alignment: attributes of :class:`SourceCheck`."""

    passages: list[Passage]
    is_surely_aligned: bool = True
    is_unrelated: bool = False


@dataclass
class SourceChecker:
    """Collects the problems of a source.

    Attributes:
        part: the source by itself.
        use: ``train``, ``valid`` or ``test``.
        filters: the rules to check it with.
        versions: of its files when the check began.
        blank: lines that contain no pair.
    """

    part: ParallelText
    use: str
    filters: Filters
    versions: Versions = field(default_factory=dict)
    blank: Drops = field(default_factory=Drops)
    _n_exact: int = 0
    _examples: dict[str, list[tuple[float, Example]]] = field(default_factory=dict)
    _lines: list[NDArray[np.int64]] = field(default_factory=list)
    _rules: list[NDArray[np.int8]] = field(default_factory=list)
    _lengths: list[NDArray[np.int32]] = field(default_factory=list)
    _log_odds: list[NDArray[np.float64]] = field(default_factory=list)

    def add(self, portion: Portion, judgement: Judgement) -> None:
        """Add the next pairs, with the judgements of the rules for single pairs."""
        rules = self.filters.corpus_rules(portion.pairs, judgement.rules)
        certainty = judgement.certainty.tolist()
        for rule, pair, line, certain in zip(rules, portion.pairs, portion.lines, certainty, strict=True):
            if rule:
                found = self._examples.setdefault(rule, [])
                found.append((certain, Example(without_escapes(pair.src), without_escapes(pair.tgt), line)))
                found.sort(key=itemgetter(0), reverse=True)
                del found[_EXAMPLES:]
        leaked = [pair for rule, pair in zip(rules, portion.pairs, strict=True) if rule == HELD_OUT]
        self._n_exact += sum(self.filters.held_out.contains(leaked, languages=self.part.languages, near=False))
        numbers = [self.filters.names.index(rule) if rule else -1 for rule in rules]
        self._rules.append(np.array(numbers, dtype=np.int8))
        self._lines.append(np.array(portion.lines))
        self._lengths.append(lengths_of(portion.pairs))
        if judgement.log_odds is not None:
            self._log_odds.append(judgement.log_odds)

    def finish(self) -> SourceCheck:
        """Find the passages out of alignment, whose pairs will all be dropped from a training text."""
        rules = np.concatenate([np.empty(0, dtype=np.int8), *self._rules])
        lines = np.concatenate([np.empty(0, dtype=np.int64), *self._lines])
        counts = _counts(rules, self.filters.names)
        foreign = [number for number, name in enumerate(self.filters.names) if name in FOREIGN]
        alignment = self._alignment(np.isin(rules, foreign))
        for passage in alignment.passages:
            if passage.shift != 0 and self.use == "train":
                of_passage = rules[passage.first : passage.end]
                of_passage[of_passage < 0] = self.filters.names.index(MISALIGNED)
        return SourceCheck(
            self.part,
            self.use,
            self.filters,
            self.versions,
            self.blank,
            rules,
            self._n_exact,
            examples={rule: [example for _, example in found] for rule, found in self._examples.items()},
            slips=slips_of(alignment.passages, lines.tolist()),
            is_foreign=2 * sum(counts[name] for name in FOREIGN) > len(rules),
            **alignment._asdict(),
        )

    def _alignment(self, is_foreign: NDArray[np.bool_]) -> _Alignment:
        n_pairs = len(is_foreign)
        if self._log_odds and self.filters.learned:
            passages = aligned(self.part, np.concatenate(self._log_odds), self.filters.learned, is_foreign)
            return _Alignment(passages, MISALIGNED not in self.filters.inactive or len(passages) > 1)
        if not n_pairs or isinstance(self.part, RealignedText):
            return _Alignment([Passage(0, n_pairs, 0)])
        lengths = np.concatenate(self._lengths)
        passages = aligned_by_lengths(lengths)
        is_unrelated = not any(passage.shift for passage in passages) and are_unrelated(lengths[~is_foreign])
        return _Alignment(passages, are_surely_aligned(passages, lengths), is_unrelated)
