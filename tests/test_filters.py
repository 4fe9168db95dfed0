"""The rules of ``data.filters``: what they drop, and what they must let pass."""

import math
import os
import pickle
import re
import runpy
import tracemalloc
import unicodedata
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import yaml
from conftest import Project, sentence_pairs
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from mtformer.config import FILTERS, LanguagePair, load_config, parse_source
from mtformer.data.arrays import Ragged
from mtformer.data.clean.filters import Filters, filters_of
from mtformer.data.clean.language import identifier, language_warning
from mtformer.data.clean.learned import _logistic_regression
from mtformer.data.clean.seen import HashSet, HeldOut, hashes
from mtformer.data.clean.words import Association, EncodedPairs, HashTable, Words
from mtformer.data.sources.parallel import ParallelText
from mtformer.data.store import stored_text
from mtformer.support.errors import UserError
from mtformer.text.pairs import SentencePair

EN_DE = LanguagePair("en", "de")
CLEAN = [
    ("She has bought three apples and a loaf of bread.", "Sie hat drei Äpfel und ein Brot gekauft."),
    ("Yes.", "Ja."),
    ("No!", "Nein!"),
    ("Taxi", "Taxi"),
    ("Hotel Bristol", "Hotel Bristol"),
    ("Tom Jackson, London", "Tom Jackson, London"),
    ("1, 2, 3", "1, 2, 3"),
    ("10:45", "10:45"),
    ("mtformer.config", "mtformer.config"),
    ("Mr. Schwarzenegger lives in Austria.", "Herr Schwarzenegger wohnt in Österreich."),
    ('He only said "Danke!" and left.', 'Er sagte nur „Danke!“ und ging.'),
    ("It costs 3,500 euros.", "Es kostet 3.500 Euro."),
    ("They have ten dogs.", "Sie haben 10 Hunde."),
    ("He came on May 3, 1984.", "Er kam am 3. Mai 1984."),
    ("The 90s were wild.", "Die Neunziger waren wild."),
    ("Write to info@example.org.", "Schreiben Sie an info@example.org!"),
    ("Read <name> first.", "Lies zuerst <name>."),
    ("x < y & y > z", "x < y & y > z"),
    ("Naïve café owners – “really”?", "Naive Cafébesitzer – „wirklich“?"),
    ("No, no, no, no!", "Nein, nein, nein, nein!"),
    ("Go.", "Lasst uns endlich gehen."),
    ("SÃO PAULO", "SÃO PAULO"),
    ("The film starts at 8:15 p.m.", "Der Film beginnt um 20:15 Uhr."),
    ("It was 15:30 when the train came.", "Es war 3.30 Uhr, als der Zug kam."),
    ("The shop closes at 17:00.", "Der Laden schließt um 17 Uhr."),
    ("It was 15:30 when the train came.", "Es war 15 Uhr 30, als der Zug kam."),
    ("The programme ran from 2007-13.", "Das Programm lief von 2007 bis 2013."),
    ("It costs $200.00 or 1.50 euros.", "Es kostet 200 $ oder 1,5 Euro."),
    ("He came on August 25th.", "Er kam am 25.8. an."),
    ("They sold 2.5 million of them in 1984.", "1984 verkauften sie 2.500.000 davon."),
    ("Read https://example.org/en-us/help first.", "Lesen Sie zuerst https://example.org/de/help."),
    ("See https://en.wikipedia.org/wiki/Berlin.", "Siehe https://de.wikipedia.org/wiki/Berlin."),
    ("See www.example.org/index_en.htm.", "Siehe http://www.example.org/index_de.htm."),
    ("Go to https://example.org/?lang=en&page=2 now.", "Gehen Sie jetzt zu https://example.org/?lang=de&page=2."),
]  # fmt: skip
NOISY: list[tuple[str, str, str]] = [
    ("empty", "", "Das ist ein Satz."),
    ("empty", "This is a sentence.", " \t"),
    ("too_long", "word " * 201, "Wort " * 201),
    ("too_long", "A" * 61, "B" * 61),
    ("encoding", "The fish is fresh.", "Der Fisch ist fÃ¼r die GÃ¤ste."),
    ("encoding", "The door is open.", "Die TÃ¼r ist offen."),
    ("encoding", "The door is\x1f open.", "Die Tür ist offen."),
    ("encoding", "The door is open.", "Die T\ufffdr ist offen."),
    ("copy", "The old man is sleeping.", "The old man is sleeping."),
    ("copy", "The old man is sleeping.", "the old man is sleeping."),
    ("copy", "Tom ran.", "Tom ran."),
    ("copy", "The old man from Berlin is sleeping now.", "The old man aus Berlin is sleeping now."),
    ("script", "Where is the station?", "Где находится вокзал?"),
    ("language", "Where is the station, please?", "Pouvez-vous me dire où se trouve la gare ?"),
    ("language", "Das ist doch wirklich nicht so schwer.", "Das ist doch wirklich gar nicht so schwer."),
    ("length_ratio", "Yes.", "Das hat mir mein Bruder gestern schon am Telefon erzählt."),
    ("repetition", "The dog barks.", "Der Hund Hund Hund Hund Hund Hund Hund bellt."),
    ("numbers", "He paid 1,250 dollars.", "Er hat 1.450 Dollar bezahlt."),
    ("numbers", "They sold 2 million in 1984.", "Sie verkauften 1985 zwei Millionen."),
    ("numbers", "The film starts at 8:15 p.m. in room 40.", "Der Film beginnt um 20:15 Uhr in Saal 41."),
    ("numbers", "The train leaves at 10:45.", "Der Zug fährt um 10:15 Uhr ab."),
    ("numbers", "The shop closes at 17:00.", "Der Laden schließt um 18 Uhr."),
    ("urls", "See www.example.org.", "Siehe www.example.com."),
    ("urls", "Write to info@example.org.", "Schreiben Sie uns."),
    ("urls", "Read https://example.org/en/help.", "Lesen Sie https://example.org/de/contact."),
    ("markup", "He said no.<br/>", "Er sagte nein."),
    ("markup", "Stone &amp; wood.", "Stein und Holz."),
    ("markup", "Read <b>this</b> first.", "Lies <b>das</b> zuerst."),
    ("markup", "Read <this> first.", "Lies das zuerst."),
    ("markup", "<v Tom>Read this first.</v>", "<v Tom>Lies das zuerst.</v>"),
]


