"""Check the text of a config: bad pairs, passages out of alignment, lengths in tokens."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.config import FILTERS, Config, DataConfig, Facts, LanguagePair, Source, resolve
from mtformer.data.clean.filters import LEARNED, Filters, Judgement, filters_of, of_direction
from mtformer.data.clean.learned import MISALIGNED
from mtformer.data.clean.line_lengths import aligned_by_lengths, are_surely_aligned, are_unrelated, lengths_of
from mtformer.data.clean.passages import Passage, Slip, slips_of
from mtformer.data.clean.realign import RealignedText, aligned
from mtformer.data.held_out import held_out_share, is_apart
from mtformer.data.sources.parallel import ParallelText, Reservoir, Versions, file_version, source_name
from mtformer.data.store import Portion, text_portions
from mtformer.support.errors import UserError
from mtformer.support.processes.workers import in_order
from mtformer.support.progress import Progress
from mtformer.text.languages import suit_joint_vocabulary
from mtformer.text.lines import input_name, without_escapes
from mtformer.text.pairs import Drops, Example, SentencePair
from mtformer.text.tokenizer.adopt import read_tokenizer
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.text.tokenizer.vocabulary import byte_of

PERCENTILES = ("50", "90", "99", "99.9", "100")
_EXAMPLES = 3  # of each problem and source
_FOR_LENGTHS = 20_000  # random pairs of all training sources
_SEED = 1
HELD_OUT = "held_out"
_NEVER_HELD_OUT = "empty", "duplicates", "near_duplicates"  # with another pair, all its copies are
# Rules for training text alone; duplicates are counted within each validation and test set.
_NOT_IN_EVALUATION = {*LEARNED, HELD_OUT, "near_duplicates", "many_targets"}


class SideLengths(NamedTuple):
    """The lengths of one side.

    Attributes:
        percentiles: the tokens of a text, EOS included, by each of :data:`PERCENTILES`.
        mean: the mean number of tokens.
        spelled_in_bytes: the share of characters' bytes among the tokens: those of characters without a token.
    """

    percentiles: dict[str, int]
    mean: float
    spelled_in_bytes: float


class Lengths(NamedTuple):
    """Lengths of a sample of the training text.

    Attributes:
        n_pairs: the number of pairs measured.
        vocab_size: the tokens of the source tokenizer.
        src: the sources.
        tgt: the targets.
        max_length: the setting ``data.max_length``.
        cut: the share of pairs that it drops.
    """

    n_pairs: int
    vocab_size: int
    src: SideLengths
    tgt: SideLengths
    max_length: int
    cut: float


def measure_lengths(
    config: Config, pairs: Sequence[SentencePair], n_pairs: int, tokenizer: Tokenizer | None = None
) -> Lengths | None:
    """Train the tokenizer of a config on some of its text, or take the given one, and measure that text.

    Args:
        config: the config.
        pairs: a random sample of the training text.
        n_pairs: how many pairs all of it has, by which the size of the vocabulary is chosen.
        tokenizer: that of the model to fine-tune; None if there is none.
    """
    pairs = [pair for pair in pairs if not pair.is_blank]
    if not pairs:
        return None
    languages = list(zip(*config.data.language_pairs, strict=True))
    if tokenizer is None and config.tokenizer.paths:
        tokenizer = read_tokenizer(config.tokenizer, ()).tokenizer
    elif tokenizer is None:
        settings = resolve(config, Facts(n_pairs=n_pairs, joint=suit_joint_vocabulary(*languages))).tokenizer
        tokenizer = train_tokenizer(pairs, settings, *languages, adjust=True)
    src_rows = tokenizer.encode_src([pair.src for pair in pairs])
    tgt_rows = tokenizer.encode_tgt([pair.tgt for pair in pairs])
    longest = np.maximum(*(np.array([len(row) for row in rows]) for rows in (src_rows, tgt_rows)))
    limit = config.data.max_length
    return Lengths(
        len(pairs),
        tokenizer.src_vocab_size,
        _of_side(src_rows, tokenizer.src_tokens(range(tokenizer.src_vocab_size))),
        _of_side(tgt_rows, tokenizer.tgt_tokens(range(tokenizer.tgt_vocab_size))),
        limit,
        float((longest > limit).mean()),
    )


def _of_side(rows: Sequence[Sequence[int]], tokens: Sequence[str]) -> SideLengths:
    lengths = np.array([len(row) for row in rows])
    is_byte = np.array([byte_of(token) is not None for token in tokens])
    spelled = is_byte[np.concatenate([np.array(row, dtype=np.int64) for row in rows])].mean()
    at = np.percentile(lengths, list(map(float, PERCENTILES))).astype(int).tolist()
    return SideLengths(dict(zip(PERCENTILES, at, strict=True)), float(lengths.mean()), float(spelled))


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
        is_swapped: whether most of its pairs are in other languages than expected.
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
    is_swapped: bool
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
        alignment = self._alignment(len(rules))
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
            is_swapped=2 * (counts["language"] + counts["script"]) > len(rules),
            **alignment._asdict(),
        )

    def _alignment(self, n_pairs: int) -> _Alignment:
        if self._log_odds and self.filters.learned:
            passages = aligned(self.part, np.concatenate(self._log_odds), self.filters.learned)
            return _Alignment(passages, MISALIGNED not in self.filters.inactive or len(passages) > 1)
        if not n_pairs or isinstance(self.part, RealignedText):
            return _Alignment([Passage(0, n_pairs, 0)])
        lengths = np.concatenate(self._lengths)
        passages = aligned_by_lengths(lengths)
        is_unrelated = not any(passage.shift for passage in passages) and are_unrelated(lengths)
        return _Alignment(passages, are_surely_aligned(passages, lengths), is_unrelated)


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
    checkers = list(_checkers(data))
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
            is_swapped=source.is_swapped,
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


def _checkers(data: DataConfig) -> Iterator[SourceChecker]:
    by_direction = filters_of(data.model_copy(update={"filters": ["all"]}), lenient=True)
    of_evaluation = FILTERS.keys() - _NOT_IN_EVALUATION
    for use, sources in (("train", data.train), ("valid", data.valid), ("test", data.test)):
        for part in ParallelText(sources, data.src_lang, data.tgt_lang, lenient=use == "train").parts():
            filters = by_direction[part.languages] if use == "train" else Filters(of_evaluation, part.languages)
            yield SourceChecker(part, use, filters, {path: file_version(path) for path in part.files})


def _judge(filters: Sequence[Filters], portion: Portion) -> Judgement:
    """Apply the rules that look at one pair at a time; other processes may call this."""
    return filters[portion.source].judge(portion.pairs, align=True)
