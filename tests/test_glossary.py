"""Glossaries: their files, their terms in texts, and translations with them."""

import gzip
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Project
from engines import request, result_of
from numpy.typing import NDArray

from mtformer.bundle.format import load_bundle
from mtformer.config import SearchOptions
from mtformer.search.engine import AlignRequest, OnDone, Request, ScoreRequest, SearchRequest
from mtformer.search.hypothesis import Hypothesis
from mtformer.support.errors import UserError
from mtformer.text.glossary import Glossary, Term
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.words import Span, find_words, word_rule, word_spans
from mtformer.translate import placement
from mtformer.translate.placement import Placement
from mtformer.translate.planner import Planner
from mtformer.translate.terms import Terms
from mtformer.translate.translator import Translator

EN, ZH = word_rule("en"), word_rule("zh")


def sources(terms: list[Term]) -> list[str]:
    return [term.src for term in terms]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the dog sees a DOG and a Dog", ["dog", "dog", "dog"]),
        ("dogs, hotdog, dog_1, doge", []),
        ("(dog) dog's dog-house", ["dog", "dog", "dog"]),
        ("a hot dog and a dog", ["hot dog", "dog"]),
        ("the big hot dog stand", ["hot dog stand"]),
        ("very big hot dog", ["big hot", "dog"]),
        ("Apple eats an apple; APPLE", ["Apple", "apple", "apple"]),
        ("the US and us", ["US"]),
        ("C++ and C", ["C++"]),
        ("İ dog", ["dog"]),
        ("", []),
    ],
)
def test_terms_are_found_as_whole_words_and_the_longest_first(text: str, found: list[str]) -> None:
    terms = ["dog", "hot dog", "big hot", "hot dog stand", "apple", "Apple", "US", "C++"]
    glossary = Glossary((term, term.upper()) for term in terms)
    assert sources([match.term for match in glossary.find(text, EN)]) == found


def test_terms_of_languages_without_spaces_are_found_anywhere() -> None:
    glossary = Glossary([("狗", "dog"), ("热狗", "hot dog"), ("AI", "AI")])
    assert sources([match.term for match in glossary.find("我的狗吃热狗,用AI,不用MAIN", ZH)]) == ["狗", "热狗", "AI"]


