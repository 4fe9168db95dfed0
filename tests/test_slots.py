"""Slots: what stands in a text for a number, a code or a name, and comes back in the translation."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from random import Random
from typing import Any

import faithful_report
import numpy as np
import pytest
from conftest import EOS_ID

from mtformer.config import LanguagePair, SearchOptions, TokenizerConfig
from mtformer.data.augment import Augmenter
from mtformer.explain.tokens import Spelling
from mtformer.search.engine import ScoreRequest
from mtformer.search.hypothesis import Hypothesis
from mtformer.text import entities
from mtformer.text.codes import outside_codes
from mtformer.text.entities import written_for
from mtformer.text.glossary import Glossary
from mtformer.text.lost_numbers import lost_numbers
from mtformer.text.pairs import SentencePair
from mtformer.text.slots import (
    OF_KIND,
    SLOTS,
    Slotted,
    known_slots,
    never_split,
    pair_with_its_slots,
    pair_with_slots,
    readable,
    with_slots,
)
from mtformer.text.tokenizer.adopt import adopt
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.translate.plan import Plan, run
from mtformer.translate.planner import Planner
from mtformer.translate.preparation import prepared, standard_preparations
from mtformer.translate.terms import Terms
from mtformer.translate.translation import Translation

MANY, FEW, NAMES = OF_KIND.values()


def shown(text: str) -> str:
    """Write slots as <M> for many, <F> for few and <N> for names."""
    kinds = {slot: f"<{kind}>" for kind, slots in zip("MFN", (MANY, FEW, NAMES), strict=True) for slot in slots}
    return "".join(kinds.get(character, character) for character in text)


@pytest.mark.parametrize(
    ("text", "slotted"),
    [
        ("See REPORT_A.PDF and Img_2.jpg.", "See <N> and <N>."),
        ("I have 2 dogs, 17 cats and 1 bird.", "I have <F> dogs, <M> cats and 1 bird."),
        ("Invoice 4711 of 3/14/2021 over €1,250.50.", "Invoice <M> of <M> over <M>."),
        ("At 10:45 on 2021-03-14.", "At <M> on <M>."),
        ("In the 1990s, the 21st, 5km and 3.5%.", "In the <M>s, the <M>st, <M> and <M>."),
        (
            "1 kg, $5, 20 °C, 3 km/h for 5 m/s, 2 m² or 7 meters, 1 m/x",
            "<M>, <M>, <M>, <F> for <M>, <F> or <M> meters, 1 m/x",
        ),
        ("It is -5 °C (−3.7), -1, -€50, A-5, e-5.", "It is <M> (<M>), <M>, <M>, <N>, e-<M>."),
        ("10-20 dogs, 3–4 km, $5-$10, 5%-10%, 1-2", "<M> dogs, <F>, <M>, <M>, <F>"),
        ("10:45-11:15, 1990-95, -5–10 °C, 1,500-2,000.", "<M>, <M>, <M>, <M>."),
        ("20-year-old, 10 - 20, 3.-5.", "<M>-year-old, <M> - <M>, <F>.-<M>."),
        ("EUR 50, 5 €, £4, A$ 7 or 5 US$6.", "<M>, <M>, <F>, <M> or <M> <M>."),
        ("In 2010 $5 or EUR 6: 7 t-shirts, 8 °Celsius", "In <M> <M> or <M>: <M> t-shirts, <M> °Celsius"),
        ("In 2010 EUR 5; 5€50; 8€/kg", "In <M> <M>; <M>€<M>; <M>"),
        ("9 ${items}, 5 %s, 6 %(n)s", "<M> <N>, <M> <N>, <M> <N>"),
        ("1.2.3 and 192.168.0.1", "<M> and <M>"),
        ("10x15 cm, 1920 × 1080, 2x3x4 or 1e16 of 7", "<M>, <M>, <F> or <N> of <M>"),  # no part of a number
        ("4.5M people, 2.5B stars, 1.5MB", "<M> people, <M> stars, <M>"),
        ("100k views, 1.5k-2k, -5k or £2.5k, 5k-run", "<M> views, <M>-<F>, <M> or <M>, <M>k-run"),
        ("3 1/2 cups, -5 1/2 kg, 2-2 1/2, $5 1/2, 3 1/20", "<M> cups, <M>, <F>-<M>, <M>, <F> <M>"),
        ("0x42 or 0x1F", "<N> or <N>"),
        ("The A380, COVID-19, 3D, mp3 and v2.0.", "The <N>, <N>, <N>, <N> and v2.0."),  # there are four for names
        ("Call +49 30 1234567 or 24/7.", "Call <M> or <M>."),
        ("a 20-year-old on 3/14", "a <M>-year-old on <M>"),
        ("See https://a.b/c?d=7 or write to a.b@c.de.", "See <N> or write to <N>."),
        ("Visit example.com, a-b.co.uk/c_d?e=1. The end.", "Visit <N>, <N>. The end."),
        ("ISBN 978-3-16-148410-0, IBAN DE89 3704 0044 0532 0130 00.", "ISBN <M>, IBAN <N>."),
        ("Call 01-23-45-67-89 and pay to GB82 WEST 1234 5698 7654 AND", "Call <M> and pay to <N> AND"),
        ("Order 12345-AB, 12-A7-X and AB-123-X.", "Order <N>, <N> and <N>."),
        ("A 90-PS-Motor, 20-YEAR-OLD, 5-Star", "A <M>-PS-Motor, <M>-YEAR-OLD, <M>-Star"),
        ("Visit EXAMPLE.COM, Example.com or HTTP://A.B/C.", "Visit <N>, <N> or <N>."),
        ("½ cup and 1½ cups", "<M> cup and <M> cups"),
        ("10⁶ dogs of 5×10³ kg, 2³, 10⁻³ m", "<M> dogs of <M>, <M>, <M>"),
        ("PLAN AB12 WITH FREE GIFT FROM US", "PLAN <N> WITH FREE GIFT FROM US"),
        ("Dear {name}, {{user}}, %s, 5%", "Dear <N>, <N>, <N>, <M>"),
        (f"{NAMES[0]} is mine", "<N> is mine"),  # what a user writes is never taken for a slot
    ],
)
def test_what_gets_a_slot(text: str, slotted: str) -> None:
    found = with_slots(text, "en", "zh")
    assert found is not None
    assert shown(found.text) == slotted
    assert found.filled([found.text]) == [text]
    assert found.fits(found.text)


@pytest.mark.parametrize(
    ("language", "text", "slotted"),
    [
        ("zh", "３５０元，１２：３０", "<M>元，<M>"),
        ("zh", "3亿5000万人，12月5日，3万5", "<M>人，<M>，<M>"),
        ("zh", "1万2千3百人，３万５，3万500", "<M>人，<M>，<M>"),
        ("zh", "8个人，3万50，3.5万5，3万,5万，3万5、6", "<M>个人，3万50，3.5万5，3万,5万，3万5、<M>"),  # nobody knows
        ("zh", "3-5月有10～20人，2万-3万", "3-5月有<M>人，<M>-<M>"),
        ("zh", "3-5万人，10～20万，3至5亿，12人", "3-5万人，10～20万，3至5亿，<M>人"),  # 30,000 to 50,000
        ("ja", "3万5千円、3万5", "<M>円、3万5"),
        ("zh", "我的朋友Kwazor住在这里。", "我的朋友<N>住在这里。"),
        ("fr", "en 2010 l'eau, en 2012 m’a dit, 5 l d'eau", "en <M> l'eau, en <M> m’a dit, <M> d'eau"),
        ("en", "I see Sam O'Kwazor and McMbati", "I see <N> and <N>"),
        ("en", "O'Kwazor sees O’Kwazor", "O'Kwazor sees <N>"),
        ("de", "Mein Freund McKwazor wohnt hier.", "Mein Freund <N> wohnt hier."),
        ("de", "Mein Freund Kwazor Mbati wohnt hier.", "Mein Freund <N> wohnt hier."),
        ("de", "Hast du heute Szaou gesehen?", "Hast du heute <N> gesehen?"),
        ("fr", "Mon ami Kwazor-Mbati habite ici.", "Mon ami <N> habite ici."),
        ("en", "It is 10:45 PM or 9 a.m. now, not 8 p.m.", "It is <M> or <M> now, not <M>."),
        ("en", "$2 or $5 million, 5/6/10, 9 am", "<F> or <M> million, <M>, <M>"),
        ("en", "From 2 to 4 pm, 9-10 am or 10 am to 2 pm", "From <M> to <M>, <M> or <M> to <M>"),
        ("fr", "entre 2 et 3 millions, 20 millions et 3 millions", "entre <F> et <F> millions, <M> et <M>"),
        ("en", "1.5 million dogs, $2 billion, -3 thousand", "<M> dogs, <M>, <M>"),
        ("en", "2-3 million, 2010 million, 3 millionaires", "<M>, <M> million, <F> millionaires"),
        ("en", "It is 20℃, 5％, ￥50, 5 ￥", "It is <M>, <M>, <M>, <M>"),
        ("lt", "2010 m. buvo 5 km", "<M> m. buvo <M>"),
        ("da", "5 t og 5 min og 5 kg", "<M> t og <M> min og <M>"),
        ("en", "£1.5m, $2-3bn, $15M, $5 bn, 1.5 m and 2bn", "<M>, <M>, <M>, <M>, <M> and <M>"),
        ("en", "$1.5m-2m, $2bn-3bn", "<M>-<M>, <M>-<M>"),
        (
            "en",
            "$50 B&B, $3 B-movie, $5M&M, £9M.2, $20 M, €3m-a",
            "<M> B&B, <F> B-movie, <M>M&M, <M>M.<F>, <M> M, <F>m-a",
        ),
        ("fr", "5 M€, 3,5 k€ et 2 Md€", "<M>, <M> et <F>"),
        ("de", "1,5 Mio. sind 3 Millionen €, 9 am", "<M> sind <M>, <M> am"),
        ("de", "Es kostet 2 Mio.", "Es kostet <M>."),
        ("de", "10 Bio-Eier, 3 Bio Äpfel, 5 Bio. sind", "<M> Bio-Eier, <F> Bio Äpfel, <M> sind"),
        ("cs", "5 mil. korun, 2 mld. lidí, ušel 5 mil.", "<M> korun, <M> lidí, ušel <M> mil."),
        ("de", "Um 8 Uhr, 8.05 UHR, von 8 bis 17:30 Uhr", "Um <M> Uhr, <M>, von <M> bis <M>"),
        ("fr", "à 18h30, pendant 5 h", "à <M>, pendant <M> h"),
        ("de", "„Es kostet 2 Mrd.“", "„Es kostet <M>.“"),
        ("en", '"We close at 10 p.m."', '"We close at <M>."'),
        ("en", "(It is 9 a.m.) here.", "(It is <M>) here."),
        ("fr", "2 millions de chiens, 2 millions d'euros", "<M> chiens, <M> euros"),
        ("es", "20 mil perros, 3 mil millones", "<M> perros, <M>"),
        ("de", "Das ist Kwazor-Hotel Mbati.", "Das ist <N>-Hotel <N>."),
    ],
)
def test_what_gets_a_slot_in_other_languages(language: str, text: str, slotted: str) -> None:
    found = with_slots(text, language, "en", n_tokens=len)
    assert found is not None
    assert shown(found.text) == slotted


@pytest.mark.parametrize(
    ("language", "slotted"),
    [
        ("ru", "<M> km, <M> kg, 1 m, EUR <M>, <M>, <M>, <M>, <N>"),
        ("el", "<M> km, <M> kg, 1 m, EUR <M>, <M>, <M>, <M>, <N>"),
        ("ja", "<M>, <M>, <M>, <M>, <M>, <M>, <M>, <N>"),
        ("uz", "<M>, <M>, <M>, <M>, <M>, <M>, <M>, <N>"),  # whose letters are not known here
    ],
)
def test_languages_of_other_letters_have_units_of_their_own(language: str, slotted: str) -> None:
    found = with_slots("5 km, 10-20 kg, 1 m, EUR 50, 5%, 20 °C, €5, A4", "en", language)
    assert found is not None
    assert shown(found.text) == slotted


def test_full_width_units_stay_in_east_asia_only() -> None:
    for language, expected in (("ja", "温度20℃，５％，￥５０"), ("en", "温度20°C，5%，¥50")):
        found = with_slots("温度20℃，５％，￥５０", "zh", language)
        assert found is not None
        assert found.filled([found.text]) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "Das ist der Qwxz.",
        "Ich mag ihren alten Qwxz.",
        "Da ist Toms Qwxz.",
        "Qwxz ist hier.",
        "Ich mag Computerlinguistik.",
        "Ich mag Äpfel.",
        "Ich mag Achtung.",
        "Ich mag Pralinen, Kekse, Logik und Burger.",
        "Ich habe Kraft und Durst.",
    ],
)
def test_german_nouns_are_no_names(text: str) -> None:
    assert with_slots(text, "de", "en", n_tokens=lambda word: 5 * (word != "Toms")) is None


def test_what_a_german_number_counts_is_no_name() -> None:
    found = with_slots("Ich habe 4711 Qwxz von Qwxy.", "de", "en", n_tokens=lambda _word: 5)
    assert found is not None
    assert list(found.fillings.values()) == ["4711", "Qwxy"]


@pytest.mark.parametrize("language", ["en", "de", "fr", "cs", "zh"])
def test_each_value_of_the_suite_gets_a_slot(language: str) -> None:
    """Numbers in conventions of five languages, dates, amounts, addresses, codes, placeholders and names.

    In German, names that end in -en may be nouns.
    """
    several = faithful_report.lines_with_several(language, seed=2) if language in ("en", "de") else ()
    for line in (*faithful_report.lines(language, seed=2), *several):
        if language == "de" and any(value.text.endswith("en") for value in line.values):
            continue
        assert faithful_report.is_slotted(line, language, len), line
        found = with_slots(line.text, language, "en", n_tokens=len)
        assert found is not None
        assert faithful_report.is_kept(line, found.filled([found.text])[0], language, "en"), line


@pytest.mark.parametrize(
    "text",
    [
        *("One dog.", "1 dog", "", "A T-shirt."),
        "It is Sam's coat (a.m.), not p.m. – well-known… & “so”; O'clock, e.g. A-B",
        "Half a million people, thousands of dogs and two billion ants. I am here: at home/work! Is he? Yes, he is.",
    ],
)
def test_texts_without_numbers_stay(text: str) -> None:
    assert with_slots(text, "en", "de") is None


def test_texts_in_which_nothing_can_be_found_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [*"aZé0９½ⅷ三万%@#$€{}()_-/:.,'’ \ue003", "www.", "WWW.", "https://", "a.com", ".pdf", "%(n)s", "pm", "年"]
    generator = Random(1)
    texts = ["".join(generator.choices(parts, k=generator.randint(1, 9))) for _ in range(20_000)]
    found = [[*entities.find_entities(text, "en")] for text in texts]
    monkeypatch.setattr(entities, "_MAY_BE_FOUND", re.compile(""))
    assert found == [[*entities.find_entities(text, "en")] for text in texts]
    assert 1_000 < sum(map(bool, found)) < 19_000


def test_each_number_comes_back_once() -> None:
    found = with_slots("12 of 30", "en", "de")
    assert found is not None
    first, second = found.fillings
    assert found.fits(f"{second} {first}")
    assert not found.fits(first)
    assert not found.repeats(f"{second} {first}")
    assert found.repeats(f"{first} {second} {second}")
    assert known_slots(f"{MANY[7]}{first}, {FEW[0]} {second} {MANY[7]}.", found.text) == f"{first}, {second}."
    assert found.filled([f"{first} {first} und {second} ?"]) == ["12 und 30 ?"]
    assert found.filled([f"{first} {first}en, {second}"]) == ["12 en, 30"]
    assert known_slots(f"{first} {MANY[7]}en", found.text) == f"{first} en"
    assert found.filled([first, f" {first}", second]) == ["12", "", "30"]


IN_PLACE = [  # languages, a text, its translation with its slots by their numbers, and whether it can be taken
    ("en-zh", "On 990 came 216 on day 9.", "{0}{1}日{2}", False),
    ("en-zh", "In 1990 came 216.", "{0}年{1}人", True),
    ("en-de", "We saw Paris in 1987.", "Wir sahen {0}en {1}.", False),
    ("en-de", "We saw Paris in 1987.", "Wir sahen {0} {1}en.", False),
    ("en-de", "We saw Paris in 1987.", "Wir sahen {0}s Nu{1}.", False),
    ("en-de", "We saw Paris dance.", "Wir sahen {0}s Tanz.", True),
    ("en-de", "We saw Paris' 12.", "Wir sahen Paris' {0} {1}", True),
    ("en-de", "I have 12.", "Ich habe {0}4.", False),
    ("en-de", "I have 12.", "Ich habe 3,{0}.", False),
    ("en-de", "I have 12.", "Ich habe {0},5.", False),
    ("en-de", "I have 12.", "Ich habe {0}{0}.", True),  # which is put back once
    ("en-de", "In the 1990s, 20-year-old people.", "In den {0}ern {1}jährige.", True),
    ("de-en", "Das ist der 14. von uns.", "He is the {0}th.", True),
    ("de-en", "Es ist der 14. Mai, 5 km weit.", "It is {0}th, {1} far.", False),
    ("de-en", "Es ist der 14. Mai, 5 km weit.", "It is {0}, {1}h far.", False),
    ("en-de", "I have 300 grams, 2 litres.", "Ich habe {0}g, {1}l.", True),
    ("fr-cs", "Le 14 mai à 5 h", "{0}. {1}h", True),
    ("zh-en", "90年代有12个人。", "{1} people in the {0}s.", True),
    ("zh-en", "90年代有12个人。", "{1} people in the {0}en.", False),
    ("en-de", "{a}{b} 12", "{0}{1} {2}", True),  # as there
]


@pytest.mark.parametrize(("languages", "text", "translation", "fits"), IN_PLACE)
def test_a_slot_must_not_become_a_part_of_another_word(languages: str, text: str, translation: str, fits: bool) -> None:
    found = with_slots(text, *languages.split("-"), n_tokens=len)
    assert found is not None
    assert found.fits(translation.format(*found.fillings)) == fits


STARTS = [  # languages, a text, the start of its translation, and that with slots
    ("en-de", "Of 12 dogs 1,250 came.", "1.250 von 312, 12,5, 12", "<M> von 312, 12,5, <M>"),
    ("zh-en", "我有4711", "14711 4711s", "14711 <M>s"),
    ("en-zh", "I have 4711", "我4711年", "我<M>年"),
]


@pytest.mark.parametrize(("languages", "text", "start", "slotted"), STARTS)
def test_only_whole_numbers_in_the_start_of_a_translation_become_slots(
    languages: str, text: str, start: str, slotted: str
) -> None:
    found = with_slots(text, *languages.split("-"))
    assert found is not None
    assert shown(found.emptied(start)) == slotted


def test_a_text_with_more_slot_characters_than_can_be_replaced_stays() -> None:
    found = with_slots(f"{MANY[0]} and 12", "en", "de")
    assert found is not None
    assert found.filled([found.text]) == [f"{MANY[0]} and 12"]
    assert with_slots(f"{''.join(SLOTS[:5])} and 12", "en", "de") is None


@pytest.mark.parametrize("text", ["1" + ",000" * 2_000, f"{'9' * 5_000}万", "9" * 5_000])
def test_numbers_of_thousands_of_digits_come_back(text: str) -> None:
    found = with_slots(text, "zh", "de")
    assert found is not None
    assert found.filled([found.text]) == [text.replace(",", ".")]


@pytest.mark.parametrize(("text", "language"), [("Ab " * 20_000, "de"), ("a" * 100_000, "en"), ("a." * 50_000, "en")])
def test_long_texts_are_searched_in_linear_time(text: str, language: str) -> None:
    """Else a request could hold a server for minutes."""
    assert with_slots(text, language, "fr", n_tokens=lambda word: len(word) - 1) is None


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
        ("3亿5000万", "zh", "en", "350,000,000"),
        ("1万2000", "zh", "en", "12,000"),
        ("5百万", "zh", "de", "5.000.000"),
        ("1,250万", "zh", "en", "12,500,000"),
        ("１，２５０．５", "zh", "de", "1.250,5"),
        ("３５０", "zh", "en", "350"),
        ("1.5 million", "en", "de", "1,5 Millionen"),
        ("1.5m", "en", "de", "1,5 Millionen"),
        ("2 bn", "en", "de", "2 Milliarden"),
        ("2.5bn", "en", "ru", "2\u202f500\u202f000\u202f000"),
        ("10.5x15", "en", "de", "10,5x15"),
        ("2-3 Milliarden", "de", "en", "2-3 billion"),
        ("1 million", "en", "de", "1.000.000"),
        ("5 thousand", "en", "de", "5.000"),
        ("0.25 Billion", "en", "cs", "250\u202f000\u202f000"),
        ("2 milliards d’", "fr", "de", "2 Milliarden"),
        ("8-million", "en", "de", "8 Millionen"),
        ("2-3 millions", "fr", "zh", "2,000,000-3,000,000"),
        ("1,000-2,000.5", "en", "de", "1.000-2.000,5"),
        ("１２：３０", "zh", "en", "12:30"),
        ("３５０", "zh", "ja", "３５０"),
        ("2021", "en", "de", "2021"),
        ("10:45", "en", "de", "10:45"),
        ("3/14", "en", "de", "3/14"),
        ("1.2.3", "en", "de", "1.2.3"),
        ("192.168.100.200", "de", "en", "192.168.100.200"),  # an address
        ("192.168.100", "de", "en", "192,168,100"),
        ("1.250", "und", "en", "1.250"),
        ("1万2千", "zh", "en", "12,000"),
        ("14.03.2021", "de", "en", "14.03.2021"),
        ("1,25", "en", "de", "1,25"),  # no number of English
    ],
)
def test_numbers_are_written_as_in_the_target_language(number: str, src_lang: str, tgt_lang: str, written: str) -> None:
    assert written_for(number, src_lang, tgt_lang) == written


DATES = [  # languages, a text, and what its slots stand for in the translation
    (
        "de-en",
        "Am 24. Dezember 2025 um 18:30, am 3. Mai und 1. MÄRZ.",
        ["24 December 2025", "18:30", "3 May", "1 March"],
    ),
    (
        "en-de",
        "On May 24, 2025, the 4th of July, 24 Dec. 2025 and until May 5",
        ["24. Mai 2025", "4. Juli", "24. Dezember 2025", "5. Mai"],
    ),
    ("en-de", "In May 5 people, on March 3.5 or 32 May, May 10:45", ["5", "3,5", "32", "10:45"]),
    ("en-de", "on december 24, 5 march and 5 july 2020", ["24. Dezember", "5", "5. Juli 2020"]),
    ("en-de", "iPhone 15 May Cost More, MODEL 10 MAY EXPLODE, on 5 May", ["15", "10", "5. Mai"]),
    ("en-fr", "1 May 2020, May 31st, Sept. 2, 2020", ["1er mai 2020", "31 mai", "2 septembre 2020"]),
    ("fr-en", "Le 1er mai 2020 et le 14 juillet.", ["1 May 2020", "14 July"]),
    ("zh-en", "我们2025年12月24日见，5月3号也行，12月见。", ["24 December 2025", "3 May"]),
    ("zh-en", "今年5月3号线开通，12月10号楼建成。", ["3", "10"]),  # line 3, building 10
    ("en-zh", "See you on 24 December 2025 or 5 May.", ["2025年12月24日", "5月5日"]),
    ("cs-es", "Přijdu 24. prosince 2025 v 18:00.", ["24 de diciembre de 2025", "18:00"]),
    ("es-cs", "El 3 de mayo de 2020.", ["3. května 2020"]),
    ("ru-de", "Он родился 5 мая 1980 года.", ["5. Mai 1980"]),
    (
        "de-en",
        "Version 1.24. Mai, 12-24. Mai, 30 Maikäfer und 2. Dez. 2020",
        ["1.24", "12–24 May", "30", "2 December 2020"],
    ),
    (
        "en-de",
        "On 5 May I paid, until 12 March John, by may 3; on 5 may may help, by 10 may be late, to march 5.",
        ["5. Mai", "12. März", "3. Mai", "5. Mai", "10", "5"],
    ),
    (
        "en-de",
        "Sale until 5 may, 6 march 2025, may 31st or march 2, 2020.",
        ["5. Mai", "6. März 2025", "31. Mai", "2. März 2020"],
    ),
    ("en-de", "On 5 Dec. we, by Oct 4 they and on 3 Sept.", ["5. Dezember", "4. Oktober", "3. September"]),
    ("de-en", "Am 5. Dez. und 3. Okt., der 3. Jan und am 7. Okt.", ["5 December", "3 October", "3", "7 October"]),
    ("en-de", "May 31, June 1 and July 2; in May 5, 6 or 7", ["31. Mai", "1. Juni", "2. Juli", "5", "6", "7"]),
    ("en-de", "until may 31ST, on June 1, July 2 or May 5 I ran", ["31. Mai", "1. Juni", "2. Juli", "5. Mai"]),
    (
        "en-de",
        "24-26 December 2024, 5 to 6 May, from 1st to 3rd May I; December 24 – 26, May 4–6, 2025, on May 5-7",
        ["24.–26. Dezember 2024", "5.–6. Mai", "1.–3. Mai", "24.–26. Dezember", "4.–6. Mai 2025", "5.–7. Mai"],
    ),
    (
        "de-en",
        "Vom 24. bis 26. Dezember, am 1./2. Mai, 24.-26. Dez. 2020 und 3. – 5. Juni",
        ["24–26 December", "1–2 May", "24–26 December 2020", "3–5 June"],
    ),
    ("zh-en", "12月24日至26日，2025年5月1-3日，5月1日到3号", ["24–26 December", "1–3 May 2025", "1–3 May"]),
    ("fr-cs", "Du 1er au 3 mai 2020, les 24-26 juillet", ["1.–3. května 2020", "24.–26. července"]),
    ("en-zh", "From 24 to 26 December 2020", ["2020年12月24–26日"]),
    (
        "en-de",
        "In May 2024, in may 2023, until Dec 2020, you may 2000 and mid-May 2020",
        ["Mai 2024", "Mai 2023", "Dezember 2020", "2000", "2020"],
    ),
    ("de-en", "Im Mai 2024 und Dezember 2020, Mai 20.", ["May 2024", "December 2020", "20"]),
    ("fr-cs", "En mai 2024", ["2024"]),  # which would have to decline
    ("cs-zh", "V květnu 2024, 5. května 2024", ["2024", "2024年5月5日"]),
    ("zh-en", "2024年5月和2024年5月8日，2024年5月份", ["May 2024", "8 May 2024", "May 2024"]),
    ("en-zh", "May 2023–June 2024, 24/7 May", ["2023年5月", "2024年6月", "24/7"]),
    ("en-tr", "On 3 May 2020", ["3", "2020"]),  # whose months are not known here
]


AMOUNTS = [  # languages, a text, and what its slots stand for in the translation
    ("en-de", "He has .5 kg, .75 or -.5, and not 3.5...5.", ["0,5 kg", "0,75", "-0,5", "3,5", "5"]),
    ("de-en", "25,50 und -,99 €, ab 9,-€, 3.500,- Euro, 25,– €", ["25.50", "€0.99", "€9", "3,500 euros", "€25"]),
    ("de-en", "12 500 €, 1 000 Hunde, 86 400 Sekunden", ["€12,500", "1,000", "86,400 seconds"]),
    ("en-de", "12 500 dogs, 12\u00a0500 dogs", ["12", "500", "12.500"]),
    ("en-de", "1.3bn phones, €5/kg, 5 mg/kg, 20 kPa", ["1,3 Milliarden", "5\u00a0€", "5 mg/kg", "20 kPa"]),
    ("de-en", "1.200 x 600 x 18 mm, 3 Tsd. Euro", ["1,200 x 600 x 18 mm", "3,000 euros"]),
    ("en-de", "+45 °C, ±2, ~500, <18 and 100+ men, 5 + 3", ["+45 °C", "±2", "~500", "<18", "100+", "5", "3"]),
    ("de-en", "Ruf 0171 1111.5 an", ["0171", "1111.5"]),
    ("en-de", "Rule 1: no. Gate 1, page 1 of 10, 1 dog and 1.", ["1", "1", "10", "1"]),
    ("en-de", "The scores are 11, 12, 13.5, 14 and 20.", ["11, 12, 13,5, 14", "20"]),
]
CODES = (  # one slot each
    "(030) 123-4567|(030) 12345-0|030 12345-0|0171 1234567|0171/123 45 67|+49 (0)30 1234-5678|2.10.3-beta.1|10^6|1e-5|"
    "0x1F|3f2a9c1|foo_bar|VIII|2024-05-06T07:08:09Z|AA:BB:CC:11:22:33|550e8400-e29b-41d4-a716-446655440000|localhost:3000"
).split("|")


CLOCKS = [  # languages, a text, and what its slots stand for in the translation
    ("en-zh", "At 10:45 pm, 12:05 A.M., 12 pm or 9PM", ["22:45", "0:05", "12:00", "21:00"]),
    ("en-en", "At 9 am", ["9 am"]),
    (
        "en-de",
        "From 7 to 9 pm, 7 or 8 pm, 5-6pm, 7:00–9:00 p.m.",
        "19:00 21:00 19:00 20:00 17:00–18:00 19:00–21:00".split(),
    ),
    (
        "en-zh",
        "10 am to 2 pm, 9-12 pm, 11 to 1 pm, 10AM - 2PM",
        "10:00 14:00 9:00–12:00 11:00 13:00 10:00–14:00".split(),
    ),
    (
        "en-de",
        "7, 8, and 9 pm, 11:30 to 1 am, 12 or 1 pm; 7–7 am",
        "19:00 20:00 21:00 23:30 1:00 12:00 13:00 19:00–7:00".split(),
    ),
    (
        "en-de",
        "Room 20 to 9 pm, 1.5 to 8 am, in 2024, 6 pm, Bus 7, 5 am",
        "20 21:00 1,5 8:00 2024 18:00 7 5:00".split(),
    ),
    (
        "de-en",
        "Um 17 Uhr, 8 Uhr 30, 8.05 UHR, 20.15h, 7.30–9.15 Uhr, 9–17 Uhr",
        "17:00 8:30 8:05 20:15 7:30–9:15 9:00–17:00".split(),
    ),
    ("de-en", "Von 9 bis 17 Uhr, 8 Uhr und 18 Uhr 15, 0 Uhr, 12:15 Uhr", "9:00 17:00 8:00 18:15 0:00 12:15".split()),
    ("de-en", "8-10 Uhr, um 8 Uhr 30 Leute, 9 Uhr 20 km, 5:15 h", ["8-10", "8", "30", "9", "20 km", "5:15"]),
    ("fr-cs", "À 18 h 30, de 18h30 à 20h15 ou 9h05-9h30", "18:30 18:30 20:15 9:05–9:30".split()),
]


UNITS = [  # languages, a text, what its slots stand for in the translation with units that are words, and one without
    ("en-de", "1,250.50 euros for 480 kilometers", ["1.250,50 Euro", "480 Kilometer"], "1.250,50 € für 480 Meilen"),
    (
        "en-de",
        "5 million dollars, -12 degrees Celsius",
        ["5 Millionen Dollar", "-12 Grad Celsius"],
        "5 Mio. Dollar, -12",
    ),
    ("en-de", "1 mile, 21 miles, 21 mile", ["1 Meile", "21 Meilen", "21"], "1 Meile, 21 Meile"),
    ("en-de", "5-10 meters, 5 meter-long", ["5-10 Meter", "5"], "5 Meter, 5"),
    ("de-en", "30 euro, 120 Stundenkilometern", ["30 euros", "120 kilometers per hour"], "30 euros, 120 kilometers"),
    ("de-en", "$5 Dollar, 5 Meter-Turm, 5 Kilometern", ["$5", "5", "5 kilometers"], "5 dollars, 5, 5 m"),
    ("fr-cs", "1,5 kilomètre, 20 pour cent, 8 heures", ["1,5", "20 %", "8"], "20"),
    ("en-zh", "3.5 million dollars, 1 meter, 20 percent", ["3,500,000美元", "1米", "20%"], "350万美元, 1米, 20"),
    (
        "zh-en",
        "5公里，1米8，3万美元，20米饭，500克朗，25摄氏度",
        ["5 kilometers", "8", "30,000 dollars", "20", "500", "25 degrees Celsius"],
        "",
    ),
    ("cs-zh", "5 km, 5 kilometrů, 10 minut", ["5 km", "5公里", "10分钟"], "5公里, 10"),
    ("cs-en", "v 8 hodin, v roce 2010 jen 5 jenů, 1 jen", ["8", "2010", "5 yen", "1 yen"], "8, 2010, 5, 1 yen"),
    ("en-pl", "1 yen, 5 yen", ["1 jen", "5 jenów"], "5 jenów"),
    ("en-de", "at 1800 hours, 0730 hours, for 12 hours", ["1800", "0730", "12 Stunden"], "18:00, 7:30, 12"),
    ("da-ru", "5 kilometer", ["5"], "5"),
]


@pytest.mark.parametrize(("languages", "text", "fillings", "translation"), UNITS)
def test_a_unit_that_is_a_word_is_written_in_the_target_language(
    languages: str, text: str, fillings: list[str], translation: str
) -> None:
    src, tgt = languages.split("-")
    found = with_slots(text, src, tgt, units=True)
    assert found is not None
    assert list(found.fillings.values()) == fillings
    assert entities.lost_units(text, ", ".join(fillings), src, tgt) == []
    assert bool(entities.lost_units(text, translation, src, tgt)) == (languages != "da-ru")


@pytest.mark.parametrize(("languages", "text", "fillings"), AMOUNTS)
def test_an_amount_is_written_as_in_the_target_language(languages: str, text: str, fillings: list[str]) -> None:
    found = with_slots(text, *languages.split("-"), units=True)
    assert found is not None
    assert list(found.fillings.values()) == fillings


@pytest.mark.parametrize("code", CODES)
def test_a_code_has_one_slot(code: str) -> None:
    found = with_slots(f"Call {code}, please", "en", "de")
    assert found is not None
    assert list(found.fillings.values()) == [code]


@pytest.mark.parametrize(
    "text",
    [
        "Lehrer_in",
        "jede_r",
        "liebe student_innen",
        "World War II",
        "Nel XX secolo",
        "el siglo XXI",
        "po II wojnie",
        "a 5-millimeter gun",
        "I see V and X",
    ],
)
def test_what_looks_like_a_code_is_none(text: str) -> None:
    found = with_slots(text, "de", "en")
    assert found is None or not found.names


@pytest.mark.parametrize(
    ("number", "written"), [("1", "1st"), ("22", "22nd"), ("13", "13th"), ("103", "103rd"), ("40", "40th")]
)
def test_the_ending_of_an_english_ordinal_number_suits_it(number: str, written: str) -> None:
    for ending in ("st", "nd", "rd", "th"):
        found = Slotted("", fillings={SLOTS[0]: number}).filled([f"the {SLOTS[0]}{ending} dog", f"{SLOTS[1]}thing"])
        assert found == [f"the {written} dog", "thing"]


def test_a_unit_is_a_slot_of_half_of_the_pairs() -> None:
    pair = SentencePair("It is 5 kilometers away.", "Es ist 5 km entfernt.")
    found = [pair_with_slots(pair, ("en", "de"), Random(seed)) for seed in range(100)]
    texts = Counter(tuple(map(shown, each)) for each in found if each)
    assert set(texts) == {
        ("It is <M> away.", "Es ist <M> entfernt."),
        ("It is <M> kilometers away.", "Es ist <M> km entfernt."),
    }
    assert min(texts.values()) > 30


@pytest.mark.parametrize(("languages", "text", "fillings"), [*DATES, *CLOCKS])
def test_a_date_or_a_time_of_day_is_written_as_in_the_target_language(
    languages: str, text: str, fillings: list[str]
) -> None:
    found = with_slots(text, *languages.split("-"))
    assert found is not None
    assert list(found.fillings.values()) == fillings
    translation = ", ".join(found.fillings.values())
    assert lost_numbers(text, translation, languages.split("-")) == []


def test_pairs_share_a_slot_for_a_date() -> None:
    pair = SentencePair("On December 24, 2025 at 10:45 he died.", "Er starb am 24. Dezember 2025 um 10:45.")
    found = pair_with_slots(pair, ("en", "de"), Random(1))
    assert found is not None
    assert list(map(shown, found)) == ["On <M> at <M> he died.", "Er starb am <M> um <M>."]
    may = pair_with_slots(SentencePair("On May 5, 1971 he died.", "Er starb am 5. Mai 1971."), ("en", "de"), Random(1))
    assert may is not None  # with names that are not shortened
    assert list(map(shown, may)) == ["On <M> he died.", "Er starb am <M>."]
    other = pair_with_slots(pair._replace(tgt="Er starb am 25. Dezember 2025 um 10:45."), ("en", "de"), Random(1))
    assert other is not None
    assert shown(other.src) == "On December 24, <M> at <M> he died."


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
    ("src", "tgt", "slotted"),
    [
        ("It is 5 km.", "Es sind 5\u00a0km.", ("It is <M>.", "Es sind <M>.")),
        ("It is 5 km.", "Es sind 5 Kilometer.", ("It is <M> km.", "Es sind <M> Kilometer.")),
        ("€1.5 is 1 €.", "1,5 Euro sind 1 €.", ("€<M> is <M>.", "<M> Euro sind <M>.")),
        ("It has 1.5 million.", "Es hat 1,5 Mio. und", ("It has <M>.", "Es hat <M> und")),
        ("It is 2 million.", "Es sind 2 Mille.", ("It is <F> million.", "Es sind <F> Mille.")),
        ("At 9:30 pm, 8:10 am", "Um 21:30, um 8:10 früh", ("At <M>, <M>", "Um <M>, um <M> früh")),
        ("At 7-9 pm, 5 pm", "Um 19–21 Uhr, um 17 Uhr", ("At <M>, <M>", "Um <M>, um <M>")),
        ("At 9:30 pm, 8 o'clock", "Um 21.30 Uhr, 8 Uhr", ("At <M>, <M> o'clock", "Um <M>, <M> Uhr")),
        ("Up to June 5 or in June 2024", "Bis 5. Juni, im Juni 2024", ("Up to <M> or in <M>", "Bis <M>, im <M>")),
        ("10-20 of 10 km", "10–20 von 10 km", ("<M> of <M>", "<M> von <M>")),
        ("10-20 of us", "10 bis 20 von uns", ("<M>-<M> of us", "<M> bis <M> von uns")),
        ("5 km and 5 dogs", "5 Hunde und 5 km", ("<M> and <M> dogs", "<M> Hunde und <M>")),
    ],
)
def test_pairs_share_a_slot_for_an_amount_or_its_number_alone(src: str, tgt: str, slotted: tuple[str, str]) -> None:
    found = pair_with_slots(SentencePair(src, tgt), ("en", "de"), Random(1))
    assert found is not None
    assert (shown(found.src), shown(found.tgt)) == slotted


def test_the_number_of_an_amount_is_written_as_in_the_target_language() -> None:
    found = with_slots("€1,250.50 for 1.5 km", "en", "nl")
    assert found is not None
    assert found.filled([found.text]) == ["€1.250,50 for 1,5 km"]


@pytest.mark.parametrize(
    ("languages", "text", "written"),
    [
        (
            "en-de",
            "£1,250.50, -$5, $ 5k, €3M and $5-$10",
            "1.250,50\u00a0£, -5\u00a0$, 5k\u00a0$, 3 Millionen\u00a0€ and $5-$10",
        ),
        ("en-de", "US$6, 7 US$ or C$ 8.50", "6\u00a0US$, 7 US$ or 8,50\u00a0C$"),
        ("en-fr", "1.5 €, €2–3 and EUR 5", "1,5 €, 2–3\u00a0€ and EUR 5"),
        ("de-en", "1.250,5 €, −5€, 3 Mio. €, 5 % und €5", "€1,250.5, −€5, €3 million, 5 % und €5"),
        ("fr-en", "5 M€, 3,5 k€ et 5\u00a0$", "5 M€, 3.5 k€ et $5"),
        *(("en-zh", "$5 is 5 €", "$5 is 5 €"), ("en-nl", "$5 is 5 €", "$5 is 5 €")),
    ],
)
def test_the_sign_of_a_currency_stands_where_the_target_language_has_it(
    languages: str, text: str, written: str
) -> None:
    found = with_slots(text, *languages.split("-"))
    assert found is not None
    assert found.filled([found.text]) == [written]


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


def test_variations_with_slots_depend_on_the_languages() -> None:
    one, other = (Augmenter(None, seed=1, languages=[LanguagePair("en", code)], slots=True) for code in ("de", "fr"))
    assert one.identity != other.identity


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


class Copying:
    """An engine that copies a source after the tokens that it has to start with; ``change`` changes what it copies."""

    def __init__(self, change: Callable[[list[int]], list[int]] = list) -> None:
        """Take the change."""
        self._change = change

    def submit(self, requests: Sequence[Any], *, on_done: Any = None) -> list[Any]:
        """Return one hypothesis for each request."""
        copies = (list(each.prefix) + self._change(list(each.src[:-1]))[len(each.prefix) :] for each in requests)
        return [[Hypothesis(ids, [-1.0])] for ids in copies]


def make_slot_tokenizer(symbols: Sequence[str] = ()) -> Tokenizer:
    """Make a tokenizer with a token for each character, and slots."""
    text = "".join(map(chr, range(33, 127)))
    config = TokenizerConfig(type="char", vocab_size=400, slots=True)
    return train_tokenizer([SentencePair(text, text)] * 10, config, "en", "de", adjust=True, control_symbols=symbols)


@pytest.fixture(scope="module")
def characters() -> Tokenizer:
    return make_slot_tokenizer()


def result(tokenizer: Tokenizer, engine: Copying, plan: Callable[[Planner], Plan[list[Translation]]]) -> Translation:
    planner = Planner(engine, tokenizer, SearchOptions(), tgt_lang="de", max_length=80, src_lang="en", slots=True)  # type: ignore[arg-type]
    [outcome] = run([plan(planner)], planner.engine)
    assert isinstance(outcome, list), outcome
    return outcome[0]


def test_a_translation_gets_what_its_slots_stand_for(characters: Tokenizer) -> None:
    found = result(characters, Copying(), lambda planner: planner.plan("Is a 1,250.5 in f_1.pdf?"))
    assert (found.text, found.notes) == ("Is a 1.250,5 in f_1.pdf?", ())


def test_a_translation_may_begin_with_a_number(characters: Tokenizer) -> None:
    found = result(characters, Copying(), lambda planner: planner.plan_continued("1,250.5 is f_1.pdf.", "1.250,5"))
    assert (found.text, found.tokens[:2]) == ("1.250,5 is f_1.pdf.", ("▁", "1.250,5"))


@pytest.mark.parametrize(
    ("text", "expected", "notes"),
    [
        ("I see Gołąb “12”.", 'I see Gołąb "12".', ()),
        ("1.5亿 dogs", "150.000.000 dogs", ()),
        ("10⁶ dogs of 5×10⁻³ kg", "10⁶ dogs of 5×10⁻³ kg", ()),
        (
            "a1 b2 c3 d4 Gołąb 2ł",
            "a1 b2 c3 d4 Gołab 2ł",
            ("unknown characters: ł", "names lost: Gołąb"),
        ),  # none is left
    ],
)
def test_characters_that_the_model_does_not_know_stay_in_what_slots_stand_for(
    characters: Tokenizer, text: str, expected: str, notes: tuple[str, ...]
) -> None:
    preparations = standard_preparations(characters, "zh", "de")
    found = result(
        characters, Copying(), lambda planner: replace(planner, src_lang="zh", preparations=preparations).plan(text)
    )
    assert found.text == expected
    assert found.flags == list(notes)


def test_codes_that_get_lost_are_noted(characters: Tokenizer) -> None:
    """A sample is not made to keep slots; a text that loses some is translated as it is."""
    engine, sample = Copying(lambda ids: ids[:5]), SearchOptions(sample=True, beam_size=1)
    text = "I see COVID-19 in f_1.pdf."
    found = result(characters, engine, lambda planner: replace(planner, options=sample).plan(text))
    assert (found.text, found.notes) == ("I se", ("check: names lost: COVID-19 f_1.pdf",))


def test_codes_for_which_no_slot_was_left_are_noted(characters: Tokenizer) -> None:
    engine = Copying(lambda ids: ids[:-3])
    found = result(characters, engine, lambda planner: planner.plan("a1 b2 c3 d4 e5"))
    assert (found.text, found.notes) == ("a1 b2 c3 d4", ("check: names lost: e5",))


def test_slots_that_a_text_does_not_have_are_dropped(characters: Tokenizer) -> None:
    """Nobody would know what they stand for."""
    [made_up] = characters.tgt.ids([MANY[2]])
    engine = Copying(lambda ids: [made_up, *ids, made_up])
    found = result(characters, engine, lambda planner: planner.plan("a dog"))
    assert (found.text, found.tokens[0], found.tokens[-2:]) == ("a dog", "", ("", "</s>"))
    assert found.notes == ("check: made-up numbers or names removed",)
    text = "".join(SLOTS[:5])  # of its own, more than can be replaced
    found = result(characters, engine, lambda planner: planner.plan(text))
    assert (found.text, found.notes) == (f"{MANY[2]} {text}{MANY[2]}", ())
    raw = Planner(engine, characters, SearchOptions(), tgt_lang="de", max_length=80)  # type: ignore[arg-type]
    [[found]] = run([raw.plan("a dog")], raw.engine)  # type: ignore[misc]
    assert found.text == "a dog"


class Reading:
    """An engine that remembers what pairs it is given, and makes up what it returns."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Take the tokenizer that reads them."""
        self.tokenizer = tokenizer
        self.read: list[str] = []

    def submit(self, requests: Sequence[Any], *, on_done: Any = None) -> list[Any]:
        """Return log probabilities, or attention."""
        self.read += [shown(self.tokenizer.decode(ids)) for each in requests for ids in (each.src, each.tgt)]
        if isinstance(requests[0], ScoreRequest):
            return [[-1.0] * (len(each.tgt) + 1) for each in requests]
        return [np.zeros((len(each.tgt), len(each.src))) for each in requests]