def kept(
    names: Sequence[str], pairs: Sequence[tuple[str, str]], languages: tuple[str, str] = ("en", "de")
) -> list[bool]:
    reasons = Filters(names, LanguagePair(*languages)).rules([SentencePair(*pair) for pair in pairs])
    return [reason is None for reason in reasons]


@pytest.mark.parametrize(("src", "tgt"), CLEAN)
def test_good_pairs_pass_all_rules(src: str, tgt: str) -> None:
    pairs = [SentencePair(src, tgt)]
    assert Filters(["all"], EN_DE).rules(pairs) == [None]
    assert Filters(["all"], LanguagePair("de", "en")).pair_rules([SentencePair(tgt, src)]) == [None]


@pytest.mark.parametrize(("name", "src", "tgt"), NOISY)
def test_a_rule_drops_what_it_is_for_and_says_so(name: str, src: str, tgt: str) -> None:
    assert Filters([name], EN_DE).rules([SentencePair(src, tgt)]) == [name]
    assert kept(["all"], [(src, tgt)]) == [False]


def test_a_few_words_in_another_order_are_no_copy() -> None:
    pairs = [SentencePair("Vala source code", "code source Vala"), SentencePair("Vala source code", "Vala source code")]
    assert Filters(["copy"], LanguagePair("en", "fr")).rules(pairs) == [None, "copy"]


def test_chinese_and_english() -> None:
    good = [
        ("我在Facebook工作", "I work at Facebook."),
        ("好", "OK."),
        ("Michael Jackson", "Michael Jackson"),
        ("他有三个孩子", "He has three children."),
        ("哈哈哈哈", "Ha ha ha ha!"),
        ("这里有150万人", "There are 1.5 million people here."),
        ("该公司赚了1亿2000万美元", "The company made 120 million dollars."),
        ("火车下午3:40开", "The train leaves at 15:40."),
        ("他11点33分离开", "He left at 11:33."),
        ("火车8点45开", "The train leaves at 8:45."),
        ("90年代很冷", "It was cold in the 1990s."),
        ("这句出自马太福音第5章第17节", "Yeah, that is Matthew 5:17."),
    ]
    bad = [
        ("1850年代很冷", "It was cold in the 1950s."),
        ("他们为什么不要六千万而要800万", "Why did they not take 60 million but 80?"),
        ("Where did you go last night?", "Where did you go last night?"),
        ("I have been waiting for you.", "I have waited for you."),
        ("我今天想去北京看我的朋友", "我今天想去北京看我的朋友"),
        ("これはとても面白い本です", "This is a very interesting book."),
    ]
    assert kept(["all"], good, ("zh", "en")) == [True] * len(good)
    assert kept(["all"], bad, ("zh", "en")) == [False] * len(bad)


