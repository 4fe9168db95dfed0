"""Measure translation with glossaries on a test set.

The terms are words of the test set that the training text links to words of its references:

- reference: the word that the reference has, for all such words of a sentence;
- wrong: of these, only those that the model translates otherwise;
- other: for each word always the same other translation that the training text has; in the references, it replaces
  the word that they have.

With --terms, the glossaries are files instead. --terms-mode measures soft terms, with a model that was trained with
annotated terms.

Prints for each glossary how many sentences have terms; how many terms are in the translations without and with it; BLEU
without and with it, and with it but without moving terms to better places; and the ratio of the processor times of
translating with and without it, measured in turns. Words are linked by how often they occur in the same pair of
training sentences (Dice's coefficient).
"""

import argparse
import re
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from unittest import mock

from program import run_program

from mtformer.bundle.format import load_bundle
from mtformer.config import parse_source
from mtformer.data.sources.parallel import ParallelText
from mtformer.evaluate.metrics import bleu, bleu_tokenize
from mtformer.evaluate.testsets import combined, read_eval_sets
from mtformer.runs.finding import find_model
from mtformer.search.engine import SearchRequest
from mtformer.search.hypothesis import Hypothesis
from mtformer.text.glossary import Glossary, Match, Term
from mtformer.text.languages import is_written_with_spaces
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.vocabulary import normalize
from mtformer.text.words import WordRule, find_words, word_rule
from mtformer.translate.placement import Placed, Placement
from mtformer.translate.plan import Plan
from mtformer.translate.terms import MODES, Terms
from mtformer.translate.translator import Translator

_N_FREQUENT = 50  # the most frequent words of each side are no terms
_LEAST_DICE = 0.1
_MAX_CHARACTERS = 3  # of a word of a language without spaces


class TermsOfSentences(Terms):
    """Terms that are given for each sentence."""

    def __init__(
        self,
        of_sentences: Mapping[str, list[Term]],
        tokenizer: Tokenizer,
        languages: tuple[str, str],
        mode: str,
    ) -> None:
        """Take the terms of each source text."""
        targets = {term.tgt: term.tgt for terms in of_sentences.values() for term in terms}
        super().__init__(Glossary(targets.items()), tokenizer, src_lang=languages[0], tgt_lang=languages[1], mode=mode)
        self._of_sentences = of_sentences

    def find(self, text: str) -> list[Match]:
        """Return the terms of a sentence."""
        text = normalize(text)
        return Glossary(self._of_sentences.get(text, [])).find(text, self._src_words)


class Dictionary:
    """Which words of two languages occur in the same pairs of sentences."""

    def __init__(self, text: ParallelText, n_pairs: int, languages: tuple[str, str]) -> None:
        """Count the words of the first ``n_pairs`` pairs."""
        self._languages = languages
        self._src, self._tgt, self._both = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
        for pair in islice(text, n_pairs):
            src, tgt = set(words(pair.src, languages[0])), set(words(pair.tgt, languages[1]))
            self._src.update(src)
            self._tgt.update(tgt)
            self._both.update((one, other) for one in src for other in tgt)
        self._frequent = [{word for word, _ in counts.most_common(_N_FREQUENT)} for counts in (self._src, self._tgt)]
        self._others: dict[str, list[str]] = {}
        for one, other in self._both:
            if self.dice(one, other) >= _LEAST_DICE / 3:
                self._others.setdefault(one, []).append(other)

    def dice(self, src: str, tgt: str) -> float:
        """Return the share of the pairs with either word that have both."""
        together = self._both[src, tgt]
        return 2 * together / (self._src[src] + self._tgt[tgt]) if together > 2 else 0.0

    def links(self, src: str, tgt: str) -> list[Term]:
        """Return the words of a sentence that are linked to words of its translation, each at most once."""
        sides = [Counter(words(text, language)) for text, language in zip((src, tgt), self._languages, strict=True)]
        once = [
            [word for word, n in side.items() if n == 1 and word not in frequent]
            for side, frequent in zip(sides, self._frequent, strict=True)
        ]
        pairs = [(self.dice(one, other), len(other), Term(one, other)) for one in once[0] for other in once[1]]
        found: dict[str, Term] = {}
        for dice, _, term in sorted(pairs, reverse=True):
            if dice >= _LEAST_DICE and term.src not in found and all(term.tgt not in t.tgt for t in found.values()):
                found[term.src] = term
        return list(found.values())

    def other(self, term: Term) -> str | None:
        """Return the likeliest other translation of a term."""
        others = [word for word in self._others.get(term.src, []) if word not in term.tgt and term.tgt not in word]
        return max(others, key=lambda word: self.dice(term.src, word), default=None)


def words(text: str, language: str) -> list[str]:
    """Return the words of a text; where no spaces separate them, everything that may be one."""
    found = re.findall(r"\w+", normalize(text))
    if is_written_with_spaces(language):
        return found
    lengths = range(1, _MAX_CHARACTERS + 1)
    return [run[i : i + n] for run in found for n in lengths for i in range(len(run) - n + 1)]


