"""Perturbed test sets: what each perturbation does to a sentence, and how its translation is scored."""

import json
from collections import Counter

import pytest
import sacrebleu
from conftest import Project

from mtformer.config import LanguagePair
from mtformer.evaluate.negation import Flips, NegationPair, count_flips, denies, negation_pairs
from mtformer.evaluate.stress import PERTURBATIONS, Kept, Pair, _numbers_kept, _row, perturb

PAIR = Pair("Two dogs don't see the 12 red houses.", "Zwei Hunde sehen die 12 roten Häuser nicht.", True)
CHINESE = Pair("我们去年买了钢琴。", "We bought a piano last year.", False)


def changed(name: str, pair: Pair = PAIR) -> str:
    return perturb(name, [pair])[0].src


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("clean", "Two dogs don't see the 12 red houses."),
        ("all caps", "TWO DOGS DON'T SEE THE 12 RED HOUSES."),
        ("title case", "Two Dogs Don't See The 12 Red Houses."),
        ("no full stop", "Two dogs don't see the 12 red houses"),
        ("doubled spaces", "Two  dogs  don't  see  the  12  red  houses."),
        ("wrong language", "Zwei Hunde sehen die 12 roten Häuser nicht."),
    ],
)
def test_perturbations_of_a_sentence(name: str, expected: str) -> None:
    [case] = perturb(name, [PAIR]).values()
    assert case.src == expected
    reference = PAIR.ref.removesuffix(".") if name == "no full stop" else PAIR.ref
    assert (case.ref, case.added) == (reference, "")


def test_typos_swap_neighbouring_letters_inside_words() -> None:
    words = list(zip(PAIR.src.split(), changed("typos").split(), strict=True))
    different = [(before, after) for before, after in words if before != after]
    assert 1 <= len(different) <= 2  # 37 characters
    for before, after in different:
        assert before[0] == after[0]
        assert Counter(before) == Counter(after)
    assert sorted(changed("typos", CHINESE)) == sorted(CHINESE.src) != list(CHINESE.src)


@pytest.mark.parametrize("name", ["emoji appended", "URL appended"])
def test_what_is_appended_is_expected_in_the_translation(name: str) -> None:
    [case] = perturb(name, [PAIR]).values()
    assert case.src == f"{PAIR.src} {case.added}"
    assert case.ref == f"{PAIR.ref} {case.added}"
    assert case.added.startswith("https://") == (name == "URL appended")


def test_one_word_is_one_of_the_sentence_and_has_no_reference() -> None:
    [case] = perturb("one word", [PAIR]).values()
    assert case.src in ["Two", "dogs", "don", "t", "see", "the", "red", "houses"]
    assert case.ref is None
    assert changed("one word", CHINESE) in CHINESE.src
    assert len(changed("one word", CHINESE)) == 2


@pytest.mark.parametrize("name", PERTURBATIONS)
def test_perturbations_are_the_same_at_every_call(name: str) -> None:
    pairs = [PAIR, CHINESE, PAIR]
    assert perturb(name, pairs) == perturb(name, pairs)


def test_sentences_that_stay_as_they_are_do_not_count() -> None:
    pairs = [PAIR, Pair("No stop", "Kein Punkt", True), CHINESE]
    assert list(perturb("no full stop", pairs)) == [0, 2]
    assert list(perturb("doubled spaces", pairs)) == [0, 1]
    assert list(perturb("all caps", pairs)) == [0, 1]
    assert list(perturb("clean", pairs)) == [0, 1, 2]
    assert list(perturb("typos", [Pair("", "", True), Pair("a 1", "a 1", True)])) == []


def test_numbers_count_if_the_reference_has_them_too() -> None:
    cases = list(perturb("clean", [Pair("In 1990, 1,000 men and 2 dogs", "", True)]).values())
    reference, hypothesis = "1990 sahen 1.000 Männer und zwei Hunde", "1.000 Männer in 1991 und 2 Hunde"
    assert _numbers_kept([(cases[0], reference, hypothesis)]) == Kept(1, 2)
    [case] = perturb("URL appended", [PAIR]).values()  # the numbers of the URL do not count
    assert _numbers_kept([(case, case.ref or "", "12")]) == Kept(1, 1)
    assert Kept(0, 0).share is None