@pytest.mark.parametrize(
    ("languages", "src", "tgt"),
    [
        ("ru-en", "Население 1,5 млн.", "The population is 1,500,000."),
        ("fr-en", "Il gagne 2,5 milliards d’euros.", "He earns 2,500,000,000 euros."),
        ("es-en", "20 mil pesos", "20,000 pesos"),
        ("ko-en", "15억 달러", "$1.5 billion"),
        ("pl-en", "1,5 mld zł", "1,500 million zł"),
        ("en-de", "It costs $20k.", "Es kostet 20.000 Dollar."),
        ("en-de", "20bn", "20.000 Millionen"),
    ],
)
def test_numbers_may_be_written_with_other_digits_and_a_word(languages: str, src: str, tgt: str) -> None:
    src_lang, tgt_lang = languages.split("-")
    assert kept(["numbers"], [(src, tgt)], (src_lang, tgt_lang)) == [True]


def test_a_language_that_the_identifier_does_not_know_is_never_refused_and_warned_of() -> None:
    pairs = [("This is an English sentence about nothing.", "Dies ist ein deutscher Satz über gar nichts.")]
    assert kept(["language"], pairs, ("tlh", "qaa")) == [True]
    assert Filters(["all"], LanguagePair("tlh", "qaa")).warnings() == [
        "tlh-qaa: data.filters: rules not fully applied: language: the language identifier does not know tlh and qaa"
    ]


@pytest.mark.parametrize("languages", [("en", "de"), ("en", "zh"), ("de", "en"), ("de", "zh"), ("zh", "de")])
def test_sides_that_are_swapped_are_warned_of(languages: tuple[str, str]) -> None:
    source = parse_source("builtin:phrasebook,split:compositional,size:100", *languages)
    sides = list(zip(*ParallelText([source], *languages), strict=True))
    assert language_warning("text", dict(zip(languages, sides, strict=True))) is None
    assert language_warning("text", dict(zip(languages, reversed(sides), strict=True))) == (
        f"text: most of the first 100 texts that should be in {' and '.join(languages)} are in another language; "
        "check which language is the source and which the target"
    )
    assert language_warning("text", {languages[0]: sides[1][:19]}) is None  # too few to say
    assert language_warning("text", {"tlh": sides[0]}) is None  # a language that the identifier does not know


def test_texts_that_are_too_short_to_tell_their_language_alone_are_judged_together() -> None:
    texts = ["你好。", "谢谢你。", "我不知道。", "她在哪里?", "我们走吧。", "这是什么?", "太晚了。", "再见。"] * 3
    assert language_warning("text", {"zh": texts}) is None
    assert language_warning("text", {"de": texts}) is not None


def test_whether_a_text_is_in_another_language_does_not_depend_on_the_texts_before() -> None:
    texts = ["everything", "everything", "everything le chat dort dans la vieille maison.", "The old man sleeps."]
    pairs = [SentencePair(text, "Ja.") for text in texts]
    whole, *both = (Filters(["language"], EN_DE) for _ in range(3))
    found = whole.pair_rules(pairs)
    assert [reason is None for reason in found] == [True, True, False, True]
    assert [*both[0].pair_rules(pairs[:2]), *both[1].pair_rules(pairs[2:])] == found


def test_languages_have_the_scores_of_py3langid() -> None:
    texts = [
        "Das ist ein Satz.",
        "WHO IS THERE?",
        "我今天想去北京",
        "Cafe\u0301 cre\u0300me",
        "Где вокзал? " * 20,
        "no \udcff there",
    ]
    scores = identifier().scores(texts)
    reference = LanguageIdentifier.from_model_file(MODEL_FILE)
    for text, row in zip(texts, scores.tolist(), strict=True):
        best: dict[str, float] = {}
        for label, score in zip(identifier().labels, row, strict=True):
            best[label] = max(score, best.get(label, score))
        root = math.sqrt(len(reference._encode(text)))
        assert best == pytest.approx({label: score / root for label, score in reference.rank(text)}, abs=1e-4)