@pytest.mark.parametrize(
    ("src", "tgt", "read"),
    [
        ("I see 4,711 in f_1.pdf", "In f_1.pdf 4.711", ("I see <M> in <N>", "In <N> <M>")),
        ("I see 4,711 in f_1.pdf", "In f_1.pdf 4711", ("I see <M> in <N>", "In <N> <M>")),
        ("12 of 17", "17 von zwei", ("12 of <M>", "<M> von zwei")),  # what one side lacks stays text
        ("12 of 17", "112", ("12 of 17", "112")),
        ("3 and 3", "3 und 3", ("<F> and <F>", "<F> und <F>")),
        ("5 km and 6", "5 Meilen und 6", ("<M> km and <M>", "<M> Meilen und <M>")),  # the number alone
        ("no", "nein 12", ("no", "nein 12")),
    ],
)
def test_scoring_and_aligning_read_slots_for_what_both_texts_have(
    characters: Tokenizer, src: str, tgt: str, read: tuple[str, str]
) -> None:
    engine = Reading(characters)
    planner = Planner(engine, characters, SearchOptions(), tgt_lang="de", max_length=80, src_lang="en", slots=True)  # type: ignore[arg-type]
    [scored] = run([planner.plan_score(src, tgt)], engine)  # type: ignore[arg-type]
    assert isinstance(scored, Translation)
    assert tuple(engine.read) == read
    assert "".join(scored.tokens).removesuffix("</s>").replace("▁", " ").strip() == tgt
    [aligned] = run([planner.plan_alignment(src, tgt)], engine)  # type: ignore[arg-type]
    assert tuple(engine.read[2:]) == read
    for text, spans in ((src, aligned.src_spans), (tgt, aligned.tgt_spans)):  # type: ignore[union-attr]
        assert "".join(text[start:end] for start, end in spans) == text.replace(" ", "")


