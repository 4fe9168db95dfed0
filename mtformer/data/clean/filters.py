"""The filters of a config, applied to chunks of a text in order."""

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from mtformer.config import FILTERS, DataConfig, LanguagePair
from mtformer.data.clean.learned import CORRUPTIONS, LearnedRules
from mtformer.data.clean.rules import PairRule, pair_rules
from mtformer.data.clean.seen import Duplicates, HeldOut, ManyTargets, exact_key, near_key
from mtformer.data.sources.parallel import ParallelText, Reservoir, can_be_read_again
from mtformer.support.errors import UserError
from mtformer.support.progress import watched
from mtformer.text.lines import input_name
from mtformer.text.pairs import SentencePair

VERSION = 6  # of the rules: what they drop depends on it
_SAMPLE = 100_000  # pairs of a direction
_SEED = 1


class Filters:
    """Decides which pairs of a text to drop.

    Most rules look at one pair at a time, some with what a sample of the text has taught: :meth:`pair_reasons` may run
    in any process. Others remember the pairs that came before: one process must pass all chunks, in order, to
    :meth:`reasons` or to :meth:`corpus_reasons`.

    Attributes:
        names: the rules, without ``all``.
        held_out: the sentences that the rule ``held_out`` keeps out.
        key: all that the result depends on besides the text: the rules, their versions, the pairs that are held out.
    """

    def __init__(
        self,
        names: Iterable[str],
        languages: LanguagePair,
        held_out: HeldOut | None = None,
        sample: Iterable[SentencePair] = (),
    ) -> None:
        """Apply the rules ``names`` to text in two languages.

        Args:
            names: the rules; ``all`` stands for all of them.
            languages: those of the text.
            held_out: the sentences that the rule ``held_out`` keeps out.
            sample: pairs of the text that the rules ``misaligned``, ``truncated`` and ``misordered`` learn from; these
                do nothing without any.
        """
        given = set(names)
        self.names = [name for name in FILTERS if name in given or "all" in given]
        self.held_out = held_out or HeldOut()
        self._languages = languages
        self._sample: Iterable[SentencePair] = sample
        self._learned: LearnedRules | None = None
        self._all_pair_rules = pair_rules(*languages)
        corpus_rules: dict[str, PairRule] = {
            "held_out": partial(self.held_out.contains, languages=languages, near=True),
            "duplicates": Duplicates(exact_key).add,
            "near_duplicates": Duplicates(near_key).add,
            "many_targets": ManyTargets(languages.src_lang).add,
        }
        self._corpus_rules = {name: rule for name, rule in corpus_rules.items() if name in self.names}
        libraries = " ".join(f"{name} {version(name)}" for name in ("ftfy", "py3langid"))
        self.key = f"{VERSION} {libraries} {languages} {' '.join(self.names)} {self.held_out.digest:x}"

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_learned": self.learned, "_sample": ()}

    @property
    def learned(self) -> LearnedRules | None:
        """The rules learned from the sample, which is read when it is needed: a text in the cache needs no filters."""
        if self._sample and not set(CORRUPTIONS).isdisjoint(self.names):
            sample = sample_of(self._sample)
            plain = _apply(self._all_pair_rules, sample, [None] * len(sample))
            usable = [pair for pair, reason in zip(sample, plain, strict=True) if reason is None]
            self._learned = LearnedRules.learn(usable, self._languages)
        self._sample = ()
        return self._learned

    def reasons(self, pairs: Sequence[SentencePair]) -> list[str | None]:
        """Return why to drop each of the next pairs of the text; None for those to keep."""
        return self.corpus_reasons(pairs, self.pair_reasons(pairs))

    def pair_reasons(self, pairs: Sequence[SentencePair]) -> list[str | None]:
        """Return why to drop each pair by the rules that look at one pair at a time."""
        return self.judge(pairs)[0]

    def judge(
        self, pairs: Sequence[SentencePair], also: Collection[str] = ()
    ) -> tuple[list[str | None], Mapping[str, NDArray[np.float64]]]:
        """Return the same, and the log odds of all pairs for being corrupted in some ways; none if nothing was learned.

        Args:
            pairs: the pairs.
            also: ways of corruption to score even where no rule needs it.
        """
        rules = {name: rule for name, rule in self._all_pair_rules.items() if name in self.names}
        reasons = _apply(rules, pairs, [None] * len(pairs))
        if not (learned := self.learned):
            return reasons, {}
        ways = learned.ways(self.names)
        scores = learned.scores(pairs, {*also, *ways})
        for name, is_dropped in learned.is_corrupted({way: scores[way] for way in ways}).items():
            for place in np.flatnonzero(is_dropped).tolist():
                reasons[place] = reasons[place] or reason_of(name)
        return reasons, scores

    def corpus_reasons(self, pairs: Sequence[SentencePair], reasons: Sequence[str | None]) -> list[str | None]:
        """Complete ``reasons`` of the next pairs by the rules that remember the pairs before."""
        return _apply(self._corpus_rules, pairs, reasons)


