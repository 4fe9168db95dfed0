"""The filters of a config, applied to chunks of a text in order."""

import logging
import random
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import NamedTuple

import numpy as np

from mtformer.config import FILTERS, DataConfig, LanguagePair
from mtformer.data.clean.language import LanguageTest
from mtformer.data.clean.learned import CORRUPTIONS, FEWEST_PAIRS, LearnedRules
from mtformer.data.clean.repair import (
    Change,
    Letters,
    Repair,
    are_partly_utf8,
    decoded,
    read_again,
    repaired,
    without_markup,
)
from mtformer.data.clean.rules import PairRule, is_damaged, pair_rules
from mtformer.data.clean.seen import HashSet, HeldOut, ManyTargets, exact_key, near_key, repeated
from mtformer.data.clean.spelling import Spelling
from mtformer.data.clean.words import Floats
from mtformer.data.sources.parallel import ParallelText, Reservoir, can_be_read_again
from mtformer.support.errors import Problems, UserError
from mtformer.support.progress import watched
from mtformer.support.terminal import counted
from mtformer.text.languages import letters_of
from mtformer.text.lines import input_name
from mtformer.text.pairs import SentencePair

log = logging.getLogger(__name__)

VERSION = 36  # of the rules: what they drop depends on it
_SAMPLE = 100_000  # pairs of a direction
_SEED = 1
DIACRITICS = "diacritics"
LEARNED = (DIACRITICS, *CORRUPTIONS)  # the rules that a text teaches


class Judgement(NamedTuple):
    """The judgements of the rules for single pairs on some pairs.

    Attributes:
        rules: the name of the rule that drops each pair; None to keep it.
        certainty: of each pair that is dropped by what the text has taught, how certain that is; 0 for the others.
        log_odds: of each pair for being misaligned; None if nothing was learned, or no rule needs them.
    """

    rules: list[str | None]
    certainty: Floats
    log_odds: Floats | None


