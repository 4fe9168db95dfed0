import io
import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from typing import Literal

import numpy as np
import pytest
from conftest import BOS_ID, EOS_ID, PAD_ID, UNK_ID, sentence_pairs
from sentencepiece import SentencePieceTrainer

from mtformer.config import TokenizerConfig
from mtformer.support.errors import UserError
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import extend_tokenizer, train_tokenizer
from mtformer.text.tokenizer.vocabulary import normalize

Type = Literal["unigram", "bpe"]

PAIRS = [SentencePair(*pair) for pair in sentence_pairs(300)]
SWAPPED = [SentencePair(pair.tgt, pair.src) for pair in PAIRS]
TINY = [SentencePair("ab", "cdcd")]
_HAN = ["".join(map(chr, range(0x4E00, end))) for end in (0x4E70, 0x4E74)]
MANY_CHARACTERS = [*PAIRS, SentencePair(_HAN[0], _HAN[1])]
MANY_CHARACTERS_SWAPPED = [*PAIRS, SentencePair(_HAN[1], _HAN[0])]

TEXTS = [
    "the red house needs my old friend.",
    "Dieses grüne Auto braucht jedes gute Buch.",
    "他说：“下雨了，走吧！”（真的）",
    "family 👨‍👩‍👧‍👦, flag 🇩🇪, thumb 👍🏽",
    "Ελληνικά עברית हिन्दी ภาษาไทย ᚠᚢᚦ 𓀀 \U000f0000",
    "cafe\u0301 u\u0308ber \u1100\u1161",
    "<s> </s> <unk> <pad> <0x41>",
    "\ufeffzero\u200bwidth \u202eand direction",
    "  many \t kinds\nof\u3000space\u2028here\x85 ",
    "",
]


def train(pairs: list[SentencePair], type: Type = "unigram", joint: bool = True, vocab_size: int = 300) -> Tokenizer:
    return train_tokenizer(pairs, TokenizerConfig(type=type, vocab_size=vocab_size, joint=joint), "en", "de")


@pytest.fixture(scope="module", params=[("unigram", True), ("unigram", False), ("bpe", True), ("bpe", False)])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    type, joint = request.param
    tokenizer = train(PAIRS, type, joint)
    assert tokenizer.joint is joint
    assert (tokenizer.src_vocab_size, tokenizer.tgt_vocab_size) == (300, 300)
    return tokenizer


def round_trip(tokenizer: Tokenizer, text: str) -> str:
    (ids,) = tokenizer.encode_tgt([text])
    return tokenizer.decode(ids)


@pytest.mark.parametrize("text", TEXTS)
def test_any_text_comes_back_composed_and_with_single_spaces(tokenizer: Tokenizer, text: str) -> None:
    assert round_trip(tokenizer, text) == " ".join(unicodedata.normalize("NFC", text).split())


def test_random_characters_of_all_planes_come_back(tokenizer: Tokenizer) -> None:
    random = np.random.default_rng(1)
    characters = [chr(int(code)) for code in random.integers(0x20, 0x110000, 4000)]
    # Surrogates are no text, control characters are left out of output, and U+2581 is SentencePiece's own space.
    characters = [c for c in characters if unicodedata.category(c) not in ("Cs", "Cc") and c != "\u2581"]
    for start in range(0, len(characters), 50):
        text = "".join(characters[start : start + 50])
        assert round_trip(tokenizer, text) == normalize(text)


def test_punctuation_of_full_width_stays_and_marks_are_composed() -> None:
    assert normalize("ｆｕｌｌ，（宽）！") == "ｆｕｌｌ，（宽）！"
    assert normalize("a\u0308\u3000ﬁ ½") == "ä ﬁ ½"


def test_a_saved_tokenizer_works_as_before(tokenizer: Tokenizer) -> None:
    loaded = Tokenizer(tokenizer.src_model, tokenizer.tgt_model)
    assert loaded.joint == tokenizer.joint
    assert loaded.encode_src(TEXTS) == tokenizer.encode_src(TEXTS)
    assert loaded.encode_tgt(TEXTS) == tokenizer.encode_tgt(TEXTS)


def test_each_side_is_encoded_by_its_own_model(tokenizer: Tokenizer) -> None:
    (english,), (german,) = tokenizer.encode_src([TEXTS[0]]), tokenizer.encode_src(["grüne"])
    assert "".join(tokenizer.src_tokens(english)) == f"\u2581{TEXTS[0]}</s>".replace(" ", "\u2581")
    # Only a tokenizer that has seen German has a piece for "ü".
    spelled = "ü" if tokenizer.joint else "<0xC3><0xBC>"
    assert "".join(tokenizer.src_tokens(german)) == f"\u2581gr{spelled}ne</s>"
    assert (tokenizer.encode_src(TEXTS[:2]) == tokenizer.encode_tgt(TEXTS[:2])) is tokenizer.joint