def test_the_language_of_an_extremely_long_text_is_that_of_its_beginning() -> None:
    beginning = ("Das ist ein Satz. " * 1_000)[:10_000]
    scores = identifier().scores([beginning, f"{beginning}{'This is a sentence. ' * 1_000}"])
    assert np.array_equal(scores[0], scores[1])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("duplicates", [True, True, False, True]), ("near_duplicates", [True, True, False, False])],
)
def test_duplicates_are_found_across_chunks(name: str, expected: list[bool]) -> None:
    pairs = [("A dog.", "Ein Hund."), ("A cat.", "Eine Katze."), ("A  dog.", "Ein Hund. "), ("A dog!", "Ein Hund")]
    filters = Filters([name], EN_DE)
    found = [filters.rules([SentencePair(*pair)])[0] is None for pair in pairs]
    assert found == kept([name], pairs) == expected


def test_a_source_may_have_twenty_targets_and_a_short_phrase_any_number() -> None:
    long = [("This is the same text.", f"Text {number}") for number in range(25)]
    short = [("Yes.", f"Ja {number}") for number in range(25)]
    repeated = [("This is another text.", f"Text {number % 5}") for number in range(50)]
    assert kept(["many_targets"], long + short + repeated) == [True] * 20 + [False] * 5 + [True] * 75


def test_near_duplicates_have_the_same_letters_vowel_signs_and_digits() -> None:
    for one, other, is_duplicate in [
        ("Room 12 is free.", "room 12 is free", True),
        ("Room 12 is free.", "Room 13 is free.", False),
        ("Caf\u00e9", "cafe\u0301!", True),
        ("\u0e1b\u0e25\u0e32", "\u0e1b\u0e25\u0e39", False),  # Thai: vowels are marks or letters
        ("\u0e1b\u0e34", "\u0e1b\u0e38", False),
        ("\u0915\u093f\u0924", "\u0915\u0941\u0924", False),  # Hindi
        (
            "I \u2764\ufe0f it \U0001f469\u200d\U0001f4bb",
            "I \u2764 it \U0001f469",
            True,
        ),  # emoji, of which some are joined
        ("\u845b\U000e0100\u57ce", "\u845b\u57ce", True),  # variants of a Chinese character
        ("\u2764\ufe0f", "\u2600\ufe0f", False),  # nothing but emoji
    ]:
        assert kept(["near_duplicates"], [(one, "x"), (other, "x")]) == [True, not is_duplicate]


def held_out_of(pairs: Sequence[SentencePair]) -> HeldOut:
    held_out = HeldOut()
    held_out.add(pairs, EN_DE)
    return held_out


def test_sentences_of_the_test_set_are_dropped_but_not_short_phrases() -> None:
    held_out = [SentencePair("The train is late again.", "Der Zug kommt wieder zu spät."), SentencePair("Yes.", "Ja.")]
    pairs = [
        SentencePair("The train is late AGAIN", "Der Zug hat wieder Verspätung."),
        SentencePair("Today it is late.", "Der Zug kommt wieder zu spät!"),
        SentencePair("Yes.", "Ja."),
        SentencePair("The train is late.", "Der Zug hat Verspätung."),
    ]
    filters = Filters(["held_out"], EN_DE, held_out_of(held_out))
    assert [reason is None for reason in filters.rules(pairs)] == [False, False, True, True]


def test_a_set_of_hashes_is_a_set() -> None:
    random = np.random.default_rng(1)
    known: set[int] = set()
    found = HashSet()
    for chunk in np.array_split(random.integers(0, 3_000, size=5_000), 37):
        expected = []
        for value in chunk.tolist():
            expected.append(value in known)
            known.add(value)
        assert found.add(chunk.astype(np.uint64)).tolist() == expected
    assert found.contains(np.arange(4_000, dtype=np.uint64)).tolist() == [value in known for value in range(4_000)]


def test_a_hash_table_finds_most_of_its_keys_and_all_of_the_last_ones() -> None:
    keys = np.random.default_rng(1).permutation(200_000)
    table = HashTable(keys[:10_000])
    found, places = table.find(keys)
    assert np.array_equal(keys[found], keys[places])
    assert len(found) >= 8_000
    assert np.count_nonzero(found >= 9_000) >= 990
    assert all(len(one) == 0 for one in HashTable(keys[:0]).find(keys))