class Filters:
    """Decides which pairs of a text to drop.

    Most rules look at one pair at a time, some with what a sample of the text has taught: :meth:`pair_rules` may run
    in any process. Others remember the pairs that came before: one process must pass all chunks, in order, to
    :meth:`rules` or to :meth:`corpus_rules`.

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
            sample: pairs of the text that the rules :data:`LEARNED` learn from; these do nothing without any.
        """
        given = set(names)
        self.names = [name for name in FILTERS if name in given or "all" in given]
        self.held_out = held_out or HeldOut()
        self._languages = languages
        self._sample: Iterable[SentencePair] = sample
        self._learned: LearnedRules | None = None
        self._spellings: tuple[Spelling, Spelling] | None = None
        self._letters = Letters(()), Letters(())
        self._by_chance = False, False  # whether lines of a side may be UTF-8 by chance
        self._inactive: dict[str, str] = {}
        self._all_pair_rules = pair_rules(*languages)
        corpus_rules: dict[str, PairRule] = {
            "held_out": partial(self.held_out.contains, languages=languages, near=True),
            "duplicates": partial(repeated, HashSet(), exact_key),
            "near_duplicates": partial(repeated, HashSet(), near_key),
            "many_targets": ManyTargets(languages.src_lang).add,
        }
        self._corpus_rules = {name: rule for name, rule in corpus_rules.items() if name in self.names}
        libraries = " ".join(f"{name} {version(name)}" for name in ("ftfy", "py3langid"))
        self.key = f"{VERSION} {libraries} {languages} {' '.join(self.names)} {self.held_out.digest:x}"

    def __getstate__(self) -> dict[str, object]:
        self.learn()
        return self.__dict__

    @property
    def learned(self) -> LearnedRules | None:
        """The rules learned from the sample, which is read when it is needed: a text in the cache needs no filters."""
        self.learn()
        return self._learned

    def learn(self) -> None:
        """Read the sample and learn from it, if that has not happened yet."""
        sample, self._sample = self._sample, ()
        if not sample or set(LEARNED).isdisjoint(self.names):
            return
        pairs = _composed(sample_of(sample))
        log.info("%s: learning to tell bad pairs from good ones, on %s", self._languages, counted(len(pairs), "pair"))
        self._by_chance = are_partly_utf8(pair.src for pair in pairs), are_partly_utf8(pair.tgt for pair in pairs)
        if any(self._by_chance):
            self._all_pair_rules["encoding"] = partial(_are_damaged, self._languages, self._by_chance)
        plain = _apply(self._all_pair_rules, pairs, [None] * len(pairs))
        usable = [pair for pair, rule in zip(pairs, plain, strict=True) if rule is None]
        self._letters = Letters(pair.src for pair in usable), Letters(pair.tgt for pair in usable)
        if DIACRITICS in self.names:
            self._spellings = Spelling([pair.src for pair in usable]), Spelling([pair.tgt for pair in usable])
        if not set(CORRUPTIONS).isdisjoint(self.names):
            self._learned = LearnedRules.learn(usable, self._languages)
        self._inactive = self._why_untaught(len(usable))

    def _why_untaught(self, n_pairs: int) -> dict[str, str]:
        """Return the reasons why learned rules are not in use, by name."""
        inactive: dict[str, str] = {}
        if self._spellings and not any(side.is_taught for side in self._spellings):
            inactive[DIACRITICS] = self._spellings[0].why_untaught
        for name in CORRUPTIONS:
            if not self._learned:
                n_good = counted(n_pairs, "good pair")
                inactive[name] = f"{n_good}, and learning needs {FEWEST_PAIRS:,} with different sources"
            elif why := self._learned.why_inactive(name):
                inactive[name] = why
        return {name: why for name, why in inactive.items() if name in self.names}

    @property
    def inactive(self) -> dict[str, str]:
        """Reasons why rules find nothing in this text, or only some of the faults, by name."""
        self.learn()
        reasons = dict(self._inactive)
        unknown = [code for code in self._languages if not LanguageTest(code).is_possible]
        if unknown:
            reasons["language"] = f"the language identifier does not know {' and '.join(unknown)}"
        src, tgt = map(letters_of, self._languages)
        if src is None and tgt is None:
            reasons["script"] = f"the scripts of {' and '.join(self._languages)} are not known"
        elif src == tgt:
            reasons["script"] = f"{' and '.join(self._languages)} have the same letters, which do not tell them apart"
        if not self.held_out.digest:
            reasons["held_out"] = "there is no validation or test text"
        return {name: reasons[name] for name in self.names if name in reasons}

    def warnings(self) -> list[str]:
        """Return warnings of rules that find nothing because they need other text, or another language."""
        reasons = {name: why for name, why in self.inactive.items() if name in (*LEARNED, "language")}
        return [f"{self._languages}: data.filters: {line}" for line in by_reason(reasons)]

    def repaired(self, pair: SentencePair) -> tuple[SentencePair, list[Change]]:
        """Return a pair after all possible repairs, and the repairs."""
        self.learn()
        by_side = []
        sides = zip(self._languages, self._letters, self._by_chance, self._spellings or (None, None), strict=True)
        for language, letters, by_chance, spelling in sides:
            decode = partial(decoded, language=language, letters=letters, by_chance=by_chance)
            repairs: dict[str, Repair] = {"encoding": decode, "markup": without_markup}
            by_side.append(repairs | ({DIACRITICS: spelling.repair} if spelling else {}))
        return repaired(pair, by_side)

    def rules(self, pairs: Sequence[SentencePair]) -> list[str | None]:
        """Return the rule that drops each of the next pairs of the text; None to keep it."""
        return self.corpus_rules(pairs, self.pair_rules(pairs))

    def pair_rules(self, pairs: Sequence[SentencePair]) -> list[str | None]:
        """Return which of the rules for single pairs drops each pair."""
        return self.judge(pairs).rules

    def judge(self, pairs: Sequence[SentencePair], *, align: bool = False) -> Judgement:
        """Apply the rules for single pairs.

        Args:
            pairs: the pairs.
            align: return the log odds of being misaligned, even if no rule needs them.
        """
        self.learn()
        pairs = _composed(pairs)
        rules = {name: rule for name, rule in self._all_pair_rules.items() if name in self.names}
        if self._spellings:
            rules[DIACRITICS] = partial(_is_misspelled, self._spellings)
        dropping = _apply(rules, pairs, [None] * len(pairs))
        learned, certainty = self._learned, np.zeros(len(pairs))
        if not learned or not (align or learned.is_active):
            return Judgement(dropping, certainty, None)
        scores = learned.scores(pairs)
        names, excess = learned.corruptions(scores, self.names)
        for place, name in enumerate(names):
            if name and not dropping[place]:
                dropping[place] = name
                certainty[place] = excess[place]
        return Judgement(dropping, certainty, learned.misalignment_of(scores))

    def corpus_rules(self, pairs: Sequence[SentencePair], dropping: Sequence[str | None]) -> list[str | None]:
        """Complete the rules that drop the next pairs by those that remember the pairs before."""
        return _apply(self._corpus_rules, pairs, dropping)