def test_a_file_has_comments_blank_lines_and_any_unicode_form(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv.gz"
    text = "\ufeff# animals\n\ndog\tHund\r\n cat \t die  Katze\ncafe\u0301\tCafe\u0301\ndog\tHund\n"
    path.write_bytes(gzip.compress(text.encode()))
    glossary = Glossary.read(path)
    assert glossary.terms == [("dog", "Hund"), ("cat", "die Katze"), ("café", "Café")]
    assert len(glossary) == 3


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "Term\tTranslation\ndog\tHund\n",
            "terms.tsv:1: 'Term' is read as a term and 'Translation' as its translation",
        ),
        (
            "# terms\nen\tde\ndog\tHund\n",
            "terms.tsv:2: 'en' is read as a term and 'de' as its translation; if this is a header, start the line with "
            "#",
        ),
        ("Source\tTarget\n", "terms.tsv:1: 'Source' is read as a term and 'Target' as its translation"),
        (
            'dog\tHund\n"snow"\t"Schnee"\n"hot dog"\t"Hot Dog"\n',
            'terms.tsv:2: the quotes are part of the term "snow" and of its translation; remove them unless they are '
            "meant (lines with such quotes: 2)",
        ),
        ('dog\tHund\nen\tde\n"Titanic"\t„Titanic“\n', None),
        ("German\tdeutscher\n", None),
        ("", None),
    ],
)
def test_what_is_probably_no_part_of_a_term_gets_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, warning: str | None
) -> None:
    caplog.set_level(logging.WARNING, logger="mtformer")
    (tmp_path / "terms.tsv").write_text(text, encoding="utf-8")
    assert len(Glossary.read(tmp_path / "terms.tsv")) == text.count("\t")
    assert len(caplog.messages) == (warning is not None)
    assert warning is None or warning in caplog.text


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "dog Hund",
            "terms.tsv:3: this line has no tab, but a term, one tab and its translation are needed: 'dog Hund'",
        ),
        ("dog\tHund\tnoun", "terms.tsv:3: this line has 2 tabs, but a term, one tab and its translation are needed"),
        ("dog\t ", "terms.tsv:3: the translation of 'dog' is empty"),
        ("\tHund", "terms.tsv:3: the term is empty"),
        ("cat\tKater", "terms.tsv:3: 'cat' is already translated as 'Katze' in line 2; remove one of the two"),
    ],
)
def test_a_line_that_is_no_term_is_named(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(f"# animals\ncat\tKatze\n{line}\nfish\n", encoding="utf-8")
    with pytest.raises(UserError) as error:
        Glossary.read(path)
    first, second = str(error.value).split("\n")
    assert problem in first
    assert "terms.tsv:4: this line has no tab" in second


def test_a_glossary_without_a_single_term_in_each_line_lists_ten_problems(tmp_path: Path) -> None:
    path = tmp_path / "prose.txt"
    path.write_text("no glossary\n" * 13, encoding="utf-8")
    with pytest.raises(UserError) as error:
        Glossary.read(path)
    assert str(error.value).count("\n") == 10
    assert str(error.value).endswith("3 more lines like these")


def test_a_term_has_one_translation() -> None:
    with pytest.raises(UserError, match="'dog' is already translated as 'Hund'"):
        Glossary([("dog", "Hund"), ("dog", "Köter")])


@pytest.fixture(scope="module")
def bundle_terms(trained: Project) -> Terms:
    tokenizer = load_bundle(trained.folder / "runs/config/model.safetensors").tokenizer
    pairs = [("dog", "Hund"), ("dog house", "Hund und Haus"), ("house", "Haus")]
    return Terms(Glossary(pairs), tokenizer, src_lang="en", tgt_lang="de")


def test_a_term_stands_where_it_was_found_and_not_where_its_letters_are_in_another_case(trained: Project) -> None:
    tokenizer = load_bundle(trained.folder / "runs/config/model.safetensors").tokenizer
    terms = Terms(Glossary([("US", "Haus"), ("dog", "Hund")]), tokenizer, src_lang="en", tgt_lang="de")
    text = "İt told us that the US likes a DOG"
    found = [match.term for match in terms.find(text)]
    assert [text[start:end] for start, end in terms.spans(text, found)] == ["US", "DOG"]


@pytest.mark.parametrize(
    ("text", "translation", "missing"),
    [
        ("dog", "der Hund.", []),
        ("dog", "Hundert", ["dog"]),
        ("dog dog", "ein Hund", ["dog"]),
        ("dog dog", "Hund, Hund", []),
        ("dog house dog", "Hund und Haus", ["dog"]),
        ("dog house dog", "Hund und Haus und Hund", []),
        ("cat", "", []),
    ],
)
def test_each_term_needs_a_translation_of_its_own(
    bundle_terms: Terms, text: str, translation: str, missing: list[str]
) -> None:
    found = bundle_terms.find(text)
    assert sources(bundle_terms.missing([match.term for match in found], translation)) == missing


GLOSSARY = "the red house\tdie kleine Bude\nsmall dog\tKöter\ncar\tfünf Äpfel Ω\nfriend\tAuto\n"
LINES = [
    "a small dog sees the red house.",
    "this green car needs this green car.",
    "my old friend likes every good book.",
    "",
    "her new garden needs the red house.",
    "A Small Dog likes this green car.",
]
REQUIRED = [
    ["Köter", "die kleine Bude"],
    ["fünf Äpfel Ω"] * 2,
    ["Auto"],
    [],
    ["die kleine Bude"],
    ["Köter", "fünf Äpfel Ω"],
]


@pytest.mark.parametrize("beam_size", ["1", "4"])
def test_every_translation_contains_the_terms_of_its_line(trained: Project, tmp_path: Path, beam_size: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(GLOSSARY, encoding="utf-8")
    options = ["--beam-size", beam_size, "--n-best", beam_size, "--format", "json"]
    plain = trained.mtformer("translate", *options, stdin="\n".join(LINES) + "\n")
    done = trained.mtformer("translate", "--terms", path, *options, stdin="\n".join(LINES) + "\n")
    assert done.status == 0 and "not translated as" not in done.stderr
    german = word_rule("de")
    for line, before, required in zip(done.stdout.splitlines(), plain.stdout.splitlines(), REQUIRED, strict=True):
        found = json.loads(line)["translations"]
        for translation in found:
            text = translation["text"]
            small = text[:1].lower() + text[1:]
            assert all(
                len(find_words(small, tgt, german)) >= required.count(tgt) for tgt in required if tgt[0].islower()
            )
            assert all(
                len(find_words(text, tgt, german)) >= required.count(tgt) for tgt in required if tgt[0].isupper()
            )
            assert [term["tgt"] for term in translation["terms"]] == required
        if not required:
            assert json.loads(before)["translations"] == found
    assert json.loads(done.stdout.splitlines()[5])["translations"][0]["terms"][0] == {
        "src": "small dog",
        "tgt": "Köter",
    }


def test_terms_that_the_model_says_anyway_change_nothing(trained: Project) -> None:
    path, words = trained.folder / "runs/config", word_rule("de")
    plain = Translator.load(path, "cpu").translate(LINES)
    glossary = Glossary([("dog", "Hund"), ("the red house", "das rote Haus"), ("car", "Auto"), ("good book", "Buch")])
    found = Translator.load(path, "cpu", terms=glossary).translate(LINES)
    n_same = 0
    for (best, *_), (before, *_) in zip(found, plain, strict=True):
        if all(find_words(before.text, term.tgt, words) for term in best.terms):
            n_same += len(best.terms)
            assert best.text == before.text
            assert best.log_prob == pytest.approx(before.log_prob, abs=1e-4)
    assert n_same >= 4


def test_a_translation_may_be_longer_than_the_limit_to_hold_its_terms(trained: Project) -> None:
    glossary = Glossary([("dog", "Hund und noch ein Hund und noch ein Hund")])
    path = trained.folder / "runs/config"
    [[best]] = Translator.load(path, "cpu", terms=glossary, max_length=3).translate(["a small dog."])
    assert "und noch ein Hund und noch ein Hund" in best.text
    assert not any("is not translated as" in note for note in best.notes)


def test_a_line_in_parts_has_the_terms_of_each_part(trained: Project) -> None:
    line = " ".join(["a small dog sees the red house."] * 20)
    glossary = Glossary([("dog", "Köter")])
    [[best]] = Translator.load(trained.folder / "runs/config", "cpu", terms=glossary).translate([line])
    assert best.notes and best.notes[0].startswith("translated in")
    assert len(find_words(best.text, "Köter", word_rule("de"))) >= 20
    assert best.terms == (Term("dog", "Köter"),) * 20


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("dog Hund\n", "terms.tsv:1: this line has no tab"),
        (None, "cannot read"),
        (b"dog\tH\xfc", "not UTF-8"),
    ],
)
def test_a_glossary_that_cannot_be_used_is_an_error(
    trained: Project, tmp_path: Path, content: str | bytes | None, problem: str
) -> None:
    path = tmp_path / "terms.tsv"
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    done = trained.mtformer("translate", "--terms", path, "a small dog.")
    assert done.status == 2 and problem in done.stderr and not done.stdout


