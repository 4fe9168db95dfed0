"""Translations with slots: what stands for them comes back, wherever the model has put it or lost it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest
from conftest import EOS_ID
from test_slots import MANY, shown

from mtformer.config import SearchOptions, TokenizerConfig
from mtformer.explain.tokens import Spelling
from mtformer.search.engine import ScoreRequest
from mtformer.search.hypothesis import Hypothesis
from mtformer.text.codes import outside_codes
from mtformer.text.glossary import Glossary
from mtformer.text.pairs import SentencePair
from mtformer.text.slots import (
    SLOTS,
    pair_with_its_slots,
    readable,
    with_slots,
)
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.translate.plan import Plan, run
from mtformer.translate.planner import Planner
from mtformer.translate.preparation import standard_preparations
from mtformer.translate.replacement import prepared
from mtformer.translate.terms import Terms
from mtformer.translate.translation import Translation


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


@pytest.mark.parametrize("text", ["- {} dogs", "> 3) {}", "| a dog | {} |"])
def test_items_and_cells_without_marks_inside_are_translated_as_lines_are(characters: Tokenizer, text: str) -> None:
    """No alignment is computed, which this engine could not."""
    preparations = standard_preparations(characters, "en", "de")
    given, expected = text.format("1,250.5"), text.format("1.250,5")
    found = result(
        characters, Copying(), lambda planner: replace(planner, markup=True, preparations=preparations).plan(given)
    )
    assert (found.text, found.notes) == (expected, ())


def test_a_translation_may_begin_with_a_number(characters: Tokenizer) -> None:
    found = result(characters, Copying(), lambda planner: planner.plan_continued("1,250.5 is f_1.pdf.", "1.250,5"))
    assert (found.text, found.tokens[:2]) == ("1.250,5 is f_1.pdf.", ("▁", "1.250,5"))


@pytest.mark.parametrize(
    ("text", "expected", "notes"),
    [
        ("I see Gołąb “12”.", 'I see Gołąb "12".', ()),
        ("1.5亿 dogs", "150 Millionen dogs", ()),
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


@pytest.mark.parametrize("mbr", [0, 4])
def test_a_wider_beam_finds_slots_that_the_best_translation_lacks(mbr: int, characters: Tokenizer) -> None:
    options = SearchOptions(mbr=mbr)
    found = result(characters, Forgetful(), lambda planner: replace(planner, options=options).plan("a 12"))
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


LISTS = [  # texts of which a model loses all but the first three slots, their translations, and the number of parts
    (
        "On 1,250.5, a 12, a 13; a 14, a 15, a 16, a 17, a 18, a 19, a 20.",
        "On 1.250,5, a 12, a 13, a 14, a 15, a 16, a 17, a 18, a 19, a 20.",
        10,
    ),
    ("a1, b2, c3, d4, e5 or f6 is a", "a1, b2, c3, d4, e5 or f6 is a", 5),
    ("On March 5, 2021 a 11, a 12, a 13", "On 5. März 2021 a 11, a 12, a 13", 3),
    ("a1, ..., b2, c3, d4, -, e5 or f6 is a", "a1, ..., b2, c3, d4, -, e5 or f6 is a", 7),
]


def without_most_slots(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    slots = set(tokenizer.tgt.ids(SLOTS))
    kept = [id for id in ids if id in slots][:3]
    return [id for id in ids if id not in slots or id in kept]


class Losing(Copying):
    """An engine that copies all but slots after the third."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Take the tokenizer."""
        super().__init__()
        self._tokenizer = tokenizer

    def submit(self, requests: Sequence[Any], *, on_done: Any = None) -> list[Any]:
        """Return one hypothesis for each request."""
        return [[Hypothesis(without_most_slots(self._tokenizer, each.src[:-1]), [-1.0])] for each in requests]


@pytest.mark.parametrize(("text", "expected", "n_parts"), LISTS)
def test_what_stands_between_commas_is_translated_alone_if_the_model_loses_numbers(
    characters: Tokenizer, text: str, expected: str, n_parts: int
) -> None:
    found = result(characters, Losing(characters), lambda planner: planner.plan(text))
    assert (found.text, found.notes) == (expected, (f"translated in {n_parts} parts",))


def test_a_list_is_not_cut_inside_of_a_term(characters: Tokenizer) -> None:
    text = LISTS[0][0].replace("a 12,", "a 12, at X, Y;")
    terms = Terms(Glossary([("X, Y", "X, Z")]), characters, src_lang="en", tgt_lang="de")
    found = result(characters, Losing(characters), lambda planner: replace(planner, terms=terms).plan(text))
    assert found.notes == ("the term 'X, Y' is not translated as 'X, Z'",)


def test_a_list_that_the_model_translates_well_stays_whole(characters: Tokenizer) -> None:
    text = LISTS[0][0]
    found = result(characters, Copying(), lambda planner: planner.plan(text))
    assert (found.text, found.notes) == (text.replace("1,250.5", "1.250,5"), ())


def test_the_work_of_inserting_a_slot_is_limited_in_a_long_translation(characters: Tokenizer) -> None:
    n_prefixes: list[int] = []

    class Noting(Dropping):
        def submit(self, requests: Sequence[Any], *, on_done: Any = None) -> list[Any]:
            n_prefixes.append(sum(len(each.prefix) > 0 for each in requests))
            return super().submit(requests)

    for half, most in (("is in a", 20), ("is a an in as it at if on no is a an", 1_024 // 72)):
        n_prefixes.clear()
        text = f"{half} 12 {half}"
        found = result(characters, Noting(), lambda planner: planner.plan(text))  # noqa: B023
        assert found.text == text
        assert 0 < max(n_prefixes) <= most


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
        ("is twenty-one a", "is 21 a", ["is twenty-one a", "is <M> a"]),
        ("is two a", "is two a", ["is two a"]),
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
