"""Robustness: how translations change if the source text is perturbed as users would do."""

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from mtformer.config import LanguagePair
from mtformer.engines.loading import LoadedModel
from mtformer.evaluate.analysis import repetition_share
from mtformer.evaluate.evaluation import best_translations, opened, read_test_sets
from mtformer.evaluate.metrics import chrf
from mtformer.evaluate.negation import Flips, NegationPair, count_flips, denies, negation_pairs
from mtformer.evaluate.results import ScoredModel
from mtformer.evaluate.testsets import TextOptions, combined
from mtformer.support.terminal import as_text
from mtformer.text.languages import is_written_with_spaces
from mtformer.text.numbers import find_numbers
from mtformer.translate.translator import Translator

_LETTERS = r"[^\W\d_]+"
_FULL_STOPS = (".", "。")
_EMOJI = ("😀", "🎉", "👍🏽", "🚗", "❤️")
_URL = "https://example.org/news/{}?id={}"
_CHARACTERS_PER_TYPO = 30
_Texts = Mapping[int, str]  # by the places of the sentences


class Pair(NamedTuple):
    """A sentence of the test set, with its first reference and whether spaces separate the words of the source."""

    src: str
    ref: str
    spaced: bool


class Case(NamedTuple):
    """A perturbed sentence.

    Attributes:
        src: the input of the model.
        ref: the reference of its translation; None if there is none.
        added: text that the translation should copy; empty if there is none.
    """

    src: str
    ref: str | None
    added: str = ""


def _without_full_stop(pair: Pair) -> Case:
    if not pair.src.rstrip().endswith(_FULL_STOPS):
        return Case(pair.src, pair.ref)
    return Case(pair.src.rstrip().rstrip(".。"), pair.ref.rstrip().rstrip(".。"))