def test_an_amount_and_its_number_alone_are_told_apart_in_a_translation() -> None:
    pair = SentencePair("Give 5 to Kwazor for €5.", "Gib für 5 € Kwazor 5.")
    slotted, tgt = pair_with_its_slots(pair, ("en", "de"), len)
    assert slotted.shown == "Give ⟨5⟩ to ⟨Kwazor⟩ for ⟨€5⟩."
    assert readable(tgt, slotted.originals) == "Gib für ⟨€5⟩ ⟨Kwazor⟩ ⟨5⟩."
    assert slotted.filled([tgt]) == [pair.tgt]


def test_slots_are_spelled_as_what_they_stand_for(characters: Tokenizer) -> None:
    spelling = Spelling("the 1,250.5 a", characters, with_slots("the 1,250.5 a", "en", "de"))
    src, tgt = spelling.encode_src(), spelling.encode_tgt("a 1.250,5")
    assert [token.text for token in spelling.src_tokens(src)][-5:] == ["▁", "⟨1,250.5⟩", "▁", "a", "</s>"]
    assert [token.text for token in spelling.tgt_tokens(tgt)] == ["▁", "a", "▁", "⟨1.250,5⟩"]
    [made_up] = characters.tgt.ids([SLOTS[15]])
    assert spelling.decode([made_up, *tgt]) == "a 1.250,5"
    assert [token.text for token in spelling.tgt_tokens([made_up])] == ["⟨?⟩"]