def test_texts_end_in_eos_and_hold_no_other_special_id(tokenizer: Tokenizer) -> None:
    assert (PAD_ID, UNK_ID, BOS_ID, EOS_ID) == (0, 1, 2, 3)
    assert tokenizer.src_tokens(range(4)) == ["<pad>", "<unk>", "<s>", "</s>"]
    for rows in (tokenizer.encode_src(TEXTS), tokenizer.encode_tgt(TEXTS)):
        assert [row[-1] for row in rows] == [EOS_ID] * len(TEXTS)
        assert min(id for row in rows for id in row[:-1]) > EOS_ID
        assert rows[TEXTS.index("")] == [EOS_ID]


@pytest.mark.parametrize("special", [PAD_ID, UNK_ID, BOS_ID, EOS_ID])
def test_special_ids_leave_no_trace_in_the_output(tokenizer: Tokenizer, special: int) -> None:
    (ids,) = tokenizer.encode_tgt([TEXTS[0]])
    scattered = [special, *ids[:3], special, special, *ids[3:], special]
    assert tokenizer.decode(scattered) == TEXTS[0]
    assert tokenizer.decode([special]) == ""


def test_no_bytes_that_a_model_may_choose_break_the_output_line() -> None:
    tokenizer = train(PAIRS)
    pieces = tokenizer.src_tokens(range(tokenizer.tgt_vocab_size))
    ids_of_bytes = [pieces.index(f"<0x{byte:02X}>") for byte in range(256)]
    (house,) = tokenizer.encode_tgt(["house"])
    breaks = ["\n", "\r\n", "\t", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\0", "\x85", "\u2028", "\u2029"]
    for raw in [*(text.encode() for text in breaks), *(bytes([byte]) for byte in range(0x80, 0x100)), b"\xe2\x80"]:
        output = tokenizer.decode([*house[:-1], *(ids_of_bytes[byte] for byte in raw), *house])
        assert output.splitlines() == [output], raw
        assert not set(output) & set("\t\0"), raw
        assert output.startswith("house"), raw
        assert output.endswith("house"), raw


@pytest.mark.parametrize("type", ["unigram", "bpe"])
@pytest.mark.parametrize(
    ("joint", "pairs", "vocab_size"),
    [
        *((True, PAIRS, 5000), (True, SWAPPED, 5000), (True, TINY, 300)),
        *((True, MANY_CHARACTERS, 300), (True, MANY_CHARACTERS_SWAPPED, 300)),
        *((False, MANY_CHARACTERS, 300), (False, MANY_CHARACTERS_SWAPPED, 300)),
    ],
)
def test_a_size_that_the_text_does_not_support_is_answered_with_one_that_it_does(
    type: Type, joint: bool, pairs: list[SentencePair], vocab_size: int
) -> None:
    with pytest.raises(UserError) as error:
        train(pairs, type, joint, vocab_size)
    named = re.search(rf"vocab_size = {vocab_size} .* (?:up to|give) (\d+)", str(error.value))
    assert named, str(error.value)
    supported = int(named[1])
    tokenizer = train(pairs, type, joint, supported)
    assert (tokenizer.src_vocab_size, tokenizer.tgt_vocab_size) == (supported, supported)
    with pytest.raises(UserError):  # it is the limit itself
        train(pairs, type, joint, supported + (1 if supported < vocab_size else -1))


@pytest.mark.parametrize(("pairs", "vocab_size"), [(PAIRS, 5000), (MANY_CHARACTERS, 300)])
def test_adjusting_takes_the_nearest_size_that_works(pairs: list[SentencePair], vocab_size: int) -> None:
    tokenizer = train_tokenizer(pairs, TokenizerConfig(vocab_size=vocab_size, joint=True), "en", "de", adjust=True)
    with pytest.raises(UserError, match=rf"(up to|give) {tokenizer.src_vocab_size}\b"):
        train(pairs, vocab_size=vocab_size)


@pytest.mark.parametrize(("pairs", "vocab_size"), [(PAIRS, 5000), (MANY_CHARACTERS, 300)])
def test_the_size_of_adjusted_separate_tokenizers_trains_the_same_again(
    pairs: list[SentencePair], vocab_size: int
) -> None:
    config = TokenizerConfig(vocab_size=vocab_size, joint=False)
    tokenizer = train_tokenizer(pairs, config, "en", "de", adjust=True)
    again = train(pairs, joint=False, vocab_size=max(tokenizer.src_vocab_size, tokenizer.tgt_vocab_size))
    assert (again.src_model, again.tgt_model) == (tokenizer.src_model, tokenizer.tgt_model)


def test_separate_tokenizers_have_as_many_tokens_as_their_side_supports() -> None:
    tokenizer = train(PAIRS, joint=False, vocab_size=5000)
    for size, side in ((tokenizer.src_vocab_size, "src"), (tokenizer.tgt_vocab_size, "tgt")):
        with pytest.raises(UserError, match=rf"up to {size}\b"):
            train([SentencePair(getattr(pair, side), "") for pair in PAIRS], vocab_size=5000)


@pytest.mark.parametrize("text", [[], [SentencePair("", " \t")] * 5])
@pytest.mark.parametrize("adjust", [True, False])
def test_a_text_without_words_is_reported(text: list[SentencePair], adjust: bool) -> None:
    with pytest.raises(UserError, match="found no text to train on"):
        train_tokenizer(text, TokenizerConfig(vocab_size=300), "en", "de", adjust=adjust)


class Interrupted:
    """Pairs of which some can be read before ``error`` comes."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __iter__(self) -> Iterator[SentencePair]:
        yield from PAIRS
        raise self.error


@pytest.mark.parametrize("error", [UserError("train.en:301: byte 0xff"), KeyboardInterrupt()])
def test_what_stops_the_reading_of_the_text_is_not_hidden(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised:
        train_tokenizer(Interrupted(error), TokenizerConfig(vocab_size=300), "en", "de")
    assert raised.value is error


COVERED = [("en", "de", None), ("zh", "de", 1.0)]
NOT_COVERED = [
    ("zh", "de", None),
    ("de", "ja", None),
    ("en", "zh-Hant", None),
    ("zh_CN", "en", None),
    ("en", "de", 0.99),
]


@pytest.mark.parametrize(
    ("src_lang", "tgt_lang", "coverage", "has_piece"),
    [(*case, True) for case in COVERED] + [(*case, False) for case in NOT_COVERED],
)
def test_a_rare_character_is_spelled_in_bytes_where_the_languages_have_many(
    src_lang: str, tgt_lang: str, coverage: float | None, has_piece: bool
) -> None:
    config = TokenizerConfig(vocab_size=310, character_coverage=coverage, joint=True)
    tokenizer = train_tokenizer([*PAIRS, SentencePair("魑", "a")], config, src_lang, tgt_lang)
    assert ("魑" in tokenizer.src_tokens(range(310))) is has_piece
    assert round_trip(tokenizer, "魑") == "魑"


def test_separate_tokenizers_have_the_coverage_of_their_own_language() -> None:
    pairs = [*PAIRS, SentencePair("ł", "魑")]
    tokenizer = train_tokenizer(pairs, TokenizerConfig(vocab_size=300, joint=False), "en", "zh")
    (rare_src,), (rare_tgt,) = tokenizer.encode_src(["ł"]), tokenizer.encode_tgt(["魑"])
    assert "ł" in "".join(tokenizer.src_tokens(rare_src))
    assert len(rare_tgt) >= 4  # three bytes and EOS


@pytest.mark.parametrize(
    ("src_lang", "tgt_lang", "joint"),
    [("en", "de", True), ("en", "ko", True), ("zh", "ja", True), ("en", "zh", False), ("th", "en", False)],
)
def test_languages_with_and_without_spaces_share_no_vocabulary(src_lang: str, tgt_lang: str, joint: bool) -> None:
    config = TokenizerConfig(vocab_size=300)
    assert train_tokenizer(PAIRS, config, src_lang, tgt_lang, adjust=True).joint is joint
    given = config.model_copy(update={"joint": not joint})
    assert train_tokenizer(PAIRS, given, src_lang, tgt_lang, adjust=True).joint is not joint


@pytest.mark.parametrize("type", ["unigram", "bpe"])
def test_a_long_line_is_learned_from(type: Type) -> None:
    text = "zebra " * 5_000  # 30,000 bytes
    tokenizer = train([*PAIRS, SentencePair(text, "")], type)
    assert "▁zebra" in tokenizer.src_tokens(range(300))


def test_a_line_without_spaces_may_be_longer_than_sentencepiece_can_count() -> None:
    text = "天地" * 35_000  # SentencePiece's BPE counts the characters of a word in 16 bits
    config = TokenizerConfig(type="bpe", vocab_size=330, joint=False)
    tokenizer = train_tokenizer([*PAIRS, SentencePair("a", text)], config, "en", "zh", adjust=True)
    assert "天地" in tokenizer.tgt_tokens(range(tokenizer.tgt_vocab_size))


@pytest.mark.parametrize("type", ["unigram", "bpe"])
def test_no_chinese_token_is_long_or_merges_a_particle_with_a_word(type: Type) -> None:
    text = ["因为它太累了", "我吃了薯片", "他的薯片很好", "因为它太累了吗"] * 100
    pairs = [SentencePair("a word", line) for line in text]
    config = TokenizerConfig(type=type, vocab_size=300)
    tokenizer = train_tokenizer(pairs, config, "en", "zh-Hans", adjust=True)
    pieces = tokenizer.tgt_tokens(range(EOS_ID + 257, tokenizer.tgt_vocab_size))
    words = [piece.removeprefix("▁") for piece in pieces]
    assert max(map(len, words)) <= 3
    assert [word for word in words if len(word) > 1 and set(word) & set("的了它太很吗")] == []
    assert "".join(tokenizer.tgt_tokens(tokenizer.encode_tgt(["因为它太累了"])[0])) == "▁因为它太累了</s>"


SPECIAL = ["<s>", "</s>", "<unk>", "<pad>", "<0x41>"]
FRAGMENTS = [*SPECIAL, "<", ">", "<s", "s>", "</", "/s>", "unk>", "<pad", "<0x", "0x41>", "41>", "a", " "]


def mixtures(n: int) -> list[str]:
    """Texts full of the names of special tokens and their parts."""
    random = np.random.default_rng(1)
    texts = (normalize("".join(random.choice(FRAGMENTS, size=random.integers(1, 7)))) for _ in range(n))
    return [text for text in texts if text]


@pytest.mark.parametrize("type", ["unigram", "bpe"])
@pytest.mark.parametrize("in_training", [False, True])
@pytest.mark.parametrize("extended", [False, True])
def test_names_of_special_tokens_in_a_text_are_text(type: Type, in_training: bool, extended: bool) -> None:
    """Encoded and decoded like any other, though the training text is full of them as well."""
    odd = [SentencePair(text, text) for text in (mixtures(2_000) if in_training else [])]
    if extended:
        config = TokenizerConfig(type=type, vocab_size=310 if in_training else 301)
        old = train(PAIRS, type, vocab_size=300)
        tokenizer = extend_tokenizer(old, [*odd, SentencePair("☃ " * 9, "☃")] * 2, config, "en", "de", seed=1)
    else:
        tokenizer = train([*PAIRS, *odd], type, vocab_size=300)
    texts = [*SPECIAL, *(f"the {name} house" for name in SPECIAL), *mixtures(300)]
    for encode in (tokenizer.encode_src, tokenizer.encode_tgt):
        rows = encode(texts)
        assert min(id for row in rows for id in row[:-1]) > EOS_ID
        assert [tokenizer.decode(row) for row in rows] == texts


def test_a_model_with_other_special_tokens_is_refused() -> None:
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter([pair.src for pair in PAIRS]),
        model_writer=model,
        vocab_size=300,
        byte_fallback=True,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    with pytest.raises(UserError, match="special tokens"):
        Tokenizer(model.getvalue())


SAMPLED = """
import hashlib
from mtformer.config import TokenizerConfig
from mtformer.text.tokenizer import train
from mtformer.text.pairs import SentencePair
train.MAX_TRAINING_TEXTS = 150
pairs = [SentencePair(f"{n ** 3:x} {n ** 5 % 9973}", f"{n ** 4:o}") for n in range(1000)]
for seed in (1, 1, 2):
    trained = train.train_tokenizer(pairs, TokenizerConfig(vocab_size=320), "en", "de", seed=seed)
    print(hashlib.sha256(trained.src_model).hexdigest())
"""


def test_the_sample_of_a_large_text_depends_on_the_seed_alone() -> None:
    processes = [subprocess.run([sys.executable, "-c", SAMPLED], capture_output=True, text=True) for _ in range(2)]
    assert [done.stderr for done in processes] == ["", ""]
    first, second = (done.stdout.split() for done in processes)
    assert first == second  # in another process
    assert first[0] == first[1]
    assert first[0] != first[2]


@pytest.mark.parametrize("type", ["unigram", "bpe"])
def test_the_same_text_gives_the_same_model_on_any_number_of_processors(
    type: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = set()
    for n_processors in (1, 2, 2, 7):
        monkeypatch.setattr(os, "cpu_count", lambda n=n_processors: n)
        models.add(train(PAIRS, type).src_model)
    assert len(models) == 1


@pytest.mark.parametrize("damage", ["empty", "garbage", "zeros", "cut in half", "last byte gone"])
@pytest.mark.parametrize("side", ["src", "tgt"])
def test_bytes_that_are_no_model_are_refused(damage: str, side: str) -> None:
    good = train(PAIRS).src_model
    bad = {
        "empty": b"",
        "garbage": b"not a model",
        "zeros": bytes(1000),
        "cut in half": good[: len(good) // 2],
        "last byte gone": good[:-1],
    }[damage]
    with pytest.raises(UserError, match="not a SentencePiece model"):
        Tokenizer(bad, good) if side == "src" else Tokenizer(good, bad)
