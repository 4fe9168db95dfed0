import numpy as np
import pytest
from conftest import EOS_ID, sentence_pairs

from mtformer.config import TokenizerConfig
from mtformer.data.arrays import Ragged
from mtformer.data.augment import EncodedPair
from mtformer.data.tokens import Corpus, Encoder
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer

EMPTY = "a side is empty"
TOO_LONG = "longer than 20 tokens (data.max_length)"
TOO_UNLIKE = "one side more than 2.5 times as long as the other (data.max_ratio)"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    pairs = [SentencePair(*pair) for pair in sentence_pairs(300)]
    return train_tokenizer(pairs, TokenizerConfig(vocab_size=320, joint=False, type="bpe"), "en", "de")


def rows_of(corpus: Corpus) -> list[tuple[list[int], list[int]]]:
    return [(corpus.src[i].tolist(), corpus.tgt[i].tolist()) for i in range(len(corpus))]


@pytest.mark.parametrize("longest", [0, 1, 40])
def test_a_ragged_list_holds_what_a_list_of_lists_does(longest: int) -> None:
    random = np.random.default_rng(1)
    rows = [random.integers(0, 256_000, random.integers(longest + 1)).tolist() for _ in range(500)]
    ragged = Ragged.of(rows)
    assert lists(ragged) == rows
    assert ragged.lengths.tolist() == [len(row) for row in rows]
    assert lists(ragged.between(100, 200)) == rows[100:200]
    assert lists(Ragged.concatenated([ragged.between(100, 200), ragged, ragged.between(7, 7)])) == rows[100:200] + rows
    with pytest.raises(IndexError):
        ragged[len(rows)]


@pytest.mark.parametrize("indices", [[], [0], [99], [0, 1, 2, 50, 98, 99], list(range(100))])
def test_rows_are_replaced_by_others_of_any_length(indices: list[int]) -> None:
    rows = [list(range(i % 5)) for i in range(300)]
    others = [[7] * (i % 3) for i in range(len(indices))]
    expected = rows[100:200]
    for index, row in zip(indices, others, strict=True):
        expected[index] = row
    changed = Ragged.of(rows).between(100, 200).replaced(np.array(indices, dtype=int), list(map(np.array, others)))
    assert lists(changed) == expected


def lists(ragged: Ragged) -> list[list[int]]:
    return [ragged[i].tolist() for i in range(len(ragged))]


@pytest.mark.parametrize(
    ("src_length", "tgt_length", "reason"),
    [
        (1, 5, EMPTY),
        (1, 1, EMPTY),
        (1, 50, EMPTY),
        (2, 2, None),
        (20, 20, None),
        (20, 21, TOO_LONG),
        (2, 21, TOO_LONG),
        (2, 5, None),
        (2, 6, TOO_UNLIKE),
        (4, 10, None),
        (4, 11, TOO_UNLIKE),
    ],
)
def test_a_pair_is_dropped_just_beyond_the_limits(
    tokenizer: Tokenizer, src_length: int, tgt_length: int, reason: str | None
) -> None:
    encoder = Encoder(tokenizer, max_length=20, max_ratio=2.5)
    src, tgt = [1] * src_length, [1] * tgt_length
    assert encoder.reason_to_drop(EncodedPair(src, tgt)) == encoder.reason_to_drop(EncodedPair(tgt, src)) == reason


def test_pairs_are_kept_in_order_or_counted_by_the_reason_for_leaving_them_out(tokenizer: Tokenizer) -> None:
    good = [SentencePair("the house", "das rote Haus"), SentencePair("a small dog", "ein kleiner Hund")]
    dog_and_cat = SentencePair("a dog sees the red house", "猫")
    pairs = [
        SentencePair("", "leer"),
        good[0],
        SentencePair("blank", " \t\u3000"),
        SentencePair("the red house " * 20, "das rote Haus " * 20),
        SentencePair("the", "das rote Haus sieht den Hund"),
        good[1],
        SentencePair("", ""),
        good[0],
    ]
    corpus = Encoder(tokenizer, max_length=20, max_ratio=2.5).corpus(pairs)
    assert corpus.dropped == {EMPTY: 3, TOO_LONG: 1, TOO_UNLIKE: 1}

    kept = [good[0], good[1], good[0]]
    src, tgt = tokenizer.encode_src([pair.src for pair in kept]), tokenizer.encode_tgt([pair.tgt for pair in kept])
    assert rows_of(corpus) == list(zip(src, tgt, strict=True))
    assert all(row[-1] == EOS_ID for sides in rows_of(corpus) for row in sides)

    # A character without a piece is several bytes, and counts as such.
    (bytes_of_cat,) = tokenizer.encode_tgt([dog_and_cat.tgt])
    assert len(bytes_of_cat) >= 4
    limit = max(len(bytes_of_cat), len(tokenizer.encode_src([dog_and_cat.src])[0]))
    assert len(Encoder(tokenizer, max_length=limit, max_ratio=10).corpus([dog_and_cat])) == 1
    assert len(Encoder(tokenizer, max_length=limit - 1, max_ratio=10).corpus([dog_and_cat])) == 0


@pytest.mark.parametrize("n", [0, 9_999, 10_000, 10_001, 25_000])
def test_a_text_of_any_size_is_encoded_whole(tokenizer: Tokenizer, n: int) -> None:
    # Encoding goes chunk by chunk: nothing may be lost or swapped where one ends.
    numbers = [SentencePair(f"{i}", f"Nr. {i}") for i in range(n)]
    corpus = Encoder(tokenizer, max_length=100, max_ratio=100).corpus(numbers)
    assert len(corpus) == len(corpus.src) == len(corpus.tgt) == n
    assert not corpus.dropped
    texts = [tokenizer.decode(corpus.tgt[i].tolist()) for i in range(n)]
    assert texts == [pair.tgt for pair in numbers]
    digits = ["".join(tokenizer.src_tokens(corpus.src[i].tolist())) for i in range(n)]
    assert digits == ["".join(tokenizer.src_tokens(row)) for row in tokenizer.encode_src([p.src for p in numbers])]