def test_tokens_have_each_number_once(characters: Tokenizer) -> None:
    engine = Copying(lambda ids: [*ids, ids[-1]])
    found = result(characters, engine, lambda planner: planner.plan("a 12"))
    assert (found.text, found.tokens) == ("a 12", ("▁", "a", "▁", "12", "", "</s>"))
    assert found.notes == ("check: repeated numbers or names removed",)
    assert found.to_dict()["tokens"] == ["▁", "a", "▁", "12", "⟨?⟩", "</s>"]


class Forgetful(Copying):
    """An engine whose three best hypotheses lack the last token."""

    def submit(self, requests: Sequence[Any], *, on_done: Any = None) -> list[Any]:
        """Return as many hypotheses as are asked for."""
        return [
            [Hypothesis(list(each.src[: -1 - (n < 3)]), [-1.0 - n]) for n in range(each.options.n_best)]
            for each in requests
        ]


def test_a_wider_beam_finds_slots_that_the_best_translation_lacks(characters: Tokenizer) -> None:
    found = result(characters, Forgetful(), lambda planner: planner.plan("a 12"))
    assert (found.text, found.notes) == ("a 12", ("check: numbers or names put back: 12",))


class Dropping(Copying):
    """An engine that copies only what it has to start with of the slots; the more of a copy is right, the likelier."""

    def submit(self, requests: Sequence[Any], *, on_done: Any = None) -> list[Any]:
        """Return the hypothesis that continues the prefix."""
        found = []
        for each in requests:
            src, ids = list(each.src[:-1]), list(each.prefix)
            place = 0
            for token in ids:
                place = src.index(token, place) + 1 if token in src[place:] else place
            ids += [token for token in src[place:] if token > EOS_ID + len(SLOTS)]
            n_wrong = sum(a != b for a, b in zip_longest(src, ids))
            found.append([Hypothesis(ids, [-1.0 - n_wrong])])
        return found


