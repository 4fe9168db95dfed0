"""What an evaluation says beside the scores."""

from collections.abc import Sequence

import pytest
from conftest import Project

from mtformer.bundle.format import load_bundle
from mtformer.evaluate.analysis import analyse, length_scores, word_scores
from mtformer.evaluate.metrics import bleu
from mtformer.text.repetition import repeats
from mtformer.text.tokenizer.tokenizer import Tokenizer


@pytest.fixture
def tokenizer(trained: Project) -> Tokenizer:
    return load_bundle(trained.folder / "runs" / "config" / "model.safetensors").tokenizer


@pytest.mark.parametrize(
    ("text", "language", "repeated"),
    [
        ("THAT THAT THAT.", "en", True),
        ("that that", "en", False),
        ("the red house, the red house, the red house", "en", True),
        ("on a truck on a truck", "en", False),
        ("It was very, very, VERY good.", "en", True),
        ("anderenanderenanderenanderen", "de", True),
        ("die Schifffahrt", "de", False),
        ("an an anx", "de", False),
        ("1 1 1 1", "en", False),
        ("10000000", "en", False),
        ("我吃了薯片薯片薯片。", "zh", True),
        ("我吃了薯片，吃了薯片。", "zh", False),
        ("马路马路，马路", "zh", True),
        ("", "en", False),
    ],
)
def test_a_loop_is_a_phrase_three_times_in_a_row(text: str, language: str, repeated: bool) -> None:
    assert repeats(text, language) is repeated


def test_shares_of_matches_and_loops(tokenizer: Tokenizer) -> None:
    sources = ["the house", "no no no", "the dog", "a book"]
    hypotheses = ["das Haus Haus Haus", "nein nein nein", "ein Hund", "das Buch"]
    references = [["das Haus", "nein nein nein", "der Hund", "ein Buch"], ["Haus", "nein", "Hund", "das Buch"]]
    found = analyse(sources, hypotheses, references, src_lang="en", tgt_lang="de", tokenize="13a", tokenizer=tokenizer)
    assert found.exact_matches == 2 / 4  # of either reference
    assert found.repetitions == 1 / 4  # the other one is in its source too


def test_scores_by_length_are_those_of_the_sentences_in_the_bucket() -> None:
    references = ["a b c d e", "a b c d e f g h i j k l", "a b c d.", "x " * 60]
    hypotheses = ["a b c d f", "a b c d e f g h i j k l", "a b c d.", "x " * 30]
    short, middle, long = length_scores(hypotheses, [references], "13a")
    assert [(part.label, part.count) for part in (short, middle, long)] == [("0-10", 2), ("11-20", 1), ("51+", 1)]
    assert short.score == bleu([hypotheses[0], hypotheses[2]], [references[0], references[2]]).value
    assert middle.score == pytest.approx(100)


class Frequent(Tokenizer):
    """A tokenizer that knows some words, and spells all others."""

    def __init__(self, *words: str) -> None:
        self.vocabulary = ["</s>", "▁", *(f"▁{word}" for word in words), *map(chr, range(32, 128)), *"薯片条"]

    def encode_tgt(self, texts: Sequence[str]) -> list[list[int]]:
        rows = [[f"▁{text}"] if f"▁{text}" in self.vocabulary else ["▁", *text] for text in texts]
        return [[self.vocabulary.index(token) for token in (*row, "</s>")] for row in rows]

    def tgt_tokens(self, ids: Sequence[int]) -> list[str]:
        return [self.vocabulary[i] for i in ids]


def test_f1_of_words_by_the_number_of_their_tokens() -> None:
    tokenizer = Frequent("das", "Haus", "sieht", "Hund")
    references = ["das Haus sieht Haus.", "das Auto am Xylophon 1"]
    hypotheses = ["das Haus sieht Hund.", "Haus Auto Xylophon Xylophon 1"]
    one, two, four = word_scores(hypotheses, [references], "13a", tokenizer)
    # Of the known words, das, Haus and sieht match; hypotheses and references have 5 each.
    assert (one.label, one.count) == ("1", 5)
    assert one.score == pytest.approx(100 * 2 * 3 / 10)
    assert (two.label, two.count, two.score) == ("2", 1, 0)  # am
    assert (four.label, four.count) == ("4+", 2)
    assert four.score == pytest.approx(100 * 2 * 2 / 5)


def test_f1_of_words_compares_each_sentence_with_its_best_reference() -> None:
    tokenizer = Frequent("das", "ein", "Haus", "Hund")
    hypotheses = ["das Haus", "ein Hund", ""]
    references = [["das Haus", "das Haus", "das Haus"], ["ein Hund", "ein Hund Xylophon", "ein Hund Xylophon"]]
    one, four = word_scores(hypotheses, references, "13a", tokenizer)
    assert (one.label, one.count) == ("1", 6)  # of equally good references, the first counts
    assert one.score == pytest.approx(100 * 2 * 4 / (4 + 6))
    assert (four.label, four.count, four.score) == ("4+", 1, 0)


def test_chinese_words_are_characters() -> None:
    [only] = length_scores(["我吃了薯片。"], [["我吃了薯片。"]], "zh")
    assert (only.label, only.count) == ("0-10", 1)
    [found] = word_scores(["薯片。"], [["薯条。"]], "zh", Frequent())
    assert (found.label, found.count) == ("1", 2)
    assert found.score == pytest.approx(50)
