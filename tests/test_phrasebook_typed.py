"""The phrasebook's sources as people type them."""

import pytest

from mtformer.phrasebook.typed import Typist, plain


def typed(text: str, language: str = "en") -> set[str]:
    """Return the ways to type a text."""
    typist = Typist("1", language)
    return {typist.type(text) for _ in range(300)}


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("I did not eat chips.", ["I didn't eat chips.", "i did not eat chips", "I did not eat chips"]),
        ("He is not tired.", ["He isn't tired.", "He's not tired.", "he's not tired"]),
        ("I cannot swim.", ["I can't swim."]),
        ("He will not work.", ["He won't work."]),
        ("They have already eaten.", ["They've already eaten."]),
        ("Where is the key?", ["Where's the key?", "where is the key"]),
        ("Do not cry!", ["Don't cry!"]),
        ("Why did the old man not call me?", ["Why didn't the old man call me?"]),
        ("There is no hotel in the village.", ["There isn't a hotel in the village."]),
        ("There are no eggs in the box.", ["There aren't any eggs in the box."]),
        ("Please open the door.", ["Open the door, please."]),
        ("Two coffees, please.", ["I'd like two coffees, please.", "I would like two coffees, please."]),
        ("Thank you for the gift.", ["Thanks for the gift."]),
        ("She comes from Japan.", ["She's from Japan."]),
        ("I do not come from Japan.", ["I'm not from Japan.", "I don't come from Japan."]),
        ("Where does Anna come from?", ["Where is Anna from?"]),
        ("We sold one hundred and two books.", ["We sold one hundred two books."]),
    ],
)
def test_english_has_other_ways_to_say_something(text: str, forms: list[str]) -> None:
    assert {text, *forms} <= typed(text)


@pytest.mark.parametrize(
    ("text", "never"),
    [("He will not work.", "He'll not work."), ("Yes, I am.", "Yes, I'm."), ("Do you know where Anna is?", "Anna's")],
)
def test_no_contraction_is_wrong(text: str, never: str) -> None:
    assert [form for form in typed(text) if never in form] == []


def test_other_languages_have_small_letters_and_no_full_stop() -> None:
    assert typed("Ich mag Tee.", "de") == {"Ich mag Tee.", "Ich mag Tee", "ich mag tee.", "ich mag tee"}
    assert typed("我喜欢茶。", "zh") == {"我喜欢茶。", "我喜欢茶"}


def test_the_same_seed_types_the_same() -> None:
    texts = [f"I did not buy {number} apples." for number in range(50)]
    first, second, other = (list(map(Typist(seed, "en").type, texts)) for seed in ("1", "1", "2"))
    assert first == second != other
    assert 0 < sum(text[-1] != "." for text in first) < 25


def test_plain_text_is_the_same_however_it_is_typed() -> None:
    for text in ("I did not eat chips.", "He is not tired.", "I cannot swim.", "Thank you for the gift."):
        assert {plain(form) for form in typed(text)} == {plain(text)}
    assert plain("The animal DIDN’T cross the street") == plain("the animal did not cross the street.")
