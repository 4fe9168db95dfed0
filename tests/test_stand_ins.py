"""A model without slots loses numbers; those that it knows stand in for them."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mtformer.config import SearchOptions, TokenizerConfig
from mtformer.search.hypothesis import Hypothesis
from mtformer.text.dates import lost_dates
from mtformer.text.glossary import Glossary
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.translate.guard import Guard
from mtformer.translate.plan import run
from mtformer.translate.planner import Planner
from mtformer.translate.terms import Terms
from mtformer.translate.translation import Translation


@pytest.fixture(scope="module")
def characters() -> Tokenizer:
    """A tokenizer with a token for each character, and no slots."""
    text = "".join(map(chr, range(33, 127)))
    config = TokenizerConfig(type="char", vocab_size=400, slots=False)
    return train_tokenizer([SentencePair(text, text)] * 10, config, "en", "de", adjust=True)


class Writing:
    """An engine that translates texts as ``write`` does, and keeps what it has read."""

    def __init__(self, tokenizer: Tokenizer, write: Callable[[str], str]) -> None:
        """Take the tokenizer and the function."""
        self._tokenizer, self._write = tokenizer, write
        self.read: list[str] = []

    def submit(self, requests: Sequence[Any], *, on_done: Any = None) -> list[Any]:
        """Return one hypothesis for each request."""
        texts = [self._tokenizer.decode_src(each.src[:-1]) for each in requests]
        self.read += texts
        written = self._tokenizer.encode_tgt([self._write(text) for text in texts])
        return [[Hypothesis(list(ids[:-1]), [-1.0])] for ids in written]


def translated(
    engine: Writing, tokenizer: Tokenizer, text: str, *, guard: bool = True, terms: Terms | None = None
) -> Translation:
    checks = Guard(tokenizer, "en", "de") if guard else None
    planner = Planner(
        engine,  # type: ignore[arg-type]
        tokenizer,
        SearchOptions(),
        tgt_lang="de",
        max_length=200,
        src_lang="en",
        guard=checks,
        terms=terms,
    )
    [outcome] = run([planner.plan(text)], planner.engine)
    assert isinstance(outcome, list), outcome
    return outcome[0]


def knowing(*known: str) -> Callable[[str], str]:
    """Return a model that writes all numbers but those it knows as 77."""

    def write(text: str) -> str:
        return re.sub(r"\d[\d.,:-]*\d|\d", lambda number: number[0] if number[0] in known else "77", text)

    return write


@pytest.mark.parametrize(
    ("text", "expected", "back"),
    [
        ("I see 4,889 dogs.", "I see 4.889 dogs.", "4.889"),
        ("I see 4,889 dogs and 3,999 cats.", "I see 4.889 dogs and 3.999 cats.", "4.889, 3.999"),
        ("I see 2 dogs and 3,999 cats.", "I see 2 dogs and 3.999 cats.", "2, 3.999"),
        ("It has 12.5 km.", "It has 12,5 km.", "12,5"),
        ("It is $1,250.50.", "It is $1.250,50.", "1.250,50"),
        ("On May 24, 2025 it is so.", "On 24. Mai 2025 it is so.", "24. Mai 2025"),
        ("It is at 10:45 pm.", "It is at 22:45.", "22:45"),
        ("We need AB-719 now.", "We need AB-719 now.", "AB-719"),
    ],
)
def test_a_number_that_the_model_loses_is_put_back(characters: Tokenizer, text: str, expected: str, back: str) -> None:
    engine = Writing(characters, knowing("100", "20", "4", "3"))
    found = translated(engine, characters, text)
    assert (found.text, found.flags) == (expected, [f"numbers or names put back: {back}"])


@pytest.mark.parametrize("known", ["100", "20", "15", "30", "3"])
def test_numbers_are_tried_until_the_model_knows_one(characters: Tokenizer, known: str) -> None:
    engine = Writing(characters, knowing(known))
    assert translated(engine, characters, "I see 4,889 dogs.").text == "I see 4.889 dogs."
    assert engine.read[-1] == f"I see {known} dogs."


def test_a_number_that_no_other_can_stand_in_for_stays_lost(characters: Tokenizer) -> None:
    found = translated(Writing(characters, knowing()), characters, "I see 4,889 dogs.")
    assert (found.text, found.flags) == ("I see 77 dogs.", ["numbers lost: 4,889"])


def test_a_translation_with_another_number_beside_the_one_that_stands_in_is_not_taken(characters: Tokenizer) -> None:
    def write(text: str) -> str:
        return text.replace("4,889", "77").replace("100", "100 of 88").replace("20", "20 1")

    found = translated(Writing(characters, write), characters, "I see 4,889 dogs.")
    assert found.text == "I see 4.889 dogs."


def test_what_the_model_keeps_is_not_translated_again(characters: Tokenizer) -> None:
    engine = Writing(characters, lambda text: text.replace("4,889", "4.889").replace("May 24", "24 Mai"))
    found = translated(engine, characters, "On May 24 I see 4,889 dogs from AB-719.")
    assert (found.text, found.flags) == ("On 24 Mai I see 4.889 dogs from AB-719.", [])
    assert len(engine.read) == 1


def test_a_date_whose_month_is_lost_is_put_back(characters: Tokenizer) -> None:
    found = translated(Writing(characters, lambda text: text.replace("August ", "")), characters, "It is on August 28.")
    assert (found.text, found.flags) == ("It is on 28. August.", ["numbers or names put back: 28. August"])


def test_a_unit_that_is_lost_is_put_back_with_its_number(characters: Tokenizer) -> None:
    engine = Writing(characters, lambda text: text.replace("kilometers", "kiles"))
    found = translated(engine, characters, "It is 514 kilometers away.")
    assert (found.text, found.flags) == ("It is 514 Kilometer away.", ["numbers or names put back: 514 Kilometer"])


def test_the_model_alone_keeps_its_own_numbers(characters: Tokenizer) -> None:
    engine = Writing(characters, knowing("100"))
    assert translated(engine, characters, "I see 4,889 dogs.", guard=False).text == "I see 77 dogs."
    assert len(engine.read) == 1


def test_numbers_that_stay_in_a_text_stand_in_for_none(characters: Tokenizer) -> None:
    glossary = Glossary([("2 or 3 or 4", "2 oder 3 oder 4")])
    terms = Terms(glossary, characters, src_lang="en", tgt_lang="de", mode="hard")
    engine = Writing(characters, lambda text: text.replace("2 or 3 or 4", "2 oder 3 oder 4").replace("512", "77"))
    assert (
        translated(engine, characters, "It is 2 or 3 or 4, not 512.", terms=terms).text
        == "It is 2 oder 3 oder 4, not 512."
    )


def test_no_number_stands_in_for_a_term(characters: Tokenizer) -> None:
    glossary = Glossary([("4,889 dogs", "4889er Hunde")])
    terms = Terms(glossary, characters, src_lang="en", tgt_lang="de", mode="hard")
    engine = Writing(characters, lambda text: text.replace("4,889 dogs", "4889er Hunde").replace("512", "77"))
    found = translated(engine, characters, "I see 4,889 dogs and 512 cats.", terms=terms)
    assert found.text == "I see 4889er Hunde and 512 cats."
    assert engine.read[-1] == "I see 4,889 dogs and 100 cats."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is -5 degrees now.", "It is -5 degrees now."),
        ("It is minus 5 degrees now.", "It is -5 degrees now."),
        ("It fell by −3.5 % now.", "It fell by −3,5 % now."),
        ("It costs -$5.50 now.", "It costs -5,50\u00a0$ now."),
        ("It costs $5-$10 now.", "It costs $5-$10 now."),
        ("It is 5%-10% more.", "It is 5%-10% more."),
    ],
)
def test_a_minus_sign_and_the_units_in_a_range_are_put_back(characters: Tokenizer, text: str, expected: str) -> None:
    def write(text: str) -> str:
        number = re.search(r"\d+", text)
        assert number is not None
        written = number[0] if number[0] == "100" and not re.search("[-−$%]|minus", text) else "77"
        return re.sub(r"(?:minus )?[-−$%]*\d[-$%.0-9]*", f"{written}", text)

    assert translated(Writing(characters, write), characters, text).text == expected


def test_a_number_that_stands_in_for_an_english_ordinal_is_one(characters: Tokenizer) -> None:
    engine = Writing(characters, lambda text: re.sub(r"(\d+)[a-z]+", r"\1.", text).replace("22.", "77."))
    assert translated(engine, characters, "On his 22nd birthday").text == "On his 22. birthday"
    assert engine.read[-1] == "On his 100th birthday"


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("We need AB-719.", "Wir brauchen AB 719."),
        ("We need AB-719.", "Wir brauchen AB\u2011719."),
        ("A 3D film.", "Ein 3-D-Film."),
        ("It obeys the COVID-19 rules.", "Es befolgt die Covid-19-Regeln."),
        ("In Chapter IV it ends.", "In Kapitel 4 endet es."),
        ("King George VI is ill.", "König Georg der Sechste ist krank."),
    ],
)
def test_a_code_may_be_written_in_another_way(characters: Tokenizer, source: str, translation: str) -> None:
    engine = Writing(characters, lambda text: translation)
    translated(engine, characters, source)
    assert set(engine.read) == {source}


def test_no_number_stands_in_that_the_text_already_has(characters: Tokenizer) -> None:
    terms = Terms(Glossary([("20 Minutes", "20 Minuten")]), characters, src_lang="en", tgt_lang="de", mode="hard")
    engine = Writing(characters, lambda text: knowing("20")(text.replace("Minutes", "Minuten")))
    translated(engine, characters, "I read 20 Minutes for 512 days.", terms=terms)
    assert "I read 20 Minutes for 100 days." in engine.read
    assert "I read 20 Minutes for 20 days." not in engine.read


def test_what_else_is_lost_is_noted(characters: Tokenizer) -> None:
    def write(text: str) -> str:
        return knowing("100")(text).replace("kilometers", "kiles").replace("100 away", "77 away")

    found = translated(Writing(characters, write), characters, "It is 4,889 kilometers away.")
    assert (found.text, found.flags) == (
        "It is 4.889 kiles away.",
        ["numbers or names put back: 4.889", "numbers lost: 4,889 kilometers"],
    )


def test_a_month_that_no_stand_in_brings_back_is_noted(characters: Tokenizer) -> None:
    found = translated(Writing(characters, lambda text: "It is on Juli 4."), characters, "It is on June 4.")
    assert (found.text, found.flags) == ("It is on Juli 4.", ["numbers lost: June 4"])


DATES = [  # a text, a translation, their languages, and whether that lacks the date
    ("Am 28. August", "on the 28th of August", "de-en", False),
    ("Am 28. August", "on Aug 28", "de-en", False),
    ("Am 28. August", "on 8/28", "de-en", False),
    ("Am 28. August", "on the 28th", "de-en", True),
    ("on May 3", "am 3. Mai", "en-de", False),
    ("on May 3", "5月3日", "en-zh", False),
    ("on May 3", "3日", "en-zh", True),
    ("on May 3", "五月三日", "en-zh", False),
    ("on December 3", "十二月三日", "en-zh", False),
    ("on May 3", "５月３日", "en-zh", False),
    ("on May 3", "五人三日", "en-zh", True),
    ("on January 3", "am 3. Jänner", "en-de", False),
    ("on August 3", "le 3 aout", "en-fr", False),
    ("on May 3", "any", "en-tlh", False),
    ("in May 2020", "в мае 2020 года", "en-ru", False),
    ("on May 3", "3 июня", "en-ru", True),
    ("on May 3", "3 марта", "en-ru", True),
    ("on March 3", "op 3 mrt", "en-nl", False),
    ("on December 3, 1990", "3 XII 1990", "en-pl", False),
    ("on January 3", "元月三日", "en-zh", False),
    ("on 2024-05-06", "am 6.5.2024", "en-de", False),
    ("on 2024-05-06", "2024年6月5日", "en-zh", False),
    ("on 2024-05-06", "on 8/6/2024", "en-tlh", True),
    ("am 15.03.2024", "on 15 April 2024", "de-en", True),
    ("am 24.12.2023", "on 24 November 2023", "de-en", True),
    ("am 24.12.2023", "on Christmas Eve 2023", "de-en", False),
    ("am 24.12.2023 und 31.12.2023", "on December 24 and December 31, 2023", "de-en", False),
    ("from 12/24/2023 to 12/31/2023", "vom 24.12. bis 31.12.2023", "en-de", False),
    ("on 05/06/2024", "on 05/09/2024", "en-de", True),
    ("on June 5, 2024", "le 5 juillet 2024", "en-fr", True),
    ("on June 5, 2024", "le 5 juin 2024", "en-fr", False),
    ("on July 5, 2024", "5. června 2024", "en-cs", True),
    ("in June 2024", "v červnu 2024", "en-cs", False),
    ("in July 2024", "v červenci 2024", "en-cs", False),
]


@pytest.mark.parametrize(("source", "translation", "languages", "lost"), DATES)
def test_the_month_of_a_date_may_be_written_in_another_way(
    source: str, translation: str, languages: str, lost: bool
) -> None:
    assert bool(lost_dates(source, translation, *languages.split("-"))) is lost
