"""Sampled segmentations: their probabilities, and that they depend on the seed alone."""

import itertools
import math
import subprocess
import sys
from collections import Counter

import pytest
from conftest import sentence_pairs

from mtformer.config import TokenizerConfig
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.sampling import Sampling
from mtformer.text.tokenizer.sentencepiece_file import Token, append_tokens, read_tokens
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer

PAIRS = [SentencePair(*pair) for pair in sentence_pairs(200)]
TEXTS = [pair.tgt for pair in PAIRS[:40]] + ["a  b ▁c😀", "", "ünïcode", "{x}y{x} the{x}"]


def tokenizer_with(type: str) -> Tokenizer:
    config = TokenizerConfig.model_validate({"type": type, "vocab_size": 320, "user_symbols": ["{x}"], "joint": True})
    return train_tokenizer(PAIRS, config, "en", "de", adjust=True)


@pytest.fixture(scope="module")
def unigram() -> Tokenizer:
    """A model that has the halves of words, too: which tokens training leaves depends on SentencePiece's release."""
    model = tokenizer_with("unigram").src_model
    words = {f"▁{word}" for pair in PAIRS for text in (pair.src, pair.tgt) for word in text.strip(".").split()}
    halves = {half for word in words for half in (word[: len(word) // 2], word[len(word) // 2 :])}
    known = {token.text for token in read_tokens(model)}
    return Tokenizer(append_tokens(model, [Token(half, -5.0) for half in sorted(halves - known)]))


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return tokenizer_with("bpe")


def test_bpe_that_skips_no_merge_is_bpe(bpe: Tokenizer) -> None:
    assert bpe.encode_tgt(TEXTS, Sampling(0.0, 1)) == bpe.encode_tgt(TEXTS)
    for text in ("house", "rote Haus."):
        assert bpe.encode_tgt_inside(text, Sampling(0.0, 1)) == bpe.encode_tgt_inside(text)


def test_bpe_that_skips_all_merges_has_characters(bpe: Tokenizer) -> None:
    [ids] = bpe.encode_src(["the red{x} é"], Sampling(1.0, 1))
    assert bpe.src_tokens(ids) == [*"▁the▁red", "{x}", "▁", "<0xC3>", "<0xA9>", "</s>"]


def test_bpe_skips_a_merge_as_often_as_alpha_says(bpe: Tokenizer) -> None:
    scores = {token.text: token.score for token in read_tokens(bpe.src_model)}
    pair = next(text for text in scores if len(text) == 2 and text.isalpha())
    n = 4_000
    drawn = [bpe.tgt_tokens(bpe.encode_tgt_inside(pair, Sampling(0.3, seed))) for seed in range(n)]
    assert drawn.count([*pair]) / n == pytest.approx(0.3, abs=0.03)


def test_the_likeliest_unigram_segmentation_is_the_usual_one(unigram: Tokenizer) -> None:
    drawn = unigram.encode_tgt(TEXTS, Sampling(1_000.0, 1))
    usual = unigram.encode_tgt(TEXTS)
    same = sum(one == other for one, other in zip(drawn, usual, strict=True))
    assert same >= len(TEXTS) - 2  # of equal probability


def segmentations(word: str, scores: dict[str, float]) -> dict[tuple[str, ...], float]:
    """Return the sum of the tokens' scores for each segmentation of a word."""
    found = {}
    for cuts in itertools.product((False, True), repeat=len(word) - 1):
        ends = [place + 1 for place, cut in enumerate(cuts) if cut]
        tokens = tuple(word[start:end] for start, end in itertools.pairwise([0, *ends, len(word)]))
        if all(token in scores for token in tokens):
            found[tokens] = sum(scores[token] for token in tokens)
    return found


def test_unigram_segmentations_are_as_frequent_as_they_are_probable(unigram: Tokenizer) -> None:
    scores = {token.text: token.score for token in read_tokens(unigram.src_model)}
    words = {word for text in TEXTS for word in text.split() if len(word) < 9}
    all_found = {word: segmentations(f"▁{word}", scores) for word in sorted(words)}
    word, found = max((item for item in all_found.items() if len(item[1]) <= 64), key=lambda item: len(item[1]))
    assert len(found) > 3
    alpha, n = 0.3, 4_000
    weights = {tokens: math.exp(alpha * score) for tokens, score in found.items()}
    [ids] = unigram.encode_tgt([" ".join([word] * n)], Sampling(alpha, 1))
    drawn = "".join(f" {token}" if token.startswith("▁") else f"|{token}" for token in unigram.tgt_tokens(ids[:-1]))
    counts = Counter(tuple(tokens.split("|")) for tokens in drawn.split())
    assert set(counts) <= set(weights)
    for tokens, weight in weights.items():
        assert counts[tokens] / n == pytest.approx(weight / sum(weights.values()), abs=0.03), tokens


@pytest.mark.parametrize("type", ["unigram", "bpe"])
def test_symbols_stay_whole_and_texts_as_they_are(type: str, request: pytest.FixtureRequest) -> None:
    tokenizer: Tokenizer = request.getfixturevalue(type)
    for seed in range(20):
        drawn, usual = tokenizer.encode_tgt(TEXTS, Sampling(0.2, seed)), tokenizer.encode_tgt(TEXTS)
        assert [tokenizer.decode(ids) for ids in drawn] == [tokenizer.decode(ids) for ids in usual]
        for text, ids in zip(TEXTS, drawn, strict=True):
            assert tokenizer.tgt_tokens(ids).count("{x}") == text.count("{x}")


@pytest.mark.parametrize("type", ["unigram", "bpe"])
def test_words_so_long_that_sampling_would_take_for_ever_are_split_in_the_usual_way(
    type: str, request: pytest.FixtureRequest
) -> None:
    tokenizer: Tokenizer = request.getfixturevalue(type)
    texts = ["thehouse" * 30, "a " + "redhaus" * 3_000]
    for seed in range(5):
        drawn, usual = tokenizer.encode_tgt(texts, Sampling(0.5, seed)), tokenizer.encode_tgt(texts)
        assert [ids[-200:] for ids in drawn] == [ids[-200:] for ids in usual]
        assert tokenizer.encode_tgt_inside(texts[0], Sampling(0.5, seed)) == tokenizer.encode_tgt_inside(texts[0])


DRAWN = """
import sys
from mtformer.text.tokenizer.sampling import Sampling
from mtformer.text.tokenizer.tokenizer import Tokenizer
tokenizer = Tokenizer(sys.stdin.buffer.read())
print(tokenizer.encode_src(["the red house needs my old friend."] * 20, Sampling(0.3, 7)))
"""


@pytest.mark.parametrize("type", ["unigram", "bpe"])
def test_samples_are_the_same_in_every_process(type: str, request: pytest.FixtureRequest) -> None:
    tokenizer: Tokenizer = request.getfixturevalue(type)
    drawn = tokenizer.encode_src(["the red house needs my old friend."] * 20, Sampling(0.3, 7))
    other = subprocess.run([sys.executable, "-c", DRAWN], input=tokenizer.src_model, capture_output=True, check=True)
    assert other.stdout.decode() == f"{drawn}\n"
    assert len(set(map(tuple, drawn))) > 1