def test_slots_that_no_beam_keeps_are_inserted(characters: Tokenizer) -> None:
    assert characters.tgt.ids(SLOTS) == list(range(EOS_ID + 1, EOS_ID + 1 + len(SLOTS)))
    text, several = "12 in f_1.pdf, a 4,711", SearchOptions(beam_size=4, n_best=3)
    added = "12, f_1.pdf, 4.711"
    for options in (SearchOptions(), several):
        found = result(characters, Dropping(), lambda planner: replace(planner, options=options).plan(text))  # noqa: B023
        assert (found.text, found.notes) == ("12 in f_1.pdf, a 4.711", (f"check: numbers or names put back: {added}",))


def test_terms_stay_where_slots_are_inserted(characters: Tokenizer) -> None:
    terms = Terms(Glossary([("a", "b")]), characters, src_lang="en", tgt_lang="de")
    asked: list[Any] = []

    class Noting(Dropping):
        def submit(self, requests: Sequence[Any], *, on_done: Any = None) -> list[Any]:
            asked.extend(requests)
            likely = [(each.ids, each.log_prob / 100) for [each] in super().submit(requests)]
            return [[Hypothesis(ids, [log_prob])] for ids, log_prob in likely]

    found = result(characters, Noting(), lambda planner: replace(planner, terms=terms).plan("12 is a"))
    assert found.text == "12 is a"
    assert all(each.constraint is not None for each in asked)
    assert found.notes == ("the term 'a' is not translated as 'b'", "check: numbers or names put back: 12")