def main() -> None:
    """Translate the test set without and with each glossary and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run's folder or a model bundle")
    kinds = parser.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--train", metavar="SOURCE", help="text whose words are linked")
    kinds.add_argument("--terms", metavar="FILE", type=Path, nargs="+", help="glossaries to measure instead")
    parser.add_argument("--terms-mode", choices=MODES, default="hard", help="as for mtformer translate")
    parser.add_argument("--data", metavar="SOURCE", help="the test set, as for mtformer eval; the run's without it")
    parser.add_argument("-n", type=int, default=1_000, help="sentences to translate")
    parser.add_argument("--pairs", type=int, default=30_000, help="pairs of the training text to read")
    parser.add_argument("--beam-size", type=int, default=4, help="hypotheses kept at each step")
    parser.add_argument("--turns", type=int, default=3, help="how often to measure the time")
    arguments = parser.parse_args()
    report(arguments)


def report(arguments: argparse.Namespace) -> None:
    """Print the table."""
    path = find_model(arguments.run)
    bundle = load_bundle(path)
    languages = bundle.header.src_lang, bundle.header.tgt_lang
    texts = combined(read_eval_sets(path, bundle.header, data=[arguments.data] if arguments.data else []))
    sources, references = texts.sources[: arguments.n], texts.references[0][: arguments.n]
    plain = Translator.load(bundle, raw=True, beam_size=arguments.beam_size)
    before = [best.text for best, *_ in plain.translate(sources)]
    tokenize = bleu_tokenize(bundle.header.bleu_tokenize, languages[1])
    print(f"{'glossary':<12}sentences  terms  without     with   BLEU without   with  unmoved   time")
    if arguments.terms:
        kinds = {
            path.stem: (terms_of(Glossary.read(path), sources, languages[0]), references) for path in arguments.terms
        }
    else:
        train = ParallelText([parse_source(arguments.train, *languages)], *languages)
        dictionary = Dictionary(train, arguments.pairs, languages)
        kinds = glossaries(dictionary, sources, references, before, languages[1])
    for name, (terms, expected) in kinds.items():
        translator = plain.with_terms(TermsOfSentences(terms, bundle.tokenizer, languages, arguments.terms_mode))
        after = [best.text for best, *_ in translator.translate(sources)]
        with mock.patch.object(Placement, "plan", unmoved_terms):
            unmoved = [best.text for best, *_ in translator.translate(sources)]
        counts = [share(terms, sources, found, languages[1]) for found in (before, after)]
        ratio = time_ratio(translator, plain, sources, arguments.turns)
        scores = [bleu(texts, expected, tokenize) for texts in (before, after, unmoved)]
        n_terms = sum(map(len, terms.values()))
        print(
            f"{name:<12}{len(terms):>9}{n_terms:>7}{counts[0]:>9.1%}{counts[1]:>9.1%}"
            f"{scores[0].value:>15.2f}{scores[1].value:>7.2f}{scores[2].value:>9.2f}{ratio:>7.2f}"
        )
    print(scores[0].signature)


def unmoved_terms(
    placement: Placement, request: SearchRequest, terms: Sequence[Term], candidates: Sequence[Hypothesis]
) -> Plan[Placed]:
    """Leave the terms where the search has put them."""
    yield from ()
    return Placed(candidates)


def terms_of(glossary: Glossary, sources: Sequence[str], language: str) -> dict[str, list[Term]]:
    """Return the terms of a glossary in each source; sources without terms are left out."""
    found = {src: glossary.find(src, word_rule(language)) for src in map(normalize, sources)}
    return {src: [match.term for match in matches] for src, matches in found.items() if matches}


def glossaries(
    dictionary: Dictionary, sources: Sequence[str], references: Sequence[str], before: Sequence[str], language: str
) -> dict[str, tuple[dict[str, list[Term]], list[str]]]:
    """Return the terms of each source and the references, by kind of glossary; sources without terms are left out."""
    is_word = word_rule(language)
    linked = [dictionary.links(src, reference) for src, reference in zip(sources, references, strict=True)]
    wrong = [
        [term for term in terms if not find_words(text, term.tgt, is_word)]
        for terms, text in zip(linked, before, strict=True)
    ]
    always: dict[str, Term] = {}
    for term in (term for terms in linked for term in terms):
        tgt = dictionary.other(term)
        if tgt is not None:
            always.setdefault(term.src, Term(term.src, tgt))
    others = [[always[term.src] for term in terms if term.src in always] for terms in linked]
    replaced = [
        replace_words(reference, {term.tgt: always[term.src].tgt for term in terms if term.src in always}, is_word)
        for reference, terms in zip(references, linked, strict=True)
    ]
    return {
        name: ({normalize(src): terms for src, terms in zip(sources, kind, strict=True) if terms}, expected)
        for name, kind, expected in (
            ("reference", linked, list(references)),
            ("wrong", wrong, list(references)),
            ("other", others, replaced),
        )
    }


def replace_words(text: str, others: Mapping[str, str], is_word: WordRule) -> str:
    """Return a text in which other words stand for some."""
    places = [(start, word) for word in others for start in find_words(text, word, is_word)]
    for start, word in sorted(places, reverse=True):
        text = text[:start] + others[word] + text[start + len(word) :]
    return text


def share(terms: Mapping[str, list[Term]], sources: Sequence[str], translations: Sequence[str], language: str) -> float:
    """Return the share of the terms that are in the translations, the first letter of which may be capitalized."""
    is_word = word_rule(language)
    found = [
        bool(find_words(text, term.tgt, is_word) or find_words(text[:1].lower() + text[1:], term.tgt, is_word))
        for src, text in zip(sources, translations, strict=True)
        for term in terms.get(normalize(src), [])
    ]
    return sum(found) / len(found) if found else 0.0


def time_ratio(translator: Translator, plain: Translator, sources: Sequence[str], n_turns: int) -> float:
    """Return the median ratio of the processor times of translating the sentences that have terms."""
    assert translator.terms is not None
    concerned = [src for src in sources if translator.terms.find(src)]
    ratios = []
    for _ in range(n_turns):
        seconds = []
        for one in (translator, plain):
            start = time.process_time()
            one.translate(concerned)
            seconds.append(time.process_time() - start)
        ratios.append(seconds[0] / seconds[1])
    return statistics.median(ratios)


if __name__ == "__main__":
    run_program(main)
