"""The phrasebook's tokens: words, so that the choice of a word is the choice of a token."""

from pathlib import Path

import pytest

from mtformer.config import load_config
from mtformer.phrasebook.splits import train as draw_train
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer

CONFIGS = Path(__file__).parents[1] / "configs"
DEMO = {
    "We bought an old piano in Vienna last year.": "▁We ▁bought ▁an ▁old ▁piano ▁in ▁Vienna ▁last ▁year .",
    "Where did you buy the coat?": "▁Where ▁did ▁you ▁buy ▁the ▁coat ?",
    "I ate chips.": "▁I ▁ate ▁chips .",
    "The engineer is designing chips.": "▁The ▁engineer ▁is ▁designing ▁chips .",
    "She bet three chips.": "▁She ▁bet ▁three ▁chips .",
    "The animal did not cross the street because it was too tired.": (
        "▁The ▁animal ▁did ▁not ▁cross ▁the ▁street ▁because ▁it ▁was ▁too ▁tired ."
    ),
    "The animal did not cross the street because it was too wide.": (
        "▁The ▁animal ▁did ▁not ▁cross ▁the ▁street ▁because ▁it ▁was ▁too ▁wide ."
    ),
}
CHINESE = {  # a sentence, and the words in it that are tokens
    "我们去年在维也纳买了一架旧钢琴。": "买 了 旧 钢琴",
    "你是在哪里买那件大衣的？": "买 大衣 的",
    "我吃了薯片。": "吃 了 薯片",
    "工程师正在设计芯片。": "工程师 正在 设计 芯片",
    "她押了三个筹码。": "押 了 筹码",
    "那只动物没穿过那条马路，因为它太累了。": "动物 没 穿过 马路 因为 它 太 累 了",
    "那只动物没穿过那条马路，因为马路太宽了。": "动物 没 穿过 马路 因为 太 宽 了",
}
GERMAN = {
    "Das Tier hat die Straße nicht überquert, weil sie zu breit war.": (
        "▁Das ▁Tier ▁hat ▁die ▁Straße ▁nicht ▁überquert , ▁weil ▁sie ▁zu ▁breit ▁war ."
    ),
    "Ich habe Chips gegessen.": "▁Ich ▁habe ▁Chips ▁gegessen .",
}


@pytest.fixture(scope="module", params=["zh", "de"])
def tokenizer(request: pytest.FixtureRequest) -> tuple[str, Tokenizer]:
    """The tokenizer that the phrasebook's config trains, on a part of its text."""
    config = load_config(CONFIGS / f"phrasebook_en_{request.param}.yaml")
    pairs = [SentencePair(saying.en, saying.text(request.param)) for saying in draw_train(12_000, 1)]
    return request.param, train_tokenizer(pairs, config.tokenizer, "en", request.param)


@pytest.mark.slow
def test_english_words_are_tokens(tokenizer: tuple[str, Tokenizer]) -> None:
    _, english = tokenizer
    tokens = [" ".join(english.src_tokens(ids[:-1])) for ids in english.encode_src(list(DEMO))]
    assert tokens == list(DEMO.values())


def test_words_of_the_translations_are_tokens(tokenizer: tuple[str, Tokenizer]) -> None:
    language, target = tokenizer
    if language == "de":
        tokens = [" ".join(target.tgt_tokens(ids[:-1])) for ids in target.encode_tgt(list(GERMAN))]
        assert tokens == list(GERMAN.values())
    for sentence, words in CHINESE.items() if language == "zh" else ():
        (ids,) = target.encode_tgt([sentence])
        assert set(words.split()) <= {piece.removeprefix("▁") for piece in target.tgt_tokens(ids)}


def test_no_chinese_token_has_more_than_three_characters(tokenizer: tuple[str, Tokenizer]) -> None:
    language, target = tokenizer
    pieces = [piece for piece in target.tgt_tokens(range(target.tgt_vocab_size)) if not piece.startswith("<")]
    if language == "zh":
        assert max(len(piece.removeprefix("▁")) for piece in pieces) == 3