def test_a_unit_gets_the_slot_of_its_number_if_it_is_lost(characters: Tokenizer) -> None:
    asked: list[str] = []

    class Noting(Copying):
        def submit(self, requests: Sequence[Any], *, on_done: Any = None) -> list[Any]:
            asked.extend(shown(characters.decode(list(each.src[:-1]))) for each in requests)
            return super().submit(requests, on_done=on_done)

    for text, translation, read in (
        ("is 4,711 miles", "is 4.711 Meilen", ["is <M> miles", "is <M>"]),
        ("4,711 miles, 5 kg", "4.711 Meilen, 5 kg", ["<M> miles, <M>"]),
        ("is 5 percent", "is 5 Prozent", ["is <M> percent", "is <M>"]),
        ("is 5 kg", "is 5 kg", ["is <M>"]),
    ):
        asked.clear()
        found = result(characters, Noting(), lambda planner: planner.plan(text))  # noqa: B023
        assert (found.text, found.notes, asked) == (translation, (), read)


class Gluing(Copying):
    """An engine that likes a slot best right before the last token."""

    def submit(self, requests: Sequence[Any], *, on_done: Any = None) -> list[Any]:
        """Return the hypothesis that continues the prefix."""
        found = []
        for each in requests:
            space, first, *_, last, _ = each.src
            ids, is_glued = list(each.prefix) or [space, first], len(each.prefix) == 2
            found.append([Hypothesis([*ids, *([] if is_glued else [space]), last], [-1.0 if is_glued else -2.0])])
        return found