def filters_of(data: DataConfig) -> dict[LanguagePair, Filters]:
    """Return the filters of a config for its training text in each direction; nothing if it has none.

    Raises:
        UserError: the validation or test set cannot be read; an error of the text is raised when the filters are used.
    """
    if not data.filters:
        return {}
    held_out = HeldOut()
    if data.filters_by("held_out"):
        others = ParallelText([*data.valid, *data.test], data.src_lang, data.tgt_lang)
        _require_files(others, "the rule held_out of data.filters reads it before the training text")
        for part in others.parts():
            held_out.add(part, part.languages)
    is_learning = data.filters_by(*CORRUPTIONS)
    train = ParallelText(data.train, data.src_lang, data.tgt_lang)
    if is_learning:
        learning = f"the rules {', '.join(CORRUPTIONS)} of data.filters learn"
        _require_files(train, f"{learning} from the text before they filter it")
    return {
        languages: Filters(data.filters, languages, held_out, _of_direction(train, languages) if is_learning else ())
        for languages in data.language_pairs
    }


def _of_direction(text: ParallelText, languages: LanguagePair) -> Iterator[SentencePair]:
    for part in text.parts():
        if part.languages == languages:
            yield from part


def _require_files(text: ParallelText, why: str) -> None:
    """Refuse pipes, which cannot be read a second time."""
    for path in text.files:
        if not can_be_read_again(path):
            once = f"{input_name(path)} can be read only once"
            raise UserError(f"{once}, but {why}: save it to a file, or choose other rules")


def sample_of(pairs: Iterable[SentencePair]) -> list[SentencePair]:
    """Return random pairs of a text in random order, to learn from."""
    kept = Reservoir[SentencePair](_SAMPLE, _SEED)
    for pair in watched(pairs, "reading a sample", "pairs"):
        kept.add(pair)
    random.Random(_SEED).shuffle(kept.items)
    return kept.items


def reason_of(name: str) -> str:
    """Return how a run reports the pairs that a rule has dropped."""
    return f"{FILTERS[name]} (data.filters: {name})"


def rule_of(reason: str) -> str:
    """Return the name of the rule that gave a reason."""
    return reason.rpartition("data.filters: ")[2].rstrip(")")


def _apply(
    rules: dict[str, PairRule], pairs: Sequence[SentencePair], reasons: Sequence[str | None]
) -> list[str | None]:
    """Fill in the reasons that are None; each rule sees only the pairs that those before it keep."""
    completed = list(reasons)
    left = [place for place, reason in enumerate(completed) if reason is None]
    for name, rule in rules.items():
        if not left:
            break
        dropped = rule([pairs[place] for place in left])
        for place, is_dropped in zip(left, dropped, strict=True):
            if is_dropped:
                completed[place] = reason_of(name)
        left = [place for place, is_dropped in zip(left, dropped, strict=True) if not is_dropped]
    return completed