def _composed(pairs: Iterable[SentencePair]) -> list[SentencePair]:
    """Return pairs with composed letters (NFC), as tokenizers read them: the same words as those of other pairs."""
    return [SentencePair(*(unicodedata.normalize("NFC", side) for side in pair)) for pair in pairs]


def _are_damaged(languages: LanguagePair, by_chance: Sequence[bool], pairs: Sequence[SentencePair]) -> list[bool]:
    """Apply the rule ``encoding`` where lines may be UTF-8 by chance, which no rule can tell from a pair alone."""
    return [
        is_damaged(pair)
        or any(
            may_be and read_again(side, language) != side
            for side, language, may_be in zip(pair, languages, by_chance, strict=True)
        )
        for pair in pairs
    ]


def _is_misspelled(spellings: tuple[Spelling, Spelling], pairs: Sequence[SentencePair]) -> list[bool]:
    src, tgt = spellings
    return [src.is_wrong(pair.src) or tgt.is_wrong(pair.tgt) for pair in pairs]


def filters_of(data: DataConfig, *, lenient: bool = False) -> dict[LanguagePair, Filters]:
    """Return the filters of a config for its training text in each direction; nothing if it has none.

    Args:
        data: the text and the rules.
        lenient: as in :class:`.ParallelText`, for the training text.

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
    is_learning = data.filters_by(*LEARNED)
    train = ParallelText(data.train, data.src_lang, data.tgt_lang, lenient)
    if is_learning:
        learning = f"the rules {', '.join(LEARNED)} of data.filters learn"
        _require_files(train, f"{learning} from the text before they filter it")
    return {
        languages: Filters(
            data.filters, languages, held_out, of_direction(train.parts(), languages) if is_learning else ()
        )
        for languages in data.language_pairs
    }


def by_reason(inactive: Mapping[str, str]) -> list[str]:
    """Name the rules that are inactive for each reason."""
    rules = {why: [name for name, reason in inactive.items() if reason == why] for why in inactive.values()}
    return [f"rules not fully applied: {', '.join(names)}: {why}" for why, names in rules.items()]


def of_direction(parts: Iterable[ParallelText], languages: LanguagePair) -> Iterator[SentencePair]:
    """Yield the pairs of the parts of a text that have these languages; an error reports the problems of all parts."""
    problems = Problems()
    for part in parts:
        if part.languages == languages:
            with problems.collected():
                yield from part
    problems.raise_all()


def _require_files(text: ParallelText, why: str) -> None:
    """Refuse pipes, which cannot be read a second time."""
    for path in text.files:
        if not can_be_read_again(path):
            once = f"{input_name(path)} can be read only once"
            raise UserError(f"{once}, but {why}: save it to a file")


def sample_of(pairs: Iterable[SentencePair]) -> list[SentencePair]:
    """Return random pairs of a text in random order, to learn from."""
    kept = Reservoir[SentencePair](_SAMPLE, _SEED)
    for pair in watched(pairs, "reading a sample", "pairs"):
        kept.add(pair)
    random.Random(_SEED).shuffle(kept.items)
    return kept.items


def reason_of(name: str) -> str:
    """Return the reason under which a run reports the pairs dropped by a rule."""
    return f"{FILTERS[name]} (data.filters: {name})"


def _apply(
    rules: dict[str, PairRule], pairs: Sequence[SentencePair], dropping: Sequence[str | None]
) -> list[str | None]:
    """Name the rule that drops each pair that none drops yet; each sees only the pairs that those before it keep."""
    completed = list(dropping)
    for name, rule in rules.items():
        left = [place for place, dropped_by in enumerate(completed) if dropped_by is None]
        for place, is_dropped in zip(left, rule([pairs[place] for place in left]), strict=True):
            if is_dropped:
                completed[place] = name
    return completed