def test_a_slot_is_inserted_where_it_touches_no_letter(characters: Tokenizer) -> None:
    found = result(characters, Gluing(), lambda planner: planner.plan("a 12 b"))
    assert (found.text, found.notes) == ("a 12 b", ("check: numbers or names put back: 12",))


def test_a_number_is_not_lost_for_a_letter_that_it_touches(characters: Tokenizer) -> None:
    class AlwaysGluing(Gluing):
        def submit(self, requests: Sequence[Any], *, on_done: Any = None) -> list[Any]:
            return [[Hypothesis([*each.src[:-1], each.src[1]], [-1.0])] for each in requests]

    found = result(characters, AlwaysGluing(), lambda planner: planner.plan("a 12"))
    assert (found.text, found.notes) == ("a 12a", ("check: numbers or names put back: 12",))


def test_what_lacks_many_slots_is_translated_without(characters: Tokenizer) -> None:
    text = "12 34 56 78 90 a"
    found = result(characters, Dropping(), lambda planner: planner.plan(text))
    assert (found.text, found.notes) == (text, ())


def test_a_term_keeps_its_place_in_a_text_with_doubled_spaces(characters: Tokenizer) -> None:
    terms = Terms(Glossary([("a380 jet", "Jet")]), characters, src_lang="en", tgt_lang="de")
    read = result(
        characters, Copying(), lambda planner: replace(planner, terms=terms).plan("the     old     a380 jet 12")
    )
    assert (read.text, [term.tgt for term in read.terms]) == ("the old a380 jet 12", ["Jet"])
    planner = Planner(Copying(), characters, SearchOptions(), tgt_lang="de", max_length=80, src_lang="en", slots=True)  # type: ignore[arg-type]
    assert planner.texts_read("the a1 12") == ["the ⟨a1⟩ ⟨12⟩"]


