"""Texts in many scripts come back from every kind of tokenizer as they were."""

import itertools
import unicodedata
from pathlib import Path

import pytest
from conftest import EOS_ID

from mtformer.config import TokenizerConfig
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.text.tokenizer.vocabulary import normalize

LINES = (Path(__file__).parent / "scripts.tsv").read_text(encoding="utf-8").splitlines()
TEXTS = dict(line.split("\t") for line in LINES)
FORMS = ("nfc", "nfkc", "identity")


def tokenizer_with(texts: list[str], **settings: object) -> Tokenizer:
    config = TokenizerConfig.model_validate({"vocab_size": 1_200} | settings)
    return train_tokenizer([SentencePair(text, text) for text in texts], config, "en", "de", adjust=True)


@pytest.fixture(scope="module", params=itertools.product(("unigram", "bpe", "char", "byte"), FORMS), ids="-".join)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    """A tokenizer that has seen every other script in training; it spells the rest in bytes."""
    type, form = request.param
    return tokenizer_with(list(TEXTS.values())[::2], type=type, normalization=form)


def test_the_texts_are_in_twenty_scripts() -> None:
    letters = [character for text in TEXTS.values() for character in text if character.isalpha()]
    assert len({unicodedata.name(character).split()[0] for character in letters}) >= 25  # some for signs of one script


def test_texts_come_back_as_they_were_normalized(tokenizer: Tokenizer) -> None:
    for script, text in TEXTS.items():
        expected = text if tokenizer.src.form == "identity" else normalize(text, tokenizer.src.form)
        [src] = tokenizer.encode_src([text])
        [tgt] = tokenizer.encode_tgt([text])
        assert (tokenizer.decode_src(src), tokenizer.decode(tgt)) == (expected, expected), script
        assert min(src[:-1]) > EOS_ID, script
        assert tokenizer.src.normalize(text) == expected, script


def test_tokens_span_the_whole_text(tokenizer: Tokenizer) -> None:
    for script, text in TEXTS.items():
        ids = tokenizer.encode_src([text])[0][:-1]
        covered = {place for start, end in tokenizer.src.spans(text, ids) for place in range(start, end)}
        spaces = " " if tokenizer.src.form == "identity" else " \u00a0\u3000"
        assert {place for place, character in enumerate(text) if character not in spaces} == covered, script


def test_each_token_spans_the_characters_that_it_spells() -> None:
    """Of a text that normalization changes, too."""
    tokenizer = tokenizer_with(["ab fi 12 full "] * 9, type="char", normalization="nfkc")
    text = "a ﬁ\u3000½ ｆ u\u0308"
    ids = tokenizer.encode_src([text])[0][:-1]
    spelled = [text[start:end] for start, end in tokenizer.src.spans(text, ids)]
    tokens = tokenizer.src_tokens(ids)
    assert list(zip(tokens, spelled, strict=True))[:7] == [
        *(("▁", ""), ("a", "a"), ("▁", ""), ("f", "ﬁ"), ("i", "ﬁ"), ("▁", ""), ("1", "½")),
    ]
    assert spelled[-2:] == ["u\u0308"] * 2  # its bytes


def test_lines_stay_lines_and_control_characters_are_spaces(tokenizer: Tokenizer) -> None:
    text = "a\tb\r\nc\x0bd\u2028e\x85f\x00g"
    [ids] = tokenizer.encode_src([text])
    assert tokenizer.decode_src(ids) == "a b c d e f g"


def test_the_mark_of_spaces_is_a_space(tokenizer: Tokenizer) -> None:
    [ids] = tokenizer.encode_src(["a▁b"])
    assert tokenizer.decode_src(ids) == "a b"


@pytest.mark.parametrize("form", FORMS)
def test_types_have_the_tokens_that_their_names_say(form: str) -> None:
    # SentencePiece learns nothing from the names of its bytes, such as <0x41>.
    texts = [text for text in TEXTS.values() if "<0x" not in text]
    of_bytes = tokenizer_with(texts, type="byte", normalization=form)
    assert (of_bytes.src.type, of_bytes.src_vocab_size) == ("byte", 4 + 256 + 1)
    assert of_bytes.src.characters is None
    of_characters = tokenizer_with(texts, type="char", normalization=form, vocab_size=2_000)
    characters = {c for text in texts for c in of_characters.src.normalize(text)}
    assert of_characters.src.type == "char"
    assert (of_characters.src.characters or set()) == characters
    [ids] = of_characters.encode_src(["我每天"])
    assert of_characters.src_tokens(ids) == ["▁", "我", "每", "天", "</s>"]
    fewest = tokenizer_with(texts, type="char", normalization=form, vocab_size=280)
    assert fewest.src_vocab_size == 280
    assert (fewest.src.characters or set()) < characters


@pytest.mark.parametrize("type", ["unigram", "bpe", "char", "byte"])
def test_symbols_of_users_are_never_split(type: str) -> None:
    symbols = ["{name}", "⟨br⟩", "😀,"]
    texts = ["hello {name}, good day", "one⟨br⟩two", "day day 😀 good"] * 9
    tokenizer = tokenizer_with(texts, type=type, user_symbols=symbols, vocab_size=300)
    assert tokenizer.src.user_symbols == symbols
    text = "x{name}{name}y ⟨br⟩ 😀, 😀 {nam"
    [ids] = tokenizer.encode_tgt([text])
    tokens = tokenizer.tgt_tokens(ids)
    assert [token for token in tokens if token in symbols] == ["{name}", "{name}", "⟨br⟩", "😀,"]
    assert tokenizer.decode(ids) == text
    ids = tokenizer.encode_src([text])[0][:-1]
    spans = dict(zip(tokenizer.src_tokens(ids), tokenizer.src.spans(text, ids), strict=True))
    assert text[slice(*spans["⟨br⟩"])] == "⟨br⟩"