def test_long_pairs_take_a_bounded_amount_of_memory() -> None:
    random = np.random.default_rng(1)
    lengths = np.full(100, 300)
    src, tgt = random.integers(0, 1_000, (2, 30_000))
    pairs = EncodedPairs(Ragged.of_lengths(src, lengths), Ragged.of_lengths(tgt, lengths))
    association = Association(pairs.selected(np.arange(10)))
    tracemalloc.start()
    features = association.features(pairs)
    assert tracemalloc.get_traced_memory()[1] < 100e6  # all 9 million cells take three times as much
    tracemalloc.stop()
    one_by_one = [association.features(pairs.selected(np.array([number]))) for number in range(100)]
    assert np.allclose(features, np.concatenate(one_by_one))


def test_the_words_after_the_first_2000_of_a_text_are_left_out() -> None:
    words, learned = Words.learn(["a b c"], "en")
    assert learned.lengths.tolist() == [3]
    encoded = words.encode(["a " * 2_500, "b"])
    assert encoded.lengths.tolist() == [2_000, 1]
    assert len(encoded.values) == 2_001


def test_forms_of_words_differ_in_case_and_translate_in_the_usual_one() -> None:
    words, learned = Words.learn(["The cat saw the dog", "the US saw us"], "en")
    the, cat, saw, the_second = learned.values[:4].tolist()
    assert the != the_second
    sentences = words.encode(["THE Cat The", "us Cow"])
    assert sentences.values.tolist() == [the_second, cat, the, words.encode(["us"]).values[0], 0]
    usual = words.in_usual_form(learned)
    assert usual.values.tolist()[:4] == [the_second, cat, saw, the_second]
    assert usual.values[6] == usual.values[8]


def test_hashes_are_the_same_in_every_process() -> None:
    assert hashes(["ein Hund"]).tolist() == [441_519_011_320_916_084]


def test_filters_go_through_pickle_and_the_pairs_may_be_looked_at_elsewhere() -> None:
    pairs = [SentencePair(*pair) for pair in CLEAN] + [SentencePair(src, tgt) for _, src, tgt in NOISY]
    filters = Filters(["all"], EN_DE, held_out_of(pairs[:1]))
    expected = filters.rules(pairs)
    worker = pickle.loads(pickle.dumps(Filters(["all"], EN_DE, held_out_of(pairs[:1]))))
    reader = Filters(["all"], EN_DE, held_out_of(pairs[:1]))
    assert reader.corpus_rules(pairs, worker.pair_rules(pairs)) == expected
    assert expected[0] is not None


