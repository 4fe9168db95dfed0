"""Slots: what stands in a text for a number, a code or a name, and comes back in the translation."""

import re
from collections import Counter
from random import Random

import faithful_report
import pytest

from mtformer.config import LanguagePair, TokenizerConfig
from mtformer.data.augment import Augmenter
from mtformer.text import entities
from mtformer.text.pairs import SentencePair
from mtformer.text.slots import (
    OF_KIND,
    SLOTS,
    known_slots,
    never_split,
    pair_with_slots,
    with_slots,
)
from mtformer.text.tokenizer.adopt import adopt
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer

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
        ("It is -5 °C (−3.7), -1, -€50, A-5, e-5.", "It is <M> <M>, <M>, <M>, <N>, e-<M>."),
        ("10-20 dogs, 3–4 km, $5-$10, 5%-10%, 1-2", "<M> dogs, <F>, <M>, <M>, <F>"),
        ("10:45-11:15, 1990-95, -5–10 °C, 1,500-2,000.", "<M>, <M>, <M>, <M>."),
        ("20-year-old, 10 - 20, 3.-5.", "<M>-year-old, <M> - <M>, <F>.-<M>."),
        ("EUR 50, 5 €, £4, A$ 7 or 5 US$6.", "<M>, <M>, <F>, <M> or <M> <M>."),
        ("In 2010 $5 or EUR 6: 7 t-shirts, 8 °Celsius", "In <M> <M> or <M>: <M> t-shirts, <M> °Celsius"),
        ("In 2010 EUR 5; 5€50; 8€/kg", "In <M> <M>; <M>€<M>; <M>"),
        ("9 ${items}, 5 %s, 6 %(n)s", "<M> <N>, <M> <N>, <M> <N>"),
        ("1.2.3 and 192.168.0.1", "<M> and <M>"),
        ("fe80::1ff:fe23:4567, ab:cd::/32 or 1:2:3:4:5:6:7:8f", "<N>, <N> or <N>"),  # IPv6
        ("d0:1B:44:11:3A:B7 at a::b, std::ab, 10:30:45", "<N> at <N>, std::ab, <M>"),
        ("10x15 cm, 1920 × 1080, 2x3x4 or 1e16 of 7", "<M>, <M>, <F> or <N> of <M>"),  # no part of a number
        ("4.5M dogs, 2.5B stars, 1.5MB", "<M> dogs, <M> stars, <M>"),
        ("100k views, 1.5k-2k, -5k or £2.5k, 5k-run", "<M> views, <M>-<F>, <M> or <M>, <M>k-run"),
        ("3 1/2 cups, -5 1/2 kg, 2-2 1/2, $5 1/2, 3 1/20", "<M> cups, <M>, <F>-<M>, <M>, <F> <M>"),
        ("0x42 or 0x1F", "<N> or <N>"),
        ("The COVID-19-Pandemie, ISO-8859-1-coded, an A4-Überformat", "The <N>-Pandemie, <N>-coded, an <N>-Überformat"),
        ("COVID-19- or H1N1-viruses, python3-dev and X1-Y2-z", "<N>- or <N>-viruses, <N> and <N>"),
        ("CO₂-neutral, Ca(OH)₂, SO₄²⁻ on 5 m²", "<N>-neutral, <N>, <N> on <M>"),
        ("x² + v₀, the word² and (H₂O)", "<N> + <N>, the word² and <N>"),
        ("A4/24.12.2024 at 24V/2.5 A, A-12/5% and 100W/m²", "<N>/<M> at <N>/<M> A, <N>/<M> and <N>/m²"),
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
        ("zh", "打8折或8.5折，共15个", "打8折或8.5折，共<M>个"),  # 8折 is 20% off
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
        ("de", "Die BGB-Reform mit XÖV-REFORM", "Die <N>-Reform mit XÖV-REFORM"),
        ("de", "BGB und FBI, das FBI's, LH 1234 bei XÖV.", "<N> und <N>, das <N>'s, <N> <M> bei XÖV."),
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


@pytest.mark.parametrize(
    "text",
    [
        "Hôm qua người ta đã ước rằng trời ẩm ướt ở đó",
        "Jsem ve škole a chci čaj",
        "das ist 100%ig!",
        "costs US$5+US$3 in total",
        "in 20%+5%rabatt",
    ],
)
def test_small_words_and_amounts_are_no_names(text: str) -> None:
    found = with_slots(text, "vi", "en", n_tokens=len)
    assert found is None or not set(found.fillings) & set(OF_KIND[entities.NAME])


@pytest.mark.parametrize("name", ["Nguyễn Thị Mai", "Ionuț Țîrlea", "Əli Məmmədov", "Đặng Văn Lâm", "Hà Nội"])
@pytest.mark.parametrize("text", ["In {} it rains.", "Wir trafen {} am Abend."])
def test_names_are_kept_with_all_letters_of_the_latin_alphabet(text: str, name: str) -> None:
    language = "de" if text.startswith("Wir") else "en"
    found = with_slots(text.format(name), language, "fr", n_tokens=lambda _word: 5)
    assert found is not None
    assert list(found.fillings.values()) == [name]


@pytest.mark.parametrize(
    "text", ["BUY ONLY NOW", "Buy NOW at IKEA-LIKE shops.", "The ONLY dog, X and Y", "An UNESCO", "It is ABCDEFGHI"]
)
def test_words_in_capitals_are_names_only_if_they_are_spelled_in_any_case(text: str) -> None:
    known = ("NOW", "buy", "only", "UNESCO")
    assert with_slots(text, "en", "de", n_tokens=lambda word: 1 if word in known else len(word)) is None


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
    texts = ["".join(generator.choices(parts, k=generator.randint(1, 9))) for _ in range(8_000)]
    found = [[*entities.find_entities(text, "en")] for text in texts]
    monkeypatch.setattr(entities, "_MAY_BE_FOUND", re.compile(""))
    assert found == [[*entities.find_entities(text, "en")] for text in texts]
    assert 400 < sum(map(bool, found)) < 7_600


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
    assert found.filled([f"Street {first}. {first}. It, {second}, {second}!"]) == ["Street 12. It, 30!"]
    assert found.filled([f"{first}, {first}, {second}; {second}"]) == ["12, 30"]
    assert found.filled([f"{first}. {second}. {first}"]) == ["12. 30."]
    assert found.filled([f"{first}，{first}。"]) == ["12。"]


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
    ("en-de", "In the 1990s, 20-year-old people.", "In den {0}ern {1}jährige.", True),  # in which er is written once
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


@pytest.mark.parametrize(
    ("text", "language"),
    [("Ab " * 20_000, "de"), ("a" * 100_000, "en"), ("a." * 50_000, "en"), ("(a!a!" * 20_000, "en")],
)
def test_long_texts_are_searched_in_linear_time(text: str, language: str) -> None:
    """Else a request could hold a server for minutes."""
    assert with_slots(text, language, "fr", n_tokens=lambda word: len(word) - 1) is None


def test_a_unit_is_a_slot_of_half_of_the_pairs() -> None:
    pair = SentencePair("It is 5 kilometers away.", "Es ist 5 km entfernt.")
    found = [pair_with_slots(pair, ("en", "de"), Random(seed)) for seed in range(100)]
    texts = Counter(tuple(map(shown, each)) for each in found if each)
    assert set(texts) == {
        ("It is <M> away.", "Es ist <M> entfernt."),
        ("It is <M> kilometers away.", "Es ist <M> km entfernt."),
    }
    assert min(texts.values()) > 30


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