def test_a_glossary_is_neither_overwritten_nor_read_with_the_text(trained: Project, tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(GLOSSARY, encoding="utf-8")
    done = trained.mtformer("translate", "--terms", path, "--output", path, "a small dog.")
    assert done.status == 2 and "is both input and output" in done.stderr
    assert path.read_text(encoding="utf-8") == GLOSSARY
    done = trained.mtformer("translate", "--terms", "-", stdin=GLOSSARY)
    assert done.status == 2 and "--terms and the text are both standard input" in done.stderr
    done = trained.mtformer("translate", "--terms", "-", "a small dog.", stdin=GLOSSARY)
    assert done.status == 0 and "Köter" in done.stdout


def test_samples_cannot_be_made_to_contain_terms(trained: Project, tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(GLOSSARY, encoding="utf-8")
    done = trained.mtformer("translate", "--terms", path, "--sample", "a small dog.")
    assert done.status == 2 and "terms cannot be combined with sample" in done.stderr


def test_a_term_that_the_tokenizer_cannot_spell_is_an_error(trained: Project) -> None:
    class NoOmega:
        """A tokenizer without bytes for characters that it does not know."""

        def __init__(self) -> None:
            self.real = load_bundle(trained.folder / "runs/config/model.safetensors").tokenizer

        def __getattr__(self, name: str) -> object:
            return getattr(self.real, name)

        def encode_tgt_inside(self, text: str) -> list[int]:
            return [1 if "Ω" in text else i for i in self.real.encode_tgt_inside(text)]

    with pytest.raises(UserError, match="no tokens for 'Ω', the translation of 'omega'"):
        Terms(Glossary([("dog", "Hund"), ("omega", "Ω")]), NoOmega(), src_lang="en", tgt_lang="de")  # type: ignore[arg-type]


SOURCE = "the dog sees a house"


class WordForWord:
    """An engine that translates word by word, and attends to the source word in the same place."""

    def __init__(self, tokenizer: Tokenizer, translation: str) -> None:
        self.tokenizer = tokenizer
        self.words = translation.split()

    def require_supported(self, options: SearchOptions) -> None:
        """Support all options."""

    def submit(self, requests: Sequence[Request[Any]], *, on_done: OnDone | None = None) -> list[Any]:
        """Fulfil each request on its own."""
        of_kind: Any = {SearchRequest: self.search, ScoreRequest: self.score, AlignRequest: self.align}
        return [of_kind[type(request)](request) for request in requests]

    def search(self, request: SearchRequest) -> list[Hypothesis]:
        """Continue after the prefix with the words that follow those of it."""
        prefix = self.tokenizer.decode(list(request.prefix)).split()
        text = " ".join([*prefix, *self.words[len(prefix) :]])
        ids = self.tokenizer.encode_tgt([text])[0][:-1]
        assert ids[: len(request.prefix)] == request.prefix or not prefix
        return [Hypothesis(ids, [-0.1] * (len(ids) + 1))]

    def score(self, request: ScoreRequest) -> list[float]:
        """Find a word improbable if the source lacks the word in the same place."""
        src, tgt = list(request.src[:-1]), list(request.tgt)
        src_words, tgt_text = self.tokenizer.decode_src(src).split(), self.tokenizer.decode(tgt)
        lacks = [word not in src_words for word in SOURCE.split()]
        words = words_of(self.tokenizer.tgt.spans(tgt_text, tgt), tgt_text)
        return [*(-6.0 if lacks[word] else -0.1 for word in words), -0.1]

    def align(self, request: AlignRequest) -> NDArray[np.float32]:
        """Attend to the tokens of the word in the same place."""
        src, tgt = list(request.src[:-1]), list(request.tgt)
        src_text, tgt_text = self.tokenizer.decode_src(src), self.tokenizer.decode(tgt)
        columns = words_of(self.tokenizer.src.spans(src_text, src), src_text)
        rows = words_of(self.tokenizer.tgt.spans(tgt_text, tgt), tgt_text)
        weights = [[float(column == row) for column in [*columns, -1]] for row in rows]
        return np.array(weights, dtype=np.float32)


def words_of(spans: Sequence[Span], text: str) -> list[int]:
    """Return in which word each token stands."""
    return [sum(start < span[1] for start, _ in word_spans(text)) - 1 for span in spans]


@pytest.mark.parametrize(
    ("pairs", "before", "log_prob", "expected"),
    [
        ([("dog", "Köter")], "der Hund sieht ein Haus. Köter", -12.0, "der Köter sieht ein Haus"),
        ([("dog", "Köter")], "der Hund sieht ein Haus. das ist ein Köter im Haus", -12.0, "der Köter sieht ein Haus"),
        ([("house", "Bude"), ("the dog", "Bello")], "ein Hund. Bude Bello", -12.0, "Bello Hund sieht ein Bude"),
        ([("dog", "Köter")], "der Hund sieht ein Haus. Köter", -1.0, "der Köter sieht ein Haus"),
        ([("dog", "Köter")], "das Haus sieht ein Köter", -1.0, None),  # the model finds it likely
        ([("dog", "Köter")], "ein Köter sieht das Haus", -12.0, None),  # it is not at the end
        ([("house", "Bude")], "der Hund sieht eine Bude", -12.0, None),  # it belongs at the end
        (
            [("dog", "Hund"), ("sees a", "sieht zu Hause")],
            "Hund. sieht zu Hause",
            -12.0,
            "der Hund sieht zu Hause Haus",
        ),
    ],
)
def test_a_term_added_at_the_end_is_moved_to_its_place(
    trained: Project, pairs: list[tuple[str, str]], before: str, log_prob: float, expected: str | None
) -> None:
    tokenizer = load_bundle(trained.folder / "runs/config/model.safetensors").tokenizer
    terms = Terms(Glossary(pairs), tokenizer, src_lang="en", tgt_lang="de")
    src, src_ids = SOURCE, tokenizer.encode_src([SOURCE])[0]
    ids, other = (ids[:-1] for ids in tokenizer.encode_tgt([before, "das Haus"]))
    found = [Hypothesis(ids, [*[-0.1] * len(ids), log_prob]), Hypothesis(other, [-0.1] * (len(other) + 1))]
    engine = WordForWord(tokenizer, "der Hund sieht ein Haus")
    in_source = [match.term for match in terms.find(src)]
    search = SearchRequest(src_ids, SearchOptions(n_best=2), 20)
    placed = result_of(Placement(tokenizer, terms).plan(search, in_source, found), engine)
    assert {tokenizer.decode(each.ids) for each in placed.candidates} == {"das Haus", expected or before}
    assert not placed.are_doubtful


@pytest.mark.parametrize("changes", [{"n_best": 4}, {"mbr": 4}])
def test_no_candidate_keeps_a_term_that_was_added_at_the_end(trained: Project, changes: dict[str, int]) -> None:
    class Varies(WordForWord):
        """An engine that finds two translations without terms, and one that needs them."""

        def search(self, request: SearchRequest) -> list[Hypothesis]:
            assert request.options.mbr == 0
            [best] = super().search(request)
            other = self.tokenizer.encode_tgt(["ein Hund sieht ein Haus"])[0][:-1]
            return [best, Hypothesis(other, [-0.2] * (len(other) + 1))][: request.options.n_best]

    tokenizer = load_bundle(trained.folder / "runs/config/model.safetensors").tokenizer
    terms = Terms(Glossary([("dog", "Köter")]), tokenizer, src_lang="en", tgt_lang="de")
    texts = {"der Hund sieht. ein Köter sieht": -1.0, "ein Köter sieht ein Haus": -1.0, "ein Haus. Köter": -12.0}
    found = [Hypothesis(tokenizer.encode_tgt([text])[0][:-1], [log_prob]) for text, log_prob in texts.items()]
    search = SearchRequest(tokenizer.encode_src([SOURCE])[0], SearchOptions(beam_size=4).model_copy(update=changes), 20)
    plan = Placement(tokenizer, terms).plan(search, [match.term for match in terms.find(SOURCE)], found)
    placed = result_of(plan, Varies(tokenizer, "der Hund sieht ein Haus"))
    assert [tokenizer.decode(each.ids) for each in placed.candidates] == [
        "ein Köter sieht ein Haus",
        "der Köter sieht ein Haus",
    ]
    assert not placed.are_doubtful


@pytest.mark.parametrize(
    ("own", "expected", "notes"),
    [
        ("der Hund sieht ein Haus", "der Köter sieht ein Haus", ()),
        ("", "der Hund. ein Köter", ("check: terms may be in wrong places",)),  # no word that the term could replace
    ],
)
def test_terms_that_stay_in_a_wrong_place_are_noted(
    trained: Project, own: str, expected: str, notes: tuple[str, ...]
) -> None:
    class Appends(WordForWord):
        """An engine that appends terms, unless they are in the prefix."""

        def search(self, request: SearchRequest) -> list[Hypothesis]:
            if request.constraint is None or request.prefix:
                return super().search(request)
            ids = self.tokenizer.encode_tgt(["der Hund. ein Köter"])[0][:-1]
            return [Hypothesis(ids, [-12.0] * (len(ids) + 1))]

    tokenizer = load_bundle(trained.folder / "runs/config/model.safetensors").tokenizer
    terms = Terms(Glossary([("dog", "Köter")]), tokenizer, src_lang="en", tgt_lang="de")
    engine = Appends(tokenizer, own)
    planner = Planner(engine, tokenizer, SearchOptions(), src_lang="en", tgt_lang="de", max_length=50, terms=terms)
    [translation] = result_of(planner.plan(SOURCE), engine)
    assert (translation.text, translation.notes) == (expected, notes)


@pytest.mark.parametrize(
    ("translation", "expected"),
    [
        ("der Hund sieht ein Haus", "der Köter sieht ein Haus"),
        ("der Hund. sieht ein Haus", "der Köter. sieht ein Haus"),
        ("der Hund.", "der Köter"),  # nothing but punctuation is lost
    ],
)
def test_what_follows_a_term_is_kept_if_the_model_ends_the_translation_there(
    trained: Project, translation: str, expected: str
) -> None:
    class EndsAtTheTerm(WordForWord):
        def search(self, request: SearchRequest) -> list[Hypothesis]:
            if self.tokenizer.decode(list(request.prefix)).endswith("Köter"):
                return [Hypothesis(list(request.prefix), [-0.1] * (len(request.prefix) + 1))]
            return super().search(request)

    tokenizer = load_bundle(trained.folder / "runs/config/model.safetensors").tokenizer
    terms = Terms(Glossary([("dog", "Köter")]), tokenizer, src_lang="en", tgt_lang="de")
    [src], [ids] = tokenizer.encode_src(["the dog sees a house"]), tokenizer.encode_tgt(["ein. ein. ein Köter"])
    found = [Hypothesis(ids[:-1], [-12.0] * len(ids))]
    plan = Placement(tokenizer, terms).plan(request(src, 20), [match.term for match in terms.find("the dog")], found)
    [best], _ = result_of(plan, EndsAtTheTerm(tokenizer, translation))
    assert tokenizer.decode(best.ids) == expected


@pytest.mark.parametrize(
    ("pairs", "before", "expected"),
    [
        ([("house", "Bude")], "der Hund. sieht. eine Bude", "der Hund sieht ein Bude"),
        ([("dog", "Köter"), ("house", "Bude")], "ein Hund. Köter Bude", "der Köter sieht ein Bude"),
    ],
)
def test_a_term_replaces_the_word_that_needs_it_and_not_one_that_attends_to_it_too(
    trained: Project, pairs: list[tuple[str, str]], before: str, expected: str
) -> None:
    class LooksAhead(WordForWord):
        """An engine whose words all attend to the last word of the source, the translation of it the least."""

        def align(self, request: AlignRequest) -> NDArray[np.float32]:
            weights = super().align(request)
            src_text = self.tokenizer.decode_src(list(request.src[:-1]))
            words = [*words_of(self.tokenizer.src.spans(src_text, request.src[:-1]), src_text), -1]
            is_last = [word == len(SOURCE.split()) - 1 for word in words]
            weights[:, is_last] += np.linspace(3, 1, len(weights))[:, None]
            return weights

    tokenizer = load_bundle(trained.folder / "runs/config/model.safetensors").tokenizer
    terms = Terms(Glossary(pairs), tokenizer, src_lang="en", tgt_lang="de")
    [src], [ids] = tokenizer.encode_src([SOURCE]), tokenizer.encode_tgt([before])
    found = [Hypothesis(ids[:-1], [-12.0] * len(ids))]
    plan = Placement(tokenizer, terms).plan(request(src, 20), [match.term for match in terms.find(SOURCE)], found)
    [best], _ = result_of(plan, LooksAhead(tokenizer, "der Hund sieht ein Haus"))
    assert tokenizer.decode(best.ids) == expected


def test_a_term_that_has_no_place_stays_where_the_search_put_it(trained: Project) -> None:
    tokenizer = load_bundle(trained.folder / "runs/config/model.safetensors").tokenizer
    terms = Terms(Glossary([("dog", "Köter"), ("sees", "Bude")]), tokenizer, src_lang="en", tgt_lang="de")
    [src], [ids] = tokenizer.encode_src(["the dog sees"]), tokenizer.encode_tgt(["der Hund. Köter Bude"])
    found = [Hypothesis(ids[:-1], [-12.0] * len(ids))]
    in_source = [match.term for match in terms.find("the dog sees")]
    plan = Placement(tokenizer, terms).plan(request(src, 20), in_source, found)
    assert result_of(plan, WordForWord(tokenizer, "")) == (found, True)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("der Köter Hund sieht ein Haus", "der Köter sieht ein Haus"),
        ("der Hund Köter sieht ein Haus", "der Köter sieht ein Haus"),
        ("der Hund sieht ein Haus Köter", "der Köter sieht ein Haus"),
        ("der Köter sieht ein Haus", None),
    ],
)
def test_a_term_replaces_the_models_own_word_and_does_not_stand_beside_it(
    trained: Project, before: str, expected: str | None
) -> None:
    class RepeatsItsWord(WordForWord):
        """An engine that continues with its own word after the term."""

        def search(self, request: SearchRequest) -> list[Hypothesis]:
            prefix = self.tokenizer.decode(list(request.prefix))
            text = f"{prefix} Hund sieht ein Haus" if prefix.endswith("Köter") else prefix or " ".join(self.words)
            ids = self.tokenizer.encode_tgt([text])[0][:-1]
            return [Hypothesis(ids, [-0.1] * (len(ids) + 1))]

    tokenizer = load_bundle(trained.folder / "runs/config/model.safetensors").tokenizer
    terms = Terms(Glossary([("dog", "Köter")]), tokenizer, src_lang="en", tgt_lang="de")
    [src], [ids] = tokenizer.encode_src([SOURCE]), tokenizer.encode_tgt([before])
    found = [Hypothesis(ids[:-1], [-12.0] * len(ids))]
    plan = Placement(tokenizer, terms).plan(request(src, 20), [match.term for match in terms.find(SOURCE)], found)
    [best], _ = result_of(plan, RepeatsItsWord(tokenizer, "der Hund sieht ein Haus"))
    assert tokenizer.decode(best.ids) == (expected or before)