@pytest.mark.parametrize("library", ["ftfy", "py3langid"])
def test_the_key_changes_with_the_libraries_that_rules_use(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Filters(["encoding", "language"], EN_DE).key
    monkeypatch.setattr("mtformer.data.clean.filters.version", lambda name: "0.1" if name == library else version(name))
    assert Filters(["encoding", "language"], EN_DE).key != before


def test_the_key_changes_with_whatever_changes_the_result() -> None:
    held_out = [SentencePair("a", "b")]
    keys = [
        Filters(["copy"], EN_DE).key,
        Filters(["copy", "empty"], EN_DE).key,
        Filters(["copy"], LanguagePair("en", "fr")).key,
        Filters(["copy"], EN_DE, held_out_of(held_out)).key,
    ]
    assert len(set(keys)) == len(keys)
    assert Filters(["empty", "copy"], EN_DE).key == keys[1]


def test_the_filters_of_a_config_keep_its_validation_and_test_sets_out(project: Project) -> None:
    text = "An entirely new sentence.", "Ein ganz neuer Satz."
    for name, language in (("valid", "en"), ("test", "de")):
        path = project.folder / f"{name}.{language}"
        path.write_text(path.read_text() + text[language == "de"] + "\n")
        path = project.folder / f"{name}.{'de' if language == 'en' else 'en'}"
        path.write_text(path.read_text() + "-\n")
    assert filters_of(load_config(project.config).data) == {}
    found = filters_of(load_config(project.config, ["data.filters=[held_out]"]).data)
    pairs = [SentencePair(text[0], "-"), SentencePair("-", text[1]), SentencePair(*text[::-1])]
    assert [reason is None for reason in found[EN_DE].rules(pairs)] == [False, False, True]


def test_held_out_sentences_are_kept_out_of_every_direction() -> None:
    held_out = held_out_of([SentencePair("An entirely new sentence.", "Ein ganz neuer Satz.")])
    german_french = (
        SentencePair("Ein ganz neuer Satz.", "Une phrase."),
        SentencePair("Ein ganz alter Satz.", "Une autre."),
    )
    filters = Filters(["held_out"], LanguagePair("de", "fr"), held_out)
    assert [reason is None for reason in filters.rules(german_french)] == [False, True]


def test_a_rule_that_does_not_exist_is_an_error(project: Project) -> None:
    with pytest.raises(UserError, match=r"data\.filters.*given `copies`, allowed: all, empty, too_long"):
        load_config(project.config, ["data.filters=[copies]"])


@pytest.fixture(scope="module")
def phrases() -> list[SentencePair]:
    return list(ParallelText([parse_source("builtin:phrasebook,size:4000", "en", "de")], "en", "de"))


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_misaligned_pairs_are_found_and_others_are_kept(phrases: list[SentencePair], share: float) -> None:
    random = np.random.default_rng(1)
    moved = random.random(len(phrases)) < share
    targets = [pair.tgt for pair in phrases]
    places = np.flatnonzero(moved).tolist()
    for place, other in zip(places, np.roll(places, 7).tolist(), strict=True):
        targets[place] = phrases[other].tgt
    pairs = [SentencePair(pair.src, tgt) for pair, tgt in zip(phrases, targets, strict=True)]
    filters = Filters(["misaligned"], EN_DE, sample=pairs)
    found = np.array([reason is not None for reason in filters.rules(pairs)])
    assert found[moved].mean() >= 0.85
    assert found[~moved].mean() <= 0.02
    assert filters.learned is not None
    assert filters.learned.shares()["misaligned"] == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize(("n_moved", "is_found"), [(5, False), (60, True)])
def test_a_few_pairs_that_look_misaligned_are_free_translations(
    n_moved: int, is_found: bool, phrases: list[SentencePair]
) -> None:
    targets = np.roll([pair.tgt for pair in phrases[:n_moved]], 1).tolist()
    moved = [SentencePair(pair.src, tgt) for pair, tgt in zip(phrases, targets, strict=False)] + phrases[n_moved:]
    found = [reason is not None for reason in Filters(["misaligned"], EN_DE, sample=moved).rules(moved)]
    assert any(found) == is_found
    assert sum(found[:n_moved]) >= (0.8 * n_moved if is_found else 0)


@pytest.mark.parametrize("n_good", [150, 1_001])
def test_the_regressions_end_at_the_least_loss(n_good: int) -> None:
    """Where its gradient is 0; the examples are as many as one block, or several and a part of one."""
    random = np.random.default_rng(1)
    good, bad = random.normal(size=(n_good, 3)), random.normal(0.5, 2, size=(n_good // 3, 3))
    weights = _logistic_regression(good, bad)
    both = np.concatenate([good, bad])
    mean, scale = both.mean(axis=0), both.std(axis=0)

    def loss(weights: np.ndarray) -> float:
        constant = weights[-1] + mean @ weights[:-1]
        entropy = np.logaddexp(0, good @ weights[:-1] + weights[-1]).mean()
        entropy += np.logaddexp(0, -(bad @ weights[:-1] + weights[-1])).mean()
        return float(len(both) * entropy / 2 + ((weights[:-1] * scale) ** 2).sum() / 2 + constant**2 / 2)

    for direction in np.eye(4):
        assert (loss(weights + 1e-4 * direction) - loss(weights - 1e-4 * direction)) / 2e-4 == pytest.approx(
            0, abs=1e-3
        )


def test_targets_that_are_cut_off_are_found(phrases: list[SentencePair]) -> None:
    random = np.random.default_rng(1)
    cut = random.random(len(phrases)) < 0.2
    cut &= [len(pair.tgt.split()) > 3 for pair in phrases]
    halves = [" ".join(pair.tgt.split()[: len(pair.tgt.split()) // 2]) for pair in phrases]
    targets = [half if is_cut else pair.tgt for pair, half, is_cut in zip(phrases, halves, cut, strict=True)]
    pairs = [SentencePair(pair.src, tgt) for pair, tgt in zip(phrases, targets, strict=True)]
    found = np.array([reason is not None for reason in Filters(["truncated"], EN_DE, sample=pairs).rules(pairs)])
    assert found[cut].mean() >= 0.75
    assert found[~cut].mean() <= 0.005


@pytest.mark.parametrize("side", [0, 1])
def test_words_in_the_wrong_order_are_found_in_chunks_of_any_size(phrases: list[SentencePair], side: int) -> None:
    random = np.random.default_rng(1)
    pairs, is_shuffled = [], []
    for pair in phrases:
        words = pair[side].split()
        shuffled = random.permutation(words).tolist() if random.random() < 0.2 else words
        is_shuffled.append(shuffled != words)
        text = " ".join(shuffled)
        pairs.append(SentencePair(pair.src, text) if side else SentencePair(text, pair.tgt))
    filters = Filters(["misordered"], EN_DE, sample=pairs)
    found = [reason is not None for reason in filters.rules(pairs)]
    assert np.mean(np.array(found)[is_shuffled]) >= 0.88
    assert np.mean(np.array(found)[~np.array(is_shuffled)]) <= 0.02
    assert filters.learned is not None
    assert filters.learned.shares()["misordered"] == pytest.approx(np.mean(is_shuffled), abs=0.08)
    worker = pickle.loads(pickle.dumps(filters))
    chunks = [pairs[first : first + 333] for first in range(0, len(pairs), 333)]
    assert [reason is not None for chunk in chunks for reason in worker.pair_rules(chunk)] == found


def test_a_clean_text_loses_nothing_to_the_rules_that_it_teaches(phrases: list[SentencePair]) -> None:
    names: list[str] = ["misaligned", "truncated", "misordered"]
    filters = Filters(names, EN_DE, sample=phrases)
    assert sum(reason is not None for reason in filters.rules(phrases)) <= 0.005 * len(phrases)
    assert filters.key == Filters(names, EN_DE).key


def test_decomposed_letters_are_judged_as_composed_ones(phrases: list[SentencePair]) -> None:
    decomposed = [SentencePair(src, unicodedata.normalize("NFD", tgt)) for src, tgt in phrases[:500]]
    names = [name for name in FILTERS if name not in ("duplicates", "near_duplicates", "many_targets")]
    filters = Filters(names, EN_DE, sample=phrases)
    as_it_is, other = (filters.judge(pairs, align=True) for pairs in (phrases[:500], decomposed))
    assert other.rules == as_it_is.rules
    assert as_it_is.log_odds is not None and other.log_odds is not None
    assert np.array_equal(other.log_odds, as_it_is.log_odds)
    learned_from_these = Filters(names, EN_DE, sample=decomposed + phrases[500:])
    assert learned_from_these.judge(phrases[:500]).rules == as_it_is.rules


def test_a_text_that_is_too_small_or_no_translation_teaches_nothing(
    phrases: list[SentencePair],
) -> None:
    few = phrases[:100]
    filters = Filters(["misaligned", "truncated"], EN_DE, sample=few)
    assert filters.rules(few) == [None] * 100
    [warning] = filters.warnings()
    assert "rules not fully applied: misaligned, truncated: 100 good pairs, and learning needs 2,000" in warning
    numbers = Filters(["misaligned"], EN_DE, sample=[SentencePair(f"{n}", f"{n}") for n in range(2_100)]).learned
    assert numbers is not None
    assert 0.9 < numbers.shares()["misaligned"] <= 1
    same = [SentencePair("The same source.", f"Ein Ziel {number}.") for number in range(2_100)]
    assert Filters(["misaligned"], EN_DE, sample=same).rules(same) == [None] * len(same)
    short = [SentencePair(f"w{number % 700} x", f"v{number % 700} y") for number in range(2_100)]
    assert Filters(["misaligned", "truncated"], EN_DE, sample=short).rules(short) == [None] * len(short)
    single = [SentencePair(f"w{number % 700}", f"v{number % 700}") for number in range(2_100)]
    assert Filters(["misordered"], EN_DE, sample=single).rules(single) == [None] * len(single)
    sources, targets = zip(*phrases, strict=True)
    others = list(map(SentencePair, sources, targets[1_000:] + targets[:1_000]))
    assert Filters(["misaligned"], EN_DE, sample=others).rules(others) == [None] * len(others)


def test_each_direction_learns_from_its_own_text(project: Project) -> None:
    settings = [
        "data.directions=[en-de, de-zh]",
        "data.train=[{builtin: phrasebook, size: 2500}]",
        "data.valid=[{builtin: phrasebook, split: valid, size: 5}]",
        "data.test=[]",
        "data.filters=[misaligned]",
    ]
    values = yaml.safe_load(project.config.read_text())
    del values["data"]["src_lang"], values["data"]["tgt_lang"]
    project.config.write_text(yaml.safe_dump(values))
    found = filters_of(load_config(project.config, settings).data)
    assert list(map(str, found)) == ["en-de", "de-zh"]
    for languages, filters in found.items():
        text = ParallelText([parse_source("builtin:phrasebook,size:200", *languages)], *languages)
        assert filters.learned is not None
        assert np.median(filters.learned.misalignment(list(text))) < -1


def test_learned_rules_filter_each_of_two_directions(project: Project, phrases: list[SentencePair]) -> None:
    pairs = phrases[:2_200]
    moved = [*pairs[:-100], *map(SentencePair, [p.src for p in pairs[-100:]], [p.tgt for p in pairs[:100]])]
    rows = ["en\tde", *(f"{src}\t{tgt}" for src, tgt in moved)]
    (project.folder / "pairs.tsv").write_text("".join(f"{row}\n" for row in rows))
    values = yaml.safe_load(project.config.read_text())
    del values["data"]["src_lang"], values["data"]["tgt_lang"]
    project.config.write_text(yaml.safe_dump(values))
    directions = ["data.directions=[en-de, de-en]", "data.train=[{tsv: pairs.tsv}]", "data.filters=[misaligned]"]
    data = load_config(project.config, [*directions, "data.valid=[{tsv: pairs.tsv}]", "data.test=[]"]).data
    kept_pairs = stored_text(ParallelText(data.train, data.src_lang, data.tgt_lang), filters_of(data))
    first_moved = len(moved) - 100 + 2
    for source in (0, 1):
        lines = kept_pairs.lines[kept_pairs.sources == source]
        assert np.count_nonzero(lines < first_moved) >= 0.98 * (len(moved) - 100)
        assert np.count_nonzero(lines >= first_moved) <= 15


@pytest.mark.parametrize("option", ["--added=0.2", "--speed"])
def test_the_report_shows_the_noise_that_the_rules_find_and_their_speed(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data", "builtin:phrasebook,size:200", "--pair", "en-de", option]
    monkeypatch.setattr("sys.argv", ["noise_report.py", *data])
    runpy.run_path(str(Path(__file__).parent.parent / "scripts/noise_report.py"), run_name="__main__")
    _, _, *rows = [re.split(r" *\| *", line.strip("| ")) for line in capsys.readouterr().out.splitlines()]
    if option == "--speed":
        assert [rows[1][0], rows[-1][0]] == ["`language`", "all, learning included"]
        assert all(float(rate.replace(",", "")) > 0 for _, rate in rows)
    else:
        assert [row[0] for row in rows[:2]] == ["none", "copies"] and rows[-1][0] == "all"
        assert rows[1][1:] == ["20 %", "100.0", "`copy` 100.0", "0.0", "—"]
        assert {row[0]: row[4] for row in rows}["html"] == "100.0"


def test_rules_judge_lines_of_any_length() -> None:
    """In time that grows with their length: with its square, this would take minutes."""
    long = ["1" * 100_000, "a.b-" * 25_000, "3,5." * 25_000]
    pairs = [SentencePair(f"{text} 99 www.a.de", f"{text} 98 www.b.de") for text in long]
    for rule in ("numbers", "urls"):
        assert Filters([rule], EN_DE).rules(pairs) == [rule] * 3


def test_a_pipe_that_would_be_read_twice_is_an_error(project: Project) -> None:
    pipe = project.folder / "pipe.tsv"
    os.mkfifo(pipe)
    overrides = [f"data.train=[{{tsv: {pipe}}}]", "data.filters=[misaligned]"]
    with pytest.raises(UserError, match=r"pipe\.tsv can be read only once.*save it to a file"):
        filters_of(load_config(project.config, overrides).data)
    overrides = [f"data.valid=[{{tsv: {pipe}}}]", "data.filters=[held_out]"]
    with pytest.raises(UserError, match=r"pipe\.tsv can be read only once, but the rule held_out .*save it to a file"):
        filters_of(load_config(project.config, overrides).data)
    for given in (["data.valid=[{tsv: '-'}]"], ["data.test=[{tsv: '-'}]"]):
        result = project.mtformer("data", "check", project.config, "--set", *given, stdin="a dog\tein Hund\n")
        assert (result.status, "standard input can be read only once" in result.stderr) == (2, True), result.stderr


def test_rules_without_held_out_sentences_leave_the_other_sets_unread(project: Project) -> None:
    overrides = ["data.valid=[{tsv: '-'}]", "data.filters=[copy, duplicates]", "training.max_steps=2"]
    sets = [part for override in overrides for part in ("--set", override)]
    valid = "".join(f"{src}\t{tgt}\n" for src, tgt in sentence_pairs(20, seed=2))
    result = project.mtformer("train", project.config, *sets, stdin=valid)
    assert result.status == 0, result.stderr
