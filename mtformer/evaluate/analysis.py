"""Break a score down: by length, by the rarity of words, exact matches of the reference, loops."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from sacrebleu.metrics.bleu import BLEU

from mtformer.evaluate.metrics import bleu
from mtformer.text.repetition import repeats
from mtformer.text.tokenizer.tokenizer import Tokenizer

_LENGTHS = {10: "0-10", 20: "11-20", 30: "21-30", 40: "31-40", 50: "41-50", math.inf: "51+"}  # by the most words
_MOST_TOKENS = 4  # words of so many tokens or more share a bucket


@dataclass(frozen=True)
class Bucket:
    """A part of a test set, with its score.

    Attributes:
        label: the range that the part was chosen by, as in ``11-20``.
        count: its sentences or words.
        score: from 0 to 100.
    """

    label: str
    count: int
    score: float


@dataclass(frozen=True)
class Analysis:
    """Details behind a score. Shares are from 0 to 1.

    Attributes:
        exact_matches: the share of translations that equal a reference.
        repetitions: the share of translations that repeat a phrase as neither source nor reference does.
        by_length: BLEU by the number of words in the first reference, as BLEU counts words.
        by_tokens: the F1 score of words by the number of tokens that they are split into. A tokenizer keeps words whole
            that are frequent in its training text, so that words of many tokens are the rare ones. Of several
            references of a sentence, the one with the highest F1 counts.
    """

    exact_matches: float
    repetitions: float
    by_length: list[Bucket]
    by_tokens: list[Bucket]

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        return {
            "exact_matches": round(self.exact_matches, 4),
            "repetitions": round(self.repetitions, 4),
            "by_length": [
                {"words": part.label, "sentences": part.count, "bleu": round(part.score, 2)} for part in self.by_length
            ],
            "by_tokens": [
                {"tokens": part.label, "words": part.count, "f1": round(part.score, 2)} for part in self.by_tokens
            ],
        }


def analyse(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    src_lang: str,
    tgt_lang: str,
    tokenize: str,
    tokenizer: Tokenizer,
) -> Analysis:
    """Analyse translations.

    Args:
        sources: one line each.
        hypotheses: their translations.
        references: one list for each human translator.
        src_lang: the source language.
        tgt_lang: the target language.
        tokenize: BLEU's tokenization.
        tokenizer: the model's.
    """
    exact = fmean(hypothesis in targets for hypothesis, *targets in zip(hypotheses, *references, strict=True))
    loops = repetition_share(sources, hypotheses, references, src_lang, tgt_lang)
    by_tokens = word_scores(hypotheses, references, tokenize, tokenizer)
    return Analysis(exact, loops, length_scores(hypotheses, references, tokenize), by_tokens)


def repetition_share(
    sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[Sequence[str]], src_lang: str, tgt_lang: str
) -> float:
    """Return the share of translations that repeat a phrase as neither source nor reference does."""
    return fmean(
        repeats(hypothesis, tgt_lang)
        and not repeats(source, src_lang)
        and not any(repeats(target, tgt_lang) for target in targets)
        for source, hypothesis, *targets in zip(sources, hypotheses, *references, strict=True)
    )


def length_scores(hypotheses: Sequence[str], references: Sequence[Sequence[str]], tokenize: str) -> list[Bucket]:
    """BLEU of the sentences whose first reference has 0-10 words, 11-20 words and so on; empty buckets are left out."""
    places: dict[str, list[int]] = {label: [] for label in _LENGTHS.values()}  # the sentences of each bucket
    for place, words in enumerate(_words(references[0], tokenize)):
        places[next(label for most, label in _LENGTHS.items() if len(words) <= most)].append(place)

    def score(chosen: list[int]) -> float:
        streams = [[stream[i] for i in chosen] for stream in references]
        return bleu([hypotheses[i] for i in chosen], streams, tokenize).value

    return [Bucket(label, len(chosen), score(chosen)) for label, chosen in places.items() if chosen]


def word_scores(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], tokenize: str, tokenizer: Tokenizer
) -> list[Bucket]:
    """F1 of words with a letter by the number of their tokens.

    A sentence is compared with the reference whose words give it the highest F1, and the counts are of words in these.
    """
    streams = [
        [Counter(_with_letters(words)) for words in _words(lines, tokenize)] for lines in (hypotheses, *references)
    ]
    n_tokens = _token_counts({word for stream in streams for line in stream for word in line}, tokenizer)
    predicted, expected, matched = Counter[int](), Counter[int](), Counter[int]()
    for hypothesis, *targets in zip(*streams, strict=True):
        reference = max(targets, key=lambda target: _f1(hypothesis, target))
        for counts, total in ((hypothesis, predicted), (reference, expected), (hypothesis & reference, matched)):
            for word, count in counts.items():
                total[n_tokens[word]] += count
    return [
        Bucket(f"{n}+" if n == _MOST_TOKENS else str(n), expected[n], 200 * matched[n] / (predicted[n] + expected[n]))
        for n in sorted(predicted | expected)
    ]


def _f1(hypothesis: Counter[str], reference: Counter[str]) -> float:
    n_words = hypothesis.total() + reference.total()
    return 2 * (hypothesis & reference).total() / n_words if n_words else 1.0


def _words(lines: Sequence[str], tokenize: str) -> list[list[str]]:
    tokenized = BLEU(tokenize=tokenize).tokenizer
    return [tokenized(line).split() for line in lines]


def _with_letters(words: Iterable[str]) -> list[str]:
    return [word for word in words if any(map(str.isalpha, word))]


def _token_counts(words: Iterable[str], tokenizer: Tokenizer) -> Mapping[str, int]:
    """Return the number of tokens of each word, at most ``_MOST_TOKENS``; a token for the space before it is none."""
    distinct = sorted(words)
    tokens = [tokenizer.tgt_tokens(ids[:-1]) for ids in tokenizer.encode_tgt(distinct)]
    counts = (max(1, len(word) - word.count("▁")) for word in tokens)
    return {word: min(count, _MOST_TOKENS) for word, count in zip(distinct, counts, strict=True)}
