"""scripts/contrastive_report.py: translations that are wrong in one point, and which of them a model prefers."""

from types import SimpleNamespace
from typing import Any

import pytest
from contrastive_items import Item, phrasebook_items, text_items
from contrastive_report import preferred

from mtformer.text.pairs import SentencePair


def n_different_words(item: Item, wrong: str) -> int:
    words = item.right.split(), wrong.split()
    assert len(words[0]) == len(words[1])
    return sum(map(str.__ne__, *words))


@pytest.fixture(scope="module")
def german() -> list[Item]:
    return phrasebook_items("en", "de")


def test_an_item_of_the_phrasebook_is_wrong_in_one_point(german: list[Item]) -> None:
    assert {item.point for item in german} == {"pronoun", "previous", "number", "agreement", "tense"}
    for item in german:
        assert item.wrong
        assert item.right not in item.wrong
        if item.point in ("pronoun", "previous", "agreement"):
            assert {n_different_words(item, wrong) for wrong in item.wrong} == {1}
    for point in ("pronoun", "previous"):
        pronouns = [item for item in german if item.point == point]
        assert len(pronouns) == 1_000
        assert {len(item.wrong) for item in pronouns} == {2}
    elephant = "Der Elefant kann die Kutsche nicht ziehen."
    assert (
        Item(
            "previous",
            "The elephant cannot pull the carriage. It is too tired.",
            f"{elephant} Er ist zu müde.",
            (f"{elephant} Sie ist zu müde.", f"{elephant} Es ist zu müde."),
        )
        in german
    )


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        (
            ("en", "de"),
            [
                Item(
                    "number",
                    "We saw this teacher.",
                    "Wir haben diesen Lehrer gesehen.",
                    ("Wir haben diese Lehrer gesehen.",),
                ),
                Item(
                    "agreement",
                    "The writer is not famous.",
                    "Der Schriftsteller ist nicht berühmt.",
                    ("Der Schriftsteller sind nicht berühmt.",),
                ),
            ],
        ),
        (
            ("de", "en"),
            [
                Item(
                    "tense",
                    "Der Bauer hat ein Spiel gewonnen.",
                    "The farmer won a match.",
                    ("The farmer wins a match.", "The farmer will win a match."),
                ),
                Item(
                    "pronoun",
                    "Das Klavier passt nicht in den Korb, weil er zu voll ist.",
                    "The piano does not fit into the basket because it is too full.",
                    (
                        "The piano does not fit into the basket because he is too full.",
                        "The piano does not fit into the basket because she is too full.",
                    ),
                ),
            ],
        ),
        (
            ("en", "zh"),
            [
                Item(
                    "pronoun",
                    "The robot cannot lift the carriage because it is too heavy.",
                    "那个机器人举不起那辆马车，因为马车太重了。",
                    ("那个机器人举不起那辆马车，因为机器人太重了。",),
                ),
                # Chinese may leave out what marks the past.
                Item(
                    "tense",
                    "The pilot did not visit our grandfather because he was angry.",
                    "飞行员没看望我们爷爷，因为他很生气。",
                    ("飞行员不会看望我们爷爷，因为他很生气。",),
                ),
            ],
        ),
    ],
)
def test_items_of_the_phrasebook(languages: tuple[str, str], expected: list[Item]) -> None:
    items = phrasebook_items(*languages)
    for item in expected:
        assert item in items


RULES = [
    ("tense", "Tom is a pilot.", "Tom ist Pilot.", ["Tom war Pilot."], ["Tom was a pilot."]),
    ("tense", "Was that all?", "War das alles?", ["Ist das alles?"], ["Is that all?"]),
    ("tense", "Tom was released.", "Tom wurde freigelassen.", ["Tom wird freigelassen."], ["Tom is released."]),
    ("tense", "He has eaten.", "Er hat gegessen.", [], []),  # English says "ate" for that, too
    ("tense", "She has a dog.", "Sie hat einen Hund.", ["Sie hatte einen Hund."], ["She had a dog."]),
    ("tense", "He said he was ill.", "Er sagte, er war krank.", [], []),  # or "ist"
    ("agreement", "This plan has changed.", "Dieser Plan hat sich geändert.", ["haben"], ["have"]),
    ("agreement", "These shoes are tight.", "Diese Schuhe sind eng.", ["Diese Schuhe ist eng."], ["is"]),
    ("agreement", "Half of us are ill.", "Die Hälfte von uns ist krank.", [], []),  # or "sind"
    ("agreement", "We want to have cars.", "Wir wollen Autos haben.", [], []),  # an infinitive
    (
        "pronoun",
        "Peel the apple before you eat it.",
        "Schäle den Apfel, bevor du ihn isst.",
        ["du sie isst", "du es isst"],
        ["eat he", "eat she", "eat him", "eat her"],
    ),
    (
        "pronoun",
        "I gave him the cup and he broke it.",
        "Ich gab ihm die Tasse und er zerbrach sie.",
        ["er", "ihn", "es"],
        ["broke he"],
    ),
    ("pronoun", "I saw it.", "Ich habe ihn gesehen.", [], []),  # what is it?
    (
        "pronoun",
        "She put the vase on the table and hit it.",
        "Sie stellte die Vase auf den Tisch und schlug ihn.",
        [],
        [],
    ),
]


@pytest.mark.parametrize(("point", "english", "german", "wrong_german", "wrong_english"), RULES)
def test_rules_change_a_word_where_that_is_wrong(
    point: str, english: str, german: str, wrong_german: list[str], wrong_english: list[str]
) -> None:
    for src, tgt, src_lang, tgt_lang, parts in (
        (english, german, "en", "de", wrong_german),
        (german, english, "de", "en", wrong_english),
    ):
        found = [item for item in text_items([SentencePair(src, tgt)], src_lang, tgt_lang) if item.point == point]
        assert len(found) == bool(parts)
        for item in found:
            assert (item.src, item.right) == (src, tgt)
            assert all(part in wrong for part, wrong in zip(parts, item.wrong, strict=False))
            assert {n_different_words(item, wrong) for wrong in item.wrong} == {1}


def test_the_most_probable_translation_is_preferred() -> None:
    log_probs = {"good": -1.0, "bad": -2.0, "worse": -3.0, "as good": -1.0}

    class Translator:
        """Knows the log probability of each translation."""

        def score(self, sources: list[str], translations: list[str]) -> list[Any]:
            assert set(sources) == {"gut"}
            return [SimpleNamespace(text=text, log_prob=log_probs[text]) for text in translations]

    items = [
        Item("tense", "gut", "good", ("bad", "worse")),
        Item("tense", "gut", "bad", ("good",)),
        Item("tense", "gut", "good", ("as good",)),
    ]
    assert preferred(Translator(), items) == ["good", "good", "as good"]  # type: ignore[arg-type]