@pytest.mark.parametrize("pairs", [[("dog", "Köter"), ("house", "Bude")], [("dog", "Köter")]])
def test_no_term_is_placed_in_a_translation_that_the_maximum_length_cuts_off(
    trained: Project, pairs: list[tuple[str, str]]
) -> None:
    searches: list[str] = []

    class NeverEnds(WordForWord):
        """An engine that repeats its words after a term."""

        def search(self, request: SearchRequest) -> list[Hypothesis]:
            searches.append(self.tokenizer.decode(list(request.prefix)))
            if not request.prefix:
                return super().search(request)
            own = self.tokenizer.encode_tgt([" ".join(self.words)])[0][:-1]
            ids = [*request.prefix, *own * request.limit][: request.limit]
            return [Hypothesis(ids, [-0.1] * (len(ids) + 1))]

    tokenizer = load_bundle(trained.folder / "runs/config/model.safetensors").tokenizer
    terms = Terms(Glossary(pairs), tokenizer, src_lang="en", tgt_lang="de")
    appended = " ".join(["der Hund.", *(tgt for _, tgt in pairs)])
    [src], [ids] = tokenizer.encode_src([SOURCE]), tokenizer.encode_tgt([appended])
    found = [Hypothesis(ids[:-1], [-12.0] * len(ids))]
    plan = Placement(tokenizer, terms).plan(request(src, 20), [match.term for match in terms.find(SOURCE)], found)
    assert result_of(plan, NeverEnds(tokenizer, "der Hund sieht ein Haus")) == (found, True)
    assert searches == ["", "der Köter"]


@pytest.mark.parametrize(
    ("text", "n_ends"),
    [
        ("Ein Hund spielt im Schnee. Ein Köter spielt.", 1),
        ("Was? Ein Köter! Ja.", 2),
        ("他吃了薯片。他走了。", 1),
        ("Am 3. Mai spielen 5.000 Hunde, z. B. Köter, im Schnee.", 0),
        ("Ein Hund ... und ein Köter.", 0),
        ("", 0),
    ],
)
def test_points_of_numbers_and_abbreviations_end_no_sentence(text: str, n_ends: int) -> None:
    assert placement._n_ends(text) == n_ends