def test_a_row_worked_out_by_hand() -> None:
    pairs = [PAIR, Pair("A cat.", "Eine Katze.", True), Pair("no no no.", "Nein nein nein.", True)]
    clean = {0: "Zwei Hunde sehen 12 rote Häuser.", 1: "Eine Katze.", 2: "Nein."}
    cases = perturb("emoji appended", pairs)
    hypotheses = {0: f"Zwei Hunde {cases[0].added}", 1: "Katze Katze Katze", 2: "nein nein nein"}
    found = {"clean": clean, "emoji appended": hypotheses}
    row = _row("emoji appended", pairs, cases, found, LanguagePair("en", "de"))
    references = [case.ref or "" for case in cases.values()]
    expected = sacrebleu.corpus_chrf([text.lower() for text in hypotheses.values()], [[r.lower() for r in references]])
    assert row.chrf == pytest.approx(expected.score)
    assert row.clean_chrf > expected.score
    assert row.repetitions == pytest.approx(1 / 3)  # the last sentence repeats itself in the source
    assert (row.numbers, row.added, row.n_sentences) == (Kept(0, 1), Kept(1, 3), 3)


def test_the_command_prints_a_table_and_json(copied: Project) -> None:
    result = copied.mtformer("eval", "--stress", "--beam-size", "1")
    head, clean, *rows = result.stdout.splitlines()
    assert head.split() == "perturbation sentences clean chrF2 change repetitions numbers added".split()
    assert clean.split()[:2] == ["clean", "20"]
    assert clean.split()[4] == "+0.0"
    assert [row.split("  ")[0] for row in rows[:9]] == list(PERTURBATIONS)[1:]
    shown = json.loads(copied.mtformer("eval", "--stress", "--beam-size", "1", "--json", "--save", "s.jsonl").stdout)
    assert [row["perturbation"] for row in shown["stress"]] == list(PERTURBATIONS)
    saved = [json.loads(line) for line in (copied.folder / "s.jsonl").read_text().splitlines()]
    n_of_pairs = 2 * shown["negation"]["pairs"]
    assert n_of_pairs == 2 * len(negation_pairs("en")) == [row["perturbation"] for row in saved].count("negation")
    assert len(saved) == n_of_pairs + sum(row["sentences"] for row in shown["stress"])
    in_caps = next(row for row in saved if row["perturbation"] == "all caps")
    translated = copied.mtformer("translate", "--beam-size", "1", in_caps["src"]).stdout.rstrip("\n")
    assert in_caps["hyp"] == translated
    perfect = next(row for row in shown["stress"] if row["perturbation"] == "doubled spaces")
    assert perfect["chrf"] == perfect["clean_chrf"]  # the tokenizer joins spaces


def test_options_that_do_not_go_with_stress_are_refused(copied: Project) -> None:
    for options in (["--output", "out"], ["--comet", "model"]):
        result = copied.mtformer("eval", "--stress", *options)
        assert (result.status, result.stdout) == (2, "")
        assert f"--stress and {options[0]} cannot be combined" in result.stderr
    assert not (copied.folder / "out").exists()


@pytest.mark.parametrize("language", ["en", "de", "fr", "zh-Hans"])
def test_pairs_differ_in_a_negation(language: str) -> None:
    pairs = negation_pairs(language)
    assert len(pairs) >= 20
    assert len({text for pair in pairs for text in pair}) == 2 * len(pairs)
    for positive, negative in pairs:
        assert not denies(positive, language), positive
        assert denies(negative, language), negative


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("I didn’t know.", "en", True),
        ("A notebook, now.", "en", False),
        ("Er hat keinen Hund.", "de", True),
        ("Die Nichte ist klein.", "de", False),
        ("这个不错，差不多。", "zh", False),
        ("他特别高兴，对不起。", "zh", False),
        ("别走！", "zh", True),
        ("Nebo zítra nejlepší neděle.", "cs", False),
        ("Nevím.", "cs", True),
        ("Nejsem doma.", "cs", True),
        ("Děti nejdou spát.", "cs", True),
        ("Nechápu to.", "cs", True),
        ("Neberu to.", "cs", True),
        ("Nech mě, je to nebezpečné, nejdelší a nejjasnější den.", "cs", False),
        ("Das ist keineswegs wahr.", "de", True),
        ("Das sind Keime.", "de", False),
        ("Niet.", "nl", None),
    ],
)
def test_what_denies(text: str, language: str, expected: bool | None) -> None:
    assert denies(text, language) is expected


def test_flips_are_counted_on_both_sides() -> None:
    right = [
        NegationPair("Ich schwimme.", "Ich kann nicht schwimmen."),
        NegationPair("Er ist hier.", "Er ist nicht hier."),
    ]
    assert count_flips(right, "de") == Flips(2, 0, 0)
    wrong = [NegationPair("Ich schwimme nicht.", "Ich kann schwimmen."), right[1]]
    assert count_flips(wrong, "de") == Flips(2, 1, 1)
    assert count_flips(wrong, "de").share == 0.5
