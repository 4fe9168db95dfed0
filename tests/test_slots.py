"""Slots: what stands in a text for a number, a code or a name, and comes back in the translation."""

from random import Random

import pytest

from mtformer.config import LanguagePair, TokenizerConfig
from mtformer.data.augment import Augmenter
from mtformer.text.pairs import SentencePair
from mtformer.text.slots import FEW, MANY, NAMES, SLOTS, never_split, pair_with_slots, with_slots, written_for
from mtformer.text.tokenizer.adopt import adopt
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer


def shown(text: str) -> str:
    """Write slots as <M> for many, <F> for few and <N> for names."""
    kinds = {slot: f"<{kind}>" for kind, slots in zip("MFN", (MANY, FEW, NAMES), strict=True) for slot in slots}
    return "".join(kinds.get(character, character) for character in text)


@pytest.mark.parametrize(
    ("text", "slotted"),
    [
        ("I have 2 dogs, 17 cats and 1 bird.", "I have <F> dogs, <M> cats and 1 bird."),
        ("Invoice 4711 of 3/14/2021 over €1,250.50.", "Invoice <M> of <M> over €<M>."),
        ("At 10:45 on 2021-03-14.", "At <M> on <M>."),
        ("In the 1990s, the 21st, 5km and 3.5%.", "In the <M>s, the <M>st, <M>km and <M>%."),
        ("1.2.3 and 192.168.0.1", "<M> and <M>"),
        ("The A380, COVID-19, 3D, mp3 and v2.0.", "The <N>, <N>, <N>, <N> and v2.0."),  # there are four for names
        ("+49 30 1234567", "+<M> <M> <M>"),
        ("a 20-year-old", "a <M>-year-old"),
        (f"{NAMES[0]} is mine", "<N> is mine"),  # what a user writes is never taken for a slot
    ],
)
def test_what_gets_a_slot(text: str, slotted: str) -> None:
    found = with_slots(text, "en", "zh")
    assert found is not None
    assert shown(found.text) == slotted
    assert found.filled(found.text) == text
    assert found.fits(found.text)


@pytest.mark.parametrize("text", ["One dog.", "1 dog", "", "A T-shirt."])
def test_texts_without_numbers_stay(text: str) -> None:
    assert with_slots(text, "en", "de") is None


def test_each_number_comes_back_once() -> None:
    found = with_slots("12 of 30", "en", "de")
    assert found is not None
    first, second = found.fillings
    assert found.is_exact(f"{second} {first}")
    assert not found.fits(first)
    assert not found.is_exact(f"{first} {second} {second}")
    assert not found.is_exact(f"{first} {second} {MANY[7]}")
    assert found.filled(f"{first} {first} und {MANY[7]} {second}.") == "12 und 30."


@pytest.mark.parametrize(
    ("number", "src_lang", "tgt_lang", "written"),
    [
        ("1,250.5", "en", "de", "1.250,5"),
        ("1.250,5", "de", "en", "1,250.5"),
        ("1,250,000", "en", "fr", "1\u202f250\u202f000"),
        ("12 500", "fr", "en", "12,500"),
        ("12\u00a0500,5", "cs", "de", "12.500,5"),
        ("3.5", "en", "cs", "3,5"),
        ("1,250.5", "en", "zh", "1,250.5"),
        ("3.5万", "zh", "en", "35,000"),
        ("2亿", "zh", "de", "200.000.000"),
        ("2亿", "zh", "ja", "2亿"),
        ("2021", "en", "de", "2021"),
        ("10:45", "en", "de", "10:45"),
        ("3/14", "en", "de", "3/14"),
        ("1.2.3", "en", "de", "1.2.3"),
        ("14.03.2021", "de", "en", "14.03.2021"),
        ("1,25", "en", "de", "1,25"),  # no number of English
    ],
)
def test_numbers_are_written_as_in_the_target_language(number: str, src_lang: str, tgt_lang: str, written: str) -> None:
    assert written_for(number, src_lang, tgt_lang) == written


def test_pairs_get_the_same_slots_on_both_sides() -> None:
    pair = SentencePair("In 2003 Tom had 3,500 cats and two dogs.", "2003 hatte Tom 3.500 Katzen und zwei Hunde.")
    seen = set()
    for seed in range(200):
        slotted = pair_with_slots(pair, ("en", "de"), Random(seed))
        assert slotted is not None
        sides = [[character for character in side if character in SLOTS] for side in slotted]
        assert sorted(sides[0]) == sorted(sides[1])
        assert len(set(sides[0])) == len(sides[0])
        seen |= {shown(slotted.src)}
    assert seen == {
        f"In <M> {name} had <M> cats and {number} dogs." for name in ("Tom", "<N>") for number in ("two", "<F>")
    }


@pytest.mark.parametrize(
    "pair",
    [
        SentencePair("He has 12 dogs.", "Er hat zwölf Hunde."),
        SentencePair("12 of 12", "12"),  # nobody knows which is which
        SentencePair("He is here.", "Er ist hier."),
    ],
)
def test_what_only_one_side_has_stays(pair: SentencePair) -> None:
    assert pair_with_slots(pair, ("en", "de"), Random(1)) is None


def test_half_of_the_pairs_get_slots_in_each_epoch() -> None:
    pairs = [SentencePair(f"No. {n}", f"Nr. {n}") for n in range(100, 1_100)]
    augmenter = Augmenter(None, seed=1, languages=[LanguagePair("en", "de")], slots=True)
    first, second = (augmenter.vary(pairs, 0, epoch) for epoch in (0, 1))
    assert 400 < len(first) < 600
    assert first.keys() != second.keys()
    assert augmenter.vary(pairs[500:], 500, 0) == {index - 500: pair for index, pair in first.items() if index >= 500}


def test_slots_are_tokens() -> None:
    pairs = [SentencePair(f"the {word} dog", f"der {word} Hund") for word in ("red", "blue", "small", "old")] * 20
    config = TokenizerConfig.model_validate({"type": "bpe", "vocab_size": 330, "slots": True})
    tokenizer = train_tokenizer(pairs, config, "en", "de", adjust=True)
    assert tokenizer.has_slots
    [ids] = tokenizer.encode_src([f"the {MANY[3]} dog"])
    assert MANY[3] in tokenizer.src_tokens(ids)
    assert tokenizer.decode(ids) == f"the {MANY[3]} dog"
    without = train_tokenizer(pairs, config.model_copy(update={"slots": False}), "en", "de", adjust=True)
    assert not without.has_slots


def test_a_given_tokenizer_gets_slots() -> None:
    pairs = [SentencePair(f"the {word} dog", f"der {word} Hund") for word in ("red", "blue", "small", "old")] * 20
    config = TokenizerConfig.model_validate({"type": "bpe", "vocab_size": 330})
    model = train_tokenizer(pairs, config, "en", "de", adjust=True).src_model
    assert Tokenizer(adopt(model, "nfc", (), never_split(config.model_copy(update={"slots": True})))).has_slots
