"""The words that a model knows, and the notes on others."""

import itertools
from dataclasses import replace
from pathlib import Path

from mtformer import Translator
from mtformer.browser.tokenizer import describe_texts
from mtformer.bundle.format import load_bundle
from mtformer.text.known_words import known_words, unknown_words

BUNDLE = Path(__file__).parent / "fixtures/bundle-3.safetensors"
FEW_WORDS = list(itertools.islice(itertools.cycle(["The dog didn't bark.", "the Straße is wide: 12 m"]), 10_000))


def test_a_text_whose_words_recur_has_a_list_of_them() -> None:
    expected = {"the", "dog", "didn", "t", "bark", "straße", "is", "wide", "m"}
    assert known_words(FEW_WORDS) == expected
    assert known_words([*FEW_WORDS, "a cat"]) == expected | {"a", "cat"}


def test_a_text_with_ever_new_words_has_none_nor_has_a_short_one() -> None:
    names = ("".join(letters) for letters in itertools.product("abcdefghij", repeat=4))
    assert known_words(f"{text} {name}" for text, name in zip(FEW_WORDS, names, strict=True)) == frozenset()
    assert known_words(FEW_WORDS[:-1]) == frozenset()


def test_unknown_words_are_named_once_as_they_are_written() -> None:
    known = frozenset({"the", "dog", "didn", "t"})
    text = "The ZEBRA didn't see the dog, the ZEBRA and 3 yaks' \"aren’t\" or the dog's"
    assert unknown_words(text, known) == ["ZEBRA", "see", "and", "yaks", "aren’t", "or", "dog's"]


def test_a_bundle_that_lists_its_words_has_notes_on_others() -> None:
    bundle = load_bundle(BUNDLE)
    header = bundle.header.model_copy(update={"known_words": ("a", "dog")})
    listed = replace(bundle, header=header)
    [[known], [unknown]] = Translator.load(listed, device="cpu").translate(["a dog", "a zebra"])
    assert not any("unknown: " in note for note in known.notes)
    assert "check: unknown: zebra" in unknown.notes
    [[plain]] = Translator.load(bundle, device="cpu").translate(["a zebra"])
    assert not any("unknown: " in note for note in plain.notes)
    assert type(header).model_validate_json(header.model_dump_json()).known_words == ("a", "dog")
    assert describe_texts(header, bundle.tokenizer)["known_words"] == ("a", "dog")
