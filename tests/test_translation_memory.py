"""Translation memories: their files, what is the same text, and translations that reuse them."""

import gzip
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from conftest import Project

from mtformer.support.errors import UserError
from mtformer.text.glossary import Glossary
from mtformer.translate.jobs import reading
from mtformer.translate.translation import Recalled, Translation
from mtformer.translate.translation_memory import TranslationMemory
from mtformer.translate.translator import Translator

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="DE-de"><seg>Das Haus
   ist rot.</seg></tuv><tuv xml:lang="EN-US"><seg>The house <ph>&lt;br&gt;</ph>is red.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Only English.</seg></tuv></tu>
</body></tmx>
"""
# Each source is translated as no model that has learned the language of the tests would translate it.
PAIRS = [
    ("the red house sees a small dog.", "Das Haus, das rote, sieht ein Hündchen 48."),
    ("My old friend.", "Alter!"),
    ("<b>a small dog</b>", "<b>Kläffer</b>"),
    ("every good book", "Schinken"),
]
NEW = "Her new garden needs my old friend."


def test_the_most_frequent_translation_is_found_and_of_equals_the_last() -> None:
    often = TranslationMemory([("dog", "Hund"), ("dog", "Köter"), ("cat", "Katze"), ("dog", "Hund"), ("dog", "Rüde")])
    assert (often.find("dog"), often.find("cat"), len(often)) == ("Hund", "Katze", 5)
    equal = TranslationMemory([("dog", "Hund"), ("dog", "Köter"), ("dog", "Köter"), ("dog", "Hund")])
    assert equal.find("dog") == "Hund"
    assert TranslationMemory([("dog", "Hund"), ("dog", "Köter")]).find("dog") == "Köter"


@pytest.mark.parametrize(
    ("text", "is_same"),
    [
        ("Caf\u00e9 24, 10 km.", True),
        ("Cafe\u0301 24, 10 km.", True),
        ("  Caf\u00e9\u00a024,\t10  km. ", True),
        ("caf\u00e9 24, 10 km.", False),
        ("Caf\u00e9 25, 10 km.", False),
        ("Cafe 24, 10 km.", False),
        ("Caf\u00e9 24, 10 km", False),
        ("", False),
    ],
)
def test_only_spaces_and_composed_letters_may_differ(text: str, is_same: bool) -> None:
    memory = TranslationMemory([("Caf\u00e9 24, 10 km.", " Kaffeehaus  24 "), ("", "nothing"), ("nothing", " ")])
    assert memory.find(text) == ("Kaffeehaus 24" if is_same else None)
    assert (len(memory), memory.find("nothing")) == (1, None)


def test_texts_with_the_same_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtformer.data.clean.seen.xxhash.xxh3_64_intdigest", len)
    memory = TranslationMemory([("dog", "Hund"), ("cat", "Katze"), ("dog", "Hund"), ("bird", "Vogel")])
    assert list(map(memory.find, ["cat", "dog", "bird", "cow", "x"])) == ["Katze", "Hund", "Vogel", None, None]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("memory.tmx", TMX.encode()),
        ("memory.tmx.gz", gzip.compress(TMX.encode(), mtime=0)),
        ("memory.tsv", b"The house is red.\tDas Haus ist rot.\n\nMissing.\t\n"),
        ("memory.txt", "\ufeffde\ten\r\nDas Haus ist rot.\tThe house is red.\r\n".encode()),
        ("tsv:memory.tsv,src_column:3,tgt_column:2", b"1\tDas Haus ist rot.\tThe house is red.\n"),
        ("csv:memory.csv", b'en,de\n"The house is red.","Das Haus ist rot."\n'),
    ],
)
def test_a_memory_is_read_in_the_direction_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name.partition(":")[2].partition(",")[0] or name).write_bytes(content)
    memory = TranslationMemory.read(name, "en", "de")
    assert (len(memory), memory.find("The house is red.")) == (1, "Das Haus ist rot.")
    if "src_column" not in name and name != "memory.tsv":  # those name the languages
        assert TranslationMemory.read(name, "de", "en").find("Das Haus ist rot.") == "The house is red."


def test_a_memory_of_which_little_can_be_used_gets_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="mtformer")
    (tmp_path / "memory.tmx").write_text(TMX)
    TranslationMemory.read(tmp_path / "memory.tmx", "en", "de")
    (tmp_path / "empty.tsv").touch()
    assert len(TranslationMemory.read(tmp_path / "empty.tsv", "en", "de")) == 0
    few, none = caplog.messages
    assert "memory.tmx: 1 of 2 lines is dropped (50 %): 1 without de (line 5)" in few
    assert "empty.tsv has no pairs: nothing is reused" in none


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("memory.tsv", b"the dog\tder Hund\nthe cat\n", "memory.tsv:2: this line has no tab: 'the cat'"),
        ("memory.tsv", b"a\tb\nthe dog\tder \xffHund\n", "memory.tsv:2: byte 0xff at position 13 is not UTF-8"),
        ("memory.tsv.gz", gzip.compress(b"a\tb\n" * 9_000, mtime=0)[:-30], "memory.tsv.gz: the compressed file is"),
        ("memory.tmx", TMX[:-30].encode(), "memory.tmx:5: this is not valid XML"),
        ("memory.tmx", TMX.replace("EN-US", "fr").encode(), "memory.tmx: no unit has both en and de"),
        ("memory.tsv", None, "cannot read memory.tsv: No such file"),
    ],
)
def test_a_damaged_memory_is_refused_with_its_line_and_nothing_left_behind(
    trained: Project, tmp_path: Path, name: str, content: bytes | None, problem: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    before = set(tmp_path.iterdir())
    model = trained.folder / "runs/config"
    place = Project(tmp_path, trained.config)
    done = place.mtformer("translate", "--memory", name, "--model", model, "--output", "out.de", stdin="a dog\n")
    assert (done.status, done.stdout) == (2, "")
    assert problem in done.stderr and "Traceback" not in done.stderr
    assert set(tmp_path.iterdir()) == before


def test_an_open_language_is_refused() -> None:
    with pytest.raises(UserError, match="needs both languages: name them with --from and --to"):
        TranslationMemory.read("memory.tsv", "mul", "de")


@pytest.fixture(scope="module")
def plain(trained: Project) -> Translator:
    return Translator.load(trained.folder / "runs/config")


@pytest.fixture(scope="module")
def reusing(trained: Project) -> Translator:
    return Translator.load(trained.folder / "runs/config", memory=TranslationMemory(PAIRS))


def best(translator: Translator, text: str) -> Translation:
    [[translation, *_]] = translator.translate([text])
    return translation


def test_what_the_memory_has_is_reused_without_the_model_and_unchecked(reusing: Translator) -> None:
    for src, tgt in PAIRS:
        assert best(reusing, f" {src}") == Translation(tgt, 0.0, 0.0, memory=(Recalled(f" {src}", tgt),))
    assert best(reusing, PAIRS[0][0]).confidence == 1


def test_lines_and_sentences_are_reused_one_by_one_and_the_model_translates_the_others(
    reusing: Translator, plain: Translator
) -> None:
    first, friend = PAIRS[0], PAIRS[1]
    translated = best(plain, NEW)
    mixed = best(reusing, f"{friend[0]} {NEW} Her new friend.")
    assert mixed.text == f"{friend[1]} {translated.text} {best(plain, 'Her new friend.').text}"
    assert mixed.memory == (friend,)
    assert mixed.tokens[: len(translated.tokens)] == translated.tokens
    several = best(reusing, f"{first[0]} {friend[0]}")
    assert (several.text, several.memory, several.tokens) == (f"{first[1]} {friend[1]}", (first, friend), ())
    lines = best(reusing, f"{friend[0]}\r\n\n{NEW}\n{first[0]}")
    assert lines.text == f"{friend[1]}\r\n\n{translated.text}\n{first[1]}"
    assert lines.memory == (friend, first)


def test_texts_between_marks_are_reused_and_the_marks_put_back(reusing: Translator) -> None:
    [(_, friend), (book, schinken)] = PAIRS[1], PAIRS[3]
    assert best(reusing, "1. My old friend.").text == f"1. {friend}"
    assert best(reusing, f"<i>{book}</i>").text == f"<i>{schinken}</i>"


def test_what_the_memory_does_not_have_is_translated_as_without_it(reusing: Translator, plain: Translator) -> None:
    texts = [NEW, "", "MY OLD FRIEND.", "the red house sees a small dog", f"{NEW} {NEW}", "<b>her new garden</b>", "48"]
    assert reusing.translate(texts) == plain.translate(texts)
    with_options = {"beam_size": 3, "n_best": 3}
    assert reusing.with_options(**with_options).translate(texts) == plain.with_options(**with_options).translate(texts)


def test_a_reused_translation_has_one_form_and_its_alignment(trained: Project, reusing: Translator) -> None:
    [several] = reusing.with_options(n_best=3).translate([PAIRS[1][0]])
    assert [each.text for each in several] == [PAIRS[1][1]]
    [mixed] = reusing.with_options(n_best=3).translate([f"{PAIRS[1][0]} {NEW}"])
    assert len(mixed) == 3 and all(each.text.startswith(f"{PAIRS[1][1]} ") for each in mixed)
    aligning = Translator.load(trained.folder / "runs/config", memory=TranslationMemory(PAIRS), alignments=True)
    alignment = best(aligning, PAIRS[1][0]).alignment
    assert alignment is not None and alignment.tgt == PAIRS[1][1]


def test_a_glossary_does_not_change_a_reused_translation_but_notes_what_it_lacks(trained: Project) -> None:
    settings: dict[str, Any] = {"terms": Glossary([("friend", "Kumpel"), ("book", "Schinken")])}
    translator = Translator.load(trained.folder / "runs/config", memory=TranslationMemory(PAIRS), **settings)
    friend, book = best(translator, PAIRS[1][0]), best(translator, PAIRS[3][0])
    assert (friend.text, friend.terms) == ("Alter!", (("friend", "Kumpel"),))
    assert friend.notes == ("the term 'friend' is not translated as 'Kumpel'",)
    assert (book.text, book.notes) == ("Schinken", ())
    assert "Kumpel" in best(translator, NEW).text


def test_the_command_reuses_lines_in_order_and_tells_which(trained: Project, tmp_path: Path) -> None:
    path = tmp_path / "memory.tsv"
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in PAIRS))
    text = f"{PAIRS[1][0]}\n\n{NEW}\n{PAIRS[0][0]}\n{NEW} {PAIRS[1][0]}\n"
    without = trained.mtformer("translate", stdin=f"{NEW}\n").stdout.strip()
    done = trained.mtformer("translate", "--memory", path, stdin=text)
    assert done.status == 0
    assert done.stdout == f"{PAIRS[1][1]}\n\n{without}\n{PAIRS[0][1]}\n{without} {PAIRS[1][1]}\n"
    assert "from the translation memory: 3 lines (1, 4, 5), whole (2), in part (1)\n" in done.stderr
    assert "WARNING" not in done.stderr and "check" not in done.stderr
    shown = trained.mtformer("translate", "--memory", path, "--format", "json", stdin=text).stdout
    objects = [json.loads(line)["translations"][0] for line in shown.splitlines()]
    assert [each.get("memory") for each in objects] == [
        [dict(zip(("src", "tgt"), PAIRS[1], strict=True))],
        None,
        None,
        [dict(zip(("src", "tgt"), PAIRS[0], strict=True))],
        [dict(zip(("src", "tgt"), PAIRS[1], strict=True))],
    ]
    assert (objects[0]["score"], objects[0]["tokens"], objects[0]["notes"]) == (0, [], [])


def test_the_command_tells_that_nothing_is_from_the_memory(trained: Project, tmp_path: Path) -> None:
    path = tmp_path / "swapped.tsv"
    path.write_text("".join(f"{tgt}\t{src}\n" for src, tgt in PAIRS))
    for arguments, expected in ((("--memory", path), True), ((), False)):
        done = trained.mtformer("translate", *arguments, stdin=f"{PAIRS[1][0]}\n")
        assert (done.status, "from the translation memory: nothing\n" in done.stderr) == (0, expected)


def test_a_resumed_job_needs_the_same_memory(trained: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "FIRST_SIZE", 2)
    path, text, output = tmp_path / "memory.tsv", tmp_path / "in.en", tmp_path / "out.de"
    path.write_text("a dog.\tKläffer\n")
    text.write_bytes(b"a dog.\n" * 2 + b"\xff\n")
    command: list[str | Path] = ["translate", "--memory", path, "--input", text, "--output", output]
    assert trained.mtformer(*command).status == 2
    path.write_text("a dog.\tKöter\n")
    refused = trained.mtformer(*command, "--resume", "--on-error", "skip")
    assert refused.status == 2 and "--memory" in refused.stderr
    path.write_text("a dog.\tKläffer\n")
    assert trained.mtformer(*command, "--resume", "--on-error", "skip").status == 0
    assert output.read_text() == "Kläffer\nKläffer\n\n"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--memory", "-"], "--memory and the text are both standard input: name a file for one of them"),
        (["--memory", "-", "--terms", "-", "a dog"], "--memory and the glossary are both standard input"),
        (["--memory", "train.en", "--output", "train.en", "a dog"], "train.en is both input and output"),
    ],
)
def test_a_memory_that_is_another_input_or_the_output_is_refused(
    trained: Project, options: list[str], problem: str
) -> None:
    done = trained.mtformer("translate", *options, stdin="dog\tHund\n")
    assert done.status == 2
    assert problem in done.stderr