def test_a_text_of_codes_alone_is_copied_with_separators_of_the_target(characters: Tokenizer) -> None:
    engine = Copying(lambda ids: [*ids, ids[-1]])
    found = result(characters, engine, lambda planner: planner.plan("COVID-19, 3D (2,000)"))
    assert (found.text, found.tokens) == ("COVID-19, 3D (2.000)", ())
    found = result(characters, engine, lambda planner: planner.plan("3D" + " 1.5" * 20))
    assert found.text == "3D" + " 1,5" * 20


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("1,250.50", "1.250,50"),
        ("★ 1,250 “5”", "★ 1.250 “5”"),
        ("1,250 и", "1,250 и"),
        ("$1.5 " * 20, "1,5\u00a0$ " * 20),
    ],
)
def test_a_line_of_numbers_alone_has_the_separators_of_the_target(
    characters: Tokenizer, given: str, expected: str
) -> None:
    [copy] = prepared(given, standard_preparations(characters, "en", "de")).restored(iter(()))
    assert copy.text == expected


def test_codes_stay_in_capitals_as_they_are() -> None:
    assert outside_codes(str.lower, "See COVID-19 and REPORT.PDF at HTTP for 5 EUR") == (
        "see COVID-19 and REPORT.PDF at http for 5 EUR"
    )
    assert outside_codes(str.upper, "see mp3 or a_1.pdf") == "SEE mp3 OR a_1.pdf"