def _with_typos(pair: Pair, rng: random.Random) -> Case:
    """Swap neighbouring letters: one pair for every 30 characters, not the first letter of a word if it has spaces."""
    src = pair.src
    pattern = r"(?<=[^\W\d_])[^\W\d_]{2}" if pair.spaced else r"[^\W\d_]{2}"
    places = [i for i in range(len(src)) if re.compile(pattern).match(src, i) and src[i] != src[i + 1]]
    for i in rng.sample(places, min(len(places), 1 + len(src) // _CHARACTERS_PER_TYPO)):
        src = f"{src[:i]}{src[i + 1]}{src[i]}{src[i + 2 :]}"
    return Case(src, pair.ref)


def _with_appended(pair: Pair, added: str) -> Case:
    return Case(f"{pair.src} {added}", f"{pair.ref} {added}", added)


def _one_word(pair: Pair, rng: random.Random) -> Case:
    """Keep one word, or two neighbouring characters where no spaces separate words."""
    words = re.findall(_LETTERS if pair.spaced else r"[^\W\d_]{2}", pair.src)
    return Case(rng.choice(words) if words else pair.src, None)


PERTURBATIONS: Mapping[str, Callable[[Pair, random.Random], Case]] = {
    "clean": lambda pair, rng: Case(pair.src, pair.ref),
    "all caps": lambda pair, rng: Case(pair.src.upper(), pair.ref),
    "title case": lambda pair, rng: Case(re.sub(r"(?<!\S)\S", lambda match: match[0].upper(), pair.src), pair.ref),
    "no full stop": lambda pair, rng: _without_full_stop(pair),
    "doubled spaces": lambda pair, rng: Case(pair.src.replace(" ", "  "), pair.ref),
    "typos": _with_typos,
    "emoji appended": lambda pair, rng: _with_appended(pair, rng.choice(_EMOJI)),
    "URL appended": lambda pair, rng: _with_appended(pair, _URL.format(rng.randrange(10_000), rng.randrange(100))),
    "one word": _one_word,
    "wrong language": lambda pair, rng: Case(pair.ref, pair.ref),
}


def perturb(name: str, pairs: Sequence[Pair]) -> dict[int, Case]:
    """Perturb sentences; return the cases that differ from the clean text by their places, the same at every call."""
    change = PERTURBATIONS[name]
    cases = {i: change(pair, random.Random(f"{name} {i}")) for i, pair in enumerate(pairs)}
    return {i: case for i, case in cases.items() if name == "clean" or case.src != pairs[i].src}


class Kept(NamedTuple):
    """How many of certain expressions in the sources are in the translations."""

    kept: int
    total: int

    @property
    def share(self) -> float | None:
        """From 0 to 1; None if there are none."""
        return self.kept / self.total if self.total else None


@dataclass(frozen=True)
class StressRow:
    """The sentences that one perturbation changes.

    Attributes:
        perturbation: its name.
        n_sentences: how many it changes.
        clean_chrf: chrF2 of the translations of the same sentences unchanged, without regard to case.
        chrf: that of the perturbed sentences; for the wrong language, against the given text itself; None without
            references.
        repetitions: the share of translations that repeat a phrase as neither source nor reference does.
        numbers: those of both source and reference that are in the translation.
        added: the emoji or URLs that are in the translation.
    """

    perturbation: str
    n_sentences: int
    clean_chrf: float
    chrf: float | None
    repetitions: float
    numbers: Kept
    added: Kept

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        return {
            "perturbation": self.perturbation,
            "sentences": self.n_sentences,
            "clean_chrf": round(self.clean_chrf, 2),
            "chrf": None if self.chrf is None else round(self.chrf, 2),
            "repetitions": round(self.repetitions, 4),
            "numbers_kept": self.numbers.kept,
            "numbers": self.numbers.total,
            "added_kept": self.added.kept,
            "added": self.added.total,
        }

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the table; an en dash where there is nothing to count."""
        shares = [_percent(share) for share in (self.repetitions, self.numbers.share, self.added.share)]
        chrf, change = ("–", "–") if self.chrf is None else (f"{self.chrf:.1f}", f"{self.chrf - self.clean_chrf:+.1f}")
        return self.perturbation, f"{self.n_sentences:,}", f"{self.clean_chrf:.1f}", chrf, change, *shares


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


@dataclass(frozen=True)
class StressResult:
    """How a model handles perturbed text.

    Attributes:
        model: what was scored.
        test_set: the name of the clean text.
        fingerprint: of the clean text.
        signature: of chrF.
        rows: one for each perturbation that changes a sentence, the clean text first.
        negation: how many negations are lost or added; None for languages without pairs of sentences.
    """

    model: ScoredModel
    test_set: str
    fingerprint: str
    signature: str
    rows: list[StressRow]
    negation: Flips | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        texts = {"test_set": self.test_set, "fingerprint": self.fingerprint, "signature": self.signature}
        rows = [row.to_dict() for row in self.rows]
        negation = None if self.negation is None else self.negation.to_dict()
        return self.model.to_dict() | texts | {"stress": rows, "negation": negation}

    def to_text(self) -> str:
        """Show a table."""
        head = ("perturbation", "sentences", "clean", "chrF2", "change", "repetitions", "numbers", "added")
        table = as_text(head, [row.cells() for row in self.rows])
        negation = "" if self.negation is None else f"\n\n{self.negation}"
        return f"{table}{negation}\n\nchrF2  {self.signature}"


def stress_model(
    paths: Sequence[Path],
    model: LoadedModel,
    *,
    save: Path | None = None,
    raw: bool = False,
    **texts: Unpack[TextOptions],
) -> StressResult:
    """Translate a test set clean and perturbed in several ways, and score the translations.

    Args:
        paths: what the model was loaded from, as for :func:`mtformer.evaluate.evaluation.evaluate_loaded`.
        model: the model, toward one of its directions.
        save: write a JSON object for each perturbed sentence there.
        raw: translate with the model alone.
        texts: the test sets, as for :func:`mtformer.evaluate.testsets.read_eval_sets`; without any, those of the first
            one's run. First references count.

    Raises:
        UserError: a test set cannot be used, or ``save`` is one of the input files.
        MtformerError: sacreBLEU cannot download a test set.
    """
    sets = read_test_sets(paths, model, [save], **texts)
    translator = Translator.load(model, raw=raw)
    test_set, header = combined(sets), model.header
    spaced = is_written_with_spaces(header.src_lang)
    pairs = [Pair(*pair, spaced) for pair in zip(test_set.sources, test_set.references[0], strict=True)]
    cases = {name: perturbed for name in PERTURBATIONS if (perturbed := perturb(name, pairs))}
    denied = negation_pairs(header.src_lang) if denies("", header.tgt_lang) is not None else []
    with opened(save) as file:  # first: a wrong path must not cost the work
        sources = [case.src for perturbed in cases.values() for case in perturbed.values()]
        sources += [text for pair in denied for text in pair]
        found = (translation.text for translation in best_translations(translator, sources))
        hypotheses = {name: {i: next(found) for i in perturbed} for name, perturbed in cases.items()}
        negations = [NegationPair(next(found), next(found)) for _ in denied]
        if file is not None:
            for i, both in enumerate(zip(denied, negations, strict=True), 1):
                file.writelines(_line("negation", i, Case(src, None), hyp) for src, hyp in zip(*both, strict=True))
            for name, perturbed in cases.items():
                file.writelines(_line(name, i + 1, case, hypotheses[name][i]) for i, case in perturbed.items())
    languages = LanguagePair(header.src_lang, header.tgt_lang)
    rows = [_row(name, pairs, perturbed, hypotheses, languages) for name, perturbed in cases.items()]
    signature = chrf(["a"], ["a"], lowercase=True).signature
    scored = ScoredModel(tuple(paths), model, raw)
    flips = count_flips(negations, header.tgt_lang) if negations else None
    return StressResult(scored, test_set.name, test_set.fingerprint, signature, rows, flips)


def _line(name: str, number: int, case: Case, hypothesis: str) -> str:
    """Return a perturbed sentence and its translation as a line of JSON."""
    row = {"perturbation": name, "line": number, **case._asdict(), "hyp": hypothesis}
    return json.dumps(row, ensure_ascii=False) + "\n"


def _row(
    name: str, pairs: Sequence[Pair], cases: Mapping[int, Case], found: Mapping[str, _Texts], languages: LanguagePair
) -> StressRow:
    """Score the translations of one perturbation, which ``found`` has beside those of the clean text."""
    perturbed, hypotheses, clean = cases.values(), list(found[name].values()), [found["clean"][i] for i in cases]
    sources, references = [case.src for case in perturbed], [pairs[i].ref for i in cases]
    expected = [case.ref for case in perturbed if case.ref is not None]
    copied = [case.added in text for case, text in zip(perturbed, hypotheses, strict=True) if case.added]
    src_lang = languages.tgt_lang if name == "wrong language" else languages.src_lang
    return StressRow(
        perturbation=name,
        n_sentences=len(cases),
        clean_chrf=chrf(clean, references, lowercase=True).value,
        chrf=chrf(hypotheses, expected, lowercase=True).value if expected else None,
        repetitions=repetition_share(sources, hypotheses, [references], src_lang, languages.tgt_lang),
        numbers=_numbers_kept(zip(perturbed, references, hypotheses, strict=True)),
        added=Kept(sum(copied), len(copied)),
    )


def _numbers_kept(triples: Iterable[tuple[Case, str, str]]) -> Kept:
    """Count the numbers of both source and reference, which may separate digits differently."""
    kept = total = 0
    for case, reference, hypothesis in triples:
        wanted = _numbers(case.src.removesuffix(case.added)) & _numbers(reference)
        kept += (wanted & _numbers(hypothesis)).total()
        total += wanted.total()
    return Kept(kept, total)


def _numbers(text: str) -> Counter[str]:
    return Counter(number.value for number in find_numbers(text))
